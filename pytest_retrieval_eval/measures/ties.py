"""The expected value of each ranking measure over all orders of documents with equal scores.

Every order of a tied group is taken as equally likely; the groups are independent. The formulas are those
of McSherry & Najork, Computing Information Retrieval Performance Measures Efficiently in the Presence of
Tied Scores, ECIR 2008. Symbols: a group fills the ranks f..l, s = l − f + 1 of them, and r of its documents
are relevant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.measures.ranks import Floats, Ints, JudgedRanks, gain_of, places, tally

if TYPE_CHECKING:
    from pytest_retrieval_eval.measures.names import Measure

_ALL = 2**62


@dataclass(frozen=True, slots=True)
class _Groups:
    """Tied groups that hold a relevant document; ``before`` counts the relevant ones ahead."""

    query: Ints
    first: Ints
    last: Ints
    relevant: Ints
    before: Ints


def _groups(ranks: JudgedRanks, rel: float) -> _Groups:
    def build() -> _Groups:
        keep = ranks.grade >= rel
        query, first, last = ranks.query[keep], ranks.tie_first[keep], ranks.tie_last[keep]
        new = np.ones(len(query), bool)
        new[1:] = (query[1:] != query[:-1]) | (first[1:] != first[:-1])
        starts = np.flatnonzero(new)
        return _Groups(
            query[starts],
            first[starts],
            last[starts],
            np.diff(np.append(starts, len(query))),
            places(query, ranks.queries)[starts],
        )

    return ranks.share(("groups", rel), build)


def _expected_hits(ranks: JudgedRanks, rel: float, cutoff: Ints | int | None) -> Floats:
    groups = _groups(ranks, rel)
    within = _within(groups, _ALL if cutoff is None else cutoff)
    share: Floats = np.divide(groups.relevant * within, groups.last - groups.first + 1)
    return tally(groups.query, share, ranks.queries)


def _within(groups: _Groups, cutoff: Ints | int) -> Ints:
    """How many of each group's ranks are within the cut-off."""
    within: Ints = np.clip(np.minimum(groups.last, cutoff) - groups.first + 1, 0, None)
    return within


def expected_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Linear in the number of hits, so the expected number of hits ÷ k."""
    return _expected_hits(ranks, measure.rel, measure.cutoff) / (measure.cutoff or 1)


def expected_recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number of hits ÷ R."""
    return _expected_hits(ranks, measure.rel, measure.cutoff) / np.maximum(ranks.facts.relevant(measure.rel), 1)


def expected_f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Twice the expected number of hits ÷ (k + R)."""
    return (
        2.0
        * _expected_hits(ranks, measure.rel, measure.cutoff)
        / ((measure.cutoff or 1) + ranks.facts.relevant(measure.rel))
    )


def expected_r_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number of hits in the top R ÷ R."""
    number = ranks.facts.relevant(measure.rel)
    hits = _expected_hits(ranks, measure.rel, number[_groups(ranks, measure.rel).query])
    return hits / np.maximum(number, 1)


def expected_judged(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number of judged documents in the top k ÷ min(k, returned)."""
    slots = np.minimum(measure.cutoff or 1, ranks.returned)
    hits = _expected_hits(ranks, -np.inf, measure.cutoff)
    return np.where(slots > 0, hits / np.maximum(slots, 1), np.nan)


def expected_hit(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1, less the chance that the group that the cut-off divides has no relevant document above it."""
    cutoff = measure.cutoff or _ALL
    groups = _groups(ranks, measure.rel)
    within = _within(groups, cutoff)
    values = np.zeros(ranks.queries)
    values[groups.query[groups.last <= cutoff]] = 1.0
    for i in np.flatnonzero((within > 0) & (groups.last > cutoff)).tolist():
        if groups.before[i] == 0:
            size = int(groups.last[i] - groups.first[i]) + 1
            none = math.comb(size - int(groups.relevant[i]), int(within[i])) / math.comb(size, int(within[i]))
            values[groups.query[i]] = 1.0 - none
    return values


def expected_reciprocal_rank(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks of the first relevant group: chance that its first relevant document stands there ÷
    rank.
    """
    cutoff = measure.cutoff or _ALL
    groups = _groups(ranks, measure.rel)
    values = np.zeros(ranks.queries)
    for i in np.flatnonzero((groups.before == 0) & (groups.first <= cutoff)).tolist():
        first, last = int(groups.first[i]), int(groups.last[i])
        size, relevant = last - first + 1, int(groups.relevant[i])
        # The chance of offset j + 1 is that of j times (s − j − r) / (s − j − 1).
        j = np.arange(size - relevant)
        chance = np.cumprod(np.append(relevant / size, (size - j - relevant) / (size - j - 1)))
        rank = first + np.arange(len(chance))
        values[groups.query[i]] = (chance / rank)[rank <= cutoff].sum()
    return values


def expected_average_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks p of each group: (r/s) · (relevant before + 1 + (p − f)(r − 1)/(s − 1)) ÷ p, then ÷
    R.
    """
    groups = _groups(ranks, measure.rel)
    within = _within(groups, measure.cutoff or _ALL)
    size = groups.last - groups.first + 1
    # harmonic[p] = 1/1 + … + 1/p
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, int(groups.last.max(initial=0)) + 1)))
    end = np.minimum(groups.first - 1 + within, len(harmonic) - 1)
    inverse = np.where(size == 1, (within > 0) / groups.first, harmonic[end] - harmonic[groups.first - 1])
    slope = (groups.relevant - 1) / np.maximum(size - 1, 1)
    sums = (groups.before + 1) * inverse + slope * (within - groups.first * inverse)
    sums = np.where(within > 0, groups.relevant / size * sums, 0.0)
    total = tally(groups.query, sums, ranks.queries)
    return total / np.maximum(ranks.facts.relevant(measure.rel), 1)


def mean_discount(first: Ints, last: Ints, cutoff: int | None, discount: Callable[[Floats], Floats]) -> Floats:
    """The mean of a discount over the ranks ``first`` to ``last``; it is 0 below the cut-off."""
    cutoff = cutoff or _ALL
    sums = np.append(0.0, np.cumsum(discount(np.arange(1.0, int(last.max(initial=0)) + 1))))
    end = np.maximum(np.minimum(last, cutoff), first - 1)
    mean = (sums[end] - sums[first - 1]) / (last - first + 1)
    # Without a tie it is the discount itself, without the rounding of a difference of sums.
    return np.where(last == first, (first <= cutoff) * discount(first.astype(np.float64)), mean)


def expected_dcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Each document's gain times the mean discount of its group's ranks."""
    keep = ranks.grade > 0
    mean = mean_discount(
        ranks.tie_first[keep], ranks.tie_last[keep], measure.cutoff, lambda rank: 1.0 / np.log2(rank + 1.0)
    )
    return tally(ranks.query[keep], gain_of(ranks, measure)(ranks.grade[keep]) * mean, ranks.queries)


def expected_ndcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected DCG ÷ the ideal."""
    ideal = ranks.facts.ideal_dcg(gain_of(ranks, measure), measure.cutoff)
    return expected_dcg(ranks, measure) / np.where(ideal > 0, ideal, 1.0)
