"""``evaluate``: one run, any measures, a line for each value."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.inputs import (
    asked_queries,
    by_spans,
    check_depth,
    check_failures,
    default_measures,
    judged_queries,
    named_measures,
    parse_where,
    read_collection,
    select_queries,
)
from pytest_retrieval_eval.cli.reading import Sources
from pytest_retrieval_eval.cli.staging import read_stages
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.hints import id_hint
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.spans.former import refuse_former_texts
from pytest_retrieval_eval.collection.spans.stale import current_spans
from pytest_retrieval_eval.errors import GateError, MeasureError, SettingsError
from pytest_retrieval_eval.gates.incomplete import spread_of
from pytest_retrieval_eval.gates.labelling import tolerating
from pytest_retrieval_eval.gates.side import cutoff_of
from pytest_retrieval_eval.labels.source import combined
from pytest_retrieval_eval.measures.bounds import Bounds
from pytest_retrieval_eval.measures.evaluate import Evaluation, Scores, evaluate
from pytest_retrieval_eval.measures.evidence import ACCESS, RANKS, SPANS
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import aggregate, reads
from pytest_retrieval_eval.reports.spread import spread_text
from pytest_retrieval_eval.wording import counted, listed, shown

DEFAULT = ("ndcg@10", "mrr@10", "map", "precision@10", "recall@10", "recall@100", "judged@10")
DEFAULT_OF_SPANS = ("span_recall@5", "span_recall@10", "span_coverage@10", "span_precision@10", "span_ndcg@10")
#: the name of the row of means (of sums, for counts), as trec_eval has it
ALL = "all"


def evaluate_run(arguments: argparse.Namespace, console: Console) -> int:
    """The command. Prints nothing before every value is known."""
    measures = named_measures(arguments.measure)
    where = parse_where(arguments.where)
    sources = Sources(arguments)
    dataset = read_collection(arguments.qrels, queries=arguments.queries, split=arguments.split)
    select = select_queries(dataset, where)
    run = Run.read(arguments.run)
    check_failures(run, asked_queries(dataset, select), arguments.allow_failures)
    usual = DEFAULT_OF_SPANS if by_spans(dataset) and not arguments.labels else DEFAULT
    chosen = measures or default_measures(usual, None if arguments.labels else dataset.qrels, run)
    check_depth(run, chosen)
    trec = arguments.trec or arguments.trec_complete
    if any(reads(measure) == SPANS for _, measure in chosen) or "spans" in (arguments.labels or ()):
        refuse_former_texts(run, f"run {shown(run.name or run.source)}", dataset, select)
    # A file that no measure reads is not opened.
    beyond = any(reads(measure) != RANKS for _, measure in chosen)
    made: tuple[str, ...] = ()
    of_spans: tuple[str, ...] = ()
    if arguments.labels:
        if trec or beyond or arguments.bounds:
            what = "--bounds" if arguments.bounds else "--trec" if trec else "a measure of other evidence"
            raise SettingsError(f"--labels makes labels for the documents of the run, and {what} reads none such")
        try:
            evaluation, score, made = _on_made_labels(dataset, run, chosen, arguments, select, sources)
        finally:
            sources.close(console)
    else:
        wanted = any(reads(measure) == SPANS for _, measure in chosen)
        access = any(reads(measure) == ACCESS for _, measure in chosen)
        spans, of_spans = current_spans(dataset, arguments.allow_stale) if wanted else (None, ())
        evaluation = evaluate(
            dataset.qrels,
            run,
            [measure for _, measure in chosen],
            queries=dataset.queries,
            select=select,
            trec=trec,
            complete=arguments.trec_complete,
            unit=arguments.unit,
            chunks=dataset.chunks if arguments.unit or wanted or access else None,
            spans=spans,
            corpus=dataset.corpus if access or wanted else None,
            stages=read_stages(arguments.stages) if arguments.stages else None,
        )
        score = evaluation.scores
    _refuse_strangers(evaluation, arguments.qrels)
    if not measures:
        # judged@10 is undefined where the run returned nothing, and nobody asked for it.
        chosen = [named for named in chosen if score(named[1]).n] or chosen
    found = [(name, score(measure)) for name, measure in chosen]
    totals = [scores.overall for _, scores in found]
    notes = [*made, *of_spans, *_notes(evaluation, dataset, found)]
    bounds = _bounds(evaluation, found, notes) if arguments.bounds else None
    for note in notes:
        console.note(note)
    if arguments.json:
        console.write(_document(arguments, dataset, run, found, notes, bounds) + "\n")
        return 0
    if arguments.per_query:
        if ALL in evaluation.qrels.query_ids:
            console.note(f"a query has the id {ALL}; the means are the last lines")
        _write_queries(evaluation, found, bounds, console)
    for (name, _), total in zip(found, totals, strict=True):
        ends = _ends(bounds, name)
        console.write(f"{ALL}\t{name}\t{total!r}{ends}\n")
    if arguments.distribution:
        for name, scores in found:
            console.write(f"\n{name}   n {scores.n}\n{spread_text(spread_of(scores))}\n")
    return 0


def _on_made_labels(
    dataset: Dataset,
    run: Run,
    chosen: list[tuple[str, Measure]],
    arguments: argparse.Namespace,
    select: frozenset[str] | None,
    sources: Sources,
) -> tuple[Evaluation, Callable[[Measure], Scores], tuple[str, ...]]:
    """The run on labels that are made for it: for each measure down to its cut-off, as in a gate.

    Gives one of the evaluations (the queries are the same for all), the scores of a measure, and notes.
    """
    made = combined([tolerating(sources(name), arguments.allow_stale) for name in arguments.labels])
    ranked = run.by_document(dataset.chunks) if arguments.unit else run
    of_depth: dict[int | None, Evaluation] = {}
    notes: dict[str, None] = {}
    for _, measure in chosen:
        depth = cutoff_of(measure)
        if depth in of_depth:
            continue
        labels = made.label(dataset, [ranked], depth=depth, select=select)
        if len(labels.failed) > arguments.allow_failures:
            first = next(iter(labels.failed))
            raise GateError(
                f"{counted(len(labels.failed), 'query', 'queries')} could not be labelled, the first is {first}: "
                f"{labels.failed[first]}"
            )
        left = None if not labels.failed else frozenset(dataset.queries).difference(labels.failed)
        asked = select if left is None else left if select is None else select & left
        notes.update(dict.fromkeys(labels.notes))
        if labels.unjudged:
            count = counted(len(labels.unjudged), "pair")
            notes[f"{count} in the first ranks have no judgment, and count as not relevant"] = None
        of_depth[depth] = evaluate(labels.qrels_of(ranked), ranked, measure, queries=dataset.queries, select=asked)
    first_of = next(iter(of_depth.values()))
    return first_of, lambda measure: of_depth[cutoff_of(measure)].scores(measure), tuple(notes)


def _bounds(evaluation: Evaluation, found: list[tuple[str, Scores]], notes: list[str]) -> dict[str, Bounds]:
    """The bounds of the measures that have some; a note for each of the others."""
    known = {}
    for name, scores in found:
        try:
            known[name] = evaluation.bounds(scores.measure)
        except MeasureError as error:
            notes.append(str(error))
    if not known:
        raise MeasureError(notes[-1])
    return known


def _ends(bounds: dict[str, Bounds] | None, name: str, place: int | None = None) -> str:
    """Two more columns with the bounds, a dash where a measure has none; no column where nobody asked."""
    if bounds is None:
        return ""
    if name not in bounds:
        return "\t-\t-"
    known = bounds[name]
    low, high = (known.minimum, known.maximum) if place is None else (float(known.low[place]), float(known.high[place]))
    return f"\t{low!r}\t{high!r}"


def _write_queries(
    evaluation: Evaluation,
    found: list[tuple[str, Scores]],
    bounds: dict[str, Bounds] | None,
    console: Console,
) -> None:
    values = [(name, scores.to_dict()) for name, scores in found]
    places = {name: {query: place for place, query in enumerate(scores.query_ids)} for name, scores in found}
    for query_id in evaluation.qrels.query_ids:
        label = _cell(query_id)
        for name, of_query in values:
            if query_id in of_query:
                ends = _ends(bounds, name, places[name][query_id])
                console.write(f"{label}\t{name}\t{of_query[query_id]!r}{ends}\n")


def _cell(text: str) -> str:
    """An id that cannot break the table: JSON allows tabs and line ends in ids."""
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _refuse_strangers(evaluation: Evaluation, qrels: str) -> None:
    """A run about other queries would measure 0 for each of these."""
    if evaluation.ranks.in_run.any():
        return
    judged = judged_queries(evaluation.qrels)
    raise GateError(
        f"{evaluation.run.source} has none of the {counted(len(judged), 'judged query', 'judged queries')} "
        f"of {qrels}: nothing can be measured. {id_hint(judged, evaluation.ranks.unknown)}"
    )


def _notes(evaluation: Evaluation, dataset: Dataset, found: list[tuple[str, Scores]]) -> list[str]:
    """What was odd in the files, and what was not counted, a sentence each."""
    counts = evaluation.counts
    notes = [*dataset.warnings, *evaluation.warnings]
    if evaluation.trec:
        # trec_eval counts topics without a relevant document, and leaves out those that the run lacks.
        in_run = dict(zip(evaluation.qrels.query_ids, evaluation.ranks.in_run.tolist(), strict=True))
        absent = [query_id for query_id in counts.returned_nothing if not in_run[query_id]]
        if absent:
            count = "counted 0" if evaluation.complete else "not counted (--trec-complete counts them 0)"
            topics = counted(len(absent), "topic of the qrels is", "topics of the qrels are")
            notes.append(f"{topics} not in the run and {count}: {listed(absent)}")
        barren = [query_id for query_id in counts.without_relevant if in_run[query_id] or evaluation.complete]
        if barren:
            topics = counted(len(barren), "topic has", "topics have")
            notes.append(f"{topics} nothing relevant and counted 0, as in trec_eval: {listed(barren)}")
        counts = replace(counts, returned_nothing=(), without_relevant=())
    notes += counts.notes()
    # A mean without its n is half a number, and the table has no column for it.
    if len({scores.n for _, scores in found}) == 1:
        notes.append(f"mean over {counted(found[0][1].n, 'query', 'queries')}")
    else:
        told = ", ".join(f"{name} {scores.n}" for name, scores in found)
        notes.append(f"means over different numbers of queries: {told}")
    return list(dict.fromkeys(notes))


def _document(
    arguments: argparse.Namespace,
    dataset: Dataset,
    run: Run,
    found: list[tuple[str, Scores]],
    notes: list[str],
    bounds: dict[str, Bounds] | None,
) -> str:
    measures = []
    for name, scores in found:
        entry: dict[str, object] = {
            "name": name,
            "measure": str(scores.measure),
            "mean": scores.mean,
            "n": scores.n,
        }
        how, _ = aggregate(scores.measure)
        if how != "mean":
            entry[how] = scores.overall
        if bounds is not None:
            known = bounds.get(name)
            entry["bounds"] = None if known is None else [known.minimum, known.maximum]
        if arguments.distribution:
            entry["spread"] = spread_of(scores).to_dict()
        if arguments.per_query:
            entry["queries"] = scores.to_dict()
        measures.append(entry)
    document = {
        "qrels": dataset.qrels.source,
        "labels": ", ".join(arguments.labels or ["qrels"]),
        "run": run.source,
        "mode": "trec-complete" if arguments.trec_complete else "trec" if arguments.trec else "default",
        "where": parse_where(arguments.where) or {},
        "measures": measures,
        "notes": notes,
    }
    return json_text(document)
