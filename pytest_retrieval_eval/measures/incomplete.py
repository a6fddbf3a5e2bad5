"""Measures made for incomplete judgments: bpref and inferred average precision, as trec_eval defines them.

In both, a negative grade is a document that was pooled and not judged.
"""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks, tally
from pytest_retrieval_eval.measures.registry import Definition, register

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


def _above(ranks: JudgedRanks, mask: Bools) -> Ints:
    """How many rows of the mask stand above each row, in the list of its query."""
    counts: Ints = np.cumsum(mask) - mask
    sizes = np.bincount(ranks.query, minlength=ranks.queries)
    starts = np.cumsum(sizes) - sizes
    above: Ints = counts - np.append(counts, 0)[starts][ranks.query]
    return above


for _definition in (
    Definition(
        "bpref",
        "share of judged non-relevant documents that stand below each relevant one, over all relevant",
        "Buckley & Voorhees, Retrieval Evaluation with Incomplete Information, SIGIR 2004, as in trec_eval",
        bpref,
        cutoff="none",
        rises=True,
    ),
    Definition(
        "infap",
        "average precision, its precisions inferred from the judged part of a pool",
        "Yilmaz & Aslam, Estimating Average Precision with Incomplete and Imperfect Judgments, CIKM 2006",
        infap,
        cutoff="none",
    ),
):
    register(_definition)
