"""Datasets and runs from elsewhere, as a pytest session names them."""

from __future__ import annotations

import pytest
from support import HITS, QRELS, TEXTS

from pytest_retrieval_eval.collection.runs.run import Run

GATE = "def test_it(recall_at, baseline):\n    assert recall_at(2) >= baseline\n"


@pytest.fixture
def registered(project):
    """A conftest that registers ``local/test`` with ir_datasets, and the usual retriever."""
    pytest.importorskip("ir_datasets")
    (project.path / "queries.tsv").write_text("".join(f"{query}\t{text}\n" for query, text in TEXTS.items()))
    rows = [f"{query} 0 {doc} {grade}\n" for query, row in QRELS.items() for doc, grade in row.items()]
    (project.path / "qrels.txt").write_text("".join(rows))
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text() + "import ir_datasets\n"
        f"HOME = pathlib.Path({str(project.path)!r})\n"
        "ir_datasets.registry.register('local/test', ir_datasets.create_dataset(\n"
        "    queries_tsv=HOME / 'queries.tsv', qrels_trec=HOME / 'qrels.txt'))\n"
    )
    return project


def test_a_dataset_of_ir_datasets_is_gated_with_its_baseline_in_a_folder(registered, dist):
    lines = ("retrieval_split = dev", "retrieval_baseline_dir = baselines")
    registered.ini(*lines, datasets=("small = irds:local/test",))
    registered.test(GATE)
    registered.run("--retrieval-update=new", *dist, own_process=True).assert_outcomes(passed=1)
    assert (registered.path / "baselines/small/main.run.jsonl.gz").exists()
    registered.run(*dist, own_process=True).assert_outcomes(passed=1)


def test_without_a_folder_the_error_names_the_ini_value(registered):
    registered.ini(datasets=("small = irds:local/test",))
    registered.test(GATE)
    result = registered.run(own_process=True)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*retrieval_baseline_dir*"])


def test_a_parquet_run_is_gated(project):
    pytest.importorskip("pyarrow")
    Run.of(HITS).save(project.path / "cand.parquet")
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.625\n")
    project.run("--retrieval-run", "cand.parquet").assert_outcomes(passed=1)
    project.run("--retrieval-run", "small=cand.parquet").assert_outcomes(passed=1)
