"""The values of one measure for the queries that count for it, and how far ties can move their mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pytest_retrieval_eval import stats
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Floats, Ints
from pytest_retrieval_eval.measures.summaries import MEAN, Summary


class Counted:
    """The queries that count for a measure, shared by all measures for which the same ones do."""

    __slots__ = ("_all", "_ids", "_places", "rows")

    def __init__(self, rows: Ints, all_ids: tuple[str, ...]) -> None:
        self.rows = rows
        self._all = all_ids
        self._ids: tuple[str, ...] | None = all_ids if len(rows) == len(all_ids) else None
        self._places: dict[str, int] | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """Their ids, in the order of the qrels."""
        if self._ids is None:
            self._ids = tuple([self._all[row] for row in self.rows.tolist()])
        return self._ids

    def place(self, query_id: str) -> int | None:
        """Where a query stands among them, or None."""
        if self._places is None:
            self._places = {query_id: place for place, query_id in enumerate(self.ids)}
        return self._places.get(query_id)


class Scores:
    """One measure's values for the queries that count for it.

    ``values`` is float64, one for each of ``query_ids``, in the order of the qrels, read-only.
    """

    __slots__ = ("_counted", "_mean", "_why_none", "classes", "measure", "values")

    def __init__(
        self,
        measure: Measure,
        counted: Counted,
        values: Floats,
        why_none: Callable[[], str],
        classes: Floats | None = None,
    ) -> None:
        self.measure = measure
        self.values = values
        self.classes = classes  # of each query, where the measure sorts queries
        self._counted = counted
        self._why_none = why_none
        self._mean: float | None = None

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries that count."""
        return self._counted.ids

    @property
    def n(self) -> int:
        """How many queries count."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over the queries that count: the exactly rounded sum ÷ n. GateError where none does."""
        if self._mean is None:
            if not self.n:
                raise GateError(self._why_none())
            self._mean = stats.mean(self.values)
        return self._mean

    @property
    def overall(self) -> float:
        """The one number over the queries that count, as the measure makes it: their mean, for most measures;
        the sum for counts such as num_ret, the geometric mean for gm, a percentile for latency.p95. GateError where
        none counts, or where they leave it undefined.
        """
        how, link = registry.aggregate(self.measure)
        if how == "mean":
            return self.mean
        if not self.n:
            raise GateError(self._why_none())
        if how == "sum":
            return math.fsum(self.values.tolist())
        if how == "statistic":
            found = self.summary.of(self.values)
            if math.isnan(found):
                meaning = registry.definition(link.name).meaning
                raise GateError(f"{self.measure} is undefined, since there is nothing to divide by: it is {meaning}.")
            return found
        raised = np.maximum(self.values, registry.floor(link))
        return math.exp(math.fsum(np.log(raised).tolist()) / self.n)

    @property
    def summary(self) -> Summary:
        """How the values are summed up, and compared with those of another run."""
        how, link = registry.aggregate(self.measure)
        if how != "statistic":
            return MEAN
        found = registry.definition(link.name)
        return Summary(found.statistic, self.classes, found.extreme, found.smooth)

    @property
    def distribution(self) -> stats.Distribution:
        """How the values are spread. GateError where no query counts."""
        if not self.n:
            raise GateError(self._why_none())
        return stats.distribution(self.values)

    def get(self, query_id: str, default: float | None = None) -> float | None:
        """The value of one query, or ``default`` where it does not count."""
        place = self._counted.place(query_id)
        return default if place is None else float(self.values[place])

    def to_dict(self) -> dict[str, float]:
        """Query id → value, in the order of the qrels."""
        return dict(zip(self.query_ids, self.values.tolist(), strict=True))

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Scores({self.measure}, n={self.n}" + (f", mean={self.mean:.4f})" if self.n else ")")


@dataclass(frozen=True, slots=True, eq=False)
class TieInterval:
    """How much of a mean hangs on the order of documents with equal scores.

    ``minimum`` and ``maximum`` are the smallest and largest mean over all orders (of a measure with another
    ``overall`` that). ``low``, ``high`` are per query, for ``query_ids``.
    """

    measure: Measure
    minimum: float
    maximum: float
    query_ids: tuple[str, ...] = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    expect: Callable[[], float | None] = field(repr=False)

    @property
    def expected(self) -> float | None:
        """What it is on average over all orders, each equally likely; None where no closed form is known.

        It is worked out when asked for: a gate needs the ends alone.
        """
        return self.expect()

    @property
    def matters(self) -> bool:
        """Whether the order of ties can move the mean by more than 1e-9."""
        return self.maximum - self.minimum > 1e-9
