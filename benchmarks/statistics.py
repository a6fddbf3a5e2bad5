"""Paired tests and bootstrap intervals beside scipy's (and ranx's, if installed), in one process.

    python benchmarks/statistics.py [--quick] [--json PATH]

Prints medians of CPU time and their ratios beside the ratios to reach; exits with 1 where one is missed. The
two sides take turns, so that a busy machine slows both. Quick: fewer runs, and no 6,980 queries.

With 10,000 resamples, where the ratios to reach are, and with 100,000 up to 300 queries. The signs of the first 512
queries are drawn once a process for each seed, as in a session of gates.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import argparse
import importlib
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.stats

from benchmarks.figures import Figures, json_option, median
from pytest_retrieval_eval.stats import bootstrap_mean, randomization_test, t_test

RESAMPLES, MANY = 10_000, 100_000
SIZES = (50, 300, 6980)

# Per size, how many times faster than scipy and ranx the product has to be.
FLIPS_OVER_SCIPY = {50: 80, 300: 100, 6980: 150}
FLIPS_OVER_RANX = {50: 140, 300: 200, 6980: 200}
BOOTSTRAP_OVER_SCIPY = {50: 1.7, 300: 3.0, 6980: 4.0}


def differences(n: int) -> np.ndarray:
    """Differences as of nDCG: most queries differ, on no lattice."""
    return np.random.default_rng(1).normal(0.01, 0.1, n)


def side_by_side(ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median CPU seconds of each, after a run to warm up; ours repeats within a turn if it is short."""
    ours()
    theirs()
    start = time.process_time()
    ours()
    repeats = max(1, math.ceil(0.01 / max(time.process_time() - start, 1e-6)))
    first, second = [], []
    for _ in range(runs):
        start = time.process_time()
        for _ in range(repeats):
            ours()
        first.append((time.process_time() - start) / repeats)
        start = time.process_time()
        theirs()
        second.append(time.process_time() - start)
    return median(first), median(second)


def scipy_flips(d: np.ndarray, resamples: int) -> object:
    return scipy.stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=resamples, vectorized=True, batch=RESAMPLES
    )


def scipy_bootstrap(d: np.ndarray, method: str, resamples: int) -> object:
    return scipy.stats.bootstrap((d,), np.mean, n_resamples=resamples, method=method, vectorized=True, batch=RESAMPLES)


def ranx_flips() -> Callable[[np.ndarray, np.ndarray, int], object] | None:
    """ranx's Fisher randomization test of two arrays, compiled, or None where ranx is not installed."""
    try:
        module: Any = importlib.import_module("ranx.statistical_tests.fisher_randomization_test")
    except ImportError:
        return None
    test = module.fisher_randomization_test
    return lambda control, treatment, resamples: test(control, treatment, n_permutations=resamples)


class Table:
    """Rows of two medians and their ratio, which are kept as figures."""

    def __init__(self, path: Path | None) -> None:
        self.figures = Figures(path)
        print(f"{'what':<34} {'n':>6} {'ours':>11} {'theirs':>11} {'ratio':>8} {'target':>7}")

    def row(self, what: str, n: int, ours: float, theirs: float, target: float | None) -> None:
        found = self.figures.ratio(f"{what}, n = {n}, ms", ours * 1e3, theirs * 1e3, target)
        wanted = "" if target is None else f"{target:g}"
        print(
            f"{what:<34} {n:>6} {ours * 1e3:>8.3f} ms {theirs * 1e3:>8.2f} ms {found.ratio:>8.1f} {wanted:>7}",
            flush=True,
        )


def resampled(
    table: Table,
    n: int,
    resamples: int,
    runs: int,
    ranx: Callable[[np.ndarray, np.ndarray, int], object] | None,
) -> None:
    """The rows of the sign flips and the bootstrap of n queries; ratios to reach are those of few resamples."""
    d, zeros = differences(n), np.zeros(n)
    few = resamples == RESAMPLES
    label = "" if few else f", {resamples:,}"

    def flips() -> object:
        return randomization_test(d, resamples=resamples)

    def interval() -> object:
        return bootstrap_mean(d, resamples=resamples)

    assert randomization_test(d).method == "monte carlo"
    ours, theirs = side_by_side(flips, lambda: scipy_flips(d, resamples), runs)
    table.row(f"sign flips, scipy{label}", n, ours, theirs, FLIPS_OVER_SCIPY[n] if few else None)
    if ranx is not None:
        ours, theirs = side_by_side(flips, lambda: ranx(d, zeros, resamples), runs)
        table.row(f"sign flips, ranx{label}", n, ours, theirs, FLIPS_OVER_RANX[n] if few else None)
    ours, theirs = side_by_side(interval, lambda: scipy_bootstrap(d, "percentile", resamples), max(runs, 3))
    table.row(f"BCa, scipy's percentile{label}", n, ours, theirs, BOOTSTRAP_OVER_SCIPY[n] if few else None)
    if n <= 300:  # scipy's jackknife of a mean needs n * n numbers
        ours, theirs = side_by_side(interval, lambda: scipy_bootstrap(d, "BCa", resamples), runs)
        table.row(f"BCa, scipy's BCa{label}", n, ours, theirs, None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer runs, no 6,980 queries")
    json_option(parser)
    arguments = parser.parse_args()
    quick = arguments.quick
    warnings.simplefilter("ignore")
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, {RESAMPLES:,} resamples, CPU time, medians")

    table = Table(arguments.json)
    ranx = ranx_flips()
    for n in SIZES[:2] if quick else SIZES:
        runs = 3 if quick or n > 1000 else 9
        resampled(table, n, RESAMPLES, runs, ranx)
        if n <= 300:
            resampled(table, n, MANY, 3, ranx)
        d = differences(n)
        ours, theirs = side_by_side(lambda d=d: t_test(d), lambda d=d: scipy.stats.ttest_1samp(d, 0.0), max(runs, 5))
        table.row("t, scipy", n, ours, theirs, None)

    d = differences(14)
    ours, theirs = side_by_side(
        lambda: randomization_test(d),
        lambda: scipy.stats.permutation_test(
            (d,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
        ),
        3,
    )
    table.row("exact sign flips, scipy", 14, ours, theirs, None)

    print("\nexact and lattice tests, ours alone:")
    for label, values in (
        ("split, 30", differences(30)),
        ("split, 40", differences(40)),
        ("lattice, hit rate, 6980", np.resize([1.0, -1.0, 0.0, 0.0, 1.0, -1.0, -1.0], 6980)),
        ("lattice, P@10, 6980", np.rint(differences(6980) * 20) / 10),
        ("lattice, recall (D 2520), 300", np.rint(differences(300) * 5040) / 2520),
    ):
        times = []
        for _ in range(5):
            start = time.process_time()
            method = randomization_test(values).method
            times.append(time.process_time() - start)
        print(f"  {label:<32} {method:<12} {median(times) * 1e3:8.2f} ms")

    if ranx is None:
        print("\nranx is not installed: not compared")
    for figure in table.figures.found:
        if figure.met is False:
            print(f"MISSED {figure.what}: {figure.ratio:.1f} of {figure.target:g}")
    return table.figures.status


if __name__ == "__main__":
    sys.exit(main())
