"""What leaked, or was withheld, in the queries of a failed gate: document, rank, who asked, who may read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_retrieval_eval.gates.verdict import Move
from pytest_retrieval_eval.measures.access import access_of
from pytest_retrieval_eval.wording import counted, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.side import Side
    from pytest_retrieval_eval.measures.access import Leak

# How many documents are named at most.
_DOCUMENTS = 3


def access_moves(side: Side, ids: Sequence[str]) -> list[list[Move]]:
    """For each query, the documents that the measure counts."""
    found = access_of(side.evaluation.ranks, side.measure).findings(side.measure).by_query
    leaks, stage = side.measure.name == "leaks", side.measure.get("from")
    result = []
    for query_id in ids:
        grades = side.qrels.of_query(query_id) if query_id in side.qrels.query_ids else {}
        result.append(
            [
                Move(leak.doc_id, grades.get(leak.doc_id), None, leak.rank, said=_leaked(leak))
                if leaks
                else Move(leak.doc_id, grades.get(leak.doc_id), None, None, said=_withheld(leak, str(stage)))
                for leak in found.get(query_id, ())
            ]
        )
    return result


def access_causes(side: Side, queries: Sequence[str]) -> list[str]:
    """The documents that are concerned in several of these queries, and who asked."""
    found = access_of(side.evaluation.ranks, side.measure).findings(side.measure).by_query
    leaks = [leak for query_id in queries for leak in found.get(query_id, ())]
    what = "was returned to" if side.measure.name == "leaks" else "was withheld from"
    times = Counter(leak.doc_id for leak in leaks)
    askers = Counter(_who(leak.asker) for leak in leaks)
    told = [
        f"{shown(doc, 40)} {what} {counted(n, 'query', 'queries')}" for doc, n in times.most_common(_DOCUMENTS) if n > 1
    ]
    parts = [f"{counted(n, 'document')} for {shown(who, 60)}" for who, n in askers.most_common(_DOCUMENTS)]
    return [*told, f"by who asked: {', '.join(parts)}"] if len(askers) > 1 else told


def _leaked(leak: Leak) -> str:
    readers = f"only for {_who(leak.readers)}" if leak.readers else "for nobody"
    return f"asked by {_who(leak.asker)}; {readers}"


def _withheld(leak: Leak, stage: str) -> str:
    return f"rank {leak.rank} after {stage}; asked by {_who(leak.asker)}, who may read it ({_who(leak.readers)})"


def _who(roles: Sequence[str]) -> str:
    """Roles in words.

    >>> _who(["hr", "board"]), _who([]), _who(["*"])
    ('hr, board', 'no role', 'everybody')
    """
    if not roles:
        return "no role"
    return "everybody" if "*" in roles else ", ".join(roles)
