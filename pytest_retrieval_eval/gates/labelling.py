"""The labels of one comparison: made for its runs together, of nothing else that a session holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pytest_retrieval_eval.collection.spans.stale import current_spans
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.labels.labelling import ERAG, LabelSource, Unjudged, qrels_from
from pytest_retrieval_eval.labels.source import combined, source
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.evidence import SPANS
from pytest_retrieval_eval.wording import counted, listed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.spans import Spans
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.measures.names import Measure

# What divides by the relevant documents that there are, or by the ideal order of them.
_OVER_ALL = frozenset({"recall", "f1", "map", "ndcg", "r_precision"})


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that both sides of a comparison are measured on.

    ``qrels`` has what is known of any side: what moved, and what nobody judged, is told from it. ``of`` gives those
    that a run is measured on, over the same queries. ``select`` are the queries that count (None: all), without those
    that ``failed`` to be labelled. ``complete`` says that every document that a measure looks at has a label. ``spans``
    are the gold spans where their passages stand today, where the labels are made of them or the measure reads them.
    ``unjudged`` are pairs without a label in the first ranks of a run, and ``fill`` is the command that has them
    judged. ``reader`` tells who read, where the labels are a reader's.
    """

    qrels: Qrels
    of: Callable[[Run], Qrels]
    select: frozenset[str] | None
    complete: bool = False
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    said: Callable[[str, str], str | None] | None = None
    digests: Mapping[str, Callable[[], str | None]] = field(default_factory=dict)
    texts: Callable[[Run], Mapping[str, Document]] | None = None
    spans: Spans | None = None
    unjudged: tuple[Unjudged, ...] = ()
    fill: str = ""
    reader: Callable[[], Mapping[str, str]] = dict

    def same_for(self, run: Run, other: Labels) -> bool:
        """Whether a side that was measured on ``other`` would be measured alike on these."""
        same = self.qrels is other.qrels and self.select == other.select and self.of(run) is other.of(run)
        return same and self.unjudged == other.unjudged


def label_runs(
    dataset: Dataset,
    runs: Sequence[Run],
    bench: Bench,
    options: Options,
    *,
    depth: int | None,
    select: frozenset[str] | None,
    measure: Measure,
    reading: LabelSource | None = None,
) -> Labels:
    """The labels of a comparison of ``runs`` (the candidate first) over their first ``depth`` ranks.

    ``reading`` is the one source of the labels where the caller has it already, with what it has read.
    """
    if "spans" in _names(options):
        if options.unit == "document":
            raise GateError("labels=spans are of chunks, and unit='document' ranks documents: leave one of them out")
        _tell(bench, dataset)
    sources = [source_of(name, bench, options) for name in _names(options)] if reading is None else [reading]
    made = combined([tolerating(each, options.allow_stale) for each in sources])
    others = [_opened(bench.run(dataset, ref), dataset, options) for ref in options.pool]
    every = list({id(run): run for run in (*runs, *others)}.values())
    labelling = made.label(dataset, every, depth=depth, select=select)
    if measure.rel > labelling.most:
        raise GateError(
            f"{measure} calls relevant what has a grade of at least {measure.rel:g}, and a source of "
            f"labels={labels_text(options)} gives {labelling.most:g} at most: nothing that it labels could ever be "
            "relevant; ask for a level that every source has"
        )
    failed = tolerated_failures(labelling.failed, dataset, options, select)
    of = {id(run): labelling.qrels_of(run) for run in every}
    if options.normalise == "list":
        of = {id(run): _of_list(of[id(run)], run, depth, measure, dataset) for run in every}
    several = list({id(of[id(run)]): of[id(run)] for run in every}.values())
    notes = list(labelling.notes)
    if failed:
        what = counted(len(failed), "query", "queries")
        verb = "is" if len(failed) == 1 else "are"
        notes.append(f"{what} could not be labelled, and {verb} left out of both sides: {listed(list(failed))}")
    if (
        made.pooled
        and len(every) == 1
        and options.normalise != "list"
        and (name := measure.innermost.name) in _OVER_ALL
    ):
        notes.append(
            f"labels={made.name} are of the documents that {shown(runs[0].name) or 'this run'} returns, and of no "
            f"others: {name} takes them for all that is relevant; name further runs in pool=[…]"
        )
    return Labels(
        qrels=several[0] if len(several) == 1 else _union(several),
        of=lambda run: of[id(run)],
        select=_without(select, failed, several[0], dataset),
        # A query that only judgments know may have documents that nobody has judged.
        complete=all(each.pooled for each in sources),
        failed=failed,
        notes=tuple(notes),
        said=labelling.said if made.name != "qrels" else None,
        digests=labelling.digests,
        texts=labelling.texts,
        unjudged=labelling.unjudged,
        fill=labelling.fill,
        reader=labelling.reader,
        spans=current_spans(dataset, options.allow_stale)[0] if "spans" in _names(options) else None,
    )


def source_of(name: str, bench: Bench, options: Options) -> LabelSource:
    """The source of that name: the bench's own, where it brings some; it knows who reads."""
    made: Callable[[str, Options], LabelSource] | None = getattr(bench, "labels", None)
    return source(name) if made is None else made(name, options)


def other_evidence(
    kind: str, dataset: Dataset, select: frozenset[str] | None, bench: Bench, options: Options
) -> Labels:
    """For a measure that reads other evidence than labels of documents, such as the gold spans of the dataset."""
    if kind != SPANS:
        return Labels(dataset.qrels, lambda run: dataset.qrels, select)
    _tell(bench, dataset)
    spans, notes = current_spans(dataset, options.allow_stale)
    stored = dataset.spans
    digests: dict[str, Callable[[], str | None]] = {} if stored is None else {"spans": lambda: stored.digest}
    return Labels(dataset.qrels, lambda run: dataset.qrels, select, notes=notes, digests=digests, spans=spans)


def no_labels(dataset: Dataset, select: frozenset[str] | None, failed: frozenset[str] = frozenset()) -> Labels:
    """For a measure that no document's label matters to, such as one of times.

    The queries that ``failed`` in one run of a comparison are left out of both.
    """
    said = dict.fromkeys(sorted(failed), "the retriever failed")
    notes: tuple[str, ...] = ()
    if failed:
        what = counted(len(failed), "query", "queries")
        has = "is" if len(failed) == 1 else "are"
        notes = (f"{what} on which a retriever failed {has} left out of both sides: {listed(said)}",)
    return Labels(
        dataset.qrels,
        lambda run: dataset.qrels,
        _without(select, said, dataset.qrels, dataset),
        notes=notes,
        digests={"labels": lambda: None},
    )


def _tell(bench: Bench, dataset: Dataset) -> None:
    """A bench that wants to know what became of gold spans in an edited source has a method ``reanchor``."""
    reanchor = getattr(bench, "reanchor", None)
    if reanchor is not None:
        reanchor(dataset)


def tolerating(made: LabelSource, allow_stale: int) -> LabelSource:
    """A source of labels that leaves up to so many stale gold spans out, where it is made of such."""
    leaving_out = getattr(made, "tolerating", None)
    return made if leaving_out is None else cast("LabelSource", leaving_out(allow_stale))


def _names(options: Options) -> tuple[str, ...]:
    if options.labels is None:
        return ("qrels",)
    return (options.labels,) if isinstance(options.labels, str) else options.labels


def labels_text(options: Options) -> str:
    """The sources of the labels, as reports print them; with the metric of answers where it is not the usual one."""
    metric = options.answer_metric
    told = "" if metric is None else metric if isinstance(metric, str) else getattr(metric, "__name__", "own metric")
    return ", ".join(f"{name}({told})" if told and name == ERAG else name for name in _names(options))


def _opened(run: Run, dataset: Dataset, options: Options) -> Run:
    return run.by_document(dataset.chunks) if options.unit == "document" else run


def _without(
    select: frozenset[str] | None, failed: Mapping[str, str], qrels: Qrels, dataset: Dataset
) -> frozenset[str] | None:
    if not failed:
        return select
    asked = frozenset((*qrels.query_ids, *dataset.queries)) if select is None else select
    return asked.difference(failed)


def tolerated_failures(
    failed: Mapping[str, str], dataset: Dataset, options: Options, select: frozenset[str] | None
) -> dict[str, str]:
    """The queries that could not be labelled, where that is tolerated; more of them are a GateError."""
    found = {query: why for query, why in failed.items() if select is None or query in select}
    if len(found) <= options.allow_failures:
        return found
    reasons = list(dict.fromkeys(found.values()))[:3]
    examples = "; ".join(shown(reason, 120) for reason in reasons)
    tolerated = f", {options.allow_failures} tolerated" if options.allow_failures else ""
    raise GateError(
        f"labels={labels_text(options)}: {counted(len(found), 'query', 'queries')} of {shown(dataset.name)} could not "
        f"be labelled{tolerated}: {listed(list(found))} ({examples}). What was not read has no label; mend it, or "
        "leave up to n queries out of both sides with allow_failures=n"
    )


def _of_list(qrels: Qrels, run: Run, depth: int | None, measure: Measure, dataset: Dataset) -> Qrels:
    """The labels of what one run returns: the list is taken for the whole truth.

    A query counts as it does with all labels: one of which the list has nothing relevant is not left out for that.
    """
    counted = evaluate(qrels, run, measure, queries=dataset.queries).scores(measure).query_ids
    rankings = run.rankings(qrels.query_ids, depth=depth)
    kept = {
        query_id: {doc: grade for doc, grade in judged.items() if doc in tops}
        for query_id, judged in qrels.to_dict().items()
        if (tops := frozenset(rankings[query_id].docs)) is not None
    }
    return qrels_from(kept, qrels.source, scale=qrels.scale, always=qrels.always.union(counted))


def _union(several: Sequence[Qrels]) -> Qrels:
    """What any side knows, the candidate's first; over the queries of all of them, which are the same."""
    merged = {query_id: {**judged} for query_id, judged in several[0].to_dict().items()}
    for qrels in several[1:]:
        if qrels.query_ids != several[0].query_ids:
            raise GateError("a source gave labels over other queries for one run than for another")
        for query_id, judged in qrels.to_dict().items():
            merged[query_id] = {**judged, **merged[query_id]}
    return qrels_from(merged, several[0].source, scale=several[0].scale, always=several[0].always)
