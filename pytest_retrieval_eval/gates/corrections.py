"""A p-value within its family: adjusted for how many comparisons are decided together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.stats.corrections import benjamini_hochberg, holm

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.verdict import Verdict

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


def tested(verdict: Verdict) -> list[Verdict]:
    """The comparisons that a verdict decided by, as far as they have a p: itself, its slices or members."""
    parts = [*verdict.members, *(part for part in verdict.slices if part.decides)]
    if parts:
        return [leaf for part in parts for leaf in tested(part)]
    return [verdict] if verdict.p is not None and verdict.status != "updated" else []


def adjusted_over(verdicts: Iterable[Verdict]) -> list[tuple[Verdict, float]]:
    """Every tested comparison with its p adjusted by Holm over all of them, the smallest first.

    To be reported, never to decide: a gate decides alone, whatever else ran in the session.
    """
    found = [leaf for verdict in verdicts for leaf in tested(verdict)]
    if not found:
        return []
    adjusted = holm([leaf.p or 0.0 for leaf in found]).tolist()
    return sorted(zip(found, adjusted, strict=True), key=lambda pair: pair[1])
