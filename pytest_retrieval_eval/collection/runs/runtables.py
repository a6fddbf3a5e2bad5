"""Runs in tables: Parquet files, Arrow tables and data frames, one hit in each row."""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pytest_retrieval_eval.collection.formats.files import PathLike, write_atomically
from pytest_retrieval_eval.collection.formats.frames import arrow, parquet_table
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.formats.tables import Gathered, Table, choose, gather
from pytest_retrieval_eval.collection.runs.columns import DISTANCES, Columns
from pytest_retrieval_eval.collection.runs.located import borders
from pytest_retrieval_eval.errors import DataError

FIELDS = ("query", "document", "score", "rank")
_SAID = b"pytest-retrieval-eval"  # the key, in a Parquet schema, of what the columns cannot say


def run_of_table(table: Table, given: Mapping[str, str] | None) -> Columns:
    """The lists of a table: by score where there are scores, else by rank.

    A hit without score, a document that stands twice in a query and, by rank, a rank that does are DataErrors.
    """
    return _lists(table, given, by_rank=False)


def read_parquet(path: PathLike, given: Mapping[str, str] | None = None) -> tuple[Columns, dict[str, Any]]:
    """The lists in a Parquet file, and what `write_parquet` noted beside them."""
    table, metadata = parquet_table(path)
    said: dict[str, Any] = {}
    if _SAID in metadata and given is None:
        try:
            said = json.loads(metadata[_SAID])
        except ValueError:
            raise DataError(f"{path}: what the schema says of the run is no JSON; save the run again") from None
    columns = _lists(table, given, by_rank=said.get("ordered_by") == "list", empty=said.get("without_hits", ()))
    return columns, said


def _lists(table: Table, given: Mapping[str, str] | None, *, by_rank: bool, empty: Any = ()) -> Columns:
    chosen = choose(table, FIELDS, given, ("query", "document"))
    if "score" not in chosen and "rank" not in chosen:
        raise DataError(
            f"{table.source}: no column says the score or the rank; found {', '.join(table.names)}; "
            "name it with columns={'score': …}"
        )
    if empty and _has_no_row(table):
        nothing = np.zeros(len(empty) + 1, np.int64)
        return Columns(tuple(empty), nothing, Ids.of([]), np.zeros(0) if "score" in chosen else None, by_list=by_rank)
    rows = gather(table, chosen)
    repeated = rows.repeated()
    if repeated is not None:
        raise DataError(
            f"{rows.where(repeated)}: query {rows.query_of(repeated)!r} has document {rows.docs[repeated]!r} a second "
            "time; expected each document once in a query; remove the repeats"
        )
    scores, ranks = rows.numbers.get("score"), rows.numbers.get("rank")
    if scores is not None and ranks is not None and np.isnan(scores).all():
        scores = None  # as `Run.to_frame` writes lists without scores
    if scores is not None:
        rows.refuse("score", np.isnan(scores), "null or NaN")
    query_ids = (*rows.query_ids, *(query for query in empty if query not in set(rows.query_ids)))
    bounds = np.append(rows.bounds, np.full(len(query_ids) - len(rows.query_ids), rows.bounds[-1]))
    if scores is not None and not by_rank:
        columns = Columns.ranked(query_ids, bounds, rows.docs, scores)
        warned = _rising(rows, scores) or _misranked(rows, scores)
        return columns.with_warnings(warned) if warned else columns
    order = _by_rank(rows)
    docs = rows.docs if order is None else rows.docs[order]
    if scores is not None and order is not None:
        scores = scores[order]
    columns = Columns(query_ids, bounds, docs, scores, by_list=True)
    return columns.with_warnings(f"{table.source}: {DISTANCES}") if columns.only_rise() else columns


def _has_no_row(table: Table) -> bool:
    return bool(getattr(table, "empty", False))


def _by_rank(rows: Gathered) -> Ints | None:
    """The order of the rows by rank, within each list; None where they have it."""
    ranks = rows.numbers["rank"]
    rows.refuse("rank", ~np.isfinite(ranks), "null or no finite number")
    of_row = np.repeat(np.arange(len(rows.query_ids)), np.diff(rows.bounds))
    order = np.lexsort((ranks, of_row))
    same = (ranks[order][1:] == ranks[order][:-1]) & (of_row[1:] == of_row[:-1])
    if same.any():
        row = int(order[1:][same].min())
        raise DataError(
            f"{rows.where(row)}: query {rows.query_of(row)!r} has the rank {ranks[row]:g} a second time; "
            "expected each rank once in a query"
        )
    return None if (order[1:] > order[:-1]).all() else order


def _rising(rows: Gathered, scores: Any) -> str:
    inside = ~borders(rows.bounds)
    rise, fall = (scores[1:] > scores[:-1]) & inside, (scores[1:] < scores[:-1]) & inside
    return f"{rows.source}: {DISTANCES}" if rise.any() and not fall.any() else ""


def _misranked(rows: Gathered, scores: Any) -> str:
    """What to warn of where ranks contradict scores, which count."""
    ranks = rows.numbers.get("rank")
    if ranks is None:
        return ""
    against = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    against |= (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    against &= ~borders(rows.bounds)
    count = int(np.count_nonzero(against))
    return f"{rows.source}: in {count} rows the rank contradicts the score; the scores were used" if count else ""


def write_parquet(path: PathLike, columns: Columns, said: Mapping[str, object]) -> None:
    """Write the columns query_id, rank, doc_id, score; ``said`` is kept in the schema."""
    pyarrow = arrow(f"{path}: Parquet is written with")
    parquet = importlib.import_module("pyarrow.parquet")
    if columns.chunks is not None:
        warnings.warn(f"{path}: Parquet runs lose which part of a document a hit is", stacklevel=3)
    sizes = np.diff(columns.bounds)
    rank = np.arange(len(columns.docs)) - np.repeat(columns.bounds[:-1], sizes) + 1
    queries = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)), pyarrow.array(columns.query_ids)
    )
    arrays = {"query_id": queries, "rank": rank.astype(np.int32), "doc_id": _strings(pyarrow, columns.docs.packed())}
    if columns.scores is not None:
        arrays["score"] = columns.scores
    without = [query for query, size in zip(columns.query_ids, sizes.tolist(), strict=True) if not size]
    note = {**said, "ordered_by": "list" if columns.by_list else "score", "without_hits": without}
    table = pyarrow.table(arrays).replace_schema_metadata(
        {_SAID: json.dumps(note, sort_keys=True, ensure_ascii=False).encode()}
    )
    with write_atomically(path) as out:
        parquet.write_table(table, out, compression="zstd")


def _strings(pyarrow: Any, ids: Ids) -> Any:
    edges = np.append(ids.starts, ids.starts[-1] + ids.lengths[-1] if len(ids) else 0)
    buffers = [None, pyarrow.py_buffer(edges.astype("<i8")), pyarrow.py_buffer(ids.data)]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(ids), buffers)
