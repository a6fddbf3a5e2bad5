"""One try at one test: what it asked for, what it compared, and what it wants written."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.families import GateFamily
    from pytest_retrieval_eval.gates.measured import Measured
    from pytest_retrieval_eval.gates.verdict import Verdict

NOTHING_COMPARED = (
    "this test asks for {fixtures} and compared nothing: a gate is measured when it is compared, as in "
    "`assert assert_recall_at(5) >= baseline` (`float(...)`, `if` and an assert that was compiled away are no "
    "comparison)"
)
NEVER_ENDED = (
    "this test began a gate_family and did not end it, so that its comparisons were not decided: use it in a `with` "
    "statement inside the test"
)
LEFT_OPEN = (
    "this test made {measured} and never compared it: compare it, as in `assert assert_recall_at(5) >= baseline`, "
    "or use `evaluate(...)` for a plain number"
)
NOT_MEASURED = (
    "a gate of this test could not be measured, and the test went on: {reason}. An error of a gate is not to be caught"
)
NOT_HEARD = (
    "{gate} did not hold in another thread, where its exception was lost ({reason}): compare in the thread of the test"
)
TOO_LATE = (
    "{nodeid}: {what} after the test had ended, where nothing hears of it: wait in the test for the threads that it "
    "starts, and keep no assertion fixture for later"
)


@dataclass(frozen=True)
class StagedFile:
    """A file that waits for the end of the session: ``source`` becomes ``target`` if all went well."""

    kind: str  # "baseline", "run" or "gold spans"
    target: str
    source: str
    digest: str

    def to_dict(self) -> dict[str, str]:
        """As builtin types, for the way from a worker to the controller."""
        return {"kind": self.kind, "target": self.target, "source": self.source, "digest": self.digest}


@dataclass
class Attempt:
    """One try at one test: what it asked for, what it compared, and what it wants written."""

    nodeid: str = ""
    too_late: list[str] = field(default_factory=list)  # the session's: what came when a test was over
    asked: set[str] = field(default_factory=set)
    measured: list[Measured] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    staged: list[StagedFile] = field(default_factory=list)
    undecided: list[StagedFile] = field(default_factory=list)  # baselines of the gate that is being measured
    command_runs: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # families that an exception left undecided
    elsewhere: list[Verdict] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)
    settled: bool = False  # whether the test itself ended with all of its gates decided
    over: bool = False  # whether all of the test has ended, finalizers too
    family: GateFamily | None = None
    to_judge: list[str] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)  # of the data, in the order of their coming
    reanchored: dict[str, list[str]] = field(default_factory=dict)  # what became of gold spans, by their source
    _told: list[dict[str, object]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, verdict: Verdict) -> None:
        """Keep a verdict; one that raises in another thread than the test's may not be heard of.

        Raises a GateError where the test is over.
        """
        with self._in_time(f"{verdict.gate} was compared"):
            self.verdicts.append(verdict)
            if verdict.status != "error":
                self.staged += [file for file in self.undecided if file not in self.staged]
            self.undecided.clear()
            if verdict.status == "error":
                self.errors.append(verdict.reason)
            elif not verdict.ok and threading.get_ident() != self.thread:
                self.elsewhere.append(verdict)

    def expect(self, measured: Measured) -> None:
        """Keep what was measured, and is to be compared. Raises a GateError where the test is over."""
        with self._in_time(f"{measured} was made"):
            self.measured.append(measured)

    def end(self) -> None:
        """The test is over: what comes now is lost with its threads, and makes the session complain."""
        with self._lock:
            self.over = True

    @contextmanager
    def _in_time(self, what: str) -> Generator[None, None, None]:
        """Hold the end of the test off; where it has come, this is a complaint of the session and an error here."""
        with self._lock:
            if self.over:
                self.too_late.append(TOO_LATE.format(nodeid=self.nodeid, what=what))
                raise GateError(self.too_late[-1])
            yield

    @contextmanager
    def keeping_errors(self) -> Generator[None, None, None]:
        """Remember the error of a gate that could not even be made."""
        __tracebackhide__ = True
        try:
            yield
        except GateError as error:
            with self._in_time(f"a gate was made ({error})"):
                self.errors.append(str(error))
            raise

    def require_a_comparison(self) -> None:
        """Raise :class:`GateError` if the test asked for a gate and none was decided, or not every one was."""
        if not self.asked:
            return
        if self.family is not None:
            raise GateError(NEVER_ENDED)
        if not any(verdict.status != "error" for verdict in self.verdicts):
            raise GateError(NOTHING_COMPARED.format(fixtures=" and ".join(sorted(self.asked))))
        self._require_all_heard()
        self.settled = True

    def require_nothing_more(self) -> None:
        """The same for what finalizers, and threads that outlived the test, compared after a test that went well."""
        if self.settled:
            self._require_all_heard()

    def _require_all_heard(self) -> None:
        if self.elsewhere:
            raise GateError(NOT_HEARD.format(gate=self.elsewhere[0].gate, reason=self.elsewhere[0].reason))
        for reason in (*self.errors, *self.left):
            raise GateError(NOT_MEASURED.format(reason=reason))
        for measured in self.measured:
            if not measured.decided:
                raise GateError(LEFT_OPEN.format(measured=measured))

    def payload(self) -> dict[str, object] | None:
        """All of it in builtin types, to travel on a test report; None where there is nothing to tell."""
        told = {verdict.reason for verdict in self.verdicts}
        errors = [error for error in dict.fromkeys((*self.errors, *self.left)) if error not in told]
        if not (self.verdicts or self.command_runs or errors):
            return None
        # A test has a report for each phase, and each carries all of it.
        self._told += [verdict.to_dict() for verdict in self.verdicts[len(self._told) :]]
        return {
            "verdicts": list(self._told),
            "errors": errors,
            "staged": [file.to_dict() for file in self.staged],
            "command_runs": sorted(self.command_runs),
            "to_judge": list(self.to_judge),
            "warnings": list(self.warnings),
            "reanchored": {source: list(lines) for source, lines in self.reanchored.items()},
        }
