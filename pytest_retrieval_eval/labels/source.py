"""Where the labels of a comparison come from: one source by name, or several of which the first that knows wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.qrels import Qrels, Scale
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.labels.labelling import ERAG, JUDGED, Labelling, LabelSource, Unjudged, qrels_from

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run


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
