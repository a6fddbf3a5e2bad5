"""How well one score of each query foretells another: rank correlations with their interval, ceiling and ties."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_retrieval_eval.stats._exact import RawBits
from pytest_retrieval_eval.stats._vectors import fraction, vector
from pytest_retrieval_eval.stats.intervals import Interval
from pytest_retrieval_eval.stats.rank_correlation import kendall_tau_b, spearman

# Values nearer than the project's tolerance are ties: sums in another order end in another last bit.
_DIGITS = 9
# Entries of the blocks that the bootstrap works on: 16 MB of floats.
_BLOCK = 1 << 21
# With more undefined resamples than this share the rest is no sample of the statistic.
_LOST = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Association:
    """How two scores of the same queries go together.

    Attributes:
        n: queries.
        tau, rho: Kendall's tau-b and Spearman's rho, None where ``undefined`` says why.
        interval: percentile bootstrap interval of tau-b over the queries; None where more than 5 % of the resamples
            have no tau.
        ceiling: the largest tau-b that any pairing of the same values could have, ties being what they are.
        auc: how often a query whose second score is the larger has the larger first score, ties counting half; None
            unless the second score has two values.
        tied, tied_other: the share of the pairs of queries that the first, and the second, score does not tell apart.
        undefined: why there is no correlation; empty where there is one.
    """

    n: int
    tau: float | None
    rho: float | None
    interval: Interval | None
    ceiling: float | None
    auc: float | None
    tied: float
    tied_other: float
    undefined: str = ""


def association(
    scores: ArrayLike, answers: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Association:
    """Hold one score of each query against another. Values that differ by less than 1e-9 are ties.

    A constant side has no correlation with anything, and fewer than two queries have none: ``undefined`` says so, and
    nothing is NaN.

    Args:
        scores: shape (n,), what should foretell.
        answers: shape (n,), what is to be foretold.
        level: confidence of the interval.
        resamples: bootstrap resamples of the queries.
        seed: of the resamples.

    Raises:
        ValueError: the lengths differ, a value is NaN or infinite, or an argument is out of range.

    >>> found = association([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1])
    >>> round(found.tau, 3), round(found.ceiling, 3), found.auc
    (0.816, 0.816, 1.0)
    >>> association([0.5, 0.5], [0, 1]).undefined
    'constant scores'
    """
    first, second = (
        np.round(_numbers(side, name), _DIGITS) for side, name in ((scores, "scores"), (answers, "answers"))
    )
    if first.size != second.size:
        raise ValueError(f"{first.size} scores and {second.size} answers; expected one of each per query")
    tied, tied_other = tied_share(first), tied_share(second)
    auc = area_under_curve(first, second) if len(np.unique(second)) == 2 else None
    why = _undefined(first, second)
    if why:
        return Association(first.size, None, None, None, None, auc, tied, tied_other, why)
    return Association(
        first.size,
        kendall_tau_b(first, second),
        spearman(first, second),
        tau_b_interval(first, second, level=level, resamples=resamples, seed=seed),
        kendall_tau_b(np.sort(first), np.sort(second)),  # no pairing has more concordant pairs, or fewer discordant
        auc,
        tied,
        tied_other,
    )


def binary_ceiling(rate: float) -> float:
    """The largest tau-b of scores without ties against an outcome of two values, in many queries.

    Two outcomes tie most pairs of queries, and tau-b counts those against the score: √(2 p (1 − p)) at the rate p.

    >>> round(binary_ceiling(0.35), 3), round(binary_ceiling(0.5), 3)
    (0.675, 0.707)
    """
    share = fraction(rate, "rate")
    return math.sqrt(2.0 * share * (1.0 - share))


def area_under_curve(scores: ArrayLike, outcome: ArrayLike) -> float:
    """The chance that a query of the larger outcome has a higher score than one of the smaller, ties counting half.

    Raises:
        ValueError: the outcome has not exactly two values, or the lengths differ.

    >>> area_under_curve([3, 1, 2, 2], [1, 0, 1, 0])
    0.875
    """
    first, second = vector(scores, "scores"), vector(outcome, "outcome")
    values = np.unique(second)
    if first.size != second.size or values.size != 2:
        raise ValueError(f"the outcome has {values.size} values for {first.size} scores; expected two, one a query")
    low, high = np.sort(first[second == values[0]]), first[second == values[1]]
    wins = np.searchsorted(low, high, "left").sum() + np.searchsorted(low, high, "right").sum()
    return float(int(wins) / (2 * low.size * high.size))


def tied_share(values: ArrayLike) -> float:
    """The share of pairs with equal values; 0 where there is no pair.

    >>> tied_share([1, 1, 2]), tied_share([1])
    (0.3333333333333333, 0.0)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return 0.0
    sizes = np.unique(array, return_counts=True)[1].astype(np.int64)
    return int((sizes * (sizes - 1)).sum()) / (array.size * (array.size - 1))


def tau_b_interval(
    x: ArrayLike, y: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval | None:
    """The percentile bootstrap interval of tau-b, over queries drawn with replacement.

    Resamples in which a side is constant have no tau and are left out; None where they are more than 5 %.

    Raises:
        ValueError: as :func:`~pytest_retrieval_eval.stats.kendall_tau_b`, or an argument is out of range.

    >>> tau_b_interval([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]).high
    1.0
    """
    outside = (1.0 - fraction(level, "level")) / 2.0
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    kendall_tau_b(x, y)  # refuses what has none
    pairs = np.stack([np.asarray(x, np.float64), np.asarray(y, np.float64)], axis=1)
    # Queries with the same two scores are drawn alike: it is enough to know how often each kind is drawn.
    kinds, of_query = np.unique(pairs, axis=0, return_inverse=True)
    taus = _taus(kinds, _drawn(of_query.reshape(-1), len(kinds), resamples, seed))
    taus = np.sort(taus[~np.isnan(taus)])
    if taus.size < (1.0 - _LOST) * resamples:
        return None
    low = max(1, math.floor((taus.size + 1) * outside + 1e-9))
    high = min(taus.size, math.ceil((taus.size + 1) * (1.0 - outside) - 1e-9))
    return Interval(float(taus[low - 1]), float(taus[max(high, 1) - 1]), level, "percentile")


def _drawn(of_query: NDArray[np.int64], kinds: int, resamples: int, seed: int) -> Floats:
    """How often each resample (a row) draws each kind of query."""
    n, bits = of_query.size, RawBits(seed)
    drawn = np.empty((resamples, kinds))
    step = max(1, _BLOCK // max(n, kinds))
    for begin in range(0, resamples, step):
        rows = min(step, resamples - begin)
        found = of_query[bits.indices(n, rows * n)].reshape(rows, n) + np.arange(rows)[:, None] * kinds
        drawn[begin : begin + rows] = np.bincount(found.reshape(-1), minlength=rows * kinds).reshape(rows, kinds)
    return drawn


def _taus(kinds: Floats, drawn: Floats) -> Floats:
    """tau-b of each resample, NaN where a side is constant in it. Sums of whole numbers below 2**53 are exact."""
    balance, untied, untied_other = (np.zeros(len(drawn)) for _ in range(3))
    step = max(1, _BLOCK // len(kinds))
    for begin in range(0, len(kinds), step):
        block = kinds[begin : begin + step]
        weights = drawn[:, begin : begin + step]
        signs = np.sign(kinds[:, None, 0] - block[None, :, 0])
        others = np.sign(kinds[:, None, 1] - block[None, :, 1])
        for total, table in ((balance, signs * others), (untied, np.abs(signs)), (untied_other, np.abs(others))):
            total += ((drawn @ table) * weights).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        taus: Floats = np.clip(balance / np.sqrt(untied * untied_other), -1.0, 1.0)
    return taus


def _undefined(first: Floats, second: Floats) -> str:
    if first.size < 2:
        return "fewer than 2 queries"
    constant = [name for name, side in (("scores", first), ("answers", second)) if (side == side[0]).all()]
    return f"constant {' and '.join(constant)}" if constant else ""


def _numbers(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return vector(array, name) if array.size else array.reshape(-1)
