"""Baselines: stored runs with provenance, never stored scores.

Both sides of a comparison are scored on today's labels. What changed since the baseline was saved is named,
from the digests in its header.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.collection.formats.files import read_bytes
from pytest_retrieval_eval.collection.runs.elsewhere import refuse_lfs_pointer
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.spans.former import KEY, gold_places
from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.gates.verdict import builtin
from pytest_retrieval_eval.wording import counted, listed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.queries import Queries

_GIT_SECONDS = 5


class MissingBaselineError(GateError):
    """There is no baseline yet; the message is what to do about it."""


def read_baseline(path: Path, *, how_to_create: str) -> Run:
    """The stored run at ``path``; where there is none, the error says ``how_to_create`` it (a command).

    A file that has not changed is read once, however many gates compare with it.
    """
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise MissingBaselineError(
            f"no baseline yet ({path} does not exist). Create it with: {how_to_create}"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot read the file: {error.strerror or error}") from None
    return _read(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=8)
def _read(path: Path, changed: int, size: int) -> Run:
    # What cannot be opened is an error of Run.read, in its words.
    with contextlib.suppress(OSError), open(path, "rb") as file:
        refuse_lfs_pointer(file.read(64), str(path))
    return Run.read(path)


def provenance(run: Run, dataset: Dataset) -> dict[str, object]:
    """The header of a baseline: what made the run, on which data, from which commit, when, and with what.

    Keys: ``retriever``, ``dataset``, ``labels``, ``answers`` and ``spans`` (where there are some), ``query_set`` and
    ``corpus`` (digests), ``commit`` and ``dirty`` (None outside a git repository), ``time`` (UTC, ISO 8601, seconds),
    ``versions``. The depth is the run's own, and ``gold`` (where gold spans stood) where it has that.
    """
    return {
        "retriever": run.name,
        "dataset": dataset.name,
        **_label_digests(dataset),
        "query_set": queries_digest(dataset),
        "corpus": dataset.corpus_digest,
        **gold_places(run, dataset),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **made_with(),
    }


def described_run(run: Run) -> dict[str, Any]:
    """Where a run comes from, as far as it says so; without where gold stood, which is as large as the gold."""
    return {
        "name": run.name,
        "source": run.source,
        "depth": run.depth,
        "queries": len(run.query_ids),
        "header": builtin({key: value for key, value in run.header.items() if key != KEY}),
    }


def described_dataset(dataset: Dataset, candidate: Run) -> dict[str, Any]:
    """Which data a gate was measured on; the digest of a large corpus is None where no run says it."""
    return {
        "name": dataset.name,
        "path": None if dataset.path is None else str(dataset.path),
        **_label_digests(dataset),
        "query_set": queries_digest(dataset),
        "corpus": _corpus_digest(dataset, candidate),
    }


def _label_digests(dataset: Dataset) -> dict[str, str]:
    """The digests of everything in the dataset that labels are made from."""
    found = {"labels": dataset.label_digest}
    if dataset.answers is not None:
        found["answers"] = dataset.answers.digest
    if dataset.spans is not None:
        found["spans"] = dataset.spans.digest
    return found


def made_with() -> dict[str, Any]:
    """``commit`` and ``dirty`` of the working directory, and ``versions`` of what computes here."""
    commit, dirty = _commit(str(Path.cwd()))
    versions = {"python": platform.python_version(), **_versions()}
    return {"commit": commit, "dirty": dirty, "versions": versions}


def changes_since(
    baseline: Run,
    dataset: Dataset,
    candidate: Run,
    *,
    new: Sequence[str] | None = None,
    labels: Mapping[str, Callable[[], str | None]] | None = None,
) -> tuple[str, ...]:
    """What changed since ``baseline`` was saved, a sentence each; empty where nothing is known to have.

    ``new`` are the judged queries that the baseline lacks, where the caller knows them already; ``labels`` tells the
    digests of what the labels were made from, by their keys in a header (None: the judgments of the dataset).
    """
    header = baseline.header
    changes: list[str] = []
    for key, digest in (labels or {"labels": lambda: dataset.label_digest}).items():
        if _differs(header.get(key), digest):
            what = _MADE_FROM.get(key, key)
            changes.append(f"the {what} have changed since the baseline was saved; both sides are scored on today's")
    if new is None:
        known = frozenset(baseline.query_ids)
        new = [query for query in dataset.qrels.query_ids if query not in known]
    if new:
        changes.append(
            f"{counted(len(new), 'query is', 'queries are')} not in the baseline and "
            f"{'counts' if len(new) == 1 else 'count'} 0 there: {listed(new)}"
        )
    if _differs(header.get("query_set"), lambda: queries_digest(dataset)):
        changes.append("the queries or their texts have changed since the baseline was saved")
    if _differs(header.get("corpus"), lambda: _corpus_digest(dataset, candidate)):
        changes.append("the corpus has changed since the baseline was saved")
    if header.get("dataset") and dataset.name and header["dataset"] != dataset.name:
        changes.append(f"the baseline was saved for the dataset {shown(str(header['dataset']))}")
    if baseline.depth is not None and candidate.depth is not None and baseline.depth != candidate.depth:
        changes.append(f"the baseline is {baseline.depth} deep, the run under test {candidate.depth}")
    return tuple(changes)


# What labels are made from, by its key in a header, as sentences name it.
_MADE_FROM = {
    "judgments": "judgments",
    "answers": "gold answers",
    "spans": "gold spans",
    "reader": "reader or its settings",
}
# What a header says about the saving, not about the run.
_OF_THE_SAVING = ("time", "commit", "dirty", "versions", "timing")
# Of a query, what differs from one hour to the next.
_TIMES = ("seconds", "cost")


def same_baseline(old: Path, new: Path) -> bool:
    """Whether two stored runs are equal, and were made from equal data; who saved them and when does not matter.

    Nor does how long the queries took, as long as the old one says it where the new one does: times are never the same,
    and a file that changed with every session would say nothing. To take them anew, delete the file first.
    """
    try:
        if not os.path.exists(old):
            return False
        (said, rows), (new_said, new_rows) = _content(old), _content(new)
        if said != new_said or rows == new_rows:
            return said == new_said
        if any(_has(key, new_rows) and not _has(key, rows) for key in _TIMES):
            return False
        return any(_has(key, rows) for key in _TIMES) and _without_times(rows) == _without_times(new_rows)
    except (DataError, ValueError):  # what cannot be read is to be replaced
        return False


def _has(key: str, rows: bytes) -> bool:
    return f'"{key}": '.encode() in rows  # inside a text its quotes would be escaped


def _without_times(rows: bytes) -> list[dict[str, object]]:
    parsed = [json.loads(line) for line in rows.splitlines()]
    for row in parsed:
        for each in (row, *row.get("calls", ())):
            for key in _TIMES:
                each.pop(key, None)
    return parsed


def _content(path: Path) -> tuple[dict[str, object], bytes]:
    header, _, rows = read_bytes(path).partition(b"\n")
    said = json.loads(header)
    return {key: value for key, value in said.items() if key not in _OF_THE_SAVING}, rows


def queries_digest(dataset: Dataset) -> str:
    """``sha256:…`` over the sorted ids and texts of the queries."""
    return _queries_digest(dataset.queries)


@functools.lru_cache(maxsize=4)
def _queries_digest(queries: Queries) -> str:
    rows: list[tuple[str, str | None]] = []
    for query_id in sorted(queries):
        try:
            rows.append((query_id, queries.text(query_id)))
        except DataError:  # only the id is known
            rows.append((query_id, None))
    return "sha256:" + hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _differs(then: object, today: Callable[[], str | None]) -> bool:
    # What either side does not know is no change; and a digest costs a pass over the data.
    return isinstance(then, str) and today() not in (None, then)


def _corpus_digest(dataset: Dataset, candidate: Run) -> str | None:
    said = candidate.header.get("corpus")
    if isinstance(said, str):
        return said
    corpus = dataset.corpus
    return corpus.digest if corpus is not None and corpus.is_small else None


@functools.lru_cache(maxsize=8)
def _commit(folder: str) -> tuple[str | None, bool | None]:
    """The commit around ``folder`` and whether tracked files were changed since; asked once a process."""
    head = _git(folder, "rev-parse", "HEAD")
    if head is None:
        return None, None
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return head, None if status is None else bool(status)


def _git(folder: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _versions() -> Mapping[str, str]:
    found = {}
    for name in ("pytest-retrieval-eval", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found
