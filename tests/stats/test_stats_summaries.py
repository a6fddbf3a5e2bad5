"""Corrections, power, rank correlations, means and special functions, against scipy and plain definitions."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.stats import (
    benjamini_hochberg,
    distribution,
    holm,
    kendall_tau_b,
    mean,
    same,
    smallest_detectable_drop,
    spearman,
    tau_ap,
)
from pytest_retrieval_eval.stats._special import incomplete_beta, normal_cdf, normal_quantile, student_tail

# --- corrections

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(probabilities)
def test_benjamini_hochberg_equals_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(scipy.stats.false_discovery_control(p), abs=1e-15)


@given(probabilities, st.floats(0.001, 0.5))
def test_holm_rejects_what_its_steps_reject(p: list[float], alpha: float) -> None:
    rejected = set()
    for step, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] * (len(p) - step) > alpha:
            break
        rejected.add(i)
    assert set(np.flatnonzero(holm(p) <= alpha).tolist()) == rejected


@given(probabilities, st.randoms(use_true_random=False))
def test_adjusted_values_keep_the_order_given(p: list[float], shuffler: object) -> None:
    order = list(range(len(p)))
    shuffler.shuffle(order)  # type: ignore[attr-defined]
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        assert adjust([p[i] for i in order]).tolist() == [adjusted[i] for i in order]
        assert (adjusted >= np.array(p) * (1 - 1e-15)).all()
        assert adjusted.max() <= 1.0


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_corrections_bad_input(adjust: object) -> None:
    for p, message in (([], "p is empty"), ([0.5, 1.5], r"p\[1\] is 1\.5; expected a probability")):
        with pytest.raises(ValueError, match=message):
            adjust(p)  # type: ignore[operator]


# --- power


def test_smallest_drop_is_found_with_the_power_promised() -> None:
    generator = np.random.default_rng(0)
    drop = smallest_detectable_drop(generator.normal(0.0, 0.1, 200))
    found = sum(
        scipy.stats.ttest_1samp(generator.normal(-drop, 0.1, 200), 0.0, alternative="less").pvalue < 0.05
        for _ in range(500)
    )
    assert found / 500 == pytest.approx(0.8, abs=0.12)


def test_without_spread_the_drop_is_what_no_query_shows() -> None:
    assert smallest_detectable_drop([0.0] * 50) == pytest.approx(1 - 0.05 ** (1 / 50), rel=1e-12)
    assert smallest_detectable_drop([0.0] * 50, largest_loss=0.5) == pytest.approx((1 - 0.05 ** (1 / 50)) / 2)
    assert smallest_detectable_drop([0.3]) == pytest.approx(0.95)
    assert smallest_detectable_drop([0.0] * 299, alpha=0.05) < 0.01 + 1e-4


def test_more_queries_or_less_power_find_smaller_drops() -> None:
    differences = np.resize([0.5, -0.5, 0.2, -0.4], 40)
    drop = smallest_detectable_drop(differences)
    assert smallest_detectable_drop(np.tile(differences, 4)) < drop
    assert smallest_detectable_drop(differences, power=0.5) < drop
    assert smallest_detectable_drop(differences, alpha=0.01) > drop


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"power": 1.0}, r"power is 1\.0"),
        ({"alpha": 0.0}, r"alpha is 0\.0"),
        ({"largest_loss": 0.0}, r"largest_loss is 0\.0; expected a positive number"),
    ],
)
def test_power_bad_input(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        smallest_detectable_drop([0.0, 0.1], **arguments)


# --- rank correlations

scores = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=25).filter(
    lambda pairs: len({x for x, _ in pairs}) > 1 and len({y for _, y in pairs}) > 1
)


@given(scores)
def test_tau_b_and_spearman_equal_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    assert kendall_tau_b(x, y) == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)


def test_rank_correlations_of_thousands_of_items() -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 3000))
    y = np.round(x + noise, 1)
    assert kendall_tau_b(x, y) == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert 0.3 < tau_ap(x, y) < kendall_tau_b(x, y) + 0.1


def plain_tau_ap(truth: list[float], ranking: tuple[int, ...]) -> float:
    """The definition of the paper, for a ranking of items and true scores without ties."""
    shares = [
        sum(truth[above] > truth[ranking[place]] for above in ranking[:place]) / place
        for place in range(1, len(ranking))
    ]
    return 2 * sum(shares) / len(shares) - 1


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)))
def test_tau_ap_is_the_papers_definition(ranking: list[int]) -> None:
    truth = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    estimate = [0.0] * 6
    for place, item in enumerate(ranking):
        estimate[item] = -float(place)
    assert tau_ap(truth, estimate) == pytest.approx(plain_tau_ap(truth, tuple(ranking)), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5).filter(
        lambda pairs: len({x for x, _ in pairs}) > 1 and len({y for _, y in pairs}) > 1
    )
)
def test_tau_ap_of_ties_is_the_mean_over_ways_to_break_them(pairs: list[tuple[int, int]]) -> None:
    truth, estimate = ([float(v) for v in side] for side in zip(*pairs, strict=True))
    n = len(truth)
    rankings = [
        r for r in itertools.permutations(range(n)) if all(estimate[a] >= estimate[b] for a, b in itertools.pairwise(r))
    ]
    truths = [
        [float(order.index(i)) for i in range(n)]
        for order in itertools.permutations(range(n))
        if all(truth[a] <= truth[b] for a, b in itertools.pairwise(order))
    ]
    expected = statistics.fmean(plain_tau_ap(t, r) for t in truths for r in rankings)
    assert tau_ap(truth, estimate) == pytest.approx(expected, abs=1e-12)


def test_equal_and_reversed_rankings() -> None:
    x = [0.1, 0.5, 0.3, 0.9]
    for correlation in (kendall_tau_b, spearman, tau_ap):
        assert correlation(x, x) == 1.0
        assert correlation(x, [-v for v in x]) == -1.0


@pytest.mark.parametrize("correlation", [kendall_tau_b, spearman, tau_ap])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 1, 1], [1, 2, 3], r"is constant \(1\); its correlation with anything is undefined"),
        ([1, 2, 3], [2, 2, 2], r"is constant \(2\)"),
        ([1, 2], [1, 2, 3], "expected one of each per item"),
        ([1], [1], "a correlation needs at least two"),
        ([1, math.nan], [1, 2], r"\[1\] is nan"),
    ],
)
def test_undefined_correlations_are_errors(correlation: object, x: list[float], y: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        correlation(x, y)  # type: ignore[operator]


# --- means


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_mean_is_exact_and_has_no_order(values: list[float], shuffler: object) -> None:
    expected = mean(values)
    assert expected == math.fsum(values) / len(values)
    shuffler.shuffle(values)  # type: ignore[attr-defined]
    assert mean(values) == expected


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_distribution_equals_numpy(values: list[float]) -> None:
    spread = distribution(values)
    expected = np.quantile(values, [0.0, 0.05, 0.25, 0.5, 0.75, 1.0])
    found = (spread.minimum, spread.p05, spread.p25, spread.p50, spread.p75, spread.maximum)
    assert found == pytest.approx(expected, abs=1e-12)
    assert spread.n == len(values)
    assert spread.zeros == pytest.approx(np.mean(np.abs(values) <= 1e-9))


@pytest.mark.parametrize("summary", [mean, distribution])
def test_summaries_bad_input(summary: object) -> None:
    for values, message in (([], "values is empty"), ([0.0, math.inf], r"values\[1\] is inf")):
        with pytest.raises(ValueError, match=message):
            summary(values)  # type: ignore[operator]


def test_same_is_inclusive_of_the_tolerance() -> None:
    assert same(0.0, 1e-9)
    assert not same(0.0, 1.1e-9)


# --- special functions


@given(st.floats(0.01, 500), st.floats(0.01, 500), st.floats(0.001, 0.999))
def test_incomplete_beta_equals_scipy(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x, 1.0 - x) == pytest.approx(scipy.special.betainc(a, b, x), rel=1e-9, abs=1e-13)


def test_incomplete_beta_at_its_ends() -> None:
    assert incomplete_beta(2.0, 3.0, 0.0, 1.0) == 0.0
    assert incomplete_beta(2.0, 3.0, 1.0, 0.0) == 1.0


@pytest.mark.parametrize("df", [1, 2, 7, 100, 6979])
@pytest.mark.parametrize("t", [-40.0, -2.0, -1e-6, 0.0, 1e-6, 0.5, 3.0, 30.0])
def test_student_equals_scipy(t: float, df: int) -> None:
    assert student_tail(t, df) == pytest.approx(scipy.stats.t.sf(t, df), rel=1e-10)


@given(st.floats(1e-6, 1 - 1e-6))
def test_normal_equals_scipy(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(scipy.stats.norm.ppf(p), rel=1e-12, abs=1e-12)
    assert normal_cdf(normal_quantile(p)) == pytest.approx(p, rel=1e-9)
