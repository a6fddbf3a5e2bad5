"""Gold as parts of documents: query → (document, start, end), in columns.

Such gold outlives a new chunking: what a chunk covers of it is found anew for every run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.collection.formats.files import PathLike
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.formats.tables import Floats
from pytest_retrieval_eval.errors import DataError


@dataclass(frozen=True, slots=True)
class Span:
    """A passage that answers a query: ``start`` to ``end`` of a document in code points, end exclusive.

    ``text`` is a copy of the passage, ``hash`` the ``sha256:<hex>`` of its UTF-8 bytes: either says later whether
    the passage still stands there. Spans of one query with the same ``group`` are alternatives: one of them is
    enough.

    >>> Span("q1", "guide", 120, 133, text="Refunds: 14 d").end
    133
    """

    query_id: str
    doc_id: str
    start: int
    end: int
    grade: float = 1.0
    text: str | None = None
    hash: str | None = None
    group: str | int | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spans:
    """Gold spans in columns; the rows of one query are contiguous, queries stand in the order first seen.

    ``query`` and ``doc`` (int64, rows) are indices into ``query_ids`` and ``doc_ids``; ``start`` and ``end``
    (int64) count code points, end exclusive; ``grade`` is float64. ``group`` (int64) is the number of a row's
    group, unique over all queries: rows of one group are alternatives, and a row without a group is one of its
    own. ``texts`` and ``hashes`` have None where the file says nothing. ``lengths`` has how many characters each
    document has, where the spans were held against a corpus.

    >>> spans = Spans.of({"q1": [("guide", 120, 133)], "q2": [{"doc_id": "faq", "start": 0, "end": 5}]})
    >>> len(spans), spans.query_ids, spans.of_query("q2")[0].doc_id, spans.where(0)
    (2, ('q1', 'q2'), 'faq', "query 'q1', span 1")
    """

    query_ids: tuple[str, ...]
    query: Ints
    doc_ids: tuple[str, ...]
    doc: Ints
    start: Ints
    end: Ints
    grade: Floats
    group: Ints
    texts: Sequence[str | None]
    hashes: Sequence[str | None]
    source: str
    warnings: tuple[str, ...]
    group_names: Sequence[str | int | None] = field(repr=False)
    places: Sequence[str | int] = field(repr=False)
    lengths: Mapping[str, int] = field(default_factory=dict, repr=False)
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def read(cls, path: PathLike, *, normalize_ids: bool = False) -> Spans:
        """Read gold spans; the ending says in which format, and of JSON the content.

        * JSON Lines: ``{"query_id", "doc_id", "start", "end", "text"?, "hash"?, "grade"?, "group"?}`` in each line;
        * a table with a header line that names these columns: ``.csv``, or ``.tsv`` with tabs;
        * Parquet, with these columns;
        * JSON as SQuAD has it: paragraphs with a ``context`` and ``qas``, whose ``answers`` have ``text`` and
          ``answer_start``. All answers to a question are one group. A paragraph is a document, named by its
          ``document_id`` (or ``doc_id``, ``id``), else by the article's title and its number: ``Title#0``.

        A span that ends where it starts or before, an offset that is no integer of 0 or more, a missing key and a
        file without spans raise DataError with file and line. ``normalize_ids`` brings ids to Unicode form NFC.
        """
        from pytest_retrieval_eval.collection.spans.spanrows import read_spans

        return read_spans(path, normalize_ids)

    @classmethod
    def of(cls, spans: Mapping[Any, Iterable[Any]] | Iterable[Any], *, source: str = "spans") -> Spans:
        """Spans of an iterable of Span (or mappings with the same keys), or of a mapping from query to such.

        In a mapping a span may also be ``(document, start, end)``, and needs no query id.
        """
        from pytest_retrieval_eval.collection.spans.spanrows import spans_of

        return spans_of(spans, source)

    def save(self, path: PathLike) -> None:
        """Write JSON Lines (``.jsonl``), ``.csv`` or ``.tsv``, also compressed; equal spans give equal bytes."""
        from pytest_retrieval_eval.collection.spans.spanrows import write_spans

        write_spans(self, path)

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        return f"<Spans {self.source}: {len(self.query_ids)} queries, {len(self)} spans>"

    @property
    def offsets(self) -> Ints:
        """Where rows lie (int64, queries + 1): those of query i are offsets[i] up to offsets[i + 1]."""
        if "offsets" not in self._cache:
            counts = np.bincount(self.query, minlength=len(self.query_ids))
            self._cache["offsets"] = read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        return cast(Ints, self._cache["offsets"])

    def where(self, row: int) -> str:
        """Where a row stands: ``file:line``, or the query and the number of its span."""
        place = self.places[row]
        return place if isinstance(place, str) else f"{self.source}:{place}"

    def span(self, row: int) -> Span:
        """One row."""
        return Span(
            self.query_ids[int(self.query[row])],
            self.doc_ids[int(self.doc[row])],
            int(self.start[row]),
            int(self.end[row]),
            float(self.grade[row]),
            self.texts[row],
            self.hashes[row],
            self.group_names[row],
        )

    def of_query(self, query_id: str) -> list[Span]:
        """The spans of one query; none where the query is unknown."""
        if "index" not in self._cache:
            self._cache["index"] = {name: i for i, name in enumerate(self.query_ids)}
        place = self._cache["index"].get(query_id)
        return [] if place is None else [self.span(row) for row in range(*self.offsets[place : place + 2].tolist())]

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of the gold: equal for equal spans, grades and groups in whatever order and under
        whatever group names; copies of the text do not count.
        """
        if "digest" not in self._cache:
            import hashlib
            import json

            groups: dict[int, list[tuple[str, int, int, float]]] = {}
            queries: dict[int, str] = {}
            for row, group in enumerate(self.group.tolist()):
                span = self.span(row)
                queries[group] = span.query_id
                groups.setdefault(group, []).append((span.doc_id, span.start, span.end, span.grade + 0.0))
            content = sorted((queries[group], sorted(rows)) for group, rows in groups.items())
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
            self._cache["digest"] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        return str(self._cache["digest"])

    def select(self, query_ids: Collection[str]) -> Spans:
        """The spans of some queries, in the order that they have here; ids that are not here are ignored.

        >>> Spans.of({"1": [("a", 0, 3)], "2": [("b", 4, 9)]}).select({"2", "9"}).query_ids
        ('2',)
        """
        if isinstance(query_ids, str):
            raise DataError(f"select({query_ids!r}): expected a collection of query ids, not one string")
        wanted = query_ids if isinstance(query_ids, (Set, Mapping)) else set(query_ids)
        kept = np.array([name in wanted for name in self.query_ids], np.bool_)
        return self.take(np.flatnonzero(kept[self.query]))

    def moved(self, start: Ints, end: Ints, texts: Sequence[str | None], hashes: Sequence[str | None]) -> Spans:
        """The same rows at other offsets."""
        return replace(self, start=read_only(start), end=read_only(end), texts=texts, hashes=hashes)

    def take(self, rows: Ints) -> Spans:
        """Some rows, in ascending order; queries and documents without a row are left out."""
        queries, query = np.unique(self.query[rows], return_inverse=True)
        docs, doc = np.unique(self.doc[rows], return_inverse=True)
        chosen = rows.tolist()
        return Spans(
            tuple(self.query_ids[i] for i in queries.tolist()),
            read_only(query.astype(np.int64)),
            tuple(self.doc_ids[i] for i in docs.tolist()),
            read_only(doc.astype(np.int64)),
            read_only(self.start[rows]),
            read_only(self.end[rows]),
            read_only(self.grade[rows]),
            read_only(np.unique(self.group[rows], return_inverse=True)[1].astype(np.int64)),
            [self.texts[row] for row in chosen],
            [self.hashes[row] for row in chosen],
            self.source,
            self.warnings,
            [self.group_names[row] for row in chosen],
            [self.places[row] for row in chosen],
            self.lengths,
        )
