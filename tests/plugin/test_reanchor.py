"""Gates on gold spans whose source was edited: moved gold is measured, stale gold is an error, files are mended."""

from __future__ import annotations

import json
import shutil

import pytest

from pytest_retrieval_eval import Run
from pytest_retrieval_eval.collection.formats.files import BOM

OLD = "Refunds take 14 days. Returns are free for members."
NEW = "Since May: " + OLD
TEST = """
def test_one(assert_metric):
    assert assert_metric("span_recall@1") >= 1.0

def test_two(assert_metric):
    assert assert_metric("span_recall@2") >= 1.0
"""


@pytest.fixture
def shop(project):
    """A retriever that finds, by the text of the corpus as it is now, what the gold spans stand for."""
    folder = project.path / "eval" / "small"
    shutil.rmtree(folder / "qrels")

    def write(text, gold=("14 days", "Returns are free")):
        (folder / "corpus.jsonl").write_text(json.dumps({"_id": "guide", "text": text}) + "\n")
        rows = [
            {"query_id": query, "doc_id": "guide", "start": OLD.index(part), "end": OLD.index(part) + len(part)}
            for query, part in zip(("q1", "q2"), gold, strict=True)
        ]
        lines = [json.dumps({**row, "text": part}) + "\n" for row, part in zip(rows, gold, strict=True)]
        (folder / "spans.jsonl").write_text("".join(lines))
        hits = {
            query: [
                {"id": f"c{query}", "doc_id": "guide", "start": text.find(part), "end": text.find(part) + len(part)}
            ]
            for query, part in (("first question", gold[0]), ("second question", gold[1]))
            if part in text
        }
        (project.path / "conftest.py").write_text(
            "import pytest\n"
            f"HITS = {hits!r}\n"
            "@pytest.fixture(scope='session')\n"
            "def retriever():\n"
            "    return lambda query: HITS.get(query, [])\n"
        )
        project.test(TEST)
        return folder / "spans.jsonl"

    return write


def test_case_51_moved_gold_is_measured_where_it_stands(project, shop):
    spans = shop(NEW)
    before = spans.read_bytes()
    result = project.run("--retrieval-reanchor=report")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            f"gold spans of {spans}: 2 moved",
            f"moved: {spans}:1: query 'q1', 'guide' 13-20 -> 24-31: gold '14 days', at 13-20 now *",
        ]
    )
    assert spans.read_bytes() == before


def test_moved_gold_is_written_once_the_session_has_ended(project, shop, dist):
    spans = shop(NEW)
    spans.write_bytes(BOM + spans.read_bytes().replace(b"\n", b"\r\n"))
    result = project.run("--retrieval-reanchor=write", *dist)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"gold spans written: {spans}"])
    written = spans.read_bytes()
    assert written.startswith(BOM + b"{")
    assert written.count(b"\r\n") == written.count(b"\n") == 2
    rows = [json.loads(line) for line in written.decode("utf-8-sig").splitlines()]
    assert [(row["start"], row["text"]) for row in rows] == [(24, "14 days"), (33, "Returns are free")]
    again = project.run("--retrieval-reanchor=write", *dist)
    again.stdout.fnmatch_lines([f"gold spans of {spans}: 2 kept"])
    again.stdout.no_fnmatch_line("gold spans written*")


def test_lost_gold_is_an_error_and_never_a_miss(project, shop):
    spans = shop(NEW.replace("14 days", "two weeks"))
    result = project.run("--retrieval-reanchor=write")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*GateError: 1 gold span of 2 of small is stale*lost: *spans.jsonl:1: query 'q1'*allow_stale=n*"]
    )
    result.stdout.fnmatch_lines([f"gold spans written: {spans}"])  # the other one has moved
    project.test(TEST.replace('@1")', '@1", allow_stale=1)').replace('@2")', '@2", allow_stale=1)'))
    project.run().assert_outcomes(passed=2)


def test_labels_that_are_made_of_spans_are_held_against_the_corpus_too(project, shop):
    spans = shop(NEW.replace("14 days", "two weeks"))
    project.test("def test_it(assert_metric):\n    assert assert_metric('hit@1', labels='spans') >= 0\n")
    result = project.run("--retrieval-reanchor=report")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*GateError: 1 gold span of 2 of small is stale*", f"gold spans of {spans}: *"])
    project.test("def test_it(assert_metric):\n    assert assert_metric('hit@1', labels='spans', allow_stale=1) >= 1\n")
    project.run().assert_outcomes(passed=1)


def test_in_ci_nothing_is_written_unless_it_is_forced(project, shop, monkeypatch):
    spans = shop(NEW)
    before = spans.read_bytes()
    monkeypatch.setenv("CI", "1")
    result = project.run("--retrieval-reanchor=write")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--retrieval-reanchor=write is refused where CI is set*"])
    project.run("--retrieval-reanchor=report").assert_outcomes(passed=2)
    assert spans.read_bytes() == before
    project.run("--retrieval-reanchor=write", "--retrieval-update-in-ci").assert_outcomes(passed=2)
    assert spans.read_bytes() != before


def test_an_option_that_no_gate_answers_is_a_complaint(project):
    project.test("def test_it(assert_recall_at):\n    assert assert_recall_at(2) >= 0.1\n")
    result = project.run("--retrieval-reanchor=report")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: --retrieval-reanchor=report: no gate of this session read gold spans*"])
    wrong = project.run("--retrieval-reanchor=reprot")
    wrong.stderr.fnmatch_lines(["*--retrieval-reanchor=reprot: did you mean report?*"])


def test_a_baseline_keeps_offsets_that_were_found_by_the_texts_of_chunks(project, shop):
    """A chunk table that says texts alone is gone with the next chunking; what a stored run says stays."""
    shop(OLD)
    folder = project.path / "eval" / "small"
    rows = [
        {"chunk_id": "a", "doc_id": "guide", "text": "Refunds take\n14 days."},
        {"chunk_id": "b", "doc_id": "guide"},
    ]
    (folder / "chunks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    return lambda query: ['a']\n"
    )
    project.test("def test_it(assert_metric, baseline):\n    assert assert_metric('span_recall@1') >= baseline\n")
    project.run("--retrieval-update=new").assert_outcomes(passed=1)
    stored = Run.read(folder / "baselines" / "main.run.jsonl.gz").ranking("q1")
    assert (stored.doc_id, stored.start, stored.end) == (["guide"], [0], [21])
    (folder / "chunks.jsonl").write_text('{"chunk_id": "z", "doc_id": "guide", "start": 0, "end": 30}\n')
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    return lambda query: ['z']\n"
    )
    project.run().assert_outcomes(passed=1)
