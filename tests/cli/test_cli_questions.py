"""``questions``: from a folder and a chat server to a dataset whose gates can tell its queries apart."""

from __future__ import annotations

import json
import re

import pytest
from fakeserver import FakeServer, fails, says

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.run import Run

TEXTS = {"refunds": "Refunds take 14 days.", "badges": "A lost badge is blocked.", "parking": "Parking is free."}
SAID = {"refunds": "When is my money back?", "badges": "Is a lost badge blocked?", "parking": "What does the car cost?"}


@pytest.fixture
def place(here, files):
    rows = [{"_id": name, "title": "", "text": text} for name, text in TEXTS.items()]
    files.write("data/corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return here


def answer(request):
    (name,) = (name for name, text in TEXTS.items() if text in request.text)
    return says("How do I stop thieves?" if "repeats its words" in request.text else SAID[name])


def test_from_passages_to_a_dataset(place, program):
    broken = {"parking"}

    def flaky(request):
        return fails(400, "bad") if any(TEXTS[name] in request.text for name in broken) else answer(request)

    with FakeServer(flaky) as server:
        (place / "writer.json").write_text(
            json.dumps(
                {"kind": "server", "url": server.url, "model": "writer", "attempts": 1, "prompt": "{query} {documents}"}
            )
        )
        command = ("questions", "data", "--reader", "writer.json", "-o", "new")
        first = program(*command)
        assert first.status == 1
        assert [row[:2] for row in first.rows] == [["parking", "error"]]
        assert "2 questions from 3 passages: 1 rewritten, 0 dropped above an overlap of 0.5, 1 without" in first.err
        assert len(Dataset.read("new").queries) == 2
        asked = len(server.requests)
        broken.clear()
        second = program(*command)
        assert (second.status, second.out, len(server.requests)) == (0, "", asked + 1)
        written = (place / "new" / "queries.jsonl").read_bytes()
        third = program(*command, "--cache-mode", "ro", "--json")
        assert (third.status, len(server.requests)) == (0, asked + 1)
        assert (place / "new" / "queries.jsonl").read_bytes() == written
        # A message of the user and nothing else: no prompt that asks for an answer.
        assert [message["role"] for message in server.requests[0].body["messages"]] == ["user"]
    told = json.loads(third.out)
    assert (told["passages"], told["questions"], told["rewritten"], told["left"]) == (3, 3, 1, [])
    assert [one["first"] for one in told["written"]] == [0.0, 1.0, 0.0]
    dataset = Dataset.read("new")
    assert dataset.queries.select({"synthetic": True}) == set(dataset.queries)
    assert [dataset.spans.of_query(query)[0].doc_id for query in dataset.queries] == list(TEXTS)
    # A gate on them alone, by the spans.
    hits = {query: [Hit("a", 1.0, "refunds", 0, 21), Hit("b", 0.5, "badges", 0, 24)] for query in dataset.queries}
    Run.of(hits).save("written.run.jsonl")
    gate = ("evaluate", "new", "written.run.jsonl", "-m", "span_recall@2", "--where", "synthetic=true")
    assert program(*gate).values["all", "span_recall@2"] == pytest.approx(2 / 3, abs=1e-4)
    record = json.loads((place / "new" / "questions.json").read_text())
    assert re.fullmatch("sha256:[0-9a-f]{64}", record["made_of"]["reader"])


def test_what_a_small_model_says(place, program):
    replies = {"refunds": "The mark ends the passage.", "badges": "What does this passage say?", "parking": "Any cost?"}

    def small(request):
        (name,) = (name for name, text in TEXTS.items() if text in request.text)
        return says(replies[name])

    with FakeServer(small) as server:
        (place / "writer.json").write_text(json.dumps({"kind": "server", "url": server.url, "model": "small"}))
        found = program("questions", "data", "--reader", "writer.json", "-o", "new")
    assert found.status == 1
    assert sorted(row[:2] for row in found.rows) == [["badges", "not alone"], ["refunds", "no question"]]
    written = (place / "new" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in written] == ["Any cost?"]
    assert "replies without a question are kept: --cache-mode refresh" in found.err
    assert "refused or failed" not in found.err


def test_what_people_wrote_stops_it_before_a_call(place, program, files):
    files.write("data/queries.jsonl", '{"_id": "q1", "text": "Mine?"}\n')
    with FakeServer(answer) as server:
        (place / "writer.json").write_text(json.dumps({"kind": "server", "url": server.url, "model": "writer"}))
        result = program("questions", "data", "--reader", "writer.json", "-o", "data")
        assert (result.status, len(server.requests)) == (2, 0)
        assert result.errors == [
            "pytest-retrieval-eval questions: data/queries.jsonl was not written by this command, and people's labels "
            "are not overwritten: name another folder"
        ]
        dropped = program(
            "questions", "data", "--reader", "writer.json", "-o", "new", "--rewrites", "0", "--number", "2"
        )
    assert dropped.status == 0
    assert dropped.rows == [["badges", "overlap", "Is a lost badge blocked? (1.00)"]]
    assert "note: 3 of 3 passages led to fewer than 2 questions" in dropped.err
    assert (place / "data" / "queries.jsonl").read_text() == '{"_id": "q1", "text": "Mine?"}\n'


def test_a_corpus_without_a_passage(place, program, files):
    for text in ("", '{"_id": "a", "text": ""}\n'):
        files.write("data/corpus.jsonl", text)
        (place / "writer.json").write_text(
            json.dumps({"kind": "server", "url": "http://localhost:1", "model": "writer"})
        )
        found = program("questions", "data", "--reader", "writer.json", "-o", "new")
        assert (found.status, "there is no passage to ask about" in found.err) == (2, True)
