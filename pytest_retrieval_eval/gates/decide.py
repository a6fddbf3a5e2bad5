"""From a gate and a bench to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.collection.stages import Stages
from pytest_retrieval_eval.errors import GateError, GateFailure, MeasureError
from pytest_retrieval_eval.gates.baselines import (
    MissingBaselineError,
    changes_since,
    described_dataset,
    described_run,
)
from pytest_retrieval_eval.gates.bench import Baseline, baseline_of
from pytest_retrieval_eval.gates.causes import causes_of_loss, causes_of_missing
from pytest_retrieval_eval.gates.corrections import Adjustment, adjustments
from pytest_retrieval_eval.gates.defaults import name_defaults, told_defaults
from pytest_retrieval_eval.gates.diff import (
    TOLD,
    changed_queries,
    is_small,
    missing_queries,
    pairs_to_judge,
    with_details,
)
from pytest_retrieval_eval.gates.early import Settled, until_settled, why_all
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.hints import other_forms
from pytest_retrieval_eval.gates.incomplete import comparison_hangs, mean_hangs, sides
from pytest_retrieval_eval.gates.labelling import label_runs, labels_text, no_labels, other_evidence, source_of
from pytest_retrieval_eval.gates.lost import lost_rows, stages_before, trail_of
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.rules import (
    Comparison,
    Ruling,
    check_alone,
    check_rule,
    compared,
    holds,
    in_unit,
    mean_reason,
    n_that_would_do,
    resolvable,
    rule_on,
    smallest_p,
)
from pytest_retrieval_eval.gates.side import (
    Opened,
    Side,
    cutoff_of,
    measure_side,
    open_candidate,
    open_run,
    refuse_unasked,
    where_text,
)
from pytest_retrieval_eval.gates.slices import of_slices, slice_notes, slice_queries, sliced
from pytest_retrieval_eval.gates.target import Target
from pytest_retrieval_eval.gates.timing import timing_notes
from pytest_retrieval_eval.gates.tojudge import gather, gather_missing
from pytest_retrieval_eval.gates.verdict import Interval, QueryDiff, Status, Verdict
from pytest_retrieval_eval.gates.wording import counted, listed, means, shown
from pytest_retrieval_eval.labels.scorable import scorable
from pytest_retrieval_eval.labels.source import ERAG
from pytest_retrieval_eval.measures.access import ACCESS
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.evidence import OF_QUERIES, TIMES, is_labelled
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import bounds, reads, unit
from pytest_retrieval_eval.stats.means import mean
from pytest_retrieval_eval.stats.paired import PairedTest
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.labelling import Labels
    from pytest_retrieval_eval.labels.erag import Erag
    from pytest_retrieval_eval.labels.source import LabelSource
    from pytest_retrieval_eval.measures.evaluate import TieInterval
    from pytest_retrieval_eval.stats import intervals as stats

# A passing gate that could not have seen a mean drop of this size is called weak (ini retrieval_weak_drop).
WEAK_DROP = 0.02
# Of a measure without a largest value, such as a time: the share of the baseline that should be seen.
WEAK_SHARE = 0.1
_LEVEL = 0.95
_CANNOT_FAIL = "weak: this gate cannot fail, since the worst value that the measure can have would pass as well"


@dataclass(slots=True)
class Known:
    """What was opened and measured of one candidate, for the next comparison of it.

    A side stands for the labels that it was measured on, and those may depend on what it is compared with.
    """

    opened: dict[Measure, Opened] = field(default_factory=dict)
    sides: dict[Measure, Side] = field(default_factory=dict)
    sources: dict[Measure, LabelSource] = field(default_factory=dict)


def check(gate: Gate, bench: Bench, known: Known | None = None) -> Verdict:
    """Decide ``gate``, record the verdict, and raise where it does not hold.

    ``known`` has the run under test where the caller has measured it already, and keeps it for the next time.
    Raises ``GateFailure`` with the bench's explanation for ``failed`` and ``inconclusive``; a ``GateError`` is
    recorded as an ``error`` verdict and raised on. Inside a family of the bench the verdict is collected instead.
    """
    __tracebackhide__ = True
    family = getattr(bench, "family", None)
    try:
        check_alone(gate)
        case = measured_case(gate, bench, known)
        verdict = decide_cases([case])[0]
        if family is not None:
            return cast("Verdict", family.collect([case], verdict))
    except GateError as error:
        name_defaults(error, gate.options.defaulted)
        record_error(str(gate), gate.measure, gate.operator, gate.options, bench, error)
        # Without the frames in between and its cause: the error is a sentence, and its place is the user's comparison.
        raise error.with_traceback(None) from None
    return concluded(verdict, bench)


def concluded(verdict: Verdict, bench: Bench) -> Verdict:
    """Record the verdict; ``GateFailure`` where the gate does not hold."""
    __tracebackhide__ = True
    bench.record(verdict)
    if not verdict.ok:
        raise GateFailure(bench.explain(verdict), verdict)
    return verdict


def record_error(text: str, measure: object, operator: str, options: Options, bench: Bench, error: GateError) -> None:
    """Record that a comparison was tried and nothing could be measured."""
    bench.record(
        Verdict(
            gate=text,
            status="error",
            reason=str(error),
            measure=str(measure),
            operator=operator,
            dataset=options.dataset or "",
            run=_name_of(options.run),
            labels=labels_text(options),
            where=where_text(options.where),
            stage=options.stage or "",
            rule=options.rule,
            alpha=options.alpha,
            missing_baseline=isinstance(error, MissingBaselineError),
        )
    )


def _name_of(run: object) -> str:
    return "" if run is None else str(getattr(run, "name", "") or run)


def decide(gate: Gate, bench: Bench, known: Known | None = None) -> Verdict:
    """The verdict on ``gate``; raises a ``GateError`` for what cannot be measured.

    Records nothing, but gives the pairs to judge to a bench that collects them.
    """
    __tracebackhide__ = True
    check_alone(gate)
    return decide_cases([measured_case(gate, bench, known)])[0]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A comparison with both sides measured and nothing decided.

    ``parts`` are the slices of a gate with ``by``; ``decides`` is False for one with too few queries. ``settled`` is
    the verdict of a gate that did not read every query; ``reading`` says why it did, where it might not have.
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
        if side.scores.query_ids != reference.scores.query_ids:
            only = sorted(set(side.scores.query_ids) ^ set(reference.scores.query_ids))
            raise GateError(
                f"{gate}: {gate.measure} counts other queries on one side than on the other "
                f"({counted(len(only), 'query', 'queries')}: {listed(only)}), so that they cannot be "
                "compared query by query; gate it with a fixed target"
            )
        case = _paired(Case(gate, bench, side, base, reference, settled=settled, reading=note))
    if gate.options.by is None:
        return case
    parts = []
    for name, ids in slice_queries(side, gate.options):
        part = replace(case, side=sliced(side, name, ids), slice=name)
        if case.reference is not None:
            part = _paired(replace(part, reference=sliced(case.reference, name, ids)))
        part = replace(part, decides=part.side.scores.n >= gate.options.min_n)
        if part.decides:
            for measured in filter(None, (part.side, part.reference)):
                refuse_unasked(measured)
        parts.append(part)
    return replace(case, parts=tuple(parts))


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


def decide_cases(cases: Sequence[Case], correction: str | None = None) -> list[Verdict]:
    """The verdicts on cases that are decided together, as one family of comparisons.

    Those that ``significant`` decides are adjusted among themselves, and decide by it; the others' adjusted
    p-values are only reported. ``correction`` None is the gates' own.
    """
    leaves = [leaf for case in cases for leaf in case.leaves if leaf.p is not None]
    method = correction or next((case.gate.options.correction for case in cases if case.gate.options.correction), None)
    found: dict[int, Adjustment | None] = {}
    for tests in (True, False):
        family = [leaf for leaf in leaves if (leaf.gate.options.rule == "significant") is tests]
        adjusted = adjustments(method or "holm", [leaf.p for leaf in family if leaf.p is not None])
        found |= {id(leaf): adjustment for leaf, adjustment in zip(family, adjusted, strict=True)}
    return [_verdict(case, found) for case in cases]


def _verdict(case: Case, found: Mapping[int, Adjustment | None], also: Side | None = None) -> Verdict:
    if case.comparison is None:
        verdict = _against_number(case, cast(float, case.gate.target), also)
    else:
        verdict = _against_run(case, case.comparison, found.get(id(case)), also)
    verdict = _all_judged(_judged_enough(verdict, case.gate.options, case.side), case)
    if also is None and case.gate.options.defaulted:
        # Whoever reads the verdict alone does not see the ini file.
        told = f"defaults of this project: {told_defaults(case.gate.options.defaulted)}"
        verdict = replace(verdict, notes=(*verdict.notes, told))
    if also is None:
        gather(verdict, case.side, case.bench)
    if not case.parts:
        return verdict
    slices = [_verdict(part, found, case.side) for part in case.parts]
    # Pairs of a query that does not count today are in no slice.
    return _all_judged(of_slices(verdict, slices, slice_notes(case.side, case.gate.options)), case)


def _common(case: Case) -> dict[str, Any]:
    gate, side = case.gate, case.side
    options, scores = gate.options, side.scores
    return {
        "gate": str(gate),
        "measure": str(gate.measure),
        "operator": gate.operator,
        "dataset": side.dataset.name,
        "run": side.run.name,
        "labels": _labels_of(side, options),
        "reader": dict(side.labels.reader()) if side.by_judgment else {},
        "where": side.where,
        "stage": options.stage or "",
        "rule": options.rule,
        "alpha": options.alpha,
        "allow": options.allow,
        "by": options.by if case.parts else None,
        "slice": case.slice,
        "decides": case.decides,
        "n": scores.n,
        "value": side.mean,
        "measured_in": unit(gate.measure),
        "cutoff": cutoff_of(gate.measure),
        "judged_k": side.judged_at.cutoff if side.by_judgment else None,
        "provenance": _provenance(case) if getattr(case.bench, "provenance", False) and not case.slice else {},
    }


def _labels_of(side: Side, options: Options) -> str:
    """The source of the labels; of other evidence its kind, and nothing where it is no labels."""
    if side.by_judgment:
        return labels_text(options)
    return side.evaluation.kind if side.evaluation.kind != ACCESS else ""


def _provenance(case: Case) -> dict[str, Any]:
    """Where the numbers come from, in builtin types; of a gate's slices it is the gate's own."""
    found = {"dataset": described_dataset(case.side.dataset, case.side.run), "run": described_run(case.side.run)}
    return found if case.reference is None else {**found, "reference": described_run(case.reference.run)}


def _against_number(case: Case, target: float, also: Side | None) -> Verdict:
    gate, side = case.gate, case.side
    scores, sign = side.scores, 1 if gate.operator in (">=", ">") else -1
    fine = holds(gate.operator, side.mean, target)
    notes = list(_side_notes(side, also))
    notes += [case.reading] if case.reading and also is None else []
    if gate.options.rule != "mean":
        notes.append(f"a fixed target is about the mean: rule={gate.options.rule!r} does not soften it")
    tied, interval = _ties(side), scores.summary.interval(scores.values, _LEVEL)
    if tied is not None and len({fine, *(holds(gate.operator, m, target) for m in _ends(tied))}) > 1:
        notes.append(_tie_note(tied, fine))
    status: Status = "passed" if fine else "failed"
    if _cannot_fail(gate, target):
        status = "weak"
        notes.append(_CANNOT_FAIL)
    notes += timing_notes(side, None) if also is None and reads(gate.measure) == TIMES else ()
    notes += mean_hangs(side, gate.operator, target)
    queries = missing_queries(side, target, sign)
    if not fine or is_small(side):
        queries = with_details(queries, side, None, titles=not fine)
    causes = () if fine or case.parts else causes_of_missing(side, target, sign, tied)
    missing = sign * (scores.values - target) < -TOLERANCE
    if not fine:
        queries, causes, more = _with_stages(case, queries, causes, missing, sign)
        notes += more
    low = int(missing.sum())
    high = int((sign * (scores.values - target) > TOLERANCE).sum())
    return Verdict(
        **_common(case),
        **sides(side, None),
        status=status,
        reason=mean_reason(gate.operator, side.mean, target, counted_in=unit(gate.measure)),
        target=target,
        interval=_interval(interval),
        worse=low,
        better=high,
        equal=scores.n - low - high,
        judged=(side.judged, None),
        ties=_ends(tied) if tied is not None else None,
        queries=queries,
        notes=tuple(notes),
        causes=causes,
    )


def _with_stages(
    case: Case, queries: tuple[QueryDiff, ...], causes: tuple[str, ...], lost: NDArray[np.bool_], sign: int
) -> tuple[tuple[QueryDiff, ...], tuple[str, ...], list[str]]:
    """The same queries and causes with the stages at which documents were lost; notes where that cannot be told."""
    side = case.side
    if sign < 0 or not side.by_judgment:
        return queries, causes, []
    try:
        before = stages_before(side, case.bench, case.gate.options)
    except Exception as error:  # of a user's fixture or file: the gate has failed already, which must not be hidden
        return queries, causes, [f"at which stage documents were lost is unknown: {error}"]
    trail = trail_of(side, before, case.gate.options)
    if trail is None:
        return queries, causes, []
    told = "" if case.parts else trail.counts(lost_rows(side, case.reference, lost))
    return trail.told(queries), (told, *causes) if told else causes, []


def _against_run(case: Case, comparison: Comparison, adjustment: Adjustment | None, also: Side | None) -> Verdict:
    gate, side, base, reference, test = case.gate, case.side, case.base, case.reference, case.test
    if base is None or reference is None or test is None or not isinstance(gate.target, Target):
        raise GateError(f"{gate} was not measured on both sides")  # cannot be: _paired has done so
    d = comparison.differences
    settled = case.settled
    ruling = rule_on(comparison, test, adjustment) if settled is None else Ruling(settled.holds, settled.reason)
    low, high = _loss_range(gate.measure, side, reference)
    largest = max(comparison.scale * high - low, TOLERANCE)
    level = _deciding_level(gate.options, adjustment)
    before = comparison.scale * comparison.before
    detectable = comparison.summary.detectable(comparison.after, before, level, largest)
    raw = comparison.summary.difference(comparison.after, before, 1, _LEVEL)
    sided = comparison.sided
    status: Status = "passed" if ruling.holds else "failed"
    notes = list(_side_notes(side, also))
    if also is None:
        notes += [f"{reference.label}: {note}" for note in _side_notes(reference, also=side)]
    if reference.stored is side.stored and not base.updated and also is None:
        notes.append("both sides are the same run")
    notes += [case.reading] if case.reading and also is None else []
    reason, new = ruling.reason, _new(reference)
    hangs = _hangs_on_new(comparison, reference, new, adjustment) if ruling.holds and not base.updated else None
    if hangs is not None:
        status, reason = "inconclusive", hangs
    if status == "passed" and settled is None:
        status, weakness = _weakness(comparison, detectable, case.bench)
        if _cannot_fail(gate, comparison.target):
            status, weakness = "weak", [_CANNOT_FAIL]
        notes += weakness
    if base.updated:
        status = "updated"
    tied, old_tied = _ties(side), _ties(reference)
    # The same ties on both sides are put in the same order: nothing hangs on them.
    both = () if _alike(tied, old_tied) else ((tied, side.label), (old_tied, reference.label))
    for ties, which in both:
        if ties is not None and not _same_over_ties(comparison, ties, ruling.holds, adjustment, own=ties is tied):
            notes.append(_tie_note(ties, ruling.holds, f" of {which}"))
    notes += timing_notes(side, reference) if also is None and reads(gate.measure) == TIMES else ()
    notes += comparison_hangs(side, reference, comparison, ruling.holds, adjustment)
    queries = changed_queries(side, reference, comparison.sign)
    bad = status in ("failed", "inconclusive")
    if bad or is_small(side, reference):
        queries = with_details(queries, side, reference, titles=bad)
    # What changed is the same for every slice, and costs a pass over the data.
    changes = (
        changes_since(reference.run, side.dataset, side.run, new=new, labels=side.labels.digests)
        if also is None
        else ()
    )
    causes = causes_of_loss(side, reference, comparison, tied, queries, changes) if bad and not case.parts else ()
    if bad:
        queries, causes, more = _with_stages(case, queries, causes, d < -TOLERANCE, comparison.sign)
        notes += more
    verdict = Verdict(
        **_common(case),
        **sides(side, reference),
        status=status,
        reason="the baseline was written from this run" if base.updated else reason,
        baseline=base.name,
        reference_kind=gate.target.reference.kind,
        scale=comparison.scale,
        sided=sided,
        margin=comparison.margin,
        target=comparison.target,
        reference=comparison.reference,
        # 0 + turns −0.0, which would be printed, into 0.0.
        delta=0.0 + comparison.value - comparison.scale * comparison.reference,
        interval=_interval(raw),
        bound=ruling.bound,
        p=test.p_worse if sided == "one" else test.p_two_sided,
        p_one_sided=test.p_worse,
        p_method=_method(test.method, test.resamples),
        smallest_p=smallest_p(test, sided),
        resolvable=resolvable(test, gate.options.alpha, sided, adjustment),
        p_adjusted=adjustment.of(test.p_worse if sided == "one" else test.p_two_sided) if adjustment else None,
        correction=adjustment.method if adjustment else None,
        detectable=detectable,
        detectable_at=level,
        worse=int((d < -TOLERANCE).sum()),
        better=int((d > TOLERANCE).sum()),
        equal=int((np.abs(d) <= TOLERANCE).sum()),
        judged=(side.judged, reference.judged),
        ties=_ends(tied) if tied is not None else None,
        queries=queries,
        notes=tuple(notes),
        baseline_changes=changes,
        causes=causes,
    )
    return _footing(verdict, side)


def _interval(found: stats.Interval | None) -> Interval | None:
    # 0 + turns −0.0, which would be printed, into 0.0.
    return None if found is None else Interval(0.0 + found.low, 0.0 + found.high, found.level, found.method)


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


def _new(reference: Side) -> list[str]:
    """The counted queries that a run has no line for."""
    absent = ~reference.evaluation.ranks.in_run
    ids = reference.qrels.query_ids
    found = [ids[row] for row in np.flatnonzero(absent).tolist()]
    return [query for query in found if reference.scores.get(query) is not None]


def _hangs_on_new(
    comparison: Comparison, reference: Side, new: Sequence[str], adjustment: Adjustment | None
) -> str | None:
    """Why a gate that holds is undecided: it does not on the queries that the baseline has, and the new ones, which
    count 0 there, make up for it.
    """
    target = comparison.gate.target
    kind = target.reference.kind if isinstance(target, Target) else ""
    if kind != "baseline" or not new or comparison.summary.statistic is not None:
        return None
    lacking = frozenset(new)
    kept = np.array([query not in lacking for query in reference.scores.query_ids], bool)
    if not kept.any():  # a slice that is too small to decide: any other is refused
        return None
    after, before = comparison.after[kept], comparison.before[kept]
    ruling = rule_on(compared(comparison.gate, after, before, mean(after), mean(before)), None, adjustment)
    if ruling.holds:
        return None
    return (
        f"on the {counted(len(after), 'query', 'queries')} that {reference.label} has, {ruling.reason}; "
        f"{counted(len(new), 'query', 'queries')} that it lacks, and that count 0 there, would make up for it: "
        "mend the loss, or save the baseline anew with all queries"
    )


def _method(method: str, resamples: int | None) -> str:
    return "exact" if resamples is None else f"Monte Carlo, {resamples:,} resamples"


def _loss_range(measure: Measure, side: Side, reference: Side) -> tuple[float, float]:
    """The least and the most that the measure can be; what is not bounded, from the values themselves."""
    low, high = bounds(measure)
    values = np.concatenate((side.scores.values, reference.scores.values))
    return (
        low if np.isfinite(low) else float(values.min()),
        high if np.isfinite(high) else float(values.max()),
    )


def _cannot_fail(gate: Gate, target: float) -> bool:
    """Whether the worst mean that the measure can have would hold as well."""
    low, high = bounds(gate.measure)
    return holds(gate.operator, low if gate.operator in (">=", ">") else high, target)


def _deciding_level(options: Options, adjustment: Adjustment | None) -> float:
    """The level at which a loss of this comparison alone would be found.

    Where a correction decides, that is alpha ÷ m, m the comparisons of the family: what Holm and Benjamini & Hochberg
    ask of the smallest p. Both ask less of the others once more of them lose, which nobody can count on beforehand.
    Under the other rules adjusted p-values decide nothing, and alpha stays.
    """
    decides = adjustment is not None and options.rule == "significant"
    return options.alpha / adjustment.size if decides and adjustment is not None else options.alpha


def _weakness(comparison: Comparison, detectable: float | None, bench: Bench) -> tuple[Status, list[str]]:
    """``passed`` or ``weak``: whether a drop that the gate is there for could have gone unseen."""
    needed = n_that_would_do(comparison)
    if needed is not None:
        n = len(comparison.after)
        return "weak", [
            f"weak: with {counted(n, 'query', 'queries')}, few of which lose, a loss of "
            f"{comparison.margin:g} that no query shows is not ruled out; {needed:,} queries would do"
        ]
    # Golden queries are looked at one by one: a drop of their mean is not what the rule is about.
    if comparison.gate.options.rule == "each" or detectable is None:
        return "passed", []
    counted_in = unit(comparison.gate.measure)
    limit = max(comparison.margin, float(getattr(bench, "weak_drop", WEAK_DROP)))
    if not np.isfinite(bounds(comparison.gate.measure)[1]):
        # What has no largest value is seen in parts of itself, and what the factor allows is no loss.
        allowed = comparison.margin + abs(comparison.scale - 1.0) * abs(comparison.reference)
        limit = max(allowed, WEAK_SHARE * abs(comparison.reference))
    if detectable <= limit + TOLERANCE:
        return "passed", []
    smallest, wanted = in_unit(counted_in, detectable, limit)
    what = "mean drop" if comparison.summary.statistic is None and not counted_in else "change"
    return "weak", [
        f"weak: a {what} of up to {smallest} could have gone unseen with this many queries, and {wanted} should be seen"
    ]


def _ties(side: Side) -> TieInterval | None:
    """How much hangs on ties; None where nothing does, or the measure cannot say."""
    try:
        tied = side.evaluation.ties(side.measure)
    except MeasureError:
        return None
    return tied if tied.matters else None


def _ends(tied: TieInterval) -> tuple[float, float]:
    return float(tied.minimum), float(tied.maximum)


def _alike(one: TieInterval | None, other: TieInterval | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one.low, other.low) and np.array_equal(one.high, other.high))


def _same_over_ties(
    comparison: Comparison, tied: TieInterval, fine: bool, adjustment: Adjustment | None, *, own: bool
) -> bool:
    """Whether the rule decides alike for the worst and the best order of one side's tied documents."""
    for values, end in ((tied.low, tied.minimum), (tied.high, tied.maximum)):
        ordered = (
            replace(comparison, after=values, value=end) if own else replace(comparison, before=values, reference=end)
        )
        if rule_on(ordered, None, adjustment).holds != fine:
            return False
    return True


def _tie_note(tied: TieInterval, fine: bool, which: str = "") -> str:
    low, high = means(*_ends(tied))
    return (
        f"ties: over the orders of documents with equal scores the mean{which} lies between {low} and "
        f"{high}, and the gate would {'fail' if fine else 'pass'} for some of them"
    )


def _side_notes(side: Side, also: Side | None = None) -> tuple[str, ...]:
    """What is worth saying about a run and what was counted; nothing that ``also`` has said."""
    counts, ranks, cutoff = side.evaluation.counts, side.evaluation.ranks, cutoff_of(side.measure)
    notes: list[str] = []
    lengths = ranks.returned[ranks.returned > 0]
    if side.run.depth is None and cutoff is not None and len(lengths):
        shortest, longest = int(lengths.min()), int(lengths.max())
        if shortest == longest < cutoff and len(lengths) > 1:
            # The retriever may have no more, or was asked for too few: nobody declared which.
            counts = replace(counts, short=())
            notes.append(
                f"every list ends at rank {longest}, and {side.measure} looks at {cutoff}: the run declares no depth"
            )
    notes += side.notes
    notes += side.labels.notes
    notes += counts.notes()
    forms = other_forms(side.qrels, side.run) if side.by_judgment else None
    notes += [forms] if forms else []
    notes += side.dataset.warnings
    notes += [warning for warning in side.evaluation.warnings if warning not in notes]
    told = set(_side_notes(also)) if also is not None else set()
    return tuple(note for note in (shown(note, 300) for note in notes) if note not in told)


def _footing(verdict: Verdict, side: Side) -> Verdict:
    """Where the candidate's judged@k falls below the other side's, say so and list what to judge."""
    after, before = verdict.judged
    if after is None or before is None or after >= before - TOLERANCE:
        return verdict
    new, old = means(after, before, digits=2)
    pairs, total = pairs_to_judge(side, (query.query_id for query in verdict.queries), side.judged_at.cutoff or 1)
    note = (
        f"unequal footing: {side.judged_at} fell from {old} to {new}, so that the run under test may be "
        f"better than measured; {counted(total, 'pair')} to judge"
    )
    return replace(verdict, notes=(*verdict.notes, note), to_judge=pairs, to_judge_total=total)


def _all_judged(verdict: Verdict, case: Case) -> Verdict:
    """Under labels that can be made, a document in the top k of either run without one leaves the gate undecided.

    Unless the gate says itself how much is enough (``judged=0.9``), or measures how much is judged.
    """
    side = case.side
    measured = case.gate.measure.innermost.name in ("judged", "unjudged")
    if measured or case.gate.options.judged is not None or verdict.status == "updated":
        return verdict
    found = [pair for pair in side.labels.unjudged if side.select is None or pair.query_id in side.select]
    if not found:
        return verdict
    has = "has" if len(found) == 1 else "have"
    where = "the run" if case.reference is None else "either run"
    reason = (
        f"{_judged_words(side)}{counted(len(found), 'pair')} in the first {side.judged_at.cutoff} ranks of {where} "
        f"{has} no judgment; judge them with: {side.labels.fill}"
    )
    pairs = tuple((pair.query_id, pair.doc_id) for pair in found[:TOLD])
    return replace(verdict, status="inconclusive", reason=reason, to_judge=pairs, to_judge_total=len(found))


def _judged_words(side: Side) -> str:
    return "" if side.judged is None else f"{side.judged_at} is {means(side.judged, 1.0, digits=2)[0]}: "


def _judged_enough(verdict: Verdict, options: Options, side: Side) -> Verdict:
    """``judged=0.9``: below it nothing is decided."""
    if options.judged is None or verdict.status == "updated":
        return verdict
    after = verdict.judged[0]
    if after is not None and after >= options.judged - TOLERANCE:
        return verdict
    pairs, total = verdict.to_judge, verdict.to_judge_total
    if not total:
        pairs, total = pairs_to_judge(side, (query.query_id for query in verdict.queries), side.judged_at.cutoff or 1)
    found = "undefined" if after is None else means(after, options.judged, digits=2)[0]
    reason = f"{side.judged_at} is {found} and should be at least {options.judged:g}; {counted(total, 'pair')} to judge"
    return replace(verdict, status="inconclusive", reason=reason, to_judge=pairs, to_judge_total=total)
