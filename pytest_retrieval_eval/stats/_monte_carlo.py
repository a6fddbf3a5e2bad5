"""The sign-flip distribution of any number of differences, estimated from seeded random signs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.stats._exact import RawBits


def monte_carlo_tails(
    sizes: NDArray[np.int64], thresholds: Sequence[int], observed: int, resamples: int, seed: int
) -> list[float]:
    """The estimates of P(|S| >= x): the observed pattern and ``resamples`` random ones.

    One random byte chooses the signs of eight differences at once: it indexes a table of their 256 signed
    sums.
    """
    bits = RawBits(seed)
    sums, part = np.zeros(resamples, dtype=np.int64), np.empty(resamples, dtype=np.int64)
    index = np.empty(resamples, dtype=np.intp)
    chunk = 8 * 64
    for start in range(0, sizes.size, chunk):
        for table in _signed_sums(sizes[start : start + chunk]):
            index[:] = bits.bytes(resamples)
            table.take(index, out=part, mode="clip")  # every index is in range; "clip" skips the check
            sums += part
    np.abs(sums, out=sums)
    return [(int(np.count_nonzero(sums >= x)) + (observed >= x)) / (resamples + 1) for x in thresholds]


def _signed_sums(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shape (ceil(n / 8), 256): at [g, byte] the sum of the g-th eight sizes, plus where a bit is set.

    >>> _signed_sums(np.array([1, 10]))[0, :4].tolist()
    [-11, -9, 9, 11]
    """
    eights = -(-sizes.size // 8)
    fours = np.zeros((2 * eights, 4), dtype=np.int64)
    fours.reshape(-1)[: sizes.size] = sizes
    halves = np.empty((2 * eights, 16), dtype=np.int64)
    halves[:, 0] = -fours.sum(axis=1)
    fours *= 2
    for bit in range(4):
        np.add(halves[:, : 1 << bit], fours[:, bit, None], out=halves[:, 1 << bit : 2 << bit])
    low, high = halves[0::2, None, :], halves[1::2, :, None]
    return (high + low).reshape(eights, 256)
