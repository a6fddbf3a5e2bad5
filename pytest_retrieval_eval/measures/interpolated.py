"""Interpolated precision: the highest precision at a recall level or beyond it, as trec_eval rounds levels."""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import Floats, Ints, JudgedRanks, places
from pytest_retrieval_eval.measures.registry import Definition, Parameter

_LEVELS = tuple(tenth / 10 for tenth in range(11))


class _Ceilings:
    """For each relevant row, sorted by query and rank, the highest precision at its rank or below."""

    __slots__ = ("ceiling", "found", "starts")

    def __init__(self, ranks: JudgedRanks, rel: float) -> None:
        keep = ranks.grade >= rel
        query, rank = ranks.query[keep], ranks.rank[keep]
        precision = (places(query, ranks.queries) + 1) / rank
        # A running maximum from the end that begins anew with each query; over whole numbers it is exact.
        values, ordinal = np.unique(precision, return_inverse=True)
        shift = (ranks.queries - 1 - query) * max(len(values), 1)
        highest = np.maximum.accumulate((shift + ordinal)[::-1])[::-1] - shift
        self.ceiling: Floats = values[highest]
        #: number of relevant documents returned, and the place of the first one, for each query
        self.found: Ints = np.bincount(query, minlength=ranks.queries)
        self.starts: Ints = np.cumsum(self.found) - self.found


def _at(ranks: JudgedRanks, rel: float, recall: float, *, nearest: bool = False) -> Floats:
    """Interpolated precision at one recall level, for each query."""
    rows = ranks.share(("ceilings", rel), lambda: _Ceilings(ranks, rel))
    number = ranks.facts.relevant(rel)
    # trec_eval 9 rounds up, but for a last tenth; trec_eval 10 to the nearest number of documents.
    needed = np.floor(recall * number + (0.5 if nearest else 0.9)).astype(np.int64)
    needed = np.maximum(needed, 1)
    values = np.zeros(ranks.queries)
    reached = rows.found >= needed
    values[reached] = rows.ceiling[(rows.starts + needed - 1)[reached]]
    return values


def iprec(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The highest precision at the rank where the recall level is reached, or at any rank below it."""
    recall = measure.get("recall")
    level = recall if isinstance(recall, float) else 0.0
    return _at(ranks, measure.rel, level, nearest=measure.get("rounding") == "nearest")


def eleven_point(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The mean of interpolated precision at recall 0, 0.1, … 1."""
    nearest = measure.get("rounding") == "nearest"
    levels = [_at(ranks, measure.rel, level, nearest=nearest) for level in _LEVELS]
    mean: Floats = np.sum(levels, axis=0) / len(_LEVELS)
    return mean


_ROUNDING = Parameter(
    "how a recall level becomes a number of documents: up, but for a last tenth (trec_eval 9), or to the nearest "
    "(trec_eval 10)",
    "up",
    words=("up", "nearest"),
)

MEASURES = (
    Definition(
        "iprec",
        "highest precision at any rank where recall has reached the level; 0 where it never does",
        "iprec_at_recall of trec_eval 9",
        iprec,
        cutoff="none",
        rises=True,
        parameters={
            "recall": Parameter("the recall level", number=True, above=0.0, below=1.0, closed=True),
            "rounding": _ROUNDING,
        },
        spellings=("iprec_at_recall",),
        stems=("iprec_at_recall", "iprec"),
        placed="recall",
    ),
    Definition(
        "eleven_point",
        "mean of interpolated precision at the recall levels 0, 0.1, … 1",
        "11pt_avg of trec_eval",
        eleven_point,
        cutoff="none",
        rises=True,
        parameters={"rounding": _ROUNDING},
        spellings=("11pt_avg",),
    ),
)
