"""Confidence intervals: the bootstrap for means, Wilson's for shares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_retrieval_eval.stats._exact import RawBits, fixed_point, ordered_sum, slack
from pytest_retrieval_eval.stats._special import normal_cdf, normal_quantile
from pytest_retrieval_eval.stats._vectors import fraction, vector
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

# Draws per block: the indices and the values they pick fit a core's second-level cache together.
_BLOCK = 1 << 15
# From this many values on, each block of draws is used for eight resamples (see `_resampled_sums`).
_SHIFTED_FROM, _SHIFTS = 64, 8
# Up to this many draws (8 MB) they are kept for the next gate.
_KEPT = 1_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval; a one-sided bound has an infinite other end.

    Attributes:
        low: lower end, in units of the measure.
        high: upper end.
        level: confidence, 0.95 for 95 %.
        method: "BCa", "percentile" or "Wilson".
    """

    low: float
    high: float
    level: float
    method: str


def bootstrap_mean(
    values: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    side: Literal["two", "lower", "upper"] = "two",
) -> Interval:
    """The bias-corrected and accelerated bootstrap interval of a mean (Efron & Tibshirani 1993, 14.3).

    The acceleration is the jackknife's, which for a mean is the sum of cubed deviations over 6 times the
    1.5th power of the sum of squared ones. Ends are order statistics of the resampled means, rounded
    outwards, so that they are the same to the last bit everywhere. Where BCa is undefined (all values equal;
    all resampled means on one side of the mean) the interval is the percentile one, and says so.

    Args:
        values: shape (n,), one value per query: differences, or a measure.
        level: confidence; a one-sided bound has all of 1 - level on its side.
        resamples: bootstrap resamples.
        seed: of the resamples.
        side: "lower" is the one-sided lower bound (``high`` is infinite), "upper" the upper one.

    Raises:
        ValueError: ``values`` is empty or has NaN or infinity, or an argument is out of range.

    >>> interval = bootstrap_mean([0.0] * 5 + [1.0] * 15)
    >>> interval.low, interval.high, interval.method
    (0.5, 0.9, 'BCa')
    """
    array = vector(values, "values")
    outside = 1.0 - fraction(level, "level")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    if side not in ("two", "lower", "upper"):
        raise ValueError(f"{side!r} is not a valid side. Valid sides: two, lower, upper.")
    n = int(array.size)
    if float(array.max()) - float(array.min()) <= TOLERANCE:
        value = math.fsum(array.tolist()) / n
        return Interval(
            -math.inf if side == "upper" else value,
            math.inf if side == "lower" else value,
            level,
            "percentile",
        )

    units, bits = fixed_point(np.sort(array))  # the same values in another order give the same interval
    sums = np.sort(_resampled_sums(units, resamples, seed))
    shares = {"two": (outside / 2.0, 1.0 - outside / 2.0), "lower": (outside, 1.0), "upper": (0.0, level)}[side]
    corrected = _corrected_shares(units, sums, slack(n, bits), shares)
    method = "percentile" if corrected is None else "BCa"
    low_share, high_share = corrected or shares

    # 1e-9 keeps the last bit of a share from moving a rank that is a whole number.
    low_rank = max(1, math.floor((resamples + 1) * low_share + 1e-9))
    high_rank = min(resamples, math.ceil((resamples + 1) * high_share - 1e-9))
    return Interval(
        low=-math.inf if side == "upper" else _mean(int(sums[low_rank - 1]), n, bits),
        high=math.inf if side == "lower" else _mean(int(sums[max(high_rank, 1) - 1]), n, bits),
        level=level,
        method=method,
    )


def _mean(total: int, n: int, bits: int) -> float:
    # Division of integers rounds correctly, once.
    return total / (n << bits) if bits >= 0 else (total << -bits) / n


def _corrected_shares(
    units: NDArray[np.int64],
    sums: NDArray[np.int64],
    tie: int,
    shares: tuple[float, float],
) -> tuple[float, float] | None:
    """The percentiles that BCa reads instead of ``shares`` (0 and 1 stay), or None where it is undefined."""
    observed = int(units.sum())
    below = int(np.searchsorted(sums, observed - tie, "left"))
    up_to = int(np.searchsorted(sums, observed + tie, "right"))
    twice = below + up_to  # a tie counts half on either side
    if twice in (0, 2 * sums.size):
        return None
    bias = normal_quantile(twice / (2 * sums.size))
    deviations = units - observed / units.size
    squares = deviations * deviations
    acceleration = ordered_sum(squares * deviations) / (6.0 * ordered_sum(squares) ** 1.5)

    corrected = []
    for share in shares:
        if share in (0.0, 1.0):
            corrected.append(share)
            continue
        z = bias + normal_quantile(share)
        divisor = 1.0 - acceleration * z
        if divisor <= 0.0:
            return None
        corrected.append(normal_cdf(bias + z / divisor))
    return corrected[0], corrected[1]


def _resampled_sums(units: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """The sums of ``resamples`` draws of n values with replacement, in no particular order.

    Drawing the indices costs twice as much as looking them up. So a block of draws serves eight
    resamples: in each, every index is moved on by one uniform random offset (modulo n) in a random order
    of the values. Each is a bootstrap resample in its own right, and two that share their draws are
    uncorrelated, because independent uniform offsets move a query to any other with equal chance. Below
    64 values, where few offsets exist, each resample has its own draws.
    """
    n = int(units.size)
    shifts = _SHIFTS if n >= _SHIFTED_FROM else 1
    sums = np.empty((shifts, -(-resamples // shifts)), dtype=np.int64)
    # Below 2**53 sums of whole numbers are exact as floats, in whatever order they are added.
    if sums.shape[1] * n <= _KEPT and n * int(np.abs(units).max()) < 1 << 53:
        _multiply(units, sums, seed)
        return sums.reshape(-1)[:resamples]
    bits = RawBits(seed)
    twice = _twice(units, _order(bits, n, shifts))
    for start, offsets, index in _blocks(bits, n, *sums.shape):
        picked = np.empty(index.shape, dtype=np.int64)
        for shift, offset in enumerate(offsets):
            twice[offset:].take(index, out=picked, mode="clip")
            picked.sum(axis=1, out=sums[shift, start : start + len(index)])
    return sums.reshape(-1)[:resamples]


def _multiply(units: NDArray[np.int64], sums: NDArray[np.int64], seed: int) -> None:
    """The same sums from how often each value is drawn: every gate on as many queries draws alike."""
    n = int(units.size)
    order, blocks = _kept_draws(n, *sums.shape, seed)
    windows = np.lib.stride_tricks.sliding_window_view(_twice(units, order).astype(np.float64), n)
    for start, offsets, drawn in blocks:
        sums[:, start : start + len(drawn)] = (drawn @ windows[offsets].T).T


@lru_cache(maxsize=2)
def _kept_draws(
    n: int, shifts: int, rows: int, seed: int
) -> tuple[NDArray[np.intp] | None, list[tuple[int, list[int], NDArray[np.float64]]]]:
    """The order of the values, and for each block how often each resample (a row) draws each value."""
    bits = RawBits(seed)
    order = _order(bits, n, shifts)
    blocks = []
    for start, offsets, index in _blocks(bits, n, shifts, rows):
        index += np.arange(len(index))[:, None] * n
        drawn = np.bincount(index.reshape(-1), minlength=index.size).reshape(index.shape)
        blocks.append((start, offsets, drawn.astype(np.float64)))
    return order, blocks


def _order(bits: RawBits, n: int, shifts: int) -> NDArray[np.intp] | None:
    """The random order of the values; None for their own."""
    return bits.permutation(n) if shifts > 1 else None


def _twice(units: NDArray[np.int64], order: NDArray[np.intp] | None) -> NDArray[np.int64]:
    """The values in that order, twice in a row: from every offset on there are n of them."""
    return np.tile(units if order is None else units[order], 2)


def _blocks(bits: RawBits, n: int, shifts: int, rows_in_all: int) -> Iterator[tuple[int, list[int], NDArray[np.int64]]]:
    """The first row of each block, the offset of each shift, and the indices that each row draws."""
    rows_per_block = min(rows_in_all, max(1, _BLOCK // n))
    for start in range(0, rows_in_all, rows_per_block):
        rows = min(rows_per_block, rows_in_all - start)
        offsets = bits.indices(n, shifts).tolist() if shifts > 1 else [0]
        yield start, offsets, bits.indices(n, rows * n).reshape(rows, n)


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share (Wilson 1927), for hit rates and other counts of queries.

    Args:
        successes: queries that succeeded, 0 to n; no whole number where queries have weights.
        n: queries.
        level: confidence.

    Raises:
        ValueError: n < 1, ``successes`` outside 0 to n, or ``level`` outside (0, 1).

    >>> interval = wilson(27, 30)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.744, 0.965)
    """
    if n < 1:
        raise ValueError(f"n is {n}; expected at least 1")
    if not 0 <= successes <= n:
        raise ValueError(f"successes is {successes}; expected 0 to n = {n}")
    z = normal_quantile(0.5 + fraction(level, "level") / 2.0)
    share, square = successes / n, z * z
    centre = (share + square / (2 * n)) / (1.0 + square / n)
    half = z / (1.0 + square / n) * math.sqrt(share * (1.0 - share) / n + square / (4 * n * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(low, high, level, "Wilson")
