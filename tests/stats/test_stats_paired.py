"""The paired tests: exact values, laws, scipy and enumeration as oracles, and bits that never change."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.stats import PairedTest, paired, randomization_test, t_test
from pytest_retrieval_eval.stats._lattice import lattice_tails
from pytest_retrieval_eval.stats._split import split_tails


def enumerate_signs(differences: list[Fraction]) -> tuple[float, float, float]:
    """Two-sided, worse and better p by listing all sign patterns in rational arithmetic."""
    different = [d for d in differences if d]
    observed = sum(different)
    sums = [sum(pattern) for pattern in itertools.product(*((d, -d) for d in different))]
    return tuple(
        sum(extreme) / len(sums)
        for extreme in (
            [abs(s) >= abs(observed) for s in sums],
            [s <= observed for s in sums],
            [s >= observed for s in sums],
        )
    )


def p_values(test: PairedTest) -> tuple[float, float, float]:
    return test.p_two_sided, test.p_worse, test.p_better


fractions = st.builds(Fraction, st.integers(-6, 6), st.sampled_from([1, 2, 3, 4, 5, 6, 10]))


@settings(max_examples=80, deadline=None)
@given(st.lists(fractions, min_size=1, max_size=10).filter(any))
def test_lattice_equals_enumeration(differences: list[Fraction]) -> None:
    test = randomization_test([float(d) for d in differences])
    assert test.method == "lattice"
    assert p_values(test) == pytest.approx(enumerate_signs(differences), abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(st.lists(fractions, min_size=1, max_size=10).filter(any))
def test_split_equals_enumeration_even_where_floats_tie(differences: list[Fraction]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "lattice_steps", lambda *_: None)
        test = randomization_test([float(d) for d in differences])
    assert test.method == "split"
    assert p_values(test) == pytest.approx(enumerate_signs(differences), abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
    st.lists(st.integers(1, 400), min_size=2, max_size=2),
)
def test_lattice_and_split_count_the_same_patterns(sizes: list[int], thresholds: list[int]) -> None:
    ascending = np.sort(np.array(sizes))
    assert lattice_tails(ascending, thresholds) == split_tails(ascending, thresholds)


floats = st.floats(-1, 1, allow_nan=False).map(lambda d: round(d, 12))


@settings(max_examples=60, deadline=None)
@given(st.lists(floats, min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_laws_of_every_method(differences: list[float], shuffler: random.Random) -> None:
    test = randomization_test(differences, resamples=200)
    negated = randomization_test([-d for d in differences], resamples=200)
    assert (negated.p_worse, negated.p_better) == (test.p_better, test.p_worse)
    assert negated.p_two_sided == test.p_two_sided
    shuffled = differences.copy()
    shuffler.shuffle(shuffled)
    assert randomization_test(shuffled, resamples=200) == test
    with_zeros = randomization_test([*differences, 0.0, 0.0], resamples=200)
    assert p_values(with_zeros) == p_values(test)
    assert with_zeros.method == test.method
    for p in p_values(test):
        assert 0.0 < p <= 1.0
    assert test.p_worse + test.p_better >= 1.0
    assert test.p_two_sided <= 2.0 * min(test.p_worse, test.p_better) + 1e-15


@pytest.mark.parametrize("factor", [0.125, 7.0, 1e6])
@pytest.mark.parametrize("n", [10, 35, 80])
def test_the_unit_of_the_measure_does_not_matter(n: int, factor: float) -> None:
    differences = np.random.default_rng(n).normal(0.03, 0.1, n)
    test, scaled = randomization_test(differences), randomization_test(differences * factor)
    assert scaled.method == test.method
    assert p_values(scaled) == pytest.approx(p_values(test), abs=1e-6)


def test_huge_differences_keep_their_sums_within_64_bits() -> None:
    differences = np.full(50, 1e300) * np.linspace(0.5, 1.0, 50)
    test = randomization_test(differences)
    assert test.method == "monte carlo"
    assert test.p_better < 0.001
    whole = randomization_test(np.resize([2e9, 3e9, 5e9], 3000))
    assert whole.method == "monte carlo"
    assert whole.p_better < 0.001


def test_four_queries_that_lose_everything_cannot_reach_five_percent() -> None:
    test = randomization_test([-1.0] * 4)
    assert p_values(test) == (0.125, 0.0625, 1.0)
    assert (test.smallest_one_sided, test.smallest_two_sided) == (0.0625, 0.125)
    assert not test.resolvable(0.05, "one")
    assert test.resolvable(0.1, "one")
    assert not test.resolvable(0.1, "two")
    assert not test.resolvable(0.0625, "one"), "p < alpha is needed"
    with pytest.raises(ValueError, match=r"'both' is not a valid side\. Valid sides: one, two\."):
        test.resolvable(0.05, "both")  # type: ignore[arg-type]


def test_ten_of_two_hundred_lost_and_none_gained() -> None:
    test = randomization_test([-1.0] * 10 + [0.0] * 190)
    assert test.p_two_sided == 2 / 2**10
    assert test.p_worse == 1 / 2**10
    assert (test.n, test.n_different, test.method, test.resamples) == (200, 10, "lattice", None)


def test_float_ties_count_as_ties() -> None:
    a, b = np.array([0.4, 0.7, 0.4, 0.6]), np.array([0.2, 0.9, 0.2, 0.8])
    assert randomization_test(a - b).p_two_sided == 1.0


@pytest.mark.parametrize("differences", [[0.0], [0.0] * 7, [1e-10, -1e-10, 5e-10]])
def test_identical_runs(differences: list[float]) -> None:
    test = randomization_test(differences)
    assert p_values(test) == (1.0, 1.0, 1.0)
    assert (test.method, test.n_different, test.smallest_one_sided) == ("identical", 0, 1.0)
    assert not test.resolvable(0.05, "one")


@pytest.mark.parametrize("shift", [-0.01, 0.0, 0.05])
@pytest.mark.parametrize("n", [5, 9, 12])
def test_scipy_agrees_where_no_sums_tie(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, 0.1, n)
    ours = randomization_test(differences)
    assert ours.method == "split"
    for alternative, p in (
        ("less", ours.p_worse),
        ("greater", ours.p_better),
        ("two-sided", ours.p_two_sided),
    ):
        theirs = scipy.stats.permutation_test(
            (differences, np.zeros(n)),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            n_resamples=np.inf,
            alternative=alternative,
            vectorized=True,
        )
        assert p == pytest.approx(theirs.pvalue, abs=1e-12)


def test_monte_carlo_estimates_the_exact_p() -> None:
    differences = np.random.default_rng(7).normal(0.025, 0.1, 38)
    exact = randomization_test(differences)
    assert exact.method == "split"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "SPLIT_QUERIES", 0)
        estimated = randomization_test(differences, resamples=200_000)
    assert estimated.method == "monte carlo"
    error = 5.0 * math.sqrt(exact.p_two_sided * (1.0 - exact.p_two_sided) / 200_000) + 1e-5
    assert estimated.p_two_sided == pytest.approx(exact.p_two_sided, abs=error)
    assert estimated.p_worse == pytest.approx(exact.p_worse, abs=error)
    assert min(estimated.p_worse, estimated.p_better) == estimated.p_two_sided / 2.0


def test_monte_carlo_knows_its_own_floor() -> None:
    test = randomization_test(np.random.default_rng(0).uniform(0.1, 1.0, 100), resamples=99)
    assert (test.method, test.resamples) == ("monte carlo", 99)
    assert test.p_two_sided == test.smallest_two_sided == 0.01
    assert test.p_better == test.smallest_one_sided == 0.005
    assert not test.resolvable(0.01, "two")


def test_level_under_the_null() -> None:
    generator = np.random.default_rng(11)
    rejected = sum(
        randomization_test(generator.normal(0.0, 0.1, 60), resamples=199, seed=seed).p_worse <= 0.05
        for seed in range(1000)
    )
    assert 50 - 5 * 6.9 <= rejected <= 50 + 5 * 6.9


# --- which method, and the lattice at size


@pytest.mark.parametrize(
    ("differences", "method"),
    [
        (np.resize([1.0, -1.0, 1.0], 100_000), "lattice"),
        (np.resize([0.1, -0.3, 0.7], 6980), "lattice"),
        (np.resize([1 / 3, -1 / 4, 3 / 5, -1 / 7, 1 / 8, 1 / 9], 300), "lattice"),
        (np.round(np.random.default_rng(0).normal(0, 0.1, 50), 4), "lattice"),
        (np.round(np.resize([1 / 3, -1 / 7, 3 / 11], 60), 10), "lattice"),
        (np.resize([1 / 97, 1 / 89, -1 / 83, 1 / 79], 80), "monte carlo"),
        (np.random.default_rng(0).uniform(-1, 1, 40), "split"),
        (np.random.default_rng(0).uniform(-1, 1, 41), "monte carlo"),
        (np.random.default_rng(0).uniform(-1, 1, 2), "split"),
    ],
)
def test_the_method_follows_from_the_data(differences: np.ndarray, method: str) -> None:
    assert randomization_test(differences, resamples=10).method == method


def test_the_largest_lattice_takes_a_moment_only() -> None:
    # 1,000 queries with D = 2,520 would need 3 * 10**8 additions.
    differences = np.rint(np.random.default_rng(0).uniform(-1, 1, 1000) * 2520) / 2520
    assert randomization_test(differences, resamples=10).method == "monte carlo"


@pytest.mark.parametrize(("wins", "losses"), [(60, 40), (1020, 980), (3100, 2900), (0, 3000), (1, 1500)])
def test_lattice_of_hits_is_the_binomial_test(wins: int, losses: int) -> None:
    test = randomization_test([1.0] * wins + [-1.0] * losses)
    theirs = scipy.stats.binomtest(wins, wins + losses)
    assert test.p_two_sided == pytest.approx(max(theirs.pvalue, 5e-324), rel=1e-10)


def test_lattice_of_thousands_of_queries() -> None:
    sizes = np.repeat([1, 2, 3, 7], [900, 700, 600, 300])
    signs = np.where(np.arange(sizes.size) % 2 == 0, 1, -1)
    signs[:60] = -1
    test = randomization_test(sizes * signs / 10.0)
    assert (test.method, test.n_different) == ("lattice", 2500)
    polynomial = np.array([1], dtype=object)  # the same count in whole numbers of any length
    for size in sizes.tolist():
        grown = np.zeros(polynomial.size + size, dtype=object)
        grown[: polynomial.size] += polynomial
        grown[size:] += polynomial
        polynomial = grown
    total, observed = int(sizes.sum()), int((sizes * signs).sum())
    tail = sum(polynomial[: (total - abs(observed)) // 2 + 1].tolist())
    assert test.p_two_sided == pytest.approx(float(Fraction(2 * tail, 2**2500)), rel=1e-12)


def test_a_p_below_every_float_is_not_zero() -> None:
    test = randomization_test([-1.0] * 5000)
    assert 0.0 < test.p_worse < 1e-300
    assert 0.0 < test.p_two_sided < 1e-300
    assert test.smallest_one_sided > 0.0
    mixed = randomization_test(-np.resize([0.1, 0.2, 0.7], 3000))
    assert mixed.method == "lattice"
    assert 0.0 < mixed.p_two_sided < 1e-300


def test_a_known_denominator_gives_the_same_p() -> None:
    differences = np.resize([1 / 3, -1 / 4, 1 / 6, 0.0, 1.0], 50)
    assert randomization_test(differences, denominator=12) == randomization_test(differences)
    assert randomization_test(differences, denominator=2520) == randomization_test(differences)


def test_a_wrong_denominator_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"the difference 0\.25 is not a multiple of 1/10, the denominator given"):
        randomization_test([0.1, 0.25], denominator=10)
    with pytest.raises(ValueError, match="denominator is 0; expected at least 1"):
        randomization_test([0.1], denominator=0)


@pytest.mark.parametrize("test", [randomization_test, t_test])
@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ([], "differences is empty"),
        ([0.1, math.nan], r"differences\[1\] is nan; expected finite numbers"),
        ([0.1, 0.2, -math.inf], r"differences\[2\] is -inf"),
        ([[0.1, 0.2]], "differences has 2 dimensions"),
    ],
)
def test_bad_input_is_named(test: object, differences: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        test(differences)  # type: ignore[operator]


def test_no_resamples_is_an_error() -> None:
    with pytest.raises(ValueError, match="resamples is 0; expected at least 1"):
        randomization_test([0.1], resamples=0)


# --- the same bits everywhere


def scattered(n: int) -> np.ndarray:
    """Differences in (-0.4, 0.6) that need no random generator and lie on no lattice."""
    return np.array([math.sqrt(2.0) * i % 1.0 - 0.4 for i in range(1, n + 1)]) / 3.0


def test_same_data_same_p() -> None:
    differences = scattered(120)
    first, second, third = (randomization_test(differences) for _ in range(3))
    assert first == second == third
    assert first != randomization_test(differences, seed=1)


@pytest.mark.parametrize(
    ("n", "seed", "method", "two_sided", "worse"),
    [
        (30, 0, "split", 0.9565005265176296, 0.5217497376725078),
        (50, 0, "monte carlo", 0.6507349265073493, 0.6746825317468252),
        (300, 0, "monte carlo", 0.3681631836816318, 0.815968403159684),
        (300, 7, "monte carlo", 0.36636336366363365, 0.8168683131686831),
    ],
)
def test_p_never_changes(n: int, seed: int, method: str, two_sided: float, worse: float) -> None:
    test = randomization_test(scattered(n) - 0.028, seed=seed)
    assert (test.method, test.p_two_sided, test.p_worse) == (method, two_sided, worse)


# --- t


@pytest.mark.parametrize("shift", [-1.0, -0.02, 0.0, 0.3])
@pytest.mark.parametrize("n", [2, 3, 10, 51, 1000])
def test_t_equals_scipy(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, 0.2, n)
    ours = t_test(differences)
    for alternative, p in (
        ("less", ours.p_worse),
        ("greater", ours.p_better),
        ("two-sided", ours.p_two_sided),
    ):
        theirs = scipy.stats.ttest_rel(differences, np.zeros(n), alternative=alternative)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
        assert ours.df == theirs.df
        assert p == pytest.approx(theirs.pvalue, rel=1e-10, abs=1e-300)


def test_t_without_spread() -> None:
    none = t_test([0.0, 0.0, 0.0])
    assert (none.statistic, none.p_two_sided, none.p_worse, none.p_better) == (0.0, 1.0, 1.0, 1.0)
    lost = t_test([0.7 - 0.8, 0.2 - 0.3, -0.1])
    assert (lost.statistic, lost.p_two_sided, lost.p_worse, lost.p_better) == (-math.inf, 0.0, 0.0, 1.0)
    won = t_test([0.5, 0.5])
    assert (won.statistic, won.p_worse, won.p_better) == (math.inf, 1.0, 0.0)


def test_t_of_a_zero_mean() -> None:
    test = t_test([-1.0, 1.0])
    assert (test.statistic, test.p_two_sided) == (0.0, 1.0)
    assert test.p_worse == test.p_better == pytest.approx(0.5)


def test_t_needs_two_queries() -> None:
    with pytest.raises(ValueError, match="a t-test needs at least two"):
        t_test([0.1])


@pytest.mark.parametrize(("n", "resamples"), [(45, 999), (530, 24), (530, 10_000), (90, 100_000)])
def test_the_signs_are_those_of_the_raw_bits_however_often_they_are_read(n, resamples):
    """Bit i of the g-th row of bytes is the sign of the (8 g + i)-th smallest difference; a row is whole words."""
    d = np.random.Generator(np.random.PCG64(n)).normal(0.01, 0.1, n)
    sizes = np.sort(np.abs(np.rint(d * 2.0**40).astype(np.int64)))
    for seed in (3, 4):
        words = -(-resamples // 8)
        raw = np.random.PCG64(seed).random_raw(-(-n // 8) * words).astype("<u8").view(np.uint8)
        rows = raw.reshape(-1, 8 * words)[:, :resamples]
        sums = np.zeros(resamples, dtype=np.int64)
        for place, size in enumerate(sizes.tolist()):
            sums += np.where(rows[place // 8] >> (place % 8) & 1, size, -size)
        observed = abs(int(np.rint(d * 2.0**40).sum()))
        near = observed - max(n, round(1e-9 * 2**40 + 0.5))
        expected = (int((np.abs(sums) >= near).sum()) + 1) / (resamples + 1)
        found = [randomization_test(d, resamples=resamples, seed=seed) for _ in range(2)]
        assert [each.p_two_sided for each in found] == [expected, expected]
        assert found[0].method == "monte carlo"
