"""The report on a judged pool as text and as one HTML page, which needs nothing but itself."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.reports.text import WIDTH
from pytest_retrieval_eval.wording import aligned, counted, ends, fixed, listed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.stats import Interval
    from pytest_retrieval_eval.studies.agreement import Agreement
    from pytest_retrieval_eval.studies.judges import JudgesCompared
    from pytest_retrieval_eval.studies.pool_report import PoolReport
    from pytest_retrieval_eval.studies.systems import Flip, Rankings, Stability

Rows: TypeAlias = "list[tuple[str, ...]]"

_FLIPS = 5
_NAME = 40
_QUERIES = 20


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: sentences, then a table; the first row of it has the names of its columns."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def report_text(report: PoolReport) -> str:
    """The report for a terminal."""
    return "\n\n".join(_plain(section) for section in sections(report)) + "\n"


def document(report: PoolReport, stability: Stability | None = None) -> dict[str, Any]:
    """All numbers of a report, in builtin types."""
    found = asdict(report)
    found["reuse"] |= {"share": report.reuse.share, "factor": report.reuse.factor}
    if report.pairs is not None:
        found["pairs"]["counts"] = {kind: report.pairs.count(kind) for kind in ("same", "tie", "noise", "conflict")}
    return {**found, "stability": None if stability is None else asdict(stability)}


def stability_text(stability: Stability) -> str:
    """Whether a ranking stayed, for a terminal."""
    return _plain(stability_section(stability)) + "\n"


def html(report: PoolReport, stability: Stability | None = None) -> str:
    """The report as one page: it loads nothing, and its charts are drawn in it. It takes the extra ``report``."""
    try:
        jinja2 = import_module("jinja2")
    except ImportError as error:
        raise SettingsError(
            "an HTML report needs jinja2, which is not installed: pip install 'pytest-retrieval-eval[report]'"
        ) from error
    source = resources.files(__package__).joinpath("templates/pool.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    parts = [*sections(report), *([] if stability is None else [stability_section(stability)])]
    page: str = environment.from_string(source).render(
        sections=parts, growth=_growth_chart(report), systems=_systems_chart(report), measure=report.table.measure
    )
    return page


# --- the parts -------------------------------------------------------------------------------------------------


def sections(report: PoolReport) -> list[Section]:
    """The parts of a report that there is something to say in."""
    parts = [_pool(report), _growth(report), _systems(report)]
    if report.families:
        parts.append(_families(report))
    if report.repeated is not None:
        parts.append(Section("The judge against itself", agreement_lines(report.repeated)))
    if report.second is not None:
        parts.append(_judges("A second judge", report.second))
    if report.human is not None:
        parts.append(_judges("People", report.human))
    if report.pairs is not None:
        parts.append(_pairs(report))
    if report.factors:
        parts.append(_factors(report))
    if report.costs:
        parts.append(_costs(report))
    return parts


def stability_section(stability: Stability) -> Section:
    """Whether the ranking stayed as it was."""
    found = stability.rankings
    verdict = "stayed" if stability.holds else "did NOT stay"
    name, change = found.largest
    lines = (
        f"the ranking by {stability.measure} {verdict}: {_correlations(found)}; tau has to reach {stability.min_tau:g}",
        f"largest change: {shown(name, _NAME)} {fixed(change, 4, signed=True)}, over "
        f"{counted(stability.queries, 'query', 'queries')}",
        *_flips(found.flips),
    )
    rows = [("run", "before", "after")]
    rows += [(shown(name, _NAME), fixed(old, 4), fixed(new, 4)) for name, old, new in stability.means]
    return Section("The ranking before and after", lines, tuple(rows))


def _pool(report: PoolReport) -> Section:
    reuse = report.reuse
    share = report.judged / reuse.unique
    lines = (
        f"{counted(len(report.growth), 'run')} to depth {report.depth} on "
        f"{counted(report.queries, 'query', 'queries')}",
        f"{reuse.unique:,} different pairs of {reuse.independent:,}: {100 * reuse.share:.1f} % need no judgment of "
        f"their own, and to judge each run by itself would cost {reuse.factor:.2f} times as much",
        f"{report.judged:,} of the pairs are judged ({100 * share:.1f} %)",
        *report.notes,
    )
    return Section("The pool", lines)


def _growth(report: PoolReport) -> Section:
    rows: Rows = [("run", "pairs", "new", "reused", "alone", "pool", "each by itself", "pool in any order")]
    for row in report.growth:
        numbers = (row.pairs, row.new, row.reused, row.alone, row.unique, row.independent)
        rows.append((shown(row.name, _NAME), *(f"{number:,}" for number in numbers), f"{row.expected:,.1f}"))
    return Section("How the pool grew", (), tuple(rows))


def _systems(report: PoolReport) -> Section:
    table = report.table
    rows = [("run", table.measure, "95 % interval", f"judged@{table.judged_k}", "near-tie with")]
    rows += [
        (shown(row.name, _NAME), fixed(row.value, 4), _ends(row.interval), fixed(row.judged), listed(row.near, 3))
        for row in table.rows
    ]
    lines = [f"over {counted(table.queries, 'query', 'queries')}"]
    if table.uncounted:
        have, them = ("has", "it") if len(table.uncounted) == 1 else ("have", "them")
        others = counted(len(table.uncounted), "judged query", "judged queries")
        lines.append(
            f"{others} {have} no say in {table.measure}, since no judged document is relevant to {them}: "
            f"{listed(table.uncounted, _QUERIES)}"
        )
    return Section("The systems", tuple(lines), tuple(rows))


def _families(report: PoolReport) -> Section:
    rows: Rows = [
        ("family left out", "runs", "pairs", "relevant", "inversions", "largest penalty", "inversions once judged")
    ]
    lines: list[str] = []
    for each in report.families:
        penalty = "none" if each.penalty is None else f"{shown(each.penalty[0], _NAME)} {fixed(-each.penalty[1], 4)}"
        numbers = (len(each.systems), each.unique, each.relevant, len(each.inversions))
        rows.append((shown(each.family, _NAME), *map(str, numbers), penalty, str(len(each.judged))))
        lines += [f"without {shown(each.family, _NAME)}, {line}" for line in _flips(each.inversions)]
    return Section("Without a family's own documents", tuple(lines), tuple(rows))


def _judges(title: str, found: JudgesCompared) -> Section:
    lines = (
        *agreement_lines(found.items),
        f"systems by {found.measure} over {counted(found.queries, 'query', 'queries')}: "
        f"{_correlations(found.rankings)}",
        *_flips(found.rankings.flips),
    )
    return Section(title, lines)


def agreement_lines(found: Agreement) -> tuple[str, ...]:
    """How far two sets of grades agree, a sentence each."""
    lines = [
        f"{found.same} of {counted(found.n, 'pair')} have the same grade: {_percent(found.share, found.interval)}, "
        f"kappa {_or_none(found.kappa)}",
        f"{found.same_class} are of the same class from grade {found.rel:g} on: "
        f"{_percent(found.class_share, found.class_interval)}, kappa {_or_none(found.class_kappa)}",
    ]
    if found.only_first or found.only_second:
        lines.append(f"{found.only_first} and {found.only_second} pairs have a grade of one side alone")
    return tuple(lines)


def _pairs(report: PoolReport) -> Section:
    found = report.pairs
    if found is None:
        return Section("")
    lines = (
        f"of {counted(len(found.pairs), 'pair')} of systems by {found.measure}: {found.same} in the same order, "
        f"{found.tie} tied (nearer than {found.near:g}), {found.noise} in another order within what people's labels "
        f"can tell, {found.conflict} in real conflict",
    )
    rows = [("conflict", "judge", "people", "95 % interval of people's")]
    rows += [
        (
            f"{shown(pair.first, _NAME)} / {shown(pair.second, _NAME)}",
            fixed(pair.judge, 4, signed=True),
            fixed(pair.human, 4, signed=True),
            "" if pair.interval is None else _ends(pair.interval),
        )
        for pair in found.pairs
        if pair.kind == "conflict"
    ]
    return Section("Pairs of systems, by the judge and by people", lines, tuple(rows) if len(rows) > 1 else ())


def _factors(report: PoolReport) -> Section:
    rows: Rows = [("factor", "value", "against", "means", "pairs of runs", "difference", "95 % interval")]
    for each in report.factors:
        told = ("not to be told", "") if each.difference is None or each.interval is None else ()
        if each.difference is not None and each.interval is not None:
            told = (fixed(each.difference, 4, signed=True), _ends(each.interval))
        rows.append(
            (
                shown(each.factor, 20),
                shown(each.value, 20),
                shown(each.other, 20),
                f"{fixed(each.means[0], 4)} / {fixed(each.means[1], 4)}",
                str(each.matched),
                *told,
            )
        )
    return Section("What the settings did", ("differences are of runs that agree in every other tag",), tuple(rows))


def _costs(report: PoolReport) -> Section:
    priced = report.price is not None
    rows: Rows = [
        ("depth", "pairs", "each by itself", *(("cost", "each by itself") if priced else ()), "tau", "changed pairs")
    ]
    for point in report.costs:
        costs = [f"{cost:,.2f}" for cost in (point.cost, point.independent_cost) if cost is not None]
        tau = _or_none(point.rankings.tau)
        rows.append(
            (
                str(point.depth),
                f"{point.unique:,}",
                f"{point.independent:,}",
                *costs,
                tau,
                f"{len(point.rankings.flips)} of {point.rankings.pairs}",
            )
        )
    return Section("What less depth would cost", ("tau is with the ranking by all judgments",), tuple(rows))


def _flips(flips: Sequence[Flip]) -> list[str]:
    lines = [
        f"{shown(flip.first, _NAME)} ({fixed(flip.before, 4, signed=True)}) falls behind {shown(flip.second, _NAME)} "
        f"({fixed(flip.after, 4, signed=True)})"
        for flip in flips[:_FLIPS]
    ]
    rest = len(flips) - len(lines)
    return [*lines, *([f"and {counted(rest, 'more pair')} in another order"] if rest else [])]


def _correlations(found: Rankings) -> str:
    return f"rho {_or_none(found.rho)}, tau {_or_none(found.tau)}, tau_AP {_or_none(found.tau_ap)}"


def _or_none(value: float | None) -> str:
    return "not defined" if value is None else fixed(value)


def _ends(interval: Interval) -> str:
    return ends(interval.low, interval.high, 4)


def _percent(share: float, interval: Interval) -> str:
    return f"{fixed(100 * share, 1)} % {ends(100 * interval.low, 100 * interval.high, 1)}"


def _plain(section: Section) -> str:
    lines = [section.title]
    for line in section.lines:
        lines += textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join([*lines, *("  " + line for line in aligned(section.rows, left=[0]))])


# --- charts ----------------------------------------------------------------------------------------------------

_WIDE, _HIGH, _LEFT = 640, 240, 60


def _growth_chart(report: PoolReport) -> dict[str, Any]:
    """The lines of the pool and of each run by itself, as points of an SVG."""
    rows = report.growth
    most = max(row.independent for row in rows)

    def line(values: Sequence[float]) -> str:
        step = (_WIDE - _LEFT - 10) / len(values)
        points: list[tuple[float, float]] = [(_LEFT, _HIGH - 20)]
        points += [
            (_LEFT + step * (place + 1), _HIGH - 20 - (_HIGH - 40) * value / most) for place, value in enumerate(values)
        ]
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)

    return {
        "width": _WIDE,
        "height": _HIGH,
        "left": _LEFT,
        "most": f"{most:,}",
        "runs": len(rows),
        "lines": [
            ("each run by itself", "#b04a3a", line([row.independent for row in rows])),
            ("the pool", "#2b6cb0", line([row.unique for row in rows])),
            ("the pool, in any order", "#8aa9c9", line([row.expected for row in rows])),
        ],
    }


def _systems_chart(report: PoolReport) -> dict[str, Any]:
    """A dot and an interval for each system."""
    rows = report.table.rows
    low = min([0.0, *(row.interval.low for row in rows)])
    high = max([*(row.interval.high for row in rows), *(row.value for row in rows)])
    span = high - low or 1.0

    def x(value: float) -> str:
        return f"{220 + (_WIDE - 240) * (value - low) / span:.1f}"

    return {
        "width": _WIDE,
        "height": 24 * len(rows) + 30,
        "ticks": [(x(value), f"{value:.2f}") for value in (low, low + span / 2, low + span)],
        "rows": [
            {
                "name": shown(row.name, 28),
                "y": 24 * place + 20,
                "low": x(row.interval.low),
                "high": x(row.interval.high),
                "at": x(row.value),
                "near": bool(row.near),
            }
            for place, row in enumerate(rows)
        ],
    }
