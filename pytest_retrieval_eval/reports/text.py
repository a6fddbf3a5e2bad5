"""A verdict as plain text: the headline, the evidence line, what to know, and the queries that changed.

Nothing is computed here that a verdict does not carry. Lines are meant for 110 columns; ids, texts and
titles come from users and are escaped.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_retrieval_eval.collection.queries import json_word
from pytest_retrieval_eval.gates.corrections import NAMES as CORRECTIONS
from pytest_retrieval_eval.gates.rules import in_unit
from pytest_retrieval_eval.gates.verdict import Holding, Move, QueryDiff, SpanChange, Verdict
from pytest_retrieval_eval.reports.doubts import doubts
from pytest_retrieval_eval.reports.spread import spread_lines
from pytest_retrieval_eval.wording import aligned, counted, means, number, p_text, shown, with_sign

WIDTH = 110
# How many lines each query, and the list of pairs to judge, may take.
_MOVES, _INTRUDERS, _PAIRS = 4, 3, 6
# How many lines the causes may take, how many slices are listed, and how many of the failed ones are told.
_CAUSE_LINES, _SLICES, _WORST = 10, 20, 3


def headline(verdict: Verdict) -> str:
    """The verdict in one sentence: what was expected, what was measured, of what.

    >>> headline(Verdict("mrr >= 0.8", "failed", "0.712 is below 0.800", "mrr", ">=", dataset="handbook"))
    'mrr >= 0.8: FAILED. 0.712 is below 0.800 (handbook)'
    """
    about = [shown(verdict.dataset, 40)] if verdict.dataset else []
    if verdict.where:
        about.append(f"where {shown(verdict.where, 60)}")
    if verdict.unit:
        about.append(f"unit {verdict.unit}")
    if verdict.labels not in ("", "qrels") and verdict.status != "error":
        about.append(f"labels {shown(verdict.labels, 60)}{_reader(verdict)}")
    if verdict.label_scale != "levels":
        about.append(f"labels on the {verdict.label_scale} scale")
    if verdict.stage:
        about.append(f"stage {shown(verdict.stage, 40)}")
    elif verdict.run:
        about.append(f"run {shown(verdict.run, 40)}")
    if verdict.baseline:
        kind = "baseline" if verdict.reference_kind == "baseline" else "against"
        about.append(f"{kind} {shown(verdict.baseline, 40)}")
    tail = f" ({', '.join(about)})" if about else ""
    reason = shown(verdict.reason, 2000).rstrip(".")
    return f"{shown(verdict.gate, 100)}: {verdict.status.upper()}. {reason}{tail}"


def _reader(verdict: Verdict) -> str:
    """Who read, in the words that `pytest-retrieval-eval cache stats` has for it."""
    who = verdict.reader
    if not who:
        return ""
    named = " ".join(shown(text, 40) for text in (who["kind"], who["model"]) if text)
    return f" by the reader {named} {who['digest'].removeprefix('sha256:')[:12]}"


def summary_line(verdict: Verdict) -> str:
    """The gate and its reason, short enough for one line of a list."""
    return f"{shown(verdict.gate, 60)}: {shown(verdict.reason, 100)}"


def evidence(verdict: Verdict) -> list[str]:
    """The evidence lines; none for an error, which has measured nothing."""
    if verdict.value is None:
        return []
    return _evidence_of_mean(verdict) if verdict.reference is None else _evidence_of_pair(verdict)


def _evidence_of_pair(verdict: Verdict) -> list[str]:
    value, reference = verdict.value or 0.0, verdict.reference or 0.0
    before, after = in_unit(verdict.measured_in, reference, value)
    first = [f"{verdict.measure}  {before} → {after}"]
    if verdict.delta is not None:
        of = f" to {number(verdict.factor)} · {verdict.reference_kind}" if verdict.factor != 1.0 else ""
        effect = f"Δ{of} {_difference(verdict.delta, verdict.measured_in)}"
        if verdict.interval is not None:
            low, high, level, method = verdict.interval
            ends = [_difference(end, verdict.measured_in) for end in (low, high)]
            effect += f"  {100 * level:g} % CI [{ends[0]}, {ends[1]}] ({method})"
        first.append(effect)
    if verdict.p is not None:
        first.append(f"p = {p_text(verdict.p)} {verdict.sided}-sided (paired randomization, {verdict.p_method})")
    if verdict.p_adjusted is not None and verdict.correction is not None:
        first.append(f"adjusted {p_text(verdict.p_adjusted)} ({CORRECTIONS[verdict.correction]})")
    second = [f"{verdict.worse} worse · {verdict.better} better · {verdict.equal} equal of {verdict.n}"]
    if verdict.identical:
        second[0] += ": identical"
    if verdict.detectable is not None:
        at = _share(verdict.alpha if verdict.detectable_at is None else verdict.detectable_at)
        what = "change" if verdict.measured_in else "drop"
        smallest = _plain(verdict.detectable, verdict.measured_in)
        second.append(f"smallest detectable {what} {smallest} (80 % power, one-sided {at})")
    old, new = verdict.judged[1], verdict.judged[0]
    if old is not None or new is not None:
        second.append(f"judged@{verdict.judged_k} {' → '.join(_judged(old, new))}")
    return ["   ".join(first), "   ".join(second), *doubts(verdict)]


def _evidence_of_mean(verdict: Verdict) -> list[str]:
    value = verdict.value or 0.0
    target = verdict.target if verdict.target is not None else value
    first = [f"{verdict.measure}  {in_unit(verdict.measured_in, value, target)[0]}"]
    if verdict.interval is not None:
        low, high, level, method = verdict.interval
        ends = [_plain(end, verdict.measured_in) for end in (low, high)]
        first.append(f"{100 * level:g} % CI [{ends[0]}, {ends[1]}] ({method})")
    first.append(f"n = {verdict.n}")
    wrong, right = ("below", "above") if verdict.operator in (">=", ">") else ("above", "below")
    second = [f"{verdict.worse} {wrong} · {verdict.better} {right} · {verdict.equal} at the target"]
    if verdict.judged[0] is not None:
        second.append(f"judged@{verdict.judged_k} {verdict.judged[0]:.2f}")
    return ["   ".join(first), "   ".join(second), *doubts(verdict)]


def explain(verdict: Verdict, limit: int | None = 15, *, in_python: bool = True, spread: bool = False) -> str:
    """The whole text of a verdict, as a failing gate raises it.

    ``limit`` is the number of queries shown, worst first; None shows all of them, and those that got better
    too. ``in_python`` adds how to write comparisons in Python, where a failure may come from there;
    ``spread`` how the values of the queries lie behind the means.
    """
    lines = [headline(verdict)]
    told = evidence(verdict)
    if verdict.slices:
        lines += [("all: " if place == 0 else "     ") + line for place, line in enumerate(told)]
        lines += _slices(verdict, limit)
    else:
        lines += told
    if spread:
        lines += spread_lines(verdict)
    for change in verdict.baseline_changes:
        lines += _wrapped("changed: ", change)
    for note in verdict.notes:
        lines += _wrapped("note: ", note)
    if verdict.to_judge:
        lines += _wrapped("to judge: ", _pairs(verdict.to_judge, verdict.to_judge_total))
    lines += _causes(verdict)
    if verdict.slices:
        lines += _worst_slices(verdict, limit)
    elif verdict.members:
        lines += _members(verdict, limit)
    else:
        lines += _diff(verdict, limit)
    fixed = verdict.reference is None and not verdict.members
    if in_python and verdict.status == "failed" and (fixed or verdict.operator in ("<", "<=")):
        lines += _wrapped(
            "",
            "(a comparison raises where it does not hold, also under `not` and `if`: compare it directly; "
            "for a plain number without a gate use evaluate(…))",
        )
    return "\n".join(lines)


def _causes(verdict: Verdict) -> list[str]:
    """What the lost queries have in common, ten lines at most."""
    lines: list[str] = []
    for cause in verdict.causes:
        more = _wrapped("  - ", cause, indent=4)
        if len(lines) + len(more) < _CAUSE_LINES:
            lines += more
    which = "the lost queries" if verdict.reference is not None else "the queries that miss the target"
    return [f"what {which} have in common:", *lines] if lines else []


def _slices(verdict: Verdict, limit: int | None) -> list[str]:
    """A line for each slice, the worst first."""
    told = verdict.slices if limit is None else verdict.slices[: max(limit, _SLICES)]
    lines = ["  " + line for line in aligned([_slice(each) for each in told], gap="   ")]
    adjusted = next((each for each in verdict.slices if each.p_adjusted is not None), None)
    by = f"by {shown(verdict.by or '', 40)}"
    if adjusted is not None and adjusted.correction is not None:
        size = sum(each.p_adjusted is not None for each in verdict.slices)
        by += f", p adjusted by {CORRECTIONS[adjusted.correction]} over {counted(size, 'slice')}"
        if verdict.rule != "significant":
            by += " (reported only)"
    rest = len(verdict.slices) - len(told)
    return [f"{by}:", *lines, *([f"  … and {counted(rest, 'more slice')}"] if rest else [])]


def _slice(verdict: Verdict) -> list[str]:
    status = verdict.status if verdict.decides else "too few"
    row = [status, shown(verdict.slice, 40), f"n = {verdict.n}"]
    value = verdict.value or 0.0
    if verdict.reference is None:
        row.append(means(value, verdict.target if verdict.target is not None else value)[0])
        return row
    before, after = means(verdict.reference, value)
    row += [f"{before} → {after}", f"Δ {_difference(verdict.delta or 0.0)}"]
    p = "" if verdict.p is None else f"p = {p_text(verdict.p)}"
    if verdict.p_adjusted is not None:
        p += f", adjusted {p_text(verdict.p_adjusted)}"
    return [*row, p]


def _worst_slices(verdict: Verdict, limit: int | None) -> list[str]:
    """The evidence and the queries of the slices that do not hold."""
    bad = [each for each in verdict.slices if each.decides and not each.ok]
    told = bad if limit is None else bad[:_WORST]
    lines: list[str] = []
    for each in told:
        lines += ["", f"{shown(each.slice, 60)}: {each.status.upper()}. {shown(each.reason, 2000)}", *evidence(each)]
        for note in each.notes:
            lines += _wrapped("note: ", note)
        lines += [*_causes(each), *_diff(each, _share_of(limit, len(told)))]
    if len(bad) > len(told):
        rest = counted(len(bad) - len(told), "more slice does", "more slices do")
        lines += ["", f"… and {rest} not hold: run with -vv for all"]
    return lines


def _members(verdict: Verdict, limit: int | None) -> list[str]:
    """The verdicts of a family, one after the other; what several would say alike is said once."""
    lines: list[str] = []
    said: set[str] = set()
    bad = sum(not member.ok for member in verdict.members)
    for member in verdict.members:
        news = replace(
            member,
            notes=tuple(note for note in member.notes if note not in said),
            baseline_changes=tuple(change for change in member.baseline_changes if change not in said),
            queries=() if member.ok else member.queries,
        )
        said.update((*member.notes, *member.baseline_changes))
        lines += ["", *explain(news, _share_of(limit, bad), in_python=False).splitlines()]
    return lines


def _share_of(limit: int | None, parts: int) -> int | None:
    """How many queries each of several parts may show."""
    return None if limit is None else max(limit // max(parts, 1), min(limit, 3))


def _diff(verdict: Verdict, limit: int | None) -> list[str]:
    sign = 1 if verdict.operator in (">=", ">") else -1
    worse = [query for query in verdict.queries if query.before is None or _change(query, sign) < 0]
    better = [query for query in verdict.queries if query.before is not None and _change(query, sign) > 0]
    told = worse if limit is None else worse[:limit]
    lines: list[str] = []
    for query in told:
        lines += _query(verdict, query)
    rest = len(worse) - len(told)
    if rest:
        what = "got worse" if verdict.reference is not None else "miss the target"
        if rest == 1 and verdict.reference is None:
            what = "misses the target"
        more = f"{rest} more {'query' if rest == 1 else 'queries'}" if told else counted(rest, "query", "queries")
        lines.append(f"… and {more} {what}: run with -v for more, -vv for all")
    if limit is None and better:
        lines.append(f"{counted(len(better), 'query', 'queries')} got better:")
        for query in reversed(better):
            lines += _query(verdict, query)
    return lines


def _change(query: QueryDiff, sign: int) -> float:
    return sign * (query.after - (query.before or 0.0))


def _query(verdict: Verdict, query: QueryDiff) -> list[str]:
    sides = [query.after] if query.before is None else [query.before, query.after]
    values = " → ".join(in_unit(verdict.measured_in, *sides))
    # One query has a latency, and no percentile of it.
    measure = re.sub(r"\A([a-z]\w*)\.[a-z]\w*", r"\1", verdict.measure)
    head = f"{shown(query.query_id, 40)}  {measure} {values}"
    tags = ", ".join(f"{shown(str(tag), 20)}={shown(_tag(value), 30)}" for tag, value in query.tags.items())
    tags = f"   ({shown(tags, 50)})" if tags else ""
    if query.text is not None:
        head += f'  "{shown(query.text, max(WIDTH - len(head) - len(tags) - 4, 12))}"'
    lines = [head + tags]
    for span in query.spans[:_MOVES]:
        lines += _span(verdict, query, span)
    if len(query.spans) > _MOVES:
        lines.append(f"    … and {counted(len(query.spans) - _MOVES, 'more gold span')}")
    for move in query.moves[:_MOVES]:
        lines.append(_move(verdict, query, move))
        lines += [] if move.fate is None else [f"           {shown(move.fate, WIDTH - 12)}"]
        lines += _said(move)
    if len(query.moves) > _MOVES:
        what = "more document" if verdict.measure.partition("@")[0] == "leaks" else "more relevant document"
        lines.append(f"    … and {counted(len(query.moves) - _MOVES, what)}")
    if query.intruders:
        lines.append(_intruders(query.intruders))
        for move in query.intruders[:_INTRUDERS]:
            lines += [f"           {shown(move.doc_id, 40)}: {line.strip()}" for line in _said(move)]
    if query.note:
        lines += _wrapped("    ", shown(query.note, 300), indent=4)
    return lines


def _move(verdict: Verdict, query: QueryDiff, move: Move) -> str:
    if verdict.measure.partition("@")[0] == "leaks":
        return f"    {'leak':<6} {_document(move)}   rank {move.after}"
    limit = verdict.cutoff if verdict.cutoff is not None else float("inf")
    was_in = move.before is not None and move.before <= limit
    is_in = move.after is not None and move.after <= limit
    if query.before is None:
        label, ranks = "want", "not in the list" if move.after is None else f"rank {move.after}"
    else:
        before = "not in the list" if move.before is None else f"rank {move.before}"
        ranks = f"{before} → {'gone' if move.after is None else move.after}"
        fell = move.before is not None and (move.after is None or move.after > move.before)
        crossed = was_in != is_in
        label = ("lost" if crossed else "fell") if fell else ("gained" if crossed else "rose")
    return f"    {label:<6} {_document(move)}   {ranks}"


def _said(move: Move) -> list[str]:
    """What the source of the labels says of a document, in one line."""
    return [] if move.said is None else [f"           {shown(move.said, WIDTH - 12)}"]


def _span(verdict: Verdict, query: QueryDiff, span: SpanChange) -> list[str]:
    """The gold, and what each side holds of it."""
    if query.before is None:
        label = "want"
    elif span.was_found != span.is_found:
        label = "lost" if span.was_found else "gained"
    else:
        label = "less" if span.after.covered < (span.before or span.after).covered else "more"
    where = f"{shown(span.doc_id, 40)} {span.start}–{span.end}"
    also = f", or {counted(span.alternatives, 'alternative')}" if span.alternatives else ""
    head = f"    {label:<6} {where}{also}"
    text = "" if span.text is None else f'  "{shown(span.text, max(WIDTH - len(head) - 4, 20))}"'
    lines = [head + text]
    if span.before is not None:
        lines += _holding("before", span.before, verdict.cutoff)
    return lines + _holding("after" if span.before is not None else "now", span.after, verdict.cutoff)


def _holding(label: str, held: Holding, cutoff: int | None) -> list[str]:
    if held.chunk_id is None:
        top = f"the top {cutoff}" if cutoff is not None else "the list"
        below = f"; found at rank {held.found}" if held.found is not None else ""
        return [f"           {label:<6} nothing of it in {top}{below}"]
    piece = f"{_percent(held.share)} in {shown(held.chunk_id, 40)} (rank {held.rank}, {held.start}–{held.end})"
    if held.covered > held.share + 1e-9:
        piece += f", {_percent(held.covered)} with others"
    if held.cuts:
        piece += f", cut at {' and '.join(map(str, held.cuts))}"
        piece += "".join(f' "{shown(text, 60)}"' for text in held.cut_texts[:2])
    return _wrapped(f"           {label:<6} ", piece, indent=18)


def _percent(share: float) -> str:
    """Without rounding to all or nothing what is not.

    >>> _percent(1.0), _percent(0.999), _percent(0.4286), _percent(0.002)
    ('100 %', '99.9 %', '43 %', '0.2 %')
    """
    whole = f"{100 * share:.0f}"
    if (whole == "100" and share < 1.0) or (whole == "0" and share > 0.0):
        return f"{100 * share:.1f} %"
    return f"{whole} %"


def _intruders(moves: Sequence[Move]) -> str:
    line = "    now    "
    for told, move in enumerate(moves):
        piece = (", " if told else "") + f"{_document(move, 24)} rank {move.after}"
        left = len(moves) - told
        rest = f" and {left - 1} more" if left > 1 else ""
        if told and (told == _INTRUDERS or len(line + piece + rest) > WIDTH):
            return f"{line} and {left} more"
        line += piece
    return line


def _document(move: Move, width: int = 50) -> str:
    title = f' "{shown(move.title, width)}"' if move.title else ""
    grade = "not judged" if move.grade is None else f"grade {move.grade:g}"
    return f"{shown(move.doc_id, 40)}{title} ({grade})"


def _pairs(pairs: Sequence[tuple[str, str]], total: int) -> str:
    told = [f"{shown(query, 40)} {shown(doc, 40)}" for query, doc in pairs[:_PAIRS]]
    rest = total - len(told)
    return ", ".join(told) + (f" and {rest:,} more" if rest > 0 else "")


def _tag(value: object) -> str:
    return "|".join(_tag(each) for each in value) if isinstance(value, (list, tuple)) else json_word(value)


def _difference(value: float, counted_in: str = "") -> str:
    return with_sign(_plain(value, counted_in))


def _plain(value: float, counted_in: str = "") -> str:
    """3 decimals (1 before a unit), or as many as it takes to show that a value is not 0."""
    return in_unit(counted_in, value, 0.0)[0]


def _judged(*values: float | None) -> Iterable[str]:
    known = iter(means(*(value for value in values if value is not None), digits=2))
    return ["–" if value is None else next(known) for value in values]


def _share(alpha: float) -> str:
    return f"{alpha:.3g}".removeprefix("0")


def _wrapped(label: str, text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(
        label + text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=True,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
