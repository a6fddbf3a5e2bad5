"""What a verdict says of unjudged documents, of ties and of the spread behind a mean."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.reports.text import evidence, explain
from pytest_retrieval_eval.stats.means import histogram


def test_case_71_the_verdict_has_the_bounds_and_the_pairs():
    bench = MemoryBench({"q": {"a": 1}}, {"q": ["n1", "n2", "a"]})
    verdict = bench.decide("ndcg@3 >= 0.4", judged=0.9)
    assert verdict.value == pytest.approx(0.5)
    assert verdict.judged[0] == pytest.approx(1 / 3)
    assert verdict.bounds == (pytest.approx((0.5, 1.0)), None)
    assert verdict.status == "inconclusive"
    assert verdict.to_judge == (("q", "n1"), ("q", "n2"))
    assert "bounds [0.500, 1.000] if everything unjudged were judged" in evidence(verdict)
    again = Verdict.from_dict(json.loads(json.dumps(verdict.to_dict())))
    assert again == verdict


def test_a_gate_says_that_it_hangs_on_unjudged_documents():
    bench = MemoryBench({"q": {"a": 1}}, {"q": ["n1", "n2", "a"]})
    failed = bench.decide("ndcg@3 >= 0.6")
    assert failed.status == "failed"
    said = "unjudged documents: were they judged, the mean would lie between 0.500 and 1.000, and the gate could "
    assert failed.notes == (said + "pass",)
    assert bench.decide("ndcg@3 >= 0.4").notes == ()
    assert bench.decide("ndcg@3 <= 0.5").notes == (said + "fail",)


def test_nothing_is_said_where_the_top_is_judged():
    bench = MemoryBench({"q": {"a": 1, "b": 0}}, {"q": ["a", "b", "hole"]})
    verdict = bench.decide("recall@2 >= 0.9")
    assert verdict.bounds[0] == (0.5, 1.0)  # a hole below the cut-off could be relevant
    assert verdict.judged[0] == 1.0
    assert verdict.notes == ()
    assert "bounds" not in explain(verdict)


def test_against_a_run_both_sides_have_bounds():
    labels = {f"q{i}": {"a": 1} for i in range(4)}
    bench = MemoryBench(labels, {q: ["new", "a"] for q in labels}, {q: ["a", "old"] for q in labels})
    verdict = bench.decide("mrr@2 >= baseline")
    assert verdict.bounds == ((0.5, 1.0), (1.0, 1.0))
    assert verdict.status == "failed"
    assert any(note.startswith("unjudged documents") and note.endswith("could pass") for note in verdict.notes)
    assert "bounds – → [0.500, 1.000] if everything unjudged were judged" in evidence(verdict)
    # With a bound that no judgment can reach nothing hangs on them.
    surely = bench.decide("mrr@2 >= baseline + 0.1")
    assert not any(note.startswith("unjudged documents") for note in surely.notes)
    same = MemoryBench(labels, {q: ["new", "a"] for q in labels}, {q: ["new", "a"] for q in labels})
    assert not any(note.startswith("unjudged") for note in same.decide("mrr@2 >= baseline").notes)


def test_a_measure_without_bounds_has_none():
    bench = MemoryBench({"q": {"a": 1, "b": 0}}, {"q": ["x", "a"]})
    assert bench.decide("infap >= 0.1").bounds == (None, None)


def test_bounds_that_would_take_long_are_left_out(monkeypatch):
    monkeypatch.setattr("pytest_retrieval_eval.gates.incomplete.EFFORT", 2)
    bench = MemoryBench({"q": {"a": 1}}, {"q": ["n1", "n2", "a"]})
    assert bench.decide("ndcg@3 >= 0.4").bounds == (None, None)
    assert bench.decide("recall@3 >= 0.4").bounds[0] == (1.0, 1.0)


def test_the_evidence_names_the_interval_of_ties():
    bench = MemoryBench({"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 1.0}})
    verdict = bench.decide("ndcg@2 >= 0.5")
    assert "ties [0.631, 1.000] over the orders of equal scores" in evidence(verdict)
    plain = MemoryBench({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}}).decide("ndcg@2 >= 0.5")
    assert "ties" not in explain(plain)


def test_the_mean_does_not_stand_alone():
    labels = {f"q{i}": {"a": 1} for i in range(4)}
    after = {"q0": ["a"], "q1": ["x", "a"], "q2": ["x"], "q3": ["x"]}
    verdict = MemoryBench(labels, after, {query: ["a"] for query in labels}).decide("mrr >= baseline")
    new, old = verdict.spread
    assert (new.minimum, new.p50, new.maximum, new.zeros) == (0.0, 0.25, 1.0, 0.5)
    assert new.counts == (2, 0, 0, 0, 0, 1, 0, 0, 0, 1)
    assert (old.minimum, old.zeros, sum(old.counts)) == (1.0, 0.0, 4)
    text = explain(verdict, spread=True)
    assert "spread  candidate  0 █····▄···▄ 1   min 0.00" in text
    assert "50 % zero" in text
    assert "spread" not in explain(verdict)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1), st.integers(1, 20))
def test_a_histogram_counts_each_value_once(numbers, bins):
    values = np.array(numbers) / 40
    counts = histogram(values, 0.0, 1.0, bins)
    assert len(counts) == bins
    expected = Counter(min(number * bins // 40, bins - 1) for number in numbers)
    assert dict(enumerate(counts)) == {place: expected[place] for place in range(bins)}
    with pytest.raises(ValueError, match="no width"):
        histogram(values, 1.0, 1.0)


def test_gates_on_the_unit_scale():
    labels = Qrels.of({"q1": {"a": 0.5, "b": 1.0}, "q2": {"a": 0.25}}, scale="unit")
    bench = MemoryBench(
        Dataset.of(qrels=labels, name="degrees"), {"q1": ["a", "x"], "q2": ["a"]}, {"q1": ["b"], "q2": ["a"]}
    )
    verdict = bench.decide("precision@1 >= 0.3")
    assert (verdict.value, verdict.label_scale, verdict.status) == (0.375, "unit", "passed")
    assert verdict.bounds[0] == (0.375, 0.375)
    assert "degrees, labels on the unit scale, run candidate" in explain(verdict)
    against = bench.decide("hit@1 >= baseline")
    assert (against.status, against.value, against.reference) == ("failed", 0.375, 0.625)
    assert "labels on the" not in explain(MemoryBench({"q": {"a": 1}}, {"q": ["a"]}).decide("mrr >= 1"))
