"""What a project's fixtures returned, as data: a dataset, judgments, traces, the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.session.process import Session

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.runs.stages import Stages
    from pytest_retrieval_eval.collection.runs.traces import Traces
    from pytest_retrieval_eval.labels.judgments import Judgments


def dataset_of(session: Session, value: object) -> Dataset:
    """What the fixture `retrieval_dataset` returned, as a dataset."""
    from pytest_retrieval_eval.collection.dataset import Dataset

    if isinstance(value, str | Path):
        return session.dataset(str(value))
    if not isinstance(value, Dataset):
        raise GateError(
            f"the fixture retrieval_dataset returned {type(value).__name__}, expected a Dataset or the name or "
            "path of one"
        )
    return value


def judgments_of(session: Session, value: object) -> Judgments:
    """What the fixture `retrieval_judgments` returned, as judgments."""
    from pytest_retrieval_eval.labels.judgments import Judgments

    if isinstance(value, str | Path):
        return session.judgments_in(Path(value))
    if not isinstance(value, Judgments):
        raise GateError(
            f"the fixture retrieval_judgments returned {type(value).__name__}, expected Judgments or the path of "
            "their folder"
        )
    return value


def traces_of(value: object) -> Traces:
    """What the fixture `retrieval_traces` returned: traces, a mapping of them, or the path of a file."""
    from pytest_retrieval_eval.collection.runs.traces import Traces

    if isinstance(value, Traces):
        return value
    if isinstance(value, Mapping):
        return Traces.of(value)
    if isinstance(value, str | Path):
        return Traces.read(value)
    raise GateError(
        f"the fixture retrieval_traces returned {type(value).__name__}, expected Traces, a mapping from query id to "
        "calls, or the path of a file of traces"
    )


def stages_of(session: Session, value: object) -> Stages:
    """What the fixture `retrieval_stages` returned: runs, or their names and paths, by stage."""
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.runs.stages import Stages

    if isinstance(value, Stages):
        return value
    if not isinstance(value, Mapping):
        raise GateError(
            f"the fixture retrieval_stages returned {type(value).__name__}, expected a mapping from the name of each "
            "stage to its run, in pipeline order"
        )

    def opened(name: str, found: object) -> Run:
        if isinstance(found, Run):
            return found
        if isinstance(found, str | Path):
            return session.read_run(found)
        raise GateError(
            f"the stage {name!r} of retrieval_stages is {type(found).__name__}, expected a Run or the name or path of "
            "one"
        )

    return Stages(value, opened)
