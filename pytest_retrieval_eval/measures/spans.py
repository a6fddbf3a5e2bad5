"""Measures of gold spans: what the chunks at the top of a list hold of the passages that answer a query.

They read characters, not ids of chunks, so that they stay comparable when documents are cut anew. k counts hits.
Symbols: a gold span is *found* at the first rank r down to which its covered share reaches ``min_coverage``; of spans
that are alternatives (a group) the one that is found first, or covered best, counts; R is the number of groups.
"""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.measures import ranking
from pytest_retrieval_eval.measures.covered import ABOVE_ZERO, covered_of
from pytest_retrieval_eval.measures.evidence import SPANS
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Floats, JudgedRanks
from pytest_retrieval_eval.measures.registry import Definition, Parameter

MIN_COVERAGE = 0.5


def share_of(measure: Measure) -> float:
    """The share of a span at which the measure takes it for found."""
    value = measure.get("min_coverage", MIN_COVERAGE)
    return value if isinstance(value, float) else MIN_COVERAGE


def recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Spans found in the top k ÷ R."""
    return ranking.recall(covered_of(ranks, measure).as_found(measure.rel, share_of(measure)), measure)


def reciprocal_rank(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 ÷ rank of the span that is found first, 0 if none is in the top k."""
    return ranking.reciprocal_rank(covered_of(ranks, measure).one_a_rank(measure.rel, share_of(measure)), measure)


def average_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Sum of j ÷ e over the spans found in the top k ÷ R: the j-th to be found has the effective rank e, since spans
    that are found at one rank take it and the next ones.
    """
    return ranking.average_precision(covered_of(ranks, measure).one_a_rank(measure.rel, share_of(measure)), measure)


def ndcg(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ gain ÷ log2(e + 1) over the spans found in the top k, by effective ranks e ≤ k, ÷ the same of the best order,
    which has one span at each rank.
    """
    return ranking.ndcg(covered_of(ranks, measure).one_a_rank(ABOVE_ZERO, share_of(measure)), measure)


def coverage(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Characters of the gold that the top k covers ÷ characters of the gold; each character counts once, and of a
    group the span that makes the value largest.
    """
    return covered_of(ranks, measure).coverage(measure.rel, measure.cutoff)


def precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Characters of the top k that are gold ÷ characters of the top k, each counted once; 0 where nothing was returned.
    All alternatives are gold.
    """
    covered = covered_of(ranks, measure)
    inside, _ = covered.overlap(measure.rel, measure.cutoff, alternatives=True)
    return _ratio(inside, covered.retrieved(measure.cutoff))


def iou(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Characters that are both gold and in the top k ÷ characters that are either; of a group the span that
    span_coverage counts is gold.
    """
    covered = covered_of(ranks, measure)
    inside, gold = covered.overlap(measure.rel, measure.cutoff, alternatives=False)
    return _ratio(inside, gold + covered.retrieved(measure.cutoff) - inside)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


_SHARE = Parameter(
    "the share of a span that must be covered for it to be found",
    MIN_COVERAGE,
    number=True,
    above=0.0,
    below=1.0,
    closed=True,
)
_BY_CHARACTER = "Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma (2024), on characters"
_BY_SPAN = "as {}, with gold spans in the place of relevant documents"

MEASURES = (
    Definition(
        "span_recall",
        "gold spans found in the top k ÷ all gold spans",
        _BY_SPAN.format("recall"),
        recall,
        cutoff="required",
        parameters={"min_coverage": _SHARE},
        reads=SPANS,
    ),
    Definition(
        "span_coverage",
        "the share of the gold's characters that the top k covers",
        f"recall in {_BY_CHARACTER}",
        coverage,
        cutoff="required",
        reads=SPANS,
    ),
    Definition(
        "span_precision",
        "the share of the top k's characters that are gold",
        f"precision in {_BY_CHARACTER}; there a character counts as often as it was retrieved",
        precision,
        cutoff="required",
        reads=SPANS,
    ),
    Definition(
        "span_iou",
        "characters that are both gold and in the top k ÷ characters that are either",
        f"IoU in {_BY_CHARACTER}; there a character counts as often as it was retrieved",
        iou,
        cutoff="required",
        reads=SPANS,
    ),
    Definition(
        "span_ndcg",
        "discounted cumulated gain of the gold spans found in the top k ÷ that of the best order",
        _BY_SPAN.format("ndcg"),
        ndcg,
        binary=False,
        parameters={"gain": ranking.GAIN, "min_coverage": _SHARE},
        reads=SPANS,
    ),
    Definition(
        "span_mrr",
        "1 ÷ rank of the gold span that is found first, 0 if there is none",
        _BY_SPAN.format("mrr"),
        reciprocal_rank,
        parameters={"min_coverage": _SHARE},
        spellings=("span_rr",),
        reads=SPANS,
    ),
    Definition(
        "span_map",
        "sum of the precision at the effective rank of each gold span that is found ÷ all gold spans",
        _BY_SPAN.format("map"),
        average_precision,
        parameters={"min_coverage": _SHARE},
        spellings=("span_ap",),
        reads=SPANS,
    ),
)
