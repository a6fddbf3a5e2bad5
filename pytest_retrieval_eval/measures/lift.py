"""What a reranker makes of the documents that it was given: the share of the recoverable gap, query by query.

A reranker orders the documents of an earlier stage and finds none. So the earlier stage bounds what it can reach: the
*ceiling* is the measure on the best order of those documents, and the gap is the ceiling less the measure before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import GateError, MeasureError, did_you_mean
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evidence import RANKS, Evidence, Given, evidence_of, register_evidence
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.nested import score
from pytest_retrieval_eval.measures.ranks import Bools, Floats, JudgedRanks, judged_ranks
from pytest_retrieval_eval.measures.registry import Definition, Parameter
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import counted, fixed, listed

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.measures.evaluate import Evaluation

STAGES = "stages"


class Tables:
    """The judged ranks of a run and of the stages before it, on the same labels."""

    def __init__(self, own: JudgedRanks, qrels: Qrels, stages: Mapping[str, Run] | None, *, trec: bool) -> None:
        self.own, self.qrels, self.trec = own, qrels, trec
        self._stages = stages

    def of(self, measure: Measure) -> JudgedRanks:
        """The table of the stage that a measure names. Raises a GateError where nobody knows it."""
        return judged_ranks(self.qrels, stage_of(self._stages, measure), trec=self.trec)


def stage_of(stages: Mapping[str, Run] | None, measure: Measure) -> Run:
    """The run of the stage that a measure names in ``from``. Raises a GateError where nobody knows it."""
    name = str(measure.get("from"))
    if not stages:
        raise GateError(
            f"{measure} reads the run of the stage {name}, and no stages are known: name them in the fixture or ini "
            "value retrieval_stages, or give stages= to evaluate"
        )
    if name not in stages:
        raise GateError(f"{measure} reads the stage {name}, and none has that name; {did_you_mean(name, stages)}")
    return stages[name]


def reads_stages(measure: Measure) -> bool:
    """Whether a measure, or one inside it, names a stage."""
    return measure.get("from") is not None or (measure.inner is not None and reads_stages(measure.inner))


def staged(given: Given) -> Evidence:
    """The judged ranks of the run, with those of the stages beside."""
    found = evidence_of(RANKS, given)
    tables = Tables(found.ranks, found.labels, given.stages, trec=given.trec)
    return Evidence(found.labels, found.ranks.with_beside(tables), judged=True, tied=found.tied)


def tables_of(ranks: JudgedRanks, measure: Measure) -> Tables:
    """What lies beside the ranks. Raises MeasureError for a table of other evidence."""
    if not isinstance(ranks.beside, Tables):
        raise MeasureError(f"{measure} reads the runs of stages, and the table that it was given has none.")
    return ranks.beside


def ends(ranks: JudgedRanks, measure: Measure) -> tuple[Floats, Floats]:
    """The measure inside before, and on the best order of the same documents (the ceiling), for each query."""
    inner = _inner(measure)
    pool = measure.get("pool")

    def build() -> tuple[Floats, Floats]:
        before = tables_of(ranks, measure).of(measure)
        return score(before, inner), score(before.reordered(int(pool) if isinstance(pool, float) else None), inner)

    return ranks.share(("ends", measure), build)


def _inner(measure: Measure) -> Measure:
    inner = measure.inner
    if inner is None:
        raise MeasureError(f"{measure} has no measure inside.")
    if registry.reads(inner) != RANKS or registry.order(inner) != "rises":
        raise MeasureError(
            f"{measure}: {inner} has no best order of documents that is known; lift takes a measure that is highest "
            "with the best documents on top, such as ndcg@10."
        )
    pool = measure.get("pool")
    if isinstance(pool, float) and not (pool.is_integer() and pool >= 1):
        raise MeasureError(f"{measure}: pool is a number of documents (1, 2, …), not {pool:g}.")
    return inner


def has_gap(ranks: JudgedRanks, measure: Measure) -> Bools:
    """The queries for which another order of the same documents would have been better."""
    before, ceiling = ends(ranks, measure)
    gap: Bools = ceiling - before > TOLERANCE
    return gap


def lift(ranks: JudgedRanks, measure: Measure) -> Floats:
    """(after − before) ÷ (ceiling − before), at least −1, over the queries that have such a gap."""
    before, ceiling = ends(ranks, measure)
    after = score(tables_of(ranks, measure).own, _inner(measure))
    beyond = np.flatnonzero(after > ceiling + TOLERANCE)
    if len(beyond):
        row = int(beyond[0])
        raise GateError(
            f"{measure}: for {counted(len(beyond), 'query', 'queries')} the run is better than any "
            f"order of what the stage {measure.get('from')} returned (the first is "
            f"{tables_of(ranks, measure).qrels.query_ids[row]}: {fixed(after[row])} above {fixed(ceiling[row])}), so "
            "that it has documents from elsewhere: lift is about a stage that orders what it is given"
        )
    gap = ceiling - before
    share = np.divide(after - before, gap, out=np.zeros(len(gap)), where=gap > TOLERANCE)
    limited: Floats = np.clip(share, -1.0, 1.0)
    return limited


def without_gap(evaluation: Evaluation, measure: Measure) -> tuple[str, ...]:
    """The queries that lift does not see: no order was better than the one before, so that they could only lose."""
    inner = evaluation.scores(_inner(measure))
    known = set(evaluation.scores(measure).query_ids)
    ids = evaluation.qrels.query_ids
    before, ceiling = (dict(zip(ids, end.tolist(), strict=True)) for end in ends(evaluation.ranks, measure))
    aside = [query for query in inner.query_ids if query not in known]
    if not aside:
        return ()
    nothing = [query for query in aside if ceiling[query] <= TOLERANCE]
    worse = [query for query in aside if (inner.get(query) or 0.0) < before[query] - TOLERANCE]
    parts = []
    if nothing:
        parts.append(f"the stage {measure.get('from')} has nothing for {len(nothing)} of them ({listed(nothing)})")
    if worse:
        parts.append(f"{len(worse)} of them got worse ({listed(worse)})")
    them = f"{counted(len(aside), 'query', 'queries')} had no better order, and {'is' if len(aside) == 1 else 'are'}"
    return (f"{them} left out" + (f": {', '.join(parts)}" if parts else ""),)


register_evidence(STAGES, staged, "labels of documents and the runs of stages", labelled=True)
MEASURES = (
    Definition(
        "lift",
        "(after − before) ÷ (ceiling − before) of the measure inside, at least −1: before is the run of the stage "
        "`from`, the ceiling the best order of its documents; over the queries that have a gap",
        "as the share of the gap that a reranker can recover, for each query",
        lift,
        cutoff="none",
        binary=False,
        parameters={
            "measure": Parameter("the measure inside", measure=True),
            "from": Parameter("the stage whose documents are reordered", text=True),
            "pool": Parameter("how many of that stage's documents are reordered", np.inf, number=True, above=0.0),
        },
        counts=has_gap,
        common="a gap",
        notes=without_gap,
        no_counts="no other order of the documents that the stage before returned would be better.",
        low=-1.0,
        reads=STAGES,
    ),
)
