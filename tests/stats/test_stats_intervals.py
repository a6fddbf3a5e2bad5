"""Intervals: known values, scipy as an oracle, coverage, and bits that never change."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.stats import Interval, bootstrap_mean, wilson


def scattered(n: int) -> np.ndarray:
    """Differences in (-0.4, 0.6) that need no random generator."""
    return np.array([math.sqrt(2.0) * i % 1.0 - 0.4 for i in range(1, n + 1)])


def skewed(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).exponential(0.2, n) - 0.1


@pytest.mark.parametrize("n", [12, 40, 64, 300])
def test_bca_agrees_with_scipy(n: int) -> None:
    values = skewed(n)
    ours = bootstrap_mean(values, resamples=40_000)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method="BCa", random_state=np.random.default_rng(0)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.method == "BCa"
    # The Monte Carlo error of a 2.5 % end is about 0.007 of the width here, in either estimate.
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * width)


@pytest.mark.parametrize(("side", "theirs"), [("lower", "greater"), ("upper", "less")])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_one_sided_bounds_agree_with_scipy(side: str, theirs: str, level: float) -> None:
    values = skewed(80)
    ours = bootstrap_mean(values, side=side, level=level, resamples=40_000)  # type: ignore[arg-type]
    other = scipy.stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=40_000,
        method="BCa",
        alternative=theirs,
        confidence_level=level,
        random_state=np.random.default_rng(0),
    ).confidence_interval
    tolerance = 0.1 * values.std() / math.sqrt(values.size)
    if side == "lower":
        assert ours.high == math.inf
        assert ours.low == pytest.approx(other.low, abs=tolerance)
    else:
        assert ours.low == -math.inf
        assert ours.high == pytest.approx(other.high, abs=tolerance)


@pytest.mark.parametrize("n", [1, 2, 100])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_equal_values_have_no_width(n: int, value: float) -> None:
    assert bootstrap_mean([value] * n) == Interval(value, value, 0.95, "percentile")
    assert bootstrap_mean([value] * n, side="lower") == Interval(value, math.inf, 0.95, "percentile")
    assert bootstrap_mean([value] * n, side="upper") == Interval(-math.inf, value, 0.95, "percentile")


def test_where_bca_is_undefined_the_percentile_interval_says_so() -> None:
    # One resample: all resampled means are on one side of the mean.
    interval = bootstrap_mean([0.0, 0.1, 0.35, 1.0], resamples=1)
    assert interval.method == "percentile"
    assert interval.low == interval.high


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=90),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_laws(values: list[float], level: float) -> None:
    interval = bootstrap_mean(values, level=level, resamples=500)
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert bootstrap_mean(values[::-1], level=level, resamples=500) == interval
    wider = bootstrap_mean(values, level=0.995, resamples=500)
    assert wider.low <= interval.low
    assert wider.high >= interval.high


def test_large_units() -> None:
    small, large = bootstrap_mean(skewed(50)), bootstrap_mean(skewed(50) * 2.0**60)
    assert large.low == pytest.approx(small.low * 2.0**60, rel=1e-6)
    assert large.high == pytest.approx(small.high * 2.0**60, rel=1e-6)
    huge = bootstrap_mean(skewed(50) * 2.0**1000)
    assert huge.low == pytest.approx(small.low * 2.0**1000, rel=1e-6)
    assert huge.method == "BCa"


def test_coverage() -> None:
    """Two-sided 90 % and one-sided 95 % intervals of skewed and of mostly zero values hold the true mean."""
    generator = np.random.default_rng(3)
    trials, held = 500, {"skewed": 0, "sparse": 0, "bound": 0}
    for seed in range(trials):
        values = generator.exponential(1.0, 60)
        interval = bootstrap_mean(values, level=0.9, resamples=999, seed=seed)
        held["skewed"] += interval.low <= 1.0 <= interval.high
        values = np.where(generator.random(120) < 0.25, -generator.random(120), 0.0)
        interval = bootstrap_mean(values, level=0.9, resamples=999, seed=seed)
        held["sparse"] += interval.low <= -0.125 <= interval.high
        held["bound"] += bootstrap_mean(values, side="lower", resamples=999, seed=seed).low <= -0.125
    # Binomial error of .013 (.010); BCa itself is some .02 short at these sizes.
    assert held["skewed"] / trials == pytest.approx(0.89, abs=0.045)
    assert held["sparse"] / trials == pytest.approx(0.89, abs=0.045)
    assert held["bound"] / trials == pytest.approx(0.95, abs=0.035)


@pytest.mark.parametrize("n", [64, 200])
def test_shared_draws_do_not_widen_the_monte_carlo_error(n: int) -> None:
    """The ends vary over seeds as those of independent resamples do: by sqrt(p (1 - p) / B) / density."""
    values = scattered(n)
    ends = [bootstrap_mean(values, resamples=1999, seed=seed).low for seed in range(150)]
    spread = values.std() / math.sqrt(n)
    density = math.exp(-(1.96**2) / 2) / math.sqrt(2 * math.pi) / spread
    expected = math.sqrt(0.025 * 0.975 / 1999) / density
    # BCa adds the error of its bias correction; the estimate of a spread from 150 seeds is off by some 6 %.
    assert np.std(ends) < 1.5 * expected


def test_same_data_same_interval() -> None:
    for n in (30, 200):
        first, second, third = (bootstrap_mean(scattered(n)) for _ in range(3))
        assert first == second == third
        assert first != bootstrap_mean(scattered(n), seed=1)


@pytest.mark.parametrize(
    ("n", "seed", "side", "low", "high"),
    [
        (30, 0, "two", 0.0058415074899433725, 0.04706951464543939),
        (63, 0, "lower", 0.013579997568422908, math.inf),
        (64, 0, "two", 0.01154507864363552, 0.03979438642411992),
        (301, 0, "two", 0.019684134889271367, 0.03305711954083282),
        (301, 7, "upper", -math.inf, 0.03170602465921741),
    ],
)
def test_intervals_never_change(n: int, seed: int, side: str, low: float, high: float) -> None:
    interval = bootstrap_mean(scattered(n) ** 3, seed=seed, side=side)  # type: ignore[arg-type]
    assert interval == Interval(low, high, 0.95, "BCa")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, "values is empty"),
        ({"values": [0.1, math.nan]}, r"values\[1\] is nan"),
        ({"values": [0.1], "level": 1.0}, r"level is 1\.0; expected a number strictly between 0 and 1"),
        ({"values": [0.1], "resamples": 0}, "resamples is 0; expected at least 1"),
        ({"values": [0.1], "side": "both"}, r"'both' is not a valid side\. Valid sides: two, lower, upper\."),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bootstrap_mean(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"), [(27, 30, 0.744, 0.965), (90, 100, 0.826, 0.945), (0, 10, 0.0, 0.278)]
)
def test_wilson_known_values(successes: int, n: int, low: float, high: float) -> None:
    interval = wilson(successes, n)
    assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)
    assert interval.method == "Wilson"


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (3, 7), (50, 50), (999, 2000)])
def test_wilson_equals_scipy(successes: int, n: int, level: float) -> None:
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    ours = wilson(successes, n, level)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "n", "message"), [(1, 0, "n is 0"), (4, 3, "successes is 4; expected 0 to n = 3")]
)
def test_wilson_bad_input(successes: int, n: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wilson(successes, n)
