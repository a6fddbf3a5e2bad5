"""The sign-flip distribution of any number of differences, estimated from seeded random signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.stats._exact import RawBits

# How many random bytes stay in memory between tests: those of 512 differences at 10,000 resamples.
_KEPT = 640_000
# Of four differences: row i, column b is plus where b has bit i.
_SIGNS = np.where(np.arange(16) >> np.arange(4)[:, None] & 1, 1, -1).astype(np.int64)


def monte_carlo_tails(
    sizes: NDArray[np.int64], thresholds: Sequence[int], observed: int, resamples: int, seed: int
) -> list[float]:
    """The estimates of P(|S| >= x): the observed pattern and ``resamples`` random ones.

    One random byte chooses the signs of eight differences at once: it indexes a table of their 256 signed
    sums.
    """
    sums, part = np.empty(resamples, dtype=np.int64), np.empty(resamples, dtype=np.int64)
    into, indices = sums, _indices(seed, resamples)
    chunk = 8 * 64
    for start in range(0, sizes.size, chunk):
        for table in _signed_sums(sizes[start : start + chunk]):
            table.take(next(indices), out=into, mode="clip")  # every index is in range; "clip" skips the check
            if into is part:
                np.add(sums, part, out=sums)
            into = part
    np.abs(sums, out=sums)
    return [(int(np.count_nonzero(sums >= x)) + (observed >= x)) / (resamples + 1) for x in thresholds]


def _indices(seed: int, resamples: int) -> Iterator[NDArray[np.intp]]:
    """The random bytes of one eight of differences after another, each to be read before the next."""
    first = _first_bytes(seed, resamples)
    index = np.empty(resamples, dtype=np.intp)
    for row in first:
        index[:] = row
        yield index
    bits = RawBits(seed, skip=len(first) * -(-resamples // 8))
    while True:
        index[:] = bits.bytes(resamples)
        yield index


@lru_cache(maxsize=1)
def _first_bytes(seed: int, resamples: int) -> NDArray[np.uint8]:
    """The first rows of them, kept: every test with the same seed reads the same, and need not draw them again."""
    bits = RawBits(seed)
    found = np.empty((min(_KEPT // resamples, 64), resamples), dtype=np.uint8)
    for row in found:
        row[:] = bits.bytes(resamples)
    found.flags.writeable = False
    return found


def _signed_sums(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shape (ceil(n / 8), 256): at [g, byte] the sum of the g-th eight sizes, plus where a bit is set.

    >>> _signed_sums(np.array([1, 10]))[0, :4].tolist()
    [-11, -9, 9, 11]
    """
    eights = -(-sizes.size // 8)
    fours = np.zeros((2 * eights, 4), dtype=np.int64)
    fours.reshape(-1)[: sizes.size] = sizes
    halves = fours @ _SIGNS
    low, high = halves[0::2, None, :], halves[1::2, :, None]
    return (high + low).reshape(eights, 256)
