"""How far a mean could be another one: over the orders of tied documents, and over unjudged documents."""

from __future__ import annotations

from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import means


def doubts(verdict: Verdict) -> list[str]:
    """A line of evidence, or none where nothing hangs on ties or on unjudged documents.

    >>> doubts(Verdict("", "passed", "", "ndcg@3", ">=", judged=(0.5, None), bounds=((0.71, 0.88), None)))
    ['bounds [0.710, 0.880] if everything unjudged were judged']
    """
    parts = []
    if verdict.ties is not None:
        parts.append(f"ties {_interval(verdict.ties)} over the orders of equal scores")
    new, old = (_told(verdict, side) for side in (0, 1))
    if new or old:
        both = f"{old or '–'} → {new or '–'}" if verdict.reference is not None else new
        parts.append(f"bounds {both} if everything unjudged were judged")
    return ["   ".join(parts)] if parts else []


def _told(verdict: Verdict, side: int) -> str | None:
    judged, bounds = verdict.judged[side], verdict.bounds[side]
    if bounds is None or judged is None or judged >= 1.0 - TOLERANCE or bounds[1] - bounds[0] <= TOLERANCE:
        return None
    return _interval(bounds)


def _interval(ends: tuple[float, float]) -> str:
    return f"[{', '.join(means(*ends))}]"
