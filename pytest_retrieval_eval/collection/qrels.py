"""Relevance judgments: query → document → grade, in columns.

Whatever made the labels (people, gold spans, a reader language model, a judged pool), this is what they
become.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.collection.formats.files import (
    PARQUET,
    JsonIds,
    PathLike,
    bare_suffixes,
    decode,
    excerpt,
    json_lines,
    json_number,
    json_value,
    read_bytes,
)
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.rows import value_of
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.formats.tables import Gathered, Table

_T = TypeVar("_T")
Scale = Literal["levels", "unit"]
Judged = Mapping[Any, Any] | Iterable[Any]

_QUERY_KEYS = ("query_id", "query-id", "_id", "qid", "topic", "id")
_DOC_KEYS = ("doc_id", "corpus-id", "corpus_id", "docid", "docno", "document_id", "pid")
_GRADE_KEYS = ("score", "grade", "relevance", "rel", "label")
_TREC = ("query", "iteration", "document", "grade")
# Spellings of header cells, lower case, without anything but letters.
_HEADER = {
    "query": {"queryid", "qid", "query", "topic", "topicid", "q"},
    "document": {"corpusid", "docid", "documentid", "docno", "doc", "document", "did", "pid", "passageid"}
    | {"chunkid", "itemid", "corpus"},
    "grade": {"score", "grade", "relevance", "rel", "label", "judgment", "judgement", "relevancelabel"},
}
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Qrels:
    """Judgments in columns; the rows of one query are contiguous, queries stand in the order first seen.

    ``query`` (int64, rows) is an index into ``query_ids``, which also names queries whose entry is empty;
    ``docs`` (rows) are document ids; ``grades`` (float64, rows) are finite, may be negative or fractional
    and are never rounded. ``scale`` says what a grade is: ``levels`` (relevant from a level on) or
    ``unit`` (a degree in [0, 1]). The queries in ``always`` count also where nothing is relevant to them: labels that
    are made for what was retrieved say so of a list in which nothing helps. What cannot be judgments, in a file or in
    memory, is a DataError that says where.

    >>> qrels = Qrels.of({"q1": {"a": 2, "b": 0}, "q2": ["c"]})
    >>> len(qrels), qrels.grade("q1", "a"), qrels.grade("q2", "a"), qrels.of_query("q2")
    (3, 2.0, None, {'c': 1.0})
    """

    query_ids: tuple[str, ...]
    query: npt.NDArray[np.int64]
    docs: Ids
    grades: npt.NDArray[np.float64]
    source: str
    scale: Scale = "levels"
    warnings: tuple[str, ...] = ()
    always: frozenset[str] = frozenset()
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def read(
        cls,
        path: PathLike,
        *,
        scale: Scale = "levels",
        normalize_ids: bool = False,
        columns: Mapping[str, str] | None = None,
    ) -> Qrels:
        """Read judgments; the content says in which format, or the ending ``.parquet``.

        * TREC: ``query iteration document grade``, any run of spaces or tabs between;
        * BEIR: a table whose first line names its columns (query-id, corpus-id, score, in any usual
          spelling and order), tabs between;
        * JSON: ``{query: {document: grade}}`` or ``{query: [document, ...]}`` (grade 1);
        * JSON Lines: ``{"query_id", "doc_id", "score"}`` or ``{"query_id", "relevant": {…} | […]}`` in
          each line;
        * Parquet: a judgment in each row; ``columns`` may name those of ``query``, ``document`` and ``grade``.

        Conflicting grades, NaN, a line of another form and a file without judgments raise DataError with
        file and line (or row); an identical repeat is kept once and named in ``warnings``. ``normalize_ids``
        brings ids to Unicode form NFC.
        """
        if bare_suffixes(path)[-1:] == [PARQUET]:
            from pytest_retrieval_eval.collection.formats.frames import parquet_table

            return _of_table(parquet_table(path)[0], columns, scale, normalize_ids)
        if columns is not None:
            raise DataError(f"{path}: columns are named for tables alone, and the file is no {PARQUET}")
        data = read_bytes(path)
        first = next((line for line in _stripped(data) if not line.startswith(b"#")), b"")
        builder = QrelsBuilder(str(path), scale, normalize_ids)
        if not first.startswith(b"{"):
            decode(data, path)  # says which line is not UTF-8
            table = _Table(data, path, builder)
            quick = None if normalize_ids and not data.isascii() else table.quick(scale)
            if quick is not None:
                return quick
            table.read()
        elif bare_suffixes(path)[-1:] == [".jsonl"] or _is_row(first):
            for number, row in json_lines(path):
                where = f"{path}:{number}"
                builder.add_row(row, where)
        else:
            whole = json_value(decode(data, path), str(path), expected="one JSON object", whole_file=True)
            for query_id, judged in cast("dict[str, Any]", whole).items():
                builder.add_query(query_id, judged, str(path))
        return builder.done()

    @classmethod
    def of(
        cls,
        qrels: Any,
        *,
        source: str = "qrels",
        scale: Scale = "levels",
        columns: Mapping[str, str] | None = None,
    ) -> Qrels:
        """Judgments of a mapping from query to {document: grade}, or to a list or set of relevant documents.

        An empty entry stays a query without judgments; a mapping without any judgment raises DataError.

        Or of an Arrow table or a data frame (pandas, polars) with a judgment in each row, in columns of the
        usual names (``query_id``, ``doc_id``, ``grade`` and their kin); ``columns`` may say which is the
        ``query``, the ``document``, the ``grade``.
        """
        if not isinstance(qrels, Mapping):
            from pytest_retrieval_eval.collection.formats.frames import frame_table, is_frame

            if is_frame(qrels):
                return _of_table(frame_table(qrels, source), columns, scale, False)
            raise DataError(f"qrels are {excerpt(qrels)}; expected a mapping from query to {{document: grade}}")
        if columns is not None:
            raise DataError("columns are named for tables alone, and a mapping has none")
        builder = QrelsBuilder(source, scale, False)
        plain = _plain(qrels)
        if plain is not None:
            return cls(tuple(qrels), *plain, source, scale)
        for query_id, judged in qrels.items():
            builder.add_query(query_id, judged, source)
        return builder.done()

    def share(self, key: str, make: Callable[[], _T]) -> _T:
        """What ``make`` gives, computed once for these judgments: the common work of all runs on them."""
        if key not in self._cache:
            self._cache[key] = make()
        return cast(_T, self._cache[key])

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        return f"<Qrels {self.source}: {len(self.query_ids)} queries, {len(self)} judgments>"

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where rows lie (int64, queries + 1): those of query i are offsets[i] up to offsets[i + 1]."""
        if "offsets" not in self._cache:
            counts = np.bincount(self.query, minlength=len(self.query_ids))
            self._cache["offsets"] = read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        return cast("npt.NDArray[np.int64]", self._cache["offsets"])

    def grade(self, query_id: str, doc_id: str) -> float | None:
        """The grade of a document for a query; None where it is not judged."""
        return self._judged(query_id).get(doc_id)

    def of_query(self, query_id: str) -> dict[str, float]:
        """Document → grade of one query, in the order of the file; empty where nothing is judged."""
        return dict(self._judged(query_id))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query → document → grade; a query with an empty entry has an empty dict."""
        docs, grades, ends = self.docs.strings(), self.grades.tolist(), self.offsets.tolist()
        return {
            query_id: dict(zip(docs[a:z], grades[a:z], strict=True))
            for query_id, a, z in zip(self.query_ids, ends, ends[1:], strict=False)
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns query_id, doc_id, grade; one row per judgment."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise DataError("to_frame needs the package pandas; install it with: pip install pandas") from None
        names = np.array(self.query_ids, dtype=object)
        return pandas.DataFrame(
            {"query_id": names[self.query], "doc_id": self.docs.strings(), "grade": self.grades.copy()}
        )

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of the judgments: equal for equal (query, document, grade) in whatever order."""
        if "digest" not in self._cache:
            content = {query: judged for query, judged in self.to_dict().items() if judged}
            # + 0.0 makes -0.0 the zero that it equals
            plain = {query: {doc: g + 0.0 for doc, g in judged.items()} for query, judged in content.items()}
            text = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            import hashlib

            self._cache["digest"] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        return str(self._cache["digest"])

    def select(self, query_ids: Collection[str]) -> Qrels:
        """The judgments of some queries, in the order that they have here; ids that are not here are ignored.

        >>> Qrels.of({"1": ["a"], "2": ["b"], "3": {}}).select({"3", "2", "9"}).to_dict()
        {'2': {'b': 1.0}, '3': {}}
        """
        if isinstance(query_ids, str):
            raise DataError(f"select({query_ids!r}): expected a collection of query ids, not one string")
        wanted = query_ids if isinstance(query_ids, (Set, Mapping)) else set(query_ids)
        kept = [index for index, query_id in enumerate(self.query_ids) if query_id in wanted]
        renumbered = np.full(len(self.query_ids), -1, np.int64)
        renumbered[kept] = np.arange(len(kept))
        query = renumbered[self.query]
        rows = np.flatnonzero(query >= 0)
        return Qrels(
            tuple(self.query_ids[index] for index in kept),
            read_only(query[rows]),
            self.docs[rows],
            read_only(self.grades[rows]),
            self.source,
            self.scale,
            self.warnings,
            self.always.intersection(wanted),
        )

    def _judged(self, query_id: str) -> dict[str, float]:
        index = self._cache.get("index")
        if index is None:
            index = self._cache["index"] = {name: i for i, name in enumerate(self.query_ids)}
            self._cache["judged"] = {}
        judged: dict[str, dict[str, float]] = self._cache["judged"]
        if query_id not in judged:
            if query_id not in index:
                return {}
            rows = slice(*self.offsets[index[query_id] : index[query_id] + 2].tolist())
            judged[query_id] = dict(zip(self.docs.strings(rows), self.grades[rows].tolist(), strict=True))
        return judged[query_id]


class QrelsBuilder:
    """Collects judgments that each know where they stand, and refuses what contradicts."""

    def __init__(self, source: str, scale: Scale = "levels", normalize_ids: bool = False) -> None:
        if scale not in ("levels", "unit"):
            raise DataError(f"the scale of qrels is {excerpt(scale)}; expected levels or unit")
        self.source, self.scale, self.normalize_ids = source, scale, normalize_ids
        self._query_text, self._doc_text = JsonIds(normalize_ids), JsonIds(normalize_ids)
        self._queries: dict[str, int] = {}
        self._query: list[int] = []
        self._docs: list[str] = []
        self._grades: list[float] = []
        self._places: list[str | int] = []

    def add(self, query_id: object, doc_id: object, grade: object, where: str) -> None:
        """One judgment."""
        query, doc = self._query_text(query_id, where), self._doc_text(doc_id, where)
        self._query.append(self._queries.setdefault(query, len(self._queries)))
        self._docs.append(doc)
        self._grades.append(_finite(grade, f"{where}: query {query!r}, document {doc!r}"))
        self._places.append(where)

    def add_query(self, query_id: object, judged: Any, where: str) -> None:
        """The judgments of one query: {document: grade}, or a list or set of relevant documents (grade 1)."""
        query = self._query_text(query_id, where)
        self._queries.setdefault(query, len(self._queries))
        place = f"{where}: query {query!r}"
        if isinstance(judged, Mapping):
            pairs: Iterable[tuple[Any, Any]] = judged.items()
        elif judged is None or isinstance(judged, (str, bytes)) or not isinstance(judged, Iterable):
            raise DataError(
                f"{place}: the judgments are {excerpt(judged)}; expected {{document: grade}} or a list of documents"
            )
        else:
            docs = [(doc, 1.0) for doc in judged]
            # A set has another order in each process.
            pairs = sorted(docs, key=lambda pair: str(pair[0])) if isinstance(judged, Set) else docs
        for doc_id, grade in pairs:
            self.add(query_id, doc_id, grade, place)

    def add_row(self, row: Mapping[str, object], where: str) -> None:
        """One line of JSON Lines: a judgment, or a query with all that is relevant to it."""
        expected = "query_id, doc_id and score, or query_id and relevant"
        query_id = value_of(row, _QUERY_KEYS, where, "row", expected=expected)
        if "relevant" in row:
            self.add_query(query_id, row["relevant"], where)
        else:
            doc_id, grade = (value_of(row, keys, where, "row", expected=expected) for keys in (_DOC_KEYS, _GRADE_KEYS))
            self.add(query_id, doc_id, grade, where)

    def add_columns(
        self, queries: Sequence[str], docs: Sequence[str], grades: Sequence[float], numbers: Sequence[int]
    ) -> None:
        """Many judgments and their lines: texts and finite numbers, checked by the caller."""
        if self.normalize_ids:
            for number, query, doc, grade in zip(numbers, queries, docs, grades, strict=True):
                self.add(query, doc, grade, f"{self.source}:{number}")
            return
        index = self._queries
        for query in dict.fromkeys(queries):
            index.setdefault(query, len(index))
        self._query.extend(map(index.__getitem__, queries))
        self._docs.extend(docs)
        self._grades.extend(grades)
        self._places.extend(numbers)

    def done(self) -> Qrels:
        """The finished qrels; none at all, or two grades for one document, is a DataError."""
        if not self._docs:
            raise DataError(f"no judgments in {self.source}")
        dropped, warnings = self._repeats()
        query, grades = np.array(self._query, np.int64), np.array(self._grades, np.float64)
        docs = self._docs
        if dropped:
            keep = np.setdiff1d(np.arange(len(docs)), dropped)
            query, grades, docs = query[keep], grades[keep], [docs[row] for row in keep.tolist()]
        if np.any(query[1:] < query[:-1]):
            order = np.argsort(query, kind="stable")
            query, grades, docs = query[order], grades[order], [docs[row] for row in order.tolist()]
        return Qrels(
            tuple(self._queries),
            read_only(query),
            Ids.of(docs),
            read_only(grades),
            self.source,
            self.scale,
            warnings,
        )

    def _repeats(self) -> tuple[list[int], tuple[str, ...]]:
        if len(set(zip(self._query, self._docs, strict=True))) == len(self._docs):
            return [], ()
        names = tuple(self._queries)
        first: dict[tuple[int, str], int] = {}
        dropped: list[int] = []
        for row, pair in enumerate(zip(self._query, self._docs, strict=True)):
            before = first.setdefault(pair, row)
            if before == row:
                continue
            if self._grades[before] != self._grades[row]:
                raise DataError(
                    f"{self._place(row)}: query {names[pair[0]]!r}, document {pair[1]!r} has the grade "
                    f"{self._grades[row]:g}, but {self._grades[before]:g} at {self._place(before)}; "
                    "expected one grade for each document"
                )
            dropped.append(row)
        query, doc = self._query[dropped[0]], self._docs[dropped[0]]
        count = "1 judgment is" if len(dropped) == 1 else f"{len(dropped)} judgments are"
        return dropped, (
            f"{count} repeated with the same grade in {self.source} and counted once; "
            f"first at {self._place(dropped[0])}: query {names[query]!r}, document {doc!r}",
        )

    def _place(self, row: int) -> str:
        place = self._places[row]
        return place if isinstance(place, str) else f"{self.source}:{place}"


def _of_table(table: Table, columns: Mapping[str, str] | None, scale: Scale, normalize_ids: bool) -> Qrels:
    from pytest_retrieval_eval.collection.formats.tables import choose, gather

    fields = ("query", "document", "grade")
    rows = gather(table, choose(table, fields, columns, fields))
    grades = rows.numbers["grade"]
    rows.refuse("grade", np.isnan(grades), "null or NaN")
    rows.refuse("grade", np.isinf(grades), "infinite")
    builder = QrelsBuilder(table.source, scale, normalize_ids)
    found = None if normalize_ids else _of_rows(rows, scale)
    if found is not None:
        return found
    # What repeats is looked at judgment by judgment, in the order of the table.
    order = range(len(grades)) if rows.rows is None else np.argsort(rows.rows).tolist()
    names, docs = np.repeat(np.array(rows.query_ids, object), np.diff(rows.bounds)), rows.docs.strings()
    for row in order:
        builder.add(names[row], docs[row], float(grades[row]), rows.where(row))
    return builder.done()


def _of_rows(rows: Gathered, scale: Scale) -> Qrels | None:
    """The judgments of checked rows; None where a document is judged twice for a query."""
    if rows.repeated() is not None:
        return None
    query = np.repeat(np.arange(len(rows.query_ids)), np.diff(rows.bounds))
    return Qrels(rows.query_ids, read_only(query), rows.docs, read_only(rows.numbers["grade"]), rows.source, scale)


def _plain(
    judgments: Mapping[Any, Any],
) -> tuple[npt.NDArray[np.int64], Ids, npt.NDArray[np.float64]] | None:
    """Rows of {str: {str: number}}, which hold nothing that must be looked at one by one; None for others."""
    maps = list(judgments.values())
    if set(map(type, judgments)) != {str} or set(map(type, maps)) != {dict} or "" in judgments:
        return None
    docs = list(chain.from_iterable(maps))
    grades = list(chain.from_iterable(map(dict.values, maps)))
    if set(map(type, docs)) != {str} or not set(map(type, grades)) <= {int, float} or "" in docs:
        return None
    try:
        "".join(judgments).encode()
        ids, values = Ids.of(docs), np.array(grades, np.float64)
    except (DataError, OverflowError, UnicodeEncodeError):
        return None
    if not np.isfinite(values).all():
        return None
    return read_only(np.repeat(np.arange(len(maps)), list(map(len, maps)))), ids, read_only(values)


class _Table:
    """A table of judgments in text: TREC's four columns, or those that a header names."""

    def __init__(self, data: bytes, path: PathLike, builder: QrelsBuilder) -> None:
        self._path, self._builder = path, builder
        self._data = data
        self._columns: tuple[str, ...] = _TREC
        self._tabs = False
        # bytes.split also splits at form feeds and lone CRs, which may stand in an id.
        lone = b"\r" in data and re.search(rb"\r(?!\n|\Z)", data) is not None
        self._odd = lone or b"\x0b" in data or b"\x0c" in data

    def quick(self, scale: Scale) -> Qrels | None:
        """The judgments of a table that is written as it should be; None for one that must be read line by line."""
        from pytest_retrieval_eval.collection.formats.tables import Gatherer
        from pytest_retrieval_eval.collection.formats.textcolumns import text_columns

        line, _, rest = self._data.partition(b"\n")
        if not line.strip() or line.startswith(b"#"):
            return None
        body = rest if self._take_header(line) else self._data
        query, document, grade = map(self._columns.index, ("query", "document", "grade"))
        found = text_columns(body, len(self._columns), (query, document), grade, tabs=self._tabs)
        if found is None:
            return None
        queries, docs, grades = found
        gatherer = Gatherer(str(self._path), ("grade",))
        gatherer.add(queries, docs, [grades])
        return _of_rows(gatherer.result(), scale)

    def read(self) -> None:
        rows: list[list[bytes]] = []
        numbers: list[int] = []
        content = False
        for number, line in enumerate(self._data.split(b"\n"), 1):
            row = self._split(line)
            if not row:
                continue
            comment = row[0].startswith(b"#")
            if not (content or comment):
                content = True
                if self._take_header(line):
                    # What stood before the header and looked like data was a comment.
                    rows, numbers = [], []
                    continue
            if len(row) != len(self._columns):
                if comment:
                    continue
                raise self._malformed(number, line, f"has {len(row)} column{'s' * (len(row) != 1)}", row)
            rows.append(row)
            numbers.append(number)
        if rows:
            self._store(rows, numbers)

    def _store(self, rows: list[list[bytes]], numbers: list[int]) -> None:
        columns = dict(zip(self._columns, zip(*rows, strict=True), strict=True))
        try:
            grades = list(map(float, columns["grade"]))
            fine = all(map(math.isfinite, grades)) and not any(b"_" in text for text in columns["grade"])
        except ValueError:
            fine = False
        if not fine:
            for number, text in zip(numbers, columns["grade"], strict=True):
                if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
                    line = self._data.split(b"\n")[number - 1]
                    shown = text.decode()
                    raise self._malformed(number, line, f"has the grade {shown!r}, which is no finite number")
        if self._tabs:  # between tabs there may be nothing
            for number, query, doc in zip(numbers, columns["query"], columns["document"], strict=True):
                if not (query and doc):
                    raise self._malformed(number, self._data.split(b"\n")[number - 1], "has an empty id")
        queries, docs = ([text.decode() for text in columns[name]] for name in ("query", "document"))
        self._builder.add_columns(queries, docs, grades, numbers)

    def _split(self, line: bytes) -> list[bytes]:
        if self._tabs:
            line = line.removesuffix(b"\r")
            return [cell.strip(b" ") for cell in line.split(b"\t")] if line.strip() else []
        if self._odd:
            line = line.removesuffix(b"\r").strip(b" \t")
            return re.split(rb"[ \t]+", line) if line else []
        return line.split()

    def _take_header(self, line: bytes) -> bool:
        tabs = b"\t" in line
        cells = [cell.strip() for cell in line.split(b"\t")] if tabs else line.split()
        names: list[str] = []
        for cell in cells:
            letters = re.sub(r"[^a-z]", "", cell.decode().lower())
            name = next((name for name, known in _HEADER.items() if letters in known), "other")
            names.append(name if name not in names else "other")
        if not {"query", "document", "grade"} <= set(names):
            return False
        # Columns that are not needed must still be told apart.
        self._columns = tuple(name if name != "other" else f"other {i}" for i, name in enumerate(names))
        self._tabs = tabs
        return True

    def _malformed(self, number: int, line: bytes, found: str, row: list[bytes] | None = None) -> DataError:
        expected = f"{len(self._columns)} columns ({', '.join(self._columns)})"
        hint = ""
        if row is not None and self._columns == _TREC and len(row) == 3 and _NUMBER.fullmatch(row[2]):
            hint = "; a table of 3 columns needs the header line query-id, corpus-id, score"
        elif row is not None and self._columns == _TREC and len(row) == 6:
            hint = "; 6 columns are a run (query, Q0, document, rank, score, name), not qrels"
        elif line.lstrip().startswith(b"#"):
            hint = "; the line begins with # and has as many columns as the file: if it is a comment, remove it"
        elif row is not None and number == self._data.count(b"\n") + 1:
            hint = "; it is the last line and has no line end: the file may be cut off"
        shown = line.decode().rstrip("\r")
        return DataError(f"{self._path}:{number}: {excerpt(shown)} {found}; expected {expected}{hint}")


def _stripped(data: bytes) -> Iterator[bytes]:
    # The first lines decide the format: do not split a large file for them.
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        if line := data[begin:end].strip():
            yield line
        begin = end + 1


def _is_row(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and any(isinstance(row.get(key), (str, int)) for key in _QUERY_KEYS)


def _finite(grade: object, where: str) -> float:
    number = json_number(grade, where, "grade")
    if math.isinf(number):
        raise DataError(f"{where}: the grade is {number}; expected a finite number")
    return number
