"""A run as columns: every list in rank order, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.runs.located import Block, Located, Locator, RankOrder

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels

_ROWS = 1 << 15  # rows that are located at once: their columns stay in the processor's cache


@dataclass(frozen=True, eq=False, repr=False)
class Chunks:
    """Which part of which document each row is; None, and -1, where a row does not say."""

    doc_id: Sequence[str | None]
    start: Ints
    end: Ints

    def __getitem__(self, rows: Ints) -> Chunks:
        return Chunks([self.doc_id[row] for row in rows.tolist()], self.start[rows], self.end[rows])

    def at(self, row: int) -> dict[str, str | int | None]:
        """What one row says."""
        start, end = int(self.start[row]), int(self.end[row])
        return {
            "doc_id": self.doc_id[row],
            "start": None if start < 0 else start,
            "end": None if end < 0 else end,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """The lists of a run; list i has the rows ``bounds[i]`` … ``bounds[i + 1]``, best first.

    ``scores`` (float64) is None where the run has none. With ``by_list`` the given order counts and nothing
    ties; else the rows were sorted by score, ties by document id, both descending.
    """

    query_ids: tuple[str, ...]
    bounds: Ints
    docs: Ids
    scores: npt.NDArray[np.float64] | None
    by_list: bool
    chunks: Chunks | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def ranked(
        cls,
        query_ids: Sequence[str],
        bounds: Ints,
        docs: Ids,
        scores: npt.NDArray[np.float64],
        chunks: Chunks | None = None,
        warnings: Sequence[str] = (),
    ) -> Columns:
        """Columns by score, from lists in any order."""
        order = RankOrder(scores, bounds).rows(docs)
        if order is not None:
            docs, scores = docs[order], scores[order]
            chunks = None if chunks is None else chunks[order]
        return cls(tuple(query_ids), bounds, docs, scores, False, chunks, tuple(warnings))

    def __post_init__(self) -> None:
        self.bounds.flags.writeable = False
        if self.scores is not None:
            self.scores.flags.writeable = False

    def columns(self) -> Columns:
        """Themselves."""
        return self

    def with_warnings(self, *warnings: str) -> Columns:
        """The same columns with more to warn of."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def only_rise(self) -> bool:
        """Whether scores rise somewhere down the lists, and fall nowhere."""
        rise = False
        for block in self.blocks():
            up, fall = block.trend()
            if fall:
                return False
            rise |= up
        return rise

    def blocks(self) -> Iterator[Block]:
        """The columns, cut between queries."""
        queries = Ids.of(self.query_ids)
        for low, high in cuts(self.bounds):
            rows = slice(int(self.bounds[low]), int(self.bounds[high]))
            yield Block(
                queries[low:high],
                self.bounds[low : high + 1] - rows.start,
                self.docs[rows],
                None if self.scores is None else self.scores[rows],
            )

    def locate(self, qrels: Qrels, *, float32: bool) -> Located:
        """Where the documents of the qrels stand."""
        locator = Locator(qrels, by_list=self.by_list and not float32, float32=float32)
        for block in self.blocks():
            locator.add(block)
        return locator.result()


def cuts(bounds: Ints, rows: int = _ROWS) -> Iterator[tuple[int, int]]:
    """Stretches of lists, first and behind the last, of about so many rows each."""
    low, count = 0, len(bounds) - 1
    while low < count:
        high = int(np.searchsorted(bounds, bounds[low] + rows, "right")) - 1
        high = min(max(high, low + 1), count)
        yield low, high
        low = high


DISTANCES = (
    "scores rise down every list: they look like distances, where less is better; expected scores where more is better"
)
