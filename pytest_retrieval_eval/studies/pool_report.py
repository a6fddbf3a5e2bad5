"""A report on a judged pool: what it saved, how the systems stand on it, and how far that may be believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.stats import TOLERANCE, Interval, bootstrap_mean
from pytest_retrieval_eval.studies.agreement import Agreement, Pair, agreement, grades_of, qrels_of
from pytest_retrieval_eval.studies.factors import Effect, factors
from pytest_retrieval_eval.studies.judges import JudgesCompared, PairClasses, classify_pairs, compare_judges
from pytest_retrieval_eval.studies.pooling import DEPTH, CostPoint, Growth, Reuse, cost_curve, growth, pooled
from pytest_retrieval_eval.studies.systems import (
    NEAR,
    Flip,
    Rankings,
    Runs,
    SystemValues,
    compare_rankings,
    is_near,
    measure_systems,
    named_runs,
)

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run


@dataclass(frozen=True, slots=True)
class SystemRow:
    """One system: its mean, the mean's interval over the queries, and how much of its top is judged.

    ``near`` are the systems whose means are nearer than a thousandth: their order says nothing.
    """

    name: str
    value: float
    interval: Interval
    judged: float
    near: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SystemTable:
    """The systems, best first. ``judged_k`` is the k of ``judged``.

    ``uncounted`` are the judged queries that have no say in the means: no judged document is relevant to them at the
    level of the measure.
    """

    measure: str
    queries: int
    judged_k: int
    rows: tuple[SystemRow, ...]
    uncounted: tuple[str, ...] = ()


def system_table(
    runs: Runs, qrels: Qrels, measure: str | Measure, *, near: float = NEAR, depth: int = DEPTH
) -> SystemTable:
    """The systems by their mean, best first; equal ones by name."""
    systems = named_runs(runs)
    found = measure_systems(systems, qrels, measure)
    means = found.means
    k = Measure.parse(found.measure).cutoff or depth
    rows = []
    for name in sorted(means, key=lambda name: (-means[name], name)):
        rows.append(
            SystemRow(
                name=name,
                value=means[name],
                interval=bootstrap_mean(found.of(name)),
                judged=judged_share(systems[name], qrels, k),
                near=tuple(other for other in means if other != name and is_near(means[other] - means[name], near)),
            )
        )
    counted = set(found.query_ids)
    uncounted = tuple(query for query in qrels.query_ids if query not in counted)
    return SystemTable(found.measure, len(counted), k, tuple(rows), uncounted)


def judged_share(run: Run, qrels: Qrels, k: int) -> float:
    """The mean share of judged documents in the top k, over the queries with judgments for which the run has a list."""
    return evaluate(qrels, run, f"judged@{k}").scores(f"judged@{k}").mean


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A family of systems whose own documents nobody has judged, as if it came to a pool of the others.

    Args:
        family, systems: which systems.
        unique, relevant: pairs that they alone brought, and how many of them are relevant.
        inversions: pairs of systems in another order than with all judgments.
        penalty: the system of the family that loses most, and how much of its mean; None where none loses.
        judged: the inversions that remain once those pairs are judged.
    """

    family: str
    systems: tuple[str, ...]
    unique: int
    relevant: int
    inversions: tuple[Flip, ...]
    penalty: tuple[str, float] | None
    rankings: Rankings
    judged: tuple[Flip, ...]


def leave_one_family_out(
    runs: Runs,
    qrels: Qrels,
    families: Mapping[str, str],
    measure: str | Measure,
    *,
    depth: int = DEPTH,
    rel: float = 1.0,
    judge: Callable[[Sequence[Pair]], Mapping[Pair, float]] | None = None,
) -> tuple[LeftOut, ...]:
    """Take from the judgments what one family of systems alone brought, and see what becomes of the ranking.

    ``families`` has the family of each run. ``judge`` grades the pairs that were taken away, once the damage is
    measured; without it they get the grades that they had, and what remains shows that nothing else was touched.
    Means are over the queries that count with all judgments.
    """
    systems = named_runs(runs, least=2)
    unknown = [name for name in systems if name not in families]
    if unknown:
        raise SettingsError(f"the run {unknown[0]} has no family; expected one for each of the {len(systems)} runs")
    names = list(dict.fromkeys(families[name] for name in systems))
    if len(names) < 2:
        raise GateError(f"all runs are of the family {names[0]}: without it there is no pool")
    pool = pooled(systems, depth, queries=qrels.query_ids)
    grades = grades_of(qrels)
    whole = measure_systems(systems, qrels, measure)

    def measured(known: Mapping[Pair, float]) -> SystemValues:
        return measure_systems(systems, qrels_of(known, qrels), measure, over=whole.query_ids)

    found = []
    for family in names:
        members = tuple(name for name in systems if families[name] == family)
        gone = [pair for pair in pool.unique_to(members) if pair in grades]
        rest = dict(grades)
        for pair in gone:
            del rest[pair]
        poorer = measured(rest)
        again = {pair: grades[pair] for pair in gone} if judge is None else _judged(judge, gone)
        mended = measured({**rest, **again})
        losses = {name: whole.means[name] - poorer.means[name] for name in members}
        most = max(losses, key=lambda name: losses[name])
        found.append(
            LeftOut(
                family=family,
                systems=members,
                unique=len(gone),
                relevant=sum(grades[pair] >= rel for pair in gone),
                inversions=compare_rankings(whole.means, poorer.means).flips,
                penalty=(most, losses[most]) if losses[most] > TOLERANCE else None,
                rankings=compare_rankings(whole.means, poorer.means),
                judged=compare_rankings(whole.means, mended.means).flips,
            )
        )
    return tuple(found)


def _judged(judge: Callable[[Sequence[Pair]], Mapping[Pair, float]], pairs: Sequence[Pair]) -> dict[Pair, float]:
    given = judge(pairs)
    asked = set(pairs)
    strange = [pair for pair in given if pair not in asked]
    if strange:
        raise DataError(f"the judge graded query {strange[0][0]}, document {strange[0][1]}, which it was not given")
    return dict(given)


@dataclass(frozen=True, slots=True)
class PoolReport:
    """What there is to say of a judged pool; a part for which something is missing is empty or None.

    Args:
        depth, queries: of the pool.
        judged: pairs of the pool with a grade; the others are not judged.
        reuse, growth: what was saved, and how the pool grew.
        table: the systems.
        families, repeated, second, people, pairs, factors, costs: see the functions that make them.
        notes: what was left out, and why.
    """

    depth: int
    queries: int
    judged: int
    reuse: Reuse
    growth: tuple[Growth, ...]
    table: SystemTable
    families: tuple[LeftOut, ...] = ()
    repeated: Agreement | None = None
    second: JudgesCompared | None = None
    human: JudgesCompared | None = None
    pairs: PairClasses | None = None
    factors: tuple[Effect, ...] = ()
    costs: tuple[CostPoint, ...] = ()
    price: float | None = None
    notes: tuple[str, ...] = ()


def pool_report(
    runs: Runs,
    qrels: Qrels,
    measure: str | Measure = "ndcg@10",
    *,
    depth: int = DEPTH,
    rel: float = 1.0,
    families: Mapping[str, str] | None = None,
    tags: Mapping[str, Mapping[str, object]] | None = None,
    judge: Qrels | None = None,
    second: Qrels | None = None,
    human: Qrels | None = None,
    repeated: tuple[Mapping[Pair, float], Mapping[Pair, float]] | None = None,
    depths: Sequence[int] | None = None,
    price: float | None = None,
) -> PoolReport:
    """The report on a pool that is judged by ``qrels``; each further argument adds its part.

    ``judge`` are the judge's own grades, where ``qrels`` have people's before them; these are what is held against
    others. ``second`` are the grades of another judge, ``human`` those of people, ``repeated`` the grades of a sample
    the first and the second time; where two have no pair in common, or none that is relevant, a note says so. Judges
    and people are held against each other on the pairs that both have graded. ``depths`` are those of the cost curve:
    1, 3, 5, 10, 20 up to ``depth`` without. ``price`` is that of one judgment, in any currency. A pool that no
    judgment is of is a GateError.

    >>> from pytest_retrieval_eval import Qrels, Run
    >>> bm25, dense = Run.of({"q1": ["a", "x"], "q2": ["x", "b"]}), Run.of({"q1": ["x", "a"], "q2": ["x", "b"]})
    >>> runs = {"bm25": bm25, "dense": dense}
    >>> found = pool_report(runs, Qrels.of({"q1": {"a": 1, "x": 0}, "q2": {"b": 1, "x": 0}}), "mrr", depth=2)
    >>> [(row.name, row.value) for row in found.table.rows], found.judged, found.reuse.share
    ([('bm25', 0.75), ('dense', 0.5)], 4, 0.5)
    """
    systems = named_runs(runs)
    pool = pooled(systems, depth, queries=qrels.query_ids)
    grown = growth(pool)
    grades = grades_of(qrels)
    judged = sum(pair in grades for pair in pool.brought)
    notes = []
    if judged < len(pool.brought):
        notes.append(
            f"{len(pool.brought) - judged} of the {len(pool.brought)} pairs of the pool are not judged: what is said "
            "of the systems may change with them"
        )
    if human is not None:
        labelled = sum(pair in pool.brought for pair in grades_of(human))
        if 2 * labelled < len(pool.brought):
            notes.append(
                f"people have labelled {labelled} of the {len(pool.brought)} pairs of the pool: how they would rank "
                "the systems is not to be told from so few"
            )
    own = qrels if judge is None else judge
    several = len(systems) > 1
    if not several:
        notes.append("one run has no ranking: families, judges, pairs, factors and depths are left out")
    beside: dict[str, JudgesCompared] = {}
    classes: PairClasses | None = None
    for name, others in (("second", second), ("human", human)):
        if not several or others is None:
            continue
        try:
            # The first of the two rankings is the one that tau_AP takes for right.
            two = (others, own) if name == "human" else (own, others)
            beside[name] = compare_judges(systems, *two, measure, rel=rel)
            if name == "human":
                theirs, ours = grades_of(others), grades_of(own)
                shared = [
                    qrels_of({pair: side[pair] for pair in ours if pair in theirs}, own) for side in (ours, theirs)
                ]
                classes = classify_pairs(systems, shared[0], shared[1], measure)
        except GateError as error:
            what = "people" if name == "human" else "the second judge"
            notes.append(f"{what} cannot be held against the judge: {error}")
    chosen = [each for each in (1, 3, 5, 10, 20) if each < depth] + [depth] if depths is None else list(depths)
    return PoolReport(
        depth=depth,
        queries=len({query for query, _ in pool.brought}),
        judged=judged,
        reuse=Reuse(grown[-1].independent, grown[-1].unique),
        growth=grown,
        table=system_table(systems, qrels, measure, depth=depth),
        families=leave_one_family_out(systems, qrels, families, measure, depth=depth, rel=rel)
        if several and families is not None
        else (),
        repeated=None if repeated is None else agreement(*repeated, rel=rel),
        second=beside.get("second"),
        human=beside.get("human"),
        pairs=classes,
        factors=factors(systems, qrels, tags, measure) if several and tags else (),
        costs=cost_curve(systems, qrels, measure, chosen, price=price) if several else (),
        price=price,
        notes=tuple(notes),
    )
