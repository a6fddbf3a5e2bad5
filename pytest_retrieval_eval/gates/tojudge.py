"""The (query, document) pairs that a judge should look at next, from all gates together.

Each line of the file is one pair: ``query_id``, ``query`` (its text), ``doc_id``, ``title``, ``text``, ``rank``
(the best one that a gated run gives the document), ``gates`` (those that look at it) and ``dataset``; what nobody
knows is absent. Pairs of the queries that cost the most come first. Such a file is what a judge works through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.collection.formats.files import bare_suffixes, json_lines, lines, utf8, write_atomically
from pytest_retrieval_eval.errors import DataError, SettingsError
from pytest_retrieval_eval.gates.diff import ranked_holes
from pytest_retrieval_eval.gates.side import Side

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.labelling import Labels
    from pytest_retrieval_eval.gates.verdict import Verdict
    from pytest_retrieval_eval.labels.labelling import Unjudged

ENDINGS = (".jsonl", ".tsv")
# Above the place of any query that lost: a gate in which nothing was lost has no worst query.
_UNHURT = 1 << 40
_COLUMNS = ("query_id", "query", "doc_id", "title", "text", "rank", "gates", "dataset")


@dataclass(frozen=True, slots=True)
class Pair:
    """One unjudged document in the top k of one gate.

    ``place`` counts the gate's queries, the worst is 0; those that lost nothing come after every one that did.
    """

    query_id: str
    doc_id: str
    rank: int
    gate: str
    place: int
    dataset: str = ""
    query: str | None = None
    title: str | None = None
    text: str | None = None


def gather(verdict: Verdict, side: Side, bench: Bench) -> None:
    """Give a bench that collects pairs (it has a method ``collect``) those of one gate's candidate."""
    collect = getattr(bench, "collect", None)
    if collect is not None:
        collect(pairs_of(verdict, side))


def pairs_of(verdict: Verdict, side: Side) -> list[Pair]:
    """The unjudged documents in the candidate's top k, for the counted queries, the worst query first.

    Under labels that are made by judging also those of the other run, and of queries that do not count yet.
    """
    if not side.by_judgment:
        return []
    found = ranked_holes(side, (query.query_id for query in verdict.queries), side.judged_at.cutoff or 1)
    known = {(query, doc) for query, doc, _ in found}
    read = {(pair.query_id, pair.doc_id): pair for pair in side.labels.unjudged}
    found += [(*pair, missing.rank) for pair, missing in read.items() if pair not in known]
    dataset, corpus = side.dataset, side.dataset.corpus
    # With the unit document these are documents; chunks are looked up in the chunk table.
    documents = {} if corpus is None else corpus.get_many(sorted({doc for _, doc, _ in found}))
    lost = {query.query_id for query in verdict.worst[: verdict.worse]}
    in_order = enumerate(dict.fromkeys(query for query, _, _ in found))
    places = {query: place if query in lost else _UNHURT + place for place, query in in_order}
    pairs = []
    for query_id, doc_id, rank in found:
        if (missing := read.get((query_id, doc_id))) is not None:  # the very texts that nobody has judged
            pairs.append(_missing(missing, rank, verdict.gate, places[query_id], dataset.name))
            continue
        document = documents.get(doc_id)
        chunk = dataset.chunks.get(doc_id) if document is None and dataset.chunks is not None else None
        pairs.append(
            Pair(
                query_id,
                doc_id,
                rank,
                verdict.gate,
                places[query_id],
                dataset.name,
                _text_of(side, query_id),
                (document.title or None) if document is not None else None,
                document.text if document is not None else chunk.text if chunk is not None else None,
            )
        )
    return pairs


def gather_missing(labels: Labels, gate: str, dataset: str, bench: Bench) -> None:
    """The same for a gate that cannot even be measured, since so little is judged."""
    collect = getattr(bench, "collect", None)
    if collect is not None and labels.unjudged:
        places = {query: n for n, query in enumerate(dict.fromkeys(pair.query_id for pair in labels.unjudged))}
        collect([_missing(pair, pair.rank, gate, places[pair.query_id], dataset) for pair in labels.unjudged])


def _missing(pair: Unjudged, rank: int, gate: str, place: int, dataset: str) -> Pair:
    texts = pair.query, pair.title or None, pair.text
    return Pair(pair.query_id, pair.doc_id, rank, gate, place, dataset, *texts)


def _text_of(side: Side, query_id: str) -> str | None:
    queries = side.dataset.queries
    try:
        return queries.text(query_id) if query_id in queries else None
    except DataError:  # only the ids are known
        return None


def merged(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """A row for each pair of dataset, query and document: the worst query of any gate first, then by rank.

    >>> mrr = [Pair("q1", "y", 3, "mrr >= 1", 0), Pair("q2", "x", 2, "mrr >= 1", 1)]
    >>> rows = merged([*mrr, Pair("q2", "x", 1, "hit@1 >= 1", 0)])
    >>> [(row["query_id"], row["rank"], row["gates"]) for row in rows]
    [('q1', 3, ['mrr >= 1']), ('q2', 1, ['mrr >= 1', 'hit@1 >= 1'])]
    """
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    worst: dict[tuple[str, str], int] = {}
    for pair in pairs:
        query = pair.dataset, pair.query_id
        worst[query] = min(worst.get(query, pair.place), pair.place)
        row = rows.setdefault((*query, pair.doc_id), {**asdict(pair), "gates": []})
        row["rank"] = min(row["rank"], pair.rank)
        if pair.gate not in row["gates"]:
            row["gates"].append(pair.gate)
    order = {query: place for place, query in enumerate(worst)}

    def key(row: Mapping[str, Any]) -> tuple[int, int, int]:
        query = row["dataset"], row["query_id"]
        return worst[query], order[query], row["rank"]

    return [
        {name: row[name] for name in _COLUMNS if row[name] not in (None, "")} for row in sorted(rows.values(), key=key)
    ]


def check_path(path: Path, option: str) -> None:
    """Refuse a file of which the ending does not say how to write it, and one that is there and holds anything else.

    Runs, queries and judgments have the same endings, and are not to be had again.
    """
    if bare_suffixes(path)[-1:] not in [[ending] for ending in ENDINGS]:
        raise SettingsError(f"{option} {path}: pairs are written as {' or '.join(ENDINGS)} (also .gz, .zst, .bz2, .xz)")
    if path.is_file() and not _holds_pairs(path):
        raise SettingsError(
            f"{option} {path}: the file is there, and holds no pairs to judge; what others wrote is not overwritten: "
            "name another file, or move it away"
        )


def _holds_pairs(path: Path) -> bool:
    """Whether a file is empty or begins as ``write`` writes it."""
    try:
        if bare_suffixes(path)[-1:] == [".tsv"]:
            first = next((line for _, line in lines(path)), None)
            return first is None or first.split("\t") == list(_COLUMNS)
        row = next((row for _, row in json_lines(path)), None)
        return row is None or (row.keys() >= {"query_id", "doc_id"} and row.keys() <= set(_COLUMNS))
    except DataError:
        return False


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of ``merged`` as JSON Lines, or as a table where the name ends in ``.tsv``; all of it or nothing."""
    check_path(path, "the file")
    table = bare_suffixes(path)[-1:] == [".tsv"]
    with write_atomically(path) as file:
        if table:
            file.write(("\t".join(_COLUMNS) + "\n").encode())
        for row in rows:
            line = "\t".join(_cell(row.get(name)) for name in _COLUMNS) if table else _json(row)
            file.write(utf8(f"{line}\n"))


def asks_for_texts(path: Path, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether who judges the rows of ``merged`` in this file needs the dataset beside: a table has no exact texts."""
    return bare_suffixes(path)[-1:] == [".tsv"] or any("query" not in row or "text" not in row for row in rows)


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _cell(value: object) -> str:
    """A cell without tabs and line ends."""
    text = " · ".join(value) if isinstance(value, list) else "" if value is None else str(value)
    return " ".join(text.split())


def stage(path: Path, pairs: Iterable[Pair]) -> None:
    """Write the pairs of one gate where the process that ends the session finds them."""
    with write_atomically(path) as file:
        for pair in pairs:
            file.write(utf8(_json(asdict(pair)) + "\n"))


def staged(paths: Iterable[Path]) -> list[Pair]:
    """What ``stage`` wrote."""
    return [Pair(**row) for path in paths for _, row in json_lines(path)]  # type: ignore[arg-type]
