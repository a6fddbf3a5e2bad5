"""Targets, options and the text of a gate: one grammar, and sentences for what is outside it."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import GateError, MeasureError, SettingsError
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.target import OperandError, Reference, Target, against, baseline

finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: 0.0 if x == 0 else x)
positive = st.floats(1e-6, 1e6)
names = st.text(min_size=1, max_size=20).filter(lambda name: name.strip() == name)
references = st.one_of(
    st.just(Reference("baseline")),
    names.map(lambda name: Reference("baseline", name)),
    names.map(lambda name: Reference("run", name)),
)
targets = st.builds(Target, references, positive, finite)
measures = st.sampled_from(["recall@5", "ndcg(gain=exp)@10", "mrr", "recall(rel=2)@10", "map@100"])
operators = st.sampled_from([">=", ">", "<=", "<"])


@given(measures, operators, st.one_of(targets, finite))
def test_a_gate_reads_back_what_it_prints(measure, sign, target):
    gate = Gate(Gate.parse(f"{measure} > 0").measure, sign, target)
    assert Gate.parse(str(gate)) == gate


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("recall@5>=baseline-0.01", "recall@5 >= baseline - 0.01"),
        ("recall@5 >= -0.01 + baseline", "recall@5 >= baseline - 0.01"),
        ("P_5 < 0.9 * baseline", "precision@5 < 0.9 * baseline"),
        ("P_5 < baseline*.9", "precision@5 < 0.9 * baseline"),
        ("mrr >= 0.5 * baseline[release-4] * 2 + .02", "mrr >= baseline[release-4] + 0.02"),
        (
            "ndcg@10 >= against( runs/bm25.run.jsonl.gz ) + 0.02",
            "ndcg@10 >= against(runs/bm25.run.jsonl.gz) + 0.02",
        ),
        ("ndcg@10 ≥ against('bm25')", "ndcg@10 >= against(bm25)"),
        ('ndcg@10 >= against("a > b (c)")', 'ndcg@10 >= against("a > b (c)")'),
        ("recall(rel=2)@10 >= 8e-1", "recall(rel=2)@10 >= 0.8"),
        ("recall@5 >= 0.5 + 0.25", "recall@5 >= 0.75"),
        (
            "mrr >= baseline[git:origin/main:eval/x.run.jsonl.gz]",
            "mrr >= baseline[git:origin/main:eval/x.run.jsonl.gz]",
        ),
    ],
)
def test_what_a_gate_may_say(text, printed):
    assert str(Gate.parse(text)) == printed
    assert str(Gate.parse(printed)) == printed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty gate measures nothing"),
        ("   ", "an empty gate measures nothing"),
        ("recall@5", "no comparison"),
        ("recall@5 0.8", "no comparison"),
        ("0.7 <= recall@5 <= 0.9", "two comparisons"),
        ("recall@5 == 0.8", "equality of two floats is chance"),
        ("recall@5 != baseline", "equality of two floats is chance"),
        ("recall@5 >=", "the target is missing"),
        (">= 0.8", "the measure is missing"),
        ("0.8 <= recall@5", "the measure stands on the left"),
        ("baseline >= recall@5", "the measure stands on the left"),
        ("recall@5 >= 80%", "a number such as 0.8"),
        ("recall@5 >= basline", "did you mean baseline?"),
        ("recall@5 >= nan", "is no target"),
        ("recall@5 >= inf", "is no target"),
        ("recall@5 >= 1e999", "finite"),
        ("recall@5 >= baseline 0.01", "no +, - or *"),
        ("recall@5 >= baseline *", "is missing"),
        ("recall@5 >= baseline -", "is missing"),
        ("recall@5 >= 1 - baseline", "cannot be subtracted"),
        ("recall@5 >= - baseline", "cannot be subtracted"),
        ("recall@5 >= baseline + against(bm25)", "two runs cannot be combined"),
        ("recall@5 >= baseline * baseline", "two runs cannot be combined"),
        ("recall@5 >= 0 * baseline", "a > 0"),
        ("recall@5 >= baseline / 2", "is no target"),
        ("recall@5 >= baseline[]", "needs a name"),
        ("recall@5 >= against()", "needs a name"),
        ('recall@5 >= against("a', "is no target"),
        ("recall@5 >= 0,8", "is no target"),
        ("recall@5 >= 0.8.1", "is no target"),
        ("recal@5 >= 0.8", "did you mean recall@5?"),
        ("recall@0 >= 0.8", "at least 1"),
    ],
)
def test_what_a_gate_may_not_say(text, said):
    with pytest.raises(GateError) as caught:
        Gate.parse(text)
    assert said in str(caught.value)


def test_a_gate_is_a_text():
    with pytest.raises(OperandError, match="a gate is a text"):
        Gate.parse({})  # type: ignore[arg-type]
    with pytest.raises(GateError, match="a gate is a text"):
        Gate.parse(None)  # type: ignore[arg-type]


def test_a_gate_checks_its_parts():
    measure = Gate.parse("mrr > 0").measure
    with pytest.raises(SettingsError, match="compares with"):
        Gate(measure, "==", 0.8)  # type: ignore[arg-type]
    for value in (True, "0.8", None, [0.8], np.True_, np.array([0.8]), 1j):
        with pytest.raises(OperandError, match="real number"):
            Gate(measure, ">=", value)  # type: ignore[arg-type]
    for value in (float("nan"), np.float64("nan"), float("-inf"), Decimal("NaN"), Decimal("sNaN"), 10**400):
        with pytest.raises(SettingsError, match="finite"):
            Gate(measure, ">=", value)  # type: ignore[arg-type]
    for value in (Fraction(4, 5), Decimal("0.8"), np.float64(0.8), 0.8):
        assert Gate(measure, ">=", value).target == 0.8  # type: ignore[arg-type]
    assert Gate(measure, ">=", np.int64(1)).target == 1.0  # type: ignore[arg-type]


# --- arithmetic ----------------------------------------------------------------------------------


def test_a_target_is_a_run_times_a_number_plus_a_number():
    target = np.float64(0.9) * baseline - Fraction(1, 4) + np.float32(0.5)
    assert (target.factor, target.offset) == (0.9, 0.25)
    assert str(0.5 + baseline) == "baseline + 0.5"
    assert str(2 * (baseline + 1)) == "2 * baseline + 2"
    assert repr(baseline["v1"]) == "<Target baseline[v1]>"
    assert baseline["v1"] == Target(Reference("baseline", "v1"))
    assert len({baseline, baseline + 0, baseline["x"]}) == 2


@pytest.mark.parametrize(
    "combine",
    [
        lambda: 1 - baseline,
        lambda: baseline / 2,
        lambda: 2 / baseline,
        lambda: baseline // 2,
        lambda: baseline % 2,
        lambda: baseline**2,
        lambda: baseline + baseline,
        lambda: baseline * baseline,
        lambda: baseline - against("x"),
        lambda: baseline + True,
        lambda: baseline + "0.1",
        lambda: baseline * None,
        lambda: (baseline + 0.1)["x"],
        lambda: baseline["x"]["y"],
        lambda: baseline[""],
        lambda: baseline[4],
        lambda: against("x")["y"],
        lambda: bool(baseline),
        lambda: float(baseline),
        lambda: baseline == 0.8,
        lambda: baseline != 0.8,
        lambda: against(""),
        lambda: against(None),
        lambda: against(baseline),
        lambda: against(0.8),
    ],
)
def test_nothing_else_is_a_target(combine):
    with pytest.raises(TypeError) as caught:
        combine()
    assert isinstance(caught.value, GateError)


@pytest.mark.parametrize("factor", [0, -1, -0.5])
def test_a_factor_is_positive(factor):
    with pytest.raises(SettingsError, match="a > 0"):
        factor * baseline


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_target_is_finite(value):
    with pytest.raises(SettingsError, match="finite"):
        baseline + value
    with pytest.raises(SettingsError, match="finite"):
        value * baseline


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize("other", [0.8, 1, np.float64(0.8), "0.8", None, baseline])
def test_a_target_compares_with_a_measure_only(compare, other):
    with pytest.raises(OperandError, match="assert_metric"):
        compare(baseline, other)
    with pytest.raises(OperandError, match="assert_metric"):
        compare(other, baseline)


def test_against_takes_names_paths_and_runs():
    class Stand:
        name = "hybrid"

        def locate(self):
            """As a run has it."""

    run = Stand()
    assert against("bm25").reference.ref == "bm25"
    assert against(Path("a/b.run")).reference.ref == Path("a/b.run")
    assert against(run).reference.ref is run
    assert str(against(run)) == "against(hybrid)"
    assert str(against(Path("a/b c.run"))) == 'against("a/b c.run")'


# --- options -------------------------------------------------------------------------------------


def test_options_have_defaults_and_take_none_for_not_given():
    assert Options.of(rule=None, alpha=None, where=None) == Options()
    options = Options.of(where={"type": "policy"}, allow=np.int64(2), rule="each", judged=1, labels=["qrels"])
    assert (options.allow, options.judged, options.labels) == (2, 1.0, ("qrels",))
    assert type(options.allow) is int


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"rul": "mean"}, "did you mean rule?"),
        ({"colour": "x"}, "has no keyword 'colour'"),
        ({"rule": "median"}, "mean, noninferior, significant or each"),
        ({"alpha": 0}, "between 0 and 0.5"),
        ({"alpha": 0.5}, "between 0 and 0.5"),
        ({"alpha": "0.05"}, "real number"),
        ({"alpha": float("nan")}, "finite"),
        ({"alpha": True}, "real number"),
        ({"sided": "both"}, "'one' or 'two'"),
        ({"allow": -1, "rule": "each"}, "number of queries"),
        ({"allow": 1.5, "rule": "each"}, "number of queries"),
        ({"allow": True, "rule": "each"}, "number of queries"),
        ({"allow": 1}, "rule='each'"),
        ({"allow_failures": -1}, "number of queries"),
        ({"judged": 0}, "share"),
        ({"judged": 1.1}, "share"),
        ({"judged": "most"}, "real number"),
        ({"where": {}}, "leave it out"),
        ({"where": "type=policy"}, "takes tags"),
        ({"where": {1: "x"}}, "by text"),
        ({"labels": "gold"}, "there are no labels 'gold'"),
        ({"labels": ["qrels", "rumour"]}, "there are no labels 'rumour'"),
        ({"labels": []}, "source of labels"),
        ({"dataset": 3}, "dataset's name"),
        ({"dataset": ""}, "dataset's name"),
        ({"run": 3}, "takes a run's name"),
        ({"run": " "}, "names no run"),
    ],
)
def test_options_are_checked(keywords, said):
    with pytest.raises(GateError) as caught:
        Options.of(**keywords)
    assert said in str(caught.value)


def test_options_of_a_text_gate():
    gate = Gate.parse("recall@5 >= baseline", rule="significant", alpha=0.01)
    assert (gate.options.rule, gate.options.alpha) == ("significant", 0.01)
    with pytest.raises(SettingsError, match="did you mean"):
        Gate.parse("recall@5 >= baseline", wher={"a": 1})
    with pytest.raises(MeasureError):
        Gate.parse("nothing@5 >= baseline")


@pytest.mark.parametrize(
    "make",
    [
        lambda: baseline * 1e308 * 10,
        lambda: baseline * 1e-200 * 1e-200,
        lambda: baseline + 1e308 + 1e308,
        lambda: (baseline - 1e200) * 1e200,
        lambda: Gate.parse("recall@5 >= 1e308 * 10 * baseline"),
    ],
)
def test_a_target_beyond_all_numbers_is_an_error(make):
    with pytest.raises(SettingsError, match="finite"):
        make()
