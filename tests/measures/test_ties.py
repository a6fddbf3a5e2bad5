"""Intervals of ties: every measure of the registry against the enumeration of all orders of equal scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate
from pytest_retrieval_eval.measures.names import PROVIDER, Measure
from pytest_retrieval_eval.measures.registry import Definition

Grades: TypeAlias = dict[str, dict[str, float]]
Lists: TypeAlias = dict[str, dict[str, float]]

OURS = [
    one
    for one in registry.definitions()
    if one.module.startswith("pytest_retrieval_eval.") and one.name != PROVIDER and one.reads == "ranks"
]
PLAIN = [one for one in OURS if one.table is None]
# What has no closed form, by the name of the measure inside.
NO_FORM = {"iprec", "eleven_point", "infap"}


def variants(definition: Definition, *, rel: float | None) -> list[Measure]:
    """A measure at several cut-offs, with its words, and at a level."""
    given: dict[str, float | str] = {
        key: 0.5 for key, one in definition.parameters.items() if one.default is None and not one.measure
    }
    choices = [given]
    for key, one in definition.parameters.items():
        choices += [{**given, key: word} for word in one.words if word != one.default]
    if rel is not None:
        choices = [{**choice, "rel": rel} for choice in choices] if definition.binary else []
    cutoffs = {"required": (1, 2, 4), "optional": (None, 1, 3), "none": (None,)}[definition.cutoff]
    return [Measure.of(definition.name, cutoff, **choice) for choice in choices for cutoff in cutoffs]


def nested(inside: list[Measure]) -> list[Measure]:
    """These measures on condensed and on cut lists, and both."""
    made = [Measure.of("condensed", None, measure=one) for one in inside]
    made += [Measure.of("cut", k, measure=one) for one in inside for k in (1, 3)]
    made += [Measure.of("condensed", None, measure=Measure.of("cut", 2, measure=one)) for one in inside]
    made += [Measure.of("cut", 2, measure=Measure.of("cut", 3, measure=one)) for one in inside]
    return made + [Measure.of("gm", None, measure=one) for one in inside if registry.aggregate(one)[0] == "mean"]


PAIRS = [Measure.parse(name) for name in ("bpref", "infap", "map(denominator=retrieved)", "ndcg@2", "set_map")]
LEVELS = [one for definition in PLAIN for rel in (None, 2.0) for one in variants(definition, rel=rel)]
LEVELS += nested([one for definition in PLAIN for one in variants(definition, rel=None)[-1:]] + PAIRS)
DEGREES = [
    one
    for definition in PLAIN
    if definition.name != "err"  # it has no definition for degrees
    for rel in (None, 0.5)
    if rel is not None or definition.graded is not None or not definition.binary
    for one in variants(definition, rel=rel)
]
DEGREES += nested([one for one in DEGREES if one.get("denominator") != "retrieved" and one.cutoff in (None, 2)][::2])


def orders(scores: Mapping[str, float], judged: Mapping[str, float]) -> list[list[str]]:
    """Every ranking that the scores allow, those that differ in unjudged documents alone taken once.

    Each of them stands for as many others, so that their mean is that of all.
    """
    groups = [[doc for doc in scores if scores[doc] == value] for value in sorted(set(scores.values()), reverse=True)]
    free = [
        {tuple(doc if doc in judged else None for doc in order): order for order in itertools.permutations(group)}
        for group in groups
    ]
    return [list(itertools.chain(*parts)) for parts in itertools.product(*(one.values() for one in free))]


def enumerated(
    grades: Grades, lists: Lists, names: list[Measure], scale: str, trec: bool
) -> tuple[Evaluation, dict[str, int]]:
    """The evaluation of every order as a list of its own: the query ``q/7`` has the eighth order of q."""
    qrels, run, counts = {}, {}, {}
    for query, judged in grades.items():
        every = orders(lists[query], judged) if query in lists else []
        counts[query] = max(len(every), 1)
        for i in range(counts[query]):
            qrels[f"{query}/{i}"] = judged
        for i, order in enumerate(every):
            run[f"{query}/{i}"] = {doc: float(-rank) for rank, doc in enumerate(order)}
    return evaluate(Qrels.of(qrels, scale=scale), Run.of(run), names, trec=trec), counts


def overall(measure: Measure) -> Callable[[list[float]], float]:
    """What the values of the queries make together."""
    if measure.name == "gm":
        return lambda values: math.exp(math.fsum(math.log(max(value, 1e-5)) for value in values) / len(values))
    if registry.aggregate(measure)[0] == "sum":
        return math.fsum
    return lambda values: math.fsum(values) / len(values)


def check(grades: Grades, lists: Lists, names: list[Measure], scale: str = "levels", trec: bool = False) -> None:
    every, counts = enumerated(grades, lists, names, scale, trec)
    evaluation = evaluate(Qrels.of(grades, scale=scale), Run.of(lists), names, trec=trec)
    for name in names:
        scores = evaluation[name]
        values = {query: [every[name].get(f"{query}/{i}") for i in range(number)] for query, number in counts.items()}
        counted = {
            query: [v for v in found if v is not None] for query, found in values.items() if found[0] is not None
        }
        assert tuple(counted) == scores.query_ids, name
        if not counted:
            continue
        together, interval = overall(name), evaluation.ties(name)
        assert interval.low == pytest.approx([min(v) for v in counted.values()], abs=1e-9), name
        assert interval.high == pytest.approx([max(v) for v in counted.values()], abs=1e-9), name
        assert interval.minimum == pytest.approx(together([min(v) for v in counted.values()]), abs=1e-9), name
        assert interval.maximum == pytest.approx(together([max(v) for v in counted.values()]), abs=1e-9), name
        if name.name == "gm":  # the orders of the queries are independent: the mean of a product is that of the means
            roots = [[max(value, 1e-5) ** (1 / len(counted)) for value in v] for v in counted.values()]
            mean = math.prod(math.fsum(v) / len(v) for v in roots)
        else:
            mean = together([math.fsum(v) / len(v) for v in counted.values()])
        assert interval.expected == pytest.approx(mean, abs=1e-9), name
        assert interval.minimum - 1e-9 <= scores.overall <= interval.maximum + 1e-9, name


@st.composite
def worlds(draw: st.DrawFn, grades: st.SearchStrategy[float]) -> tuple[Grades, Lists]:
    """One to three queries, lists of up to seven documents in up to three tied groups, some of them unjudged."""
    queries = [f"q{i}" for i in range(draw(st.integers(1, 3)))]
    judged = {q: draw(st.dictionaries(st.sampled_from("abcdefg"), grades, min_size=1)) for q in queries}
    lists = {
        q: draw(st.dictionaries(st.sampled_from("abcdexyz"), st.integers(1, 3).map(float), min_size=1, max_size=7))
        for q in queries
    }
    if len(queries) > 1 and draw(st.booleans()):
        del lists[queries[-1]]
    assume(all(len(orders(lists[q], judged[q])) <= 200 for q in lists))
    return judged, lists


heavy = settings(deadline=None, max_examples=15)


@heavy
@given(worlds(st.integers(-1, 3).map(float)), st.booleans())
def test_on_levels(world: tuple[Grades, Lists], trec: bool) -> None:
    check(*world, LEVELS, trec=trec)


@heavy
@given(worlds(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])))
def test_on_the_unit_scale(world: tuple[Grades, Lists]) -> None:
    check(*world, DEGREES, scale="unit")


def test_every_measure_is_held_against_enumeration() -> None:
    assert {one.innermost.name for one in LEVELS} == {one.name for one in PLAIN}
    assert {one.name for one in LEVELS} == {one.name for one in OURS}
    assert {one.innermost.name for one in LEVELS if registry.definition(one.innermost.name).expected is None} == NO_FORM


def test_repeated_documents() -> None:
    qrels = Qrels.of({"q": {"a": 1, "b": 2}})
    repeated = Run.of({"q": [("x", 3.0), ("a", 2.0), ("b", 2.0), ("a", 2.0)]})
    for name in LEVELS:  # a list is an order: nothing in it is tied
        interval = evaluate(qrels, repeated, name).ties(name)
        assert interval.minimum == interval.expected == interval.maximum
    with pytest.raises(MeasureError, match="repeats documents, which trec_eval has no order for: intervals of ties"):
        evaluate(qrels, repeated, "map", trec=True).ties("map")


def test_a_tie_that_a_cut_divides_before_condensing() -> None:
    """How many unjudged documents are in the cut list hangs on the order: no form, but each order can be tried."""
    qrels, run = Qrels.of({"q": {"a": 1, "b": 0}}), Run.of({"q": {"b": 2.0, "a": 1.0, "x": 1.0}})
    interval = evaluate(qrels, run, "cut(condensed(mrr))@2").ties("cut(condensed(mrr))@2")
    assert (interval.minimum, interval.expected, interval.maximum) == (0.0, 0.25, 0.5)


def test_the_geometric_mean_and_sums() -> None:
    """They are of the values of the queries, as the scores themselves."""
    qrels = Qrels.of({"1": {"a": 1}, "2": {"a": 1}})
    run = Run.of({"1": {"a": 1.0, "b": 1.0}, "2": {"a": 1.0, "b": 0.5}})
    evaluation = evaluate(qrels, run, ["gm(mrr)", "num_rel_ret@1"])
    interval = evaluation.ties("gm(mrr)")
    root = math.sqrt(0.5)
    assert (interval.minimum, interval.expected, interval.maximum) == pytest.approx((root, (1 + root) / 2, 1.0))
    interval = evaluation.ties("num_rel_ret@1")
    assert (interval.minimum, interval.expected, interval.maximum) == (1.0, 1.5, 2.0)


def test_too_many_orders_have_no_expected_value_without_a_form() -> None:
    """2 of 200 documents can stand in 19,900 ways."""
    qrels = Qrels.of({"q": {"d0": 1, "d1": 1}})
    run = Run.of({"q": {f"d{i}": 1.0 for i in range(200)}})
    evaluation = evaluate(qrels, run, ["iprec(recall=1)", "map"])
    interval = evaluation.ties("iprec(recall=1)")
    assert (interval.minimum, interval.expected, interval.maximum) == (2 / 200, None, 1.0)
    assert evaluation.ties("map").expected is not None
    few = evaluate(qrels, Run.of({"q": {f"d{i}": 1.0 for i in range(140)}}), "iprec(recall=1)").ties("iprec(recall=1)")
    # The second of two drawn from 140 ranks stands at r in r − 1 of 9,730 ways, and then the precision is 2 ÷ r.
    assert few.expected == pytest.approx(sum((r - 1) * 2 / r for r in range(2, 141)) / math.comb(140, 2))


def test_err_over_a_large_tie() -> None:
    """Alike stop chances p at r of s documents: a reader goes on past j of them with Σ P(h of j) (1 − p)^h."""
    size, relevant, grade = 1000, 40, 2
    docs = [f"d{i}" for i in range(size)]
    qrels = Qrels.of({"q": dict.fromkeys(docs[:relevant], grade)})
    go_on = 1 - (2**grade - 1) / 2**grade
    passed = [
        sum(
            math.comb(relevant, h) * math.comb(size - relevant, j - h) / math.comb(size, j) * go_on**h
            for h in range(min(j, relevant) + 1)
        )
        for j in range(21)
    ]
    value = sum((passed[j] - passed[j + 1]) / (j + 1) for j in range(20))
    interval = evaluate(qrels, Run.of({"q": dict.fromkeys(docs, 1.0)}), "err@20").ties("err@20")
    assert interval.expected == pytest.approx(value, rel=1e-9)
