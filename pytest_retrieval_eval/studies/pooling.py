"""The pool of several runs: what it holds, what it saves, and what it costs.

A pool is the union of the lists of several runs down to some depth. Each pair of query and document is judged once,
whichever runs brought it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.studies.agreement import Pair, grades_of, qrels_of
from pytest_retrieval_eval.studies.systems import Rankings, Runs, compare_rankings, measure_systems, named_runs

DEPTH = 20
"""How deep a pool goes unless something else is said."""


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """The pairs of a pool: ``brought`` says which runs brought each, as bits in the order of ``names``."""

    depth: int
    names: tuple[str, ...]
    brought: Mapping[Pair, int] = field(repr=False)

    def unique_to(self, names: Iterable[str]) -> list[Pair]:
        """The pairs that none but these runs brought."""
        chosen = set(names)
        others = sum(1 << place for place, name in enumerate(self.names) if name not in chosen)
        return [pair for pair, by in self.brought.items() if not by & others]


def pooled(runs: Runs, depth: int = DEPTH, *, queries: Iterable[str] | None = None) -> Pooled:
    """The pool of the runs' top ``depth``; of some queries alone, where they are given."""
    if depth < 1:
        raise SettingsError(f"the depth of a pool is {depth}; expected 1 or more")
    systems = named_runs(runs)
    wanted = None if queries is None else set(queries)
    for name, run in systems.items():
        if run.depth is not None and run.depth < depth:
            raise GateError(
                f"the run {name} declares depth {run.depth}, and the pool is {depth} deep: retrieve {depth} hits a "
                f"query, or take a pool of depth {run.depth}"
            )
    brought: dict[Pair, int] = {}
    for place, run in enumerate(systems.values()):
        bit = 1 << place
        asked = [query for query in run.query_ids if wanted is None or query in wanted]
        for query, ranking in run.rankings(asked, depth).items():
            for doc in ranking.docs:
                pair = (query, doc)
                brought[pair] = brought.get(pair, 0) | bit
    if not brought:
        raise GateError("the runs brought no document for any query: there is no pool")
    return Pooled(depth, tuple(systems), brought)


@dataclass(frozen=True, slots=True)
class Reuse:
    """What pooling saves: ``independent`` pairs would be judged if each system were judged by itself.

    >>> paper = Reuse(independent=3_760_000, unique=766_350)
    >>> round(100 * paper.share, 1), round(paper.factor, 1)
    (79.6, 4.9)
    """

    independent: int
    unique: int

    @property
    def share(self) -> float:
        """The share of judgments that need not be made."""
        return 1.0 - self.unique / self.independent

    @property
    def factor(self) -> float:
        """How many times dearer it is to judge each system by itself."""
        return self.independent / self.unique


@dataclass(frozen=True, slots=True)
class Growth:
    """One run as it joins the pool behind those before it.

    Args:
        name: the run.
        pairs: what it brings down to the depth.
        new, reused: pairs that no run before it brought, and those that one did.
        unique: the pool with it.
        independent: what its pairs and those of the runs before it come to, each for itself.
        expected: the pool of so many runs, on average over all orders in which they could have joined.
        alone: pairs that no other run brings at all.
    """

    name: str
    pairs: int
    new: int
    reused: int
    unique: int
    independent: int
    expected: float
    alone: int


def growth(pool: Pooled) -> tuple[Growth, ...]:
    """How the pool grew, run by run in their order."""
    runs = len(pool.names)
    pairs, new, alone = [0] * runs, [0] * runs, [0] * runs
    shared = [0] * (runs + 1)  # pairs by how many runs brought them
    for by in pool.brought.values():
        places = [place for place in range(runs) if by >> place & 1]
        for place in places:
            pairs[place] += 1
        new[places[0]] += 1
        shared[len(places)] += 1
        if len(places) == 1:
            alone[places[0]] += 1
    found = []
    unique = independent = 0
    for place, name in enumerate(pool.names):
        unique += new[place]
        independent += pairs[place]
        joined = place + 1
        # A pair of c runs is missing from m of them in C(runs - c, m) of C(runs, m) choices.
        expected = math.fsum(
            count * (1.0 - math.comb(runs - c, joined) / math.comb(runs, joined)) for c, count in enumerate(shared)
        )
        reused = pairs[place] - new[place]
        found.append(Growth(name, pairs[place], new[place], reused, unique, independent, expected, alone[place]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A pool of some depth: what it takes to judge it, and how near its ranking comes to that of the deepest one."""

    depth: int
    unique: int
    independent: int
    cost: float | None
    independent_cost: float | None
    rankings: Rankings


def cost_curve(
    runs: Runs,
    qrels: Qrels,
    measure: str | Measure,
    depths: Sequence[int] = (1, 3, 5, 10, 20),
    *,
    price: float | None = None,
) -> tuple[CostPoint, ...]:
    """What pools of these depths cost, and what ranking they give, from judgments of the deepest one.

    ``price`` is that of one judgment. A pool of a lower depth has the judgments of its own pairs alone.
    """
    systems = named_runs(runs, least=2)
    chosen = sorted(set(depths))
    if not chosen:
        raise SettingsError("no depth is given; expected at least one, such as 10")
    if price is not None and not (math.isfinite(price) and price >= 0):
        raise SettingsError(f"the price of a judgment is {price}; expected a number of 0 or more")
    grades = grades_of(qrels)
    whole = measure_systems(systems, qrels, measure)
    points = []
    for depth in chosen:
        pool = pooled(systems, depth, queries=qrels.query_ids)
        last = growth(pool)[-1]
        known = {pair: grade for pair, grade in grades.items() if pair in pool.brought}
        if not known:
            raise GateError(f"none of the pairs in the top {depth} is judged: a pool of that depth ranks nothing")
        means = measure_systems(systems, qrels_of(known, qrels), measure, over=whole.query_ids).means
        points.append(
            CostPoint(
                depth=depth,
                unique=last.unique,
                independent=last.independent,
                cost=None if price is None else price * last.unique,
                independent_cost=None if price is None else price * last.independent,
                rankings=compare_rankings(whole.means, means),
            )
        )
    return tuple(points)
