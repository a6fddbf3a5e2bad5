"""``run``: ask a retriever every query of a dataset, and store what it returned with where it came from."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.cli.console import Console
from pytest_retrieval_eval.collection.dataset import Corpus, Dataset
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.spans.extents import with_offsets
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.gates.baselines import provenance
from pytest_retrieval_eval.gates.imported import import_retriever
from pytest_retrieval_eval.labels.texts import texts_of
from pytest_retrieval_eval.wording import both_ends, counted, listed, shown


def run_retriever(arguments: argparse.Namespace, console: Console) -> int:
    """The command. What can be wrong is looked at before the first query is asked, which may take hours."""
    output = Path(arguments.output)
    _check_output(output)
    if arguments.texts and ".run.jsonl" not in output.name:
        raise SettingsError(f"{output}: only a *.run.jsonl keeps texts (--texts)")
    dataset = Dataset.read(arguments.dataset, split=arguments.split)
    for warning in dataset.warnings:
        console.note(warning)
    queries = _queries(dataset, arguments.split)
    retriever = import_retriever(arguments.retriever, factory=arguments.factory)
    begin = time.perf_counter()
    corpus = None if dataset.spans is None else dataset.corpus  # where chunks stand matters for spans alone
    run = _ask(retriever, queries, corpus, arguments)
    seconds = time.perf_counter() - begin
    failed = run.errors
    if len(failed) == len(queries):
        raise GateError(
            f"the retriever failed on {len(failed)} of {counted(len(queries), 'query', 'queries')}, and "
            f"nothing was written: {_examples(failed)}"
        )
    # Hits that say which part of a document they are stay comparable when documents are cut anew.
    run = with_offsets(run, dataset.placed_chunks)
    if arguments.texts:
        texts, lost = texts_of(dataset, run)
        run = run.with_texts(texts)
        if lost:
            count = counted(len(lost), "document has", "documents have")
            console.note(f"{count} no text, in its hits or in the dataset, and are kept without: {listed(lost)}")
    for warning in _save(run.with_header(**provenance(run, dataset)), output):
        console.note(warning)
    if not run.returned.any():
        console.note("the retriever returned no document for any query: is its index empty?")
    if failed:
        console.note(f"the retriever failed on {counted(len(failed), 'query', 'queries')}: {_examples(failed)}")
    console.say(f"{counted(len(queries), 'query', 'queries')} in {seconds:.1f} s, {len(failed)} failed; wrote {output}")
    if len(failed) > arguments.allow_failures:
        console.error(
            f"the retriever failed on {len(failed)} of {counted(len(queries), 'query', 'queries')} and "
            f"{arguments.allow_failures} may fail; mend it, or allow more with --allow-failures {len(failed)}"
        )
        return 1
    return 0


def _queries(dataset: Dataset, split: str | None) -> Queries:
    """What is asked: every query, or with a split those that it judges and those without an answer."""
    if split is None:
        return dataset.queries
    judged = frozenset(dataset.qrels.query_ids) | dataset.queries.unanswerable
    chosen = {query_id: dataset.queries.text(query_id) for query_id in dataset.queries if query_id in judged}
    if not chosen:
        raise DataError(f"{dataset.qrels.source} judges none of the queries of {dataset.queries.source}")
    return Queries.of(chosen)


def _ask(retriever: Any, queries: Queries, corpus: Corpus | None, arguments: argparse.Namespace) -> Run:
    try:
        return Run.from_retriever(
            retriever,
            queries,
            depth=arguments.depth,
            name=arguments.retriever,
            batch_size=arguments.batch_size,
            concurrency=arguments.concurrency,
            corpus=corpus,
            texts=arguments.texts,
            warmup=arguments.warmup,
            repeat=arguments.repeat,
        )
    except SystemExit as leaving:
        # Its status may be 0: the command would end well without a run.
        raise GateError(
            f"the retriever left the program (SystemExit: {leaving.code}); nothing was written"
        ) from leaving


def _check_output(output: Path) -> None:
    """Refuse now what could not be written after the last query."""
    if output.is_dir():
        raise DataError(f"{output} is a folder; expected the name of a file to write")
    home = output.parent
    while not home.exists() and home != home.parent:
        home = home.parent
    if not home.is_dir() or not os.access(home, os.W_OK):
        raise DataError(
            f"{output}: cannot write the file: {home} is {'no folder' if not home.is_dir() else 'read-only'}"
        )
    with tempfile.TemporaryDirectory() as folder:
        # The ending decides the format; only a run knows which endings there are.
        _save(Run.of({"query": ["document"]}, name="run"), Path(folder) / output.name, shown_as=output)


def _save(run: Run, path: Path, *, shown_as: Path | None = None) -> list[str]:
    """Write a run; what its format cannot say comes back as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run.save(path)
        except DataError as error:
            raise DataError(str(error).replace(str(path), str(shown_as or path))) from error
    return [str(warning.message) for warning in caught]


def _examples(failed: Any) -> str:
    """The first query of each kind of failure."""
    first: dict[str, str] = {}
    for query_id, text in failed.items():
        first.setdefault(text, query_id)
    return "; ".join(f"{shown(query_id, 40)}: {both_ends(text, 160)}" for text, query_id in list(first.items())[:3])
