"""Test collections of the package ir_datasets, by id: ``irds:beir/scifact/test``.

Queries and judgments are read when the dataset is opened (the package fetches what it has not got); documents come
from its store when their texts are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pytest_retrieval_eval.collection.dataset import IRDS, Corpus, Dataset, Document
from pytest_retrieval_eval.collection.qrels import QrelsBuilder
from pytest_retrieval_eval.collection.queries import Queries, QueriesBuilder
from pytest_retrieval_eval.errors import DataError, did_you_mean


def read_irds(dataset_id: str, name: str | None) -> Dataset:
    """The dataset of this id, its judgments as grades; DataError where it has none, or the package fails."""
    source = IRDS + dataset_id
    found = _load(dataset_id, source)
    if not found.has_qrels():
        raise DataError(f"{source} has no judgments; choose a part of it that has, as in irds:beir/scifact/test")
    try:
        qrels = QrelsBuilder(source, "levels", False)
        for number, row in enumerate(found.qrels_iter(), 1):
            qrels.add(row.query_id, row.doc_id, row.relevance, f"{source}: judgment {number}")
        judged = qrels.done()
        queries = _queries(found, source) if found.has_queries() else Queries.without_texts(judged.query_ids, source)
    except DataError:
        raise
    except Exception as error:  # downloads, archives, formats: whatever the package meets
        raise _failed(source, error) from error
    corpus = IrdsCorpus(found, source) if found.has_docs() else None
    return Dataset.checked(name or dataset_id, None, queries, judged, corpus)


class IrdsCorpus(Corpus):
    """Documents in a store of ir_datasets, which is opened when a text is asked for."""

    __slots__ = ("_dataset", "_source")

    def __init__(self, dataset: Any, source: str) -> None:
        super().__init__(None, {}, False)
        self._complete = False
        self._dataset, self._source = dataset, source

    def __repr__(self) -> str:
        return f"<Corpus {self._source}>"

    @property
    def digest(self) -> str:
        """The id of the dataset: what it stands for does not change, and to read all of it would take hours."""
        return self._source

    def known_ids(self) -> set[str] | None:
        """None: to ask for all ids of a store would take hours, too."""
        return None

    def _scan(self, wanted: set[str]) -> dict[str, Document | None]:
        try:
            rows: Mapping[str, Any] = self._dataset.docs_store().get_many(sorted(wanted))
        except Exception as error:
            raise _failed(self._source, error) from error
        # What the store lacks is remembered as None, so that it is not looked for again.
        return {doc_id: _document(rows[doc_id]) if doc_id in rows else None for doc_id in wanted}


def _load(dataset_id: str, source: str) -> Any:
    try:
        package = importlib.import_module("ir_datasets")
    except ImportError:
        raise DataError(
            f"{source} is read with the package ir_datasets, which is not installed: "
            "pip install 'pytest-retrieval-eval[ir_datasets]'"
        ) from None
    try:
        return package.load(dataset_id)
    except KeyError:
        raise DataError(
            f"{source}: ir_datasets knows no dataset of this id; {did_you_mean(dataset_id, package.registry)}"
        ) from None
    except Exception as error:
        raise _failed(source, error) from error


def _queries(found: Any, source: str) -> Queries:
    queries = QueriesBuilder(source, False)
    for number, row in enumerate(found.queries_iter(), 1):
        queries.add(row.query_id, {"text": _text(row)}, f"{source}: query {number}")
    return queries.done()


def _text(row: Any) -> str:
    # What a collection of several fields (title, description, …) is usually asked with, the package says.
    return str(row.default_text() if hasattr(row, "default_text") else row.text)


def _document(row: Any) -> Document:
    title, text = getattr(row, "title", ""), getattr(row, "text", None)
    if not isinstance(text, str):
        return Document("", _text(row))
    return Document(title if isinstance(title, str) else "", text)


def _failed(source: str, error: Exception) -> DataError:
    said = str(error).partition("\n")[0] or type(error).__name__
    return DataError(f"{source}: ir_datasets failed ({said})")
