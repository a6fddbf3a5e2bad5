"""Gold spans in a project: fixtures, gate files, a baseline that outlives a new chunking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

N = 24
TEXT = "Refunds take 14 days from the day on which the goods arrive."

CONFTEST = """\
import json, pathlib, pytest

FOLDER = pathlib.Path(__file__).parent / "eval/small"

@pytest.fixture(scope="session")
def retriever():
    by_document = {}
    for line in (FOLDER / "chunks.jsonl").read_text().splitlines():
        chunk = json.loads(line)
        by_document.setdefault(chunk["doc_id"], []).append(chunk["chunk_id"])
    return lambda query: by_document["d" + query.split()[-1]]
"""

TESTS = """\
def test_recall(assert_span_recall_at, baseline):
    assert assert_span_recall_at(1, min_coverage=0.6) >= baseline

def test_coverage(span_coverage_at, baseline):
    assert span_coverage_at(1) >= baseline

def test_others(assert_metric, spans, retrieval_spans):
    assert assert_metric("span_iou@2") > 0.1
    assert assert_metric("span_mrr") >= 0.01
    assert spans is retrieval_spans and len(spans) == 24
"""

GATES = """\
dataset: small
gates:
  recall: span_recall@1 >= baseline
  both: {gate: ["span_recall@1 >= baseline", "span_precision@1 >= 0.1"]}
  parameter: {gate: "span_recall(min_coverage=0.6)@1 >= baseline - 0.01"}
"""


def rows(path: Path, found: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in found))


def cut(project, *ends: int) -> None:
    """The table of the chunks of documents of 200 characters that end at these places; ids count, as chunkers' do."""
    parts = list(zip((0, *ends[:-1]), ends, strict=True))
    # The part with the most gold stands first: what the retriever returns.
    parts.sort(key=lambda part: max(part[0], 100) - min(part[1], 160))
    table = [
        {"chunk_id": f"c{i}#{n}", "doc_id": f"d{i}", "start": start, "end": end}
        for i in range(N)
        for n, (start, end) in enumerate(parts)
    ]
    rows(project.path / "eval/small/chunks.jsonl", table)


@pytest.fixture
def handbook(project):
    folder = project.path / "eval/small"
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels").rmdir()
    rows(folder / "queries.jsonl", [{"_id": f"q{i}", "text": f"question {i}"} for i in range(N)])
    gold = [{"query_id": f"q{i}", "doc_id": f"d{i}", "start": 100, "end": 160} for i in range(N)]
    rows(folder / "spans.jsonl", gold)
    rows(folder / "corpus.jsonl", [{"_id": f"d{i}", "text": "x" * 100 + TEXT + "y" * 40} for i in range(N)])
    cut(project, 200)
    (project.path / "conftest.py").write_text(CONFTEST)
    project.test(TESTS)
    project.gates(GATES)
    return project


def test_a_baseline_outlives_a_new_chunking(handbook, dist):
    first = handbook.run("--retrieval-update=new", *dist)
    first.assert_outcomes(passed=6)
    # Other chunks under the same ids, as good: with the table of today alone the baseline would be another run.
    cut(handbook, 90, 200)
    handbook.run(*dist).assert_outcomes(passed=6)
    # The gold is cut in two, 56 % to 44 %.
    cut(handbook, 90, 134, 200)
    third = handbook.run(*dist)
    third.assert_outcomes(passed=3, failed=3)
    third.stdout.fnmatch_lines_random(
        [
            "*span_recall(min_coverage=0.6)@1 >= baseline: FAILED. 0.000 is below 1.000*",
            '*lost   d0 100–160  "Refunds take 14 days from the day on which the goods arrive."',
            "*before 100 % in c0#0 (rank 1, 0–200)",
            '*after  57 % in c0#0 (rank 1, 90–134), cut at 134 "…4 days from the day |on which the goods*',
        ]
    )


def test_what_cannot_be_measured(handbook):
    (handbook.path / "eval/small/chunks.jsonl").unlink()
    (handbook.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    return lambda query: ['c1']\n"
    )
    handbook.gates("dataset: small\ngates:\n  recall: span_recall@1 >= 0.5\n  documents: recall@1 >= 0.5\n")
    result = handbook.run("small.gates.yaml")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "*nothing says which document the chunk 'c1' is*Return hits with doc_id, start and end, or put chunks.*",
            "*no relevance labels*or gate a measure of its gold spans*",
        ]
    )


def test_a_dataset_without_spans(project):
    project.test(
        "def test_gate(span_recall_at):\n    assert span_recall_at(1) >= 0.5\ndef test_data(spans):\n    pass\n"
    )
    result = project.run()
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines_random(["*there are no gold spans*put spans.jsonl*", "*small has no gold spans*"])
