"""Judgments from other files and into them: worksheets for people, qrels, tables."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.files import PathLike, decode, excerpt, json_id, read_bytes, write_atomically
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.labels.judged import Judged
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments, now
from pytest_retrieval_eval.labels.pool import document_hash, query_texts
from pytest_retrieval_eval.labels.store.judges import HUMAN
from pytest_retrieval_eval.labels.store.rows import Key, check_hash, text_hash
from pytest_retrieval_eval.labels.texts import today

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.labels.judging.judge import Pair

SAMPLE, NOT_RELEVANT = 100, 50
_SHEET = ("query_id", "query", "doc_id", "title", "text", "query_hash", "document_hash", "weight", "grade")
_ROWS = ("source", "query_id", "query_hash", "doc_id", "document_hash", "grade", "at", "who", "part", "weight")
_NEEDED = ("query_id", "doc_id", "grade")
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a worksheet holds: rows, those of them that the judge calls not relevant, and the pairs it stands for."""

    rows: int
    not_relevant: int
    pairs: int


def write_worksheet(
    path: PathLike,
    judgments: Judgments,
    pairs: Mapping[Key, Pair],
    *,
    sample: int = SAMPLE,
    min_not_relevant: int = NOT_RELEVANT,
    rel: float = 1.0,
    seed: int = 0,
) -> Sheet:
    """Write a CSV file of pairs for people to grade, without the judge's grades.

    It is a sample of the pairs that the judge has graded. At least ``min_not_relevant`` of it are pairs that the judge
    calls not relevant (a grade below ``rel``): there are few of them in a pool, and a judge must be right about them.
    ``weight`` says how many pairs of its kind a row stands for. Pairs that people have judged are left out.
    """
    if not judgments.chosen:
        raise GateError(f"{judgments.folder} has no judge yet, whose grades a worksheet is drawn from")
    judge = judgments.table(judgments.chosen[0].name)
    given = {query: judge.of_query(query) for query in dict.fromkeys(key[0] for key in pairs)}
    people = {query: judgments.table(HUMAN).of_query(query) for query in given}
    graded = {key: given[key[0]][key] for key in pairs if key in given[key[0]] and key not in people[key[0]]}
    low = [key for key, grade in graded.items() if grade < rel]
    high = [key for key, grade in graded.items() if grade >= rel]
    if not graded:
        raise GateError("no pair is graded by the judge and not yet by people: there is nothing to put on a worksheet")
    wanted = min(sample, len(graded))
    few = min(len(low), max(min(min_not_relevant, wanted), round(wanted * len(low) / len(graded)), wanted - len(high)))
    drawn = random.Random(seed)
    chosen = [
        (key, len(kind) / count)
        for kind, count in ((low, few), (high, wanted - few))
        for key in drawn.sample(sorted(kind), count)
    ]
    drawn.shuffle(chosen)
    rows = []
    for key, weight in chosen:
        pair = pairs[key]
        texts = {"query_id": key[0], "query": pair.query, "doc_id": key[2], "title": pair.title, "text": pair.text}
        rows.append({**texts, "query_hash": key[1], "document_hash": key[3], "weight": f"{weight:.6g}", "grade": ""})
    _write(path, _SHEET, rows)
    return Sheet(len(chosen), few, len(graded))


def read_labels(
    path: PathLike, dataset: Dataset | None = None, *, part: str | None = None, who: str = ""
) -> tuple[list[Judgment], int]:
    """The labels in a worksheet, another table with query_id, doc_id and grade, or qrels; and how many rows have none.

    The texts that they hold for are those of the worksheet, else those that the dataset has today.
    """
    text = decode(read_bytes(path), path)
    lines = _table(path, text)
    if lines is None:
        return _of_qrels(path, dataset, part, who), 0
    rows = [(lines.line_num, row) for row in lines]
    graded = [(number, row) for number, row in rows if (row["grade"] or "").strip()]
    asked = {(str(row["query_id"]), str(row["doc_id"])) for _, row in graded if not row.get("document_hash")}
    known = _today(path, asked, dataset)
    found, at = [], now()
    for number, row in graded:
        where = f"{path}:{number}"
        query_id, doc_id = json_id(row["query_id"], where), json_id(row["doc_id"], where)
        if row.get("document_hash"):
            hashes = (
                check_hash(row.get("query_hash"), where, "query_hash"),
                check_hash(row["document_hash"], where, "document_hash"),
            )
        else:
            hashes = known[query_id, doc_id]
        grade, weight = _number(row["grade"].strip(), where, "grade"), (row.get("weight") or "").strip()
        found.append(
            Judgment(
                query_id,
                hashes[0],
                doc_id,
                hashes[1],
                grade,
                at,
                who,
                part,
                w=_number(weight, where, "weight") if weight else None,
            )
        )
    blank = sum(not any(row.values()) for _, row in rows)  # a spreadsheet leaves such lines at the end
    return found, len(rows) - len(graded) - blank


def export_rows(path: PathLike, judgments: Judgments) -> int:
    """Write every grade that counts, of people and of the judges in their order, as a CSV file; returns how many."""
    rows: list[dict[str, object]] = []
    for name in (HUMAN, *(kept.name for kept in judgments.chosen)):
        for row, _ in judgments.rows(name):
            if row.r:
                continue
            texts = {"source": name, "query_id": row.q, "query_hash": row.qh, "doc_id": row.d, "document_hash": row.dh}
            given = {"grade": f"{row.g:g}", "at": row.at, "who": row.who, "part": row.part or ""}
            rows.append({**texts, **given, "weight": "" if row.w is None else f"{row.w:g}"})
    _write(path, _ROWS, rows)
    return len(rows)


def export_qrels(path: PathLike, judgments: Judgments, dataset: Dataset) -> int:
    """Write the grades that hold for the texts of a dataset as TREC qrels; returns how many."""
    qrels = Judged(judgments).qrels(dataset)
    lines = []
    for query_id, judged in qrels.to_dict().items():
        for doc_id, grade in judged.items():
            for name in (query_id, doc_id):
                if len(name.split()) != 1:
                    raise DataError(f"the id {name!r} has white space, which a file of TREC cannot hold")
            lines.append(f"{query_id} 0 {doc_id} {grade:g}\n")
    with write_atomically(path) as file:
        file.write("".join(lines).encode())
    return len(lines)


def _table(path: PathLike, text: str) -> csv.DictReader[str] | None:
    """The rows of a table with the columns of labels, whichever of comma, semicolon and tab stands between them (a
    spreadsheet takes what its country does); None where the first line does not name them.
    """
    first = text.partition("\n")[0]
    if "query_id" not in first or "grade" not in first or first.lstrip().startswith("{"):
        return None
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    names = [name.strip() for name in lines.fieldnames or ()]
    for name in dict.fromkeys((*_SHEET, *_ROWS)):
        found = names.count(name)
        if found > 1 or (not found and name in _NEEDED):
            raise DataError(
                f"{path}:1: {found} columns have the name {name} ({excerpt(', '.join(names))}); expected one"
            )
    lines.fieldnames = names
    return lines


def _of_qrels(path: PathLike, dataset: Dataset | None, part: str | None, who: str) -> list[Judgment]:
    qrels = Qrels.read(path)
    pairs = {(query, doc): grade for query, judged in qrels.to_dict().items() for doc, grade in judged.items()}
    known = _today(path, pairs, dataset)
    at = now()
    return [
        Judgment(query, known[query, doc][0], doc, known[query, doc][1], grade, at, who, part)
        for (query, doc), grade in pairs.items()
    ]


def _today(
    path: PathLike, pairs: Iterable[tuple[str, str]], dataset: Dataset | None
) -> dict[tuple[str, str], tuple[str, str]]:
    """The hashes of the texts that a dataset has for these pairs."""
    pairs = list(pairs)
    if not pairs:
        return {}
    if dataset is None:
        raise SettingsError(
            f"{path}: a grade holds for the texts that were judged, and the file names none: name the dataset that has "
            "them with --dataset"
        )
    queries = query_texts(dataset, [query for query in {query for query, _ in pairs} if query in dataset.queries])
    documents = today(dataset, list(dict.fromkeys(doc for _, doc in pairs)))
    lost = [f"{query} {doc}" for query, doc in pairs if query not in queries or doc not in documents]
    if lost:
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        raise GateError(
            f"{path}: {dataset.name} has not the texts of {len(lost)} pairs, and a grade holds for one text: "
            f"{', '.join(lost[:_NAMED])}{more}"
        )
    hashes = {doc: document_hash(document) for doc, document in documents.items()}
    return {(query, doc): (text_hash(queries[query]), hashes[doc]) for query, doc in pairs}


def _number(text: str, where: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not -1e9 < number < 1e9:
        raise DataError(f"{where}: the {what} is {excerpt(text)}; expected a number, such as 2 or 1.25")
    return number


def _write(path: PathLike, names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    made = io.StringIO(newline="")
    table = csv.DictWriter(made, names, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with write_atomically(path) as file:
        file.write(made.getvalue().encode())
