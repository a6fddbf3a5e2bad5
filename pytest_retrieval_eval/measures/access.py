"""Who may read what of a run's lists: restricted documents that leak, and allowed ones that a filter withholds.

Each query says the roles of whoever asks it (``roles`` in queries.jsonl; ``[]`` is somebody without a role), each
document who may read it (``roles`` in corpus.jsonl; ``["*"]`` is everybody). What says nothing is an error: that nobody
knows is not that nothing leaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_retrieval_eval.errors import GateError, MeasureError
from pytest_retrieval_eval.measures.evidence import ACCESS, Evidence, Given, register_evidence
from pytest_retrieval_eval.measures.lift import stage_of
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks, judged_ranks
from pytest_retrieval_eval.measures.registry import Definition, Parameter

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Document
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run

EVERYBODY = "*"


class Leak(NamedTuple):
    """A document that was returned to somebody who may not read it, or withheld from somebody who may."""

    doc_id: str
    rank: int
    asker: tuple[str, ...]
    readers: tuple[str, ...]


@dataclass(slots=True)
class Findings:
    """What was found for each query, and what nobody could tell: queries and (query, document, rank)."""

    by_query: dict[str, list[Leak]] = field(default_factory=dict)
    not_in_run: list[str] = field(default_factory=list)
    not_before: list[str] = field(default_factory=list)
    nothing_before: bool = False
    without_roles: list[str] = field(default_factory=list)
    unknown: list[tuple[str, str, int]] = field(default_factory=list)
    unsaid: list[tuple[str, str, int]] = field(default_factory=list)


class Access:
    """The lists of a run beside the roles of queries and documents."""

    def __init__(self, given: Given, labels: Qrels) -> None:
        self.labels, self._given = labels, given
        self._found: dict[Measure, Findings] = {}

    def findings(self, measure: Measure) -> Findings:
        """What the measure counts, looked for once."""
        if measure not in self._found:
            self._found[measure] = self._leaks(measure) if measure.name == "leaks" else self._withheld(measure)
        return self._found[measure]

    def values(self, measure: Measure) -> Floats:
        """How many there are for each query of the labels."""
        found = self.findings(measure).by_query
        return np.array([len(found.get(query_id, ())) for query_id in self.labels.query_ids], np.float64)

    def check(self, measure: Measure, rows: Ints) -> None:
        """Raise a GateError where something is missing that decides what these queries' askers may read."""
        ids = {self.labels.query_ids[row] for row in rows.tolist()}
        found = self.findings(measure)
        absent = [query_id for query_id in found.not_in_run if query_id in ids]
        if absent:
            raise GateError(
                f"{measure}: the run has no list for {_some(absent, 'query', 'queries')}: a query that was not asked "
                "leaks nothing and shows nothing. Ask every query, or select those of the run with where="
            )
        absent = [query_id for query_id in found.not_before if query_id in ids]
        if absent or found.nothing_before:
            lacks = f"no list for {_some(absent, 'query', 'queries')}" if absent else "no relevant document in any list"
            raise GateError(
                f"{measure}: the stage {measure.get('from')} has {lacks}, and what it does not hold cannot be withheld "
                "after it: name a stage that was asked the same queries and found something"
            )
        silent = [query_id for query_id in found.without_roles if query_id in ids]
        if silent:
            raise GateError(
                f"{measure}: {_some(silent, 'query says', 'queries say')} not who asks: add roles to queries.jsonl, "
                'such as "roles": ["staff"], or "roles": [] for somebody without a role'
            )
        unsaid = 'without roles in corpus.jsonl: add "roles": ["hr"], or ["*"] where everybody may read'
        unknown = "not in the corpus, so that nobody knows who may read"
        for places, what in ((found.unknown, unknown), (found.unsaid, unsaid)):
            docs = {doc: (query_id, rank) for query_id, doc, rank in reversed(places) if query_id in ids}
            if docs:
                first, (query_id, rank) = next(reversed(docs.items()))
                which, them = ("document is", "it") if len(docs) == 1 else ("documents are", "them")
                raise GateError(
                    f"{measure}: {len(docs)} {which} {what} {them} (the first is {first}, rank {rank} of query "
                    f"{query_id})"
                )

    def _leaks(self, measure: Measure) -> Findings:
        run, found = self._given.run, Findings()
        asked = self._askers(found)
        lists = run.rankings(asked, depth=measure.cutoff)
        places = [
            (query_id, hit, None if ranking.doc_id is None else ranking.doc_id[place], place + 1)
            for query_id, ranking in lists.items()
            for place, hit in enumerate(ranking.docs)
        ]
        documents = self._documents((hit, own) for _, hit, own, _ in places)
        for query_id, hit, own, rank in places:
            readers = self._readers(found, query_id, hit, rank, documents.get(self._document(hit, own)))
            if readers is not None and not may_read(asked[query_id], readers):
                found.by_query.setdefault(query_id, []).append(Leak(hit, rank, asked[query_id], readers))
        return found

    def _withheld(self, measure: Measure) -> Findings:
        """Relevant documents of the stage before, in its top k, that the run lacks and the asker may read."""
        found, labels = Findings(), self.labels
        asked = self._askers(found)
        here = _ranks(self._given.run, labels)
        stage = stage_of(self._given.stages, measure)
        before = _ranks(stage, labels)
        limit = measure.cutoff or np.iinfo(np.int64).max
        held = (labels.grades >= measure.rel) & (before > 0) & (before <= limit)
        there = frozenset(stage.query_ids)
        found.not_before = [query_id for query_id in labels.query_ids if query_id not in there]
        found.nothing_before = not held.any()
        gone = held & (here == 0)
        rows = [row for row in np.flatnonzero(gone).tolist() if labels.query_ids[int(labels.query[row])] in asked]
        documents = self._documents((labels.docs[row], None) for row in rows)
        for row in rows:
            query_id, doc, rank = labels.query_ids[int(labels.query[row])], labels.docs[row], int(before[row])
            readers = self._readers(found, query_id, doc, rank, documents.get(self._document(doc, None)))
            if readers is not None and may_read(asked[query_id], readers):
                found.by_query.setdefault(query_id, []).append(Leak(doc, rank, asked[query_id], readers))
        for leaks in found.by_query.values():
            leaks.sort(key=lambda leak: leak.rank)
        return found

    def _askers(self, found: Findings) -> dict[str, tuple[str, ...]]:
        """The roles of each query that says them and that the run answers; the others are noted."""
        queries, run = self._given.queries, self._given.run
        there = frozenset(run.query_ids)
        asked = {}
        for query_id in self.labels.query_ids:
            if queries is None or query_id not in queries or not queries.says_roles(query_id):
                found.without_roles.append(query_id)
            else:
                roles = queries.roles(query_id)
                if EVERYBODY in roles:
                    raise GateError(
                        f'query {query_id} is asked with the role "*", which on a document means that everybody may '
                        'read it: name the roles of whoever asks, or write "roles": [] for somebody without a role'
                    )
                asked[query_id] = roles
            if query_id not in there:
                found.not_in_run.append(query_id)
        return asked

    def _documents(self, hits: Iterable[tuple[str, str | None]]) -> dict[str, Document]:
        corpus = self._given.corpus
        if corpus is None:
            raise GateError(
                "the dataset has no corpus.jsonl, which says who may read each document: measures of access need it"
            )
        return corpus.get_many({self._document(hit, own) for hit, own in hits})

    def _document(self, hit: str, own: str | None) -> str:
        """The document that a hit is, or is a part of."""
        if own is not None:
            return own
        chunks = self._given.chunks
        return (chunks.document_of(hit) if chunks is not None else None) or hit

    @staticmethod
    def _readers(
        found: Findings, query_id: str, hit: str, rank: int, document: Document | None
    ) -> tuple[str, ...] | None:
        """Who may read a document; None where nobody knows, which is noted."""
        if document is None or document.roles is None:
            (found.unknown if document is None else found.unsaid).append((query_id, hit, rank))
            return None
        return document.roles


def may_read(asker: Sequence[str], readers: Sequence[str]) -> bool:
    """Whether somebody with these roles may read a document for those.

    >>> may_read(["staff"], ["hr", "staff"]), may_read([], ["*"]), may_read(["staff"], ["hr"]), may_read([], [])
    (True, True, False, False)
    """
    return EVERYBODY in readers or not set(asker).isdisjoint(readers)


def _ranks(run: Run, labels: Qrels) -> Ints:
    located = run.locate(labels)
    ranks = np.zeros(len(labels), np.int64)
    ranks[located.row] = located.rank
    return ranks


def _some(ids: Sequence[str], one: str, many: str) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"{len(ids)} {one if len(ids) == 1 else many} ({', '.join(ids[:3])}{more})"


def access_to(given: Given) -> Evidence:
    """The evidence of roles. Every query counts, whether or not anything is relevant to it."""
    if given.trec:
        raise MeasureError("trec_eval knows no roles: measure access without trec mode.")
    labels = _with_all_queries(given)
    access = Access(given, labels)
    ranks = judged_ranks(labels, given.run).with_beside(access)
    return Evidence(labels, ranks, every=True, check=access.check)


def _with_all_queries(given: Given) -> Qrels:
    """The labels, over the queries that nobody judged as well."""
    from pytest_retrieval_eval.collection.formats.ids import Ids
    from pytest_retrieval_eval.collection.qrels import Qrels

    qrels, queries = given.qrels, given.queries
    if queries is None or not len(queries):
        raise GateError("measures of access need the queries, which say who asks them (roles in queries.jsonl).")
    if qrels is None:
        nothing = np.zeros(0, np.int64)
        return Qrels(tuple(queries), nothing, Ids.of([]), np.zeros(0, np.float64), queries.source)
    known = frozenset(qrels.query_ids)
    more = tuple(query_id for query_id in queries if query_id not in known)
    if not more:
        return qrels
    return Qrels(
        (*qrels.query_ids, *more), qrels.query, qrels.docs, qrels.grades, qrels.source, qrels.scale, qrels.warnings
    )


def access_of(ranks: JudgedRanks, measure: Measure) -> Access:
    """What measures of access read. Raises MeasureError for a table of other evidence."""
    if not isinstance(ranks.beside, Access):
        raise MeasureError(f"{measure} reads who may read what, and the table that it was given does not say.")
    return ranks.beside


def leaks(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Documents of the top k that are neither for everybody nor for a role of the asker."""
    return access_of(ranks, measure).values(measure)


def withheld(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Relevant documents in the top k of the stage that the list lacks, for everybody or for a role of the asker."""
    return access_of(ranks, measure).values(measure)


def asked(ranks: JudgedRanks, measure: Measure) -> Bools:
    """Every query but those for which the retriever failed: of them nothing is known."""
    access = access_of(ranks, measure)
    failed = access._given.run.errors
    return np.array([query_id not in failed for query_id in access.labels.query_ids], bool)


_OWN = "role-based access, as the roles in queries.jsonl and corpus.jsonl say"
register_evidence(ACCESS, access_to, "who may read what")
MEASURES = (
    Definition(
        "leaks",
        "how many of the top k the asker of the query may not read; every query counts",
        _OWN,
        leaks,
        binary=False,
        counts=asked,
        high=float("inf"),
        reads=ACCESS,
    ),
    Definition(
        "withheld",
        "how many relevant documents stand in the top k of the stage `from` and not in the list, although the asker "
        "may read them; every query counts",
        _OWN,
        withheld,
        parameters={"from": Parameter("the stage before the filter", text=True)},
        counts=asked,
        high=float("inf"),
        reads=ACCESS,
    ),
)
