"""A judge against people: rates, intervals, kappa, and the chance to pass."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import GateError, Run, SettingsError
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.stats import wilson
from pytest_retrieval_eval.studies.agreement import agreement, cohen_kappa, sample_pairs
from pytest_retrieval_eval.studies.corrected import corrected_precision
from pytest_retrieval_eval.studies.judge_validation import (
    Requirements,
    chance_to_pass,
    kappa_at,
    validate_judge,
)


def labels(tp, fn, tn, fp):
    """The labels of people and of a judge with so many pairs of each kind."""
    rows = [(1, 1)] * tp + [(1, 0)] * fn + [(0, 0)] * tn + [(0, 1)] * fp
    pairs = [("q", f"d{place}") for place in range(len(rows))]
    return (dict(zip(pairs, side, strict=True)) for side in zip(*rows, strict=True))


def test_the_figures_of_the_handbook():
    found = validate_judge(*labels(63, 7, 27, 3))
    tpr, tnr, kappa = found.checks
    assert (found.n, found.relevant, found.not_relevant, found.prevalence) == (100, 70, 30, 0.7)
    assert (tpr.value, tnr.value) == (0.9, 0.9)
    assert (round(tnr.interval.low, 3), round(tnr.interval.high, 3)) == (0.744, 0.965)
    assert found.status == "passed"
    assert found.underpowered  # .85 lies inside both intervals
    assert round(found.chance, 2) == 0.75
    assert kappa.value == pytest.approx(cohen_kappa([1] * 70 + [0] * 30, [1] * 63 + [0] * 34 + [1] * 3))
    hundred = wilson(90, 100)
    assert (round(hundred.low, 3), round(hundred.high, 3)) == (0.826, 0.945)
    assert (round(kappa_at(0.85, 0.85, 0.5), 2), round(kappa_at(0.85, 0.85, 0.1), 2)) == (0.70, 0.46)


def test_the_chance_to_pass_is_that_of_two_binomials():
    def tail(n, least):
        return math.fsum(math.comb(n, x) * 0.9**x * 0.1 ** (n - x) for x in range(least, n + 1))

    # 60 of 70 and 26 of 30 are the least counts of .85 and more; kappa is then above .60.
    assert chance_to_pass(70, 30) == pytest.approx(tail(70, 60) * tail(30, 26), abs=1e-12)
    assert round(chance_to_pass(70, 30), 2) == 0.75
    assert chance_to_pass(70, 30, Requirements(mode="lower")) < 0.1
    assert chance_to_pass(2000, 1000, Requirements(mode="lower")) > 0.99
    assert chance_to_pass(70, 30, Requirements(tpr=0.9, tnr=0.9)) < 0.5
    assert chance_to_pass(70, 30, tpr=1.0, tnr=1.0) == 1.0


grades = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40)


@settings(max_examples=25, deadline=None)
@given(grades)
def test_kappa_is_that_of_scikit_learn(pairs):
    metrics = pytest.importorskip("sklearn.metrics")
    ours, theirs = zip(*pairs, strict=True)
    assume(len({*ours, *theirs}) > 1)
    assert cohen_kappa(ours, theirs) == pytest.approx(metrics.cohen_kappa_score(ours, theirs))


def test_kappa_where_chance_agrees_always():
    assert cohen_kappa([1, 1], [1, 1]) is None
    # Worked by hand: 20 and 15 of 50 agree; chance .5 * .6 + .5 * .4 = .5; (.7 - .5) / .5.
    assert cohen_kappa([1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15) == pytest.approx(0.4)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 80), st.integers(0, 20), st.integers(1, 80), st.integers(0, 20))
def test_the_sample_s_kappa_is_that_of_the_classes(tp, fn, tn, fp):
    people, judge = labels(tp, fn, tn, fp)
    found = validate_judge(people, judge)
    kappa = found.checks[2]
    assert kappa.value == pytest.approx(agreement(people, judge).class_kappa)
    assert kappa.interval.low <= kappa.value + 1e-12
    assert kappa.value <= kappa.interval.high + 1e-12


def test_the_interval_of_kappa_covers_as_it_says():
    """Over all outcomes of 70 relevant and 30 other pairs, weighted by their chance: no sampling error."""
    from pytest_retrieval_eval.studies.judge_validation import _kappa_interval, _rate

    for tpr, tnr in ((0.9, 0.9), (0.85, 0.95), (0.7, 0.8)):
        truth = kappa_at(tpr, tnr, 0.7)
        covered = 0.0
        rates = [[_rate(np.ones(n), np.arange(n) < hits) for hits in range(n + 1)] for n in (70, 30)]
        for tp in range(40, 71):
            for tn in range(10, 31):
                chance = math.comb(70, tp) * tpr**tp * (1 - tpr) ** (70 - tp)
                chance *= math.comb(30, tn) * tnr**tn * (1 - tnr) ** (30 - tn)
                if chance > 1e-7:
                    interval = _kappa_interval(rates[0][tp], rates[1][tn], 0.7)[1]
                    covered += chance * (interval.low <= truth <= interval.high)
        assert 0.93 < covered < 0.98


def test_a_judge_fails_and_says_by_what():
    found = validate_judge(*labels(50, 20, 27, 3))
    assert found.status == "failed"
    assert found.reason == "TPR 0.714 is below 0.85; kappa 0.529 is below 0.6 (underpowered)"
    assert not found
    lower = validate_judge(*labels(63, 7, 27, 3), requirements=Requirements(mode="lower"))
    assert lower.status == "failed"
    assert lower.reason.startswith(
        "the lower end of TPR 0.808 is below 0.85 (underpowered); the lower end of TNR 0.744"
    )
    assert validate_judge(*labels(680, 20, 290, 10), requirements=Requirements(mode="lower")).ok


def test_too_few_pairs_are_no_pass():
    few = validate_judge(*labels(40, 0, 40, 0))
    assert (few.status, few.reason) == ("inconclusive", "80 pairs have labels of people, and 100 are needed")
    one_sided = validate_judge(*labels(90, 0, 20, 0))
    assert one_sided.status == "inconclusive"
    assert one_sided.reason == "20 of them are not relevant, and 30 are needed"
    assert not one_sided.ok


def test_what_cannot_be_measured():
    people, judge = labels(70, 0, 30, 0)
    del judge["q", "d99"]
    with pytest.raises(
        GateError, match="1 of 100 held-out pairs have no grade of the judge, the first is query q, document d99"
    ):
        validate_judge(people, judge)
    assert validate_judge(people, judge, allow_missing=1).missing == (("q", "d99"),)
    with pytest.raises(GateError, match="none of the 100 held-out pairs not relevant"):
        validate_judge(*labels(100, 0, 0, 0))
    with pytest.raises(GateError, match="none of the 100 held-out pairs relevant"):
        validate_judge(*labels(0, 0, 100, 0))
    for wrong in ({"tpr": 0.0}, {"kappa": True}, {"mode": "middle"}, {"min_pairs": 0}):
        with pytest.raises(SettingsError):
            Requirements(**wrong)


def test_the_relevance_level_divides_grades():
    people = {("q", str(i)): 2 if i < 70 else 1 for i in range(100)}
    judge = {("q", str(i)): 2 if i < 68 else 1 for i in range(100)}
    assert validate_judge(people, judge, rel=2).checks[0].value == 68 / 70
    with pytest.raises(GateError, match="not relevant"):
        validate_judge(people, judge, rel=1)


def test_a_worksheet_with_more_of_one_kind_is_weighted_back():
    """All that the judge calls not relevant was labelled, and one in ten of what it calls relevant."""
    pool = {"tp": 800, "fn": 50, "tn": 100, "fp": 50}
    whole = validate_judge(*labels(**pool))
    people, judge = labels(tp=80, fn=50, tn=100, fp=5)
    weights = {pair: 10.0 if grade else 1.0 for pair, grade in judge.items()}
    plain, weighted = validate_judge(people, judge), validate_judge(people, judge, weights=weights)
    assert plain.checks[0].value == pytest.approx(80 / 130)
    for check, truth in zip(weighted.checks[:2], whole.checks[:2], strict=True):
        assert check.value == pytest.approx(truth.value)
        assert check.interval.low < truth.interval.low  # fewer labels say less
    assert weighted.pool_prevalence == pytest.approx(0.85)
    assert weighted.pool_kappa == pytest.approx(whole.checks[2].value)
    with pytest.raises(DataError, match="has no weight above 0"):
        validate_judge(people, judge, weights={})


def test_kappa_is_told_at_the_share_of_the_pool():
    people, judge = labels(60, 10, 27, 3)
    # The judge calls 30 % of the pool relevant; (.3 - .1) / (6/7 + .9 - 1) are.
    pool = {("p", str(i)): int(i < 30) for i in range(100)}
    found = validate_judge(people, judge, pool=pool)
    assert found.pool_prevalence == pytest.approx(0.2 / (6 / 7 - 0.1))
    assert found.pool_kappa == pytest.approx(kappa_at(6 / 7, 0.9, found.pool_prevalence))
    assert found.pool_kappa_interval.low < found.pool_kappa < found.pool_kappa_interval.high
    coin = validate_judge(*labels(35, 35, 15, 15), pool=pool)
    assert coin.pool_prevalence is None
    assert "cannot be told" in coin.notes[0]


def test_a_sample_is_the_same_in_any_order_and_grows_gently():
    pairs = [("q", str(place)) for place in range(200)]
    shuffled = pairs * 2
    random.Random(1).shuffle(shuffled)
    sample = sample_pairs(pairs, 50)
    assert sample_pairs(shuffled, 50) == sample
    assert sample_pairs(pairs, 50, seed=1) != sample
    grown = sample_pairs([*pairs, *(("r", str(place)) for place in range(20))], 50)
    assert len(set(grown) & set(sample)) >= 40
    assert len(sample_pairs(pairs[:3], 50)) == 3
    with pytest.raises(ValueError, match="size is 0"):
        sample_pairs(pairs, 0)


def test_precision_is_corrected_by_what_people_said():
    run = Run.of({f"q{i}": ["a", "b"] for i in range(20)})
    judge = {(f"q{i}", doc): 1 for i in range(20) for doc in "ab"}
    people = {pair: int(pair[1] == "a") for pair in judge}
    found = corrected_precision(run, judge, people, k=2)
    assert (found.plain, found.value, found.bias) == (1.0, pytest.approx(0.5), pytest.approx(0.5))
    assert found.interval.low < 0.5 < found.interval.high
    some = {pair: label for pair, label in people.items() if pair[1] == "a" or int(pair[0][1:]) < 10}
    weights = {pair: 1.0 if pair[1] == "a" else 2.0 for pair in some}
    assert corrected_precision(run, judge, some, k=2, weights=weights).value == pytest.approx(0.5)
    assert corrected_precision(run, judge, some, k=2).value > 0.6
    exact = corrected_precision(run, people, people, k=2)
    assert (exact.plain, exact.value, exact.interval.low, exact.interval.high) == (0.5, 0.5, 0.5, 0.5)
    with pytest.raises(GateError, match="needs at least 10"):
        corrected_precision(run, judge, {("q1", "a"): 1}, k=2)
    # Lists that are shorter than k: the empty places need no correction.
    assert corrected_precision(run, judge, people, k=4).value == pytest.approx(0.25)
