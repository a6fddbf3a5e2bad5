"""The expected value of measures over all orders of documents with equal scores, and what such forms share.

Every order of a tied group is taken as equally likely; the groups are independent. Where the measure is in
McSherry & Najork, Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied
Scores, ECIR 2008, the formula is theirs. Symbols: a group fills the ranks f..l, s = l − f + 1 of them, and r of
its documents are relevant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks, gain_of, heads, places, tally

if TYPE_CHECKING:
    from pytest_retrieval_eval.measures.names import Measure

_ALL = 2**62


def reach(ranks: JudgedRanks, measure: Measure) -> int:
    """The last rank that the measure looks at: its cut-off, or the end of the lists."""
    return min(measure.cutoff or _ALL, ranks.end or _ALL)


class Groups:
    """The tied groups that hold a judged document, in rank order; ``of`` is the group of each row of the table."""

    def __init__(self, ranks: JudgedRanks) -> None:
        new = heads(ranks.query, ranks.tie_first)
        self.of: Ints = np.cumsum(new) - 1
        self.query: Ints = ranks.query[new]
        self.first: Ints = ranks.tie_first[new]
        self.last: Ints = ranks.tie_last[new]
        self.size: Ints = self.last - self.first + 1

    def count(self, mask: Bools) -> Ints:
        """How many rows of the mask each group holds."""
        return np.bincount(self.of[mask], minlength=len(self.query))

    def ahead(self, count: Ints) -> Ints:
        """The sum of the counts of the groups ahead, in the same list."""
        sums = np.cumsum(count) - count
        ahead: Ints = sums - sums[np.searchsorted(self.query, self.query)]
        return ahead


class _Groups(NamedTuple):
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
        starts = np.flatnonzero(heads(query, first))
        return _Groups(
            query[starts],
            first[starts],
            last[starts],
            np.diff(np.append(starts, len(query))),
            places(query, ranks.queries)[starts],
        )

    return ranks.share(("groups", rel), build)


def expected_hits(ranks: JudgedRanks, measure: Measure, rel: float | None = None) -> Floats:
    """The expected number of documents above the cut-off that are relevant at the level."""
    level = measure.rel if rel is None else rel
    return _hits_above(ranks, level, reach(ranks, measure))


def _hits_above(ranks: JudgedRanks, rel: float, cutoff: Ints | int) -> Floats:
    groups = _groups(ranks, rel)
    within = ranks_within(groups, cutoff)
    share: Floats = np.divide(groups.relevant * within, groups.last - groups.first + 1)
    return tally(groups.query, share, ranks.queries)


def expected_squared_hits(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected square of that number: the square of the expected one, and the variance of drawing from the
    group that the cut-off divides: w r/s (1 − r/s)(s − w)/(s − 1), of which w ranks are above.
    """
    groups = _groups(ranks, measure.rel)
    within, size = ranks_within(groups, reach(ranks, measure)), groups.last - groups.first + 1
    share = groups.relevant / size
    variance = within * share * (1.0 - share) * (size - within) / np.maximum(size - 1, 1)
    return expected_hits(ranks, measure) ** 2 + tally(groups.query, variance, ranks.queries)


def ranks_within(groups: _Groups | Groups, cutoff: Ints | int) -> Ints:
    """How many of each group's ranks are within the cut-off."""
    within: Ints = np.clip(np.minimum(groups.last, cutoff) - groups.first + 1, 0, None)
    return within


def expected_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Linear in the number of hits, so the expected number of hits ÷ k."""
    return expected_hits(ranks, measure) / (measure.cutoff or 1)


def expected_recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number of hits ÷ R."""
    return expected_hits(ranks, measure) / np.maximum(ranks.facts.relevant(measure.rel), 1)


def expected_f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Twice the expected number of hits ÷ (k + R)."""
    return 2.0 * expected_hits(ranks, measure) / ((measure.cutoff or 1) + ranks.facts.relevant(measure.rel))


def expected_r_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number of hits in the top R ÷ R."""
    number = ranks.facts.relevant(measure.rel)
    cutoff = np.minimum(number, reach(ranks, measure))
    hits = _hits_above(ranks, measure.rel, cutoff[_groups(ranks, measure.rel).query])
    return hits / np.maximum(number, 1)


def expected_judged(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number of judged documents in the top k ÷ min(k, returned)."""
    slots = np.minimum(measure.cutoff or 1, ranks.returned)
    hits = expected_hits(ranks, measure, -np.inf)
    return np.where(slots > 0, hits / np.maximum(slots, 1), np.nan)


def expected_unjudged(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The returned ones of the top k less the expected number of judged ones ÷ k."""
    k = measure.cutoff or 1
    return (np.minimum(ranks.returned, k) - expected_hits(ranks, measure, 0.0 if ranks.trec else -np.inf)) / k


def expected_hit(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1, less the chance that the group that the cut-off divides has no relevant document above it."""
    cutoff = reach(ranks, measure)
    groups = _groups(ranks, measure.rel)
    within = ranks_within(groups, cutoff)
    values = np.zeros(ranks.queries)
    values[groups.query[groups.last <= cutoff]] = 1.0
    some = np.flatnonzero((within > 0) & (groups.last > cutoff) & (groups.before == 0))
    query, relevant, size, within = groups.query[some], groups.relevant[some], groups.last[some], within[some]
    size = size - groups.first[some] + 1
    none = np.ones(len(some))
    for j in range(int(within.max(initial=0))):
        none *= np.where(j < within, np.maximum(size - relevant - j, 0) / np.maximum(size - j, 1), 1.0)
    values[query] = 1.0 - none
    return values


def expected_reciprocal_rank(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks of the first relevant group: chance that its first relevant document stands there ÷
    rank.
    """
    cutoff = reach(ranks, measure)
    groups = _groups(ranks, measure.rel)
    values = np.zeros(ranks.queries)
    some = np.flatnonzero((groups.before == 0) & (groups.first <= cutoff))
    query, first, relevant = groups.query[some], groups.first[some], groups.relevant[some]
    size = groups.last[some] - first + 1
    steps = np.minimum(size - relevant, cutoff - first) + 1
    chance = relevant / size
    for j in range(int(steps.max(initial=0))):
        values[query] += chance / (first + j)
        # The chance of offset j + 1 is that of j times (s − j − r) / (s − j − 1).
        live = np.flatnonzero(j + 1 < steps)
        query, first, relevant, size, steps = query[live], first[live], relevant[live], size[live], steps[live]
        chance = chance[live] * (size - j - relevant) / (size - j - 1)
    return values


def expected_average_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks p of each group: (r/s) · (relevant before + 1 + (p − f)(r − 1)/(s − 1)) ÷ p, then ÷
    R.
    """
    total = tally(*_expected_sums(ranks, measure), ranks.queries)
    return total / np.maximum(ranks.facts.relevant(measure.rel), 1)


def _expected_sums(ranks: JudgedRanks, measure: Measure) -> tuple[Ints, Floats]:
    """The query of each group, and the expected sum of the precisions at its relevant documents."""
    groups = _groups(ranks, measure.rel)
    within = ranks_within(groups, reach(ranks, measure))
    size = groups.last - groups.first + 1
    harmonic = _harmonic(groups)
    end = np.minimum(groups.first - 1 + within, len(harmonic) - 1)
    inverse = np.where(size == 1, (within > 0) / groups.first, harmonic[end] - harmonic[groups.first - 1])
    slope = (groups.relevant - 1) / np.maximum(size - 1, 1)
    sums = (groups.before + 1) * inverse + slope * (within - groups.first * inverse)
    return groups.query, np.where(within > 0, groups.relevant / size * sums, 0.0)


def precision_over_retrieved(ranks: JudgedRanks, measure: Measure) -> tuple[Floats, Floats, Floats]:
    """The least, expected and largest mean of the precisions at the relevant documents above the cut-off.

    Only the group that the cut-off divides moves how many those are. Given that m of its w ranks above hold
    relevant ones, these stand first or last for the extremes, and are spread evenly for the mean; m itself is
    drawn without replacement.
    """
    groups, cutoff = _groups(ranks, measure.rel), reach(ranks, measure)
    query, first, before, relevant = groups.query, groups.first, groups.before, groups.relevant
    harmonic = _harmonic(groups)

    def row(first: Ints, before: Ints, count: Ints) -> Floats:
        """The sum of the precisions at so many relevant documents in a row."""
        sums: Floats = count + (before + 1 - first) * (harmonic[first + count - 1] - harmonic[first - 1])
        return sums

    whole = groups.last <= cutoff
    ends = (
        row(groups.last - relevant + 1, before, relevant),
        _expected_sums(ranks, measure)[1],
        row(first, before, relevant),
    )
    above = [tally(query[whole], one[whole], ranks.queries) for one in ends]
    found = np.bincount(query[whole], relevant[whole], ranks.queries)
    values = [one / np.maximum(found, 1) for one in above]
    divided = np.flatnonzero(~whole & (first <= cutoff))
    if len(divided):
        least = np.maximum(cutoff - groups.last[divided] + relevant[divided], 0)
        most = np.minimum(relevant[divided], cutoff - first[divided] + 1)
        # A cell for each m of each of these groups.
        starts = np.cumsum(most - least + 1) - (most - least + 1)
        group = np.repeat(divided, most - least + 1)
        m = np.arange(len(group)) - np.repeat(starts - least, most - least + 1)
        q, f, b, r, w = query[group], first[group], before[group], relevant[group], cutoff - first[group] + 1
        size = groups.last[group] - f + 1
        log = np.append(0.0, np.cumsum(np.log(np.arange(1, int(size.max()) + 1))))  # of the factorials
        chance = np.exp(
            (log[r] - log[m] - log[r - m])
            + (log[size - r] - log[w - m] - log[size - r - w + m])
            - (log[size] - log[w] - log[size - w])
        )
        inverse = harmonic[cutoff] - harmonic[f - 1]
        even = m / w * ((b + 1) * inverse + (m - 1) / np.maximum(w - 1, 1) * (w - f * inverse))
        sums = (row(cutoff - m + 1, b, m), even, row(f, b, m))
        means = [(one[q] + more) / np.maximum(b + m, 1) for one, more in zip(above, sums, strict=True)]
        values[0][query[divided]] = np.minimum.reduceat(means[0], starts)
        values[1][query[divided]] = np.add.reduceat(chance * means[1], starts)
        values[2][query[divided]] = np.maximum.reduceat(means[2], starts)
    return values[0], values[1], values[2]


def _harmonic(groups: _Groups) -> Floats:
    """1/1 + … + 1/p for each rank p down to the last of the groups."""
    return np.append(0.0, np.cumsum(1.0 / np.arange(1, int(groups.last.max(initial=0)) + 1)))


def mean_discount(first: Ints, last: Ints, cutoff: int, discount: Callable[[Floats], Floats]) -> Floats:
    """The mean of a discount over the ranks ``first`` to ``last``; it is 0 below the cut-off."""
    sums = np.append(0.0, np.cumsum(discount(np.arange(1.0, int(last.max(initial=0)) + 1))))
    end = np.maximum(np.minimum(last, cutoff), first - 1)
    mean = (sums[end] - sums[first - 1]) / (last - first + 1)
    # Without a tie it is the discount itself, without the rounding of a difference of sums.
    return np.where(last == first, (first <= cutoff) * discount(first.astype(np.float64)), mean)


def expected_dcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Each document's gain times the mean discount of its group's ranks."""
    keep = ranks.grade > 0
    mean = mean_discount(
        ranks.tie_first[keep], ranks.tie_last[keep], reach(ranks, measure), lambda rank: 1.0 / np.log2(rank + 1.0)
    )
    return tally(ranks.query[keep], gain_of(ranks, measure)(ranks.grade[keep]) * mean, ranks.queries)


def expected_ndcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected DCG ÷ the ideal."""
    ideal = ranks.facts.ideal_dcg(gain_of(ranks, measure), measure.cutoff)
    return expected_dcg(ranks, measure) / np.where(ideal > 0, ideal, 1.0)
