"""The binary measures over labels on the unit scale, where a label is a degree of relevance.

One rule: for t drawn evenly from (0, 1) a document is relevant if its label is at least t, and the measure
is the integral of its numerator over the integral of its denominator. Precision becomes the mean label and
hit the largest one, as Salemi & Zamani (Evaluating Retrieval Quality in Retrieval-Augmented Generation,
SIGIR 2024) have them, and average precision the graded one of Robertson, Kanoulas & Yilmaz (SIGIR 2010). On
labels 0 and 1 all of them are the binary measures, and the ideal order scores 1. Symbols: g a label in [0,
1], S the sum of the labels of a query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.measures.ranks import (
    Facts,
    Floats,
    Ints,
    JudgedRanks,
    by_rank,
    places,
    prefix,
    tally,
)

if TYPE_CHECKING:
    from pytest_retrieval_eval.measures.names import Measure

_PAIRS = 1 << 21  # pairs of documents that are looked at at once


class _Labels:
    """The rows whose label is above 0, in rank order."""

    __slots__ = ("label", "query", "rank", "rise", "shared")

    def __init__(self, ranks: JudgedRanks) -> None:
        keep = ranks.grade > 0
        query, rank = ranks.query[keep], ranks.rank[keep]
        label = np.minimum(ranks.grade[keep], 1.0)
        place = places(query, ranks.queries)
        order = by_rank(rank)
        self.query: Ints = query[order]
        self.rank: Ints = rank[order]
        self.label: Floats = label[order]
        #: by how much the label exceeds all before it
        self.rise: Floats = _rises(query, label, place)[order]
        #: Σ min(g_i, g_r) over the rows i of the same query up to this row r
        self.shared: Floats = _shared(label, place)[order]


def _labels(ranks: JudgedRanks) -> _Labels:
    return ranks.share("labels", lambda: _Labels(ranks))


def _rises(query: Ints, label: Floats, place: Ints) -> Floats:
    # A running maximum that begins anew with each query: over whole numbers, so that it is exact.
    values, ordinal = np.unique(np.append(0.0, label), return_inverse=True)
    ordinal = ordinal[1:]
    highest = np.maximum.accumulate(query * len(values) + ordinal) - query * len(values)
    before = np.append(0, highest[:-1])[: len(highest)]
    before = np.where(place == 0, 0, before)
    rises: Floats = np.maximum(label - values[before], 0.0)
    return rises


def _shared(label: Floats, place: Ints) -> Floats:
    sums = np.zeros(len(label))
    ends = np.cumsum(place + 1)
    start = 0
    while start < len(label):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(ends.searchsorted(done + _PAIRS, "right")))
        counts = place[start:stop] + 1
        rows = np.arange(start, stop)
        later = np.repeat(rows, counts)
        first = np.cumsum(counts) - counts
        earlier = np.arange(len(later)) - np.repeat(first, counts) + np.repeat(rows - place[start:stop], counts)
        sums[start:stop] = np.add.reduceat(np.minimum(label[earlier], label[later]), first)
        start = stop
    return sums


def label_sum(ranks: JudgedRanks, cutoff: int | None) -> Floats:
    """The sum of the labels in the top ``cutoff``, for each query."""

    def build() -> Floats:
        rows = _labels(ranks)
        end = prefix(rows.rank, cutoff)
        return tally(rows.query[:end], rows.label[:end], ranks.queries)

    return ranks.share(("label sum", cutoff), build)


def pair_sum(ranks: JudgedRanks, cutoff: int | None) -> Floats:
    """Σ min(g_i, g_j) over all pairs in the top ``cutoff``, for each query."""
    rows = _labels(ranks)
    end = prefix(rows.rank, cutoff)
    return tally(rows.query[:end], 2.0 * rows.shared[:end] - rows.label[:end], ranks.queries)


def _total(facts: Facts) -> Floats:
    """S, for each query; 1 where it is 0, for there the sums above it are 0 and the query does not count."""
    return np.where(facts.positive, facts.total(), 1.0)


def hit(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The largest label in the top k."""
    rows = _labels(ranks)
    end = prefix(rows.rank, measure.cutoff)
    values = np.zeros(ranks.queries)
    np.maximum.at(values, rows.query[:end], rows.label[:end])
    return values


def precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ g of the top k ÷ k."""
    return label_sum(ranks, measure.cutoff) / (measure.cutoff or 1)


def recall(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ g of the top k ÷ S."""
    return label_sum(ranks, measure.cutoff) / _total(ranks.facts)


def f1(ranks: JudgedRanks, measure: Measure) -> Floats:
    """2 Σ g of the top k ÷ (k + S)."""
    return 2.0 * label_sum(ranks, measure.cutoff) / ((measure.cutoff or 1) + ranks.facts.total())


def reciprocal_rank(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks r of the top k: by how much g_r exceeds all labels before it ÷ r."""
    rows = _labels(ranks)
    end = prefix(rows.rank, measure.cutoff)
    return tally(rows.query[:end], rows.rise[:end] / rows.rank[:end], ranks.queries)


def average_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks r of the top k: Σ over i ≤ r of min(g_i, g_r) ÷ r, then ÷ S.

    With denominator=retrieved, ÷ Σ g of the top k.
    """
    rows = _labels(ranks)
    end = prefix(rows.rank, measure.cutoff)
    sums = tally(rows.query[:end], rows.shared[:end] / rows.rank[:end], ranks.queries)
    if measure.get("denominator") == "retrieved":
        found = label_sum(ranks, measure.cutoff)
        return sums / np.where(found > 0, found, 1.0)
    return sums / _total(ranks.facts)


def r_precision(ranks: JudgedRanks, measure: Measure) -> Floats:
    """Σ over the ranks r: min(g_r, r-th largest label of the query) ÷ S."""
    rows = _labels(ranks)
    ideal_query, ideal_rank, ideal_label = ranks.facts.ideal()
    order = np.lexsort((ideal_rank, ideal_query))
    sizes = np.bincount(ideal_query, minlength=ranks.queries)
    starts = np.cumsum(sizes) - sizes
    within = rows.rank <= sizes[rows.query]
    query, rank, label = rows.query[within], rows.rank[within], rows.label[within]
    there = np.minimum(ideal_label[order][starts[query] + rank - 1], 1.0)
    return tally(query, np.minimum(label, there), ranks.queries) / _total(ranks.facts)


def expected(
    ranks: JudgedRanks, measure: Measure, form: Callable[[JudgedRanks, Measure], Floats | None]
) -> Floats | None:
    """The same rule for the mean over all orders of tied documents, from the form for levels.

    The denominator is the same in every order, so that the mean passes through the integral over it: a sum over
    the labels of each query, of the form's numerators with that label as the level.
    """
    levels, heights = _levels(ranks)
    of_returned = measure.get("denominator") == "retrieved"
    if of_returned and (measure.cutoff is not None or ranks.end is not None):
        return None
    over, below, weights = np.zeros(ranks.queries), np.zeros(ranks.queries), np.zeros(ranks.queries)
    for step, height in enumerate(heights, 1):
        level = measure.having(rel=float(step))
        values = form(levels, level)
        if values is None:
            return None
        weight: Floats | Ints = np.ones(ranks.queries)
        if measure.name in _OVER_RELEVANT:
            weight = levels.hits(level.rel, None) if of_returned else levels.facts.relevant(level.rel)
        elif measure.name in _HARMONIC:
            weight = levels.facts.relevant(level.rel) + _slots(ranks, measure)
        over += height * weight * values
        below += height * weight
        weights += height
    if measure.name in _HARMONIC:
        below += (1.0 - weights) * _slots(ranks, measure)
    elif measure.name not in _OVER_RELEVANT:
        return over
    return np.divide(over, below, out=np.zeros(ranks.queries), where=below > 0)


# The denominator holds R, and else nothing that a threshold moves.
_OVER_RELEVANT = frozenset({"recall", "map", "r_precision", "set_recall", "set_map"})
# It holds R and a number of documents.
_HARMONIC = frozenset({"f1", "set_f1"})


def _slots(ranks: JudgedRanks, measure: Measure) -> Ints | int:
    """What the denominator of the harmonic mean has beside R."""
    if measure.name == "f1":
        return measure.cutoff or 1
    return ranks.returned if measure.cutoff is None else np.minimum(ranks.returned, measure.cutoff)


def _levels(ranks: JudgedRanks) -> tuple[JudgedRanks, list[Floats]]:
    """The table with the labels of each query numbered from 1, and for each number how far its label lies above
    the one before (0 where the query has fewer).
    """

    def build() -> tuple[JudgedRanks, list[Floats]]:
        facts, count = ranks.facts, ranks.queries
        label = np.clip(np.concatenate((facts.grades, ranks.grade)), 0.0, 1.0)
        query = np.concatenate((facts.query, ranks.query))
        values, code = np.unique(label, return_inverse=True)
        key = query * len(values) + code
        steps = np.unique(key[label > 0])
        of, height = steps // len(values), values[steps % len(values)]
        number = places(of, count)
        height = height - np.where(number > 0, np.append(0.0, height)[:-1], 0.0)
        numbered = np.searchsorted(steps, key, "right") - np.searchsorted(of, query)
        own = Facts(facts.query, numbered[: len(facts.query)].astype(np.float64), count)
        heights = [
            tally(of[number == step], height[number == step], count) for step in range(int(number.max(initial=-1)) + 1)
        ]
        return ranks.graded(own, numbered[len(facts.query) :].astype(np.float64)), heights

    return ranks.share("numbered labels", build)
