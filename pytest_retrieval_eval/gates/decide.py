"""From a gate and a bench to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.collection.hints import other_forms
from pytest_retrieval_eval.errors import GateError, GateFailure
from pytest_retrieval_eval.gates.baselines import (
    MissingBaselineError,
    changes_since,
    described_dataset,
    described_run,
)
from pytest_retrieval_eval.gates.case import Case, Known, measured_case
from pytest_retrieval_eval.gates.corrections import Adjustment, adjustments
from pytest_retrieval_eval.gates.defaults import name_defaults, told_defaults
from pytest_retrieval_eval.gates.diff import (
    changed_queries,
    is_small,
    missing_queries,
    with_details,
)
from pytest_retrieval_eval.gates.footing import all_judged, compared_enough, judged_enough, with_footing
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.incomplete import comparison_hangs, mean_hangs, sides
from pytest_retrieval_eval.gates.labelling import labels_text
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.rules import (
    Comparison,
    Ruling,
    check_alone,
    compared,
    holds,
    mean_reason,
    resolvable,
    rule_on,
    smallest_p,
)
from pytest_retrieval_eval.gates.side import (
    Side,
    cutoff_of,
    where_text,
)
from pytest_retrieval_eval.gates.slices import of_slices, slice_notes
from pytest_retrieval_eval.gates.target import Target
from pytest_retrieval_eval.gates.tied import alike, ends, same_over_ties, tie_note, ties_of
from pytest_retrieval_eval.gates.timing import timing_notes
from pytest_retrieval_eval.gates.tojudge import gather
from pytest_retrieval_eval.gates.verdict import Interval, QueryDiff, Status, Verdict
from pytest_retrieval_eval.gates.weakness import CANNOT_FAIL, cannot_fail, deciding_level, loss_range, weakness
from pytest_retrieval_eval.measures.evidence import TIMES
from pytest_retrieval_eval.measures.registry import measured_in, reads
from pytest_retrieval_eval.stats.means import mean
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import counted, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.stats import intervals as stats

_LEVEL = 0.95


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
    verdict = compared_enough(verdict, case)
    verdict = all_judged(judged_enough(verdict, case.gate.options, case.side), case)
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
    whole = of_slices(verdict, slices, slice_notes(case.side, case.gate.options))
    return all_judged(compared_enough(whole, case), case)


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
        "measured_in": measured_in(gate.measure),
        "cutoff": cutoff_of(gate.measure),
        "judged_k": side.judged_at.cutoff if side.by_judgment else None,
        "provenance": _provenance(case) if getattr(case.bench, "provenance", False) and not case.slice else {},
    }


def _labels_of(side: Side, options: Options) -> str:
    """The source of the labels; of other evidence its kind, and nothing where it is no labels."""
    if side.by_judgment:
        return labels_text(options)
    return "" if side.by_access else side.evaluation.kind


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
    tied, interval = ties_of(side), scores.summary.interval(scores.values, _LEVEL)
    if tied is not None and len({fine, *(holds(gate.operator, m, target) for m in ends(tied))}) > 1:
        notes.append(tie_note(tied, fine))
    status: Status = "passed" if fine else "failed"
    if cannot_fail(gate, target):
        status = "weak"
        notes.append(CANNOT_FAIL)
    notes += timing_notes(side, None) if also is None and reads(gate.measure) == TIMES else ()
    notes += mean_hangs(side, gate.operator, target)
    queries = missing_queries(side, target, sign)
    if not fine or is_small(side):
        queries = with_details(queries, side, None, titles=not fine)
    causes: tuple[str, ...] = ()
    missing = sign * (scores.values - target) < -TOLERANCE
    if not fine:
        from pytest_retrieval_eval.gates.causes import causes_of_missing  # what a gate that holds does not need

        causes = () if case.parts else causes_of_missing(side, target, sign, tied)
        queries, causes, more = _with_stages(case, queries, causes, missing, sign)
        notes += more
    low = int(missing.sum())
    high = int((sign * (scores.values - target) > TOLERANCE).sum())
    return Verdict(
        **_common(case),
        **sides(side, None),
        status=status,
        reason=mean_reason(gate.operator, side.mean, target, counted_in=measured_in(gate.measure)),
        target=target,
        interval=_interval(interval),
        worse=low,
        better=high,
        equal=scores.n - low - high,
        judged=(side.judged, None),
        ties=ends(tied) if tied is not None else None,
        queries=queries,
        notes=tuple(notes),
        causes=causes,
    )


def _with_stages(
    case: Case, queries: tuple[QueryDiff, ...], causes: tuple[str, ...], lost: NDArray[np.bool_], sign: int
) -> tuple[tuple[QueryDiff, ...], tuple[str, ...], list[str]]:
    """The same queries and causes with the stages at which documents were lost; notes where that cannot be told."""
    from pytest_retrieval_eval.gates.lost import lost_rows, stages_before, trail_of

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
    low, high = loss_range(gate.measure, side, reference)
    largest = max(comparison.factor * high - low, TOLERANCE)
    level = deciding_level(gate.options, adjustment)
    before = comparison.factor * comparison.before
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
        status, weak = weakness(comparison, detectable, case.bench)
        if cannot_fail(gate, comparison.target):
            status, weak = "weak", [CANNOT_FAIL]
        notes += weak
    if base.updated:
        status = "updated"
    tied, old_tied = ties_of(side), ties_of(reference)
    # The same ties on both sides are put in the same order: nothing hangs on them.
    both = () if alike(tied, old_tied) else ((tied, side.label), (old_tied, reference.label))
    for ties, which in both:
        if ties is not None and not same_over_ties(comparison, ties, ruling.holds, adjustment, own=ties is tied):
            notes.append(tie_note(ties, ruling.holds, f" of {which}"))
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
    causes: tuple[str, ...] = ()
    if bad:
        from pytest_retrieval_eval.gates.causes import causes_of_loss

        causes = () if case.parts else causes_of_loss(side, reference, comparison, tied, queries, changes)
        queries, causes, more = _with_stages(case, queries, causes, d < -TOLERANCE, comparison.sign)
        notes += more
    verdict = Verdict(
        **_common(case),
        **sides(side, reference),
        status=status,
        reason="the baseline was written from this run" if base.updated else reason,
        baseline=base.name,
        reference_kind=gate.target.reference.kind,
        factor=comparison.factor,
        sided=sided,
        margin=comparison.margin,
        target=comparison.target,
        reference=comparison.reference,
        # 0 + turns −0.0, which would be printed, into 0.0.
        delta=0.0 + comparison.value - comparison.factor * comparison.reference,
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
        ties=ends(tied) if tied is not None else None,
        queries=queries,
        notes=tuple(notes),
        baseline_changes=changes,
        causes=causes,
    )
    return with_footing(verdict, side)


def _interval(found: stats.Interval | None) -> Interval | None:
    # 0 + turns −0.0, which would be printed, into 0.0.
    return None if found is None else Interval(0.0 + found.low, 0.0 + found.high, found.level, found.method)


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
