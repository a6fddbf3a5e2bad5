"""Whether another judge, or people, would say the same: pair by pair, and in the ranking of systems."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.stats import Interval, bootstrap_mean
from pytest_retrieval_eval.studies.agreement import Agreement, agreement, grades_of, qrels_of
from pytest_retrieval_eval.studies.systems import NEAR, Rankings, Runs, compare_rankings, is_near, named_runs, on_both


@dataclass(frozen=True, slots=True)
class JudgesCompared:
    """Two judges on the pairs that both graded, one by one and in the ranking of systems that they make."""

    items: Agreement
    measure: str
    queries: int
    rankings: Rankings


def compare_judges(
    runs: Runs, first: Qrels, second: Qrels, measure: str | Measure, *, rel: float = 1.0
) -> JudgesCompared:
    """Hold a second judge, or people, against the first: item by item, and by how the systems rank.

    Both rankings rest on the same pairs, those that both have graded; means are over the queries that count with
    either.
    """
    systems = named_runs(runs, least=2)
    ours, theirs = grades_of(first), grades_of(second)
    items = agreement(ours, theirs, rel=rel)
    both = [pair for pair in ours if pair in theirs]
    shared = [qrels_of({pair: grades[pair] for pair in both}, first) for grades in (ours, theirs)]
    old, new = on_both(systems, shared[0], shared[1], measure)
    return JudgesCompared(items, old.measure, len(old.query_ids), compare_rankings(old.means, new.means))


@dataclass(frozen=True, slots=True)
class PairOfSystems:
    """Two systems by the judge's and by people's labels: ``kind`` is same, tie, noise or conflict.

    The differences are the first's mean minus the second's; ``interval`` is that of people's difference, where the two
    disagree.
    """

    first: str
    second: str
    judge: float
    human: float
    kind: str
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class PairClasses:
    """All pairs of systems by whether the judge's labels and people's order them alike.

    Args:
        same: the same order.
        tie: nearer than ``near`` to each other by either: there is no order to dispute.
        noise: the opposite order, where people's difference could be 0 on other queries like these (its 95 %
            bootstrap interval holds 0).
        conflict: the opposite order, and people's difference is beyond that.
    """

    measure: str
    queries: int
    rankings: Rankings
    pairs: tuple[PairOfSystems, ...]
    near: float

    def count(self, kind: str) -> int:
        """How many pairs are of a kind."""
        return sum(pair.kind == kind for pair in self.pairs)

    @property
    def same(self) -> int:
        """Pairs in the same order."""
        return self.count("same")

    @property
    def tie(self) -> int:
        """Pairs that are near-ties by either."""
        return self.count("tie")

    @property
    def noise(self) -> int:
        """Pairs in the opposite order, within what people's labels can tell."""
        return self.count("noise")

    @property
    def conflict(self) -> int:
        """Pairs in the opposite order, beyond it."""
        return self.count("conflict")


def classify_pairs(
    runs: Runs, judge: Qrels, human: Qrels, measure: str | Measure, *, near: float = NEAR
) -> PairClasses:
    """Hold the order of each pair of systems by the judge's labels against that by people's.

    Means are over the queries that count with either labels; one that does not count has the value 0 in all systems.
    """
    systems = named_runs(runs, least=2)
    ours, theirs = on_both(systems, judge, human, measure)
    said, truth = ours.means, theirs.means
    pairs = []
    for first, second in combinations(systems, 2):
        by_judge, by_people = said[first] - said[second], truth[first] - truth[second]
        interval = None
        if is_near(by_judge, near) or is_near(by_people, near):
            kind = "tie"
        elif by_judge * by_people > 0:
            kind = "same"
        else:
            interval = bootstrap_mean(theirs.of(first) - theirs.of(second))
            kind = "noise" if interval.low <= 0.0 <= interval.high else "conflict"
        pairs.append(PairOfSystems(first, second, by_judge, by_people, kind, interval))
    return PairClasses(ours.measure, len(ours.query_ids), compare_rankings(truth, said), tuple(pairs), near)
