"""What has just been judged: a line each, written at once, so that whoever is killed loses nothing that was paid for.

A record begins and ends with a line end and is one ``write`` behind the end of the file. A process that is killed
within it leaves a part of a line, and the next record begins on a line of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pytest_retrieval_eval.collection.formats.files import PathLike, locked, read_bytes, utf8
from pytest_retrieval_eval.errors import DataError

SIDE = ".index"
"""The folder, beside the judgments, of what can be made anew: locks, and columns of large files."""


def side_folder(folder: Path) -> Path:
    """The folder of what can be made anew, made and hidden from version control."""
    place = folder / SIDE
    place.mkdir(parents=True, exist_ok=True)
    ignore = place / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return place


def writing(folder: Path) -> AbstractContextManager[None]:
    """The lock of a folder of judgments, which whoever writes in it holds."""
    return locked(side_folder(folder) / "lock")


def append(path: Path, line: str) -> None:
    """Write one line; the caller holds the lock, so that nobody takes the file away meanwhile."""
    data = utf8(f"\n{line}\n")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        written = os.write(file, data)
    finally:
        os.close(file)
    if written != len(data):
        raise DataError(f"{path}: only {written} of {len(data)} bytes could be written; is the disk full?")


@dataclass(slots=True)
class Read:
    """The records of a journal, with their places; ``torn`` counts lines of which only a part was written."""

    rows: list[tuple[dict[str, object], str]]
    torn: int = 0

    def __iter__(self) -> Iterator[tuple[dict[str, object], str]]:
        return iter(self.rows)


def read_journal(path: PathLike) -> Read:
    """What a journal holds; one that is not there is empty."""
    if not os.path.exists(path):
        return Read([])
    found = Read([])
    for number, raw in enumerate(read_bytes(path).split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            row = json.loads(raw.decode("utf-8"))
        except ValueError:  # also of bytes that are half a character
            row = None
        if isinstance(row, dict):
            found.rows.append((row, f"{path}:{number}"))
        else:
            found.torn += 1
    return found
