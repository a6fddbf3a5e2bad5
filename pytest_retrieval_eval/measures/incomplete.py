"""Measures made for incomplete judgments: bpref and inferred average precision, as trec_eval defines them.

In both, a negative grade is a document that was pooled and not judged.
"""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.measures import ties
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks, tally
from pytest_retrieval_eval.measures.registry import Definition

_EPSILON = 0.00001  # trec_eval's, so that inferred precision is defined where nothing is judged above


def bpref(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the relevant documents returned: 1 − min(non-relevant above it, R) ÷ min(R, N), then ÷ R.

    N is the number of judged documents of the query that are not relevant. Where none of them stands
    above, the relevant document adds 1.
    """
    facts, relevant = ranks.facts, ranks.grade >= measure.rel
    number = facts.relevant(measure.rel)
    others = facts.relevant(0.0) - number
    query = ranks.query[relevant]
    above = _above(ranks, (ranks.grade >= 0) & ~relevant)[relevant]
    bound = np.maximum(np.minimum(number, others), 1)[query]
    worth = np.where(above > 0, 1.0 - np.minimum(above, number[query]) / bound, 1.0)
    return tally(query, worth, ranks.queries) / np.maximum(number, 1)


def expected_bpref(ranks: JudgedRanks, measure: Measure) -> Floats | None:
    """Of the n documents of its tied group that are judged and not relevant, 0 to n stand above a relevant one,
    each number equally likely: the mean of min(b + u, R) over u, where b stand above the group.

    None where a cut divides a tie, for the number above then hangs on the place within it.
    """
    if ranks.end is not None:
        return None
    relevant = ranks.grade >= measure.rel
    number = ranks.facts.relevant(measure.rel)
    groups = ties.Groups(ranks)
    n = groups.count((ranks.grade >= 0) & ~relevant)
    most = number[groups.query]
    before = np.minimum(groups.ahead(n), most)
    free = np.minimum(n, most - before)
    above = ((free + 1) * before + free * (free + 1) / 2 + (n - free) * most) / (n + 1)
    bound = np.maximum(np.minimum(number, ranks.facts.relevant(0.0) - number), 1)
    worth = groups.count(relevant) * (1.0 - above / bound[groups.query])
    return tally(groups.query, worth, ranks.queries) / np.maximum(number, 1)


def infap(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the relevant documents returned of the precision that is expected at their rank, then ÷ R.

    At rank r that is 1/r for the document itself, and for the r − 1 above it the share of pooled ones times
    the share of relevant ones among the judged.
    """
    relevant = ranks.grade >= measure.rel
    query, rank = ranks.query[relevant], ranks.rank[relevant]
    hits = _above(ranks, relevant)[relevant]
    others = _above(ranks, (ranks.grade >= 0) & ~relevant)[relevant]
    pooled = _above(ranks, np.ones(len(relevant), np.bool_))[relevant]
    share = (hits + _EPSILON) / (hits + others + 2.0 * _EPSILON)
    sums = tally(query, (1.0 + pooled * share) / rank, ranks.queries)
    return sums / np.maximum(ranks.facts.relevant(measure.rel), 1)


def extreme_infap(ranks: JudgedRanks, measure: Measure) -> tuple[Floats, Floats]:
    """The least and the largest value over all orders of tied documents, of lists of up to 50,000.

    No closed form of the expected value is known. With z documents above that were not pooled, and the share q
    of relevant ones among the judged above, a relevant document at rank r adds q + (1 − q (1 + z)) ÷ r. To swap
    two neighbours in rank moves only what these two add, so:

    * above a document that is unjudged, or judged and not relevant, a relevant one always adds more; and the
      more of them a cut leaves in the list, the more they add together;
    * against pooled documents it hangs on the sign of 1 − q (1 + z), which falls as relevant ones come: each
      relevant document adds most with all of the pooled ones of its group above it or with none, and all of
      them can have what they want;
    * for the least, those that lose by pooled documents above them come first, so that to pull all relevant
      documents together, below some number of pooled ones, costs none of them anything.
    """
    groups = ties.Groups(ranks)
    relevant, pooled = ranks.grade >= measure.rel, ranks.grade < 0
    r, p, n = groups.count(relevant), groups.count(pooled), groups.count(~relevant & ~pooled)
    h, o = groups.ahead(r), groups.ahead(n)
    z = groups.first - 1 - groups.ahead(r + p + n)
    within = ties.ranks_within(groups, ties.reach(ranks, measure))
    # The least: all that can be is above the relevant ones that have to be in the list.
    few, unpooled = np.maximum(within - groups.size + r, 0), groups.size - r - p - n
    last = _Block(few, groups.first + n + unpooled, h, o + n, z + unpooled)
    low = last.adds(np.zeros_like(p))
    for above in range(1, int(p[few > 0].max(initial=0)) + 1):
        low = np.minimum(low, last.adds(np.minimum(p, above)))
    many = np.minimum(r, within)
    high = _Block(many, groups.first, h, o, z).adds(np.minimum(p, within - many), or_none=True)
    number = np.maximum(ranks.facts.relevant(measure.rel), 1)
    return tally(groups.query, low, ranks.queries) / number, tally(groups.query, high, ranks.queries) / number


class _Block:
    """Relevant documents of each group in a row, from a rank on, below h relevant, o other and z not pooled."""

    def __init__(self, count: Ints, rank: Ints, h: Ints, o: Ints, z: Ints) -> None:
        self.group: Ints = np.repeat(np.arange(len(count)), count)
        self.groups = len(count)
        place = np.arange(len(self.group)) - (np.cumsum(count) - count)[self.group]
        hits = h[self.group] + place + _EPSILON
        self.share: Floats = hits / (hits + o[self.group] + _EPSILON)
        self.slope: Floats = 1.0 - self.share * (1.0 + z[self.group])
        self.rank: Ints = rank[self.group] + place

    def adds(self, pooled: Ints, *, or_none: bool = False) -> Floats:
        """What they add with so many pooled documents of their group above, or each of them with none."""
        values = self.share + self.slope / (self.rank + pooled[self.group])
        if or_none:
            values = np.maximum(values, self.share + self.slope / self.rank)
        return tally(self.group, values, self.groups)


def _above(ranks: JudgedRanks, mask: Bools) -> Ints:
    """How many rows of the mask stand above each row, in the list of its query."""
    counts: Ints = np.cumsum(mask) - mask
    sizes = np.bincount(ranks.query, minlength=ranks.queries)
    starts = np.cumsum(sizes) - sizes
    above: Ints = counts - np.append(counts, 0)[starts][ranks.query]
    return above


MEASURES = (
    Definition(
        "bpref",
        "share of judged non-relevant documents that stand below each relevant one, over all relevant",
        "Buckley & Voorhees, Retrieval Evaluation with Incomplete Information, SIGIR 2004, as in trec_eval",
        bpref,
        cutoff="none",
        rises=True,
        expected=expected_bpref,
    ),
    Definition(
        "infap",
        "average precision, its precisions inferred from the judged part of a pool",
        "Yilmaz & Aslam, Estimating Average Precision with Incomplete and Imperfect Judgments, CIKM 2006",
        infap,
        cutoff="none",
        extremes=extreme_infap,
    ),
)
