"""What a benchmark has found, beside its targets: printed by each in its own way, and written as JSON in one.

    figures = Figures(arguments.json)
    found = figures.ratio("sign flip, n = 50", ours=0.1, peer=9.0, target=80)  # at least 80 × ours
    print(found.ratio, found.verdict)
    figures.bound("peak memory on M, MB", ours=49, most=80)
    figures.failed("sign flip, n = 50: a peer", "it needs 40 GB")  # what could not be measured
    return figures.status

``--json PATH`` (:func:`json_option`) writes a list of objects with the keys ``what``, ``ours``, ``peer``, ``ratio``,
``target`` and ``met``, anew with each figure: what ends early leaves those that it had. With a peer, the ratio says how
many times ours the peer takes, and the target is what it must be at least. Without one (``peer`` and ``ratio`` are
null) the target is what ours may be at most. Where there is no target, ``target`` and ``met`` are null; where nothing
was measured, ``ours`` is. Units stand in ``what``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    what: str
    ours: float | None
    peer: float | None
    ratio: float | None
    target: float | None
    met: bool | None

    @property
    def verdict(self) -> str:
        """The target and whether it is met, to print behind the figure; empty without a target."""
        if self.target is None:
            return ""
        side = "at most" if self.ratio is None else "at least"
        return f"({side} {self.target:.3g}: {'met' if self.met else 'MISSED'})"


class Figures:
    """The figures of one run, in the order in which they were found."""

    def __init__(self, path: Path | None = None) -> None:
        self.found: list[Figure] = []
        self._path = path

    def ratio(self, what: str, ours: float, peer: float, target: float | None = None) -> Figure:
        """How many times ours the peer takes, and must take at least."""
        ratio = peer / ours
        return self._keep(Figure(what, ours, peer, ratio, target, None if target is None else ratio >= target))

    def bound(self, what: str, ours: float, most: float | None = None) -> Figure:
        """What has no peer, and may be so much at most."""
        return self._keep(Figure(what, ours, None, None, most, None if most is None else ours <= most))

    def failed(self, what: str, why: str) -> Figure:
        """What could not be measured, and why."""
        return self._keep(Figure(f"{what}: {why}", None, None, None, None, False))

    @property
    def status(self) -> int:
        """1 where a target is missed or something was not measured, else 0."""
        return int(not self.found or any(figure.met is False for figure in self.found))

    def _keep(self, figure: Figure) -> Figure:
        for value in (figure.ours, figure.peer, figure.ratio):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{figure.what}: {value} was not measured")
        self.found.append(figure)
        if self._path is not None:
            self._path.write_text(json.dumps([asdict(each) for each in self.found], indent=1) + "\n")
        return figure


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures and their targets there")


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
