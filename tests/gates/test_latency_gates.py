"""Gates on what queries take and cost: percentiles, units, what has no time, what makes two lists unlike."""

from __future__ import annotations

import numpy as np
import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import (
    DataError,
    Dataset,
    Gate,
    GateError,
    GateFailure,
    MeasureError,
    Qrels,
    Queries,
    Run,
    SettingsError,
    evaluate,
)
from pytest_retrieval_eval.gates.target import baseline
from pytest_retrieval_eval.reports.text import explain

MILLISECONDS = st.lists(st.floats(0, 1e5), min_size=2, max_size=25)


def timed(milliseconds, name="run", timing=None, **more):
    ids = [f"q{number:03d}" for number in range(len(milliseconds))]
    seconds = {query: each / 1000 for query, each in zip(ids, milliseconds, strict=True)}
    run = Run.of({query: ["gold"] for query in ids}, name=name, seconds=seconds, **more)
    return run if timing is None else run.with_header(timing=timing)


def labels(n):
    return {f"q{number:03d}": {"gold": 1} for number in range(n)}


def bench(after, before=None, **runs):
    known = None if before is None else timed(before, "main")
    return MemoryBench(labels(len(after)), timed(after, "new"), known, **runs)


@given(MILLISECONDS, st.sampled_from([50, 75, 90, 95, 99]))
def test_a_percentile_is_that_of_the_times(times, share):
    found = evaluate(Qrels.of(labels(len(times))), timed(times), f"latency.p{share}")[f"latency.p{share}"]
    assert found.overall == pytest.approx(np.percentile(times, share), rel=1e-9, abs=1e-6)
    assert found.n == len(times)


@settings(max_examples=40, deadline=None)
@given(MILLISECONDS, st.data())
def test_a_slower_query_never_makes_a_gate_pass(times, data):
    """Monotone: whatever passes with slower queries passes with the times before."""
    slower = [each + data.draw(st.floats(0, 1e4)) for each in times]
    limit = data.draw(st.floats(0, 1e5))
    for target in (f"{limit!r}ms", "1.2 * baseline"):
        gate = f"latency.p90 <= {target}"
        if bench(slower, times).decide(gate).ok:
            assert bench(times, times).decide(gate).ok


def test_a_limit_in_the_text_has_a_unit():
    found = bench([10.0, 20.0, 40.0])
    assert found.check("latency.p50 <= 0.02s").target == 20.0
    assert found.measured("latency.p50") <= 20
    with pytest.raises(GateFailure, match=r"latency.p50 <= 19ms: FAILED. 20.0 ms is above 19.0 ms"):
        found.check("latency.p50 <= 19 ms")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("latency.p95 <= 250", "a time needs its unit, as in 250ms or 250s"),
        ("latency.p95 <= baseline + 20", "a time needs its unit, as in 20ms or 20s"),
        ("latency.p95 <= 2ms * baseline", "a time times a time is none"),
        ("latency.p95 <= 250 min", "'min' is no target"),
        ("recall@5 >= 800ms", "the measure has no unit: write the number alone"),
        ("cost.mean <= 2s", "the measure has no unit"),
    ],
)
def test_a_unit_that_is_missing_or_out_of_place_is_refused(text, sentence):
    with pytest.raises(SettingsError, match=r".") as caught:
        Gate.parse(text)
    assert sentence in str(caught.value)


def test_a_gate_is_read_again_as_it_is_printed():
    for text in ("latency.p95 <= 250ms", "latency.mean < 1.2 * baseline + 0.5s", "latency.p99 <= against(bm25) - 3ms"):
        gate = Gate.parse(text)
        assert Gate.parse(str(gate)) == gate
    assert str(Gate.parse("latency.p95 <= baseline*1.5 + 1s")) == "latency.p95 <= 1.5 * baseline + 1000ms"


def test_a_rise_of_the_tail_fails_against_the_baseline():
    before = [20.0 + each % 7 for each in range(200)]
    after = [each * (3 if place % 10 == 0 else 1) for place, each in enumerate(before)]
    found = bench(after, before)
    assert found.decide("latency.p50 <= baseline * 1.2").ok
    verdict = found.decide("latency.p95 <= baseline * 1.2", rule="significant")
    assert verdict.status == "failed"
    assert verdict.p < 0.05
    assert verdict.measured_in == "ms"
    assert verdict.interval.low > 0
    assert "q190  latency 21.0 ms → 63.0 ms" in explain(verdict, limit=None)


def test_fifty_queries_are_enough_for_the_test_of_a_p95():
    # Noise alone. By the two slowest queries that make the p95 no pattern of swaps could be significant here, and the
    # numbers would decide.
    rng = np.random.default_rng(1)
    own = 50 * np.exp(rng.normal(0, 0.6, 50))
    before, after = (np.round(own * np.exp(rng.normal(0, 0.2, 50)), 1).tolist() for _ in range(2))
    verdict = bench(after, before).decide("latency.p95 <= baseline", rule="significant")
    assert verdict.value > verdict.reference
    assert verdict.resolvable
    assert verdict.ok
    assert "is not below 0.05" in verdict.reason
    slower = bench([1.5 * each for each in before], before).decide("latency.p95 <= baseline", rule="significant")
    assert (slower.status, slower.p < 0.001) == ("failed", True)


def test_a_bound_on_the_rise_rules_a_loss_out():
    before = [20.0 + each % 7 for each in range(200)]
    same = bench([each * 1.01 for each in before], before)
    assert same.decide("latency.p95 <= baseline * 1.1", rule="noninferior").status == "passed"
    assert same.decide("latency.p95 <= baseline + 2ms", rule="noninferior").bound == pytest.approx(0.26)
    with pytest.raises(GateError, match=r"needs a margin above 0.*latency.p95 <= baseline \+ 5ms"):
        same.decide("latency.p95 <= baseline", rule="noninferior")
    noisy = bench([20.0 + (each * 37) % 50 for each in range(30)], [20.0 + (each * 11) % 50 for each in range(30)])
    assert noisy.decide("latency.p50 <= baseline * 1.02", rule="noninferior").status == "failed"


def test_few_queries_that_jump_about_are_weak():
    verdict = bench([10.0, 90.0, 20.0, 40.0], [90.0, 10.0, 40.0, 20.0]).decide("latency.p50 <= baseline")
    assert verdict.status == "weak"
    assert "a change of up to" in " ".join(verdict.notes)


def test_each_counts_slower_queries():
    found = bench([10.0, 25.0, 20.0], [10.0, 20.0, 20.0])
    assert found.decide("latency.p95 <= baseline + 5ms", rule="each").ok
    with pytest.raises(GateFailure, match=r"1 query rises more than 4ms, 0 allowed"):
        found.check("latency.p95 <= baseline + 4ms", rule="each")


def test_a_query_without_a_time_is_an_error():
    run = Run.of({query: ["gold"] for query in labels(3)}, name="new", seconds={"q000": 0.1, "q002": 0.2})
    with pytest.raises(GateError, match=r"has a time for 2 of 3 queries that count; 1 lacks one \(q001\)"):
        MemoryBench(labels(3), run).decide("latency.p95 <= 250ms")
    with pytest.raises(GateError, match=r"has a time for none of the queries that count"):
        MemoryBench(labels(1), {"q000": ["gold"]}).decide("latency.p95 <= 250ms")
    with pytest.raises(GateError, match=r"has a cost for none of the queries"):
        bench([3.0]).decide("cost.mean <= 1")
    # A baseline without times is refused as well.
    with pytest.raises(GateError, match=r"the run main has a time for none of the queries"):
        MemoryBench(labels(1), timed([3.0]), {"q000": ["gold"]}).decide("latency.p95 <= baseline")


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_time_that_cannot_be_one_is_refused(value):
    run = Run.of({"q000": ["gold"]}, name="new", seconds={"q000": value})
    with pytest.raises(DataError, match=r"the run new: query 'q000' has the seconds"):
        MemoryBench(labels(1), run).decide("latency.p95 <= 250ms")


def test_a_query_that_failed_leaves_both_sides():
    times = [10.0] * 9 + [900.0]
    failed = timed(times, "new", errors={"q009": "timeout"})
    found = MemoryBench(labels(10), failed, timed(times, "main"))
    with pytest.raises(GateError, match=r"retriever failed on 1 of 10 queries"):
        found.decide("latency.p95 <= baseline")
    verdict = found.decide("latency.p95 <= baseline", allow_failures=1)
    assert (verdict.n, verdict.value, verdict.reference) == (9, 10.0, 10.0)
    assert "1 query on which a retriever failed is left out of both sides: q009" in verdict.notes
    scores = evaluate(Qrels.of(labels(10)), failed, "latency.p99")
    assert scores["latency.p99"].n == 9
    assert scores.counts.failed == ("q009",)


def test_queries_without_an_answer_take_time_as_well():
    queries = Queries.of({"q000": "one", "q001": {"text": "two", "unanswerable": True}})
    dataset = Dataset.of(queries=queries, qrels={"q000": {"gold": 1}}, name="handbook")
    verdict = MemoryBench(dataset, timed([10.0, 30.0])).decide("latency.mean <= 30ms")
    assert (verdict.n, verdict.value) == (2, 20.0)


def test_costs_have_no_unit():
    run = timed([1.0, 1.0], costs={"q000": 0.002, "q001": 0.004})
    assert MemoryBench(labels(2), run).decide("cost.mean <= 0.003").value == pytest.approx(0.003)
    assert MemoryBench(labels(2), run).decide("cost.p50 <= 0.003").ok


def test_how_times_were_taken_is_said():
    cold = {"warmup": 0, "repeat": 1, "batch": 1, "concurrency": 1, "machine": "Linux x86_64, 2 CPUs"}
    warm = {**cold, "warmup": 10, "repeat": 5, "machine": "Linux x86_64, 8 CPUs"}
    notes = MemoryBench(labels(20), timed([5.0] * 20, "new", cold)).decide("latency.p95 <= 9ms").notes
    assert any("times of one cold pass" in note and "retrieval_repeat" in note for note in notes)
    pair = MemoryBench(labels(20), timed([5.0] * 20, "new", warm), timed([5.0] * 20, "main", cold))
    notes = pair.decide("latency.p95 <= baseline").notes
    assert "times of the median of 5 passes after 10 queries to warm up" in notes
    footing = "the machine was Linux x86_64, 2 CPUs for baseline main and is Linux x86_64, 8 CPUs for run new"
    assert f"unequal footing: {footing}" in notes


def test_a_percentile_of_few_queries_says_so():
    notes = bench([5.0] * 20).decide("latency.p99 <= 9ms").notes
    assert any("latency.p99 over 20 queries is next to the slowest of them: with 100" in note for note in notes)
    assert not any("next to the slowest" in note for note in bench([5.0] * 20).decide("latency.p95 <= 9ms").notes)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"labels": "contains(kilt)"}, "reads the times and costs of a run, so that labels="),
        ({"unit": "document"}, "leave unit='document' out"),
        ({"judged": 0.9}, "and no judgments of documents"),
    ],
)
def test_what_is_about_documents_is_refused(options, sentence):
    with pytest.raises(GateError, match=r".") as caught:
        bench([1.0]).decide("latency.p95 <= 9ms", **options)
    assert sentence in str(caught.value)


def test_trec_mode_and_other_lists_know_no_times():
    with pytest.raises(MeasureError, match=r"trec_eval knows no times"):
        evaluate(Qrels.of(labels(1)), timed([1.0]), "latency.p95", trec=True)
    with pytest.raises(MeasureError, match=r"condensed makes other lists"):
        evaluate(Qrels.of(labels(1)), timed([1.0]), "condensed(latency.p95)")


def test_slices_have_percentiles_of_their_own():
    queries = Queries.of({f"q{n:03d}": {"text": "?", "tags": {"type": "ab"[n % 2]}} for n in range(40)})
    dataset = Dataset.of(queries=queries, qrels=labels(40), name="handbook")
    found = MemoryBench(dataset, timed([10.0 if n % 2 else 50.0 for n in range(40)]))
    verdict = found.decide("latency.p95 <= 20ms", by="type")
    assert {each.slice: each.value for each in verdict.slices} == {"type=a": 50.0, "type=b": 10.0}
    assert verdict.status == "failed"


def test_in_python_the_unit_is_milliseconds():
    measured = bench([10.0, 30.0], [10.0, 30.0]).measured("latency.mean")
    assert float(measured) == 20.0
    assert measured <= baseline * 1.1
