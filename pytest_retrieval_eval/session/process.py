"""What one process of a session knows: its settings, the data it has opened, and the files it has staged."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.once import Once
from pytest_retrieval_eval.session.attempt import StagedFile
from pytest_retrieval_eval.settings import Settings, is_url

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.anchors import Anchors
    from pytest_retrieval_eval.gates.tojudge import Pair
    from pytest_retrieval_eval.labels.judged import Judged
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.readers.readings.cache import CachedReader
    from pytest_retrieval_eval.readers.readings.store import ReadingCache


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
        # What tests compared when they were over, a sentence each.
        self.too_late: list[str] = []
        self.asking = threading.RLock()  # fixtures are pytest's, and made by one thread at a time
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
        from pytest_retrieval_eval.readers.readings.store import ReadingCache

        # With `refresh` all processes mean the same moment, else each would read what another has just read.
        since = self.once.get("since when readings are fresh", time.time)
        return ReadingCache(self.settings.cache, self.settings.cache_mode, since=since)

    def reader(self, given: object, root: Path | None = None) -> CachedReader:
        """A reader behind the cache of this session; the same settings, or the same object, are one reader.

        ``given`` is a reader, its settings (paths in them may be relative to ``root``), or a function of a query and
        texts, of which nothing is kept, since it has no identity.
        """
        from pytest_retrieval_eval.readers.readings.cache import CachedReader
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
            self._stores[place] = Judgments(place, judged_by=given.judged_by, contradictions=given.contradictions)
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
        from pytest_retrieval_eval.readers.readings.cache import told

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
            place = self.settings.where_to_add("retrieval_datasets", "NAME = FOLDER")
            raise GateError(f"no dataset is configured: add to {place}, or override the fixture retrieval_dataset")
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
            from pytest_retrieval_eval.collection.runs.run import Run

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
        from pytest_retrieval_eval.collection.spans.respan import rewritten

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
        # Gates under other labels keep other texts of the same run, and say what other labels were made from: the
        # controller joins them.
        kept = [(doc_id, document.title, document.text) for doc_id, document in sorted(run.texts.items())]
        said = {name: value for name, value in header.items() if name != "time"}
        more = hashlib.sha256(json.dumps([kept, said], sort_keys=True).encode()).hexdigest()
        key = (str(target), run.digest, more, "times" if times else "")
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
