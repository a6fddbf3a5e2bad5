"""How many queries early stopping reads before it settles.

    python benchmarks/early_stopping.py

Prints the Markdown table of docs/explanation/error-rates.md: the mean number of queries read of 300 over 100 random
orders, for true differences of several kinds and several margins.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.stats.early import EarlyStop

QUERIES, ORDERS = 300, 100
MARGINS = (0.01, 0.02, 0.05, 0.1)


def populations() -> dict[str, NDArray[np.float64]]:
    """What the two runs differ by, query by query."""
    noise = np.random.default_rng(0).normal(0.0, 0.15, QUERIES)
    noise -= noise.mean()

    def lost(share: float) -> NDArray[np.float64]:
        return -(np.arange(QUERIES) < round(share * QUERIES)).astype(float)

    return {
        "identical runs": np.zeros(QUERIES),
        "no mean difference, standard deviation 0.15": noise,
        "2 % of the queries lose 1": lost(0.02),
        "8 % of the queries lose 1": lost(0.08),
        "24 % of the queries lose 1": lost(0.24),
        "each query loses 0.1, standard deviation 0.15": noise - 0.1,
    }


def settle(differences: Sequence[float], margin: float, seed: int) -> tuple[str, int]:
    """The decision on differences that are known, read in one random order, and after how many."""
    stop = EarlyStop(len(differences), margin, seed=seed)
    for query in stop.order.tolist():
        if stop.update(differences[query]) != "continue":
            break
    return stop.decision, stop.read


def cell(differences: Sequence[float], margin: float, orders: int = ORDERS) -> str:
    """The mean number read and the decision; "–" with all of them where less than half of the orders settle."""
    found = [settle(differences, margin, seed) for seed in range(orders)]
    decisions = [decision for decision, _ in found]
    usual = max(("worse", "not worse", "continue"), key=decisions.count)
    read = sum(read for _, read in found) / orders
    settled = decisions.count(usual) / orders
    share = "" if settled == 1.0 else f" ({settled:.0%})"
    return "all are read" if usual == "continue" else f"{read:.0f}, {usual}{share}"


def table() -> str:
    head = ["true difference", *(f"margin {margin:g}" for margin in MARGINS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, differences in populations().items():
        cells = [cell(differences.tolist(), margin) for margin in MARGINS]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
