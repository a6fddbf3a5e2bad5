"""``pool report``, ``judge again`` and ``judge validate``: what runs and judgments say, and how far to believe it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.inputs import parse_where, read_collection, read_runs, select_queries
from pytest_retrieval_eval.cli.judging import judge_and_pool, say_replies
from pytest_retrieval_eval.cli.reading import opened_cache
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.formats.files import json_document, utf8, write_atomically
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import json_word
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.labels.grading import fill_judgments
from pytest_retrieval_eval.labels.judging.judge import judge_digest
from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck
from pytest_retrieval_eval.labels.judgments import Judgments
from pytest_retrieval_eval.labels.pool import pool_of
from pytest_retrieval_eval.reports.pool import agreement_lines, document, html, report_text, stability_text
from pytest_retrieval_eval.reports.validation import validation_text
from pytest_retrieval_eval.settings import JUDGMENTS
from pytest_retrieval_eval.studies.agreement import agreement, check_apart, grades_of, sample_pairs
from pytest_retrieval_eval.studies.corrected import CorrectedPrecision, corrected_precision
from pytest_retrieval_eval.studies.heldout import evidence_of
from pytest_retrieval_eval.studies.pool_report import pool_report
from pytest_retrieval_eval.studies.stored import Repeated, graded_by, repeated_by, stored
from pytest_retrieval_eval.studies.systems import ranking_stability
from pytest_retrieval_eval.wording import counted, ends, fixed

FAMILY = "family"


def report(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``pool report``: status 1 where the ranking did not stay as it was."""
    if arguments.min_tau is not None and arguments.before is None:
        raise SettingsError("--min-tau goes with --before, the judgments before the pool grew")
    runs = read_runs(arguments.run)
    for name, run in runs.items():
        for warning in run.warnings:
            console.note(f"{name}: {warning}")
    for other in (arguments.second, arguments.human, arguments.repeated, arguments.before):
        if other is not None and arguments.judgments is None:
            check_apart(arguments.qrels, other)
    labels = _of_folder(arguments, runs) if arguments.judgments is not None else _of_files(arguments)
    qrels, human = labels.qrels, labels.human
    if arguments.human is not None:
        human = Qrels.read(arguments.human)
    tags = _tags(arguments.tags, runs)
    families = {name: json_word(row[FAMILY]) for name, row in tags.items() if FAMILY in row}
    if families and len(families) < len(runs):
        odd = next(name for name in runs if name not in families)
        raise SettingsError(f"the run {odd} has no tag {FAMILY}, and others have one: give it to every run, or to none")
    repeated = labels.repeated
    if arguments.repeated is not None:
        repeated = grades_of(labels.judge), grades_of(Qrels.read(arguments.repeated))
    found = pool_report(
        runs,
        qrels,
        arguments.measure,
        depth=arguments.depth,
        rel=arguments.rel,
        families=families or None,
        tags={name: {tag: value for tag, value in row.items() if tag != FAMILY} for name, row in tags.items()},
        judge=labels.judge,
        second=labels.second,
        human=human,
        repeated=repeated,
        price=arguments.price,
    )
    stable = None
    if arguments.before is not None:
        min_tau = 0.9 if arguments.min_tau is None else arguments.min_tau
        stable = ranking_stability(runs, Qrels.read(arguments.before), qrels, arguments.measure, min_tau=min_tau)
    if arguments.html is not None:
        with write_atomically(arguments.html) as file:
            file.write(utf8(html(found, stable)))
    if arguments.json:
        console.write(json_text(document(found, stable)) + "\n")
    else:
        console.write(report_text(found) + ("" if stable is None else "\n" + stability_text(stable)))
    return 0 if stable is None or stable.holds else 1


@dataclass(frozen=True, slots=True)
class _Labels:
    qrels: Qrels
    judge: Qrels
    human: Qrels | None = None
    second: Qrels | None = None
    repeated: Repeated | None = None


def _of_files(arguments: argparse.Namespace) -> _Labels:
    if arguments.judged_by:
        raise SettingsError("--judged-by goes with --judgments, the folder that has the judge's grades")
    qrels = read_collection(arguments.qrels, split=arguments.split).qrels
    return _Labels(qrels, qrels, second=None if arguments.second is None else Qrels.read(arguments.second))


def _of_folder(arguments: argparse.Namespace, runs: Mapping[str, Run]) -> _Labels:
    """The labels of a folder of judgments, for the texts that the runs have."""
    pool = pool_of(Dataset.read(arguments.qrels, split=arguments.split), list(runs.values()), arguments.depth)
    judgments = Judgments.open(arguments.judgments, judged_by=tuple(arguments.judged_by or ()))
    found = stored(judgments, pool)
    second = None
    if arguments.second is not None:
        if Path(arguments.second).is_file():
            second = Qrels.read(arguments.second)
        else:
            other = Judgments.open(arguments.judgments, judged_by=(arguments.second,))
            second = graded_by(other, other.chosen[0].name, pool)
    return _Labels(found.qrels, found.judge, found.human, second, found.repeated)


def again(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``judge again``: status 1 where a pair of the sample got no second grade."""
    cache = opened_cache(arguments)
    made, judgments, pool = judge_and_pool(arguments, console, cache)
    with cache, closing(made):
        digest = judge_digest(made, allow_floating=True)
        kept = next((each for each in judgments.judges.values() if each.digest == digest), None)
        if kept is None:
            raise GateError(f"{judgments.folder} has no grades of this judge: there is no first time yet")
        own = Judgments(judgments.folder, judged_by=[kept.name])
        table = own.table(kept.name)
        graded = {key for query in table.query_ids for key in table.of_query(query)}
        known = {(key[0], "\x00".join(key[1:])): pair for key, pair in pool.pairs.items() if key in graded}
        if not known:
            raise GateError(f"{kept.name} has graded none of the {len(pool.pairs)} pairs: there is no first time yet")
        sample = sample_pairs(known, arguments.sample, seed=arguments.seed)
        pairs = [known[pair] for pair in sample]
        filled = fill_judgments(judgments, made, pairs, repetition=1, also_human=True, allow_floating=True)
        say_replies(cache, console)
    both = repeated_by(Judgments(judgments.folder, judged_by=[kept.name]), kept.name)
    if both is None:
        raise GateError(f"{kept.name} gave no second grade: {filled.stopped or 'each of the sample failed'}")
    chosen = set(sample)
    first, second = ({pair: grade for pair, grade in side.items() if pair in chosen} for side in both)
    found = agreement(first, second)
    if arguments.json:
        console.write(json_text({"judge": kept.name, "asked": filled.graded, **asdict(found)}) + "\n")
    else:
        console.write("\n".join([f"{kept.name} against itself", *agreement_lines(found)]) + "\n")
    missing = len(pairs) - found.n
    if missing:
        console.say(f"{counted(missing, 'pair')} of the sample got no second grade, and are asked for next time")
    return 1 if missing else 0


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
    names = ("name", "judgments", "human", "grades", "rel", "tpr", "tnr", "kappa", "mode")
    more = ("min_pairs", "min_not_relevant", "allow_missing")
    given = {name: getattr(arguments, name) for name in (*names, *more) if getattr(arguments, name) is not None}
    where = parse_where(arguments.where)
    if (where is None) != (arguments.dataset is None):
        raise SettingsError("--where and --dataset go together: the tags of queries are the dataset's")
    if where is not None and arguments.correct is not None:
        raise SettingsError("--correct is of every query of the run: leave --where out")
    if where is not None:
        given["where"] = where
    check = JudgeCheck.of(given)
    evidence = evidence_of(check, Path(), lambda: Judgments.open(JUDGMENTS), lambda: _tagged(arguments.dataset, where))
    found = evidence.validation(check)
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
        told: dict[str, Any] = {"judge": evidence.judge, "where": where, **asdict(found)}
        if corrected is not None:
            told["corrected"] = asdict(corrected)
        console.write(json_text(told) + "\n")
    else:
        console.write(validation_text(found, evidence.judge, where))
        if corrected is not None:
            low, high = corrected.interval.low, corrected.interval.high
            console.write(
                f"precision@{corrected.k} by the judge {fixed(corrected.plain)}, corrected by "
                f"{corrected.n_human} labels of people {fixed(corrected.value)} {ends(low, high)}\n"
            )
    return 0 if found.ok else 1


def _tagged(path: str, where: dict[str, object] | None) -> Dataset:
    """The dataset whose queries have these tags, or a sentence."""
    dataset = Dataset.read(path)
    select_queries(dataset, where)
    return dataset
