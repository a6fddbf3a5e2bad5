"""One side of a comparison: a run measured on a dataset, after everything that makes a number meaningless
was refused.

A gate that passes without having measured anything is the worst fault; so the same checks hold for the run
under test and for what it is held against.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.collection.hints import FEW, id_hint, other_documents, other_kind, part_hint
from pytest_retrieval_eval.collection.queries import json_text, json_word
from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.collection.spans.former import refuse_former_texts
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.bench import stages_of
from pytest_retrieval_eval.labels.source import is_pooled
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.evidence import ACCESS, SPANS, is_labelled, words_for
from pytest_retrieval_eval.measures.lift import STAGES, reads_stages
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import aggregate, definition, reads
from pytest_retrieval_eval.wording import both_ends, counted, listed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Ranking, Run
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.labelling import Labels
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.measures.evaluate import Evaluation, Scores

_JUDGED_K = 10


@dataclass(frozen=True, slots=True)
class Opened:
    """A run of a comparison, opened and not yet labelled or measured; ``given`` as :attr:`Side.stored`.

    ``stages`` are those of its pipeline, for measures that read them.
    """

    dataset: Dataset
    run: Run
    given: Run
    label: str
    select: frozenset[str] | None
    failed: Mapping[str, str]
    stages: Mapping[str, Run] | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """A run, measured.

    ``select`` are the queries that ``where`` selects (None: all), ``label`` names the run in sentences, and
    ``failed`` are the queries that the retriever failed on and that ``allow_failures`` tolerates. With the
    unit ``document`` the run is one of documents, and ``given`` the chunks that it was made of. ``labels`` are those
    of the whole comparison. ``notes`` are worth saying beside the number.
    """

    dataset: Dataset
    run: Run
    measure: Measure
    evaluation: Evaluation
    select: frozenset[str] | None
    where: str
    label: str
    judged_at: Measure
    failed: Mapping[str, str]
    labels: Labels
    unit: str | None = None
    given: Run | None = None
    notes: tuple[str, ...] = ()

    @property
    def stored(self) -> Run:
        """The run as it was given: of chunks, where ``run`` has the documents they are parts of."""
        return self.given if self.given is not None else self.run

    @property
    def qrels(self) -> Qrels:
        """What is known of the documents of either side; the run itself is measured on ``evaluation.qrels``.

        Of a measure that reads other evidence: what there is to be found, such as gold spans.
        """
        return self.labels.qrels if self.by_judgment else self.evaluation.qrels

    @property
    def by_judgment(self) -> bool:
        """Whether the measure reads judged documents: else there are no unjudged ones to speak of."""
        return self.evaluation.evidence.judged

    @property
    def by_span(self) -> bool:
        """Whether the measure reads gold spans."""
        return self.evaluation.kind == SPANS

    @property
    def by_access(self) -> bool:
        """Whether the measure is about who may read what."""
        return self.evaluation.kind == ACCESS

    @property
    def scores(self) -> Scores:
        """The measure's value for each counted query."""
        return self.evaluation.scores(self.measure)

    @property
    def mean(self) -> float:
        """The one number over the counted queries: their mean, or what the measure makes of them."""
        return float(self.scores.overall)

    @property
    def judged(self) -> float | None:
        """Mean judged@k over the queries that returned anything; None where none did, or nothing is judged."""
        if not self.by_judgment:
            return None
        scores = self.evaluation.scores(self.judged_at)
        return float(scores.mean) if scores.n else None


def cutoff_of(measure: Measure) -> int | None:
    """The rank down to which a measure (or the one inside it) looks; None for the whole list."""
    if measure.cutoff is not None:
        return measure.cutoff
    for _, value in measure.params:
        if isinstance(value, Measure):
            return cutoff_of(value)
    return None


def where_text(where: Mapping[str, object] | None) -> str:
    """A slice as text: ``type=policy, lang=de|en``.

    >>> where_text({"type": "policy", "lang": ["de", "en"]}), where_text({"year": 1}), where_text({"year": "1"})
    ('type=policy, lang=de|en', 'year=1', 'year="1"')
    """
    parts = []
    for tag, value in (where or {}).items():
        values = value if isinstance(value, (list, tuple, Set)) else [value]
        words = [json_word(each) for each in values]
        words = sorted(words) if isinstance(value, Set) else words
        parts.append(f"{shown(tag, 30)}={'|'.join(shown(word, 30) for word in words)}")
    return ", ".join(parts)


def value_names(tag: str, values: Iterable[object]) -> list[str]:
    """``tag=value`` for each value of a tag; values that would be cut to the same text stand in full.

    >>> value_names("year", [2024, "2024"])
    ['year=2024', 'year="2024"']
    """
    values = list(values)
    names = [where_text({tag: [value]}) for value in values]
    times = Counter(names)
    return [
        name if times[name] == 1 else f"{shown(tag, 30)}={json_text(value, tag)}"
        for name, value in zip(names, values, strict=True)
    ]


def open_candidate(measure: Measure, bench: Bench, options: Options) -> Opened:
    """The run under test, opened. Raises a ``GateError`` for whatever cannot be measured."""
    dataset = bench.dataset(options.dataset)
    select = None
    if options.where is not None:
        select = dataset.queries.select(options.where)
        if not select:
            raise GateError(f"where {where_text(options.where)} selects no query of {shown(dataset.name)}")
    if options.stage is not None:
        # Through the bench, which takes note of every run that is gated.
        run, label = bench.run(dataset, stages_of(bench)[options.stage]), f"stage {options.stage}"
    else:
        run = bench.run(dataset, options.run)
        label = f"run {shown(run.name)}"
    stages = stages_of(bench) if reads_stages(measure) else None
    return open_run(dataset, run, measure, options, select, label, stages)


def open_run(
    dataset: Dataset,
    run: Run,
    measure: Measure,
    options: Options,
    select: frozenset[str] | None,
    label: str,
    stages: Mapping[str, Run] | None = None,
) -> Opened:
    """``run`` as it is to be measured on ``dataset``, or the ``GateError`` that says why that would mean nothing."""
    _refuse_totals(measure)
    cutoff = cutoff_of(measure)
    if cutoff is not None and run.depth is not None and cutoff > run.depth:
        from pytest_retrieval_eval.collection.runs.retrieve import deeper

        anew = f" and save {label} anew" if label.startswith("baseline") else ""
        raise GateError(
            f"{measure} looks at {counted(cutoff, 'rank')}, but {label} declares depth {run.depth}: "
            f"{deeper(run, cutoff)}{anew}, or gate at k = {run.depth} or less"
        )
    if reads(measure) == STAGES:
        _refuse_partial_labels(measure, options)
    elif not is_labelled(reads(measure)):
        _refuse_options(measure, options)
    failed = _failures(run, dataset, options, select, label)
    given = run
    if options.unit == "document":
        run = run.by_document(dataset.chunks)
    return Opened(dataset, run, given, label, select, failed, stages)


def measure_side(opened: Opened, labels: Labels, measure: Measure, options: Options) -> Side:
    """A run measured on the labels of its comparison, or the ``GateError`` that says why that would mean nothing."""
    dataset, run, select = opened.dataset, opened.run, labels.select
    if labels.spans is not None:
        refuse_former_texts(opened.given, opened.label, dataset, select)
    judged_at = Measure.parse(f"judged@{cutoff_of(measure) or _JUDGED_K}")
    # A file that the measure does not read is not opened.
    kind = reads(measure)
    evaluation = evaluate(
        labels.of(run),
        run,
        measure,
        queries=dataset.queries,
        select=select,
        spans=labels.spans if kind == SPANS else None,
        chunks=dataset.chunks if kind in (SPANS, ACCESS) else None,
        corpus=dataset.corpus if kind in (SPANS, ACCESS) else None,
        stages=_stages(opened),
    )
    where, label, given = where_text(options.where), opened.label, opened.given
    side = Side(
        dataset, run, measure, evaluation, select, where, label, judged_at, opened.failed, labels, options.unit, given
    )
    _refuse_empty(side)
    own = definition(measure.name).notes
    notes = (*(_cut_lists(side) if options.unit else ()), *(own(evaluation, measure) if own is not None else ()))
    return replace(side, notes=notes) if notes else side


def _stages(opened: Opened) -> Mapping[str, Run] | None:
    """The stages as the run is measured: of documents, where those are ranked."""
    stages, chunks = opened.stages, opened.dataset.chunks if opened.run is not opened.given else None
    if stages is None or opened.run is opened.given:
        return stages
    return Stages(dict.fromkeys(stages), lambda name, _: stages[name].by_document(chunks))


def _refuse_partial_labels(measure: Measure, options: Options) -> None:
    """Labels of what the runs of a comparison return leave the stage before without: its best order is unknown."""
    sources = (options.labels,) if isinstance(options.labels, str) else tuple(options.labels or ())
    made = [source for source in sources if is_pooled((source,))]
    if made:
        raise GateError(
            f"{measure} needs labels of all that the stage before returned, and labels={', '.join(made)} are made for "
            "what the runs under test return: gate it on the judgments of the dataset, or gate the measure inside"
        )


def _refuse_options(measure: Measure, options: Options) -> None:
    """What is about judged documents means nothing to a measure of other evidence."""
    kind, what = reads(measure), words_for(reads(measure))
    sources = (options.labels,) if isinstance(options.labels, str) else tuple(options.labels or ())
    if any(source != kind for source in sources):
        raise GateError(
            f"{measure} reads {what}, so that labels={', '.join(sources)} would say nothing: leave labels out, or "
            "gate a measure of documents, such as recall@5"
        )
    if options.unit is not None and kind != ACCESS:
        raise GateError(f"{measure} reads {what}, and no documents: leave unit={options.unit!r} out")
    if options.judged is not None:
        raise GateError(f"{measure} reads {what}, and no judgments of documents: leave judged={options.judged:g} out")


def _cut_lists(side: Side) -> tuple[str, ...]:
    """Lists that were cut at the declared depth before they had k documents: the measure saw fewer.

    What stands below the cut is unknown, so that this is said; where it holds for every list that has
    anything, the number is that of another depth, and an error.
    """
    cutoff, given = cutoff_of(side.measure), side.stored
    if cutoff is None or given.depth is None:
        return ()
    chunks = dict(zip(given.query_ids, given.returned.tolist(), strict=True))
    documents = dict(zip(side.qrels.query_ids, side.evaluation.ranks.returned.tolist(), strict=True))
    filled = [query for query in side.scores.query_ids if documents[query]]
    cut = [query for query in filled if documents[query] < cutoff and chunks[query] >= given.depth]
    if not cut:
        return ()
    said = (
        f"{counted(len(cut), 'list')} of {given.depth} chunks {'holds' if len(cut) == 1 else 'hold'} fewer than "
        f"{counted(cutoff, 'document')} and {'was' if len(cut) == 1 else 'were'} cut there ({listed(cut)})"
    )
    if len(cut) == len(filled):
        raise GateError(
            f"{side.measure} over documents: {side.label}: {said}, that is every list: retrieve more chunks a query, "
            "or gate at a smaller k"
        )
    return (f"{said}: more chunks a query could change the measure",)


def _refuse_totals(measure: Measure) -> None:
    """Every rule of a gate, its interval and its p are about a mean over queries, or a statistic of them."""
    how, _ = aggregate(measure)
    if how not in ("mean", "statistic"):
        other = measure.inner or "a share such as recall@10"
        raise GateError(
            f"{measure} is a {how} over the queries, and gates compare means, query by query: gate {other}, or "
            f"compute it with evaluate(…)[{str(measure)!r}].overall"
        )


def _failures(
    run: Run, dataset: Dataset, options: Options, select: frozenset[str] | None, label: str
) -> dict[str, str]:
    if not run.errors:
        return {}
    asked = set(dataset.qrels.query_ids) | set(dataset.queries) if select is None else select
    failed = {query: text for query, text in run.errors.items() if query in asked}
    if len(failed) <= options.allow_failures:
        return failed
    first: dict[str, str] = {}
    for query, text in failed.items():
        first.setdefault(text, query)
    examples = "; ".join(f"{shown(query, 40)}: {both_ends(text, 160)}" for text, query in [*first.items()][:3])
    total = len(asked)
    tolerated = f", {options.allow_failures} tolerated" if options.allow_failures else ""
    raise GateError(
        f"retriever failed on {len(failed)} of {counted(total, 'query', 'queries')} in {label}{tolerated}: "
        f"{examples}. A failure is no score; mend it, or tolerate n of them, which then count 0, "
        "with allow_failures=n"
    )


def _refuse_empty(side: Side) -> None:
    ranks, qrels, label = side.evaluation.ranks, side.qrels, side.label
    name = shown(side.dataset.name)
    if not ranks.in_run.any():
        hint = id_hint(qrels.query_ids, ranks.unknown)
        total = counted(len(qrels.query_ids), "judged query", "judged queries")
        raise GateError(f"{label} has none of the {total} of {name}: nothing can be compared. {hint}")
    if not side.scores.n:
        # The mean's own error says why.
        raise GateError(f"{_reason_of_no_mean(side)} Add judgments, or gate another level or slice.")
    refuse_unasked(side)
    if not ranks.returned.any():
        raise GateError(f"{label} returned no document for any query of {name}: is its index empty?")
    relevant = int((ranks.facts.relevant(side.measure.rel) > 0).sum())
    if side.evaluation.evidence.strangers is not None and relevant >= FEW:
        asked, returned = side.evaluation.evidence.strangers()
        raise GateError(
            f"{label} holds no character of any {side.evaluation.evidence.noun}, while "
            f"{counted(relevant, 'query has', 'queries have')} some: {other_documents(asked, returned)}"
        )
    if side.by_judgment and not len(ranks.query) and relevant >= FEW:
        ids = [qrels.query_ids[int(i)] for i in np.flatnonzero((ranks.facts.judged > 0) & (ranks.returned > 0))]
        why = other_kind(qrels, side.run, ids, partial(_part_hint, side))
        raise GateError(
            f"{label} has no judged document in any list, while "
            f"{counted(relevant, 'query has', 'queries have')} relevant ones: {why}"
        )


def refuse_unasked(side: Side) -> None:
    """Refuse a run that has no list for any query that counts: nobody asked it, and 0 against 0 compares nothing."""
    evaluation, counts = side.evaluation, frozenset(side.scores.query_ids)
    there = evaluation.ranks.in_run.tolist()
    if any(asked and query in counts for query, asked in zip(evaluation.qrels.query_ids, there, strict=True)):
        return
    total = counted(len(counts), "query that counts", "queries that count")
    of = shown(side.dataset.name) + (f" ({side.where})" if side.where else "")
    raise GateError(
        f"{side.label} has no list for the {total} of {of}: nothing can be compared. Ask the retriever all queries and "
        "save the run anew, or select those that it has with where="
    )


def _part_hint(side: Side, found: Mapping[str, Ranking], gold: list[str]) -> str | None:
    """Whether what was returned are chunks of the labels' documents."""
    if side.unit is not None:
        return None
    known, table = set(gold), side.dataset.chunks
    for ranking in found.values():
        said = ranking.doc_id or [None] * len(ranking.docs)
        for chunk, own in zip(ranking.docs, said, strict=True):
            doc = own if own is not None else table.document_of(chunk) if table is not None else None
            if doc in known:
                how = "as the hits say" if own is not None or table is None else f"as {table.source} says"
                return part_hint(chunk, str(doc), how)
    return None


def _reason_of_no_mean(side: Side) -> str:
    try:
        mean = side.mean
    except GateError as error:
        return f"{shown(side.dataset.name)}: {error}"
    return f"{side.measure} has the mean {mean} over no query."  # cannot be: a mean needs a query
