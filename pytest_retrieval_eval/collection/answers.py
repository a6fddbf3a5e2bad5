"""Gold answers: query → the texts that answer it. What a reader's answer, or a document, is held against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_retrieval_eval.collection.formats.files import (
    JsonIds,
    PathLike,
    bare_suffixes,
    excerpt,
    json_document,
    json_lines,
    lines,
)
from pytest_retrieval_eval.errors import DataError

_ID_KEYS = ("query_id", "query-id", "_id", "id", "qid", "example_id", "question_id")
_ANSWER_KEYS = ("answers", "answer", "short_answers", "output")
_FORMS = "answers as a list of texts, as {'text': [...]}, or as KILT's output [{'answer': ...}]"


class Answers:
    """The gold answers of each query, any of which is right; immutable.

    A query that is not here, or whose list is empty, has no known answer. What cannot be answers, in a file or in
    memory, is a DataError that says where.

    >>> answers = Answers.of({"q1": ["14 days", "two weeks"], "q2": "Umeå"})
    >>> answers.of_query("q1"), answers.of_query("q2"), answers.of_query("q3"), len(answers)
    (('14 days', 'two weeks'), ('Umeå',), (), 2)
    """

    __slots__ = ("_answers", "_digest", "source")

    def __init__(self, answers: Mapping[str, tuple[str, ...]], source: str) -> None:
        self._answers = dict(answers)
        self._digest: str | None = None
        self.source = source

    @classmethod
    def read(cls, path: PathLike, *, normalize_ids: bool = False) -> Answers:
        """Read answers; the content says in which form.

        * JSON Lines, a query in each: ``{"query_id", "answers": [text, …]}``; the answers may also be one text,
          SQuAD's ``{"text": [...]}`` or ``[{"text"}, …]``, or ``answer`` or ``short_answers`` (Natural Questions);
        * KILT: JSON Lines with ``{"id", "output": [{"answer", "provenance"}, …]}``;
        * one JSON document: SQuAD's ``{"data": [{"paragraphs": [{"qas": [{"id", "answers"}]}]}]}``, a list of such
          rows, or ``{query_id: [text, …]}``.

        Queries are known by id, never by text. A row without an id, an answer that is no text or empty, and a query
        that comes twice with other answers raise DataError with file and line. ``normalize_ids`` brings ids to Unicode
        form NFC.
        """
        builder = _Builder(str(path), normalize_ids)
        if _by_line(path):
            for number, row in json_lines(path):
                builder.add_row(row, f"{path}:{number}")
        else:
            builder.add_document(json_document(path), str(path))
        return builder.done()

    @classmethod
    def of(cls, answers: Mapping[Any, str | Iterable[str]], *, source: str = "answers") -> Answers:
        """Answers of a mapping from query id to a text, or to several."""
        if not isinstance(answers, Mapping):
            raise DataError(f"answers are {excerpt(answers)}; expected a mapping from query id to texts")
        builder = _Builder(source)
        for query_id, texts in answers.items():
            builder.add(query_id, texts, source)
        return builder.done()

    def of_query(self, query_id: str) -> tuple[str, ...]:
        """The answers of one query, in the order of the file; empty where none is known."""
        return self._answers.get(query_id, ())

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._answers

    def __repr__(self) -> str:
        return f"<Answers {self.source}: {len(self)} queries>"

    def to_dict(self) -> dict[str, list[str]]:
        """Query → answers."""
        return {query_id: list(texts) for query_id, texts in self._answers.items()}

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of queries and answers; the order of the answers of a query does not matter."""
        if self._digest is None:
            rows = sorted((query, sorted(texts)) for query, texts in self._answers.items() if texts)
            self._digest = "sha256:" + hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        return self._digest


class _Builder:
    """Collects answers that know where they stand, and refuses what cannot be one."""

    def __init__(self, source: str, normalize_ids: bool = False) -> None:
        self.source = source
        self._ids = JsonIds(normalize_ids)
        self._answers: dict[str, tuple[str, ...]] = {}
        self._places: dict[str, str] = {}

    def add(self, query_id: object, answers: object, where: str) -> None:
        query = self._ids(query_id, where)
        texts = tuple(dict.fromkeys(_texts(answers, f"{where}: query {query!r}")))
        if self._answers.setdefault(query, texts) != texts:
            raise DataError(
                f"{where}: query {query!r} has other answers here than at {self._places[query]}; expected each query "
                "once"
            )
        self._places.setdefault(query, where)

    def add_row(self, row: Mapping[str, Any], where: str) -> None:
        query_id = next((row[key] for key in _ID_KEYS if row.get(key) is not None), None)
        if query_id is None:
            raise DataError(
                f"{where}: the row has no query id; found the keys {excerpt(list(row))}; expected query_id and answers "
                "(queries are known by their id, never by their text)"
            )
        key = next((key for key in _ANSWER_KEYS if key in row), None)
        if key is None:
            raise DataError(f"{where}: query {excerpt(query_id)} has no answers; expected {_FORMS}")
        self.add(query_id, row[key], where)

    def add_document(self, value: object, where: str) -> None:
        """A whole JSON document."""
        if isinstance(value, Mapping) and isinstance(value.get("data"), list):
            for number, article in enumerate(value["data"], 1):
                for qa in _questions(article, f"{where}: entry {number} of data"):
                    self.add_row(qa, f"{where}: entry {number} of data")
        elif isinstance(value, list):
            for number, row in enumerate(value, 1):
                place = f"{where}: entry {number}"
                if not isinstance(row, Mapping):
                    raise DataError(f"{place} is {excerpt(row)}; expected an object with query_id and answers")
                self.add_row(row, place)
        elif isinstance(value, Mapping):
            for query_id, answers in value.items():
                self.add(query_id, answers, where)
        else:
            raise DataError(f"{where}: the file holds {excerpt(value)}; expected rows with query_id and answers")

    def done(self) -> Answers:
        if not any(self._answers.values()):
            raise DataError(f"{self.source}: there is no answer; expected {_FORMS}")
        return Answers(self._answers, self.source)


def _by_line(path: PathLike) -> bool:
    if bare_suffixes(path)[-1:] in ([".jsonl"], [".ndjson"]):
        return True
    first = next((text for _, text in lines(path) if text and not text.isspace()), "")
    try:
        row = json.loads(first)
    except ValueError:
        return False
    # A whole document on one line is no row.
    return isinstance(row, dict) and any(key in row for key in _ID_KEYS)


def _questions(article: object, where: str) -> Iterator[Mapping[str, Any]]:
    paragraphs = article.get("paragraphs") if isinstance(article, Mapping) else None
    if not isinstance(paragraphs, list):
        raise DataError(f"{where}: no paragraphs in {excerpt(article)}; expected SQuAD's paragraphs with qas")
    for paragraph in paragraphs:
        found = paragraph.get("qas") if isinstance(paragraph, Mapping) else None
        if not isinstance(found, list) or not all(isinstance(qa, Mapping) for qa in found):
            raise DataError(f"{where}: no qas in {excerpt(paragraph)}; expected SQuAD's list of questions")
        yield from found


def _texts(value: object, where: str) -> Iterator[str]:
    """The texts in any of the usual forms of gold answers."""
    if isinstance(value, str):
        if not value.strip():
            raise DataError(f"{where}: an answer is empty; leave it out where the query has none")
        yield value
    elif isinstance(value, Mapping):
        # KILT's outputs may have provenance alone, and SQuAD's texts are a list.
        inner = value.get("answer", value.get("text"))
        if inner is not None:
            yield from _texts(inner, where)
        elif "provenance" not in value and "text" not in value:
            raise DataError(f"{where}: the answer is {excerpt(value)}; expected {_FORMS}")
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for each in value:
            yield from _texts(each, where)
    else:
        raise DataError(f"{where}: the answer is {excerpt(value)}; expected {_FORMS}")
