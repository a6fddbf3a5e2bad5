"""Statistics that are no means: percentiles against NumPy's, the swap test against every pattern by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.stats.resampled import (
    bootstrap_difference,
    bootstrap_statistic,
    detectable_difference,
    quantile,
    smooth_quantile,
    swap_test,
)
from pytest_retrieval_eval.stats.tolerance import TOLERANCE

TIMES = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)
PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7)


def p75(rows, classes):
    return quantile(rows, 0.75)


@given(TIMES, st.floats(0, 1))
def test_a_quantile_is_numpys(values, share):
    expected = np.quantile(np.array(values), share)
    near = 1e-6 + TOLERANCE * max(values)  # so near a rank it is that rank's value
    assert quantile(np.array([values]), share)[0] == pytest.approx(expected, rel=1e-9, abs=near)


@given(TIMES, st.sampled_from([0.25, 0.5, 0.75, 0.9, 0.95, 0.99]))
def test_a_smooth_quantile_is_scipys(values, share):
    from scipy.stats.mstats import hdquantiles

    expected = hdquantiles(np.array(values), [share])[0] if len(values) > 1 else values[0]
    assert smooth_quantile(np.array([values, values]), share) == pytest.approx([expected] * 2, rel=1e-6, abs=1e-6)


def test_a_smooth_quantile_of_many_is_near_the_quantile():
    values = np.random.default_rng(0).lognormal(size=(2, 20_000))
    assert smooth_quantile(values, 0.95) == pytest.approx(quantile(values, 0.95), rel=2e-3)


@given(PAIRS)
def test_few_pairs_are_swapped_in_every_way(pairs):
    after, before = (np.array(side, float) for side in zip(*pairs, strict=True))
    observed = np.quantile(after, 0.75) - np.quantile(before, 0.75)
    found = []
    for pattern in itertools.product((False, True), repeat=len(pairs)):
        swaps = np.array(pattern)
        found.append(
            np.quantile(np.where(swaps, before, after), 0.75) - np.quantile(np.where(swaps, after, before), 0.75)
        )
    test = swap_test(after, before, p75)
    near = 1e-9
    assert test.p_two_sided == pytest.approx(np.mean([abs(each) >= abs(observed) - near for each in found]))
    assert test.p_worse == pytest.approx(np.mean([each <= observed + near for each in found]))
    assert test.p_better == pytest.approx(np.mean([each >= observed - near for each in found]))
    if max(map(abs, found)) > near:
        assert test.smallest_two_sided == pytest.approx(
            np.mean([abs(each) >= max(map(abs, found)) - near for each in found])
        )


def test_the_sign_swaps_the_tails():
    rng = np.random.PCG64(1).random_raw(80) % 100
    after, before = rng[:40].astype(float), rng[40:].astype(float) + 30
    up, down = swap_test(after, before, p75), swap_test(after, before, p75, sign=-1)
    assert (up.p_worse, up.p_better) == (down.p_better, down.p_worse)
    assert up.p_worse < 0.05 < up.p_better
    assert up.resamples == 4000


def test_the_interval_covers_as_often_as_it_says():
    """The 90 % interval of a median of 60 draws from a known distribution."""
    raw = np.random.Generator(np.random.PCG64(7)).exponential(1.0, (150, 60))
    inside = 0
    for seed, sample in enumerate(raw):
        interval = bootstrap_statistic(sample, lambda rows, _: quantile(rows, 0.5), level=0.9, seed=seed)
        inside += interval.low <= np.log(2) <= interval.high
    # 0.90 ± 4 standard errors of 0.025, less a little: the percentile bootstrap of a quantile is slightly short.
    assert 0.80 <= inside / 150 <= 0.97


def test_a_difference_is_drawn_in_pairs():
    before = np.arange(100.0)
    interval = bootstrap_difference(before + 5, before, p75)
    assert interval.low == interval.high == pytest.approx(5)  # the spread of the queries plays no part
    assert bootstrap_difference(before + 5, before, p75, sign=-1, side="lower").low == pytest.approx(-5)
    assert detectable_difference(before + 5, before, p75) == pytest.approx(0, abs=1e-6)


def test_what_is_undefined_has_no_interval():
    def share(rows, classes):  # of class 1
        with np.errstate(invalid="ignore"):
            return (rows * classes).sum(-1) / classes.sum(-1)

    values, classes = np.ones(50), np.zeros(50)
    assert bootstrap_statistic(values, share, classes) is None
    classes[:25] = 1.0
    assert bootstrap_statistic(values, share, classes).high == 1.0


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_what_is_no_number_is_refused(values):
    with pytest.raises(ValueError, match=r"values"):
        bootstrap_statistic(np.array(values), p75)
