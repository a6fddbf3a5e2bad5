"""Whether a retriever knows when to return nothing: against counts by hand and the definition of the area."""

from __future__ import annotations

import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import Dataset, GateError, MeasureError, Queries, Run, evaluate, threshold_report

OUTCOMES = st.lists(st.tuples(st.booleans(), st.one_of(st.none(), st.integers(0, 5))), min_size=2, max_size=25)


def collection(outcomes):
    """Queries (no answer?, top score or None for an empty list) as a dataset and a run."""
    ids = [f"q{number}" for number in range(len(outcomes))]
    rows = zip(ids, outcomes, strict=True)
    queries = Queries.of({query: {"text": "?", "unanswerable": without} for query, (without, _) in rows})
    qrels = {query: {"gold": 1} for query, (without, _) in zip(ids, outcomes, strict=True) if not without}
    lists = {query: {} if top is None else {"gold": top} for query, (_, top) in zip(ids, outcomes, strict=True)}
    return Dataset.of(queries=queries, qrels=qrels or {"other": {"gold": 1}}, name="small"), Run.of(lists, name="run")


def measured(outcomes, measure):
    dataset, run = collection(outcomes)
    return evaluate(dataset.qrels, run, measure, queries=dataset.queries)[measure].overall


@settings(max_examples=60, deadline=None)
@given(OUTCOMES, st.one_of(st.none(), st.integers(0, 6)))
def test_decisions_are_counted(outcomes, threshold):
    if all(without for without, _ in outcomes) or not any(without for without, _ in outcomes):
        outcomes = [*outcomes, (True, 3), (False, 3)]

    def abstains(top):
        return top is None or (threshold is not None and top < threshold)

    good = sum(without and abstains(top) for without, top in outcomes)
    abstained = sum(abstains(top) for _, top in outcomes)
    total = sum(without for without, _ in outcomes)
    inside = "" if threshold is None else f"(threshold={threshold})"
    assert measured(outcomes, f"abstention.recall{inside}") == pytest.approx(good / total)
    assert measured(outcomes, f"abstention.f1{inside}") == pytest.approx(2 * good / (abstained + total))
    if abstained:
        assert measured(outcomes, f"abstention.precision{inside}") == pytest.approx(good / abstained)
    else:
        with pytest.raises(GateError, match=r"undefined, since there is nothing to divide by"):
            measured(outcomes, f"abstention.precision{inside}")


@settings(max_examples=60, deadline=None)
@given(OUTCOMES)
def test_the_area_is_the_chance_of_the_right_order(outcomes):
    outcomes = [*outcomes, (True, 2), (False, 2)]
    tops = [(without, -1 if top is None else top) for without, top in outcomes]
    pairs = [(one, other) for no, one in tops if not no for yes, other in tops if yes]
    expected = sum((one > other) + (one == other) / 2 for one, other in pairs) / len(pairs)
    assert measured(outcomes, "abstention.auc") == pytest.approx(expected)


def test_gates_compare_decisions():
    sure = [(True, None)] * 20 + [(False, 5)] * 40
    unsure = [(True, None)] * 10 + [(True, 3)] * 10 + [(False, 5)] * 30 + [(False, None)] * 10
    dataset, good = collection(sure)
    bench = MemoryBench(dataset, collection(unsure)[1], good)
    for measure, value in (("precision", 0.5), ("recall", 0.5), ("f1", 0.5)):
        verdict = bench.decide(f"abstention.{measure} >= baseline - 0.1", rule="significant")
        assert (verdict.value, verdict.reference, verdict.status) == (pytest.approx(value), 1.0, "failed")
        assert verdict.p < 0.05
    assert bench.decide("abstention.auc >= baseline - 0.1", rule="noninferior").status == "failed"
    # Other scores in the same order are the same separation.
    other = Run.of({query: {doc: 100 + score for doc, score in docs.items()} for query, docs in good.to_dict().items()})
    assert MemoryBench(dataset, other, good).decide("abstention.auc >= baseline").identical


def test_what_cannot_be_measured_is_an_error():
    dataset, run = collection([(False, 3), (False, 4)])
    with pytest.raises(GateError, match=r"no query that counts is marked unanswerable"):
        MemoryBench(dataset, run).decide("abstention.recall >= 0.5")
    dataset, _ = collection([(False, 3), (True, 4)])
    lists = Run.of({"q0": ["gold"], "q1": ["gold"]})
    assert MemoryBench(dataset, lists).decide("abstention.f1 <= 0.1").value == 0
    with pytest.raises(GateError, match=r"has none for query q0: keep the scores"):
        MemoryBench(dataset, lists).decide("abstention.f1(threshold=0.5) >= 0.1")
    with pytest.raises(GateError, match=r"reads the score of the first hit"):
        MemoryBench(dataset, lists).decide("abstention.auc >= 0.1")
    with pytest.raises(MeasureError, match=r"threshold cannot be high"):
        evaluate(dataset.qrels, lists, "abstention.f1(threshold=high)")


def test_a_query_that_was_not_asked_has_not_abstained():
    dataset, run = collection([(True, None), (False, 5), (True, None)])
    part = Run.of({"q0": {}, "q1": {"gold": 5}}, name="part")
    for measure in ("precision", "recall", "f1", "auc"):
        gate = f"abstention.{measure} >= 0.5"
        assert MemoryBench(dataset, run).decide(gate).value == 1
        with pytest.raises(
            GateError, match=r"the run part has no list for 1 of \d queries, the first is q2: a query that"
        ):
            MemoryBench(dataset, part).decide(gate)
    with pytest.raises(GateError, match=r"the run part has no list for 1 of 2 queries"):
        MemoryBench(dataset, run, part).decide("abstention.recall >= baseline")
    with pytest.raises(GateError, match=r"the run part has no list"):
        threshold_report(dataset, part)


def test_thresholds_are_tried_halfway_between_scores():
    dataset, run = collection([(True, 1), (True, 2), (False, 2), (False, 4), (False, 5), (True, None)])
    found = threshold_report(dataset, run)
    assert [row.threshold for row in found.rows] == [None, 1.5, 3.0, 4.5]
    assert (found.rows[0].abstained, found.rows[0].right, found.rows[0].precision) == (1, 1, 1.0)
    third = found.rows[2]
    assert (third.abstained, third.right, third.lost, third.recall) == (4, 3, 1, 1.0)
    assert found.best is third
    assert (found.answerable, found.unanswerable) == (3, 3)
    # The measure at that threshold says the same.
    assert evaluate(dataset.qrels, run, "abstention.f1(threshold=3)", queries=dataset.queries)[
        "abstention.f1(threshold=3)"
    ].overall == pytest.approx(third.f1)
    assert len(threshold_report(dataset, run, most=2).rows) == 2
