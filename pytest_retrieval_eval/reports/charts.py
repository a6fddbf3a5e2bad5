"""Charts of studies as SVG files: drawn without a display and without a network, the same bytes for the same study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.errors import SettingsError

if TYPE_CHECKING:
    from pytest_retrieval_eval.studies.correlate import Cell, Correlation

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by most eyes (Okabe & Ito)
_MARKS = ("o", "s", "D", "^", "v", "P")
_SETTINGS = {"svg.hashsalt": "pytest-retrieval-eval", "svg.fonttype": "none", "font.size": 9.0}


def check_chart(path: Path) -> Path:
    """The path, if a chart can be written there: asked before anything is measured."""
    if path.suffix.lower() != ".svg":
        raise SettingsError(f"{path}: charts are SVG files; name one such as correlation.svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SettingsError(
            "charts need matplotlib; install it with: pip install 'pytest-retrieval-eval[report]'"
        ) from None
    return path


def correlation_chart(study: Correlation, path: Path) -> None:
    """Tau-b of every measure by source of labels, a panel for each reader and run; with several k also as curves.

    Dots are at the largest k, with their intervals; a grey line on a dot's row is the ceiling of the tau-b beside it.
    What is undefined is left out of the chart, not drawn at 0. Raises SettingsError where matplotlib is absent or
    the file is no ``.svg``.
    """
    check_chart(path)
    import matplotlib
    from matplotlib.figure import Figure

    panels = [(reader, run) for reader in study.readers for run in study.runs]
    sources = list(dict.fromkeys(cell.source for cell in study.cells))
    curves = len(study.ks) > 1
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(9.0 if curves else 5.5, 0.6 + 2.6 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 2 if curves else 1, squeeze=False)
        for row, (reader, run) in zip(axes, panels, strict=True):
            cells = [cell for cell in study.cells if (cell.reader, cell.run) == (reader, run)]
            _dots(row[0], [cell for cell in cells if cell.k == max(study.ks)], sources)
            row[0].set_title(f"{reader}, {run}, k = {max(study.ks)}", loc="left")
            if curves:
                first = cells[0].measure.partition("@")[0]
                _curves(row[1], [cell for cell in cells if cell.measure.partition("@")[0] == first], sources)
                row[1].set_title(f"{first} by k", loc="left")
        handles, names = axes[0][0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, names, loc="outside upper center", ncols=min(4, len(names)), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _dots(axes: Any, cells: list[Cell], sources: list[str]) -> None:
    measures = list(dict.fromkeys(cell.measure for cell in cells))
    step = 0.8 / len(sources)
    for number, source in enumerate(sources):
        drawn = [cell for cell in cells if cell.source == source and cell.found.tau is not None]
        rows = [measures.index(cell.measure) + (number - (len(sources) - 1) / 2) * step for cell in drawn]
        _bars(axes, [c.found.tau or 0.0 for c in drawn], rows, drawn, source, number, across=True)
        for cell, row in zip(drawn, rows, strict=True):
            axes.plot([cell.found.ceiling] * 2, [row - step / 2, row + step / 2], color="#999999", linewidth=1.5)
    axes.set_yticks(range(len(measures)), measures)
    axes.invert_yaxis()
    axes.axvline(0.0, color="#cccccc", linewidth=0.8, zorder=0)
    lows = [cell.found.interval.low if cell.found.interval else cell.found.tau or 0.0 for cell in cells]
    axes.set_xlim(-1.05 if min(lows, default=0.0) < -0.25 else -0.3, 1.05)
    axes.set_xlabel("tau-b (grey: its ceiling)")


def _curves(axes: Any, cells: list[Cell], sources: list[str]) -> None:
    for number, source in enumerate(sources):
        drawn = [cell for cell in cells if cell.source == source and cell.found.tau is not None]
        _bars(
            axes, [cell.k for cell in drawn], [c.found.tau or 0.0 for c in drawn], drawn, source, number, across=False
        )
        axes.plot(
            [cell.k for cell in drawn], [cell.found.tau for cell in drawn], color=_COLOURS[number % len(_COLOURS)]
        )
    axes.axhline(0.0, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_xticks(sorted({cell.k for cell in cells}))
    axes.set_xlabel("k")
    axes.set_ylabel("tau-b")


def _bars(axes: Any, x: list[Any], y: list[Any], cells: list[Cell], source: str, number: int, *, across: bool) -> None:
    ends: list[list[float]] = [[], []]
    for cell in cells:
        tau, interval = cell.found.tau or 0.0, cell.found.interval
        ends[0].append(0.0 if interval is None else max(0.0, tau - interval.low))
        ends[1].append(0.0 if interval is None else max(0.0, interval.high - tau))
    axes.errorbar(
        x,
        y,
        **{"xerr" if across else "yerr": ends},
        fmt=_MARKS[number % len(_MARKS)],
        color=_COLOURS[number % len(_COLOURS)],
        markersize=4,
        linewidth=1.0,
        label=source,
    )
