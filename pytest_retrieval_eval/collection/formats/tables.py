"""Rows in a table (Parquet, Arrow, data frames): which column is what, and rows gathered by query.

A table gives batches of columns; ids become bytes at once, so that no row costs a Python object. Rows count from 1
in errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import Ints, changes
from pytest_retrieval_eval.collection.runs.columns import Columns
from pytest_retrieval_eval.errors import DataError, did_you_mean

Floats = npt.NDArray[np.float64]
Where = Callable[[int], str]

# Spellings, without case and without anything but letters; an earlier one is preferred to a later one.
_QUERY = ("queryid", "qid", "topicid", "topic", "query", "q")
_DOCUMENT = ("docid", "docno", "documentid", "corpusid", "pid", "did", "document", "doc", "passageid", "chunkid")
_KNOWN = {
    "query": _QUERY,
    "document": _DOCUMENT,
    "score": ("score", "similarity"),
    "rank": ("rank",),
    "grade": ("grade", "relevance", "rel", "label", "relevancelabel", "judgment", "judgement", "score"),
}
# Parts of documents: beside a column of documents nobody can know which of them is meant.
_PARTS = ("passageid", "chunkid")


class Column(Protocol):
    """One column of a batch; ``where`` says where one of its rows stands."""

    def ids(self, where: Where) -> Ids:
        """The column as ids; DataError for a value that is none."""

    def numbers(self, where: Where) -> Floats:
        """The column as numbers, NaN where there is none; DataError for a column of something else."""


class Table(Protocol):
    """Rows under the names of columns."""

    source: str
    names: Sequence[str]

    def batches(self, names: Sequence[str]) -> Iterator[Sequence[Column]]:
        """The rows of some columns, part by part."""


def choose(
    table: Table, fields: Sequence[str], given: Mapping[str, str] | None, needed: Sequence[str]
) -> dict[str, str]:
    """The column of each field; a field that is not ``needed`` may be absent.

    ``given`` says it outright: field → column. Else the usual names count, in any case and spelling.
    """
    given = given or {}
    for name in given:
        if name not in fields:
            raise DataError(f"columns names {excerpt(name)}; expected a mapping with {_listed(fields)}")
    found: dict[str, str] = {}
    for field in fields:
        column = given[field] if field in given else _guess(table, field, list(found.values()))
        if column is None:
            if field in needed:
                raise DataError(
                    f"{table.source}: no column says the {field}; found {_listed(table.names)}; "
                    f"name it with columns={{{field!r}: …}}"
                )
            continue
        if column not in table.names:
            raise DataError(
                f"{table.source}: there is no column {column!r} for the {field}; {did_you_mean(column, table.names)}"
            )
        if list(table.names).count(column) > 1:
            raise DataError(f"{table.source}: the name {column!r} stands over two columns; expected each name once")
        found[field] = column
    return found


def _guess(table: Table, field: str, taken: Sequence[str]) -> str | None:
    known = _KNOWN[field]
    fitting: dict[str, list[str]] = {}
    for name in table.names:
        letters = re.sub(r"[^a-z]", "", name.lower())
        if letters in known and name not in taken:
            fitting.setdefault(letters, []).append(name)
    for letters in known:
        for name in fitting.get(letters, []):
            # PyTerrier's frames have docid, a number of its index, beside the docno.
            if letters == "docid" and "docno" in fitting:
                continue
            others = [
                *fitting[letters],
                *(other for part in _PARTS if part != letters for other in fitting.get(part, [])),
            ]
            if len(others) > 1:
                raise DataError(
                    f"{table.source}: {_listed(others)} may each be the {field}; name one with columns={{{field!r}: …}}"
                )
            return name
    return None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


class Gathered(NamedTuple):
    """The rows of a table, those of each query together, in their order.

    List i has the rows ``bounds[i]`` … ``bounds[i + 1]``. ``numbers`` are the other columns, by field;
    ``rows`` (None: as they are) is the row of the table that each came from.
    """

    source: str
    query_ids: tuple[str, ...]
    bounds: Ints
    docs: Ids
    numbers: Mapping[str, Floats]
    rows: Ints | None

    def where(self, row: int) -> str:
        """Where a row stands in the table."""
        return place(self.source, row if self.rows is None else int(self.rows[row]))

    def query_of(self, row: int) -> str:
        """The query that a row belongs to."""
        return self.query_ids[int(np.searchsorted(self.bounds, row, "right")) - 1]

    def refuse(self, field: str, wrong: npt.NDArray[np.bool_], what: str) -> None:
        """DataError for the first row of the table where ``field`` is wrong."""
        if wrong.any():
            places = np.flatnonzero(wrong)
            row = int(places[0] if self.rows is None else places[np.argmin(self.rows[places])])
            raise DataError(
                f"{self.where(row)}: query {self.query_of(row)!r}, document {self.docs[row]!r}: the {field} is "
                f"{what}; expected a finite number"
            )

    def columns(self) -> Columns:
        """The lists as they stand."""
        return Columns(self.query_ids, self.bounds, self.docs, None, by_list=True)

    def repeated(self) -> int | None:
        """The first row whose document stands before it in the same query; None where there is none."""
        first = 0
        for block in self.columns().blocks():
            rows = block.repeated()
            if len(rows):
                return first + int(rows[0])
            first += len(block.docs)
        return None


def place(source: str, row: int) -> str:
    """How errors name a row of a table."""
    return f"{source}: row {row + 1}"


def gather(table: Table, columns: Mapping[str, str]) -> Gathered:
    """Read the columns of ``query``, ``document`` and some numbers."""
    numbers = [field for field in columns if field not in ("query", "document")]
    gatherer = Gatherer(table.source, numbers)
    for query, document, *others in table.batches([columns[field] for field in ("query", "document", *numbers)]):

        def where(row: int, first: int = gatherer.count) -> str:
            return place(table.source, first + row)

        queries = _filled(query.ids(where), columns["query"], where)
        docs = _filled(document.ids(where), columns["document"], where)
        # by themselves: a batch may hold a dictionary of all ids
        gatherer.add(queries, docs.packed(), [column.numbers(where) for column in others])
    if not gatherer.count:
        raise DataError(f"{table.source}: the table has no row")
    return gatherer.result()


class Gatherer:
    """Collects rows, part by part, and brings those of each query together."""

    def __init__(self, source: str, numbers: Sequence[str]) -> None:
        self._source, self._fields = source, numbers
        self.count = 0
        self._names: list[bytes] = []
        self._sizes: list[Ints] = []
        self._docs: list[Ids] = []
        self._numbers: list[list[Floats]] = [[] for _ in numbers]

    def add(self, queries: Ids, docs: Ids, numbers: Sequence[Floats]) -> None:
        """The next rows."""
        if not len(queries):
            return
        begins = np.concatenate(([0], changes(queries.data, queries.starts, queries.lengths)))
        self._names += queries[begins].raw()
        self._sizes.append(np.diff(np.append(begins, len(queries))))
        self._docs.append(docs)
        for column, found in zip(numbers, self._numbers, strict=True):
            found.append(column)
        self.count += len(queries)

    def result(self) -> Gathered:
        """All rows, of which there is at least one."""
        size, doc = np.concatenate(self._sizes), Ids.join(self._docs)
        arrays = [np.concatenate(found) for found in self._numbers]
        index: dict[bytes, int] = {}
        lists = np.array([index.setdefault(name, len(index)) for name in self._names], np.int64)
        rows = None
        if len(index) < len(self._names):
            of_row = np.repeat(lists, size)
            size = np.bincount(lists, size).astype(np.int64)
            if (of_row[1:] < of_row[:-1]).any():
                rows = np.argsort(of_row, kind="stable")
                doc, arrays = doc[rows], [array[rows] for array in arrays]
        bounds = np.concatenate(([0], np.cumsum(size)))
        query_ids = tuple(name.decode() for name in index)
        return Gathered(self._source, query_ids, bounds, doc, dict(zip(self._fields, arrays, strict=True)), rows)


def _filled(ids: Ids, name: str, where: Where) -> Ids:
    if len(ids) and not ids.lengths.all():
        row = int(np.argmin(ids.lengths))
        raise DataError(f"{where(row)}: {name} is the empty string; expected an id")
    return ids
