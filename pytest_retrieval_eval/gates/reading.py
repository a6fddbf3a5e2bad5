"""What a reader makes of a run, without a gate: the labels with their readings, and what documents add."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.labelling import source_of, tolerated_failures
from pytest_retrieval_eval.gates.side import Opened, open_candidate
from pytest_retrieval_eval.labels.erag import Erag, EragLabelling, Lift, ReadQrels
from pytest_retrieval_eval.labels.labelling import ERAG
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.wording import counted, listed

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.options import Options


def read_labels(bench: Bench, options: Options, depth: int | None = None) -> ReadQrels:
    """The labels of the run that the options name, of its first ``depth`` ranks (None: all), with their readings.

    As many queries may have failed as ``allow_failures`` says; they are not among the labels.
    """
    opened = _opened(bench, options, depth)
    return _read(opened, _source(bench, options), options, depth)


def closed_book_lift(bench: Bench, options: Options, depth: int | None = None) -> Lift:
    """What the best document of the first ``depth`` ranks adds to what the reader answers without any."""
    opened, source = _opened(bench, options, depth), _source(bench, options)
    labels = _read(opened, source, options, depth)
    alone, failed = source.closed_book(opened.dataset, select=opened.select)
    failed = tolerated_failures({**failed, **labels.failed}, opened.dataset, options, opened.select)
    counted_ids = [query_id for query_id in labels.query_ids if query_id not in failed]
    if not counted_ids:
        raise GateError(f"no query of {opened.dataset.name} was read: there is no lift")
    notes = labels.notes
    if failed:
        what = counted(len(failed), "query", "queries")
        notes = (
            *notes,
            f"{what} could not be read, and {'is' if len(failed) == 1 else 'are'} left out: {listed(list(failed))}",
        )
    return Lift(
        {query_id: alone[query_id] for query_id in counted_ids},
        {query_id: max(labels.of_query(query_id).values(), default=0.0) for query_id in counted_ids},
        notes,
    )


def _opened(bench: Bench, options: Options, depth: int | None) -> Opened:
    return open_candidate(Measure.parse("hit" if depth is None else f"hit@{depth}"), bench, options)


def _source(bench: Bench, options: Options) -> Erag:
    return cast(Erag, source_of(ERAG, bench, options))


def _read(opened: Opened, source: Erag, options: Options, depth: int | None) -> ReadQrels:
    made: EragLabelling = source.label(opened.dataset, [opened.run], depth=depth, select=opened.select)
    failed = tolerated_failures(made.failed, opened.dataset, options, opened.select)
    qrels = made.qrels_of(opened.run)
    if failed:
        qrels = qrels.select(frozenset(qrels.query_ids).difference(failed))
    readings = {
        (query_id, doc): reading
        for (query_id, doc), reading in made.readings_of(opened.run).items()
        if query_id not in failed
    }
    return ReadQrels.joined(qrels, readings, failed=failed, notes=made.notes)
