"""Several configurations beside one another: measures with intervals, which differ, and which are worth having.

It answers and decides nothing: a gate holds one run against another. Every pair of runs is tested query by query, and
the p-values of one measure are corrected for the number of pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_retrieval_eval.collection.hints import FEW, other_documents, other_kind
from pytest_retrieval_eval.collection.spans.former import refuse_former_texts
from pytest_retrieval_eval.collection.spans.stale import current_spans
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.evidence import RANKS, SPANS
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import aggregate, chain, measured_in, reads
from pytest_retrieval_eval.stats.corrections import benjamini_hochberg, holm
from pytest_retrieval_eval.studies.pareto import front
from pytest_retrieval_eval.wording import both_ends

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.spans import Spans
    from pytest_retrieval_eval.measures.evaluate import Evaluation
    from pytest_retrieval_eval.measures.scores import Scores

CORRECTIONS = {"holm": holm, "bh": benjamini_hochberg}


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one run: its value with a 95 % interval (None where there is none), over ``n`` queries.

    ``group`` are letters: two runs that share one cannot be told apart by this measure.
    """

    run: str
    measure: str
    value: float
    low: float | None
    high: float | None
    n: int
    group: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs under one measure: ``delta`` is that of ``second`` less that of ``first``."""

    measure: str
    first: str
    second: str
    delta: float
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Configurations:
    """What ``compare_all`` found.

    ``cells`` has a value for each run and measure, in the order given, ``pairs`` every two runs under each measure.
    ``front`` are the runs that no other dominates in ``pareto`` (measure → whether less is better). ``notes`` say
    what else is worth knowing.
    """

    dataset: str
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    units: Mapping[str, str]
    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]
    pareto: Mapping[str, bool]
    front: tuple[str, ...]
    correction: str
    alpha: float
    notes: tuple[str, ...] = ()

    def cell(self, run: str, measure: str) -> Cell:
        """The value of one run under one measure."""
        for cell in self.cells:
            if cell.run == run and cell.measure == measure:
                return cell
        raise GateError(f"{run} was not measured by {measure}")

    def to_dict(self) -> dict[str, Any]:
        """In builtin types, as the JSON of the command line has it."""
        found = asdict(self)
        for name in ("runs", "measures", "front", "notes", "cells", "pairs"):
            found[name] = list(found[name])
        return found


def compare_all(
    dataset: Dataset,
    runs: Mapping[str, Run],
    measures: Iterable[str | Measure],
    *,
    select: Collection[str] | None = None,
    pareto: Sequence[str | Measure] | None = None,
    correction: Literal["holm", "bh", "none"] = "holm",
    alpha: float = 0.05,
    allow_failures: int = 0,
    allow_stale: int = 0,
) -> Configurations:
    """Measure every run by every measure, test each pair, and find the Pareto front.

    ``select`` narrows the queries; ``pareto`` are the measures of the front (default: all of ``measures``).
    ``correction`` is over the pairs of one measure. Gold spans are measured where their passages stand today. Raises a
    GateError where a run cannot be measured (a retriever that failed on more queries than ``allow_failures``, a cut-off
    beyond the depth), where more than ``allow_stale`` gold spans are stale, or where two runs count other queries.

    >>> from pytest_retrieval_eval import Dataset, Run
    >>> dataset = Dataset.of(qrels={"q1": ["a"], "q2": ["b"]})
    >>> bm25, dense = Run.of({"q1": ["a", "x"], "q2": ["x", "b"]}), Run.of({"q1": ["x", "a"], "q2": ["x", "b"]})
    >>> runs = {"bm25": bm25, "dense": dense}
    >>> found = compare_all(dataset, runs, ["mrr"])
    >>> [(cell.run, cell.value) for cell in found.cells], found.front
    ([('bm25', 0.75), ('dense', 0.5)], ('bm25',))
    """
    wanted = list(dict.fromkeys(each if isinstance(each, Measure) else Measure.parse(each) for each in measures))
    chosen = wanted if pareto is None else [_measure(each) for each in pareto]
    if not wanted:
        raise GateError("no measure was asked for; name at least one, such as ndcg@10")
    if len(runs) < 2:
        raise GateError(f"{len(runs)} run was given; several configurations are two or more")
    if correction not in ("none", *CORRECTIONS):
        known = did_you_mean(str(correction), ("none", *CORRECTIONS))
        raise SettingsError(f"{correction!r} is no correction of p-values; {known}")
    if not 0 < alpha < 0.5:
        raise SettingsError(f"alpha lies between 0 and 0.5 (0.05 is usual), not at {alpha:g}")
    for measure in dict.fromkeys((*wanted, *chosen)):
        _refuse_totals(measure)
    for name, run in runs.items():
        _refuse_run(name, run, [*wanted, *chosen], dataset, select, allow_failures)
    failed = frozenset(query for run in runs.values() for query in run.errors)
    of_spans = any(reads(measure) == SPANS for measure in (*wanted, *chosen))
    spans, of_gold = current_spans(dataset, allow_stale) if of_spans else (None, ())
    for name, run in runs.items() if of_spans else ():
        refuse_former_texts(run, f"run {name}", dataset, None if select is None else frozenset(select))
    found = {
        name: {
            measure: _scores(dataset, run, measure, select, failed, spans)
            for measure in dict.fromkeys((*wanted, *chosen))
        }
        for name, run in runs.items()
    }
    names = tuple(runs)
    cells: list[Cell] = []
    pairs: list[Pair] = []
    for measure in wanted:
        scores = {name: found[name][measure] for name in names}
        _same_queries(measure, scores)
        tested = _tested(measure, scores, correction)
        letters = _letters(names, [(pair.first, pair.second) for pair in tested if pair.p_adjusted < alpha])
        pairs += tested
        for name in names:
            interval = scores[name].summary.interval(scores[name].values)
            cells.append(
                Cell(
                    name,
                    str(measure),
                    scores[name].overall,
                    None if interval is None else interval.low,
                    None if interval is None else interval.high,
                    scores[name].n,
                    letters[name],
                )
            )
    lower = {str(measure): less_is_better(measure) for measure in chosen}
    values = {name: [found[name][measure].overall for measure in chosen] for name in names}
    return Configurations(
        dataset.name,
        names,
        tuple(map(str, wanted)),
        {str(measure): measured_in(measure) for measure in wanted},
        tuple(cells),
        tuple(pairs),
        lower,
        front(values, list(lower.values())),
        correction,
        alpha,
        (*_notes(found, failed), *of_gold),
    )


def less_is_better(measure: Measure) -> bool:
    """Whether a smaller value is the better one, as of times.

    >>> less_is_better(Measure.parse("latency.p95")), less_is_better(Measure.parse("ndcg@10"))
    (True, False)
    """
    return chain(measure)[-1][0].falls


def _measure(name: str | Measure) -> Measure:
    return name if isinstance(name, Measure) else Measure.parse(name)


def _refuse_totals(measure: Measure) -> None:
    how, _ = aggregate(measure)
    if how not in ("mean", "statistic"):
        raise GateError(f"{measure} is a {how} over the queries, which no test of pairs is about")


def _refuse_run(
    name: str,
    run: Run,
    measures: Sequence[Measure],
    dataset: Dataset,
    select: Collection[str] | None,
    allow_failures: int,
) -> None:
    asked = {*dataset.qrels.query_ids, *dataset.queries} if select is None else set(select)
    failed = [query for query in run.errors if query in asked]
    if len(failed) > allow_failures:
        raise GateError(
            f"{name}: the retriever failed on {len(failed)} of {len(asked)} queries, the first is {failed[0]} "
            f"({both_ends(run.errors[failed[0]], 200)}). A failure is no score; mend it, or count up to n of them 0 "
            "with allow_failures=n"
        )
    for measure in measures:
        cutoff = measure.innermost.cutoff if measure.cutoff is None else measure.cutoff
        if cutoff is not None and run.depth is not None and cutoff > run.depth:
            raise GateError(f"{measure} looks at {cutoff} ranks, but {name} declares depth {run.depth}")


def _scores(
    dataset: Dataset,
    run: Run,
    measure: Measure,
    select: Collection[str] | None,
    failed: frozenset[str],
    spans: Spans | None,
) -> Scores:
    of_spans = reads(measure) == SPANS
    if failed and reads(measure) in ("times", "abstention", "calls"):
        # What has no time in one run has none in any.
        asked = frozenset((*dataset.qrels.query_ids, *dataset.queries)) if select is None else frozenset(select)
        select = asked - failed
    found = evaluate(
        dataset.qrels,
        run,
        measure,
        queries=dataset.queries,
        select=select,
        spans=spans if of_spans else None,
        chunks=dataset.chunks if of_spans else None,
        corpus=dataset.corpus if of_spans else None,
    )
    if not found.ranks.in_run.any():
        raise GateError(f"{run.name or run.source or 'the run'} has none of the queries of {dataset.name}")
    _refuse_other_ids(found, run, dataset)
    scores = found.scores(measure)
    scores.overall  # noqa: B018  says why no query counts
    return scores


def _refuse_other_ids(found: Evaluation, run: Run, dataset: Dataset) -> None:
    """Refuse a run whose documents are none that the labels speak of, as gates do: 0 would say that it was measured."""
    ranks, qrels, strangers = found.ranks, found.qrels, found.evidence.strangers
    if not ranks.returned.any() or ranks.queries < FEW:
        return
    name = run.name or run.source or "the run"
    if strangers is not None:
        raise GateError(f"{name} holds no character of any {found.evidence.noun}: {other_documents(*strangers())}")
    if found.kind == RANKS and not len(ranks.query):
        ids = [query for query, returned in zip(qrels.query_ids, ranks.returned.tolist(), strict=True) if returned]
        raise GateError(f"{name} has no judged document of {dataset.name} in any list: {other_kind(qrels, run, ids)}")


def _same_queries(measure: Measure, scores: Mapping[str, Scores]) -> None:
    first, *others = scores
    for name in others:
        if scores[name].query_ids != scores[first].query_ids:
            raise GateError(
                f"{measure} counts other queries of {name} ({scores[name].n}) than of {first} ({scores[first].n}), so "
                "that they cannot be compared query by query"
            )


def _tested(measure: Measure, scores: Mapping[str, Scores], correction: str) -> list[Pair]:
    both = list(itertools.combinations(scores, 2))
    p = [scores[one].summary.test(scores[two].values, scores[one].values, 1).p_two_sided for one, two in both]
    adjusted = CORRECTIONS[correction](p).tolist() if correction in CORRECTIONS else p
    return [
        Pair(str(measure), one, two, scores[two].overall - scores[one].overall, each, corrected)
        for (one, two), each, corrected in zip(both, p, adjusted, strict=True)
    ]


def _letters(names: Sequence[str], differing: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Letters so that two names share one exactly where they do not differ (Piepho 2004: insert and absorb).

    >>> _letters(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    """
    columns: list[frozenset[str]] = [frozenset(names)]
    for one, two in differing:
        split: list[frozenset[str]] = []
        for column in columns:
            split += [column - {one}, column - {two}] if {one, two} <= column else [column]
        columns = []
        for column in split:
            if column not in columns and not any(column < other for other in split):
                columns.append(column)
    columns.sort(key=lambda column: [name not in column for name in names])
    return {name: "".join(_letter(number) for number, column in enumerate(columns) if name in column) for name in names}


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else f"({number + 1})"


def _notes(found: Mapping[str, Mapping[Measure, Scores]], failed: frozenset[str]) -> tuple[str, ...]:
    counted = sorted({scores.n for of_run in found.values() for scores in of_run.values()})
    notes = [f"n = {counted[0]}"] if len(counted) == 1 else [f"n from {counted[0]} to {counted[-1]}, by measure"]
    if failed:
        notes.append(f"{len(failed)} queries failed in some run: they count 0, and have no time in any")
    values = {
        measure: np.array([of_run[measure].overall for of_run in found.values()])
        for measure in next(iter(found.values()))
    }
    same = [str(measure) for measure, column in values.items() if np.ptp(column) == 0]
    if same:
        notes.append(f"all runs are equal in {', '.join(same)}")
    return tuple(notes)
