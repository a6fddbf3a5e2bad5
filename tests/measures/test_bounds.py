"""Bounds over unjudged documents: against enumeration of everything that they could be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures.evaluate import evaluate

LEVELS = (
    *(f"{name}@{k}" for name in ("hit", "precision", "recall", "f1", "mrr", "map") for k in (1, 2, 3, 5)),
    *(f"{name}(rel=2)@{k}" for name in ("hit", "precision", "recall", "f1", "mrr", "map") for k in (2, 4)),
    *(f"{name}@{k}" for name in ("ndcg", "ndcg(gain=exp)", "dcg", "dcg(gain=exp)", "err", "rbp") for k in (1, 2, 3, 5)),
    *("mrr", "map", "map(rel=2)", "r_precision", "r_precision(rel=2)", "ndcg", "ndcg(gain=exp)", "dcg", "err"),
    *("rbp(p=0.5)", "rbp(rel=2)@3", "err(gmax=5)@3"),
    *("bpref", "bpref(rel=2)", "gm(map)", "gm(condensed(ndcg@3))", "condensed(cut(recall@5)@2)"),
    *(f"condensed({name})" for name in ("precision@2", "map", "ndcg@3", "r_precision", "mrr", "err@3")),
    *(
        f"cut({name})@3"
        for name in ("ndcg@2", "recall@5", "map", "mrr", "dcg", "hit@4", "rbp", "err", "condensed(map)")
    ),
)
DEGREES = tuple(f"{name}@{k}" for name in ("hit", "precision", "recall", "f1", "mrr", "rbp", "dcg") for k in (1, 2, 4))
DEGREES += (
    "ndcg@1",
    "ndcg@3",
    "ndcg",
    "mrr",
    "rbp(p=0.5)",
    "recall(rel=0.5)@2",
    "map(rel=0.5)",
    "r_precision(rel=0.5)",
)


def left_out(name: str) -> bool:
    """Whether the measure leaves out what is unjudged, instead of taking it for not relevant."""
    return "condensed" in name or "bpref" in name


def enumerated(
    grades: dict[str, float], ranking: Sequence[str], worth: Sequence[float], names: Sequence[str], scale: str
) -> dict[str, tuple[float, float]]:
    """The least and the largest value of each measure over all grades that the holes of the list could have."""
    holes = [doc for doc in dict.fromkeys(ranking) if doc not in grades]
    cases = {
        f"case {i}": {**grades, **dict(zip(holes, given_, strict=True))}
        for i, given_ in enumerate(itertools.product(worth, repeat=len(holes)))
    }
    # A query that holds the largest grade keeps that of the collection where no case has it.
    qrels = Qrels.of({**cases, "top": {"d": max(worth)}}, scale=scale)  # type: ignore[arg-type]
    evaluation = evaluate(qrels, Run.of({**dict.fromkeys(cases, ranking), "top": ["d"]}), names)
    found = {}
    for name in names:
        values = [value for query, value in evaluation[name].to_dict().items() if query != "top"]
        if values:
            found[name] = min(values), max(values)
    return found


def check(
    grades: dict[str, float], ranking: list[str], worth: Sequence[float], names: Sequence[str], scale: str = "levels"
) -> None:
    qrels = Qrels.of({"q": grades, "top": {"d": max(worth)}}, scale=scale)  # type: ignore[arg-type]
    evaluation = evaluate(qrels, Run.of({"q": ranking, "top": ["d"]}), names)
    expected = enumerated(grades, ranking, worth, names, scale)
    for name in names:
        if evaluation[name].get("q") is None:
            continue
        if left_out(name) and evaluation.counts.duplicates:
            with pytest.raises(MeasureError, match="only of runs that repeat no document"):
                evaluation.bounds(name)
            continue
        bounds = evaluation.bounds(name)
        place = bounds.query_ids.index("q")
        found = bounds.low[place], bounds.high[place]
        assert found == pytest.approx(expected[name], abs=1e-11), (name, grades, ranking)
        assert left_out(name) or bounds.low[place] <= evaluation[name].get("q") <= bounds.high[place]  # type: ignore[operator]


@st.composite
def lists(draw: st.DrawFn, highest: int, holes: int) -> tuple[dict[str, int], list[str]]:
    """Judged documents, some of them returned, among at most so many holes; at times a repeated document."""
    grades = draw(st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, highest), min_size=1))
    docs = [*draw(st.lists(st.sampled_from(sorted(grades)), unique=True)), *"uvwxyz12"[: draw(st.integers(0, holes))]]
    ranking = draw(st.permutations(docs))
    if ranking and draw(st.integers(0, 4)) == 0:
        ranking = [*ranking, ranking[0]]
    return grades, ranking


@settings(deadline=None, max_examples=20)
@given(lists(1, 8))
def test_two_levels_and_up_to_eight_holes(case: tuple[dict[str, float], list[str]]) -> None:
    names = [name for name in LEVELS if "rel=2" not in name]
    check(*case, worth=(0, 1), names=names)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 4).flatmap(lambda highest: st.tuples(st.just(highest), lists(highest, 4))))
def test_graded_levels(case: tuple[int, tuple[dict[str, float], list[str]]]) -> None:
    highest, (grades, ranking) = case
    check(grades, ranking, worth=range(highest + 1), names=LEVELS)


@settings(deadline=None, max_examples=20)
@given(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.0, 0.2, 0.5, 0.9]), min_size=1),
    st.integers(0, 4),
    st.randoms(use_true_random=False),
)
def test_degrees_on_the_unit_scale(grades: dict[str, float], holes: int, rng: object) -> None:
    ranking = [*grades, *"wxyz"[:holes]]
    rng.shuffle(ranking)  # type: ignore[attr-defined]
    check(grades, ranking[: rng.randint(0, 8)], (0.0, 0.2, 0.5, 0.7, 0.9), DEGREES, "unit")  # type: ignore[attr-defined]


@settings(deadline=None, max_examples=10)
@given(st.lists(lists(3, 4), min_size=2, max_size=6))
def test_queries_are_bounded_independently(cases: list[tuple[dict[str, float], list[str]]]) -> None:
    """Together, in blocks of any size, and beside longer lists, each query has the bounds that it has alone."""
    top = {"top": {"d": 3}}
    many = {f"q{i}": grades for i, (grades, _) in enumerate(cases)}
    run = {f"q{i}": ranking for i, (_, ranking) in enumerate(cases)}
    together = evaluate(Qrels.of({**many, **top}), Run.of(run), LEVELS)
    names = [name for name in LEVELS if not (together.counts.duplicates and left_out(name))]
    for query, grades in many.items():
        alone = evaluate(Qrels.of({query: grades, **top}), Run.of({query: run[query]}), LEVELS)
        for name in names:
            if alone[name].get(query) is None:
                continue
            one, all_ = alone.bounds(name), together.bounds(name)
            for side in ("low", "high"):
                found = dict(zip(all_.query_ids, getattr(all_, side), strict=True))[query]
                expected = dict(zip(one.query_ids, getattr(one, side), strict=True))[query]
                assert found == pytest.approx(expected, abs=1e-12), name


def test_a_query_of_many_judgments_beside_one_of_many_holes() -> None:
    """One list is longer than any other has room for: with nine judged documents, of which nothing was returned."""
    judged = {f"d{i}": i % 4 for i in range(9)}
    qrels, run = {"holes": {"a": 1}, "judged": judged}, {"holes": list("vwxyz"), "judged": []}
    together = evaluate(Qrels.of(qrels), Run.of(run), ["ndcg@5", "ndcg(gain=exp)"])
    for name in ("ndcg@5", "ndcg(gain=exp)", "ndcg"):
        bounds = together.bounds(name)
        assert (bounds.low.tolist(), bounds.high[1]) == ([0.0, 0.0], 0.0)
        assert 0.5 < bounds.high[0] <= 1.0


def test_blocks_of_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = {f"q{i}": {"a": 1, "b": 2, f"c{i}": 3} for i in range(7)}
    run = Run.of({f"q{i}": ["x", "a", "y", "z", "b"][i % 3 :] for i in range(7)})
    whole = evaluate(Qrels.of(qrels), run, LEVELS)
    bounds = {name: whole.bounds(name) for name in LEVELS}
    monkeypatch.setattr("pytest_retrieval_eval.measures.bounds._CELLS", 1)
    single = evaluate(Qrels.of(qrels), run, LEVELS)
    for name, known in bounds.items():
        assert single.bounds(name).low == pytest.approx(known.low, abs=1e-12)
        assert single.bounds(name).high == pytest.approx(known.high, abs=1e-12)


def test_case_71_two_documents_never_judged() -> None:
    evaluation = evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["n1", "n2", "a"]}), ["ndcg@3", "judged@3"])
    bounds = evaluation.bounds("ndcg@3")
    assert (evaluation["ndcg@3"].mean, evaluation["judged@3"].mean) == pytest.approx((0.5, 1 / 3))
    assert (bounds.minimum, bounds.maximum) == pytest.approx((0.5, 1.0))
    assert bounds.matters


def test_all_irrelevant_and_all_relevant_are_no_bounds() -> None:
    evaluation = evaluate(Qrels.of({"q": {"a": 1, "n": 0}}), Run.of({"q": ["a", "n", "hole"]}), "ndcg@3")
    bounds = evaluation.bounds("ndcg@3")
    assert (bounds.minimum, bounds.maximum) == pytest.approx((1.5 / (1 + 1 / np.log2(3)), 1.0))


def test_the_best_grade_may_lie_between() -> None:
    qrels = Qrels.of({"q": {"a": 1, "b": 1}, "other": {"z": 3}})
    evaluation = evaluate(qrels, Run.of({"q": ["a", "hole"], "other": ["z"]}), "ndcg@2")
    bounds = evaluation.bounds("ndcg@2")
    assert bounds.high[0] == pytest.approx(1.0)
    assert bounds.low[0] == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_holes_below_the_cutoff_add_to_what_could_be_found() -> None:
    evaluation = evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["a", "x", "y"]}), "recall@1")
    assert evaluation.bounds("recall@1").minimum == pytest.approx(1 / 3)
    assert evaluation.bounds("precision@1").minimum == 1.0


def test_a_repeated_document_is_no_hole() -> None:
    evaluation = evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["x", "x", "a", "a"]}), "precision@4")
    assert evaluation.bounds("precision@4").maximum == 0.5
    with pytest.raises(MeasureError, match="repeats documents"):
        scored = Run.of({"q": [("x", 3.0), ("x", 2.0), ("a", 1.0)]})
        evaluate(Qrels.of({"q": {"a": 1}}), scored, "map", trec=True).bounds("map")


def test_topics_without_a_relevant_document_in_trec_mode() -> None:
    qrels = Qrels.of({"1": {"a": 0}, "2": {"b": 2}})
    evaluation = evaluate(qrels, Run.of({"1": {"x": 2.0, "a": 1.0}, "2": {"b": 1.0}}), "map", trec=True)
    for name in ("map", "ndcg@2", "recall@2", "r_precision"):
        assert evaluation.bounds(name).low.tolist() == [0.0, 1.0]
        assert evaluation.bounds(name).high.tolist() == [1.0, 1.0], name


@pytest.mark.parametrize("name", ["infap", "judged@3", "condensed(infap)", "cut(ndcg)@3", "num_rel"])
def test_what_has_no_known_bounds_is_refused(name: str) -> None:
    evaluation = evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["x", "a"]}), name)
    with pytest.raises(MeasureError, match="no known exact bounds"):
        evaluation.bounds(name)


def test_what_has_no_known_bounds_on_the_unit_scale() -> None:
    evaluation = evaluate(Qrels.of({"q": {"a": 0.5}}, scale="unit"), Run.of({"q": ["x", "a"]}), "map")
    with pytest.raises(MeasureError, match="on the unit scale"):
        evaluation.bounds("map")
