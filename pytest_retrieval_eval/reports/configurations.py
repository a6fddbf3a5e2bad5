"""A comparison of several configurations as Markdown and as LaTeX. Nothing is computed here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_retrieval_eval.wording import fixed

if TYPE_CHECKING:
    from pytest_retrieval_eval.studies.compare_all import Cell, Configurations, Pair

_GROUPS = "Runs that share a letter cannot be told apart by that measure"
_NAMES = {"holm": "Holm", "bh": "Benjamini & Hochberg", "none": "none"}


def markdown(found: Configurations) -> str:
    """Tables that a pull request or a README shows."""
    head = [
        "run",
        *(f"{measure} ({unit})" if (unit := found.units[measure]) else measure for measure in found.measures),
    ]
    rows = [
        [f"**{_cell(run)}**" if run in found.front else _cell(run)]
        + [_cell(_value(found.cell(run, measure))) for measure in found.measures]
        for run in found.runs
    ]
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    lines.append(f"{_GROUPS} ({_how(found)}). 95 % intervals in brackets; {'; '.join(found.notes)}.")
    lines.append("")
    lines.append(f"Pareto front over {_objectives(found)}: {', '.join(map(_cell, found.front))}.")
    lines += ["", _row(["measure", "runs", "Δ", "p", "adjusted"]), _row(["---"] * 5)]
    lines += [
        _row([pair.measure, f"{_cell(pair.first)} → {_cell(pair.second)}", *_numbers(pair)]) for pair in found.pairs
    ]
    return "\n".join(lines) + "\n"


def latex(found: Configurations) -> str:
    """A table for the package booktabs; groups as superscripts, the front in bold."""
    lines = [
        f"% {found.dataset}: {_GROUPS.lower()} ({_how(found)}). {'; '.join(found.notes)}.".replace("\n", " "),
        f"% Pareto front over {_objectives(found)} in bold.",
        r"\begin{tabular}{l" + "r" * len(found.measures) + "}",
        r"\toprule",
        " & ".join(["run", *(_tex(f"{m} ({u})" if (u := found.units[m]) else m) for m in found.measures)]) + r" \\",
        r"\midrule",
    ]
    for run in found.runs:
        name = rf"\textbf{{{_tex(run)}}}" if run in found.front else _tex(run)
        cells = [_tex_value(found.cell(run, measure)) for measure in found.measures]
        lines.append(" & ".join([name, *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _how(found: Configurations) -> str:
    return f"paired tests, alpha {found.alpha:g}, correction {_NAMES[found.correction]}"


def _objectives(found: Configurations) -> str:
    return ", ".join(f"{measure} ({'low' if lower else 'high'})" for measure, lower in found.pareto.items())


def _value(cell: Cell) -> str:
    interval = "" if cell.low is None or cell.high is None else f" [{_number(cell.low)}, {_number(cell.high)}]"
    return f"{_number(cell.value)}{interval} {cell.group}"


def _numbers(pair: Pair) -> list[str]:
    return [fixed(pair.delta, signed=True), f"{pair.p:.2g}", f"{pair.p_adjusted:.2g}"]


def _number(value: float) -> str:
    return fixed(value, 3 if abs(value) < 10 else 1)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    r"""A text that breaks no table, and that Markdown takes for no markup.

    >>> print(_cell("my_run *2* <b> a|b"), _cell("_x_"))
    my_run \*2\* \<b> a\|b \_x\_
    """
    return re.sub(r"([\\|`*<~]|(?<!\w)_|_(?!\w))", r"\\\1", re.sub(r"\s+", " ", text))


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: "\\" + char for char in "&%$#_{}"},
}


def _tex(text: str) -> str:
    """A text without LaTeX's own characters.

    >>> _tex("a_b & 5 %")
    'a\\\\_b \\\\& 5 \\\\%'
    """
    return "".join(_SPECIAL.get(char, char) for char in re.sub(r"\s+", " ", text))


def _tex_value(cell: Cell) -> str:
    interval = "" if cell.low is None or cell.high is None else f" [{_number(cell.low)}, {_number(cell.high)}]"
    # A minus of its own in LaTeX: not every engine has the character.
    return f"{_number(cell.value)}$^{{{cell.group}}}${interval}".replace("−", "$-$")
