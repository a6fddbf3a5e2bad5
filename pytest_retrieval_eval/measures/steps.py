"""The steps of a pipeline: which of its stages stand beside each other, and which follow.

Stages that bring documents which none before had are retrievers; what follows them only passes documents on.
Retrievers in a row are one step: what one of them found is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.measures.ranks import Ints

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run


@dataclass(frozen=True, slots=True)
class Step:
    """One stage, or several retrievers beside each other; ``ranks`` is the best rank of each label, 0 where none."""

    names: tuple[str, ...]
    ranks: Ints

    @property
    def name(self) -> str:
        """The stages in words."""
        return " or ".join(self.names)


def label_ranks(run: Run, qrels: Qrels) -> Ints:
    """The rank of every row of the labels in the run, 0 where it is not in the list."""
    located = run.locate(qrels)
    ranks = np.zeros(len(qrels), np.int64)
    ranks[located.row] = located.rank
    return ranks


def steps_of(found: Sequence[tuple[str, Ints]]) -> list[Step]:
    """The steps of stages with the ranks of their labels, in pipeline order; the last one stands alone.

    >>> ranks = {"bm25": [1, 0, 0], "dense": [0, 3, 0], "fused": [1, 2, 0]}
    >>> [step.names for step in steps_of([(name, np.array(each)) for name, each in ranks.items()])]
    [('bm25', 'dense'), ('fused',)]
    """
    steps: list[Step] = []
    seen = np.zeros(len(found[0][1]) if found else 0, bool)
    retrievers = False
    for place, (name, ranks) in enumerate(found):
        brings = place == 0 or bool(((ranks > 0) & ~seen).any())
        # What is looked at is never beside others: it is what they lead to.
        if brings and retrievers and place + 1 < len(found):
            before = steps.pop()
            both = np.where((before.ranks > 0) & ((ranks == 0) | (before.ranks < ranks)), before.ranks, ranks)
            steps.append(Step((*before.names, name), both))
        else:
            steps.append(Step((name,), ranks))
        retrievers = brings and (retrievers or place == 0)
        seen |= ranks > 0
    return steps
