"""What a verdict says of unjudged documents and of the spread behind its means: bounds, distributions, notes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.gates.rules import Comparison, holds, rule_on
from pytest_retrieval_eval.gates.side import Side
from pytest_retrieval_eval.gates.verdict import Spread
from pytest_retrieval_eval.measures.bounds import effort
from pytest_retrieval_eval.measures.registry import definition
from pytest_retrieval_eval.stats.means import histogram
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import means

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.corrections import Adjustment
    from pytest_retrieval_eval.measures.bounds import Bounds
    from pytest_retrieval_eval.measures.evaluate import Scores

# Ranks times levels of grades. At this size bounds take less than half a second; a gate that nobody asked for
# bounds does not spend more on them. Evaluation.bounds and evaluate --bounds always do.
EFFORT = 4_000_000


def sides(side: Side, reference: Side | None) -> dict[str, Any]:
    """The fields of a verdict that say of each side how it is spread and what unjudged documents could make it."""
    both = (side, reference)
    return {
        "bounds": tuple(_ends(bounds_of(each)) if each is not None else None for each in both),
        "spread": tuple(spread_of(each.scores) if each is not None else None for each in both),
        "unit": side.unit or "",
        "label_scale": side.qrels.scale,
    }


def bounds_of(side: Side) -> Bounds | None:
    """The bounds of one side; None where the measure has none, or where they would cost more than the gate.

    None also where labels were made of all that the measure looks at: what stands further down is not in question.
    """
    if side.labels.complete or effort(side.evaluation.ranks, side.measure) > EFFORT:
        return None
    try:
        return side.evaluation.bounds(side.measure)
    except MeasureError:
        return None


def spread_of(scores: Scores) -> Spread:
    """How the values of the queries lie."""
    found, known = scores.distribution, definition(scores.measure.name)
    low = known.low if np.isfinite(known.low) else min(found.minimum, 0.0)
    high = known.high if np.isfinite(known.high) else max(found.maximum, low + 1.0)
    return Spread(
        minimum=found.minimum,
        p05=found.p05,
        p25=found.p25,
        p50=found.p50,
        p75=found.p75,
        maximum=found.maximum,
        zeros=found.zeros,
        low=float(low),
        high=float(high),
        counts=histogram(scores.values, float(low), float(high)),
    )


def mean_hangs(side: Side, operator: str, target: float) -> list[str]:
    """A note where a gate on a mean would be decided otherwise if some unjudged documents were relevant."""
    fine = holds(operator, side.mean, target)
    return _note(side, fine, lambda bounds: [holds(operator, mean, target) for mean in _ends(bounds) or ()])


def comparison_hangs(
    side: Side, reference: Side, comparison: Comparison, fine: bool, adjustment: Adjustment | None
) -> list[str]:
    """The same for a gate against a run. Each side is bounded by itself: what both lists hold moves both, so
    that the note says "could".
    """
    if reference.stored is side.stored or not (comparison.after - comparison.before).any():
        return []
    other = bounds_of(reference)

    def decided(bounds: Bounds) -> list[bool]:
        old = other or bounds
        low, high = (old.low, old.minimum), (old.high, old.maximum)
        if other is None:
            low = high = (comparison.before, comparison.reference)
        return [
            rule_on(
                replace(comparison, after=after, value=value, before=before, reference=mean), adjustment=adjustment
            ).holds
            for after, value, (before, mean) in (
                (bounds.low, bounds.minimum, high),
                (bounds.high, bounds.maximum, low),
            )
        ]

    return _note(side, fine, decided)


def _note(side: Side, fine: bool, decided: Callable[[Bounds], list[bool]]) -> list[str]:
    judged = side.judged
    if judged is None or judged >= 1.0 - TOLERANCE:
        return []
    bounds = bounds_of(side)
    if bounds is None or not bounds.matters or all(each == fine for each in decided(bounds)):
        return []
    low, high = means(bounds.minimum, bounds.maximum)
    return [
        f"unjudged documents: were they judged, the mean would lie between {low} and {high}, and the gate could "
        f"{'fail' if fine else 'pass'}"
    ]


def _ends(bounds: Bounds | None) -> tuple[float, float] | None:
    return None if bounds is None else (float(bounds.minimum), float(bounds.maximum))
