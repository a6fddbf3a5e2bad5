"""Where a passage stands in its document, when nothing but its text is known.

White space, line ends and the Unicode form are forgiven, a contextual header or footer is cut off and counted, and a
passage that stands in several places is never put in one of them.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.spans.chunks import Chunks

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus

Status = Literal["exact", "forgiven", "cut", "ambiguous", "absent", "no document"]

# Every 16th stretch of 16 characters of a document is in its index: any passage of 31 or more contains one of them.
_STRIDE = _SHINGLE = 16
_MANY = 64  # places of one shingle beyond which a plain search is quicker
_BODY = 32  # characters (without white space) of a passage that must stand in the document when the rest is cut off
_LONG_BODY = 64  # from which on it does not matter how much is cut off
_CHANCE = 8  # characters at either end of a body that may be there by chance
_PIECE = 6  # letters and digits that are looked for together in a text that was tidied
_SOME, _MOST = (
    0.25,
    0.9,
)  # of these, where nothing of the text stands anywhere as it is; where some of it stands elsewhere
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])  # by code; the last stands for all above

Codes = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands: ``start`` to ``end`` in code points, -1 where it stands nowhere or in several places.

    ``status`` is ``exact``, ``forgiven`` (but for white space or Unicode form), ``cut`` (without the first ``head`` and
    the last ``tail`` characters of the passage), ``ambiguous`` (``times`` places), ``absent`` or ``no document``.
    """

    status: Status
    start: int = -1
    end: int = -1
    head: int = 0
    tail: int = 0
    times: int = 1

    @property
    def found(self) -> bool:
        """Whether the passage has one place."""
        return self.start >= 0


@dataclass(frozen=True, slots=True)
class Plain:
    """A text without white space and in Unicode form NFD; ``source`` says which character each one was."""

    text: str
    source: Ints

    def extent(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the source that some of these characters come from."""
        # Marks that were put in order may come from outside the first and the last.
        near = self.source[start : min(start + 4, end)].min(), self.source[max(end - 4, start) : end].max()
        return int(near[0]), int(near[1]) + 1


def plain(text: str) -> Plain:
    """What of a text must agree.

    >>> plain("Caf\\u00e9\\r\\n open").text == plain("Cafe\\u0301 open").text
    True
    """
    codes: Codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    source: Ints | None = None
    if not unicodedata.is_normalized("NFD", text):
        codes, source = _decomposed(codes)
    kept = np.flatnonzero(~_IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)])
    inside = codes[kept].tobytes().decode("utf-32-le", "surrogatepass")
    return Plain(inside, kept if source is None else source[kept])


def _decomposed(codes: Codes) -> tuple[Codes, Ints]:
    """Characters in Unicode form NFD, and the place that each came from."""
    known, which = np.unique(codes, return_inverse=True)
    parts = [_parts_of(code) for code in known.tolist()]
    sizes = np.array([len(part) for part in parts], np.int64)
    begins = np.cumsum(sizes) - sizes
    every = np.array([code for part in parts for code, _ in part], np.uint32)
    marks = np.array([mark for part in parts for _, mark in part], np.uint8)
    lengths = sizes[which]
    source = np.repeat(np.arange(len(codes)), lengths)
    within = np.arange(len(source)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = begins[which][source] + within
    made, mark = every[at], marks[at]
    # Each character by itself; now the marks of one letter in canonical order.
    wrong = np.flatnonzero((mark[1:] > 0) & (mark[:-1] > mark[1:]))
    for place in wrong.tolist():
        first, last = place, place + 1
        while first and mark[first - 1]:
            first -= 1
        while last < len(mark) and mark[last]:
            last += 1
        order = first + np.argsort(mark[first:last], kind="stable")
        for column in (made, mark, source):
            column[first:last] = column[order]
    return made, source


@lru_cache(maxsize=1 << 16)
def _parts_of(code: int) -> tuple[tuple[int, int], ...]:
    """The decomposition of a character, each part with its combining class."""
    parts = unicodedata.normalize("NFD", chr(code))
    return tuple((ord(part), unicodedata.combining(part)) for part in parts)


class Source:
    """A document in which passages are looked for.

    >>> Source("Refunds take 14 days.  Contact us.").find("14 days. Contact")
    Place(status='forgiven', start=13, end=30, head=0, tail=0, times=1)
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def plain(self) -> Plain:
        """The document without what is forgiven."""
        return plain(self.text)

    @cached_property
    def _index(self) -> dict[str, list[int]]:
        text = self.plain.text
        index: dict[str, list[int]] = {}
        for at in range(0, len(text) - _SHINGLE + 1, _STRIDE):
            index.setdefault(text[at : at + _SHINGLE], []).append(at)
        return index

    def find(self, passage: str) -> Place:
        """The one place of a passage."""
        wanted = plain(passage)
        if not wanted.text:
            return Place("absent")
        places = [self.around(passage, *self.plain.extent(at, at + len(wanted.text))) for at in self.all(wanted.text)]
        exact = [(start, end) for start, end, same in places if same]
        if len(exact) == 1:
            return Place("exact", *exact[0])
        if len(places) == 1:
            return Place("forgiven", *places[0][:2])
        if places:
            return Place("ambiguous", times=len(places))
        return self._body(wanted, passage)

    def holds(self, passage: str, start: int, end: int) -> bool:
        """Whether a passage is that of ``start`` to ``end``, but for what `find` forgives and for what a chunker does.

        It may have a header, a footer or the end of its neighbours around it, be cut short, or be tidied as no place
        of the document is. A passage that stands in the document as it is stands there and nowhere else.

        >>> source = Source("Refunds take 14 days.  Contact us.")
        >>> source.holds("Refunds: 14 days. Contact us.", 13, 34), source.holds("Contact us.", 0, 11)
        (True, False)
        """
        if self.text[start:end] == passage:
            return True
        wanted, here = plain(passage).text, plain(self.text[start:end]).text
        if not wanted or wanted in here:
            return True
        if here and here in wanted:
            return True
        if self.all(wanted):
            return False  # what stands elsewhere as it is has nothing around it
        first, last = self._longest(wanted)
        if not _is_body(last - first, len(wanted)):
            return _alike(passage, self.text[start:end]) >= _SOME
        # The end of a header may be, by chance, what stands before the passage.
        core = wanted[first + _CHANCE : last - _CHANCE]
        return core in here or _alike(passage, self.text[start:end]) >= _MOST

    def all(self, wanted: str) -> list[int]:
        """Every place of a passage in ``plain``, itself without what is forgiven."""
        text = self.plain.text
        if len(wanted) >= _STRIDE + _SHINGLE - 1:
            candidates: set[int] = set()
            for shift in range(_STRIDE):
                candidates.update(place - shift for place in self._index.get(wanted[shift : shift + _SHINGLE], ()))
                if len(candidates) > _MANY:
                    break
            else:
                return sorted(at for at in candidates if at >= 0 and text.startswith(wanted, at))
        found: list[int] = []
        at = text.find(wanted)
        while at >= 0:
            found.append(at)
            at = text.find(wanted, at + 1)
        return found

    def around(self, passage: str, start: int, end: int) -> tuple[int, int, bool]:
        """A place with the white space around the passage where that stands there too, and whether all is the same."""
        lead = len(passage) - len(passage.lstrip())
        trail = len(passage) - len(passage.rstrip())
        if lead <= start and self.text[start - lead : start] == passage[:lead]:
            start -= lead
        if trail and self.text[end : end + trail] == passage[-trail:]:
            end += trail
        return start, end, self.text[start:end] == passage

    def _body(self, wanted: Plain, passage: str) -> Place:
        """The place of a passage without its head and tail."""
        first, last = self._longest(wanted.text)
        size = last - first
        if not _is_body(size, len(wanted.text)):
            return Place("absent")
        places = self.all(wanted.text[first:last])
        if len(places) > 1:
            return Place("ambiguous", times=len(places))
        begin, end = wanted.extent(first, last)
        place = self.plain.extent(places[0], places[0] + size)
        return Place("cut", *place, head=begin, tail=len(passage) - end)

    def _longest(self, wanted: str) -> tuple[int, int]:
        """The longest stretch of a passage that stands in the document."""
        text, index = self.plain.text, self._index
        best, at = (0, 0), 0
        while at <= len(wanted) - _SHINGLE:
            further = at + 1
            for place in index.get(wanted[at : at + _SHINGLE], ())[:_MANY]:
                last = at + common(wanted, at, text, place)
                first = at - common_end(wanted, at, text, place)
                if last - first > best[1] - best[0]:
                    best = first, last
                further = max(further, last - _SHINGLE + 1)
            at = further
        return best


def _is_body(size: int, length: int) -> bool:
    """Whether a stretch of a passage is what it is about, and the rest is what was put around it."""
    return size >= _BODY and (2 * size >= length or size >= _LONG_BODY)


def _alike(passage: str, there: str) -> float:
    """How much of what a passage says stands there, from 0 to 1, whatever its case, punctuation and signs."""
    wanted, here = _tidied(passage), _tidied(there)
    pieces = {wanted[at : at + _PIECE] for at in range(max(len(wanted) - _PIECE + 1, 1))}
    return sum(piece in here for piece in pieces) / len(pieces)


def _tidied(text: str) -> str:
    """Letters and digits alone, in one case."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def common(one: str, i: int, two: str, j: int) -> int:
    """How many characters agree from two places on."""
    size, limit = 0, min(len(one) - i, len(two) - j)
    step = 64
    while step and size < limit:
        take = min(step, limit - size)
        if one[i + size : i + size + take] == two[j + size : j + size + take]:
            size += take
            step *= 2
        else:
            step = take // 2
    return size


def common_end(one: str, i: int, two: str, j: int) -> int:
    """How many characters agree before two places."""
    size, limit = 0, min(i, j)
    step = 64
    while step and size < limit:
        take = min(step, limit - size)
        if one[i - size - take : i - size] == two[j - size - take : j - size]:
            size += take
            step *= 2
        else:
            step = take // 2
    return size


def locate(passages: Iterable[tuple[str, str]], corpus: Corpus) -> list[Place]:
    """The place of each (document id, text) in its own document."""
    asked = list(passages)
    by_document: dict[str, list[int]] = {}
    for row, (doc_id, _) in enumerate(asked):
        by_document.setdefault(doc_id, []).append(row)
    documents = corpus.get_many(by_document)
    found = [Place("no document")] * len(asked)
    for doc_id, rows in by_document.items():
        document = documents.get(doc_id)
        if document is None:
            continue
        source = Source(document.text)  # one index at a time
        for row in rows:
            found[row] = source.find(asked[row][1])
    return found


@dataclass(frozen=True, slots=True)
class Locating:
    """What came of looking for chunks in their documents: the place of each chunk that was looked for."""

    places: Mapping[str, Place]

    def with_status(self, *statuses: Status) -> list[str]:
        """The chunks that came out so."""
        return [chunk_id for chunk_id, place in self.places.items() if place.status in statuses]

    def __str__(self) -> str:
        counts = Counter(place.status for place in self.places.values())
        words: dict[Status, str] = {
            "exact": "as they are",
            "forgiven": "but for white space or Unicode form",
            "cut": "without a header or footer",
        }
        found = [f"{counts[status]} {said}" for status, said in words.items() if counts[status]]
        lost = [f"{counts[status]} {said}" for status, said in _UNPLACED.items() if counts[status]]
        total = sum(counts[status] for status in words)
        detail = f" ({', '.join(found)})" if found else ""
        return f"{total} of {len(self.places)} chunks found by their text{detail}" + "".join(f"; {one}" for one in lost)


_UNPLACED: dict[Status, str] = {
    "ambiguous": "in several places of their document",
    "absent": "not in their document",
    "no document": "of a document that the corpus lacks",
}


def located(chunks: Chunks, corpus: Corpus) -> tuple[Chunks, Locating]:
    """A chunk table with the offsets that it lacks, found by the texts of its chunks; and what came of it.

    A chunk whose text has no place, or several, stays without offsets; the table then knows why.
    """
    rows = [row for row, text in enumerate(chunks.text) if text is not None and chunks.start[row] < 0]
    asked = ((chunks.doc_ids[int(chunks.doc[row])], chunks.text[row] or "") for row in rows)
    start, end = chunks.start.copy(), chunks.end.copy()
    places: dict[str, Place] = {}
    why: dict[str, str] = {}
    for row, place in zip(rows, locate(asked, corpus), strict=True):
        places[chunks.ids[row]] = place
        start[row], end[row] = place.start, place.end
        if not place.found:
            doc_id = chunks.doc_ids[int(chunks.doc[row])]
            why[chunks.ids[row]] = {
                "ambiguous": f"its text stands in {place.times} places of {doc_id!r}",
                "absent": f"its text does not stand in {doc_id!r}",
            }.get(place.status, f"the corpus has no document {doc_id!r}")
    return chunks.at(start, end, why), Locating(places)
