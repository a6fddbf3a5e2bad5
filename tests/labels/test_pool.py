"""What the first ranks of some runs hold together, and what judging it takes."""

from __future__ import annotations

import time

import pytest
from fakeserver import FakeServer, says

from pytest_retrieval_eval.collection.dataset import Dataset, Document
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.labels.grading import fill_judgments
from pytest_retrieval_eval.labels.judging.judge import Graded
from pytest_retrieval_eval.labels.judging.judges import CallableJudge, ServerJudge
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Judgment
from pytest_retrieval_eval.labels.pool import key_of, plan_of, pool_of
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.readers.services.budget import Price

CORPUS = {doc: f"text of {doc}" for doc in "abcdef"}
QUERIES = {"q1": "one?", "q2": "two?", "q3": {"text": "three?", "unanswerable": True}}
BM25 = {"q1": ["a", "b", "c"], "q2": ["d", "e"], "q3": ["a"]}
DENSE = {"q1": ["b", "a", "f"], "q2": ["d"], "other": ["a"]}


def dataset_of(**more):
    return Dataset.of(queries=QUERIES, qrels={"q1": {"a": 1}}, corpus={**CORPUS, **more}, name="shop")


def runs_of(**runs):
    return [Run.of(hits, name=name) for name, hits in runs.items()]


def judge_of(graded=lambda query, text: 1, name="by hand"):
    return CallableJudge(graded, Scale(0, 2), identity=name)


def test_each_pair_once_and_what_each_run_brings(store):
    pool = pool_of(dataset_of(), runs_of(bm25=BM25, dense=DENSE), 2)
    assert {(q, d) for q, _, d, _ in pool.pairs} == {("q1", "a"), ("q1", "b"), ("q2", "d"), ("q2", "e")}
    pool = pool_of(dataset_of(), runs_of(bm25=BM25, dense=DENSE), 3)
    plan = plan_of(pool, store)
    assert (plan.pairs, plan.reused, len(plan.new)) == (6, 0, 6)
    assert [(run.name, run.pairs, run.unjudged, run.first, run.alone) for run in plan.runs] == [
        ("bm25", 5, 5, 5, 2),
        ("dense", 4, 4, 1, 1),
    ]
    assert (plan.independent, plan.factor) == (9, 1.5)
    assert (plan.tokens, plan.cost) == (None, None)


def test_a_new_run_costs_its_new_documents_alone(store):
    asked = []
    judge = judge_of(lambda query, text: asked.append((query, text)) or 1)
    first = fill_judgments(store, judge, pool_of(dataset_of(), runs_of(bm25=BM25), 3).pairs.values())
    assert (first.graded, first.reused, first.complete) == (5, 0, True)
    both = pool_of(dataset_of(), runs_of(bm25=BM25, dense=DENSE), 3)
    assert [pair.doc_id for pair in plan_of(both, store).new] == ["f"]
    asked.clear()
    assert fill_judgments(store, judge, both.pairs.values()).graded == 1
    assert asked == [("one?", "text of f")]
    assert both.judged(store) == {"bm25": 1, "dense": 1}
    # A text that was changed is unjudged, for its document alone.
    changed = pool_of(dataset_of(a="another text"), runs_of(bm25=BM25), 3)
    assert [pair.text for pair in plan_of(changed, store).new] == ["another text"]


def test_judged_at_is_that_of_the_measure(store):
    pool = pool_of(dataset_of(), runs_of(bm25=BM25, dense=DENSE), 3)
    kept = {("q1", "a"), ("q1", "f"), ("q2", "e")}
    fill_judgments(store, judge_of(), [pair for pair in pool.pairs.values() if (pair.query_id, pair.doc_id) in kept])
    judged = {"q1": {"a": 1, "f": 1}, "q2": {"e": 1}}
    for name, hits in (("bm25", BM25), ("dense", DENSE)):
        expected = evaluate(Qrels.of(judged), Run.of(hits), "judged@3")["judged@3"].mean
        assert pool.judged(store)[name] == pytest.approx(expected)


def test_an_estimate_is_the_judge_s(store):
    class Telling(CallableJudge):
        def estimate(self, pairs):
            return 100 * len(list(pairs)), 10 * len(list(pairs))

    judge = Telling(lambda query, text: 1, Scale(0, 2), identity="telling")
    pool = pool_of(dataset_of(), runs_of(bm25=BM25), 3)
    plan = plan_of(pool, store, judge=judge, price=Price(1.0, 2.0))
    assert plan.tokens == (500, 50)
    assert plan.cost == pytest.approx((500 + 100) / 1e6)


def test_two_texts_of_a_document_are_two_pairs():
    old = Run.of(BM25, name="main").with_texts({"a": Document("", "an old text")})
    pool = pool_of(dataset_of(), [*runs_of(new={"q1": ["a"]}), old], 1)
    assert sorted(pair.text for pair in pool.pairs.values() if pair.doc_id == "a") == ["an old text", "text of a"]
    assert pool.runs == ("new", "main")


def test_a_text_that_one_run_has_stored_is_judged_for_no_other():
    old = Run.of({"q1": ["z"]}, name="main").with_texts({"z": Document("", "an old text")})
    assert [pair.text for pair in pool_of(dataset_of(), [old], 1).pairs.values()] == ["an old text"]
    with pytest.raises(GateError, match=r"judgments read the text .* \(z; in run new\)"):
        pool_of(dataset_of(), [old, *runs_of(new={"q1": ["z"]})], 1)


def test_what_cannot_be_pooled():
    with pytest.raises(GateError, match="declares depth 2, and the pool is 20 deep"):
        pool_of(dataset_of(), [Run.from_retriever(lambda query: ["a", "b"], {"q1": "one?"}, depth=2)])
    with pytest.raises(GateError, match=r"judgments read the text .* \(z; in run bm25\)"):
        pool_of(dataset_of(), runs_of(bm25={"q1": ["z"]}), 2)
    with pytest.raises(GateError, match="no run returned a document"):
        pool_of(dataset_of(), runs_of(bm25={"q3": ["a"]}), 2)
    with pytest.raises(GateError, match="a judge reads the text of each query"):
        pool_of(Dataset.of(qrels={"q1": {"a": 1}}, corpus=CORPUS), runs_of(bm25=BM25), 2)


def test_what_people_have_judged_is_not_paid_for(store):
    pool = pool_of(dataset_of(), runs_of(bm25=BM25), 3)
    key = next(key for key in pool.pairs if key[2] == "a")
    store.add_human("ann", [Judgment(*key, 2, who="ann", part="heldout")])
    filled = fill_judgments(store, judge_of(), pool.pairs.values())
    assert (filled.reused, filled.graded) == (1, 4)
    again = fill_judgments(store, judge_of(), pool.pairs.values(), also_human=True)
    assert (again.reused, again.graded) == (4, 1)
    assert store.grade(key).grade == 2


def test_repetitions_stand_beside_the_grades_that_count(store):
    """Case 72 of the contract: each sample of a prompt is asked, and kept, by its number."""
    replies = iter([1] * 5 + [2] * 5 + [0] * 5)
    judge = judge_of(lambda query, text: next(replies))
    pairs = pool_of(dataset_of(), runs_of(bm25=BM25), 3).pairs
    for repetition in (0, 1, 2):
        assert fill_judgments(store, judge, pairs.values(), repetition=repetition).graded == 5
        assert fill_judgments(store, judge, pairs.values(), repetition=repetition).reused == 5
    name = store.chosen[0].name
    assert sorted((row.r, row.g) for row, _ in store.rows(name)) == [(0, 1)] * 5 + [(1, 2)] * 5 + [(2, 0)] * 5
    assert {store.grade(key).grade for key in pairs} == {1}
    assert store.check() == []


def test_one_process_judges_for_a_judge(store):
    pairs = pool_of(dataset_of(), runs_of(bm25=BM25), 3).pairs.values()

    def graded(query, text):
        if text == "text of a":
            with pytest.raises(SettingsError, match="another process is judging"):
                fill_judgments(store, judge_of(), pairs)
        return 1

    assert fill_judgments(store, judge_of(graded), pairs).complete


def test_answers_that_arrive_at_an_interrupt_are_kept(store):
    pairs = pool_of(dataset_of(), runs_of(bm25=BM25), 3).pairs.values()

    def interrupted(graded):
        deadline = time.monotonic() + 20
        while len(answered) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)  # the last answer is on its way from the server to the judge
        raise KeyboardInterrupt

    answered = []
    with FakeServer(lambda request: answered.append(request) or says('{"grade": 1}')) as server:
        judge = ServerJudge(server.url, "judge-2024-08-06", concurrency=5)
        with pytest.raises(KeyboardInterrupt):
            fill_judgments(store, judge, pairs, told=interrupted)
        judge.close()
        assert len(list(store.rows(store.chosen[0].name))) == len(answered) == 5


def test_what_came_before_an_exception_is_kept(store):
    pairs = pool_of(dataset_of(), runs_of(bm25=BM25), 3).pairs

    def graded(query, text):
        if text == "text of d":
            raise GateError("the judge is ill")
        return 1

    with pytest.raises(GateError, match="ill"):
        fill_judgments(store, judge_of(graded), pairs.values())
    assert len(store.unjudged(pairs)) == 2
    assert store.check() == []
    assert key_of(next(iter(pairs.values()))) == next(iter(pairs))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((-1, Graded(1, "graded")), "graded pair -1, which it was not asked for"),
        ((0, Graded(7, "graded")), "the grade 7, and its scale is 0"),
        ((0, Graded(True, "graded")), "the grade True"),
        ((0, Graded(1.5, "graded")), "the grade 1.5"),
        ((0, 1), r"the judge gave \(0, 1\)"),
        (None, "the judge gave None"),
        (RuntimeError("the server is gone"), "the judge raised RuntimeError: the server is gone"),
    ],
)
def test_what_is_no_grade_of_an_asked_pair_is_never_kept(store, given, sentence):
    class Wrong(CallableJudge):
        def grade(self, pairs, *, repetition=0):
            if isinstance(given, Exception):
                raise given
            yield given

    pairs = pool_of(dataset_of(), runs_of(bm25=BM25), 3).pairs
    with pytest.raises(GateError, match=sentence):
        fill_judgments(store, Wrong(lambda query, text: 1, Scale(0, 2), identity="wrong"), pairs.values())
    assert len(store.unjudged(pairs)) == len(pairs)
