"""Adjusted p-values for a family of tests that is decided together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_retrieval_eval.stats._vectors import vector


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjustment, which bounds the chance of any false rejection (Holm 1979).

    The i-th smallest of m p-values is multiplied by m - i + 1; no adjusted value is below a smaller
    one's. It holds under any dependence.

    Args:
        p: shape (m,), p-values of one family.

    Returns:
        Shape (m,), adjusted p-values in the order given, at most 1: reject where they are below alpha.

    Raises:
        ValueError: ``p`` is empty, or has NaN or a value outside [0, 1].

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    return _restored(np.minimum(raised, 1.0), order)


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """The step-up adjustment of Benjamini & Hochberg (1995, 3.1), which bounds the false discovery rate.

    The i-th smallest of m p-values is multiplied by m / i; no adjusted value is above a larger one's. It
    holds for independent and for positively dependent tests.

    Args:
        p: shape (m,), p-values of one family.

    Returns:
        Shape (m,), adjusted p-values in the order given, at most 1: reject where they are below the rate.

    Raises:
        ValueError: ``p`` is empty, or has NaN or a value outside [0, 1].

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    raised = values[order] * values.size / np.arange(1, values.size + 1)
    return _restored(np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0), order)


def _p_values(p: ArrayLike) -> NDArray[np.float64]:
    values = vector(p, "p")
    outside = np.flatnonzero((values < 0.0) | (values > 1.0))
    if outside.size:
        position = int(outside[0])
        raise ValueError(f"p[{position}] is {values[position]}; expected a probability between 0 and 1")
    return values


def _restored(ordered: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.float64]:
    restored = np.empty_like(ordered)
    restored[order] = ordered
    return restored
