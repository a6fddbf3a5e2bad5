"""The exact sign-flip distribution of a few dozen arbitrary differences, by meeting in the middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SPLIT_QUERIES = 40


def split_tails(sizes: NDArray[np.int64], thresholds: Sequence[int]) -> list[float]:
    """P(|S| >= x) for each threshold x >= 1, S the sum of the sizes with random signs.

    S = total - 2 X with X the sum of a random subset: one of either half of the sizes.
    For each of the one, a binary search counts those of the other that keep X at or below (total - x) / 2.
    """
    total, k = int(sizes.sum()), int(sizes.size)
    caps = [(total - x) // 2 for x in thresholds]
    top = max(caps)
    if top < 0:
        return [0.0 for _ in thresholds]
    left, right = _subset_sums(sizes[0::2], top), _subset_sums(sizes[1::2], top)
    left = left[::-1]  # so that the values looked up ascend, which searchsorted exploits
    return [int(np.searchsorted(right, cap - left, "right").sum()) / 2 ** (k - 1) for cap in caps]


def _subset_sums(sizes: NDArray[np.int64], top: int) -> NDArray[np.int64]:
    """The sums of all subsets that are at most ``top``, ascending.

    >>> _subset_sums(np.array([1, 2, 4]), 5).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    sums = np.zeros(1, dtype=np.int64)
    for size in sizes.tolist():
        more = sums + size
        sums = np.concatenate((sums, more[: np.searchsorted(more, top, "right")]))
        sums.sort(kind="stable")  # merges the two ascending runs
    return sums
