"""A judge held against people, as a verdict like that of any gate, and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.decide import concluded, record_error
from pytest_retrieval_eval.gates.families import family_verdict
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.side import where_text
from pytest_retrieval_eval.gates.verdict import Interval, Verdict
from pytest_retrieval_eval.wording import counted, ends, fixed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.stats import Interval as Ends
    from pytest_retrieval_eval.studies.judge_validation import Checked, JudgeValidation


def check_judge(
    text: str,
    bench: Bench,
    validate: Callable[[], tuple[str, JudgeValidation]],
    where: Mapping[str, object] | None = None,
) -> Verdict:
    """Validate a judge as a gate: record the verdict, raise GateFailure where it is not to be believed.

    ``where`` are the tags of the queries that it is about. What cannot be measured is recorded as an error, and the
    GateError raised on.
    """
    __tracebackhide__ = True
    try:
        name, found = validate()
        verdict = judge_verdict(found, name, where)
    except GateError as error:
        record_error(text, "tpr, tnr, kappa", ">=", Options(where=where), bench, error)
        raise error.with_traceback(None) from None
    return concluded(verdict, bench)


def judge_verdict(found: JudgeValidation, judge: str, where: Mapping[str, object] | None = None) -> Verdict:
    """The verdict on a judge: of TPR, TNR and kappa, each against its threshold.

    ``weak`` is a judge that passes although the interval of a figure has its threshold inside.
    """
    members = [_member(each, found) for each in found.checks]
    whole = family_verdict(members)
    status = whole.status if found.ok else found.status
    return replace(
        whole,
        gate="judge: " + ", ".join(member.gate for member in members),
        status=status,
        reason=found.reason if status != "weak" else f"{found.reason}; underpowered: {underpowered(found)}",
        run="",
        dataset="",
        labels=f"judge {judge}",
        where=where_text(where),
        n=found.n,
        notes=tuple(notes(found)),
    )


def _member(each: Checked, found: JudgeValidation) -> Verdict:
    wrong = {"tpr": found.false_negative, "tnr": found.false_positive}
    bad = wrong.get(each.name, found.false_negative + found.false_positive)
    held, threshold = each.value, f"{each.threshold:g}"
    if found.requirements.mode == "lower":
        held = each.interval.low
    what = "the value" if found.requirements.mode == "point" else "the lower end"
    status = "failed" if not each.holds else "weak" if each.underpowered else "passed"
    if found.status == "inconclusive" and each.holds:
        status = "inconclusive"
    side = "reaches" if each.holds else "is below"
    reason = f"{what}, {fixed(held)}, {side} {threshold}" + (", underpowered" if each.underpowered else "")
    return Verdict(
        gate=f"{each.name} >= {threshold}",
        status=status,  # type: ignore[arg-type]
        reason=reason,
        measure=each.name,
        operator=">=",
        labels="",
        n=each.n,
        value=each.value,
        target=each.threshold,
        interval=Interval(each.interval.low, each.interval.high, each.interval.level, each.interval.method),
        worse=bad,
        better=each.n - bad,
    )


def underpowered(found: JudgeValidation) -> str:
    """Of which figures the interval has the threshold inside."""
    names = [each.name for each in found.checks if each.underpowered]
    return f"the {'interval' if len(names) == 1 else 'intervals'} of {', '.join(names)} span the threshold"


def notes(found: JudgeValidation) -> list[str]:
    """What to know about a validation, a sentence each."""
    lines = [
        f"{found.relevant} of {counted(found.n, 'pair')} are relevant from grade {found.rel:g} on "
        f"({100 * found.prevalence:.0f} %)",
        f"a judge whose TPR and TNR are .90 passes with such a sample in {100 * found.chance:.0f} % of cases",
    ]
    if found.pool_prevalence is not None and found.pool_kappa is not None and found.pool_kappa_interval is not None:
        lines.append(
            f"about {100 * found.pool_prevalence:.0f} % of the pool are relevant; there kappa is "
            f"{fixed(found.pool_kappa)} {_ends(found.pool_kappa_interval)}"
        )
    if found.not_relevant < 50:
        lines.append(f"{found.not_relevant} pairs that are not relevant are few: 50 say more of TNR")
    if found.missing:
        query, doc = found.missing[0]
        lines.append(
            f"{counted(len(found.missing), 'pair')} without a grade of the judge left out, the first is query "
            f"{shown(query, 40)}, document {shown(doc, 40)}"
        )
    return [*lines, *found.notes]


def validation_text(found: JudgeValidation, judge: str, where: Mapping[str, object] | None = None) -> str:
    """A validation as a table and what to know about it."""
    rows = ["figure\tvalue\tlow\thigh\tthreshold\tn\tholds"]
    for each in found.checks:
        holds = ("yes" if each.holds else "no") + (", underpowered" if each.underpowered else "")
        low, high = each.interval.low, each.interval.high
        rows.append(f"{each.name}\t{each.value:.3f}\t{low:.3f}\t{high:.3f}\t{each.threshold:g}\t{each.n}\t{holds}")
    about = f" where {where_text(where)}" if where else ""
    rows.append(f"judge {shown(judge, 60)}{about}: {found.status}. {found.reason}")
    return "\n".join([*rows, *notes(found)]) + "\n"


def _ends(interval: Ends) -> str:
    return ends(interval.low, interval.high)
