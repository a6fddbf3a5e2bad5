"""One SQLite file for many processes: opened, checked, written in whole transactions, replaced where it is damaged.

Every write is a ``BEGIN IMMEDIATE``: a transaction that begins by reading and writes later is refused by SQLite, and
its work lost, as soon as another process writes in between. The file is in WAL mode, which needs memory that is
shared by its processes: a network file system has none.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pytest_retrieval_eval.errors import DataError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

PATIENCE = 60.0  # seconds to wait for another process's transaction; each takes milliseconds
_NETWORK = ("nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "fuse.sshfs", "9p", "beegfs", "lustre")
# Connections of a parent process: closing one in the child could disturb the parent, so they are kept, unused.
_INHERITED: list[sqlite3.Connection] = []


class DamagedError(Exception):
    """SQLite cannot make sense of the file."""


def filesystem_of(path: Path, mounts: str | None = None) -> str | None:
    """The kind of file system that a path lies on, such as ``ext4`` or ``nfs4``; None where it cannot be told.

    ``mounts`` is the text of Linux's ``/proc/self/mounts``.

    >>> filesystem_of(Path("/srv/data/cache"), "/dev/sda1 / ext4 rw 0 0\\nhost:/data /srv/data nfs4 rw 0 0\\n")
    'nfs4'
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    place = os.path.realpath(path)
    kind, longest = None, -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # of two on one point the later one is seen
            kind, longest = fields[2], len(point)
    return kind


class SqliteFile:
    """A SQLite file with a fixed schema; one connection for each process that uses it.

    ``schema`` holds ``CREATE … IF NOT EXISTS`` statements, ``application`` and ``version`` mark whose file it is.
    What happens to the file that its owner should know is appended to ``warnings``.
    """

    def __init__(
        self, path: Path, schema: str, *, application: int, version: int, read_only: bool, warnings: list[str]
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._schema, self._application, self._version = schema, application, version
        self._warnings = warnings
        self._lock, self._process = threading.RLock(), os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int, int] | None = None  # process, device, inode
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    def read(self, work: Work[T]) -> T:
        """``work(connection)``; it sees one state of the file per statement. It must not write."""
        return self._guarded(work)

    def write(self, work: Work[T]) -> T:
        """``work(connection)`` in one transaction, which is kept as a whole or not at all. It may be done twice."""
        if self.read_only:
            raise DataError(f"{self.path} was opened for reading only")

        def transaction(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

        return self._guarded(transaction)

    def exists(self) -> bool:
        """Whether there is a file yet."""
        return self.path.exists()

    def close(self) -> None:
        """Close this process's connection. The file may be used again."""
        with self._lock:
            self._forget()
            if self._copy is not None:
                self._copy.cleanup()
                self._copy = None

    # --- how it is done -------------------------------------------------------------------------------

    def _guarded(self, work: Work[T]) -> T:
        if self._process != os.getpid():  # another thread of the parent may have held the lock at the fork
            self._lock, self._process = threading.RLock(), os.getpid()
        with self._lock:
            try:
                return self._once(work)
            except DamagedError as error:
                self._set_aside(error)
            try:
                return self._once(work)
            except DamagedError as error:
                raise DataError(f"{self.path}: {error}, also when it was made anew; is the disk sound?") from None

    def _once(self, work: Work[T]) -> T:
        try:
            return work(self._connect())
        except sqlite3.OperationalError as error:
            raise self._said(error) from error
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError):
            raise  # a fault of this program
        except sqlite3.DatabaseError as error:
            raise DamagedError(str(error)) from error

    def _said(self, error: sqlite3.OperationalError) -> DataError | DamagedError:
        text = str(error)
        if "full" in text:
            return DataError(
                f"{self.path}: the disk is full ({text}); what was stored before is safe. Free some space, or move the "
                "folder, and run again: only what is not stored yet is read again"
            )
        if "locked" in text:
            return DataError(
                f"{self.path}: another process has kept the file locked for {PATIENCE:.0f} s ({text}); end it, or wait"
            )
        if "readonly" in text or "read-only" in text:
            return DataError(f"{self.path}: the file cannot be written ({text}); for reading only, use the mode ro")
        if "no such table" in text or "no such column" in text:
            return DamagedError(text)
        return DataError(f"{self.path}: {text}")

    def _connect(self) -> sqlite3.Connection:
        """This process's connection, opened anew after a fork and where the file is no longer the one opened."""
        if self._connection is not None and self._opened is not None:
            process, *file = self._opened
            if process != os.getpid():
                _INHERITED.append(self._connection)
                self._connection = None
            elif file != self._inode():
                self._forget()
            else:
                return self._connection
        self._connection = self._open_to_read() if self.read_only else self._open_to_write()
        return self._connection

    def _inode(self) -> list[int]:
        try:
            found = os.stat(self.path)
        except OSError:
            return [-1, -1]
        return [found.st_dev, found.st_ino]

    def _forget(self) -> None:
        if self._connection is not None:
            if self._opened is not None and self._opened[0] != os.getpid():
                _INHERITED.append(self._connection)
            else:
                with suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None

    def _open_to_write(self) -> sqlite3.Connection:
        kind = filesystem_of(self.path.parent)
        if kind in _NETWORK:
            raise DataError(
                f"{self.path} lies on a network file system ({kind}), where SQLite loses data; choose a folder on a "
                "disk of this machine, and share it with `pytest-retrieval-eval cache push` and `pull`"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.path.parent}: the folder cannot be made: {error.strerror or error}") from error
        from filelock import FileLock

        try:
            # Nobody may open the file while another sets a damaged one aside.
            with FileLock(f"{self.path}.lock"):
                return self._opened_to_write()
        except OSError as error:
            raise DataError(
                f"{self.path}: the folder cannot be written: {error.strerror or error}; for reading only, use the mode "
                "ro"
            ) from error

    def _opened_to_write(self) -> sqlite3.Connection:
        connection = self._plain(str(self.path))
        try:
            marked = self._check_owner(connection)
            connection.execute("PRAGMA journal_mode=WAL")
            # In WAL mode this loses nothing when a process is killed; at a power cut perhaps the last readings.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in self._schema.split(";"):
                connection.execute(statement)
            if not marked:
                connection.execute(f"PRAGMA application_id={self._application}")
                connection.execute(f"PRAGMA user_version={self._version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        self._opened = (os.getpid(), *self._inode())  # type: ignore[assignment]
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        self._opened = (os.getpid(), *self._inode())  # type: ignore[assignment]
        place = f"file:{_quoted(self.path)}"
        connection = self._plain(f"{place}?mode=ro")
        try:
            self._check_owner(connection)
            return connection
        except sqlite3.OperationalError:
            # A folder in which SQLite can make no files of its own.
            connection.close()
        except BaseException:
            connection.close()
            raise
        log = self.path.with_name(self.path.name + "-wal")
        if log.exists() and log.stat().st_size:
            # What a process that was killed has left in the log belongs to the file.
            if self._copy is not None:
                self._copy.cleanup()
            self._copy = tempfile.TemporaryDirectory(prefix="retrieval-eval-")
            for source in (self.path, log):
                shutil.copyfile(source, Path(self._copy.name) / source.name)
            connection = self._plain(str(Path(self._copy.name) / self.path.name))
        else:
            connection = self._plain(f"{place}?immutable=1")
        try:
            self._check_owner(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _plain(self, place: str) -> sqlite3.Connection:
        return sqlite3.connect(
            place,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            uri=place.startswith("file:"),
        )

    def _check_owner(self, connection: sqlite3.Connection) -> bool:
        """Whether it is marked as ours; one of something else, or of a later version of this program, is refused."""
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if tables and application != self._application:
            raise DataError(f"{self.path} is a SQLite database of another program; choose another folder")
        if version > self._version:
            raise DataError(
                f"{self.path} was written by a later version of pytest-retrieval-eval (its schema is {version}, known "
                f"here is {self._version}); update the package, or choose another folder"
            )
        return bool(application == self._application and version == self._version)

    def _set_aside(self, error: DamagedError) -> None:
        """Move a damaged file out of the way; nothing is deleted, and nothing is done by two processes at once."""
        self._forget()
        if self.read_only:
            raise DataError(
                f"{self.path} is damaged ({error}), and the mode ro replaces nothing; use rw, or restore the file"
            )
        from filelock import FileLock

        with FileLock(f"{self.path}.lock"):
            if not self._is_damaged():
                return  # another process was here first
            stem = f"{self.path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
            try:
                for ending in ("", "-wal", "-shm"):
                    source = self.path.with_name(self.path.name + ending)
                    if source.exists():
                        os.replace(source, self.path.with_name(stem + ending))
            except OSError as failed:
                raise DataError(
                    f"{self.path} is damaged ({error}) and cannot be moved aside: {failed.strerror or failed}"
                ) from failed
        self._warnings.append(
            f"{self.path} was damaged ({error}): it was moved to {stem}, and an empty one begun beside it; its "
            "readings are made again as they are asked for"
        )

    def _is_damaged(self) -> bool:
        if not self.path.exists():
            return False
        connection = self._plain(f"file:{_quoted(self.path)}?mode=rw")
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
        except sqlite3.OperationalError as error:
            raise self._said(error) from error
        except sqlite3.DatabaseError:
            return True
        finally:
            connection.close()


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))
