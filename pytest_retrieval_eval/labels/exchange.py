"""Judgments from other files and into them: worksheets for people, qrels, tables."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.formats.files import (
    PathLike,
    decode,
    excerpt,
    json_id,
    read_bytes,
    utf8,
    write_atomically,
)
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
    ``weight`` says how many pairs of its kind a row stands for. Pairs that people have judged are left out. A file
    that is there stays, unless it is a worksheet without a grade.
    """
    _check_free(path)
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
    rows = _table(path)
    if rows is None:
        return _of_qrels(path, dataset, part, who), 0
    graded = []
    for number, row in rows:
        where = f"{path}:{number}"
        if row.get("document_hash"):  # of rows without a grade too: cells that moved along have left it empty
            check_hash(row.get("query_hash"), where, "query_hash")
            check_hash(row["document_hash"], where, "document_hash")
        if row["grade"].strip():
            if row.keys() >= set(_ROWS) and row["source"] != HUMAN:
                raise DataError(
                    f"{where}: the grade is one of {row['source']}, as judgments export writes it, and these are to be "
                    "labels of people; leave the rows of judges out"
                )
            graded.append((where, row))
    asked = {(row["query_id"], row["doc_id"]) for _, row in graded if not row.get("document_hash")}
    known = _today(path, asked, dataset)
    found, at = [], now()
    for where, row in graded:
        query_id, doc_id = json_id(row["query_id"], where), json_id(row["doc_id"], where)
        of_texts = row.get("query_hash", ""), row.get("document_hash", "")
        hashes = of_texts if of_texts[1] else known[query_id, doc_id]
        grade, weight = _number(row["grade"].strip(), where, "grade"), row.get("weight", "").strip()
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
                w=_weight(weight, where) if weight else None,
            )
        )
    blank = sum(not any(row.values()) for _, row in rows)  # a spreadsheet leaves such lines at the end
    return found, len(rows) - len(graded) - blank


def check_ids(labels: Iterable[Judgment], judgments: Judgments) -> None:
    """DataError where a folder has the texts of a label under ids that are not those of the label.

    A spreadsheet makes 123 of 00123, and of 1E5 another number; nobody would find the label again.
    """
    labels = list(labels)
    wanted = {(label.qh, label.dh) for label in labels}
    ids: dict[tuple[str, str], tuple[str, str]] = {}
    pairs, known = set[tuple[str, str]](), set[tuple[str, str]]()
    lenient = Judgments(judgments.folder, contradictions="first")
    for name in lenient.judges:
        for (query_id, of_query, doc_id, of_doc), _ in lenient.table(name):
            known |= {("query", query_id), ("document", doc_id)}
            if (of_query, of_doc) in wanted:
                ids[of_query, of_doc] = query_id, doc_id
                pairs.add((query_id, doc_id))
    for label in labels:
        there = ids.get((label.qh, label.dh))
        if there is None or (label.q, label.d) in pairs:
            continue
        for what, said, meant in (("query", label.q, there[0]), ("document", label.d, there[1])):
            if (what, said) not in known:
                raise DataError(
                    f"a label is of {what} {said!r}, and {judgments.folder} has its texts as those of {what} "
                    f"{meant!r}: a spreadsheet may have changed the ids; have it read the columns of ids as text"
                )


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


def _table(path: PathLike) -> list[tuple[int, dict[str, str]]] | None:
    """The rows of a table with the columns of labels, each with the line that it ends in, whichever of comma, semicolon
    and tab stands between them (a spreadsheet takes what its country does); None where the first line does not name
    them. A row that is short has empty cells at its end, as spreadsheets leave them out.
    """
    text = decode(read_bytes(path), path)
    first = text.partition("\n")[0]
    if "query_id" not in first or "grade" not in first or first.lstrip().startswith("{"):
        return None
    # Strict: else a quote that is never closed swallows all rows behind it.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    rows = list[tuple[int, dict[str, str]]]()
    before = csv.field_size_limit(len(text) + 1)  # the library's own limit is smaller than some documents
    try:
        names = [name.strip() for name in next(lines)]
        for name in dict.fromkeys((*_SHEET, *_ROWS)):
            found = names.count(name)
            if found > 1 or (not found and name in _NEEDED):
                raise DataError(
                    f"{path}:1: {found} columns have the name {name} ({excerpt(', '.join(names))}); expected one"
                )
        for cells in lines:
            if len(cells) > len(names):
                raise DataError(
                    f"{path}:{lines.line_num}: the row has {len(cells)} cells, and there are {len(names)} columns; a "
                    "cell with the character between cells in it stands in quotes"
                )
            if cells:
                rows.append((lines.line_num, dict(zip_longest(names, cells, fillvalue=""))))
    except csv.Error as error:
        raise DataError(
            f"{path}:{lines.line_num}: the table cannot be read ({error}); is a quote missing, or one too many?"
        ) from None
    finally:
        csv.field_size_limit(before)
    return rows


def _check_free(path: PathLike) -> None:
    """Refuse to write a worksheet over the work of people, or over anything else."""
    if not Path(path).is_file():
        return
    try:
        rows = _table(path)
    except DataError:
        rows = None
    if rows is None or any(row["grade"].strip() for _, row in rows):
        what = "no worksheet" if rows is None else "a worksheet with grades"
        raise SettingsError(
            f"{path} is there, and is {what}: what people wrote is not overwritten; name another file, or move it away"
        )


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


def _weight(text: str, where: str) -> float:
    weight = _number(text, where, "weight")
    if weight <= 0:
        raise DataError(f"{where}: the weight is {excerpt(text)}; expected a number above 0, such as 1.25")
    return weight


def _write(path: PathLike, names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    made = io.StringIO(newline="")
    table = csv.DictWriter(made, names, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with write_atomically(path) as file:
        file.write(utf8(made.getvalue()))
