"""Systems and how they rank: the values of several runs by one measure, and two rankings of the same systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.errors import DataError, GateError, MeasureError
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.stats import TOLERANCE, kendall_tau_b, mean, spearman, tau_ap

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run

Runs: TypeAlias = "Mapping[str, Run] | Sequence[Run]"

NEAR = 0.001
"""Two systems whose means are nearer than this are a near-tie."""


def named_runs(runs: Runs, *, least: int = 1) -> dict[str, Run]:
    """The runs by their names, in their order; a GateError where there are fewer than ``least``."""
    found: dict[str, Run] = {}
    items = runs.items() if isinstance(runs, Mapping) else [(run.name or run.source, run) for run in runs]
    for name, run in items:
        if not name:
            raise DataError(f"run {len(found) + 1} of {len(runs)} has no name; expected one, to tell systems apart")
        if name in found:
            raise DataError(f"two runs have the name {name}; expected a name of its own for each system")
        found[name] = run
    if len(found) < least:
        raise GateError(f"{len(found)} of the {least} runs that it takes were given: there is nothing to compare")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class SystemValues:
    """The values of systems by one measure: ``values`` has a row for each of ``names``, a column for each query."""

    measure: str
    query_ids: tuple[str, ...]
    names: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each system."""
        return {name: mean(row) for name, row in zip(self.names, self.values, strict=True)}

    def of(self, name: str) -> NDArray[np.float64]:
        """The values of one system."""
        row: NDArray[np.float64] = self.values[self.names.index(name)]
        return row


def measure_systems(
    runs: Runs, qrels: Qrels, measure: str | Measure, *, over: Iterable[str] | None = None
) -> SystemValues:
    """Measure every run on the same labels and queries.

    ``over`` are the queries of the mean instead of those that count; one that does not count has the value 0 in every
    system. This leaves the order of the systems as it is, and makes means on different labels comparable.

    Raises GateError where no query counts, or a retriever failed on one that does; MeasureError where the measure
    looks deeper than a run goes.
    """
    name = Measure.parse(measure) if isinstance(measure, str) else measure
    chosen = None if over is None else tuple(dict.fromkeys(over))
    rows: list[NDArray[np.float64]] = []
    counted: tuple[str, ...] | None = None
    systems = named_runs(runs)
    for system, run in systems.items():
        if name.cutoff is not None and run.depth is not None and name.cutoff > run.depth:
            raise MeasureError(
                f"{name} looks at {name.cutoff} ranks, and the run {system} declares depth {run.depth}: measure at "
                f"k = {run.depth} or less"
            )
        scores = evaluate(qrels, run, name).scores(name)
        if not scores.n and chosen is None:
            scores.mean  # noqa: B018  says why no query counts
        failed = [query for query in run.errors if scores.get(query) is not None]
        if failed:
            raise GateError(
                f"the retriever of the run {system} failed on {len(failed)} queries, the first is {failed[0]}: a "
                "failure is no score"
            )
        if chosen is not None:
            rows.append(np.array([scores.get(query, 0.0) for query in chosen], np.float64))
            continue
        if counted is None:
            counted = scores.query_ids
        elif counted != scores.query_ids:
            raise MeasureError(
                f"{name} counts other queries for one run than for another: choose another to compare by"
            )
        rows.append(scores.values)
    return SystemValues(str(name), chosen or counted or (), tuple(systems), np.array(rows))


def on_both(runs: Runs, first: Qrels, second: Qrels, measure: str | Measure) -> tuple[SystemValues, SystemValues]:
    """Every run measured on two sets of labels, over the queries that count with either."""
    counted = [measure_systems(runs, qrels, measure).query_ids for qrels in (first, second)]
    queries = tuple(dict.fromkeys((*counted[0], *counted[1])))
    return (
        measure_systems(runs, first, measure, over=queries),
        measure_systems(runs, second, measure, over=queries),
    )


def is_near(difference: float, near: float = NEAR) -> bool:
    """Whether two means differ by less than ``near``.

    >>> is_near(0.3 - 0.2995), is_near(0.3 - 0.299)
    (True, False)
    """
    return abs(difference) < near - TOLERANCE


@dataclass(frozen=True, slots=True)
class Flip:
    """Two systems that change places: ``before`` and ``after`` are the first's mean minus the second's."""

    first: str
    second: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Rankings:
    """Two rankings of the same systems.

    Args:
        systems, pairs: how many systems, and pairs of them.
        rho, tau, tau_ap: Spearman's rho, Kendall's tau-b, and the AP correlation with the first ranking as the truth;
            None where all systems of one side have the same mean.
        flips: pairs in the opposite order, those farthest apart before first.
        largest: the system whose mean changed most, and by how much.
    """

    systems: int
    pairs: int
    rho: float | None
    tau: float | None
    tau_ap: float | None
    flips: tuple[Flip, ...]
    largest: tuple[str, float]


def compare_rankings(before: Mapping[str, float], after: Mapping[str, float]) -> Rankings:
    """Hold two rankings of the same systems, by their means, against each other.

    >>> found = compare_rankings({"a": 0.5, "b": 0.4, "c": 0.1}, {"a": 0.5, "b": 0.6, "c": 0.1})
    >>> round(found.tau, 3), [(flip.first, flip.second) for flip in found.flips], found.largest[0]
    (0.333, [('a', 'b')], 'b')
    """
    if set(before) != set(after):
        odd = min(set(before) ^ set(after))
        raise DataError(f"the system {odd} is in one ranking alone; expected the same systems in both")
    if len(before) < 2:
        raise GateError(f"{len(before)} system has no ranking: it takes two")
    names = list(before)
    old, new = [before[name] for name in names], [after[name] for name in names]
    flat = min(max(old) - min(old), max(new) - min(new)) == 0.0
    flips = []
    for first, second in combinations(names, 2):
        was, now = before[first] - before[second], after[first] - after[second]
        if was * now < 0.0 and abs(was) > TOLERANCE and abs(now) > TOLERANCE:
            flips.append(Flip(first, second, was, now) if was > 0 else Flip(second, first, -was, -now))
    most = max(names, key=lambda name: abs(after[name] - before[name]))
    return Rankings(
        systems=len(names),
        pairs=len(names) * (len(names) - 1) // 2,
        rho=None if flat else spearman(old, new),
        tau=None if flat else kendall_tau_b(old, new),
        tau_ap=None if flat else tau_ap(old, new),
        flips=tuple(sorted(flips, key=lambda flip: (-flip.before, flip.first, flip.second))),
        largest=(most, after[most] - before[most]),
    )


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether the ranking of systems stayed when the labels changed; ``holds`` where tau reaches ``min_tau``."""

    measure: str
    queries: int
    rankings: Rankings
    min_tau: float
    holds: bool
    means: tuple[tuple[str, float, float], ...]

    def __bool__(self) -> bool:
        return self.holds


def ranking_stability(
    runs: Runs, before: Qrels, after: Qrels, measure: str | Measure, *, min_tau: float = 0.9
) -> Stability:
    """The ranking of the runs on two sets of labels, such as a pool before and after it grew.

    Means are over the queries that count with either labels. The result is true where Kendall's tau-b of the two
    rankings is at least ``min_tau`` (from -1 to 1). Raises GateError where no tau is defined: a ranking that cannot be
    told is not stable.

    >>> from pytest_retrieval_eval import Qrels, Run
    >>> systems = {"A": Run.of({"q": ["a", "x"]}), "B": Run.of({"q": ["x", "b"]})}
    >>> before, after = Qrels.of({"q": {"a": 1}}), Qrels.of({"q": {"a": 1, "b": 1}})
    >>> found = ranking_stability(systems, before, after, "mrr")
    >>> found.means, bool(found)
    ((('A', 1.0, 1.0), ('B', 0.0, 0.5)), True)
    """
    if not -1.0 <= min_tau <= 1.0:
        raise MeasureError(f"min_tau={min_tau}: tau lies between -1 and 1")
    systems = named_runs(runs, least=2)
    poorer, richer = on_both(systems, before, after, measure)
    old, new = poorer.means, richer.means
    found = compare_rankings(old, new)
    if found.tau is None:
        raise GateError(
            f"all systems have the same {poorer.measure} on one of the two sets of labels: there is no ranking "
            "whose stability could be told"
        )
    return Stability(
        measure=poorer.measure,
        queries=len(poorer.query_ids),
        rankings=found,
        min_tau=min_tau,
        holds=found.tau >= min_tau - TOLERANCE,
        means=tuple((name, old[name], new[name]) for name in old),
    )
