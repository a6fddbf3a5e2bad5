"""Datasets of ir_datasets, registered by its own interface: nothing is fetched."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pytest_retrieval_eval.collection.dataset import Dataset, Document
from pytest_retrieval_eval.errors import DataError

ir_datasets = pytest.importorskip("ir_datasets")


class Docs(ir_datasets.formats.BaseDocs):
    """Documents that say when their store is opened."""

    opened = 0

    def docs_store(self) -> Any:
        Docs.opened += 1
        rows = {
            "d1": ir_datasets.formats.TitleUrlTextDoc("d1", "A title", "https://example.org", "about wings"),
            "d2": ir_datasets.formats.GenericDoc("d2", "about tails"),
        }

        class Store:
            def get_many(self, doc_ids: Any) -> Any:
                return {doc_id: rows[doc_id] for doc_id in doc_ids if doc_id in rows}

        return Store()


@pytest.fixture
def local(tmp_path, monkeypatch):
    """Registers ``local/test``, whose queries and judgments are files."""
    (tmp_path / "queries.tsv").write_text("q1\twhich wing?\nq2\twhich tail?\n")
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d2 1\n")
    files = ir_datasets.create_dataset(queries_tsv=tmp_path / "queries.tsv", qrels_trec=tmp_path / "qrels")
    registered = dict(ir_datasets.registry._registered)
    ir_datasets.registry.register("local", ir_datasets.Dataset(Docs()))
    ir_datasets.registry.register("local/test", ir_datasets.Dataset(Docs(), files))
    monkeypatch.setattr(Docs, "opened", 0)
    yield tmp_path
    ir_datasets.registry._registered = registered


def test_queries_judgments_and_documents_on_demand(local) -> None:
    dataset = Dataset.read("irds:local/test")
    assert repr(dataset) == "<Dataset local/test: 2 queries, 3 judgments>"
    assert dataset.queries.text("q1") == "which wing?"
    assert dataset.qrels.to_dict() == {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d2": 1.0}}
    assert (dataset.path, dataset.warnings, dataset.corpus_digest) == (None, (), "irds:local/test")
    assert Docs.opened == 0
    corpus = dataset.corpus
    assert corpus is not None
    assert corpus.get_many(["d1", "d9"]) == {"d1": Document("A title", "about wings")}
    assert corpus.get("d2") == Document("", "about tails")
    assert corpus.get("d9") is None
    assert Docs.opened == 2
    assert Dataset.read("irds:local/test", name="wings").name == "wings"


def test_what_cannot_be_read_is_said(local) -> None:
    with pytest.raises(
        DataError, match="irds:local/tset: ir_datasets knows no dataset of this id; did you mean local/test"
    ):
        Dataset.read("irds:local/tset")
    with pytest.raises(DataError, match="irds:local has no judgments"):
        Dataset.read("irds:local")
    with pytest.raises(DataError, match="split 'dev' was asked for; the id itself says"):
        Dataset.read("irds:local/test", split="dev")
    with pytest.raises(DataError, match="normalize_ids goes with files"):
        Dataset.read("irds:local/test", normalize_ids=True)
    (local / "qrels").write_text("q1 0 d1 2\nq1 0 d1 0\n")
    with pytest.raises(
        DataError, match="judgment 2: query 'q1', document 'd1' has the grade 0, but 2 at irds:local/test: "
    ):
        Dataset.read("irds:local/test")
    (local / "qrels").unlink()
    with pytest.raises(DataError, match=r"irds:local/test: ir_datasets failed \("):
        Dataset.read("irds:local/test")


def test_a_baseline_needs_a_folder(local) -> None:
    with pytest.raises(DataError, match="retrieval_baseline_dir"):
        Dataset.read("irds:local/test").baseline_path("main")


def test_the_extra_is_named_where_the_package_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(DataError, match=r"pip install 'pytest-retrieval-eval\[ir_datasets\]'"):
        Dataset.read("irds:beir/scifact/test")
