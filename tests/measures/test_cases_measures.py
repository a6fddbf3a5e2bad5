"""Situations that people have hit with other tools, with the right answer.

Discounts log2(rank + 1): rank 1 → 1, rank 2 → 0.6309, rank 3 → 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError
from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate


def one(gold: Any, run: Any, *measures: str, **options: Any) -> Evaluation:
    """An evaluation of a single query."""
    return evaluate(Qrels.of({"1": gold}), Run.of({"1": run}), measures, **options)


def means(gold: Any, run: Any, *measures: str, **options: Any) -> list[float]:
    return [round(scores.mean, 4) for scores in one(gold, run, *measures, **options)]


def test_the_ideal_holds_all_judged_documents_not_only_those_retrieved() -> None:
    assert means({"a": 1, "b": 1, "c": 1}, ["a"], "ndcg@3") == [0.4693]


def test_a_repeated_document_counts_once_and_fills_its_slots() -> None:
    evaluation = one({"a": 1}, ["a", "a", "b"], "recall@3", "map", "ndcg@3", "precision@3")
    assert [round(scores.mean, 4) for scores in evaluation] == [1, 1, 1, 0.3333]
    assert evaluation.counts.duplicates == 1
    assert any("1 document is repeated" in note for note in evaluation.counts.notes())
    assert means(["A", "B"], ["A", "A"], "recall@2") == [0.5]


def test_precision_divides_by_k_where_fewer_were_returned() -> None:
    evaluation = one({"a": 1}, ["a", "b"], "P@5")
    assert evaluation["P@5"].mean == 0.2
    assert "1 list is shorter than 5 ranks (2 hits): 1" in evaluation.counts.notes()


def test_recall_at_every_depth() -> None:
    gold = ["0", "1", "2", "3", "4"]
    assert means(gold, ["1", "0", "20", "30", "40"], *(f"recall@{k}" for k in range(1, 6))) == [
        0.2,
        0.4,
        0.4,
        0.4,
        0.4,
    ]


def test_the_name_says_which_gain() -> None:
    assert means({"a": 3, "b": 1}, ["b", "a"], "ndcg@2", "ndcg(gain=exp)@2") == [0.7967, 0.7098]


def test_ndcg_with_and_without_a_cutoff() -> None:
    assert means(["a", "b", "c"], ["a", "b"], "ndcg", "ndcg@2") == [0.7654, 1.0]


def test_the_relevance_level_is_part_of_the_name() -> None:
    gold = {"a": 1, "b": 2, "c": 3}
    evaluation = one(gold, ["b"], "recall@10", "recall(rel=2)@10", "ndcg@10")
    assert [round(scores.mean, 4) for scores in evaluation][:2] == [0.3333, 0.5]
    assert str(evaluation.measures[1]) == "recall(rel=2)@10"
    with pytest.raises(MeasureError, match="ndcg has no parameter rel"):
        one(gold, ["b"], "ndcg(rel=2)@10")


def test_average_precision_and_reciprocal_rank() -> None:
    gold = ["1", "2", "3", "4", "7"]
    assert means(gold, [str(i) for i in range(1, 11)], "AP", "RR") == [0.9429, 1.0]


def test_judged_is_not_relevant() -> None:
    assert means({"a": 1, "z": 0}, ["z"], "recall@10", "mrr") == [0, 0]


def test_a_negative_grade_is_judged_and_gains_nothing() -> None:
    names = ("P@1", "RR", "ndcg@2", "ndcg(gain=exp)@2", "judged@1")
    assert means({"D1": -1, "D2": 1}, ["D1", "D2"], *names) == [0, 0.5, 0.6309, 0.6309, 1.0]


def test_real_grades_are_not_cut() -> None:
    gold = {"a": 0.5, "b": 1.7}
    assert means(gold, ["a", "b"], "ndcg@2") == [0.7803]
    for name in ("recall@2", "mrr", "map", "hit@1", "precision@2", "f1@2", "r_precision"):
        with pytest.raises(MeasureError, match=r"query 1, document a: 0\.5.*rel=0\.5"):
            one(gold, ["a", "b"], name)
    assert means(gold, ["a", "b"], "mrr(rel=1)", "mrr(rel=0.5)", "recall(rel=1.7)@1") == [0.5, 1.0, 0.0]


def test_unjudged_documents_above_the_only_relevant_one() -> None:
    evaluation = one({"a": 1}, ["n1", "n2", "a"], "ndcg@3", "judged@3", "unjudged@3", "condensed(ndcg@3)")
    assert [scores.mean for scores in evaluation] == pytest.approx([0.5, 1 / 3, 2 / 3, 1.0])
    bounds = evaluation.bounds("ndcg@3")
    assert (bounds.minimum, bounds.maximum) == pytest.approx((0.5, 1.0))


def test_a_second_evaluation_gives_what_the_first_gave() -> None:
    qrels, run = Qrels.of({"1": {"a": 1, "b": 2}}), Run.of({"1": {"x": 3.0, "b": 2.0, "a": 1.0}})
    first = evaluate(qrels, run, ["ndcg@10", "ndcg@100"])
    second = evaluate(qrels, run, ["ndcg@10", "ndcg@100"])
    assert [s.to_dict() for s in first] == [s.to_dict() for s in second]
    assert evaluate(qrels, run, "ndcg@100")["ndcg@100"].mean == first["ndcg@100"].mean


def test_equal_scores_are_ordered_by_id_and_the_interval_is_said() -> None:
    for scores, value in (({"b": 1.0, "a": 1.0}, 1.0), ({"b": 1.0, "c": 1.0}, 0.6309)):
        evaluation = one({"b": 1}, scores, "ndcg@2")
        assert round(evaluation["ndcg@2"].mean, 4) == value
        interval = evaluation.ties("ndcg@2")
        assert [round(x, 4) for x in (interval.minimum, interval.expected or 0, interval.maximum)] == [
            0.6309,
            0.8155,
            1.0,
        ]


def test_scores_are_compared_as_they_are() -> None:
    scores = {"a": 0.900000001, "b": 0.9}
    assert means({"a": 1}, scores, "RR") == [1.0]
    evaluation = one({"a": 1}, scores, "RR", trec=True)
    assert evaluation["RR"].mean == 0.5
    (note,) = evaluation.warnings
    assert "float32" in note
    assert "in 1 query (the first is 1)" in note
    assert one({"a": 1}, {"a": 0.9, "b": 0.9}, "RR", trec=True).warnings == ()


def test_a_thousand_ties_have_one_order() -> None:
    docs = [f"d{i}" for i in range(1000)]
    gold = dict.fromkeys(docs[::7], 1)
    forwards = one(gold, dict.fromkeys(docs, 1.0), "map", "ndcg@10")
    backwards = one(gold, dict.fromkeys(reversed(docs), 1.0), "map", "ndcg@10")
    assert [s.mean for s in forwards] == [s.mean for s in backwards]
    as_list = one(gold, sorted(docs, key=str.encode, reverse=True), "map", "ndcg@10")
    assert [s.mean for s in forwards] == [s.mean for s in as_list]


def run_over(qrels: Mapping[str, Any], run: Mapping[str, Sequence[str]], *names: str) -> Evaluation:
    return evaluate(Qrels.of(qrels), Run.of(run), names)


def test_a_query_that_returned_nothing_counts_zero() -> None:
    evaluation = run_over({"1": ["a"], "2": ["b"]}, {"1": ["a"]}, "recall@5")
    assert (evaluation["recall@5"].mean, evaluation["recall@5"].n) == (0.5, 2)
    assert "1 query returned nothing: 2" in evaluation.counts.notes()


def test_an_empty_list_is_zero_and_judged_is_undefined() -> None:
    names = ("hit@5", "precision@5", "recall@5", "f1@5", "mrr", "map", "ndcg@5", "r_precision", "judged@5")
    evaluation = run_over({"1": ["a"]}, {"1": []}, *names)
    assert [evaluation[name].mean for name in names[:-1]] == [0.0] * 8
    assert evaluation["judged@5"].n == 0
    with pytest.raises(GateError, match="no query counts for judged@5"):
        _ = evaluation["judged@5"].mean


def test_an_empty_entry_is_unjudged() -> None:
    evaluation = run_over(
        {"1": {"a": 1}, "2": {}, "3": {"b": 1}}, {"1": ["a"], "2": ["x"], "3": ["b"]}, "ndcg@5", "recall@5"
    )
    for scores in evaluation:
        assert (scores.mean, scores.n) == (1.0, 2)
        assert scores.get("2") is None
    assert evaluation.counts.unjudged == ("2",)
    assert "1 query is unjudged and not counted: 2" in evaluation.counts.notes()


def test_gold_without_a_document_is_excluded_and_all_of_it_is_an_error() -> None:
    evaluation = run_over({"1": [], "2": ["a"]}, {"1": ["x"], "2": ["a"]}, "recall@5")
    assert (evaluation["recall@5"].mean, evaluation["recall@5"].n) == (1.0, 1)
    with pytest.raises(DataError):
        Qrels.of({"1": []})


def test_a_query_of_the_run_alone_is_ignored_and_said() -> None:
    evaluation = run_over({"1": ["a"]}, {"1": ["a"], "9": ["z"]}, "recall@5")
    assert (evaluation["recall@5"].mean, evaluation["recall@5"].n) == (1.0, 1)
    assert "1 run query has no judgments: 9" in evaluation.counts.notes()


def test_queries_of_equal_text_are_two_queries() -> None:
    queries = Queries.of({"1": "what is it", "2": "what is it"})
    qrels, run = Qrels.of({"1": ["a"], "2": ["b"]}), Run.of({"1": ["a"], "2": ["a"]})
    assert evaluate(qrels, run, "hit@1", queries=queries)["hit@1"].to_dict() == {"1": 1.0, "2": 0.0}
