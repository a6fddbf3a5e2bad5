"""A session as one JSON document: every gate with its whole verdict. Other reports are made from it.

The format is documented in docs/reference/report-json.md; its JSON Schema is ``retrieval-report.schema.json`` beside
this module, made by :mod:`pytest_retrieval_eval.reports.schema` from the classes below.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_retrieval_eval.collection.formats.files import utf8, write_atomically

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.session.ledger import Ledger

FORMAT: Literal["retrieval-report"] = "retrieval-report"
VERSION: Literal[1] = 1
Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", ""]


@dataclass(frozen=True)
class GatedTest:
    """A test with gates.

    Args:
        nodeid: pytest's id of the test.
        outcome: pytest's word; "error" where the setup or teardown failed, "" where that was not heard.
        seconds: how long setup, call and teardown took.
        errors: why nothing could be measured, where there is no verdict that says it.
        verdicts: one for each comparison, in the order in which they were decided.
    """

    nodeid: str
    outcome: Outcome
    seconds: float | None
    errors: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class WrittenFile:
    """A file that the session wrote.

    Args:
        kind: "baseline" or "run".
        path: where.
    """

    kind: str
    path: str


@dataclass(frozen=True)
class AdjustedP:
    """A tested comparison of the session among all of them, for information: no gate decides by it.

    Args:
        nodeid: pytest's id of its test.
        gate: the comparison.
        slice: "tag=value" of a slice, else "".
        sided: "one" or "two": which p it is.
        p: as its verdict has it.
        p_adjusted: by Holm over all tested comparisons of the session.
    """

    nodeid: str
    gate: str
    slice: str
    sided: str
    p: float
    p_adjusted: float


@dataclass(frozen=True)
class Report:
    """One pytest session.

    Args:
        format: always "retrieval-report".
        version: 1; a larger one may change what fields mean, a new field alone does not raise it.
        complete: whether every test that was selected ran and was heard of.
        incomplete_because: where it is not, why; else null.
        deselected: whether tests were deselected (-k, -m, --lf, a shard): their gates are not here.
        exit_status: pytest's exit status as it stood when this was written; null before the session's end.
        time: when this was written (UTC, ISO 8601).
        commit, dirty: the commit of the working directory, and whether tracked files were changed; null outside a
            git repository.
        versions: of Python and the packages that compute.
        defaults: the keywords that gates took from the ini value retrieval_defaults where they did not say otherwise.
        counts: how many verdicts have each status.
        tests: sorted by node id.
        adjusted: the p-values of all comparisons, slices and members with one, adjusted by Holm over the session, the
            smallest first; empty where fewer than two were tested.
        written: baselines and runs that the session put in place.
        unchanged: baselines that were to be updated and say already what they should.
        notes: what is worth knowing about the session, a sentence each.
        complaints: why a session without a failing test is not green, a sentence each.
    """

    format: Literal["retrieval-report"] = FORMAT
    version: Literal[1] = VERSION
    complete: bool = False
    incomplete_because: str | None = None
    deselected: bool = False
    exit_status: int | None = None
    time: str = ""
    commit: str | None = None
    dirty: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    tests: tuple[GatedTest, ...] = ()
    adjusted: tuple[AdjustedP, ...] = ()
    written: tuple[WrittenFile, ...] = ()
    unchanged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON's types; a number that JSON has no word for (NaN, infinity) is null."""
        found: dict[str, Any] = _plain(self)
        return found


def unfinished() -> Report:
    """What stands in the file while the session runs, and is left where it ends without a word."""
    return Report(incomplete_because="the session has not ended, or was killed", time=_now())


def document(ledger: Ledger, *, status: int, stopped: str = "") -> Report:
    """The report of a session that ends. ``stopped``: why not every selected test ran ("" if all did)."""
    from pytest_retrieval_eval.gates.baselines import made_with
    from pytest_retrieval_eval.gates.verdict import Verdict

    tests = []
    for nodeid, payload in sorted(ledger.attempts.items()):
        verdicts: Any = payload["verdicts"]
        errors: Any = payload["errors"]
        outcome, seconds = ledger.outcomes.get(nodeid, ("", None))
        if verdicts or errors:
            found = tuple(Verdict.from_dict(verdict) for verdict in verdicts)
            tests.append(GatedTest(nodeid, outcome, seconds, tuple(errors), found))  # type: ignore[arg-type]
    because = ledger.broken or stopped or None
    return Report(
        complete=because is None,
        incomplete_because=because,
        deselected=ledger.deselected,
        exit_status=status,
        time=_now(),
        **made_with(),
        defaults=dict(ledger.defaults),
        counts=dict(sorted(Counter(verdict.status for test in tests for verdict in test.verdicts).items())),
        tests=tuple(tests),
        adjusted=_adjusted(tests),
        written=tuple(WrittenFile(kind, path) for kind, path in ledger.written),
        unchanged=tuple(ledger.unchanged),
        notes=tuple(ledger.notes),
        complaints=tuple(ledger.complaints),
    )


def _adjusted(tests: Sequence[GatedTest]) -> tuple[AdjustedP, ...]:
    from pytest_retrieval_eval.gates.corrections import adjusted_over, tested

    places = {id(leaf): test.nodeid for test in tests for verdict in test.verdicts for leaf in tested(verdict)}
    found = adjusted_over(verdict for test in tests for verdict in test.verdicts)
    return tuple(
        AdjustedP(places[id(leaf)], leaf.gate, leaf.slice, leaf.sided, leaf.p, p)
        for leaf, p in found
        if leaf.p is not None and len(found) > 1
    )


def write_document(path: Path, report: Report) -> None:
    """Write the file in one step: it is there whole, or as it was."""
    text = json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
    with write_atomically(path) as file:
        file.write(utf8(text + "\n"))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _plain(value: Any) -> Any:
    if isinstance(value, (Report, GatedTest, AdjustedP, WrittenFile)):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
