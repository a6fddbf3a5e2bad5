"""``judgments``: what a folder of judgments holds, whether it is sound, and its way from people and to them."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from pathlib import Path

from pytest_retrieval_eval.cli.console import Console
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.labels.exchange import check_ids, export_qrels, export_rows, read_labels, write_worksheet
from pytest_retrieval_eval.labels.judgments import Judgments
from pytest_retrieval_eval.labels.pool import DEPTH, pool_of
from pytest_retrieval_eval.labels.store.judges import HUMAN
from pytest_retrieval_eval.wording import counted

_DIGEST = 12


def check(arguments: argparse.Namespace, console: Console) -> int:
    """What is wrong, a line each; status 1 where anything is."""
    found = Judgments.open(arguments.judgments).check()
    for sentence in found:
        console.write(sentence + "\n")
    console.say(f"{counted(len(found), 'problem')} in {arguments.judgments}")
    return 1 if found else 0


def compact(arguments: argparse.Namespace, console: Console) -> int:
    """Put journals into the files, and files into their order."""
    done = Judgments.open(arguments.judgments).compact(tidy=True)
    console.say(f"{counted(done.rows, 'grade')} and {counted(done.failures, 'failure')} put into the files")
    if done.torn:
        console.note(f"{counted(done.torn, 'torn line was', 'torn lines were')} left out")
    return 0


def _opened(arguments: argparse.Namespace) -> Judgments:
    given = arguments
    return Judgments.open(given.judgments, judged_by=given.judged_by or (), contradictions=given.contradictions)


def show(arguments: argparse.Namespace, console: Console) -> int:
    """A line for each judge and for each file of people's labels; or every grade of a query."""
    store = Judgments.open(
        arguments.judgments, judged_by=arguments.judged_by or (), contradictions=arguments.contradictions
    )
    if arguments.query_id is not None:
        for key, grade in store.grades(arguments.query_id).items():
            console.write("\t".join((key[0], key[2], f"{grade.grade:g}", grade.source, key[1], key[3])) + "\n")
        return 0
    for kept in store.chosen if arguments.judged_by else store.judges.values():
        table = store.table(kept.name)
        found = Counter(grade for _, grade in table)
        grades = " ".join(f"{grade:g}:{found[grade]}" for grade in sorted(found))
        console.write(f"{kept.name}\t{len(table)}\t{len(table.query_ids)}\t{grades}\t{kept.digest[:_DIGEST]}\n")
    people: dict[str, Counter[str]] = {}
    for row, place in store.rows(HUMAN):
        people.setdefault(Path(place.rpartition(":")[0]).stem, Counter())[row.part or "no part"] += 1
    for name, parts in people.items():
        said = " ".join(f"{part}:{count}" for part, count in sorted(parts.items()))
        console.write(f"{HUMAN}/{name}\t{sum(parts.values())}\t\t{said}\t\n")
    failures = store.failures()
    if failures:
        console.say(f"{counted(len(failures), 'pair')} without a grade: {store.folder / 'failures.jsonl'}")
    return 0


def worksheet(arguments: argparse.Namespace, console: Console) -> int:
    """A CSV file for people to grade."""
    store = Judgments.open(
        arguments.judgments, judged_by=arguments.judged_by or (), contradictions=arguments.contradictions
    )
    dataset = Dataset.read(arguments.dataset, split=arguments.split)
    pool = pool_of(dataset, [Run.read(path) for path in arguments.run], arguments.depth or DEPTH)
    found = write_worksheet(
        arguments.output,
        store,
        pool.pairs,
        sample=arguments.sample,
        min_not_relevant=arguments.min_not_relevant,
        rel=arguments.rel,
        seed=arguments.seed,
    )
    console.say(
        f"wrote {arguments.output}: {counted(found.rows, 'pair')} of {found.pairs} that the judge has graded, "
        f"{found.not_relevant} of them not relevant to it; fill the column grade, and take it in with: "
        f"pytest-retrieval-eval judgments import {shlex.quote(str(arguments.output))} --name NAME --part heldout"
    )
    return 0


def import_(arguments: argparse.Namespace, console: Console) -> int:
    """Labels of people, from a worksheet, a table or qrels."""
    dataset = None if arguments.dataset is None else Dataset.read(arguments.dataset, split=arguments.split)
    rows, empty = read_labels(arguments.file, dataset, part=arguments.part, who=arguments.who or arguments.name)
    if not rows:
        raise SettingsError(f"{arguments.file}: no row has a grade ({counted(empty, 'row')} without)")
    store = Judgments(arguments.judgments)
    check_ids(rows, store)
    added = store.add_human(arguments.name, rows)
    weights = f", {added.weights} with another weight" if added.weights else ""
    console.say(f"{counted(len(rows), 'label')} of {arguments.name}, {added.new} new{weights}")
    if empty:
        console.note(f"{counted(empty, 'row has', 'rows have')} no grade, and {'is' if empty == 1 else 'are'} left out")
    return 0


def export(arguments: argparse.Namespace, console: Console) -> int:
    """The grades that count, as CSV; or, of the texts of a dataset, as qrels."""
    store = Judgments.open(
        arguments.judgments, judged_by=arguments.judged_by or (), contradictions=arguments.contradictions
    )
    if arguments.file.lower().endswith(".csv"):
        if arguments.dataset is not None:
            raise SettingsError("--dataset chooses the grades of a file of qrels; a .csv file has all of them")
        count = export_rows(arguments.file, store)
    elif arguments.dataset is None:
        raise SettingsError(
            f"{arguments.file}: qrels have no hashes of texts, so name the dataset whose texts they are for "
            "(--dataset); a .csv file has every grade"
        )
    else:
        count = export_qrels(arguments.file, store, Dataset.read(arguments.dataset, split=arguments.split))
    console.say(f"wrote {counted(count, 'grade')} to {arguments.file}")
    return 0
