"""Which dataset, run and baseline a test's gates mean: the marker, the overriding fixtures and their precedence.

Session-scoped fixtures cannot see a test's marker. So every test that uses gates carries a hidden parameter, a
:class:`ContextKey`, that holds what its marker says and which definition of each overridable fixture is in effect
for it; pytest keeps one set of session fixtures for each distinct key. :class:`FixtureBench` then answers, for one
test, what a gate asks of its surroundings.

Precedence of a run: function argument > command line > marker > overriding fixture > ini > ``retriever``.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.session import Attempt, Session, of_stage
from pytest_retrieval_eval.settings import JUDGMENTS, is_stage_name

if TYPE_CHECKING:
    from _pytest._code.code import Traceback
    from _pytest.fixtures import FixtureDef

    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.run import Run
    from pytest_retrieval_eval.collection.stages import Stages
    from pytest_retrieval_eval.collection.traces import Traces
    from pytest_retrieval_eval.gates.bench import Baseline
    from pytest_retrieval_eval.gates.families import GateFamily
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.gates.tojudge import Pair
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.labels.source import LabelSource
    from pytest_retrieval_eval.readers.cache import CachedReader

SESSION = pytest.StashKey[Session]()
ATTEMPT = pytest.StashKey[Attempt]()
IS_GATE = pytest.StashKey[bool]()  # an item that is a gate itself and asks for no assertion fixture
MARKER = "retrieval"
OVERRIDABLE = (
    "retriever",
    "retrieval_dataset",
    "retrieval_run",
    "retrieval_baseline",
    "retrieval_reader",
    "retrieval_judgments",
    "retrieval_stages",
    "retrieval_traces",
)
UNREAD = ("retrieval_queries", "retrieval_qrels", "retrieval_spans")  # parts of retrieval_dataset, for reading in tests
_NOT_THE_USERS = ("pytest_retrieval_eval", "_pytest", "pytest", "pluggy")
OUR_FIXTURES = "pytest_retrieval_eval.fixtures"
NO_RUN = (
    "there is no run to measure: define a session-scoped fixture `retriever` in conftest.py that returns your search "
    "function, or pass --retrieval-run PATH, or set the ini value retrieval_run"
)
NAME_A_STAGE = "; this project has stages of a pipeline, and a gate on one of them names it: stage=…"


@dataclass(frozen=True)
class ContextKey:
    """What tells the session fixtures of one test from those of another.

    ``dataset``, ``run`` and ``baseline`` come from the marker; ``definitions`` says where each overridable fixture
    that is in effect for the test was defined.
    """

    dataset: str | None = None
    run: str | None = None
    baseline: str | None = None
    definitions: tuple[tuple[str, str], ...] = ()


def context_keys(node: pytest.Item) -> list[ContextKey]:
    """The keys of one test: one, or one for each dataset where the marker lists several."""
    marked = marked_values(node)
    found: list[tuple[str, str]] = []
    for name in OVERRIDABLE:
        definition = fixture_definition(node, name)
        if definition is not None:
            found.append((name, _place_of(definition)))
    datasets = marked.get("dataset")
    names = cast("Sequence[str]", datasets) if isinstance(datasets, list | tuple) else [cast("str | None", datasets)]
    return [
        ContextKey(
            dataset=name,
            run=cast("str | None", marked.get("run")),
            baseline=cast("str | None", marked.get("baseline")),
            definitions=tuple(found),
        )
        for name in names
    ]


def dataset_names(items: Sequence[pytest.Item], session: Session) -> set[str] | None:
    """The names that datasets of these tests can have; None where a project's own fixture may give them any."""
    names = set(session.settings.datasets)
    for item in items:
        if not is_ours(fixture_definition(item, "retrieval_dataset")):
            return None
        key = parameters_of(item).get("retrieval_context")
        if isinstance(key, ContextKey) and key.dataset is not None:
            names.add(session.dataset_name(key.dataset))
    return names


def marked_values(node: pytest.Item) -> dict[str, object]:
    """The keywords of the closest ``retrieval`` marker, checked; empty where there is none."""
    marker = node.get_closest_marker(MARKER)
    if marker is None:
        return {}
    from pytest_retrieval_eval.gates.options import KEYWORDS

    known = {"baseline", *KEYWORDS}
    if marker.args:
        raise SettingsError(f"@pytest.mark.retrieval takes keywords only, not {marker.args[0]!r}")
    for key in marker.kwargs:
        if key not in known:
            raise SettingsError(f"@pytest.mark.retrieval({key}=…): {did_you_mean(key, known)}")
    for key in ("dataset", "run", "baseline"):
        value = marker.kwargs.get(key)
        listed = key == "dataset" and isinstance(value, list | tuple) and len(value) > 0
        names = cast("Sequence[object]", value) if listed else [value]
        if key in marker.kwargs and not all(isinstance(name, str) and name for name in names):
            expected = "a name or a list of names" if key == "dataset" else "a name or a path, as text"
            raise SettingsError(f"@pytest.mark.retrieval({key}={value!r}): expected {expected}")
    return dict(marker.kwargs)


def fixture_definition(node: pytest.Item, name: str) -> FixtureDef[object] | None:
    """The definition of a fixture that is in effect for ``node``, or None where there is none.

    pytest has no public way to ask; this is the one place that uses its fixture manager.
    """
    found = node.session._fixturemanager.getfixturedefs(name, node)
    return found[-1] if found else None


def is_ours(definition: FixtureDef[object] | None) -> bool:
    """Whether a fixture is this plugin's own, not one that a project defines under the same name."""
    return definition is not None and definition.func.__module__ == OUR_FIXTURES


def _place_of(definition: FixtureDef[object]) -> str:
    function = definition.func
    return f"{definition.baseid}::{function.__module__}.{getattr(function, '__qualname__', repr(function))}"


def _parts_of(node: pytest.Item, definition: FixtureDef[object]) -> dict[str, str]:
    """Where each fixture that ``definition`` is built from is defined, for this test, through all levels."""
    parts: dict[str, str] = {}
    names = list(definition.argnames)
    while names:
        name = names.pop()
        if name in parts or name == "request":
            continue
        part = fixture_definition(node, name)
        parts[name] = _place_of(part) if part is not None else ""
        names += part.argnames if part is not None else ()
    return parts


def _refuse_foreign(node: pytest.Item, names: Sequence[str]) -> None:
    """Refuse a fixture of another folder's conftest.py: pytest gives those outside its root folder to every test."""
    root = node.config.rootpath
    for name in names:
        definition = fixture_definition(node, name)
        code = getattr(definition.func, "__code__", None) if definition is not None and not definition.baseid else None
        file = Path(code.co_filename) if code is not None else root
        outside = file.name == "conftest.py" and file.is_absolute() and root not in file.parents
        if outside and file.parent not in node.path.parents:
            raise GateError(
                f"the fixture {name} in effect here is that of {file}, which is not above this test: pytest gives "
                f"the fixtures of every conftest.py outside its root folder ({root}) to all tests. Start it with "
                "a --rootdir that holds them all"
            )


def parameters_of(node: pytest.Item) -> Mapping[str, object]:
    """The parameters of a test: those of its fixtures and those that it was given directly."""
    return cast("Mapping[str, object]", getattr(getattr(node, "callspec", None), "params", {}))


def session_of(config: pytest.Config) -> Session:
    """The state of this process."""
    return config.stash[SESSION]


def attempt_of(node: pytest.Item) -> Attempt:
    """The attempt that is running at this test."""
    return node.stash.setdefault(ATTEMPT, Attempt())


def ask(request: pytest.FixtureRequest, name: str) -> object:
    """The value of a fixture for a gate: one that skips is an error, since a skipped gate measured nothing."""
    node = cast(pytest.Item, request._pyfuncitem)
    definition = fixture_definition(node, name)
    if definition is not None and not is_ours(definition):
        parts = _parts_of(node, definition)
        _refuse_foreign(node, (name, *parts))
        if definition.scope != "function":
            session_of(request.config).note_parts(name, _place_of(definition), parts)
    with nullcontext() if may_skip(request.config, name) else _no_evasion(name):
        return request.getfixturevalue(name)


def may_skip(config: pytest.Config, name: str) -> bool:
    """Whether a fixture that only gates use may skip them: a reader that cannot be had on this machine, on a desk."""
    return name == "retrieval_reader" and session_of(config).settings.skip_without_reader


@contextmanager
def _no_evasion(name: str) -> Generator[None, None, None]:
    """A skip, or an expected failure, of the fixture ``name`` or of what it returned is an error."""
    try:
        yield
    except BaseException as outcome:
        if is_evasion(outcome):
            raise skipped_fixture(name, outcome) from None
        raise


def is_evasion(outcome: BaseException) -> bool:
    """Whether an exception stands for a skip or an expected failure, in pytest's way or unittest's."""
    # Whoever raises unittest's has imported it.
    theirs = getattr(sys.modules.get("unittest"), "SkipTest", pytest.skip.Exception)
    return isinstance(outcome, (pytest.skip.Exception, pytest.xfail.Exception, theirs))


def skipped_fixture(name: str, outcome: BaseException) -> GateError:
    """The error for a fixture that a gate needs and that skips."""
    return GateError(f"the fixture {name} skips ({outcome}): a gate that is skipped has measured nothing")


def evading_fixture(node: pytest.Item, outcome: BaseException) -> str | None:
    """Which fixture that only gates use skipped, itself or in what it is built from, when ``node`` was set up.

    pytest keeps what a fixture raised, and raises it again for the next test without calling any hook.
    """
    names = getattr(node, "fixturenames", ())
    gated = node.stash.get(IS_GATE, False) or any(_is_assertion(node, name) for name in names)
    for name in OVERRIDABLE:
        definition = fixture_definition(node, name)
        if name not in names or definition is None or not (gated or name != "retriever"):
            continue
        if may_skip(node.config, name):
            continue
        for part in (name, *_parts_of(node, definition)):
            found = fixture_definition(node, part)
            kept = found.cached_result[2] if found is not None and found.cached_result is not None else None
            if kept is not None and kept[0] is outcome:
                return name
    return None


def _is_assertion(node: pytest.Item, name: str) -> bool:
    """Whether that name is an assertion fixture of ours for this test."""
    named = ("metric", "gate", "gate_family", "erag", "judge_valid")
    ours = name.removeprefix("assert_") in named or name.endswith("_at")
    return ours and is_ours(fixture_definition(node, name))


def users_frames(excinfo: pytest.ExceptionInfo[BaseException]) -> Traceback:
    """The lines of an exception's traceback that are neither pytest's nor ours; empty where there are none."""
    return excinfo.traceback.filter(
        lambda entry: str(entry.frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_USERS
    )


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


class FixtureBench:
    """What the gates of one test ask for, answered by its fixtures, its marker and the settings."""

    in_python = True  # whether the comparison stands in Python's code, whose pitfalls a failure then names

    def __init__(self, request: pytest.FixtureRequest, key: ContextKey) -> None:
        self._request = request
        self._node = cast(pytest.Item, request.node)
        self._key = key
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
        from pytest_retrieval_eval.collection.run import Run
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
        if update == "all" or (update == "new" and not path.exists()):
            self._stage("baseline", path, candidate, dataset)
            return Baseline(candidate, value, updated=True)
        command = f"pytest --retrieval-update=new {shlex.quote(self._node.nodeid)}"
        return Baseline(read_baseline(path, how_to_create=command), value)

    def labels(self, name: str, options: Options) -> LabelSource:
        """The source of labels of that name; ``erag`` reads with the gate's reader, else with the project's."""
        from pytest_retrieval_eval.labels.source import ERAG, JUDGED, source

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
        root = self._session.settings.root
        folder = judgments.folder.relative_to(root) if judgments.folder.is_relative_to(root) else judgments.folder
        option = "" if str(folder) == JUDGMENTS else f" --judgments {shlex.quote(str(folder))}"
        test = shlex.quote(self._node.nodeid)
        return f"pytest --retrieval-to-judge=pairs.jsonl {test}; pytest-retrieval-eval judge pairs.jsonl{option}"

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
        from pytest_retrieval_eval.gates.wording import shown

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

        marked = {
            key: value for key, value in marked_values(self._node).items() if key not in ("dataset", "run", "baseline")
        }
        if self.in_python and "run" in marked_values(self._node) and "stage" in marked:
            raise SettingsError("@pytest.mark.retrieval(run=…, stage=…): both say what is measured; keep one of them")
        # Inside a gate_family the correction is the family's.
        own = several and self._attempt.family is None
        return with_defaults(self._session.settings.defaults, marked | dict(keywords), several=own)

    def _named(self, ref: str | Path | Run) -> Run:
        from pytest_retrieval_eval.collection.run import Run

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
            place = "a parameter" if given_directly else _place_of(cast("FixtureDef[object]", definition))
            raise GateError(
                f"{given} meets a project's own fixture retrieval_run ({place}), "
                "and only one of them can be the run under test: remove one, or name the run in the gate (run=…)"
            )
        return self._as_run(ask(self._request, "retrieval_run"))

    def _as_run(self, value: object) -> Run:
        from pytest_retrieval_eval.collection.run import Run
        from pytest_retrieval_eval.collection.traces import Traces

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
        from pytest_retrieval_eval.collection.extents import with_offsets
        from pytest_retrieval_eval.gates.baselines import provenance

        # What is stored says itself which parts of documents its hits are: the next chunking has another table.
        run = with_offsets(run, dataset.placed_chunks)
        file = self._session.stage(kind, target, run, {**provenance(run, dataset), **(digests or {})}, times=times)
        # A baseline is written only once its gate is decided: one that errs has measured nothing.
        staged = self._attempt.undecided if kind == "baseline" else self._attempt.staged
        if file not in staged:
            staged.append(file)


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
                f"({_place_of(definition)}), and only one of them can be the run under test: remove one, or name the "
                "run in the gate (run=…)"
            )
        return traces_of(ask(request, "retrieval_traces")).run()
    chosen = chosen or session.settings.run
    if chosen is not None:
        return named_run(request, chosen)
    return retriever_run(request, dataset)


def traces_of(value: object) -> Traces:
    """What the fixture `retrieval_traces` returned: traces, a mapping of them, or the path of a file."""
    from pytest_retrieval_eval.collection.traces import Traces

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


def named_run(request: pytest.FixtureRequest, ref: str | Path) -> Run:
    """The run of that name (of ``retrieval_runs``, or of a stage), path or URL."""
    session = session_of(request.config)
    if not isinstance(ref, str) or ref in session.settings.runs or not is_stage_name(ref):
        return session.read_run(ref)
    definition = fixture_definition(cast(pytest.Item, request._pyfuncitem), "retrieval_stages")
    if not session.settings.stages and is_ours(definition):
        return session.read_run(ref)
    stages = stages_of(session, ask(request, "retrieval_stages"))
    if ref in stages or not (session.settings.root / ref).exists():
        return stages[ref] if ref in stages else session.read_run(ref, also=stages)
    return session.read_run(ref)


def stages_of(session: Session, value: object) -> Stages:
    """What the fixture `retrieval_stages` returned: runs, or their names and paths, by stage."""
    from pytest_retrieval_eval.collection.run import Run
    from pytest_retrieval_eval.collection.stages import Stages

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
    place, parts = _place_of(definition), _parts_of(node, definition)
    _refuse_foreign(node, ("retriever", *parts))
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

    ``identity`` tells one retriever from another; ``opened`` gives it where no process has asked it yet.
    """
    session = session_of(config)
    depth = session.settings.depth

    def make() -> Run:
        from pytest_retrieval_eval.collection.run import Run

        retriever = opened()
        with _progress_shown(config), _no_evasion("retriever"):
            corpus = None if dataset.spans is None else dataset.corpus  # where chunks stand matters for spans alone
            return Run.from_retriever(
                retriever,
                dataset.queries,
                depth=depth,
                name="retriever",
                corpus=corpus,
                warmup=session.settings.warmup,
                repeat=session.settings.repeat,
            )

    asked = hashlib.sha256()
    for query_id in dataset.queries:
        asked.update(f"{query_id}\0{dataset.queries.text(query_id)}\0".encode())
    key = f"retriever {identity} depth {depth} queries {asked.hexdigest()}"
    return session.once.get(key, make)


def _progress_shown(config: pytest.Config) -> AbstractContextManager[None]:
    """Lift pytest's capturing where a person watches, so that a long retrieval shows its progress bar."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None or not reporter.isatty():
        return nullcontext()
    return cast("AbstractContextManager[None]", capture.global_and_fixture_disabled())


def _file_name(name: str) -> str:
    """A name as part of a file name."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "unnamed"
