"""What became of gold spans between two runs: which chunk holds how much of each, and where a cut fell.

Both sides know what their lists hold of the same gold, each with its own chunks; only the spans of the worst queries
are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.gates.side import Side, cutoff_of
from pytest_retrieval_eval.gates.verdict import Holding, QueryDiff, SpanChange
from pytest_retrieval_eval.measures.covered import ABOVE_ZERO, Covered, covered_of
from pytest_retrieval_eval.measures.registry import definition
from pytest_retrieval_eval.measures.spans import share_of
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

# How many characters are shown on either side of a cut.
_AROUND = 20


def with_spans(diffs: Sequence[QueryDiff], candidate: Side, reference: Side | None) -> tuple[QueryDiff, ...]:
    """The same queries with the gold spans that changed, or that are missing from a side held against a number."""
    after = _Lists(candidate)
    before = None if reference is None else _Lists(reference)
    rows = after.rows_of([diff.query_id for diff in diffs])
    texts = _Texts(candidate.dataset, after, [row for found in rows.values() for row in found])
    result = []
    for diff in diffs:
        found = [_change(group, after, before, texts) for group in after.groups(rows.get(diff.query_id, ()))]
        kept = sorted((each for each in found if each is not None), key=_weight)
        result.append(replace(diff, spans=tuple(kept), looked_up=True))
    return tuple(result)


class _Lists:
    """What the lists of one side hold of the gold, down to its cut-off."""

    def __init__(self, side: Side) -> None:
        measure = side.measure.innermost
        self.covered: Covered = covered_of(side.evaluation.ranks, measure)
        self.cutoff = cutoff_of(side.measure)
        self.by_finding = "min_coverage" in definition(measure.name).parameters
        self.level = measure.rel if definition(measure.name).binary else ABOVE_ZERO
        self.run = side.stored
        length = np.maximum(self.covered.gold.length, 1)
        self.share = self.covered.curve.down_to(self.cutoff) / length
        self.rank = self.covered.curve.reached(share_of(measure) * self.covered.gold.length.astype(np.float64))

    def rows_of(self, query_ids: Sequence[str]) -> dict[str, list[int]]:
        """The gold at the measure's level, as rows."""
        spans = self.covered.spans
        place = {query_id: number for number, query_id in enumerate(spans.query_ids)}
        offsets, good = spans.offsets.tolist(), (spans.grade >= self.level) & (spans.end > spans.start)
        return {
            query_id: [row for row in range(*offsets[place[query_id] : place[query_id] + 2]) if good[row]]
            for query_id in query_ids
            if query_id in place
        }

    def groups(self, rows: Sequence[int]) -> list[list[int]]:
        """The rows that are alternatives to each other, together."""
        found: dict[int, list[int]] = {}
        for row in rows:
            found.setdefault(int(self.covered.spans.group[row]), []).append(row)
        return list(found.values())

    def finds(self, row: int) -> bool:
        """Whether the top of the list has enough of a span."""
        rank = int(self.rank[row])
        return rank > 0 and (self.cutoff is None or rank <= self.cutoff)

    def holding(self, row: int, texts: _Texts) -> Holding:
        """The chunk of the top that covers most of a span, the best ranked one of several."""
        gold = self.covered.gold[np.array([row])]
        _, hit, start, end = self.covered.hits.within(gold)
        rank = self.covered.hits.rank[hit]
        found = int(self.rank[row]) or None
        inside = np.flatnonzero(rank <= (self.cutoff or np.iinfo(np.int64).max))
        if not len(inside):
            return Holding(covered=0.0, found=found)
        best = inside[np.lexsort((rank[inside], start[inside] - end[inside]))[0]]
        place, length = int(hit[best]), int(gold.length[0])
        extent = self.covered.hits.extent
        first, last = int(extent.start[place]), int(extent.end[place])
        cuts = [cut for cut in (first, last) if int(gold.start[0]) < cut < int(gold.end[0])]
        return Holding(
            covered=float(self.share[row]),
            chunk_id=self.run.columns().docs[int(self.covered.rows[place])],
            rank=int(rank[best]),
            start=first,
            end=last,
            share=(int(end[best]) - int(start[best])) / length,
            cuts=tuple(cuts),
            cut_texts=tuple(text for cut in cuts if (text := texts.around(row, cut)) is not None),
            found=found,
        )


class _Texts:
    """The texts of gold spans: their own copies, else from the corpus.

    A copy of another length (its white space was tidied) would show a cut at a wrong place.
    """

    def __init__(self, dataset: Dataset, lists: _Lists, rows: Sequence[int]) -> None:
        self._spans = spans = lists.covered.spans
        lacking = sorted({spans.doc_ids[int(spans.doc[row])] for row in rows if self._own(row) is None})
        documents = {} if dataset.corpus is None or not lacking else dataset.corpus.get_many(lacking)
        self._texts: Mapping[str, str] = {doc_id: document.text for doc_id, document in documents.items()}

    def _own(self, row: int) -> str | None:
        text = self._spans.texts[row]
        return text if text is not None and len(text) == self._spans.end[row] - self._spans.start[row] else None

    def of(self, row: int) -> str | None:
        """The gold itself; None where nobody knows it."""
        own = self._own(row)
        if own is not None:
            return own
        source = self._texts.get(self._spans.doc_ids[int(self._spans.doc[row])])
        if source is None:
            return self._spans.texts[row]
        return source[int(self._spans.start[row]) : int(self._spans.end[row])] or None

    def around(self, row: int, cut: int) -> str | None:
        """The gold on both sides of a place of the document, with a bar there."""
        text = self.of(row)
        if text is None or len(text) != self._spans.end[row] - self._spans.start[row]:
            return None
        place = cut - int(self._spans.start[row])
        head, tail = text[max(place - _AROUND, 0) : place], text[place : place + _AROUND]
        return f"{'…' if place > _AROUND else ''}{head}|{tail}{'…' if len(text) - place > _AROUND else ''}"


def _change(group: Sequence[int], after: _Lists, before: _Lists | None, texts: _Texts) -> SpanChange | None:
    """What became of a group of alternatives, told of the one that was covered best; None where nothing did."""
    first = after if before is None else before
    row = max(group, key=lambda each: (first.share[each], after.share[each], -each))
    if before is None:
        missing = not after.finds(row) if after.by_finding else after.share[row] < 1.0 - TOLERANCE
        if after.by_finding and any(after.finds(each) for each in group):
            missing = after.cutoff is None and int(after.rank[row]) > 1
        if not missing:
            return None
    elif all(
        abs(after.share[each] - before.share[each]) <= TOLERANCE and after.rank[each] == before.rank[each]
        for each in group
    ):
        return None
    spans = after.covered.spans
    return SpanChange(
        doc_id=spans.doc_ids[int(spans.doc[row])],
        start=int(spans.start[row]),
        end=int(spans.end[row]),
        grade=float(spans.grade[row]),
        text=texts.of(row),
        alternatives=len(group) - 1,
        before=None if before is None else before.holding(row, texts),
        after=after.holding(row, texts),
        was_found=None if before is None else any(before.finds(each) for each in group),
        is_found=any(after.finds(each) for each in group),
    )


def _weight(change: SpanChange) -> tuple[bool, float, str, int]:
    """Lost before gained, the largest first."""
    old = 0.0 if change.before is None else change.before.covered
    lost = bool(change.was_found) and not change.is_found
    return not lost, change.after.covered - old, change.doc_id, change.start


def spans_that_left(side: Side, reference: Side, lost: Bools) -> str:
    """What became of the gold spans that the lost queries no longer find; empty where the measure finds none."""
    after, before = _Lists(side), _Lists(reference)
    if not after.by_finding or after.cutoff is None:
        return ""
    ids = [query for query, one in zip(side.scores.query_ids, lost.tolist(), strict=True) if one]
    gone: list[list[int]] = []
    for rows in after.rows_of(ids).values():
        for group in after.groups(rows):
            if any(before.finds(row) for row in group) and not any(after.finds(row) for row in group):
                gone.append(group)
    if not gone:
        return ""
    touched = [group for group in gone if any(after.share[row] > 0 for row in group)]
    below = [
        min(int(after.rank[row]) for row in group if after.rank[row])
        for group in gone
        if group not in touched and any(after.rank[row] for row in group)
    ]
    nothing = len(gone) - len(touched) - len(below)
    top = f"the top {after.cutoff}"
    parts = []
    if touched:
        of = "it" if len(touched) == 1 else "each"
        parts.append(f"{len(touched):,} {'is' if len(touched) == 1 else 'are'} cut, too little of {of} being in {top}")
    if below:
        median = " in the median" if len(below) > 1 else ""
        parts.append(f"{len(below):,} {'is' if len(below) == 1 else 'are'} found at rank {np.median(below):g}{median}")
    if nothing:
        parts.append(f"{nothing:,} {'is' if nothing == 1 else 'are'} not found in the list")
    verb = "gold span that is" if len(gone) == 1 else "gold spans that are"
    return f"of the {len(gone):,} {verb} no longer found in {top}, {' and '.join(parts)}"
