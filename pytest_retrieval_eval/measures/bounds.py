"""Exact bounds of a measure over what the unjudged documents of a list could be.

A *hole* is an unjudged document of the list. Were it judged, it could have any grade from 0 to the largest of
the collection; the bounds are the smallest and the largest value over all such judgments. Holes below the
cut-off count too: what they hold cannot be seen by the measure, but each one that is relevant adds to R and to
the ideal. Documents that the run did not return are left out: every corpus has more of them than any list is
long, so that each recall would be bounded by 0 and the bounds would say nothing about the list; what is bounded
is what judging *this list* to its end can change. A repeated document is no hole, since its first occurrence is
the one that is judged, and ties stay in the order of the run.

Symbols: k the cut-off, R the relevant documents, h those of them in the top k, a holes above the cut-off and b
below it, g the largest grade of the collection. All bounds are exact; the reason stands at each of them, and
tests hold them against enumeration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import (
    Bools,
    Floats,
    Ints,
    JudgedRanks,
    gain_of,
    places,
)
from pytest_retrieval_eval.stats._vectors import distinct

if TYPE_CHECKING:
    from typing import TypeAlias

    Ends: TypeAlias = tuple[Floats, Floats]
    Score: TypeAlias = Callable[[JudgedRanks, Measure], Floats]

_ALL = 2**62
_CELLS = 1 << 20  # ranks of lists that are looked at at once


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a measure can be at least and at most, were every unjudged document of the lists judged.

    ``minimum`` and ``maximum`` are means over the queries that count today, ``low`` and ``high`` the values
    of each of ``query_ids``. The means are attained: queries are judged independently.
    """

    measure: Measure
    minimum: float
    maximum: float
    query_ids: tuple[str, ...] = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)

    @property
    def matters(self) -> bool:
        """Whether unjudged documents can move the mean by more than 1e-9."""
        return self.maximum - self.minimum > 1e-9


def bounds_of(ranks: JudgedRanks, measure: Measure, score: Score, *, graded: bool) -> Ends:
    """The smallest and the largest value of each query of the qrels; ``score`` gives the value of today.

    ``graded`` says that a binary measure reads labels on the unit scale. Raises MeasureError where no exact
    form is known.
    """
    known = ", ".join(sorted(_FORMS.keys() - _BINARY_ONLY if graded else _FORMS))
    scale = " for labels on the unit scale" if graded else ""
    plain = _once_judged(measure)
    find = None if plain is None else _FORMS.get(plain.name)
    if (
        plain is None
        or find is None
        or (graded and plain.name in _BINARY_ONLY)
        or plain.get("denominator") == "retrieved"
    ):
        raise MeasureError(
            f"{measure} has no known exact bounds over unjudged documents{scale}; those that have: {known}."
        )
    if ranks.trec and "condensed" in _names(measure) and bool((ranks.grade < 0).any()):
        raise MeasureError(
            f"{measure} has no known exact bounds over unjudged documents where trec mode drops negative grades."
        )
    value = score(ranks, plain)
    low, high = find(ranks, plain, score, value, _reach(ranks, plain, graded))
    if plain.name == "bpref":
        return low, high
    # To be of grade 0 is one of the things that every hole can be: what differs is rounding.
    return np.minimum(low, value), np.maximum(high, value)


def reads_holes(measure: Measure) -> bool:
    """Whether an unjudged document is more to the measure than one of grade 0: it is left out, and takes no place.

    Then the value of today may lie outside of the bounds, and a place with a repeated document is no hole either.
    """
    return "condensed" in _names(measure) or measure.innermost.name == "bpref"


def _names(measure: Measure) -> list[str]:
    return [link.name for _, link in registry.chain(measure)]


def _once_judged(measure: Measure) -> Measure | None:
    """The measure that is the same as a nested one where every document of the lists is judged; None without one.

    Then condensing leaves out nothing, and to cut the lists is a smaller cut-off, unless another number hangs on it.
    """
    if measure.inner is None:
        return measure
    inner = _once_judged(measure.inner)
    if inner is None or measure.name in ("condensed", "gm"):
        return inner
    if measure.name != "cut" or measure.cutoff is None:
        return None
    if inner.cutoff is not None and inner.cutoff <= measure.cutoff:
        return inner
    return inner.at(measure.cutoff) if inner.name in _PREFIXES else None


def effort(ranks: JudgedRanks, measure: Measure) -> int:
    """About how many cells the bounds of this measure look at; 0 where counting is enough."""
    plain = _once_judged(measure)
    if plain is None or plain.name not in _DENSE:
        return 0
    measure, longest = plain, int(ranks.returned.max(initial=0))
    depth = longest if measure.cutoff is None else min(measure.cutoff, longest)
    levels = 1
    if measure.name == "ndcg":
        levels = 1 + min(len(distinct(ranks.facts.grades[ranks.facts.grades > 0])[0]), 1 << 10)
    if measure.name == "bpref":
        levels = depth
    return ranks.queries * depth * levels


def without_repeats(ranks: JudgedRanks, query: Ints, rank: Ints) -> JudgedRanks:
    """The table with these places of lists settled: a document stands there that stood above already."""
    return _with_rows(ranks, query, rank, 0.0)


# --- holes --------------------------------------------------------------------------------------------------


def _reach(ranks: JudgedRanks, measure: Measure, graded: bool) -> float:
    """The most that one hole can be to the measure: a grade, or 1 and 0 where a level divides documents."""
    highest = max(ranks.facts.highest, 0.0)
    if ranks.scale == "unit":
        highest = min(highest, 1.0)
    if not registry.definition(measure.name).binary or graded:
        return highest
    return 1.0 if highest >= measure.rel else 0.0


def _holes(ranks: JudgedRanks, cutoff: int | None) -> tuple[Ints, Ints]:
    """a and b of each query."""
    every = ranks.returned - ranks.hits(-np.inf, None)
    if cutoff is None:
        return every, np.zeros_like(every)
    within = np.minimum(ranks.returned, cutoff) - ranks.hits(-np.inf, cutoff)
    return within, every - within


def _with_rows(ranks: JudgedRanks, query: Ints, rank: Ints, grade: float) -> JudgedRanks:
    """The table with more rows, all of one grade; what the qrels say of each query stays as it is."""
    every = np.concatenate((ranks.rank, rank))
    return ranks.with_columns(
        query=np.concatenate((ranks.query, query)),
        rank=every,
        grade=np.concatenate((ranks.grade, np.full(len(rank), grade))),
        tie_first=every,
        tie_last=every,
    )


def _filled(ranks: JudgedRanks, cutoff: int | None, grade: float) -> JudgedRanks:
    """The table with every hole of the top k at this grade."""
    ends = np.minimum(ranks.returned, cutoff or _ALL)
    starts = np.cumsum(ends) - ends
    free = np.ones(int(ends.sum()), np.bool_)
    inside = ranks.rank <= ends[ranks.query]
    free[starts[ranks.query[inside]] + ranks.rank[inside] - 1] = False
    slots = np.flatnonzero(free)
    query = np.repeat(np.arange(ranks.queries), ends)[slots]
    return _with_rows(ranks, query, slots - starts[query] + 1, grade)


def _first_filled(ranks: JudgedRanks, cutoff: int | None, grade: float) -> JudgedRanks:
    """The table with the first hole of each top k at this grade."""
    # Judged documents stand at the ranks 1, 2, 3, … up to the first hole; behind it no place is its rank.
    leading = ranks.query[ranks.rank == places(ranks.query, ranks.queries) + 1]
    first = np.bincount(leading, minlength=ranks.queries) + 1
    query = np.flatnonzero(first <= np.minimum(ranks.returned, cutoff or _ALL))
    return _with_rows(ranks, query, first[query], grade)


# --- closed forms -------------------------------------------------------------------------------------------


def _rising(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """P, DCG, RBP and ERR: a higher grade anywhere never lowers them, so that the extremes are the bounds.

    Of a sum with weights above 0 that is plain. ERR at a rank r is stop/r + (1 − stop) · rest, and the rest
    is reached at r + 1 or later, so that it is below 1/r: it rises with each stop.
    """
    if not reach:
        return value, value
    grade = ranks.facts.highest if ranks.scale != "unit" else min(ranks.facts.highest, 1.0)
    return value, score(_filled(ranks, measure.cutoff, grade), measure)


def _first(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """hit and RR: they rise with grades, and behind a hole of the largest grade nothing adds to them."""
    if not reach:
        return value, value
    grade = ranks.facts.highest if ranks.scale != "unit" else min(ranks.facts.highest, 1.0)
    return value, score(_first_filled(ranks, measure.cutoff, grade), measure)


def _recall(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """With x relevant holes above the cut-off and y below: (h + x) ÷ (R + x + y).

    It rises with x (h ≤ R) and falls with y: from h ÷ (R + b) to (h + a) ÷ (R + a). On the unit scale x and
    y are sums of labels, up to a · g and b · g.
    """
    number, found = _found(ranks, measure, value)
    within, below = (count * reach for count in _holes(ranks, measure.cutoff))
    return _ratio(found, number + below), _ratio(found + within, number + within)


def _f1(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """2 (h + x) ÷ (k + R + x + y): rises with x, falls with y, as recall does."""
    size = float(measure.cutoff or 1)
    number, _ = _found(ranks, measure, value)
    found = value * (size + number) / 2.0
    within, below = (count * reach for count in _holes(ranks, measure.cutoff))
    return 2.0 * found / (size + number + below), 2.0 * (found + within) / (size + number + within)


def _found(ranks: JudgedRanks, measure: Measure, value: Floats) -> tuple[Floats, Floats]:
    """R and h; the sums of labels where they are degrees."""
    if ranks.scale == "unit" and measure.get("rel") is None:
        total = ranks.facts.total()
        return total, value * total
    return ranks.facts.relevant(measure.rel).astype(np.float64), ranks.hits(measure.rel, measure.cutoff).astype(
        np.float64
    )


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """0 where nothing is relevant."""
    return np.divide(top, bottom, out=np.zeros(len(top)), where=bottom > 0)


# --- optima over which holes are relevant -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Block:
    """Some queries with every rank of their top k: ``grade`` is NaN where nothing judged stands."""

    first: int
    last: int
    grade: Floats
    hole: Bools
    below: Ints  # holes below the cut-off

    @property
    def rows(self) -> slice:
        return slice(self.first, self.last)

    @property
    def ranks(self) -> Floats:
        return np.arange(1.0, self.grade.shape[1] + 1.0)


def _blocks(ranks: JudgedRanks, cutoff: int | None) -> Iterator[_Block]:
    ends = np.minimum(ranks.returned, cutoff or _ALL)
    below = _holes(ranks, cutoff)[1]
    step = max(1, _CELLS // max(int(ends.max(initial=0)), 1))
    for first in range(0, ranks.queries, step):
        last = min(first + step, ranks.queries)
        depth = max(int(ends[first:last].max(initial=0)), 1)
        low, high = np.searchsorted(ranks.query, (first, last))
        query, rank = ranks.query[low:high] - first, ranks.rank[low:high]
        inside = rank <= depth
        grade = np.full((last - first, depth), np.nan)
        grade[query[inside], rank[inside] - 1] = ranks.grade[low:high][inside]
        hole = np.isnan(grade) & (np.arange(depth) < ends[first:last, None])
        yield _Block(first, last, grade, hole, below[first:last])


def _by_block(
    ranks: JudgedRanks, cutoff: int | None, value: Floats, reach: float, find: Callable[[_Block], Ends]
) -> Ends:
    low, high = value.copy(), value.copy()
    if reach:
        for block in _blocks(ranks, cutoff):
            low[block.rows], high[block.rows] = find(block)
    return low, high


def _average_precision(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """AP is Σ over pairs i ≤ j of relevant documents of the top k of 1 ÷ rank of j, then ÷ R.

    To move a relevant document up makes no such term smaller. So of all sets of c holes the topmost c score
    highest and the deepest c (those below the cut-off first, which only add to R) lowest: one candidate for
    each c. A hole p that is added adds (relevant down to p, itself included) ÷ p and Σ 1/q over the relevant
    q behind it, so that all candidates of a list are one cumulative sum.
    """
    number = ranks.facts.relevant(measure.rel).astype(np.float64)

    def find(block: _Block) -> Ends:
        rank, hole = block.ranks, block.hole
        relevant = block.grade >= measure.rel
        before = np.cumsum(relevant, axis=1)
        total = number[block.rows, None]
        below = block.below[:, None]
        own = np.sum(np.where(relevant, before / rank, 0.0), axis=1, keepdims=True)
        behind = np.sum(relevant / rank, axis=1, keepdims=True) - np.cumsum(relevant / rank, axis=1)
        place = np.cumsum(hole, axis=1)
        more = np.where(hole, (before + place) / rank + behind, 0.0)
        top = (own + np.cumsum(more, axis=1)) / np.maximum(total + place, 1.0)
        holes_behind = np.sum(hole / rank, axis=1, keepdims=True) - np.cumsum(hole / rank, axis=1)
        more = np.where(hole, (before + 1) / rank + behind + holes_behind, 0.0)
        deep = own + np.cumsum(more[:, ::-1], axis=1)[:, ::-1]
        chosen = place[:, -1:] - place + 1
        bottom = np.where(hole, deep / np.maximum(total + below + chosen, 1.0), np.inf)
        none = (own / np.maximum(total + below, 1.0))[:, 0]
        return np.minimum(bottom.min(axis=1), none), np.where(hole, top, 0.0).max(axis=1)

    return _by_block(ranks, measure.cutoff, value, reach, find)


def _r_precision(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """With n relevant holes the cut-off is t = R + n. As many of them as there is room for can stand above it
    (or, for the smallest value, below it): one candidate for each n.
    """
    number = ranks.facts.relevant(measure.rel)

    def find(block: _Block) -> Ends:
        first = np.zeros((len(block.hole), 1), np.int64)
        relevant: Ints = np.append(first, np.cumsum(block.grade >= measure.rel, axis=1), axis=1)
        holes: Ints = np.append(first, np.cumsum(block.hole, axis=1), axis=1)
        every = holes[:, -1:]
        n: Ints = np.arange(int(every.max(initial=0)) + 1)[None, :]
        cutoff = number[block.rows, None] + n
        reached = np.minimum(cutoff, block.grade.shape[1])
        hits = np.take_along_axis(relevant, reached, axis=1)
        above = np.take_along_axis(holes, reached, axis=1)
        size = np.maximum(cutoff, 1)
        possible = n <= every
        high = np.where(possible, (hits + np.minimum(n, above)) / size, 0.0)
        low = np.where(possible, (hits + np.maximum(n - (every - above), 0)) / size, np.inf)
        return low.min(axis=1), high.max(axis=1)

    return _by_block(ranks, None, value, reach, find)


def _bpref(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """With c relevant holes R and N are those of today and c, and all other holes; what is subtracted rises with the
    number of non-relevant documents above a relevant one. To move a relevant hole up takes one from above those
    that it passes and adds none: the topmost c holes score highest and the deepest c lowest, for each c.
    """
    relevant_now, judged_now = ranks.facts.relevant(measure.rel), ranks.facts.relevant(0.0)
    low, high = value.copy(), value.copy()
    for block in _blocks(ranks, None):
        for row in range(block.last - block.first):
            query = block.first + row
            grade, hole = block.grade[row], block.hole[row]
            place, every = np.cumsum(hole), int(hole.sum())
            c = np.arange(every + 1 if reach else 1)[:, None]
            number = int(relevant_now[query]) + c
            bound = np.maximum(np.minimum(number, int(judged_now[query]) + every - number), 1)
            ends = []
            for chosen in (hole & (place > every - c), hole & (place <= c)):
                relevant = chosen | (grade >= measure.rel)
                other = (hole & ~chosen) | ((grade >= 0) & (grade < measure.rel))
                above = np.minimum(np.cumsum(other, axis=1), number)
                ends.append(np.sum(relevant * (1.0 - above / bound), axis=1) / np.maximum(number[:, 0], 1))
            low[query], high[query] = ends[0].min(), ends[1].max()
    return low, high


def _ndcg(ranks: JudgedRanks, measure: Measure, score: Score, value: Floats, reach: float) -> Ends:
    """nDCG = N ÷ I over the gains v of the holes. N is linear in v; I, the best of all orders, is convex.

    *Smallest.* N − λ I is concave in v, so that it is smallest in a corner: each hole has gain 0 or that of
    the largest grade. Of c such holes the deepest give the smallest N, and all sets of c the same I: one
    candidate for each c. Below the cut-off holes only add to I, and come first.

    *Largest.* Holes below the cut-off only add to I, and stay 0. Both N and I are integrals over a threshold
    t of what they are for the binary gains "at least t": with c(t) holes at least t, which are best the
    topmost ones, N(t) = judged discounts + D(c) and I(t) = Δ(min(k, n(t) + c)), where n(t) judged documents
    have at least t, and D and Δ are sums of the first discounts of holes and of ranks. For a given λ each
    t can choose its c alone: the gain of one more hole, d − λ δ(n(t) + c + 1), falls with t since n(t) does,
    so that the best c(t) fall as well, as nested sets must. n(t) changes at gains of judged documents only:
    so do the best v, which are therefore grades of the collection (intermediate ones are needed: nDCG@2 of
    [a, hole] is 1 only if the hole equals a, where gold {a: 1, b: 1} and the largest grade is 3). Dinkelbach's
    iteration λ ← N ÷ I ends at the largest ratio.
    """
    gain = gain_of(ranks, measure)
    most = float(gain(np.array([reach]))[0])
    ideal = ranks.facts.ideal_dcg(gain, measure.cutoff)
    own = ranks.dcg(gain, measure.cutoff)
    steps = _Steps(ranks, gain(ranks.facts.ideal()[2]), most)
    # All queries of a block look as far as the one with the most holes, also those with the most judged documents.
    deepest = int(ranks.returned.max(initial=0) + ranks.facts.judged.max(initial=0)) + 1
    discount = 1.0 / np.log2(np.arange(2.0, deepest + 3.0))
    if measure.cutoff is not None:
        discount[measure.cutoff :] = 0.0
    sums = np.append(0.0, np.cumsum(discount))

    def ideals(rows: slice, chosen: Ints) -> Floats:
        """I for each number of holes of the largest grade."""
        total = np.zeros(chosen.shape)
        for width, judged in steps.of(rows):
            total += width[:, None] * sums[judged[:, None] + chosen]
        return total

    def find(block: _Block) -> Ends:
        rows, hole = block.rows, block.hole
        query, column = np.nonzero(hole)
        count = hole.sum(axis=1)
        most_holes = int(count.max(initial=0))
        place = np.cumsum(hole, axis=1)[query, column]
        found = np.zeros((len(hole), most_holes + 1))
        found[query, place] = discount[column]
        found = np.cumsum(found, axis=1)  # D(c); it stays as it is where a list has no more holes
        each = np.arange(most_holes + 1)
        # smallest
        chosen = np.minimum(each, count[:, None])
        deep = found[:, -1:] - np.take_along_axis(found, count[:, None] - chosen, axis=1)
        bottom = ideals(rows, block.below[:, None] + chosen)
        top = own[rows, None] + most * deep
        low = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 0.0).min(axis=1)
        # largest
        best = np.where(ideal[rows] > 0, own[rows] / np.where(ideal[rows] > 0, ideal[rows], 1.0), 0.0)
        while True:
            numerator, denominator = own[rows].copy(), np.zeros(len(hole))
            for width, judged in steps.of(rows):
                cost = sums[judged[:, None] + each]
                pick = np.argmax(found - best[:, None] * cost, axis=1)[:, None]
                numerator += width * np.take_along_axis(found, pick, axis=1)[:, 0]
                denominator += width * np.take_along_axis(cost, pick, axis=1)[:, 0]
            better = np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), 0.0)
            if not (better > best + 1e-14).any():
                return low, best
            best = np.maximum(best, better)

    return _by_block(ranks, measure.cutoff, value, reach, find)


class _Steps:
    """For each query, the stretches of the threshold on which the number of judged documents is the same."""

    __slots__ = ("judged", "place", "query", "width")

    def __init__(self, ranks: JudgedRanks, gains: Floats, most: float) -> None:
        query, rank, _ = ranks.facts.ideal()
        order = np.lexsort((rank, query))
        query, gains = query[order], gains[order]
        sizes = np.bincount(query, minlength=ranks.queries) + 1
        # Of each query: the largest gain that can be, then those that are, falling, then 0.
        place = np.arange(int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        of = np.repeat(np.arange(ranks.queries), sizes)
        judged = place - starts[of]
        edges = np.full(len(place), most)
        edges[judged > 0] = gains
        following = np.append(edges[1:], 0.0)
        following[starts + sizes - 1] = 0.0
        width = edges - following
        keep = width > 0
        self.query, self.judged, self.width = of[keep], judged[keep], width[keep]
        self.place = places(self.query, ranks.queries)

    def of(self, rows: slice) -> Iterator[tuple[Floats, Ints]]:
        """For the first stretch of each of these queries, the second, …: its width, 0 where there is none."""
        low, high = np.searchsorted(self.query, (rows.start, rows.stop))
        query, place = self.query[low:high] - rows.start, self.place[low:high]
        for step in range(int(place.max(initial=-1)) + 1):
            here = place == step
            width, judged = np.zeros(rows.stop - rows.start), np.zeros(rows.stop - rows.start, np.int64)
            width[query[here]] = self.width[low:high][here]
            judged[query[here]] = self.judged[low:high][here]
            yield width, judged


_Form = Callable[[JudgedRanks, Measure, "Score", Floats, float], "Ends"]
_FORMS: Mapping[str, _Form] = {
    "hit": _first,
    "precision": _rising,
    "recall": _recall,
    "f1": _f1,
    "mrr": _first,
    "map": _average_precision,
    "ndcg": _ndcg,
    "dcg": _rising,
    "r_precision": _r_precision,
    "bpref": _bpref,
    "rbp": _rising,
    "err": _rising,
}
# On the unit scale these would be optima over labels between the corners.
_BINARY_ONLY = frozenset({"map", "r_precision", "bpref"})
_DENSE = frozenset({"precision", "map", "ndcg", "dcg", "r_precision", "bpref", "rbp", "err"})
# To cut the lists at k is to look at the top k: nothing else in them hangs on the cut-off.
_PREFIXES = frozenset({"hit", "recall", "mrr", "map", "dcg", "rbp", "err"})
