"""Arithmetic with the same result on every machine and library version: fixed point, raw bits, ordered sums.

Resampling counts compare sums. Sums of floats depend on the order in which a library adds them, so every sum
here is of 64-bit integers (fixed point), and all randomness is the raw output of PCG64, whose stream NumPy
guarantees; the distributions of `numpy.random.Generator` may change between versions and are not used.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.stats.tolerance import TOLERANCE

# Measures lie in [0, 1]: 2**-40 is a thousandth of the tolerance and leaves room for a million queries.
FRACTION_BITS = 40
_SUM_BITS = 61

# What a probability too small for a float is given as: p is never 0.
SMALLEST_FLOAT = math.ulp(0.0)


def fixed_point(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """``round(values * 2**bits)`` and ``bits``; n values of either sign always sum to less than 2**61.

    ``bits`` is 40 unless the values are so large, or so many, that their sum would not fit.

    >>> fixed_point(np.array([0.5, -0.25]))[0].tolist() == [2**39, -(2**38)]
    True
    """
    _, magnitude = math.frexp(float(np.abs(values).max()))
    bits = min(FRACTION_BITS, _SUM_BITS - magnitude - int(values.size).bit_length())
    return np.rint(np.ldexp(values, bits)).astype(np.int64), bits


def slack(n: int, bits: int) -> int:
    """How far two fixed-point sums of n values may lie apart and still count as a tie.

    The tolerance, and never less than n units, by which the rounding of n values can move the difference
    of two sums.
    """
    return max(n, math.ceil(math.ldexp(TOLERANCE, bits)))


def ordered_sum(values: NDArray[np.float64]) -> float:
    """The sum by halving: fixed additions in a fixed order, with an error of log2(n) roundings.

    >>> ordered_sum(np.array([1.0, 2.0, 3.0]))
    6.0
    """
    while values.size > 1:
        half = values.size // 2
        folded = values[:half] + values[half : 2 * half]
        if values.size % 2:
            folded[0] += values[-1]
        values = folded
    return float(values[0]) if values.size else 0.0


class RawBits:
    """A seeded stream of raw bits, read as bytes or as indices; its first ``skip`` words of 64 bits are left out.

    >>> RawBits(0).bytes(4).tolist(), RawBits(0).indices(10, 4).tolist()
    ([95, 130, 194, 217], [8, 6, 5, 2])
    >>> RawBits(0).bytes(20)[16:].tolist() == RawBits(0, skip=2).bytes(4).tolist()
    True
    """

    def __init__(self, seed: int, skip: int = 0) -> None:
        self._generator = np.random.PCG64(seed)
        if skip:
            self._generator.advance(skip)

    def _words(self, count: int) -> NDArray[np.uint64]:
        words: NDArray[np.uint64] = self._generator.random_raw(count)
        return words.astype("<u8", copy=False)  # the order of the bytes is part of the stream

    def bytes(self, count: int) -> NDArray[np.uint8]:
        """``count`` bytes; whole 64-bit words are used up."""
        return self._words(-(-count // 8)).view(np.uint8)[:count]

    def permutation(self, n: int) -> NDArray[np.intp]:
        """The numbers 0 to n - 1 in a random order: that of n random words."""
        return np.argsort(self._words(n), kind="stable")

    def indices(self, n: int, count: int) -> NDArray[np.int64]:
        """``count`` integers, uniform in [0, n) up to n / 2**32, by multiply and shift of 32-bit pieces."""
        pieces = self._words(-(-count // 2)).view("<u4")[:count]
        products: NDArray[np.uint64] = np.multiply(pieces, np.uint64(n), dtype=np.uint64)
        products >>= np.uint64(32)
        return products.view(np.int64)
