"""The ranking measures over the judged ranks, and their definitions.

Each function takes the table and the measure and gives one value for each query of the qrels. Symbols: k
the cut-off, R the number of documents that are relevant at the measure's level, g the grade (unjudged and
negative: gain 0).
"""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures import graded, ties
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import (
    Bools,
    Floats,
    JudgedRanks,
    gain_of,
    prefix,
    tally,
)
from pytest_retrieval_eval.measures.registry import Definition, Parameter


def hit(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 if any of the top k is relevant, else 0."""
    return (ranks.hits(measure.rel, measure.cutoff) > 0).astype(np.float64)


def precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Relevant in the top k ÷ k, also where fewer than k were returned."""
    return ranks.hits(measure.rel, measure.cutoff) / cutoff_of(measure)


def recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Relevant in the top k ÷ R."""
    return ranks.hits(measure.rel, measure.cutoff) / _number_relevant(ranks, measure)


def f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Harmonic mean of precision@k and recall@k, which is 2 · relevant in the top k ÷ (k + R)."""
    return 2.0 * ranks.hits(measure.rel, measure.cutoff) / (cutoff_of(measure) + ranks.facts.relevant(measure.rel))


def reciprocal_rank(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 ÷ rank of the first relevant document, 0 if the top k has none."""
    first = ranks.relevant(measure.rel).first
    found = first > 0 if measure.cutoff is None else (first > 0) & (first <= measure.cutoff)
    return np.where(found, 1.0 / np.maximum(first, 1), 0.0)


def average_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Sum of the precision at the rank of each relevant document of the top k ÷ R.

    With denominator=retrieved, ÷ the number of those in the top k.
    """
    rows = ranks.relevant(measure.rel)
    end = prefix(rows.rank, measure.cutoff)
    sums = tally(rows.query[:end], rows.precision[:end], ranks.queries)
    if _over_retrieved(measure):
        return sums / np.maximum(ranks.hits(measure.rel, measure.cutoff), 1)
    return sums / _number_relevant(ranks, measure)


def expected_average_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The closed form for the denominator."""
    if _over_retrieved(measure):
        return ties.precision_over_retrieved(ranks, measure)[1]
    return ties.expected_average_precision(ranks, measure)


def extreme_average_precision(ranks: JudgedRanks, measure: Measure) -> tuple[Floats, Floats]:
    """Over those retrieved, where the best order is not the one with most of them above the cut-off."""
    low, _, high = ties.precision_over_retrieved(ranks, measure)
    return low, high


def _over_retrieved(measure: Measure) -> bool:
    return measure.get("denominator") == "retrieved"


def _map_rises(measure: Measure) -> bool:
    # One more relevant document above the cut-off can lower a mean over those that are there.
    return measure.cutoff is None or not _over_retrieved(measure)


def r_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Relevant in the top R ÷ R."""
    rows = ranks.relevant(measure.rel)
    number = ranks.facts.relevant(measure.rel)
    within = rows.query[rows.rank <= number[rows.query]]
    return np.bincount(within, minlength=ranks.queries) / _number_relevant(ranks, measure)


def ndcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """DCG of the top k ÷ the largest DCG at k over all judged documents; discount log2(rank + 1)."""
    gain = gain_of(ranks, measure)
    ideal = ranks.facts.ideal_dcg(gain, measure.cutoff)
    return ranks.dcg(gain, measure.cutoff) / np.where(ideal > 0, ideal, 1.0)


def dcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Discounted cumulated gain of the top k: Σ gain ÷ log2(rank + 1)."""
    return ranks.dcg(gain_of(ranks, measure), measure.cutoff)


def judged(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Judged in the top k ÷ min(k, returned); a negative grade is a judgment."""
    counts = ranks.hits(-np.inf, measure.cutoff)
    slots = np.minimum(cutoff_of(measure), ranks.returned)
    return np.where(slots > 0, counts / np.maximum(slots, 1), np.nan)


def unjudged(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Unjudged in the top k ÷ k; in trec mode a negative grade is no judgment."""
    counts = ranks.hits(0.0 if ranks.trec else -np.inf, measure.cutoff)
    return (np.minimum(ranks.returned, cutoff_of(measure)) - counts) / cutoff_of(measure)


def has_judged_list(ranks: JudgedRanks, measure: Measure) -> Bools:
    """Queries with judgments, relevant or not, whose list is not empty."""
    return (ranks.facts.judged > 0) & (ranks.returned > 0)


def cutoff_of(measure: Measure) -> int:
    """The cut-off of a measure that has one. Raises MeasureError where it was built without."""
    if measure.cutoff is None:
        raise MeasureError(f"{measure} needs a cut-off; write {measure}@5, or another k.")
    return measure.cutoff


def _number_relevant(ranks: JudgedRanks, measure: Measure) -> Floats:
    # Where nothing is relevant the sums are 0 and the query does not count; 1 keeps the division quiet.
    return np.maximum(ranks.facts.relevant(measure.rel), 1).astype(np.float64)


GAIN = Parameter("how a grade becomes a gain", "linear", words=("linear", "exp"))
TEXTBOOK = "Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), chapter 8"

MEASURES = (
    Definition(
        "hit",
        "1 if any of the top k is relevant, else 0",
        "success@k of trec_eval",
        hit,
        graded=graded.hit,
        cutoff="required",
        rises=True,
        expected=ties.expected_hit,
        spellings=("success", "hit_rate", "hitrate"),
        stems=("success", "hit"),
    ),
    Definition(
        "precision",
        "relevant in the top k ÷ k, also where fewer than k were returned",
        TEXTBOOK,
        precision,
        graded=graded.precision,
        cutoff="required",
        rises=True,
        expected=ties.expected_precision,
        spellings=("P",),
        stems=("P", "precision"),
    ),
    Definition(
        "recall",
        "relevant in the top k ÷ all relevant",
        TEXTBOOK,
        recall,
        graded=graded.recall,
        cutoff="required",
        rises=True,
        expected=ties.expected_recall,
        spellings=("R",),
        stems=("recall",),
    ),
    Definition(
        "f1",
        "harmonic mean of precision@k and recall@k",
        "van Rijsbergen, Information Retrieval (1979), chapter 7",
        f1,
        graded=graded.f1,
        cutoff="required",
        rises=True,
        expected=ties.expected_f1,
        spellings=("F1_score",),
        stems=("f1_cut", "f1"),
    ),
    Definition(
        "mrr",
        "1 ÷ rank of the first relevant document, 0 if there is none",
        "Voorhees, The TREC-8 Question Answering Track Report (1999)",
        reciprocal_rank,
        graded=graded.reciprocal_rank,
        rises=True,
        expected=ties.expected_reciprocal_rank,
        spellings=("RR", "recip_rank", "reciprocal_rank"),
        stems=("recip_rank_cut", "mrr"),
    ),
    Definition(
        "map",
        "sum of the precision at the rank of each relevant document ÷ all relevant",
        "Buckley & Voorhees, Retrieval System Evaluation (TREC: Experiment and Evaluation, 2005)",
        average_precision,
        graded=graded.average_precision,
        parameters={
            "denominator": Parameter(
                "what the sum is divided by: all relevant documents, or those in the top k",
                "relevant",
                words=("relevant", "retrieved"),
            )
        },
        rises=_map_rises,
        expected=expected_average_precision,
        extremes=extreme_average_precision,
        spellings=("AP", "average_precision"),
        stems=("map_cut", "map"),
    ),
    Definition(
        "ndcg",
        "discounted cumulated gain of the top k ÷ that of the best order of all judged documents",
        "Järvelin & Kekäläinen, ACM TOIS 20(4), 2002; gain=exp: Burges et al., ICML 2005",
        ndcg,
        binary=False,
        parameters={"gain": GAIN},
        rises=True,
        expected=ties.expected_ndcg,
        stems=("ndcg_cut", "ndcg"),
        translations={("dcg", "log2"): ("gain", "linear"), ("dcg", "exp-log2"): ("gain", "exp")},
    ),
    Definition(
        "dcg",
        "discounted cumulated gain of the top k: gain ÷ log2(rank + 1), summed",
        "Järvelin & Kekäläinen, ACM TOIS 20(4), 2002; gain=exp: Burges et al., ICML 2005",
        dcg,
        binary=False,
        parameters={"gain": GAIN},
        rises=True,
        expected=ties.expected_dcg,
        translations={("dcg", "log2"): ("gain", "linear"), ("dcg", "exp-log2"): ("gain", "exp")},
        high=float("inf"),
    ),
    Definition(
        "r_precision",
        "precision at the rank that equals the number of relevant documents",
        TEXTBOOK,
        r_precision,
        graded=graded.r_precision,
        cutoff="none",
        rises=True,
        expected=ties.expected_r_precision,
        spellings=("Rprec", "r-precision", "rprecision"),
    ),
    Definition(
        "judged",
        "judged in the top k ÷ the smaller of k and the number returned",
        "judged@k of Anserini and ir_measures",
        judged,
        cutoff="required",
        binary=False,
        counts=has_judged_list,
        rises=True,
        expected=ties.expected_judged,
        stems=("judged",),
    ),
    Definition(
        "unjudged",
        "returned in the top k without a judgment ÷ k; in trec mode a negative grade is none",
        "unj of trec_eval 10",
        unjudged,
        cutoff="required",
        binary=False,
        counts=has_judged_list,
        falls=True,
        expected=ties.expected_unjudged,
        spellings=("unj",),
        stems=("unj", "unjudged"),
    ),
)
