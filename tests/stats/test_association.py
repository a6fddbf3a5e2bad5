"""One score of each query against another: correlations, their interval, ceiling and ties."""

from __future__ import annotations

import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.stats.association import (
    area_under_curve,
    association,
    binary_ceiling,
    tau_b_interval,
    tied_share,
)

pytestmark = pytest.mark.skipif(find_spec("scipy") is None, reason="scipy is the oracle")
FEW = st.integers(0, 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FEW, FEW), min_size=2, max_size=30))
def test_the_correlations_are_those_of_scipy(pairs):
    from scipy.stats import kendalltau, spearmanr

    x, y = np.array(pairs, float).T
    found = association(x, y, resamples=20)
    assert found.n == len(pairs)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.tau is found.rho is found.interval is found.ceiling is None
        assert found.undefined.startswith("constant")
    else:
        assert found.tau == pytest.approx(kendalltau(x, y).statistic)
        assert found.rho == pytest.approx(spearmanr(x, y).statistic)
        assert not found.undefined
        assert found.tau <= found.ceiling + 1e-12


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(FEW, FEW), min_size=2, max_size=6))
def test_no_pairing_of_the_same_values_is_above_the_ceiling_and_one_reaches_it(pairs):
    x, y = np.array(pairs, float).T
    found = association(x, y, resamples=1)
    if not found.undefined:
        every = [association(x, order, resamples=1).tau for order in set(itertools.permutations(y))]
        assert max(every) == pytest.approx(found.ceiling)


def test_the_ceiling_of_right_and_wrong_answers_is_0_675_at_a_rate_of_0_35():
    assert binary_ceiling(0.35) == pytest.approx(0.675, abs=5e-4)
    n = 2000
    found = association(np.arange(n), np.arange(n) >= 0.65 * n, resamples=1)
    assert found.auc == 1.0
    assert found.tau == pytest.approx(found.ceiling)
    assert found.tau == pytest.approx(binary_ceiling(0.35), abs=5e-4)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        binary_ceiling(1.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(FEW, st.booleans()), min_size=2, max_size=30))
def test_auc_is_the_share_of_pairs_that_mann_and_whitney_count(pairs):
    from scipy.stats import mannwhitneyu

    x = np.array([score for score, _ in pairs], float)
    y = np.array([right for _, right in pairs])
    found = association(x, y, resamples=1).auc
    if y.all() or not y.any():
        assert found is None
    else:
        statistic = mannwhitneyu(x[y], x[~y], alternative="two-sided", method="asymptotic").statistic
        assert found == pytest.approx(statistic / (y.sum() * (~y).sum()))


def test_auc_is_there_for_two_values_only():
    assert association([1, 2, 3], [0.0, 0.5, 1.0], resamples=1).auc is None
    assert association([1, 1, 1], [0, 0, 1]).auc == 0.5  # constant scores tell nothing, and that is known
    with pytest.raises(ValueError, match="has 1 values"):
        area_under_curve([1, 2], [1, 1])


def test_the_last_bits_of_sums_are_ties():
    found = association([0.1 + 0.2, 0.3, 0.5], [0.0, 1.0, 1.0], resamples=1)
    assert found.tied == pytest.approx(1 / 3)
    assert found.tau == association([0.3, 0.3, 0.5], [0.0, 1.0, 1.0], resamples=1).tau


def test_what_has_no_correlation_says_why():
    assert association([], []).undefined == "fewer than 2 queries"
    assert association([1], [1]).undefined == "fewer than 2 queries"
    assert association([1, 1], [0, 1]).undefined == "constant scores"
    assert association([0, 1], [1, 1]).undefined == "constant answers"
    assert association([2, 2], [1, 1]).undefined == "constant scores and answers"
    with pytest.raises(ValueError, match="finite"):
        association([1, math.nan], [0, 1])
    with pytest.raises(ValueError, match="2 scores and 3 answers"):
        association([1, 2], [0, 1, 1])


def test_the_interval_is_that_of_a_plain_bootstrap():
    from scipy.stats import kendalltau

    generator = np.random.default_rng(7)
    x = generator.integers(0, 6, 80).astype(float)
    y = (x + generator.normal(0, 2.5, 80) > 3).astype(float)
    found = tau_b_interval(x, y, resamples=4000)
    slow = []
    for _ in range(1500):
        drawn = generator.integers(0, 80, 80)
        slow.append(kendalltau(x[drawn], y[drawn]).statistic)
    assert (found.level, found.method) == (0.95, "percentile")
    assert [found.low, found.high] == pytest.approx(np.quantile(slow, [0.025, 0.975]).tolist(), abs=0.03)
    assert tau_b_interval(x, y, resamples=4000) == found
    assert tau_b_interval(x, y, resamples=4000, level=0.5).low > found.low


def test_an_interval_from_resamples_that_mostly_have_no_tau_is_none():
    found = association([1, 2, 3, 4], [0, 0, 0, 1], resamples=200)  # a third of the resamples has no success
    assert found.interval is None
    assert found.tau is not None


def test_ties_are_counted_in_pairs():
    assert tied_share([1, 1, 1, 2]) == 0.5
    assert tied_share([]) == 0.0
