"""The exact sign-flip distribution of differences that are multiples of one fraction, by counting subsets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.stats._exact import SMALLEST_FLOAT, ordered_sum
from pytest_retrieval_eval.stats._vectors import distinct
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

# The choice of the method looks at these and at the data, never at the clock.
LATTICE_CELLS = 10**7
LATTICE_ADDITIONS = 2 * 10**8

# A difference counts as the fraction p/q if it lies this near it: ten printed digits are near enough.
# With q at most 10,000 an arbitrary real number does so with a probability of about 1 in 80, and all
# differences have to at once; were they to, no mean would be off by as much as the tolerance.
_FRACTION_ERROR = 2e-10
_LARGEST_FRACTION = 10_000


def lattice_steps(different: NDArray[np.float64], denominator: int | None) -> NDArray[np.int64] | None:
    """The differences as integers in units of their common spacing, or None where there is no lattice."""
    largest = LATTICE_CELLS // different.size
    if denominator is None:
        denominator = _common_denominator(np.abs(different), largest)
        if denominator is None:
            return None
    scaled = different * denominator
    if float(np.abs(scaled).max()) >= 2.0**31:  # so that the sum of any number of them fits 64 bits
        return None
    steps = np.rint(scaled)
    wrong = np.abs(scaled - steps) > TOLERANCE * denominator
    if wrong.any():
        value = different[int(np.flatnonzero(wrong)[0])]
        raise ValueError(f"the difference {value} is not a multiple of 1/{denominator}, the denominator given")
    units = steps.astype(np.int64)
    spacing = int(np.gcd.reduce(units))
    if denominator // math.gcd(denominator, spacing) > largest:
        return None
    return units // spacing if spacing else None


def _common_denominator(sizes: NDArray[np.float64], largest: int) -> int | None:
    """The least D <= ``largest`` of which all ``sizes`` are multiples of 1/D, or None.

    Each round takes one value that is no multiple yet, finds its fraction and widens D by it, so that D at
    least doubles. Differences that are not fractions of small numbers end this in the first rounds, most of them
    before the first: it would look at the first value, and find nothing.
    """
    first = float(sizes[0])
    if abs(first - round(first)) > _FRACTION_ERROR and _small_denominator(first) is None:
        return None
    denominator = 1
    while True:
        scaled = sizes * denominator
        outside = np.abs(scaled - np.rint(scaled)) > _FRACTION_ERROR * denominator
        if not outside.any():
            return denominator
        found = _small_denominator(float(sizes[int(outside.argmax())]))
        if found is None:
            return None
        widened = math.lcm(denominator, found)
        if widened == denominator or widened > largest:
            return None
        denominator = widened


def _small_denominator(value: float) -> int | None:
    """The denominator of the first convergent of the continued fraction of ``value`` that equals it, or None.

    A fraction p/q nearer than 1 / (2 q**2) is always a convergent (Legendre), so none is missed.
    """
    numerator, divisor = value.as_integer_ratio()
    p, p_before, q, q_before = 1, 0, 0, 1
    while divisor:
        whole, rest = divmod(numerator, divisor)
        p, p_before, q, q_before = whole * p + p_before, p, whole * q + q_before, q
        if q > _LARGEST_FRACTION:
            return None
        if abs(value - p / q) <= _FRACTION_ERROR:
            return q
        numerator, divisor = divisor, rest
    return None


def affordable(steps: NDArray[np.int64]) -> bool:
    """Whether `lattice_tails` counts these in few enough cells and additions: a fifth of a second, 160 MB."""
    sizes = np.abs(steps)
    cells = (int(sizes.sum()) - abs(int(steps.sum()))) // 2 + 1
    _, multiplicities = distinct(sizes)
    one_by_one = sizes.size - int(multiplicities.max())  # the commonest step enters by a closed form
    return cells <= LATTICE_CELLS and cells * (one_by_one + 1) <= LATTICE_ADDITIONS


def lattice_tails(sizes: NDArray[np.int64], thresholds: Sequence[int]) -> list[float]:
    """P(|S| >= x) for each threshold x >= 1, S the sum of the sizes with random signs.

    S = total - 2 X with X the sum of a random subset, and by symmetry the tail is 2 P(X <= (total - x) / 2).
    Only cells up to there are kept. Counts are floats: exact below 2**53, above with at most one rounding per
    addition of positive numbers.
    """
    total, k = int(sizes.sum()), int(sizes.size)
    caps = [(total - x) // 2 for x in thresholds]
    top = max(caps)
    if top < 0:
        return [0.0 for _ in thresholds]
    steps, multiplicities = distinct(sizes)
    commonest = int(multiplicities.argmax())
    first, repeats = int(steps[commonest]), int(multiplicities[commonest])
    coefficients, exponent = _binomials(repeats, min(repeats, top // first))
    counts, spare = np.zeros(top + 1), np.zeros(top + 1)
    counts[: first * coefficients.size : first] = coefficients
    reach = first * (coefficients.size - 1)
    room = 600  # doublings until the counts, below 2**300 here, could overflow
    for step, multiplicity in zip(steps.tolist(), multiplicities.tolist(), strict=True):
        if step == first or step > top:
            continue
        for _ in range(multiplicity):
            reach = min(top, reach + step)
            spare[:step] = counts[:step]
            np.add(counts[step : reach + 1], counts[: reach + 1 - step], out=spare[step : reach + 1])
            counts, spare = spare, counts
            room -= 1
            if room == 0:
                _, excess = math.frexp(float(counts.max()))
                np.ldexp(counts, -excess, out=counts)
                exponent += excess
                room = 600
    return [
        min(1.0, max(math.ldexp(ordered_sum(counts[: cap + 1]), exponent + 1 - k), SMALLEST_FLOAT)) if cap >= 0 else 0.0
        for cap in caps
    ]


def _binomials(n: int, last: int) -> tuple[NDArray[np.float64], int]:
    """C(n, 0) ... C(n, last) as floats below 2**300 with a common exponent of two, each correctly rounded.

    >>> coefficients, exponent = _binomials(4, 4)
    >>> coefficients.tolist(), exponent
    ([1.0, 4.0, 6.0, 4.0, 1.0], 0)
    """
    values: list[float] = []
    exponents: list[int] = []
    coefficient, exponent = 1, 0
    for j in range(last + 1):
        values.append(float(coefficient))
        exponents.append(exponent)
        coefficient = coefficient * (n - j) // (j + 1)
        excess = coefficient.bit_length() - 256
        if excess > 0:  # 192 bits remain: the error stays far below a rounding to 53
            coefficient >>= excess + 64
            exponent += excess + 64
    common = max(exponents)
    return np.ldexp(np.array(values), np.array(exponents, dtype=np.int64) - common), common
