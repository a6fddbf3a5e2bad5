"""Where in a pipeline a relevant document was lost: never found, dropped by a stage, or ranked down by one.

The step after the last one that still has a document is where it was lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.gates.bench import stages_of
from pytest_retrieval_eval.gates.diff import level_of, ranks_in, within
from pytest_retrieval_eval.gates.side import cutoff_of
from pytest_retrieval_eval.measures.steps import Step, label_ranks, steps_of

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.gates.side import Side
    from pytest_retrieval_eval.gates.verdict import Move, QueryDiff

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: what the run under test is called at the end of its stages
LAST = "the end"


@dataclass(frozen=True, slots=True)
class Trail:
    """The steps of a pipeline, each with the ranks of the labels, up to what was measured."""

    steps: tuple[Step, ...]
    cutoff: int | None
    place: Callable[[str, str], int | None]

    def fate(self, row: int) -> tuple[str, str]:
        """What became of one label that is not where it should be: in a word for counting, and with its ranks."""
        ranks = [int(step.ranks[row]) for step in self.steps]
        held = [place for place, rank in enumerate(ranks) if rank]
        if not held:
            return f"never found ({self.steps[0].name})", f"never found: not in the list of {self.steps[0].name}"
        last = held[-1]
        if last + 1 < len(self.steps):
            by = self.steps[last + 1].name
            return f"lost at {by}", f"lost at {by}: rank {ranks[last]} after {self.steps[last].name}"
        down = [place for place in range(1, len(ranks)) if ranks[place - 1] and ranks[place] > ranks[place - 1]]
        if not down:
            return f"never ranked higher than by {self.steps[0].name}", self._all(ranks)
        # Where it crossed the cut-off for the last time, else where it fell furthest in proportion.
        out = [place for place in down if self.cutoff and ranks[place - 1] <= self.cutoff < ranks[place]]
        worst = out[-1] if out else max(down, key=lambda place: ranks[place] / ranks[place - 1])
        by = self.steps[worst].name
        return f"ranked down by {by}", f"ranked down by {by}: rank {ranks[worst - 1]} → {ranks[worst]}"

    def _all(self, ranks: Sequence[int]) -> str:
        told = [f"{step.name} {rank or '–'}" for step, rank in zip(self.steps, ranks, strict=True)]
        return f"ranks by stage: {', '.join(told)}"

    def told(self, queries: Sequence[QueryDiff]) -> tuple[QueryDiff, ...]:
        """The same queries; each document that fell or is missing with what became of it."""
        return tuple(replace(query, moves=tuple(self._told(query, move) for move in query.moves)) for query in queries)

    def _told(self, query: QueryDiff, move: Move) -> Move:
        fell = move.before is None or move.after is None or move.after > move.before
        row = self.place(query.query_id, move.doc_id) if fell else None
        return move if row is None else replace(move, fate=self.fate(row)[1])

    def counts(self, rows: Sequence[int]) -> str:
        """How many of these labels were lost where; empty where there are none."""
        if not len(rows):
            return ""
        times = Counter(self.fate(row)[0] for row in rows)
        order = {word: place for place, word in enumerate(self._words())}
        parts = [f"{n:,} {word}" for word, n in sorted(times.items(), key=lambda item: order.get(item[0], len(order)))]
        many = len(rows) != 1
        what = f"{len(rows):,} relevant {'documents that are' if many else 'document that is'}"
        top = f"not in the top {self.cutoff}" if self.cutoff is not None else "not where it should be"
        return f"by stage, of the {what} {top}: {', '.join(parts)}"

    def _words(self) -> list[str]:
        first = self.steps[0].name
        names = [step.name for step in self.steps[1:]]
        down = [f"ranked down by {name}" for name in names]
        return [f"never found ({first})", *(f"lost at {name}" for name in names), *down]


def stages_before(side: Side, bench: Bench, options: Options) -> list[tuple[str, Run]]:
    """The stages in front of what was measured, with their runs, opened; none where the bench knows none.

    Without ``stage=`` the last one may be the run under test itself.
    """
    stages = stages_of(bench)
    names = list(stages)
    if options.stage is not None:
        names = names[: names.index(options.stage)] if options.stage in names else []
    chunks = side.dataset.chunks if side.unit == "document" else None
    return [(name, stages[name].by_document(chunks) if side.unit == "document" else stages[name]) for name in names]


def trail_of(side: Side, before: Sequence[tuple[str, Run]], options: Options) -> Trail | None:
    """The trail of the labels through these stages; None where there is nothing to follow."""
    found = [(name, label_ranks(run, side.qrels)) for name, run in before]
    own, last = ranks_in(side), options.stage or LAST
    if options.stage is None and found and np.array_equal(found[-1][1], own):
        last = found.pop()[0]  # the last stage is the run under test
    if not found:
        return None
    return Trail(tuple(steps_of([*found, (last, own)])), cutoff_of(side.measure), _places(side))


def _places(side: Side) -> Callable[[str, str], int | None]:
    qrels = side.qrels
    rows = {query_id: place for place, query_id in enumerate(qrels.query_ids)}
    known: dict[str, dict[str, int]] = {}

    def place(query_id: str, doc_id: str) -> int | None:
        if query_id not in known:
            number = rows.get(query_id, -1)
            low, high = np.searchsorted(qrels.query, [number, number + 1]).tolist()
            known[query_id] = {qrels.docs[row]: row for row in range(low, high)}
        return known[query_id].get(doc_id)

    return place


def lost_rows(side: Side, reference: Side | None, chosen: Bools) -> list[int]:
    """The relevant documents of the chosen counted queries that the measure misses: that left, or are not there."""
    qrels, cutoff = side.qrels, cutoff_of(side.measure)
    place = {query_id: row for row, query_id in enumerate(qrels.query_ids)}
    wanted = np.zeros(len(qrels.query_ids), bool)
    wanted[[place[query] for query, one in zip(side.scores.query_ids, chosen.tolist(), strict=True) if one]] = True
    gold = wanted[qrels.query] & (qrels.grades >= level_of(side))
    after = ranks_in(side)
    out = ~within(after, cutoff)
    if reference is not None:
        before = ranks_in(reference)
        out = within(before, cutoff) & (out | (cutoff is None) & (after > before))
    elif cutoff is None:
        out = after != 1
    return [int(row) for row in np.flatnonzero(gold & out)]
