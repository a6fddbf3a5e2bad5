"""The run under test: the one that somebody named, else what the project's ``retriever`` returns.

Precedence: function argument > command line > marker > overriding fixture > ini > ``retriever``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from pytest_retrieval_eval.context.asking import ask, no_evasion
from pytest_retrieval_eval.context.definitions import (
    fixture_definition,
    is_ours,
    parameters_of,
    parts_of,
    place_of,
    refuse_foreign,
)
from pytest_retrieval_eval.context.given import dataset_of, stages_of, traces_of
from pytest_retrieval_eval.context.key import ContextKey
from pytest_retrieval_eval.context.state import session_of
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.session.process import Session
from pytest_retrieval_eval.settings import is_stage_name

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run

NO_RUN = (
    "there is no run to measure: define a session-scoped fixture `retriever` in conftest.py that returns your search "
    "function, or pass --retrieval-run PATH, or set the ini value retrieval_run"
)
NAME_A_STAGE = "; this project has stages of a pipeline, and a gate on one of them names it: stage=…"


def command_run(session: Session, dataset: Dataset) -> Path | str | None:
    """The run that the command line names for this dataset, if any."""
    runs = session.settings.command_runs
    return runs.get(dataset.name, runs.get(None))


def run_under_test(request: pytest.FixtureRequest, key: ContextKey, dataset: Dataset) -> Run:
    """The run under test where no fixture overrides it: command line, marker, ini, else the retriever."""
    session = session_of(request.config)
    chosen = command_run(session, dataset) or key.run
    definition = fixture_definition(cast(pytest.Item, request._pyfuncitem), "retrieval_traces")
    if definition is not None and not is_ours(definition):
        if chosen is not None:
            raise GateError(
                f"the run {chosen} of the command line or the marker meets a project's own fixture retrieval_traces "
                f"({place_of(definition)}), and only one of them can be the run under test: remove one, or name the "
                "run in the gate (run=…)"
            )
        return traces_of(ask(request, "retrieval_traces")).run()
    chosen = chosen or session.settings.run
    if chosen is not None:
        return named_run(request, chosen)
    return retriever_run(request, dataset)


def named_run(request: pytest.FixtureRequest, ref: str | Path) -> Run:
    """The run of that name (of ``retrieval_runs``, or of a stage), path or URL."""
    session = session_of(request.config)
    if not isinstance(ref, str) or ref in session.settings.runs or not is_stage_name(ref):
        return session.read_run(ref)
    definition = fixture_definition(cast(pytest.Item, request._pyfuncitem), "retrieval_stages")
    if not session.settings.stages and is_ours(definition):
        return session.read_run(ref)
    stages = stages_of(session, ask(request, "retrieval_stages"))
    if ref in stages or not os.path.exists(session.settings.root / ref):
        return stages[ref] if ref in stages else session.read_run(ref, also=stages)
    return session.read_run(ref)


def retriever_run(request: pytest.FixtureRequest, dataset: Dataset) -> Run:
    """What the project's ``retriever`` returns for the queries of ``dataset``, asked once a session."""
    node = cast(pytest.Item, request._pyfuncitem)
    definition = fixture_definition(node, "retriever")
    session = session_of(request.config)
    if definition is None:
        staged = session.settings.stages or not is_ours(fixture_definition(node, "retrieval_stages"))
        raise GateError(NO_RUN + (NAME_A_STAGE if staged else ""))
    if definition.scope != "session" or definition.params is not None:
        what = "is parametrised" if definition.params is not None else f"has the scope {definition.scope!r}"
        raise GateError(
            f"the fixture retriever {what}, and must be session-scoped and not parametrised, since it is run once a "
            "session: for several systems save their runs and name them in the ini value retrieval_runs"
        )
    place, parts = place_of(definition), parts_of(node, definition)
    refuse_foreign(node, ("retriever", *parts))
    session.note_parts("retriever", place, parts)
    varied = sorted({"retriever", *parts} & set(parameters_of(node)) - {"retrieval_context"})
    if varied:
        raise GateError(
            f"the fixture retriever depends on a parameter of this test ({', '.join(varied)}), and is run once a "
            "session: for several systems save their runs and name them in the ini value retrieval_runs"
        )
    if "retrieval_dataset" in parts and dataset_of(session, ask(request, "retrieval_dataset")) is not dataset:
        raise GateError(
            f"the fixture retriever is built from retrieval_dataset, which is another dataset than "
            f"{dataset.name!r} for this test: name the dataset in the marker, "
            f"@pytest.mark.retrieval(dataset={dataset.name!r})"
        )
    built = parameters_of(node).get("retrieval_context") if "retrieval_context" in parts else None
    identity = f"{place} of {sorted(parts.items())} {built}"
    return retrieved(request.config, dataset, identity, lambda: ask(request, "retriever"))


def retrieved(config: pytest.Config, dataset: Dataset, identity: str, opened: Callable[[], object]) -> Run:
    """What a retriever returns for the queries of ``dataset``, asked once a session.

    ``identity`` tells one retriever from another; ``opened`` gives it where no process has asked it yet. Where hits are
    placed by their texts, once for each corpus that they may be placed in.
    """
    session = session_of(config)
    depth = session.settings.depth
    corpus = None if dataset.spans is None else dataset.corpus  # where chunks stand matters for spans alone

    def make() -> Run:
        from pytest_retrieval_eval.collection.runs.retrieve import FIXTURE
        from pytest_retrieval_eval.collection.runs.run import Run

        retriever = opened()
        with _progress_shown(config), no_evasion("retriever"):
            return Run.from_retriever(
                retriever,
                dataset.queries,
                depth=depth,
                name=FIXTURE,
                corpus=corpus,
                warmup=session.settings.warmup,
                repeat=session.settings.repeat,
            )

    asked = hashlib.sha256()
    for query_id in dataset.queries:
        asked.update(f"{query_id}\0{dataset.queries.text(query_id)}\0".encode())
    placing = None if corpus is None else (corpus.digest, corpus.normalize_ids)
    key = f"retriever {identity} depth {depth} queries {asked.hexdigest()} corpus {placing}"
    return session.once.get(key, make)


def _progress_shown(config: pytest.Config) -> AbstractContextManager[None]:
    """Lift pytest's capturing where a person watches, so that a long retrieval shows its progress bar."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None or not reporter.isatty():
        return nullcontext()
    return cast("AbstractContextManager[None]", capture.global_and_fixture_disabled())
