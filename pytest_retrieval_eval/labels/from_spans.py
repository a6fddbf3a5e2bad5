"""Labels of chunks from gold spans: a chunk is relevant that shares enough with a span.

What counts is the overlap as a part of the *shorter* of the two, so that neither a long chunk nor a short one is
favoured. Each run is labelled by its own chunks: those of the table, or what its hits say of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.collection.spans.extents import beyond_end, extents
from pytest_retrieval_eval.collection.spans.stale import current_spans
from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.labels.labelling import Labelling, qrels_from

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus, Dataset
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.chunks import Chunks
    from pytest_retrieval_eval.collection.spans.spans import Spans

MIN_OVERLAP = 0.5
_NAMED = 5  # how many chunks a sentence names


def spans_to_qrels(spans: Spans, chunks: Chunks, min_overlap: float = MIN_OVERLAP) -> Qrels:
    """The chunks of a table that hold gold: of each query those that share at least ``min_overlap`` of the shorter of
    the two with a span, with the largest grade of such spans. Touching is not overlapping.

    A query of which no chunk holds gold stays a query without judgments. A chunk of a gold document without offsets is
    a DataError.

    >>> from pytest_retrieval_eval import Chunk, Chunks, Spans
    >>> chunks = Chunks.of({"a": Chunk("guide", 0, 100), "b": Chunk("guide", 100, 200)})
    >>> spans_to_qrels(Spans.of({"q": [("guide", 90, 110)], "r": [("guide", 95, 120)]}), chunks).to_dict()
    {'q': {'a': 1.0, 'b': 1.0}, 'r': {'b': 1.0}}
    """
    gold = _Gold(spans, min_overlap)
    found: dict[str, dict[str, float]] = {query_id: {} for query_id in spans.query_ids}
    for chunk_id, query_id, grade in gold.in_table(chunks):
        found[query_id][chunk_id] = max(grade, found[query_id].get(chunk_id, grade))
    return qrels_from(found, spans.source, always=frozenset())


class SpansSource:
    """The label source ``spans``: the gold spans of the dataset, as labels of each run's own chunks."""

    name, pooled = "spans", False

    def __init__(self, allow_stale: int = 0) -> None:
        self._allow_stale = allow_stale

    def tolerating(self, allow_stale: int) -> SpansSource:
        """The same source, which leaves up to so many stale spans out."""
        return SpansSource(allow_stale)

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """The labels of all chunks that a run returns, and of all others of the table that it was made of."""
        stored = dataset.spans
        spans, of_spans = current_spans(dataset, self._allow_stale)
        if spans is None or stored is None:
            raise GateError(f"labels=spans: {dataset.name or 'the dataset'} has no gold spans; add spans.jsonl")
        gold, digest = _Gold(spans, MIN_OVERLAP), stored.digest
        table = spans_to_qrels(spans, dataset.chunks).to_dict() if dataset.chunks is not None else {}
        always = frozenset(spans.query_ids[i] for i in set(spans.query[spans.grade > 0].tolist()))
        made, notes = {}, list(of_spans)
        for run in {id(run): run for run in runs}.values():
            labels, of_table = gold.of_run(run, dataset.chunks, dataset.corpus)
            if of_table:
                labels = {query_id: {**table[query_id], **judged} for query_id, judged in labels.items()}
            else:
                notes.append(
                    f"{run.called} returns chunks that the chunk table lacks, or has at "
                    "another place: R and the ideal order are those of the chunks that it returns"
                )
            made[id(run)] = qrels_from(labels, spans.source, always=always)
        if gold.moved:
            notes.append(
                f"{len(gold.moved)} {'id of a chunk is' if len(gold.moved) == 1 else 'ids of chunks are'} not the same "
                f"part of a document everywhere ({', '.join(list(gold.moved)[:_NAMED])}"
                f"{', …' if len(gold.moved) > _NAMED else ''}): each counts by its own, and how such an id moved says "
                "nothing"
            )
        return Labelling(
            lambda run: made[id(run)],
            notes=tuple(dict.fromkeys(notes)),
            said=lambda query_id, doc_id: gold.said.get((query_id, doc_id)),
            digests={"spans": lambda: digest},
        )


class _Gold:
    """The spans of each query and document, to be met by chunks."""

    def __init__(self, spans: Spans, min_overlap: float) -> None:
        if not 0 < min_overlap <= 1:
            raise DataError(f"min_overlap is {min_overlap:g}; expected a share above 0, up to 1")
        self.spans, self.min_overlap = spans, min_overlap
        self.said: dict[tuple[str, str], str] = {}
        self.moved: dict[str, None] = {}  # chunk ids that are not the same part for all runs
        self._places: dict[str, tuple[str, int, int]] = {}
        self._by_doc: dict[str, list[int]] = {}
        for row, doc in enumerate(spans.doc.tolist()):
            self._by_doc.setdefault(spans.doc_ids[doc], []).append(row)
        self._rows = {doc: np.array(rows) for doc, rows in self._by_doc.items()}

    def in_table(self, chunks: Chunks) -> Iterable[tuple[str, str, float]]:
        """(chunk, query, grade) for each span that a chunk holds enough of."""
        placed = chunks.placed()
        rows = np.flatnonzero(np.array([doc in self._rows for doc in placed.doc_ids], bool)[placed.doc])
        placed.check(rows, "are parts of documents with gold")
        for row in rows.tolist():
            start, end = int(placed.start[row]), int(placed.end[row])
            if start < 0:
                why = placed.unplaced.get(placed.ids[row], "nothing says it")
                raise DataError(
                    f"{placed.source}: which characters of its document the chunk {placed.ids[row]!r} is, nobody says: "
                    f"{why}"
                )
            doc = placed.doc_ids[int(placed.doc[row])]
            if end > self.spans.lengths.get(doc, end):
                raise beyond_end(placed.source, placed.ids[row], doc, end, self.spans.lengths[doc])
            for span in self._met(doc, start, end):
                query_id = self.spans.query_ids[int(self.spans.query[span])]
                yield placed.ids[row], query_id, float(self.spans.grade[span])

    def of_run(
        self, run: Run, chunks: Chunks | None, corpus: Corpus | None
    ) -> tuple[dict[str, dict[str, float]], bool]:
        """The grade of every chunk that a run returns for a query with gold; 0 where it holds too little of it.

        Beside it whether all of them are chunks of the table: not only by their ids, which other chunks may have had.
        """
        spans = self.spans
        found: dict[str, dict[str, float]] = {query_id: {} for query_id in spans.query_ids}
        places = extents(run, chunks, query_ids=spans.query_ids, lengths=spans.lengths, corpus=corpus)
        rankings = run.rankings(spans.query_ids)
        index = {query_id: place for place, query_id in enumerate(spans.query_ids)}
        of_table = chunks is not None
        for place, query_id in enumerate(places.query_ids):
            if query_id not in index:
                continue
            first = int(places.bounds[place])
            for offset, chunk_id in enumerate(rankings[query_id].docs):
                if chunk_id in found[query_id]:
                    continue  # a repeat stands where it stood first
                row = first + offset
                doc, start, end = places.doc_ids[int(places.doc[row])], int(places.start[row]), int(places.end[row])
                of_table = of_table and chunks is not None and chunks.has_at(chunk_id, doc, start, end)
                met = [span for span in self._met(doc, start, end) if spans.query[span] == index[query_id]]
                found[query_id][chunk_id] = max((float(spans.grade[span]) for span in met), default=0.0)
                # As with grades, of an id for two parts that of the first run is told.
                self.said.setdefault((query_id, chunk_id), self._sentence(doc, met))
                if self._places.setdefault(chunk_id, (doc, start, end)) != (doc, start, end):
                    self.moved[chunk_id] = None
        return found, of_table

    def _sentence(self, doc: str, met: Sequence[int]) -> str:
        if not met:
            return "holds no gold span"
        span = met[0]
        return f"holds the gold span {int(self.spans.start[span])} to {int(self.spans.end[span])} of {doc}"

    def _met(self, doc: str, start: int, end: int) -> list[int]:
        rows = self._rows.get(doc)
        if rows is None:
            return []
        begins, stops = self.spans.start[rows], self.spans.end[rows]
        overlap = np.minimum(stops, end) - np.maximum(begins, start)
        shorter = np.minimum(stops - begins, end - start)
        # In whole numbers a half is exact; the tolerance is for other shares.
        enough = (overlap > 0) & (overlap >= self.min_overlap * shorter - 1e-9)
        found: list[int] = rows[enough].tolist()
        return found
