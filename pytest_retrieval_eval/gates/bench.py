"""What a gate needs from outside: pytest's fixtures, the command line and a notebook each bring one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.gates.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stored run under its name; ``updated``: this session writes it, so that it equals the candidate."""

    run: Run
    name: str
    updated: bool = False


class Bench(Protocol):
    """Looks up what a gate names, and takes the verdict.

    Every look-up raises a ``GateError`` whose message says what to do; it never returns something empty
    instead. A bench may have an attribute ``weak_drop`` (the mean drop that a passing gate should be able to
    detect, 0.02 where it is absent), and one ``provenance`` (True: verdicts say where their numbers come from),
    and one ``stop_early`` (True: not every query need be read where the verdict is settled before);
    and a method ``collect``, which gets the pairs to judge of each gate. Further methods that it may have:
    ``labels(name, options)`` gives the :class:`~pytest_retrieval_eval.labels.source.LabelSource` of that name for a
    gate with these options, such as one that knows the reader (those without settings are there by themselves),
    ``keep_texts`` gets the texts that a baseline is to be stored with, and ``reanchor`` each dataset whose gold spans a
    gate reads. One that knows a pipeline has the methods ``stages()``, which gives its
    :class:`Stages`, and ``stage_baseline(dataset, name, stage, candidate)``, which is ``baseline`` for a stage of it.
    """

    def dataset(self, name: str | None) -> Dataset:
        """The named dataset, or the first one."""

    def run(self, dataset: Dataset, ref: str | Path | Run | None) -> Run:
        """The run under test (None), a named run, one from a file, or the run itself."""

    def baseline(self, dataset: Dataset, name: str | None, candidate: Run) -> Baseline:
        """The named baseline of the dataset, or the configured one."""

    def record(self, verdict: Verdict) -> None:
        """Take note of a decided comparison; called once for each, before anything is raised."""

    def explain(self, verdict: Verdict) -> str:
        """The text of a ``GateFailure``."""


def stages_of(bench: Bench) -> Stages:
    """The stages that a bench knows; none where it knows no pipeline."""
    known: Callable[[], Stages] | None = getattr(bench, "stages", None)
    return Stages({}) if known is None else known()


def baseline_of(bench: Bench, dataset: Dataset, name: str | None, stage: str | None, candidate: Run) -> Baseline:
    """The baseline of a stage, or of the whole pipeline (None)."""
    if stage is None:
        return bench.baseline(dataset, name, candidate)
    known: Callable[[Dataset, str | None, str, Run], Baseline] | None = getattr(bench, "stage_baseline", None)
    if known is None:
        raise GateError(f"stage={stage!r}: there are no baselines of stages here")
    return known(dataset, name, stage, candidate)
