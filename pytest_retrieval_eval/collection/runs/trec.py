"""A run file in TREC format as a backing of `Run`: streamed for measures, loaded for everything else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.collection.formats.files import PathLike, open_bytes
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.runs.columns import DISTANCES, Columns
from pytest_retrieval_eval.collection.runs.located import Block, Located, Locator
from pytest_retrieval_eval.collection.runs.treclines import FORMAT, read_blocks, refuse_repeated
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels


class TrecFile:
    """A run file that is streamed when something is measured, and loaded when all of it is needed."""

    by_list = False

    def __init__(self, path: PathLike) -> None:
        self.path = path
        open_bytes(path).close()  # what cannot be opened is said at once
        self._state = _state(path)
        self._columns: Columns | None = None
        self._warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed; complete once the file has been read."""
        return self._warnings

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries in the order of the file, which is loaded for this."""
        return self.columns().query_ids

    @property
    def bounds(self) -> Ints:
        """Where each list begins and ends; the file is loaded for this."""
        return self.columns().bounds

    def columns(self) -> Columns:
        """The whole file, loaded once."""
        if self._columns is None:
            self._columns = self._load()
        return self._columns

    def locate(self, qrels: Qrels, *, float32: bool) -> Located:
        """Where the documents of the qrels stand, in one pass and bounded memory."""
        if self._columns is None:
            locator = Locator(qrels, float32=float32)
            seen: set[bytes] = set()
            for block in self._blocks():
                names = block.names
                before = len(seen)
                seen.update(names)
                if len(seen) != before + len(names):
                    break  # the rows of a query do not stand together: they must be gathered first
                locator.add(block)
            else:
                return locator.result()
        return self.columns().locate(qrels, float32=float32)

    def _load(self) -> Columns:
        names: list[bytes] = []
        sizes, docs, scores = [], [], []
        for block in self._blocks():
            names += block.names
            sizes.append(np.diff(block.bounds))
            docs.append(block.docs.packed())
            scores.append(np.asarray(block.scores))
        size, doc, score = np.concatenate(sizes), Ids.join(docs), np.concatenate(scores)
        place: dict[bytes, int] = {}
        lists = np.array([place.setdefault(name, len(place)) for name in names])
        if len(place) < len(names):
            rows = np.argsort(np.repeat(lists, size), kind="stable")
            doc, score = doc[rows], score[rows]
            size = np.bincount(lists, size).astype(np.int64)
        bounds = np.concatenate(([0], np.cumsum(size)))
        query_ids = [name.decode() for name in place]
        columns = Columns.ranked(query_ids, bounds, doc, score, warnings=self._warnings)
        if len(place) < len(names):
            for block in columns.blocks():
                refuse_repeated(block, lambda row: str(self.path))
        return columns

    def _blocks(self) -> Iterator[Block]:
        """The checked rows of the file; a query whose rows do not stand together comes more than once."""
        self._unchanged()
        rise = fall = some = False
        misranked = 0
        for block in read_blocks(self.path):
            some = True
            if not fall:
                up, fall = block.trend()
                rise |= up
            misranked += block.misranked
            yield block
        self._unchanged()
        if not some:
            raise DataError(f"{self.path}: the run has no line; expected lines of the form {FORMAT}")
        if rise and not fall:
            self._warnings = (f"{self.path}: {DISTANCES}",)
        elif misranked:
            self._warnings = (f"{self.path}: in {misranked} rows the rank contradicts the score; the scores were used",)

    def _unchanged(self) -> None:
        if _state(self.path) != self._state:
            raise DataError(f"{self.path}: the file has changed since the run was opened; read the run again")


def _state(path: PathLike) -> tuple[int, int, int]:
    try:
        stat = os.stat(path)
    except OSError as error:
        raise DataError(f"{path}: the file has gone since the run was opened ({error.strerror})") from None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino
