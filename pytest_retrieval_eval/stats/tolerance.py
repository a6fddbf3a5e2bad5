"""The one tolerance: two means that differ by at most this are equal, in every comparison and count."""

from __future__ import annotations

TOLERANCE = 1e-9


def same(a: float, b: float) -> bool:
    """Whether two values are equal to within the tolerance.

    >>> same(0.1 + 0.2, 0.3)
    True
    >>> same(0.3, 0.30001)
    False
    """
    return abs(a - b) <= TOLERANCE
