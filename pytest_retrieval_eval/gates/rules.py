"""The four rules: numbers in, "holds" or not and the sentence that says why out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.corrections import Adjustment
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.target import Target
from pytest_retrieval_eval.measures.registry import bounds, measured_in
from pytest_retrieval_eval.measures.summaries import MEAN, Summary
from pytest_retrieval_eval.stats.paired import PairedTest
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import counted, means, number, p_text, with_sign

Floats = NDArray[np.float64]

# noninferior's level is claimed from this many losing queries on; see docs on the power of gates.
_FEW_LOSERS = 10


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a · run + b, query by query.

    ``after`` and ``before`` have one value per counted query; ``sign`` is +1 for ``>=`` and ``>``, −1 for
    ``<=`` and ``<``, so that "worse" is always below; ``margin`` = −sign · b is the loss that the gate
    allows. ``summary`` is what the values make together: their mean, or a statistic such as a percentile.
    """

    gate: Gate
    after: Floats
    before: Floats
    sign: int
    factor: float
    margin: float
    value: float
    reference: float
    summary: Summary = MEAN

    @property
    def target(self) -> float:
        """The number that the candidate's mean is held against."""
        return self.factor * self.reference - self.sign * self.margin

    @property
    def differences(self) -> Floats:
        """candidate − a · run per query, the sign turned for ``<=``: below zero is worse."""
        difference: Floats = self.sign * (self.after - self.factor * self.before)
        return difference

    def test(self) -> PairedTest:
        """The paired test of candidate against a · run; below 0 is worse."""
        return self.summary.test(self.after, self.factor * self.before, self.sign)

    @property
    def sided(self) -> Literal["one", "two"]:
        """Which p is printed: as the gate says, else one-sided under ``significant``, two-sided elsewhere."""
        return self.gate.options.sided or ("one" if self.gate.options.rule == "significant" else "two")


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a comparison holds, and why in one sentence."""

    holds: bool
    reason: str
    bound: float | None = None


def holds(operator: str, value: float, target: float) -> bool:
    """Whether ``value operator target``; what differs by at most 1e-9 is equal.

    >>> holds(">=", 0.1 + 0.2, 0.3), holds(">", 0.1 + 0.2, 0.3)
    (True, False)
    """
    gap = value - target if operator in (">=", ">") else target - value
    return gap > TOLERANCE if operator in (">", "<") else gap >= -TOLERANCE


def check_rule(gate: Gate) -> None:
    """Refuse a rule that has no meaning for the gate's target."""
    rule, target = gate.options.rule, gate.target
    if not isinstance(target, Target):
        if gate.options.correction is not None:
            raise GateError(
                f"{gate}: correction={gate.options.correction!r} adjusts p-values, and a fixed target is about the "
                "mean: leave it out, or compare with baseline"
            )
        if rule in ("noninferior", "each"):
            raise GateError(
                f"{gate}: rule={rule!r} compares with a run query by query, and a fixed target is about the "
                "mean: leave the rule out, or compare with baseline"
            )
        return
    if rule == "noninferior" and -_sign(gate) * target.offset <= 0 and not _has_slack(gate, target):
        plain = Target(target.reference, target.factor)
        sign = "-" if _sign(gate) > 0 else "+"
        example = "5ms" if measured_in(gate.measure) else "0.01"
        raise GateError(
            f"{gate}: rule='noninferior' needs a margin above 0, the loss that would not matter: write "
            f"{gate.measure} {gate.operator} {plain} {sign} {example}. Without one, rule='each' forbids any "
            "query to lose, and rule='mean' compares the means"
        )


def _has_slack(gate: Gate, target: Target) -> bool:
    """Whether the factor allows a loss in itself, as 1.1 * baseline does for a time, which has no largest value."""
    unbounded = not math.isfinite(bounds(gate.measure)[1])
    return unbounded and _sign(gate) * (1.0 - target.factor) > 0 and _sign(gate) * target.offset <= 0


def check_alone(gate: Gate) -> None:
    """Refuse a correction for a gate that is one comparison."""
    if gate.options.correction is not None and gate.options.by is None:
        raise GateError(
            f"{gate}: correction={gate.options.correction!r} is for a family of comparisons, and this is one: add by=, "
            "give a list of measures, or use gate_family"
        )


def _sign(gate: Gate) -> int:
    return 1 if gate.operator in (">=", ">") else -1


def compared(
    gate: Gate, after: Floats, before: Floats, value: float, reference: float, summary: Summary = MEAN
) -> Comparison:
    """The comparison that a gate with a run on its right side makes."""
    target = gate.target
    if not isinstance(target, Target):
        raise GateError(f"{gate} has a fixed target; there is no run to compare with")
    sign = _sign(gate)
    # 0 − 0.0 is no −0.0, which would be printed.
    return Comparison(gate, after, before, sign, target.factor, 0.0 - sign * target.offset, value, reference, summary)


def rule_on(comparison: Comparison, test: PairedTest | None = None, adjustment: Adjustment | None = None) -> Ruling:
    """What the gate's rule decides; ``test`` saves a repetition where the caller has it already.

    ``adjustment`` is that of the family that the comparison is decided in; only ``significant`` reads it.
    """
    rule = comparison.gate.options.rule
    if rule == "noninferior":
        return _noninferior(comparison)
    if rule == "each":
        return _each(comparison)
    if rule == "significant":
        return _significant(comparison, test or comparison.test(), adjustment)
    return _mean(comparison)


def mean_reason(operator: str, value: float, target: float, aside: str = "", counted_in: str = "") -> str:
    """The two numbers and how they lie; ``counted_in`` is their unit.

    >>> mean_reason(">=", 0.712, 0.744)
    '0.712 is below 0.744'
    >>> mean_reason(">", 0.5, 0.5)
    '0.500 equals 0.500'
    """
    left, right = in_unit(counted_in, value, target)
    if abs(value - target) <= TOLERANCE:
        return f"{left} equals {right}{aside}"
    return f"{left} is {'above' if value > target else 'below'} {right}{aside}"


def in_unit(counted_in: str, *values: float) -> list[str]:
    """Numbers with their unit, of which thousandths say nothing.

    >>> in_unit("ms", 250.0, 231.42), in_unit("", 0.5)
    (['250.0 ms', '231.4 ms'], ['0.500'])
    """
    if not counted_in:
        return means(*values)
    return [f"{text} {counted_in}" for text in means(*values, digits=1)]


def _aside(comparison: Comparison) -> str:
    """The mean that the target is made of, unless it is the target itself."""
    target = comparison.gate.target
    if not isinstance(target, Target) or (target.factor == 1.0 and not target.offset):
        return ""
    counted_in = measured_in(comparison.gate.measure)
    return f" ({target.reference} {in_unit(counted_in, comparison.reference, comparison.target)[0]})"


def _mean(comparison: Comparison) -> Ruling:
    operator = comparison.gate.operator
    counted_in = measured_in(comparison.gate.measure)
    reason = mean_reason(operator, comparison.value, comparison.target, _aside(comparison), counted_in)
    return Ruling(holds(operator, comparison.value, comparison.target), reason)


def _noninferior(comparison: Comparison) -> Ruling:
    alpha, margin = comparison.gate.options.alpha, comparison.margin
    interval = comparison.summary.difference(
        comparison.after, comparison.factor * comparison.before, comparison.sign, 1 - alpha, "lower"
    )
    if interval is None:
        raise GateError(
            f"{comparison.gate}: rule='noninferior' asks how large a loss can be ruled out, and nothing can be of "
            f"{comparison.gate.measure} on these queries: take rule='mean' or 'each'"
        )
    low = interval.low
    strict = comparison.gate.operator in (">", "<")
    fine = low > -margin + TOLERANCE if strict else low >= -margin - TOLERANCE
    bound, limit = comparison.sign * low, -comparison.sign * margin
    left, right = (with_sign(text) for text in in_unit(measured_in(comparison.gate.measure), bound, limit))
    side = "lower" if comparison.sign > 0 else "upper"
    within = "lies within" if fine else "lies beyond"
    reason = (
        f"the {side} {100 * (1 - alpha):g} % bound of the difference, {left} ({interval.method}), {within} "
        f"the margin {right}"
    )
    if not fine and _mean(comparison).holds:
        reason += ": the means allow it, but a larger loss is not ruled out"
    return Ruling(fine, reason, bound)


def _significant(comparison: Comparison, test: PairedTest, adjustment: Adjustment | None) -> Ruling:
    by_mean = _mean(comparison)
    options = comparison.gate.options
    if by_mean.holds:
        return by_mean
    sided = options.sided or "one"
    p = test.p_worse if sided == "one" else test.p_two_sided
    if not resolvable(test, options.alpha, sided, adjustment):
        smallest = (
            f"smallest p {p_text(test.smallest_one_sided)} one-sided, {p_text(test.smallest_two_sided)} two-sided"
        )
        if adjustment is not None:
            smallest += f", {p_text(adjustment.of(smallest_p(test, sided)))} {adjustment}"
        return Ruling(
            False,
            f"{by_mean.reason}, beyond the budget, and the test cannot resolve it ({smallest}): the means decide",
        )
    said = f"p = {p_text(p)} {sided}-sided"
    if adjustment is not None:
        p = adjustment.of(p)
        said += f", {p_text(p)} {adjustment},"
    if p < options.alpha and test.p_worse < test.p_better:
        return Ruling(False, f"{by_mean.reason}, and {said} is below {options.alpha:g}")
    if p < options.alpha:
        # Above the run and below what was demanded of it: the test is about the run.
        return Ruling(True, f"{by_mean.reason}, but {said} speaks for a gain, not for a loss")
    return Ruling(True, f"{by_mean.reason}, but {said} is not below {options.alpha:g}")


def smallest_p(test: PairedTest, sided: str) -> float:
    """The smallest p that the queries that differ allow."""
    return test.smallest_one_sided if sided == "one" else test.smallest_two_sided


def resolvable(test: PairedTest, alpha: float, sided: str, adjustment: Adjustment | None = None) -> bool:
    """Whether any outcome on these queries could have come below alpha, adjusted within its family.

    In a family the smallest p is adjusted as well: what no outcome could have shown is never taken for
    absent.
    """
    smallest = smallest_p(test, sided)
    return (smallest if adjustment is None else adjustment.of(smallest)) < alpha


def _each(comparison: Comparison) -> Ruling:
    strict = comparison.gate.operator in (">", "<")
    d, margin = comparison.differences, comparison.margin
    broken = d <= -margin + TOLERANCE if strict else d < -margin - TOLERANCE
    n, allow = int(broken.sum()), comparison.gate.options.allow
    counted_in = measured_in(comparison.gate.measure)
    verb = "lose" if comparison.sign > 0 else "rise"
    if strict:
        what = f"do not {'gain' if comparison.sign > 0 else 'fall'}" + (
            f" more than {number(-margin)}{counted_in}" if margin else ""
        )
    else:
        what = f"{verb} more than {number(margin)}{counted_in}" if margin else f"{verb}"
    some = counted(n, "query", "queries") if n else "no query"
    if n <= 1:
        what = what.replace("lose", "loses").replace("rise", "rises").replace("do not", "does not")
    return Ruling(n <= allow, f"{some} {what}, {allow} allowed")


def n_that_would_do(comparison: Comparison) -> int | None:
    """Under ``noninferior``, the n from which a pass means what alpha says, where there are fewer queries.

    With at least 10 losing queries the bound holds its level; with fewer, a loss of ``margin`` that no query
    showed is ruled out by about ln(1/alpha) ÷ margin queries only (299 at .01).
    """
    if comparison.gate.options.rule != "noninferior":
        return None
    if not math.isfinite(bounds(comparison.gate.measure)[1]):
        return None  # a loss of any size can hide in one query
    losers = int((comparison.differences < -TOLERANCE).sum())
    # From (1 − margin)^n <= alpha: a loss in that share of the queries is then seen in at least one of them.
    share = min(comparison.margin, 0.5)
    needed = math.ceil(math.log(comparison.gate.options.alpha) / math.log1p(-share))
    return needed if losers < _FEW_LOSERS and len(comparison.after) < needed else None
