"""Means, and how a measure spreads over the queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pytest_retrieval_eval.stats._vectors import vector
from pytest_retrieval_eval.stats.tolerance import TOLERANCE


def mean(values: ArrayLike) -> float:
    """The arithmetic mean, of the exact sum rounded once: it does not depend on the order of the queries.

    Args:
        values: shape (n,), one value per query.

    Raises:
        ValueError: ``values`` is empty or has NaN or infinity.

    >>> mean([0.1] * 10)
    0.1
    """
    array = vector(values, "values")
    return math.fsum(array.tolist()) / array.size


@dataclass(frozen=True, slots=True)
class Distribution:
    """How a measure spreads over n queries.

    Attributes:
        n: queries.
        minimum: smallest value.
        p05: 5th percentile.
        p25: lower quartile.
        p50: median.
        p75: upper quartile.
        maximum: largest value.
        zeros: share of queries whose value is 0 (within 1e-9), between 0 and 1.
    """

    n: int
    minimum: float
    p05: float
    p25: float
    p50: float
    p75: float
    maximum: float
    zeros: float


def histogram(values: ArrayLike, low: float, high: float, bins: int = 10) -> tuple[int, ...]:
    """How many values lie in each of ``bins`` equal parts of ``low`` to ``high``.

    A part has its lower edge (within 1e-9), the last one both; what lies outside counts in the first or last.

    Raises:
        ValueError: ``values`` is empty or has NaN or infinity, or ``high`` is not above ``low``.

    >>> histogram([0.0, 0.25, 0.5, 1.0], 0.0, 1.0, bins=2)
    (2, 2)
    """
    array = vector(values, "values")
    if not low < high:
        raise ValueError(f"a histogram from {low} to {high} has no width")
    place = np.floor((array - low) / (high - low) * bins + TOLERANCE).astype(np.int64)
    counts = np.bincount(np.clip(place, 0, bins - 1), minlength=bins)
    return tuple(counts.tolist())


def distribution(values: ArrayLike) -> Distribution:
    """The quantiles of a measure over the queries, and the share of zeros.

    Percentiles interpolate linearly between order statistics (Hyndman & Fan 1996, definition 7).

    Args:
        values: shape (n,), one value per query, in units of the measure.

    Raises:
        ValueError: ``values`` is empty or has NaN or infinity.

    >>> distribution([0.0, 0.0, 0.5, 1.0, 1.0])
    Distribution(n=5, minimum=0.0, p05=0.0, p25=0.0, p50=0.5, p75=1.0, maximum=1.0, zeros=0.4)
    """
    array = np.sort(vector(values, "values"))
    ordered = array.tolist()

    def quantile(share: float) -> float:
        below, weight = divmod(share * (len(ordered) - 1), 1.0)
        low = ordered[int(below)]
        return float(low + weight * (ordered[int(below) + 1] - low)) if weight else float(low)

    return Distribution(
        n=len(ordered),
        minimum=ordered[0],
        p05=quantile(0.05),
        p25=quantile(0.25),
        p50=quantile(0.5),
        p75=quantile(0.75),
        maximum=ordered[-1],
        zeros=int(np.count_nonzero(np.abs(array) <= TOLERANCE)) / len(ordered),
    )
