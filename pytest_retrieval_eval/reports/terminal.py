"""The section that a pytest session ends with: a line for each gate, what was written, and what to run next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_retrieval_eval.gates.corrections import adjusted_over
from pytest_retrieval_eval.gates.defaults import told_defaults
from pytest_retrieval_eval.gates.weakness import LIKE_CHANCE
from pytest_retrieval_eval.readers.readings.counters import summary_line as reader_line
from pytest_retrieval_eval.reports.text import summary_line
from pytest_retrieval_eval.wording import counted, p_text, shown

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.session.ledger import Ledger

COLOURS = {
    "passed": "green",
    "updated": "cyan",
    "weak": "yellow",
    "inconclusive": "yellow",
    "failed": "red",
    "error": "red",
}
WEAK = "weak: it holds, but a loss worth seeing could have gone unseen with this many queries; -v says how large"
LOST = f"weak: it holds, but there is a loss, {LIKE_CHANCE} with this many queries; -v says how large"
_SMALL = 0.05
ORDER = tuple(reversed(COLOURS))  # the worst status first


def summarise(terminal: TerminalReporter, ledger: Ledger) -> None:
    """Print the section; with ``-q`` the gates that passed are only counted."""
    verdicts, markup = ledger.verdicts, terminal.config.get_terminal_writer().markup
    terminal.write_sep("=", "retrieval gates")
    for nodeid, verdict in verdicts:
        if verdict.status == "passed" and terminal.verbosity < 0:
            continue
        status = markup(f"{verdict.status.upper():<12}", **{COLOURS[verdict.status]: True})
        terminal.write_line(f"{status} {summary_line(verdict)}   {nodeid}")
        for why in why_weak(verdict) if terminal.verbosity > 0 else ():
            terminal.write_line(f"{'':<12} {why}")
    unmeasured = ledger.unmeasured
    for nodeid, error in unmeasured:
        terminal.write_line(f"{markup('ERROR'.ljust(12), red=True)} {shown(error, 160)}   {nodeid}")
    statuses = [verdict.status for _, verdict in verdicts] + ["error"] * len(unmeasured)
    if statuses:
        terminal.write_line(", ".join(_counts(statuses)))
    if terminal.verbosity == 0:
        for line in _what_weak_means([verdict for _, verdict in verdicts]):
            terminal.write_line(line)
    if verdicts and ledger.defaults:
        terminal.write_line(f"defaults: {told_defaults(ledger.defaults)}")
    adjusted = adjusted_line([verdict for _, verdict in verdicts])
    if adjusted and terminal.verbosity >= 0:
        terminal.write_line(adjusted)
    if ledger.readings is not None:
        terminal.write_line(reader_line(ledger.readings))
    for lines in ledger.reanchored.values():
        for line in lines:
            terminal.write_line(shown(line, 400))
    for kind, target in ledger.written:
        terminal.write_line(f"{kind} written: {target}", cyan=True)
    for target in ledger.unchanged:
        terminal.write_line(f"baseline unchanged: {target}")
    for note in (*ledger.notes, *_changes(verdicts)):
        terminal.write_line(f"note: {note}", yellow=True)
    for complaint in ledger.complaints:
        terminal.write_line(f"ERROR: {complaint}", red=True, bold=True)
    keeps_failed = terminal.config.pluginmanager.hasplugin("cacheprovider")
    command = next_command(verdicts, ledger, again="--last-failed" if keeps_failed else "")
    if command:
        terminal.write_line(f"next: {command}")


def why_weak(verdict: Verdict) -> list[str]:
    """What a gate that holds could have missed; of slices and of a family, what each of them could."""
    if verdict.status != "weak":
        return []
    parts = (*verdict.slices, *verdict.members)
    if parts:
        return [f"{shown(part.slice or part.gate, 40)}: {why}" for part in parts for why in why_weak(part)]
    return [note.removeprefix("weak: ") for note in verdict.notes if note.startswith("weak: ")]


def _what_weak_means(verdicts: Sequence[Verdict]) -> list[str]:
    """A line for the weak gates that lost something, and one for those that could have without a sign of it."""
    found = [why for why in map(why_weak, verdicts) if why]
    lost = [any(each.endswith(LIKE_CHANCE) for each in why) for why in found]
    return [LOST] * any(lost) + [WEAK] * (not all(lost))


def _changes(verdicts: Sequence[tuple[str, Verdict]]) -> list[str]:
    """What changed since the baselines of gates that hold were saved; a gate that does not says it itself."""
    held = [one for _, verdict in verdicts if verdict.ok for one in (verdict, *verdict.members)]
    said = [
        f"baseline {shown(str(one.baseline))} of {shown(one.dataset)}: {change}"
        for one in held
        for change in one.baseline_changes
    ]
    return list(dict.fromkeys(said))


def _counts(statuses: Sequence[str]) -> list[str]:
    counts = [(statuses.count(status), status) for status in ORDER if status in statuses]
    # The other words are participles, and have no plural.
    return [counted(n, status) if status == "error" else f"{n:,} {status}" for n, status in counts]


def adjusted_line(verdicts: Sequence[Verdict]) -> str | None:
    """What the session's p-values say together; None where fewer than two comparisons have one."""
    found = adjusted_over(verdicts)
    if len(found) < 2:
        return None
    small = [(leaf, p) for leaf, p in found if p < _SMALL]
    told = [
        f"{shown(leaf.gate, 40)}{f' ({shown(leaf.slice, 30)})' if leaf.slice else ''} p = {p_text(p)}"
        for leaf, p in small[:3]
    ]
    more = f" and {len(small) - 3} more" if len(small) > 3 else ""
    which = f"{len(small)} below {_SMALL:g}: {', '.join(told)}{more}" if small else f"none below {_SMALL:g}"
    return f"p adjusted by Holm over {len(found)} comparisons, for information (each gate decides alone): {which}"


def next_command(verdicts: list[tuple[str, Verdict]], ledger: Ledger, again: str = "") -> str | None:
    """The one command that is most likely wanted now, or None where all is well.

    ``again`` is the option that runs what failed, where there is too much of it to be named.
    """
    missing = [nodeid for nodeid, verdict in verdicts if verdict.status == "error" and verdict.missing_baseline]
    if missing:
        return f"pytest --retrieval-update=new {_quoted(missing)}".rstrip()
    if ledger.judge is not None:
        return ledger.judge
    # A test that failed as expected needs no look.
    expected = {nodeid for nodeid, (outcome, _) in ledger.outcomes.items() if outcome == "xfailed"}
    failed = [nodeid for nodeid, verdict in verdicts if not verdict.ok and nodeid not in expected]
    if failed:
        return f"pytest -vv {_quoted(failed) or again}".rstrip()
    baselines = [_from_here(target) for kind, target in ledger.written if kind == "baseline"]
    if baselines and any((folder / ".git").exists() for folder in Path(baselines[0]).absolute().parents):
        return f"git add {_quoted(baselines) or _quoted([os.path.commonpath(baselines)])}"
    return None


def _from_here(path: str) -> str:
    """A path as it is typed in the current folder."""
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def _quoted(words: list[str], most: int = 5) -> str:
    """The words for a shell; nothing where there are too many to read."""
    unique = list(dict.fromkeys(words))
    return " ".join(shlex.quote(word) for word in unique) if len(unique) <= most else ""
