"""``run``: ask a retriever every query of a dataset, and store what it returned with where it came from."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.cli.console import Console
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.files import excerpt
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.gates.baselines import provenance
from pytest_retrieval_eval.gates.wording import counted, shown


def run_retriever(arguments: argparse.Namespace, console: Console) -> int:
    """The command. What can be wrong is looked at before the first query is asked, which may take hours."""
    output = Path(arguments.output)
    _check_output(output)
    dataset = Dataset.read(arguments.dataset, split=arguments.split)
    for warning in dataset.warnings:
        console.note(warning)
    queries = _queries(dataset, arguments.split)
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        retriever = import_retriever(arguments.retriever, factory=arguments.factory)
        begin = time.perf_counter()
        run = _ask(retriever, queries, arguments)
        seconds = time.perf_counter() - begin
    finally:
        if here in sys.path:
            sys.path.remove(here)
    failed = run.errors
    if len(failed) == len(queries):
        raise GateError(
            f"the retriever failed on {len(failed)} of {counted(len(queries), 'query', 'queries')}, and "
            f"nothing was written: {_examples(failed)}"
        )
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


def import_retriever(text: str, *, factory: bool = False) -> Any:
    """The object that an import string such as ``myapp.search:search`` names, or what it returns when called.

    Raises SettingsError where there is no such object, its module cannot be imported, or it cannot be a
    retriever.
    """
    module_name, colon, path = text.partition(":")
    if not (module_name and colon and path):
        raise SettingsError(f"--retriever {text}: expected MODULE:NAME, such as myapp.search:search")
    if "/" in module_name or module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        raise SettingsError(f"--retriever {text}: expected a module, not a file; did you mean {dotted}:{path}?")
    found = _import(text, module_name)
    name = module_name
    for attribute in path.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            near = did_you_mean(attribute, [each for each in dir(found) if not each.startswith("_")])
            hint = f"; {near}" if near.startswith("did") else ""
            raise SettingsError(f"--retriever {text}: {name} has no {attribute!r}{hint}") from None
        name = f"{name}.{attribute}"
    if factory:
        return _made(text, found)
    if inspect.isclass(found):
        raise SettingsError(
            f"--retriever {text}: {name} is a class; name an instance of it, or add --factory to make one "
            "without arguments"
        )
    if callable(found) and _takes_nothing(found):
        raise SettingsError(
            f"--retriever {text}: {name} takes no argument, and a retriever takes the text of a query; if it "
            "makes the retriever, add --factory"
        )
    return found


def _import(text: str, module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise SettingsError(
                f"--retriever {text}: there is no module {error.name}; it is looked for in the current "
                "folder and among the installed packages"
            ) from None
        raise _cannot_import(text, module_name, error) from error
    except (Exception, SystemExit) as error:  # a script without a main guard may leave with status 0
        raise _cannot_import(text, module_name, error) from error


def _cannot_import(text: str, module_name: str, error: BaseException) -> SettingsError:
    return SettingsError(f"--retriever {text}: {module_name} cannot be imported: {_described(error)}")


def _made(text: str, factory: Any) -> Any:
    if not callable(factory):
        raise SettingsError(f"--factory: {text} is {excerpt(factory)}; expected something to call without arguments")
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise SettingsError(f"--factory: {text}() failed: {_described(error)}") from error
    if inspect.iscoroutine(made):
        made.close()
        raise SettingsError(f"--factory: {text} is asynchronous; expected a plain function that returns the retriever")
    return made


def _described(error: BaseException) -> str:
    """An exception of the user's code, and where it was raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames and not isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}: {shown(str(error), 300)}{place}"


def _takes_nothing(call: Any) -> bool:
    try:
        return not inspect.signature(call).parameters
    except (TypeError, ValueError):  # built in, or it hides its signature
        return False


def _queries(dataset: Dataset, split: str | None) -> Queries:
    """What is asked: every query, or with a split those that it judges and those without an answer."""
    if split is None:
        return dataset.queries
    judged = frozenset(dataset.qrels.query_ids) | dataset.queries.unanswerable
    chosen = {query_id: dataset.queries.text(query_id) for query_id in dataset.queries if query_id in judged}
    if not chosen:
        raise DataError(f"{dataset.qrels.source} judges none of the queries of {dataset.queries.source}")
    return Queries.of(chosen)


def _ask(retriever: Any, queries: Queries, arguments: argparse.Namespace) -> Run:
    try:
        return Run.from_retriever(
            retriever,
            queries,
            depth=arguments.depth,
            name=arguments.retriever,
            batch_size=arguments.batch_size,
            concurrency=arguments.concurrency,
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
    return "; ".join(f"{shown(query_id, 40)}: {shown(text, 120)}" for text, query_id in list(first.items())[:3])
