"""Gold that a source has moved away from: whether each span still holds its passage, and where the passage went.

A span is *kept* where its text (or the hash of it) stands at its offsets, *moved* where the passage has one place in
the document as it is now, *ambiguous* where it has several and nothing decides between them, and *lost* where it is
gone. A span without text and hash, and without the old source, is *unchecked*. Nothing is ever measured at offsets
that hold another text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.spans.locate import Source, common, common_end, plain
from pytest_retrieval_eval.collection.spans.spanrows import text_hash
from pytest_retrieval_eval.collection.spans.spans import Span, Spans

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus

AnchorStatus = Literal["kept", "moved", "ambiguous", "lost", "unchecked"]
STATUSES: tuple[AnchorStatus, ...] = ("kept", "moved", "ambiguous", "lost", "unchecked")

_MOST_PAIRS = 4096  # of places in the old source and the new one that are held against each other
_LARGEST = 25 * 10**8  # the product of two lengths up to which their whole texts are aligned
_ENOUGH = 2  # characters that the alignment through one place must keep beyond that through any other
_CLOSE = 8  # by which its context, up to the first difference, must be longer where two alignments are as good
_CLEAR = 32  # the same in larger texts, where nothing else decides
# Letters and digits of scripts that put no space between words: no place cuts a word there.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffff\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Anchor:
    """What became of one span.

    ``now`` is the span where its passage stands today (None where that is not known), ``found`` the text that
    stands at the old offsets today, ``note`` what else there is to say.
    """

    row: int
    span: Span
    status: AnchorStatus
    now: Span | None = None
    found: str | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Anchors:
    """What became of the spans, one row each; ``texts`` has each document with gold as it is today."""

    spans: Spans
    rows: tuple[Anchor, ...]
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def counts(self) -> Mapping[AnchorStatus, int]:
        """How many spans have each status."""
        counts = Counter(anchor.status for anchor in self.rows)
        return {status: counts[status] for status in STATUSES}

    def with_status(self, *statuses: AnchorStatus) -> list[Anchor]:
        """The spans that have one of these."""
        return [anchor for anchor in self.rows if anchor.status in statuses]

    @property
    def stale(self) -> list[Anchor]:
        """The spans that nothing can be measured on."""
        return self.with_status("ambiguous", "lost")

    @cached_property
    def current(self) -> Spans:
        """The spans where their passages stand today, without those that are stale."""
        spans = replace(self.spans, lengths={doc_id: len(text) for doc_id, text in self.texts.items()})
        moved = self.with_status("moved")
        if moved:
            start, end, texts, hashes = spans.start.copy(), spans.end.copy(), list(spans.texts), list(spans.hashes)
            for anchor in moved:
                if anchor.now is not None:
                    row, now = anchor.row, anchor.now
                    start[row], end[row], texts[row], hashes[row] = now.start, now.end, now.text, now.hash
            spans = spans.moved(start, end, texts, hashes)
        stale = {anchor.row for anchor in self.stale}
        if not stale:
            return spans
        return spans.take(np.array([row for row in range(len(spans)) if row not in stale], np.int64))

    @cached_property
    def places(self) -> dict[str, list[Any]]:
        """Of each document the digest of its text, and then start and end of all gold that stands in it today."""
        spans = self.current
        found: dict[str, set[tuple[int, int]]] = {}
        for doc, start, end in zip(spans.doc.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True):
            found.setdefault(spans.doc_ids[doc], set()).add((start, end))
        return {
            doc_id: [text_hash(self.texts[doc_id]), *map(list, sorted(found[doc_id]))]
            for doc_id in sorted(found)
            if doc_id in self.texts
        }

    def __str__(self) -> str:
        counts = self.counts
        said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        return f"gold spans of {self.spans.source}: {said}"

    def lines(self, *statuses: AnchorStatus, width: int = 60) -> Iterator[str]:
        """A line for each span with one of the statuses (by default all that are neither kept nor unchecked)."""
        for anchor in self.with_status(*(statuses or ("moved", "ambiguous", "lost"))):
            yield told(anchor, self.spans.where(anchor.row), width)


def told(anchor: Anchor, where: str, width: int = 60) -> str:
    """What became of a span as a line, with both texts."""
    span, now = anchor.span, anchor.now
    what = f"{anchor.status}: {where}: query {span.query_id!r}, {span.doc_id!r} {span.start}-{span.end}"
    if now is not None:
        what += f" -> {now.start}-{now.end}"
    was = _short(span.text, width) if span.text is not None else "a text known by its hash" if span.hash else "unknown"
    here = "nothing" if not anchor.found else _short(anchor.found, width)
    what += f": gold {was}, at {span.start}-{span.end} now {here}"
    return f"{what} ({anchor.note})" if anchor.note else what


def _short(text: str, width: int) -> str:
    return repr(text if len(text) <= width else text[: width - 1] + "…")


def check_spans(spans: Spans, corpus: Corpus, old_corpus: Corpus | None = None) -> Anchors:
    """Hold each span against the corpus as it is now.

    ``old_corpus`` is the one that the offsets were made for: what was edited since decides between places that read
    the same. ``rows`` of the result has what became of each span, ``current`` the spans where their passages stand
    today (offsets are characters, the end exclusive), ``stale`` those that nothing can be measured on.

    >>> from pytest_retrieval_eval import Corpus
    >>> spans = Spans.of({"q": [Span("q", "guide", 13, 20, text="14 days")]})
    >>> came = check_spans(spans, Corpus.of({"guide": "Since May refunds take 14 days."}))
    >>> str(came), came.current.of_query("q")[0].start
    ('gold spans of spans: 1 moved', 23)
    """
    today = corpus.get_many(spans.doc_ids)
    before = {} if old_corpus is None else old_corpus.get_many(spans.doc_ids)
    found: list[Anchor | None] = [None] * len(spans)
    by_document = np.argsort(spans.doc, kind="stable")
    source: Source | None = None
    for row in by_document.tolist():
        span = spans.span(row)
        document = today.get(span.doc_id)
        if document is None:
            found[row] = Anchor(row, span, "lost", note=f"the corpus has no document {span.doc_id!r}")
            continue
        if source is None or source.text is not document.text:  # one index at a time
            source = Source(document.text)
        was = before.get(span.doc_id)
        found[row] = _anchor(row, span, source, None if was is None else was.text)
    texts = {doc_id: document.text for doc_id, document in today.items()}
    return Anchors(spans, tuple(anchor for anchor in found if anchor is not None), texts)


def _anchor(row: int, span: Span, source: Source, old: str | None) -> Anchor:
    here = source.text[span.start : span.end]
    note = ""
    if old is not None:
        passage = old[span.start : span.end]
        if len(passage) == span.end - span.start and agrees(span, passage):
            if old == source.text:
                return Anchor(row, span, "kept", span, here)
            if span.text is not None:
                return _aligned(row, span, source, old, here)
            # The file says no text, and is to say none of the new place.
            came = _aligned(row, replace(span, text=passage), source, old, here)
            return came if came.now is None else replace(came, now=replace(came.now, text=None))
        note = "the old source does not hold the passage either"
    if span.text is None and span.hash is None:
        if span.end > len(source.text):
            return Anchor(row, span, "lost", None, here, f"the document ends at {len(source.text)}")
        return Anchor(row, span, "unchecked", span, here, note)
    if len(here) == span.end - span.start and agrees(span, here):
        return Anchor(row, span, "kept", span, here)
    places = _places(span, source)
    if len(places) == 1:
        return _moved(row, span, source, *places[0], here)
    if not places and span.text is not None and _places(span, source, cuts_words=True):
        return Anchor(row, span, "ambiguous", None, here, "it stands only within longer words")
    return _unplaced(row, span, len(places), here, note)


def agrees(span: Span, passage: str) -> bool:
    """Whether a passage is that of a span; a span that says nothing agrees with any."""
    if span.text is not None:
        return span.text == passage or plain(span.text).text == plain(passage).text
    return span.hash is None or text_hash(passage) == span.hash


def _moved(row: int, span: Span, source: Source, start: int, end: int, here: str) -> Anchor:
    if (start, end) == (span.start, span.end):
        return Anchor(row, span, "kept", span, here)
    text = source.text[start:end]
    now = replace(
        span,
        start=start,
        end=end,
        text=None if span.text is None else text,
        hash=None if span.hash is None else text_hash(text),
    )
    return Anchor(row, span, "moved", now, here)


def _unplaced(row: int, span: Span, times: int, here: str, note: str = "") -> Anchor:
    if not times:
        return Anchor(row, span, "lost", None, here, note)
    several = f"it stands in {times} places"
    return Anchor(row, span, "ambiguous", None, here, f"{several}; {note}" if note else several)


def _places(span: Span, source: Source, *, cuts_words: bool = False) -> list[tuple[int, int]]:
    """Where the passage of a span stands, as start and end."""
    if span.text is None:
        return list(_places_of_hash(span, source.text))
    wanted = plain(span.text).text
    if not wanted:
        return []
    found = (source.plain.extent(at, at + len(wanted)) for at in source.all(wanted))
    places = [source.around(span.text, *place)[:2] for place in found]
    return places if cuts_words else [place for place in places if not _cuts_word(source.text, *place)]


def _places_of_hash(span: Span, text: str) -> Iterator[tuple[int, int]]:
    size = span.end - span.start
    for start in range(len(text) - size + 1):
        if text_hash(text[start : start + size]) == span.hash:
            yield start, start + size


def _cuts_word(text: str, start: int, end: int) -> bool:
    """Whether a stretch begins or ends inside a word: "9 days" is no part of "19 days"."""
    return _inside_word(text, start) or _inside_word(text, end)


def _inside_word(text: str, at: int) -> bool:
    pair = text[max(at - 1, 0) : at + 1]
    return 0 < at < len(text) and pair.isalnum() and not _UNSPACED.search(pair)


# --- with the old source ----------------------------------------------------------------------------


def _aligned(row: int, span: Span, source: Source, old: str, here: str) -> Anchor:
    """The place of a passage that the edits between two versions of a document lead to.

    Of all ways to turn the old text into the new one that keep the passage, those count that keep the most
    characters. If they agree on the place (or one of the places has by far the most of the old context right around
    it), and the place is no other passage's that reads the same, it is found.
    """
    cuts_words = _cuts_word(old, span.start, span.end)
    places = _places(span, source, cuts_words=cuts_words)
    before = Source(old)
    origins = _places(span, before, cuts_words=cuts_words)
    mine = before.plain
    begin = int(np.searchsorted(mine.source, span.start))
    size = int(np.searchsorted(mine.source, span.end)) - begin
    if not places or not size:
        return _unplaced(row, span, 0, here)
    if len(places) == len(origins) == 1:
        return _moved(row, span, source, *places[0], here)
    if len(places) * len(origins) > _MOST_PAIRS:
        return _unplaced(row, span, len(places), here)
    theirs = source.plain
    ours = sorted({begin, *(int(np.searchsorted(mine.source, start)) for start, _ in origins)})
    today = [int(np.searchsorted(theirs.source, start)) for start, _ in places]
    near = _near(mine.text, ours, theirs.text, today, size)
    score, enough = near, _CLEAR
    if len(mine.text) * len(theirs.text) <= _LARGEST:
        score, enough = _kept(mine.text, ours, theirs.text, today, size), _ENOUGH
        if 2 * (score.max() + size) < max(len(mine.text), len(theirs.text)):
            return _unplaced(row, span, len(places), here, "the two versions have too little in common")
    me = ours.index(begin)
    own = score[me]
    tied = np.flatnonzero(own > own.max() - enough)
    order = tied[np.argsort(near[me, tied], kind="stable")]
    best = int(order[-1])
    if len(tied) > 1 and near[me, best] < near[me, order[-2]] + _CLOSE:
        return _unplaced(row, span, len(places), here, "the old source does not decide")
    others = np.delete(score[:, best], me)
    if len(others) and own[best] < others.max() + enough:
        if len(places) == 1 and own[best] + enough <= others.max():
            return Anchor(row, span, "lost", None, here, "what reads the same is another passage of the old source")
        return _unplaced(row, span, len(places), here, "the old source does not decide")
    return _moved(row, span, source, *places[best], here)


def _kept(old: str, origins: Sequence[int], new: str, places: Sequence[int], size: int) -> Ints:
    """How many characters can be kept around each pair of an old place and a new one."""
    before = _common_subsequences(old, origins, new, places)
    ends, behind = [at + size for at in origins], [at + size for at in places]
    after = _common_subsequences(
        old[::-1], [len(old) - at for at in ends][::-1], new[::-1], [len(new) - at for at in behind][::-1]
    )
    both: Ints = before + after[::-1, ::-1]
    return both


def _common_subsequences(old: str, origins: Sequence[int], new: str, places: Sequence[int]) -> Ints:
    """The length of the longest common subsequence of ``old[:i]`` and ``new[:j]`` for ascending i and j.

    Bit j of ``row`` is 0 where that length grows at j (Hyyrö's form of the bit-parallel algorithm).
    """
    where: dict[str, int] = {}
    for at, char in enumerate(new):
        where[char] = where.get(char, 0) | 1 << at
    found = np.zeros((len(origins), len(places)), np.int64)
    row = full = (1 << len(new)) - 1
    done = 0
    for i, origin in enumerate(origins):
        for char in old[done:origin]:
            both = row & where.get(char, 0)
            if both:
                row = ((row + both) | (row - both)) & full
        done = origin
        found[i] = [place - (row & ((1 << place) - 1)).bit_count() for place in places]
    return found


def _near(old: str, origins: Sequence[int], new: str, places: Sequence[int], size: int) -> Ints:
    """How many characters agree around each pair of an old place and a new one, without a gap."""
    return np.array(
        [[common_end(old, i, new, j) + common(old, i + size, new, j + size) for j in places] for i in origins], np.int64
    )
