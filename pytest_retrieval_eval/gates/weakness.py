"""Whether a gate that passes could have failed: what it would have seen, and what it cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.gates.corrections import Adjustment
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.rules import (
    Comparison,
    holds,
    in_unit,
    n_that_would_do,
)
from pytest_retrieval_eval.gates.side import (
    Side,
)
from pytest_retrieval_eval.gates.verdict import Status
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import bounds, measured_in
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import counted

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench

# A passing gate that could not have seen a mean drop of this size is called weak (ini retrieval_weak_drop).
WEAK_DROP = 0.02
# Of a measure without a largest value, such as a time: the share of the baseline that should be seen.
WEAK_SHARE = 0.1
CANNOT_FAIL = "weak: this gate cannot fail, since the worst value that the measure can have would pass as well"

# How the note of a gate ends that holds although its mean does not: its loss was seen, and not told from chance.
LIKE_CHANCE = "and the test cannot tell that from chance"


def loss_range(measure: Measure, side: Side, reference: Side) -> tuple[float, float]:
    """The least and the most that the measure can be; what is not bounded, from the values themselves."""
    low, high = bounds(measure)
    values = np.concatenate((side.scores.values, reference.scores.values))
    return (
        low if np.isfinite(low) else float(values.min()),
        high if np.isfinite(high) else float(values.max()),
    )


def cannot_fail(gate: Gate, target: float) -> bool:
    """Whether the worst mean that the measure can have would hold as well."""
    low, high = bounds(gate.measure)
    return holds(gate.operator, low if gate.operator in (">=", ">") else high, target)


def deciding_level(options: Options, adjustment: Adjustment | None) -> float:
    """The level at which a loss of this comparison alone would be found.

    Where a correction decides, that is alpha ÷ m, m the comparisons of the family: what Holm and Benjamini & Hochberg
    ask of the smallest p. Both ask less of the others once more of them lose, which nobody can count on beforehand.
    Under the other rules adjusted p-values decide nothing, and alpha stays.
    """
    decides = adjustment is not None and options.rule == "significant"
    return options.alpha / adjustment.size if decides and adjustment is not None else options.alpha


def weakness(comparison: Comparison, detectable: float | None, bench: Bench) -> tuple[Status, list[str]]:
    """``passed`` or ``weak``: whether a drop that the gate is there for could have gone unseen."""
    needed = n_that_would_do(comparison)
    if needed is not None:
        n = len(comparison.after)
        return "weak", [
            f"weak: with {counted(n, 'query', 'queries')}, few of which lose, a loss of "
            f"{comparison.margin:g} that no query shows is not ruled out; {needed:,} queries would do"
        ]
    # Golden queries are looked at one by one: a drop of their mean is not what the rule is about.
    if comparison.gate.options.rule == "each" or detectable is None:
        return "passed", []
    counted_in = measured_in(comparison.gate.measure)
    drop = float(getattr(bench, "weak_drop", WEAK_DROP))
    limit, whose = max((drop, "ini value retrieval_weak_drop"), (comparison.margin, "the margin of this gate"))
    if not np.isfinite(bounds(comparison.gate.measure)[1]):
        # What has no largest value is seen in parts of itself, and what the factor allows is no loss.
        allowed = comparison.margin + abs(comparison.factor - 1.0) * abs(comparison.reference)
        share = f"{WEAK_SHARE:.0%} of the other side's mean"
        limit, whose = max((WEAK_SHARE * abs(comparison.reference), share), (allowed, "what this gate allows"))
    if detectable <= limit + TOLERANCE:
        return "passed", []
    smallest, wanted = in_unit(counted_in, detectable, limit)
    what = "mean drop" if comparison.summary.statistic is None and not counted_in else "change"
    return "weak", [
        *_seen(comparison),
        f"weak: a {what} of up to {smallest} could have gone unseen with this many queries (limit {wanted}: {whose})",
    ]


def _seen(comparison: Comparison) -> list[str]:
    """The loss that a gate holds in spite of: its mean is on the wrong side of the target, and of the other run's."""
    gate, value, reference = comparison.gate, comparison.value, comparison.reference
    lost = comparison.sign * (reference - value)
    if lost <= TOLERANCE or holds(gate.operator, value, comparison.target):
        return []
    (size,) = in_unit(measured_in(gate.measure), lost)
    what = "the mean" if comparison.summary.statistic is None else str(gate.measure)
    return [f"weak: {what} {'fell' if comparison.sign > 0 else 'rose'} by {size} {LIKE_CHANCE}"]
