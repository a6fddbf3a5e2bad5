"""A gate's comparison with both sides opened, labelled together and measured, and nothing decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.bench import Baseline, baseline_of
from pytest_retrieval_eval.gates.early import Settled, until_settled, why_all
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.labelling import label_runs, no_labels, other_evidence, source_of
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.rules import (
    Comparison,
    check_rule,
    compared,
)
from pytest_retrieval_eval.gates.side import (
    Opened,
    Side,
    cutoff_of,
    measure_side,
    open_candidate,
    open_run,
    refuse_unasked,
)
from pytest_retrieval_eval.gates.slices import slice_queries, sliced
from pytest_retrieval_eval.gates.target import Target
from pytest_retrieval_eval.gates.tojudge import gather_missing
from pytest_retrieval_eval.labels.labelling import ERAG
from pytest_retrieval_eval.labels.scorable import scorable
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.evidence import OF_QUERIES, TIMES, is_labelled
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import definition, reads
from pytest_retrieval_eval.stats.paired import PairedTest
from pytest_retrieval_eval.wording import counted, listed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.labelling import Labels
    from pytest_retrieval_eval.labels.erag import Erag
    from pytest_retrieval_eval.labels.labelling import LabelSource


@dataclass(slots=True)
class Known:
    """What was opened and measured of one candidate, for the next comparison of it.

    A side stands for the labels that it was measured on, and those may depend on what it is compared with.
    """

    opened: dict[Measure, Opened] = field(default_factory=dict)
    sides: dict[Measure, Side] = field(default_factory=dict)
    sources: dict[Measure, LabelSource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A comparison with both sides measured and nothing decided.

    ``parts`` are the slices of a gate with ``by``; ``decides`` is False for one with too few queries. ``settled`` is
    the verdict of a gate that did not read every query; ``reading`` says why it did, where it might not have.
    ``aside`` are queries that count on one side alone, and are compared on none.
    """

    gate: Gate
    bench: Bench
    side: Side
    base: Baseline | None = None
    reference: Side | None = None
    comparison: Comparison | None = None
    test: PairedTest | None = None
    slice: str = ""
    decides: bool = True
    parts: tuple[Case, ...] = ()
    settled: Settled | None = None
    reading: str = ""
    aside: frozenset[str] = frozenset()

    @property
    def leaves(self) -> tuple[Case, ...]:
        """The comparisons that decide: the slices, or the comparison itself."""
        return tuple(part for part in self.parts if part.decides) if self.parts else (self,)

    @property
    def p(self) -> float | None:
        """The p that is printed; None for a fixed target."""
        if self.test is None or self.comparison is None:
            return None
        return self.test.p_worse if self.comparison.sided == "one" else self.test.p_two_sided


def measured_case(gate: Gate, bench: Bench, known: Known | None = None) -> Case:
    """Both sides of ``gate``, measured. Raises a ``GateError`` for what cannot be measured."""
    __tracebackhide__ = True
    check_rule(gate)
    known = Known() if known is None else known
    candidate = _candidate(gate.measure, bench, gate.options, known)
    if not isinstance(gate.target, Target):
        side = _measured([candidate], gate.measure, bench, gate.options, known)[0]
        case = Case(gate, bench, side, reading=why_all(gate, bench, updated=False) or "")
    else:
        base, opened = _reference(gate, gate.target, bench, candidate)
        settled, note = _settled(gate, bench, candidate, opened, known, updated=base.updated)
        both = [candidate, opened] if settled is None else _narrowed([candidate, opened], settled.queries)
        side, reference = _measured(both, gate.measure, bench, gate.options, known)
        _keep_texts(base, side, bench)
        counts = [frozenset(each.scores.query_ids) for each in (side, reference)]
        if what := definition(gate.measure.name).common:
            side, reference = _common(gate, side, reference, what)
        if side.scores.query_ids != reference.scores.query_ids:
            only = sorted(set(side.scores.query_ids) ^ set(reference.scores.query_ids))
            raise GateError(
                f"{gate}: {gate.measure} counts other queries on one side than on the other "
                f"({counted(len(only), 'query', 'queries')}: {listed(only)}), so that they cannot be "
                "compared query by query; gate it with a fixed target"
            )
        aside = (counts[0] | counts[1]) - frozenset(side.scores.query_ids)
        case = _paired(Case(gate, bench, side, base, reference, settled=settled, reading=note, aside=aside))
    if gate.options.by is None:
        return case
    parts = []
    for name, ids, every in slice_queries(side, gate.options, case.aside):
        part = replace(case, side=sliced(side, name, ids), slice=name, aside=case.aside & every)
        if case.reference is not None:
            part = _paired(replace(part, reference=sliced(case.reference, name, ids)))
        part = replace(part, decides=part.side.scores.n + len(part.aside) >= gate.options.min_n)
        if part.decides:
            for measured in filter(None, (part.side, part.reference)):
                refuse_unasked(measured)
        parts.append(part)
    return replace(case, parts=tuple(parts))


def _common(gate: Gate, side: Side, reference: Side, what: str) -> tuple[Side, Side]:
    """Both sides over the queries that have ``what`` on both: elsewhere one of them has nothing to compare."""
    ours, theirs = set(side.scores.query_ids), set(reference.scores.query_ids)
    if ours == theirs:
        return side, reference
    common = frozenset(ours & theirs)
    if not common:
        raise GateError(
            f"{gate}: of the queries with {what}, {len(ours)} in {side.label} and {len(theirs)} in {reference.label}, "
            "none has one on both sides: gate it with a fixed target"
        )
    said = "; ".join(
        f"{counted(len(only), 'query has', 'queries have')} {what} in {name} alone ({listed(sorted(only))})"
        for only, name in ((ours - theirs, side.label), (theirs - ours, reference.label))
        if only
    )
    inside = f"; {gate.measure.inner} against the same run counts them all" if gate.measure.inner is not None else ""
    note = (
        f"compared over the {counted(len(common), 'query', 'queries')} with {what} on both sides, and says nothing of "
        f"the others: {said}{inside}"
    )
    narrowed = [replace(each, evaluation=each.evaluation.narrowed(common), select=common) for each in (side, reference)]
    return replace(narrowed[0], notes=(*narrowed[0].notes, note)), narrowed[1]


def measure_candidate(measure: Measure, bench: Bench, options: Options, known: Known | None = None) -> Side:
    """The run under test, measured alone."""
    known = Known() if known is None else known
    return _measured([_candidate(measure, bench, options, known)], measure, bench, options, known)[0]


def _candidate(measure: Measure, bench: Bench, options: Options, known: Known) -> Opened:
    if measure not in known.opened:
        known.opened[measure] = open_candidate(measure, bench, options)
    return known.opened[measure]


def _measured(opened: Sequence[Opened], measure: Measure, bench: Bench, options: Options, known: Known) -> list[Side]:
    """The runs of a comparison, the candidate first: labelled together, then measured."""
    candidate = opened[0]
    if reads(measure) in OF_QUERIES:
        failed = frozenset(query for each in opened for query in each.failed)
        labels = no_labels(candidate.dataset, candidate.select, failed)
    elif not is_labelled(reads(measure)):
        labels = other_evidence(reads(measure), candidate.dataset, candidate.select, bench, options)
    else:
        labels = _labels(opened, measure, bench, options, known, candidate.select)
    before = known.sides.get(measure)
    try:
        if before is None or not labels.same_for(candidate.run, before.labels):
            known.sides[measure] = measure_side(candidate, labels, measure, options)
        return [known.sides[measure], *(measure_side(each, labels, measure, options) for each in opened[1:])]
    except GateError as error:
        if not labels.unjudged:
            raise
        gather_missing(labels, str(measure), candidate.dataset.name, bench)
        raise GateError(f"{error} {_missing(labels)} no judgment; judge them with: {labels.fill}") from None


def _missing(labels: Labels) -> str:
    total = len(labels.unjudged)
    return f"{counted(total, 'pair')} of query and document in the first ranks {'has' if total == 1 else 'have'}"


def _labels(
    opened: Sequence[Opened],
    measure: Measure,
    bench: Bench,
    options: Options,
    known: Known,
    select: frozenset[str] | None,
) -> Labels:
    return label_runs(
        opened[0].dataset,
        [each.run for each in opened],
        bench,
        options,
        depth=cutoff_of(measure),
        select=select,
        measure=measure,
        reading=known.sources.get(measure),
    )


def _settled(
    gate: Gate, bench: Bench, candidate: Opened, opened: Opened, known: Known, *, updated: bool
) -> tuple[Settled | None, str]:
    """What was settled before every query was read; and a note where every query is read all the same."""
    why = why_all(gate, bench, updated=updated)
    if why is not None:
        return None, why
    # One source for all blocks: what it has read it keeps for the comparison, whatever the cache does.
    reading = cast("Erag", source_of(ERAG, bench, gate.options))
    known.sources[gate.measure] = reading
    population = scorable(candidate.dataset, candidate.select, ERAG).query_ids
    if not frozenset(population) <= frozenset(opened.run.query_ids):
        return None, "early stopping: every query was read, since the other side lacks some of them"
    both = [candidate, opened]

    def differences(block: frozenset[str]) -> Mapping[str, float]:
        labels = _labels(both, gate.measure, bench, gate.options, known, block)
        after, before = (
            evaluate(
                labels.of(each.run), each.run, gate.measure, queries=each.dataset.queries, select=labels.select
            ).scores(gate.measure)
            for each in both
        )
        if after.query_ids != before.query_ids:
            return {}
        comparison = compared(gate, after.values, before.values, 0.0, 0.0)
        return dict(zip(after.query_ids, comparison.differences.tolist(), strict=True))

    reading.partial = True
    try:
        settled = until_settled(gate, population, differences)
    finally:
        reading.partial = False
    return settled, "" if settled else "early stopping: every query was read, and the rule decided"


def _narrowed(opened: Sequence[Opened], queries: frozenset[str]) -> list[Opened]:
    return [replace(each, select=queries) for each in opened]


def _keep_texts(base: Baseline, side: Side, bench: Bench) -> None:
    """A baseline that is written under labels that read texts keeps those of its top documents; under a measure of
    times, those of its queries.
    """
    if base.updated and reads(side.measure) == TIMES and hasattr(bench, "keep_times"):
        bench.keep_times(base, side.dataset)
    keep = getattr(bench, "keep_texts", None)
    if base.updated and keep is not None and side.labels.texts is not None:
        keep(base, side.dataset, side.labels.texts(side.run), {k: d() for k, d in side.labels.digests.items()})


def _paired(case: Case) -> Case:
    if case.reference is None:
        return case
    side, reference = case.side, case.reference
    new, old = side.scores, reference.scores
    comparison = compared(case.gate, new.values, old.values, side.mean, reference.mean, new.summary)
    return replace(case, comparison=comparison, test=comparison.test())


def _reference(gate: Gate, target: Target, bench: Bench, candidate: Opened) -> tuple[Baseline, Opened]:
    """The run on the right side, opened for the same slice."""
    reference = target.reference
    # Another run is held against on the same stages; a baseline has stages of its own.
    stages = candidate.stages
    if reference.kind == "baseline":
        if stages is not None:
            ours = stages
            stages = Stages(
                dict.fromkeys(ours),
                lambda stage, _: baseline_of(bench, candidate.dataset, reference.name, stage, ours[stage]).run,
            )
        base = baseline_of(bench, candidate.dataset, reference.name, gate.options.stage, candidate.given)
        label = f"baseline {shown(base.name)}"
    else:
        run = bench.run(candidate.dataset, reference.ref)
        base = Baseline(run, run.name or str(reference.ref))
        label = f"run {shown(base.name)}"
    dataset, select = candidate.dataset, candidate.select
    return base, open_run(dataset, base.run, gate.measure, gate.options, select, label, stages)
