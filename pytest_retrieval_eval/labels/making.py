"""The labels of some runs in one call, from any source: what a gate does, for whoever only looks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pytest_retrieval_eval.labels.labelling import ERAG, JUDGED, Labelling, LabelSource
from pytest_retrieval_eval.labels.source import check_name, combined, source

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.labels.answers import Metric
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.readers.reading import Reader


def make_labels(
    dataset: Dataset,
    runs: Run | Sequence[Run],
    labels: str | Sequence[str],
    *,
    depth: int | None = None,
    select: Collection[str] | None = None,
    reader: Reader | None = None,
    answer_metric: str | Metric | None = None,
    judgments: Judgments | None = None,
) -> Labelling:
    """The relevance labels that a gate with these ``labels`` would measure the runs on.

    ``labels`` is a source (``qrels``, ``spans``, ``contains(kilt)``, ``contains(dpr)``, ``erag``, ``judged``), or
    several of which the first that has a grade wins. ``depth`` is down to which rank documents are labelled (None:
    whole lists), ``select`` narrows the queries to these. ``erag`` needs a ``reader``, and holds its answers against
    the gold answers by ``answer_metric`` (exact match where it is None); ``judged`` reads ``judgments``, or else the
    folder of that name.

    ``qrels_of(run)`` of the result are the labels of one run, for ``evaluate``: relevance grades, or degrees from 0 to
    1 from ``erag``. ``said(query, document)`` is a line on one of them, and ``failed`` has the queries that could not
    be labelled, with the reason. An unknown source is a SettingsError; what a source needs and lacks is a GateError.

    >>> from pytest_retrieval_eval import Dataset, Run
    >>> dataset = Dataset.of(queries={"q1": "how long?"}, qrels={"q1": ["a"]}, answers={"q1": ["14 days"]},
    ...                      corpus={"a": "A month.", "b": "It is 14 days."})
    >>> run = Run.of({"q1": ["a", "b"]})
    >>> made = make_labels(dataset, run, "contains(kilt)", depth=5)
    >>> made.qrels_of(run).to_dict(), made.said("q1", "b")
    ({'q1': {'a': 0.0, 'b': 1.0}}, "contains the answer '14 days'")
    """
    names = (labels,) if isinstance(labels, str) else labels
    sources = [_source(name, reader, answer_metric, judgments) for name in names]
    every = list(runs) if isinstance(runs, Sequence) else [runs]
    return combined(sources).label(dataset, every, depth=depth, select=None if select is None else frozenset(select))


def _source(
    name: str, reader: Reader | None, answer_metric: str | Metric | None, judgments: Judgments | None
) -> LabelSource:
    if check_name(name) == ERAG:
        from pytest_retrieval_eval.labels.erag import METRIC, Erag

        return Erag(reader, METRIC if answer_metric is None else answer_metric)
    if name == JUDGED:
        from pytest_retrieval_eval.labels.judged import Judged

        return Judged(judgments)
    return source(name)
