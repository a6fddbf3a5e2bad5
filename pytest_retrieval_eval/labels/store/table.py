"""Many judgments in columns: hundreds of thousands of lines are read in seconds, and again in less than one.

A file that is as it was written here (a line a judgment, the rows of a query together, no pair twice) is read by one
regular expression. Any other is read line by line, with every check.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.files import decode, read_bytes, write_atomically
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.labels.store.rows import (
    Contradiction,
    Contradictions,
    Judgment,
    Key,
    read_rows,
    settled,
)

# Fewer rows are read from their text as quickly as from an index.
INDEXED = 20_000
_FORMAT = 1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_PLAIN = r'[^"\\\n\x00-\x1f]'
_LINE = re.compile(
    rf'^\{{"q":"({_PLAIN}+)","qh":"([0-9a-f]{{16}})","d":"({_PLAIN}+)","dh":"([0-9a-f]{{16}})",'
    rf'"g":(-?(?:0|[1-9][0-9]{{0,8}})(?:\.[0-9]{{0,16}}[1-9])?),"at":"{_PLAIN}*","who":"{_PLAIN}*"\}}$',
    re.MULTILINE,
)

_COLUMNS = ("queries", "starts", "docs", "doc_lengths", "query_lengths", "qh", "dh", "grades")
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Judgments whose pairs are all different; the rows of query i are ``offsets[i]`` up to ``offsets[i + 1]``."""

    query_ids: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    docs: Ids
    qh: Hashes
    dh: Hashes
    grades: npt.NDArray[np.float64]
    _index: dict[str, int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.grades)

    def of_query(self, query_id: str) -> dict[Key, float]:
        """The grades of one query."""
        if not self._index and self.query_ids:
            self._index.update((name, row) for row, name in enumerate(self.query_ids))
        at = self._index.get(query_id)
        if at is None:
            return {}
        rows = slice(*self.offsets[at : at + 2].tolist())
        docs, grades = self.docs.strings(rows), self.grades[rows].tolist()
        of_query = self.qh[rows].tolist()
        texts = {qh: f"{qh:016x}" for qh in set(of_query)}  # the same text for all of its rows, if it never changed
        of_doc = self.dh[rows].astype(">u8").tobytes().hex()
        return {
            (query_id, texts[qh], doc, of_doc[at : at + 16]): grade
            for qh, doc, at, grade in zip(of_query, docs, range(0, len(of_doc), 16), grades, strict=True)
        }


@dataclass(slots=True)
class Table:
    """The grades of one judge, or of people: large columns, and what the journal has since.

    ``contradictions`` were settled as the reader asked for; ``by`` says who gave a grade that stands beside the
    columns.
    """

    columns: Columns
    beside: dict[str, dict[Key, float]] = field(default_factory=dict)
    contradictions: list[Contradiction] = field(default_factory=list)
    torn: int = 0

    def of_query(self, query_id: str) -> dict[Key, float]:
        """The grades of one query."""
        found = self.columns.of_query(query_id)
        beside = self.beside.get(query_id)
        return {**found, **beside} if beside else found

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries with a judgment."""
        return tuple(dict.fromkeys((*self.columns.query_ids, *self.beside)))

    def __len__(self) -> int:
        known = {query: self.columns.of_query(query) for query in self.beside}
        return len(self.columns) + sum(key not in known[query] for query in known for key in self.beside[query])

    def __iter__(self) -> Iterator[tuple[Key, float]]:
        for query_id in self.query_ids:
            yield from self.of_query(query_id).items()


def read_table(
    files: Sequence[Path],
    journal: Iterable[tuple[Judgment, str]] = (),
    *,
    how: Contradictions = "refuse",
    index: Path | None = None,
) -> Table:
    """The judgments of some files and of a journal. ``index`` is where columns of large files are kept."""
    digest = _digest(files) if index is not None else ""
    columns = _read_index(index, digest) if index is not None else None
    contradictions: list[Contradiction] = []
    if columns is None:
        columns, contradictions = _read_files(files, how)
        if index is not None and len(columns) >= INDEXED and not contradictions:
            _write_index(index, digest, columns)
    table = Table(columns, contradictions=contradictions)
    _put_beside(table, files, journal, how)
    return table


def _put_beside(
    table: Table, files: Sequence[Path], journal: Iterable[tuple[Judgment, str]], how: Contradictions
) -> None:
    given: dict[Key, list[tuple[Judgment, str]]] = {}
    for row, place in journal:
        given.setdefault(row.key, []).append((row, place))
    if not given:
        return
    known = {query: table.columns.of_query(query) for query in {key[0] for key in given}}
    clash = {key for key, rows in given.items() if any(known[key[0]].get(key, row.g) != row.g for row, _ in rows)}
    if clash:  # rare: only now the lines of the files are looked for
        for path in files:
            for row, place in read_rows(path):
                if row.key in clash:
                    given[row.key].insert(0, (row, place))
    for key, rows in given.items():
        kept, contradiction = settled(key, rows, how)
        table.beside.setdefault(key[0], {})[key] = kept.g
        if contradiction is not None:
            table.contradictions = [each for each in table.contradictions if each.key != key]
            table.contradictions.append(contradiction)


def _read_files(files: Sequence[Path], how: Contradictions) -> tuple[Columns, list[Contradiction]]:
    quick = [_quick(path) for path in files]
    queries = [query for part in quick if part is not None for query in part.query_ids]
    if None not in quick and len(set(queries)) == len(queries):
        return _joined([part for part in quick if part is not None]), []
    given: dict[Key, list[tuple[Judgment, str]]] = {}
    for path in files:
        for row, place in read_rows(path):
            given.setdefault(row.key, []).append((row, place))
    kept, contradictions = [], []
    for key in sorted(given, key=lambda key: (key[0], key[2], key[1], key[3])):
        row, contradiction = settled(key, given[key], how)
        kept.append((*key, row.g))
        if contradiction is not None:
            contradictions.append(contradiction)
    return _columns(kept), contradictions


def _quick(path: Path) -> Columns | None:
    """The columns of a file that is as it was written here; None for any other."""
    text = decode(read_bytes(path), path)
    rows = _LINE.findall(text)
    if len(rows) != text.count("\n") or text[-1:] not in ("", "\n"):
        return None
    columns = _columns(rows)
    together = len(set(columns.query_ids)) == len(columns.query_ids)
    return columns if together and not _may_repeat(columns) else None


def _may_repeat(columns: Columns) -> bool:
    """Whether a pair may stand twice; never False where one does."""
    query = np.repeat(np.arange(len(columns.query_ids), dtype=np.uint64), np.diff(columns.offsets))
    mixed = columns.docs.keys()
    for part in (query, columns.qh, columns.dh):
        mixed = mixed * _ODD + part  # the same for the same pair; of others about one in 10¹⁹ is
    return len(np.unique(mixed)) < len(columns)


def in_order(path: Path) -> bool:
    """Whether a file is as compaction writes it: sorted, and no pair twice. What is unusual is said to be not."""
    text = decode(read_bytes(path), path)
    rows = _LINE.findall(text)
    keys = [(query, doc, qh, dh) for query, qh, doc, dh, _ in rows]
    return len(rows) == text.count("\n") and text[-1:] in ("", "\n") and all(a < b for a, b in pairwise(keys))


def _columns(rows: Sequence[tuple[Any, ...]]) -> Columns:
    """Rows of (query, its hash, document, its hash, grade); a query begins wherever its id is another one."""
    queries, qh, docs, dh, grades = zip(*rows, strict=True) if rows else ((),) * 5
    begins = [i for i, (before, query) in enumerate(pairwise(queries), 1) if query != before]
    if rows:
        begins.insert(0, 0)
    return Columns(
        tuple([queries[i] for i in begins]),
        np.array([*begins, len(rows)], np.int64),
        Ids.of(docs).packed(),
        _hashes(qh),
        _hashes(dh),
        np.array(list(map(float, grades)), np.float64),
    )


def _hashes(digits: Sequence[str]) -> Hashes:
    return np.frombuffer(bytes.fromhex("".join(digits)), ">u8").astype(np.uint64)


def _joined(parts: Sequence[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _columns([])
    shifts = np.cumsum([0, *(len(part) for part in parts)])
    offsets = [part.offsets[:-1] + shift for part, shift in zip(parts, shifts.tolist(), strict=False)]
    return Columns(
        tuple(query for part in parts for query in part.query_ids),
        np.concatenate([*offsets, shifts[-1:]]),
        Ids.join([part.docs for part in parts]),
        np.concatenate([part.qh for part in parts]),
        np.concatenate([part.dh for part in parts]),
        np.concatenate([part.grades for part in parts]),
    )


# --- the index ----------------------------------------------------------------------------------------


def _digest(files: Sequence[Path]) -> str:
    """The digest of what the files hold; times of files say nothing after a checkout."""
    whole = hashlib.sha256(str(_FORMAT).encode())
    for path in files:
        whole.update(hashlib.sha256(read_bytes(path)).digest())
    return whole.hexdigest()


def _read_index(path: Path, digest: str) -> Columns | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            if str(found["digest"]) != digest:
                return None
            made: Mapping[str, Any] = {name: found[name] for name in _COLUMNS}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # it is not there, or damaged: it is made again
        return None
    lengths = made["doc_lengths"].astype(np.int64)
    names = made["query_lengths"].astype(np.int64)
    query_ids = Ids(made["queries"], np.cumsum(names) - names, names)
    docs = Ids(made["docs"], np.cumsum(lengths) - lengths, lengths)
    return Columns(tuple(query_ids.strings()), made["starts"], docs, made["qh"], made["dh"], made["grades"])


def _write_index(path: Path, digest: str, columns: Columns) -> None:
    queries, docs = Ids.of(columns.query_ids).packed(), columns.docs.packed()
    made: dict[str, Any] = {
        "queries": queries.data,
        "query_lengths": queries.lengths,
        "starts": columns.offsets,
        "docs": docs.data,
        "doc_lengths": docs.lengths.astype(np.uint32),
        "qh": columns.qh,
        "dh": columns.dh,
        "grades": columns.grades,
    }
    with suppress(OSError, ValueError), write_atomically(path) as file:  # a folder that cannot be written has none
        np.savez(file, digest=np.array(digest), **made)
