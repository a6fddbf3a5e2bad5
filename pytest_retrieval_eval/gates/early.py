"""Early stopping: where labels are read by a language model, a gate with a margin need not read every query.

Queries are read in a seeded random order until an anytime-valid test (:mod:`pytest_retrieval_eval.stats.early`) has
settled whether the mean over all of them lies below the margin. Where all were read the gate's rule decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.gates.target import Target
from pytest_retrieval_eval.labels.labelling import ERAG
from pytest_retrieval_eval.measures.registry import bounds
from pytest_retrieval_eval.stats.early import EarlyStop
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import number

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.gate import Gate

# Read together: a model reads a batch in the time of one.
_BLOCK = 16
_SEED = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict that was settled after ``after`` of ``total`` queries; ``queries`` are all that were read by then."""

    holds: bool
    after: int
    total: int
    queries: frozenset[str]
    margin: float
    alpha: float

    @property
    def reason(self) -> str:
        """The sentence of the verdict."""
        side = "below" if self.holds else "above"
        return (
            f"settled early, after {self.after} of {self.total} queries in random order ({len(self.queries)} were "
            f"read): the mean loss over all is {side} {number(self.margin)} (anytime-valid, alpha {number(self.alpha)})"
        )


def why_all(gate: Gate, bench: Bench, *, updated: bool) -> str | None:
    """Why this gate reads every query although the session would stop early; None where it may stop.

    The empty text where nobody asked for early stopping, or nothing is read at all.
    """
    options = gate.options
    labels = (options.labels,) if isinstance(options.labels, str) else options.labels or ()
    if not getattr(bench, "stop_early", False) or ERAG not in labels:
        return ""
    why = None
    low, high = bounds(gate.measure)
    if len(labels) > 1:
        why = f"labels={', '.join(labels)} are not the reader's alone"
    elif not isinstance(gate.target, Target):
        why = "a fixed target has no margin"
    elif margin_of(gate) <= TOLERANCE:
        sign = "-" if gate.operator in (">=", ">") else "+"
        example = f"{gate.measure} {gate.operator} {gate.target.reference} {sign} 0.05"
        why = f"the gate allows no loss; with a margin, such as {example}, it may stop"
    elif options.rule != "mean":
        why = f"rule={options.rule!r} is about each of them"
    elif options.by is not None:
        why = f"by={options.by!r} decides for slices"
    elif not (math.isfinite(low) and math.isfinite(high)):
        why = f"{gate.measure} has no bounds"
    elif margin_of(gate) >= -_differences(gate)[0] - TOLERANCE:
        why = "no query can lose as much as the margin"
    elif updated:
        why = "the baseline is written from them"
    return None if why is None else f"early stopping: every query was read, since {why}"


def margin_of(gate: Gate) -> float:
    """The loss that the gate allows, in units of the measure."""
    return -gate.target.offset * (1 if gate.operator in (">=", ">") else -1) if isinstance(gate.target, Target) else 0.0


def _differences(gate: Gate) -> tuple[float, float]:
    """The least and the largest difference of one query, below zero where the candidate is worse."""
    low, high = bounds(gate.measure)
    factor = gate.target.factor if isinstance(gate.target, Target) else 1.0
    ends = low - factor * high, high - factor * low
    return ends if gate.operator in (">=", ">") else (-ends[1], -ends[0])


def until_settled(
    gate: Gate, population: Sequence[str], differences: Callable[[frozenset[str]], Mapping[str, float]]
) -> Settled | None:
    """Read queries of ``population`` until the verdict is settled; None where it never is.

    ``differences`` gives that of each query it is asked for, below zero where the candidate is worse. A query that it
    leaves out could not be read: then nothing is settled, since what it would have been is unknown.
    """
    margin, alpha = margin_of(gate), gate.options.alpha
    stop = EarlyStop(len(population), margin, alpha, _differences(gate), seed=_SEED)
    order = [population[place] for place in stop.order.tolist()]
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        found = differences(frozenset(block))
        for query_id in block:
            if query_id not in found:
                return None
            decision = stop.update(found[query_id])
            if decision != "continue":
                read = frozenset(order[: begin + len(block)])
                return Settled(decision == "not worse", stop.read, len(order), read, margin, alpha)
    return None
