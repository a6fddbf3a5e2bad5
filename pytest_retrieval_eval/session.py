"""What one pytest session knows: its settings, the data it has opened, the verdicts and the files to write.

Each process of a session has one :class:`Session`. Workers only *stage* files, in a folder that all share; the
controller (or the only process) puts them in place when the session ends, and only if nothing went wrong on the way.
Nothing here knows pytest.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.once import Once
from pytest_retrieval_eval.settings import Settings, is_url

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.anchors import Anchors
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.run import Run
    from pytest_retrieval_eval.gates.families import GateFamily
    from pytest_retrieval_eval.gates.measured import Measured
    from pytest_retrieval_eval.gates.tojudge import Pair
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.labels.judged import Judged
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.readers.cache import CachedReader
    from pytest_retrieval_eval.readers.counters import Counters
    from pytest_retrieval_eval.readers.store import ReadingCache

NOTHING_COMPARED = (
    "this test asks for {fixtures} and compared nothing: a gate is measured when it is compared, as in "
    "`assert assert_recall_at(5) >= baseline` (`float(...)`, `if` and an assert that was compiled away are no "
    "comparison)"
)
NEVER_ENDED = (
    "this test began a gate_family and never ended it, so that its comparisons were not decided: use it in a `with` "
    "statement"
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

    asked: set[str] = field(default_factory=set)
    measured: list[Measured] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    staged: list[StagedFile] = field(default_factory=list)
    undecided: list[StagedFile] = field(default_factory=list)  # baselines of the gate that is being measured
    command_runs: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    elsewhere: list[Verdict] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)
    settled: bool = False  # whether the test itself ended with all of its gates decided
    family: GateFamily | None = None
    to_judge: list[str] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)  # of the data, in the order of their coming
    reanchored: dict[str, list[str]] = field(default_factory=dict)  # what became of gold spans, by their source
    _told: list[dict[str, object]] = field(default_factory=list)

    def record(self, verdict: Verdict) -> None:
        """Keep a verdict; one that raises in another thread than the test's may not be heard of."""
        self.verdicts.append(verdict)
        if verdict.status != "error":
            self.staged += [file for file in self.undecided if file not in self.staged]
        self.undecided.clear()
        if verdict.status == "error":
            self.errors.append(verdict.reason)
        elif not verdict.ok and threading.get_ident() != self.thread:
            self.elsewhere.append(verdict)

    @contextmanager
    def keeping_errors(self) -> Generator[None, None, None]:
        """Remember the error of a gate that could not even be made."""
        __tracebackhide__ = True
        try:
            yield
        except GateError as error:
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
        if self.errors:
            raise GateError(NOT_MEASURED.format(reason=self.errors[0]))
        for measured in self.measured:
            if not measured.decided:
                raise GateError(LEFT_OPEN.format(measured=measured))

    def payload(self) -> dict[str, object] | None:
        """All of it in builtin types, to travel on a test report; None where there is nothing to tell."""
        told = {verdict.reason for verdict in self.verdicts}
        errors = [error for error in dict.fromkeys(self.errors) if error not in told]
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


class Session:
    """The state of one process. ``folder`` is given by the controller to its workers; without it one is made."""

    def __init__(self, settings: Settings, *, folder: Path | None = None) -> None:
        self.settings = settings
        self.is_worker = folder is not None
        self._given_folder = folder
        self._datasets: dict[tuple[Path, str | None, str | None], Dataset] = {}
        self._runs: dict[Path | str, Run] = {}
        self._staged: dict[tuple[str, ...], StagedFile] = {}
        self._parts: dict[str, Mapping[str, str]] = {}
        self._readers: dict[object, tuple[object, CachedReader]] = {}
        # Why gates were skipped whose reader cannot be had here, each reason once.
        self.without_reader: dict[str, None] = {}
        self._judged: dict[int, Judged] = {}
        self._stores: dict[Path, Judgments] = {}

    @cached_property
    def folder(self) -> Path:
        """A folder that all processes of this session share; it is removed when the session ends."""
        if self._given_folder is None:
            return Path(tempfile.mkdtemp(prefix="retrieval-eval-"))
        self._given_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._given_folder

    def shared_with(self, session_id: str) -> Path:
        """The folder to tell the workers of a controller; the first one that needs it makes it."""
        self.folder = Path(tempfile.gettempdir()) / f"retrieval-eval-{session_id}"
        return self.folder

    @cached_property
    def once(self) -> Once:
        """Values that are made once for all processes."""
        return Once(self.folder / "once" if self.is_worker else None)

    @cached_property
    def readings(self) -> ReadingCache:
        """What language models have read; the same for all readers of this session."""
        from pytest_retrieval_eval.readers.store import ReadingCache

        # With `refresh` all processes mean the same moment, else each would read what another has just read.
        since = self.once.get("since when readings are fresh", time.time)
        return ReadingCache(self.settings.cache, self.settings.cache_mode, since=since)

    def reader(self, given: object, root: Path | None = None) -> CachedReader:
        """A reader behind the cache of this session; the same settings, or the same object, are one reader.

        ``given`` is a reader, its settings (paths in them may be relative to ``root``), or a function of a query and
        texts, of which nothing is kept, since it has no identity.
        """
        from pytest_retrieval_eval.readers.cache import CachedReader
        from pytest_retrieval_eval.readers.session import behind_cache, key_of

        if isinstance(given, CachedReader):
            return given
        key = key_of(given, root)
        if key not in self._readers:
            # The object is kept beside, since its id is only its own while it lives.
            self._readers[key] = given, behind_cache(given, root or self.settings.root, self.readings)
        return self._readers[key][1]

    @property
    def judgments(self) -> Judgments:
        """The folder of judgments that the ini file names."""
        return self.judgments_in(self.settings.judgments)

    def judgments_in(self, folder: Path) -> Judgments:
        """The judgments in a folder, read once a process; a relative one is below the root folder."""
        from pytest_retrieval_eval.labels.judgments import Judgments

        place, given = self.settings.root / folder, self.settings
        if place not in self._stores:
            self._stores[place] = Judgments(place, judges=given.judges, contradictions=given.contradictions)
        return self._stores[place]

    def judged(self, judgments: Judgments) -> Judged:
        """The labels of a folder of judgments, worked out once for all gates of a process."""
        from pytest_retrieval_eval.labels.judged import Judged

        if id(judgments) not in self._judged:
            self._judged[id(judgments)] = Judged(judgments)  # which it holds, so that the id stays its own
        return self._judged[id(judgments)]

    def readings_told(self) -> dict[str, object] | None:
        """What the readers of this process did, in builtin types; None where none was used."""
        skipped = [f"gates were skipped, and measured nothing: {why}" for why in self.without_reader]
        if "readings" not in self.__dict__ or not self.readings.clients:
            return {"counters": None, "notes": skipped} if skipped else None
        from pytest_retrieval_eval.readers.cache import told

        counters, notes = told(self.readings)
        for _, reader in self._readers.values():
            reader.close()
        self.readings.close()
        return {"counters": counters.to_dict(), "notes": [*notes, *skipped]}

    def clean(self) -> None:
        """Remove the shared folder, if this process made it."""
        if not self.is_worker and "folder" in self.__dict__:
            shutil.rmtree(self.folder, ignore_errors=True)

    def dataset(self, name: str | None, *, split: str | None = None) -> Dataset:
        """The dataset of that name or path (None: the first of ``retrieval_datasets``), opened once a process.

        ``split`` goes before the ini value ``retrieval_split``.
        """
        from pytest_retrieval_eval.collection.dataset import Dataset, irds_id

        name = name or self.settings.default_dataset
        if name is None:
            raise GateError(
                "no dataset is configured: add to pyproject.toml, under [tool.pytest.ini_options], "
                'retrieval_datasets = ["NAME = FOLDER"], or override the fixture retrieval_dataset'
            )
        path = self.settings.dataset_path(name)
        # An id of ir_datasets says its part itself.
        chosen = split or (None if irds_id(path) else self.settings.split)
        known_as = self._known_as(name, path)
        key = path, chosen, known_as
        if key not in self._datasets:
            self._datasets[key] = Dataset.read(path, name=known_as, split=chosen)
        return self._datasets[key]

    def dataset_name(self, name: str) -> str:
        """The name that the dataset of this name or path has, without opening it."""
        from pytest_retrieval_eval.collection.dataset import name_of

        try:
            path = self.settings.dataset_path(name)
        except SettingsError:  # there is none, and the gate that names it says so
            return name
        return self._known_as(name, path) or name_of(path)

    def _known_as(self, name: str, path: Path | str) -> str | None:
        """Under its path a dataset has the name that the ini file gives it, whichever of them is asked for first."""
        names = self.settings.datasets
        return name if name in names else next((each for each in names if names[each] == path), None)

    def read_run(self, ref: str | Path, also: Iterable[str] = ()) -> Run:
        """The run of that name (``retrieval_runs``), path or URL, opened once a process.

        ``also`` are further names, for the error of one that is not known.
        """
        path = ref if isinstance(ref, Path) and ref.is_absolute() else self.settings.run_path(str(ref), also)
        if path not in self._runs:
            from pytest_retrieval_eval.collection.run import Run

            self._runs[path] = Run.read(path)
            if ref in self.settings.runs:
                self._runs[path].name = str(ref)
        return self._runs[path]

    def note_parts(self, name: str, place: str, parts: Mapping[str, str]) -> None:
        """Refuse one fixture that is built from different fixtures in different folders.

        pytest keeps a single value of a session-scoped fixture, so the second folder would silently be measured
        with what the first one's was built from. ``parts`` maps each fixture it is built from to its place.
        """
        seen = self._parts.setdefault(place, parts)
        if seen != parts:
            raise GateError(
                f"the fixture {name} ({place}) is built from {_other(parts, seen)} here and from "
                f"{_other(seen, parts)} elsewhere, but pytest makes a fixture of its scope only "
                f"once: define {name} beside the fixture that differs as well"
            )

    def baseline_path(self, dataset: Dataset, name: str) -> Path | str:
        """Where the baseline of that name lies: a path, or a URL where ``retrieval_baseline_dir`` is one."""
        from pytest_retrieval_eval.collection.dataset import baseline_file

        folder = self.settings.baseline_dir
        if folder is None:
            return dataset.baseline_path(name)
        file = baseline_file(name)
        return folder / dataset.name / file if isinstance(folder, Path) else f"{folder}/{dataset.name}/{file}"

    def stored_run(self, dataset: Dataset, name: str, stage: str | None = None) -> Run | None:
        """The baseline that ``git:…`` or a URL names, or that lies at a URL; None where it is a file of its own.

        Those are read and never written: with ``--retrieval-update`` they are refused.
        """
        from pytest_retrieval_eval.gates.revisions import is_revision

        place: Path | str = name
        if not (is_revision(name) or is_url(name)):
            place = self.baseline_path(dataset, of_stage(name, stage))
            if isinstance(place, Path):
                return None
        elif stage is not None and (is_url(name) or name.count(":") > 1):
            raise GateError(
                f"baseline {name} is one file, and stage={stage!r} asks for the baseline of a stage: name a baseline "
                "(NAME, or git:REF), of which each stage has its own, or compare with against(FILE)"
            )
        update = self.settings.update
        if update == "all":
            raise GateError(
                f"baseline {place}: --retrieval-update={update} writes files only, not into a commit or to a URL: "
                f"write the baseline as a file (-o retrieval_baseline={self._plain_baseline()} -o "
                "retrieval_baseline_dir=FOLDER), then commit it or copy it there"
            )
        return self.read_run(place) if is_url(str(place)) else self._committed(dataset, name, stage)

    def _committed(self, dataset: Dataset, name: str, stage: str | None) -> Run:
        from pytest_retrieval_eval.gates.revisions import Revision, read_revision

        revision = Revision.parse(name)
        place = None
        if revision.path is None:
            found = self.baseline_path(dataset, of_stage(self._plain_baseline(), stage))
            place = found if isinstance(found, Path) else None
        return read_revision(revision, place, self.settings.root)

    def _plain_baseline(self) -> str:
        """The configured baseline's name, ``main`` where it is a commit or a URL."""
        name = self.settings.baseline
        return "main" if ":" in name else name

    def stage_pairs(self, pairs: Sequence[Pair]) -> str:
        """Write the pairs to judge of one gate beside, for the process that ends the session."""
        from pytest_retrieval_eval.gates.tojudge import stage

        path = self.folder / "to-judge" / f"{uuid.uuid4().hex}.jsonl"
        stage(path, pairs)
        return str(path)

    def stage_spans(self, anchors: Anchors) -> StagedFile | None:
        """Write the file of gold spans with the moved ones beside, to be put in place; None where none moved."""
        from pytest_retrieval_eval.collection.respan import rewritten

        target = anchors.spans.source
        content, changed = rewritten(anchors, target)
        if not changed:
            return None
        digest = hashlib.sha256(content).hexdigest()
        source = self.folder / "staged" / f"{digest[:32]}.spans"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(content)
        return StagedFile("gold spans", target, str(source), digest)

    def stage(
        self, kind: str, target: Path, run: Run, header: Mapping[str, object], *, times: bool = False
    ) -> StagedFile:
        """Write ``run`` beside, to be put at ``target`` when the session has ended well.

        A baseline keeps the ``times`` of its queries only where a gate reads them.
        """
        # Gates under other labels keep other texts of the same run: the controller joins them.
        kept = hashlib.sha256("\0".join(sorted(run.texts)).encode()).hexdigest() if run.texts else ""
        key = (str(target), run.digest, kept, "times" if times else "")
        if key not in self._staged:
            stem = hashlib.sha256("\0".join(key).encode()).hexdigest()[:32]
            source = self.folder / "staged" / f"{stem}.run.jsonl.gz"
            # A baseline of the same hits is the same file.
            stored = run if times or kind != "baseline" else run.without_seconds()
            stored.with_header(**header).save(source)
            self._staged[key] = StagedFile(kind, str(target), str(source), run.digest)
        return self._staged[key]


def of_stage(name: str, stage: str | None) -> str:
    """The baseline of a stage beside the one of the whole pipeline: ``main.fused`` beside ``main``."""
    return f"{name}.{stage}" if stage is not None else name


def _other(parts: Mapping[str, str], seen: Mapping[str, str]) -> str:
    """The fixtures that are not among ``seen``, with their places."""
    return " and ".join(sorted(f"{part} ({place})" for part, place in parts.items() if seen.get(part) != place))


class Ledger:
    """What the controller has heard: the last attempt of each test, and whether anything was lost on the way."""

    def __init__(self, defaults: Mapping[str, object] | None = None) -> None:
        self.defaults = dict(defaults or {})  # of the ini file, for the reports
        self.attempts: dict[str, dict[str, object]] = {}
        self.broken: str | None = None
        self.deselected = False
        # The names that datasets of all collected tests can have; None where nobody can tell.
        self.datasets: set[str] | None = None
        self.written: list[tuple[str, str]] = []
        self.unchanged: list[str] = []
        self.outcomes: dict[str, tuple[str, float]] = {}
        self.complaints: list[str] = []
        self.notes: list[str] = []
        self.readings: Counters | None = None

    def read(self, told: Mapping[str, Any] | None) -> None:
        """Take in what the readers of one process did."""
        if told is None:
            return
        from pytest_retrieval_eval.readers.counters import Counters

        if told["counters"] is not None:
            counters = Counters.from_dict(told["counters"])
            self.readings = counters if self.readings is None else self.readings + counters
        self.notes += [note for note in told["notes"] if note not in self.notes]

    def receive(self, nodeid: str, payload: dict[str, object] | None) -> None:
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
    def has_verdicts(self) -> bool:
        """Whether any test compared anything."""
        return any(payload["verdicts"] for payload in self.attempts.values())

    @property
    def reanchored(self) -> dict[str, list[str]]:
        """What became of the gold spans of each source, in lines; filled with ``--retrieval-reanchor``."""
        found: dict[str, list[str]] = {}
        for payload in self.attempts.values():
            found.update(payload["reanchored"])  # type: ignore[call-overload]
        return found

    @property
    def verdicts(self) -> list[tuple[str, Verdict]]:
        """(node id, verdict) of every gate of the session."""
        from pytest_retrieval_eval.gates.verdict import Verdict

        return [
            (nodeid, Verdict.from_dict(found))
            for nodeid, payload in self.attempts.items()
            for found in payload["verdicts"]  # type: ignore[attr-defined]
        ]

    def finish(self, settings: Settings, *, stopped: bool) -> None:
        """Put the staged files in place, and complain about what was promised and not done.

        Nothing is written after an internal error, a lost worker, or two different runs for one file.
        """
        self._check_command_runs(settings, stopped=stopped)
        warnings = [said for payload in self.attempts.values() for said in payload["warnings"]]  # type: ignore[attr-defined]
        self.notes += dict.fromkeys(warnings)
        if settings.to_judge is not None:
            self._write_pairs(settings.to_judge, stopped=stopped)
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

    def _write_pairs(self, target: Path, *, stopped: bool) -> None:
        """Merge the pairs to judge of all gates into one file."""
        if self.broken:
            self.complaints.append(f"no pairs to judge were written, since {self.broken}: {target}")
            return
        staged = [Path(path) for payload in self.attempts.values() for path in payload["to_judge"]]  # type: ignore[attr-defined]
        if not staged:
            sentence = f"--retrieval-to-judge={target}: no gate of this session was decided, and nothing was written"
            (self.notes if self.deselected or stopped else self.complaints).append(sentence)
            return
        from pytest_retrieval_eval.gates import tojudge
        from pytest_retrieval_eval.gates.wording import counted

        rows = tojudge.merged(tojudge.staged(staged))
        tojudge.write(target, rows)
        self.written.append((f"{counted(len(rows), 'pair')} to judge", str(target)))

    def _staged_files(self) -> dict[str, list[StagedFile]]:
        staged: dict[str, list[StagedFile]] = {}
        for payload in self.attempts.values():
            for found in payload["staged"]:  # type: ignore[attr-defined]
                file = StagedFile(**found)
                staged.setdefault(file.target, []).append(file)
        return staged

    def _check_command_runs(self, settings: Settings, *, stopped: bool) -> None:
        used = {path for payload in self.attempts.values() for path in payload["command_runs"]}  # type: ignore[attr-defined]
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
    from pytest_retrieval_eval.collection.run import Run

    runs = [Run.read(source) for source in sources]
    runs.sort(key=lambda run: not (run.seconds or run.costs))
    if not any(run.texts or run.seconds or run.costs for run in runs):
        return files[0]
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
    from pytest_retrieval_eval.collection.files import open_bytes, write_atomically

    # With its byte order mark, where it has one: a file of gold spans stays as it is but for what moved.
    with write_atomically(Path(file.target)) as target, open_bytes(Path(file.source)) as source:
        target.write(source.read())
