"""Measures of what was returned as a set, without regard to order, and the counts behind them.

Symbols: n the number of documents returned (of the top k, where there is a cut-off), h those among them that
are relevant, R all relevant ones.
"""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.measures import graded, ties
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Floats, Ints, JudgedRanks, tally
from pytest_retrieval_eval.measures.registry import Definition


def _returned(ranks: JudgedRanks, measure: Measure) -> Ints:
    return ranks.returned if measure.cutoff is None else np.minimum(ranks.returned, measure.cutoff)


def _share(part: Ints | Floats, whole: Ints | Floats) -> Floats:
    """part ÷ whole, and 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0)


def set_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """h ÷ n; 0 where nothing was returned."""
    return _share(ranks.hits(measure.rel, measure.cutoff), _returned(ranks, measure))


def set_recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """h ÷ R."""
    return _share(ranks.hits(measure.rel, measure.cutoff), ranks.facts.relevant(measure.rel))


def set_f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """2 h ÷ (n + R), the harmonic mean of the two."""
    return _share(
        2 * ranks.hits(measure.rel, measure.cutoff), _returned(ranks, measure) + ranks.facts.relevant(measure.rel)
    )


def set_map(ranks: JudgedRanks, measure: Measure) -> Floats:
    """h² ÷ (n R), the product of the two."""
    return _share(
        ranks.hits(measure.rel, measure.cutoff) ** 2, _returned(ranks, measure) * ranks.facts.relevant(measure.rel)
    )


def graded_set_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Sum of the labels returned ÷ n."""
    return _share(graded.label_sum(ranks, measure.cutoff), _returned(ranks, measure))


def graded_set_f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """2 · sum of the labels returned ÷ (n + S)."""
    return _share(2 * graded.label_sum(ranks, measure.cutoff), _returned(ranks, measure) + ranks.facts.total())


def graded_set_map(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ min(g_i, g_j) over all pairs of documents returned ÷ (n S)."""
    return _share(graded.pair_sum(ranks, measure.cutoff), _returned(ranks, measure) * ranks.facts.total())


def num_q(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 for each query."""
    return np.ones(ranks.queries)


def num_ret(ranks: JudgedRanks, measure: Measure) -> Floats:
    """n."""
    return _returned(ranks, measure).astype(np.float64)


def num_rel(ranks: JudgedRanks, measure: Measure) -> Floats:
    """R."""
    return ranks.facts.relevant(measure.rel).astype(np.float64)


def graded_num_rel(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The sum of all labels."""
    return ranks.facts.total()


def num_rel_ret(ranks: JudgedRanks, measure: Measure) -> Floats:
    """h."""
    return ranks.hits(measure.rel, measure.cutoff).astype(np.float64)


def graded_num_rel_ret(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The sum of the labels returned."""
    return graded.label_sum(ranks, measure.cutoff)


def num_nonrel_judged_ret(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Returned documents whose grade is at least 0 and below the level."""
    return (ranks.hits(0.0, measure.cutoff) - ranks.hits(measure.rel, measure.cutoff)).astype(np.float64)


def expected_set_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected h ÷ n."""
    return _share(ties.expected_hits(ranks, measure), _returned(ranks, measure))


def expected_set_f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Twice the expected h ÷ (n + R)."""
    whole = _returned(ranks, measure) + ranks.facts.relevant(measure.rel)
    return _share(2 * ties.expected_hits(ranks, measure), whole)


def expected_set_map(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected h² ÷ (n R)."""
    whole = _returned(ranks, measure) * ranks.facts.relevant(measure.rel)
    return _share(ties.expected_squared_hits(ranks, measure), whole)


def expected_num_nonrel_judged_ret(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The expected number above the cut-off of those with a grade of 0, less that of the relevant ones."""
    return ties.expected_hits(ranks, measure, 0.0) - ties.expected_hits(ranks, measure)


def extreme_num_nonrel_judged_ret(ranks: JudgedRanks, measure: Measure) -> tuple[Floats, Floats]:
    """As few, and as many, as the tied group that the cut-off divides can have above it."""
    groups = ties.Groups(ranks)
    count = groups.count((ranks.grade >= 0) & (ranks.grade < measure.rel))
    within = ties.ranks_within(groups, ties.reach(ranks, measure))
    least = np.maximum(within - groups.size + count, 0)
    low, high = (tally(groups.query, one, ranks.queries) for one in (least, np.minimum(within, count)))
    return low, high


_TREC = "trec_eval"

MEASURES = (
    Definition(
        "set_precision",
        "relevant ÷ returned; with a cut-off both of the top k, so that a short list divides by its length",
        f"set_P of {_TREC}",
        set_precision,
        graded=graded_set_precision,
        rises=True,
        expected=expected_set_precision,
        spellings=("set_P", "SetP"),
    ),
    Definition(
        "set_recall",
        "relevant returned ÷ all relevant",
        f"set_recall of {_TREC}",
        set_recall,
        graded=graded.recall,
        rises=True,
        expected=ties.expected_recall,
        spellings=("SetR",),
    ),
    Definition(
        "set_f1",
        "harmonic mean of set_precision and set_recall",
        f"set_F of {_TREC}",
        set_f1,
        graded=graded_set_f1,
        rises=True,
        expected=expected_set_f1,
        spellings=("set_F", "SetF"),
        stems=("set_F_cut",),
    ),
    Definition(
        "set_map",
        "set_precision times set_recall",
        f"set_map of {_TREC}",
        set_map,
        graded=graded_set_map,
        rises=True,
        expected=expected_set_map,
        spellings=("SetAP",),
    ),
    Definition(
        "num_q",
        "queries that count",
        _TREC,
        num_q,
        cutoff="none",
        binary=False,
        rises=True,
        expected=num_q,
        aggregate="sum",
        spellings=("NumQ",),
    ),
    Definition(
        "num_ret",
        "documents returned",
        _TREC,
        num_ret,
        binary=False,
        rises=True,
        expected=num_ret,
        aggregate="sum",
        spellings=("NumRet",),
        high=float("inf"),
    ),
    Definition(
        "num_rel",
        "relevant documents",
        _TREC,
        num_rel,
        graded=graded_num_rel,
        cutoff="none",
        rises=True,
        expected=num_rel,
        aggregate="sum",
        spellings=("NumRel",),
        high=float("inf"),
    ),
    Definition(
        "num_rel_ret",
        "relevant documents returned",
        _TREC,
        num_rel_ret,
        graded=graded_num_rel_ret,
        rises=True,
        expected=ties.expected_hits,
        aggregate="sum",
        spellings=("NumRelRet",),
        high=float("inf"),
    ),
    Definition(
        "num_nonrel_judged_ret",
        "judged documents returned that are not relevant; a negative grade is no judgment here",
        _TREC,
        num_nonrel_judged_ret,
        expected=expected_num_nonrel_judged_ret,
        extremes=extreme_num_nonrel_judged_ret,
        aggregate="sum",
        high=float("inf"),
    ),
)
