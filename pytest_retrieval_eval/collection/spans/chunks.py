"""The chunk table: which part of which document each chunk is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_retrieval_eval.collection.formats.files import JsonIds, PathLike, excerpt
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.formats.rows import is_table, offset, rows_of, value_of, write_rows
from pytest_retrieval_eval.collection.runs.hits import metadata_of, read_hits, text_of
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus
    from pytest_retrieval_eval.collection.spans.locate import Locating

_CHUNK_KEYS = ("chunk_id", "chunk-id")
_DOC_KEYS = ("doc_id", "corpus-id", "corpus_id", "docid", "document_id")
_KEYS = ("chunk_id", "doc_id", "start", "end", "text")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document: ``start`` to ``end`` in code points, end exclusive; None where nobody says.

    >>> Chunk("guide", 0, 21, text="Refunds take 14 days.").end
    21
    """

    doc_id: str
    start: int | None = None
    end: int | None = None
    text: str | None = None


class Chunks:
    """Chunks in columns, in the order of their file; immutable.

    ``ids`` has the id of each chunk, ``doc`` (int64) the place of its document in ``doc_ids``, ``start`` and
    ``end`` (int64, code points, end exclusive) are -1 and ``text`` is None where nobody says. ``places`` has the line
    of each chunk in its file.

    >>> chunks = Chunks.of({"guide#1": "guide", "guide#2": Chunk("guide", 120, 480)})
    >>> chunks.document_of("guide#2"), chunks.document_of("unknown"), len(chunks)
    ('guide', None, 2)
    >>> chunks.start.tolist(), chunks.doc_ids
    ([-1, 120], ('guide',))
    """

    __slots__ = (
        "__weakref__",
        "_agreed",
        "_corpus",
        "_index",
        "_placed",
        "doc",
        "doc_ids",
        "end",
        "ids",
        "places",
        "source",
        "start",
        "text",
        "unplaced",
    )

    def __init__(
        self,
        ids: Sequence[str],
        doc_ids: Sequence[str],
        doc: Ints,
        start: Ints,
        end: Ints,
        text: Sequence[str | None],
        source: str,
        *,
        places: Sequence[str | int] = (),
        unplaced: Mapping[str, str] | None = None,
    ) -> None:
        for column in (doc, start, end):
            column.flags.writeable = False
        self.ids, self.doc_ids, self.text = tuple(ids), tuple(doc_ids), tuple(text)
        self.doc, self.start, self.end = doc, start, end
        self.source, self.places = source, places
        self.unplaced = unplaced or {}
        self._corpus: Corpus | None = None
        self._agreed: set[int] = set()  # rows whose text stands at their offsets
        self._placed: Chunks | None = None
        self._index: dict[str, int] | None = None

    @classmethod
    def read(cls, path: PathLike, *, normalize_ids: bool = False) -> Chunks:
        """A chunk table: ``chunk_id``, ``doc_id``, ``start``, ``end`` and perhaps ``text`` of each chunk.

        In JSON Lines, one object in each line; in ``.csv`` or ``.tsv`` with a header line; or in Parquet. ``start``
        and ``end`` go together, and may both be absent. A malformed row, a chunk that comes twice and a file
        without chunks raise DataError with file and line. ``normalize_ids`` brings ids to Unicode form NFC.
        """
        made = _Builder(str(path), normalize_ids)
        table = is_table(path)
        for place, row in rows_of(path):
            where = place if isinstance(place, str) else f"{path}:{place}"
            chunk_id = value_of(row, _CHUNK_KEYS, where, "chunk", _KEYS)
            doc_id = value_of(row, _DOC_KEYS, where, "chunk", _KEYS)
            made.add(chunk_id, doc_id, row.get("start"), row.get("end"), row.get("text"), where, of_text=table)
            made.places.append(place)
        if not made.ids:
            raise DataError(f"{path}: the file has no chunk; expected one JSON object in each line")
        return made.done()

    @classmethod
    def of(cls, chunks: Mapping[str, str | Chunk], *, source: str = "chunks") -> Chunks:
        """A table from a mapping of chunk id to document id, or to a Chunk."""
        if not isinstance(chunks, Mapping) or not chunks:
            raise DataError(f"chunks are {excerpt(chunks)}; expected a mapping from chunk id to document id")
        made = _Builder(source, False)
        for chunk_id, chunk in chunks.items():
            chunk = Chunk(chunk) if isinstance(chunk, str) else chunk
            if not isinstance(chunk, Chunk) or not chunk.doc_id or not isinstance(chunk_id, str) or not chunk_id:
                raise DataError(f"chunk {excerpt(chunk_id)} is {excerpt(chunk)}; expected a document id or a Chunk")
            made.add(chunk_id, chunk.doc_id, chunk.start, chunk.end, chunk.text, f"chunk {excerpt(chunk_id)}")
        return made.done()

    @classmethod
    def of_documents(cls, chunks: Iterable[Any], *, source: str = "chunks") -> Chunks:
        """A table of the chunks that a splitter made: documents of LangChain or Haystack, nodes of LlamaIndex, or
        mappings; read by their shape.

        The id is found as in the hits of a retriever. The document is ``doc_id`` of the chunk or of its metadata,
        ``ref_doc_id`` (LlamaIndex), ``source_id`` (Haystack), else ``source`` (LangChain); offsets are ``start`` and
        ``end``, ``start_char_idx`` and ``end_char_idx`` (LlamaIndex), ``split_idx_start`` (Haystack) or
        ``start_index`` (LangChain, with ``add_start_index=True``), and may be absent.
        """
        if isinstance(chunks, (str, bytes, Mapping)) or not isinstance(chunks, Iterable):
            raise DataError(f"chunks are {excerpt(chunks)}; expected a list of documents or nodes")
        made = _Builder(source, False)
        for number, item in enumerate(chunks, 1):
            where = f"{source}: chunk {number}"
            hit = read_hits([item], where)[0]
            parent = hit.doc_id if hit.doc_id is not None else metadata_of(item).get("source")
            if parent is None:
                raise DataError(
                    f"{where}: nothing says which document {excerpt(hit.id)} is part of; expected doc_id, or metadata "
                    "with doc_id, source_id or source"
                )
            made.add(hit.id, parent, hit.start, hit.end, text_of(item), where)
        if not made.ids:
            raise DataError(f"{source}: there is no chunk; expected a list of documents or nodes")
        return made.done()

    def within(self, corpus: Corpus) -> Chunks:
        """The same table, which can look in this corpus for the chunks that have a text and no offsets, and hold the
        text of the others against it.
        """
        if self._corpus is corpus:
            return self
        made = self.at(self.start, self.end, self.unplaced)
        made._corpus = corpus
        return made

    def at(self, start: Ints, end: Ints, unplaced: Mapping[str, str]) -> Chunks:
        """The same chunks, those that had no offsets at the ones that were found for them."""
        made = Chunks(
            self.ids,
            self.doc_ids,
            self.doc,
            start,
            end,
            self.text,
            self.source,
            places=self.places,
            unplaced=unplaced,
        )
        made._corpus = self._corpus
        made._agreed = self._agreed.union(np.flatnonzero(self.start < 0).tolist())
        return made

    def located(self, corpus: Corpus) -> tuple[Chunks, Locating]:
        """The table with the offsets that it lacks, found by the texts of the chunks in their documents.

        Beside it what came of it; its text is one sentence. A chunk whose text has no place or several ones keeps
        no offsets, and ``unplaced`` of the new table says why.

        >>> from pytest_retrieval_eval import Corpus
        >>> corpus = Corpus.of({"guide": "Refunds take 14 days.  Please contact the desk of your office."})
        >>> table = Chunks.of({"g#1": Chunk("guide", text="Guide: Please contact the desk of your office.")})
        >>> placed, came = table.located(corpus)
        >>> placed.get("g#1").start, str(came)
        (23, '1 of 1 chunks found by their text (1 without a header or footer)')
        """
        from pytest_retrieval_eval.collection.spans.locate import located

        return located(self, corpus)

    def placed(self) -> Chunks:
        """The table with all offsets that can be known: those of chunks with a text and none are looked for once."""
        if self._placed is None:
            lacks = any(
                text is not None and start < 0 for text, start in zip(self.text, self.start.tolist(), strict=True)
            )
            self._placed = self if self._corpus is None or not lacks else self.located(self._corpus)[0]
        return self._placed

    @property
    def checkable(self) -> bool:
        """Whether any text of the table can be held against a corpus."""
        return self._corpus is not None and any(text is not None for text in self.text)

    def check(self, rows: Ints, user: str) -> None:
        """Raise DataError where one of these chunks says offsets and a text, and the corpus has another text there.

        ``user`` names what uses them, as a sentence does. Nothing is checked where the corpus is not known (`within`),
        or lacks the document.

        >>> from pytest_retrieval_eval import Corpus
        >>> table = Chunks.of({"g#1": Chunk("guide", 0, 7, "14 days")})
        >>> table = table.within(Corpus.of({"guide": "Refunds take 14 days."}))
        >>> table.check(np.array([0]), "run main returns")
        Traceback (most recent call last):
        pytest_retrieval_eval.errors.DataError: chunks: the chunk 'g#1' is 0-7 of 'guide', where 'Refunds' stands, ...
        """
        if self._corpus is None:
            return
        both = [row for row in np.unique(rows).tolist() if self.text[row] is not None and self.start[row] >= 0]
        new = [row for row in both if row not in self._agreed]
        if not new:
            return
        from pytest_retrieval_eval.collection.spans.agreement import Part, refuse_contradictions

        columns = self.doc[new].tolist(), self.start[new].tolist(), self.end[new].tolist()
        parts = [
            Part(self.ids[row], self.doc_ids[doc], start, end, self.text[row] or "")
            for row, doc, start, end in zip(new, *columns, strict=True)
        ]
        refuse_contradictions(
            parts, self._corpus, lambda number: self.where(new[number]), f"of {len(both)} chunks that {user}"
        )
        self._agreed.update(new)

    def where(self, row: int) -> str:
        """Where a chunk stands: ``file:line`` where it was read from a file."""
        if not self.places:
            return self.source
        place = self.places[row]
        return place if isinstance(place, str) else f"{self.source}:{place}"

    def has_at(self, chunk_id: str, doc_id: str, start: int, end: int) -> bool:
        """Whether the table has the chunk at this place: not only its id, which other chunks may have had before.

        >>> chunks = Chunks.of({"guide#2": Chunk("guide", 120, 480)})
        >>> chunks.has_at("guide#2", "guide", 120, 480), chunks.has_at("guide#2", "guide", 200, 400)
        (True, False)
        """
        chunk = self.placed().get(chunk_id)
        return chunk is not None and (chunk.doc_id, chunk.start, chunk.end) == (doc_id, start, end)

    def save(self, path: PathLike) -> None:
        """Write the table as JSON Lines (``.jsonl``), ``.csv`` or ``.tsv``, also compressed; equal tables give
        equal bytes.
        """
        write_rows(path, (self._row(row) for row in range(len(self))), _KEYS, "chunks")

    def _row(self, row: int) -> dict[str, Any]:
        said: dict[str, Any] = {"chunk_id": self.ids[row], "doc_id": self.doc_ids[int(self.doc[row])]}
        if self.start[row] >= 0:
            said.update(start=int(self.start[row]), end=int(self.end[row]))
        return said if self.text[row] is None else {**said, "text": self.text[row]}

    def document_of(self, chunk_id: str) -> str | None:
        """The document that a chunk is part of; None where the table lacks the chunk."""
        row = self.row_of(chunk_id)
        return None if row is None else self.doc_ids[int(self.doc[row])]

    def get(self, chunk_id: str) -> Chunk | None:
        """One chunk."""
        row = self.row_of(chunk_id)
        if row is None:
            return None
        start, end = int(self.start[row]), int(self.end[row])
        doc_id, text = self.doc_ids[int(self.doc[row])], self.text[row]
        return Chunk(doc_id, None, None, text) if start < 0 else Chunk(doc_id, start, end, text)

    def row_of(self, chunk_id: str) -> int | None:
        """The row of a chunk in the columns; None where the table lacks it."""
        if self._index is None:
            self._index = {name: row for row, name in enumerate(self.ids)}
        return self._index.get(chunk_id)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __contains__(self, chunk_id: object) -> bool:
        return isinstance(chunk_id, str) and self.row_of(chunk_id) is not None

    def __repr__(self) -> str:
        return f"<Chunks {self.source}: {len(self)}>"


class _Builder:
    def __init__(self, source: str, normalize_ids: bool) -> None:
        self.source = source
        self._ids, self._doc_text = JsonIds(normalize_ids), JsonIds(normalize_ids)
        self.ids: dict[str, None] = {}
        self._docs: dict[str, int] = {}
        self._doc: list[int] = []
        self._offsets: list[tuple[int, int]] = []
        self._text: list[str | None] = []
        self.places: list[str | int] = []

    def add(
        self, chunk_id: object, doc_id: object, start: Any, end: Any, text: Any, where: str, *, of_text: bool = False
    ) -> None:
        name = self._ids(chunk_id, where)
        if name in self.ids:
            raise DataError(f"{where}: chunk {excerpt(name)} comes a second time; expected each chunk once")
        if text is not None and not isinstance(text, str):
            raise DataError(f"{where}: the text of the chunk is {excerpt(text)}; expected a string")
        self._offsets.append(_offsets(start, end, where, of_text))
        self.ids[name] = None
        self._doc.append(self._docs.setdefault(self._doc_text(doc_id, where), len(self._docs)))
        self._text.append(text)

    def done(self) -> Chunks:
        start, end = np.array(self._offsets, np.int64).reshape(-1, 2).T.copy()
        return Chunks(
            tuple(self.ids),
            tuple(self._docs),
            np.array(self._doc, np.int64),
            start,
            end,
            self._text,
            self.source,
            places=self.places,
        )


def _offsets(start: Any, end: Any, where: str, of_text: bool) -> tuple[int, int]:
    if start is None and end is None:
        return -1, -1
    first, last = offset(start, of_text=of_text), offset(end, of_text=of_text)
    if first is None or last is None or first > last:
        raise DataError(
            f"{where}: the chunk goes from {excerpt(start)} to {excerpt(end)}; expected two integers in code points, "
            "0 <= start <= end, or neither"
        )
    return first, last
