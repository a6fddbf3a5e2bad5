"""The studies of a reader as text: what labels foretell, and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from pytest_retrieval_eval.wording import aligned, counted, fixed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.stats.association import Association
    from pytest_retrieval_eval.studies.correlate import Correlation
    from pytest_retrieval_eval.studies.efficiency import Efficiency

NONE = "–"
_MIB = 1 << 20
_BY_QUERY = ("answers of", "from", "k", "labels", "measure", "n", "tau-b", "ceiling", "rho", "AUC", "tied")


def correlation_text(study: Correlation) -> str:
    """The study as tables: the answers, the correlations over queries, and those over systems where there are some."""
    lines = [
        f"{shown(study.dataset) or 'dataset'}: list scores from labels against answers end to end, "
        f"{study.metric}, {counted(study.queries, 'query', 'queries')}",
        "",
        *_table(
            ("answers of", "from", "k", "mean", "largest tau-b without ties"),
            [(one.reader, one.run, str(one.k), _number(one.mean), _number(one.ceiling)) for one in study.answers],
            left=(0, 1),
        ),
        "",
        *_table(
            (*_BY_QUERY[:7], _percent(study.level), *_BY_QUERY[7:]),
            [
                (cell.reader, cell.run, str(cell.k), cell.source, cell.measure, str(cell.found.n), *_of(cell.found))
                for cell in study.cells
            ],
            left=(0, 1, 3, 4),
        ),
        "",
        "ceiling: the largest tau-b of these values, ties being what they are; tied: the share of the pairs of queries",
        "that the list score, and the answers, do not tell apart",
    ]
    if study.systems:
        names = f"{len(study.runs)} systems: {', '.join(shown(run) for run in study.runs)}"
        lines += [
            "",
            names,
            *_table(
                ("answers of", "k", "labels", "measure", "n", "tau-b", "rho", "pairs in opposite order"),
                [
                    (
                        one.reader,
                        str(one.k),
                        one.labels
                        + (f"[{one.label_reader}]" if one.label_reader and one.label_reader != one.reader else ""),
                        one.measure,
                        str(one.n),
                        f"undefined: {one.undefined}" if one.undefined else _number(one.tau),
                        _number(one.rho),
                        f"{one.opposite} of {one.pairs}",
                    )
                    for one in study.systems
                ],
                left=(0, 2, 3),
            ),
        ]
    return "\n".join(lines) + "\n"


def efficiency_text(study: Efficiency) -> str:
    """The study as one table, and under it what rows with matched batches say."""
    rows = [
        (
            row.reader,
            row.level + (" *" if row.matched else ""),
            NONE if row.batch_size is None else str(row.batch_size),
            f"{row.seconds:.4f}",
            f"{row.cpu_seconds:.4f}",
            NONE if row.input_tokens is None else f"{row.input_tokens:,.0f}",
            NONE if row.output_tokens is None else f"{row.output_tokens:,.1f}",
            NONE if row.memory is None else f"{row.memory / _MIB:,.1f}",
            str(row.truncated),
            str(row.cache_hits),
        )
        for row in study.rows
    ]
    lines = [
        f"{shown(study.dataset) or 'dataset'}: what reading costs a query, k = {study.k}, "
        f"{counted(study.queries, 'query', 'queries')} of {shown(study.run)}, median of "
        f"{counted(study.repeat, 'turn')}",
        "",
        *_table(
            ("reader", "level", "batch", "seconds", "CPU seconds", "tokens in", "out", "peak MiB", "cut", "cache hits"),
            rows,
            left=(0, 1),
        ),
        "",
        "peak MiB: above the loaded model; cut: items whose documents did not fit; cache: off",
    ]
    if any(row.matched for row in study.rows):
        lines.append(f"*: the {study.k} documents of a query in one batch")
    return "\n".join(lines) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[int]) -> list[str]:
    return aligned([[shown(cell) for cell in row] for row in (header, *rows)], left)


def _of(found: Association) -> tuple[str, ...]:
    tied = f"{found.tied:.0%} {found.tied_other:.0%}"
    if found.undefined:
        return (f"undefined: {found.undefined}", NONE, NONE, NONE, _number(found.auc), tied)
    interval = found.interval
    return (
        _number(found.tau),
        NONE if interval is None else f"[{_number(interval.low)}, {_number(interval.high)}]",
        _number(found.ceiling),
        _number(found.rho),
        _number(found.auc),
        tied,
    )


def _number(value: float | None) -> str:
    return NONE if value is None else fixed(value)


def _percent(level: float) -> str:
    return f"{100 * level:g} %"
