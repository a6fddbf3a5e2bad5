"""Stored runs: what their header says, and what is named when the data has moved on."""

from __future__ import annotations

import re
import subprocess

import pytest
from gates_support import hits, one_each

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates import baselines
from pytest_retrieval_eval.gates.baselines import changes_since, provenance, read_baseline

QUERIES = {"q1": "badge", "q2": "parking"}
CORPUS = {"a": {"title": "A", "text": "text"}}


def data(queries=QUERIES, qrels=None, corpus=CORPUS, name="handbook"):
    return Dataset.of(queries=queries, qrels=qrels or {"q1": {"a": 1}, "q2": {"a": 1}}, corpus=corpus, name=name)


def stored(dataset, run=None, **header):
    run = run or Run.of({"q1": ["a"], "q2": ["a"]}, name="main")
    return run.with_header(**{**provenance(run, dataset), **header})


def test_nothing_changed():
    assert changes_since(stored(data()), data(), Run.of({"q1": ["a"]})) == ()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (data(qrels={"q1": {"a": 2}, "q2": {"a": 1}}), "the labels have changed"),
        (data(queries={**QUERIES, "q2": "where to park"}), "the queries or their texts have changed"),
        (data(queries={**QUERIES, "q3": "new"}), "the queries or their texts have changed"),
        (data(corpus={"a": "another text"}), "the corpus has changed"),
        (data(name="wiki"), "was saved for the dataset handbook"),
        (
            data(queries={**QUERIES, "q3": "new"}, qrels={"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}),
            "1 query is not in the baseline and counts 0 there: q3",
        ),
    ],
)
def test_what_changed_is_named(now, said):
    assert any(said in change for change in changes_since(stored(data()), now, Run.of({"q1": ["a"]})))


def test_what_is_not_known_is_no_change():
    assert changes_since(Run.of({"q1": ["a"], "q2": ["a"]}), data(), Run.of({"q1": ["a"]})) == ()
    assert changes_since(stored(data()), data(corpus=None), Run.of({"q1": ["a"]})) == ()


def test_a_run_that_says_its_corpus_saves_reading_it():
    candidate = Run.of({"q1": ["a"]}, header={"corpus": "sha256:other"})
    assert any("corpus" in change for change in changes_since(stored(data()), data(corpus=None), candidate))


def test_large_corpora_are_not_read_through(tmp_path, monkeypatch):
    for folder in ("qrels",):
        (tmp_path / folder).mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "badge"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "title": "", "text": "x"}\n')
    dataset = Dataset.read(tmp_path)
    old = stored(dataset, Run.of({"q1": ["a"]}), corpus="sha256:other")
    assert changes_since(old, dataset, Run.of({"q1": ["a"]})) == (
        "the corpus has changed since the baseline was saved",
    )
    monkeypatch.setattr("pytest_retrieval_eval.collection.dataset.LARGEST_CORPUS", 10)
    assert changes_since(old, dataset, Run.of({"q1": ["a"]})) == ()
    (tmp_path / "corpus.jsonl").unlink()
    assert changes_since(old, Dataset.read(tmp_path), Run.of({"q1": ["a"]})) == ()


def test_provenance_survives_the_file(tmp_path):
    run = Run.of(hits([True, False]), name="hybrid", depth=10)
    dataset = Dataset.of(qrels=one_each(2), name="handbook")
    path = tmp_path / "baselines" / "main.run.jsonl.gz"
    header = provenance(run, dataset)
    run.with_header(**header).save(path)
    back = read_baseline(path, how_to_create="…")
    assert dict(back.header) == header
    assert back.depth == 10
    assert header["retriever"] == "hybrid"
    assert header["labels"] == dataset.label_digest
    assert header["corpus"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", str(header["time"]))
    assert set(header["versions"]) == {"python", "pytest-retrieval-eval", "numpy"}
    assert changes_since(back, dataset, run) == ()


def test_a_baseline_is_read_again_only_when_the_file_changed(tmp_path):
    path = tmp_path / "main.run.jsonl"
    Run.of({"q1": ["a"]}).save(path)
    first = read_baseline(path, how_to_create="…")
    assert read_baseline(path, how_to_create="…") is first
    Run.of({"q1": ["a", "b"]}).save(path)
    assert read_baseline(path, how_to_create="…").ranking("q1").docs == ["a", "b"]


def test_a_missing_baseline_names_the_command(tmp_path):
    with pytest.raises(GateError, match=r"does not exist.*pytest --retrieval-update=new"):
        read_baseline(tmp_path / "main.run.jsonl.gz", how_to_create="pytest --retrieval-update=new")


def test_the_commit(tmp_path, monkeypatch):
    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    baselines._commit.cache_clear()
    run, dataset = Run.of({"q1": ["a"]}), data()
    assert (provenance(run, dataset)["commit"], provenance(run, dataset)["dirty"]) == (None, None)
    git("init")
    (tmp_path / "x").write_text("1")
    git("add", "x")
    git("commit", "-m", "x")
    baselines._commit.cache_clear()
    header = provenance(run, dataset)
    assert re.fullmatch("[0-9a-f]{40}", str(header["commit"]))
    assert header["dirty"] is False
    (tmp_path / "x").write_text("2")
    baselines._commit.cache_clear()
    assert provenance(run, dataset)["dirty"] is True
    monkeypatch.setenv("PATH", "")
    baselines._commit.cache_clear()
    assert provenance(run, dataset)["commit"] is None
    baselines._commit.cache_clear()
