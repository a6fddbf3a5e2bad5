"""What ``Run.locate`` must give, written so that it is seen to be right: dictionaries and ``sorted``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.located import Located

Lists = Mapping[str, Sequence[tuple[str, float]]]


def slow_rows(
    lists: Lists, qrels: Qrels, *, by_list: bool = False, float32: bool = False
) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(query, document) → (rank, first rank of its tie group, last rank of its tie group)."""
    rows = {}
    for query in qrels.query_ids:
        hits = [(doc, score) for doc, score in lists.get(query, [])]
        if float32:
            with np.errstate(over="ignore"):
                hits = [(doc, float(np.float32(score))) for doc, score in hits]
        if float32 or not by_list:
            hits.sort(key=lambda hit: (hit[1], hit[0].encode()), reverse=True)
        tied: dict[float, list[int]] = {}
        for rank, (_, score) in enumerate(hits, 1):
            tied.setdefault(score, []).append(rank)
        for rank, (doc, score) in enumerate(hits, 1):
            if qrels.grade(query, doc) is None or (query, doc) in rows:
                continue
            group = [rank] if by_list and not float32 else tied[score]
            rows[query, doc] = (rank, min(group), max(group))
    return rows


def slow_ties(lists: Lists, qrels: Qrels, *, by_list: bool = False, float32: bool = False) -> list[int]:
    """How many documents of each query's list tie with another one."""
    counts = []
    for query in qrels.query_ids:
        with np.errstate(over="ignore"):
            scores = [float(np.float32(s)) if float32 else s for _, s in lists.get(query, [])]
        tied = sum(count for count in Counter(scores).values() if count > 1)
        counts.append(0 if by_list and not float32 else tied)
    return counts


def rows_of(located: Located, qrels: Qrels) -> dict[tuple[str, str], tuple[int, int, int]]:
    """``Located`` in the form of ``slow_rows``."""
    columns = (located.row, located.rank, located.tie_first, located.tie_last)
    return {
        (qrels.query_ids[qrels.query[row]], qrels.docs[row]): (rank, first, last)
        for row, rank, first, last in zip(*(column.tolist() for column in columns), strict=True)
    }


def check(located: Located, lists: Lists, qrels: Qrels, *, by_list: bool = False, float32: bool = False) -> None:
    """Assert that everything in ``located`` is as it must be."""
    mode = {"by_list": by_list, "float32": float32}
    assert rows_of(located, qrels) == slow_rows(lists, qrels, **mode)
    assert located.row.tolist() == sorted(set(located.row.tolist()))
    assert located.ties.tolist() == slow_ties(lists, qrels, **mode)
    assert located.returned.tolist() == [len(lists.get(query, [])) for query in qrels.query_ids]
    assert located.in_run.tolist() == [query in lists for query in qrels.query_ids]
    assert sorted(located.unknown) == sorted(set(lists) - set(qrels.query_ids))
