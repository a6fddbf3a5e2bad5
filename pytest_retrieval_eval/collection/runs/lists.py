"""Ranked lists, one query after another, gathered into the columns of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.runs.columns import DISTANCES, Chunks, Columns
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.errors import DataError


class Lists:
    """Collects lists; ``where`` says in errors what a list is: ``file:line``, or the query."""

    def __init__(self) -> None:
        self._where: dict[str, str] = {}  # of each query
        self._sizes: list[int] = []
        self._docs: list[str] = []
        self._scores: list[npt.NDArray[np.float64]] = []
        self._scored: str | None = None  # where the first list with scores is
        self._bare: str | None = None  # and the first one without
        self._parts: dict[int, Hit] = {}  # the rows that are parts of documents

    def add(self, query_id: str, docs: Sequence[str], scores: Sequence[float] | None, where: str) -> None:
        """A list, best first; ``scores`` is None where its documents have none."""
        if query_id in self._where:
            raise DataError(
                f"{where}: query {query_id!r} comes a second time (the first: {self._where[query_id]}); "
                "expected one list for each query"
            )
        self._where[query_id] = where
        self._sizes.append(len(docs))
        if not docs:
            return
        if "" in docs:
            raise DataError(
                f"{where}: the hit at rank {docs.index('') + 1} has the empty string as its id; expected a document id"
            )
        self._docs += docs
        if scores is None:
            self._bare = self._bare or where
        else:
            self._scored = self._scored or where
            try:
                values = np.array(scores, np.float64)
            except OverflowError:
                raise DataError(f"{where}: a score is too large for a float") from None
            if np.isnan(values).any():
                doc = docs[int(np.isnan(values).argmax())]
                raise DataError(f"{where}: document {doc!r} has the score NaN; expected a number")
            self._scores.append(values)
        if self._bare and self._scored:
            raise DataError(
                f"{self._scored}: the list has scores, but that of {self._bare} has none; "
                "expected scores for all documents of a run, or for none"
            )

    def add_hits(self, query_id: str, hits: Sequence[Hit], where: str) -> None:
        """A list of hits, best first; they may be parts of documents."""
        scores = [hit.score for hit in hits if hit.score is not None]
        if scores and len(scores) < len(hits):
            doc = next(hit.id for hit in hits if hit.score is None)
            raise DataError(
                f"{where}: document {doc!r} has no score, others of the list have one; "
                "expected scores for all documents of a run, or for none"
            )
        first = len(self._docs)
        self.add(query_id, [hit.id for hit in hits], scores or None, where)
        for row, hit in enumerate(hits, first):
            if hit.doc_id is None and hit.start is None and hit.end is None:
                continue
            start, end = hit.start, hit.end
            if (start is None) != (end is None) or (start is not None and end is not None and not 0 <= start <= end):
                raise DataError(
                    f"{where}: the chunk {hit.id!r} has start {start} and end {end}; "
                    "expected two integers, 0 <= start <= end (code points, end exclusive)"
                )
            self._parts[row] = hit

    def columns(self, *, by_list: bool) -> Columns:
        """The lists, as they stand (``by_list``) or sorted by score."""
        bounds = np.concatenate(([0], np.cumsum(np.array(self._sizes, np.int64))))
        docs = Ids.of(self._docs)
        queries = tuple(self._where)
        if not by_list:
            if self._bare:
                raise DataError(f"{self._bare}: the list has no scores; expected scores, by which the run is ordered")
            scores = np.concatenate([np.zeros(0), *self._scores])
            return Columns.ranked(queries, bounds, docs, scores, self._chunks())
        columns = Columns(
            queries,
            bounds,
            docs,
            np.concatenate(self._scores) if self._scores else None,
            by_list=True,
            chunks=self._chunks(),
        )
        return columns.with_warnings(DISTANCES) if columns.only_rise() else columns

    def _chunks(self) -> Chunks | None:
        if not self._parts:
            return None
        doc_id: list[str | None] = [None] * len(self._docs)
        start = np.full(len(self._docs), -1, np.int64)
        end = start.copy()
        for row, hit in self._parts.items():
            doc_id[row] = hit.doc_id
            start[row] = -1 if hit.start is None else hit.start
            end[row] = -1 if hit.end is None else hit.end
        return Chunks(doc_id, start, end)
