"""How the values of the queries lie behind a mean, in a line of text."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_retrieval_eval.gates.verdict import Spread, Verdict
from pytest_retrieval_eval.wording import fixed, short, shown

_BARS = "▁▂▃▄▅▆▇█"


def spread_lines(verdict: Verdict) -> list[str]:
    """A line for each side that was measured, the reference first."""
    new, old = verdict.spread
    named = [(verdict.baseline or "", old), (verdict.run or verdict.measure, new)]
    known = [(shown(name, 20), spread) for name, spread in named if spread is not None]
    width = max((len(name) for name, _ in known), default=0)
    return [f"spread  {name:<{width}}  {spread_text(spread)}" for name, spread in known]


def spread_text(spread: Spread) -> str:
    """Histogram, quantiles and the share of zeros.

    >>> spread_text(Spread(0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 0.25, 0.0, 1.0, (1, 0, 0, 0, 0, 2, 0, 0, 0, 4)))
    '0 ▂····▄···█ 1   min 0.00 · 5 % 0.00 · quartiles 0.25, 0.50, 1.00 · max 1.00 · 25 % zero'
    """
    low, least, high = short(spread.low), fixed(spread.minimum, 2), short(spread.high)
    p05, p25, p50, p75, most = (
        fixed(value, 2) for value in (spread.p05, spread.p25, spread.p50, spread.p75, spread.maximum)
    )
    return (
        f"{low} {bars(spread.counts)} {high}   min {least} · 5 % {p05} · quartiles {p25}, {p50}, {p75} · max {most} · "
        f"{100 * spread.zeros:.0f} % zero"
    )


def bars(counts: Sequence[int]) -> str:
    """One character for each count; a dot for none, so that the smallest bar stands for something.

    >>> bars([0, 1, 8])
    '·▁█'
    """
    most = max(counts, default=0)
    return "".join(_BARS[-(-len(_BARS) * count // most) - 1] if count else "·" for count in counts)
