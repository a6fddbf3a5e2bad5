"""Which queries changed, what moved, and what took its place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.gates import diff
from pytest_retrieval_eval.gates.verdict import Move


def handbook(**more):
    return Dataset.of(
        queries={
            "q1": {"text": "how do I get a new badge", "tags": {"type": "paraphrase", "year": 2024}},
            "q2": "parking",
            "q3": "holidays",
        },
        qrels={
            "q1": {"hr-badges": 3, "it-printing": 0},
            "q2": {"fac-parking": 2},
            "q3": {"hr-days": 1, "hr-old": 1},
        },
        corpus={
            "hr-badges": {"title": "Badges and access", "text": "…"},
            "it-printing": {"title": "Printing", "text": "…"},
            "hr-days": {"title": "", "text": "…"},
        },
        name="handbook",
        **more,
    )


BEFORE = {
    "q1": ["x1", "hr-badges", "x2", "x3"],
    "q2": ["x1", "fac-parking"],
    "q3": ["x1", "hr-days", "x2", "hr-old"],
}
AFTER = {
    "q1": ["it-printing", "x1", "fac-parking", "hr-badges", "x2"],
    "q2": ["fac-parking", "x1"],
    "q3": ["x1", "hr-days", "x2"],
}


def test_worst_first_with_what_moved_and_what_came():
    verdict = MemoryBench(handbook(), AFTER, BEFORE).decide("recall@2 >= baseline")
    (worst,) = verdict.queries
    assert verdict.worst == verdict.queries
    assert (worst.query_id, worst.before, worst.after) == ("q1", 1.0, 0.0)
    assert (worst.text, worst.tags) == ("how do I get a new badge", {"type": "paraphrase", "year": 2024})
    assert worst.moves == (Move("hr-badges", 3.0, 2, 4, "Badges and access"),)
    assert worst.intruders == (Move("it-printing", 0.0, None, 1, "Printing"),)
    assert worst.looked_up


@pytest.mark.parametrize("text", ["hit@1 >= baseline", "mrr >= baseline", "hit@1 >= 0.5"])
def test_on_the_unit_scale_a_document_of_any_degree_is_one_that_was_lost(text):
    degrees = Qrels.of({"q1": {"half": 0.5, "none": 0.0}}, scale="unit")
    bench = MemoryBench(Dataset.of(qrels=degrees, name="degrees"), {"q1": ["none", "half"]}, {"q1": ["half", "none"]})
    verdict = bench.decide(text)
    (query,) = verdict.queries
    assert (query.after, query.moves) == (
        0.25 if "mrr" in text else 0.0,
        (Move("half", 0.5, None if verdict.baseline is None else 1, 2),),
    )
    assert [move.doc_id for move in query.intruders] == ["none"]


def test_a_measure_of_order_tells_what_fell_left_and_rose():
    verdict = MemoryBench(handbook(), AFTER, BEFORE).decide("map >= baseline")
    ids = [query.query_id for query in verdict.queries]
    assert ids == ["q1", "q3", "q2"]
    q1, q3, q2 = verdict.queries
    assert q1.moves[0].after == 4
    assert [move.doc_id for move in q1.intruders] == ["it-printing", "fac-parking"]
    assert q3.moves == (Move("hr-old", 1.0, 4, None),)
    assert q2.moves == (Move("fac-parking", 2.0, 2, 1),)
    assert q2.intruders == ()


def test_what_fell_comes_before_what_rose_and_high_grades_first():
    gold = {"q": {"a": 1, "b": 3, "c": 2, "d": 1}}
    bench = MemoryBench(gold, {"q": ["d", "x", "a", "c", "b"]}, {"q": ["b", "c", "a", "d"]})
    (query,) = bench.decide("ndcg@10 >= baseline").queries
    assert [(m.doc_id, m.before, m.after) for m in query.moves] == [("b", 1, 5), ("c", 2, 4), ("d", 4, 1)]
    assert [m.doc_id for m in query.intruders] == ["x"]
    (query,) = bench.decide("ndcg@4 >= baseline").queries
    assert [m.doc_id for m in query.moves] == ["b", "c", "d"]


def test_a_swap_without_a_newcomer_names_who_overtook():
    bench = MemoryBench({"q": {"a": 1}}, {"q": ["x", "a", "y"]}, {"q": ["a", "x", "y"]})
    (query,) = bench.decide("mrr@3 >= baseline").queries
    assert query.intruders == (Move("x", None, 2, 1),)


def test_moves_that_cannot_matter_are_left_out():
    gold = {"q": {"a": 1, "b": 1, "c": 1}}
    bench = MemoryBench(gold, {"q": ["x", "a", "y", "c", "b"]}, {"q": ["a", "x", "y", "b", "c"]})
    (query,) = bench.decide("ndcg@2 >= baseline").queries
    assert [move.doc_id for move in query.moves] == ["a"]


def test_levels_decide_what_is_relevant():
    gold = {"q": {"a": 1, "b": 2}}
    bench = MemoryBench(gold, {"q": ["x", "y", "a", "b"]}, {"q": ["a", "b", "x", "y"]})
    (query,) = bench.decide("recall(rel=2)@2 >= baseline").queries
    assert [move.doc_id for move in query.moves] == ["b"]


def test_missing_and_failed_queries_say_so():
    run = Run.of({"q1": BEFORE["q1"], "q2": []}, errors={"q3": "timeout"})
    verdict = MemoryBench(handbook(), run, BEFORE).decide("map >= baseline", allow_failures=1)
    notes = {query.query_id: query.note for query in verdict.queries}
    assert notes == {"q2": "nothing was returned", "q3": "the retriever failed: timeout"}
    assert [move.after for query in verdict.queries for move in query.moves] == [None, None, None]
    assert all(query.intruders == () for query in verdict.queries)


def test_queries_that_are_only_ids_have_no_text():
    verdict = MemoryBench({"q": {"a": 1}}, {"q": ["x", "a"]}, {"q": ["a"]}).decide("mrr >= baseline")
    assert (verdict.queries[0].text, verdict.queries[0].tags) == (None, {})


def test_an_upper_limit_lists_what_rose():
    verdict = MemoryBench(handbook(), AFTER, BEFORE).decide("mrr <= baseline")
    assert [query.query_id for query in verdict.queries] == ["q2", "q1"]


def test_a_fixed_target_lists_where_the_relevant_documents_are():
    verdict = MemoryBench(handbook(), AFTER).decide("recall@2 >= 0.9")
    q1, q3 = verdict.queries
    assert (q1.query_id, q1.moves) == ("q1", (Move("hr-badges", 3.0, None, 4, "Badges and access"),))
    assert [(move.doc_id, move.after) for move in q1.intruders] == [("it-printing", 1), ("x1", 2)]
    assert q3.moves == (Move("hr-old", 1.0),)


def test_all_changed_queries_are_there_and_only_the_worst_are_looked_up(monkeypatch):
    gold = {f"q{i:03d}": {"a": 1} for i in range(80)}
    bench = MemoryBench(
        gold, {query: ["x", "y", "z", "a"] for query in gold}, {query: ["a", "x", "y", "z"] for query in gold}
    )
    verdict = bench.decide("mrr >= baseline")
    assert len(verdict.queries) == 80
    assert [query.looked_up for query in verdict.queries] == [True] * diff.LOOKED_UP + [False] * 30
    assert all(bool(query.intruders) == query.looked_up for query in verdict.queries)
    assert all(query.moves for query in verdict.queries)
    # where nothing will be printed and the runs are large, no ranking is read at all
    monkeypatch.setattr(diff, "SMALL", 10)
    monkeypatch.setattr(Run, "rankings", lambda *_, **__: pytest.fail("rankings were read"))
    passed = bench.decide("mrr >= baseline - 0.9")
    assert passed.ok
    assert len(passed.queries) == 80
    assert not any(query.looked_up for query in passed.queries)


def test_titles_are_read_for_failures_only():
    data = handbook()
    bench = MemoryBench(data, AFTER, BEFORE)
    failed = bench.decide("recall@2 >= baseline").queries[0]
    passed = bench.decide("recall@2 >= baseline - 0.9").queries[0]
    assert failed.moves[0].title == "Badges and access"
    assert passed == replace(
        failed,
        moves=tuple(replace(move, title=None) for move in failed.moves),
        intruders=tuple(replace(move, title=None) for move in failed.intruders),
    )


def test_many_relevant_documents_are_not_all_told():
    gold = {"q": {f"d{i}": 1 for i in range(50)}}
    bench = MemoryBench(gold, {"q": ["x"]}, {"q": [f"d{i}" for i in range(50)]})
    (query,) = bench.decide("recall@50 >= baseline").queries
    assert len(query.moves) == 20
    assert query.note == "30 more relevant documents moved"


documents = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1),
    documents,
    documents,
    st.sampled_from(["recall@3", "ndcg@3", "mrr", "map", "precision@2", "hit@1"]),
)
def test_every_change_is_told_by_a_move_or_a_note(grades, before, after, measure):
    gold = {"q": grades, "always": {"a": 1}}
    bench = MemoryBench(gold, {"q": after, "always": ["a"]}, {"q": before, "always": ["a"]})
    verdict = bench.decide(f"{measure} >= baseline - 1")
    for query in verdict.queries:
        assert query.moves
        for move in query.moves:
            assert move.before == (before.index(move.doc_id) + 1 if move.doc_id in before else None)
            assert move.after == (after.index(move.doc_id) + 1 if move.doc_id in after else None)
            assert move.before != move.after
            assert move.grade == grades[move.doc_id]
        for move in query.intruders:
            assert move.after == after.index(move.doc_id) + 1
            assert move.doc_id not in {other.doc_id for other in query.moves}
