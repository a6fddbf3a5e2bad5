"""The queries of a test collection: their texts, tags, and who may ask them."""

from __future__ import annotations

import json
import numbers
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pytest_retrieval_eval.collection.formats.files import (
    JsonIds,
    PathLike,
    bare_suffixes,
    excerpt,
    json_lines,
    lines,
)
from pytest_retrieval_eval.collection.formats.rows import value_of
from pytest_retrieval_eval.errors import DataError, did_you_mean

ID_KEYS = ("_id", "query_id", "id")
TEXT_KEYS = ("text", "query")
_HEADER_IDS = {"_id", "id", "qid", "query_id", "query-id", "queryid"}
_HEADER_TEXTS = {"text", "query", "query_text", "query-text", "title"}


@dataclass(frozen=True, slots=True)
class _Query:
    text: str | None
    tags: Mapping[str, object]
    unanswerable: bool
    roles: tuple[str, ...] | None
    hops: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Queries:
    """Queries by id, in the order of their file. The id is the key; two queries may have the same text.

    What cannot be queries, in a file or in memory, is a DataError that says where.

    >>> queries = Queries.of({"q1": "Is it insured?", "q2": {"text": "Hello", "tags": {"type": "chat"}}})
    >>> queries.text("q1"), sorted(queries.select({"type": "chat"}))
    ('Is it insured?', ['q2'])
    """

    ids: tuple[str, ...]
    unanswerable: frozenset[str]
    source: str
    _by_id: dict[str, _Query] = field(repr=False)
    _cache: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def read(cls, path: PathLike, *, normalize_ids: bool = False) -> Queries:
        """Read JSON Lines, or a table ``id<TAB>text`` where the name ends in .tsv or .txt.

        JSON Lines: one object per query with ``_id`` (or ``query_id``, ``id``), ``text`` (or ``query``), and
        optional ``tags`` {…} and ``metadata`` {…} (both can be selected on; tags win), ``unanswerable`` true
        or false, ``roles`` [...], ``hops`` [[...], ...]. Other keys are ignored. A table may begin with a header line.

        An id that stands twice, a query without text, and a file without queries raise DataError.
        ``normalize_ids`` brings ids to Unicode form NFC.
        """
        builder = QueriesBuilder(str(path), normalize_ids)
        if bare_suffixes(path)[-1:] in ([".tsv"], [".txt"]):
            for number, query_id, text in _table(path):
                builder.add(query_id, {"text": text}, f"{path}:{number}")
        else:
            for number, row in json_lines(path):
                builder.add(value_of(row, ID_KEYS, f"{path}:{number}", "query"), row, f"{path}:{number}")
        return builder.done()

    @classmethod
    def of(cls, queries: Mapping[Any, str | Mapping[str, object]]) -> Queries:
        """Queries of a mapping from id to text, or to what a line of queries.jsonl holds besides the id."""
        if not isinstance(queries, Mapping):
            raise DataError(
                f"queries are {excerpt(queries)}; expected a mapping from query id to text (or to a mapping)"
            )
        builder = QueriesBuilder("queries", False)
        for query_id, value in queries.items():
            row = value if isinstance(value, Mapping) else {"text": value}
            builder.add(query_id, row, f"query {excerpt(query_id)}")
        return builder.done()

    @classmethod
    def without_texts(cls, ids: Iterable[str], source: str) -> Queries:
        """Queries of which nothing but the ids is known: enough to score a run, not to ask a retriever."""
        nothing = _Query(None, {}, False, None)
        by_id = dict.fromkeys(ids, nothing)
        return cls(tuple(by_id), frozenset(), source, by_id)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._by_id

    def __repr__(self) -> str:
        return f"<Queries {self.source}: {len(self)} queries>"

    def text(self, query_id: str) -> str:
        """The text of a query; DataError where the id is unknown or only the id is known."""
        text = self._get(query_id).text
        if text is None:
            raise DataError(
                f"query {query_id!r} has no text: {self.source} names its id only; "
                "add it to queries.jsonl to ask a retriever"
            )
        return text

    def tags(self, query_id: str) -> Mapping[str, object]:
        """The tags of a query (JSON values), without those that it lacks; read-only."""
        return MappingProxyType(dict(self._get(query_id).tags))

    def roles(self, query_id: str) -> tuple[str, ...]:
        """The roles of whoever asks the query; empty where none are given, or where it says that there are none."""
        return self._get(query_id).roles or ()

    def says_roles(self, query_id: str) -> bool:
        """Whether the query says who asks it: ``[]`` says that it is somebody without a role."""
        return self._get(query_id).roles is not None

    def hops(self, query_id: str) -> tuple[tuple[str, ...], ...] | None:
        """The documents that each hop needs, in the order of the hops; None where the query does not say."""
        return self._get(query_id).hops

    def select(self, where: Mapping[str, object]) -> frozenset[str]:
        """The ids of the queries whose tags have these values.

        Values are compared as JSON: ``true`` is not ``"true"``, 1 is not ``"1"``, 1 is 1.0. A list means
        any of its values, several keys mean and; no key selects every query. A query whose tag is a list has each
        of its values. A tag or value that no query has, and a combination that selects nothing, raise DataError.

        >>> queries = Queries.of({"1": {"text": "a", "tags": {"type": "policy", "year": 2024}},
        ...                       "2": {"text": "b", "tags": {"type": "price", "year": 2024}}})
        >>> sorted(queries.select({"type": ["policy", "price"], "year": 2024.0}))
        ['1', '2']
        >>> queries.select({"type": "polcy"})
        Traceback (most recent call last):
        pytest_retrieval_eval.errors.DataError: where type = "polcy": no query has it; did you mean "policy"?
        """
        if not isinstance(where, Mapping):
            raise DataError(f"where is {excerpt(where)}; expected a mapping from tag to value")
        chosen = frozenset(self.ids)
        for tag, wanted in where.items():
            values, parts = self.values_of(tag), self.parts_of(tag)
            found: set[str] = set()
            options = wanted if isinstance(wanted, (list, tuple, Set)) else [wanted]
            if not options:
                raise DataError(f"where {tag} = []: an empty list selects no query; expected at least one value")
            for option in options:
                text = json_text(option, f"where {tag}")
                if text not in values and text not in parts:
                    raise DataError(f"where {tag} = {text}: no query has it; {_nearest(text, {**values, **parts})}")
                found |= values.get(text, frozenset()) | parts.get(text, frozenset())
            chosen &= found
        if not chosen:
            shown = ", ".join(f"{tag} = {excerpt(value)}" for tag, value in where.items())
            raise DataError(f"where {shown}: no query of {self.source} has all of these")
        return chosen

    def values_of(self, tag: str) -> dict[str, frozenset[str]]:
        """The queries that have each value of a tag; the value is JSON text: ``"policy"``, ``true``, ``7``.

        In the order of the texts; queries without the tag are in none. An unknown tag raises DataError.
        """
        if tag not in self._cache:
            index: dict[str, set[str]] = {}
            for query_id, query in self._by_id.items():
                if tag in query.tags:
                    text = json_text(query.tags[tag], f"query {query_id!r}, tag {tag}")
                    index.setdefault(text, set()).add(query_id)
            if not index:
                known = {name for query in self._by_id.values() for name in query.tags}
                hint = did_you_mean(str(tag), known) if known else "no query has any tag"
                raise DataError(f"no query of {self.source} has the tag {excerpt(tag)}; {hint}")
            self._cache[tag] = {text: frozenset(index[text]) for text in sorted(index)}
        return dict(self._cache[tag])

    def parts_of(self, tag: str) -> dict[str, frozenset[str]]:
        """The same, where a list is all of its values: such a query stands under several.

        >>> queries = Queries.of({"1": {"text": "a", "tags": {"area": ["hr", "it"]}},
        ...                       "2": {"text": "b", "tags": {"area": "it"}}})
        >>> {text: sorted(ids) for text, ids in queries.parts_of("area").items()}
        {'"hr"': ['1'], '"it"': ['1', '2']}
        """
        found: dict[str, set[str]] = {}
        for text, ids in self.values_of(tag).items():
            value = json.loads(text)
            for part in (json_text(each, tag) for each in value) if isinstance(value, list) else (text,):
                found.setdefault(part, set()).update(ids)
        return {text: frozenset(found[text]) for text in sorted(found)}

    def _get(self, query_id: str) -> _Query:
        try:
            return self._by_id[query_id]
        except KeyError:
            hint = did_you_mean(query_id, self.ids) if len(self) < 1000 and isinstance(query_id, str) else ""
            shown = f"; {hint}" if hint.startswith("did") else ""
            raise DataError(f"{self.source} has no query {query_id!r}{shown}") from None


class QueriesBuilder:
    """Collects queries from rows that each know where they stand, and refuses what cannot be one."""

    def __init__(self, source: str, normalize_ids: bool) -> None:
        self.source = source
        self._ids = JsonIds(normalize_ids)
        self._by_id: dict[str, _Query] = {}
        self._places: dict[str, str] = {}

    def add(self, query_id: object, row: Mapping[str, object], where: str) -> str:
        """One query; ``row`` holds what a line of queries.jsonl holds. Returns the id as text."""
        key = self._ids(query_id, where)
        if key in self._by_id:
            raise DataError(f"{where}: the query id {key!r} stands already at {self._places[key]}; ids are unique")
        text = value_of(row, TEXT_KEYS, where, f"query {key!r}")
        if not isinstance(text, str):
            raise DataError(f"{where}: the text of query {key!r} is {excerpt(text)}; expected a string")
        if not _is_unicode(text):
            raise DataError(f"{where}: the text of query {key!r} has half of a surrogate pair; expected Unicode text")
        tags = {**_fields(row, "metadata", key, where), **_fields(row, "tags", key, where)}
        unanswerable = row.get("unanswerable")
        if not (unanswerable is None or isinstance(unanswerable, bool)):
            raise DataError(
                f"{where}: unanswerable of query {key!r} is {excerpt(unanswerable)}; expected true or false"
            )
        roles = roles_of(row.get("roles"), f"query {key!r}", where)
        hops = _hops_of(row.get("hops"), f"query {key!r}", where)
        self._by_id[key] = _Query(text, tags, bool(unanswerable), roles, hops)
        self._places[key] = where
        return key

    def done(self) -> Queries:
        """The finished queries; none at all is a DataError."""
        if not self._by_id:
            raise DataError(f"no queries in {self.source}")
        unanswerable = frozenset(key for key, query in self._by_id.items() if query.unanswerable)
        return Queries(tuple(self._by_id), unanswerable, self.source, self._by_id)


def nfc_twins(ids: Iterable[str], others: Collection[str]) -> list[str]:
    """The ids that are not among the others, but would be if both were brought to Unicode form NFC."""
    missing = [name for name in ids if name not in others]
    if all(map(str.isascii, missing)) and all(map(str.isascii, others)):
        return []
    forms = {unicodedata.normalize("NFC", name) for name in others}
    return [name for name in missing if unicodedata.normalize("NFC", name) in forms]


def json_text(value: object, where: str) -> str:
    """A JSON value as text that is equal for equal values: 1 and 1.0 are equal, 1 and true are not.

    >>> [json_text(value, "tag") for value in (1.0, True, "1", {"b": 1, "a": []})]
    ['1', 'true', '"1"', '{"a": [], "b": 1}']
    """
    try:
        return json.dumps(_canonical(value), ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        raise DataError(f"{where}: {excerpt(value)} is no JSON value") from None


def json_word(value: object) -> str:
    """A JSON value as a reader writes it: text as it is, unless JSON would read that as something else.

    What is no JSON value is its ``str``, since this is for messages too.

    >>> [json_word(value) for value in ("policy", 1, "1", 1.0, True, "true", None)]
    ['policy', '1', '"1"', '1', 'true', '"true"', 'null']
    """
    if isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return value
    try:
        return json_text(value, "")
    except DataError:
        return str(value)


def _canonical(value: object) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, Mapping):
        return {key: _canonical(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(part) for part in value]
    raise TypeError(type(value).__name__)


def _nearest(text: str, known: Collection[str]) -> str:
    # true for "true", 1 for "1": the type is the mistake, however short the word.
    for other in known:
        if other.strip('"').lower() == text.strip('"').lower():
            return f"did you mean {other}?"
    return did_you_mean(text, known)


def _fields(row: Mapping[str, object], name: str, key: str, where: str) -> Mapping[str, object]:
    value = row.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: the {name} of query {key!r} are {excerpt(value)}; expected an object {{…}}")
    return {name: _frozen(part) for name, part in value.items()}


def _frozen(value: object) -> object:
    # What the caller's lists become later must not reach us, nor the other way round.
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(part) for part in value)
    if isinstance(value, Mapping):
        return {name: _frozen(part) for name, part in value.items()}
    return value


def roles_of(value: object, whose: str, where: str) -> tuple[str, ...] | None:
    """The roles that a query or a document names; None where it does not say."""
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(role, str) for role in value):
        return tuple(value)
    raise DataError(f"{where}: the roles of {whose} are {excerpt(value)}; expected a list of strings")


def _hops_of(value: object, whose: str, where: str) -> tuple[tuple[str, ...], ...] | None:
    """The documents of each hop that a query names; None where it does not say."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and value and all(isinstance(hop, (list, tuple)) and hop for hop in value):
        ids = JsonIds()
        return tuple(tuple(ids(doc, f"{where}, hops of {whose}") for doc in hop) for hop in value)
    raise DataError(
        f"{where}: the hops of {whose} are {excerpt(value)}; expected a list with the ids of the documents of each "
        'hop, such as [["d4"], ["d2"]]'
    )


def _table(path: PathLike) -> Iterator[tuple[int, str, str]]:
    first = True
    for number, line in lines(path):
        if not line.strip():
            continue
        query_id, tab, text = line.partition("\t")
        if not tab:
            if line.startswith("#"):
                continue
            raise DataError(f"{path}:{number}: {excerpt(line)} has no tab; expected a query id, a tab, and a text")
        if first:
            first = line.startswith("#")
            if query_id.strip().lower() in _HEADER_IDS and text.strip().lower() in _HEADER_TEXTS:
                continue
        yield number, query_id.strip(), text.strip()


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
