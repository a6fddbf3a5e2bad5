"""Readings that are made once: kept in one SQLite file, by many processes at once, and looked up before a model is.

Texts are kept, never scores: with another metric nothing is read again. A process *claims* what it is about to read,
and looks once more whether it has come meanwhile, in the same transaction; the others wait for it. A claim holds as
long as its process renews the lease: what a process that was killed had claimed is taken over by another; at once where
that process can be seen to be gone.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from pytest_retrieval_eval.errors import DataError, GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.readers.process import is_gone, process_mark
from pytest_retrieval_eval.readers.reading import Reading, identity_digest
from pytest_retrieval_eval.readers.readings.kept import (
    Kept,
    checksum,
    item_of_json,
    item_to_json,
    reading_of_json,
    reading_to_json,
    to_text,
)
from pytest_retrieval_eval.readers.readings.sqlitefile import SqliteFile

if TYPE_CHECKING:
    from pytest_retrieval_eval.readers.readings.cache import CachedReader

T = TypeVar("T")
Mode = Literal["rw", "ro", "refresh", "off"]
MODES: tuple[Mode, ...] = ("rw", "ro", "refresh", "off")
FILE = "readings.sqlite"
LEASE = 30.0  # seconds
FILL = "pytest --retrieval-cache-mode=rw"

_APPLICATION, _VERSION = 0x52657641, 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS readings(
  key TEXT PRIMARY KEY, reader INTEGER NOT NULL, item TEXT NOT NULL, reading TEXT NOT NULL, sum TEXT NOT NULL,
  versions INTEGER NOT NULL, made REAL NOT NULL, used REAL NOT NULL);
CREATE INDEX IF NOT EXISTS readings_by_reader ON readings(reader, versions);
CREATE TABLE IF NOT EXISTS readers(id INTEGER PRIMARY KEY, digest TEXT UNIQUE NOT NULL, identity TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS versions(id INTEGER PRIMARY KEY, names TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS owners(owner TEXT PRIMARY KEY, thread TEXT NOT NULL, expires REAL NOT NULL);
CREATE TABLE IF NOT EXISTS claims(key TEXT PRIMARY KEY, owner TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shared(
  place TEXT NOT NULL, key TEXT NOT NULL, segment TEXT NOT NULL, PRIMARY KEY(place, key));
CREATE TABLE IF NOT EXISTS taken(place TEXT NOT NULL, segment TEXT NOT NULL, PRIMARY KEY(place, segment))
"""
_CHUNK = 500  # keys of one statement; SQLite takes 999 at least
_DAY = 86400.0
_AHEAD = 60.0  # seconds
_NUMBERS = itertools.count()


class CacheMissError(GateError):
    """A reading that is not in a cache from which one may only read."""


@dataclass(frozen=True)
class ReaderStats:
    """What a cache holds of one reader; ``versions`` has each set of library versions that it was read with."""

    digest: str
    identity: Mapping[str, object]
    readings: int
    versions: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class CacheStats:
    """What a cache holds: readers with most readings first; ``claimed`` readings are being made by some process."""

    path: Path
    bytes: int
    readings: int
    claimed: int
    readers: tuple[ReaderStats, ...]


class ReadingCache:
    """The readings in a folder, which is made at the first write.

    ``cache_mode`` is ``rw``; ``ro``: nothing is read by a model or written, and a miss is an error; ``refresh``: what
    was made before ``since`` (now) is made anew; ``off``: nothing is looked up or kept. What its user should know is
    appended to ``warnings``.

    >>> import tempfile
    >>> from pytest_retrieval_eval import Item, item_key
    >>> reader, item = {"kind": "callable", "name": "a"}, Item("who?", ())
    >>> with tempfile.TemporaryDirectory() as folder, ReadingCache(folder) as cache:
    ...     key = item_key(reader, item)
    ...     kept = cache.put(Kept(key, reader, item, Reading("Ann", "ok", 5, 1)))
    ...     cache.get_many([key])[key].text
    'Ann'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        cache_mode: Mode = "rw",
        *,
        lease: float = LEASE,
        since: float | None = None,
        fill: str = FILL,
    ) -> None:
        if cache_mode not in MODES:
            raise SettingsError(f"there is no cache mode {cache_mode!r}; {did_you_mean(str(cache_mode), MODES)}")
        self.folder = Path(path)
        self.cache_mode: Mode = cache_mode
        self.lease = lease
        self.fill = fill
        self.warnings: list[str] = []
        self.clients: list[CachedReader] = []  # the readers that this cache serves
        self._since = (time.time() if since is None else since) if cache_mode == "refresh" else 0.0
        self._damaged: set[str] = set()
        self._reader: tuple[Mapping[str, object], str, str] | None = None  # the last identity, its digest and JSON
        self._file = SqliteFile(
            self.folder / FILE,
            _SCHEMA,
            application=_APPLICATION,
            version=_VERSION,
            read_only=cache_mode == "ro",
            warnings=self.warnings,
        )

    def __enter__(self) -> ReadingCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. The cache may be used again."""
        self._file.close()

    @property
    def path(self) -> Path:
        """The file of the readings."""
        return self._file.path

    def get_many(self, keys: Sequence[str]) -> dict[str, Reading]:
        """The readings that are there, by key. One that was damaged is not there, and a warning says so."""
        if self.cache_mode == "off" or not self._file.exists():
            return {}
        found, old = self._file.read(lambda connection: self._look(connection, keys))
        if old and self.cache_mode != "ro":
            with suppress(DataError):  # only gc wants to know; whoever cannot write hears of it when storing
                now = time.time()
                self._write(
                    lambda connection: connection.executemany(
                        "UPDATE readings SET used = ? WHERE key = ?", [(now, key) for key in old]
                    )
                )
        return found

    def put(self, kept: Kept, claims: Claims | None = None) -> Reading:
        """Keep a reading, give up its claim, and return what is kept: of two readings of one key it is the first.

        A reading that is no answer (``refused``, ``error``) is a ValueError: it is never kept. Raises DataError where
        the file cannot be written: a full disk, no permission, a network file system.
        """
        if not kept.reading.answered:
            raise ValueError(f"a reading with the status {kept.reading.status} is not kept")
        if self.cache_mode in ("ro", "off"):
            return kept.reading

        def work(connection: sqlite3.Connection) -> Reading:
            if claims is not None:
                connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (kept.key, claims.owner))
            return self._keep(connection, kept)

        return self._write(work)

    def put_many(self, kept: Iterable[Kept]) -> tuple[int, int]:
        """Keep readings of elsewhere in one transaction: (how many are new, how many had another text here)."""
        rows = list(kept)

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            new = conflicts = 0
            for each in rows:
                before, _ = self._look(connection, [each.key])
                if each.key not in before:
                    self._keep(connection, each)
                    new += 1
                elif before[each.key].text != each.reading.text:
                    conflicts += 1
            return new, conflicts

        return self._write(work)

    def claims(self) -> Claims:
        """A context in which readings can be claimed; at its end those that are left are given up."""
        return Claims(self)

    def kept(self, reader: str = "") -> Iterator[Kept]:
        """Every reading with its reader and item, by key; only of readers whose digest begins so.

        One that was damaged is left out, and a warning says so.
        """
        for key, kept in self._rows(reader):
            if isinstance(kept, Kept):
                yield kept
            else:
                self._warn_damaged(key, kept)

    def damaged(self) -> Iterator[tuple[str, str]]:
        """(key, what is wrong) of each reading that is not what was stored, or not what its key says."""
        for key, kept in self._rows(""):
            try:
                if isinstance(kept, str):
                    raise DataError(kept)
                kept.check()
            except DataError as error:
                yield key, str(error)

    def delete(self, keys: Sequence[str]) -> int:
        """Delete readings; how many there were."""
        return self._write(
            lambda connection: sum(
                connection.execute("DELETE FROM readings WHERE key = ?", (key,)).rowcount for key in keys
            )
        )

    def gc(self, *, unused_for: float | None = None, digest: str | None = None) -> int:
        """Delete what was not looked up for so many seconds, and what readers made whose ``digest`` begins so.

        Both together: only what is both. Returns the number of readings; the file shrinks by what they took.
        """
        conditions, values = [], list[object]()
        if unused_for is not None:
            conditions.append("used < ?")
            values.append(time.time() - unused_for)
        if digest is not None:
            conditions.append("reader IN (SELECT id FROM readers WHERE substr(digest, 1, ?) = ?)")
            values += [len(digest), digest]
        if not conditions:
            raise ValueError("gc needs to be told what to delete: unused_for, digest or both")

        def work(connection: sqlite3.Connection) -> int:
            gone = connection.execute(f"DELETE FROM readings WHERE {' AND '.join(conditions)}", values).rowcount
            connection.execute("DELETE FROM readers WHERE id NOT IN (SELECT reader FROM readings)")
            connection.execute("DELETE FROM versions WHERE id NOT IN (SELECT versions FROM readings)")
            connection.execute("DELETE FROM shared WHERE key NOT IN (SELECT key FROM readings)")
            _expire(connection)
            return gone

        if not self._file.exists():
            return 0
        gone = self._write(work)

        def shrink(connection: sqlite3.Connection) -> None:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else the log is as large as what is left

        self._file.read(shrink)
        return gone

    def stats(self) -> CacheStats:
        """What the cache holds."""
        if not self._file.exists():
            return CacheStats(self.path, 0, 0, 0, ())

        def work(connection: sqlite3.Connection) -> CacheStats:
            readers = []
            for number, digest, identity, count in connection.execute(
                "SELECT id, digest, identity, count(*) FROM readers JOIN readings ON reader = id "
                "GROUP BY id ORDER BY count(*) DESC, digest"
            ).fetchall():
                readers.append(ReaderStats(digest, json.loads(identity), count, _versions_of(connection, number)))
            claimed = connection.execute(
                "SELECT count(*) FROM claims JOIN owners USING(owner) WHERE expires >= ?", (time.time(),)
            ).fetchone()[0]
            size = sum(
                place.stat().st_size
                for ending in ("", "-wal")
                if (place := self.path.with_name(self.path.name + ending)).exists()
            )
            return CacheStats(self.path, size, sum(each.readings for each in readers), claimed, tuple(readers))

        return self._file.read(work)

    def integrity(self) -> str:
        """``ok``, or what SQLite finds wrong with the file."""
        if not self._file.exists():
            return "ok"
        return str(self._file.read(lambda connection: connection.execute("PRAGMA integrity_check(1)").fetchone()[0]))

    def versions(self, identity: Mapping[str, object]) -> tuple[Mapping[str, str], ...]:
        """Each set of library versions with which readings of this reader were made."""
        if self.cache_mode == "off" or not self._file.exists():
            return ()
        digest = identity_digest(identity)

        def work(connection: sqlite3.Connection) -> tuple[Mapping[str, str], ...]:
            row = connection.execute("SELECT id FROM readers WHERE digest = ?", (digest,)).fetchone()
            return _versions_of(connection, row[0]) if row else ()

        return self._file.read(work)

    # --- segments -------------------------------------------------------------------------------------

    def shared_with(self, place: str) -> tuple[dict[str, str], set[str]]:
        """(segment by key, segments taken) of a place with which readings are shared."""

        def work(connection: sqlite3.Connection) -> tuple[dict[str, str], set[str]]:
            keys = dict(connection.execute("SELECT key, segment FROM shared WHERE place = ?", (place,)).fetchall())
            taken = connection.execute("SELECT segment FROM taken WHERE place = ?", (place,)).fetchall()
            return keys, {segment for (segment,) in taken}

        return self._file.read(work) if self._file.exists() else ({}, set())

    def share(self, place: str, segment: str, keys: Sequence[str]) -> None:
        """Remember that a segment at a place is known, with the keys that it holds."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR IGNORE INTO taken VALUES(?, ?)", (place, segment))
            connection.executemany(
                "INSERT OR REPLACE INTO shared VALUES(?, ?, ?)", [(place, key, segment) for key in keys]
            )

        self._write(work)

    def unshare(self, place: str, segments: Iterable[str]) -> None:
        """Forget segments that are no longer at a place."""
        gone = [(place, segment) for segment in segments]

        def work(connection: sqlite3.Connection) -> None:
            for table in ("taken", "shared"):
                connection.executemany(f"DELETE FROM {table} WHERE place = ? AND segment = ?", gone)

        self._write(work)

    # --- how it is done -------------------------------------------------------------------------------

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._file.exists():
            return self._file.write(work)
        with suppress(OSError):  # the folder explains itself to git; whether it can be written is found out below
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("# Made by pytest-retrieval-eval.\n*\n", encoding="utf-8")
        return self._file.write(work)

    def _look(self, connection: sqlite3.Connection, keys: Sequence[str]) -> tuple[dict[str, Reading], list[str]]:
        """(the readings that are there, which of them were not looked up for a day)."""
        found, old, now = dict[str, Reading](), list[str](), time.time()
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            for key, text, stored, made, used in connection.execute(
                f"SELECT key, reading, sum, made, used FROM readings WHERE key IN ({marks})", chunk
            ):
                # What another machine made while its clock was ahead of ours may be as old as anything.
                if made < self._since or (self._since and made > now + _AHEAD):
                    continue
                try:
                    found[key] = _reading(key, text, stored)
                except DataError as error:
                    self._warn_damaged(key, str(error))
                    continue
                if used < now - _DAY:
                    old.append(key)
        return found, old

    def _keep(self, connection: sqlite3.Connection, kept: Kept) -> Reading:
        before, _ = self._look(connection, [kept.key])
        if kept.key in before:
            return before[kept.key]
        names = to_text(dict(kept.versions))
        if self._reader is None or self._reader[0] is not kept.identity:
            self._reader = kept.identity, identity_digest(kept.identity), to_text(dict(kept.identity))
        _, digest, identity = self._reader
        connection.execute("INSERT OR IGNORE INTO readers(digest, identity) VALUES(?, ?)", (digest, identity))
        connection.execute("INSERT OR IGNORE INTO versions(names) VALUES(?)", (names,))
        text, now = to_text(reading_to_json(kept.reading)), time.time()
        connection.execute(
            "INSERT OR REPLACE INTO readings SELECT ?, readers.id, ?, ?, ?, versions.id, ?, ? FROM readers, versions "
            "WHERE digest = ? AND names = ?",
            (
                kept.key,
                to_text(item_to_json(kept.item)),
                text,
                checksum(kept.key, text),
                kept.made or now,
                now,
                digest,
                names,
            ),
        )
        return kept.reading

    def _rows(self, reader: str) -> Iterator[tuple[str, Kept | str]]:
        """(key, the reading or what is wrong with it), by key, without holding the file for long."""
        last = ""
        while self._file.exists():
            rows = self._file.read(
                lambda connection, last=last: connection.execute(  # type: ignore[misc]
                    "SELECT key, identity, item, reading, sum, names, made FROM readings "
                    "LEFT JOIN readers ON readers.id = reader LEFT JOIN versions ON versions.id = versions "
                    "WHERE key > ? AND substr(coalesce(digest, ''), 1, ?) = ? ORDER BY key LIMIT ?",
                    (last, len(reader), reader, _CHUNK),
                ).fetchall()
            )
            for key, identity, item, text, stored, names, made in rows:
                try:
                    yield (
                        key,
                        Kept(
                            key,
                            cast("dict[str, object]", _json(identity)),
                            item_of_json(_json(item)),
                            _reading(key, text, stored),
                            cast("dict[str, str]", _json(names)),
                            made,
                        ),
                    )
                except DataError as error:
                    yield key, str(error)
            if len(rows) < _CHUNK:
                return
            last = rows[-1][0]

    def _warn_damaged(self, key: str, why: str) -> None:
        if key not in self._damaged:
            self._damaged.add(key)
            self.warnings.append(f"{self.path}: the reading {key[:12]} is damaged and counts as absent: {why}")


class Claims:
    """What one reader is about to read. The lease is renewed by a thread, from the first claim to the end."""

    def __init__(self, cache: ReadingCache) -> None:
        self._cache = cache
        # Whoever waits for a claim that its own thread holds further up would wait for ever: it may take it over.
        self._thread = f"{process_mark()}:{threading.get_ident()}"
        self.owner = f"{self._thread}:{next(_NUMBERS)}:{time.time_ns()}"
        self._end = threading.Event()
        self._pulse: threading.Thread | None = None

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._pulse is None:
            return
        self._pulse.join()
        with suppress(GateError):  # whatever is wrong with the file was said before, and leases run out
            self._cache._write(self._give_up)

    def take(self, keys: Sequence[str], limit: int | None = None) -> tuple[list[str], dict[str, Reading]]:
        """(keys that are now this owner's to read, at most ``limit``; readings that have come meanwhile).

        The rest is being read by others.
        """
        cache = self._cache

        def work(connection: sqlite3.Connection) -> tuple[list[str], dict[str, Reading]]:
            _expire(connection)
            connection.execute(
                "INSERT OR REPLACE INTO owners VALUES(?, ?, ?)", (self.owner, self._thread, time.time() + cache.lease)
            )
            found, _ = cache._look(connection, keys)
            mine = list[str]()
            for key in keys:
                if key in found:
                    continue
                if limit is not None and len(mine) == limit:
                    break
                if connection.execute(
                    "INSERT INTO claims VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET owner = excluded.owner "
                    "WHERE claims.owner NOT IN (SELECT owner FROM owners WHERE thread != ?)",
                    (key, self.owner, self._thread),
                ).rowcount:
                    mine.append(key)
            return mine, found

        result = cache._write(work)
        if self._pulse is None:
            self._pulse = threading.Thread(target=self._renew, name="retrieval-eval-lease", daemon=True)
            self._pulse.start()
        return result

    def release(self, key: str) -> None:
        """Give up one claim, without a reading."""
        self._cache._write(
            lambda connection: connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, self.owner))
        )

    def _renew(self) -> None:
        while not self._end.wait(self._cache.lease / 3):
            with suppress(GateError):
                self._cache._write(
                    lambda connection: connection.execute(
                        "UPDATE owners SET expires = ? WHERE owner = ?", (time.time() + self._cache.lease, self.owner)
                    )
                )

    def _give_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        connection.execute("DELETE FROM owners WHERE owner = ?", (self.owner,))


def _expire(connection: sqlite3.Connection) -> None:
    """Take away the claims of those that no longer renew their lease, or are gone."""
    now = time.time()
    for owner, thread, expires in connection.execute("SELECT owner, thread, expires FROM owners").fetchall():
        if expires < now or is_gone(thread.rpartition(":")[0]):
            connection.execute("DELETE FROM claims WHERE owner = ?", (owner,))
            connection.execute("DELETE FROM owners WHERE owner = ?", (owner,))


def _versions_of(connection: sqlite3.Connection, reader: int) -> tuple[Mapping[str, str], ...]:
    rows = connection.execute(
        "SELECT DISTINCT names FROM readings JOIN versions ON versions.id = versions WHERE reader = ? ORDER BY names",
        (reader,),
    ).fetchall()
    return tuple(json.loads(names) for (names,) in rows)


def _reading(key: str, text: object, stored: object) -> Reading:
    if not isinstance(text, str) or checksum(key, text) != stored:
        raise DataError("it is not what was stored")
    return reading_of_json(_json(text))


def _json(text: object) -> object:
    try:
        return cast(object, json.loads(cast(str, text)))
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"it is no JSON ({error})") from None
