"""What a test asks for. Each fixture imports what it needs when it is used, so that an unused plugin costs nothing.

Gates look only at the prefixed fixtures, which a project may override; the short names are aliases for reading in
tests, and a project's own fixtures under those names are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import pytest

from pytest_retrieval_eval.context.key import MARKER, ContextKey
from pytest_retrieval_eval.context.state import attempt_of, session_of
from pytest_retrieval_eval.errors import GateError, SettingsError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.queries import Queries
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.runs.traces import Traces
    from pytest_retrieval_eval.collection.spans.spans import Spans
    from pytest_retrieval_eval.context.testbench import FixtureBench
    from pytest_retrieval_eval.gates.families import GateFamily
    from pytest_retrieval_eval.gates.measured import Measured
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.gates.target import Target
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.labels.erag import Lift, ReadQrels
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.readers.readings.cache import CachedReader
    from pytest_retrieval_eval.readers.readings.store import ReadingCache
    from pytest_retrieval_eval.studies.judge_validation import JudgeValidation

T = TypeVar("T")


class AssertMetric(Protocol):
    """``assert_metric(name, **options)``: the measure of that name, or several as one family, to be compared."""

    def __call__(self, name: str | Sequence[str], **options: object) -> Measured:
        """Make the measured value."""


class AssertAt(Protocol):
    """``assert_X_at(k, *, rel=None, **options)``: the measure X at cut-off k, to be compared."""

    def __call__(self, k: int | None = None, *, rel: float | None = None, **options: object) -> Measured:
        """Make the measured value."""


class AssertGate(Protocol):
    """``gate("recall@5 >= baseline", **options)``: a gate in one text, or a list of them, decided at once."""

    def __call__(self, text: str | Sequence[str], **options: object) -> Verdict:
        """Decide the gate."""


class AssertJudgeValid(Protocol):
    """``assert_judge_valid(name, tpr=0.9)``: a judge's grades held against those of people, decided at once."""

    def __call__(self, name: str | None = None, **options: object) -> Verdict:
        """Validate the judge."""


class MakeFamily(Protocol):
    """``with gate_family(correction="holm"):`` decides the comparisons inside together."""

    def __call__(self, *, correction: str | None = None) -> GateFamily:
        """Make a family, to be used in a ``with`` statement."""


# --- what a project may override -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def retrieval_context(request: pytest.FixtureRequest) -> ContextKey:
    """What the test's `retrieval` marker says, and which overriding fixtures are in effect for it."""
    return cast(ContextKey, getattr(request, "param", None) or ContextKey())


@pytest.fixture(scope="session")
def retrieval_dataset(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> Dataset:
    """The test collection: queries, qrels and corpus. Override it to build one in code."""
    _takes_no_parameter(request)
    return session_of(request.config).dataset(retrieval_context.dataset)


@pytest.fixture(scope="session")
def retrieval_queries(retrieval_dataset: Dataset) -> Queries:
    """The queries of the test collection."""
    return retrieval_dataset.queries


@pytest.fixture(scope="session")
def retrieval_qrels(retrieval_dataset: Dataset) -> Qrels:
    """The relevance judgments of the test collection."""
    return retrieval_dataset.qrels


@pytest.fixture(scope="session")
def retrieval_spans(retrieval_dataset: Dataset) -> Spans:
    """The gold spans of the test collection, where their passages stand today; an error where nobody knows."""
    from pytest_retrieval_eval.collection.spans.stale import current_spans

    found, _ = current_spans(retrieval_dataset)
    if found is None:
        raise GateError(
            f"the dataset {retrieval_dataset.name} has no gold spans: put spans.jsonl (query_id, doc_id, start, end) "
            "into its folder"
        )
    return found


@pytest.fixture(scope="session")
def retrieval_run(request: pytest.FixtureRequest, retrieval_context: ContextKey, retrieval_dataset: Dataset) -> Run:
    """The run under test: from the command line, the marker, the ini file, or what `retriever` returns."""
    from pytest_retrieval_eval.context.runs import run_under_test

    _takes_no_parameter(request)
    return run_under_test(request, retrieval_context, retrieval_dataset)


@pytest.fixture(scope="session")
def retrieval_baseline(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> str:
    """The name of the baseline that `baseline` stands for. Override it with a name, a path or a Run."""
    _takes_no_parameter(request)
    return retrieval_context.baseline or session_of(request.config).settings.baseline


@pytest.fixture(scope="session")
def retrieval_reader(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> object:
    """The language model that reads for labels="erag". Override it with a reader, its settings, or a function."""
    _takes_no_parameter(request)
    session = session_of(request.config)
    if session.settings.reader is None:
        from pytest_retrieval_eval.labels.erag import NO_READER

        raise GateError(NO_READER)
    return session.reader(session.settings.reader, session.settings.reader_root)


@pytest.fixture(scope="session")
def retrieval_stages(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> Mapping[str, Run]:
    """The stages of the pipeline in their order, name → run: those of the ini value `retrieval_stages`. Override it
    with a mapping to runs, or to names or paths of runs.
    """
    from pytest_retrieval_eval.context.given import stages_of

    _takes_no_parameter(request)
    session = session_of(request.config)
    return stages_of(session, session.settings.stages)


@pytest.fixture(scope="session")
def retrieval_judgments(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> object:
    """The folder of judgments that labels="judged" reads. Override it with Judgments, or the path of their folder."""
    _takes_no_parameter(request)
    return session_of(request.config).judgments


@pytest.fixture(scope="session")
def retrieval_traces(request: pytest.FixtureRequest, retrieval_run: Run) -> Traces:
    """The traces that the run under test is made of. Override it to gate an agent's calls: with Traces, a mapping from
    query id to calls, or the path of a file.
    """
    from pytest_retrieval_eval.collection.runs.traces import Traces

    _takes_no_parameter(request)
    return Traces.of_run(retrieval_run)


@pytest.fixture(scope="session")
def retrieval_once(request: pytest.FixtureRequest) -> Callable[[str, Callable[[], T]], T]:
    """`retrieval_once(key, make)`: a value made once a session, also under pytest-xdist."""
    return session_of(request.config).once.get


@pytest.fixture(scope="session")
def retrieval_cache(request: pytest.FixtureRequest) -> Generator[ReadingCache, None, None]:
    """The cache of what language models have read, as `retrieval_cache` and `--retrieval-cache-mode` say."""
    readings = session_of(request.config).readings
    yield readings
    readings.close()


def _takes_no_parameter(request: pytest.FixtureRequest) -> None:
    if hasattr(request, "param"):
        name = request.fixturename
        raise GateError(
            f"the fixture {name} takes no parameter: parametrise it without indirect=True, or use the marker, "
            f"@pytest.mark.retrieval({str(name).removeprefix('retrieval_')}={request.param!r})"
        )


# --- aliases for reading in tests ------------------------------------------------------------------------------


@pytest.fixture
def dataset(retrieval_dataset: Dataset) -> Dataset:
    """The test collection."""
    return retrieval_dataset


@pytest.fixture
def queries(retrieval_queries: Queries) -> Queries:
    """The queries of the test collection."""
    return retrieval_queries


@pytest.fixture
def qrels(retrieval_qrels: Qrels) -> Qrels:
    """The relevance judgments of the test collection."""
    return retrieval_qrels


@pytest.fixture
def spans(retrieval_spans: Spans) -> Spans:
    """The gold spans of the test collection."""
    return retrieval_spans


@pytest.fixture
def run(retrieval_run: Run) -> Run:
    """The run under test."""
    return retrieval_run


@pytest.fixture
def judgments(request: pytest.FixtureRequest, retrieval_judgments: object) -> Judgments:
    """The judgments that labels="judged" reads."""
    from pytest_retrieval_eval.context.given import judgments_of

    return judgments_of(session_of(request.config), retrieval_judgments)


@pytest.fixture
def reader(request: pytest.FixtureRequest, retrieval_reader: object) -> CachedReader:
    """The reader of the project, behind the cache of its readings."""
    return session_of(request.config).reader(retrieval_reader)


@pytest.fixture
def stages(request: pytest.FixtureRequest, retrieval_stages: Mapping[str, Run]) -> Mapping[str, Run]:
    """The stages of the pipeline, name → run."""
    from pytest_retrieval_eval.context.given import stages_of

    return stages_of(session_of(request.config), retrieval_stages)


@pytest.fixture
def baseline() -> Target:
    """The stored run to compare with, as a target: `>= baseline`, `>= baseline - 0.01`, `>= baseline["old"]`."""
    from pytest_retrieval_eval.gates.target import baseline

    return baseline


@pytest.fixture
def against() -> Callable[[object], Target]:
    """`against(run_or_name)`: any run as a target, so that two systems are compared in one test."""
    from pytest_retrieval_eval.gates.target import against

    return cast("Callable[[object], Target]", against)


# --- assertion fixtures ----------------------------------------------------------------------------------------


def _bench(request: pytest.FixtureRequest, name: str) -> FixtureBench:
    """The bench of a test that asks for the assertion fixture ``name``."""
    from pytest_retrieval_eval.context.testbench import FixtureBench

    node = cast(pytest.Item, request.node)
    attempt_of(node).asked.add(name)
    key = request.getfixturevalue("retrieval_context")
    hidden = getattr(node, "callspec", None)
    if node.get_closest_marker(MARKER) is not None and "retrieval_context" not in getattr(hidden, "params", {}):
        raise GateError(
            f"{node.nodeid} carries @pytest.mark.retrieval, but asks for {name} in a way that pytest does not show "
            "at collection (a unittest class, or getfixturevalue): name the fixture in the test's arguments"
        )
    return FixtureBench(request, key)


def _measured(
    bench: FixtureBench, request: pytest.FixtureRequest, name: object, options: dict[str, object]
) -> Measured:
    from pytest_retrieval_eval.gates.measured import Measured
    from pytest_retrieval_eval.measures.names import Measure

    attempt = attempt_of(cast(pytest.Item, request.node))
    with attempt.keeping_errors():
        names = name if isinstance(name, list | tuple) else [name]
        measures = [each if isinstance(each, Measure) else Measure.parse(cast(str, each)) for each in names]
        measured = Measured(measures, bench, bench.options(options, several=len(measures) > 1))
    attempt.expect(measured)
    return measured


def _assert_metric(request: pytest.FixtureRequest, fixture: str) -> AssertMetric:
    bench = _bench(request, fixture)

    def assert_metric(name: str | Sequence[str], **options: object) -> Measured:
        __tracebackhide__ = True
        return _measured(bench, request, name, options)

    return assert_metric


# What the fixture of a measure takes beside k and rel.
_PARAMETERS = {"ndcg": ("gain",), "span_recall": ("min_coverage",)}


def _assert_at(request: pytest.FixtureRequest, fixture: str) -> AssertAt:
    """The fixture `assert_X_at` or `X_at` of the measure X."""
    bench = _bench(request, fixture)
    measure = fixture.removeprefix("assert_").removesuffix("_at")
    parameters = ("rel", *_PARAMETERS.get(measure, ()))

    def assert_at(k: int | None = None, **options: object) -> Measured:
        __tracebackhide__ = True
        given = [(name, options.pop(name)) for name in parameters if options.get(name) is not None]
        inner = ", ".join(f"{name}={value}" for name, value in given)
        text = measure + (f"({inner})" if inner else "") + ("" if k is None else f"@{k}")
        return _measured(bench, request, text, options)

    assert_at.__name__ = assert_at.__qualname__ = fixture  # as pytest shows it beside a line that fails
    return assert_at


@pytest.fixture
def assert_metric(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> AssertMetric:
    """`assert assert_metric("ndcg@10") >= baseline`: any measure by name; a list of measures is one family."""
    return _assert_metric(request, "assert_metric")


@pytest.fixture
def metric(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> AssertMetric:
    """The same as assert_metric."""
    return _assert_metric(request, "metric")


@pytest.fixture
def gate(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> AssertGate:
    """`gate("recall@5 >= baseline - 0.01")`: a whole gate in one text, decided at once."""
    bench = _bench(request, "gate")

    def decide_gate(text: str | Sequence[str], **options: object) -> Verdict:
        __tracebackhide__ = True
        from pytest_retrieval_eval.gates.decide import check
        from pytest_retrieval_eval.gates.families import check_gates, parse_gates
        from pytest_retrieval_eval.gates.gate import Gate

        with attempt_of(cast(pytest.Item, request.node)).keeping_errors():
            several = isinstance(text, list | tuple)
            chosen = bench.options(options, several=several and len(text) > 1)
            gates = parse_gates(text, chosen) if several else (Gate.parse(cast(str, text), chosen),)
        return check_gates(gates, bench) if several else check(gates[0], bench)

    return decide_gate


@pytest.fixture
def assert_judge_valid(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> AssertJudgeValid:
    """`assert_judge_valid()`: TPR, TNR and kappa of a judge on held-out labels of people reach their thresholds."""
    bench = _bench(request, "assert_judge_valid")
    root = session_of(request.config).settings.root

    def assert_judge_valid(name: str | None = None, **options: object) -> Verdict:
        __tracebackhide__ = True
        from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck
        from pytest_retrieval_eval.reports.validation import check_judge
        from pytest_retrieval_eval.studies.heldout import validated

        with attempt_of(cast(pytest.Item, request.node)).keeping_errors():
            check = JudgeCheck.of({"name": name, **options})
        text = "assert_judge_valid" if name is None else f"assert_judge_valid({name!r})"

        def validate() -> tuple[str, JudgeValidation]:
            return validated(check, root, bench.judgments, lambda: bench.dataset(None))

        return check_judge(text, bench, validate, check.where)

    return assert_judge_valid


@pytest.fixture
def gate_family(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> MakeFamily:
    """`with gate_family(correction="holm"):` collects the comparisons inside, and raises once at the end."""
    bench = _bench(request, "gate_family")
    attempt = attempt_of(cast(pytest.Item, request.node))

    def begin(family: GateFamily) -> None:
        __tracebackhide__ = True
        with attempt.keeping_errors():
            if attempt.family is not None:
                raise GateError(
                    "a gate_family stands inside another: the correction of one family decides for all its "
                    "comparisons; write one after the other"
                )
        attempt.family = family

    def end(undecided: str | None) -> None:
        attempt.family = None
        if undecided is not None:
            # Heard of only where the test catches the exception and goes on.
            attempt.left.append(undecided)

    def make(*, correction: str | None = None) -> GateFamily:
        __tracebackhide__ = True
        from pytest_retrieval_eval.gates.families import GateFamily

        with attempt.keeping_errors():
            return GateFamily(bench, begin, end, bench.correction if correction is None else correction)

    return make


class Erag:
    """What the project's reader can answer from each retrieved document, to be compared or to be looked at.

    A test that asks for it must compare something, unless it only looks: at ``labels`` or ``lift``.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._bench = _bench(request, "erag")
        self._attempt = attempt_of(cast(pytest.Item, request.node))

    def assert_metric(self, name: str | Sequence[str], **options: object) -> Measured:
        """The same as ``assert_metric(name, labels="erag", …)``."""
        __tracebackhide__ = True
        self._attempt.asked.add("erag")
        return _measured(self._bench, self._request, name, self._with_labels(options))

    def labels(self, run: Run | str | Path | None = None, *, depth: int | None = None, **options: object) -> ReadQrels:
        """The labels of a run (None: the one under test), down to the rank ``depth``, with the readings behind them.

        They are qrels, for ``evaluate(labels, run, …)``; ``readings[query_id, doc_id].text`` is what was answered.
        """
        __tracebackhide__ = True
        from pytest_retrieval_eval.gates.reading import read_labels

        return read_labels(self._bench, self._looked_at(run, options), depth)

    def lift(self, run: Run | str | Path | None = None, *, depth: int | None = None, **options: object) -> Lift:
        """What the best document of each list adds to what the reader answers without any: ``lift.mean``."""
        __tracebackhide__ = True
        from pytest_retrieval_eval.gates.reading import closed_book_lift

        return closed_book_lift(self._bench, self._looked_at(run, options), depth)

    def _looked_at(self, run: object, options: dict[str, object]) -> Options:
        if not self._attempt.measured:
            self._attempt.asked.discard("erag")
        with self._attempt.keeping_errors():
            return self._bench.options({"run": run, **self._with_labels(options)})

    def _with_labels(self, options: dict[str, object]) -> dict[str, object]:
        if "labels" in options:
            raise SettingsError("erag has labels of its own; use assert_metric for others")
        return {"labels": "erag", **options}


@pytest.fixture
def erag(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> Erag:
    """`assert erag.assert_metric("hit@5") >= baseline`; `erag.labels(run)` and `erag.lift(run)` to look at."""
    return Erag(request)


def _define(name: str, description: str) -> Callable[..., AssertAt]:
    """One assertion fixture; they differ in their names alone, as do the measures behind them."""

    def fixture(request: pytest.FixtureRequest, retrieval_context: ContextKey) -> AssertAt:
        return _assert_at(request, name)

    fixture.__name__ = fixture.__qualname__ = name
    fixture.__doc__ = description
    return pytest.fixture(name=name)(fixture)


assert_recall_at = _define("assert_recall_at", "`assert assert_recall_at(5) >= baseline`.")
recall_at = _define("recall_at", "The same as assert_recall_at.")
assert_precision_at = _define("assert_precision_at", "`assert assert_precision_at(5) >= baseline`.")
precision_at = _define("precision_at", "The same as assert_precision_at.")
assert_hit_at = _define("assert_hit_at", "`assert assert_hit_at(5) >= baseline`.")
hit_at = _define("hit_at", "The same as assert_hit_at.")
assert_f1_at = _define("assert_f1_at", "`assert assert_f1_at(5) >= baseline`.")
f1_at = _define("f1_at", "The same as assert_f1_at.")
assert_ndcg_at = _define("assert_ndcg_at", '`assert assert_ndcg_at(10) >= baseline`; also gain="exp".')
ndcg_at = _define("ndcg_at", "The same as assert_ndcg_at.")
assert_mrr_at = _define("assert_mrr_at", "`assert assert_mrr_at(10) >= baseline`.")
mrr_at = _define("mrr_at", "The same as assert_mrr_at.")
assert_map_at = _define("assert_map_at", "`assert assert_map_at(10) >= baseline`.")
map_at = _define("map_at", "The same as assert_map_at.")
assert_span_recall_at = _define(
    "assert_span_recall_at", "`assert assert_span_recall_at(5) >= baseline`; also min_coverage=0.8."
)
span_recall_at = _define("span_recall_at", "The same as assert_span_recall_at.")
assert_span_coverage_at = _define("assert_span_coverage_at", "`assert assert_span_coverage_at(5) >= baseline`.")
span_coverage_at = _define("span_coverage_at", "The same as assert_span_coverage_at.")
