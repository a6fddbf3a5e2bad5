"""Which characters of which document each hit of a run is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.runs.columns import Chunks as Parts
from pytest_retrieval_eval.collection.runs.columns import Columns
from pytest_retrieval_eval.collection.spans.agreement import refuse_contradicting_hits
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.chunks import Chunks

_NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """The part of a document that each row of a run is, in the run's rank order.

    List i has the rows ``bounds[i]`` … ``bounds[i + 1]``. ``doc`` (int64) is the place of the row's document in
    ``doc_ids``; ``start`` and ``end`` (int64) count code points, end exclusive. All three are -1 for a row that was
    not asked for.
    """

    query_ids: tuple[str, ...]
    bounds: Ints
    doc_ids: tuple[str, ...]
    doc: Ints
    start: Ints
    end: Ints


def extents(
    run: Run,
    chunks: Chunks | None,
    *,
    query_ids: Collection[str] | None = None,
    depth: int | None = None,
    lengths: Mapping[str, int] | None = None,
    corpus: Corpus | None = None,
) -> Extents:
    """Where the hits of a run lie: what a hit itself says counts, else what the chunk table says of its id.

    A hit of which nothing says the document or the offsets raises DataError, unless it was not asked for: its
    query is not among ``query_ids``, or it stands below ``depth``. So does a hit that ends beyond its document, where
    ``lengths`` has that: its offsets are of another text; and one whose text, in the table or the traces, is not what
    the ``corpus`` has at its offsets.

    >>> from pytest_retrieval_eval import Chunk, Chunks, Run
    >>> found = extents(Run.of({"q": ["b", "a"]}), Chunks.of({"a": Chunk("guide", 0, 9), "b": Chunk("guide", 9, 20)}))
    >>> found.start.tolist(), found.end.tolist(), found.doc_ids
    ([9, 0], [20, 9], ('guide',))
    """
    found = _extents(run, chunks, None if query_ids is None else frozenset(query_ids), depth, corpus)
    if lengths:
        limits = np.array([lengths.get(doc_id, _NO_LIMIT) for doc_id in (*found.doc_ids, "")], np.int64)
        beyond = np.flatnonzero(found.end > limits[found.doc])
        if len(beyond):
            row = int(beyond[0])
            raise beyond_end(
                _where(run, run.columns(), row),
                run.columns().docs[row],
                found.doc_ids[int(found.doc[row])],
                int(found.end[row]),
                int(limits[found.doc[row]]),
            )
    return found


def beyond_end(where: str, hit: str, doc_id: str, end: int, length: int) -> DataError:
    """The error of a hit that ends beyond its document; ``where`` names the run and the place in it."""
    return DataError(
        f"{where}: the chunk {excerpt(hit)} ends at {end} of {excerpt(doc_id)}, which has {length} characters: its "
        "offsets are of another text. Offsets count code points of the document as the corpus has it; a run that "
        "was stored before the document was edited has to be saved again"
    )


@lru_cache(maxsize=4)
def with_offsets(run: Run, chunks: Chunks | None) -> Run:
    """The same run, whose hits say themselves which part of which document they are, as far as the table knows.

    Stored so, a run stays what it is when the documents are cut anew. A hit's own word counts. Offsets at which the
    corpus has another text than the table are a DataError: the run keeps no text by which that could be seen later.

    >>> from pytest_retrieval_eval import Chunk, Chunks, Run
    >>> with_offsets(Run.of({"q": ["a"]}), Chunks.of({"a": Chunk("guide", 0, 9)})).ranking("q").end
    [9]
    """
    if chunks is None or run.header.get("unit") == "document":
        return run
    chunks = chunks.placed()
    columns = run.columns()
    said = columns.chunks
    rows = len(columns.docs)
    doc: list[str | None] = [None] * rows if said is None else list(said.doc_id)
    start, end = (np.full(rows, -1, np.int64) if said is None else column.copy() for column in _both(said))
    taken: list[int] = []
    for row, hit in enumerate(columns.docs.strings()):
        place = chunks.row_of(hit)
        if place is None or start[row] >= 0:
            continue
        table_doc = chunks.doc_ids[int(chunks.doc[place])]
        if doc[row] in (None, table_doc):
            doc[row], start[row], end[row] = table_doc, chunks.start[place], chunks.end[place]
            taken.append(place)
    chunks.check(np.array(taken, np.int64), f"{run.called} returns")
    return run.with_columns(replace(columns, chunks=Parts(doc, start, end))) if taken else run


def _both(said: Parts | None) -> tuple[Ints, Ints]:
    nothing = np.zeros(0, np.int64)
    return (nothing, nothing) if said is None else (said.start, said.end)


@lru_cache(maxsize=8)
def _extents(
    run: Run, chunks: Chunks | None, query_ids: frozenset[str] | None, depth: int | None, corpus: Corpus | None
) -> Extents:
    """Found once for the gates that measure the same run."""
    columns = run.columns()
    if chunks is not None and corpus is not None:
        chunks = chunks.within(corpus)
    bounds, said = columns.bounds, columns.chunks
    docs: dict[str, int] = {} if chunks is None else {name: i for i, name in enumerate(chunks.doc_ids)}
    doc, start, end = (np.full(len(columns.docs), -1, np.int64) for _ in range(3))
    rows = _asked(columns, query_ids, depth)
    # At once what says all of itself, and what only the table knows; the others, and errors, one by one.
    if said is not None:
        own = np.array([_number(docs, said.doc_id[row]) for row in rows.tolist()], np.int64)
        whole = (own >= 0) & (said.start[rows] >= 0)
        doc[rows[whole]] = own[whole]
        rows, told = rows[~whole], rows[whole]
        start[told], end[told] = said.start[told], said.end[told]
    elif chunks is not None:
        places = np.array([_place(chunks.row_of(hit)) for hit in columns.docs.strings(rows)], np.int64)
        whole = (places >= 0) & (chunks.start[places] >= 0)
        places, rows, told = places[whole], rows[~whole], rows[whole]
        doc[told], start[told], end[told] = chunks.doc[places], chunks.start[places], chunks.end[places]
    for row, hit in zip(rows.tolist(), columns.docs.strings(rows), strict=True):
        own_doc = None if said is None else said.doc_id[row]
        first, last = (-1, -1) if said is None else (int(said.start[row]), int(said.end[row]))
        place = None if chunks is None else chunks.row_of(hit)
        if chunks is not None and place is not None:
            table_doc = int(chunks.doc[place])
            if own_doc is None:
                doc[row] = table_doc
            elif first < 0 and docs[chunks.doc_ids[table_doc]] != docs.get(own_doc, -1):
                raise _conflict(run, columns, chunks, row, own_doc, chunks.doc_ids[table_doc])
            if first < 0 and chunks.start[place] < 0:
                chunks = chunks.placed()  # the rows stay where they are
            if first < 0:
                first, last = int(chunks.start[place]), int(chunks.end[place])
        if own_doc is not None:
            doc[row] = docs.setdefault(own_doc, len(docs))
        if doc[row] < 0 or first < 0:
            raise _unknown(run, columns, chunks, row, "document" if doc[row] < 0 else "characters of its document")
        start[row], end[row] = first, last
    for column in (doc, start, end):
        column.flags.writeable = False
    found = Extents(columns.query_ids, bounds, tuple(docs), doc, start, end)
    _refuse_contradictions(run, chunks, found, query_ids, corpus)
    return found


def _refuse_contradictions(
    run: Run, chunks: Chunks | None, found: Extents, query_ids: frozenset[str] | None, corpus: Corpus | None
) -> None:
    """Refuse offsets at which the corpus has another text than the chunk table, or the traces of the run, say."""
    if chunks is not None and chunks.checkable:
        rows = np.flatnonzero(found.start >= 0)
        places = np.array([_place(chunks.row_of(hit)) for hit in run.columns().docs.strings(rows)], np.int64)
        rows, places = rows[places >= 0], places[places >= 0]
        # A hit that lies elsewhere than the chunk of its id is no such chunk.
        same = (chunks.start[places] == found.start[rows]) & (chunks.end[places] == found.end[rows])
        same &= chunks.doc[places] == found.doc[rows]
        chunks.check(places[same], f"{run.called} returns")
    if corpus is not None and run.calls:
        calls = {query: calls for query, calls in run.calls.items() if query_ids is None or query in query_ids}
        hits = {query: [hit for call in several for hit in call.hits] for query, several in calls.items()}
        refuse_contradicting_hits(hits, corpus, f"hits of the traces of {run.called}")


def _number(docs: dict[str, int], name: str | None) -> int:
    return -1 if name is None else docs.setdefault(name, len(docs))


def _place(row: int | None) -> int:
    return -1 if row is None else row


def _asked(columns: Columns, query_ids: frozenset[str] | None, depth: int | None) -> Ints:
    bounds = columns.bounds
    rows = np.arange(len(columns.docs))
    place = np.repeat(np.arange(len(columns.query_ids)), np.diff(bounds))
    kept = np.ones(len(rows), np.bool_)
    if query_ids is not None:
        kept &= np.array([name in query_ids for name in columns.query_ids], np.bool_)[place]
    if depth is not None:
        kept &= rows - bounds[place] < depth
    return rows[kept]


def _where(run: Run, columns: Columns, row: int) -> str:
    place = int(np.searchsorted(columns.bounds, row, "right")) - 1
    name = f"run {run.name}" if run.name else run.source or "the run"
    rank = row - int(columns.bounds[place]) + 1
    return f"{name}: query {excerpt(columns.query_ids[place])}, rank {rank}"


def _conflict(run: Run, columns: Columns, chunks: Chunks, row: int, own: str, other: str) -> DataError:
    return DataError(
        f"{_where(run, columns, row)}: the hit {excerpt(columns.docs[row])} says that it is part of {excerpt(own)}, "
        f"and {chunks.source} that it is part of {excerpt(other)}: the run was made with other chunks. Return hits "
        "with doc_id, start and end, or bring the chunk table up to date"
    )


def _unknown(run: Run, columns: Columns, chunks: Chunks | None, row: int, what: str) -> DataError:
    hit = columns.docs[row]
    if chunks is None:
        table = "there is no chunk table"
    elif hit in chunks.unplaced:
        table = f"{chunks.source} does not say it, and {chunks.unplaced[hit]}"
    else:
        table = f"{chunks.source} {'does not say it' if hit in chunks else 'lacks the chunk'}"
    return DataError(
        f"{_where(run, columns, row)}: nothing says which {what} the chunk {excerpt(hit)} is: the hit does not, and "
        f"{table}. Return hits with doc_id, start and end, or put chunks.jsonl (chunk_id, doc_id, start, end) into the "
        "dataset"
    )
