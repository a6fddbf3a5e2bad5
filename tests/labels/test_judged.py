"""Gates on the grades of a folder of judgments."""

from __future__ import annotations

import pytest
from gates_support import Collecting

from pytest_retrieval_eval.collection.dataset import Dataset, Document
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, GateFailure
from pytest_retrieval_eval.labels.erag import Erag
from pytest_retrieval_eval.labels.grading import fill_judgments
from pytest_retrieval_eval.labels.judged import Judged
from pytest_retrieval_eval.labels.judging.judge import Pair
from pytest_retrieval_eval.labels.judging.judges import CallableJudge
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Judgment
from pytest_retrieval_eval.labels.pool import key_of
from pytest_retrieval_eval.labels.source import source
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.readers.callable_reader import CallableReader

CORPUS = {doc: f"text of {doc}" for doc in "abcdefghij"}
QUERIES = {"q1": "one?", "q2": "two?", "q3": {"text": "three?", "unanswerable": True}}
GRADES = {("one?", "text of a"): 2, ("one?", "text of b"): 1, ("two?", "text of d"): 1}
GOOD = {"q1": ["a", "b"], "q2": ["d", "e"], "q3": ["a", "b"]}
BAD = {"q1": ["c", "a"], "q2": ["e", "d"]}


def dataset_of(queries=QUERIES, **corpus):
    return Dataset.of(queries=queries, qrels={"q1": {"z": 1}}, corpus={**CORPUS, **corpus}, name="shop")


JUDGE = CallableJudge(lambda query, text: GRADES.get((query, text), 0), Scale(0, 2), identity="a table")


def judge(store, hits, dataset=None, made=JUDGE):
    """Have every pair of some lists judged."""
    dataset = dataset or dataset_of()
    documents = dataset.corpus.get_many([doc for docs in hits.values() for doc in docs])
    pairs = [
        Pair(query, doc, dataset.queries.text(query), documents[doc].text, documents[doc].title)
        for query, docs in hits.items()
        for doc in docs
    ]
    return fill_judgments(store, made, pairs)


class Bench(Collecting):
    def __init__(self, store, candidate=GOOD, baseline=BAD, dataset=None, **more):
        super().__init__(dataset or dataset_of(), candidate, baseline, **more)
        self.judged = Judged(store, fill="judge it")

    def labels(self, name, options):
        return self.judged if name == "judged" else source(name)


LABELS = {"labels": "judged"}


def test_both_sides_are_measured_on_everything_that_was_judged(store):
    judge(store, GOOD)
    judge(store, BAD)
    judge(store, {"q1": ["g", "h"], "q2": ["i"]})
    verdict = Bench(store).decide("ndcg@2 >= baseline", **LABELS)
    qrels = Qrels.of({"q1": {"a": 2, "b": 1, "c": 0, "g": 0, "h": 0}, "q2": {"d": 1, "e": 0, "i": 0}})
    for hits, value in ((GOOD, verdict.value), (BAD, verdict.reference)):
        assert value == pytest.approx(evaluate(qrels, Run.of(hits), "ndcg@2")["ndcg@2"].mean)
    assert verdict.ok
    assert (verdict.labels, verdict.n, verdict.judged) == ("judged", 2, (1.0, 1.0))
    assert verdict.bounds == ((verdict.value, verdict.value), (verdict.reference, verdict.reference))


def test_the_pool_grows_and_both_sides_are_scored_anew(store):
    """Recall of A is (1 + 0) / 2 and of B (0 + .5) / 2; three new relevant documents for q1 make it .125 and .25."""
    grades = {("one?", "text of a"): 1, ("two?", "text of d"): 1, ("two?", "text of e"): 1}
    made = CallableJudge(lambda query, text: grades.get((query, text), 0), Scale(0, 2), identity="growing")
    a, b = {"q1": ["a"], "q2": ["f"]}, {"q1": ["f"], "q2": ["d"]}
    for hits in (a, b, {"q2": ["e"]}):
        judge(store, hits, made=made)
    verdict = Bench(store, b, a).decide("recall@1 >= baseline", **LABELS)
    assert (verdict.value, verdict.reference) == (0.25, 0.5)
    grades |= {("one?", f"text of {doc}"): 1 for doc in "ghi"}
    judge(store, {"q1": ["g", "h", "i"]}, made=made)
    verdict = Bench(store, b, a).decide("recall@1 >= baseline", **LABELS)
    assert (verdict.value, verdict.reference) == (0.25, 0.125)


def test_unjudged_pairs_leave_a_gate_undecided(store):
    judge(store, GOOD)
    bench = Bench(store)
    with pytest.raises(GateFailure) as failure:
        bench.check("hit@1 >= baseline", **LABELS)
    verdict = bench.recorded[-1]
    # The candidate is judged to the last document, the baseline is not: its c could be relevant.
    assert verdict.status == "inconclusive"
    assert verdict.reason == (
        "judged@1 is 1.00: 1 pair in the first 1 ranks of either run has no judgment; judge them with: judge it"
    )
    assert (verdict.to_judge, verdict.to_judge_total) == ((("q1", "c"),), 1)
    assert "judge them with: judge it" in str(failure.value)
    assert [(pair.query_id, pair.doc_id, pair.rank, pair.query, pair.text) for pair in bench.pairs] == [
        ("q1", "c", 1, "one?", "text of c")
    ]
    judge(store, BAD)
    assert Bench(store).decide("hit@1 >= baseline", **LABELS).ok


def test_a_query_that_does_not_count_yet_may_count_once_it_is_judged(store):
    judge(store, {"q1": ["a", "b", "c"]})
    verdict = Bench(store).decide("hit@1 >= 0.1", **LABELS)
    assert (verdict.status, verdict.n) == ("inconclusive", 1)
    assert verdict.to_judge == (("q2", "d"),)
    # Not in any slice, and all the same not decided.
    queries = {"q1": {"text": "one?", "tags": {"t": "x"}}, "q2": {"text": "two?", "tags": {"t": "x"}}}
    verdict = Bench(store, dataset=dataset_of(queries)).decide("hit@1 >= 0.1", by="t", min_n=1, **LABELS)
    assert (verdict.status, verdict.slices[0].ok) == ("inconclusive", True)
    # What where leaves out is not looked at.
    queries["q2"]["tags"]["t"] = "y"
    verdict = Bench(store, dataset=dataset_of(queries)).decide("hit@1 >= 0.1", where={"t": "x"}, **LABELS)
    assert verdict.ok


def test_a_gate_may_say_how_much_is_enough(store):
    judge(store, GOOD)
    bench = Bench(store)
    assert bench.decide("hit@1 >= baseline", judged=0.9, **LABELS).ok
    assert Bench(store, BAD, GOOD).decide("hit@1 <= baseline", judged=0.9, **LABELS).status == "inconclusive"
    assert bench.decide("judged@1 >= baseline", **LABELS).ok


def test_nothing_is_judged(store):
    bench = Bench(store)
    with pytest.raises(
        GateError, match=r"4 pairs of query and document .* have no judgment; judge them with: judge it"
    ):
        bench.check("hit@1 >= baseline", **LABELS)
    assert {(pair.query_id, pair.doc_id) for pair in bench.pairs} == {
        ("q1", "a"), ("q1", "c"), ("q2", "d"), ("q2", "e"),
    }  # fmt: skip


def test_a_changed_text_is_unjudged(store):
    judge(store, GOOD)
    judge(store, BAD)
    verdict = Bench(store, dataset=dataset_of(a="a new text")).decide("hit@1 >= baseline", **LABELS)
    assert verdict.status == "inconclusive"
    assert verdict.to_judge == (("q1", "a"),)
    assert any("1 judgment is of texts that are others today" in note for note in verdict.notes)
    # A baseline that keeps its texts is read as it was; only the candidate's a is another document today.
    old = Run.of(BAD, name="main").with_texts({"a": Document("", "text of a")})
    dataset = dataset_of(a="a new text")
    verdict = Bench(store, {"q1": ["b"], "q2": ["d"]}, old, dataset).decide("hit@2 >= baseline", **LABELS)
    assert verdict.ok
    assert (verdict.value, verdict.reference) == (1.0, 1.0)
    changed = Dataset.of(queries={**QUERIES, "q1": "another?"}, qrels={"q1": ["z"]}, corpus=CORPUS, name="shop")
    assert Bench(store, dataset=changed).decide("hit@1 >= 0.1", **LABELS).to_judge == (("q1", "a"),)


def test_people_go_before_the_judge(store):
    judge(store, GOOD)
    judge(store, BAD)
    key = key_of(Pair("q1", "a", "one?", "text of a"))
    store.add_human("ann", [Judgment(*key, 0, who="ann", part="dev")])
    verdict = Bench(store).decide("hit@1 >= 0.9", **LABELS)
    assert verdict.value == 0.5
    said = [move.said for query in verdict.queries for move in (*query.moves, *query.intruders)]
    assert "judged 0 by people" in said
    store.add_human("ben", [Judgment(*key_of(Pair("q1", "b", "one?", "text of b")), 3, who="ben")])
    with pytest.raises(GateError, match="people gave query 'q1', document 'b' the grade 3, and a-table-"):
        Bench(store).decide("hit@1 >= 0.9", **LABELS)


def test_behind_other_labels(store):
    judge(store, {"q1": ["a", "b"]})
    dataset = Dataset.of(queries=QUERIES, qrels={"q1": {"a": 0}, "q2": {"d": 1, "e": 0}}, corpus=CORPUS, name="shop")
    bench = Bench(store, GOOD, {"q1": ["b"], "q2": ["e"]}, dataset)
    verdict = bench.decide("hit@1 >= baseline", labels=["qrels", "judged"])
    # a by the qrels (0), b by the judge (1), d and e by the qrels again: nothing is open.
    assert (verdict.value, verdict.reference) == (0.5, 0.5)
    assert verdict.status != "inconclusive"
    bench = Bench(store, {"q1": ["c"], "q2": ["d"]}, GOOD, dataset)
    assert bench.decide("hit@1 >= baseline", labels=["qrels", "judged"]).to_judge == (("q1", "c"),)


def test_a_floating_judge_is_told(store):
    floating = CallableJudge(lambda query, text: 1, Scale(0, 2), identity="some model")
    floating.floating = "its name floats"
    documents = [Pair(q, d, QUERIES[q], f"text of {d}") for q, d in (("q1", "a"), ("q2", "d"))]
    fill_judgments(store, floating, documents, allow_floating=True)
    verdict = Bench(store).decide("hit@1 >= 0.1", **LABELS)
    assert any("is not pinned: its name floats" in note for note in verdict.notes)


def test_a_measure_of_the_whole_list_looks_at_ten_ranks(store):
    many = {f"x{i}": f"text {i}" for i in range(12)}
    hits = {"q1": ["a", *many], "q2": ["d"]}
    dataset = dataset_of(**many)
    judge(store, {"q1": ["a", *list(many)[:9]], "q2": ["d"]}, dataset)
    assert Bench(store, hits, dataset=dataset).decide("mrr >= 0.5", **LABELS).status != "inconclusive"
    verdict = Bench(store, hits, dataset=dataset).decide("hit@11 >= 0.5", **LABELS)
    assert verdict.to_judge == (("q1", "x9"),)


def test_a_judge_s_scale_is_what_it_could_give(store):
    """Grades of 0 and 1 are not degrees from 0 to 1 where 2 was to be had."""
    judge(store, {"q1": ["b", "c"], "q2": ["d"]})
    dataset = Dataset.of(
        queries=QUERIES, corpus=CORPUS, answers={"q1": ["text of b"]}, name="shop", qrels={"q1": ["b"]}
    )

    class Reading(Bench):
        def labels(self, name, options):
            reader = CallableReader(lambda query, texts: texts[0], identity="the text")
            return Erag(reader) if name == "erag" else super().labels(name, options)

    bench = Reading(store, {"q1": ["b"], "q2": ["d"]}, dataset=dataset)
    with pytest.raises(GateError, match=r"labels of judged are levels up to 2, .* no common scale"):
        bench.decide("hit@1 >= 0.5", labels=["judged", "erag"])
    with pytest.raises(GateError, match="at least 3, and a source of labels=judged gives 2 at most"):
        bench.decide("hit(rel=3)@1 >= 0.5", labels="judged")
