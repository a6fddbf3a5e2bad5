"""Moved spans in their file: what did not move stays byte for byte."""

from __future__ import annotations

import gzip

import pytest

from pytest_retrieval_eval import DataError, Spans
from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.spans.anchors import check_spans
from pytest_retrieval_eval.collection.spans.respan import rewrite, rewritten
from pytest_retrieval_eval.collection.spans.spanrows import text_hash

NEW = "New: Refunds take 14 days. Ask at the desk."
CORPUS = Corpus.of({"d": NEW, "e": "Café opens"})
LINES = [
    '{"query_id": "q1", "doc_id": "d", "start": 13, "end": 20, "text": "14 days", "note": "kept as it is", "grade": 2}',
    "",
    '{"start":0,"end":4,"doc_id":"e","query_id":7,"text":"Caf\\u00e9"}',
    '{"query_id":"q2","doc_id":"d","start":22,"end":25,"hash":"%s","text":null}' % text_hash("Ask"),  # noqa: UP031
    '{"query_id": "q3", "doc_id": "d", "start": 0, "end": 3}',
    '{"query_id": "q1", "doc_id": "d", "start": 13, "end": 20, "text": "14 days", "grade": 2}',
]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["spans.jsonl", "spans.jsonl.gz"])
def test_only_the_lines_of_moved_spans_change(tmp_path, ends, name):
    path = tmp_path / name
    content = "\ufeff" + ends.join(LINES) + ends
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    assert rewrite(check_spans(Spans.read(path), CORPUS), path) == 3
    read = gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()
    lines = read.decode().removeprefix("\ufeff").split(ends)
    moved = {0: LINES[0].replace("13", "18").replace("20", "25"), 5: LINES[5].replace("13", "18").replace("20", "25")}
    moved[3] = LINES[3].replace("22", "27").replace("25", "30", 1)
    assert lines == [moved.get(number, line) for number, line in enumerate(LINES)] + [""]
    assert read.startswith(b"\xef\xbb\xbf")
    again = check_spans(Spans.read(path), CORPUS)
    assert again.counts == {"kept": 3, "moved": 0, "ambiguous": 0, "lost": 0, "unchecked": 1}
    before = path.stat().st_mtime_ns
    assert rewrite(again, path) == 0
    assert path.stat().st_mtime_ns == before


def test_a_table(tmp_path):
    path = tmp_path / "spans.csv"
    path.write_text(
        'query_id,doc_id,start,end,text,note\nq1,d,13,20,14 days,"a, b"\nq2,e,0,4,Café,\n', encoding="utf-8"
    )
    assert rewrite(check_spans(Spans.read(path), CORPUS), path) == 1
    assert path.read_text(encoding="utf-8").splitlines() == [
        "query_id,doc_id,start,end,text,note",
        'q1,d,18,25,14 days,"a, b"',
        "q2,e,0,4,Café,",
    ]


def test_what_cannot_be_written_is_an_error(tmp_path):
    path = tmp_path / "spans.jsonl"
    path.write_text(LINES[0] + "\n")
    anchors = check_spans(Spans.read(path), CORPUS)
    path.write_text(LINES[4] + "\n")
    with pytest.raises(DataError, match="has changed since its spans were read"):
        rewritten(anchors, path)
    for name in ("spans.parquet", "spans.json"):
        with pytest.raises(DataError, match=r"into \.jsonl, \.csv and \.tsv files alone"):
            rewritten(anchors, tmp_path / name)
    answers = '{"id": "q1", "doc_id": "d", "answers": {"text": ["14 days"], "answer_start": [13]}}\n'
    path.write_text(answers)
    with pytest.raises(DataError, match="answers of SQuAD cannot be moved in place"):
        rewritten(check_spans(Spans.read(path), CORPUS), path)
