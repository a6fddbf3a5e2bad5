"""Pairs to judge from a file: what gates wrote (``--retrieval-to-judge``), or anyone else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.formats.files import bare_suffixes, json_id, json_lines, lines
from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.labels.judging.judge import Pair
from pytest_retrieval_eval.labels.texts import today

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document

_NAMED = 5


def read_pairs(path: str | Path, dataset: Dataset | None = None) -> list[Pair]:
    """The pairs of a ``.jsonl`` or ``.tsv`` file with ``query_id`` and ``doc_id``.

    The texts are those of the file (``query``, ``title``, ``text``), else of the dataset; those of a ``.tsv`` file are
    always the dataset's, since a table changes white space, and a grade holds for one text. A pair whose texts are
    nowhere is a GateError.
    """
    table = bare_suffixes(path)[-1:] == [".tsv"]
    if table and dataset is None:
        raise GateError(
            f"{path}: the texts of a .tsv file are not exact (white space), and a grade holds for one text: name the "
            "dataset with --dataset, or write the pairs as .jsonl"
        )
    rows: Iterator[tuple[int, dict[str, object]]] = _table(Path(path)) if table else json_lines(path)
    found: dict[tuple[str, str], dict[str, object]] = {}
    for number, row in rows:
        where = f"{path}:{number}"
        if "query_id" not in row or "doc_id" not in row:
            raise DataError(f"{where}: a pair to judge has query_id and doc_id, not {', '.join(map(str, row))}")
        found.setdefault((json_id(row["query_id"], where), json_id(row["doc_id"], where)), row)
    if not found:
        return []
    wanted = [doc for (_, doc), row in found.items() if table or not isinstance(row.get("text"), str)]
    known = {} if dataset is None else today(dataset, wanted)
    pairs, lost = [], []
    for (query_id, doc_id), row in found.items():
        query = None if table else _text(row, "query")
        if query is None and dataset is not None:
            query = _query(dataset, query_id)
        text, title = (None, None) if table else (_text(row, "text"), _text(row, "title"))
        document: Document | None = known.get(doc_id)
        if text is None and document is not None:
            text, title = document.text, document.title
        if query is None or text is None:
            lost.append(f"{query_id} {doc_id} ({'no query' if query is None else 'no text'})")
        else:
            pairs.append(Pair(query_id, doc_id, query, text, title or ""))
    if lost:
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        where = "" if dataset is not None else "; name the dataset that has them with --dataset"
        raise GateError(f"{path}: {len(lost)} pairs have no text to judge: {', '.join(lost[:_NAMED])}{more}{where}")
    return pairs


def _text(row: Mapping[str, object], name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) else None


def _query(dataset: Dataset, query_id: str) -> str | None:
    try:
        return dataset.queries.text(query_id) if query_id in dataset.queries else None
    except DataError:  # only the ids are known
        return None


def _table(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    names: list[str] = []
    for number, line in lines(path):
        cells = line.split("\t")
        if not names:
            names = cells
        elif line.strip():
            if len(cells) != len(names):
                raise DataError(f"{path}:{number}: expected {len(names)} cells as in the header, found {len(cells)}")
            yield number, dict(zip(names, cells, strict=True))
