"""``*.gates.yaml`` files as test items: each entry is translated into a test function, and pytest does the rest.

A gate file is a pytest module whose functions come from YAML. So a project's fixtures, ``-k``, ``-m``, ``::``, strict
xfail, several workers and everything else that pytest does with a test hold for a gate of a file as they are; there
is no second way of running a gate. The code of each function claims to stand on the entry's line of the YAML file,
which is where pytest then says that a gate failed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_retrieval_eval.context.definitions import fixture_definition, is_ours
from pytest_retrieval_eval.context.frames import users_frames
from pytest_retrieval_eval.context.key import ContextKey
from pytest_retrieval_eval.context.runs import command_run, retrieved
from pytest_retrieval_eval.context.state import IS_GATE, attempt_of, session_of
from pytest_retrieval_eval.context.testbench import FixtureBench
from pytest_retrieval_eval.errors import GateError, GateFailure, SettingsError, did_you_mean
from pytest_retrieval_eval.gates.entries import Entry, GateFileContent, read_gate_file
from pytest_retrieval_eval.gates.families import check_gates, parse_gates
from pytest_retrieval_eval.settings import Settings, is_stage_name

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr, Traceback

    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.runs.stages import Stages
    from pytest_retrieval_eval.gates.bench import Baseline
    from pytest_retrieval_eval.readers.readings.cache import CachedReader
    from pytest_retrieval_eval.studies.judge_validation import JudgeValidation

# irds:beir/scifact/test, git:origin/main:PATH, s3://…: not a path beside the file. One letter is a drive.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)


class GateFile(pytest.Module):
    """A gate file: pytest collects its entries as functions of a module."""

    def _getobj(self) -> ModuleType:
        module = ModuleType(self.path.name, f"The gates of {self.path.name}.")
        module.__file__ = str(self.path)
        return module

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """The gates, in their order."""
        try:
            content = read_gate_file(self.path, self.nodeid, session_of(self.config).settings.defaults)
        except GateError as error:
            raise self.CollectError(str(error)) from None
        for entry in content.entries:
            function = _function(entry, content, session_of(self.config).settings)
            setattr(self.obj, entry.name, function)
            made = self.ihook.pytest_pycollect_makeitem(collector=self, name=entry.name, obj=function)
            if not made:
                raise self.CollectError(f"{entry.place}: pytest made no test of the gate {entry.name}")
            for item in made:
                item.repr_failure = partial(_repr_failure, item)
                item.stash[IS_GATE] = True
                yield item


def _function(entry: Entry, content: GateFileContent, settings: Settings) -> Callable[..., None]:
    """The test that an entry stands for."""
    # On one line, since the line of a function and the line of its call are to be the entry's.
    test = lambda request, retrieval_context: _decide(request, retrieval_context, entry, content)  # noqa: E731
    code = test.__code__.replace(co_filename=str(content.path), co_firstlineno=entry.line, co_name=entry.name)
    function = FunctionType(code, test.__globals__, entry.name, None, test.__closure__)
    function.__module__ = content.path.name
    function.__qualname__ = entry.name
    function.__doc__ = "\n".join(entry.texts)
    # pytest takes a function of any name for a test where this attribute says so.
    function.__test__ = True  # type: ignore[attr-defined]
    keywords = dict(entry.options)
    if entry.datasets:
        names = [_settled(name, settings.datasets, content, settings) for name in entry.datasets]
        keywords["dataset"] = names if len(names) > 1 else names[0]
    if entry.run is not None:
        known = {**settings.runs, **dict.fromkeys(content.runs)}
        run = content.runs.get(entry.run, entry.run)
        keywords["run"] = _settled(run, known if run == entry.run else (), content, settings)
    if entry.baseline is not None:
        keywords["baseline"] = entry.baseline
    pytest.mark.retrieval(**keywords)(function)
    for name in entry.marks:
        try:
            getattr(pytest.mark, name)(function)
        except pytest.fail.Exception as error:  # --strict-markers
            raise pytest.Collector.CollectError(f"{entry.place}: marks: {error}") from None
    if entry.xfail is not None:
        pytest.mark.xfail(reason=entry.xfail, strict=True, raises=GateFailure)(function)
    return function


def _settled(name: str, known: Any, content: GateFileContent, settings: Settings) -> str:
    """A name of the ini file as it is; a path beside the gate file as the settings take it, from the root folder."""
    path = content.path.parent / name
    if name in known or _SCHEME.match(name) or not os.path.exists(path):
        return name
    try:
        return Path(os.path.relpath(path, settings.root)).as_posix()
    except ValueError:  # another drive
        return str(path)


def _decide(request: pytest.FixtureRequest, key: ContextKey, entry: Entry, content: GateFileContent) -> None:
    __tracebackhide__ = True
    attempt = attempt_of(cast(pytest.Item, request.node))
    attempt.asked.add(f"the gate {entry.name}")
    bench = GateFileBench(request, key, entry, content)
    if entry.judge is not None:
        from pytest_retrieval_eval.reports.validation import check_judge
        from pytest_retrieval_eval.studies.heldout import validated

        check, root = entry.judge, content.path.parent

        def validate() -> tuple[str, JudgeValidation]:
            return validated(check, root, bench.judgments, lambda: bench.dataset(None))

        check_judge(f"judge {entry.name}", bench, validate, check.where)
        return
    with attempt.keeping_errors():
        gates = parse_gates(entry.texts, bench.options({}, several=len(entry.texts) > 1))
    check_gates(gates, bench)


class GateFileBench(FixtureBench):
    """What a gate of a file asks for: the file's own words first, then what a Python test would get.

    What the file says goes before overriding fixtures, as a function's arguments do in Python; a run of the command
    line goes before both.
    """

    in_python = False

    def __init__(self, request: pytest.FixtureRequest, key: ContextKey, entry: Entry, content: GateFileContent) -> None:
        super().__init__(request, key)
        self._entry = entry
        self._content = content
        self._stages: Stages | None = None

    def dataset(self, name: str | None) -> Dataset:
        """The dataset that the file names, else the test's."""
        chosen = name or self._key.dataset
        split = self._content.split
        if split and chosen is None and not is_ours(fixture_definition(self._node, "retrieval_dataset")):
            raise GateError(
                f"{self._entry.place}: split: {split} meets a project's own fixture retrieval_dataset, which has no "
                "splits: name a dataset in the file, or leave split: out"
            )
        if chosen is not None:
            self._check_dataset(chosen)
        return super().dataset(chosen) if split is None else self._session.dataset(chosen, split=split)

    def _check_dataset(self, name: str) -> None:
        """What lies beside the file was settled when it was collected; the rest is a known name, or nothing."""
        known, path = self._session.settings.datasets, self._beside(name)
        if name in self._entry.datasets and not (name in known or _SCHEME.match(name) or os.path.exists(path)):
            raise SettingsError(
                f"{self._entry.place}: there is no dataset {name!r}: it is neither a name of retrieval_datasets nor "
                f"a folder beside this file ({path}); {did_you_mean(name, known)}"
            )

    def baseline(self, dataset: Dataset, name: str | None, candidate: Run) -> Baseline:
        """The stored run that the gate names, else the file's, else the test's."""
        return super().baseline(dataset, name if name is not None else self._entry.baseline, candidate)

    def _reader(self, given: object) -> CachedReader:
        """The file's reader, whose paths are relative to it, else the project's."""
        return super()._reader(None) if given is None else self._session.reader(given, self._content.path.parent)

    def stage_baseline(self, dataset: Dataset, name: str | None, stage: str, candidate: Run) -> Baseline:
        """The same for a stage."""
        name = name if name is not None else self._entry.baseline
        return super().stage_baseline(dataset, name, stage, candidate)

    def stages(self) -> Stages:
        """The stages that the file names, else the test's."""
        from pytest_retrieval_eval.collection.runs.stages import Stages

        if self._content.stages and self._stages is None:
            self._stages = Stages(self._content.stages, lambda _, ref: self._run_of(ref))
        return super().stages() if self._stages is None else self._stages

    def _named(self, ref: str | Path | Run) -> Run:
        if not isinstance(ref, str) or ref in self._content.runs or os.path.exists(self._beside(ref)):
            return self._run_of(ref)
        if ref in self._content.stages:
            return self.stages()[ref]
        # Names of the ini file and of fixtures; all others are those of this file, or files beside it.
        return super()._named(ref) if self._is_stage_elsewhere(ref) else self._run_of(ref)

    def _is_stage_elsewhere(self, ref: str) -> bool:
        settings = self._session.settings
        if ref in settings.runs or not is_stage_name(ref):
            return False
        overridden = not is_ours(fixture_definition(self._node, "retrieval_stages"))
        return ref in super().stages() if overridden else ref in settings.stages

    def _run_of(self, ref: str | Path | Run) -> Run:
        if not isinstance(ref, str):
            return super()._named(ref)
        known, settings = self._content.runs, self._session.settings
        if ref not in known and (ref in settings.runs or _SCHEME.match(ref)):
            return super()._named(ref)
        place = known.get(ref, ref)
        path = self._beside(place)
        if not (_SCHEME.match(place) or os.path.exists(path)):
            also = f"; {did_you_mean(ref, {*known, *settings.runs})}" if ref not in known else ""
            raise SettingsError(
                f"{self._entry.place}: there is no run {ref!r}: it is no file beside this one ({path})"
                f"{' and no name of runs: or retrieval_runs' if also else ''}{also}"
            )
        run = self._session.read_run(place if _SCHEME.match(place) else path)
        if ref in known:
            run.name = ref
        return run

    def _under_test(self, dataset: Dataset) -> Run:
        retriever = self._content.retriever
        if self._entry.run is None and retriever is None:
            return super()._under_test(dataset)
        chosen = command_run(self._session, dataset)
        if chosen is not None:
            self._attempt.command_runs.add(str(chosen))
            return self._session.read_run(chosen)
        if self._entry.run is not None or retriever is None:
            return self._named(cast(str, self._entry.run))

        from pytest_retrieval_eval.gates.imported import import_retriever

        given = f"{self._content.retriever_place}: retriever:"
        return retrieved(
            self._request.config, dataset, f"import {retriever}", lambda: import_retriever(retriever, given=given)
        )

    def _beside(self, name: str) -> Path:
        return self._content.path.parent / name


# --- what a failure shows --------------------------------------------------------------------------------------


def _repr_failure(item: pytest.Function, excinfo: ExceptionInfo[BaseException]) -> str | TerminalRepr:
    """The gate's text without a traceback; for another error the frames of the user's code."""
    option = item.config.getoption  # of the plugin "terminal", which a session may go without
    if option("fulltrace", False):
        return type(item).repr_failure(item, excinfo)
    if isinstance(excinfo.value, GateError | GateFailure):
        return excinfo.getrepr(style="value", chain=False)
    style = option("tbstyle", "auto")
    return excinfo.getrepr(
        style="long" if style == "auto" else style,
        showlocals=option("showlocals", False),
        tbfilter=_users_frames,
    )


def _users_frames(excinfo: ExceptionInfo[BaseException]) -> Traceback:
    return users_frames(excinfo) or excinfo.traceback
