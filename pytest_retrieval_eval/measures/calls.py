"""Measures of traces: how many calls a query took, and whether they brought together all that its answer needs.

Of *needed* documents a chain of evidence is made: those that are relevant at the measure's level. k cuts each call's
own list. What an agent spends is counted for every query; what it finds, for those that need something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import GateError, MeasureError
from pytest_retrieval_eval.measures.evidence import CALLS, Evidence, Given, register_evidence
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks, judged_ranks
from pytest_retrieval_eval.measures.registry import Definition, Parameter
from pytest_retrieval_eval.measures.times import percentile, query_labels, query_table, smooth_percentile

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.formats.ids import Ids
    from pytest_retrieval_eval.collection.runs.run import Run

CHAIN = "chain"


@dataclass(frozen=True, slots=True, eq=False)
class Spent:
    """The calls of each query, and how many of them brought nothing new."""

    calls: Floats
    redundant: Floats
    failed: Bools
    known: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Where the calls have the judged documents: a row for each time that one is found.

    ``query`` and ``doc`` number the queries and judgments of the labels, ``call`` and ``rank`` begin at 1. ``grade``
    is that of every judgment, and ``of`` its query. ``hops`` has the judgments of the documents that each hop of a
    query needs, where the query says so; ``ids`` are the queries, and ``docs`` the document of each judgment.
    """

    query: Ints
    doc: Ints
    call: Ints
    rank: Ints
    grade: Floats
    of: Ints
    ids: tuple[str, ...]
    docs: Ids
    hops: Mapping[int, tuple[tuple[str, ...], ...]]

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.ids)

    def first(self, rel: float, cutoff: int | None, hop: int | None = None) -> Ints:
        """The first call that has each judged document in its top k, 0 where none has; of one hop alone, that one."""
        keep = self.grade[self.doc] >= rel
        if cutoff is not None:
            keep &= self.rank <= cutoff
        if hop is not None:
            keep &= self.call == hop
        found = np.full(len(self.grade), np.iinfo(np.int64).max)
        np.minimum.at(found, self.doc[keep], self.call[keep])
        found[found == np.iinfo(np.int64).max] = 0
        return found

    def needed(self, rel: float, hop: int | None = None) -> tuple[Bools, Ints]:
        """Which judgments are of documents that are needed (by one hop), and how many each query needs."""
        which = self.grade >= rel
        if hop is not None:
            which &= self._of_hop(hop)
        return which, np.bincount(self.of[which], minlength=self.queries)

    def _of_hop(self, hop: int) -> Bools:
        which = np.zeros(len(self.grade), bool)
        for query, hops in self.hops.items():
            low, high = np.searchsorted(self.of, [query, query + 1]).tolist()
            wanted = set(hops[hop - 1]) if hop <= len(hops) else set()
            which[[row for row in range(low, high) if self.docs[row] in wanted]] = True
        return which

    def check_hop(self, measure: Measure, hop: int) -> None:
        """Refuse what would count as a hop that found nothing although nobody said what it needs."""
        relevant = np.bincount(self.of[self.grade >= measure.rel], minlength=self.queries) > 0
        silent = [self.ids[row] for row in np.flatnonzero(relevant).tolist() if row not in self.hops]
        if silent:
            raise GateError(
                f"{measure} reads what each hop needs, and {len(silent)} of {int(relevant.sum())} queries do not "
                f"say ({', '.join(silent[:5])}{', …' if len(silent) > 5 else ''}): give them hops in "
                'queries.jsonl, such as "hops": [["d4"], ["d2"]], or leave gold=hop out for what the whole query needs'
            )
        longest = max(map(len, self.hops.values()), default=0)
        if hop > longest:
            raise GateError(f"{measure}: no query has a hop {hop}; the longest has {longest}")
        which = self._of_hop(hop) & (self.grade >= measure.rel)
        for query, hops in self.hops.items():
            if hop > len(hops):
                continue
            low, high = np.searchsorted(self.of, [query, query + 1]).tolist()
            judged = {self.docs[row] for row in range(low, high) if which[row]}
            unlike = [doc for doc in hops[hop - 1] if doc not in judged]
            if unlike:
                raise GateError(
                    f"{measure}: hop {hop} of the query {self.ids[query]} needs {unlike[0]}, which the labels do not "
                    f"call relevant (a grade of {measure.rel:g} or more): one of the two is wrong"
                )

    def count(self, found: Bools) -> Ints:
        """How many of these judgments each query has."""
        return np.bincount(self.of[found], minlength=self.queries)


def _refuse_runs_without(run: Run) -> None:
    if not run.calls:
        raise GateError(
            f"the {run.called} has no traces, which measures of calls read: make it with Traces.run(), or read a file "
            'of rows {"query_id", "calls"}'
        )


def spent_calls(given: Given) -> Evidence:
    """The evidence of what calls were spent. Raises a GateError where the run has no traces."""
    if given.trec:
        raise MeasureError("trec_eval knows no traces: measure calls without trec mode.")
    run = given.run
    _refuse_runs_without(run)
    labels, calls, failed = query_labels(given), run.calls, run.errors
    known = [calls.get(query_id) for query_id in labels.query_ids]
    spent = Spent(
        np.array([0.0 if each is None else len(each) for each in known]),
        np.array([0.0 if each is None else redundant([call.docs for call in each]) for each in known]),
        np.array([query in failed for query in labels.query_ids], bool),
        np.array([each is not None for each in known], bool),
    )

    def check(measure: Measure, rows: Ints) -> None:
        missing = [labels.query_ids[row] for row in rows[~spent.known[rows]].tolist()]
        if missing:
            raise GateError(
                f"{measure}: the {run.called} has no trace for {len(missing)} of {len(rows)} queries that count "
                f"({', '.join(missing[:5])}{', …' if len(missing) > 5 else ''}); one without a call has an empty list"
            )

    return Evidence(labels, query_table(labels, run, spent), noun="trace", every=True, check=check)


def redundant(calls: Sequence[Sequence[str]]) -> int:
    """How many calls brought no document that no call before had brought, an empty one among them.

    >>> redundant([["a", "b"], ["b"], ["c"], []])
    2
    """
    seen: set[str] = set()
    found = 0
    for docs in calls:
        found += seen.issuperset(docs)
        seen.update(docs)
    return found


def chains(given: Given) -> Evidence:
    """The evidence of what the calls found. Raises a GateError where the run has no traces, or nothing is judged."""
    if given.trec:
        raise MeasureError("trec_eval knows no traces: measure chains of evidence without trec mode.")
    run, qrels = given.run, given.qrels
    _refuse_runs_without(run)
    if run.header.get("unit") == "document":
        raise GateError(
            f"the {run.called} was made of chunks, and its calls still have those: label the chunks, or leave "
            "unit='document' out"
        )
    if qrels is None or not len(qrels):
        raise GateError("the qrels judge no document, so that nothing says which ones a query needs.")
    numbers = {
        (int(query), doc): row
        for row, (query, doc) in enumerate(zip(qrels.query.tolist(), qrels.docs.strings(), strict=True))
    }
    rows = []
    for number, query_id in enumerate(qrels.query_ids):
        for call, made in enumerate(run.calls.get(query_id, ()), 1):
            for rank, doc in enumerate(made.docs, 1):
                row = numbers.get((number, doc))
                if row is not None:
                    rows.append((number, row, call, rank))
    query, doc, call, rank = np.array(rows, np.int64).reshape(-1, 4).T
    hops = {}
    if given.queries is not None:
        said = ((row, given.queries.hops(id)) for row, id in enumerate(qrels.query_ids) if id in given.queries)
        hops = {row: each for row, each in said if each is not None}
    chain = Chain(query, doc, call, rank, qrels.grades, qrels.query, qrels.query_ids, qrels.docs, hops)
    return Evidence(qrels, judged_ranks(qrels, run).with_beside(chain), judged=True)


def _chain(ranks: JudgedRanks, measure: Measure) -> Chain:
    if not isinstance(ranks.beside, Chain):
        raise MeasureError(f"{measure} reads traces, and the table that it was given has none.")
    return ranks.beside


def _spent(ranks: JudgedRanks, measure: Measure) -> Spent:
    if not isinstance(ranks.beside, Spent):
        raise MeasureError(f"{measure} reads traces, and the table that it was given has none.")
    return ranks.beside


def chain_recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Needed documents in the top k of any call ÷ needed documents."""
    chain = _chain(ranks, measure)
    which, needed = chain.needed(measure.rel)
    found = chain.count(which & (chain.first(measure.rel, measure.cutoff) > 0))
    return found / np.maximum(needed, 1)


def chain_complete(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 if every needed document is in the top k of some call, else 0."""
    chain = _chain(ranks, measure)
    which, needed = chain.needed(measure.rel)
    found = chain.count(which & (chain.first(measure.rel, measure.cutoff) > 0))
    complete: Floats = (found == needed).astype(np.float64)
    return complete


def hop_recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Needed documents in the top k of one call ÷ needed documents of the query, or of that hop."""
    chain, hop = _chain(ranks, measure), _hop(measure)
    which, needed = chain.needed(measure.rel, hop if _by_hop(measure) else None)
    found = chain.count(which & (chain.first(measure.rel, measure.cutoff, hop) > 0))
    return found / np.maximum(needed, 1)


def has_hop(ranks: JudgedRanks, measure: Measure) -> Bools:
    """The queries that need something; with the gold of a hop, those whose hop needs something."""
    chain, hop = _chain(ranks, measure), _hop(measure)
    if not _by_hop(measure):
        return chain.needed(measure.rel)[1] > 0
    chain.check_hop(measure, hop)
    return chain.needed(measure.rel, hop)[1] > 0


def _hop(measure: Measure) -> int:
    hop = measure.get("hop", 1.0)
    if not isinstance(hop, float) or not hop.is_integer():
        raise MeasureError(f"{measure}: hop numbers a call, from 1; {hop} is none.")
    return int(hop)


def _by_hop(measure: Measure) -> bool:
    return measure.get("gold", "query") == "hop"


def calls_to_complete(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The call with which the last needed document is in the top k of some call; ``never`` where one never is."""
    chain = _chain(ranks, measure)
    first = chain.first(measure.rel, measure.cutoff)
    which, needed = chain.needed(measure.rel)
    last = np.zeros(chain.queries, np.int64)
    np.maximum.at(last, chain.of[which], first[which])
    complete = chain.count(which & (first > 0)) == needed
    never = measure.get("never", NEVER)
    return np.where(complete, last, never if isinstance(never, float) else NEVER).astype(np.float64)


def calls(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The calls that were made for the query."""
    return _spent(ranks, measure).calls


def redundant_calls(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Calls that brought no document which no earlier call had brought ÷ calls; 0 where there were none."""
    spent = _spent(ranks, measure)
    return spent.redundant / np.maximum(spent.calls, 1)


def asked(ranks: JudgedRanks, measure: Measure) -> Bools:
    """Every query of the collection that the agent did not fail on."""
    return ~_spent(ranks, measure).failed


NEVER = 10.0
register_evidence(CALLS, spent_calls, "the calls of traces")
register_evidence(CHAIN, chains, "the calls of traces, and labels of documents", labelled=True)

_OWN = "counted from the calls of a trace"
_HOP = Parameter("which call, from 1", 1.0, number=True, above=0.0, kept=True)
_GOLD = Parameter(
    "whose needed documents: those of the whole query, or of the hop of that number", "query", words=("query", "hop")
)
_found = partial(Definition, source=_OWN, reads=CHAIN)
_counted = partial(Definition, source=_OWN, cutoff="none", binary=False, counts=asked, falls=True, reads=CALLS)
_taken = partial(_counted, score=calls, high=math.inf)

MEASURES = (
    _found("chain_recall", "needed documents that any call found ÷ needed documents", score=chain_recall),
    _found("chain_complete", "1 if the calls together found every needed document", score=chain_complete),
    _found(
        "hop_recall",
        "needed documents that one call found ÷ needed documents",
        score=hop_recall,
        parameters={"hop": _HOP, "gold": _GOLD},
        counts=has_hop,
        no_counts="no query needs a document of this hop.",
    ),
    _found(
        "calls_to_complete",
        "with which call the last needed document was found",
        score=calls_to_complete,
        parameters={
            "never": Parameter("what a query counts whose documents are never all found", NEVER, number=True, above=0.0)
        },
        falls=True,
        high=math.inf,
    ),
    _counted("redundant_calls", "the share of calls that brought nothing new", score=redundant_calls),
    _taken("calls.mean", "how many calls a query takes, on average"),
    _taken(
        "calls.p95",
        "how many calls a query takes, of which 95 % of the queries stay below",
        aggregate="statistic",
        statistic=partial(percentile, share=0.95),
        smooth=partial(smooth_percentile, share=0.95),
    ),
    _taken(
        "calls.max",
        "how many calls any query takes at most: the budget of an agent",
        aggregate="statistic",
        statistic=partial(percentile, share=1.0),
        extreme=True,
        readings={"calls": "calls.max"},
    ),
)
