"""Measures that model a reader who walks down the list and stops at some point: RBP and ERR."""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures import ties
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, JudgedRanks, heads, places, prefix, tally
from pytest_retrieval_eval.measures.registry import Definition, Parameter


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
    return _expected_weight(ranks, measure, ranks.grade >= measure.rel)


def gain_rbp(ranks: JudgedRanks, measure: Measure) -> Floats:
    """(1 − p) times the sum of g ÷ gmax · p^(r − 1) over the ranks r ≤ k."""
    p, gmax = _persistence(measure), _gmax(ranks, measure)
    keep = (ranks.grade > 0) & (ranks.rank <= (measure.cutoff or ranks.rank))
    weights: Floats = np.minimum(ranks.grade[keep] / gmax, 1.0) * p ** (ranks.rank[keep] - 1.0)
    return (1.0 - p) * tally(ranks.query[keep], weights, ranks.queries)


def expected_gain_rbp(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Each document counts g ÷ gmax times the mean of p^(r − 1) over the ranks of its tied group."""
    keep = ranks.grade > 0
    gain = np.minimum(ranks.grade[keep] / _gmax(ranks, measure), 1.0)
    return _expected_weight(ranks, measure, keep, gain)


def _expected_weight(ranks: JudgedRanks, measure: Measure, keep: Bools, gain: Floats | float = 1.0) -> Floats:
    p = _persistence(measure)
    weights = gain * ties.mean_discount(
        ranks.tie_first[keep], ranks.tie_last[keep], ties.reach(ranks, measure), lambda rank: p ** (rank - 1.0)
    )
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


def expected_rbp_residual(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 less the weight of the judged documents, each at the mean over the ranks of its tied group."""
    judged = ranks.grade >= (0.0 if measure.get("negative") == "unjudged" else -np.inf)
    return np.maximum(1.0 - _expected_weight(ranks, measure, judged), 0.0)


def err(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks r ≤ k: the chance to arrive at r times the chance to stop there ÷ r.

    The chance to stop at a document is (2^g − 1) ÷ 2^gmax.
    """
    if ranks.scale == "unit":
        raise MeasureError(
            f"{measure} has no definition for labels on the unit scale. Use the scale levels, or ndcg or rbp."
        )
    keep, stop, arrive = _reader(ranks, measure)
    query, rank = ranks.query[keep], ranks.rank[keep]
    within = rank <= (measure.cutoff or rank)
    return tally(query[within], (arrive * stop / rank)[within], ranks.queries)


def expected_err(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks of each tied group: the chance to arrive at the group times the chance to stop there ÷
    rank.

    Over all orders the chance to pass the first j of its s documents is e_j(c) ÷ (s over j), with the j-th
    elementary symmetric polynomial of the chances c to go on at each (1 where nothing is to be gained). Of these
    means each document more makes the next: ((s − j) times the j-th + j c times the one before) ÷ s.
    """
    keep, stop, arrive = _reader(ranks, measure)
    query, first, last = ranks.query[keep], ranks.tie_first[keep], ranks.tie_last[keep]
    starts = np.flatnonzero(heads(query, first))
    held = np.diff(np.append(starts, len(query)))
    # The groups that hold most come first, so that those that hold more than t are a prefix.
    order = np.argsort(-held, kind="stable")
    starts, held = starts[order], held[order]
    first, last = first[starts], last[starts]
    within = np.clip(np.minimum(last, ties.reach(ranks, measure)) - first + 1, 0, None)
    # A cell for each j from 0 to the ranks within the cut-off.
    ends = np.cumsum(within + 1)
    group = np.repeat(np.arange(len(starts)), within + 1)
    j = np.arange(len(group)) - (ends - within - 1)[group]
    size = (last - first + 1 - held)[group]
    passed = (j <= size).astype(np.float64)
    for t in range(int(held.max(initial=0))):
        some = int((held > t).sum())
        end = int(ends[some - 1])
        one, of = j[:end], group[:end]
        size[:end] += 1
        go_on = (1.0 - stop[starts[:some] + t])[of]
        before = np.append(0.0, passed[: end - 1])
        passed[:end] = ((size[:end] - one) * passed[:end] + one * go_on * before) / size[:end]
    at = np.flatnonzero(j < within[group])
    chance = arrive[starts][group[at]] * (passed[at] - passed[at + 1])
    return tally(query[starts][group[at]], chance / (first[group[at]] + j[at]), ranks.queries)


def _reader(ranks: JudgedRanks, measure: Measure) -> tuple[Bools, Floats, Floats]:
    """The rows with a gain, and the chances to stop at each, and to arrive there in the order of the run."""
    gmax = _gmax(ranks, measure)
    keep = ranks.grade > 0
    query = ranks.query[keep]
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
    return keep, stop, arrive


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

MEASURES = (
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
        expected=expected_gain_rbp,
    ),
    Definition(
        "rbp_tail",
        "p^n for n documents returned in the top k: what the ranks below could add to rbp",
        _MOFFAT,
        rbp_tail,
        binary=False,
        parameters={"p": P},
        rises=True,
        expected=rbp_tail,
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
        expected=expected_rbp_residual,
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
        expected=expected_err,
    ),
)
