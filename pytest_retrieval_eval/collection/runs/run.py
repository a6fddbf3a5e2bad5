"""A run: what a retriever returned for each query, in rank order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_retrieval_eval.collection.formats.files import PARQUET, PathLike, bare_suffixes
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.runs.located import Located
from pytest_retrieval_eval.collection.runs.runfile import (
    STRUCTURE,
    TREC_ENDINGS,
    Backing,
    RunFile,
    lists_of,
    of_calls,
    read_run,
    write_ours,
    write_trec,
)
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]

    from pytest_retrieval_eval.collection.dataset import Document
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.columns import Columns
    from pytest_retrieval_eval.collection.runs.traces import Call
    from pytest_retrieval_eval.collection.spans.chunks import Chunks

__all__ = ["Located", "Ranking", "Run"]


@dataclass(frozen=True)
class Ranking:
    """The list of one query, best first.

    ``scores`` is None where the run has none. ``doc_id``, ``start`` and ``end`` (code points, end exclusive)
    are None where the run does not say which parts of documents its hits are.
    """

    docs: list[str]
    scores: list[float] | None = None
    doc_id: list[str | None] | None = None
    start: list[int | None] | None = None
    end: list[int | None] | None = None


class Run:
    """Ranked lists of documents, one for each query; immutable.

    ``ordered_by`` is ``"score"`` (sorted by score, ties by document id, both descending: mappings and TREC
    files) or ``"list"`` (the given order counts). ``depth`` is how many hits the retriever was asked for,
    where that was declared. ``errors`` has the queries for which it raised, ``seconds`` how long each took, ``costs``
    what each was charged, where somebody said so. What cannot be a run, in a file or in memory, is a DataError that
    says where.

    >>> run = Run.of({"q1": {"a": 0.2, "b": 0.9}, "q2": {}})
    >>> run.ranking("q1").docs, run.returned.tolist()
    (['b', 'a'], [2, 0])
    """

    __slots__ = ("__weakref__", "_file", "_located", "name", "source")

    def __init__(self, file: RunFile, *, name: str = "", source: str = "") -> None:
        self._file = file
        self.name = name
        self.source = source
        self._located: list[tuple[Qrels, bool, Located]] = []

    @classmethod
    def read(cls, path: PathLike, *, columns: Mapping[str, str] | None = None) -> Run:
        """The run in a file: our ``*.run.jsonl``, TREC, JSON or JSON Lines, compressed or not; or ``*.parquet``.

        A TREC file is opened, and read when something is measured (in bounded memory) or asked for. A file
        that is malformed, or has changed by then, and a pipe raise DataError with file and line. ``columns``
        names those of a Parquet file, as in `of`. A text such as ``s3://bucket/main.run.jsonl.gz`` is a URL, to
        be read with fsspec.
        """
        if isinstance(path, str) and "://" in path:
            from pytest_retrieval_eval.settings import is_url

            if is_url(path):
                from pytest_retrieval_eval.collection.runs.elsewhere import run_at

                return run_at(path, columns)
        return cls(read_run(path, columns), name=_stem(path), source=str(path))

    @classmethod
    def of(
        cls,
        hits: Any,
        *,
        columns: Mapping[str, str] | None = None,
        name: str = "",
        depth: int | None = None,
        seconds: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        errors: Mapping[str, str] | None = None,
        header: Mapping[str, object] | None = None,
    ) -> Run:
        """A run from lists in memory: a mapping from query to

        * ``{document: score}``, sorted by score; kept as it is, so it must not be changed afterwards;
        * ``[document, …]``, ``[(document, score), …]`` or ``[Hit, …]`` in rank order, which counts.

        Or from an Arrow table or a data frame (pandas, polars) with a hit in each row: by score, and without
        scores by rank. Columns have the usual names (``query_id``, ``doc_id``, ``score``, ``rank`` and their
        kin), or ``columns`` says which is the ``query``, the ``document``, the ``score``, the ``rank``.

        A set, a NaN score, an empty id and a mixture of the two forms raise DataError.

        >>> Run.of({"q1": ["b", "a"]}).ranking("q1").docs
        ['b', 'a']
        """
        lists: Backing
        if isinstance(hits, Mapping):
            if columns is not None:
                raise DataError("columns are named for tables alone, and a mapping has none")
            lists = lists_of(hits)
        else:
            from pytest_retrieval_eval.collection.formats.frames import frame_table, is_frame
            from pytest_retrieval_eval.collection.runs.runtables import run_of_table

            if not is_frame(hits):
                raise DataError(
                    "a run is made from a mapping from query to hits, or from a table, "
                    f"not from a {type(hits).__name__}"
                )
            lists = run_of_table(frame_table(hits, name or "the table"), columns)
        file = RunFile(lists, seconds=dict(seconds or {}), costs=dict(costs or {}), errors=dict(errors or {}))
        return cls(file, name=name).with_header(**{**(header or {}), "depth": depth})

    @classmethod
    def from_retriever(cls, search: Any, queries: Any, **options: Any) -> Run:
        """Ask a retriever every query; see `collection.runs.retrieve.from_retriever`."""
        from pytest_retrieval_eval.collection.runs.retrieve import from_retriever

        return from_retriever(search, queries, **options)

    @classmethod
    def fused(cls, runs: Sequence[Run], **options: Any) -> Run:
        """The runs as one, by reciprocal rank fusion; see `collection.runs.fusion.fuse`."""
        from pytest_retrieval_eval.collection.runs.fusion import fuse

        return fuse(runs, **options)

    @classmethod
    def of_calls(
        cls,
        calls: Mapping[str, tuple[Call, ...]],
        *,
        name: str = "",
        errors: Mapping[str, str] | None = None,
        source: str = "",
    ) -> Run:
        """What the calls of each query returned together, with the calls; see `collection.runs.traces.Traces`."""
        return cls(of_calls(calls, errors or {}), name=name, source=source)

    def __repr__(self) -> str:
        return f"<Run {self.name or self.source!r}>"

    @property
    def called(self) -> str:
        """The run as a sentence names it, such as ``run bm25``."""
        return f"run {self.name or self.source or 'given'}"

    @property
    def depth(self) -> int | None:
        """How many hits a query could have, where that was declared."""
        return self._file.depth

    @property
    def header(self) -> Mapping[str, object]:
        """Where the run comes from: retriever, dataset, commit, time, …, as its file says."""
        return MappingProxyType(dict(self._file.header))

    @property
    def errors(self) -> Mapping[str, str]:
        """The queries for which the retriever raised, and what."""
        return MappingProxyType(dict(self._file.errors))

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each query took."""
        return MappingProxyType(dict(self._file.seconds))

    @property
    def costs(self) -> Mapping[str, float]:
        """What each query was charged, in whatever currency the retriever says it."""
        return MappingProxyType(dict(self._file.costs))

    @property
    def calls(self) -> Mapping[str, tuple[Call, ...]]:
        """The calls that were made for each query, where the run is made of traces; mostly none."""
        return MappingProxyType(dict(self._file.calls))

    @property
    def texts(self) -> Mapping[str, Document]:
        """The texts of documents that are kept with the run: what was retrieved then, by id; mostly none."""
        return MappingProxyType(dict(self._file.texts))

    @property
    def ordered_by(self) -> Literal["score", "list"]:
        """What ranks the documents."""
        return "list" if self._file.backing.by_list else "score"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong; of a TREC file complete once it has been read."""
        return self._file.backing.warnings

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries that the run has a list for, perhaps an empty one."""
        return self._file.backing.query_ids

    @property
    def returned(self) -> Ints:
        """The length of each query's list (int64, in the order of ``query_ids``)."""
        return np.diff(self._file.backing.bounds)

    def __len__(self) -> int:
        return len(self.query_ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.query_ids)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self.query_ids

    @property
    def duplicates(self) -> Mapping[str, int]:
        """The queries whose list repeats documents, and how many hits are such repeats."""
        return MappingProxyType({query: len(ranks) for query, ranks in self.repeats.items()})

    @property
    def repeats(self) -> Mapping[str, tuple[int, ...]]:
        """The ranks at which a document stands that stood above already, for the lists that have such."""
        found: dict[str, tuple[int, ...]] = {}
        if not self._file.backing.by_list:
            return MappingProxyType(found)  # sorted runs repeat nothing, and to look would load a whole file
        columns = self._file.backing.columns()
        first = 0
        for block in columns.blocks():
            rows = block.repeated()
            for place, row in zip(block.query_of(rows).tolist(), rows.tolist(), strict=True):
                query = columns.query_ids[first + place]
                found[query] = (*found.get(query, ()), row - int(block.bounds[place]) + 1)
            first += len(block.queries)
        return MappingProxyType(found)

    def columns(self) -> Columns:
        """The lists as columns, in rank order."""
        return self._file.backing.columns()

    def with_columns(self, columns: Columns) -> Run:
        """The same run with other columns, such as ones that say more of each hit."""
        return Run(replace(self._file, backing=columns), name=self.name, source=self.source)

    def ranking(self, query_id: str) -> Ranking:
        """The list of one query; empty where the run does not have the query."""
        return self.rankings([query_id])[query_id]

    def rankings(self, query_ids: Iterable[str], depth: int | None = None) -> dict[str, Ranking]:
        """The lists of some queries, cut at a depth."""
        columns = self._file.backing.columns()
        place = {query: i for i, query in enumerate(columns.query_ids)}
        bounds = columns.bounds.tolist()
        spans: dict[str, tuple[int, int]] = {}
        for query_id in query_ids:
            i = place.get(query_id)
            first, last = (0, 0) if i is None else (bounds[i], bounds[i + 1])
            spans[query_id] = (first, last if depth is None else min(last, first + depth))
        # The ids of all lists are made at once: one list at a time would cost as much again for each.
        docs = columns.docs.strings(
            np.concatenate([np.zeros(0, np.int64), *(np.arange(*span) for span in spans.values())])
        )
        result, done = {}, 0
        for query_id, (first, last) in spans.items():
            scores = None if columns.scores is None else columns.scores[first:last].tolist()
            parts: dict[str, Any] = {}
            if columns.chunks is not None:
                found = [columns.chunks.at(row) for row in range(first, last)]
                parts = {key: [part[key] for part in found] for key in ("doc_id", "start", "end")}
            result[query_id] = Ranking(docs[done : done + last - first], scores, **parts)
            done += last - first
        return result

    def by_document(self, chunks: Chunks | None = None) -> Run:
        """The documents that these chunks are parts of, each at the rank of its best chunk.

        Later chunks of a document take no slot, so that rank k is the k-th document. Which document a hit is
        part of its own ``doc_id`` says, else ``chunks``; where neither does, DataError. ``depth`` stays that
        of the chunks. A run of documents (its header has ``unit: document``) is given back as it is.

        >>> from pytest_retrieval_eval import Chunks
        >>> run = Run.of({"q1": ["a#2", "b#1", "a#1"]})
        >>> run.by_document(Chunks.of({"a#1": "a", "a#2": "a", "b#1": "b"})).ranking("q1").docs
        ['a', 'b']
        """
        if self.header.get("unit") == "document":
            return self
        return _by_document(self, chunks)

    def locate(self, qrels: Qrels, *, float32: bool = False) -> Located:
        """Where the documents of the qrels stand in the lists.

        ``float32`` ranks as trec_eval 9.0.8 does, whatever the run's own order: by score in single precision,
        ties by document id, both descending.
        """
        for known, mode, located in self._located:
            if known is qrels and mode == float32:
                return located
        if float32 and self.ordered_by == "list" and self._file.backing.columns().scores is None:
            raise DataError(
                f"the run {self.name or self.source!r} has no scores, by which trec_eval ranks; "
                "measure it without trec mode, or give the retriever's scores"
            )
        located = self._file.backing.locate(qrels, float32=float32)
        self._located = [*self._located[-3:], (qrels, float32, located)]
        return located

    def save(self, path: PathLike) -> None:
        """Write the run: ``.run.jsonl`` (all of it) or TREC (``.trec``, ``.txt``, ``.run``), also compressed.

        ``.parquet`` keeps all but which part of a document a hit is.
        TREC has no place for empty lists, depth, order without scores, chunks, seconds, errors and header;
        what is lost is said in a warning. The same run gives the same bytes.
        """
        endings = bare_suffixes(path)
        if endings[-2:] == [".run", ".jsonl"]:
            write_ours(path, self._file)
        elif endings[-1:] and endings[-1] in TREC_ENDINGS:
            write_trec(path, self._file, self.name)
        elif endings[-1:] == [PARQUET]:
            from pytest_retrieval_eval.collection.runs.runtables import write_parquet

            file = self._file
            said: dict[str, Any] = {
                "depth": file.depth,
                "header": file.header,
                "seconds": file.seconds,
                **({"costs": file.costs} if file.costs else {}),
                **({"calls": _call_rows(file)} if file.calls else {}),
                "errors": file.errors,
            }
            if file.texts:
                said["texts"] = {doc_id: [each.title, each.text] for doc_id, each in sorted(file.texts.items())}
            write_parquet(path, file.backing.columns(), said)
        else:
            raise DataError(
                f"{path}: a run is saved as .run.jsonl, .trec, .txt or .run (also .gz, .zst, .bz2, .xz), "
                f"or as {PARQUET}"
            )

    def with_header(self, **values: object) -> Run:
        """The same run with more said about where it comes from; ``depth`` declares its depth."""
        depth = values.pop("depth", self.depth)
        for key in STRUCTURE:
            if key in values:
                raise DataError(f"the header key {key!r} is the file format's own; expected another name")
        if depth is not None and (type(depth) is not int or depth < 1):
            raise DataError(f"the depth of a run is an integer of 1 or more, not {depth!r}")
        try:
            json.dumps(values)
        except (TypeError, ValueError) as error:
            raise DataError(f"the header of a run is kept as JSON: {error}") from None
        file = replace(self._file, depth=depth, header={**self._file.header, **values})
        return Run(file, name=self.name, source=self.source)

    def with_texts(self, texts: Mapping[str, Document]) -> Run:
        """The same run with the texts of some of its documents, which its file then keeps."""
        return Run(replace(self._file, texts=dict(texts)), name=self.name, source=self.source)

    def without_seconds(self) -> Run:
        """The same run without what each query took and cost, which differs from one machine and hour to the next."""
        header = {key: value for key, value in self._file.header.items() if key != "timing"}
        calls = {
            query: tuple(replace(call, seconds=None, cost=None) for call in several)
            for query, several in self._file.calls.items()
        }
        file = replace(self._file, seconds={}, costs={}, header=header, calls=calls)
        return Run(file, name=self.name, source=self.source)

    def to_dict(self) -> dict[str, Any]:
        """``{query: {document: score}}``; of a list, ``[(document, score), …]``, or ``[document, …]``."""
        result: dict[str, Any] = {}
        for query_id, ranking in self.rankings(self.query_ids).items():
            if ranking.scores is None:
                result[query_id] = ranking.docs
            else:
                pairs = list(zip(ranking.docs, ranking.scores, strict=True))
                result[query_id] = pairs if self.ordered_by == "list" else dict(pairs)
        return result

    def to_frame(self) -> pandas.DataFrame:
        """A data frame with the columns query_id, rank (from 1), doc_id and score."""
        import pandas

        columns = self._file.backing.columns()
        sizes = np.diff(columns.bounds)
        return pandas.DataFrame(
            {
                "query_id": np.repeat(np.array(columns.query_ids, object), sizes),
                "rank": np.arange(len(columns.docs)) - np.repeat(columns.bounds[:-1], sizes) + 1,
                "doc_id": columns.docs.strings(),
                "score": np.full(len(columns.docs), np.nan) if columns.scores is None else columns.scores,
            }
        )

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of queries, ranks, ids, scores, and the parts of documents that hits are: equal for equal
        runs in whatever file that says all of it.
        """
        columns = self._file.backing.columns()
        import hashlib

        digester = hashlib.sha256()
        for query_id, place in sorted((query, i) for i, query in enumerate(columns.query_ids)):
            rows = slice(int(columns.bounds[place]), int(columns.bounds[place + 1]))
            # Sizes before contents: no two runs write the same stream.
            docs = columns.docs[rows].packed()
            name = query_id.encode()
            digester.update(np.array([len(name), len(docs), columns.scores is None], "<i8").tobytes() + name)
            digester.update(docs.lengths.astype("<i8").tobytes() + docs.data.tobytes())
            if columns.scores is not None:
                digester.update((columns.scores[rows] + 0.0).astype("<f8").tobytes())  # -0.0 is 0.0
            if columns.chunks is not None:
                parts = columns.chunks[np.arange(rows.start, rows.stop)]
                digester.update(json.dumps([*parts.doc_id]).encode())
                digester.update(parts.start.astype("<i8").tobytes() + parts.end.astype("<i8").tobytes())
        for query_id, calls in sorted(self._file.calls.items()):
            asked = [(call.query, call.docs) for call in calls]
            digester.update(json.dumps([query_id, asked], sort_keys=True).encode())
        return "sha256:" + digester.hexdigest()


def _call_rows(file: RunFile) -> dict[str, list[dict[str, object]]]:
    return {query: [call.to_dict() for call in calls] for query, calls in sorted(file.calls.items())}


@lru_cache(maxsize=4)
def _by_document(run: Run, chunks: Chunks | None) -> Run:
    """Made once for the gates that measure the same run."""
    from pytest_retrieval_eval.collection.runs.bydocument import by_document

    name = f"run {run.name}" if run.name else run.source or "the run"
    columns = by_document(run._file.backing.columns(), chunks, name)
    return Run(replace(run._file, backing=columns), name=run.name, source=run.source).with_header(unit="document")


def _stem(path: PathLike) -> str:
    """The file's name without its endings: ``runs/bm25.run.jsonl.gz`` is ``bm25``."""
    name = os.path.basename(os.path.normpath(path))
    for ending in (".gz", ".zst", ".bz2", ".xz", ".jsonl", ".json", ".trec", ".txt", ".run", PARQUET):
        name = name.removesuffix(ending)
    return name
