"""What a retriever returns for one query, in whatever form, as a list of ``Hit``.

Objects of LangChain, LlamaIndex, Haystack and of vector stores are read by their shape: nothing of theirs is
imported. What has no order, no id or no number is an error that names query and rank, never a guess.
"""

from __future__ import annotations

import math
import numbers
import uuid
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from pytest_retrieval_eval.collection.formats.files import excerpt, json_id
from pytest_retrieval_eval.errors import DataError

# A chunk's own id stands before that of the document which it was cut from.
_ID_KEYS = ("id", "_id", "chunk_id", "doc_id")
_SCORE_KEYS = ("score", "_score")
_TEXT_KEYS = ("page_content", "content", "text")
# The document that a chunk is part of; Haystack's splitter says the second.
_PARENTS = ("doc_id", "source_id")
# Where a chunk starts, as splitters of LangChain and of Haystack say it.
_SPLITTERS = ("start_index", "split_idx_start")
_STARTS = {"start", *_SPLITTERS}
Offsets = tuple[int, int] | tuple[None, None]
_FORMS = "an id, an (id, score) pair, a mapping with 'id', or an object with .id"
_LISTS = "a list of hits, best first, or a mapping from document to score"


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved document or chunk.

    ``score`` is None where the retriever gives none. ``doc_id``, ``start`` and ``end`` say which part of
    which document a chunk is: offsets in code points, end exclusive. ``text`` is that of a chunk which says its
    document and not where it stands there, so that it can be looked for; no run keeps it.

    >>> Hit("guide#3", 0.71, doc_id="guide", start=120, end=480).id
    'guide#3'
    """

    id: str
    score: float | None = None
    doc_id: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = field(default=None, repr=False, compare=False)

    @classmethod
    def part(cls, chunk: str, score: float | None, doc_id: str | None, span: Offsets, text: str | None) -> Hit:
        """A chunk, with the text that it came with."""
        start, end = span
        return cls(chunk, score, doc_id, start, end, text)


def read_hits(result: object, where: str, *, depth: int | None = None) -> list[Hit]:
    """The hits of one query, best first, at most ``depth``; ``where`` names the query in errors.

    A list, tuple, array or iterator keeps its order. A mapping from document to score is sorted: score
    descending, equal scores by document id descending (UTF-8 bytes). A set, a string, None, a table, a hit
    without id and a score that is NaN raise DataError.

    >>> read_hits([("a", 0.0), ("b", 0.4)], "query '1'")[0].id
    'a'
    >>> [hit.id for hit in read_hits({"a": 1.0, "c": 1.0, "b": 2}, "query '1'")]
    ['b', 'c', 'a']
    """
    if isinstance(result, Mapping):
        if not is_scores(result):
            return read_hits(result["documents"], where, depth=depth)
        return by_score(result, where)[:depth]
    return [_hit(item, rank, where) for rank, item in enumerate(islice(_iterate(result, where), depth), 1)]


def is_scores(result: object) -> bool:
    """Whether an answer is a mapping from document to score, and not {"documents": [...]} as of Haystack."""
    return isinstance(result, Mapping) and not isinstance(result.get("documents"), (list, tuple))


def by_score(scores: Mapping[Any, object], where: str) -> list[Hit]:
    """All documents of a mapping from document to score, best first; ties by id descending (bytes)."""
    hits: dict[str, Hit] = {}
    for key, value in scores.items():
        doc = _id(key, where)
        if doc in hits:
            raise DataError(f"{where}: two keys of the mapping become the one document id {doc!r}")
        score = _score(value, doc, where)
        if score is None:
            raise DataError(f"{where}: document {doc!r} has the score None; expected a number")
        hits[doc] = Hit(doc, score)
    # UTF-8 keeps the order of code points, so that comparing strings compares bytes.
    return sorted(hits.values(), key=lambda hit: (hit.score, hit.id), reverse=True)


def _iterate(result: object, where: str) -> Iterator[Any]:
    if isinstance(result, Set):
        raise DataError(f"{where}: the retriever returned a set, which has no order; expected {_LISTS}")
    if result is None:
        raise DataError(f"{where}: the retriever returned None; expected {_LISTS} (an empty list for no hits)")
    if isinstance(result, (str, bytes, bytearray)):
        raise DataError(f"{where}: the retriever returned the text {excerpt(result)}; expected {_LISTS}")
    if hasattr(result, "iloc"):  # iterating over a data frame gives the names of its columns
        raise DataError(f"{where}: the retriever returned a {type(result).__name__}; expected {_LISTS}")
    if isinstance(result, Hit) or not isinstance(result, Iterable):
        raise DataError(f"{where}: the retriever returned {excerpt(result)}; expected {_LISTS}")
    try:
        return iter(result)
    except TypeError:  # an array without dimensions
        raise DataError(f"{where}: the retriever returned {excerpt(result)}; expected {_LISTS}") from None


def _hit(item: Any, rank: int, where: str) -> Hit:
    place = f"{where}, rank {rank}"
    if _is_id(item):
        return Hit(_id(item, place))
    named = set(getattr(item, "_fields", ())) if isinstance(item, tuple) else set()
    if isinstance(item, (tuple, list)) and named.isdisjoint(_ID_KEYS):
        if len(item) != 2:
            raise DataError(f"{place}: {excerpt(item)} has {len(item)} parts; expected (id, score)")
        first, second = item
        # similarity_search_with_score and its kin return (document, score).
        plain = _is_id(first) or isinstance(first, (tuple, list))
        hit = Hit(_id(first, place)) if plain else _hit(first, rank, where)
        return replace(hit, score=_score(second, hit.id, where))
    if isinstance(item, Mapping):
        return _from_fields(item.get, item, place, where)
    return _from_object(item, place, where)


def _from_object(item: Any, place: str, where: str) -> Hit:
    node = getattr(item, "node", item)
    if hasattr(node, "node_id"):  # LlamaIndex: NodeWithScore, or a node itself
        doc = _id(node.node_id, place)
        score = _score(getattr(item, "score", None), doc, where)
        span = _span(getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None))
        meta = _Extra(getattr(node, "metadata", None), text_of(item))
        parent = getattr(node, "ref_doc_id", None)
        parent = meta.doc_id or (parent if isinstance(parent, str) else None)
        return Hit.part(doc, score, parent, span or meta.span, text_of(item))
    return _from_fields(lambda key: getattr(item, key, None), item, place, where)


def _from_fields(get: Any, item: Any, place: str, where: str) -> Hit:
    extra = _Extra(metadata_of(item), text_of(item))
    found = [(key, value) for key in _ID_KEYS if (value := get(key)) is not None]
    # LangChain's stores invent an id where the user's own stands in the metadata; that of the document is the
    # hit's own where it is not said to be a part of it.
    known = extra.named if extra.id is None and not (found and extra.is_part) else extra.id
    if known is not None and (not found or get("page_content") is not None):
        found = [("metadata", known), *found]
    if not found:
        raise DataError(f"{place}: the hit {excerpt(item)} has no id; expected {_FORMS}")
    doc = _id(found[0][1], place)
    score = _score(next((v for key in _SCORE_KEYS if (v := get(key)) is not None), None), doc, where)
    parent = next((value for key, value in found[1:] if key == "doc_id"), None)
    start, end = get("start"), get("end")
    span: Offsets = extra.span
    if callable(start) or callable(end):  # a method of an object that is no chunk
        start = end = None
    if start is not None or end is not None:
        own = _span(start, end)
        if own is None:
            raise DataError(
                f"{place}: the chunk {doc!r} has start {excerpt(start)} and end {excerpt(end)}; "
                "expected two integers, 0 <= start <= end (code points, end exclusive)"
            )
        span = own
    return Hit.part(doc, score, extra.doc_id if parent is None else _id(parent, place), span, text_of(item))


def text_of(item: object) -> str | None:
    """The text of a chunk of LangChain, LlamaIndex or Haystack, or of a mapping; None where it has none."""
    return next((text for key in _TEXT_KEYS if isinstance(text := _field(item, key), str)), None)


def metadata_of(item: object) -> Mapping[Any, Any]:
    """What stands in the metadata of a chunk."""
    found = _field(item, "metadata") or _field(item, "meta")
    return found if isinstance(found, Mapping) else {}


def _field(item: object, key: str) -> Any:
    item = getattr(item, "node", item)
    return item.get(key) if isinstance(item, Mapping) else getattr(item, key, None)


class _Extra:
    """The fields of a chunk that stand in its metadata; values that are something else are left alone."""

    def __init__(self, metadata: object, text: str | None) -> None:
        fields: Mapping[Any, Any] = metadata if isinstance(metadata, Mapping) else {}
        self.id = next((v for key in _ID_KEYS[:-1] if _is_id(v := fields.get(key)) and v != ""), None)
        self.named, split = (str(v) if _is_id(v := fields.get(key)) and v != "" else None for key in _PARENTS)
        self.doc_id = split if self.named is None else self.named
        self.is_part = not _STARTS.isdisjoint(fields)
        span = _span(fields.get("start"), fields.get("end"))
        if span is None and text is not None:
            start = next((v for key in _SPLITTERS if (v := fields.get(key)) is not None), None)
            span = _span(start, start + len(text)) if isinstance(start, int) else None
        self.span = span or (None, None)


def _span(start: object, end: object) -> tuple[int, int] | None:
    if not all(isinstance(n, numbers.Integral) and not isinstance(n, bool) for n in (start, end)):
        return None
    first, last = int(start), int(end)  # type: ignore[call-overload]
    return (first, last) if 0 <= first <= last else None


def _is_id(value: object) -> bool:
    if isinstance(value, (str, uuid.UUID)):
        return True
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _id(value: object, place: str) -> str:
    return json_id(str(value) if isinstance(value, uuid.UUID) else value, place)


def _score(value: Any, doc: str, where: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, (numbers.Real, str)) and callable(getattr(value, "item", None)):
        try:
            value = value.item()  # a tensor or array of one number
        except Exception:
            raise DataError(f"{where}: document {doc!r} has the score {excerpt(value)}; expected a number") from None
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise DataError(f"{where}: document {doc!r} has the score {excerpt(value)}; expected a number")
    try:
        number = float(value)
    except OverflowError:
        raise DataError(f"{where}: document {doc!r} has a score too large for a float") from None
    if math.isnan(number):
        raise DataError(f"{where}: document {doc!r} has the score NaN; expected a number")
    return number
