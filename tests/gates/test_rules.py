"""The four rules on the cases that people have hit, and the laws between them."""

from __future__ import annotations

import numpy as np
import pytest
from gates_support import MemoryBench, hits, one_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, GateFailure
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.options import RULES

# noninferior has no meaning without a margin
TARGETS = [(rule, "baseline - 0.02" if rule == "noninferior" else "baseline") for rule in RULES]
every_rule = pytest.mark.parametrize(("rule", "target"), TARGETS, ids=RULES)


@every_rule
def test_52_identical_runs_pass_with_p_1(rule, target):
    outcomes = [True, False, True] * 100
    bench = MemoryBench(one_each(300), hits(outcomes), hits(outcomes))
    verdict = bench.check(f"recall@5 >= {target}", rule=rule)
    assert (verdict.status, verdict.p, verdict.p_one_sided, verdict.delta) == ("passed", 1.0, 1.0, 0.0)
    assert verdict.identical


@every_rule
def test_54_four_queries_that_all_break_fail(rule, target):
    bench = MemoryBench(one_each(4), hits([False] * 4), hits([True] * 4))
    verdict = bench.decide(f"recall@5 >= {target}", rule=rule)
    assert (verdict.status, verdict.value, verdict.p_one_sided) == ("failed", 0.0, 0.0625)
    assert not verdict.resolvable
    two = bench.decide(f"recall@5 >= {target}", rule=rule, sided="two")
    assert (two.status, two.p, two.smallest_p) == ("failed", 0.125, 0.125)


@every_rule
def test_55_the_same_data_give_the_same_numbers(rule, target):
    # 60 queries whose ranks differ in many ways: no exact method applies
    rng = np.random.Generator(np.random.PCG64(7))
    gold = {f"q{i}": {"a": 1, "b": 2, "c": 1} for i in range(60)}
    before = {query: list(rng.permutation(["a", "b", "c", *"defghijk"])) for query in gold}
    after = {query: list(rng.permutation(["a", "b", "c", *"defghijk"])) for query in gold}
    found = [
        MemoryBench(gold, after, before).decide(f"ndcg(gain=exp)@10 >= {target}", rule=rule, sided="two")
        for _ in range(3)
    ]
    assert found[0].p_method == "Monte Carlo, 10,000 resamples"
    assert len({(each.p, each.p_one_sided, each.interval, each.bound, each.detectable) for each in found}) == 1
    # nothing is so rare that it has no chance
    worst = {query: ["x", "y", "z", "c"] for query in gold}
    assert 0 < MemoryBench(gold, worst, before).decide("ndcg(gain=exp)@10 >= baseline", rule="significant").p < 0.001


@every_rule
def test_57_ten_lost_and_none_gained_is_seen(rule, target):
    before = [True] * 140 + [False] * 60
    after = [False] * 10 + [True] * 130 + [False] * 60
    verdict = MemoryBench(one_each(200), hits(after), hits(before)).decide(f"hit@5 >= {target}", rule=rule, sided="two")
    assert (verdict.reference, verdict.value, verdict.status) == (0.7, 0.65, "failed")
    assert (verdict.p, verdict.worse, verdict.better) == (pytest.approx(2 / 2**10, abs=1e-15), 10, 0)


@every_rule
def test_58_queries_that_the_candidate_lacks_count_zero(rule, target):
    gold = {f"q{i}": {"a": 1} for i in range(1, 5)}
    bench = MemoryBench(gold, {"q1": ["a"], "q2": ["a"]}, {f"q{i}": ["a"] for i in range(1, 5)})
    verdict = bench.decide(f"recall@5 >= {target}", rule=rule)
    assert (verdict.status, verdict.n, verdict.value, verdict.worse) == ("failed", 4, 0.5, 2)


@every_rule
def test_59_what_does_not_exist_is_an_error_under_every_rule(rule, target):
    bench = MemoryBench(one_each(4), hits([True] * 4), hits([True] * 4))
    for text, said in (
        (f"recal@5 >= {target}", "did you mean recall@5?"),
        ("", "empty gate"),
        (f"recall@5 >= {target.replace('baseline', 'basline')}", "did you mean"),
    ):
        with pytest.raises(GateError) as caught:
            bench.check(text, rule=rule)
        assert said in str(caught.value)
    with pytest.raises(GateError):
        Gate.parse({}, rule=rule)  # type: ignore[arg-type]


@every_rule
def test_60_a_floor_that_holds_says_nothing_about_the_baseline(rule, target):
    n = 1000
    bench = MemoryBench(one_each(n), hits([i < 801 for i in range(n)]), hits([True] * n))
    assert bench.check("recall@5 >= 0.80").status == "passed"
    with pytest.raises(GateFailure):
        bench.check(f"recall@5 >= {target}", rule=rule)
    assert [verdict.status for verdict in bench.recorded] == ["passed", "failed"]


@every_rule
def test_62_both_sides_are_scored_on_todays_labels(rule, target):
    queries = [f"q{i}" for i in range(300)]
    old = Dataset.of(qrels={query: {"a": 1} for query in queries}, name="handbook")
    new = Dataset.of(qrels={query: {"x": 1} for query in queries}, name="handbook")
    lists = {query: ["a", "x"] for query in queries}
    stored = Run.of(lists, name="main").with_header(labels=old.label_digest, dataset="handbook")
    verdict = MemoryBench(new, lists, stored).check(f"recall@5 >= {target}", rule=rule)
    assert (verdict.status, verdict.value, verdict.reference) == ("passed", 1.0, 1.0)
    assert any("the labels have changed" in change for change in verdict.baseline_changes)


@every_rule
def test_63_no_baseline_is_an_error_with_the_command(rule, target):
    bench = MemoryBench(one_each(5), hits([True] * 5))
    with pytest.raises(GateError, match=r"pytest --retrieval-update=new tests/test_x\.py::test_recall"):
        bench.check(f"recall@5 >= {target}", rule=rule)
    assert [(verdict.status, verdict.missing_baseline) for verdict in bench.recorded] == [("error", True)]


# --- laws ------------------------------------------------------------------------------------------

outcomes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=14)


def graded(pairs):
    """Queries with four relevant documents each, of which so many are found before and after."""
    docs = ["a", "b", "c", "d"]
    gold = {f"q{i}": dict.fromkeys(docs, 1) for i in range(len(pairs))}

    def run(which):
        return {f"q{i}": ["z", *docs[: pair[which]]] for i, pair in enumerate(pairs)}

    return MemoryBench(gold, run(1), run(0))


@settings(deadline=None, max_examples=40)
@given(outcomes, st.sampled_from([0.02, 0.1, 0.3]), st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from(["one", "two"]))
def test_laws_between_the_rules(pairs, margin, alpha, sided):
    # a run without any judged document is an error
    assume(any(after for _, after in pairs) and any(before for before, _ in pairs))
    bench = graded(pairs)
    gate = f"recall@10 >= baseline - {margin}"
    found = {rule: bench.decide(gate, rule=rule, alpha=alpha, sided=sided) for rule in RULES}
    mean, significant = found["mean"], found["significant"]
    d = np.array([(after - before) / 4 for before, after in pairs])
    assert mean.ok == (d.mean() >= -margin - 1e-9)
    assert found["each"].ok == (not (d < -margin - 1e-9).any())
    if found["each"].ok or found["noninferior"].ok:
        assert mean.ok
    # "not significant" excuses only what the test could have seen
    k = int((np.abs(d) > 1e-9).sum())
    smallest = 2.0 ** (-k if sided == "one" else 1 - k)
    assert significant.ok == (mean.ok or (smallest < alpha and significant.p >= alpha))
    if not mean.ok and smallest >= alpha:
        assert significant.status == "failed"


def test_a_gain_that_is_too_small_is_no_significant_loss():
    # an improvement of .05 is demanded, .04 is found, and nothing is lost
    before = [False] * 10 + [True] * 240
    bench = MemoryBench(one_each(250), hits([True] * 250), hits(before))
    assert bench.decide("hit@1 >= baseline + 0.05").status == "failed"
    for sided in ("one", "two"):
        verdict = bench.decide("hit@1 >= baseline + 0.05", rule="significant", sided=sided)
        assert verdict.ok
    assert "speaks for a gain, not for a loss" in verdict.reason
    # identical runs show no gain, and the test has nothing to say
    same = MemoryBench(one_each(250), hits([True] * 250), hits([True] * 250))
    assert same.decide("hit@1 >= baseline + 0.05", rule="significant").status == "failed"


def test_golden_queries():
    rows = {f"q{i}": {"text": "x", "tags": {"critical": i < 12}} for i in range(100)}
    dataset = Dataset.of(queries=rows, qrels={query: {"gold": 1} for query in rows}, name="handbook")
    good = {query: ["gold", "x"] for query in rows}
    bad = good | {"q3": ["x"], "q50": ["x"], "q51": ["x"]}
    bench = MemoryBench(dataset, bad, good)
    golden = {"rule": "each", "where": {"critical": True}}
    assert bench.decide("hit@1 >= baseline - 0.05").ok
    with pytest.raises(GateFailure) as caught:
        bench.check("hit@1 >= baseline", **golden)
    assert caught.value.verdict.reason == "1 query loses, 0 allowed"
    assert [query.query_id for query in caught.value.verdict.queries] == ["q3"]
    assert bench.check("hit@1 >= baseline", **golden, allow=1).status == "passed"
    by = bench.decide("hit@1 >= baseline", rule="each", by="critical", allow=1)
    assert [(part.slice, part.status) for part in by.slices] == [
        ("critical=false", "failed"),
        ("critical=true", "passed"),
    ]
    with pytest.raises(GateError, match="did you mean true"):
        bench.check("hit@1 >= baseline", rule="each", where={"critical": "true"})
