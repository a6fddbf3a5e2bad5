"""What the process that ends a session has heard from all tests, and what it then writes and complains about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.errors import GateError, did_you_mean
from pytest_retrieval_eval.session.attempt import StagedFile
from pytest_retrieval_eval.settings import Settings

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.readers.readings.counters import Counters


class Ledger:
    """What the controller has heard: the last attempt of each test, and whether anything was lost on the way."""

    def __init__(self, defaults: Mapping[str, object] | None = None) -> None:
        self.defaults = dict(defaults or {})  # of the ini file, for the reports
        self.attempts: dict[str, dict[str, Any]] = {}
        self.broken: str | None = None
        self.deselected = False
        # The names that datasets of all collected tests can have; None where nobody can tell.
        self.datasets: set[str] | None = None
        self.written: list[tuple[str, str]] = []
        self.judge: str | None = None  # the command that judges the pairs that were written
        self.unchanged: list[str] = []
        self.outcomes: dict[str, tuple[str, float]] = {}
        self.complaints: list[str] = []
        self.notes: list[str] = []
        self.readings: Counters | None = None

    def read(self, told: Mapping[str, Any] | None) -> None:
        """Take in what the readers of one process did."""
        if told is None:
            return
        from pytest_retrieval_eval.readers.readings.counters import Counters

        if told["counters"] is not None:
            counters = Counters.from_dict(told["counters"])
            self.readings = counters if self.readings is None else self.readings + counters
        self.notes += [note for note in told["notes"] if note not in self.notes]

    def receive(self, nodeid: str, payload: dict[str, Any] | None) -> None:
        """Take in one test's payload; a later attempt replaces an earlier one, also with nothing to tell (None)."""
        self.attempts.pop(nodeid, None)
        if payload is not None:
            self.attempts[nodeid] = payload

    def hear(self, nodeid: str, phase: str, outcome: str, seconds: float) -> None:
        """Take in how one phase (setup, call, teardown) of a test ended; a rerun begins with its setup anew.

        The outcome of a test is pytest's word for it: passed, failed, skipped, xfailed, xpassed, or error where
        its setup or teardown failed.
        """
        before, spent = ("", 0.0) if phase == "setup" else self.outcomes.get(nodeid, ("", 0.0))
        if phase != "call" and outcome == "failed":
            outcome = "error"
        elif phase == "teardown" or (phase == "setup" and outcome == "passed"):
            outcome = before
        self.outcomes[nodeid] = outcome, spent + seconds

    @property
    def has_gates(self) -> bool:
        """Whether any test compared anything, or could not."""
        return any(payload["verdicts"] or payload["errors"] for payload in self.attempts.values())

    @property
    def unmeasured(self) -> list[tuple[str, str]]:
        """(node id, sentence) of every error that no verdict says; what only repeats another is left out."""
        found: list[tuple[str, str]] = []
        for nodeid, payload in self.attempts.items():
            told = [verdict["reason"] for verdict in payload["verdicts"]]
            for error in payload["errors"]:
                if not any(said in error for said in told):
                    told.append(error)
                    found.append((nodeid, error))
        return found

    @property
    def reanchored(self) -> dict[str, list[str]]:
        """What became of the gold spans of each source, in lines; filled with ``--retrieval-reanchor``."""
        found: dict[str, list[str]] = {}
        for payload in self.attempts.values():
            found.update(payload["reanchored"])
        return found

    @property
    def verdicts(self) -> list[tuple[str, Verdict]]:
        """(node id, verdict) of every gate of the session."""
        from pytest_retrieval_eval.gates.verdict import Verdict

        return [
            (nodeid, Verdict.from_dict(found))
            for nodeid, payload in self.attempts.items()
            for found in payload["verdicts"]
        ]

    def finish(self, settings: Settings, *, stopped: bool) -> None:
        """Put the staged files in place, and complain about what was promised and not done.

        Nothing is written after an internal error, a lost worker, or two different runs for one file.
        """
        self._check_command_runs(settings, stopped=stopped)
        warnings = [said for payload in self.attempts.values() for said in payload["warnings"]]
        self.notes += dict.fromkeys(warnings)
        if settings.to_judge is not None:
            self._write_pairs(settings.to_judge, settings, stopped=stopped)
        if settings.reanchor is not None and not self.reanchored:
            sentence = f"--retrieval-reanchor={settings.reanchor}: no gate of this session read gold spans of a corpus"
            (self.notes if self.deselected or stopped else self.complaints).append(sentence)
        staged = self._staged_files()
        if not staged:
            return
        if self.broken:
            self.complaints.append(f"no file was written, since {self.broken}: {', '.join(sorted(staged))}")
            return
        for target, files in sorted(staged.items()):
            if len({file.digest for file in files}) > 1:
                self.complaints.append(
                    f"{target} was not written: the gates of this session would write different runs into it; "
                    'give the baselines names of their own (baseline["NAME"])'
                )
                continue
            try:
                file = _joined(files)
                if file.kind == "baseline" and _says_the_same(file):
                    self.unchanged.append(target)
                    continue
                _put_in_place(file)
            except (GateError, OSError) as error:
                self.complaints.append(f"{target} was not written: {error}")
                continue
            self.written.append((files[0].kind, target))

    def _write_pairs(self, target: Path, settings: Settings, *, stopped: bool) -> None:
        """Merge the pairs to judge of all gates into one file."""
        if self.broken:
            self.complaints.append(f"no pairs to judge were written, since {self.broken}: {target}")
            return
        staged = [Path(path) for payload in self.attempts.values() for path in payload["to_judge"]]
        if not staged:
            sentence = f"--retrieval-to-judge={target}: no gate of this session was decided, and nothing was written"
            (self.notes if self.deselected or stopped else self.complaints).append(sentence)
            return
        from pytest_retrieval_eval.gates import tojudge
        from pytest_retrieval_eval.wording import counted

        rows = tojudge.merged(tojudge.staged(staged))
        try:
            tojudge.write(target, rows)
        except GateError as error:
            self.complaints.append(f"no pairs to judge were written: {error}")
            return
        self.written.append((f"{counted(len(rows), 'pair')} to judge", str(target)))
        if rows:
            names = {row.get("dataset", "") for row in rows}
            path = str(settings.datasets.get(names.pop(), "DATASET")) if len(names) == 1 else "DATASET"
            dataset = path if tojudge.asks_for_texts(target, rows) else ""
            self.judge = settings.judge_command(str(target), dataset=dataset)

    def _staged_files(self) -> dict[str, list[StagedFile]]:
        staged: dict[str, list[StagedFile]] = {}
        for payload in self.attempts.values():
            for found in payload["staged"]:
                file = StagedFile(**found)
                staged.setdefault(file.target, []).append(file)
        return staged

    def _check_command_runs(self, settings: Settings, *, stopped: bool) -> None:
        used = {path for payload in self.attempts.values() for path in payload["command_runs"]}
        for dataset, path in settings.command_runs.items():
            if str(path) in used:
                continue
            value = f"{dataset}={path}" if dataset else str(path)
            sentence = f"--retrieval-run={value}: no gate of this session measured this run"
            if dataset is not None and self.datasets is not None and dataset not in self.datasets:
                said = did_you_mean(dataset, self.datasets)
                self.complaints.append(f"{sentence}, and neither retrieval_datasets nor a test has the dataset; {said}")
            elif self.deselected or stopped:
                self.notes.append(sentence + " (not all tests ran)")
            else:
                self.complaints.append(sentence)


def _joined(files: Sequence[StagedFile]) -> StagedFile:
    """One file of those that gates staged of the same run: with the texts and the times that any of them keeps."""
    sources = list(dict.fromkeys(file.source for file in files))
    if len(sources) == 1:
        return files[0]
    from pytest_retrieval_eval.collection.runs.run import Run

    runs = [Run.read(source) for source in sources]
    runs.sort(key=lambda run: not (run.seconds or run.costs))
    texts, header = dict(runs[0].texts), dict(runs[0].header)
    for run in runs[1:]:
        texts, header = {**run.texts, **texts}, {**run.header, **header}
    joined = Path(sources[0]).with_name(f"joined-{Path(sources[0]).name}")
    runs[0].with_texts(texts).with_header(**header).save(joined)
    return StagedFile(files[0].kind, files[0].target, str(joined), files[0].digest)


def _says_the_same(file: StagedFile) -> bool:
    """Whether the baseline that is there has the same run from the same data: then it stays, and git shows nothing."""
    from pytest_retrieval_eval.gates.baselines import same_baseline

    return same_baseline(Path(file.target), Path(file.source))


def _put_in_place(file: StagedFile) -> None:
    from pytest_retrieval_eval.collection.formats.files import open_bytes, write_atomically

    # With its byte order mark, where it has one: a file of gold spans stays as it is but for what moved.
    with write_atomically(Path(file.target)) as target, open_bytes(Path(file.source)) as source:
        target.write(source.read())
