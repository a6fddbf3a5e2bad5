"""Situations that people have hit, with the right answer."""

from __future__ import annotations

import pytest
from gates_support import MemoryBench, hits, one_each

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, GateFailure
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.target import baseline


def test_27_a_query_without_a_list_counts_zero():
    bench = MemoryBench({"1": {"a": 1}, "2": {"b": 1}}, {"1": ["a"]})
    verdict = bench.decide("mrr >= 0.5")
    assert (verdict.status, verdict.value, verdict.n) == ("passed", 0.5, 2)
    assert "1 query returned nothing: 2" in verdict.notes


@pytest.mark.parametrize("compare", [lambda m: not m < 0.7, lambda m: m >= 0.7, lambda m: m < 0.7])
def test_33_an_empty_gold_is_an_error_however_it_is_compared(compare):
    with pytest.raises(GateError):
        compare(MemoryBench({}, {"1": ["a"]}).measured("recall@5"))
    with pytest.raises(GateError):
        compare(MemoryBench({"1": {}, "2": {}}, {"1": ["a"]}).measured("recall@5"))
    bench = MemoryBench({"1": {"a": 0}}, {"1": ["a"]})
    with pytest.raises(GateError, match="no query counts"):
        compare(bench.measured("recall@5"))
    assert [verdict.status for verdict in bench.recorded] == ["error"]


def test_35_a_retriever_that_always_raises_is_no_score():
    def search(query):
        raise ConnectionError("index is down")

    dataset = Dataset.of(
        queries={f"q{i}": f"text {i}" for i in range(30)},
        qrels={f"q{i}": {"a": 1} for i in range(30)},
        name="handbook",
    )
    run = Run.from_retriever(search, dataset.queries, depth=10, name="live")
    bench = MemoryBench(dataset, run, {f"q{i}": ["a"] for i in range(30)})
    for text in ("recall@5 >= 0", "recall@5 >= baseline", "recall@5 < 0.5"):
        with pytest.raises(GateError, match=r"retriever failed on 30 of 30 queries.*index is down"):
            bench.check(text)
    assert {(verdict.status, verdict.value) for verdict in bench.recorded} == {("error", None)}


def test_52_equal_on_every_query_is_identical():
    outcomes = [True, False, True] * 100
    bench = MemoryBench(one_each(300), hits(outcomes), hits(outcomes))
    verdict = bench.check("recall@5 >= baseline")
    assert (verdict.p, verdict.p_one_sided, verdict.delta, verdict.identical) == (1.0, 1.0, 0.0, True)
    assert (verdict.status, verdict.queries) == ("passed", ())
    assert "identical" in bench.explain(verdict)
    assert "p = 1 two-sided" in bench.explain(verdict)
    # what is equal is not above: the strict comparison fails, by every rule that has a meaning for it
    for rule in ("mean", "significant"):
        with pytest.raises(GateFailure, match="equals"):
            bench.check("recall@5 > baseline", rule=rule)


@pytest.mark.parametrize("rule", ["mean", "significant"])
def test_54_what_the_test_cannot_resolve_is_never_softened(rule):
    bench = MemoryBench(one_each(4), hits([False] * 4), hits([True] * 4))
    verdict = bench.decide("recall@5 >= baseline", rule=rule)
    assert (verdict.status, verdict.value, verdict.reference) == ("failed", 0.0, 1.0)
    assert not verdict.resolvable
    if rule == "significant":
        assert "beyond the budget, and the test cannot resolve it" in verdict.reason
        assert "smallest p 0.0625 one-sided, 0.125 two-sided" in verdict.reason
        assert (verdict.p, verdict.smallest_p) == (0.0625, 0.0625)
        two = bench.decide("recall@5 >= baseline", rule=rule, sided="two")
        assert (two.status, two.p, two.smallest_p) == ("failed", 0.125, 0.125)


def test_57_the_test_is_paired():
    before = [True] * 140 + [False] * 60
    after = [False] * 10 + [True] * 130 + [False] * 60
    bench = MemoryBench(one_each(200), hits(after), hits(before))
    verdict = bench.decide("hit@5 >= baseline")
    assert (verdict.reference, verdict.value, verdict.status) == (0.7, 0.65, "failed")
    assert verdict.p == pytest.approx(2 / 2**10, abs=1e-15)
    assert verdict.p_one_sided == pytest.approx(1 / 2**10, abs=1e-15)
    assert (verdict.worse, verdict.better, verdict.equal) == (10, 0, 190)


def test_58_a_comparison_is_over_the_gold_never_over_the_intersection():
    gold = {f"q{i}": {"a": 1} for i in range(1, 5)}
    bench = MemoryBench(gold, {"q1": ["a"], "q2": ["a"]}, {f"q{i}": ["a"] for i in range(1, 5)})
    verdict = bench.decide("recall@5 >= baseline")
    assert (verdict.status, verdict.n, verdict.value, verdict.reference) == ("failed", 4, 0.5, 1.0)
    assert "2 queries returned nothing: q3, q4" in verdict.notes
    assert [query.query_id for query in verdict.queries] == ["q3", "q4"]
    assert all(query.note == "nothing was returned" for query in verdict.queries)
    other = MemoryBench(gold, {f"q{i}": ["a"] for i in range(1, 5)}, {"q1": ["a"], "q2": ["a"]})
    verdict = other.decide("recall@5 >= baseline")
    assert (verdict.ok, verdict.n, verdict.reference) == (True, 4, 0.5)
    assert "2 queries are not in the baseline and count 0 there: q3, q4" in verdict.baseline_changes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("recal@5 >= 0.8", "did you mean recall@5?"),
        ("", "empty gate"),
        ("recall@5 >= basline", "did you mean"),
    ],
)
def test_59_what_does_not_exist_never_passes(text, said):
    with pytest.raises(GateError) as caught:
        Gate.parse(text)
    assert said in str(caught.value)
    with pytest.raises(GateError):
        Gate.parse({})  # type: ignore[arg-type]


def test_60_a_floor_and_a_baseline_are_two_statements():
    n = 1000
    bench = MemoryBench(one_each(n), hits([i < 801 for i in range(n)]), hits([True] * n))
    measured = bench.measured("recall@5")
    floor = measured >= 0.80
    assert floor.status == "passed"
    with pytest.raises(GateFailure, match=r"0\.801 is below 1\.000"):
        measured >= baseline
    assert [verdict.status for verdict in bench.recorded] == ["passed", "failed"]


def test_62_a_baseline_is_scored_on_todays_labels_and_what_changed_is_named():
    old = Dataset.of(qrels={"q1": {"a": 1}, "q2": {"b": 1}}, name="handbook")
    stored = Run.of({"q1": ["a", "x"], "q2": ["b", "x"]}, name="main").with_header(
        labels=old.label_digest, dataset="handbook"
    )
    # the labels have moved on: x is what answers now, on both sides alike
    new = Dataset.of(qrels={"q1": {"x": 1}, "q2": {"x": 1}}, name="handbook")
    bench = MemoryBench(new, {"q1": ["a", "x"], "q2": ["b", "x"]}, stored)
    verdict = bench.check("recall@5 >= baseline")
    assert (verdict.value, verdict.reference, verdict.delta) == (1.0, 1.0, 0.0)
    assert any("the labels have changed" in change for change in verdict.baseline_changes)
    assert "changed: the labels have changed" in bench.explain(verdict)
    # another k or level than the baseline was once made for is no matter: it is a run, not a score
    assert bench.check("recall(rel=1)@1 >= baseline").ok
    same = MemoryBench(old, {"q1": ["a"], "q2": ["b"]}, stored)
    assert same.check("recall@5 >= baseline").baseline_changes == ()


def test_63_no_baseline_yet_is_an_error_with_the_command():
    bench = MemoryBench(one_each(5), hits([True] * 5))
    with pytest.raises(GateError, match=r"pytest --retrieval-update=new tests/test_x\.py::test_recall"):
        bench.measured("recall@5") >= baseline
    (verdict,) = bench.recorded
    assert (verdict.status, verdict.missing_baseline, verdict.ok) == ("error", True, False)
    assert "--retrieval-update=new" in verdict.reason


def test_64_what_the_bench_cannot_find_is_an_error_and_recorded():
    class Misconfigured(MemoryBench):
        def run(self, dataset, ref):
            raise GateError("there is no run 'hybird'; did you mean hybrid?")

    bench = Misconfigured(one_each(5), hits([True] * 5))
    with pytest.raises(GateError, match="did you mean hybrid"):
        bench.measured("recall@5", run="hybird") >= 0.5
    assert [(verdict.status, verdict.gate) for verdict in bench.recorded] == [("error", "recall@5 >= 0.5")]
