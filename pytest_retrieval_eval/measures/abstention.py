"""Measures of whether a retriever knows when to return nothing: on queries that nobody can answer.

A query is *abstained* from if its list is empty, or its top score lies below the parameter ``threshold``. Queries
that are marked unanswerable count, and so do those with judgments. Each has a decision that is right or wrong;
precision and F1 are ratios over all of them and no mean over queries, so that they are compared by resampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from pytest_retrieval_eval.errors import GateError, MeasureError
from pytest_retrieval_eval.measures.evidence import ABSTENTION, Evidence, Given, register_evidence
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Bools, Floats, Ints, JudgedRanks
from pytest_retrieval_eval.measures.registry import Definition, Parameter
from pytest_retrieval_eval.measures.times import query_labels, query_table

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class Abstaining:
    """What is known of each query: whether it has an answer, how many hits it got, and the score of the first (NaN
    where there is none).
    """

    unanswerable: Bools
    returned: Ints
    top: Floats
    failed: Bools

    def abstained(self, threshold: float | None) -> Bools:
        """The queries for which nothing was returned, or nothing good enough."""
        empty: Bools = self.returned == 0
        # A comparison with NaN is False.
        if threshold is not None:
            empty |= self.top < threshold
        return empty


def abstaining(given: Given) -> Evidence:
    """The evidence of abstention. Raises a GateError, once a measure is asked for, where no query is unanswerable."""
    if given.trec:
        raise MeasureError("trec_eval knows no unanswerable queries: measure abstention without trec mode.")
    labels, run = query_labels(given), given.run
    without = given.queries.unanswerable if given.queries is not None else frozenset[str]()
    failed = run.errors
    table = query_table(labels, run, None)
    beside = Abstaining(
        np.array([query in without for query in labels.query_ids], bool),
        table.returned,
        _tops(labels, run),
        np.array([query in failed for query in labels.query_ids], bool),
    )

    def check(measure: Measure, rows: Ints) -> None:
        if not beside.unanswerable[rows].any():
            raise GateError(
                f"{measure}: no query that counts is marked unanswerable, so that nothing says when to return nothing: "
                'mark some in queries.jsonl ("unanswerable": true)'
            )
        silent = rows[~(table.in_run[rows] | beside.failed[rows])].tolist()
        if silent:
            raise GateError(
                f"{measure}: the {run.called} has no list for {len(silent)} of {len(rows)} queries, the first is "
                f"{labels.query_ids[silent[0]]}: a query that was not asked has abstained from nothing. Ask every "
                "query and keep empty lists (*.run.jsonl does, a TREC file cannot), or select those of the run with "
                "where="
            )
        scored = beside.returned[rows] == 0
        scored |= ~np.isnan(beside.top[rows])
        if reads_scores(measure) and not scored.all():
            row = int(rows[np.flatnonzero(~scored)[0]])
            raise GateError(
                f"{measure} reads the score of the first hit, and the {run.called} has none for query "
                f"{labels.query_ids[row]}: keep the scores of the retriever, or leave the threshold out"
            )
        if measure.innermost.name == "abstention.auc" and beside.unanswerable[rows].all():
            raise GateError(f"{measure}: none of the {len(rows)} queries that count has an answer to tell it from")

    return Evidence(labels, table.with_beside(beside), noun="decision", every=True, check=check)


def _tops(labels: Qrels, run: Run) -> Floats:
    top = np.full(len(labels.query_ids), np.nan)
    columns = run.columns()
    if columns.scores is None:
        return top
    place = {query_id: row for row, query_id in enumerate(labels.query_ids)}
    for number, query_id in enumerate(columns.query_ids):
        row, first = place.get(query_id), int(columns.bounds[number])
        if row is not None and first < int(columns.bounds[number + 1]):
            top[row] = columns.scores[first]
    return top


def reads_scores(measure: Measure) -> bool:
    """Whether the measure looks at scores, and not only at whether a list is empty."""
    return measure.innermost.name == "abstention.auc" or threshold_of(measure) is not None


def threshold_of(measure: Measure) -> float | None:
    """The score below which the first hit counts as none."""
    value = measure.innermost.get("threshold")
    return value if isinstance(value, float) else None


def _of(ranks: JudgedRanks) -> Abstaining:
    return cast(Abstaining, ranks.beside)


def right(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 where the decision is right: something returned for a query that has an answer, nothing for one without."""
    known = _of(ranks)
    values: Floats = (known.abstained(threshold_of(measure)) == known.unanswerable).astype(np.float64)
    return values


def separated(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The share of all queries' top scores that lie on the right side of the query's own, half of the equal ones.

    Ranks stand for scores, so that runs with scores of different kinds can be compared; an empty list lies below all.
    """
    known = _of(ranks)
    rows = np.flatnonzero(~known.failed)
    # The order of the scores is all that counts.
    top = np.where(known.returned[rows] == 0, -np.inf, np.nan_to_num(known.top[rows], nan=-np.inf))
    _, number, times = np.unique(top, return_inverse=True, return_counts=True)
    middle = (np.cumsum(times) - times / 2.0)[number] / max(len(rows), 1)
    values = np.zeros(len(known.failed))
    values[rows] = np.where(known.unanswerable[rows], 1.0 - middle, middle)
    return values


def without_answer(ranks: JudgedRanks, measure: Measure) -> Floats:
    """1 for a query that has no answer."""
    return _of(ranks).unanswerable.astype(np.float64)


def decided(ranks: JudgedRanks, measure: Measure) -> Bools:
    """Every query that is judged or has no answer, and that the retriever did not fail on."""
    return ~_of(ranks).failed


def unanswerable(ranks: JudgedRanks, measure: Measure) -> Bools:
    """The queries that have no answer, and that the retriever did not fail on."""
    known = _of(ranks)
    counted: Bools = known.unanswerable & ~known.failed
    return counted


def precision(rows: Floats, classes: Floats) -> Floats:
    """Right abstentions ÷ all abstentions."""
    good = (rows * classes).sum(-1)
    return _ratio(good, good + ((1 - rows) * (1 - classes)).sum(-1))


def f1(rows: Floats, classes: Floats) -> Floats:
    """The harmonic mean of precision and recall: 2 · right abstentions ÷ (abstentions + queries without an answer)."""
    good: Floats = (rows * classes).sum(-1)
    return _ratio(2 * good, good + ((1 - rows) * (1 - classes)).sum(-1) + classes.sum(-1))


def _ratio(part: Floats, whole: Floats) -> Floats:
    share: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return share


def auc(rows: Floats, classes: Floats) -> Floats:
    """The chance that a query with an answer has a higher top score than one without, half of equal ones."""
    scores = np.where(classes > 0, 1.0 - rows, rows)
    order = np.argsort(scores, axis=-1)
    ordered = np.take_along_axis(scores, order, -1)
    answered = 1.0 - np.take_along_axis(classes, order, -1)
    n = scores.shape[-1]
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] - ordered[:, :-1] > 1e-12
    places = np.arange(n)
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    ends = np.ones(ordered.shape, bool)
    ends[:, :-1] = new[:, 1:]
    last = np.minimum.accumulate(np.where(ends, places, n)[:, ::-1], axis=-1)[:, ::-1]
    ranks = (first + last) / 2.0 + 1.0
    positive = answered.sum(-1)
    return _ratio((ranks * answered).sum(-1) - positive * (positive + 1) / 2.0, positive * (n - positive))


register_evidence(ABSTENTION, abstaining, "which queries have no answer")

_THRESHOLD = Parameter(
    "the score below which the first hit counts as none, so that only an empty list is an abstention without it",
    "none",
    words=("none",),
    number=True,
)
_decision = partial(Definition, cutoff="none", binary=False, reads=ABSTENTION)
_rightness = partial(
    _decision,
    source="as for any yes-or-no decision, of which returning nothing is the yes",
    score=right,
    parameters={"threshold": _THRESHOLD},
)

MEASURES = (
    _rightness(
        "abstention.precision",
        "of the queries for which nothing was returned, the share that has no answer",
        counts=decided,
        aggregate="statistic",
        statistic=precision,
        classes=without_answer,
    ),
    _rightness(
        "abstention.recall",
        "of the queries that have no answer, the share for which nothing was returned",
        counts=unanswerable,
    ),
    _rightness(
        "abstention.f1",
        "harmonic mean of abstention.precision and abstention.recall",
        counts=decided,
        aggregate="statistic",
        statistic=f1,
        classes=without_answer,
    ),
    _decision(
        "abstention.auc",
        "how well the top score tells queries with an answer from those without: the area under the ROC curve",
        "Venkatraman, A Permutation Test to Compare Receiver Operating Characteristic Curves, Biometrics 2000",
        separated,
        counts=decided,
        aggregate="statistic",
        statistic=auc,
        classes=without_answer,
    ),
)
