"""Whether a judge may be believed: its grades against labels of people that it was not tuned on.

Two rates say it: of what people call relevant, how much does the judge (TPR), and of what they call not relevant, how
much does it (TNR). Cohen's kappa depends on how many are relevant in the sample, which a worksheet chooses; so it is
given for the sample, and for the pool.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.labels.judging.requirements import Mode, Requirements
from pytest_retrieval_eval.stats import TOLERANCE, Interval, wilson
from pytest_retrieval_eval.studies.agreement import Labels, Pair, grades_of, weights_of
from pytest_retrieval_eval.wording import fixed

__all__ = ["Checked", "JudgeValidation", "Requirements", "chance_to_pass", "kappa_at", "validate_judge"]

Status = Literal["passed", "failed", "inconclusive"]

# A judge of which the chance to pass is told: it is right in nine of ten cases.
_GOOD = 0.9
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Checked:
    """One figure against its threshold.

    ``underpowered`` says that the interval has the threshold inside: more pairs could turn the decision.
    """

    name: str
    value: float
    interval: Interval
    threshold: float
    n: int
    holds: bool
    underpowered: bool


@dataclass(frozen=True, slots=True)
class JudgeValidation:
    """What came of holding a judge against people.

    Args:
        status: ``passed``, ``failed``, or ``inconclusive`` where the pairs are too few to say.
        reason: a sentence.
        checks: TPR, TNR and kappa, each with its interval.
        n, relevant, not_relevant: pairs, and those that people call one or the other.
        true_positive, false_negative, true_negative, false_positive: pairs, of people's view first.
        rel: the grade from which on a document is relevant.
        prevalence: the share of relevant pairs in the sample.
        pool_prevalence: the same in the pool, as the judge's grades of it say, corrected for how the judge errs; None
            where the pool was not given.
        pool_kappa, pool_kappa_interval: kappa at that share.
        chance: that a judge whose TPR and TNR are 0.90 passes with these numbers of pairs.
        requirements: what was asked.
        missing: held-out pairs without a grade of the judge, left out with leave.
    """

    status: Status
    reason: str
    checks: tuple[Checked, ...]
    n: int
    relevant: int
    not_relevant: int
    true_positive: int
    false_negative: int
    true_negative: int
    false_positive: int
    rel: float
    prevalence: float
    pool_prevalence: float | None
    pool_kappa: float | None
    pool_kappa_interval: Interval | None
    chance: float
    requirements: Requirements
    missing: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the judge may be believed."""
        return self.status == "passed"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def underpowered(self) -> bool:
        """Whether more pairs could turn the decision."""
        return any(each.underpowered for each in self.checks)


def validate_judge(
    human: Labels,
    judge: Labels,
    *,
    rel: float = 1.0,
    requirements: Requirements | None = None,
    pool: Labels | None = None,
    weights: Mapping[Pair, float] | None = None,
    allow_missing: int = 0,
) -> JudgeValidation:
    """Hold a judge's grades against those of people, on the pairs that people have labelled.

    ``human`` are held-out labels: the judge's prompt was not written with them at hand. ``weights`` are one over the
    chance that a pair was put before people: a worksheet that holds more of what the judge calls not relevant would
    else have the judge miss more than it does. Intervals are then those of as many pairs as the weights are worth
    (Kish 1965). ``pool`` are the grades of the judge on the whole pool. Either says how many pairs of the pool are
    relevant, the weights before the judge, and kappa is given at that share too.

    Raises GateError where a pair lacks a grade of the judge (more than ``allow_missing``), and where people call no
    pair relevant, or none not relevant: then a rate is not defined.

    >>> human = {("q", str(i)): int(i < 70) for i in range(100)}
    >>> judge = {("q", str(i)): int(i < 63 or i >= 97) for i in range(100)}
    >>> found = validate_judge(human, judge)
    >>> found.status, [(each.name, each.value) for each in found.checks[:2]], round(found.chance, 2)
    ('passed', [('tpr', 0.9), ('tnr', 0.9)], 0.75)
    """
    wanted = requirements or Requirements()
    people, machine = grades_of(human), grades_of(judge)
    missing = tuple(pair for pair in people if pair not in machine)
    if len(missing) > allow_missing:
        query, doc = missing[0]
        raise GateError(
            f"{len(missing)} of {len(people)} held-out pairs have no grade of the judge, the first is query {query}, "
            f"document {doc}: a judge that leaves out what is hard would look better than it is. Let it judge them, or "
            "leave out up to N with allow_missing=N"
        )
    pairs = [pair for pair in people if pair in machine]
    labels = np.array([people[pair] >= rel for pair in pairs], bool)
    given = np.array([machine[pair] >= rel for pair in pairs], bool)
    n, relevant = len(pairs), int(labels.sum())
    negatives = n - relevant
    for count, what, rate in ((relevant, "relevant", "TPR"), (negatives, "not relevant", "TNR")):
        if not count:
            raise GateError(
                f"people call none of the {n} held-out pairs {what} (grade {'>=' if rate == 'TPR' else '<'} {rel:g}), "
                f"so that the judge has no {rate}: label some that are"
            )
    weight = weights_of(pairs, weights)
    positive, negative = _rate(weight[labels], given[labels]), _rate(weight[~labels], ~given[~labels])
    share = relevant / n
    kappa, interval = _kappa_interval(positive, negative, share)
    checks = [
        _checked("tpr", positive.value, positive.interval, wanted.tpr, relevant, wanted.mode),
        _checked("tnr", negative.value, negative.interval, wanted.tnr, negatives, wanted.mode),
        _checked("kappa", kappa, interval, wanted.kappa, n, wanted.mode),
    ]

    pooled, pool_kappa, pool_interval = None, None, None
    notes: list[str] = []
    if weights is not None:
        pooled = float(weight[labels].sum() / weight.sum())
    elif pool is not None:
        pooled = _pool_prevalence(grades_of(pool), positive.value, negative.value, rel)
        if pooled is None:
            notes.append(
                "the share of relevant pairs in the pool cannot be told: the judge calls pairs relevant no more often "
                "where people do"
            )
    if pooled is not None:
        if 0.0 < pooled < 1.0:
            pool_kappa, pool_interval = _kappa_interval(positive, negative, pooled)
        else:
            notes.append(f"the pool seems to hold {pooled:.0%} relevant pairs, at which kappa is not defined")

    status, reason = _decided(checks, n, negatives, wanted)
    return JudgeValidation(
        status=status,
        reason=reason,
        checks=tuple(checks),
        n=n,
        relevant=relevant,
        not_relevant=negatives,
        true_positive=int((labels & given).sum()),
        false_negative=int((labels & ~given).sum()),
        true_negative=int((~labels & ~given).sum()),
        false_positive=int((~labels & given).sum()),
        rel=rel,
        prevalence=share,
        pool_prevalence=pooled,
        pool_kappa=pool_kappa,
        pool_kappa_interval=pool_interval,
        chance=chance_to_pass(max(1, round(positive.n)), max(1, round(negative.n)), wanted),
        requirements=wanted,
        missing=missing,
        notes=tuple(notes),
    )


def kappa_at(tpr: float, tnr: float, prevalence: float) -> float:
    """Cohen's kappa of a judge with these rates where so many pairs are relevant, all of them shares from 0 to 1.

    A ``prevalence`` of 0 or 1, at which there is no kappa, is a ValueError.

    >>> round(kappa_at(0.85, 0.85, 0.5), 2), round(kappa_at(0.85, 0.85, 0.1), 2)
    (0.7, 0.46)
    """
    if not 0.0 < prevalence < 1.0:
        raise ValueError(f"prevalence is {prevalence}; expected a share between 0 and 1, without the ends")
    return float(_kappa(np.array(tpr), np.array(tnr), prevalence))


def chance_to_pass(
    relevant: int,
    not_relevant: int,
    requirements: Requirements | None = None,
    *,
    tpr: float = _GOOD,
    tnr: float = _GOOD,
) -> float:
    """The chance that a judge with these true rates meets the thresholds on so many pairs, exactly.

    How many pairs there must be is not asked here.

    >>> round(chance_to_pass(70, 30), 2), round(chance_to_pass(70, 50), 2)
    (0.75, 0.8)
    """
    wanted = requirements or Requirements()
    tps, tns = np.arange(relevant + 1), np.arange(not_relevant + 1)
    rates = tps / relevant, tns / not_relevant
    share = relevant / (relevant + not_relevant)
    kappas = _kappa(rates[0][:, None], rates[1][None, :], share)
    if wanted.mode == "point":
        passes = (rates[0] >= wanted.tpr - TOLERANCE)[:, None] & (rates[1] >= wanted.tnr - TOLERANCE)[None, :]
        passes &= kappas >= wanted.kappa - TOLERANCE
    else:
        lows = _lows(relevant), _lows(not_relevant)
        passes = (lows[0] >= wanted.tpr - TOLERANCE)[:, None] & (lows[1] >= wanted.tnr - TOLERANCE)[None, :]
        first = kappas - _kappa(lows[0][:, None], rates[1][None, :], share)
        second = kappas - _kappa(rates[0][:, None], lows[1][None, :], share)
        passes &= kappas - np.sqrt(first**2 + second**2) >= wanted.kappa - TOLERANCE
    chances = _binomial(relevant, tpr)[:, None] * _binomial(not_relevant, tnr)[None, :]
    return min(1.0, math.fsum(chances[passes].tolist()))


# --- how it is worked out --------------------------------------------------------------------------------------


def _checked(name: str, value: float, interval: Interval, threshold: float, n: int, mode: Mode) -> Checked:
    held = value if mode == "point" else interval.low
    return Checked(
        name=name,
        value=value,
        interval=interval,
        threshold=threshold,
        n=n,
        holds=held >= threshold - TOLERANCE,
        underpowered=interval.low < threshold - TOLERANCE and interval.high >= threshold - TOLERANCE,
    )


def _decided(checks: list[Checked], n: int, negatives: int, wanted: Requirements) -> tuple[Status, str]:
    short = []
    if n < wanted.min_pairs:
        short.append(f"{n} pairs have labels of people, and {wanted.min_pairs} are needed")
    if negatives < wanted.min_not_relevant:
        short.append(f"{negatives} of them are not relevant, and {wanted.min_not_relevant} are needed")
    if short:
        return "inconclusive", "; ".join(short)
    bad = [each for each in checks if not each.holds]
    if not bad:
        return "passed", "TPR, TNR and kappa reach their thresholds" + (
            " with the lower ends of their intervals" if wanted.mode == "lower" else ""
        )
    what = "" if wanted.mode == "point" else "the lower end of "
    return "failed", "; ".join(
        f"{what}{_spoken(each.name)} {fixed(each.value if wanted.mode == 'point' else each.interval.low)} is below "
        f"{each.threshold:g}" + (" (underpowered)" if each.underpowered else "")
        for each in bad
    )


def _spoken(name: str) -> str:
    return name if name == "kappa" else name.upper()


def _kappa(tpr: NDArray[np.float64], tnr: NDArray[np.float64], prevalence: float) -> NDArray[np.float64]:
    agreeing = prevalence * tpr + (1.0 - prevalence) * tnr
    said = prevalence * tpr + (1.0 - prevalence) * (1.0 - tnr)
    by_chance = prevalence * said + (1.0 - prevalence) * (1.0 - said)
    result: NDArray[np.float64] = (agreeing - by_chance) / (1.0 - by_chance)
    return result


@dataclass(frozen=True, slots=True)
class _Rate:
    """A share of pairs that may have weights; ``n`` is how many without weights would be worth as much."""

    value: float
    n: float
    interval: Interval


def _rate(weights: NDArray[np.float64], hits: NDArray[np.bool_]) -> _Rate:
    total = math.fsum(weights.tolist())
    n = max(1.0, total * total / math.fsum((weights * weights).tolist()))
    value = math.fsum(weights[hits].tolist()) / total
    return _Rate(value, n, wilson(value * n, n))


def _kappa_interval(positive: _Rate, negative: _Rate, prevalence: float) -> tuple[float, Interval]:
    """Kappa with an interval that is recovered from those of the two rates (Zou & Donner 2008).

    How many pairs of each kind there are is the worksheet's choice, so the two rates are what is random; each end
    moves by the root of the squared moves that the ends of either rate make alone.
    """
    tpr, tnr = positive.value, negative.value
    kappa = kappa_at(tpr, tnr, prevalence)

    def moved(end_of_tpr: float, end_of_tnr: float) -> float:
        return math.hypot(kappa - kappa_at(end_of_tpr, tnr, prevalence), kappa - kappa_at(tpr, end_of_tnr, prevalence))

    low = kappa - moved(positive.interval.low, negative.interval.low)
    high = kappa + moved(positive.interval.high, negative.interval.high)
    return kappa, Interval(max(-1.0, low), min(1.0, high), _LEVEL, "Wilson, recovered")


def _pool_prevalence(pool: Mapping[Pair, float], tpr: float, tnr: float, rel: float) -> float | None:
    """The share of relevant pairs behind the judge's share of them (Rogan & Gladen 1978)."""
    if not pool:
        raise GateError("the pool has no grades: its share of relevant pairs cannot be told")
    youden = tpr + tnr - 1.0
    if youden <= TOLERANCE:
        return None
    said = sum(grade >= rel for grade in pool.values()) / len(pool)
    return min(1.0, max(0.0, (said + tnr - 1.0) / youden))


def _lows(n: int) -> NDArray[np.float64]:
    return np.array([wilson(successes, n).low for successes in range(n + 1)])


def _binomial(n: int, p: float) -> NDArray[np.float64]:
    """The chances of 0 to n successes."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"a rate is {p}; expected 0 to 1")
    if p in (0.0, 1.0):
        return np.array([float(successes == n * p) for successes in range(n + 1)])
    total = math.lgamma(n + 1)
    return np.array(
        [
            math.exp(total - math.lgamma(x + 1) - math.lgamma(n - x + 1) + x * math.log(p) + (n - x) * math.log1p(-p))
            for x in range(n + 1)
        ]
    )
