"""``stages``: every stage of a pipeline on the same queries, and the names of stages on other command lines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.inputs import (
    by_name,
    named_measures,
    parse_where,
    read_collection,
    select_queries,
    split_name,
)
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.studies.stages import DEFAULT, StageReport, stage_report
from pytest_retrieval_eval.wording import aligned, counted, ends, fixed


def report_stages(arguments: argparse.Namespace, console: Console) -> int:
    """The command. Everything is computed before anything is printed."""
    dataset = read_collection(arguments.qrels, queries=arguments.queries, split=arguments.split)
    select = select_queries(dataset, parse_where(arguments.where))
    measures = [measure for _, measure in named_measures(arguments.measure)] or DEFAULT
    report = stage_report(
        dataset, read_stages(arguments.stages), measures, select=select, by=arguments.by, unit=arguments.unit
    )
    if arguments.by is not None and not report.hybrids:
        console.note(f"--by {arguments.by}: no stage joins several others, and joining is all that is told by a tag")
    if arguments.json:
        console.write(json_text(report.to_dict()) + "\n")
    else:
        console.write(_text(report))
    return 0


def read_stages(items: Sequence[str]) -> Stages:
    """The stages that ``NAME=FILE`` name, in their order; each is opened when it is asked for."""
    named = [(*split_name(item), item) for item in items]
    for name, _, item in named:
        if not name:
            raise SettingsError(f"{item}: expected a stage as NAME=RUN, such as bm25=runs/bm25.trec")
    places = by_name(((name, place) for name, place, _ in named), "stages")
    return Stages(places, lambda _, place: Run.read(Path(place) if Path(place).exists() else place))


def _text(report: StageReport) -> str:
    counts = ", ".join(f"{name} over {counted(n, 'query', 'queries')}" for name, n in report.counts.items())
    lines = [f"{report.dataset}: {counts}", ""]
    head = ["stage", *(part for name in report.measures for part in (name, "best order")), "pool", "its recall"]
    rows = [head]
    for row in report.rows:
        cells = [part for name in report.measures for part in (_number(row.means[name]), _number(row.ceilings[name]))]
        rows.append([row.stage, *cells, str(row.pool), _number(row.pool_recall)])
    lines += aligned(rows)
    if report.lifts:
        lines += ["", "lift: what a stage recovers of the gap to the best order of what it was given (ratio of means)"]
        lines += aligned(
            [
                [
                    f"{lift.before} → {lift.stage}",
                    lift.measure,
                    f"{fixed(lift.mean_before)} → {fixed(lift.mean_after)} of {fixed(lift.ceiling)}",
                    "no gap" if lift.share is None else f"{fixed(100 * lift.share, 0)} %",
                    "" if lift.low is None or lift.high is None else ends(100 * lift.low, 100 * lift.high, 0),
                ]
                for lift in report.lifts
            ]
        )
    if report.hybrids:
        lines += ["", "joining: a stage against the better of its parts, on the same queries"]
        lines += aligned(
            [
                [
                    f"{' + '.join(each.parts)} → {each.stage}",
                    each.measure,
                    each.slice or "all",
                    f"{each.best} {fixed(each.mean_best)} → {fixed(each.mean)}",
                    f"{fixed(each.delta, signed=True)} {ends(each.low, each.high, signed=True)}",
                    f"n = {each.n}",
                ]
                for each in report.hybrids
            ]
        )
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "–" if value is None else fixed(value)
