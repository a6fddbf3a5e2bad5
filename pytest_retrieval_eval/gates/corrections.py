"""A p-value within its family: adjusted for how many comparisons are decided together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_retrieval_eval.stats.corrections import benjamini_hochberg, holm

NAMES = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}
_METHODS = {"holm": holm, "bh": benjamini_hochberg}


@dataclass(frozen=True, slots=True)
class Adjustment:
    """The family of one comparison: the correction and the p-values of the others.

    ``of`` adjusts any p that the comparison could have had, so that the smallest one it allows is adjusted
    like the one it has.

    >>> adjustment = Adjustment("holm", (0.04, 0.03))
    >>> adjustment.of(0.01), str(adjustment)
    (0.03, 'by Holm over 3')
    """

    method: str
    others: tuple[float, ...]

    def of(self, p: float) -> float:
        """``p`` adjusted among the others."""
        return float(_METHODS[self.method]((p, *self.others))[0])

    @property
    def size(self) -> int:
        """The number of comparisons in the family."""
        return len(self.others) + 1

    def __str__(self) -> str:
        return f"by {NAMES[self.method]} over {self.size}"


def adjustments(method: str, p: Sequence[float]) -> list[Adjustment | None]:
    """One for each p-value of a family; None where there is nothing to adjust.

    >>> adjustments("none", [0.01, 0.02]), adjustments("holm", [0.01])
    ([None, None], [None])
    """
    if method == "none" or len(p) < 2:
        return [None] * len(p)
    return [Adjustment(method, (*p[:i], *p[i + 1 :])) for i in range(len(p))]
