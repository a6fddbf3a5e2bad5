"""Which of several configurations nobody would give up for another: the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pytest_retrieval_eval.stats.tolerance import TOLERANCE


def front(values: Mapping[str, Sequence[float]], lower: Sequence[bool]) -> tuple[str, ...]:
    """The names that no other dominates: none is as good in everything and better in something.

    ``lower`` says of each column whether less is better. Equals stand on the front together.

    >>> front({"bm25": [0.40, 8.0], "dense": [0.45, 20.0], "slow": [0.44, 30.0]}, [False, True])
    ('bm25', 'dense')
    """
    names = list(values)
    table = np.array([values[name] for name in names], np.float64)
    if table.size == 0:
        return ()
    table = np.where(np.asarray(lower, bool), -table, table)
    kept = []
    for name, row in zip(names, table, strict=True):
        as_good = (table >= row - TOLERANCE).all(axis=1)
        better = (table > row + TOLERANCE).any(axis=1)
        if not (as_good & better).any():
            kept.append(name)
    return tuple(kept)
