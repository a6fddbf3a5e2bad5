"""One copy of a model on a machine: the process that has the seat reads for all, the others hand it their items.

Items and readings travel through a small SQLite file. The seat itself is a file lock, so that a process that is
killed gives it up as well; what it had not answered is still there for whoever takes the seat next.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import platform
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_retrieval_eval.errors import DataError, GateError, raised
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.promise import check_promise
from pytest_retrieval_eval.readers.reading import Item, Reader, Reading, identity_digest
from pytest_retrieval_eval.readers.readings.kept import (
    item_of_json,
    item_to_json,
    reading_of_json,
    reading_to_json,
    to_text,
)
from pytest_retrieval_eval.readers.readings.sqlitefile import SqliteFile

if TYPE_CHECKING:
    from filelock import BaseFileLock

LEASE = 30.0  # seconds for which nobody needs to hear of a process that waits
_SHORTEST, _LONGEST = 0.01, 0.25
_APPLICATION, _VERSION = 0x52655365, 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS owners(owner TEXT PRIMARY KEY, expires REAL NOT NULL);
CREATE TABLE IF NOT EXISTS pending(
  id INTEGER PRIMARY KEY AUTOINCREMENT, reader TEXT NOT NULL, owner TEXT NOT NULL, place INTEGER NOT NULL,
  item TEXT NOT NULL, UNIQUE(owner, place));
CREATE TABLE IF NOT EXISTS answers(
  owner TEXT NOT NULL, place INTEGER NOT NULL, reading TEXT NOT NULL, PRIMARY KEY(owner, place))
"""
_FAILED, _ABSENT = -1, -2  # the places of an answer that says why there is none; the second: the model is not here
_NUMBERS = itertools.count()
_Place = tuple[int, str, int]  # id of the pending row, owner, place
_Answer = tuple[Reading, "Mapping[str, object] | None"]  # and the reader's identity, where it is not the promised one


def machine_seat() -> Path:
    """The folder of this user's seat on this machine: sessions in other folders sit on it, too."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    folder = Path(tempfile.gettempdir()) / f"pytest-retrieval-eval-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.lstat().st_uid != user:
        raise DataError(f"{folder} belongs to another user, and readings must not pass through it; remove it")
    return folder


class SeatedReader:
    """A reader whose model is on the machine at most once, however many processes use it.

    ``make`` makes the reader, and is called only by the process that has the seat: at its first item, and in a thread
    of its own, which then reads for every process that asks for a reader of the same ``identity``. The reader is
    closed when nobody has anything to read and another reader is waited for, and at :meth:`close`, which the end of
    the process calls at the latest. Readers of different identities take turns on one seat. A reader without an
    identity (None) cannot read for others, and waits for its turn.

    ``identity`` is that of the last reading: a reader that ran out of memory goes on under another one. ``seat`` is the
    folder of the seat (None: this user's on this machine); after ``lease`` seconds without a word from a process its
    place is free.

    An exception of the reader reaches whoever asked: as it was in the process that reads, and as a GateError
    elsewhere.

    >>> import tempfile
    >>> from pytest_retrieval_eval import CallableReader, Item, Passage, SeatedReader
    >>> made = CallableReader(lambda query, texts: texts[0].upper(), identity="shouting, v1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reader = SeatedReader(lambda: made, made.identity, seat=folder)
    ...     print([reading.text for _, reading in reader.read([Item("who?", (Passage("Ann."),))])])
    ...     reader.close()
    ['ANN.']
    """

    def __init__(
        self,
        make: Callable[[], Reader],
        identity: Mapping[str, object] | None,
        *,
        seat: str | os.PathLike[str] | None = None,
        lease: float = LEASE,
    ) -> None:
        self.identity = identity
        self._promised = identity
        self._make = make
        self._name = identity_digest(identity) if identity is not None else _unique()
        self._mail = _Mail(machine_seat() if seat is None else Path(seat), lease)
        self._holder: _Holder | None = None
        self._errors: dict[str, BaseException] = {}  # what went wrong in this process, by what it tells the others

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        """As any reader: read here, or by the process that has the seat."""
        left = dict(enumerate(items))
        owner = _unique()
        pause = _SHORTEST
        try:
            while left:
                self._mail.ask(self._name, owner, left)
                answers, failure = self._mail.answers(owner)
                if failure is not None:
                    raise self._failure(*failure)
                for place, (reading, identity) in answers.items():
                    if left.pop(place, None) is not None:
                        self.identity = self._promised if identity is None else identity
                        yield place, reading
                pause = _SHORTEST if answers else min(1.5 * pause, _LONGEST)
                if left:
                    self._sit_down()
                    time.sleep(pause)
        finally:
            with suppress(GateError):  # else the lease runs out
                self._mail.leave(owner)

    def close(self) -> None:
        """Give up the seat, if this process has it: the reader is closed, and another process may sit down."""
        if self._holder is not None:
            self._holder.end()
            self._holder = None

    def _sit_down(self) -> None:
        if self._holder is not None and self._holder.sits():
            return
        lock = self._mail.sit_down()
        if lock is None:
            return
        try:
            # Whoever had the seat until now may have answered all: then no model is made.
            wanted = bool(self._mail.asked(self._name))
        except BaseException:
            lock.release()
            raise
        if not wanted:
            lock.release()
            return
        self._holder = _Holder(self._make, self._promised, self._name, self._mail, lock, self._errors)
        self._holder.start()

    def _failure(self, sentence: str, absent: bool) -> BaseException:
        kind = AbsentReaderError if absent else GateError
        return self._errors.get(sentence) or kind(f"the process that reads for all could not: {sentence}")


class _Holder(threading.Thread):
    """Has the seat, makes the model and reads until it is told to end or another reader is waited for."""

    def __init__(
        self,
        make: Callable[[], Reader],
        promised: Mapping[str, object] | None,
        name: str,
        mail: _Mail,
        lock: BaseFileLock,
        errors: dict[str, BaseException],
    ) -> None:
        super().__init__(name="retrieval-eval-reader", daemon=True)  # daemon: its end is asked for at the exit
        self._make, self._reader, self._mail, self._lock, self._errors = make, name, mail, lock, errors
        self._promised = promised
        self._ending = threading.Event()
        self._process = os.getpid()

    def sits(self) -> bool:
        return self._process == os.getpid() and self.is_alive()

    def start(self) -> None:
        atexit.register(self.end)
        super().start()

    def end(self) -> None:
        """Finish the reading at hand, and leave."""
        if self._process != os.getpid():
            return  # a child of the process that has the seat
        self._ending.set()
        self.join()
        atexit.unregister(self.end)

    def run(self) -> None:
        model: Reader | None = None
        try:
            model = self._make()
            if self._promised is not None:
                check_promise(self._promised, model)
            pause = _SHORTEST
            while not self._ending.is_set():
                asked = self._mail.asked(self._reader)
                if asked:
                    self._answer(model, asked)
                    pause = _SHORTEST
                elif self._mail.others_wait(self._reader):
                    return
                else:
                    pause = min(1.5 * pause, _LONGEST)
                    self._ending.wait(pause)
        except BaseException as error:
            self._fail(error)
        finally:
            try:
                if model is not None:
                    model.close()
            finally:
                self._lock.release()

    def _answer(self, model: Reader, asked: Mapping[str, list[_Place]]) -> None:
        items = list(asked)
        left = set(range(len(items)))
        readings = iter(model.read([item_of_json(json.loads(item)) for item in items]))
        try:
            for number, reading in readings:
                if number not in left:
                    raise GateError(
                        f"the reader gave a reading for item {number}, which it was not asked or has given before"
                    )
                left.remove(number)
                identity = model.identity
                answer = {
                    "reading": reading_to_json(reading),
                    "identity": None if identity is None or identity == self._promised else dict(identity),
                }
                self._mail.answer(asked[items[number]], to_text(answer))
                if self._ending.is_set():
                    return
        finally:
            close = getattr(readings, "close", None)
            if close is not None:
                close()
        if left:
            raise GateError(f"the reader gave no reading for {len(left)} of {len(items)} items")

    def _fail(self, error: BaseException) -> None:
        """Tell everyone who waits for this reader; who comes later makes a new attempt."""
        sentence = str(error) if isinstance(error, GateError) else raised(error)
        self._errors[sentence] = error
        with suppress(GateError):
            self._mail.fail(self._reader, sentence, isinstance(error, AbsentReaderError))


class _Mail:
    """Who waits for what, and what was read for them."""

    def __init__(self, folder: Path, lease: float) -> None:
        self._folder, self._lease = folder, lease
        self._renewed: dict[str, float] = {}
        self._file = SqliteFile(
            folder / "seat.sqlite", _SCHEMA, application=_APPLICATION, version=_VERSION, read_only=False, warnings=[]
        )

    def sit_down(self) -> BaseFileLock | None:
        """The seat, or None where somebody has it."""
        from filelock import FileLock, Timeout

        lock = FileLock(self._folder / "seat.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return lock

    def ask(self, reader: str, owner: str, items: Mapping[int, Item]) -> None:
        """Be heard of, and ask (again, where the lease ran out meanwhile) for these items."""
        now = time.time()
        if now - self._renewed.get(owner, 0) < self._lease / 3:
            return

        def work(connection: sqlite3.Connection) -> None:
            known = connection.execute(
                "UPDATE owners SET expires = ? WHERE owner = ?", (now + self._lease, owner)
            ).rowcount
            if known:
                return
            connection.execute("INSERT INTO owners VALUES(?, ?)", (owner, now + self._lease))
            connection.executemany(
                "INSERT OR IGNORE INTO pending(reader, owner, place, item) VALUES(?, ?, ?, ?)",
                [(reader, owner, place, to_text(item_to_json(item))) for place, item in items.items()],
            )

        self._file.write(work)
        self._renewed[owner] = now

    def answers(self, owner: str) -> tuple[dict[int, _Answer], tuple[str, bool] | None]:
        """What has been read for an owner since it last asked, and why nothing more will be, if so.

        With the sentence goes whether it is that the model is not on this machine.
        """
        query = "SELECT place, reading FROM answers WHERE owner = ?"
        rows = self._file.read(lambda connection: connection.execute(query, (owner,)).fetchall())
        if rows:
            self._file.write(
                lambda connection: connection.executemany(
                    "DELETE FROM answers WHERE owner = ? AND place = ?", [(owner, place) for place, _ in rows]
                )
            )
        found = {place: json.loads(text) for place, text in rows if place >= 0}
        failure = next(((text, place == _ABSENT) for place, text in rows if place < 0), None)
        return {place: (reading_of_json(each["reading"]), each["identity"]) for place, each in found.items()}, failure

    def leave(self, owner: str) -> None:
        """Ask for nothing any more."""
        self._renewed.pop(owner, None)

        def work(connection: sqlite3.Connection) -> None:
            for table in ("owners", "pending", "answers"):
                connection.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))

        self._file.write(work)

    def asked(self, reader: str) -> dict[str, list[_Place]]:
        """Each item that is asked of a reader, with everyone who asks; of those that are still heard of."""
        self._drop_the_silent()
        rows = self._file.read(
            lambda connection: connection.execute(
                "SELECT item, id, owner, place FROM pending WHERE reader = ? ORDER BY id", (reader,)
            ).fetchall()
        )
        found: dict[str, list[_Place]] = {}
        for item, *place in rows:
            found.setdefault(item, []).append(cast(_Place, tuple(place)))
        return found

    def others_wait(self, reader: str) -> bool:
        """Whether another reader is waited for."""
        query = "SELECT count(*) FROM pending WHERE reader != ?"
        return bool(self._file.read(lambda connection: connection.execute(query, (reader,)).fetchone()[0]))

    def answer(self, places: Sequence[_Place], text: str) -> None:
        """Give a reading to everyone who asked for it and has not left."""

        def work(connection: sqlite3.Connection) -> None:
            for number, owner, place in places:
                if connection.execute("DELETE FROM pending WHERE id = ? AND owner = ?", (number, owner)).rowcount:
                    connection.execute("INSERT OR REPLACE INTO answers VALUES(?, ?, ?)", (owner, place, text))

        self._file.write(work)

    def fail(self, reader: str, sentence: str, absent: bool) -> None:
        """Answer everyone who waits for a reader with a sentence."""
        place = _ABSENT if absent else _FAILED

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO answers SELECT DISTINCT owner, ?, ? FROM pending WHERE reader = ?",
                (place, sentence, reader),
            )
            connection.execute("DELETE FROM pending WHERE reader = ?", (reader,))

        self._file.write(work)

    def _drop_the_silent(self) -> None:
        now = time.time()
        query = "SELECT owner FROM owners WHERE expires < ?"
        silent = self._file.read(lambda connection: connection.execute(query, (now,)).fetchall())
        for (owner,) in silent:
            self.leave(owner)


def _unique() -> str:
    return f"{platform.node()}:{os.getpid()}:{next(_NUMBERS)}:{time.time_ns()}"
