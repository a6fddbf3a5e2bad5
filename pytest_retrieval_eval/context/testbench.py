"""What the gates of one test ask of their surroundings, answered by its fixtures, its marker and the settings."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

from pytest_retrieval_eval.context.asking import ask
from pytest_retrieval_eval.context.definitions import UNREAD, fixture_definition, is_ours, parameters_of, place_of
from pytest_retrieval_eval.context.given import dataset_of, judgments_of, stages_of
from pytest_retrieval_eval.context.key import KEYED, ContextKey, marked_values
from pytest_retrieval_eval.context.runs import command_run, named_run, run_under_test
from pytest_retrieval_eval.context.state import attempt_of, session_of
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.session.process import of_stage

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef

    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.runs.stages import Stages
    from pytest_retrieval_eval.gates.bench import Baseline
    from pytest_retrieval_eval.gates.families import GateFamily
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.gates.tojudge import Pair
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.labels.labelling import LabelSource
    from pytest_retrieval_eval.readers.readings.cache import CachedReader


class FixtureBench:
    """What the gates of one test ask for, answered by its fixtures, its marker and the settings."""

    in_python = True  # whether the comparison stands in Python's code, whose pitfalls a failure then names

    def __init__(self, request: pytest.FixtureRequest, key: ContextKey) -> None:
        self._request = request
        self._node = cast(pytest.Item, request.node)
        self._key = key
        key.check(marked_values(self._node))
        self._session = session_of(request.config)
        self._attempt = attempt_of(self._node)
        self._opened: dict[str, Dataset | Run] = {}

    @property
    def weak_drop(self) -> float:
        """The mean drop that a passing gate should be able to see."""
        return self._session.settings.weak_drop

    @property
    def correction(self) -> str:
        """The correction of a `gate_family` that names none."""
        return str(self._session.settings.defaults.get("correction", "holm"))

    @property
    def stop_early(self) -> bool:
        """Whether a gate may stop reading once its verdict is settled."""
        return self._session.settings.stop_early

    @property
    def provenance(self) -> bool:
        """Whether verdicts say where their numbers come from: it takes a pass over the data."""
        return self._session.settings.json is not None

    def dataset(self, name: str | None) -> Dataset:
        """The dataset that a gate names, else the test's."""
        dataset = self._dataset(name)
        self._opened[f"dataset {dataset.name}"] = dataset
        return dataset

    def _dataset(self, name: str | None) -> Dataset:
        for fixture in UNREAD:
            if fixture in parameters_of(self._node) or not is_ours(fixture_definition(self._node, fixture)):
                raise GateError(f"gates do not read the fixture {fixture}: override retrieval_dataset instead")
        if name is not None:
            return self._session.dataset(name)
        return dataset_of(self._session, ask(self._request, "retrieval_dataset"))

    def run(self, dataset: Dataset, ref: str | Path | Run | None) -> Run:
        """The run that a gate names, else the run under test."""
        run = self._named(ref) if ref is not None else self._under_test(dataset)
        self._opened[f"run {run.name}"] = run
        folder = self._session.settings.save_runs
        if folder is not None:
            self._stage("run", folder / f"{_file_name(dataset.name)}.{_file_name(run.name)}.run.jsonl.gz", run, dataset)
        return run

    def baseline(self, dataset: Dataset, name: str | None, candidate: Run) -> Baseline:
        """The stored run that a target names; with ``--retrieval-update`` it may be the candidate itself."""
        return self._baseline(dataset, name, None, candidate)

    def stage_baseline(self, dataset: Dataset, name: str | None, stage: str, candidate: Run) -> Baseline:
        """The stored run of a stage, which lies beside that of the whole pipeline: ``NAME.STAGE``."""
        return self._baseline(dataset, name, stage, candidate)

    def _baseline(self, dataset: Dataset, name: str | None, stage: str | None, candidate: Run) -> Baseline:
        from pytest_retrieval_eval.collection.runs.run import Run
        from pytest_retrieval_eval.gates.baselines import read_baseline
        from pytest_retrieval_eval.gates.bench import Baseline

        value = name if name is not None else ask(self._request, "retrieval_baseline")
        if stage is not None and isinstance(value, Run | Path):
            raise GateError(
                f"the fixture retrieval_baseline returned one run ({value}), and stage={stage!r} asks for the baseline "
                "of a stage: return the name of a baseline, of which each stage has its own, or compare with "
                "against(…)"
            )
        if isinstance(value, Run):
            return Baseline(value, value.name)
        if not isinstance(value, str | Path):
            raise GateError(
                f"the fixture retrieval_baseline returned {type(value).__name__}, expected the name of a baseline, "
                "the path of a run, or a Run"
            )
        if isinstance(value, Path):
            return Baseline(self._session.read_run(value), str(value))
        stored = self._session.stored_run(dataset, value, stage)
        value = of_stage(value, stage)
        if stored is not None:
            return Baseline(stored, value)
        path = Path(self._session.baseline_path(dataset, value))
        update = self._session.settings.update
        if update == "all" or (update == "new" and not os.path.exists(path)):
            self._stage("baseline", path, candidate, dataset)
            return Baseline(candidate, value, updated=True)
        command = f"pytest --retrieval-update=new {shlex.quote(self._node.nodeid)}"
        return Baseline(read_baseline(path, how_to_create=command), value)

    def labels(self, name: str, options: Options) -> LabelSource:
        """The source of labels of that name; ``erag`` reads with the gate's reader, else with the project's."""
        from pytest_retrieval_eval.labels.labelling import ERAG, JUDGED
        from pytest_retrieval_eval.labels.source import source

        if name == JUDGED:
            judgments = self.judgments()
            return self._session.judged(judgments).filled_by(self._fill(judgments))
        if name != ERAG:
            return source(name)
        from pytest_retrieval_eval.labels.erag import METRIC, Erag
        from pytest_retrieval_eval.readers.absent import AbsentReaderError

        try:
            reader = self._reader(options.reader)
        except AbsentReaderError as error:
            self._without_reader(error)
        return Erag(reader, options.answer_metric or METRIC, absent=self._without_reader)

    def judgments(self) -> Judgments:
        """What the fixture `retrieval_judgments` gives: a folder of judgments, or its path."""
        return judgments_of(self._session, ask(self._request, "retrieval_judgments"))

    def _fill(self, judgments: Judgments) -> str:
        """The commands that judge what this test looks at."""
        judge = self._session.settings.judge_command("pairs.jsonl", judgments.folder)
        return f"pytest --retrieval-to-judge=pairs.jsonl {shlex.quote(self._node.nodeid)}; {judge}"

    def _reader(self, given: object) -> CachedReader:
        """The reader that a gate names, else the fixture's."""
        if given is not None:
            return self._session.reader(given, self._session.settings.root)
        return self._session.reader(ask(self._request, "retrieval_reader"))

    def _without_reader(self, error: GateError) -> NoReturn:
        """A reader that cannot be had here: on a desk the test is skipped, in a pipeline it is not green."""
        if self._session.settings.skip_without_reader:
            self._session.without_reader[str(error)] = None
            pytest.skip(str(error))
        raise GateError(
            f"{error}. Where CI is set this is an error; --retrieval-allow-missing-reader skips the gate instead"
        ) from None

    def stages(self) -> Stages:
        """The stages of the pipeline, as the fixture or the ini file names them."""
        if not self._session.settings.stages and is_ours(fixture_definition(self._node, "retrieval_stages")):
            return stages_of(self._session, {})  # a failing gate asks too, and most projects have no stages
        return stages_of(self._session, ask(self._request, "retrieval_stages"))

    def keep_texts(
        self, baseline: Baseline, dataset: Dataset, texts: Mapping[str, Document], digests: Mapping[str, str | None]
    ) -> None:
        """Write a baseline with the texts that its labels were made from, and what those were made from."""
        path = Path(self._session.baseline_path(dataset, baseline.name))
        known = {key: digest for key, digest in digests.items() if digest is not None}
        self._stage("baseline", path, baseline.run.with_texts(texts), dataset, known)

    def keep_times(self, baseline: Baseline, dataset: Dataset) -> None:
        """Write a baseline with what each query took and cost, for a gate on times."""
        path = Path(self._session.baseline_path(dataset, baseline.name))
        self._stage("baseline", path, baseline.run, dataset, times=True)

    @property
    def family(self) -> GateFamily | None:
        """The family that collects this test's comparisons, inside a `gate_family` block."""
        return self._attempt.family

    def record(self, verdict: Verdict) -> None:
        """Keep a verdict for the reports; files are only written for a gate that was decided."""
        from pytest_retrieval_eval.wording import shown

        self._attempt.record(verdict)
        for name, opened in self._opened.items():  # only now has all of a run been read
            self._attempt.warnings |= dict.fromkeys(f"{shown(name)}: {shown(said, 300)}" for said in opened.warnings)

    def explain(self, verdict: Verdict) -> str:
        """The text of a failure, longer with every ``-v``."""
        from pytest_retrieval_eval.reports.text import explain

        verbosity = self._request.config.get_verbosity()
        limit = None if verbosity > 1 else 60 if verbosity == 1 else 15
        return explain(verdict, limit=limit, in_python=self.in_python, spread=verbosity > 0)

    @property
    def collect(self) -> Callable[[Sequence[Pair]], None] | None:
        """What takes the pairs to judge of each gate, where the command line wants them."""
        return self._collect if self._session.settings.to_judge is not None else None

    def _collect(self, pairs: Sequence[Pair]) -> None:
        self._attempt.to_judge.append(self._session.stage_pairs(pairs))

    @property
    def reanchor(self) -> Callable[[Dataset], None] | None:
        """What is told of each dataset whose gold spans a gate reads, where the command line wants to know."""
        return self._reanchor if self._session.settings.reanchor is not None else None

    def _reanchor(self, dataset: Dataset) -> None:
        anchors = dataset.anchors
        if anchors is None:
            return
        source = anchors.spans.source
        self._attempt.reanchored[source] = [str(anchors), *anchors.lines()]
        if self._session.settings.reanchor == "write":
            file = self._session.stage_spans(anchors)
            if file is not None and file not in self._attempt.staged:
                self._attempt.staged.append(file)

    def options(self, keywords: Mapping[str, object], *, several: bool = False) -> Options:
        """A gate's keywords over those of the test's marker, and those over the ini file's defaults.

        ``several``: the gate is a family of comparisons, which may have a correction of its own.
        """
        __tracebackhide__ = True
        from pytest_retrieval_eval.gates.defaults import with_defaults

        values = marked_values(self._node)
        self._key.check(values)
        marked = {key: value for key, value in values.items() if key not in KEYED}
        if self.in_python and "run" in values and "stage" in marked:
            raise SettingsError("@pytest.mark.retrieval(run=…, stage=…): both say what is measured; keep one of them")
        # Inside a gate_family the correction is the family's.
        own = several and self._attempt.family is None
        return with_defaults(self._session.settings.defaults, marked | dict(keywords), several=own)

    def _named(self, ref: str | Path | Run) -> Run:
        from pytest_retrieval_eval.collection.runs.run import Run

        return ref if isinstance(ref, Run) else named_run(self._request, ref)

    def _under_test(self, dataset: Dataset) -> Run:
        definition = fixture_definition(self._node, "retrieval_run")
        chosen = command_run(self._session, dataset)
        if chosen is not None:
            self._attempt.command_runs.add(str(chosen))
        given_directly = "retrieval_run" in parameters_of(self._node)
        if is_ours(definition) and not given_directly:
            return run_under_test(self._request, self._key, dataset)
        if chosen is not None or self._key.run is not None:
            given = f"--retrieval-run ({chosen})" if chosen is not None else f"the marker (run={self._key.run!r})"
            place = "a parameter" if given_directly else place_of(cast("FixtureDef[object]", definition))
            raise GateError(
                f"{given} meets a project's own fixture retrieval_run ({place}), "
                "and only one of them can be the run under test: remove one, or name the run in the gate (run=…)"
            )
        return self._as_run(ask(self._request, "retrieval_run"))

    def _as_run(self, value: object) -> Run:
        from pytest_retrieval_eval.collection.runs.run import Run
        from pytest_retrieval_eval.collection.runs.traces import Traces

        if isinstance(value, Run | str | Path):
            return self._named(value)
        if isinstance(value, Traces):
            return value.run()
        raise GateError(
            f"the fixture retrieval_run returned {type(value).__name__}, expected a Run or the name or path of one"
        )

    def _stage(
        self,
        kind: str,
        target: Path,
        run: Run,
        dataset: Dataset,
        digests: Mapping[str, str] | None = None,
        *,
        times: bool = False,
    ) -> None:
        from pytest_retrieval_eval.collection.spans.extents import with_offsets
        from pytest_retrieval_eval.gates.baselines import provenance

        # What is stored says itself which parts of documents its hits are: the next chunking has another table.
        run = with_offsets(run, dataset.placed_chunks)
        file = self._session.stage(kind, target, run, {**provenance(run, dataset), **(digests or {})}, times=times)
        # A baseline is written only once its gate is decided: one that errs has measured nothing.
        staged = self._attempt.undecided if kind == "baseline" else self._attempt.staged
        if file not in staged:
            staged.append(file)


def _file_name(name: str) -> str:
    """A name as part of a file name."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "unnamed"
