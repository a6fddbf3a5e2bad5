"""How alike two rankings of the same items are, from the scores that rank them (higher is better)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_retrieval_eval.stats._vectors import pair

# Pairs of items compared at once: 8 MB of signs.
_PAIRS_AT_ONCE = 1 << 20


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b (Kendall 1945): concordant minus discordant pairs, over those that are untied.

    Args:
        x: shape (n,), n >= 2, one score per item.
        y: shape (n,), other scores of the same items.

    Returns:
        Between -1 and 1; without ties the share of concordant minus that of discordant pairs.

    Raises:
        ValueError: the lengths differ, there is one item, a side is constant, or has NaN or infinity.

    >>> round(kendall_tau_b([1, 2, 3, 4], [1, 3, 2, 4]), 6)
    0.666667
    """
    first, second = pair(x, y, ("x", "y"))
    balance = untied_first = untied_second = 0
    for rows in _rows(first.size):
        signs = np.sign(first[rows, None] - first[None, :]).astype(np.int8)
        others = np.sign(second[rows, None] - second[None, :]).astype(np.int8)
        balance += int(np.sum(signs * others, dtype=np.int64))
        untied_first += int(np.count_nonzero(signs))
        untied_second += int(np.count_nonzero(others))
    return _within(balance / math.sqrt(untied_first * untied_second))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho: the linear correlation of the ranks, ties sharing their mean rank (Spearman 1904).

    Args:
        x: shape (n,), n >= 2, one score per item.
        y: shape (n,), other scores of the same items.

    Returns:
        Between -1 and 1.

    Raises:
        ValueError: the lengths differ, there is one item, a side is constant, or has NaN or infinity.

    >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]), 6)
    0.8
    """
    first, second = pair(x, y, ("x", "y"))
    # Ranks are halves: twice the deviation from the mean rank is a whole number, and the sums are exact.
    ranks, others = _doubled_ranks(first) - (first.size + 1), _doubled_ranks(second) - (second.size + 1)
    products, squares, other_squares = (
        int(np.sum(a * b)) for a, b in ((ranks, others), (ranks, ranks), (others, others))
    )
    return _within(products / math.sqrt(squares * other_squares))


def tau_ap(truth: ArrayLike, estimate: ArrayLike) -> float:
    """AP correlation (Yilmaz, Aslam & Robertson 2008): a tau in which errors near the top weigh more.

    Going down the ranking by ``estimate``: the mean, over all items but the first, of the share of items
    above that are truly better; times 2, minus 1. It is not symmetric. Ties count as the mean over all
    ways to break them (Urbano & Marrero 2017), in ``truth`` as half an error each.

    Args:
        truth: shape (n,), n >= 2, the scores that are right.
        estimate: shape (n,), the scores of the same items that are compared with them.

    Returns:
        Between -1 and 1.

    Raises:
        ValueError: the lengths differ, there is one item, a side is constant, or has NaN or infinity.

    >>> tau_ap([4, 3, 2, 1], [4, 3, 1, 2]), tau_ap([4, 3, 2, 1], [3, 4, 2, 1])
    (0.7777777777777777, 0.33333333333333326)
    """
    right, guess = pair(truth, estimate, ("truth", "estimate"))
    n = right.size
    order = np.argsort(-guess, kind="stable")
    right, guess = right[order], guess[order]
    # Twice the number of items ranked strictly above that are truly better, a true tie counting as half.
    agreeing = np.zeros(n, dtype=np.int64)
    for rows in _rows(n):
        above = guess[rows, None] < guess[None, :]
        signs = np.sign(right[None, :] - right[rows, None]).astype(np.int8) + 1
        agreeing[rows] = np.sum(signs * above, axis=1, dtype=np.int64)
    shares = []
    starts = np.flatnonzero(np.concatenate(([True], guess[1:] != guess[:-1])))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True):
        better = int(agreeing[start:end].sum()) / 2 / (end - start)
        for place in range(max(start, 1), end):  # above it: start items, and place - start of its own group
            shares.append((better + (place - start) / 2) / place)
    return _within(2.0 * math.fsum(shares) / (n - 1) - 1.0)


def _rows(n: int) -> Iterator[slice]:
    """Slices of n rows such that a slice times n is a moderate number of pairs."""
    step = max(1, _PAIRS_AT_ONCE // n)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _doubled_ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the rank of each value, from 2 for the smallest; ties share their mean rank."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    doubled: NDArray[np.int64] = (2 * last - sizes + 1)[group]
    return doubled


def _within(value: float) -> float:
    return min(1.0, max(-1.0, value))
