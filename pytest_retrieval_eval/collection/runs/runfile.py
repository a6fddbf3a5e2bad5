"""Run files: our own format, JSON, JSON Lines and TREC.

Our format, ``*.run.jsonl``: a header, then one line a query, sorted by id. It keeps what TREC cannot say:
queries without hits, the declared depth, the order of a list, chunks, seconds, errors, provenance. Equal runs
are equal bytes.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_retrieval_eval.collection.formats.files import (
    PARQUET,
    JsonIds,
    PathLike,
    bare_suffixes,
    excerpt,
    filled_lines,
    json_document,
    json_id,
    json_lines,
    json_number,
    json_object,
    utf8,
    write_atomically,
)
from pytest_retrieval_eval.collection.formats.rows import value_of
from pytest_retrieval_eval.collection.runs.columns import Columns
from pytest_retrieval_eval.collection.runs.hits import Hit, read_hits
from pytest_retrieval_eval.collection.runs.lists import Lists
from pytest_retrieval_eval.collection.runs.located import RankOrder
from pytest_retrieval_eval.collection.runs.scoremaps import ScoreMaps
from pytest_retrieval_eval.collection.runs.traces import Call, merged_hits, read_calls, read_trace_rows, totals
from pytest_retrieval_eval.collection.runs.trec import TrecFile
from pytest_retrieval_eval.collection.runs.treclines import refuse_repeated
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Document

FORMAT, VERSION = "retrieval-run", 1
Backing = Columns | ScoreMaps | TrecFile

TREC_ENDINGS = (".trec", ".txt", ".run")
STRUCTURE = ("format", "version", "depth", "ordered_by", "queries", "texts")  # of the header; the rest is provenance
_QUERY_KEYS = ("query_id", "query-id", "qid", "topic")
_DOC_KEYS = ("doc_id", "corpus-id", "corpus_id", "docid", "docno", "document_id", "id")


@dataclass(frozen=True, eq=False, repr=False)
class RunFile:
    """What a run file says."""

    backing: Backing
    depth: int | None = None
    header: Mapping[str, object] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Document] = field(default_factory=dict)
    calls: Mapping[str, tuple[Call, ...]] = field(default_factory=dict)


def read_run(path: PathLike, columns: Mapping[str, str] | None = None) -> RunFile:
    """The run in a file, in the format that its ending or its content says; a TREC file is only opened.

    A pipe is refused: a run is opened more than once, which a pipe cannot be.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise DataError(f"{path} is a pipe or a device; expected a file: save the run to one first")
    suffix = bare_suffixes(path)[-1:]
    if suffix == [PARQUET]:
        from pytest_retrieval_eval.collection.dataset import Document
        from pytest_retrieval_eval.collection.runs.runtables import read_parquet

        lists, said = read_parquet(path, columns)
        texts = {doc_id: Document(*both) for doc_id, both in said.get("texts", {}).items()}
        known = {key: said.get(key, {}) for key in ("header", "seconds", "costs", "errors")}
        known["calls"] = {
            query: read_calls(calls, f"{path}, query {query!r}") for query, calls in said.get("calls", {}).items()
        }
        return RunFile(lists, said.get("depth"), **known, texts=texts)
    if columns is not None:
        raise DataError(f"{path}: columns are named for tables alone, and the file is no {PARQUET}")
    if suffix and suffix[0] in TREC_ENDINGS:
        return RunFile(TrecFile(path))
    first = next((text for _, text in filled_lines(path)), "").lstrip()
    if not first.startswith(("{", "[")):
        if suffix in ([".jsonl"], [".json"]):
            raise DataError(f"{path}: the file begins with {excerpt(first)}; expected JSON, as its ending says")
        return RunFile(TrecFile(path))
    row = _one_object(first)
    if row is not None and "format" in row:
        return _read_ours(path)
    if row is not None and "calls" in row:
        return of_calls(*read_trace_rows(path))
    if row is not None and any(isinstance(row.get(key), str | int) for key in _QUERY_KEYS):
        return RunFile(_read_rows(path))
    return RunFile(_read_json(path))


def of_calls(calls: Mapping[str, tuple[Call, ...]], errors: Mapping[str, str]) -> RunFile:
    """What the calls of each query returned together."""
    if not calls:
        raise DataError("the traces have no query; expected one for each query")
    lists = Lists()
    for query_id, several in calls.items():
        lists.add_hits(query_id, merged_hits(several), f"query {query_id!r}")
    return RunFile(
        lists.columns(by_list=True),
        seconds=totals(calls, "seconds"),
        costs=totals(calls, "cost"),
        errors=dict(errors),
        calls=dict(calls),
    )


def _one_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# --- our format -----------------------------------------------------------------------------------


def _read_ours(path: PathLike) -> RunFile:
    rows = filled_lines(path)
    number, first = next(rows)
    where = f"{path}:{number}"
    header = json_object(first, where)
    if header["format"] != FORMAT:
        raise DataError(f"{where}: the format is {excerpt(header['format'])}; expected {FORMAT!r}")
    if header.get("version") != VERSION:
        raise DataError(
            f"{where}: version {excerpt(header.get('version'))} of the run format; this release reads "
            f"version {VERSION}: upgrade pytest-retrieval-eval, or save the run again"
        )
    depth = header.get("depth")
    if depth is not None and (type(depth) is not int or depth < 1):
        raise DataError(f"{where}: the depth is {excerpt(depth)}; expected an integer of 1 or more, or null")
    ordered_by = header.get("ordered_by", "list")
    if ordered_by not in ("list", "score"):
        raise DataError(f"{where}: ordered_by is {excerpt(ordered_by)}; expected 'list' or 'score'")
    lists = Lists()
    said = _Said()
    texts: dict[str, Document] = {}
    count = 0
    for number, text in rows:
        where = f"{path}:{number}"
        if _read_usual_line(text, where, lists, said):
            count += 1
            continue
        row = json_object(text, where)
        if "text" in row and "query_id" not in row:
            _read_text(row, where, texts)
            continue
        count += 1
        _read_line(row, where, lists, said)
    if not count:
        raise DataError(f"{path}: the run has no query; expected a line for each query after the header")
    expected = header.get("queries")
    if expected is not None and expected != count:
        raise DataError(
            f"{path}: the header declares {excerpt(expected)} queries, the file has {count}; "
            "it was probably cut off or joined: get it again, whole"
        )
    kept = header.get("texts") or 0
    if kept != len(texts):
        raise DataError(
            f"{path}: the header declares {excerpt(kept)} texts of documents, the file has {len(texts)}; "
            "it was probably cut off or joined: get it again, whole"
        )
    columns = lists.columns(by_list=ordered_by == "list")
    for block in columns.blocks() if not columns.by_list else ():
        refuse_repeated(block, lambda row: str(path))
    provenance = {key: value for key, value in header.items() if key not in STRUCTURE}
    return RunFile(columns, depth, provenance, said.seconds, said.costs, said.errors, texts, said.calls)


def _read_text(row: Mapping[str, object], where: str, texts: dict[str, Document]) -> None:
    """A line of the table of texts: a document, its title and its text."""
    from pytest_retrieval_eval.collection.dataset import Document  # few runs have texts, and it brings much along

    doc_id = json_id(row.get("doc_id"), where)
    title, text = row.get("title", ""), row["text"]
    if not isinstance(title, str) or not isinstance(text, str):
        raise DataError(
            f"{where}: document {doc_id!r} has title {excerpt(title)} and text {excerpt(text)}; expected strings"
        )
    if doc_id in texts:
        raise DataError(f"{where}: the text of document {doc_id!r} comes a second time; expected each document once")
    texts[doc_id] = Document(title, text)


# The keys of a hit that says no more than it must.
_USUAL = {("id", "score"), ("score", "id")}


@dataclass(slots=True)
class _Said:
    """What the lines of a file say of a query beside its hits."""

    seconds: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    calls: dict[str, tuple[Call, ...]] = field(default_factory=dict)


_TEXT, _FLOAT = r'"([^"\\\x00-\x1f]+)"', r"(-?(?:0|[1-9][0-9]*)\.[0-9]+(?:e[-+][0-9]+)?)"
_USUAL_LINE = re.compile(rf'\{{"hits": \[(.+)\], "query_id": {_TEXT}(?:, "seconds": {_FLOAT})?\}}')
_USUAL_HIT = re.compile(rf'\{{"id": {_TEXT}, "score": {_FLOAT}\}}(?:, (?=\{{)|\Z)')


def _read_usual_line(text: str, where: str, lists: Lists, said: _Said) -> bool:
    """Read a line as it is written where hits are plain; False for any other JSON.

    Every session reads its baseline, and with a JSON object a hit that takes twice as long.
    """
    line = _USUAL_LINE.fullmatch(text)
    if line is None:
        return False
    hits, query_id, seconds = line.groups()
    parts = _USUAL_HIT.split(hits)  # what is between hits, then the id and the score of each
    if any(parts[::3]):
        return False
    lists.add(query_id, parts[1::3], list(map(float, parts[2::3])), where)
    if seconds is not None:
        said.seconds[query_id] = float(seconds)
    return True


def _read_line(row: dict[str, object], where: str, lists: Lists, said: _Said) -> None:
    if "query_id" not in row or "hits" not in row:
        raise DataError(f"{where}: expected the keys query_id and hits, found {', '.join(sorted(row)) or 'none'}")
    query_id, hits = json_id(row["query_id"], where), row["hits"]
    if not isinstance(hits, list):
        raise DataError(f"{where}: hits is {excerpt(hits)}; expected a list of objects")
    if set(map(type, hits)) <= {dict} and set(map(tuple, hits)) <= _USUAL:
        docs, scores = [hit["id"] for hit in hits], [hit["score"] for hit in hits]
        if set(map(type, docs)) <= {str} and set(map(type, scores)) <= {float, int}:
            lists.add(query_id, docs, scores, where)
            hits = None
    if hits is not None:
        lists.add_hits(query_id, [_hit(hit, f"{where}, rank {i}") for i, hit in enumerate(hits, 1)], where)
    if row.get("seconds") is not None:
        said.seconds[query_id] = json_number(row["seconds"], where, "seconds")
    if row.get("cost") is not None:
        said.costs[query_id] = json_number(row["cost"], where, "cost")
    if row.get("calls") is not None:
        said.calls[query_id] = read_calls(row["calls"], where)
    if row.get("error") is not None:
        if not isinstance(row["error"], str):
            raise DataError(f"{where}: the error is {excerpt(row['error'])}; expected a string")
        said.errors[query_id] = row["error"]


def _hit(value: object, where: str) -> Hit:
    if not isinstance(value, dict) or "id" not in value:
        raise DataError(f"{where}: {excerpt(value)} is no hit; expected an object with id and score")
    score, doc_id = value.get("score"), value.get("doc_id")
    offsets = [value.get("start"), value.get("end")]
    for offset in offsets:
        if offset is not None and (type(offset) is not int or offset < 0):
            raise DataError(f"{where}: the offset {excerpt(offset)} is no integer of 0 or more (code points)")
    return Hit(
        json_id(value["id"], where),
        None if score is None else json_number(score, where, "score"),
        None if doc_id is None else json_id(doc_id, where),
        *offsets,
    )


def write_ours(path: PathLike, run: RunFile) -> None:
    """Write our format."""
    columns = run.backing.columns()
    header = {
        **run.header,
        "format": FORMAT,
        "version": VERSION,
        "depth": run.depth,
        "ordered_by": "list" if columns.by_list else "score",
        "queries": len(columns.query_ids),
    }
    if run.texts:
        header["texts"] = len(run.texts)
    with write_atomically(path) as out:
        out.write(_json_line(header))
        for query_id, place in sorted((query, i) for i, query in enumerate(columns.query_ids)):
            row: dict[str, object] = {"query_id": query_id, "hits": list(_hits(columns, place))}
            if query_id in run.seconds:
                row["seconds"] = run.seconds[query_id]
            if query_id in run.costs:
                row["cost"] = run.costs[query_id]
            if query_id in run.calls:
                row["calls"] = [call.to_dict() for call in run.calls[query_id]]
            if query_id in run.errors:
                row["error"] = run.errors[query_id]
            out.write(_json_line(row))
        # Each document once, however many queries have it.
        for doc_id, document in sorted(run.texts.items()):
            titled = {"title": document.title} if document.title else {}
            out.write(_json_line({"doc_id": doc_id, **titled, "text": document.text}))


def _json_line(value: object) -> bytes:
    return utf8(json.dumps(value, sort_keys=True, ensure_ascii=False) + "\n")


def _hits(columns: Columns, place: int) -> Iterator[dict[str, object]]:
    rows = slice(int(columns.bounds[place]), int(columns.bounds[place + 1]))
    docs = columns.docs.strings(rows)
    scores = None if columns.scores is None else columns.scores[rows].tolist()
    for i, doc in enumerate(docs):
        hit: dict[str, object] = {"id": doc}
        if scores is not None:
            hit["score"] = scores[i]
        if columns.chunks is not None:
            part = columns.chunks.at(rows.start + i)
            hit.update({key: value for key, value in part.items() if value is not None})
        yield hit


# --- TREC -----------------------------------------------------------------------------------------

_UNSAYABLE = re.compile("[ \\t\\n\\r\\v\\f]|^\\ufeff")


def write_trec(path: PathLike, run: RunFile, tag: str) -> None:
    """Write TREC format; what it cannot say is lost, with a warning, or refused where values would change."""
    columns = run.backing.columns()
    tag = _UNSAYABLE.sub("_", tag) or "run"
    lost = [
        _count(len(run.errors), "error") if run.errors else "",
        "seconds" if run.seconds else "",
        "costs" if run.costs else "",
        "the calls of traces" if run.calls else "",
        "the header" if run.header else "",
        "the declared depth" if run.depth is not None else "",
        "which part of a document a hit is" if columns.chunks is not None else "",
        "the texts of its documents" if run.texts else "",
    ]
    empty = int(np.count_nonzero(np.diff(columns.bounds) == 0))
    if empty:
        lost.append(_count(empty, "query", "queries") + " without hits")
    scores = columns.scores
    if columns.by_list and not _says_order(columns):
        lost.append("the scores (numbers that fall with the rank stand in their place, to keep the order)")
        sizes = np.diff(columns.bounds)
        scores = (np.repeat(columns.bounds[1:], sizes) - np.arange(len(columns.docs))).astype(np.float64)
    for block in columns.blocks() if columns.by_list else ():
        refuse_repeated(block, lambda row: f"{path}: the TREC format cannot keep this run; save it as .run.jsonl")
    for name in (*columns.query_ids, *columns.docs):
        if _UNSAYABLE.search(name):
            raise DataError(
                f"{path}: the id {name!r} has white space, which separates the columns of a TREC file; "
                "save the run as .run.jsonl"
            )
    lost = [what for what in lost if what]
    if lost:
        warnings.warn(f"{path}: the TREC format cannot say, and loses: {', '.join(lost)}", stacklevel=3)
    with write_atomically(path) as out:
        for query_id, place in sorted((query, i) for i, query in enumerate(columns.query_ids)):
            rows = slice(int(columns.bounds[place]), int(columns.bounds[place + 1]))
            docs = columns.docs.strings(rows)
            values = [] if scores is None else scores[rows].tolist()
            out.write(
                "".join(
                    f"{query_id} Q0 {doc} {rank} {score!r} {tag}\n"
                    for rank, (doc, score) in enumerate(zip(docs, values, strict=True), 1)
                ).encode()
            )


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _says_order(columns: Columns) -> bool:
    """Whether sorting the scores gives the lists as they stand."""
    if columns.scores is None:
        return False
    return RankOrder(columns.scores, columns.bounds).stands(columns.docs)


# --- JSON -----------------------------------------------------------------------------------------


def _read_rows(path: PathLike) -> Backing:
    """JSON Lines with one hit in each: query, document, score."""
    maps: dict[str, dict[Any, Any]] = {}
    first: dict[tuple[str, str], int] = {}
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        query_id, doc_id, score = (
            value_of(row, keys, where, "row", expected="query_id, doc_id and score")
            for keys in (_QUERY_KEYS, _DOC_KEYS, ("score",))
        )
        query_id, doc_id, score = json_id(query_id, where), json_id(doc_id, where), json_number(score, where, "score")
        if (query_id, doc_id) in first:
            raise DataError(
                f"{where}: query {query_id!r} has document {doc_id!r} a second time "
                f"(the first: line {first[query_id, doc_id]}); expected each document once in a query"
            )
        first[query_id, doc_id] = number
        maps.setdefault(query_id, {})[doc_id] = score
    return ScoreMaps(maps)


def _read_json(path: PathLike) -> Backing:
    value = json_document(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected {{query: {{document: score}}}} or {{query: [document, …]}}")
    return lists_of(value, str(path))


def lists_of(hits: Mapping[Any, Any], source: str = "") -> Columns | ScoreMaps:
    """The lists of a mapping from query to {document: score}, or to a list in rank order."""
    prefix = f"{source}: " if source else ""
    given = _by_query_id(hits, prefix)
    if not given:
        raise DataError(f"{prefix}the run has no query; expected one list for each query")
    if set(map(type, given.values())) == {dict}:
        return ScoreMaps(given)
    maps = {query: value for query, value in given.items() if isinstance(value, Mapping)}
    if len(maps) == len(given):
        return ScoreMaps(maps)
    others = {query for query, value in given.items() if query not in maps and not _is_empty_list(value)}
    if maps and not others:
        return ScoreMaps({query: maps.get(query, {}) for query in given})
    scored = next((query for query, value in maps.items() if value), None)
    lists = Lists()
    for query, value in given.items():
        where = f"{prefix}query {query!r}"
        plain = _plain(value)
        found = [] if plain is not None else value if _is_hits(value) else read_hits(value, where)
        if scored is not None and query in others:
            raise DataError(
                f"{prefix}query {scored!r} is a mapping, sorted by score, and query {query!r} a list in rank order; "
                "expected one form for the whole run"
            )
        if plain is None:
            lists.add_hits(query, found, where)
        else:
            lists.add(query, *plain, where)
    return lists.columns(by_list=True)


def _by_query_id(hits: Mapping[Any, Any], prefix: str) -> dict[str, Any]:
    if set(map(type, hits)) == {str} and "" not in hits and "".join(hits).isascii():
        return dict(hits)
    query_ids = JsonIds()
    return {query_ids(key, f"{prefix}run"): value for key, value in hits.items()}


def _plain(value: object) -> tuple[Sequence[str], Sequence[float] | None] | None:
    """Documents and scores of the two plain forms of a list; None for any other."""
    if not isinstance(value, list) or not value:
        return None
    kinds = set(map(type, value))
    if kinds == {str}:
        return value, None
    if kinds == {tuple} and set(map(len, value)) == {2}:
        docs, scores = zip(*value, strict=True)
        if set(map(type, docs)) == {str} and set(map(type, scores)) <= {float, int}:
            return docs, scores
    return None


def _is_hits(value: object) -> bool:
    return isinstance(value, list) and set(map(type, value)) == {Hit} and {type(hit.id) for hit in value} == {str}


def _is_empty_list(value: object) -> bool:
    return isinstance(value, list | tuple) and not value
