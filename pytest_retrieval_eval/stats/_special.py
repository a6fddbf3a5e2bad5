"""The normal and Student distributions, without scipy."""

from __future__ import annotations

import math


def normal_cdf(z: float) -> float:
    """P(Z <= z) for a standard normal Z.

    >>> normal_cdf(0.0)
    0.5
    """
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """The z with P(Z <= z) = p, for 0 < p < 1.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    from statistics import NormalDist  # with fractions and decimals, which few sessions need

    return NormalDist().inv_cdf(p)


def student_tail(t: float, df: int) -> float:
    """P(T >= t) for a Student T with ``df`` degrees of freedom, to about 1e-13 of its value.

    P(|T| >= t) is the regularized incomplete beta function at df / (df + t**2) with parameters df/2 and 1/2
    (Abramowitz & Stegun 1964, 26.7.1 and 26.5.27).

    >>> round(student_tail(1.0, 1), 12)
    0.25
    """
    square = t * t
    both = incomplete_beta(df / 2.0, 0.5, df / (df + square), square / (df + square))
    return both / 2.0 if t >= 0.0 else 1.0 - both / 2.0


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function I_x(a, b); ``rest`` is 1 - x, apart for precision near 1.

    The continued fraction of DLMF 8.17.22 by Lentz's method (Lentz 1976; Thompson & Barnett 1986), on the
    side of the mean a / (a + b) where it converges fast.

    >>> round(incomplete_beta(2.0, 3.0, 0.4, 0.6), 12)
    0.5248
    """
    if x <= 0.0:
        return 0.0
    if rest <= 0.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, rest, x)
    front = math.exp(_log_inverse_beta(a, b) + a * math.log(x) + b * _log_complement(x, rest)) / a
    return front * _beta_fraction(a, b, x)


def _log_complement(x: float, rest: float) -> float:
    return math.log1p(-x) if x < 0.5 else math.log(rest)


def _log_inverse_beta(a: float, b: float) -> float:
    return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def _beta_fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0), tiny)
    value = d
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away_from_zero(1.0 + numerator * d, tiny)
            c = _away_from_zero(1.0 + numerator / c, tiny)
            value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return value


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
