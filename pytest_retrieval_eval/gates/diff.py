"""Which queries changed between two runs, and which documents moved: the part of a verdict that people act
on.

What moved comes from the ranks of the judged documents, which both sides know already. What took their place
is not judged, so that it needs the rankings themselves: those are looked up for the worst queries only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.gates.side import Side, cutoff_of
from pytest_retrieval_eval.gates.verdict import Move, QueryDiff, builtin
from pytest_retrieval_eval.measures.nested import reads_degrees
from pytest_retrieval_eval.measures.registry import definition
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import both_ends, counted

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Ranking

# How many pairs to judge a verdict names; it counts all of them.
TOLD = 20
# How many of the worst queries are looked up in both runs and in the corpus.
LOOKED_UP = 50
# Runs up to this many documents are looked up also where the gate holds and nothing will be printed.
SMALL = 20_000
# A query with a thousand relevant documents is not told by all of them.
_MOST_MOVES = 20
# Where a measure reads the whole list, its top is what people look at.
_TOP = 10

# These look at which documents are in the top k, not at their order in it.
_SETS = frozenset({"hit", "precision", "recall", "f1", "judged"})

Ranks = NDArray[np.int64]


def changed_queries(candidate: Side, reference: Side, sign: int) -> tuple[QueryDiff, ...]:
    """Every query whose value differs by more than 1e-9, worst first (``sign`` −1: the largest rise first).

    Intruders and titles are not looked up yet; see :func:`with_details`.
    """
    scores, before = candidate.scores, reference.scores.values
    delta = sign * (scores.values - before)
    rows = np.flatnonzero(np.abs(delta) > TOLERANCE)
    rows = rows[np.argsort(delta[rows], kind="stable")]
    ids = [scores.query_ids[row] for row in rows.tolist()]
    moves = _moves(candidate, reference, ids) if candidate.by_judgment else _other_moves(candidate, ids)
    empty = _empty(candidate)
    return tuple(
        QueryDiff(
            query_id=query_id,
            before=float(before[row]),
            after=float(scores.values[row]),
            text=_text(candidate.dataset, query_id),
            tags=_tags(candidate.dataset, query_id),
            moves=tuple(found[:_MOST_MOVES]),
            note=_note(empty.get(query_id), len(found) - _MOST_MOVES),
            looked_up=not any(_fell(move) for move in found) and not candidate.by_span,
        )
        for query_id, row, found in zip(ids, rows.tolist(), moves, strict=True)
    )


def missing_queries(candidate: Side, target: float, sign: int) -> tuple[QueryDiff, ...]:
    """The queries that lie on the wrong side of a fixed target, the farthest first.

    Their moves are the relevant documents that are not where they would count most, with the rank they have;
    a target that is an upper limit has none.
    """
    scores = candidate.scores
    gap = sign * (scores.values - target)
    rows = np.flatnonzero(gap < -TOLERANCE)
    rows = rows[np.argsort(gap[rows], kind="stable")]
    ids = [scores.query_ids[row] for row in rows.tolist()]
    wanted = sign > 0 and candidate.by_judgment
    moves = _moves(candidate, None, ids) if wanted else _other_moves(candidate, ids)
    empty = _empty(candidate)
    return tuple(
        QueryDiff(
            query_id=query_id,
            after=float(scores.values[row]),
            text=_text(candidate.dataset, query_id),
            tags=_tags(candidate.dataset, query_id),
            moves=tuple(found[:_MOST_MOVES]),
            note=_note(empty.get(query_id), len(found) - _MOST_MOVES),
            looked_up=sign < 0 or not (candidate.by_judgment or candidate.by_span),
        )
        for query_id, row, found in zip(ids, rows.tolist(), moves, strict=True)
    )


def is_small(*sides: Side | None) -> bool:
    """Whether the rankings of these runs are so few that looking them up costs nothing to speak of."""
    return sum(int(side.evaluation.ranks.returned.sum()) for side in sides if side is not None) <= SMALL


def with_details(
    diffs: tuple[QueryDiff, ...], candidate: Side, reference: Side | None, *, titles: bool
) -> tuple[QueryDiff, ...]:
    """The same queries; the worst ``LOOKED_UP`` that need it with what took the places, and with titles.

    Of measures of gold spans: with what either side holds of them.
    """
    wanted = [diff for diff in diffs if not diff.looked_up][:LOOKED_UP]
    if candidate.by_span:
        from pytest_retrieval_eval.gates.spandiff import with_spans

        told = {diff.query_id: diff for diff in with_spans(wanted, candidate, reference)}
        return tuple(told.get(diff.query_id, diff) for diff in diffs)
    ids = [diff.query_id for diff in wanted]
    top = cutoff_of(candidate.measure) or _TOP
    after = candidate.run.rankings(ids, depth=top) if ids else {}
    before = reference.run.rankings(ids) if ids and reference is not None else {}
    detailed: dict[str, QueryDiff] = {}
    for diff in wanted:
        grades = candidate.qrels.of_query(diff.query_id)
        new = _docs(after.get(diff.query_id))[:top]
        if reference is None:
            intruders = _instead(new, grades, level_of(candidate))
        else:
            intruders = _intruders(
                diff.moves, new, _docs(before.get(diff.query_id)), grades, cutoff_of(candidate.measure)
            )
        detailed[diff.query_id] = replace(diff, intruders=intruders, looked_up=True)
    shown_first = diffs[:LOOKED_UP]
    result = [_said(detailed.get(diff.query_id, diff), candidate) for diff in shown_first]
    if titles:
        result = _titled(result, candidate.dataset)
    return (*result, *(detailed.get(diff.query_id, diff) for diff in diffs[LOOKED_UP:]))


def pairs_to_judge(candidate: Side, worst_first: Iterable[str], k: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """The first ``TOLD`` (query, document) pairs of ``ranked_holes``, and how many there are.

    A verdict needs no more, and the lists are long: only where the pairs are wanted as a file all of them are made.
    """
    holes = _holes(candidate, worst_first, k)
    # The place of a repeated document holds no judged one, and is no pair.
    repeats = candidate.run.repeats if candidate.evaluation.counts.duplicates else {}
    unsure = [query for query in holes if query in repeats]
    sure = {query: count for query, count in holes.items() if query not in repeats}
    total = sum(sure.values()) + len(_pairs_of(candidate, unsure, k))
    looked_at, enough = [], 0
    for query in holes:
        if enough >= TOLD:
            break
        looked_at.append(query)
        enough += sure.get(query, 0)
    first = _pairs_of(candidate, looked_at, k)[:TOLD]
    return tuple((query, doc) for query, doc, _ in first), total


def ranked_holes(candidate: Side, worst_first: Iterable[str], k: int) -> list[tuple[str, str, int]]:
    """Query, document and rank without a judgment in the candidate's top k, for the counted queries.

    Those of ``worst_first`` come first, in that order; the others follow in the order of the labels.
    """
    return _pairs_of(candidate, list(_holes(candidate, worst_first, k)), k)


def _holes(candidate: Side, worst_first: Iterable[str], k: int) -> dict[str, int]:
    """How many places of the top k hold no judged document, for the counted queries that have such, in order."""
    ranks = candidate.evaluation.ranks
    holes = np.minimum(ranks.returned, k) - ranks.hits(-np.inf, k)
    found = dict(zip(candidate.qrels.query_ids, holes.tolist(), strict=True))
    ids = dict.fromkeys((*worst_first, *candidate.scores.query_ids))
    counted_ids = set(candidate.scores.query_ids)
    return {query: found[query] for query in ids if query in counted_ids and found.get(query, 0) > 0}


def _pairs_of(candidate: Side, ids: Sequence[str], k: int) -> list[tuple[str, str, int]]:
    """Query, document and rank without a judgment in the top k of these queries."""
    qrels = candidate.qrels
    found = candidate.run.rankings(ids, depth=k) if ids else {}
    pairs: list[tuple[str, str, int]] = []
    for query in ids:
        judged = qrels.of_query(query)
        ranks_of: dict[str, int] = {}
        for rank, doc in enumerate(_docs(found.get(query))[:k], 1):
            ranks_of.setdefault(doc, rank)
        pairs += [(query, doc, rank) for doc, rank in ranks_of.items() if doc not in judged]
    return pairs


def _docs(ranking: Ranking | None) -> list[str]:
    return list(ranking.docs) if ranking is not None else []


def _fell(move: Move) -> bool:
    return move.before is not None and (move.after is None or move.after > move.before)


def level_of(side: Side) -> float:
    """The lowest grade that the measure takes for relevant; judged@k takes any judgment."""
    inner = side.measure.innermost
    if inner.name in ("judged", "unjudged"):
        return -np.inf
    # What is graded, or reads degrees, gains from the smallest positive grade on.
    levelled = definition(inner.name).binary and not reads_degrees(side.evaluation.ranks, inner)
    return inner.rel if levelled else float(np.nextafter(0.0, 1.0))


def ranks_in(side: Side) -> Ranks:
    """The rank of every row of the labels in the run, 0 where it is not in the list."""
    located = side.run.locate(side.qrels)
    ranks = np.zeros(len(side.qrels), np.int64)
    ranks[located.row] = located.rank
    return ranks


def _moves(candidate: Side, reference: Side | None, ids: Sequence[str]) -> list[list[Move]]:
    """For each query, the relevant documents whose rank changed in a way that can matter to the measure."""
    if not ids:
        return []
    qrels, cutoff = candidate.qrels, cutoff_of(candidate.measure)
    by_set = candidate.measure.name in _SETS
    after = ranks_in(candidate)
    mask = qrels.grades >= level_of(candidate)
    if reference is None:
        before = np.zeros_like(after)
        mask &= ~within(after, cutoff) if by_set else after != 1
    else:
        before = ranks_in(reference)
        was, is_now = within(before, cutoff), within(after, cutoff)
        mask &= was != is_now if by_set else (before != after) & (was | is_now)
    place = {query_id: place for place, query_id in enumerate(qrels.query_ids)}
    wanted = np.full(len(qrels.query_ids), -1, np.int64)
    wanted[[place[query_id] for query_id in ids]] = np.arange(len(ids))
    mask &= wanted[qrels.query] >= 0
    result: list[list[Move]] = [[] for _ in ids]
    rows = np.flatnonzero(mask)
    columns = (wanted[qrels.query[rows]], qrels.grades[rows], before[rows], after[rows])
    for doc_id, query, grade, old, new in zip(
        qrels.docs.strings(rows), *(column.tolist() for column in columns), strict=True
    ):
        result[query].append(Move(doc_id, grade, old or None, new or None))
    for moves in result:
        moves.sort(key=lambda move: _weight(move, cutoff))
    return result


def _other_moves(side: Side, ids: Sequence[str]) -> list[list[Move]]:
    """The documents that a measure of access counts; those of others are told by their own evidence, or are none."""
    if not side.by_access:
        return [[] for _ in ids]
    from pytest_retrieval_eval.gates.accessdiff import access_moves

    return access_moves(side, ids)


def within(ranks: Ranks, cutoff: int | None) -> NDArray[np.bool_]:
    """Which ranks lie in the part of the list that the measure looks at; 0 is not in the list."""
    inside = ranks > 0
    return inside if cutoff is None else inside & (ranks <= cutoff)


def _weight(move: Move, cutoff: int | None) -> tuple[bool, bool, float, float]:
    """Fallen before risen, those that crossed the cut-off first, then by grade and by how far it matters."""
    limit = cutoff or np.inf
    inside = (move.before or np.inf) <= limit, (move.after or np.inf) <= limit
    step = abs((1 / move.before if move.before else 0.0) - (1 / move.after if move.after else 0.0))
    return not _fell(move), inside[0] == inside[1], -(move.grade or 0.0), -step


def _intruders(
    moves: Sequence[Move],
    new: Sequence[str],
    old: Sequence[str],
    grades: Mapping[str, float],
    cutoff: int | None,
) -> tuple[Move, ...]:
    """What took the place of fallen documents: the documents that are new in the top k, or, where only the
    order changed, those that overtook a fallen one. Relevant ones that rose are told as moves already.
    """
    fallen = [move for move in moves if _fell(move)]
    told = {move.doc_id for move in moves}
    was: dict[str, int] = {}
    for rank, doc in enumerate(old, 1):
        was.setdefault(doc, rank)
    now: dict[str, Move] = {}
    for rank, doc in enumerate(new, 1):
        if doc not in now and doc not in told:
            now[doc] = Move(doc, grades.get(doc), was.get(doc), rank)
    if not fallen:
        return ()
    entered = [move for move in now.values() if move.before is None or move.before > (cutoff or np.inf)]
    if entered:
        return tuple(entered)
    return tuple(move for move in now.values() if any(_overtook(move, other) for other in fallen))


def _overtook(move: Move, other: Move) -> bool:
    behind = (move.before or np.inf) > (other.before or 0)
    return behind and (move.after or np.inf) < (other.after or np.inf)


def _instead(new: Sequence[str], grades: Mapping[str, float], level: float) -> tuple[Move, ...]:
    """What fills the top where a relevant document could stand."""
    found: dict[str, Move] = {}
    for rank, doc in enumerate(new, 1):
        grade = grades.get(doc)
        if doc not in found and (grade is None or grade < level):
            found[doc] = Move(doc, grade, None, rank)
    return tuple(found.values())


def _said(diff: QueryDiff, candidate: Side) -> QueryDiff:
    """The same query, with what the source of the labels says of each document that is told."""
    said = candidate.labels.said
    if said is None:
        return diff
    moves, intruders = (
        tuple([replace(move, said=said(diff.query_id, move.doc_id)) for move in each])
        for each in (diff.moves, diff.intruders)
    )
    return replace(diff, moves=moves, intruders=intruders)


def _titled(diffs: list[QueryDiff], dataset: Dataset) -> list[QueryDiff]:
    corpus = dataset.corpus
    if corpus is None:
        return diffs
    ids = {move.doc_id for diff in diffs for move in (*diff.moves, *diff.intruders)}
    documents = corpus.get_many(sorted(ids))
    titles = {doc_id: document.title for doc_id, document in documents.items() if document is not None}

    def titled(moves: tuple[Move, ...]) -> tuple[Move, ...]:
        return tuple(replace(move, title=titles.get(move.doc_id) or None) for move in moves)

    return [replace(diff, moves=titled(diff.moves), intruders=titled(diff.intruders)) for diff in diffs]


def _text(dataset: Dataset, query_id: str) -> str | None:
    if query_id not in dataset.queries:
        return None
    try:
        return dataset.queries.text(query_id)
    except DataError:  # a collection of which only the ids are known
        return None


def _tags(dataset: Dataset, query_id: str) -> dict[str, object]:
    if query_id not in dataset.queries:
        return {}
    return {str(tag): builtin(value) for tag, value in dataset.queries.tags(query_id).items()}


def _empty(side: Side) -> dict[str, str]:
    """Why a query has no list at all."""
    empty = dict.fromkeys(side.evaluation.counts.returned_nothing, "nothing was returned")
    empty |= {query: f"the retriever failed: {both_ends(text, 200)}" for query, text in side.failed.items()}
    return empty


def _note(why_empty: str | None, untold: int) -> str | None:
    more = f"{counted(untold, 'more relevant document')} moved" if untold > 0 else None
    return "; ".join(part for part in (why_empty, more) if part) or None
