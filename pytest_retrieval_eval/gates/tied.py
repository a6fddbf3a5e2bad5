"""What hangs on the order of documents with equal scores, in a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.gates.corrections import Adjustment
from pytest_retrieval_eval.gates.rules import (
    Comparison,
    rule_on,
)
from pytest_retrieval_eval.gates.side import (
    Side,
)
from pytest_retrieval_eval.wording import means

if TYPE_CHECKING:
    from pytest_retrieval_eval.measures.evaluate import TieInterval


def ties_of(side: Side) -> TieInterval | None:
    """How much hangs on ties; None where nothing does, or the measure cannot say."""
    try:
        tied = side.evaluation.ties(side.measure)
    except MeasureError:
        return None
    return tied if tied.matters else None


def ends(tied: TieInterval) -> tuple[float, float]:
    """The least and the largest mean over the orders."""
    return float(tied.minimum), float(tied.maximum)


def alike(one: TieInterval | None, other: TieInterval | None) -> bool:
    """Whether two sides have the same ties: they are put in the same order then, and nothing hangs on them."""
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one.low, other.low) and np.array_equal(one.high, other.high))


def same_over_ties(
    comparison: Comparison, tied: TieInterval, fine: bool, adjustment: Adjustment | None, *, own: bool
) -> bool:
    """Whether the rule decides alike for the worst and the best order of one side's tied documents."""
    for values, end in ((tied.low, tied.minimum), (tied.high, tied.maximum)):
        ordered = (
            replace(comparison, after=values, value=end) if own else replace(comparison, before=values, reference=end)
        )
        if rule_on(ordered, None, adjustment).holds != fine:
            return False
    return True


def tie_note(tied: TieInterval, fine: bool, which: str = "") -> str:
    """That the gate would be decided otherwise for some orders."""
    low, high = means(*ends(tied))
    return (
        f"ties: over the orders of documents with equal scores the mean{which} lies between {low} and "
        f"{high}, and the gate would {'fail' if fine else 'pass'} for some of them"
    )
