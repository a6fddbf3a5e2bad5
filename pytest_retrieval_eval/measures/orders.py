"""Every order of tied documents as a list of its own: what no closed form says, where the orders are few.

Documents of a tie that are unjudged, or of one grade, are alike to a measure, so that an order is which ranks
of each tie hold which grades. All of them are equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from pytest_retrieval_eval.measures.ranks import Facts, Floats, Ints, JudgedRanks, heads

# More orders of one query, or rows of all of them together, are not tried.
ORDERS, ROWS = 10_000, 250_000


class Orders:
    """A table in which each order of a query stands as a query; those of one query follow one another."""

    def __init__(self, ranks: JudgedRanks, chosen: dict[int, list[tuple[int, ...]]]) -> None:
        """``chosen`` has, for each query with ties, the ranks of its rows in each order."""
        queries = ranks.queries
        counts = np.ones(queries, np.int64)
        for one, found in chosen.items():
            counts[one] = len(found)
        #: where the orders of each query begin, and how many there are
        self.starts: Ints = np.cumsum(counts) - counts
        self.counts: Ints = counts
        query, source = _repeated(ranks.query, counts, self.starts)
        rank = ranks.rank[source]
        begins = np.searchsorted(query, self.starts)
        for one, found in chosen.items():
            first = int(begins[one])
            rank[first : first + len(found) * len(found[0])] = np.array(found).reshape(-1)
        facts = ranks.facts
        judged, row = _repeated(facts.query, counts, self.starts)
        self.table = JudgedRanks(
            Facts(judged, facts.grades[row], int(counts.sum())),
            query,
            rank,
            ranks.grade[source],
            rank,
            rank,
            returned=np.repeat(ranks.returned, counts),
            in_run=np.repeat(ranks.in_run, counts),
            ties=np.zeros(int(counts.sum()), np.int64),
            unknown=ranks.unknown,
            scale=ranks.scale,
            trec=ranks.trec,
        )

    def means(self, values: Floats) -> Floats:
        """The mean over the orders of each query."""
        sums: Floats = np.add.reduceat(values, self.starts) / self.counts
        return sums

    def ends(self, values: Floats) -> tuple[Floats, Floats]:
        """The least and the largest one."""
        return np.minimum.reduceat(values, self.starts), np.maximum.reduceat(values, self.starts)


def orders_of(ranks: JudgedRanks) -> Orders | None:
    """All orders of all queries; None where there are too many."""
    return ranks.share("orders", lambda: _orders_of(ranks))


def _orders_of(ranks: JudgedRanks) -> Orders | None:
    tied = np.unique(ranks.query[ranks.tie_last > ranks.tie_first])
    low, high = np.searchsorted(ranks.query, tied), np.searchsorted(ranks.query, tied, "right")
    sizes = []
    for begin, end in zip(low.tolist(), high.tolist(), strict=True):
        count = math.prod(_number(*group) for group in _groups(ranks, begin, end))
        sizes.append(count * (end - begin))
        if count > ORDERS or sum(sizes) > ROWS:
            return None
    chosen = {}
    for query, begin, end in zip(tied.tolist(), low.tolist(), high.tolist(), strict=True):
        parts = [list(_placed(*group)) for group in _groups(ranks, begin, end)]
        chosen[query] = [tuple(rank for part in order for rank in part) for order in product(*parts)]
    return Orders(ranks, chosen)


def _groups(ranks: JudgedRanks, begin: int, end: int) -> Iterator[tuple[list[float], int, int]]:
    """The grades of each tied group among these rows of one query, in their order, and its first and last rank."""
    first = ranks.tie_first[begin:end]
    starts = np.flatnonzero(heads(ranks.query[begin:end], first)).tolist()
    for a, z in zip(starts, [*starts[1:], end - begin], strict=True):
        yield ranks.grade[begin + a : begin + z].tolist(), int(first[a]), int(ranks.tie_last[begin + a])


def _number(grades: list[float], first: int, last: int) -> int:
    """How many orders a group has."""
    free, count = last - first + 1, 1
    for grade in set(grades):
        count *= math.comb(free, grades.count(grade))
        free -= grades.count(grade)
    return count


def _placed(grades: list[float], first: int, last: int) -> Iterator[tuple[int, ...]]:
    """The ranks of the rows of a group, in each of its orders."""
    kinds = sorted(set(grades))

    def fill(free: tuple[int, ...], rest: list[float]) -> Iterator[dict[float, tuple[int, ...]]]:
        if not rest:
            yield {}
            return
        for ranks in combinations(free, grades.count(rest[0])):
            left = tuple(rank for rank in free if rank not in ranks)
            for more in fill(left, rest[1:]):
                yield {rest[0]: ranks, **more}

    for found in fill(tuple(range(first, last + 1)), kinds):
        rows = {grade: iter(ranks) for grade, ranks in found.items()}
        yield tuple(next(rows[grade]) for grade in grades)


def _repeated(query: Ints, counts: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Rows sorted by query, those of each query as often as it has orders: their query anew, and which they were."""
    sizes = np.bincount(query, minlength=len(counts))
    begins = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(counts)), counts)
    lengths = sizes[owner]
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(np.arange(len(owner)), lengths), np.repeat(begins[owner], lengths) + place
