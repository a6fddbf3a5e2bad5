"""The chunk table: its columns and files, and the chunks of splitters."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_retrieval_eval import Chunk, Chunks, DataError, Dataset
from pytest_retrieval_eval.collection.runs.hits import Hit, read_hits

TABLE = {"a#1": Chunk("a", 0, 4, "🙂 one"), "b#1": Chunk("b"), "a#2": Chunk("a", 7, 7)}


def test_columns():
    chunks = Chunks.of(TABLE)
    assert chunks.ids == ("a#1", "b#1", "a#2")
    assert [chunks.doc_ids[doc] for doc in chunks.doc] == ["a", "b", "a"]
    assert (chunks.start.tolist(), chunks.end.tolist()) == ([0, -1, 7], [4, -1, 7])
    assert chunks.text == ("🙂 one", None, None)
    assert {name: chunks.get(name) for name in chunks} == TABLE
    assert (chunks.row_of("a#2"), chunks.row_of("x"), 3 in chunks) == (2, None, False)
    assert not any(column.flags.writeable for column in (chunks.doc, chunks.start, chunks.end))


def test_a_dataset_takes_the_mapping_as_it_is():
    dataset = Dataset.of(qrels={"q": ["a"]}, corpus={"a": "Refunds take 14 days."}, chunks={"a#1": "a"})
    assert dataset.chunks.document_of("a#1") == "a"
    with pytest.raises(DataError, match="expected a mapping from chunk id"):
        Dataset.of(qrels={"q": ["a"]}, chunks=["a#1"])


def test_every_format_says_the_same(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    chunks = Chunks.of(TABLE)
    for name in ("a.jsonl", "a.csv", "a.tsv.gz"):
        chunks.save(tmp_path / name)
        read = Chunks.read(tmp_path / name)
        assert {chunk: read.get(chunk) for chunk in read} == TABLE, name
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[1] == {"chunk_id": "b#1", "doc_id": "b"}
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert Chunks.read(tmp_path / "a.parquet").get("a#1") == TABLE["a#1"]
    before = (tmp_path / "a.jsonl").read_bytes()
    Chunks.read(tmp_path / "a.jsonl").save(tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"chunk": "x", "doc_id": "a"}, r"no 'chunk_id'; is 'chunk' meant to be it\?"),
        ({"chunk_id": "x", "doc_id": "a", "start": True, "end": 4}, "from True to 4"),
        ({"chunk_id": "x", "doc_id": "a", "start": -1, "end": 4}, "from -1 to 4"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, row, said):
    path = tmp_path / "chunks.jsonl"
    path.write_text('{"chunk_id": "y", "doc_id": "a"}\n' + json.dumps(row) + "\n")
    with pytest.raises(DataError, match=rf"chunks\.jsonl:2: .*{said}"):
        Chunks.read(path)


# --- by their shape: the attributes of LangChain's and Haystack's Document and of LlamaIndex' TextNode -----------


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class HaystackDocument:
    id: str
    content: str
    meta: dict[str, Any] = field(default_factory=dict)
    score: float | None = None


@dataclass
class TextNode:
    node_id: str
    text: str
    start_char_idx: int | None = None
    end_char_idx: int | None = None
    ref_doc_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class NodeWithScore:
    node: TextNode
    score: float


@pytest.mark.parametrize(
    "item",
    [
        LangChainDocument("abc", {"doc_id": "guide", "start_index": 5, "source": "x.md"}, "c1"),
        LangChainDocument("abc", {"id": "c1", "doc_id": "guide", "start": 5, "end": 8}, "made-up"),
        LangChainDocument("abc", {"source": "guide", "start_index": 5}, "c1"),
        HaystackDocument("c1", "abc", {"source_id": "guide", "split_idx_start": 5}),
        TextNode("c1", "abc", 5, 8, "guide"),
        NodeWithScore(TextNode("c1", "abc", 5, 8, "guide"), 0.5),
        {"id": "c1", "doc_id": "guide", "start": 5, "end": 8, "text": "abc"},
    ],
)
def test_chunks_of_splitters(item):
    chunks = Chunks.of_documents([item])
    assert {name: chunks.get(name) for name in chunks} == {"c1": Chunk("guide", 5, 8, "abc")}


def test_hits_carry_the_same_offsets():
    lang = LangChainDocument("abc", {"doc_id": "guide", "start_index": 5}, "c1")
    stack = HaystackDocument("c2", "abc", {"source_id": "guide", "split_idx_start": 5}, 0.5)
    assert read_hits([lang], "query 'q'") == [Hit("c1", None, "guide", 5, 8)]
    assert read_hits([stack], "query 'q'") == [Hit("c2", 0.5, "guide", 5, 8)]


def test_chunks_without_offsets_keep_their_text():
    missing = LangChainDocument("abc", {"doc_id": "guide", "start_index": -1}, "c1")
    assert Chunks.of_documents([missing]).get("c1") == Chunk("guide", None, None, "abc")


def test_chunks_of_nothing_known_are_errors():
    with pytest.raises(DataError, match=r"chunk 1, rank 1: the hit .* has no id"):
        Chunks.of_documents([LangChainDocument("abc", {"source": "guide"})])
    with pytest.raises(DataError, match="nothing says which document 'c1' is part of"):
        Chunks.of_documents([LangChainDocument("abc", {}, "c1")])
    with pytest.raises(DataError, match="chunk 2: chunk 'c1' comes a second time"):
        Chunks.of_documents([TextNode("c1", "abc", ref_doc_id="a"), TextNode("c1", "b", ref_doc_id="a")])
    for wrong in ({}, "x", []):
        with pytest.raises(DataError, match="expected a list of documents"):
            Chunks.of_documents(wrong)
