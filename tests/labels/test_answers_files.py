"""Gold answers in every form that they come in."""

from __future__ import annotations

import json

import pytest
from support import testdata

from pytest_retrieval_eval.collection.answers import Answers
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.errors import DataError


def written(folder, name, *rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": [{"id": "q1", "answers": [{"text": "x"}]}]}]}]}
KILT = {
    "id": "q1",
    "input": "?",
    "output": [{"answer": "x", "provenance": [{"wikipedia_id": "7"}]}, {"provenance": []}, {"answer": "x"}],
}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("answers.jsonl", {"query_id": "q1", "answers": ["x", "x"]}),
        ("answers.jsonl", {"query_id": "q1", "answers": "x"}),
        ("kilt.jsonl", KILT),
        ("hf.jsonl", {"id": "q1", "answers": {"text": ["x"], "answer_start": [0]}}),
        ("nq.jsonl", {"example_id": "q1", "question": "?", "answer": ["x"]}),
        ("squad.json", SQUAD),
        ("dpr.json", [{"id": "q1", "question": "?", "answers": ["x"]}]),
        ("plain.json", {"q1": ["x"]}),
    ],
)
def test_one_answer_in_every_form(tmp_path, name, row):
    assert Answers.read(written(tmp_path, name, row)).to_dict() == {"q1": ["x"]}


def test_a_query_may_have_no_answer(tmp_path):
    path = written(tmp_path, "a.jsonl", {"query_id": "q1", "answers": []}, {"query_id": 2, "answers": ["x", "y"]})
    answers = Answers.read(path)
    assert answers.of_query("q1") == answers.of_query("nowhere") == ()
    assert answers.of_query("2") == ("x", "y")
    assert "q1" in answers
    assert list(answers) == ["q1", "2"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"query_id": "q1"}, r"a.jsonl:1: query 'q1' has no answers; expected answers as"),
        ({"question": "who?", "answers": ["x"]}, r"a.jsonl:1: the row has no query id.*never by their text"),
        ({"query_id": "q1", "answers": [" "]}, r"a.jsonl:1: query 'q1': an answer is empty"),
        ({"query_id": "q1", "answers": [7]}, r"a.jsonl:1: query 'q1': the answer is 7"),
        ({"query_id": "q1", "answers": None}, r"the answer is None"),
        ({"query_id": "q1", "answers": {"texts": ["x"]}}, r"the answer is .*texts"),
        ({"query_id": "q1", "answers": []}, r"a.jsonl: there is no answer"),
    ],
)
def test_what_cannot_be_an_answer(tmp_path, row, sentence):
    with pytest.raises(DataError, match=sentence):
        Answers.read(written(tmp_path, "a.jsonl", row))


def test_a_query_that_comes_twice(tmp_path):
    row = {"query_id": "q1", "answers": ["x"]}
    assert len(Answers.read(written(tmp_path, "a.jsonl", row, row))) == 1
    with pytest.raises(DataError, match=r"a.jsonl:2: query 'q1' has other answers here than at .*a.jsonl:1"):
        Answers.read(written(tmp_path, "a.jsonl", row, {**row, "answers": ["y"]}))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [([7], "entry 1 is 7"), ({"data": [{}]}, "no paragraphs"), ({"data": [{"paragraphs": [{}]}]}, "no qas"), (7, "7")],
)
def test_documents_of_another_shape(tmp_path, value, sentence):
    with pytest.raises(DataError, match=sentence):
        Answers.read(written(tmp_path, "a.json", value))


def test_the_digest_is_of_the_answers_alone():
    one = Answers.of({"q1": ["x", "y"], "q2": "z", "q3": []})
    assert one.digest == Answers.of({"q2": ["z"], "q1": ["y", "x"]}).digest
    assert one.digest != Answers.of({"q2": ["z"], "q1": ["y"]}).digest
    with pytest.raises(DataError, match="expected a mapping"):
        Answers.of(["x"])  # type: ignore[arg-type]


def test_a_folder_brings_its_answers(tmp_path):
    written(tmp_path, "queries.jsonl", {"_id": "q1", "text": "?"})
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert Dataset.read(tmp_path).answers is None
    written(tmp_path, "answers.jsonl", {"query_id": "q1", "answers": ["x"]})
    answers = Dataset.read(tmp_path).answers
    assert answers is not None
    assert answers.of_query("q1") == ("x",)


def test_real_answers():
    folder = testdata("data/qed-nq")
    dataset = Dataset.read(folder)
    assert dataset.answers is not None
    known = [query for query in dataset.queries if dataset.answers.of_query(query)]
    assert len(known) > 0.5 * len(dataset.queries)
