"""Reciprocal rank fusion: the definition, and what does not change it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import DataError, Run, fuse
from pytest_retrieval_eval.collection.runs.hits import Hit

DOCS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
law = settings(max_examples=50, deadline=None)
LISTS = st.lists(DOCS, min_size=2, max_size=4)


def by_definition(lists, k):
    """Σ 1 ÷ (k + rank) in exact fractions; equal sums by id, descending."""
    scores: dict[str, Fraction] = {}
    for docs in lists:
        for rank, doc in enumerate(docs, 1):
            scores[doc] = scores.get(doc, Fraction(0)) + Fraction(1, k + rank)
    return sorted(sorted(scores, reverse=True), key=lambda doc: -scores[doc]), scores


@law
@given(lists=LISTS, k=st.integers(0, 100))
def test_scores_and_order_are_those_of_the_paper(lists, k):
    fused = fuse([Run.of({"q": docs}) for docs in lists], rrf_k=k).ranking("q")
    order, scores = by_definition(lists, k)
    assert fused.docs == order
    assert (fused.scores or []) == pytest.approx([float(scores[doc]) for doc in order], abs=1e-12)


@law
@given(data=st.data(), lists=LISTS)
def test_the_order_of_the_runs_does_not_matter(data, lists):
    other = data.draw(st.permutations(lists))
    one, two = (fuse([Run.of({"q": docs}) for docs in each]).ranking("q") for each in (lists, other))
    assert (one.docs, one.scores) == (two.docs, two.scores)


@law
@given(docs=DOCS, times=st.integers(2, 4), scores=st.data())
def test_only_ranks_are_read_and_a_run_with_itself_keeps_its_order(docs, times, scores):
    values = sorted(scores.draw(st.lists(st.floats(-1e6, 1e6), min_size=len(docs), max_size=len(docs))), reverse=True)
    scored = Run.of({"q": list(zip(docs, values, strict=True))})
    assert fuse([scored] * times).ranking("q").docs == docs
    assert fuse([scored, Run.of({"q": docs})]).digest == fuse([Run.of({"q": docs})] * 2).digest


def test_queries_of_any_run_depth_ties_parts_and_failures_are_kept():
    one = Run.of({"q1": ["a", "b", "c"], "q2": ["x"]}, depth=3, name="bm25")
    two = Run.of({"q1": ["b", "a", "d"]}, depth=2, name="dense", errors={"q3": "timed out"})
    fused = fuse([one, two], name="hybrid")
    assert (fused.name, fused.depth, dict(fused.errors)) == ("hybrid", 2, {"q3": "timed out"})
    assert fused.ranking("q1").docs == ["b", "a"]
    assert fused.ranking("q2").docs == ["x"]
    assert fused.header["fused"] == ["bm25", "dense"]
    assert fused.ordered_by == "score"  # a and b are tied, and whoever measures must know it
    chunks = Run.of({"q": [Hit("c1", 0.5, doc_id="d", start=0, end=4)]})
    assert fuse([chunks, Run.of({"q": ["c2"]})]).ranking("q").doc_id == [None, "d"]


@pytest.mark.parametrize(
    ("runs", "options", "said"),
    [
        (1, {}, "two runs or more"),
        (2, {"rrf_k": -1}, "a number of 0 or more"),
        (2, {"rrf_k": float("nan")}, "a number of 0 or more"),
        (2, {"depth": 0}, "1 hit or more"),
    ],
)
def test_what_cannot_be_fused(runs, options, said):
    with pytest.raises(DataError, match=said):
        Run.fused([Run.of({"q": ["a"]})] * runs, **options)
