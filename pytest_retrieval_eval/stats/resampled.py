"""Intervals and paired tests of any statistic over the queries: a percentile, a ratio, an area under a curve.

A mean has exact and faster ways (`stats.paired`, `stats.intervals`); what is no mean is resampled here. All
randomness is raw bits of PCG64, so that the same values give the same numbers on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.stats._exact import RawBits
from pytest_retrieval_eval.stats._special import incomplete_beta, normal_quantile
from pytest_retrieval_eval.stats._vectors import fraction, vector
from pytest_retrieval_eval.stats.intervals import Interval
from pytest_retrieval_eval.stats.paired import PairedTest
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

Floats: TypeAlias = "NDArray[np.float64]"
# Samples as rows (m, n), and the class of each value in a row (m, n); gives (m,), NaN where it is undefined.
Statistic: TypeAlias = "Callable[[Floats, Floats], Floats]"

_CELLS = 1 << 20  # of one block of samples
_MOST, _FEWEST, _BUDGET = 4_000, 1_000, 4_000_000
_ENUMERATED = 12  # up to so many differing queries, every pattern of swaps is looked at
_REACH = 20.0  # standard deviations from the quantile, beyond which a rank weighs nothing
_DEFINED = 20  # an interval needs so many resamples in which the statistic is defined


def quantile(samples: Floats, q: float) -> Floats:
    """The q-quantile of each row, between order statistics by straight lines (Hyndman & Fan 1996, definition 7).

    >>> quantile(np.array([[1.0, 2.0, 3.0, 10.0]]), 0.5).tolist()
    [2.5]
    """
    n = samples.shape[-1]
    place = q * (n - 1)
    low = min(math.floor(place + TOLERANCE), n - 1)
    weight = max(place - low, 0.0)
    if weight <= TOLERANCE or low == n - 1:
        found: Floats = np.partition(samples, low, axis=-1)[..., low]
        return found
    parts = np.partition(samples, (low, low + 1), axis=-1)
    between: Floats = parts[..., low] + weight * (parts[..., low + 1] - parts[..., low])
    return between


def smooth_quantile(samples: Floats, q: float) -> Floats:
    """The q-quantile of each row as a weighted mean of all order statistics (Harrell & Davis 1982).

    The weight of a rank is the chance of a Beta((n + 1) q, (n + 1) (1 − q)) between its two edges. It hangs on more
    queries than ``quantile`` does, so that a paired test of few queries still tells patterns apart.

    >>> smooth_quantile(np.array([[1.0, 2.0, 3.0]]), 0.5).tolist()
    [2.0]
    """
    low, weights = _weights(samples.shape[-1], q)
    top = np.partition(samples, low, axis=-1)[..., low:] if low else samples
    found: Floats = np.sort(top, axis=-1)[..., : len(weights)] @ weights
    return found


@lru_cache(maxsize=32)
def _weights(n: int, q: float) -> tuple[int, Floats]:
    """The weights of the ranks that have any, which begin at the rank ``low`` (from 0)."""
    reach = _REACH * math.sqrt(q * (1.0 - q) / (n + 2.0))
    low, high = max(0, math.floor(n * (q - reach))), min(n, math.ceil(n * (q + reach)))
    a, b = (n + 1.0) * q, (n + 1.0) * (1.0 - q)
    below = np.array([incomplete_beta(a, b, i / n, (n - i) / n) for i in range(low, high + 1)])
    weights = np.diff(below)
    return low, weights / weights.sum()


def resamples_for(n: int) -> int:
    """How many resamples of n queries are worth their time.

    >>> resamples_for(100), resamples_for(2_000), resamples_for(1_000_000)
    (4000, 2000, 1000)
    """
    return max(_FEWEST, min(_MOST, _BUDGET // max(n, 1)))


def bootstrap_statistic(
    values: Floats, statistic: Statistic, classes: Floats | None = None, *, level: float = 0.95, seed: int = 0
) -> Interval | None:
    """The percentile bootstrap interval of a statistic; queries are drawn with their classes.

    None where the statistic is undefined in most resamples.

    >>> interval = bootstrap_statistic(np.arange(100.0), lambda rows, _: quantile(rows, 0.5))
    >>> interval.low < 49.5 < interval.high, interval.method
    (True, 'percentile')
    """
    array, labels = _columns(values, classes)
    found = [
        statistic(array[index], labels[index]) for index in _draws(array.size, resamples_for(array.size), RawBits(seed))
    ]
    return _percentile(np.concatenate(found), level, "two")


def bootstrap_difference(
    after: Floats,
    before: Floats,
    statistic: Statistic,
    classes: Floats | None = None,
    *,
    level: float = 0.95,
    side: Literal["two", "lower"] = "two",
    sign: int = 1,
    seed: int = 0,
) -> Interval | None:
    """The same of ``sign`` × (statistic of ``after`` − that of ``before``), the queries drawn in pairs."""
    return _percentile(_differences(after, before, statistic, classes, sign, seed), level, side)


def detectable_difference(
    after: Floats, before: Floats, statistic: Statistic, classes: Floats | None = None, *, alpha: float = 0.05
) -> float:
    """The difference that a one-sided test would find with 80 % power: (z[1 − alpha] + z[.8]) × the standard error,
    which is that of the bootstrap.
    """
    found = _differences(after, before, statistic, classes, 1, 0)
    found = found[np.isfinite(found)]
    error = float(found.std()) if found.size > 1 else 0.0
    return (normal_quantile(1.0 - fraction(alpha, "alpha")) + normal_quantile(0.8)) * error


def swap_test(
    after: Floats,
    before: Floats,
    statistic: Statistic,
    classes: Floats | None = None,
    *,
    sign: int = 1,
    seed: int = 0,
) -> PairedTest:
    """The paired permutation test of a statistic's difference.

    Under the null hypothesis that the two runs are exchangeable, the values of each query could as well have stood
    on the other side. The statistic of both sides is taken anew for every pattern of swaps of the queries that
    differ: for all of them up to 12 such queries, else for random ones with their mirror images, as in
    ``randomization_test``, whose p is that of the mean. The smallest p that a pattern can give
    is that of the most extreme difference.

    >>> slow = np.array([3.0, 5.0, 4.0, 9.0, 8.0])
    >>> swap_test(slow, slow - 1.0, lambda rows, _: quantile(rows, 0.5)).p_better
    0.5
    """
    new, labels = _columns(after, classes)
    old, _ = _columns(before, classes)
    places = np.flatnonzero(np.abs(new - old) > TOLERANCE)
    n, k = int(new.size), int(places.size)
    if k == 0:
        return PairedTest(1.0, 1.0, 1.0, "identical", None, n, 0, 1.0, 1.0)
    observed = sign * float(
        statistic(new[None], labels[None])[0] - statistic(old[None], labels[None])[0]  # NaN: counts as no difference
    )
    observed = observed if math.isfinite(observed) else 0.0
    sizes = []
    exact = k <= _ENUMERATED
    for swaps in _patterns(k, n, exact, seed):
        first, second = np.tile(new, (len(swaps), 1)), np.tile(old, (len(swaps), 1))
        first[:, places] = np.where(swaps, old[places], new[places])
        second[:, places] = np.where(swaps, new[places], old[places])
        rows = np.broadcast_to(labels, first.shape)
        sizes.append(np.abs(statistic(first, rows) - statistic(second, rows)))
    # What is undefined for a pattern could have been anything.
    size = np.nan_to_num(np.concatenate(sizes), nan=math.inf)
    return _tails(size, observed, n, k, None if exact else int(size.size))


def _tails(size: Floats, observed: float, n: int, k: int, resamples: int | None) -> PairedTest:
    """p from |difference| of patterns that stand for their mirror images as well."""
    more, of = (0, size.size) if resamples is None else (1, size.size + 1)
    seen = abs(observed)

    def tail(least: float, strict: bool) -> float:
        found = np.count_nonzero(size > least + TOLERANCE if strict else size >= least - TOLERANCE)
        counts_itself = seen > least + TOLERANCE if strict else seen >= least - TOLERANCE
        return float((int(found) + more * counts_itself) / of)

    if seen > TOLERANCE:
        two_sided = tail(seen, strict=False)
        towards = two_sided / 2.0
    else:
        two_sided, towards = 1.0, 1.0 - tail(0.0, strict=True) / 2.0
    away = 1.0 - tail(seen, strict=True) / 2.0
    finite = size[np.isfinite(size)]
    largest = max(float(finite.max()) if finite.size else 0.0, seen)
    smallest = tail(largest, strict=False) if largest > TOLERANCE else 1.0
    return PairedTest(
        p_two_sided=two_sided,
        p_worse=towards if observed < 0 else away,
        p_better=away if observed < 0 else towards,
        method="enumerated" if resamples is None else "monte carlo",
        resamples=resamples,
        n=n,
        n_different=k,
        smallest_one_sided=smallest / 2.0 if largest > TOLERANCE else 1.0,
        smallest_two_sided=smallest,
    )


def _patterns(k: int, n: int, exact: bool, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Which of k queries are swapped, a row a pattern; of every pattern and its mirror image one."""
    if exact:
        numbers = np.arange(1 << (k - 1))
        yield (numbers[:, None] >> np.arange(k) & 1).astype(bool)
        return
    bits, left = RawBits(seed), resamples_for(n)
    while left:
        rows = min(left, max(1, _CELLS // n))
        yield (bits.bytes(rows * k).reshape(rows, k) & 1).astype(bool)
        left -= rows


def _differences(
    after: Floats, before: Floats, statistic: Statistic, classes: Floats | None, sign: int, seed: int
) -> Floats:
    new, labels = _columns(after, classes)
    old, _ = _columns(before, classes)
    if new.size != old.size:
        raise ValueError(f"after has {new.size} values, before has {old.size}; expected one of each per query")
    found = []
    for index in _draws(new.size, resamples_for(new.size), RawBits(seed)):
        drawn = labels[index]
        found.append(sign * (statistic(new[index], drawn) - statistic(old[index], drawn)))
    return np.concatenate(found)


def _draws(n: int, resamples: int, bits: RawBits) -> Iterator[NDArray[np.int64]]:
    while resamples:
        rows = min(resamples, max(1, _CELLS // n))
        yield bits.indices(n, rows * n).reshape(rows, n)
        resamples -= rows


def _percentile(found: Floats, level: float, side: str) -> Interval | None:
    outside = 1.0 - fraction(level, "level")
    ordered = np.sort(found[np.isfinite(found)])
    if ordered.size < _DEFINED or 2 * ordered.size < found.size:
        return None
    share = outside / 2.0 if side == "two" else outside
    # Ends are order statistics, rounded outwards; 1e-9 keeps the last bit of a share from moving a whole rank.
    low = max(1, math.floor((ordered.size + 1) * share + TOLERANCE))
    high = min(int(ordered.size), math.ceil((ordered.size + 1) * (1.0 - share) - TOLERANCE))
    return Interval(
        float(ordered[low - 1]),
        math.inf if side == "lower" else float(ordered[high - 1]),
        level,
        "percentile",
    )


def _columns(values: Sequence[float] | Floats, classes: Floats | None) -> tuple[Floats, Floats]:
    array = vector(values, "values")
    labels = np.zeros(array.size) if classes is None else vector(classes, "classes")
    if labels.size != array.size:
        raise ValueError(f"classes has {labels.size} values; expected one for each of the {array.size} values")
    return array, labels
