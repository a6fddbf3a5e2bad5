"""Measures of what a run cost: how long each query took, in milliseconds, and what it was charged.

They read no judgments: every query of the collection counts, also one that nobody can answer. A query that the run
has no time for is an error and never left out, since the slowest ones are those that go missing; one that the retriever
failed on has no time, and does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError
from pytest_retrieval_eval.measures.evidence import TIMES, Evidence, Given, register_evidence
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks, facts_of
from pytest_retrieval_eval.measures.registry import Definition, Score
from pytest_retrieval_eval.stats.resampled import quantile, smooth_quantile

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run

PERCENTILES = (50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """What each query of the collection took (milliseconds) and cost; NaN where the run does not say."""

    latency: Floats
    cost: Floats
    failed: Bools


def query_labels(given: Given) -> Qrels:
    """Labels that ask for no document: every query of the collection counts.

    Those are the queries that the qrels judge and those without an answer; where nothing is judged, all queries, else
    all of the run.
    """
    from pytest_retrieval_eval.collection.formats.ids import Ids
    from pytest_retrieval_eval.collection.qrels import Qrels

    found = dict.fromkeys(given.qrels.query_ids if given.qrels is not None else ())
    if given.spans is not None:
        found |= dict.fromkeys(given.spans.query_ids)
    if given.queries is not None:
        # In the order of the collection: a set has none.
        found |= dict.fromkeys(query for query in given.queries if not found or query in given.queries.unanswerable)
    ids = tuple(found or given.run.query_ids)
    none = np.zeros(0, np.int64)
    source = given.qrels.source if given.qrels is not None else given.run.source
    return Qrels(ids, read_only(none), Ids.of([]), read_only(np.zeros(0)), source, "levels", always=frozenset(ids))


def query_table(labels: Qrels, run: Run, beside: object) -> JudgedRanks:
    """A table without documents: what measures read is ``beside`` it."""
    place = {query_id: row for row, query_id in enumerate(labels.query_ids)}
    returned, in_run = np.zeros(len(place), np.int64), np.zeros(len(place), bool)
    unknown = []
    for query_id, length in zip(run.query_ids, run.returned.tolist(), strict=True):
        row = place.get(query_id)
        if row is None:
            unknown.append(query_id)
        else:
            returned[row], in_run[row] = length, True
    none = np.zeros(0, np.int64)
    return JudgedRanks(
        facts_of(labels),
        none,
        none,
        np.zeros(0),
        none,
        none,
        returned=returned,
        in_run=in_run,
        ties=np.zeros(len(place), np.int64),
        unknown=tuple(unknown),
        beside=beside,
    )


def timed_queries(given: Given) -> Evidence:
    """The evidence of times and costs. Raises DataError for a time that cannot be one."""
    if given.trec:
        raise MeasureError("trec_eval knows no times: measure them without trec mode.")
    labels, run = query_labels(given), given.run
    failed = run.errors
    times = Times(
        _column(labels.query_ids, run.seconds, "seconds", f"the {run.called}") * 1000.0,
        _column(labels.query_ids, run.costs, "cost", f"the {run.called}"),
        read_only(np.fromiter((query in failed for query in labels.query_ids), bool, len(labels.query_ids))),
    )

    def check(measure: Measure, rows: Ints) -> None:
        column = measure.innermost.name.partition(".")[0]
        without = rows[np.isnan(getattr(times, column)[rows])].tolist()
        if not without:
            return
        ids = [labels.query_ids[row] for row in without]
        what, key = ("time", "seconds") if column == "latency" else ("cost", "cost")
        have = len(rows) - len(ids)
        some = f"{have} of {len(rows)} queries that count" if have else "none of the queries that count"
        raise GateError(
            f"{measure}: the {run.called} has a {what} for {some}; {len(ids)} "
            f"{'lacks' if len(ids) == 1 else 'lack'} one ({', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}), and "
            f"what was not taken is no {what}. Ask the retriever again, or save runs with {key} (*.run.jsonl, not "
            "TREC); a baseline keeps them where a gate on them saves it (--retrieval-update=all)"
        )

    return Evidence(
        labels,
        query_table(labels, run, times),
        noun="time",
        warnings=tuple(conditions(run)),
        check=check,
        every=True,
    )


def _column(ids: tuple[str, ...], values: Mapping[str, float], what: str, where: str) -> Floats:
    column = np.full(len(ids), np.nan)
    for row, query_id in enumerate(ids):
        value = values.get(query_id)
        if value is None:
            continue
        number = float(value)
        if not math.isfinite(number) or number < 0:
            raise DataError(f"{where}: query {query_id!r} has the {what} {value!r}; expected a number of 0 or more")
        column[row] = number
    return read_only(column)


def conditions(run: Run) -> list[str]:
    """How the times of a run were taken, as far as its header says, a sentence each."""
    timing = run.header.get("timing")
    if not isinstance(timing, Mapping):
        return ["nothing says how these times were taken: warm or cold, once or several times"]
    warmup, repeat = timing.get("warmup", 0), timing.get("repeat", 1)
    notes = []
    if repeat == 1 and not warmup:
        notes.append(
            "times of one cold pass, which the first queries and whatever else ran then may have slowed: set "
            "retrieval_warmup and retrieval_repeat"
        )
    else:
        passes = "one pass" if repeat == 1 else f"the median of {repeat} passes"
        notes.append(f"times of {passes} after {warmup} queries to warm up")
    batch, together = timing.get("batch", 1), timing.get("concurrency", 1)
    if batch != 1:
        notes.append(f"queries were asked {batch} at a time, and the seconds of a batch shared out evenly")
    if together != 1:
        notes.append(f"up to {together} queries were asked at the same time, and waited for one another")
    differing = timing.get("differing", 0)
    if differing:
        notes.append(f"{differing} queries had other hits in a later pass: the retriever does not repeat itself")
    return notes


def _times(ranks: JudgedRanks) -> Times:
    return cast(Times, ranks.beside)


def latency(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Milliseconds from asking the query to its last hit."""
    return _times(ranks).latency


def cost(ranks: JudgedRanks, measure: Measure) -> Floats:
    """What the run says that the query cost, in its own currency."""
    return _times(ranks).cost


def answered(ranks: JudgedRanks, measure: Measure) -> Bools:
    """Every query of the collection that the retriever did not fail on."""
    counted: Bools = ~_times(ranks).failed
    return counted


def percentile(samples: Floats, classes: Floats, *, share: float) -> Floats:
    """The percentile of each row, between order statistics by straight lines."""
    return quantile(samples, share)


def smooth_percentile(samples: Floats, classes: Floats, *, share: float) -> Floats:
    """The same by all order statistics, which the paired test takes."""
    return smooth_quantile(samples, share)


register_evidence(TIMES, timed_queries, "the times and costs of a run")


def _of_column(name: str, score: Score, unit: str, what: str) -> Iterator[Definition]:
    """The mean and the percentiles of one column."""
    of_column = partial(
        Definition,
        score=score,
        cutoff="none",
        binary=False,
        counts=answered,
        falls=True,
        high=math.inf,
        reads=TIMES,
        measured_in=unit,
    )
    yield of_column(f"{name}.mean", f"{what}, on average", "the seconds and cost of each query in a run")
    for p in PERCENTILES:
        yield of_column(
            f"{name}.p{p}",
            f"{what}, of which {p} % of the queries stay below",
            "Hyndman & Fan, Sample Quantiles in Statistical Packages, 1996, definition 7",
            aggregate="statistic",
            statistic=partial(percentile, share=p / 100.0),
            smooth=partial(smooth_percentile, share=p / 100.0),
        )


MEASURES = (
    *_of_column("latency", latency, "ms", "the milliseconds that a query takes"),
    *_of_column("cost", cost, "", "what a query costs"),
)
