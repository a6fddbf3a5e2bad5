"""What the values of the queries make together, how sure that is, and how two runs are compared by it.

Of most measures it is the mean, which has exact tests of its own. A measure whose definition names a ``statistic`` (a
percentile of times, a precision over decisions) is summed up by that, and compared by resampling it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_retrieval_eval import stats

if TYPE_CHECKING:
    from pytest_retrieval_eval.measures.ranks import Floats
    from pytest_retrieval_eval.stats.resampled import Statistic


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """The mean, or a ``statistic`` with the ``classes`` of the queries that it reads beside their values.

    ``smooth`` is the statistic that is tested, where it is another. ``extreme`` says that it hangs on one query alone
    (a largest value), so that resampling says nothing of it.
    """

    statistic: Statistic | None = None
    classes: Floats | None = None
    extreme: bool = False
    smooth: Statistic | None = None

    def of(self, values: Floats) -> float:
        """The one number; NaN where a statistic is undefined."""
        if self.statistic is None:
            return stats.mean(values)
        return float(self.statistic(values[None], self._rows(values)[None])[0])

    def _rows(self, values: Floats) -> Floats:
        return np.zeros(len(values)) if self.classes is None else self.classes

    def interval(self, values: Floats, level: float = 0.95) -> stats.Interval | None:
        """Its confidence interval; None where there is none."""
        if self.statistic is None:
            return stats.bootstrap_mean(values, level=level)
        return None if self.extreme else stats.bootstrap_statistic(values, self.statistic, self.classes, level=level)

    def difference(
        self, after: Floats, before: Floats, sign: int, level: float, side: Literal["two", "lower"] = "two"
    ) -> stats.Interval | None:
        """The interval of ``sign`` × (that of ``after`` − that of ``before``)."""
        if self.statistic is None:
            return stats.bootstrap_mean(sign * (after - before), level=level, side=side)
        if self.extreme:
            return None
        return stats.bootstrap_difference(
            after, before, self.statistic, self.classes, level=level, side=side, sign=sign
        )

    def test(self, after: Floats, before: Floats, sign: int) -> stats.PairedTest:
        """The paired test of that difference being 0; below 0 is worse."""
        if self.statistic is None:
            return stats.randomization_test(sign * (after - before))
        return stats.swap_test(after, before, self.smooth or self.statistic, self.classes, sign=sign)

    def detectable(self, after: Floats, before: Floats, alpha: float, largest: float) -> float | None:
        """The smallest difference that the test would find with 80 % power."""
        if self.statistic is None:
            return stats.smallest_detectable_drop(
                after - before, alpha=alpha, largest_loss=max(largest, stats.TOLERANCE)
            )
        if self.extreme:
            return None
        return max(
            stats.detectable_difference(after, before, self.smooth or self.statistic, self.classes, alpha=alpha),
            stats.TOLERANCE,
        )


MEAN = Summary()
