"""pytest's side: options, marker, hooks. It decides nothing and computes nothing.

Imported in every pytest session, so it imports the standard library and pytest alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_retrieval_eval import fixtures, hookspecs
from pytest_retrieval_eval.context.asking import evading_fixture, is_evasion, skipped_fixture
from pytest_retrieval_eval.context.definitions import fixture_definition, is_ours
from pytest_retrieval_eval.context.frames import repr_error
from pytest_retrieval_eval.context.key import context_keys, dataset_names
from pytest_retrieval_eval.context.state import IS_GATE, SESSION, attempt_of, begin_attempt, session_of
from pytest_retrieval_eval.errors import GateError, GateFailure, SettingsError, raised
from pytest_retrieval_eval.session.ledger import Ledger
from pytest_retrieval_eval.session.process import Session
from pytest_retrieval_eval.settings import FLAGS, INI, Settings, json_path

if TYPE_CHECKING:
    import argparse

    from _pytest.terminal import TerminalReporter

    from pytest_retrieval_eval.measures.registry import Definition

PAYLOAD = "_retrieval_eval"  # the private attribute of a test report that carries an attempt's payload
WORKER_FOLDER = "retrieval_eval_folder"
WORKER_HERE = "retrieval_eval_here"
WORKER_TALLY = "retrieval_eval_tally"
_FAILED = "cache/lastfailed"  # where pytest keeps which tests failed last


class PlainImports:
    """Imports the modules of this package as Python does.

    pytest would look for asserts to rewrite in each of them, as in those of every plugin. There are none, and with
    more than eighty modules that costs a session a tenth of a second.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Where a module of this package is; None for any other."""
        return PathFinder.find_spec(name, path) if name.startswith(f"{__package__}.") else None


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare every option and ini value of :mod:`pytest_retrieval_eval.settings`."""
    group = parser.getgroup("retrieval", "regression tests of retrieval")
    for flag in FLAGS:
        group.addoption(flag.flag, help=flag.help, **cast("dict[str, Any]", flag.keywords))
    for ini in INI:
        parser.addini(ini.name, ini.help, type=ini.type, default=ini.default)


def _runs_tests(option: argparse.Namespace) -> bool:
    """Whether the command line asks for a session of tests, not to be told something."""
    asked = ("collectonly", "help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
    return not any(getattr(option, name, False) for name in (*asked, "setuponly", "setupplan"))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before anything can go wrong: a report of an earlier session must not stand for this one's."""
    given = early_config.known_args_namespace
    if given.retrieval_json is None or not _runs_tests(given) or "PYTEST_XDIST_WORKER" in os.environ:
        return
    from pytest_retrieval_eval.reports.document import unfinished, write_document

    try:
        path = json_path(given.retrieval_json, early_config.invocation_params.dir)
        if path is not None:
            write_document(path, unfinished())
    except GateError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings, and make this process's state."""
    worker = getattr(config, "workerinput", None)
    try:
        settings = Settings.parse(
            {ini.name: _ini(config, ini.name) for ini in INI},
            {flag.dest: config.getoption(flag.dest) for flag in FLAGS},
            root=config.inipath.parent if config.inipath is not None else config.rootpath,
            here=Path(worker[WORKER_HERE]) if worker else config.invocation_params.dir,
            ci=bool(os.environ.get("CI")),
            file=config.inipath,
        )
        if settings.defaults:
            from pytest_retrieval_eval.gates.defaults import check_defaults

            check_defaults(settings.defaults)
    except SettingsError as error:
        raise pytest.UsageError(str(error)) from None
    sys.meta_path.insert(0, cast(Any, PlainImports))
    config.stash[SESSION] = Session(settings, folder=Path(worker[WORKER_FOLDER]) if worker else None)
    config.pluginmanager.register(fixtures, "retrieval_eval_fixtures")
    config.pluginmanager.register(SessionHooks(config), "retrieval_eval_session")
    config.addinivalue_line(
        "markers",
        "retrieval(dataset=..., run=..., baseline=..., where=..., rule=..., ...): the data and the rules that this "
        "test's retrieval gates use; a list of datasets makes one case of each",
    )


def _ini(config: pytest.Config, name: str) -> object:
    """An ini value; what has not its type is said with what was expected."""
    try:
        return cast(object, config.getini(name))
    except (TypeError, ValueError, pytest.UsageError) as error:  # pytest has a kind of its own since 9.1
        ini = next(each for each in INI if each.name == name)
        said = str(error)
        # Python's sentences about a text that is no number end with that text.
        if said.startswith(("invalid literal for int()", "could not convert string to float")):
            expected = "a whole number" if ini.type == "int" else "a number"
            found = said.rpartition(": ")[2]
            said = f"found {'nothing' if found in ('', repr('')) else found}; expected {expected} such as {ini.default}"
        raise SettingsError(f"{name}: {said}") from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the shared folder."""
    session = config.stash.get(SESSION, None)
    if session is not None:
        session.clean()
        # pytester may have restored the list.
        with suppress(ValueError):
            sys.meta_path.remove(cast(Any, PlainImports))


# --- collection ------------------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A gate file is a module whose tests are written in YAML."""
    if not any(file_path.match(pattern) for pattern in session_of(parent.config).settings.gate_files):
        return None
    from pytest_retrieval_eval.gatefile import GateFile

    return cast(pytest.Collector, GateFile.from_parent(parent, path=file_path))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test that uses gates its context, as a hidden parameter of session scope."""
    name = "retrieval_context"
    node = cast(pytest.Item, metafunc.definition)
    if name not in metafunc.fixturenames:
        return
    if not is_ours(fixture_definition(node, name)):
        if any(is_ours(fixture_definition(node, other)) for other in metafunc.fixturenames):
            raise pytest.Collector.CollectError(
                f"{node.nodeid}: the fixture {name} tells gates which marker is whose, and is not to be overridden: "
                "give the project's own another name"
            )
        return
    try:
        keys = context_keys(node)
    except SettingsError as error:
        raise pytest.Collector.CollectError(f"{node.nodeid}: {error}") from None
    ids = [pytest.HIDDEN_PARAM if len(keys) == 1 else str(key.dataset) for key in keys]
    metafunc.parametrize(
        name, [pytest.param(key, id=shown) for key, shown in zip(keys, ids, strict=True)], indirect=True
    )


# --- running ---------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Begin an attempt; a rerun begins another. A fixture that only gates use must not skip the test."""
    begin_attempt(item)
    try:
        return (yield)
    except BaseException as outcome:
        name = evading_fixture(item, outcome) if is_evasion(outcome) else None
        if name is not None:
            raise skipped_fixture(name, outcome) from None
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that asks for a gate and ends without an exception must have compared something."""
    __tracebackhide__ = True
    result = yield
    attempt_of(item).require_a_comparison()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """What is compared when the test is over counts as well."""
    __tracebackhide__ = True
    try:
        result = yield
    finally:
        attempt_of(item).end()
    attempt_of(item).require_nothing_more()
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Carry the verdicts on the report, and keep an error an error, also under xfail and before a skip."""
    report = yield
    attempt = attempt_of(item)
    if call.excinfo is not None and isinstance(call.excinfo.value, GateError):
        attempt.errors.append(str(call.excinfo.value))
    payload = attempt.payload()
    if payload is not None:
        setattr(report, PAYLOAD, payload)
    if call.excinfo is None:
        return report
    error = call.excinfo.value
    # The error may stand in a group or behind another exception, or unittest took it for an expected failure. A skip
    # in the midst of a family leaves it undecided, and stays a skip.
    unheard = [*attempt.errors, *(attempt.left if hasattr(report, "wasxfail") else ())]
    hidden = call.when == "call" and report.skipped and unheard
    if hidden and is_evasion(error):
        report.longrepr = unheard[0]
    if hidden or isinstance(error, GateError):
        report.outcome = "failed"
        report.__dict__.pop("wasxfail", None)
    in_python = not (item.config.getoption("fulltrace", False) or IS_GATE in item.stash)
    if in_python and isinstance(error, GateError):
        report.longrepr = repr_error(item, call.excinfo)
    if isinstance(error, GateError | GateFailure):
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            # In CI pytest prints the whole message again in its short summary.
            crash.message = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return report


def _outcome(report: pytest.TestReport) -> str:
    """pytest's word for how a phase ended."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome


# --- the session as a whole ------------------------------------------------------------------------------------


class SessionHooks:
    """The hooks that need the state of the whole session: what came in, what is written, what is printed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session = config.stash[SESSION]
        self._ledger = Ledger(self._session.settings.defaults)
        self._received: dict[str, int] = {}
        self._sent = 0
        self._interrupted = False
        self._measures: list[Definition] = []
        self._named: list[tuple[Callable[[str], None], str]] = []

    def pytest_plugin_registered(self, plugin: object) -> None:
        """Register the measures of a plugin or conftest.py, of those that are here already and of later ones."""
        self._register_named(plugin)
        for implementation in self._config.hook.pytest_retrieval_measures.get_hookimpls():
            if implementation.plugin is not plugin:
                continue
            from pytest_retrieval_eval.measures import extending, registry

            place = getattr(plugin, "__file__", None) or implementation.plugin_name
            try:
                for definition in extending.checked(implementation.function(), "the hook"):
                    registry.register(definition)
                    self._measures.append(definition)
            except Exception as error:
                said = str(error) if isinstance(error, GateError) else raised(error)
                raise pytest.UsageError(f"{place}: pytest_retrieval_measures: {said}") from error

    def pytest_unconfigure(self) -> None:
        """Take the measures of this session's hooks out again: the registry is the whole process's."""
        if self._measures:
            from pytest_retrieval_eval.measures import extending

            extending.withdraw(self._measures)
        for unregister, name in self._named:
            unregister(name)

    def _register_named(self, plugin: object) -> None:
        """Add the functions that a plugin gives by name: metrics of answers, kinds of readers and of judges."""
        for name, module in hookspecs.NAMED.items():
            caller = getattr(self._config.hook, name)
            for implementation in caller.get_hookimpls():
                if implementation.plugin is not plugin:
                    continue
                registry = import_module(f"{__package__}.{module}")
                place = getattr(plugin, "__file__", None) or implementation.plugin_name
                try:
                    for word, function in cast("Mapping[str, Any]", implementation.function()).items():
                        if registry.register(word, function):
                            self._named.append((registry.unregister, word))
                except Exception as error:
                    said = str(error) if isinstance(error, GateError) else raised(error)
                    raise pytest.UsageError(f"{place}: {caller.name}: {said}") from error

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember that not every test runs: what no gate used may belong to the others."""
        self._ledger.deselected = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """Keep the datasets of all tests before any is left out, and notice what leaves out without a word."""
        collected = len(items)
        if any(self._session.settings.command_runs):
            self._ledger.datasets = dataset_names(items, self._session)
        # What failed last is looked for while collecting: files without a failure are not even opened.
        if getattr(self._config.option, "lf", False) and self._config.cache and self._config.cache.get(_FAILED, {}):
            self._ledger.deselected, self._ledger.datasets = True, None
        yield
        self._ledger.deselected |= len(items) < collected

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a test decided, here or in a worker."""
        payload = getattr(report, PAYLOAD, None)
        if payload is not None or self._session.settings.json is not None:
            self._ledger.hear(report.nodeid, report.when or "call", _outcome(report), report.duration)
        if payload is None:
            if report.when == "setup":
                self._ledger.receive(report.nodeid, None)
            return
        self._sent += 1
        self._ledger.receive(report.nodeid, payload)
        node = getattr(report, "node", None)
        if node is not None:
            name = node.gateway.id
            self._received[name] = self._received.get(name, 0) + 1

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """After an internal error nothing is written, and the session cannot be green."""
        self._ledger.broken = f"pytest had an internal error ({excinfo.typename})"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the shared folder is, and where pytest was started."""
        node.workerinput[WORKER_FOLDER] = str(self._session.shared_with(node.workerinput["testrunuid"]))
        node.workerinput[WORKER_HERE] = str(self._config.invocation_params.dir)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Notice a worker that was lost, or whose reports were."""
        name = node.gateway.id
        tally = getattr(node, "workeroutput", {}).get(WORKER_TALLY)
        if error or tally is None:
            self._ledger.broken = f"the worker {name} was lost"
            return
        if tally["broken"]:
            self._ledger.broken = tally["broken"]
        elif tally["sent"] != self._received.get(name, 0):
            self._ledger.broken = (
                f"the worker {name} sent {tally['sent']} results of gates and {self._received.get(name, 0)} arrived"
            )
        self._ledger.deselected |= tally["deselected"]
        self._ledger.datasets = None if tally["datasets"] is None else set(tally["datasets"])
        self._ledger.read(tally["readings"])
        self._ledger.complaints += tally["too_late"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what waits to be written, and see that a session with a complaint is not green."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[WORKER_TALLY] = {
                "sent": self._sent,
                "broken": self._ledger.broken,
                "deselected": self._ledger.deselected,
                "datasets": None if self._ledger.datasets is None else sorted(self._ledger.datasets),
                "readings": self._session.readings_told(),
                "too_late": self._session.too_late,
            }
            return
        if not _runs_tests(self._config.option):
            return
        stopped = self._why_stopped(session)
        self._ledger.read(self._session.readings_told())
        self._ledger.complaints += self._session.too_late
        self._ledger.finish(self._session.settings, stopped=bool(stopped))
        if self._ledger.broken:
            self._ledger.complaints.insert(0, f"this session is not to be trusted: {self._ledger.broken}")
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        elif self._ledger.complaints:
            self._not_green(session)
        self._write_report(session, stopped)

    @staticmethod
    def _not_green(session: pytest.Session) -> None:
        """A session with a complaint has a status that says so, where it had none yet."""
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_keyboard_interrupt(self) -> None:
        """Notice Ctrl-C and `pytest.exit(…)`, which may end a session with any status, also with 0."""
        self._interrupted = True

    def _why_stopped(self, session: pytest.Session) -> str:
        """Why not every selected test ran; empty where all did."""
        for said in (session.shouldfail, session.shouldstop):
            if said:
                return f"the session was stopped ({said})" if isinstance(said, str) else "the session was stopped"
        ended = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
        if self._interrupted or session.exitstatus in ended:
            return "the session was interrupted, or not every test could be collected"
        return ""

    def _write_report(self, session: pytest.Session, stopped: str) -> None:
        """The file of ``--retrieval-json``, whatever became of the session."""
        path = self._session.settings.json
        if path is None:
            return
        from pytest_retrieval_eval.reports.document import document, write_document

        try:
            write_document(path, document(self._ledger, status=int(session.exitstatus), stopped=stopped))
        except GateError as error:
            self._ledger.complaints.append(f"--retrieval-json={path} was not written: {error}")
            self._not_green(session)
            return
        self._ledger.written.append(("report", str(path)))

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """One section, a line a gate, and the next command to run."""
        ledger = self._ledger
        if not (ledger.has_gates or ledger.written or ledger.complaints or ledger.notes or ledger.readings):
            return
        from pytest_retrieval_eval.reports.terminal import summarise

        summarise(terminalreporter, ledger)
