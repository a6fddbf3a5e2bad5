"""``pool report`` and ``judge validate``: what stored runs and judgments say, without asking anybody."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.inputs import read_collection
from pytest_retrieval_eval.collection.files import json_document, write_atomically
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.run import Run
from pytest_retrieval_eval.errors import DataError, SettingsError, did_you_mean
from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck
from pytest_retrieval_eval.reports.pool import html, report_text, stability_text
from pytest_retrieval_eval.reports.validation import validation_text
from pytest_retrieval_eval.settings import JUDGMENTS
from pytest_retrieval_eval.studies.agreement import grades_of
from pytest_retrieval_eval.studies.corrected import CorrectedPrecision, corrected_precision
from pytest_retrieval_eval.studies.heldout import evidence_of
from pytest_retrieval_eval.studies.judge_validation import validate_judge
from pytest_retrieval_eval.studies.pool_report import pool_report
from pytest_retrieval_eval.studies.systems import named_runs, stability

FAMILY = "family"


def report(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``pool report``: status 1 where the ranking did not stay as it was."""
    if arguments.min_tau is not None and arguments.before is None:
        raise SettingsError("--min-tau goes with --before, the judgments before the pool grew")
    qrels = read_collection(arguments.qrels, split=arguments.split).qrels
    runs = named_runs([Run.read(path) for path in arguments.run])
    for name, run in runs.items():
        for warning in run.warnings:
            console.note(f"{name}: {warning}")
    tags = _tags(arguments.tags, runs)
    families = {name: str(row[FAMILY]) for name, row in tags.items() if FAMILY in row}
    if families and len(families) < len(runs):
        odd = next(name for name in runs if name not in families)
        raise SettingsError(f"the run {odd} has no tag {FAMILY}, and others have one: give it to every run, or to none")
    known = grades_of(qrels)
    again = None if arguments.again is None else grades_of(Qrels.read(arguments.again))
    found = pool_report(
        runs,
        qrels,
        arguments.measure,
        depth=arguments.depth,
        rel=arguments.rel,
        families=families or None,
        tags={name: {tag: value for tag, value in row.items() if tag != FAMILY} for name, row in tags.items()},
        second=None if arguments.second is None else Qrels.read(arguments.second),
        people=None if arguments.people is None else Qrels.read(arguments.people),
        repeated=None if again is None else (known, again),
        price=arguments.price,
    )
    stable = None
    if arguments.before is not None:
        least = 0.9 if arguments.min_tau is None else arguments.min_tau
        stable = stability(runs, Qrels.read(arguments.before), qrels, arguments.measure, least=least)
    if arguments.html is not None:
        with write_atomically(arguments.html) as file:
            file.write(html(found, stable).encode())
    if arguments.json:
        console.write(json_text({**asdict(found), "stability": None if stable is None else asdict(stable)}) + "\n")
    else:
        console.write(report_text(found) + ("" if stable is None else "\n" + stability_text(stable)))
    return 0 if stable is None or stable.holds else 1


def _tags(path: str | None, runs: Mapping[str, Run]) -> dict[str, dict[str, object]]:
    """The tags of each run, of a file or of the runs' own headers."""
    if path is None:
        own = {name: run.header.get("tags") for name, run in runs.items()}
        return {name: dict(row) for name, row in own.items() if isinstance(row, Mapping)}
    found = json_document(path)
    if not isinstance(found, dict) or not all(isinstance(row, dict) for row in found.values()):
        raise DataError(f'{path}: expected an object with the tags of each run, such as {{"bm25": {{"family": …}}}}')
    for name in found:
        if name not in runs:
            raise SettingsError(f"{path}: there is no run {name!r}; {did_you_mean(name, runs)}")
    return cast("dict[str, dict[str, object]]", found)


def validate(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``judge validate``: status 1 where the judge is not to be believed."""
    if arguments.k is not None and arguments.correct is None:
        raise SettingsError("-k goes with --correct, the run whose P@k is corrected")
    names = ("judgments", "human", "grades", "rel", "tpr", "tnr", "kappa", "mode")
    more = ("min_pairs", "min_not_relevant", "allow_missing")
    given = {name: getattr(arguments, name) for name in (*names, *more) if getattr(arguments, name) is not None}
    if arguments.use is not None:
        given["name"] = arguments.use
    check = JudgeCheck.of(given)
    evidence = evidence_of(check, Path(), JUDGMENTS)
    found = validate_judge(
        evidence.human,
        evidence.grades,
        rel=check.rel,
        requirements=check.requirements,
        pool=evidence.pool,
        weights=evidence.weights,
        allow_missing=check.allow_missing,
    )
    corrected: CorrectedPrecision | None = None
    if arguments.correct is not None:
        corrected = corrected_precision(
            Run.read(arguments.correct),
            evidence.by_ids,
            evidence.human,
            k=arguments.k or 10,
            rel=check.rel,
            weights=evidence.weights,
        )
    if arguments.json:
        document: dict[str, Any] = {"judge": evidence.judge, **asdict(found)}
        if corrected is not None:
            document["corrected"] = asdict(corrected)
        console.write(json_text(document) + "\n")
    else:
        console.write(validation_text(found, evidence.judge))
        if corrected is not None:
            low, high = corrected.interval.low, corrected.interval.high
            console.write(
                f"precision@{corrected.k} by the judge {corrected.plain:.3f}, corrected by {corrected.n_human} labels "
                f"of people {corrected.value:.3f} [{low:.3f}, {high:.3f}]\n"
            )
    return 0 if found.ok else 1
