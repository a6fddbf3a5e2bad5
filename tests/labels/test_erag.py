"""Labels from a reader's answers, without a session."""

from __future__ import annotations

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.labels.answers import answer_score
from pytest_retrieval_eval.labels.erag import Erag
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.readers.callable_reader import CallableReader
from pytest_retrieval_eval.readers.reading import Item, Passage, Reading
from pytest_retrieval_eval.readers.readings.cache import CachedReader, ReadingCache
from pytest_retrieval_eval.readers.session import behind_cache

QUERIES = {"q1": "how much?", "q2": "where?", "q3": "who?", "q4": "why?", "q5": "where?"}
ANSWERS = {"q1": ["20 euros", "twenty euros"], "q2": ["Graz"], "q3": ["Ada"], "q5": ["Umeå"]}
CORPUS = {
    "fee": "20 euros a month",
    "exact": "20 euros",
    "again": "20 euros",
    "city": "Graz",
    "north": "Umeå",
    "rain": "It rains",
}
LISTS = {"q1": ["rain", "fee", "exact"], "q2": ["city"], "q3": [], "q4": ["rain"], "q5": ["city", "north"]}


def dataset_of(**more):
    return Dataset.of(queries=QUERIES, qrels={"q1": {"fee": 1}}, corpus=CORPUS, answers=ANSWERS, name="shop", **more)


class Asked:
    """A reader that answers with the document, and remembers what it was asked."""

    def __init__(self, answer=lambda query, texts: texts[0]):
        self.asked = []
        self.answer = answer
        self.reader = CallableReader(self._read, "what was given")

    def _read(self, query, texts):
        self.asked.append((query, *texts))
        return self.answer(query, texts)


def labelled(*lists, answer=lambda query, texts: texts[0], metric="em", depth=None, select=None, dataset=None):
    asked = Asked(answer)
    runs = [each if isinstance(each, Run) else Run.of(each) for each in lists]
    made = Erag(asked.reader, metric).label(dataset or dataset_of(), runs, depth=depth, select=select)
    return made, runs, asked.asked


def test_each_document_is_worth_what_the_answer_from_it_alone_scores():
    made, (run,), asked = labelled(LISTS, metric="f1")
    scores = {
        query: {doc: answer_score("f1", CORPUS[doc], ANSWERS[query]) for doc in docs}
        for query, docs in LISTS.items()
        if query in ANSWERS
    }
    qrels = made.qrels_of(run)
    assert qrels.to_dict() == scores
    assert qrels.scale == "unit"
    assert 0 < qrels.grade("q1", "fee") < 1
    # Two queries of one text are one question, with answers of their own.
    assert len(asked) == len(set(asked)) == 5
    assert (qrels.grade("q2", "city"), qrels.grade("q5", "city")) == (1, 0)
    assert made.readings_of(run)["q5", "north"].text == "Umeå"
    assert made.said("q1", "fee") == "the reader answered '20 euros a month' (f1 0.8)"
    assert made.said("q1", "city") is None
    assert any("1 query has no gold answer" in note and "q4" in note for note in made.notes)


def test_short_and_empty_lists_count_what_they_are_worth():
    made, (run,), _ = labelled(LISTS)
    found = evaluate(made.qrels_of(run), run, ["precision@5", "hit@5", "recall@5", "ndcg@5", "mrr@5"])
    assert found.scores("precision@5").to_dict() == {"q1": 1 / 5, "q2": 1 / 5, "q3": 0, "q5": 1 / 5}
    # An empty list, and one in which nothing helps, count 0 in every measure, and do not vanish.
    for name in ("hit@5", "recall@5", "ndcg@5", "mrr@5"):
        assert found.scores(name).get("q3") == 0
        assert found.scores(name).n == 4


def test_documents_are_read_once_for_all_runs_and_below_the_depth_not_at_all():
    made, runs, asked = labelled(LISTS, {"q1": ["exact", "again", "rain"], "q5": ["north"]}, depth=2)
    # "exact" and "again" have one text.
    assert sorted(asked) == [
        ("how much?", "20 euros"),
        ("how much?", "20 euros a month"),
        ("how much?", "It rains"),
        ("where?", "Graz"),
        ("where?", "Umeå"),
    ]
    # Both runs are measured on what either returned.
    assert made.qrels_of(runs[0]).of_query("q1") == {"rain": 0, "fee": 0, "exact": 1, "again": 1}
    assert made.qrels_of(runs[1]) is made.qrels_of(runs[0])
    assert set(labelled(LISTS, select=frozenset({"q2"}))[2]) == {("where?", "Graz")}


def test_a_document_that_a_list_repeats_is_one_call():
    _, _, asked = labelled({"q1": ["exact", "again", "fee"], "q2": ["city"]})
    assert len(asked) == 3


def test_a_side_with_texts_of_its_own_reads_its_own():
    old = Run.of(LISTS).with_texts(dataset_of().corpus.get_many(list(CORPUS)))
    today = dataset_of()
    today = Dataset.of(
        queries=QUERIES, qrels={"q1": {"fee": 1}}, corpus={**CORPUS, "city": "Vienna"}, answers=ANSWERS, name="shop"
    )
    made, (new, _), asked = labelled(LISTS, old, dataset=today)
    assert (made.qrels_of(new).grade("q2", "city"), made.qrels_of(old).grade("q2", "city")) == (0, 1)
    assert {text for query, text in asked if query == "where?"} == {"Graz", "Vienna", "Umeå"}
    assert any("the text of 1 document is not the same for both sides" in note for note in made.notes)
    assert made.said("q2", "city") == "the reader answered 'Vienna' (em 0)"


def test_what_another_run_has_stored_is_read_for_its_own_documents_alone():
    corpus = {doc: text for doc, text in CORPUS.items() if doc != "city"}
    less = Dataset.of(queries=QUERIES, qrels={"q1": {"fee": 1}}, corpus=corpus, answers=ANSWERS, name="shop")
    old = Run.of(LISTS, name="main").with_texts(dataset_of().corpus.get_many(["city"]))
    with pytest.raises(GateError, match=r"1 has none \(city; in run given\)"):
        labelled(LISTS, old, dataset=less)
    made, (new, _), _ = labelled({"q2": ["fee"], "q5": ["north"]}, old, dataset=less)
    assert made.qrels_of(new).of_query("q2") == {"fee": 0, "city": 1}


def test_a_query_of_which_a_document_failed_has_no_labels():
    def answer(query, texts):
        if query == "where?" and texts == ["Graz"]:
            raise TimeoutError("gone")
        return texts[0]

    made, (run,), _ = labelled(LISTS, answer=answer)
    place = f"tests/labels/test_erag.py:{answer.__code__.co_firstlineno + 2} in answer"
    assert made.failed == dict.fromkeys(["q2", "q5"], f"the reader failed for city: TimeoutError: gone ({place})")
    assert made.qrels_of(run).of_query("q5") == {}
    assert made.said("q2", "city").startswith("the reader gave no answer: the reader failed: TimeoutError")
    refused = labelled(LISTS, answer=lambda query, texts: Reading("", "refused", 1, 0, detail="filter"))[0]
    assert set(refused.failed.values()) == {
        "the reader declined for rain: filter",
        "the reader declined for city: filter",
    }


def test_what_the_reader_cut_is_said():
    def answer(query, texts):
        return Reading(texts[0], "length", 5, 5, truncated=query == "how much?")

    notes = labelled(LISTS, answer=answer)[0].notes
    assert "the reader saw only the beginning of 3 of 5 documents, which are longer than it takes" in notes
    assert "5 of 5 answers were cut off at the largest number of tokens" in notes
    made = labelled(LISTS, answer=lambda query, texts: " ")[0]
    assert made.said("q2", "city") == "the reader answered nothing"


def test_answers_of_several_models_are_said():
    def answer(query, texts):
        model = "m-1 (fp_1)" if query == "where?" else "m-2" if texts == ["20 euros"] else "m-1 (fp_2)"
        return Reading(texts[0], "ok", 5, 5, model=model)

    notes = labelled(LISTS, answer=answer)[0].notes
    (told,) = [note for note in notes if note.startswith("the answers come from 3 models")]
    assert {"m-1 (fp_1) (2)", "m-2 (1)"} <= {*told.partition("names them: ")[2].split(", ")}
    one = labelled(LISTS, answer=lambda query, texts: Reading(texts[0], "ok", 5, 5, model="m-1"))[0].notes
    assert not any("models" in note for note in one)


def test_labels_that_say_nothing_are_errors():
    five = {f"q{number}": f"question {number}" for number in range(5)}
    data = Dataset.of(
        queries=five, qrels={"q0": ["d"]}, answers={query: ["yes"] for query in five}, corpus={"d": "no"}, name="shop"
    )
    with pytest.raises(GateError, match=r"the reader answers none of 5 queries of shop .* \(em is 0 for all\)"):
        labelled({query: ["d"] for query in five}, dataset=data)
    with pytest.raises(GateError, match="is the index empty"):
        labelled({query: [] for query in five}, dataset=data)
    with pytest.raises(GateError, match="has no gold answers"):
        labelled(LISTS, dataset=Dataset.of(queries=QUERIES, qrels={"q1": ["fee"]}, corpus=CORPUS))
    with pytest.raises(GateError, match="there is no reader: set the ini value retrieval_reader"):
        Erag().label(dataset_of(), [Run.of(LISTS)], depth=1, select=None)
    with pytest.raises(GateError, match=r"1 has none .lost"):
        labelled({"q1": ["lost", "fee"]})


def test_a_metric_of_ones_own():
    def half(predicted, gold):
        return 0.5 if gold in predicted else 0

    made, (run,), _ = labelled(LISTS, metric=half)
    assert made.qrels_of(run).of_query("q1") == {"rain": 0, "fee": 0.5, "exact": 0.5}
    assert made.said("q1", "fee").endswith("(half 0.5)")
    with pytest.raises(GateError, match="the answer metric <lambda> gave nan"):
        labelled(LISTS, metric=lambda predicted, gold: float("nan"))
    with pytest.raises(SettingsError, match="there is no answer metric 'f2'"):
        Erag(None, "f2")


def test_a_reader_that_leaves_something_out_is_an_error():
    class Half:
        identity = None

        def read(self, items):
            yield 0, Reading("Graz", "ok", None, None)

        def close(self):
            pass

    with pytest.raises(GateError, match="the reader gave no reading for 4 of 5 items"):
        Erag(Half()).label(dataset_of(), [Run.of(LISTS)], depth=None, select=None)
    with pytest.raises(DataError, match="expected a text"):
        labelled(LISTS, answer=lambda query, texts: None)


def test_without_a_document_the_reader_says_what_it_knows():
    asked = Asked(lambda query, texts: texts[0] if texts else "Graz")
    scores, failed = Erag(asked.reader).closed_book(dataset_of(), select=None)
    assert (scores, failed) == ({"q1": 0, "q2": 1, "q3": 0, "q5": 0}, {})
    assert sorted(asked.asked) == [("how much?",), ("where?",), ("who?",)]


def test_readings_of_a_question_are_told_apart_by_their_repetition(tmp_path):
    asked = Asked(lambda query, texts: f"answer {len(asked.asked)}")
    items = [Item("who?", (Passage("Ada"),), repetition) for repetition in (0, 1, 0)]
    with ReadingCache(tmp_path) as cache:
        for _ in range(2):
            found = dict(CachedReader(asked.reader, cache).read(items))
            assert [found[place].text for place in range(3)] == ["answer 1", "answer 2", "answer 1"]
    assert len(asked.asked) == 2


class ReadingBench(MemoryBench):
    def labels(self, name, options):
        return Erag(Asked().reader, options.answer_metric or "em")


@pytest.mark.parametrize("measure", ["recall@3", "map@3", "ndcg@3"])
def test_with_one_run_the_pool_is_its_list(measure):
    bench = ReadingBench(dataset_of(), LISTS, {**LISTS, "q1": ["exact", "again"]})
    alone = bench.decide(f"{measure} >= 0.5", labels="erag")
    assert any(f"{measure.partition('@')[0]} takes them for all that is relevant" in note for note in alone.notes)
    assert alone.value == bench.decide(f"{measure} >= 0.5", labels="erag", normalise="list").value
    both = bench.decide(f"{measure} >= baseline - 0.5", labels="erag")
    assert not any("all that is relevant" in note for note in both.notes)
    # The baseline found another document that answers q1.
    assert both.value < alone.value


def test_labels_behind_judgments():
    bench = ReadingBench(dataset_of(), LISTS)
    verdict = bench.decide("hit@3 >= 0.5", labels=["qrels", "erag"], answer_metric="f1")
    assert verdict.labels == "qrels, erag(f1)"
    # q1 has a judged document; the others are as the reader says.
    assert verdict.value == pytest.approx(3 / 4)


class Given:
    """A reader that gives what it was told to give."""

    def __init__(self, *given):
        self.identity, self.given = {"kind": "given"}, given

    def read(self, items):
        return self.given[0] if self.given[0] is None else self._each()

    def _each(self):
        for each in self.given:
            if isinstance(each, Exception):
                raise each
            yield each

    def close(self):
        pass


def fine(**more):
    return Reading(**{"text": "Graz", "status": "ok", "input_tokens": None, "output_tokens": None} | more)


@pytest.mark.parametrize("cached", [False, True], ids=["by itself", "behind a cache"])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([None], "returned None; expected pairs"),
        ([(0, "Graz")], r"the reader gave \(0, 'Graz'\); expected pairs"),
        ([(0, fine()), None], "the reader gave None; expected pairs"),
        ([(0, fine(text=None))], "no text"),
        ([(0, fine(status="great"))], "its status is none of ok"),
        ([(0, fine(input_tokens=1.5))], "counts of tokens"),
        ([(0, fine(truncated=None))], "truncated is neither"),
        ([(-1, fine())], "item -1, which it was not asked"),
        ([(0, fine()), (0, fine())], "item 0, which it was not asked or has given before"),
        ([(0, fine()), RuntimeError("out of luck")], "the reader raised RuntimeError: out of luck"),
        ([(0, fine())], "no reading for 4 of 5 items"),
    ],
)
def test_what_a_reader_does_wrong_is_said_and_neither_kept_nor_a_label(tmp_path, given, sentence, cached):
    with ReadingCache(tmp_path) as cache:
        reader = CachedReader(Given(*given), cache) if cached else Given(*given)
        with pytest.raises(GateError, match=sentence):
            Erag(reader).label(dataset_of(), [Run.of(LISTS)], depth=None, select=None)
        kept = [each.reading for each in cache.kept()] if cache.path.exists() else []
        assert kept in ([], [fine()])


def test_a_reader_that_cannot_tell_its_identity(tmp_path):
    class Broken(Given):
        def __init__(self):
            pass

        @property
        def identity(self):
            raise RuntimeError("no revision")

    with (
        ReadingCache(tmp_path) as cache,
        pytest.raises(GateError, match="cannot tell its identity: RuntimeError: no revision"),
    ):
        behind_cache(Broken(), tmp_path, cache)
