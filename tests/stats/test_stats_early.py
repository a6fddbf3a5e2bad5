"""Early stopping: a wrong decision is rare whatever the differences are, and the right one comes soon."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT, script

from pytest_retrieval_eval.stats import EarlyStop

N, ORDERS = 200, 400


def settle(differences, margin, seed, alpha=0.05):
    stop = EarlyStop(len(differences), margin, alpha, seed=seed)
    for query in stop.order.tolist():
        if stop.update(differences[query]) != "continue":
            break
    return stop.decision, stop.read


def shares(differences, margin, orders=ORDERS, alpha=0.05):
    found = [settle(differences, margin, seed, alpha)[0] for seed in range(orders)]
    return {kind: found.count(kind) / orders for kind in ("worse", "not worse")}


def boundary(kind):
    """Populations whose mean is the margin .05 exactly: both tests have their hardest case."""
    if kind == "few lose all":
        return [-1.0] * 10 + [0.0] * (N - 10)
    if kind == "many differ":
        return [-1.0] * 50 + [0.0] * 110 + [1.0] * 40
    noise = np.random.default_rng(3).normal(0.0, 0.2, N)
    return (noise - noise.mean() - 0.05).tolist()


@pytest.mark.parametrize("kind", ["few lose all", "many differ", "noise"])
def test_a_wrong_decision_is_rarer_than_alpha(kind):
    differences = boundary(kind)
    assert math.fsum(differences) / N == pytest.approx(-0.05)
    error = 3 * math.sqrt(0.05 * 0.95 / ORDERS)
    on_the_boundary = shares(differences, 0.05)
    assert on_the_boundary["worse"] <= 0.05 + error
    # A little more loss, and "not worse" is the wrong decision.
    differences[differences.index(max(differences))] -= 0.01
    assert shares(differences, 0.05)["not worse"] <= 0.05 + error
    assert sum(on_the_boundary.values()) > 0.0  # it does decide at times: the bound above says something


def test_a_stricter_alpha_is_kept_as_well():
    assert shares(boundary("many differ"), 0.05, alpha=0.2)["worse"] <= 0.2 + 3 * math.sqrt(0.16 / ORDERS)
    assert settle([0.0] * 300, 0.05, 0, alpha=0.001)[1] > settle([0.0] * 300, 0.05, 0, alpha=0.05)[1]


def test_all_orders_of_a_small_collection():
    # Exactly, not by sampling: over all orders of seven differences whose mean is the margin.
    differences = (-1.0, -0.9, 0.0, 0.0, 0.2, 0.5, 0.5)
    wrong = total = 0
    for order in itertools.permutations(range(7)):
        stop = EarlyStop(7, 0.1, 0.4)
        decision = "continue"
        for query in order:
            decision = stop.update(differences[query])
            if decision != "continue":
                break
        total += 1
        wrong += decision == "worse"
    assert total == 5_040
    assert 0 < wrong / total <= 0.4


def test_what_the_differences_that_are_left_cannot_change_is_settled_at_once():
    stop = EarlyStop(10, 0.75, 1e-9)
    decisions = [stop.update(0.0) for _ in range(3)]
    assert decisions == ["continue", "continue", "not worse"]  # 7 of 10 could still lose all: −0.7
    stop = EarlyStop(10, 0.05, 1e-9, bounds=(-1.0, 1e-6))
    assert stop.update(-1.0) == "worse"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0.001, 0.9), st.integers(0, 2**32))
def test_it_ends_with_a_decision_or_with_all_read(differences, margin, seed):
    decision, read = settle(differences, margin, seed)
    assert (decision == "continue" and read == len(differences)) or 1 <= read <= len(differences)
    assert settle(differences, margin, seed) == (decision, read)


def test_the_expected_numbers():
    reads = [settle([0.0] * 300, 0.05, seed) for seed in range(5)]
    assert set(reads) == {("not worse", 62)}  # no order of equal differences differs
    lost = [-1.0] * 72 + [0.0] * 228
    found = [settle(lost, 0.05, seed) for seed in range(200)]
    assert {decision for decision, _ in found} == {"worse"}
    assert 24 <= sum(read for _, read in found) / 200 <= 34
    assert settle([0.0] * 300, 0.01, 0)[1] > 200


def test_the_order_is_a_seeded_permutation():
    order = EarlyStop(100, 0.1, seed=5).order
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() == EarlyStop(100, 0.1, seed=5).order.tolist()
    assert order.tolist() != EarlyStop(100, 0.1, seed=6).order.tolist()
    with pytest.raises(ValueError):
        order[0] = 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 0, "margin": 0.1}, "n is 0"),
        ({"n": 5, "margin": 0.0}, "needs a margin above 0"),
        ({"n": 5, "margin": math.nan}, "needs a margin above 0"),
        ({"n": 5, "margin": 1.0}, "no query can lose more than 1"),
        ({"n": 5, "margin": 0.1, "alpha": 0.0}, "alpha"),
        ({"n": 5, "margin": 0.1, "bounds": (0.0, 1.0)}, "bounds"),
        ({"n": 5, "margin": 0.1, "bounds": (-1.0, math.inf)}, "bounds"),
    ],
)
def test_what_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        EarlyStop(**arguments)


@pytest.mark.parametrize("difference", [math.nan, 1.1, -1.1, math.inf])
def test_differences_outside_the_bounds_are_refused(difference):
    with pytest.raises(ValueError, match="outside the bounds"):
        EarlyStop(5, 0.1).update(difference)


def test_nothing_is_read_after_the_end():
    stop = EarlyStop(2, 0.1)
    assert [stop.update(-0.1), stop.update(-0.1)] == ["continue", "continue"]
    with pytest.raises(ValueError, match="all 2 differences were read"):
        stop.update(0.0)
    settled = EarlyStop(300, 0.05)
    while settled.update(0.0) == "continue":
        pass
    with pytest.raises(ValueError, match="settled"):
        settled.update(0.0)


def test_the_documents_show_what_the_benchmark_prints():
    page = Path(ROOT, "docs/explanation/error-rates.md").read_text(encoding="utf-8")
    assert script("benchmarks/early_stopping.py").table() in page
