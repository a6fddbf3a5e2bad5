"""Paired tests of a mean difference: randomization by sign flips, and Student's t.

Under the null hypothesis that two runs are exchangeable, each query's difference is as likely to have had the
other sign (Fisher 1935, section 21; for retrieval: Smucker, Allan & Carterette 2007). The p-value is the
share of the 2**k sign patterns of the k differing queries whose sum is at least as extreme as the observed
one. It is counted

* on the *lattice*: where all differences are multiples of 1/D, by counting the subsets of every sum;
* by a *split*: up to 40 differing queries, by meeting in the middle (Horowitz & Sahni 1974);
* by *Monte Carlo* otherwise.

All three compare integers, so p is the same to the last bit everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_retrieval_eval.stats._exact import SMALLEST_FLOAT, fixed_point, slack
from pytest_retrieval_eval.stats._lattice import affordable, lattice_steps, lattice_tails
from pytest_retrieval_eval.stats._monte_carlo import monte_carlo_tails
from pytest_retrieval_eval.stats._special import student_tail
from pytest_retrieval_eval.stats._split import SPLIT_QUERIES, split_tails
from pytest_retrieval_eval.stats._vectors import vector
from pytest_retrieval_eval.stats.tolerance import TOLERANCE


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What a randomization test found.

    Attributes:
        p_two_sided: share of sign patterns whose mean is at least as far from zero as the observed one.
        p_worse: one-sided, for "the mean difference is below zero": share with a mean at most as large.
        p_better: one-sided, for "the mean difference is above zero".
        method: "lattice" and "split" are exact, "monte carlo" is estimated, "identical" has nothing to test.
        resamples: Monte Carlo sign patterns drawn; None where p is exact.
        n: queries.
        n_different: queries whose difference is not zero, to within the tolerance.
        smallest_one_sided: the smallest one-sided p that this many differing queries can give.
        smallest_two_sided: the smallest two-sided p.
    """

    p_two_sided: float
    p_worse: float
    p_better: float
    method: str
    resamples: int | None
    n: int
    n_different: int
    smallest_one_sided: float
    smallest_two_sided: float

    def resolvable(self, alpha: float, sided: Literal["one", "two"]) -> bool:
        """Whether any outcome on these queries could have given p < alpha.

        >>> lost = randomization_test([-1.0, -1.0, -1.0, -1.0])
        >>> lost.smallest_one_sided, lost.resolvable(0.05, "one"), lost.resolvable(0.1, "one")
        (0.0625, False, True)
        """
        if sided not in ("one", "two"):
            raise ValueError(f"{sided!r} is not a valid side. Valid sides: one, two.")
        return (self.smallest_one_sided if sided == "one" else self.smallest_two_sided) < alpha


def randomization_test(
    differences: ArrayLike,
    *,
    denominator: int | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """The paired randomization test of "the mean difference is zero".

    Zero differences (within 1e-9) carry no information about the sign and are dropped first; sums within
    1e-9 of the observed one (or within the rounding of n values) count as equal to it. The method follows
    from the data alone: lattice where differing queries times the common denominator is at most 10**7
    (and the count takes at most 2 * 10**8 additions), else split up to 40 differing queries, else Monte
    Carlo. p does not depend on the order of the queries, and negating the differences swaps ``p_worse``
    and ``p_better``.

    Monte Carlo draws sign patterns with their mirror images, the observed pattern among them: with b of
    ``resamples`` at least as extreme, p is (b + 1) / (resamples + 1) two-sided (Phipson & Smyth 2010), and
    half of that one-sided in the direction of the observed mean.

    Args:
        differences: shape (n,), candidate minus baseline per query, in units of the measure.
        denominator: D, where it is known that all differences are multiples of 1/D; found if None.
        resamples: Monte Carlo sign patterns.
        seed: of the Monte Carlo sign patterns.

    Raises:
        ValueError: ``differences`` is empty, has NaN or infinity, or is not a multiple of 1/``denominator``.

    >>> test = randomization_test([0.4 - 0.2, 0.7 - 0.9, 0.4 - 0.2, 0.6 - 0.8])
    >>> test.p_two_sided, test.method
    (1.0, 'lattice')
    """
    values = vector(differences, "differences")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    if denominator is not None and denominator < 1:
        raise ValueError(f"denominator is {denominator}; expected at least 1")
    n = int(values.size)
    different = values[np.abs(values) > TOLERANCE]
    k = int(different.size)
    if k == 0:
        return PairedTest(1.0, 1.0, 1.0, "identical", None, n, 0, 1.0, 1.0)

    steps = lattice_steps(different, denominator)
    if steps is not None and not affordable(steps):
        steps = None
    if steps is not None:
        method, tie = "lattice", 0
    else:
        steps, bits = fixed_point(different)
        method, tie = ("split" if k <= SPLIT_QUERIES else "monte carlo"), slack(k, bits)

    total = int(steps.sum())
    observed = abs(total)
    sizes = np.sort(np.abs(steps))  # the same differences in another order give the same p
    # With T(x) = P(|S| >= x) and S symmetric: P(S >= x) = T(x) / 2 and P(S >= -x) = 1 - T(x + 1) / 2 for x >
    # 0.
    near = observed - tie if observed > tie else tie - observed + 1
    far = observed + tie + 1
    if method == "lattice":
        near_tail, far_tail = lattice_tails(sizes, (near, far))
    elif method == "split":
        near_tail, far_tail = split_tails(sizes, (near, far))
    else:
        near_tail, far_tail = monte_carlo_tails(sizes, (near, far), observed, resamples, seed)
    if observed > tie:
        two_sided, towards = near_tail, near_tail / 2.0
    else:
        two_sided, towards = 1.0, 1.0 - near_tail / 2.0
    away = 1.0 - far_tail / 2.0
    towards = max(towards, SMALLEST_FLOAT)

    sampled = method == "monte carlo"
    floor = 1.0 / (resamples + 1) if sampled else 0.0
    return PairedTest(
        p_two_sided=two_sided,
        p_worse=towards if total < 0 else away,
        p_better=away if total < 0 else towards,
        method=method,
        resamples=resamples if sampled else None,
        n=n,
        n_different=k,
        smallest_one_sided=max(math.ldexp(1.0, -k), floor / 2.0, SMALLEST_FLOAT),
        smallest_two_sided=max(math.ldexp(1.0, 1 - k), floor, SMALLEST_FLOAT),
    )


@dataclass(frozen=True, slots=True)
class TTest:
    """What a paired t-test found: ``statistic`` is mean / (standard deviation / sqrt(n)), ``df`` is n - 1.

    ``p_worse`` is one-sided for "the mean difference is below zero", ``p_better`` for "above zero".
    """

    statistic: float
    df: int
    p_two_sided: float
    p_worse: float
    p_better: float


def t_test(differences: ArrayLike) -> TTest:
    """Student's paired t-test of "the mean difference is zero" (Student 1908).

    Where all differences are equal (within 1e-9) there is no spread to measure against: if they are zero the
    statistic is 0 and p is 1, else the statistic is infinite and p is 0 in its direction.

    Args:
        differences: shape (n,), n >= 2, candidate minus baseline per query.

    Raises:
        ValueError: fewer than two differences, or NaN or infinity among them.

    >>> test = t_test([1.0, 2.0, 3.0])
    >>> round(test.statistic, 4), test.df, round(test.p_two_sided, 4)
    (3.4641, 2, 0.0742)
    """
    values = vector(differences, "differences")
    n = int(values.size)
    if n < 2:
        raise ValueError("differences has one value; a t-test needs at least two")
    mean = math.fsum(values.tolist()) / n
    if float(values.max()) - float(values.min()) <= TOLERANCE:
        if abs(mean) <= TOLERANCE:
            return TTest(0.0, n - 1, 1.0, 1.0, 1.0)
        worse = mean < 0.0
        return TTest(math.copysign(math.inf, mean), n - 1, 0.0, 0.0 if worse else 1.0, 1.0 if worse else 0.0)
    deviation = math.sqrt(math.fsum(((values - mean) ** 2).tolist()) / (n - 1))
    statistic = mean / (deviation / math.sqrt(n))
    tail = student_tail(abs(statistic), n - 1)
    rest = student_tail(-abs(statistic), n - 1)
    worse = statistic < 0.0
    return TTest(statistic, n - 1, min(1.0, 2.0 * tail), tail if worse else rest, rest if worse else tail)
