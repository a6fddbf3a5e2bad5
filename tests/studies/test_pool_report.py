"""Reports on a judged pool: what it saves, how systems stand on it, and what it does not know."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import testdata

from pytest_retrieval_eval import GateError, Qrels, Run, SettingsError, evaluate
from pytest_retrieval_eval.errors import DataError, MeasureError
from pytest_retrieval_eval.studies.factors import factors
from pytest_retrieval_eval.studies.judges import classify_pairs, compare_judges
from pytest_retrieval_eval.studies.pool_report import leave_one_family_out, pool_report, system_table
from pytest_retrieval_eval.studies.pooling import Reuse, cost_curve, growth, pooled
from pytest_retrieval_eval.studies.systems import compare_rankings, measure_systems, ranking_stability

DOCS = "abcdefgh"


def runs_of(lists):
    return {name: Run.of(hits, name=name) for name, hits in lists.items()}


# --- what a pool saves


def test_the_papers_arithmetic():
    paper = Reuse(independent=3_760_000, unique=766_350)
    assert round(100 * paper.share, 1) == 79.6
    assert round(paper.factor, 1) == 4.9


def test_a_pool_counts_each_pair_once():
    runs = runs_of(
        {"one": {"q": ["a", "b", "c"], "r": ["a"]}, "two": {"q": ["b", "c", "d"]}, "three": {"q": ["a", "b", "e"]}}
    )
    rows = growth(pooled(runs, depth=2))
    assert [(row.name, row.pairs, row.new, row.reused, row.unique, row.independent) for row in rows] == [
        ("one", 3, 3, 0, 3, 3),
        ("two", 2, 1, 1, 4, 5),
        ("three", 2, 0, 2, 4, 7),
    ]
    assert [row.alone for row in rows] == [1, 1, 0]
    assert pooled(runs, depth=2).unique_to(["one", "three"]) == [("q", "a"), ("r", "a")]


lists = st.lists(st.sampled_from(DOCS), unique=True, min_size=1, max_size=5)
worlds = st.lists(st.fixed_dictionaries({"q": lists, "r": lists}), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(worlds, st.integers(1, 5))
def test_the_expected_pool_is_the_mean_over_all_orders(hits, depth):
    names = [f"run{place}" for place in range(len(hits))]
    runs = runs_of(dict(zip(names, hits, strict=True)))
    rows = growth(pooled(runs, depth))
    sizes = [
        [
            len({(q, doc) for place in order[:m] for q in hits[place] for doc in hits[place][q][:depth]})
            for m in range(1, len(hits) + 1)
        ]
        for order in permutations(range(len(hits)))
    ]
    assert [row.expected for row in rows] == pytest.approx(np.mean(sizes, axis=0).tolist())
    assert [row.unique for row in rows] == sizes[0]
    assert rows[-1].independent == sum(row.new + row.reused for row in rows)


def test_what_is_no_pool():
    with pytest.raises(SettingsError, match="depth of a pool is 0"):
        pooled(runs_of({"one": {"q": ["a"]}}), 0)
    with pytest.raises(GateError, match="no document for any query"):
        pooled(runs_of({"one": {"q": []}}), 3)
    with pytest.raises(GateError, match="declares depth 2, and the pool is 3 deep"):
        pooled([Run.of({"q": ["a", "b"]}, name="one", depth=2)], 3)
    with pytest.raises(DataError, match="two runs have the name one"):
        pooled([Run.of({"q": ["a"]}, name="one"), Run.of({"q": ["b"]}, name="one")], 3)


# --- the systems


def test_the_table_has_intervals_and_marks_near_ties():
    wins = {"best": 30, "close": 30, "far": 10}
    queries = [f"q{i:02}" for i in range(40)]
    runs = runs_of({name: {q: [f"{name}-{q}", "x"] for q in queries} for name in wins})
    qrels = Qrels.of(
        {
            q: {"x": 0, "gold": 1, **{f"{name}-{q}": int(i < n) for name, n in wins.items()}}
            for i, q in enumerate(queries)
        }
    )
    table = system_table(runs, qrels, "precision@1")
    assert [(row.name, row.value, row.near) for row in table.rows] == [
        ("best", 0.75, ("close",)),
        ("close", 0.75, ("best",)),
        ("far", 0.25, ()),
    ]
    assert all(row.interval.low < row.value < row.interval.high for row in table.rows)
    assert (table.queries, table.judged_k, table.rows[0].judged) == (40, 1, 1.0)


def test_systems_are_refused_that_cannot_be_compared():
    qrels = Qrels.of({"q": {"a": 1}})
    run = Run.of({"q": ["a"]}, name="one", depth=5)
    with pytest.raises(MeasureError, match="looks at 10 ranks, and the run one declares depth 5"):
        measure_systems([run], qrels, "recall@10")
    with pytest.raises(GateError, match="no document has grade >= 3"):
        measure_systems([run], qrels, "recall(rel=3)@5")
    with pytest.raises(DataError, match="system a is in one ranking alone"):
        compare_rankings({"a": 1}, {"b": 1})
    with pytest.raises(GateError, match="takes two"):
        compare_rankings({"a": 1}, {"a": 1})


# --- what grows with the pool


@settings(max_examples=60, deadline=None)
@given(
    lists,
    st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1),
    st.dictionaries(st.sampled_from("ijklmn"), st.integers(0, 3), min_size=1),
    st.integers(1, 5),
)
def test_precision_and_dcg_of_a_judged_system_never_move(hits, grades, more, k):
    judged = {**dict.fromkeys(hits, 0), **grades, "h": 3}  # everything that the system returned
    run = Run.of({"q": hits})
    small, large = Qrels.of({"q": judged}), Qrels.of({"q": {**judged, **more}})
    before, after = (evaluate(qrels, run, f"precision@{k}") for qrels in (small, large))
    assert before[f"precision@{k}"].values.tolist() == after[f"precision@{k}"].values.tolist()

    def gain(grades):
        return np.maximum(grades, 0.0)

    assert before.ranks.dcg(gain, k).tolist() == after.ranks.dcg(gain, k).tolist()
    recall = [evaluate(qrels, run, f"recall@{k}")[f"recall@{k}"].mean for qrels in (small, large)]
    assert recall[0] >= recall[1]


@settings(max_examples=60, deadline=None)
@given(
    lists,
    lists,
    st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1),
    st.dictionaries(st.sampled_from("ijklmn"), st.integers(0, 3), min_size=1),
    st.sampled_from(["ndcg@3", "recall@3", "map", "ndcg(gain=exp)@5"]),
)
def test_two_judged_systems_keep_their_order_within_a_query(one, two, grades, more, measure):
    judged = {**dict.fromkeys([*one, *two], 0), **grades, "h": 3}
    small, large = Qrels.of({"q": judged}), Qrels.of({"q": {**judged, **more}})
    runs = [Run.of({"q": hits}) for hits in (one, two)]
    before, after = ([evaluate(qrels, run, measure)[measure].mean for run in runs] for qrels in (small, large))
    assert np.sign(round(before[0] - before[1], 12)) == np.sign(round(after[0] - after[1], 12))


A, B = {"q1": ["a"], "q2": ["x"]}, {"q1": ["x"], "q2": ["b"]}


def test_recall_can_flip_when_a_pool_grows():
    runs = runs_of({"A": A, "B": B})
    before = {"q1": {"a": 1, "x": 0}, "q2": {"b": 1, "c": 1, "x": 0}}
    after = {"q1": {**before["q1"], "d": 1, "e": 1, "f": 1}, "q2": before["q2"]}
    found = ranking_stability(runs, Qrels.of(before), Qrels.of(after), "recall@1")
    assert found.means == (("A", 0.5, 0.125), ("B", 0.25, 0.25))
    assert [(flip.first, flip.second, flip.before, flip.after) for flip in found.rankings.flips] == [
        ("A", "B", 0.25, -0.125)
    ]
    assert found.rankings.tau == -1.0
    assert found.rankings.largest == ("A", -0.375)
    assert not found.holds
    assert not found


def test_a_stable_pool_holds_and_one_without_a_ranking_is_no_pass():
    runs = runs_of({"A": {"q": ["a"]}, "B": {"q": ["b"]}})
    small, large = Qrels.of({"q": {"a": 1, "b": 0}}), Qrels.of({"q": {"a": 1, "b": 0, "c": 1}})
    assert ranking_stability(runs, small, large, "recall@1").holds
    with pytest.raises(GateError, match="no ranking whose stability could be told"):
        ranking_stability(runs, small, Qrels.of({"q": {"a": 1, "b": 1}}), "precision@1")
    with pytest.raises(GateError, match="1 of the 2 runs"):
        ranking_stability({"A": runs["A"]}, small, large, "recall@1")


# --- a family that comes to a pool of others


FAMILY = {
    "lex-1": {"q1": ["a", "x"], "q2": ["b", "x"]},
    "lex-2": {"q1": ["x", "y"], "q2": ["b", "y"]},
    "dense": {"q1": ["c", "d"], "q2": ["b", "e"]},
}
GOLD = {"q1": {"a": 1, "c": 2, "d": 1, "x": 0, "y": 0}, "q2": {"b": 1, "e": 1, "x": 0, "y": 0}}
FAMILIES = {"lex-1": "lexical", "lex-2": "lexical", "dense": "dense"}


def test_without_its_own_documents_a_family_loses_and_judging_repairs_it():
    found = leave_one_family_out(runs_of(FAMILY), Qrels.of(GOLD), FAMILIES, "precision@2")
    assert [each.family for each in found] == ["lexical", "dense"]
    dense = found[1]
    assert (dense.systems, dense.unique, dense.relevant) == (("dense",), 3, 3)
    assert [(flip.first, flip.second) for flip in dense.inversions] == [("dense", "lex-1")]
    assert dense.penalty == ("dense", 0.75)
    assert dense.judged == ()


def test_a_judge_that_does_not_see_it_leaves_the_damage():
    def judge(pairs):
        return dict.fromkeys(pairs, 0)

    found = leave_one_family_out(runs_of(FAMILY), Qrels.of(GOLD), FAMILIES, "precision@2", judge=judge)
    assert [(flip.first, flip.second) for flip in found[1].judged] == [("dense", "lex-1")]
    with pytest.raises(DataError, match="which it was not given"):
        leave_one_family_out(
            runs_of(FAMILY), Qrels.of(GOLD), FAMILIES, "precision@2", judge=lambda _: {("q1", "zzz"): 1}
        )


def test_families_that_cannot_be_left_out():
    with pytest.raises(GateError, match="all runs are of the family one"):
        leave_one_family_out(runs_of(FAMILY), Qrels.of(GOLD), dict.fromkeys(FAMILY, "one"), "precision@2")
    with pytest.raises(SettingsError, match="the run dense has no family"):
        leave_one_family_out(runs_of(FAMILY), Qrels.of(GOLD), {"lex-1": "a", "lex-2": "b"}, "precision@2")


# --- other judges, and people


def graded(first_relevant, n=40):
    """Each system's only document of a query is relevant in the first so many queries."""
    return Qrels.of(
        {
            f"q{i:02}": {"gold": 1, **{name: int(i < relevant) for name, relevant in first_relevant.items()}}
            for i in range(n)
        }
    )


def test_pairs_of_systems_are_held_against_people():
    people = {"a": 35, "b": 21, "c": 20, "d": 20}
    judge = {"a": 10, "b": 18, "c": 20, "d": 15}
    runs = runs_of({name: {f"q{i:02}": [name] for i in range(40)} for name in people})
    found = classify_pairs(runs, graded(judge), graded(people), "precision@1")
    kinds = {(pair.first, pair.second): pair.kind for pair in found.pairs}
    assert kinds == {
        ("a", "b"): "conflict",
        ("a", "c"): "conflict",
        ("a", "d"): "conflict",
        ("b", "c"): "noise",
        ("b", "d"): "same",
        ("c", "d"): "tie",
    }
    assert (found.same, found.tie, found.noise, found.conflict) == (1, 1, 1, 3)
    assert found.rankings.rho < 0
    same = classify_pairs(runs, graded(people), graded(people), "precision@1")
    assert (same.same, same.tie, same.noise, same.conflict) == (5, 1, 0, 0)


def test_a_second_judge_is_compared_on_the_pairs_that_both_graded():
    runs = runs_of({"a": {"q": ["a1", "a2"]}, "b": {"q": ["b1", "a2"]}})
    first = Qrels.of({"q": {"a1": 2, "a2": 0, "b1": 0, "only": 1}})
    second = Qrels.of({"q": {"a1": 1, "a2": 0, "b1": 1, "other": 1, "third": 1}})
    found = compare_judges(runs, first, second, "ndcg@2")
    assert (found.items.n, found.items.same, found.items.only_first, found.items.only_second) == (3, 1, 1, 2)
    assert found.items.table == ((0.0, 0.0, 1), (0.0, 1.0, 1), (2.0, 1.0, 1))
    assert found.rankings.systems == 2
    with pytest.raises(GateError, match="no pair of query and document has a grade in both"):
        compare_judges(runs, first, Qrels.of({"q": {"zzz": 1}}), "ndcg@2")


# --- factors and costs


def test_a_factor_is_told_apart_from_what_else_differs():
    # Rewriting adds .25 in either dimension; the larger dimension adds .5; the last run confounds both.
    wins = {"64": 10, "64+": 20, "128": 30, "128+": 40}
    tags = {
        "64": {"dim": 64, "rewriting": False},
        "64+": {"dim": 64, "rewriting": True},
        "128": {"dim": 128, "rewriting": False},
        "128+": {"dim": 128, "rewriting": True},
        "bm25": {"rewriting": True},
    }
    wins["bm25"] = 4
    runs = runs_of({name: {f"q{i:02}": [name] for i in range(40)} for name in wins})
    found = {(each.factor, each.value, each.other): each for each in factors(runs, graded(wins), tags, "precision@1")}
    rewriting = found["rewriting", "true", "false"]
    assert rewriting.matched == 2
    assert rewriting.difference == pytest.approx(0.25)
    assert rewriting.interval.low < 0.25 < rewriting.interval.high
    assert rewriting.means[0] == pytest.approx((20 + 40 + 4) / 3 / 40)  # with what bm25 mixes in
    assert found["dim", "128", "64"].difference == pytest.approx(0.5)
    assert found["dim", "null", "64"].matched == 1
    with pytest.raises(GateError, match="no run has tags"):
        factors(runs, graded(wins), {}, "precision@1")
    with pytest.raises(SettingsError, match="which is no run"):
        factors(runs, graded(wins), {"bm52": {}}, "precision@1")


def test_tags_of_another_type_are_another_value():
    wins = {"a": 10, "b": 20, "c": 30, "d": 40}
    runs = runs_of({name: {f"q{i:02}": [name] for i in range(40)} for name in wins})
    tags = {"a": {"size": 1}, "b": {"size": "1"}, "c": {"size": 1.0}, "d": {"size": None}}
    found = {(each.value, each.other): each.systems for each in factors(runs, graded(wins), tags, "precision@1")}
    assert found == {('"1"', "1"): (1, 2), ("null", "1"): (1, 2), ("null", '"1"'): (1, 1)}


def test_what_pools_of_lower_depth_would_cost_and_say():
    runs = runs_of({"A": {"q": ["x", "a", "b"]}, "B": {"q": ["c", "x", "y"]}})
    qrels = Qrels.of({"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}})
    curve = cost_curve(runs, qrels, "precision@3", (3, 1), price=0.5)
    assert [(point.depth, point.unique, point.independent, point.cost) for point in curve] == [
        (1, 2, 2, 1.0),
        (3, 5, 6, 2.5),
    ]
    assert curve[1].rankings.tau == 1.0
    assert [(flip.first, flip.second) for flip in curve[0].rankings.flips] == [("A", "B")]
    with pytest.raises(SettingsError, match="the price of a judgment"):
        cost_curve(runs, qrels, "precision@3", (3,), price=-1.0)


# --- all of it


def test_the_whole_report_of_a_small_world():
    people = {query: {doc: min(grade, 1) for doc, grade in row.items()} for query, row in GOLD.items()}
    report = pool_report(
        runs_of(FAMILY),
        Qrels.of(GOLD),
        "precision@2",
        depth=2,
        families=FAMILIES,
        tags={name: {"family": family} for name, family in FAMILIES.items()},
        human=Qrels.of(people),
        second=Qrels.of(people),
        repeated=({("q1", "a"): 1, ("q1", "x"): 0}, {("q1", "a"): 2, ("q1", "x"): 0}),
        price=0.01,
    )
    assert (report.depth, report.queries, report.judged) == (2, 2, 9)
    assert (report.reuse.independent, report.reuse.unique) == (12, 9)
    assert [row.name for row in report.table.rows] == ["dense", "lex-1", "lex-2"]
    assert report.repeated.share == 0.5
    assert report.pairs.same == 3
    assert [point.depth for point in report.costs] == [1, 2]
    assert report.notes == ()


def test_what_others_cannot_say_is_a_note():
    others = {"q1": {"zzz": 1}}
    report = pool_report(
        runs_of(FAMILY), Qrels.of(GOLD), "precision@2", depth=2, human=Qrels.of(others), second=Qrels.of(others)
    )
    assert (report.human, report.pairs, report.second) == (None, None, None)
    assert "people have labelled 0 of the 9 pairs of the pool" in report.notes[0]
    assert "the second judge cannot be held against the judge: no pair of query and document" in report.notes[1]
    assert "people cannot be held against the judge" in report.notes[2]


def test_a_report_says_what_is_not_judged_and_what_one_run_cannot_tell():
    report = pool_report(runs_of({"one": {"q": ["a", "b"]}}), Qrels.of({"q": {"a": 1}}), "precision@2", depth=2)
    assert report.judged == 1
    assert "1 of the 2 pairs of the pool are not judged" in report.notes[0]
    assert "one run has no ranking" in report.notes[1]
    assert report.costs == ()


@pytest.mark.parametrize(("agreement", "levels", "least"), [(0.88, 2, 0.6), (0.945, 3, 0.8)])
def test_the_shape_of_the_published_tables_with_peoples_grades_and_noise(agreement, levels, least):
    """A judge that errs at random as often as published: nearly the order of people, and conflicts are few."""
    from support import script

    study = script("benchmarks/judged_pool.py")
    measured = study.simulate(testdata("conformance/covid-r1"), agreement, levels, seeds=range(3))
    assert measured.systems == 5
    assert abs(measured.agreement - agreement) < 0.01
    assert measured.rho >= least
    assert measured.conflict <= 1
    assert measured.same + measured.tie + measured.noise + measured.conflict == pytest.approx(10)
