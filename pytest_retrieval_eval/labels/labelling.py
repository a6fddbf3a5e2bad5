"""What a source of labels gives for a comparison, and what it must offer to be one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.qrels import Qrels, Scale

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.runs.run import Run

ERAG = "erag"
JUDGED = "judged"


def _nothing(query_id: str, doc_id: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A pair in the first ranks of a comparison's runs that nobody has judged, with the best rank of any of them."""

    query_id: str
    doc_id: str
    rank: int
    query: str
    title: str
    text: str


@dataclass(frozen=True)
class Labelling:
    """The labels of one comparison.

    ``qrels_of`` gives those of a run, the same for all runs or not; all have the same ``query_ids``. ``failed`` are
    queries that could not be labelled, with why: they are left out of both sides, and only with allow_failures.
    ``notes`` are sentences. ``said`` is one line on a document for a query: what a reader answered, why it is
    relevant. ``digests`` tells that of what the labels were made from, by the name that a baseline's header has for
    it. ``texts`` gives the texts that were read of a run's documents, to be stored with a baseline. ``unjudged`` are
    pairs whose labels are missing and could be made with the command ``fill``: a gate on them is not decided. ``most``
    is the largest grade that can be given, whichever were: infinite where nobody says.
    ``reader`` tells who read, where a reader did: its ``kind``, ``model`` and the ``digest`` of its identity.
    """

    qrels_of: Callable[[Run], Qrels]
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    said: Callable[[str, str], str | None] = _nothing
    digests: Mapping[str, Callable[[], str | None]] = field(default_factory=dict)
    texts: Callable[[Run], Mapping[str, Document]] | None = None
    unjudged: tuple[Unjudged, ...] = ()
    fill: str = ""
    most: float = math.inf
    reader: Callable[[], Mapping[str, str]] = dict


class LabelSource(Protocol):
    """Makes the labels of a comparison.

    ``pooled`` says that it labels the documents that the runs return, and no others: R and the ideal order are then
    those of the pool. ``scale`` is that of its grades.
    """

    @property
    def name(self) -> str:
        """As ``labels=`` has it."""

    @property
    def pooled(self) -> bool:
        """Whether labels depend on what the runs return."""

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """The labels for these runs, made together: of their first ``depth`` ranks, for the queries of ``select``."""


def qrels_from(
    labels: Mapping[str, Mapping[str, float]], source: str, *, scale: Scale = "levels", always: frozenset[str]
) -> Qrels:
    """Qrels of checked labels; unlike ``Qrels.of`` it takes queries without any document."""
    counts = np.array([len(judged) for judged in labels.values()], np.int64)
    query = np.repeat(np.arange(len(labels)), counts)
    docs = [doc for judged in labels.values() for doc in judged]
    grades = np.array([grade for judged in labels.values() for grade in judged.values()], np.float64)
    for column in (query, grades):
        column.flags.writeable = False
    return Qrels(tuple(labels), query, Ids.of(docs), grades, source, scale, always=always)
