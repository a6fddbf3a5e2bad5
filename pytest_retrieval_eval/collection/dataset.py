"""A test collection in a folder or one file: queries, judgments, and a corpus read only when asked for."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_retrieval_eval.collection.answers import Answers
from pytest_retrieval_eval.collection.formats.files import (
    JsonIds,
    PathLike,
    bare_suffixes,
    digest,
    excerpt,
    json_id,
    json_lines,
    json_value,
    lines,
    readable,
)
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.rows import value_of
from pytest_retrieval_eval.collection.hints import absent_documents
from pytest_retrieval_eval.collection.qrels import Judged, Qrels, QrelsBuilder
from pytest_retrieval_eval.collection.queries import ID_KEYS, Queries, QueriesBuilder, nfc_twins, roles_of
from pytest_retrieval_eval.collection.spans.chunks import Chunk, Chunks
from pytest_retrieval_eval.collection.spans.spans import Spans
from pytest_retrieval_eval.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.spans.anchors import Anchors

IRDS = "irds:"
"""What a dataset of the package ir_datasets begins with, before its id."""

_COMPRESSED = ("", ".gz", ".zst", ".bz2", ".xz")
_QUERIES = ("queries.jsonl", "queries.tsv")
_SPANS = tuple(f"spans.{ending}" for ending in ("jsonl", "csv", "tsv", "parquet", "json"))
_CHUNKS = tuple(f"chunks.{ending}" for ending in ("jsonl", "csv", "tsv", "parquet"))
# Labels of another kind, beside which a folder needs no qrels.
_OTHER_LABELS = (*_SPANS, "answers.jsonl")
_QRELS = (".tsv", ".txt", ".qrels", ".trec", ".jsonl", ".json", ".parquet")
_DOC_KEYS = ("_id", "doc_id", "id")
# A file beyond this size is not read through only to say something about it.
LARGEST_CORPUS = 256 * 1024 * 1024
# BEIR's corpora begin each line with the id: what is not asked for need not be parsed.
_LEADING_ID = re.compile(r'\s*\{\s*"_id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]')


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the corpus. ``roles`` may read it (``*``: everybody); None where the corpus does not say."""

    title: str
    text: str
    roles: tuple[str, ...] | None = field(default=None, repr=False)


class Corpus:
    """The documents of a collection; a file is read only when a text is asked for, and only that is kept.

    A line of the file that is no document is a DataError that says where, as soon as it is read.

    >>> Corpus.of({"d1": "Refunds take 14 days."}).get("d1")
    Document(title='', text='Refunds take 14 days.')
    """

    __slots__ = ("_complete", "_digest", "_documents", "normalize_ids", "path")

    def __init__(self, path: Path | None, documents: Mapping[str, Document], normalize_ids: bool) -> None:
        self.path = path
        self._documents: dict[str, Document | None] = dict(documents)
        self._complete = path is None
        self.normalize_ids = normalize_ids
        self._digest: str | None = None

    @classmethod
    def read(cls, path: PathLike, *, normalize_ids: bool = False) -> Corpus:
        """A corpus in JSON Lines (``_id``, ``title``, ``text``); nothing is read yet."""
        return cls(Path(path), {}, normalize_ids)

    @classmethod
    def of(cls, documents: Mapping[Any, str | Mapping[str, object]]) -> Corpus:
        """A corpus of a mapping from document id to text, or to {"title", "text"}."""
        ids = JsonIds()
        made: dict[str, Document] = {}
        for key, value in documents.items():
            where = f"document {excerpt(key)}"
            row = value if isinstance(value, Mapping) else {"text": value}
            made[ids(key, where)] = _document(row, where)
        return cls(None, made, False)

    def __repr__(self) -> str:
        return f"<Corpus {self.path or 'in memory'}>"

    def get(self, doc_id: str) -> Document | None:
        """One document, None where the corpus lacks it; each new id reads the file: ask for many at once."""
        return self.get_many([doc_id]).get(doc_id)

    def get_many(self, doc_ids: Iterable[str]) -> dict[str, Document]:
        """Those of the documents that the corpus has, in one pass over the file up to the last one found."""
        asked = list(dict.fromkeys(doc_ids))
        missing = {doc_id for doc_id in asked if doc_id not in self._documents}
        if missing and not self._complete:
            self._documents.update(self._scan(missing))
        return {doc_id: found for doc_id in asked if (found := self._documents.get(doc_id)) is not None}

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of the file's text, or of the documents where there is no file."""
        if self._digest is None:
            self._digest = digest(self.path) if self.path is not None else self._digest_of_documents()
        return self._digest

    @property
    def is_small(self) -> bool:
        """Whether it may be read through only to say something about it: in memory, or a file of up to 256 MiB."""
        try:
            return self.path is None or self.path.stat().st_size <= LARGEST_CORPUS
        except OSError:
            return False

    def known_ids(self) -> set[str] | None:
        """The ids of all documents, in one pass over the file; None of a corpus that is not small.

        >>> Corpus.of({"d1": "Refunds take 14 days."}).known_ids()
        {'d1'}
        """
        if not self.is_small:
            return None
        if self.path is None:
            return {doc_id for doc_id, document in self._documents.items() if document is not None}
        return {doc_id for doc_id, *_ in self._lines(str(self.path))}

    def _scan(self, wanted: set[str]) -> dict[str, Document | None]:
        # What the file lacks is remembered as None, so that it is not looked for again.
        found: dict[str, Document | None] = dict.fromkeys(wanted)
        left = set(wanted)
        for doc_id, line, where in self._lines(str(self.path)):
            if doc_id in left:
                row = _row(line, where)
                found[doc_id] = _document(row, where)
                left.discard(doc_id)
                if not left:
                    break
        return found

    def _lines(self, path: str) -> Iterator[tuple[str, str, str]]:
        """(document id, line, ``file:line``) of every document."""
        for number, line in lines(path):
            if not line or line.isspace():
                continue
            where = f"{path}:{number}"
            leading = _LEADING_ID.match(line)
            value = (
                json_value(leading[1], where) if leading else value_of(_row(line, where), _DOC_KEYS, where, "document")
            )
            yield self._as_id(value, where), line, where

    def _as_id(self, value: object, where: str) -> str:
        doc_id = json_id(value, where)
        return unicodedata.normalize("NFC", doc_id) if self.normalize_ids else doc_id

    def _digest_of_documents(self) -> str:
        rows = sorted(
            (key, doc.title, doc.text, *([] if doc.roles is None else [list(doc.roles)]))
            for key, doc in self._documents.items()
            if doc is not None
        )
        return "sha256:" + hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """Queries and judgments that belong together, perhaps with the corpus that they are about.

    ``path`` is the folder or file (None where it was made in memory), ``split`` the part of the judgments
    that is used, ``warnings`` what was found odd while reading.

    >>> dataset = Dataset.of(queries={"q1": "refund?"}, qrels={"q1": ["d1"]}, name="shop")
    >>> dataset
    <Dataset shop: 1 query, 1 judgment>
    """

    name: str
    path: Path | None
    queries: Queries
    qrels: Qrels
    corpus: Corpus | None = None
    split: str | None = None
    _read_with: tuple[str, ...] = field(default=(), repr=False)  # warnings about queries and judgments
    _parts: dict[str, Any] = field(default_factory=dict, repr=False)  # given, or read when they are asked for
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # worked out from the other fields

    @classmethod
    def read(
        cls, path: PathLike, *, name: str | None = None, split: str | None = None, normalize_ids: bool = False
    ) -> Dataset:
        """Read a folder, or one JSON Lines file of rows.

        A folder (BEIR's layout): ``queries.jsonl`` (or ``queries.tsv``; without either, only the ids in
        the judgments are known), ``qrels/SPLIT.tsv`` and optionally ``corpus.jsonl``, ``spans.jsonl`` and
        ``chunks.jsonl``; each may be compressed (.gz, .zst, .bz2, .xz). ``split`` is by default ``test``, else the
        only one. Beside ``spans.jsonl`` or ``answers.jsonl`` the folder may lack ``qrels/``: ``qrels`` then names the
        queries and judges nothing.

        A file: each line ``{"query_id", "query", "relevant": {document: grade} | [document, ...], "tags":
        {...}}``; ``relevant`` may be absent only where ``unanswerable`` is true.

        ``irds:ID``: the dataset of this id of the package ir_datasets, which names a split itself.

        ``name`` is by default that of the folder or file. ``normalize_ids`` brings ids to Unicode form NFC.
        Whatever is missing, empty or contradictory raises DataError.
        """
        place = Path(path)
        dataset_id = irds_id(path)
        if dataset_id is not None and not os.path.exists(place):
            from pytest_retrieval_eval.collection.irds import read_irds

            if split is not None:
                raise DataError(f"{path}: split {split!r} was asked for; the id itself says which part of a dataset")
            if normalize_ids:
                raise DataError(f"{path}: normalize_ids goes with files; the ids of ir_datasets are kept as they are")
            return read_irds(dataset_id, name)
        if os.path.isdir(place):
            with readable(place):
                return _read_folder(place, name, split, normalize_ids)
        if split is not None:
            raise DataError(f"{path}: split {split!r} was asked for, but only a dataset folder has splits")
        queries, qrels = _read_rows(place, normalize_ids)
        return cls.checked(name or _stem(place), place, queries, qrels, None, None)

    @classmethod
    def of(
        cls,
        *,
        queries: Queries | Mapping[Any, str | Mapping[str, object]] | None = None,
        qrels: Qrels | Mapping[Any, Judged] | None = None,
        corpus: Corpus | Mapping[Any, str | Mapping[str, object]] | None = None,
        chunks: Chunks | Mapping[str, str | Chunk] | None = None,
        spans: Spans | Mapping[Any, Iterable[Any]] | Iterable[Any] | None = None,
        answers: Answers | Mapping[Any, str | Iterable[str]] | None = None,
        name: str = "",
    ) -> Dataset:
        """A dataset of objects or plain mappings.

        Without ``queries`` only the ids in ``qrels`` (or ``spans``, ``answers``) are known. ``qrels`` may be absent
        where there are ``spans`` or ``answers``.
        """
        if isinstance(answers, Mapping):
            answers = Answers.of(answers)
        if spans is not None and not isinstance(spans, Spans):
            spans = Spans.of(spans)
        if queries is not None and not isinstance(queries, Queries):
            queries = Queries.of(queries)
        if qrels is None:
            if spans is None and answers is None:
                raise DataError(f"the dataset {name or '(without name)'} has neither qrels nor spans nor answers")
            ids = spans.query_ids if spans is not None else tuple(answers or ())
            others = spans.source if spans is not None else "answers"
            made = _no_judgments(queries.ids if queries is not None else ids, others)
        else:
            made = qrels if isinstance(qrels, Qrels) else Qrels.of(qrels)
        if queries is None:
            queries = Queries.without_texts(made.query_ids, made.source)
        if corpus is not None and not isinstance(corpus, Corpus):
            corpus = Corpus.of(corpus)
        others_known = spans is not None or answers is not None
        dataset = cls.checked(name, None, queries, made, corpus, None, other_labels=others_known)
        if chunks is not None and not isinstance(chunks, Chunks):
            chunks = Chunks.of(chunks)
        dataset._parts.update(chunks=chunks, spans=spans, answers=answers)
        return dataset

    @classmethod
    def checked(
        cls,
        name: str,
        path: Path | None,
        queries: Queries,
        qrels: Qrels,
        corpus: Corpus | None,
        split: str | None = None,
        *,
        other_labels: bool = False,
    ) -> Dataset:
        """A dataset of these parts, which must not be empty; what is odd about them becomes its warnings.

        Judgments may be absent where there are ``other_labels``: gold spans, or answers.
        """
        if not len(queries) or not (len(qrels) or other_labels):
            what = "queries" if not len(queries) else "judgments"
            raise DataError(f"the dataset {name or path or qrels.source} has no {what}")
        return cls(name, path, queries, qrels, corpus, split, qrels.warnings + _oddities(queries, qrels))

    def __repr__(self) -> str:
        queries = _count(len(self.queries), "query", "queries")
        judgments = _count(len(self.qrels), "judgment", "judgments")
        return f"<Dataset {self.name or self.path or 'in memory'}: {queries}, {judgments}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was found odd in queries and judgments, and against a small corpus, which is read for it once."""
        if "warnings" not in self._cache:
            self._cache["warnings"] = (*self._read_with, *absent_documents(self))
        found: tuple[str, ...] = self._cache["warnings"]
        return found

    @property
    def chunks(self) -> Chunks | None:
        """The chunk table of the folder (``chunks.jsonl``, ``.csv``, ``.tsv`` or ``.parquet``, read once); None where
        there is none.
        """
        if "chunks" not in self._parts:
            path = _find(self.path, _CHUNKS) if self.path is not None and self.path.is_dir() else None
            self._parts["chunks"] = None if path is None else Chunks.read(path, normalize_ids=self._normalize_ids)
        if "chunks" not in self._cache:
            table = self._parts["chunks"]
            self._cache["chunks"] = table if table is None or self.corpus is None else table.within(self.corpus)
        found: Chunks | None = self._cache["chunks"]
        return found

    @property
    def spans(self) -> Spans | None:
        """The gold spans of the folder (``spans.jsonl``, ``.csv``, ``.tsv``, ``.parquet``, or ``spans.json`` as
        SQuAD has it; read once); None where there are none.
        """
        if "spans" not in self._parts:
            path = _find(self.path, _SPANS) if self.path is not None and self.path.is_dir() else None
            self._parts["spans"] = None if path is None else Spans.read(path, normalize_ids=self._normalize_ids)
        found: Spans | None = self._parts["spans"]
        return found

    @property
    def placed_chunks(self) -> Chunks | None:
        """The chunk table; where there are gold spans with all offsets that can be known."""
        return self.chunks if self.chunks is None or self.spans is None else self.chunks.placed()

    @property
    def anchors(self) -> Anchors | None:
        """What became of the gold spans in the corpus as it is now, looked at once; None without spans or corpus."""
        if "anchors" not in self._cache:
            from pytest_retrieval_eval.collection.spans.anchors import check_spans

            spans = self.spans
            self._cache["anchors"] = None if spans is None or self.corpus is None else check_spans(spans, self.corpus)
        found: Anchors | None = self._cache["anchors"]
        return found

    @property
    def _normalize_ids(self) -> bool:
        return bool(self._parts.get("normalize_ids"))

    @property
    def answers(self) -> Answers | None:
        """The gold answers of the folder (``answers.jsonl``, read once); None where there are none."""
        if "answers" not in self._parts:
            path = _find(self.path, ("answers.jsonl",)) if self.path is not None and self.path.is_dir() else None
            self._parts["answers"] = None if path is None else Answers.read(path, normalize_ids=self._normalize_ids)
        found: Answers | None = self._parts["answers"]
        return found

    @property
    def label_digest(self) -> str:
        """The digest of the judgments."""
        return self.qrels.digest

    @property
    def corpus_digest(self) -> str | None:
        """The digest of the corpus (reads its whole file, once); None where there is none."""
        return None if self.corpus is None else self.corpus.digest

    def baseline_path(self, name: str) -> Path:
        """Where the baseline of this name lies: ``<folder>/baselines/NAME.run.jsonl.gz``.

        Of a dataset in one file: ``baselines/STEM/NAME.run.jsonl.gz`` beside it.
        """
        file = baseline_file(name)
        if self.path is None:
            raise DataError(
                f"the dataset {self.name or '(without name)'} lies in no folder, so that baseline {name!r} has no "
                "place: give it one with the ini value retrieval_baseline_dir, or name the run file"
            )
        one_file = not self.path.is_dir()
        folder = self.path.parent / "baselines" / _stem(self.path) if one_file else self.path / "baselines"
        return folder / file


_BASELINE = re.compile(r"\w[\w.+-]*")


def baseline_file(name: str) -> str:
    """The file name of a baseline; DataError for a name that cannot be one."""
    if not isinstance(name, str) or not _BASELINE.fullmatch(name):
        raise DataError(
            f"{excerpt(name)} is no name of a baseline; expected letters, digits and . _ - + (it becomes a file)"
        )
    return f"{name}.run.jsonl.gz"


def irds_id(path: PathLike) -> str | None:
    """The id in ``irds:ID``; None for any other path.

    >>> irds_id("irds:beir/scifact/test")
    'beir/scifact/test'
    """
    text = Path(path).as_posix()
    return text[len(IRDS) :] if text.startswith(IRDS) else None


def _read_folder(folder: Path, name: str | None, split: str | None, normalize_ids: bool) -> Dataset:
    queries_path = _find(folder, _QUERIES)
    queries = None if queries_path is None else Queries.read(queries_path, normalize_ids=normalize_ids)
    others = _find(folder, _OTHER_LABELS)
    spans, chosen = None, None
    if others is not None and split is None and not any(folder.glob("qrels*")):
        ids = () if queries is None else queries.ids
        if queries is None and (spans_path := _find(folder, _SPANS)) is not None:
            spans = Spans.read(spans_path, normalize_ids=normalize_ids)
            ids = spans.query_ids
        if not ids:
            raise DataError(f"{folder}: nothing names the queries: the folder has neither queries.jsonl nor qrels/")
        qrels = _no_judgments(ids, str(folder))
    else:
        qrels_path, chosen = _choose_split(folder, split)
        qrels = Qrels.read(qrels_path, normalize_ids=normalize_ids)
    if queries is None:
        queries = Queries.without_texts(qrels.query_ids, qrels.source if spans is None else spans.source)
    corpus_path = _find(folder, ("corpus.jsonl",))
    corpus = None if corpus_path is None else Corpus.read(corpus_path, normalize_ids=normalize_ids)
    name = name or folder.resolve().name
    dataset = Dataset.checked(name, folder, queries, qrels, corpus, chosen, other_labels=others is not None)
    dataset._parts["normalize_ids"] = normalize_ids
    if spans is not None:
        dataset._parts["spans"] = spans
    return dataset


def _no_judgments(query_ids: Iterable[str], source: str) -> Qrels:
    """Qrels that name the queries and judge nothing."""
    nothing = Ids.of([])
    query, grades = np.zeros(0, np.int64), np.zeros(0, np.float64)
    return Qrels(tuple(query_ids), query, nothing, grades, source)


def _choose_split(folder: Path, split: str | None) -> tuple[Path, str]:
    home = folder / "qrels"
    if not home.is_dir():
        stray = next((path.name for path in sorted(folder.iterdir()) if path.name.startswith("qrels.")), None)
        hint = f"; move {stray} to qrels/test{''.join(Path(stray).suffixes)}" if stray else ""
        raise DataError(f"{folder}: the folder has no qrels/; expected judgments in qrels/test.tsv{hint}")
    splits: dict[str, list[Path]] = {}
    for path in sorted(home.iterdir()):
        if path.is_file() and not path.name.startswith(".") and bare_suffixes(path)[-1:] in _QRELS_ENDINGS:
            splits.setdefault(_split_name(path), []).append(path)
    if not splits:
        raise DataError(f"{home}: no judgments here; expected SPLIT.tsv, such as test.tsv")
    if split is None:
        split = "test" if "test" in splits else next(iter(splits)) if len(splits) == 1 else None
    if split is None:
        raise DataError(f"{home}: the splits are {', '.join(splits)} and none is test; choose one with split=")
    if split not in splits:
        raise DataError(f"{home}: there is no split {split!r}; {did_you_mean(str(split), splits)}")
    if len(splits[split]) > 1:
        names = " and ".join(path.name for path in splits[split])
        raise DataError(f"{home}: {names} are all the split {split!r}; keep one of them")
    return splits[split][0], split


_QRELS_ENDINGS = [[ending] for ending in _QRELS]


def _split_name(path: Path) -> str:
    name = path.name
    for ending in _COMPRESSED[1:]:
        name = name[: -len(ending)] if name.lower().endswith(ending) else name
    return Path(name).stem


def _find(folder: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        for ending in _COMPRESSED:
            if (path := folder / f"{name}{ending}").is_file():
                return path
    return None


def _read_rows(path: Path, normalize_ids: bool) -> tuple[Queries, Qrels]:
    queries, qrels = (
        QueriesBuilder(str(path), normalize_ids),
        QrelsBuilder(str(path), "levels", normalize_ids),
    )
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        query_id = next((row[key] for key in ID_KEYS if key in row), None)
        if query_id is None:
            raise DataError(
                f"{where}: the row has no 'query_id'; found the keys {excerpt(list(row))}; "
                "expected query_id, query, relevant and perhaps tags"
            )
        queries.add(query_id, row, where)
        if "relevant" in row:
            qrels.add_query(query_id, row["relevant"], where)
        elif row.get("unanswerable") is not True:
            near = did_you_mean("relevant", row)
            hint = f"; found {near[13:-1]!r}" if near.startswith("did") else ""
            raise DataError(
                f"{where}: query {excerpt(query_id)} has no 'relevant'{hint}; "
                "expected {document: grade} or a list of documents (or unanswerable: true)"
            )
    return queries.done(), qrels.done()


def name_of(path: PathLike) -> str:
    """The name of the dataset at a path, where nobody gives it one."""
    place = Path(path)
    dataset_id = irds_id(path)
    if dataset_id is not None and not os.path.exists(place):
        return dataset_id
    return place.resolve().name if os.path.isdir(place) else _stem(place)


def _stem(path: Path) -> str:
    # "handbook.v2.jsonl.gz" is handbook.v2: only the endings that say the format go.
    name = path.name
    for endings in (_COMPRESSED[1:], (".jsonl", ".json", ".ndjson")):
        for ending in endings:
            if name.lower().endswith(ending) and len(name) > len(ending):
                name = name[: -len(ending)]
                break
    return name


def not_among(queries: Queries, query_ids: Iterable[str], one: str, many: str) -> list[str]:
    """What is to be said where labels are of queries that nobody will ask; ``one`` and ``many`` are what those are."""
    missing = [query_id for query_id in query_ids if query_id not in queries]
    if not missing:
        return []
    said = f"{_count(len(missing), one, many)} not in {queries.source}: {_some(missing)}"
    twins = nfc_twins(missing, queries.ids)
    if twins:
        said += (
            f"; {_count(len(twins), 'id matches', 'ids match')} after Unicode normalisation: "
            "read the dataset with normalize_ids=True"
        )
    return [said]


def _oddities(queries: Queries, qrels: Qrels) -> tuple[str, ...]:
    warnings = not_among(queries, qrels.query_ids, "judged query is", "judged queries are")
    if queries.unanswerable:
        relevant = {qrels.query_ids[row] for row in qrels.query[qrels.grades > 0].tolist()}
        both = [query_id for query_id in queries if query_id in queries.unanswerable and query_id in relevant]
        if both:
            warnings.append(
                f"{_count(len(both), 'query is', 'queries are')} marked unanswerable and "
                f"{'has' if len(both) == 1 else 'have'} relevant documents: {_some(both)}"
            )
    return tuple(warnings)


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _row(line: str, where: str) -> dict[str, Any]:
    row = json_value(line, where, expected="one JSON object in each line")
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected one JSON object in each line, found {excerpt(line)}")
    return row


def _document(row: Mapping[str, object], where: str) -> Document:
    title, text = row.get("title"), row.get("text")
    if not isinstance(text, str) or not (title is None or isinstance(title, str)):
        raise DataError(f"{where}: the document has title {excerpt(title)} and text {excerpt(text)}; expected strings")
    return Document(title or "", text, roles_of(row.get("roles"), "the document", where))
