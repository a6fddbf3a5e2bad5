"""How often a gate on a percentile of times fails: without any true change, at its margin, and with a true loss.

    python benchmarks/percentile_power.py [--quick] [--trials N] [--measure latency.p95] [--json PATH]

Each query has a time of its own (log-normal, so that a few are slow), and each run measures it with noise. The
product's own rules decide on the two columns. *No change*: both runs are drawn alike. *More noise*: the noise of the
candidate is half as large again, and its times are scaled so that the percentile of the population stays. *Margin*: the
candidate takes 10 % longer, which is the margin of the gate. *Loss*: it takes 30 % longer; *slow tail*: one query in
ten takes twice as long. Prints the share of trials that failed, in per cent with its standard error, and how often the
95 % interval of the percentile holds that of the population. Quick: 100 trials.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path[0] = os.path.dirname(HERE)
    sys.path.append(HERE)

import argparse
import math
from collections.abc import Callable

import numpy as np
from figures import Figures, json_option
from numpy.typing import NDArray

from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.rules import compared, rule_on
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import definition
from pytest_retrieval_eval.measures.summaries import Summary

Floats = NDArray[np.float64]

SIZES = (50, 200, 1000)
GATES = (
    ("mean", "{} <= baseline"),
    ("mean", "{} <= baseline * 1.1"),
    ("significant", "{} <= baseline"),
    ("significant", "{} <= baseline * 1.1"),
    ("noninferior", "{} <= baseline * 1.1"),
)
SPREAD, NOISE = 0.6, 0.2  # standard deviations of the logarithms: between queries, and of one measurement


def times(rng: np.random.Generator, own: Floats, noise: float = NOISE) -> Floats:
    """Milliseconds of one run over queries whose own times are given."""
    return own * np.exp(rng.normal(0.0, noise, own.size))


def quantile_of(normal: float, noise: float = NOISE) -> float:
    """The quantile of the population, for that of the standard normal distribution."""
    return 50.0 * math.exp(normal * math.hypot(SPREAD, noise))


def scenarios(normal: float) -> dict[str, Callable[[np.random.Generator, Floats], Floats]]:
    """The candidate's times, by what happened to it."""
    wide = 1.5 * NOISE
    keeps = quantile_of(normal) / quantile_of(normal, wide)
    return {
        "no change": times,
        "more noise": lambda rng, own: keeps * times(rng, own, wide),
        "margin": lambda rng, own: 1.1 * times(rng, own),
        "loss": lambda rng, own: 1.3 * times(rng, own),
        "slow tail": lambda rng, own: times(rng, own) * np.where(rng.random(own.size) < 0.1, 2.0, 1.0),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--measure", default="latency.p95")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    json_option(parser)
    arguments = parser.parse_args()
    trials = 100 if arguments.quick else arguments.trials
    measure = Measure.parse(arguments.measure)
    found = definition(measure.name)
    summary = Summary(found.statistic, smooth=found.smooth)
    from statistics import NormalDist

    normal = NormalDist().inv_cdf(float("0." + measure.name.partition(".p")[2]))
    gates = [(rule, text, Gate.parse(text.format(measure), rule=rule)) for rule, text in GATES]
    figures = Figures(arguments.json)
    for n in arguments.sizes:
        for number, (name, changed) in enumerate(scenarios(normal).items()):
            rng = np.random.default_rng([n, number])
            failed, held = np.zeros(len(gates), int), 0
            for _ in range(trials):
                own = 50.0 * np.exp(rng.normal(0.0, SPREAD, n))
                before, after = times(rng, own), changed(rng, own)
                value, reference = summary.of(after), summary.of(before)
                for column, (_, _, gate) in enumerate(gates):
                    comparison = compared(gate, after, before, value, reference, summary)
                    test = comparison.test() if gate.options.rule == "significant" else None
                    failed[column] += not rule_on(comparison, test).holds
                interval = summary.interval(before) if number == 0 else None
                held += interval is not None and interval.low <= quantile_of(normal) <= interval.high
            for (rule, text, _), times_failed in zip(gates, failed.tolist(), strict=True):
                share = times_failed / trials
                error = math.sqrt(share * (1.0 - share) / trials)
                what = f"{text.format(measure)}, {rule}, n = {n:,}, {name}: % failed"
                figures.bound(what, 100.0 * share)
                print(f"{what:<75} {100 * share:5.1f} ± {100 * error:.1f}", flush=True)
            if number == 0:
                figures.bound(f"{measure}, n = {n:,}: % of 95 % intervals that hold it", 100.0 * held / trials)
                print(f"{measure}, n = {n:,}: the 95 % interval holds it in {100 * held / trials:.1f} %", flush=True)
    return figures.status


if __name__ == "__main__":
    sys.exit(main())
