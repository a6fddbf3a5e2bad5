"""A gate for the queries of each value of a tag: which queries those are, and what they say together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.side import Side, value_names
from pytest_retrieval_eval.gates.verdict import Status, Verdict
from pytest_retrieval_eval.wording import counted, listed, shown

# The worst first.
_ORDER: tuple[Status, ...] = ("failed", "inconclusive", "weak", "passed", "updated")


def slice_queries(
    side: Side, options: Options, aside: frozenset[str] = frozenset()
) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """``tag=value``, its counted queries and all of its queries, for every value that any counted one has.

    A list is all of its values: such a query stands in several slices. An unknown tag, slices that are all below
    ``min_n``, and one that would be large enough, but has nothing except queries of ``aside``, are a ``GateError``.
    """
    every = _slices(side, options)
    found = [each for each in every if each[1]]
    tag = shown(str(options.by), 40)
    if not found:
        raise GateError(
            f"by={tag!r}: none of the {counted(side.scores.n, 'counted query', 'counted queries')} of "
            f"{shown(side.dataset.name)} has a value of this tag; nothing can be sliced"
        )
    name, largest, _ = max(found, key=lambda each: len(each[1]))
    if len(largest) < options.min_n:
        raise GateError(
            f"by={tag!r}: every slice has fewer than {counted(options.min_n, 'counted query', 'counted queries')} "
            f"(the largest, {name}, has {len(largest)}), so that none decides anything; lower min_n, or leave by out"
        )
    for name, ids, all_of_it in every:
        if not ids and len(lost := aside & all_of_it) >= options.min_n:
            raise GateError(
                f"by={tag!r}: none of the {counted(len(lost), 'query', 'queries')} of {name} that count on one side "
                f"counts on both ({listed(sorted(lost))}), so that nothing of this slice can be compared"
            )
    return found


def _slices(side: Side, options: Options) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    tag, queries = str(options.by), side.dataset.queries
    counted_ids = frozenset(side.scores.query_ids)
    parts = queries.parts_of(tag)
    names = value_names(tag, map(json.loads, parts))
    return [(name, counted_ids.intersection(every), every) for name, every in zip(names, parts.values(), strict=True)]


def sliced(side: Side, name: str, ids: frozenset[str]) -> Side:
    """One side, for these queries alone; nothing is located again."""
    return replace(
        side, evaluation=side.evaluation.narrowed(ids), select=ids, where=", ".join(filter(None, (side.where, name)))
    )


def slice_notes(side: Side, options: Options) -> list[str]:
    """The queries that stand in no slice, and those that stand in several."""
    tag, notes = shown(str(options.by), 40), []
    times = dict.fromkeys(side.scores.query_ids, 0)
    for _, ids, _ in _slices(side, options):
        for query_id in ids:
            times[query_id] += 1
    without = [query_id for query_id, n in times.items() if n == 0]
    several = [query_id for query_id, n in times.items() if n > 1]
    if without:
        what = counted(len(without), "query has", "queries have")
        notes.append(
            f"{what} no value of {tag}, and {'is' if len(without) == 1 else 'are'} in no slice: {listed(without)}"
        )
    if several:
        what = counted(len(several), "query has several values", "queries have several values")
        notes.append(f"{what} of {tag}, and count{'s' if len(several) == 1 else ''} in each: {listed(several)}")
    return notes


def worst_status(statuses: Iterable[Status]) -> Status:
    """What several verdicts come to: the worst of their statuses.

    >>> worst_status(["passed", "weak", "passed"])
    'weak'
    """
    return min(statuses, key=_ORDER.index)


def of_slices(whole: Verdict, slices: Sequence[Verdict], notes: Sequence[str]) -> Verdict:
    """The verdict of a gate with ``by``: ``whole``, the same comparison over all queries, decides nothing."""
    sign = 1 if whole.operator in (">=", ">") else -1
    ordered = sorted(
        slices,
        key=lambda each: (not each.decides, _ORDER.index(each.status), sign * ((each.value or 0) - (each.target or 0))),
    )
    deciding = [each for each in ordered if each.decides]
    status = worst_status(each.status for each in deciding)
    worst = [each for each in deciding if each.status == status]
    kept = [note for note in whole.notes if not note.startswith(("weak: ", "ties: "))]
    details = {query.query_id: query for each in slices for query in each.queries}
    return replace(
        whole,
        status=status,
        reason=_reason(status, worst, deciding, slices),
        slices=tuple(ordered),
        notes=(*kept, *notes),
        queries=tuple(details.get(query.query_id, query) for query in whole.queries),
    )


def _reason(status: Status, worst: Sequence[Verdict], deciding: Sequence[Verdict], slices: Sequence[Verdict]) -> str:
    small = len(slices) - len(deciding)
    aside = f" ({small} more {'is' if small == 1 else 'are'} too small to decide)" if small else ""
    if status == "updated":
        return worst[0].reason
    of = f"{len(worst)} of {counted(len(deciding), 'slice')}" if len(worst) < len(deciding) else ""
    some = of or ("the only slice" if len(deciding) == 1 else f"all {counted(len(deciding), 'slice')}")
    if status in ("passed", "weak"):
        all_hold = "the only slice holds" if len(deciding) == 1 else f"all {counted(len(deciding), 'slice')} hold"
        weak = f", {len(worst)} of them weak" if status == "weak" else ""
        return f"{all_hold}{weak}{aside}"
    verb = {"failed": "fail", "inconclusive": "cannot be decided"}[status]
    if status == "failed" and (len(worst) == 1):
        verb = "fails"
    return f"{some} {verb}: {'; '.join(_said(each) for each in worst[:3])}{_more(len(worst) - 3)}{aside}"


def _said(verdict: Verdict) -> str:
    return f"{verdict.slice}, {verdict.reason}"


def _more(n: int) -> str:
    return f" and {n} more" if n > 0 else ""
