"""Gold spans to be measured: each still holds its passage, or was moved with it; else nothing is measured.

A span whose text no longer stands at its offsets would be a miss that no retriever can mend, so that it is never
counted: where its passage has one place in the source of today it is measured there, else there is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.dataset import not_among
from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.spans.anchors import Anchors
    from pytest_retrieval_eval.collection.spans.spans import Spans

_LISTED = 10


def current_spans(dataset: Dataset, allow_stale: int = 0) -> tuple[Spans | None, tuple[str, ...]]:
    """The gold spans where their passages stand today, and what is to be said about them.

    Raises a GateError that lists the spans whose passage is lost or has several places, where they are more than
    ``allow_stale``; as many are left out, of both sides of a comparison.
    """
    anchors, spans = dataset.anchors, dataset.spans
    ids = () if spans is None else spans.query_ids
    unasked = not_among(dataset.queries, ids, "query with gold spans is", "queries with gold spans are")
    if anchors is None:
        return spans, tuple(unasked)
    stale = anchors.stale
    if len(stale) > allow_stale:
        raise GateError(_refusal(anchors, dataset, allow_stale))
    if len(stale) == len(anchors.rows):
        raise GateError(f"every gold span of {_name(dataset)} is stale: nothing is left to measure")
    return anchors.current, (*unasked, *_notes(anchors))


def _refusal(anchors: Anchors, dataset: Dataset, allowed: int) -> str:
    stale = anchors.stale
    tolerated = f", {allowed} tolerated" if allowed else ""
    return (
        f"{_counted(len(stale))} of {len(anchors.rows)} of {_name(dataset)} "
        f"{'is' if len(stale) == 1 else 'are'} stale{tolerated}: the source was edited, and nothing says where "
        f"{'its passage stands' if len(stale) == 1 else 'their passages stand'} now. {_list(anchors)}. Mend them in "
        f"{anchors.spans.source} (pytest-retrieval-eval spans reanchor DATASET --old-corpus OLD looks at the edits), "
        "or leave n of them out with allow_stale=n"
    )


def _list(anchors: Anchors) -> str:
    lines = list(anchors.lines("ambiguous", "lost"))
    more = f"; and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
    return "; ".join(lines[:_LISTED]) + more


def _notes(anchors: Anchors) -> Sequence[str]:
    counts, total = anchors.counts, len(anchors.rows)
    said = []
    if counts["moved"]:
        said.append(
            f"{counts['moved']} of {_counted(total)} ({100 * counts['moved'] / total:.0f} %) "
            f"{'was' if counts['moved'] == 1 else 'were'} moved with the source: --retrieval-reanchor=report lists "
            "them, --retrieval-reanchor=write keeps them"
        )
    stale = anchors.stale
    if stale:
        said.append(f"{_counted(len(stale), 'stale gold span')} left out: {_list(anchors)}")
    if counts["unchecked"]:
        said.append(
            f"{counts['unchecked']} of {_counted(total)} {'has' if counts['unchecked'] == 1 else 'have'} "
            "neither text nor hash: nobody can tell whether the source has moved away from them"
        )
    return said


def _counted(n: int, what: str = "gold span") -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _name(dataset: Dataset) -> str:
    return dataset.name or "the dataset"
