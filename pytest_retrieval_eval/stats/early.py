"""Early stopping: whether a mean difference lies below a margin, settled before every query was read.

Where a query's value is expensive (a reader language model, a judge), queries are read in a seeded random order, and
two one-sided tests watch the paired differences: one against "the mean is at least -margin", one against "the mean
is below -margin". Each is a betting e-process (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random
variables by betting", the section on sampling without replacement): a gambler who bets on the next difference while
the hypothesis holds cannot, on average, gain, and so reaches 1 / alpha times the stake with a probability of at most
alpha, whenever one stops. The collection is finite and each query is read once, so that what the hypothesis expects
of the next difference is updated by those that were read. The stake is spread over bets of several sizes.
"""

from __future__ import annotations

import math
from typing import Literal

from pytest_retrieval_eval.stats._exact import RawBits
from pytest_retrieval_eval.stats._vectors import fraction
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

Decision = Literal["continue", "worse", "not worse"]

# Sizes of bets, as shares of the largest one that cannot leave the gambler in debt, and what is staked on each:
# most differences are zero, which large bets settle soonest; small ones are for noisy differences.
_BETS = (0.125, 0.25, 0.5, 1.0)
_STAKES = tuple(bet / sum(_BETS) for bet in _BETS)


class EarlyStop:
    """Reads differences one by one and says when the verdict is settled.

    Whatever the ``n`` differences are, over the random order the probability of "worse" is at most ``alpha`` where
    their mean is -margin or above, and that of "not worse" at most ``alpha`` where it is below. Nothing is claimed
    where all ``n`` were read without a decision: then their mean is known, and a gate's ordinary rule decides.

    Args:
        n: how many queries there are; each is read once.
        margin: the loss that does not matter, > 0, in units of the measure.
        alpha: probability of a wrong decision.
        bounds: the least and the largest difference that one query can have.
        seed: of the order.

    Attributes:
        order: shape (n,), a permutation of 0 … n - 1: which query to read next.
        read: how many differences were read.
        decision: "continue", "worse" or "not worse".

    Raises:
        ValueError: ``n``, ``margin``, ``alpha`` or ``bounds`` is out of range.

    >>> stop = EarlyStop(300, margin=0.05, seed=1)
    >>> while stop.update(0.0) == "continue":
    ...     pass
    >>> stop.decision, stop.read
    ('not worse', 62)
    """

    __slots__ = ("_alpha", "_better", "_boundary", "_low", "_sum", "_width", "_worse", "decision", "n", "order", "read")

    def __init__(
        self,
        n: int,
        margin: float,
        alpha: float = 0.05,
        bounds: tuple[float, float] = (-1.0, 1.0),
        seed: int = 0,
    ) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; expected at least 1")
        low, high = bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < 0.0 < high):
            raise ValueError(f"bounds are {low} and {high}; expected a negative and a positive number")
        if not margin > TOLERANCE:
            raise ValueError(f"margin is {margin}; early stopping needs a margin above 0, else equal runs never settle")
        if not margin < -low:
            raise ValueError(f"margin is {margin}, and no query can lose more than {-low}; expected a smaller margin")
        self.n = n
        self.read = 0
        self.decision: Decision = "continue"
        self.order = RawBits(seed).permutation(n)
        self.order.flags.writeable = False
        self._alpha = fraction(alpha, "alpha")
        self._low, self._width = low, high - low
        self._boundary = (-margin - low) / self._width  # everything below is scaled to 0 … 1
        self._sum = 0.0
        self._worse, self._better = list(_STAKES), list(_STAKES)

    def update(self, difference: float) -> Decision:
        """Read the difference (candidate minus baseline) of the next query in ``order``.

        Raises:
            ValueError: ``difference`` is NaN or outside the bounds, the verdict is settled, or all queries were read.
        """
        if self.decision != "continue":
            raise ValueError(f"the verdict is settled ({self.decision}) after {self.read} queries")
        if self.read == self.n:
            raise ValueError(f"all {self.n} differences were read")
        value = (difference - self._low) / self._width
        if not -TOLERANCE <= value <= 1.0 + TOLERANCE:
            raise ValueError(
                f"the difference {difference} is outside the bounds {self._low} and {self._low + self._width}"
            )
        value = min(max(value, 0.0), 1.0)
        # The mean of the queries that are left, where that of all is the boundary.
        expected = (self.n * self._boundary - self._sum) / (self.n - self.read)
        if TOLERANCE < expected < 1.0 - TOLERANCE:
            gain, loss = value / expected, (1.0 - value) / (1.0 - expected)
            self._better = [k * (1.0 - bet + bet * gain) for k, bet in zip(self._better, _BETS, strict=True)]
            self._worse = [k * (1.0 - bet + bet * loss) for k, bet in zip(self._worse, _BETS, strict=True)]
        self._sum += value
        self.read += 1
        self.decision = self._decided()
        return self.decision

    def _decided(self) -> Decision:
        missing, left = self.n * self._boundary - self._sum, self.n - self.read
        slack = self.n * TOLERANCE
        if left and missing > left + slack:  # even if no query that is left lost anything
            return "worse"
        if left and missing < -slack:  # even if all of them lost all
            return "not worse"
        if math.fsum(self._worse) >= 1.0 / self._alpha:
            return "worse"
        if math.fsum(self._better) >= 1.0 / self._alpha:
            return "not worse"
        return "continue"
