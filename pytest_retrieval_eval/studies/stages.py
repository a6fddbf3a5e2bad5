"""The stages of a pipeline beside each other: what each is worth, what it could be worth, and what it adds.

All of it on the same labels and queries. The *ceiling* of a stage is the measure on the best order of what it returned:
no later stage that only orders, filters or cuts can pass it. What such a stage makes of the gap is its *lift*, here the
ratio of means, (after − before) ÷ (ceiling − before), with a bootstrap interval over the queries; the measure
``lift(…, from=…)``, which gates compare, is the mean of the queries' own shares. What a fused stage adds is told
against the better of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.errors import GateError, MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate
from pytest_retrieval_eval.measures.evidence import RANKS
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.nested import score
from pytest_retrieval_eval.measures.ranks import Floats
from pytest_retrieval_eval.measures.steps import label_ranks, steps_of
from pytest_retrieval_eval.stats.intervals import bootstrap_mean
from pytest_retrieval_eval.stats.ratios import bootstrap_ratio
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run

DEFAULT = ("recall@10", "ndcg@10", "mrr@10")
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage: the mean of each measure, and on the best order of what the stage returned (None where unknown).

    ``pool`` is the longest list, and ``pool_recall`` recall over the whole lists: what there is for later stages.
    """

    stage: str
    means: Mapping[str, float]
    ceilings: Mapping[str, float | None]
    pool: int
    pool_recall: float


@dataclass(frozen=True, slots=True)
class Lift:
    """What a stage made of the gap that the one before it left; ``share`` is None where there was no gap."""

    stage: str
    before: str
    measure: str
    mean_before: float
    mean_after: float
    ceiling: float
    share: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Hybrid:
    """A stage that joins several against the better of them, on one slice of the queries ("" is all)."""

    stage: str
    parts: tuple[str, ...]
    best: str
    measure: str
    slice: str
    mean_best: float
    mean: float
    delta: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class StageReport:
    """The stages in their order, the lifts between them, and what joining added."""

    dataset: str
    measures: tuple[str, ...]
    counts: Mapping[str, int]
    rows: tuple[StageRow, ...]
    lifts: tuple[Lift, ...]
    hybrids: tuple[Hybrid, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it in builtin types."""
        found = asdict(self)
        for key in ("measures", "rows", "lifts", "hybrids"):
            found[key] = list(found[key])
        for hybrid in found["hybrids"]:
            hybrid["parts"] = list(hybrid["parts"])
        return found


def stage_report(
    dataset: Dataset,
    stages: Mapping[str, Run],
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    select: Collection[str] | None = None,
    by: str | None = None,
    unit: str | None = None,
) -> StageReport:
    """Measure every stage of a pipeline on the same queries.

    ``select`` narrows the queries, ``by`` is a tag whose values are the slices that joining is told for, and
    ``unit="document"`` measures runs of chunks as documents. Raises GateError where a stage has none of the queries,
    failed on one, or is too shallow for a measure; MeasureError for a measure that is no mean of judged ranks.

    >>> from pytest_retrieval_eval import Dataset, Run
    >>> stages = {"bm25": Run.of({"q1": ["x", "a"]}), "reranked": Run.of({"q1": ["a", "x"]})}
    >>> found = stage_report(Dataset.of(qrels={"q1": ["a"]}), stages, "mrr")
    >>> [(row.stage, row.means["mrr"], row.ceilings["mrr"]) for row in found.rows]
    [('bm25', 0.5, 1.0), ('reranked', 1.0, 1.0)]
    """
    wanted = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    names = tuple(dict.fromkeys(each if isinstance(each, Measure) else Measure.parse(each) for each in wanted))
    for measure in names:
        if registry.reads(measure) != RANKS or registry.aggregate(measure)[0] != "mean":
            raise MeasureError(f"{measure}: the stages are compared by means of judged ranks, such as ndcg@10")
    if len(stages) < 2:
        raise GateError(f"a pipeline has two stages or more, and there are {len(stages)}")
    if by is not None:
        dataset.queries.values_of(by)  # a tag that no query has is an error, whichever stages there are
    runs = Stages(dict(stages))
    if unit is not None:
        runs = Stages({name: run.by_document(dataset.chunks) for name, run in runs.items()})
    found = {name: _evaluated(dataset, name, run, names, select) for name, run in runs.items()}
    rows = tuple(_row(name, evaluation, names) for name, evaluation in found.items())
    # Each stage with what leads to it.
    ranks = [(name, label_ranks(run, dataset.qrels)) for name, run in runs.items()]
    lifts: list[Lift] = []
    hybrids: list[Hybrid] = []
    for place in range(1, len(ranks)):
        step = steps_of(ranks[: place + 1])
        before, (stage, own) = step[-2], ranks[place]
        if ((own > 0) & (before.ranks == 0)).any():
            continue  # it brings documents of its own
        if len(before.names) == 1:
            lifts += [_lift(found[before.names[0]], found[stage], before.name, stage, each) for each in names]
        else:
            for label, ids in _slices(dataset, found[stage], by):
                hybrids += [
                    hybrid
                    for each in names
                    if (hybrid := _hybrid(found, before.names, stage, each, label, ids)) is not None
                ]
    counts = {str(measure): next(iter(found.values())).scores(measure).n for measure in names}
    return StageReport(
        dataset.name, tuple(map(str, names)), counts, rows, tuple(lift for lift in lifts if lift), tuple(hybrids)
    )


def _evaluated(
    dataset: Dataset, name: str, run: Run, measures: Sequence[Measure], select: Collection[str] | None
) -> Evaluation:
    asked = {*dataset.qrels.query_ids, *dataset.queries} if select is None else set(select)
    failed = [query_id for query_id in run.errors if query_id in asked]
    if failed:
        raise GateError(f"the stage {name} failed on {len(failed)} queries, the first is {failed[0]}: no score of it")
    for measure in measures:
        cutoff = measure.cutoff or (measure.inner.cutoff if measure.inner is not None else None)
        if cutoff is not None and run.depth is not None and cutoff > run.depth:
            raise GateError(f"{measure} looks at {cutoff} ranks, but the stage {name} declares depth {run.depth}")
    evaluation = evaluate(dataset.qrels, run, measures, queries=dataset.queries, select=select)
    if not evaluation.ranks.in_run.any():
        raise GateError(f"the stage {name} has none of the queries of {dataset.name}: nothing can be compared")
    return evaluation


def _row(name: str, evaluation: Evaluation, measures: Sequence[Measure]) -> StageRow:
    longest = max(int(evaluation.ranks.returned.max()), 1)
    means = {str(each): evaluation.scores(each).mean for each in measures}  # before all else: it says why none counts
    return StageRow(
        name,
        means,
        {str(each): _mean(_ceiling(evaluation, each)) for each in measures},
        longest,
        evaluation.scores(Measure.of("recall", longest)).mean,
    )


def _ceiling(evaluation: Evaluation, measure: Measure) -> Floats | None:
    """The measure on the best order of each list, for the queries that count; None where no order is the best."""
    if registry.order(measure) != "rises":
        return None
    rows = {query_id: row for row, query_id in enumerate(evaluation.qrels.query_ids)}
    values = score(evaluation.ranks.reordered(), measure)
    found: Floats = values[[rows[query_id] for query_id in evaluation.scores(measure).query_ids]]
    return found


def _mean(values: Floats | None) -> float | None:
    return None if values is None else math.fsum(values) / len(values)


def _lift(before: Evaluation, after: Evaluation, name: str, stage: str, measure: Measure) -> Lift:
    old, new = before.scores(measure), after.scores(measure)
    ceiling = _ceiling(before, measure)
    if ceiling is None:
        raise MeasureError(f"{measure} is not highest with the best documents on top, so that no gap can be told")
    gap = np.maximum(ceiling - old.values, 0.0)
    share = low = high = None
    if math.fsum(gap) > TOLERANCE:
        share, interval = bootstrap_ratio(new.values - old.values, gap, level=_LEVEL)
        low, high = interval.low, interval.high
    return Lift(stage, name, str(measure), old.mean, new.mean, float(_mean(ceiling) or 0.0), share, low, high, new.n)


def _slices(dataset: Dataset, evaluation: Evaluation, by: str | None) -> list[tuple[str, frozenset[str] | None]]:
    found: list[tuple[str, frozenset[str] | None]] = [("", None)]
    if by is not None:
        found += [(f"{by}={value}", ids) for value, ids in dataset.queries.values_of(by).items()]
    return found


def _hybrid(
    found: Mapping[str, Evaluation],
    parts: tuple[str, ...],
    stage: str,
    measure: Measure,
    label: str,
    ids: frozenset[str] | None,
) -> Hybrid | None:
    scores = {name: found[name].scores(measure) for name in (*parts, stage)}
    query_ids = scores[stage].query_ids
    chosen = np.array([ids is None or query_id in ids for query_id in query_ids], bool)
    if not chosen.any():
        return None
    values = {name: each.values[chosen] for name, each in scores.items()}
    means = {name: math.fsum(each) / len(each) for name, each in values.items()}
    best = max(parts, key=lambda name: means[name])
    interval = bootstrap_mean(values[stage] - values[best], level=_LEVEL)
    return Hybrid(
        stage,
        parts,
        best,
        str(measure),
        label.replace('"', ""),
        means[best],
        means[stage],
        means[stage] - means[best],
        interval.low,
        interval.high,
        int(chosen.sum()),
    )
