"""The run of a session's retriever: asked once for all gates that mean the same, and for no others."""

from __future__ import annotations

import json

import pytest

TEXTS = [f"Rule {n}: whoever comes {n} minutes late pays {n + 3} coins to the house." for n in range(12)]
CONFTEST = """\
import pathlib, pytest

CALLS = pathlib.Path(__file__).parent / "calls"
TEXTS = {texts!r}

@pytest.fixture(scope="session")
def retriever():
    def search(query):
        with CALLS.open("a") as calls:
            calls.write(query + "\\n")
        number = int(query.split()[-1])
        return [{{"id": f"c{{number}}", "doc_id": "d", "text": TEXTS[number]}}]
    return search
"""
TEST = """\
import pytest

@pytest.mark.retrieval(dataset="{first}")
def test_first(metric):
    assert metric("{measure}@1") >= 1.0

@pytest.mark.retrieval(dataset="{second}")
def test_second(metric):
    assert metric("span_recall@1") >= 1.0
"""


def write(project, name: str, order: list[int], *, spans: bool = True) -> None:
    """A dataset whose one document has the rules in this order; each query asks for one of them."""
    folder = project.path / "eval" / name
    (folder / "qrels").mkdir(parents=True)
    text = "  ".join(TEXTS[number] for number in order)
    files = {
        "corpus.jsonl": [{"_id": "d", "text": text}],
        "queries.jsonl": [{"_id": f"q{n}", "text": f"rule {n}"} for n in range(12)],
    }
    if spans:
        files["spans.jsonl"] = [
            {"query_id": f"q{n}", "doc_id": "d", "start": at, "end": at + len(TEXTS[n]), "text": TEXTS[n]}
            for n in range(12)
            for at in [text.index(TEXTS[n])]
        ]
    for file, rows in files.items():
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(f"q{n}\tc{n}\t1\n" for n in range(12))
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)


@pytest.fixture
def house(project):
    (project.path / "conftest.py").write_text(CONFTEST.format(texts=TEXTS))
    project.ini(datasets=("old = eval/old", "new = eval/new", "copy = eval/copy", "bare = eval/bare"))
    write(project, "old", list(range(12)))
    write(project, "copy", list(range(12)))
    write(project, "new", list(range(11, -1, -1)))
    write(project, "bare", list(range(12)), spans=False)
    return project


def asked(house) -> int:
    return len((house.path / "calls").read_text().splitlines())


@pytest.mark.parametrize(("first", "second"), [("old", "new"), ("new", "old")])
def test_hits_are_placed_in_the_corpus_of_their_own_dataset(house, dist, first, second):
    house.test(TEST.format(first=first, second=second, measure="span_recall"))
    house.run(*dist).assert_outcomes(passed=2)
    assert asked(house) == 24


def test_the_same_queries_and_the_same_corpus_are_one_run(house, dist):
    house.test(TEST.format(first="old", second="copy", measure="span_recall"))
    house.run(*dist).assert_outcomes(passed=2)
    assert asked(house) == 12


def test_a_dataset_without_spans_leaves_no_run_without_places(house, dist):
    house.test(TEST.format(first="bare", second="old", measure="recall"))
    house.run(*dist).assert_outcomes(passed=2)
