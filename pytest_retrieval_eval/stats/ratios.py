"""The ratio of two means over the same queries, with an interval."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pytest_retrieval_eval.stats._vectors import fraction, vector
from pytest_retrieval_eval.stats.intervals import Interval


def bootstrap_ratio(
    parts: ArrayLike, wholes: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, Interval]:
    """Σ parts ÷ Σ wholes, and its percentile bootstrap interval over the queries (Efron & Tibshirani 1993, 13.3).

    A query is drawn with its part and its whole. Resamples whose wholes add up to nothing have no ratio and are left
    out.

    Raises:
        ValueError: nothing was given, the lengths differ, the wholes add up to nothing, or an argument is out of range.

    >>> ratio, interval = bootstrap_ratio([0.5] * 10, [1.0] * 10)
    >>> ratio, interval.low, interval.high
    (0.5, 0.5, 0.5)
    """
    part, whole = vector(parts, "parts"), vector(wholes, "wholes")
    outside = 1.0 - fraction(level, "level")
    if part.size != whole.size:
        raise ValueError(f"there are {part.size} parts of {whole.size} wholes; expected one of each a query")
    total = math.fsum(whole)
    if total <= 0 or (whole < 0).any():
        raise ValueError("the wholes are 0 or more, and add up to more than 0")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    n = int(part.size)
    random = np.random.Generator(np.random.PCG64(seed))
    # How often each query is drawn, a block of resamples at a time.
    found = []
    for start in range(0, resamples, 1000):
        times = random.multinomial(n, np.full(n, 1.0 / n), size=min(1000, resamples - start))
        below = times @ whole
        found.append((times @ part)[below > 0] / below[below > 0])
    low, high = np.quantile(np.concatenate(found), [outside / 2, 1 - outside / 2], method="closest_observation")
    return math.fsum(part) / total, Interval(float(low), float(high), level, "percentile")
