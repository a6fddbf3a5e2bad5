"""How small a loss a comparison on these queries could have shown."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from pytest_retrieval_eval.stats._special import normal_quantile
from pytest_retrieval_eval.stats._vectors import fraction, vector


def smallest_detectable_drop(
    differences: ArrayLike, *, power: float = 0.8, alpha: float = 0.05, largest_loss: float = 1.0
) -> float:
    """The mean loss that a one-sided test on as many queries would find with probability ``power``.

    The normal approximation for the paired t-test from the observed spread, (z[1 - alpha] + z[power]) * s
    / sqrt(n), but never less than what n queries can rule out at all: a loss of ``largest_loss`` in a
    share of the queries of up to 1 - alpha**(1/n) is seen in none of n with probability ``alpha`` or
    more.

    Args:
        differences: shape (n,), candidate minus baseline per query, in units of the measure.
        power: probability with which the loss is to be found.
        alpha: level of the one-sided test.
        largest_loss: the most that one query can lose, in units of the measure.

    Returns:
        The loss of the mean, > 0, in units of the measure.

    Raises:
        ValueError: ``differences`` is empty or has NaN or infinity, or an argument is out of range.

    >>> round(smallest_detectable_drop([0.0] * 299), 4)
    0.01
    """
    values = vector(differences, "differences")
    fraction(power, "power")
    fraction(alpha, "alpha")
    if not 0.0 < largest_loss < math.inf:
        raise ValueError(f"largest_loss is {largest_loss}; expected a positive number")
    n = int(values.size)
    unseen = -math.expm1(math.log(alpha) / n) * largest_loss
    if n == 1:
        return unseen
    deviation = math.sqrt(math.fsum(((values - math.fsum(values.tolist()) / n) ** 2).tolist()) / (n - 1))
    quantiles = normal_quantile(1.0 - alpha) + normal_quantile(power)
    return max(unseen, quantiles * deviation / math.sqrt(n))
