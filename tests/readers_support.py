"""Readers that count, and what several processes do with them; importable by those processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pytest_retrieval_eval.readers.reading import Item, Passage, Reading
from pytest_retrieval_eval.readers.readings.cache import CachedReader, ReadingCache
from pytest_retrieval_eval.readers.seat import SeatedReader

IDENTITY = {"kind": "counting"}


def items(*names: object) -> list[Item]:
    """An item of one document for each name."""
    return [Item("who?", (Passage(f"{name} did it.", str(name)),)) for name in names]


class Counting:
    """Answers with the titles; ``log`` gets a line for each reading, whichever process makes it."""

    def __init__(self, log: Path, *, before: Callable[[Item], None] = lambda item: None, identity=IDENTITY) -> None:
        self.log, self.before, self.identity = log, before, identity
        self.batches: list[list[Item]] = []
        self.closed = 0

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        self.batches.append(list(items))
        for number, item in enumerate(items):
            self.before(item)
            title = " ".join(passage.title for passage in item.documents)
            write_line(self.log, title)
            yield number, Reading(title, "ok", 5, 1)

    def close(self) -> None:
        self.closed += 1

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []


def write_line(path: Path, text: str) -> None:
    """Append a line as a whole, also with other processes."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


def texts(reader, wanted: Sequence[Item]) -> list[str]:
    """The texts of the readings, in the order of the items."""
    found = dict(reader.read(wanted))
    assert sorted(found) == list(range(len(wanted)))
    return [found[place].text for place in range(len(wanted))]


def read_in_order(folder: Path, names: Sequence[object], seconds: float = 0.01, lease: float = 30.0) -> list[str]:
    """What one of many processes does."""
    with ReadingCache(folder / "cache", lease=lease) as cache:
        reader = Counting(folder / "log", before=lambda item: time.sleep(seconds))
        return texts(CachedReader(reader, cache), items(*names))


def read_and_be_killed(folder: Path, names: Sequence[object], after: int, lease: float) -> None:
    """Read so many items, and be killed with the others claimed."""
    count = 0

    def before(item: Item) -> None:
        nonlocal count
        if count == after:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    cache = ReadingCache(folder / "cache", lease=lease)
    texts(CachedReader(Counting(folder / "log", before=before), cache), items(*names))


def read_as_nobody(folder: Path, names: Sequence[object]) -> tuple[list[str], str]:
    """What somebody without rights reads in the mode ro, and what the mode rw says to them."""
    os.setuid(65534)
    with ReadingCache(folder / "cache", "ro") as cache:
        found = texts(CachedReader(lambda: Counting(folder / "log"), cache, identity=IDENTITY), items(*names))
    try:
        texts(CachedReader(Counting(folder / "log2"), ReadingCache(folder / "cache")), items("new"))
    except Exception as error:
        return found, f"{type(error).__name__}: {error}"
    return found, "written"


class Model(Counting):
    """Logs when it comes to life and when it is freed, too."""

    def __init__(self, log: Path, **keywords) -> None:
        super().__init__(log, **keywords)
        write_line(log, "+")

    def close(self) -> None:
        write_line(self.log, "-")


def read_on_the_seat(
    folder: Path, names: Sequence[object], cached: bool, kind: str = "counting", seconds: float = 0.01, die: int = -1
) -> list[str]:
    """What one of many processes does, which share one seat; with ``die`` it is killed at that reading."""
    count = 0

    def before(item: Item) -> None:
        nonlocal count
        if count == die:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        time.sleep(seconds)

    identity = {"kind": kind}
    reader = SeatedReader(
        lambda: Model(folder / "log", before=before, identity=identity), identity, seat=folder / "seat"
    )
    with ReadingCache(folder / "cache", "rw" if cached else "off") as cache:
        found = texts(CachedReader(reader, cache), items(*names))
    reader.close()
    return found


class Shrinking(Model):
    """Runs out of memory at the second item of its life, and goes on as another reader."""

    def __init__(self, log: Path) -> None:
        super().__init__(log, identity={"kind": "shrinking", "rows": 8}, before=self._shrink)
        self.read_so_far = 0

    def _shrink(self, item: Item) -> None:
        self.read_so_far += 1
        if self.read_so_far == 2:
            self.identity = {"kind": "shrinking", "rows": 4}
