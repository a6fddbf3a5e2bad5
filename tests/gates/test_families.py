"""Comparisons that are decided together: lists of measures, lists of gates, and ``GateFamily``."""

from __future__ import annotations

import json

import pytest
from gates_support import MemoryBench, hits, one_each

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.errors import GateError, GateFailure
from pytest_retrieval_eval.gates.families import GateFamily, check_gates, parse_gates
from pytest_retrieval_eval.gates.target import baseline
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.stats.power import smallest_detectable_drop


class FamilyBench(MemoryBench):
    """A bench whose comparisons can be collected."""

    family = None

    def make(self, correction="holm"):
        return GateFamily(self, self._begin, self._end, correction)

    def _begin(self, family):
        if self.family is not None:
            raise GateError("a gate_family stands inside another")
        self.family = family

    def _end(self, undecided):
        self.family, self.undecided = None, undecided


def bench_of(lost, gained=0, n=60):
    after = [False] * lost + [True] * (n - lost)
    return FamilyBench(one_each(n), hits(after), hits([True] * (n - gained) + [False] * gained))


# --- a list of measures ----------------------------------------------------------------------------


def test_a_list_of_measures_is_one_gate():
    bench = bench_of(0)
    verdict = bench.measured(["hit@1", "mrr", "ndcg@10"]) >= baseline - 0.05
    assert (verdict.gate, verdict.status, verdict.measure) == (
        "hit@1, mrr, ndcg@10 >= baseline - 0.05",
        "passed",
        "hit@1, mrr, ndcg@10",
    )
    assert [member.gate.split()[0] for member in verdict.members] == ["hit@1", "mrr", "ndcg@10"]
    assert verdict.reason == "all 3 comparisons hold"
    assert bench.recorded == [verdict]
    assert verdict.dataset == "handbook"
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict(), allow_nan=False))) == verdict


def test_it_fails_where_one_of_them_does():
    gold = {f"q{i}": {"a": 1} for i in range(20)}
    bench = MemoryBench(gold, {f"q{i}": ["x", "a"] for i in range(20)}, {f"q{i}": ["a"] for i in range(20)})
    with pytest.raises(GateFailure) as caught:
        bench.measured(["recall@5", "mrr"]) >= baseline
    verdict = caught.value.verdict
    assert (verdict.status, [member.status for member in verdict.members]) == ("failed", ["weak", "failed"])
    assert verdict.reason == "1 of 2 comparisons does not hold: mrr >= baseline, 0.500 is below 1.000"
    text = str(caught.value)
    assert text.startswith("recall@5, mrr >= baseline: FAILED. 1 of 2 comparisons does not hold")
    assert "mrr >= baseline: FAILED." in text
    assert "q0  mrr 1.000 → 0.500" in text
    assert len(bench.recorded) == 1


def test_the_list_owns_its_correction():
    # one-sided p = 67/2048 for both measures, which are the same on these lists
    bench = bench_of(9, 2)
    assert bench.decide("hit@1 >= baseline", rule="significant").status == "failed"
    verdict = bench.measured(["hit@1", "hit@2"], rule="significant") >= baseline
    assert verdict.ok
    assert [member.p_adjusted for member in verdict.members] == [pytest.approx(2 * 67 / 2048)] * 2
    with pytest.raises(GateFailure):
        bench.measured(["hit@1", "hit@2"], rule="significant", correction="none") >= baseline
    # Benjamini & Hochberg leave equal p-values as they are
    with pytest.raises(GateFailure):
        bench.measured(["hit@1", "hit@2"], rule="significant", correction="bh") >= baseline


def test_slices_of_several_measures_are_one_family():
    bench = bench_of(0, n=40)
    rows = {query: {"text": "x", "tags": {"type": "ab"[i % 2]}} for i, query in enumerate(bench.data.qrels.query_ids)}
    bench.data = Dataset.of(queries=rows, qrels=one_each(40), name="handbook")
    verdict = bench.measured(["hit@1", "hit@2"], by="type", rule="significant") >= baseline
    assert [len(member.slices) for member in verdict.members] == [2, 2]
    assert {part.correction for member in verdict.members for part in member.slices} == {"holm"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda bench: bench.measured([]), "empty list of measures"),
        (lambda bench: bench.measured(["mrr", "mrr"]), "stands twice"),
        (lambda bench: float(bench.measured(["mrr", "map"])), "no one value"),
        (lambda bench: bench.measured(["mrr", "recal@5"]), "did you mean recall@5"),
        (lambda bench: bool(bench.measured(["mrr", "map"])), "no truth value"),
        (lambda bench: bench.measured(["mrr", "map"]) == 1, "chance"),
        (lambda bench: bench.measured(["mrr", "map"]) >= "x", "real number"),
        (lambda bench: parse_gates([]), "empty list of gates"),
        (lambda bench: parse_gates("mrr >= 0.5"), "a list of gates"),
        (lambda bench: parse_gates(["mrr >= 0.5", "mrr>=.5"]), "stands twice"),
        (lambda bench: parse_gates(["mrr >= 0.5", ""]), "an empty gate"),
    ],
)
def test_what_is_no_list_of_measures(make, said):
    with pytest.raises(GateError) as caught:
        make(bench_of(0))
    assert said in str(caught.value)


def test_a_list_of_gates_in_texts():
    bench = bench_of(6)
    with pytest.raises(GateFailure) as caught:
        check_gates(parse_gates(["hit@1 >= 0.8", "mrr >= baseline"], where=None), bench)
    assert caught.value.verdict.gate == "hit@1 >= 0.8, mrr >= baseline"
    assert [member.status for member in caught.value.verdict.members] == ["passed", "failed"]
    with pytest.raises(GateError, match="is for a family of comparisons, and this is one"):
        check_gates(parse_gates(["hit@1 >= baseline"], rule="significant", correction="holm"), bench)
    alone = check_gates(parse_gates(["hit@1 >= 0.8"]), bench)
    assert (alone.gate, alone.members) == ("hit@1 >= 0.8", ())
    with pytest.raises(GateError):
        check_gates(parse_gates(["hit@1 >= 0.8", "hit(rel=9)@1 >= 0.5"]), bench)
    assert (bench.recorded[-1].status, bench.recorded[-1].gate) == ("error", "hit@1 >= 0.8, hit(rel=9)@1 >= 0.5")


def test_weak_asks_what_the_correction_would_have_let_through():
    """The drop that 80 % power finds grows with the family where its correction decides, and only there."""
    bench = bench_of(2, gained=2, n=400)
    d = [-1.0] * 2 + [0.0] * 396 + [1.0] * 2

    def found(*measures, weak_drop=0.02, **options):
        bench.weak_drop = weak_drop
        verdict = bench.measured(list(measures), **options) >= baseline - 0.001
        return [(member.detectable, member.detectable_at, member.status) for member in verdict.members or (verdict,)]

    alone = smallest_detectable_drop(d, alpha=0.05)
    third = smallest_detectable_drop(d, alpha=0.05 / 3)
    assert alone < third
    names, between = ("hit@1", "mrr", "map"), (alone + third) / 2
    assert found("hit@1", rule="significant", weak_drop=between) == [(alone, 0.05, "passed")]
    assert found(*names, rule="significant", weak_drop=between) == [(third, 0.05 / 3, "weak")] * 3
    assert found(*names, rule="significant", correction="bh", weak_drop=between) == [(third, 0.05 / 3, "weak")] * 3
    assert found(*names, rule="significant", correction="none", weak_drop=between) == [(alone, 0.05, "passed")] * 3
    # Adjusted p-values that are only reported make nothing weaker.
    assert found(*names, weak_drop=between) == [(alone, 0.05, "passed")] * 3
    text = bench.explain(bench.measured(names, rule="significant") >= baseline)
    assert text.count("(80 % power, one-sided .0167)") == 3


# --- GateFamily ------------------------------------------------------------------------------------


def test_a_family_raises_once_with_all_failures():
    bench = bench_of(6)
    with pytest.raises(GateFailure) as caught, bench.make() as family:
        first = bench.measured("hit@1") >= baseline
        assert first  # nothing is decided yet
        assert (first.status, first.collected, first.ok) == ("failed", True, False)
        assert bench.measured("mrr") >= baseline
        assert 0.1 <= bench.measured("hit@1") <= 0.95
        assert bench.recorded == []
        assert len(family.verdicts) == 4
    verdict = caught.value.verdict
    assert [member.status for member in verdict.members] == ["failed", "failed", "passed", "passed"]
    assert verdict.reason.startswith("2 of 4 comparisons do not hold: hit@1 >= baseline, 0.900 is below 1.000; mrr")
    assert bench.recorded == [verdict]
    assert not any(member.collected for member in verdict.members)
    assert str(caught.value).count("FAILED") == 3
    assert bench.family is None


def test_a_family_corrects_over_everything_inside():
    bench = bench_of(9, 2)
    with bench.make() as family:
        one = bench.measured("hit@1", rule="significant") >= baseline
        assert one.status == "failed"
        assert bench.measured("hit@2", rule="significant") >= baseline
        assert bench.measured("hit@2") >= baseline - 0.5
    verdict = family.verdict
    assert verdict.ok
    assert [member.p_adjusted for member in verdict.members] == [pytest.approx(2 * 67 / 2048)] * 2 + [None]
    with pytest.raises(GateFailure), bench.make("none"):
        bench.measured("hit@1", rule="significant") >= baseline
        bench.measured("hit@2", rule="significant") >= baseline


def test_lists_and_slices_inside_a_family():
    bench = bench_of(0)
    with bench.make() as family:
        bench.measured(["hit@1", "mrr"], rule="significant") >= baseline
        bench.check("map >= baseline", rule="significant")
    assert len(family.verdict.members) == 3
    assert {member.correction for member in family.verdict.members} == {"holm"}
    assert bench.recorded == [family.verdict]


def test_a_correction_without_a_test_is_said():
    bench = bench_of(0)
    with bench.make() as family:
        bench.check("hit@1 >= 0.5")
        bench.check("mrr >= baseline")
    assert "there are none here, and nothing was adjusted" in family.verdict.notes[0]


def test_an_exception_passes_through_and_decides_nothing():
    bench = bench_of(6)
    with pytest.raises(KeyError), bench.make() as family:
        bench.check("hit@1 >= baseline")
        raise KeyError("x")
    assert (bench.recorded, bench.family, family.verdict) == ([], None, None)
    assert bench.undecided == "KeyError left a gate_family before its 1 comparison could be decided"
    with pytest.raises(GateError, match="did you mean recall@5"), bench.make():
        bench.check("hit@1 >= baseline")
        bench.check("recal@5 >= baseline")
    assert bench.recorded == []


def test_misuse_of_a_family():
    bench = bench_of(0)
    with pytest.raises(GateError, match="nothing was compared inside gate_family"), bench.make():
        pass
    assert bench.recorded[-1].status == "error"
    with pytest.raises(GateError, match="inside another"), bench.make():
        bench.check("hit@1 >= 0.5")
        with bench.make():
            pass
    assert bench.family is None
    family = bench.make()
    with family:
        bench.check("hit@1 >= 0.5")
    with pytest.raises(GateError, match="used once"), family:
        pass
    with pytest.raises(GateError, match="did you mean holm"):
        bench.make("hom")
    with pytest.raises(GateError, match="stands inside a gate_family"), bench.make():
        bench.measured(["hit@1", "mrr"], rule="significant", correction="bh") >= baseline
