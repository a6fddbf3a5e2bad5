"""A stored run whose offsets are of a text that the corpus no longer has.

Gold moves with its source; the hits of a stored run cannot. Held against each other they would make a baseline look
worse than it was, and a worse retriever pass. So a stored run carries along where the gold stood when it was saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.wording import counted, listed

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run

KEY = "gold"  # in the header of a run


def gold_places(run: Run, dataset: Dataset) -> dict[str, object]:
    """What a stored run says of the texts that its offsets are of: of each document with gold the digest of its text,
    and the offsets of the gold in it. A run that says so already was saved before.
    """
    said = run.header.get(KEY)
    if said is not None:
        return {KEY: said}
    return {} if dataset.spans is None or dataset.anchors is None else {KEY: dataset.anchors.places}


def refuse_former_texts(run: Run, label: str, dataset: Dataset, select: frozenset[str] | None) -> None:
    """Raise a GateError where gold of the selected queries stood elsewhere in its document when the run was saved.

    Where an edit left the gold in its place, what the run holds of it is known as before.
    """
    said, anchors = run.header.get(KEY), dataset.anchors
    if not isinstance(said, Mapping) or anchors is None:
        return
    today, spans = anchors.places, anchors.current
    edited = {doc for doc in today if doc in said and _digest(said[doc]) not in (None, today[doc][0])}
    moved: dict[str, None] = {}
    count = 0
    for row, doc in enumerate(spans.doc.tolist()):
        name = spans.doc_ids[doc]
        if name not in edited or not (select is None or spans.query_ids[int(spans.query[row])] in select):
            continue
        if [int(spans.start[row]), int(spans.end[row])] not in said[name][1:]:
            moved[name] = None
            count += 1
    if moved:
        raise GateError(
            f"{label} was saved when {counted(count, 'gold span')} stood elsewhere in "
            f"{counted(len(moved), 'document')} that {'was' if len(moved) == 1 else 'were'} edited since "
            f"({listed(list(moved))}): the offsets of its hits are of the former text, so that nobody knows what it "
            "holds of them now. Save it again from the corpus as it is, with the retriever that it stands for"
        )


def _digest(then: Any) -> object:
    return then[0] if isinstance(then, list) and then else None
