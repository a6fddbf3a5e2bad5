"""The values of the ranking measures: against a reference that is obviously right, and laws that always
hold.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import judged_ranks

# Many measures an example: no deadline for one, and fewer of them.
relaxed = settings(deadline=None, max_examples=50)
few = settings(deadline=None, max_examples=15)

World: TypeAlias = tuple[dict[str, dict[str, int]], dict[str, list[str]]]

CUTOFFS = (1, 2, 3, 5, 10, 100)
NAMES = [
    *(f"{name}@{k}" for name in ("hit", "precision", "recall", "f1", "mrr", "map", "ndcg") for k in CUTOFFS),
    *(f"{name}(rel=2)@{k}" for name in ("hit", "precision", "recall", "f1", "mrr", "map") for k in (1, 3)),
    *(f"judged@{k}" for k in CUTOFFS),
    *(f"ndcg(gain=exp)@{k}" for k in CUTOFFS),
    *(f"{name}@{k}" for name in ("dcg", "rbp", "err") for k in (1, 3)),
    "dcg(gain=exp)",
    "rbp(p=0.5,rel=2)",
    "err",
    "err(gmax=5)",
    "bpref",
    "bpref(rel=2)",
    "infap",
    "mrr",
    "map",
    "ndcg",
    "ndcg(gain=exp)",
    "r_precision",
    "mrr(rel=2)",
    "map(rel=2)",
    "r_precision(rel=2)",
    "map(denominator=retrieved)",
    "map(denominator=retrieved)@3",
    *(f"iprec(recall={level})" for level in (0, 0.3, 0.5, 1)),
    "iprec(recall=0.3, rounding=nearest)",
    "iprec(recall=0.5, rel=2)",
    "eleven_point",
    *(f"{name}{cut}" for name in ("set_precision", "set_recall", "set_f1", "set_map") for cut in ("", "@3", "(rel=2)")),
    *(f"{name}{cut}" for name in ("num_ret", "num_rel_ret", "num_nonrel_judged_ret") for cut in ("", "@3")),
    "num_q",
    "num_rel",
    "num_rel(rel=2)",
    *(f"unjudged@{k}" for k in (1, 3, 10)),
    *(f"graded_rbp{part}" for part in ("", "@3", "(p=0.5, gmax=6)")),
    *(f"rbp_tail{part}" for part in ("", "@3", "(p=0.5)")),
    *(f"rbp_residual{part}" for part in ("", "@3", "(p=0.5)", "(negative=unjudged)")),
    *(f"condensed({name})" for name in ("ndcg@3", "map", "precision(rel=2)@2", "bpref", "rbp_residual", "judged@5")),
    *(f"cut({name})@3" for name in ("ndcg", "map", "set_f1", "bpref", "condensed(ndcg)")),
    "condensed(cut(map)@3)",
    "gm(map)",
]


def reference(name: str, ranking: Sequence[str], grades: Mapping[str, float], highest: float = 4) -> float | None:
    """One query, one measure, in the words of the definitions; None where the query does not count."""
    measure = Measure.parse(name)
    k = measure.cutoff or max(len(ranking), 1)
    top = list(ranking[:k])
    if measure.inner:
        other = {"condensed": [doc for doc in ranking if doc in grades], "cut": top, "gm": ranking}[measure.name]
        return reference(str(measure.inner), other, grades, highest)
    relevant = [grades.get(doc, 0) >= measure.rel for doc in ranking]
    total = sum(grade >= measure.rel for grade in grades.values())
    p = float(measure.get("p", 0.8))  # type: ignore[arg-type]
    if measure.name == "unjudged":
        return sum(doc not in grades for doc in top) / k if ranking and grades else None
    if measure.name in ("num_q", "num_ret", "rbp_tail", "rbp_residual", "graded_rbp"):
        gmax = float(measure.get("gmax", highest))  # type: ignore[arg-type]
        least = 0 if measure.get("negative") == "unjudged" else -9
        open_ranks = [rank for rank, doc in enumerate(top, 1) if grades.get(doc, -10) < least]
        value = {
            "num_q": 1,
            "num_ret": len(top),
            "rbp_tail": p ** len(top),
            "rbp_residual": p ** len(top) + (1 - p) * sum(p ** (rank - 1) for rank in open_ranks),
            "graded_rbp": (1 - p) * sum(max(grades.get(d, 0), 0) / gmax * p**i for i, d in enumerate(top))
            if gmax
            else 0,
        }[measure.name]
        return value if max(grades.values(), default=0) > 0 else None
    if measure.name == "judged":
        return sum(doc in grades for doc in top) / len(top) if top and grades else None
    if measure.name == "err":
        value, arrive, gmax = 0.0, 1.0, measure.get("gmax", highest)
        for rank, doc in enumerate(top, 1):
            stop = (2.0 ** max(grades.get(doc, 0), 0) - 1) / 2.0**gmax  # type: ignore[operator]
            value, arrive = value + arrive * stop / rank, arrive * (1 - stop)
        return value if max(grades.values(), default=0) > 0 else None
    if measure.name in ("dcg", "ndcg"):

        def gain(grade: float) -> float:
            return 0.0 if grade <= 0 else 2.0**grade - 1 if measure.get("gain") == "exp" else grade

        def dcg(best_first: Sequence[float]) -> float:
            return sum(gain(g) / math.log2(rank + 1) for rank, g in enumerate(best_first, 1))

        if measure.name == "dcg":
            return dcg([grades.get(doc, 0) for doc in top]) if max(grades.values(), default=0) > 0 else None
        ideal = sorted(grades.values(), reverse=True)[: measure.cutoff or len(grades)]
        return dcg([grades.get(doc, 0) for doc in top]) / dcg(ideal) if dcg(ideal) else None
    if total == 0:
        return None
    hits = sum(relevant[:k])
    if measure.name == "hit":
        return float(hits > 0)
    if measure.name == "precision":
        return hits / k
    if measure.name == "recall":
        return hits / total
    if measure.name == "f1":
        precision, recall = hits / k, hits / total
        return 2 * precision * recall / (precision + recall) if hits else 0.0
    if measure.name.startswith("set_"):
        p_set, r_set = hits / len(top) if top else 0.0, hits / total
        return {
            "set_precision": p_set,
            "set_recall": r_set,
            "set_f1": 2 * p_set * r_set / (p_set + r_set) if hits else 0.0,
            "set_map": p_set * r_set,
        }[measure.name]
    if measure.name.startswith("num_"):
        judged_not = sum(0 <= grades.get(doc, -1) < measure.rel for doc in top)
        return {"num_rel": total, "num_rel_ret": hits, "num_nonrel_judged_ret": judged_not}[measure.name]
    if measure.name in ("iprec", "eleven_point"):

        def iprec(level: float) -> float:
            need = math.floor(level * total + (0.5 if measure.get("rounding") == "nearest" else 0.9))
            cuts = [n for n in range(1, len(ranking) + 1) if sum(relevant[:n]) >= need]
            return max((sum(relevant[:n]) / n for n in cuts), default=0.0)

        level = measure.get("recall")
        return iprec(level) if isinstance(level, float) else sum(iprec(tenth / 10) for tenth in range(11)) / 11
    if measure.name == "rbp":
        return (1 - p) * sum(p ** (rank - 1) for rank, yes in enumerate(relevant[:k], 1) if yes)
    judged_not = [0 <= grades.get(doc, -1) < measure.rel for doc in ranking]
    if measure.name == "bpref":
        bound = min(total, sum(0 <= grade < measure.rel for grade in grades.values()))
        above = [sum(judged_not[:place]) for place, yes in enumerate(relevant) if yes]
        return sum(1 - min(n, total) / bound if n else 1.0 for n in above) / total
    if measure.name == "infap":
        value = 0.0
        for place in [place for place, yes in enumerate(relevant) if yes]:
            before, others = sum(relevant[:place]), sum(judged_not[:place])
            pooled = sum(doc in grades for doc in ranking[:place])
            value += 1 / (place + 1)
            if place:
                share = (before + 1e-5) / (before + others + 2e-5)
                value += place / (place + 1) * pooled / place * share
        return value / total
    if measure.name == "mrr":
        return next((1 / rank for rank, yes in enumerate(relevant[:k], 1) if yes), 0.0)
    if measure.name == "map":
        below = hits or 1 if measure.get("denominator") == "retrieved" else total
        return sum(sum(relevant[:rank]) / rank for rank in range(1, k + 1) if any(relevant[rank - 1 : rank])) / below
    if measure.name == "r_precision":
        return sum(relevant[:total]) / total
    raise AssertionError(name)


@st.composite
def worlds(draw: st.DrawFn, *, max_docs: int = 12) -> World:
    """Qrels with at least one judgment, and lists without ties over judged and other documents."""
    docs = [f"d{i}" for i in range(max_docs)]
    queries = [f"q{i}" for i in range(draw(st.integers(1, 4)))]
    grades = st.integers(-2, 4)
    qrels = {
        query: draw(st.dictionaries(st.sampled_from(docs), grades, min_size=int(query == "q0"))) for query in queries
    }
    run = {
        query: draw(st.lists(st.sampled_from(docs), unique=True))
        for query in draw(st.lists(st.sampled_from(queries), min_size=1, unique=True))
    }
    return qrels, run


@relaxed
@given(worlds())
def test_every_measure_equals_the_reference(world: World) -> None:
    qrels, run = world
    evaluation = evaluate(Qrels.of(qrels), Run.of(run), NAMES)
    for name in NAMES:
        highest = max(grade for grades in qrels.values() for grade in grades.values())
        values = {query: reference(name, run.get(query, []), grades, highest) for query, grades in qrels.items()}
        expected = {query: value for query, value in values.items() if value is not None}
        assert evaluation[name].to_dict() == pytest.approx(expected, abs=1e-12), name
        if expected:
            assert evaluation[name].mean == pytest.approx(sum(expected.values()) / len(expected), abs=1e-12)


@few
@given(worlds())
def test_values_lie_within_their_bounds(world: World) -> None:
    qrels, run = world
    for scores in evaluate(Qrels.of(qrels), Run.of(run), NAMES):
        low, high = registry.bounds(scores.measure)
        assert ((scores.values >= low) & (scores.values <= high + 1e-12)).all(), scores.measure


@relaxed
@given(worlds())
def test_recall_and_its_kin_never_fall_as_k_grows(world: World) -> None:
    qrels, run = world
    for name in ("recall", "hit", "mrr", "map", "dcg", "rbp", "graded_rbp", "err", "set_recall", "num_rel_ret"):
        values = [scores.values for scores in evaluate(Qrels.of(qrels), Run.of(run), [f"{name}@{k}" for k in CUTOFFS])]
        for shallow, deep in itertools.pairwise(values):
            assert (deep >= shallow).all()


@relaxed
@given(worlds())
def test_the_ideal_order_scores_1(world: World) -> None:
    qrels, _ = world
    run = {query: sorted(grades, key=lambda d: -grades[d]) for query, grades in qrels.items()}
    whole = ("map", "mrr", "r_precision", "eleven_point", "bpref", "set_recall", "map(denominator=retrieved)")
    names = [name for name in NAMES if name in whole or name.startswith(("ndcg", "iprec", "condensed(ndcg"))]
    for scores in evaluate(Qrels.of(qrels), Run.of(run), names):
        assert scores.values == pytest.approx(1.0, abs=1e-12), scores.measure


@relaxed
@given(
    worlds(), st.sampled_from(["ndcg@3", "map", "mrr", "bpref", "infap", "iprec(recall=0.5)", "rbp(p=0.5)", "err@5"])
)
def test_condensed_equals_plain_where_all_is_judged(world: World, name: str) -> None:
    qrels, run = world
    judged = {query: [doc for doc in docs if doc in qrels[query]] for query, docs in run.items()}
    evaluation = evaluate(Qrels.of(qrels), Run.of(judged), [name, f"condensed({name})"])
    plain, condensed = evaluation
    assert plain.to_dict() == condensed.to_dict()
    assert (
        condensed.to_dict()
        == evaluate(Qrels.of(qrels), Run.of(run), f"condensed({name})")[f"condensed({name})"].to_dict()
    )


@few
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_queries_and_judgments_is_of_no_matter(world: World, rng: random.Random) -> None:
    qrels, run = world

    def shuffled(mapping: dict[str, Any]) -> dict[str, Any]:
        items = list(mapping.items())
        rng.shuffle(items)
        return dict(items)

    one = evaluate(Qrels.of(qrels), Run.of(run), NAMES)
    other = evaluate(
        Qrels.of(shuffled({query: shuffled(grades) for query, grades in qrels.items()})),
        Run.of(shuffled(run)),
        NAMES,
    )
    for a, b in zip(one, other, strict=True):
        assert a.to_dict() == b.to_dict()
        if a.n:
            assert a.mean == b.mean


@few
@given(worlds(), st.sampled_from(CUTOFFS))
def test_documents_below_the_cutoff_are_of_no_matter(world: World, k: int) -> None:
    qrels, run = world
    cut = {query: docs[:k] for query, docs in run.items()}
    names = [name for name in NAMES if name.endswith(f"@{k}")] + [
        f"cut({name})@{k}" for name in ("map", "bpref", "set_f1")
    ]
    one, other = evaluate(Qrels.of(qrels), Run.of(run), names), evaluate(Qrels.of(qrels), Run.of(cut), names)
    for a, b in zip(one, other, strict=True):
        assert a.to_dict() == b.to_dict()


@few
@given(worlds())
def test_a_value_does_not_depend_on_what_else_is_asked_for(world: World) -> None:
    qrels, run = Qrels.of(world[0]), Run.of(world[1])
    together = evaluate(qrels, run, NAMES)
    for name in NAMES:
        alone = evaluate(qrels, run, name)[name]
        assert alone.to_dict() == together[name].to_dict()


class TestTies:
    NAMES = (
        *(f"{name}@{k}" for name in ("hit", "precision", "recall", "f1", "judged") for k in (1, 2, 4)),
        *(f"{name}@{k}" for name in ("mrr", "map", "ndcg", "ndcg(gain=exp)") for k in (1, 2, 4)),
        "mrr",
        "map",
        "ndcg",
        "ndcg(gain=exp)",
        "r_precision",
        "map(rel=2)",
        "hit(rel=2)@2",
        "dcg@2",
        "rbp@3",
        "rbp(p=0.5)",
        "err@2",
        "err",
        "bpref",
        "map(denominator=retrieved)",
        "iprec(recall=0.5)",
        "eleven_point",
        "set_f1@2",
        "unjudged@2",
        "graded_rbp",
        "rbp_tail",
        "rbp_residual@3",
        "condensed(ndcg@2)",
        "condensed(map)",
        "cut(bpref)@3",
        "cut(ndcg)@2",
    )
    NO_FORM = ("iprec", "eleven_point", "cut")

    @staticmethod
    def orders(scores: Mapping[str, float]) -> list[list[str]]:
        """Every ranking that the scores allow."""
        groups = [
            [doc for doc in scores if scores[doc] == value] for value in sorted(set(scores.values()), reverse=True)
        ]
        permuted = itertools.product(*(itertools.permutations(group) for group in groups))
        return [list(itertools.chain(*parts)) for parts in permuted]

    @settings(deadline=None, max_examples=30)
    @given(
        st.dictionaries(st.sampled_from("abcdefg"), st.integers(-1, 3), min_size=1),
        st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3).map(float), min_size=1),
    )
    def test_the_interval_equals_enumeration(self, grades: dict[str, int], scores: dict[str, float]) -> None:
        evaluation = evaluate(Qrels.of({"q": grades}), Run.of({"q": scores}), self.NAMES)
        orders = self.orders(scores)
        for name in self.NAMES:
            if not evaluation[name].n:
                continue
            values = [reference(name, order, grades, max(grades.values())) or 0.0 for order in orders]
            interval = evaluation.ties(name)
            assert interval.minimum == pytest.approx(min(values), abs=1e-12), name
            assert interval.maximum == pytest.approx(max(values), abs=1e-12), name
            if interval.expected is None:
                assert evaluation[name].measure.name in self.NO_FORM
            else:
                assert interval.expected == pytest.approx(sum(values) / len(values), abs=1e-12), name
            assert interval.minimum - 1e-12 <= evaluation[name].mean <= interval.maximum + 1e-12
            assert (interval.low <= interval.high).all()
            assert interval.query_ids == ("q",)
            assert interval.matters == (max(values) - min(values) > 1e-9)

    def test_queries_are_independent(self) -> None:
        qrels = Qrels.of({"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}})
        run = Run.of({"1": {"a": 1.0, "b": 1.0}, "2": {"a": 2.0, "b": 1.0}, "3": {"b": 1.0}})
        interval = evaluate(qrels, run, "mrr").ties("mrr")
        assert (interval.minimum, interval.expected, interval.maximum) == pytest.approx((0.5, 1.75 / 3, 2 / 3))
        assert interval.low.tolist() == [0.5, 1.0, 0.0]
        assert interval.high.tolist() == [1.0, 1.0, 0.0]

    def test_a_list_has_no_ties(self) -> None:
        evaluation = evaluate(Qrels.of({"1": {"a": 1}}), Run.of({"1": ["b", "a"]}), "mrr")
        interval = evaluation.ties("RR")
        assert (interval.minimum, interval.expected, interval.maximum) == (0.5, 0.5, 0.5)
        assert not interval.matters

    def test_large_groups(self) -> None:
        docs = [f"d{i:04}" for i in range(2000)]
        qrels = Qrels.of({"q": dict.fromkeys(docs[::100], 1)})
        evaluation = evaluate(qrels, Run.of({"q": dict.fromkeys(docs, 1.0)}), "hit@10")
        assert evaluation.ties("precision@10").expected == pytest.approx(20 / 2000)
        none = math.comb(1980, 10) / math.comb(2000, 10)
        assert evaluation.ties("hit@10").expected == pytest.approx(1 - none)
        assert evaluation.ties("mrr").maximum == 1.0
        assert evaluation.ties("mrr").minimum == pytest.approx(1 / 1981)


class TestUnitScale:
    """Labels as degrees of relevance: the closed forms against integration over all thresholds."""

    NAMES = (
        *(
            f"{name}@{k}"
            for name in ("hit", "precision", "recall", "f1", "mrr", "map", "ndcg", "dcg", "rbp")
            for k in (1, 3, 6)
        ),
        "ndcg(gain=exp)@3",
        "mrr",
        "map",
        "ndcg",
        "r_precision",
        "rbp(p=0.5)",
        "map(denominator=retrieved)@3",
        *(f"{name}{cut}" for name in ("set_precision", "set_recall", "set_f1", "set_map") for cut in ("", "@3")),
        "num_rel",
        "num_rel_ret@3",
        "condensed(map)",
        "condensed(ndcg@3)",
        "cut(mrr)@3",
    )

    @staticmethod
    def integrated(name: str, ranking: Sequence[str], labels: Mapping[str, float]) -> float:
        """Numerator and denominator of the binary measure, both integrated over the threshold."""
        measure = Measure.parse(name)
        if measure.name == "condensed":
            ranking, measure = [doc for doc in ranking if doc in labels], measure.innermost
        if measure.name == "cut":
            ranking, measure = ranking[: measure.cutoff], measure.innermost
        returned = len(ranking[: measure.cutoff])
        k = measure.cutoff or max(len(ranking), len(labels), 1)
        p = float(measure.get("p", 0.8))  # type: ignore[arg-type]
        numerator = denominator = 0.0
        edges = sorted({0.0, 1.0, *labels.values()})
        for low, high in itertools.pairwise(edges):
            total = sum(label >= high for label in labels.values())
            relevant = [labels.get(doc, 0.0) >= high for doc in ranking]
            hits = sum(relevant[:k])
            ranks = [rank for rank, yes in enumerate(relevant[:k], 1) if yes]
            top, bottom = {
                "hit": (float(hits > 0), 1.0),
                "precision": (hits, k),
                "recall": (hits, total),
                "f1": (2 * hits, k + total),
                "mrr": (1 / ranks[0] if ranks else 0.0, 1.0),
                "map": (
                    sum(place / rank for place, rank in enumerate(ranks, 1)),
                    hits if measure.get("denominator") == "retrieved" else total,
                ),
                "set_precision": (hits, returned),
                "set_recall": (hits, total),
                "set_f1": (2 * hits, returned + total),
                "set_map": (hits * hits, returned * total),
                "num_rel": (total, 1.0),
                "num_rel_ret": (hits, 1.0),
                "r_precision": (sum(relevant[:total]), total),
                "dcg": (sum(1 / math.log2(rank + 1) for rank in ranks), 1.0),
                "rbp": ((1 - p) * sum(p ** (rank - 1) for rank in ranks), 1.0),
                "ndcg": (
                    sum(1 / math.log2(rank + 1) for rank in ranks),
                    sum(1 / math.log2(rank + 1) for rank in range(1, min(k, total) + 1)),
                ),
            }[measure.name]
            numerator += top * (high - low)
            denominator += bottom * (high - low)
        return numerator / denominator if denominator else 0.0

    labels = st.dictionaries(
        st.sampled_from("abcdefgh"), st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1), min_size=1
    ).filter(lambda labels: max(labels.values()) > 1e-6)

    @relaxed
    @given(st.lists(st.tuples(labels, st.lists(st.sampled_from("abcdefghxy"), unique=True)), min_size=1, max_size=3))
    def test_closed_forms_equal_integration(self, world: list[tuple[dict[str, float], list[str]]]) -> None:
        qrels = Qrels.of({str(i): labels for i, (labels, _) in enumerate(world)}, scale="unit")
        run = Run.of({str(i): ranking for i, (_, ranking) in enumerate(world)})
        for scores in evaluate(qrels, run, self.NAMES):
            expected = [self.integrated(str(scores.measure), ranking, labels) for labels, ranking in world]
            assert scores.values == pytest.approx(expected, abs=1e-12), scores.measure

    @few
    @given(worlds())
    def test_on_labels_0_and_1_nothing_changes(self, world: World) -> None:
        qrels = {query: {d: int(g > 0) for d, g in grades.items()} for query, grades in world[0].items()}
        run = Run.of(world[1])
        unit = evaluate(Qrels.of(qrels, scale="unit"), run, self.NAMES)
        for scores in evaluate(Qrels.of(qrels), run, self.NAMES):
            assert unit[scores.measure].to_dict() == pytest.approx(scores.to_dict(), abs=1e-12)

    def test_the_ideal_order_scores_1(self) -> None:
        qrels = Qrels.of({"q": {"a": 1, "b": 0.5, "c": 0.5}}, scale="unit")
        for scores in evaluate(qrels, Run.of({"q": ["a", "b", "c"]}), ["map", "ndcg", "r_precision", "recall@3"]):
            assert scores.mean == pytest.approx(1.0)

    def test_published_examples(self) -> None:
        qrels = Qrels.of({"q": {"a": 0.5, "b": 1}}, scale="unit")
        evaluation = evaluate(qrels, Run.of({"q": ["a", "b"]}), ["mrr", "hit@2", "precision@2", "precision@5"])
        assert [scores.mean for scores in evaluation] == [0.75, 1.0, 0.75, 0.3]

    def test_a_level_in_the_name_makes_it_binary(self) -> None:
        qrels = Qrels.of({"q": {"a": 0.5, "b": 1}}, scale="unit")
        evaluation = evaluate(qrels, Run.of({"q": ["a", "b"]}), ["mrr(rel=0.6)", "mrr(rel=0.5)"])
        assert [scores.mean for scores in evaluation] == [0.5, 1.0]

    def test_many_pairs_are_taken_in_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = random.Random(5)
        labels = {str(q): {str(d): rng.random() for d in range(30)} for q in range(5)}
        run = Run.of({q: list(grades) for q, grades in labels.items()})
        whole = evaluate(Qrels.of(labels, scale="unit"), run, "map")["map"].values
        monkeypatch.setattr("pytest_retrieval_eval.measures.graded._PAIRS", 50)
        parts = evaluate(Qrels.of(labels, scale="unit"), run, "map")["map"].values
        assert (parts == whole).all()

    def test_a_label_above_1_is_an_error(self) -> None:
        qrels = Qrels.of({"q": {"a": 3}}, scale="unit")
        with pytest.raises(DataError, match="have the label 3; expected labels from 0 to 1"):
            evaluate(qrels, Run.of({"q": ["a"]}), "hit@5")
        rounded = Qrels.of({"q": {"a": 1.0000001}}, scale="unit")
        assert evaluate(rounded, Run.of({"q": ["a"]}), "hit@5")["hit@5"].mean == 1.0

    def test_ties(self) -> None:
        qrels = Qrels.of({"q": {"a": 0.5, "b": 1}}, scale="unit")
        evaluation = evaluate(qrels, Run.of({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}), "mrr")
        interval = evaluation.ties("mrr")
        assert (interval.minimum, interval.maximum) == pytest.approx((0.5 / 2 + 0.5 / 3, 1.0))
        # Labels of at least t are tied: two of three documents for t to 0.5, one of three beyond.
        assert interval.expected == pytest.approx(0.5 * (2 / 3 + 1 / 3 / 2) + 0.5 * (1 + 1 / 2 + 1 / 3) / 3)

    def test_a_measure_without_a_graded_form_needs_a_level(self) -> None:
        made = registry.Definition("own", "own", "this test", lambda ranks, measure: np.zeros(ranks.queries))
        registry.register(made)
        try:
            qrels = Qrels.of({"q": {"a": 0.5}}, scale="unit")
            with pytest.raises(MeasureError, match=r"unit scale.*own\(rel=0\.5\)@5"):
                evaluate(qrels, Run.of({"q": ["a"]}), "own@5")
            with pytest.raises(MeasureError, match="no definition for labels on the unit scale"):
                evaluate(qrels, Run.of({"q": ["a"]}), "err@5")
            assert evaluate(qrels, Run.of({"q": ["a"]}), "own(rel=0.5)@5")["own(rel=0.5)@5"].n == 1
        finally:
            registry.unregister("own")


class TestJudgedRanks:
    def test_rows_are_sorted_and_sparse(self) -> None:
        qrels = Qrels.of({"1": {"a": 1, "b": 0, "c": 2}, "2": {"a": 1}, "3": {"z": 1}})
        run = Run.of({"2": ["x", "a"], "1": ["c", "x", "a"], "9": ["a"]})
        ranks = judged_ranks(qrels, run)
        assert ranks.query.tolist() == [0, 0, 1]
        assert ranks.rank.tolist() == [1, 3, 2]
        assert ranks.grade.tolist() == [2.0, 1.0, 1.0]
        assert ranks.returned.tolist() == [3, 2, 0]
        assert ranks.in_run.tolist() == [True, True, False]
        assert ranks.unknown == ("9",)
        assert not ranks.tied()
        assert ranks.best() is ranks

    def test_facts_are_shared_between_runs_on_the_same_qrels(self) -> None:
        qrels = Qrels.of({"1": {"a": 1, "b": 0, "c": 2.5}})
        one, other = judged_ranks(qrels, Run.of({"1": ["a"]})), judged_ranks(qrels, Run.of({"1": ["b"]}))
        assert one.facts is other.facts
        assert one.facts.relevant(1.0).tolist() == [2]
        assert one.facts.relevant(2.0).tolist() == [1]
        assert one.facts.fractional == 2
        assert one.facts.highest == 2.5

    def test_results_cannot_be_written_to(self) -> None:
        evaluation = evaluate(Qrels.of({"1": {"a": 1}}), Run.of({"1": ["a"]}), ["recall@5", "ndcg@5"])
        for scores in evaluation:
            with pytest.raises(ValueError, match="read-only"):
                scores.values[0] = 3.0


def test_a_grade_beyond_what_the_exponential_gain_can_hold_is_an_error() -> None:
    qrels = Qrels.of({"1": {"a": 2000}})
    with pytest.raises(MeasureError, match="the highest grade is 2000"):
        evaluate(qrels, Run.of({"1": ["a"]}), "ndcg(gain=exp)@5")
    assert evaluate(qrels, Run.of({"1": ["a"]}), "ndcg@5")["ndcg@5"].mean == 1.0


def test_a_grade_above_gmax_is_an_error() -> None:
    qrels, run = Qrels.of({"1": {"a": 3}}), Run.of({"1": ["a"]})
    with pytest.raises(MeasureError, match=r"have grade 3, above gmax.*Write gmax=3"):
        evaluate(qrels, run, "err(gmax=2)@5")
    assert (
        evaluate(qrels, run, "err@5")["err@5"].mean
        == evaluate(qrels, run, "err(gmax=3)@5")["err(gmax=3)@5"].mean
        == 7 / 8
    )


def test_the_handbooks_example() -> None:
    qrels = Qrels.of({"q": {"d1": 3, "d3": 2, "d5": 2, "d4": 1}})
    run = Run.of({"q": ["d7", "d3", "d1", "d9", "d4"]})
    evaluation: Evaluation = evaluate(qrels, run, ["recall@5", "map", "ndcg@5", "ndcg(gain=exp)@5", "mrr", "hit@5"])
    rounded = [round(scores.mean, 2) for scores in evaluation]
    assert rounded == [0.75, 0.44, 0.55, 0.53, 0.5, 1.0]


@pytest.mark.parametrize("name", ["map(denominator=retrieved)", "condensed(infap)", "iprec(recall=0.5)"])
def test_bounds_are_refused_where_none_are_known(name: str) -> None:
    with pytest.raises(MeasureError, match="has no known exact bounds over unjudged documents"):
        evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["b", "a"]}), name).bounds(name)
