"""What goes wrong in the public scorer of eRAG, with the right answers: labels of a reader through every measure."""

from __future__ import annotations

import math

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError
from pytest_retrieval_eval.labels import answers
from pytest_retrieval_eval.labels.contains import Contains
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.names import Measure

LABELS = {"q1": {"a": 0.9, "b": 0.0, "c": 0.4}, "q2": {"a": 1.0, "c": 1.0}, "q3": {"b": 0.2}}
RUN = Run.of({"q1": ["a", "b", "c"], "q2": ["c"], "q3": ["b", "a"]})


def unit(labels=LABELS, **more):
    return Qrels.of(labels, scale="unit", **more)


def test_names_do_not_depend_on_the_data():
    # There a column is called "success" or "P" by what the labels happen to be.
    for labels in (LABELS, {"q1": {"a": 1.0}}, {"q1": {"a": 0.0, "b": 0.3}}):
        evaluation = evaluate(unit(labels), RUN, ["hit@3", "precision@3"])
        assert [str(scores.measure) for scores in evaluation] == ["hit@3", "precision@3"]


@pytest.mark.parametrize(
    "name", ["map@3", "mrr@3", "ndcg@3", "recall@3", "f1@3", "r_precision", "hit@3", "precision@3"]
)
def test_degrees_lose_no_measure(name):
    value = evaluate(unit(), RUN, name)[name].mean
    assert 0 < value <= 1


def test_a_list_shorter_than_k_is_no_key_error():
    scores = evaluate(unit(), RUN, "precision@5")["precision@5"].to_dict()
    assert scores == pytest.approx({"q1": 1.3 / 5, "q2": 1.0 / 5, "q3": 0.2 / 5})


@pytest.mark.parametrize("label", [math.nan, math.inf, "nan"])
def test_what_is_no_number_passes_no_range_check(label):
    with pytest.raises(DataError, match="q1"):
        unit({"q1": {"a": label}})
    with pytest.raises(GateError, match="expected a number from 0 to 1"):
        answers.answer_score(lambda predicted, gold: float(label), "x", ["y"])


def test_a_query_without_documents_counts_0():
    # Not dropped from the mean, and no division by zero.
    texts, gold = {"a": "yes", "b": "no"}, {"q1": ["yes"], "q2": ["yes"], "q3": ["yes"]}
    dataset = Dataset.of(queries=dict.fromkeys(gold, "?"), corpus=texts, answers=gold, name="d")
    bench = MemoryBench(dataset, {"q1": ["a"], "q2": []}, {"q1": ["b"], "q2": ["a"], "q3": []})
    for name, value, reference in (
        ("hit@2", 1, 1),
        ("precision@2", 1 / 2, 1 / 2),
        ("recall@2", 1, 1),
        ("ndcg@2", 1, 1),
    ):
        verdict = bench.decide(f"{name} >= baseline", labels="contains(kilt)")
        assert (verdict.n, verdict.value, verdict.reference) == (
            3,
            pytest.approx(value / 3),
            pytest.approx(reference / 3),
        )


def test_empty_input_is_a_sentence():
    with pytest.raises(DataError, match=r"no judgment|judges no document"):
        unit({})
    with pytest.raises(MeasureError, match="no measure was asked for"):
        evaluate(unit(), RUN, [])
    assert evaluate(unit(), Run.of({"q1": []}), "precision@3")["precision@3"].mean == 0


def test_the_last_digit_is_rounding_and_no_fault():
    assert evaluate(unit({"q1": {"a": 1.0000001}}), RUN, "hit@3")["hit@3"].mean == 1.0
    with pytest.raises(DataError, match=r"on the unit scale and have the label 1\.1"):
        evaluate(unit({"q1": {"a": 1.1}}), RUN, "hit@3")


def test_the_list_is_not_the_whole_truth():
    # There recall is 1 as soon as anything was found. Over the documents of both runs it is not.
    texts, gold = {"a": "yes", "b": "no", "c": "yes, too"}, {"q1": ["yes"]}
    dataset = Dataset.of(queries={"q1": "?"}, corpus=texts, answers=gold, name="d")
    bench = MemoryBench(dataset, {"q1": ["b", "a"]}, {"q1": ["a", "c"]})
    options = {"labels": "contains(kilt)"}
    pooled = bench.decide("recall@2 <= baseline", **options)
    assert (pooled.value, pooled.reference) == (0.5, 1.0)
    alone = bench.decide("recall@2 <= baseline", normalise="list", **options)
    assert (alone.value, alone.reference) == (1.0, 1.0)
    ndcg = bench.decide("ndcg@2 <= baseline", **options)
    ideal = 1 + 1 / math.log2(3)
    assert ndcg.value == pytest.approx((1 / math.log2(3)) / ideal)
    assert ndcg.reference == 1.0


def test_queries_of_one_text_are_two_queries():
    gold = {"q1": ["yes"], "q2": ["no"]}
    dataset = Dataset.of(
        queries=dict.fromkeys(gold, "the same?"), corpus={"a": "yes", "b": "no"}, answers=gold, name="d"
    )
    verdict = MemoryBench(dataset, {"q1": ["a", "b"], "q2": ["a", "b"]}).decide("hit@1 >= 0.1", labels="contains(kilt)")
    assert (verdict.n, verdict.value) == (2, 0.5)


def test_a_document_that_stands_twice_is_one(monkeypatch):
    read = []

    def found_in(kind, document, golds):
        read.append(document.text)
        return golds[0] if document.text == "yes" else None

    monkeypatch.setattr("pytest_retrieval_eval.labels.contains.found_in", found_in)
    dataset = Dataset.of(queries={"q1": "?"}, corpus={"a": "yes", "b": "no"}, answers={"q1": ["yes"]}, name="d")
    run = Run.of({"q1": ["b", "a", "a", "b"]})
    qrels = Contains("kilt").label(dataset, [run, Run.of({"q1": ["a"]})], depth=4, select=None).qrels_of(run)
    assert sorted(read) == ["no", "yes"]
    assert qrels.to_dict() == {"q1": {"b": 0.0, "a": 1.0}}
    # The later ones fill a slot without gain.
    assert evaluate(qrels, run, "precision@4")["precision@4"].mean == 0.25


def test_binary_labels_are_the_binary_measures():
    binary = {query: {doc: float(label > 0.3) for doc, label in docs.items()} for query, docs in LABELS.items()}
    names = ["hit@2", "precision@2", "recall@2", "f1@2", "map", "mrr", "ndcg@2", "r_precision", "dcg@2"]
    for name in names:
        levels = evaluate(Qrels.of(binary), RUN, name)[name].to_dict()
        assert evaluate(unit(binary), RUN, name)[name].to_dict() == levels, name
    assert Measure.parse("hit@2").cutoff == 2
