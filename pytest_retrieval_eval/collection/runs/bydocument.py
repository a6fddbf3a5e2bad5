"""Ranked chunks as ranked documents: each document stands where its best chunk does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.runs.columns import Columns
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.spans.chunks import Chunks


def documents_of_rows(columns: Columns, chunks: Chunks | None) -> Iterator[str | None]:
    """The document of each row: the hit's own ``doc_id``, else what the chunk table says, else None."""
    said = columns.chunks.doc_id if columns.chunks is not None else [None] * len(columns.docs)
    table = chunks.document_of if chunks is not None else lambda _: None
    return (doc if doc is not None else table(hit) for doc, hit in zip(said, columns.docs.strings(), strict=True))


def by_document(columns: Columns, chunks: Chunks | None, name: str) -> Columns:
    """The lists with the first chunk of each document alone, under the document's id; the others take no slot.

    A run by score stays one: a document has the score of its best chunk, and equal scores tie. A chunk of
    which nothing says to which document it belongs raises DataError.
    """
    ids: list[str] = []
    rows: list[int] = []
    sizes: list[int] = []
    documents = documents_of_rows(columns, chunks)
    for place, size in enumerate(np.diff(columns.bounds).tolist()):
        first = int(columns.bounds[place])
        seen: dict[str, int] = {}
        for row in range(first, first + size):
            doc = next(documents)
            if doc is None:
                raise _unknown(columns, chunks, name, place, row)
            seen.setdefault(doc, row)
        ids += seen
        rows += seen.values()
        sizes.append(len(seen))
    bounds = np.concatenate(([0], np.cumsum(np.array(sizes, np.int64))))
    kept = np.array(rows, np.int64)
    scores = None if columns.scores is None else columns.scores[kept]
    if columns.by_list or scores is None:
        return Columns(columns.query_ids, bounds, Ids.of(ids), scores, by_list=True, warnings=columns.warnings)
    return Columns.ranked(columns.query_ids, bounds, Ids.of(ids), scores, warnings=columns.warnings)


def _unknown(columns: Columns, chunks: Chunks | None, name: str, place: int, row: int) -> DataError:
    rank = row - int(columns.bounds[place]) + 1
    table = f"{chunks.source} lacks it" if chunks is not None else "there is no chunk table"
    return DataError(
        f"{name}: query {excerpt(columns.query_ids[place])}, rank {rank}: nothing says which document the chunk "
        f"{excerpt(columns.docs[row])} is part of: the hit has no doc_id, and {table}. Return hits with doc_id, or put "
        "chunks.jsonl (chunk_id, doc_id, start, end) into the dataset"
    )
