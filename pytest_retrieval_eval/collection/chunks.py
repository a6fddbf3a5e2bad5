"""The chunk table: which part of which document each chunk is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_retrieval_eval.collection.files import PathLike, excerpt, json_id, json_lines
from pytest_retrieval_eval.errors import DataError


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document: ``start`` to ``end`` in code points, end exclusive; None where nobody says."""

    doc_id: str
    start: int | None = None
    end: int | None = None
    text: str | None = None


class Chunks:
    """Chunks by id, in the order of their file; immutable.

    >>> chunks = Chunks.of({"guide#1": "guide", "guide#2": Chunk("guide", 120, 480)})
    >>> chunks.document_of("guide#2"), chunks.document_of("unknown"), len(chunks)
    ('guide', None, 2)
    """

    __slots__ = ("__weakref__", "_chunks", "source")

    def __init__(self, chunks: Mapping[str, Chunk], source: str) -> None:
        self._chunks = dict(chunks)
        self.source = source

    @classmethod
    def read(cls, path: PathLike) -> Chunks:
        """``chunks.jsonl``: a line ``{"chunk_id", "doc_id", "start", "end", "text"?}`` for each chunk.

        ``start`` and ``end`` go together, and may both be absent. A malformed line, a chunk that comes twice
        and a file without chunks raise DataError with file and line.
        """
        found: dict[str, Chunk] = {}
        for number, row in json_lines(path):
            where = f"{path}:{number}"
            for key in ("chunk_id", "doc_id"):
                if key not in row:
                    raise DataError(f"{where}: the chunk has no {key!r}; found the keys {excerpt(list(row))}")
            chunk_id = json_id(row["chunk_id"], where)
            if chunk_id in found:
                raise DataError(f"{where}: chunk {excerpt(chunk_id)} comes a second time; expected each chunk once")
            found[chunk_id] = Chunk(json_id(row["doc_id"], where), *_offsets(row, where), _text(row, where))
        if not found:
            raise DataError(f"{path}: the file has no chunk; expected one JSON object in each line")
        return cls(found, str(path))

    @classmethod
    def of(cls, chunks: Mapping[str, str | Chunk], *, source: str = "chunks") -> Chunks:
        """A table from a mapping of chunk id to document id, or to a Chunk."""
        if not isinstance(chunks, Mapping) or not chunks:
            raise DataError(f"chunks are {excerpt(chunks)}; expected a mapping from chunk id to document id")
        made: dict[str, Chunk] = {}
        for chunk_id, chunk in chunks.items():
            chunk = Chunk(chunk) if isinstance(chunk, str) else chunk
            if not isinstance(chunk, Chunk) or not chunk.doc_id or not isinstance(chunk_id, str) or not chunk_id:
                raise DataError(f"chunk {excerpt(chunk_id)} is {excerpt(chunk)}; expected a document id or a Chunk")
            made[chunk_id] = chunk
        return cls(made, source)

    def document_of(self, chunk_id: str) -> str | None:
        """The document that a chunk is part of; None where the table lacks the chunk."""
        found = self._chunks.get(chunk_id)
        return None if found is None else found.doc_id

    def get(self, chunk_id: str) -> Chunk | None:
        """One chunk."""
        return self._chunks.get(chunk_id)

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[str]:
        return iter(self._chunks)

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._chunks

    def __repr__(self) -> str:
        return f"<Chunks {self.source}: {len(self)}>"


def _offsets(row: Mapping[str, Any], where: str) -> tuple[int | None, int | None]:
    start, end = row.get("start"), row.get("end")
    if start is None and end is None:
        return None, None
    if type(start) is not int or type(end) is not int or not 0 <= start <= end:
        raise DataError(
            f"{where}: the chunk goes from {excerpt(start)} to {excerpt(end)}; expected two integers in code points, "
            "0 <= start <= end, or neither"
        )
    return start, end


def _text(row: Mapping[str, Any], where: str) -> str | None:
    text = row.get("text")
    if text is not None and not isinstance(text, str):
        raise DataError(f"{where}: the text of the chunk is {excerpt(text)}; expected a string")
    return text
