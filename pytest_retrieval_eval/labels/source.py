"""Where the labels of a comparison come from: one source by name, or several of which the first that knows wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pytest_retrieval_eval.collection.ids import Ids
from pytest_retrieval_eval.collection.qrels import Qrels, Scale
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.run import Run


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


class QrelsSource:
    """The judgments of the dataset."""

    name, pooled = "qrels", False

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """The dataset's own judgments, whatever the runs return."""
        qrels = dataset.qrels
        if not len(qrels):
            spans = "" if dataset.spans is None else ", or gate a measure of its gold spans"
            raise GateError(
                f"dataset {dataset.name} has no relevance labels: there is nothing to measure; "
                f"add judgments to its qrels{spans}"
            )
        return Labelling(lambda run: qrels, digests={"labels": lambda: dataset.label_digest})


class FirstOf:
    """Several sources: for each query and document the first that has a grade wins."""

    def __init__(self, sources: Sequence[LabelSource]) -> None:
        self.sources = tuple(sources)

    @property
    def name(self) -> str:
        """The names of the sources."""
        return ", ".join(source.name for source in self.sources)

    @property
    def pooled(self) -> bool:
        """Whether any of them labels only what the runs return."""
        return any(source.pooled for source in self.sources)

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """All of them, and their labels together."""
        made = [source.label(dataset, runs, depth=depth, select=select) for source in self.sources]
        names = [source.name for source in self.sources]
        merged: dict[int, Qrels] = {}

        def qrels_of(run: Run) -> Qrels:
            if id(run) not in merged:
                merged[id(run)] = _first([each.qrels_of(run) for each in made], names, [each.most for each in made])
            return merged[id(run)]

        def said(query_id: str, doc_id: str) -> str | None:
            return next((line for each in made if (line := each.said(query_id, doc_id)) is not None), None)

        # A query that one source failed on is lost: nobody knows which of its pairs that source would have labelled.
        failed = {query: why for each in made for query, why in each.failed.items()}
        return Labelling(
            qrels_of,
            failed,
            tuple(dict.fromkeys(note for each in made for note in each.notes)),
            said,
            {key: digest for each in made for key, digest in each.digests.items()},
            next((each.texts for each in made if each.texts is not None), None),
            tuple(pair for each in made for pair in each.unjudged if not _known_to_any(pair, made, runs)),
            next((each.fill for each in made if each.fill), ""),
            min(each.most for each in made),
            lambda: next((who for each in made if (who := each.reader())), {}),
        )


def _known_to_any(pair: Unjudged, made: Sequence[Labelling], runs: Sequence[Run]) -> bool:
    """Whether one source has a label of this pair for every run."""
    return any(
        all(each.qrels_of(run).grade(pair.query_id, pair.doc_id) is not None for run in runs)
        for each in made
        if not each.unjudged
    )


def _first(several: Sequence[Qrels], names: Sequence[str], most: Sequence[float]) -> Qrels:
    """The judgments of several qrels, pair by pair of the first that has one; ``most`` each of them could give."""
    merged: dict[str, dict[str, float]] = {}
    for qrels in several:
        for query_id, judged in qrels.to_dict().items():
            merged[query_id] = {**judged, **merged.get(query_id, {})}
    unit = {qrels.scale for qrels in several} == {"unit", "levels"}
    if unit:
        for name, qrels, could in zip(names, several, most, strict=True):
            if qrels.scale != "levels" or not len(qrels):
                continue
            top = could if math.isfinite(could) else float(qrels.grades.max())
            if not 0 <= qrels.grades.min() <= top <= 1:
                raise GateError(
                    f"labels of {name} are levels up to {top:g}, and others of {', '.join(names)} are degrees from 0 "
                    "to 1: they have no common scale; use sources of one kind"
                )
    scale: Scale = "unit" if unit else several[0].scale
    always = frozenset().union(*(qrels.always for qrels in several))
    return qrels_from(merged, ", ".join(names), scale=scale, always=always)


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


def _contains(kind: str) -> Callable[[], LabelSource]:
    def make() -> LabelSource:
        from pytest_retrieval_eval.labels.contains import Contains

        return Contains(kind)

    return make


def _spans() -> LabelSource:
    from pytest_retrieval_eval.labels.from_spans import SpansSource

    return SpansSource()


def _erag() -> LabelSource:
    from pytest_retrieval_eval.labels.erag import Erag

    return Erag()  # without a reader: whoever gates gives one


def _judged() -> LabelSource:
    from pytest_retrieval_eval.labels.judged import Judged

    return Judged()


_SOURCES: dict[str, Callable[[], LabelSource]] = {
    "qrels": QrelsSource,
    "spans": _spans,
    "contains(kilt)": _contains("kilt"),
    "contains(dpr)": _contains("dpr"),
    ERAG: _erag,
    JUDGED: _judged,
}
NAMES: tuple[str, ...] = tuple(_SOURCES)
"""What ``labels=`` takes."""


def check_name(name: object) -> str:
    """The name of a source, as it is written; an unknown one is a SettingsError.

    >>> check_name("contains(kitl)")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: there are no labels 'contains(kitl)'; did you mean contains(kilt)?
    """
    if not isinstance(name, str) or name not in NAMES:
        raise SettingsError(f"there are no labels {name!r}; {did_you_mean(str(name), NAMES)}")
    return name


def source(name: str) -> LabelSource:
    """The source of that name.

    ``erag`` is one without a reader, which cannot label yet; ``judged`` reads the folder ``judgments``.
    """
    return _SOURCES[check_name(name)]()


def is_pooled(names: Sequence[str]) -> bool:
    """Whether any of these sources labels only what the runs of a comparison return."""
    return any(source(name).pooled for name in names)


def combined(sources: Sequence[LabelSource]) -> LabelSource:
    """One source of one or several, the first that has a grade winning."""
    return sources[0] if len(sources) == 1 else FirstOf(sources)
