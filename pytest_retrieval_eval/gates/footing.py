"""How much of what was looked at is judged: unequal footing, and gates that are left undecided for it."""

from __future__ import annotations

from dataclasses import replace

from pytest_retrieval_eval.gates.case import Case
from pytest_retrieval_eval.gates.diff import (
    TOLD,
    pairs_to_judge,
)
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.side import (
    Side,
)
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.measures.registry import definition
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import counted, means

# Fewer common queries say too little of the others: those are the very ones in which the sides differ most.
_COMPARED = 0.8


def with_footing(verdict: Verdict, side: Side) -> Verdict:
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


def compared_enough(verdict: Verdict, case: Case) -> Verdict:
    """Where the sides count different queries, a gate holds by what both have only if that is nearly all."""
    n, aside = case.side.scores.n, len(case.aside)
    if verdict.status not in ("passed", "weak") or n >= _COMPARED * (n + aside):
        return verdict
    what = definition(case.gate.measure.name).common
    inner = case.gate.measure.inner
    reason = (
        f"only {n:,} of the {counted(n + aside, 'query', 'queries')} that have {what} on either side have one on both, "
        f"and {100 * _COMPARED:g} % are needed: on those {verdict.reason}"
        + (f"; gate {inner}, which counts them all" if inner is not None else "")
    )
    return replace(verdict, status="inconclusive", reason=reason)


def all_judged(verdict: Verdict, case: Case) -> Verdict:
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


def judged_enough(verdict: Verdict, options: Options, side: Side) -> Verdict:
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
