"""Below which top score a retriever had better return nothing: what each threshold would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.measures.abstention import Abstaining
from pytest_retrieval_eval.measures.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run


@dataclass(frozen=True, slots=True)
class Threshold:
    """What comes of returning nothing where the top score lies below ``threshold`` (None: as the run is).

    ``abstained`` queries would get nothing: ``right`` of them have no answer, and ``lost`` have one. ``precision`` is
    None where nothing is abstained from.
    """

    threshold: float | None
    abstained: int
    right: int
    lost: int
    precision: float | None
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What ``threshold_report`` found: ``rows`` by rising threshold, and the ``best`` by F1, the lowest of equals."""

    rows: tuple[Threshold, ...]
    best: Threshold
    auc: float
    answerable: int
    unanswerable: int


def threshold_report(
    dataset: Dataset, run: Run, *, select: Collection[str] | None = None, most: int = 40
) -> Thresholds:
    """What each threshold of the top score would bring, at most ``most`` of them, evenly over the scores.

    A threshold that is best on these queries is best for them: take it from other queries than a gate measures. A
    dataset without queries of both kinds (with and without an answer), and a run without scores, are GateErrors.

    >>> from pytest_retrieval_eval import Dataset, Run
    >>> queries = {"q1": "how long?", "q2": {"text": "who pays?", "unanswerable": True}}
    >>> run = Run.of({"q1": {"a": 0.9}, "q2": {"x": 0.2}})
    >>> found = threshold_report(Dataset.of(queries=queries, qrels={"q1": ["a"]}), run)
    >>> found.best.threshold, found.best.f1, found.auc
    (0.55, 1.0, 1.0)
    """
    if most < 2:
        raise GateError(f"most={most}: a report has at least two thresholds")
    found = evaluate(dataset.qrels, run, "abstention.auc", queries=dataset.queries, select=select)
    scores = found.scores("abstention.auc")
    known = found.ranks.beside
    if not isinstance(known, Abstaining):
        raise GateError("the evidence of abstention was not found")  # cannot be: the measure reads it
    place = {query_id: row for row, query_id in enumerate(found.qrels.query_ids)}
    rows = np.array([place[query_id] for query_id in scores.query_ids], np.int64)
    top = np.where(known.returned[rows] == 0, -np.inf, known.top[rows])
    without = known.unanswerable[rows]
    candidates = np.unique(top[np.isfinite(top)])
    # Halfway between two scores, so that a threshold holds for scores that are printed with fewer digits as well.
    middles = (candidates[1:] + candidates[:-1]) / 2.0
    if len(middles) > most - 1:
        middles = middles[np.unique(np.linspace(0, len(middles) - 1, most - 1).round().astype(np.int64))]
    reported = [_row(None, top, without), *(_row(float(each), top, without) for each in middles)]
    best = max(reported, key=lambda row: row.f1)
    return Thresholds(tuple(reported), best, scores.overall, int((~without).sum()), int(without.sum()))


def _row(threshold: float | None, top: np.ndarray, without: np.ndarray) -> Threshold:
    abstained = np.isneginf(top) if threshold is None else top < threshold
    right, all_ = int((abstained & without).sum()), int(abstained.sum())
    total = int(without.sum())
    return Threshold(
        threshold,
        all_,
        right,
        all_ - right,
        right / all_ if all_ else None,
        right / total,
        2 * right / (all_ + total),
    )
