"""Readings carried between machines: segments, files that are named by what they hold.

A segment is written once and never changed, so that machines that push at the same time cannot harm each other, and
a file that was cut short does not fit its name. A place is anything that fsspec knows: a folder, a bucket.

Beside them lies which identity belongs to which settings of a reader, so that a machine without the model finds the
readings; of those, what was pushed last stands.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.readers.readings import known as readers
from pytest_retrieval_eval.readers.readings.kept import Kept, to_text
from pytest_retrieval_eval.readers.readings.store import ReadingCache

LARGEST = 10_000  # readings of one segment
_SEGMENT = re.compile(r"([0-9a-f]{64})\.jsonl\.gz")
_READER = re.compile(r"([0-9a-f]{32})\.reader\.json")


@dataclass(frozen=True)
class Pushed:
    """How many readings went out in how many new segments; ``known`` were there before."""

    readings: int
    segments: int
    known: int


@dataclass(frozen=True)
class Pulled:
    """What came in from new segments.

    ``new`` readings were not here; of ``conflicts`` there is another text here, which stays. ``warnings`` name the
    segments and the number of readings that could not be used.
    """

    segments: int
    readings: int
    new: int
    conflicts: int
    warnings: tuple[str, ...]


def push(cache: ReadingCache, place: str, *, largest: int = LARGEST) -> Pushed:
    """Write what a place does not have, as far as this cache knows, as new segments.

    Raises DataError where the place cannot be written.
    """
    store = _Place(place)
    segments, _ = store.files(absent_is_empty=True)
    known, taken = cache.shared_with(store.name)
    gone = ({*known.values()} | taken) - segments.keys()
    if gone:  # somebody has tidied the place up: what stood there only goes out again
        cache.unshare(store.name, gone)
        known = {key: segment for key, segment in known.items() if segment not in gone}
    readings = written = 0
    for rows in _portions((kept for kept in cache.kept() if kept.key not in known), largest):
        data = "".join(f"{to_text(kept.to_json())}\n" for kept in rows).encode("ascii")
        segment = hashlib.sha256(data).hexdigest()
        store.write(f"{segment}.jsonl.gz", gzip.compress(data, mtime=0))
        cache.share(store.name, segment, [kept.key for kept in rows])
        readings, written = readings + len(rows), written + 1
    for record in sorted((cache.folder / "readers").glob("*.json")):
        if readers.identity_in(record) is not None:
            store.write(f"{record.stem}.reader.json", record.read_bytes())
    return Pushed(readings, written, len(known))


def pull(cache: ReadingCache, place: str) -> Pulled:
    """Take in every segment of a place that was not taken in before, and the identities of its readers.

    A segment that does not fit its name is left for the next time, with a warning; so is, for good, a reading whose
    key is not that of its reader and item. Raises DataError where the place cannot be read.
    """
    store = _Place(place)
    segments, identities = store.files()
    if not segments:
        raise DataError(f"{store.name} holds no readings: nothing was pushed there yet, or it is another place")
    _, taken = cache.shared_with(store.name)
    warnings, total, new, conflicts, count = list[str](), 0, 0, 0, 0
    for segment in sorted(segments.keys() - taken):
        where = f"{store.name}/{segment[:12]}….jsonl.gz"
        try:
            rows, refused = _rows(segment, store.read(segments[segment]))
        except DataError as error:
            warnings.append(f"{where}: {error}; it was left out, and is tried again the next time")
            continue
        if refused:
            warnings.append(f"{where}: {refused} of its readings are not what their keys say, and were left out")
        for portion in _portions(iter(rows), LARGEST):
            added, differing = cache.put_many(portion)
            new, conflicts = new + added, conflicts + differing
        cache.share(store.name, segment, [kept.key for kept in rows])
        total, count = total + len(rows), count + 1
    for digest, path in sorted(identities.items()):
        try:
            identity = readers.parsed(store.read(path))
        except DataError as error:
            warnings.append(f"{store.name}/{digest}.reader.json: {error}; it was left out")
            continue
        readers.remember(cache.folder / "readers" / f"{digest}.json", identity)
    return Pulled(count, total, new, conflicts, tuple(warnings))


def _rows(segment: str, packed: bytes) -> tuple[list[Kept], int]:
    """(the readings of a segment, how many are none)."""
    try:
        data = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the segment is damaged or was cut short ({error})") from None
    if hashlib.sha256(data).hexdigest() != segment:
        raise DataError("the segment is damaged: its content does not fit its name")
    rows, refused = list[Kept](), 0
    for line in data.decode("ascii", "replace").splitlines():
        try:
            kept = Kept.of_json(json.loads(line))
            kept.check()
            if not kept.reading.answered:
                raise DataError("no answer")
        except (DataError, ValueError, RecursionError):
            refused += 1
            continue
        rows.append(kept)
    return rows, refused


def _portions(rows: Iterator[Kept], size: int) -> Iterator[list[Kept]]:
    portion: list[Kept] = []
    for kept in rows:
        portion.append(kept)
        if len(portion) == size:
            yield portion
            portion = []
    if portion:
        yield portion


class _Place:
    """A folder of segments, wherever fsspec finds it."""

    def __init__(self, place: str) -> None:
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise DataError(
                f"{place}: sharing readings needs the package fsspec; install it with: "
                "pip install 'pytest-retrieval-eval[fsspec]'"
            ) from None
        try:
            self._system, self._root = url_to_fs(place)
            self._root = self._root.rstrip("/")
            self.name = str(self._system.unstrip_protocol(self._root))
        except Exception as error:  # every store has exceptions of its own
            raise DataError(f"{place}: {type(error).__name__}: {error}") from error

    def files(self, *, absent_is_empty: bool = False) -> tuple[dict[str, str], dict[str, str]]:
        """The path of each segment, and of each reader's identity, by the digest in its name."""
        try:
            self._system.invalidate_cache()
            found = self._system.ls(self._root, detail=False)
        except FileNotFoundError:
            if absent_is_empty:
                return {}, {}
            raise DataError(f"{self.name}: there is no such folder, so nothing was pushed there yet") from None
        except Exception as error:
            raise self._cannot("read", error) from error
        names = {path: path.rstrip("/").rpartition("/")[2] for path in found}
        segments = {match[1]: path for path, name in names.items() if (match := _SEGMENT.fullmatch(name))}
        return segments, {match[1]: path for path, name in names.items() if (match := _READER.fullmatch(name))}

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        try:
            data: Any = self._system.cat_file(path)
        except Exception as error:
            raise DataError(f"cannot be read: {type(error).__name__}: {error}") from error
        return bytes(data)

    def write(self, name: str, data: bytes) -> None:
        """Write one file."""
        try:
            self._system.makedirs(self._root, exist_ok=True)
            self._system.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:
            raise self._cannot("written", error) from error

    def _cannot(self, verb: str, error: Exception) -> DataError:
        return DataError(f"{self.name} cannot be {verb}: {type(error).__name__}: {error}")
