"""How often each rule fails a gate: without any true change, and with a true loss.

    python benchmarks/gate_power.py [--quick] [--trials N] [--processes N]

Suites of 50, 200 and 1,000 queries are drawn, two runs are ranked for each, and the product's own rules decide on the
two columns of ndcg@10. Three kinds of noise come without a change (both runs are drawn alike): documents whose scores
wobble, ties in random order, near-duplicates that swap. A true loss takes a relevant document out of the lists of
2 %, 8 % or 24 % of the queries, on a deterministic retriever or on top of the wobbling scores; or it costs, in the
mean of the population, exactly the margin. Prints the share of trials with its standard error. Quick: 200 trials.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.rules import compared, rule_on
from pytest_retrieval_eval.stats.paired import randomization_test

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]  # candidate and baseline, a value for each query

SIZES = (50, 200, 1000)
MARGINS = (0.01, 0.05)
SHARES = (0.02, 0.08, 0.24)
CANDIDATES, CUTOFF = 20, 10
GATES = (
    ("mean", 0.0),
    ("mean", 0.01),
    ("mean", 0.05),
    ("significant", 0.0),
    ("significant", 0.01),
    ("significant", 0.05),
    ("noninferior", 0.01),
    ("noninferior", 0.05),
    ("each", 0.0),
    ("each", 0.01),
)
_DISCOUNTS = 1.0 / np.log2(np.arange(2, CUTOFF + 2))


# --- suites and what happens to them ----------------------------------------------------------------------------


def suite(rng: np.random.Generator, n: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores and relevance of 20 candidates for each of ``n`` queries; 1 to 3 of them are relevant."""
    relevant = np.arange(CANDIDATES) < rng.integers(1, 4, (n, 1))
    return rng.normal(0.0, 1.0, (n, CANDIDATES)) + 1.5 * relevant, relevant


def ndcg(scores: Floats, relevant: NDArray[np.bool_], ideal: NDArray[np.int64] | None = None) -> Floats:
    """ndcg@10 of the ranking by ``scores``; ``ideal`` is the number of relevant documents that there are."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :CUTOFF]
    gains = np.take_along_axis(relevant, order, axis=1) @ _DISCOUNTS
    found = relevant.sum(axis=1) if ideal is None else ideal
    return gains / np.cumsum(_DISCOUNTS)[found - 1]


def wobble(rng: np.random.Generator, scores: Floats) -> Floats:
    """Scores as of an index that was built anew: each a little different."""
    return scores + rng.normal(0.0, 0.15, scores.shape)


def reordering(rng: np.random.Generator, n: int) -> Pair:
    scores, relevant = suite(rng, n)
    return ndcg(wobble(rng, scores), relevant), ndcg(wobble(rng, scores), relevant)


def ties(rng: np.random.Generator, n: int) -> Pair:
    """Scores of few levels; documents of one level stand in random order, in each run another one."""
    scores, relevant = suite(rng, n)
    coarse = np.round(scores * 2.0)
    return tuple(ndcg(coarse + rng.random(scores.shape) / 4, relevant) for _ in range(2))  # type: ignore[return-value]


def near_duplicates(rng: np.random.Generator, n: int) -> Pair:
    """In 3 of 10 queries a relevant document has an unjudged copy: one of them stands right behind the other."""
    scores, relevant = suite(rng, n)
    copied = rng.random(n) < 0.3

    def ranked() -> Floats:
        copy_first = copied & (rng.random(n) < 0.5)
        copies = scores[:, :1] + np.where(copy_first, 1e-9, -1e-9)[:, None]
        copies[~copied] = -np.inf
        return ndcg(np.hstack((scores, copies)), np.hstack((relevant, np.zeros((n, 1), bool))))

    return ranked(), ranked()


def loss(share: float, noisy: bool) -> Callable[[np.random.Generator, int], Pair]:
    """A share of the suite's queries, exactly, loses a relevant document that it had found."""

    def drawn(rng: np.random.Generator, n: int) -> Pair:
        scores, relevant = suite(rng, n)
        scores[:, 0] = np.maximum(scores[:, 0], np.sort(scores, axis=1)[:, -5])  # within the first five
        lost = rng.permutation(n) < max(1, round(share * n))
        after = relevant.copy()
        after[lost, 0] = False
        old, new = (wobble(rng, scores), wobble(rng, scores)) if noisy else (scores, scores)
        ideal = relevant.sum(axis=1)
        return ndcg(new, after, ideal), ndcg(old, relevant, ideal)

    return drawn


def few_lose_much(margin: float) -> Callable[[np.random.Generator, int], Pair]:
    """Each query loses 0.5 with the probability that makes the mean loss of the population the margin."""

    def drawn(rng: np.random.Generator, n: int) -> Pair:
        before = rng.uniform(0.5, 1.0, n)
        return before - 0.5 * (rng.random(n) < 2.0 * margin), before

    return drawn


def all_lose_a_little(margin: float) -> Callable[[np.random.Generator, int], Pair]:
    """Wobbling scores, and each query loses between nothing and twice the margin."""

    def drawn(rng: np.random.Generator, n: int) -> Pair:
        after, before = reordering(rng, n)
        return after - rng.uniform(0.0, 2.0 * margin, n), before

    return drawn


@dataclass(frozen=True)
class Scenario:
    """``kind`` is "no change", "loss" or "margin"; ``margin`` restricts it to the gates of that margin."""

    kind: str
    name: str
    draw: Callable[[np.random.Generator, int], Pair]
    margin: float | None = None


def scenarios() -> list[Scenario]:
    found = [
        Scenario("no change", "reordering", reordering),
        Scenario("no change", "ties", ties),
        Scenario("no change", "near-duplicates", near_duplicates),
    ]
    for noisy in (False, True):
        for share in SHARES:
            found.append(Scenario("loss", f"{share:.0%} {'noisy' if noisy else 'quiet'}", loss(share, noisy)))
    for margin in MARGINS:
        found.append(Scenario("margin", "few lose much", few_lose_much(margin), margin))
        found.append(Scenario("margin", "all lose a little", all_lose_a_little(margin), margin))
    return found


# --- counting ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rate:
    """How often a gate failed over the trials of one scenario.

    ``unresolvable``: trials whose randomization test could not have come below alpha, so that ``significant`` decided
    as ``mean``; ``failed_resolvable`` counts the failures among the other ones. ``loss`` is the mean loss drawn.
    """

    rule: str
    margin: float
    n: int
    kind: str
    scenario: str
    trials: int
    failed: int
    unresolvable: int
    failed_resolvable: int
    loss: float

    @property
    def share(self) -> float:
        return self.failed / self.trials

    @property
    def error(self) -> float:
        """The standard error of ``share``."""
        return standard_error(self.share, self.trials)

    @property
    def resolvable_share(self) -> float | None:
        """The share of failures where the test could resolve them."""
        tried = self.trials - self.unresolvable
        return self.failed_resolvable / tried if tried else None


def standard_error(share: float, trials: int) -> float:
    return math.sqrt(share * (1.0 - share) / trials)


def gate(rule: str, margin: float) -> Gate:
    return Gate.parse("ndcg@10 >= baseline" + (f" - {margin}" if margin else ""), rule=rule)


def rates(scenario: Scenario, n: int, trials: int, gates: Sequence[tuple[str, float]] = GATES) -> list[Rate]:
    """One scenario at one size: what the rules decide on ``trials`` drawn pairs of runs."""
    chosen = [(rule, m) for rule, m in gates if scenario.margin is None or scenario.margin == m]
    parsed = [gate(rule, margin) for rule, margin in chosen]
    rng = np.random.default_rng([n, *scenario.name.encode(), int(1000 * (scenario.margin or 0.0))])
    failed = np.zeros((trials, len(chosen)), bool)
    resolvable = np.zeros(trials, bool)
    losses = np.zeros(trials)
    for trial in range(trials):
        after, before = scenario.draw(rng, n)
        test = randomization_test(after - before)
        resolvable[trial] = test.resolvable(0.05, "one")
        losses[trial] = (before - after).mean()
        means = math.fsum(after) / n, math.fsum(before) / n
        for column, each in enumerate(parsed):
            failed[trial, column] = not rule_on(compared(each, after, before, *means), test).holds
    return [
        Rate(
            rule,
            margin,
            n,
            scenario.kind,
            scenario.name,
            trials,
            int(failed[:, column].sum()),
            int((~resolvable).sum()),
            int(failed[resolvable, column].sum()),
            float(losses.mean()),
        )
        for column, (rule, margin) in enumerate(chosen)
    ]


def _task(work: tuple[int, int, int]) -> list[Rate]:
    place, n, trials = work
    return rates(scenarios()[place], n, trials)


def simulate(trials: int, sizes: Iterable[int] = SIZES, processes: int = 1) -> list[Rate]:
    """Every scenario at every size."""
    tasks = [(place, n, trials) for n in sorted(sizes, reverse=True) for place in range(len(scenarios()))]
    if processes == 1:
        found = [_task(task) for task in tasks]
    else:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            found = list(pool.imap_unordered(_task, tasks))
    return [rate for part in found for rate in part]


# --- printing ---------------------------------------------------------------------------------------------------


def percent(share: float, trials: int) -> str:
    """A share with its standard error, both in per cent; 0 and 100 have none to estimate."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}"
    return f"{100 * share:.1f} ± {100 * standard_error(share, trials):.1f}"


def table(found: Sequence[Rate], kind: str) -> list[str]:
    """A Markdown table of one kind of scenario: a line for each rule, margin and size."""
    by = {(r.rule, r.margin, r.n, r.scenario): r for r in found if r.kind == kind}
    names = list(dict.fromkeys(s.name for s in scenarios() if s.kind == kind))
    sizes = sorted({r.n for r in found})
    head = ["rule", "margin", "queries", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for rule, margin in GATES:
        for n in sizes:
            row = [by.get((rule, margin, n, name)) for name in names]
            if any(row):
                shares = [
                    "" if r is None else percent(1.0 - r.share if kind == "margin" else r.share, r.trials) for r in row
                ]
                lines.append("| " + " | ".join([f"`{rule}`", f"{margin:g}", f"{n:,}", *shares]) + " |")
    return lines


def fallback_table(found: Sequence[Rate]) -> list[str]:
    """Of `significant` at margin 0 without a change: its level where the test resolves, and how often it cannot."""
    lines = [
        "| noise | queries | the test could not resolve it | failed, where it could | failed, where it could not |",
        "|---|---|---|---|---|",
    ]
    for rate in sorted(found, key=lambda r: (r.scenario, r.n)):
        if (rate.rule, rate.margin, rate.kind) != ("significant", 0.0, "no change"):
            continue
        tried = rate.trials - rate.unresolvable
        level = "" if rate.resolvable_share is None else percent(rate.resolvable_share, tried)
        rest = rate.failed - rate.failed_resolvable
        other = percent(rest / rate.unresolvable, rate.unresolvable) if rate.unresolvable else "–"
        missing = percent(rate.unresolvable / rate.trials, rate.trials)
        lines.append(f"| {rate.scenario} | {rate.n:,} | {missing} | {level} | {other} |")
    return lines


def losses_table(found: Sequence[Rate]) -> list[str]:
    """How much the mean of ndcg@10 falls in the scenarios with a loss."""
    lines = ["| loss in | mean loss of ndcg@10 |", "|---|---|"]
    largest = max(r.n for r in found)
    for name in dict.fromkeys(s.name for s in scenarios() if s.kind == "loss" and s.name.endswith("quiet")):
        rate = next(r for r in found if r.scenario == name and r.n == largest)
        lines.append(f"| {name.split()[0]} | {rate.loss:.3f} |")
    return lines


def report(found: Sequence[Rate]) -> str:
    trials = found[0].trials
    parts = [
        f"{trials:,} trials each; per cent ± standard error.",
        "**Failed without any true change**",
        *table(found, "no change"),
        "**`significant` at margin 0 without any true change, by whether its test could resolve anything**",
        *fallback_table(found),
        "**Failed with a true loss in a share of the queries**",
        *table(found, "loss"),
        *losses_table(found),
        "**Passed with a true mean loss equal to the margin**",
        *table(found, "margin"),
    ]
    text = ""
    for before, part in zip(["", *parts], parts, strict=False):
        head = not (before.startswith("|") and part.startswith("|")) or part.startswith("| loss in")
        text += ("\n" if head and text else "") + part + "\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 trials")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    trials = 200 if arguments.quick else arguments.trials
    found = simulate(trials, processes=arguments.processes)
    print(report(found))
    broken = [
        rate
        for rate in found
        if rate.rule == "mean" and rate.margin == 0.0 and rate.scenario.endswith("quiet") and rate.failed < rate.trials
    ]
    for rate in broken:
        print(f"rule mean passed {rate.trials - rate.failed} true drops ({rate.scenario}, {rate.n} queries)")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
