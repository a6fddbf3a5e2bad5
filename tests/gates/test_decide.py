"""What each rule decides, what is an error instead, and what a verdict says beside its number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gates_support import MemoryBench, hits, one_each
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, GateFailure
from pytest_retrieval_eval.gates.decide import check, decide
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.target import against


def bench_of(after, before, **more):
    """Hit or miss for each query, after and before."""
    return MemoryBench(one_each(len(after)), hits(after), hits(before), **more)


def losing(n, lost, gained=0):
    before = [True] * (n - gained) + [False] * gained
    return bench_of([False] * lost + [True] * (n - lost), before)


# --- the rule mean -------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.01, 0.1, 0.25, -0.1]),
    st.sampled_from([">=", ">", "<=", "<"]),
)
def test_mean_is_the_literal_reading(outcomes, margin, sign):
    after, before = [a for a, _ in outcomes], [b for _, b in outcomes]
    n = len(outcomes)
    gap = sum(after) / n - (sum(before) / n - margin)
    verdict = bench_of(after, before).decide(f"hit@1 {sign} baseline - {margin}".replace("- -", "+ "))
    want = {">=": gap >= -1e-9, ">": gap > 1e-9, "<=": gap <= 1e-9, "<": gap < -1e-9}[sign]
    assert verdict.ok == want
    assert verdict.value == math.fsum(after) / n
    assert (verdict.worse, verdict.better)[:: 1 if sign in (">=", ">") else -1] == (
        sum(b > a for a, b in outcomes),
        sum(a > b for a, b in outcomes),
    )


def test_mean_never_passes_a_drop_whatever_p_is():
    verdict = losing(1000, 1).decide("hit@1 >= baseline")
    assert (verdict.status, verdict.p, verdict.p_one_sided) == ("failed", 1.0, 0.5)
    assert verdict.reason == "0.999 is below 1.000"
    within = losing(1000, 1).decide("hit@1 >= baseline - 0.001")
    assert within.status == "passed"
    assert within.margin == 0.001


def test_a_factor_is_part_of_the_difference():
    bench = losing(200, 10)
    verdict = bench.decide("hit@1 >= 0.9 * baseline")
    assert (verdict.ok, verdict.factor, verdict.target) == (True, 0.9, 0.9)
    assert verdict.delta == pytest.approx(0.05)
    assert verdict.interval.low < 0.05 < verdict.interval.high
    assert (verdict.worse, verdict.better) == (10, 190)
    assert bench.decide("hit@1 >= 0.95 * baseline").ok
    assert not bench.decide("hit@1 >= 0.96 * baseline").ok


def test_against_another_run():
    bench = bench_of([True] * 9 + [False], [True] * 10, bm25=hits([False] * 10), hybrid=hits([True] * 10))
    verdict = bench.decide("hit@1 >= against(bm25) + 0.5")
    assert (verdict.ok, verdict.reference_kind, verdict.baseline, verdict.margin) == (
        True,
        "run",
        "bm25",
        -0.5,
    )
    own = Run.of(hits([True] * 10), name="mine")
    with pytest.raises(GateFailure, match="against mine"):
        bench.measured("hit@1") >= against(own)
    assert "both sides are the same run" in bench.decide("hit@1 >= against(hybrid)", run="hybrid").notes


# --- significant ---------------------------------------------------------------------------------


def test_significant_needs_a_mean_below_and_a_small_p():
    # 3 lost, 2 gained of 100: below, and far from significant
    before = [True] * 98 + [False] * 2
    after = [False] * 3 + [True] * 97
    bench = bench_of(after, before)
    assert bench.decide("hit@1 >= baseline").status == "failed"
    verdict = bench.decide("hit@1 >= baseline", rule="significant")
    assert verdict.ok
    assert verdict.sided == "one"
    assert verdict.p == verdict.p_one_sided == pytest.approx(0.5)
    assert "is not below 0.05" in verdict.reason
    # 6 lost, none gained: p = 1/64
    six = losing(100, 6)
    assert six.decide("hit@1 >= baseline", rule="significant").status == "failed"
    assert six.decide("hit@1 >= baseline", rule="significant").p == pytest.approx(1 / 64)
    assert six.decide("hit@1 >= baseline", rule="significant", sided="two").p == pytest.approx(2 / 64)
    # within the budget nothing is tested
    assert six.decide("hit@1 >= baseline - 0.06", rule="significant").ok


def test_a_loss_that_was_seen_and_may_be_chance_is_said():
    three = bench_of([False] * 3 + [True] * 97, [True] * 98 + [False] * 2)
    (seen, unseen) = (note for note in three.decide("hit@1 >= baseline", rule="significant").notes if "weak" in note)
    assert seen == "weak: the mean fell by 0.010 and the test cannot tell that from chance"
    assert unseen.startswith("weak: a mean drop of up to 0.0")
    turned = bench_of([True] * 98 + [False] * 2, [False] * 3 + [True] * 97)
    notes = turned.decide("hit@1 <= baseline", rule="significant").notes
    assert "weak: the mean rose by 0.010 and the test cannot tell that from chance" in notes
    scaled = three.decide("hit@1 >= 1.001 * baseline", rule="significant").notes
    assert "weak: the mean fell by 0.010 and the test cannot tell that from chance" in scaled
    # What is no loss, and what the mean allows, is neither.
    for bench, gate in ((three, "hit@1 >= baseline - 0.02"), (turned, "hit@1 >= baseline + 0.02")):
        verdict = bench.decide(gate, rule="significant")
        assert verdict.ok
        assert not any("from chance" in note for note in verdict.notes)


def test_significant_falls_back_where_alpha_cannot_be_reached():
    five = losing(100, 5)  # smallest p 1/32 one-sided, 2/32 two-sided
    assert five.decide("hit@1 >= baseline", rule="significant").resolvable
    two = five.decide("hit@1 >= baseline", rule="significant", sided="two")
    assert (two.status, two.resolvable) == ("failed", False)
    assert "the means decide" in two.reason
    strict = five.decide("hit@1 >= baseline", rule="significant", alpha=0.01)
    assert (strict.status, strict.resolvable) == ("failed", False)


def test_significant_for_an_upper_limit_turns_the_sign():
    bench = bench_of([True] * 20, [True] * 10 + [False] * 10)
    verdict = bench.decide("hit@1 <= baseline", rule="significant")
    assert verdict.status == "failed"
    assert verdict.p == pytest.approx(1 / 2**10)
    assert (verdict.worse, verdict.better, verdict.delta) == (10, 0, 0.5)
    assert verdict.interval.low > 0
    assert bench.decide("hit@1 >= baseline", rule="significant").ok


# --- noninferior ---------------------------------------------------------------------------------


def test_noninferior_fails_where_evidence_is_absent():
    bench = losing(100, 1)
    assert bench.decide("hit@1 >= baseline - 0.02").ok
    verdict = bench.decide("hit@1 >= baseline - 0.02", rule="noninferior")
    assert verdict.status == "failed"
    assert verdict.bound < -0.02
    assert "a larger loss is not ruled out" in verdict.reason
    assert verdict.reason.startswith("the lower 95 % bound of the difference")


def test_noninferior_is_weak_with_few_losers_and_few_queries():
    few = bench_of([True] * 100, [True] * 100).decide("hit@1 >= baseline - 0.01", rule="noninferior")
    assert few.status == "weak"
    assert any("299 queries would do" in note for note in few.notes)
    many = bench_of([True] * 299, [True] * 299).decide("hit@1 >= baseline - 0.01", rule="noninferior")
    assert (many.status, many.bound) == ("passed", 0.0)


@pytest.mark.parametrize("text", ["hit@1 >= baseline", "hit@1 >= baseline + 0.01", "hit@1 <= baseline - 0.01"])
def test_noninferior_needs_a_margin(text):
    with pytest.raises(GateError, match=r"margin above 0.*rule='each'.*rule='mean'"):
        losing(10, 1).decide(text, rule="noninferior")


def test_noninferior_of_an_upper_limit():
    bench = bench_of([True] * 300, [True] * 299 + [False])
    verdict = bench.decide("hit@1 <= baseline + 0.02", rule="noninferior")
    assert verdict.ok
    assert 0 < verdict.bound < 0.02
    assert "upper 95 % bound" in verdict.reason
    worse = bench_of([True] * 100, [True] * 99 + [False])
    assert worse.decide("hit@1 <= baseline + 0.02", rule="noninferior").status == "failed"


# --- each ----------------------------------------------------------------------------------------


def test_each_counts_queries():
    bench = MemoryBench(
        {f"q{i}": {"a": 1, "b": 1} for i in range(10)},
        {f"q{i}": ["a", "x"] if i < 2 else ["x", "y"] if i == 2 else ["a", "b"] for i in range(10)},
        {f"q{i}": ["a", "b"] for i in range(10)},
    )
    verdict = bench.decide("recall@5 >= baseline", rule="each")
    assert (verdict.status, verdict.reason) == ("failed", "3 queries lose, 0 allowed")
    assert bench.decide("recall@5 >= baseline", rule="each", allow=3).status == "passed"
    one = bench.decide("recall@5 >= baseline - 0.5", rule="each")
    assert (one.status, one.reason) == ("failed", "1 query loses more than 0.5, 0 allowed")
    assert bench.decide("recall@5 >= baseline - 0.5", rule="each", allow=1).ok
    assert bench.decide("recall@5 <= baseline", rule="each").ok
    # a mean that rises is no excuse for a golden query that breaks
    up = bench_of([True] * 5 + [False], [False] * 5 + [True])
    assert up.decide("hit@1 >= baseline").ok
    assert not up.decide("hit@1 >= baseline", rule="each").ok
    assert "do not gain" in bench.decide("recall@5 > baseline", rule="each").reason


# --- a fixed target ------------------------------------------------------------------------------


def test_a_fixed_target_is_about_the_mean_and_never_softened():
    bench = bench_of([False] * 4, [True] * 4)
    for rule in ("mean", "significant"):
        verdict = bench.decide("hit@1 >= 0.1", rule=rule)
        assert (verdict.status, verdict.p, verdict.reference) == ("failed", None, None)
    assert any("does not soften" in note for note in bench.decide("hit@1 >= 0", rule="significant").notes)
    for rule in ("noninferior", "each"):
        with pytest.raises(GateError, match="fixed target"):
            bench.decide("hit@1 >= 0.1", rule=rule)


def test_a_fixed_target_shows_its_interval_and_the_lowest_queries():
    gold = {f"q{i}": {"a": 1, "b": 1} for i in range(4)}
    bench = MemoryBench(gold, {"q0": ["a", "b"], "q1": ["a"], "q2": ["x"], "q3": ["b", "x", "a"]})
    verdict = bench.decide("recall@5 >= 0.9")
    assert verdict.status == "failed"
    assert verdict.value == 0.625
    assert (verdict.worse, verdict.better, verdict.equal) == (2, 2, 0)
    assert verdict.interval.low < 0.625 < verdict.interval.high
    assert (verdict.interval.level, verdict.interval.method) == (0.95, "BCa")
    assert [(query.query_id, query.after, query.before) for query in verdict.queries] == [
        ("q2", 0.0, None),
        ("q1", 0.5, None),
    ]
    assert [query.query_id for query in bench.decide("recall@5 < 0.4").queries] == ["q0", "q3", "q1"]


# --- statuses ------------------------------------------------------------------------------------


def test_weak_means_that_a_drop_could_have_gone_unseen():
    small, large = bench_of([True] * 20, [True] * 20), bench_of([True] * 200, [True] * 200)
    assert small.decide("hit@1 >= baseline").status == "weak"
    assert small.decide("hit@1 >= baseline").detectable == pytest.approx(1 - 0.05 ** (1 / 20))
    assert large.decide("hit@1 >= baseline").status == "passed"
    assert small.decide("hit@1 >= baseline - 0.2").status == "passed"
    small.weak_drop = 0.15
    assert small.decide("hit@1 >= baseline").status == "passed"
    assert small.decide("hit@1 >= baseline", rule="each").status == "passed"
    large.weak_drop = 0.001
    assert large.check("hit@1 >= baseline").status == "weak"


def test_the_detectable_drop_scales_with_what_can_be_lost():
    bench = MemoryBench(one_each(100), hits([True] * 100), hits([True] * 100))
    assert bench.decide("hit@1 >= 0.5 * baseline").detectable == pytest.approx((1 - 0.05**0.01) * 0.5)


def test_a_session_that_writes_baselines_compares_with_itself():
    bench = bench_of([True, False], [True, True], update=True)
    for text in ("hit@1 >= baseline", "hit@1 > baseline", "hit@1 >= baseline + 0.1"):
        verdict = bench.check(text, judged=1)
        assert (verdict.status, verdict.ok, verdict.identical) == ("updated", True, True)


def test_a_minimum_of_judged_documents():
    gold = {f"q{i}": {"a": 1} for i in range(10)}
    bench = MemoryBench(gold, {f"q{i}": ["a", f"new{i}"] for i in range(10)}, {f"q{i}": ["a"] for i in range(10)})
    verdict = bench.decide("recall@2 >= baseline", judged=0.9)
    assert (verdict.status, verdict.ok) == ("inconclusive", False)
    assert verdict.reason == "judged@2 is 0.50 and should be at least 0.9; 10 pairs to judge"
    assert verdict.to_judge == tuple((f"q{i}", f"new{i}") for i in range(10))
    assert verdict.to_judge_total == 10
    with pytest.raises(GateFailure, match="INCONCLUSIVE"):
        bench.check("recall@2 >= 0.1", judged=0.51)
    assert bench.decide("recall@2 >= baseline", judged=0.5).ok


def test_unequal_footing():
    gold = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0, "z": 1}}
    bench = MemoryBench(
        gold,
        {"q1": ["x", "a"], "q2": ["a", "x"], "q3": ["y", "a"]},
        {"q1": ["a"], "q2": ["a"], "q3": ["a"]},
    )
    verdict = bench.decide("mrr@2 >= baseline")
    assert verdict.judged == (0.5, 1.0)
    assert verdict.judged_k == 2
    assert verdict.to_judge == (("q1", "x"), ("q2", "x"), ("q3", "y"))
    assert any(note.startswith("unequal footing: judged@2 fell from 1.00 to 0.50") for note in verdict.notes)
    back = MemoryBench(gold, {"q1": ["a"]}, {"q1": ["x", "a"], "q2": ["a", "x"]}).decide("mrr@2 >= baseline")
    assert back.to_judge == ()
    assert MemoryBench(gold, {"q1": ["a"]}).decide("mrr >= 0.1").judged_k == 10


def test_ties_are_noted_where_they_decide():
    gold = {f"q{i}": {"b": 1} for i in range(6)}
    tied = {f"q{i}": {"b": 1.0, "c": 1.0} for i in range(6)}
    verdict = MemoryBench(gold, tied).decide("mrr >= 0.4")
    assert (verdict.status, verdict.value, verdict.ties) == ("passed", 0.5, (0.5, 1.0))
    assert not [note for note in verdict.notes if note.startswith("ties")]
    verdict = MemoryBench(gold, tied).decide("mrr >= 0.8")
    assert verdict.status == "failed"
    assert any("lies between 0.500 and 1.000, and the gate would pass" in note for note in verdict.notes)
    clear = {f"q{i}": {"b": 2.0, "c": 1.0} for i in range(6)}
    against_clear = MemoryBench(gold, tied, clear).decide("mrr >= baseline")
    assert (against_clear.status, against_clear.ties) == ("failed", (0.5, 1.0))
    assert any("would pass for some" in note for note in against_clear.notes)
    assert MemoryBench(gold, clear).decide("mrr >= 0.8").ties is None
    baseline_tied = MemoryBench(gold, {f"q{i}": ["x", "b"] for i in range(6)}, tied).decide("mrr >= baseline")
    assert (baseline_tied.ok, baseline_tied.ties) == (True, None)
    alike = MemoryBench(gold, tied, tied).decide("mrr >= baseline")
    assert not [note for note in alike.notes if note.startswith("ties")]
    assert any(
        "of baseline main lies between 0.500 and 1.000, and the gate would fail" in n for n in baseline_tied.notes
    )


# --- errors that decide --------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_k_is_no_deeper_than_what_was_declared(side):
    deep, shallow = Run.of(hits([True] * 5), depth=10), Run.of(hits([True] * 5), depth=4)
    sides = (shallow, deep) if side == "candidate" else (deep, shallow)
    bench = MemoryBench(one_each(5), *sides)
    with pytest.raises(GateError, match=r"recall@5 looks at 5 ranks, but .* declares depth 4"):
        bench.decide("recall@5 >= baseline")
    assert bench.decide("recall@4 >= baseline").ok
    assert any("4 deep" in c or "10 deep" in c for c in bench.decide("mrr >= baseline").baseline_changes)


def test_who_asked_the_retriever_decides_what_makes_a_run_deeper():
    asked = {f"q{number}": str(number) for number in range(1, 6)}
    shallow = Run.from_retriever(lambda text: ["d" + text], asked, depth=4, name="retriever", progress=False)
    deep = Run.of(hits([True] * 5), depth=10)
    with pytest.raises(GateError, match="declares depth 4: set the ini value retrieval_depth = 5, or gate at k = 4"):
        MemoryBench(one_each(5), shallow, deep).decide("recall@5 >= baseline")
    with pytest.raises(GateError, match="retrieval_depth = 5 and save baseline main anew, or gate at k = 4"):
        MemoryBench(one_each(5), deep, shallow).decide("recall@5 >= baseline")


def test_lists_that_all_end_early_are_a_note():
    bench = MemoryBench(one_each(5), hits([True] * 5))
    verdict = bench.decide("recall@10 >= 0.5")
    assert any("every list ends at rank 2, and recall@10 looks at 10" in note for note in verdict.notes)
    declared = MemoryBench(one_each(5), Run.of(hits([True] * 5), depth=10)).decide("recall@10 >= 0.5")
    assert not any("declares no depth" in note for note in declared.notes)
    assert any("5 lists are shorter than 10 ranks (10 hits): q" in note for note in declared.notes)


@pytest.mark.parametrize("side", ["candidate", "baseline"])
@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({f"q{i:03d}": [] for i in range(6)}, "returned no document for any query"),
        ({"other": ["gold"]}, "has none of the 6 judged queries"),
        ({" q000": ["gold"]}, "once white space around them is stripped"),
        ({f"q{i:03d}": ["a", "b"] for i in range(6)}, "no judged document in any list"),
        (
            {f"q{i:03d}": ["GOLD"] for i in range(6)},
            "They match without regard to case: 'gold' in the labels, 'GOLD'",
        ),
        ({f"q{i:03d}": ["gold#2"] for i in range(6)}, "it ranks parts of documents"),
    ],
)
def test_what_measures_nothing_is_an_error(side, run, said):
    good = hits([True] * 6)
    sides = (run, good) if side == "candidate" else (good, run)
    bench = MemoryBench(one_each(6), *sides)
    with pytest.raises(GateError) as caught:
        bench.check("recall@5 >= baseline")
    assert said in str(caught.value)
    (verdict,) = bench.recorded
    assert (verdict.status, verdict.value) == ("error", None)


def test_ids_that_match_after_normalisation_are_named():
    gold = {f"q{i}": {"Caf\u00e9": 1} for i in range(5)}
    bench = MemoryBench(gold, {f"q{i}": ["Cafe\u0301"] for i in range(5)})
    with pytest.raises(GateError) as caught:
        bench.decide("hit@1 >= 0")
    said = "after Unicode normalisation (NFC): 'Caf\\xe9' in the labels, 'Cafe\\u0301' in the run"
    assert said in str(caught.value)


def test_a_run_without_a_query_is_an_error(tmp_path):
    path = tmp_path / "none.run.jsonl"
    path.write_text('{"format": "retrieval-run", "version": 1}\n')
    with pytest.raises(GateError, match="no quer"):
        MemoryBench(one_each(6), Run.read(path)).decide("hit@1 >= 0")


def test_four_queries_without_a_judged_document_are_a_bad_score():
    bench = MemoryBench(one_each(4), {f"q{i:03d}": ["x"] for i in range(4)})
    assert bench.decide("hit@1 >= 0.5").status == "failed"


def tagged(n):
    """Labels as :func:`one_each`, the even queries tagged as old and the odd ones as new."""
    return Dataset.of(
        queries={f"q{i:03d}": {"text": "?", "tags": {"age": "new" if i % 2 else "old"}} for i in range(n)},
        qrels=one_each(n),
        name="d",
    )


@pytest.mark.parametrize("side", ["candidate", "baseline"])
@pytest.mark.parametrize("options", [{"where": {"age": "new"}}, {"by": "age", "min_n": 3}], ids=["where", "by"])
def test_a_slice_that_a_run_was_not_asked_is_an_error_and_no_zero(side, options):
    every = hits([True] * 8)
    old = {query: docs for number, (query, docs) in enumerate(every.items()) if number % 2 == 0}
    for sides in ((old, every) if side == "candidate" else (every, old), (old, old)):
        bench = MemoryBench(tagged(8), *sides)
        with pytest.raises(GateError, match=r"has no list for the 4 queries that count of d \(age=new\)"):
            bench.decide("hit@1 >= baseline", **options)
    assert bench.decide("hit@1 >= baseline", where={"age": "old"}).n == 4
    some = bench.decide("hit@1 >= baseline", where={"age": ["old", "new"]})  # of some of them: 0, as ever
    assert (some.n, some.value) == (8, 0.5)


def test_a_slice_that_is_too_small_to_decide_may_be_new():
    every = hits([True] * 4)
    bench = MemoryBench(tagged(3), every, {"q000": every["q000"], "q002": every["q002"]})
    verdict = bench.decide("hit@1 >= baseline", by="age", min_n=2)
    assert (verdict.ok, [(each.slice, each.n, each.decides) for each in verdict.slices]) == (
        True,
        [("age=old", 2, True), ("age=new", 1, False)],
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([True, False, None])), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.25]),
)
def test_new_queries_do_not_make_up_for_a_loss_on_those_of_the_baseline(outcomes, margin):
    after, before = hits([a for a, _ in outcomes]), hits([bool(b) for _, b in outcomes])
    old = [(query, a, b) for query, (a, b) in zip(after, outcomes, strict=True) if b is not None]
    if not old:
        return
    bench = MemoryBench(one_each(len(outcomes)), after, {query: before[query] for query, _, _ in old})
    verdict = bench.decide(f"hit@1 >= baseline - {margin}")
    n = len(outcomes)
    whole = sum(a for a, _ in outcomes) / n >= sum(b is True for _, b in outcomes) / n - margin - 1e-9
    known = sum(a for _, a, _ in old) / len(old) >= sum(b for _, _, b in old) / len(old) - margin - 1e-9
    assert verdict.ok == (whole and known)
    assert (verdict.n, verdict.value) == (n, math.fsum(a for a, _ in outcomes) / n)
    if whole and not known:
        assert verdict.status == "inconclusive"
        assert "count 0 there, would make up for it" in verdict.reason


def test_an_empty_slice_of_results_is_a_score_where_the_run_is_not_empty():
    dataset = Dataset.of(
        queries={
            f"q{i}": {"text": "?", "tags": {"type": "policy" if i < 2 else "price", "new": i == 0}} for i in range(8)
        },
        qrels={f"q{i}": {"a": 1} for i in range(8)},
    )
    bench = MemoryBench(
        dataset, {f"q{i}": [] if i < 2 else ["a"] for i in range(8)}, {f"q{i}": ["a"] for i in range(8)}
    )
    verdict = bench.decide("hit@1 >= baseline", where={"type": "policy"})
    assert (verdict.status, verdict.value, verdict.n, verdict.where) == ("failed", 0.0, 2, "type=policy")
    assert bench.decide("hit@1 >= baseline", where={"type": ["price"]}).n == 6
    assert bench.decide("hit@1 >= 0", where={"type": ["price", "policy"], "new": False}).n == 7
    for where, said in (
        ({"typ": "policy"}, "type"),
        ({"type": "polcy"}, "did you mean"),
        ({"new": "true"}, "did you mean true"),
        ({"type": "price", "new": True}, "no query"),
    ):
        with pytest.raises(DataError, match=said):
            bench.decide("hit@1 >= baseline", where=where)


def test_no_query_counts_at_the_level():
    bench = MemoryBench({"q1": {"a": 1}, "q2": {"b": 2}}, {"q1": ["a"], "q2": ["b"]})
    assert bench.decide("recall(rel=2)@5 >= 0.5").n == 1
    with pytest.raises(GateError, match="no query counts"):
        bench.decide("recall(rel=3)@5 >= 0")


def test_failures_are_tolerated_only_by_number_and_count_zero():
    run = Run.of({f"q{i:03d}": ["gold"] for i in range(2, 10)}, errors={"q000": "timeout", "q001": "boom\nboom"})
    good = hits([True] * 10)
    for sides in ((run, good), (good, run)):
        bench = MemoryBench(one_each(10), *sides)
        with pytest.raises(GateError) as caught:
            bench.decide("hit@1 >= baseline", allow_failures=1)
        assert "retriever failed on 2 of 10 queries" in str(caught.value)
        assert "1 tolerated: q000: timeout; q001: boom\\nboom" in str(caught.value)
        verdict = bench.decide("hit@1 >= baseline - 0.2", allow_failures=2)
        assert verdict.ok
        assert {verdict.value, verdict.reference} == {0.8, 1.0}
        assert any("q000, q001" in note for note in verdict.notes)


def test_unanswerable_and_unjudged_queries_are_said():
    dataset = Dataset.of(
        queries={"q1": "a", "q2": "b", "q3": {"text": "c", "unanswerable": True}, "q4": "d"},
        qrels={"q1": {"a": 1}, "q2": {"a": 0}, "q4": {}},
    )
    verdict = MemoryBench(dataset, {"q1": ["a"], "q9": ["z"]}).decide("recall@5 >= 0.5")
    notes = " | ".join(verdict.notes)
    for said in (
        "unjudged",
        "nothing relevant",
        "unanswerable",
        "1 run query has no judgments: 9".replace("9", "q9"),
    ):
        assert said in notes
    assert verdict.n == 1


def test_duplicates_are_said():
    verdict = MemoryBench({"q": {"a": 1, "b": 1}}, {"q": ["a", "a"]}).decide("recall@2 >= 0.5")
    assert verdict.value == 0.5
    assert any("repeated" in note for note in verdict.notes)


def test_notes_are_one_line_each():
    verdict = MemoryBench({"q\n1": {"a": 1}, "q2": {"a": 1}}, {"q2": ["a"]}).decide("recall@2 >= 0.5")
    assert any("q\\n1" in note for note in verdict.notes)
    assert not any("\n" in note for note in verdict.notes)


def test_a_measure_of_lists_counts_no_empty_ones_and_cannot_be_paired():
    gold = {"q1": {"a": 1}, "q2": {"a": 1}}
    bench = MemoryBench(gold, {"q1": ["a"], "q2": []}, {"q1": ["a"], "q2": ["a"]})
    assert bench.decide("judged@5 >= 0.9").n == 1
    with pytest.raises(GateError, match=r"counts other queries .*1 query: q2.*fixed target"):
        bench.decide("judged@5 >= baseline")


# --- check ---------------------------------------------------------------------------------------


def test_check_records_before_it_raises_and_decide_never():
    bench = losing(10, 5)
    gate = Gate.parse("hit@1 >= baseline")
    assert not decide(gate, bench)
    assert bench.recorded == []
    with pytest.raises(GateFailure) as caught:
        check(gate, bench)
    assert caught.value.verdict is bench.recorded[0]
    assert str(caught.value).startswith("hit@1 >= baseline: FAILED. 0.500 is below 1.000")


def test_inputs_are_not_mutated():
    gold, run, base = one_each(6), hits([True] * 6), hits([False] * 3 + [True] * 3)
    copies = [
        {key: (dict(v) if isinstance(v, dict) else list(v)) for key, v in each.items()} for each in (gold, run, base)
    ]
    MemoryBench(gold, run, base).decide("ndcg@5 >= baseline")
    assert [gold, run, base] == copies


def test_the_same_data_gives_the_same_verdict():
    rng = np.random.default_rng(7)
    after, before = rng.random(60) < 0.6, rng.random(60) < 0.7
    verdicts = [bench_of(after.tolist(), before.tolist()).decide("hit@1 >= baseline") for _ in range(3)]
    assert verdicts[0] == verdicts[1] == verdicts[2]


@pytest.mark.parametrize("gate", ["num_rel_ret >= 1", "gm(hit@1) >= baseline", "condensed(num_ret) >= baseline"])
def test_what_is_no_mean_cannot_be_gated(gate):
    with pytest.raises(GateError, match=r"over the queries, and gates compare means, query by query: gate .*overall"):
        losing(4, 0).decide(gate)


def test_a_condensed_measure_is_gated_and_looks_at_its_own_relevant_documents():
    bench = MemoryBench(one_each(2), {q: ["new", "other", "gold"] for q in one_each(2)}, hits([True, True]))
    verdict = bench.decide("condensed(mrr@1) >= baseline")
    assert (verdict.status, verdict.value, verdict.judged_k) == ("failed", 0.0, 1)
    assert verdict.queries[0].moves[0].doc_id == "gold"
    assert bench.decide("condensed(mrr) >= 0.5").ok
