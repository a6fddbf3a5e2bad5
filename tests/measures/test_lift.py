"""Lift: the share of the recoverable gap, against a slow reference that tries every order."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import GateError, Measure, MeasureError, Qrels, Run, evaluate

MEASURES = st.sampled_from(["ndcg@3", "ndcg(gain=exp)", "mrr", "map@4", "recall@2", "hit@1", "precision@2", "err@3"])
DOCS = "abcdef"
#: 0, 1 or 2 for each document of a query; None where nobody judged it
GRADES = st.fixed_dictionaries({doc: st.sampled_from([None, 0, 1, 2]) for doc in DOCS}).filter(
    lambda grades: any(grades.values())
)
LIST = st.lists(st.sampled_from(DOCS), unique=True, min_size=1, max_size=4)
slow = settings(max_examples=25, deadline=None)  # each example measures every order


def qrels_of(grades):
    return Qrels.of({"q": {doc: grade for doc, grade in grades.items() if grade is not None}})


def values_of(grades, lists, measure):
    """The measure on each list of one query: all at once, each as a query of its own."""
    judged = {doc: grade for doc, grade in grades.items() if grade is not None}
    qrels = Qrels.of({str(place): judged for place in range(len(lists))})
    run = Run.of({str(place): list(docs) for place, docs in enumerate(lists)})
    return evaluate(qrels, run, measure).scores(measure).values.tolist()


def value(qrels, docs, measure):
    return evaluate(qrels, Run.of({"q": list(docs)}), measure).scores(measure).mean


def lift_of(qrels, before, after, measure, *options):
    text = f"lift({', '.join([measure, 'from=fused', *options])})"
    return evaluate(qrels, Run.of({"q": list(after)}), text, stages={"fused": Run.of({"q": list(before)})}).scores(text)


@slow
@given(grades=GRADES, before=LIST, measure=MEASURES, data=st.data())
def test_lift_is_that_of_the_best_order(grades, before, measure, data):
    qrels, every = qrels_of(grades), list(permutations(before))
    orders = dict(zip(every, values_of(grades, every, measure), strict=True))
    was, best = orders[tuple(before)], max(orders.values())
    after = data.draw(st.permutations(before))
    scores = lift_of(qrels, before, after, measure)
    if best - was < 1e-9:
        assert scores.n == 0
        with pytest.raises(GateError, match="no other order of the documents"):
            _ = scores.mean
        return
    assert scores.mean == pytest.approx(max((orders[tuple(after)] - was) / (best - was), -1.0))
    assert lift_of(qrels, before, before, measure).mean == 0
    winner = next(order for order, found in orders.items() if found > best - 1e-12)
    assert lift_of(qrels, before, winner, measure).mean == pytest.approx(1)


@slow
@given(grades=GRADES, before=LIST, pool=st.integers(1, 5))
def test_a_pool_is_the_top_that_is_reordered(grades, before, pool):
    every = [(*top, *before[pool:]) for top in permutations(before[:pool])]
    orders = dict(zip(every, values_of(grades, every, "ndcg@3"), strict=True))
    winner, best = max(orders.items(), key=lambda item: item[1])
    scores = lift_of(qrels_of(grades), before, winner, "ndcg@3", f"pool={pool}")
    assert scores.values.tolist() == ([] if best - orders[tuple(before)] < 1e-9 else [pytest.approx(1)])


def test_the_example_of_the_issue():
    """One query: 0.61 before, 0.79 after, and 0.92 would have been reached: 58 % of the gap."""
    assert pytest.approx(0.58, abs=0.005) == (0.79 - 0.61) / (0.92 - 0.61)
    qrels = Qrels.of({"q": {"a": 1, "b": 1, "c": 1}})
    before, after = ["x", "a", "y", "b", "c"], ["a", "x", "y", "b", "c"]
    was, now, best = (value(qrels, docs, "map") for docs in (before, after, ["a", "b", "c"]))
    assert lift_of(qrels, before, after, "map").mean == pytest.approx((now - was) / (best - was))


def test_queries_without_a_gap_do_not_count_and_a_lost_one_counts_minus_one_at_most():
    qrels = Qrels.of({"best": {"a": 1}, "half": {"a": 1}, "none": {"z": 1}, "lost": {"a": 1, "b": 1, "c": 1}})
    fused = Run.of(
        {"best": ["a", "x"], "half": ["x", "a"], "none": ["x", "y"], "lost": ["a", "b", "x", "c", "y", "u", "v"]}
    )
    run = Run.of({"best": ["x", "a"], "half": ["a", "x"], "none": ["y", "x"], "lost": ["v", "u", "y", "x", "c"]})
    scores = evaluate(qrels, run, "lift(ndcg, from=fused)", stages={"fused": fused}).scores("lift(ndcg, from=fused)")
    assert scores.to_dict() == {"half": 1.0, "lost": -1.0}


def test_documents_from_elsewhere_are_no_lift():
    qrels = Qrels.of({"q": {"a": 1, "b": 1}})
    with pytest.raises(GateError, match=r"better than any order of what the stage fused returned .*is q: 1.000 above"):
        lift_of(qrels, ["x", "a"], ["a", "b"], "recall@2")


@pytest.mark.parametrize(
    ("text", "stages", "error", "said"),
    [
        ("lift(ndcg@10)", {}, MeasureError, "lift needs the parameter from"),
        ("lift(from=fused)", {}, MeasureError, "lift needs the parameter measure"),
        ("lift(ndcg@10, from=fused)@5", {}, MeasureError, "lift has no cut-off"),
        ("lift(ndcg@10, from=fused)", None, GateError, "no stages are known"),
        ("lift(ndcg@10, from=fuse)", {"fused": 1}, GateError, "none has that name; did you mean fused"),
        ("lift(bpref, from=fused, pool=2.5)", {"fused": 1}, MeasureError, "pool is a number of documents"),
        ("lift(unjudged@5, from=fused)", {"fused": 1}, MeasureError, "has no best order of documents"),
        ("lift(span_recall@5, from=fused)", {"fused": 1}, MeasureError, "has no best order of documents"),
        ("condensed(lift(ndcg@10, from=fused))", {"fused": 1}, MeasureError, "condensed makes other lists"),
    ],
)
def test_what_lift_cannot_be(text, stages, error, said):
    run = Run.of({"q": ["x", "a"]})
    known = None if stages is None else dict.fromkeys(stages, run)
    with pytest.raises(error, match=said):
        evaluate(Qrels.of({"q": ["a"]}), run, text, stages=known)


def test_the_name_round_trips():
    text = "lift(ndcg(gain=exp)@10, from=fused, pool=50)"
    assert str(Measure.parse(text)) == text
    assert Measure.parse("lift( nDCG@10 ,from = fused )") == Measure.parse("lift(ndcg@10, from=fused)")
