"""Input checks that all statistics share: one dimension, not empty, finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """``values`` as a float64 array of shape (n,), n >= 1; ``name`` is how errors call it.

    Raises:
        ValueError: it is empty, not one-dimensional, or has NaN or infinity (the position is named).
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; expected one number per query")
    if array.size == 0:
        raise ValueError(f"{name} is empty; expected at least one number")
    if not np.isfinite(array).all():
        position = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{position}] is {array[position]}; expected finite numbers")
    return array


def pair(x: ArrayLike, y: ArrayLike, names: tuple[str, str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two vectors of the same length n >= 2, neither of them constant, as a rank correlation needs them.

    Raises:
        ValueError: as `vector`; or the lengths differ, there is only one value, or one side is constant.
    """
    first, second = vector(x, names[0]), vector(y, names[1])
    if first.size != second.size:
        raise ValueError(
            f"{names[0]} has {first.size} values, {names[1]} has {second.size}; expected one of each per item"
        )
    if first.size < 2:
        raise ValueError(f"{names[0]} and {names[1]} have one value each; a correlation needs at least two")
    for name, side in zip(names, (first, second), strict=True):
        if (side == side[0]).all():
            raise ValueError(f"{name} is constant ({side[0]:g}); its correlation with anything is undefined")
    return first, second


def distinct(values: NDArray[np.generic]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The different values, sorted, and how often each is there.

    As ``np.unique`` does, which imports ``numpy.ma`` for it: a tenth of what NumPy itself takes.

    >>> [found.tolist() for found in distinct(np.array([2, 1, 2]))]
    [[1, 2], [1, 2]]
    """
    ordered = np.sort(values)
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: ordered.size])
    return ordered[first], np.diff(np.append(first, ordered.size))


def fraction(value: float, name: str) -> float:
    """``value`` if it lies strictly between 0 and 1.

    Raises:
        ValueError: it does not.
    """
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} is {value}; expected a number strictly between 0 and 1")
    return float(value)
