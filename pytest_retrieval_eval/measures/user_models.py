"""Measures that model a reader who walks down the list and stops at some point: RBP and ERR."""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures import ties
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Floats, JudgedRanks, places, prefix, tally
from pytest_retrieval_eval.measures.registry import Definition, Parameter, register


def rbp(ranks: JudgedRanks, measure: Measure) -> Floats:
    """(1 − p) times the sum of p^(r − 1) over the ranks r ≤ k of relevant documents."""
    p = _persistence(measure)
    rows = ranks.relevant(measure.rel)
    end = prefix(rows.rank, measure.cutoff)
    weights: Floats = np.power(p, rows.rank[:end] - 1.0)
    return (1.0 - p) * tally(rows.query[:end], weights, ranks.queries)


def graded_rbp(ranks: JudgedRanks, measure: Measure) -> Floats:
    """(1 − p) times the sum of label · p^(r − 1) over the ranks r ≤ k."""
    p = _persistence(measure)
    keep = (ranks.grade > 0) & (ranks.rank <= (measure.cutoff or ranks.rank))
    weights = np.minimum(ranks.grade[keep], 1.0) * p ** (ranks.rank[keep] - 1.0)
    return (1.0 - p) * tally(ranks.query[keep], weights, ranks.queries)


def expected_rbp(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Each relevant document counts with the mean of p^(r − 1) over the ranks of its tied group."""
    p = _persistence(measure)
    keep = ranks.grade >= measure.rel
    weights = ties.mean_discount(
        ranks.tie_first[keep], ranks.tie_last[keep], measure.cutoff, lambda rank: p ** (rank - 1.0)
    )
    return (1.0 - p) * tally(ranks.query[keep], weights, ranks.queries)


def gain_rbp(ranks: JudgedRanks, measure: Measure) -> Floats:
    """(1 − p) times the sum of g ÷ gmax · p^(r − 1) over the ranks r ≤ k."""
    p, gmax = _persistence(measure), _gmax(ranks, measure)
    keep = (ranks.grade > 0) & (ranks.rank <= (measure.cutoff or ranks.rank))
    weights: Floats = np.minimum(ranks.grade[keep] / gmax, 1.0) * p ** (ranks.rank[keep] - 1.0)
    return (1.0 - p) * tally(ranks.query[keep], weights, ranks.queries)


def rbp_tail(ranks: JudgedRanks, measure: Measure) -> Floats:
    """p^n, where n documents were returned in the top k: the weight of the ranks below."""
    n = ranks.returned if measure.cutoff is None else np.minimum(ranks.returned, measure.cutoff)
    return np.power(_persistence(measure), n.astype(np.float64))


def rbp_residual(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The weight of the ranks below, p^n, and of the unjudged documents above: 1 − that of the judged ones."""
    p = _persistence(measure)
    keep = ranks.rank <= (measure.cutoff or ranks.rank)
    if measure.get("negative") == "unjudged":
        keep &= ranks.grade >= 0
    weights: Floats = np.power(p, ranks.rank[keep] - 1.0)
    seen = (1.0 - p) * tally(ranks.query[keep], weights, ranks.queries)
    return np.maximum(1.0 - seen, 0.0)


def err(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks r ≤ k: the chance to arrive at r times the chance to stop there ÷ r.

    The chance to stop at a document is (2^g − 1) ÷ 2^gmax.
    """
    if ranks.scale == "unit":
        raise MeasureError(
            f"{measure} has no definition for labels on the unit scale. Use the scale levels, or ndcg or rbp."
        )
    gmax = _gmax(ranks, measure)
    keep = ranks.grade > 0
    query, rank = ranks.query[keep], ranks.rank[keep]
    # In powers of two less gmax, so that no grade overflows.
    stop = np.exp2(ranks.grade[keep] - gmax) - 2.0**-gmax
    place = places(query, ranks.queries)
    # The product of (1 − stop) over the documents before, by doubling the reach at each step.
    arrive = np.ones(len(stop))
    arrive[1:] = 1.0 - stop[:-1]
    arrive[place == 0] = 1.0
    reach = 1
    while reach <= int(place.max(initial=0)):
        inside = np.flatnonzero(place >= reach)
        arrive[inside] = arrive[inside] * arrive[inside - reach]
        reach *= 2
    within = rank <= (measure.cutoff or rank)
    return tally(query[within], (arrive * stop / rank)[within], ranks.queries)


def _gmax(ranks: JudgedRanks, measure: Measure) -> float:
    """The grade that the measure takes for the highest. Raises MeasureError where the qrels exceed it."""
    highest = 1.0 if ranks.scale == "unit" else ranks.facts.highest
    given = measure.get("gmax")
    gmax = given if isinstance(given, float) else max(highest, 0.0)
    if highest > gmax:
        raise MeasureError(
            f"{measure}: the qrels have grade {highest:g}, above gmax; no document may exceed the highest. "
            f"Write gmax={highest:g}, or leave it out to take the highest grade of the qrels."
        )
    return gmax or 1.0


def _persistence(measure: Measure) -> float:
    value = measure.get("p", 0.8)
    return value if isinstance(value, float) else 0.8


P = Parameter("the chance to go on to the next rank", 0.8, number=True, above=0.0, below=1.0)
GMAX = Parameter(
    "the highest grade there can be; collection is the highest of the qrels",
    "collection",
    words=("collection",),
    number=True,
    above=0.0,
    below=1000.0,
)
_MOFFAT = "Moffat & Zobel, Rank-Biased Precision, ACM TOIS 27(1), 2008"

for _definition in (
    Definition(
        "rbp",
        "(1 − p) times the sum of p^(rank − 1) over the relevant documents of the top k",
        _MOFFAT,
        rbp,
        graded=graded_rbp,
        parameters={"p": P},
        rises=True,
        expected=expected_rbp,
    ),
    Definition(
        "graded_rbp",
        "(1 − p) times the sum of grade ÷ gmax · p^(rank − 1) over the top k",
        _MOFFAT,
        gain_rbp,
        binary=False,
        parameters={"p": P, "gmax": GMAX},
        rises=True,
    ),
    Definition(
        "rbp_tail",
        "p^n for n documents returned in the top k: what the ranks below could add to rbp",
        _MOFFAT,
        rbp_tail,
        binary=False,
        parameters={"p": P},
        rises=True,
    ),
    Definition(
        "rbp_residual",
        "what the ranks below and the unjudged documents of the top k could add to rbp",
        _MOFFAT,
        rbp_residual,
        binary=False,
        parameters={
            "p": P,
            "negative": Parameter("what a negative grade is", "judged", words=("judged", "unjudged")),
        },
        falls=True,
        spellings=("rbp_resid",),
    ),
    Definition(
        "err",
        "expected reciprocal rank at which a reader stops, who stops with chance (2^g − 1) ÷ 2^gmax",
        "Chapelle, Metzler, Zhang & Grinspan, Expected Reciprocal Rank for Graded Relevance, CIKM 2009",
        err,
        binary=False,
        parameters={"gmax": GMAX},
        rises=True,
    ),
):
    register(_definition)
