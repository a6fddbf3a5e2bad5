"""One ranking of several: reciprocal rank fusion, which reads ranks alone.

Cormack, Clarke & Büttcher, Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods,
SIGIR 2009: a document's score is the sum over the runs of 1 ÷ (k + rank), with k = 60.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Ranking, Run

RRF_K = 60


def fuse(runs: Sequence[Run], *, rrf_k: float = RRF_K, depth: int | None = None, name: str = "fused") -> Run:
    """The runs as one, by reciprocal rank fusion.

    A run that lacks a document adds nothing to it; a repeated document counts at its first rank; equal scores stand
    by document id, descending by bytes, as in any run that is sorted by score. ``rrf_k`` stands below the line beside
    each rank: a larger one makes the first ranks worth less. The order of the runs does not matter.
    Lists are cut at ``depth``, by default the smallest depth that a run declares: below it nobody knows what the
    others would have added. A query for which a retriever failed is one for which the fused one failed. Fewer than two
    runs are a DataError.

    >>> from pytest_retrieval_eval import Run
    >>> fuse([Run.of({"q": ["a", "b"]}), Run.of({"q": ["b", "c"]})]).ranking("q").docs
    ['b', 'a', 'c']
    """
    from pytest_retrieval_eval.collection.runs.run import Run

    runs = list(runs)
    if len(runs) < 2:
        raise DataError(f"fusion takes two runs or more, and was given {len(runs)}")
    if not (isinstance(rrf_k, (int, float)) and not isinstance(rrf_k, bool) and math.isfinite(rrf_k) and rrf_k >= 0):
        raise DataError(
            f"rrf_k={rrf_k!r}: the constant of reciprocal rank fusion is a number of 0 or more; 60 is usual"
        )
    declared = [run.depth for run in runs if run.depth is not None]
    depth = depth if depth is not None else min(declared, default=None)
    if depth is not None and depth < 1:
        raise DataError(f"depth={depth}: a list holds 1 hit or more")
    ids = list(dict.fromkeys(query_id for run in runs for query_id in run.query_ids))
    lists = [run.rankings(ids) for run in runs]
    hits: dict[str, Any] = {query_id: _fused([found[query_id] for found in lists], rrf_k)[:depth] for query_id in ids}
    if not any(hit.doc_id for found in hits.values() for hit in found):
        # By score, so that whoever measures it knows which documents are tied.
        hits = {query_id: {hit.id: hit.score for hit in found} for query_id, found in hits.items()}
    errors = {query_id: text for run in reversed(runs) for query_id, text in run.errors.items()}
    fused = Run.of(hits, name=name, depth=depth, errors=errors)
    # The header says what was fused, for whoever reads the file later.
    return fused.with_header(retriever=name, fused=[run.name or run.source for run in runs], rrf_k=float(rrf_k))


def _fused(rankings: Sequence[Ranking], rrf_k: float) -> list[Hit]:
    """The documents of one query, best first."""
    parts: dict[str, list[float]] = {}
    said: dict[str, tuple[str | None, int | None, int | None]] = {}
    for ranking in rankings:
        seen: set[str] = set()
        for place, doc in enumerate(ranking.docs):
            if doc in seen:
                continue
            seen.add(doc)
            parts.setdefault(doc, []).append(1.0 / (rrf_k + place + 1))
            if ranking.doc_id is not None and said.get(doc, (None,))[0] is None:
                start = ranking.start[place] if ranking.start is not None else None
                end = ranking.end[place] if ranking.end is not None else None
                said[doc] = (ranking.doc_id[place], start, end)
    # math.fsum: the same score whichever run comes first.
    scores = {doc: math.fsum(found) for doc, found in parts.items()}
    order = sorted(scores, key=lambda doc: doc.encode(), reverse=True)
    order.sort(key=lambda doc: -scores[doc])
    return [Hit(doc, scores[doc], *said.get(doc, (None, None, None))) for doc in order]
