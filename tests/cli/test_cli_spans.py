"""``pytest-retrieval-eval spans``: gold held against an edited corpus, and moved with it."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.cli import main

OLD = {"guide": "A: 14 days by post. B: 14 days by train, and more.", "faq": "Yes."}
NEW = {"guide": "Since May. A: 14 days by post. B: 14 days by train, and more.", "faq": "No."}


@pytest.fixture
def dataset(tmp_path):
    rows = [
        {"query_id": "q1", "doc_id": "guide", "start": 3, "end": 10, "text": "14 days"},
        {"query_id": "q2", "doc_id": "guide", "start": 31, "end": 49, "text": "by train, and more"},
    ]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, corpus in (("corpus", NEW), ("old", OLD)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in corpus.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    return tmp_path


def test_check_says_what_became_of_each_span(dataset, capsys):
    before = (dataset / "spans.jsonl").read_bytes()
    assert main(["spans", "check", str(dataset)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"ambiguous: {dataset}/spans.jsonl:1: query 'q1', 'guide' 3-10: gold '14 days', at 3-10 now 'ce May.' "
        "(it stands in 2 places)",
        f"moved: {dataset}/spans.jsonl:2: query 'q2', 'guide' 31-49 -> 42-60: gold 'by train, and more', at 31-49 now "
        "'B: 14 days by trai'",
    ]
    assert err == f"gold spans of {dataset}/spans.jsonl: 1 moved, 1 ambiguous\n"
    assert (dataset / "spans.jsonl").read_bytes() == before


def test_reanchor_writes_and_the_old_corpus_decides(dataset, capsys):
    assert main(["spans", "reanchor", str(dataset), "--old-corpus", str(dataset / "old.jsonl")]) == 0
    assert "2 rows of" in capsys.readouterr().err
    rows = [json.loads(line) for line in (dataset / "spans.jsonl").read_text().splitlines()]
    assert [(row["start"], row["end"], row["text"]) for row in rows] == [
        (14, 21, "14 days"),
        (42, 60, "by train, and more"),
    ]
    assert main(["spans", "check", str(dataset)]) == 0
    assert main(["spans", "reanchor", str(dataset)]) == 0
    assert "nothing was written" in capsys.readouterr().err


def test_reanchor_moves_what_it_can_and_says_what_it_cannot(dataset, capsys):
    assert main(["spans", "reanchor", str(dataset), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["written"], found["counts"]["moved"], found["counts"]["ambiguous"]) == (1, 1, 1)
    assert found["spans"][1]["now"] == {"start": 42, "end": 60, "text": "by train, and more"}
    assert found["spans"][0]["note"] == "it stands in 2 places"


def test_without_spans_or_corpus_nothing_can_be_looked_at(dataset, capsys):
    (dataset / "corpus.jsonl").unlink()
    assert main(["spans", "check", str(dataset)]) == 2
    assert "no corpus (corpus.jsonl) to hold the spans against" in capsys.readouterr().err
    (dataset / "spans.jsonl").unlink()
    (dataset / "qrels").mkdir()
    (dataset / "qrels" / "test.tsv").write_text("q\t0\td\t1\n")
    assert main(["spans", "check", str(dataset)]) == 2
    assert "no gold spans" in capsys.readouterr().err


def test_a_stored_run_whose_offsets_are_of_a_former_text_is_not_measured(tmp_path, monkeypatch, capsys):
    text = "Refunds take 14 days by post."
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "how long?"}\n')
    row = {"query_id": "q1", "doc_id": "guide", "start": 13, "end": 20, "text": "14 days"}
    (tmp_path / "spans.jsonl").write_text(json.dumps(row) + "\n")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"_id": "guide", "text": text}) + "\n")
    (tmp_path / "finder.py").write_text(
        "def find(query):\n    return [{'id': 'guide#0', 'doc_id': 'guide', 'start': 0, 'end': 29}]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = str(tmp_path / "old.run.jsonl")
    assert main(["run", "--dataset", str(tmp_path), "--retriever", "finder:find", "--depth", "5", "-o", run]) == 0
    ways = (["-m", "span_recall@1"], ["-m", "recall@1", "--labels", "spans"])
    for way in ways:
        assert main(["evaluate", str(tmp_path), run, *way]) == 0
    capsys.readouterr()
    corpus.write_text(json.dumps({"_id": "guide", "text": "As of the first of May: " + text}) + "\n")
    for way in ways:
        assert main(["evaluate", str(tmp_path), run, *way]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert "was saved when 1 gold span stood elsewhere in 1 document that was edited since (guide)" in err
    assert main(["compare-all", str(tmp_path), f"old={run}", f"again={run}", "-m", "span_recall@1"]) == 2
    assert "run old was saved when 1 gold span stood elsewhere" in capsys.readouterr().err
