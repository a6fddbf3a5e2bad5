"""The compared object: it raises, and it cannot be mistaken for a number."""
# ruff: noqa: SIM300  (a number on the left is what some of these tests are about)

from __future__ import annotations

import operator
import subprocess
import sys
import textwrap
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from gates_support import MemoryBench, hits, one_each

from pytest_retrieval_eval.errors import GateError, GateFailure, MeasureError, SettingsError
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.target import OperandError, against, baseline
from pytest_retrieval_eval.gates.verdict import Verdict

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def bench():
    return MemoryBench(
        one_each(10), hits([True] * 8 + [False] * 2), hits([True] * 8 + [False] * 2), bm25=hits([True] * 10)
    )


@pytest.mark.parametrize("number", [0.8, Fraction(4, 5), Decimal("0.8"), np.float64(0.8), np.float64(0.8) + 1e-10])
def test_a_comparison_that_holds_gives_the_verdict(bench, number):
    for verdict in (bench.measured("recall@5") >= number, number <= bench.measured("recall@5")):
        assert isinstance(verdict, Verdict)
        assert verdict
        assert (verdict.gate.split()[:2], verdict.status) == (["recall@5", ">="], "passed")
    assert (bench.measured("recall@5") <= number).ok
    assert (number >= bench.measured("recall@5")).operator == "<="


@pytest.mark.parametrize(
    "number", [0.9, Fraction(9, 10), Decimal("0.9"), np.float64(0.9), np.float32(0.9), 1, np.int64(1)]
)
@pytest.mark.parametrize(
    "compare",
    [
        lambda m, x: m >= x,
        lambda m, x: m > x,
        lambda m, x: x <= m,
        lambda m, x: x < m,
        lambda m, x: bool(m >= x),
        lambda m, x: not m >= x,
        lambda m, x: 0.1 <= m >= x,
        lambda m, x: 0.1 < m and m > x,
    ],
)
def test_a_comparison_that_does_not_hold_raises(bench, compare, number):
    measured = bench.measured("recall@5")
    with pytest.raises(GateFailure, match=r"0\.800 is below") as caught:
        compare(measured, number)
    assert caught.value.verdict is bench.recorded[-1]
    assert caught.value.verdict.status == "failed"
    assert measured.decided


def test_a_chain_is_two_gates_on_one_measurement(bench):
    measured = bench.measured("recall@5")
    assert not measured.decided
    assert bench.asked == 0
    assert 0.7 <= measured <= 0.9
    assert [verdict.gate for verdict in bench.recorded] == ["recall@5 >= 0.7", "recall@5 <= 0.9"]
    with pytest.raises(GateFailure):
        0.7 <= measured <= 0.75
    assert float(measured) == 0.8
    assert bench.asked == 1


def test_strictness_and_tolerance(bench):
    measured = bench.measured("recall@5")
    for fine in (measured >= 0.8, measured <= 0.8, measured >= 0.8 + 9e-10, measured <= 0.8 - 9e-10):
        assert fine
    for compare, number in (
        (operator.gt, 0.8),
        (operator.lt, 0.8),
        (operator.gt, 0.8 - 9e-10),
        (operator.lt, 0.8 + 9e-10),
    ):
        with pytest.raises(GateFailure):
            compare(measured, number)
    with pytest.raises(GateFailure):
        measured >= 0.8 + 2e-9


def test_targets(bench):
    measured = bench.measured("recall@5")
    assert measured >= baseline
    assert measured >= against("bm25") - 0.2
    assert baseline - 0.01 <= measured
    with pytest.raises(GateFailure, match=r"against bm25"):
        measured >= against("bm25")
    with pytest.raises(GateFailure):
        0.9 * against("bm25") <= measured


def test_float_decides_nothing(bench):
    measured = bench.measured("recall@5")
    assert float(measured) == 0.8
    assert not measured.decided
    assert bench.recorded == []
    assert repr(bench.measured("P_5")) == "<Measured precision@5>"


@pytest.mark.parametrize("other", ["0.8", None, True, False, np.True_, np.array([0.8]), [0.8], 1j, object()])
@pytest.mark.parametrize("compare", [operator.ge, operator.gt, operator.le, operator.lt])
def test_only_numbers_and_targets_compare(bench, compare, other):
    for left, right in ((0, 1), (1, 0)):
        measured = bench.measured("recall@5")
        pair = (measured, other)
        with pytest.raises(OperandError, match="real number"):
            compare(pair[left], pair[right])
        assert measured.decided
    assert [verdict.status for verdict in bench.recorded] == ["error", "error"]


@pytest.mark.parametrize("other", [float("nan"), np.float64("nan"), Decimal("NaN"), float("inf"), -np.inf])
def test_nan_compares_with_nothing(bench, other):
    for compare in (operator.ge, operator.gt, operator.le, operator.lt):
        with pytest.raises(SettingsError, match="finite"):
            compare(bench.measured("recall@5"), other)
        with pytest.raises(SettingsError, match="finite"):
            compare(other, bench.measured("recall@5"))


def test_two_measured_name_against(bench):
    with pytest.raises(TypeError, match="against"):
        bench.measured("recall@5") >= bench.measured("recall@10")
    assert bench.recorded[0].gate == "recall@5 >= recall@10"


@pytest.mark.parametrize(
    "use",
    [
        bool,
        lambda m: not m,
        lambda m: m == 0.8,
        lambda m: m != 0.8,
        lambda m: np.float64(0.8) == m,
        lambda m: m == baseline,
        lambda m: baseline == m,
        lambda m: 0.8 == m,
        lambda m: m + 0.1,
        lambda m: 0.1 + m,
        lambda m: m - 0.1,
        lambda m: np.float64(1) - m,
        lambda m: m * 2,
        lambda m: m / 2,
        lambda m: 1 / m,
        lambda m: -m,
        lambda m: abs(m),
        round,
        int,
        lambda m: m**2,
        lambda m: m // 1,
        lambda m: m % 1,
        lambda m: divmod(m, 1),
        hash,
        lambda m: {m},
        lambda m: m in [0.8],
    ],
)
def test_it_is_no_number(bench, use):
    measured = bench.measured("recall@5")
    with pytest.raises(TypeError):
        use(measured)
    assert not measured.decided
    assert bench.asked == 0


def test_advice(bench):
    measured = bench.measured("recall@5")
    with pytest.raises(OperandError, match=r"compare it directly.*evaluate"):
        bool(measured)
    with pytest.raises(OperandError, match="evaluate"):
        measured == 0.8
    with pytest.raises(OperandError, match="other side"):
        measured + 0.1


def test_errors_are_recorded_and_raised(bench):
    with pytest.raises(MeasureError, match=r"did you mean recall@5\?"):
        bench.measured("recal@5")
    measured = bench.measured("recall@5", where={"type": "policy"})
    with pytest.raises(GateError, match="tag"):
        measured >= 0.5
    assert measured.decided
    assert [(v.status, v.where) for v in bench.recorded] == [("error", "type=policy")]


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m >= 0.9,
        lambda m: 0.9 <= m,
        lambda m: m >= None,
        lambda m: m >= m,
        lambda m: m == 1,
        lambda m: m + 1,
        bool,
        lambda m: m >= baseline["absent"],
    ],
)
def test_every_frame_of_ours_is_hidden(bench, use):
    with pytest.raises((GateFailure, GateError)) as caught:
        use(bench.measured("recall@5"))
    ours = [entry for entry in caught.traceback if "pytest_retrieval_eval" in str(entry.path)]
    assert ours
    assert all(entry.frame.f_locals.get("__tracebackhide__") for entry in ours)


def test_it_works_where_asserts_are_compiled_away(tmp_path):
    script = tmp_path / "bare.py"
    script.write_text(
        textwrap.dedent(
            """
            from gates_support import MemoryBench, hits, one_each
            from pytest_retrieval_eval.errors import GateFailure
            import numpy as np

            bench = MemoryBench(one_each(4), hits([True, False, False, False]))
            caught = 0
            for compare in (lambda m: m >= 0.9, lambda m: 0.9 <= m, lambda m: np.float64(0.9) <= m):
                try:
                    compare(bench.measured("recall@5"))
                except GateFailure:
                    caught += 1
            print(caught, len(bench.recorded))
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-O", str(script)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": ""},
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("3 3", "")


def test_options_default(bench):
    assert bench.measured("recall@5").options == Options()
    assert [str(measure) for measure in bench.measured("recall@5").measures] == ["recall@5"]
