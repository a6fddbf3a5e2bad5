"""--labels on the command line: the same numbers as in gates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TEXTS = {"a": "It takes 14 days.", "b": "It rains.", "c": "Ask in Graz.", "d": "Two weeks.", "e": "14 days, too."}
ANSWERS = {"q1": ["14 days"], "q2": ["rains"], "q3": ["two weeks"]}


@pytest.fixture
def answered(files):
    files.dataset()
    files.write("small/corpus.jsonl", "".join(json.dumps({"_id": d, "text": t}) + "\n" for d, t in TEXTS.items()))
    rows = [{"query_id": query, "answers": texts} for query, texts in ANSWERS.items()]
    files.write("small/answers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return files


def test_a_run_and_a_comparison(program, answered):
    old, new = answered.run("old.trec", answered.hits), answered.run("new.trec", answered.best)
    done = program("evaluate", "small", old, "--labels", "contains(kilt)", "-m", "hit@1 recall@2 mrr")
    assert done.values == {("all", "hit@1"): 1 / 3, ("all", "recall@2"): 2 / 3, ("all", "mrr"): (1 + 1 / 2 + 1 / 3) / 3}
    assert "no gold answer" in done.err
    compared = program("compare", "small", old, new, "--labels", "contains(kilt)", "-m", "hit@1", "--json")
    found = json.loads(compared.out)["measures"][0]
    assert (found["reference"], found["labels"]) == (pytest.approx(1 / 3), "contains(kilt)")
    assert program("compare", "small", old, new, "--labels", "contains(kilt)").status == 0


def test_the_pool_and_the_list(program, answered):
    old, new = answered.run("old.trec", {"q1": ["e"]}), answered.run("new.trec", {"q1": ["a"]})
    more = answered.run("more.trec", {"q3": ["d"]})

    def value(*options):
        gate = ("--labels", "contains(kilt)", "--gate", "recall@1 >= baseline", "--json")
        return json.loads(program("compare", "small", old, new, *gate, *options).out)["gates"][0]["value"]

    # Both runs found an answer of q1, in another document.
    assert value() == pytest.approx(1 / 2 / 3)
    assert value("--normalise", "list") == pytest.approx(1 / 3)
    assert value("--pool", more) == pytest.approx(1 / 2 / 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--labels", "contains(klit)"), "did you mean contains(kilt)?"),
        (("--labels", "contains(kilt)", "--bounds"), "--labels makes labels for the documents of the run"),
        (("--labels", "contains(kilt)", "--trec"), "--labels makes labels for the documents of the run"),
    ],
)
def test_what_cannot_be_meant(program, answered, arguments, sentence):
    done = program("evaluate", "small", answered.run("old.trec", answered.hits), "-m", "hit@1", *arguments)
    assert done.status == 2
    assert sentence in done.err


def test_a_reader_reads_once_for_all_commands(program, answered):
    answered.write("readers.py", READERS)
    answered.write("reader.yaml", "{kind: callable, function: 'readers:answer', identity: the last two words}")
    old, new = answered.run("old.trec", answered.hits), answered.run("new.trec", answered.best)
    reading = ("--labels", "erag", "--reader", "readers:make")
    done = program("evaluate", "small", old, *reading, "-m", "hit@1 recall@2")
    # "It rains" is not "rains", and no answer of q3 is in its list.
    assert done.values == {("all", "hit@1"): 1 / 3, ("all", "recall@2"): 1 / 3}
    # The documents of rank 1 are not looked up again for the measure of the first two.
    assert "reader: 0 hits, 6 misses, 6 calls" in done.err
    gate = ("--gate", "hit@2 >= baseline", "--json")
    compared = program("compare", "small", old, new, *reading, *gate, "--answer-metric", "f1")
    assert "reader: 6 hits, 1 miss, 1 call" in compared.err
    assert json.loads(compared.out)["gates"][0]["labels"] == "erag(f1)"
    assert program("compare", "small", old, new, *reading, *gate, "--cache-mode", "ro").status in (0, 1)
    # Another reader has read nothing yet.
    done = program("evaluate", "small", old, "--labels", "erag", "--reader", "reader.yaml", "--cache-mode", "ro")
    assert done.status == 2
    assert "are not in" in done.err


READERS = """
from pytest_retrieval_eval.readers.callable_reader import CallableReader

def answer(query, texts):
    return " ".join(texts[0].rstrip(".").split()[-2:])

def make():
    return CallableReader(answer, "the last two words, v1")
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--labels", "erag"), "--labels erag asks a reader: name it with --reader"),
        (("--reader", "readers:make"), "--reader is about what a reader answers; add --labels erag"),
        (("--answer-metric", "f1"), "--answer-metric is about what a reader answers; add --labels erag"),
        (("--labels", "erag", "--reader", "readers"), "expected MODULE:NAME"),
        (("--labels", "erag,qrels", "--reader", "readers:make"), "there are no labels 'erag,qrels'"),
        (("--labels", "erag", "--reader", "no_such:make"), "there is no module no_such"),
        (("--labels", "erag", "--reader", "json:dumps"), "json.dumps cannot be called without arguments"),
        (("--labels", "erag", "--reader", "json:JSONEncoder"), "is no reader: it has no identity, read or close"),
        (("--labels", "erag", "--reader", "ill_reader:make"), "ill_reader cannot be imported: RuntimeError: no GPU"),
        (("--labels", "erag", "--reader", "os:getlogins"), "os has no 'getlogins'; did you mean getlogin?"),
    ],
)
def test_a_reader_that_cannot_be_meant(program, answered, arguments, sentence):
    Path("ill_reader.py").write_text("raise RuntimeError('no GPU')\n")
    done = program("evaluate", "small", answered.run("old.trec", answered.hits), "-m", "hit@1", *arguments)
    assert done.status == 2
    assert sentence in done.err
    assert "Traceback" not in done.err
