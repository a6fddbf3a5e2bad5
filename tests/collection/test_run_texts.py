"""Texts of documents that are kept with a run."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Document
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError

RUN = Run.of({"q1": ["a", "b"], "q2": ["a"]}, depth=2)
TEXTS = {"b": Document("", "line\nbreak"), "a": Document("Ä title", "text")}


@pytest.mark.parametrize("ending", ["run.jsonl", "run.jsonl.gz", "parquet"])
@pytest.mark.parametrize("texts", [{}, TEXTS])
def test_a_file_keeps_them(tmp_path, ending, texts):
    path = tmp_path / f"main.{ending}"
    RUN.with_texts(texts).save(path)
    read = Run.read(path)
    assert read.texts == texts
    assert read.digest == RUN.digest
    assert read.to_dict() == RUN.to_dict()
    assert read.depth == 2
    assert dict(read.header) == {}


@given(st.dictionaries(st.text(min_size=1), st.builds(Document, st.text(), st.text()), max_size=4))
def test_any_text_comes_back(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("runs") / "x.run.jsonl"
    RUN.with_texts(texts).save(path)
    assert Run.read(path).texts == texts


def test_each_document_stands_once_and_in_order(tmp_path):
    path = tmp_path / "main.run.jsonl.gz"
    RUN.with_texts(TEXTS).save(path)
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    assert lines[0]["texts"] == 2
    assert lines[3:] == [
        {"doc_id": "a", "title": "Ä title", "text": "text"},
        {"doc_id": "b", "text": "line\nbreak"},
    ]
    again = tmp_path / "again.run.jsonl.gz"
    Run.read(path).save(again)
    assert again.read_bytes() == path.read_bytes()


def test_a_file_without_texts_does_not_mention_them(tmp_path):
    RUN.save(tmp_path / "main.run.jsonl")
    assert "text" not in (tmp_path / "main.run.jsonl").read_text()


def test_a_trec_file_loses_them(tmp_path):
    with pytest.warns(UserWarning, match="the texts of its documents"):
        RUN.with_texts(TEXTS).save(tmp_path / "main.trec")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda lines: lines[:-1], r"declares 2 texts of documents, the file has 1; it was probably cut off"),
        (lambda lines: [*lines, lines[-1]], r"x.run.jsonl:6: the text of document 'b' comes a second time"),
        (lambda lines: [*lines[:-1], '{"doc_id": "b", "text": 7}'], r"x.run.jsonl:5: document 'b' has title"),
        (lambda lines: [*lines[:-1], '{"text": "x"}'], r"x.run.jsonl:5"),
    ],
)
def test_a_table_that_cannot_be_whole(tmp_path, change, sentence):
    path = tmp_path / "x.run.jsonl"
    RUN.with_texts(TEXTS).save(path)
    path.write_text("\n".join(change(path.read_text(encoding="utf-8").splitlines())) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=sentence):
        Run.read(path)
