"""The reader on an OpenAI-compatible server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from fakeserver import CUT, HANG, FakeServer, Reply, fails, says

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.reading import Item, Passage, identity_digest, item_key
from pytest_retrieval_eval.readers.services.budget import Budget
from pytest_retrieval_eval.readers.services.server import ServerReader

ITEM = Item("who did it?", (Passage("Ann did it.", "Deeds"),))
DATED = "m-2024-08-06"


def reader(server, model="m", **options):
    options = {"backoff": 0.01, "timeout": 5.0, **options}
    return ServerReader(server.url, model, **options)


def read(answer, items=(ITEM,), model="m", **options):
    """(readings by index, requests, the reader) of one pass."""
    with FakeServer(answer) as server, contextlib.closing(reader(server, model, **options)) as made:
        found = list(made.read(list(items)))
    assert sorted(index for index, _ in found) == list(range(len(items)))
    return dict(found), server.requests, made


def test_what_is_sent():
    _, requests, _ = read([says("Ann")], max_tokens=20, seed=7)
    assert requests[0].path == "/v1/chat/completions"
    body = requests[0].body
    user = "Passage 1: Deeds\nAnn did it.\n\nQuestion: who did it?\nShort answer:"
    assert body.pop("messages")[1] == {"role": "user", "content": user}
    assert body == {"model": "m", "temperature": 0.0, "top_p": 1.0, "max_tokens": 20, "seed": 7}


def test_fields_that_a_service_does_not_take_are_left_out_and_others_added():
    _, requests, made = read(
        [says("Ann")], temperature=None, seed=None, max_tokens_field="max_completion_tokens", extra={"top_k": 1}
    )
    body = requests[0].body
    del body["messages"]
    assert body == {"model": "m", "top_p": 1.0, "max_completion_tokens": 64, "top_k": 1}
    assert made.identity["parameters"] == {"top_p": 1.0, "max_completion_tokens": 64, "top_k": 1}


def test_several_documents_and_none():
    items = [Item("q", (Passage("one"), Passage("two", "T"))), Item("q", ())]
    _, requests, _ = read([says("x")], items)
    texts = {request.text for request in requests}
    assert texts == {
        "Passage 1:\none\n\nPassage 2: T\ntwo\n\nQuestion: q\nShort answer:",
        "Question: q\nShort answer:",
    }


def test_query_and_documents_are_data():
    braces = "{documents} {query} {0} {} {{text}} %s \\1"
    item = Item(braces, (Passage(braces, braces),))
    _, requests, _ = read([says("x")], [item])
    assert requests[0].text == f"Passage 1: {braces}\n{braces}\n\nQuestion: {braces}\nShort answer:"


def test_texts_of_every_script_and_none():
    text = "日本 \U0001f600 \x00 é \ud800"
    _, requests, _ = read([says("x")], [Item("q", (Passage(text),))])
    assert text in requests[0].text


def test_a_reading_has_text_tokens_model_and_fingerprint():
    readings, _, made = read([says("Ann", model="m-2024-08-06", tokens=(31, 2), fingerprint="fp_9")])
    (found,) = readings.values()
    assert (found.text, found.status, found.input_tokens, found.output_tokens) == ("Ann", "ok", 31, 2)
    assert found.model == "m-2024-08-06 (fp_9)"
    assert made.answered_by == {"m-2024-08-06 (fp_9)": 1}


@pytest.mark.parametrize(
    ("reply", "status", "text", "detail"),
    [
        (says(""), "empty", "", ""),
        (says(None), "empty", "", ""),
        (says(" \n"), "empty", " \n", ""),
        (says("Ann, who", finish="length"), "length", "Ann, who", ""),
        (says(None, finish="length"), "length", "", ""),
        (says(None, refusal="I cannot help."), "refused", "", "the service declined: I cannot help."),
        (says("part", finish="content_filter"), "refused", "", "the service declined: content_filter"),
        (says([{"type": "text", "text": "An"}, {"type": "text", "text": "n"}]), "ok", "Ann", ""),
        (
            says([{"type": "text", "text": "An"}, {"type": "text", "text": None}]),
            "error",
            "",
            "reply is no text",
        ),
        (says([{"type": "refusal", "refusal": "No."}]), "refused", "", "the service declined: No."),
        (says("Ann", finish=None), "ok", "Ann", ""),
        (says("Ann", finish="eos_token"), "ok", "Ann", ""),
        (says("Ann", finish="error"), "error", "", "ended the reply with 'error'"),
        (says(7), "error", "", "the content of the reply is no text"),
        (Reply({"model": "m", "choices": []}), "error", "", "the reply has no message"),
        (Reply({"model": "m"}), "error", "", "the reply has no message"),
        (Reply([1]), "error", "", "answered with a JSON list; expected a JSON object"),
        (fails(400, "flagged", code="content_filter"), "refused", "", "flagged"),
        (fails(400, "too long", code="context_length_exceeded"), "error", "", "too long"),
        (fails(500, "broken"), "error", "", "broken"),
    ],
)
def test_status(reply, status, text, detail):
    readings, _, _ = read([reply], attempts=2)
    assert (readings[0].status, readings[0].text) == (status, text)
    assert detail in readings[0].detail
    assert bool(readings[0].detail) == (not readings[0].answered)


@pytest.mark.parametrize("tokens", [None, (-5, -1), (True, 1.5)])
def test_unknown_token_counts_are_none(tokens):
    readings, _, _ = read([says("Ann", tokens=tokens)])
    assert (readings[0].input_tokens, readings[0].output_tokens) == (None, None)


# --- which model answers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answers", "options", "accepted"),
    [
        ("m", "m-2024-08-06", {}, True),  # a floating name may be answered by what it stands for
        ("m", "another", {}, True),
        (DATED, DATED, {}, True),
        (DATED, "m-2024-11-20", {}, False),
        (DATED, "m", {}, False),
        (DATED, "", {}, False),
        ("m", "another", {"pin": True}, False),
        (DATED, "another", {"pin": False}, True),
        ("my-deployment", DATED, {"answers_as": DATED}, True),
        ("my-deployment", "my-deployment", {"answers_as": DATED}, False),
    ],
)
def test_an_exact_name_is_held_to(asked, answers, options, accepted):
    readings, _, _ = read([says("Ann", model=answers)], model=asked, **options)
    assert readings[0].status == ("ok" if accepted else "error")
    if not accepted:
        assert repr(options.get("answers_as", asked)) in readings[0].detail


def test_another_model_is_not_asked_for_long():
    items = [Item(f"q{number}", ()) for number in range(200)]
    readings, requests, _ = read([says("x", model="other", delay=0.03)], items, model=DATED, concurrency=2)
    assert len(requests) < 100
    assert {reading.status for reading in readings.values()} == {"error"}
    assert sum("not asked: 3 replies one after the other" in r.detail for r in readings.values()) >= 100


# --- cutting, repetition, identity -------------------------------------------------------------------


def test_documents_are_cut_and_never_the_query():
    item = Item("a long query", (Passage("0123456789"), Passage("abc")))
    readings, requests, _ = read([says("x")], [item, Item("q", (Passage("abc"),))], document_chars=4)
    sent = "Passage 1:\n0123\n\nPassage 2:\nabc\n\nQuestion: a long query\nShort answer:"
    assert sent in {request.text for request in requests}
    assert (readings[0].truncated, readings[1].truncated) == (True, False)


def test_an_estimate_sends_nothing_and_is_rather_too_much():
    items = [Item("who did it?", (Passage("Ann did it. " * 50),))] * 3
    made = ServerReader("http://127.0.0.1:9/v1", "m", max_tokens=20)
    read, written = made.estimate(items)
    assert written == 60
    assert 3 * 200 <= read <= 3 * 350  # 600 bytes of text in the document, 40 words of prompt


def test_a_repetition_has_another_seed():
    items = [Item("q", (), repetition) for repetition in range(3)]
    _, requests, made = read([says("x")], items, seed=5, temperature=0.7)
    assert sorted(request.body["seed"] for request in requests) == [5, 6, 7]
    assert len({item_key(made.identity, item) for item in items}) == 3


def digest(url="http://127.0.0.1:9/v1", model="m", **options):
    return identity_digest(ServerReader(url, model, **options).identity)


def test_identity_is_what_can_change_a_text(monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-1")
    same = digest()
    assert digest("https://elsewhere.example/v1") == same
    for options in (
        {"key_env": "A_KEY"},
        {"concurrency": 2},
        {"timeout": 3},
        {"attempts": 2},
        {"budget": Budget(calls=3)},
        {"requests_per_minute": 10},
    ):
        assert digest(**options) == same, options
    others = [
        digest(model="n"),
        digest(deployment="gpu-2"),
        digest(weights="sha256:1"),
        digest(answers_as="m-2024-08-06"),
        digest(answers_as="m-2024-11-20"),
        digest(temperature=0.5),
        digest(top_p=0.9),
        digest(max_tokens=5),
        digest(seed=1),
        digest(seed=None),
        digest(extra={"top_k": 1}),
        digest(document_chars=100),
        digest(prompt={"system": ""}),
        digest(prompt={"prompt": "{query} {documents}"}),
        digest(prompt={"separator": "\n"}),
    ]
    assert len({same, *others}) == len(others) + 1


def test_the_key_is_not_in_the_identity_or_the_reader(monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-secret")
    made = ServerReader("http://127.0.0.1:9/v1", "m", key_env="A_KEY")
    assert "sk-secret" not in json.dumps(made.identity) + repr(made)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": {"promt": "x"}}, "did you mean prompt"),
        ({"prompt": {"prompt": "{query} {document}"}}, "did you mean documents"),
        ({"prompt": {"prompt": "{query}"}}, "has no place {documents}"),
        ({"prompt": {"system": 3}}, "the prompt's system is 3"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 2}, "top_p is 2"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"extra": {"temperature": 1}}, "extra holds 'temperature'"),
        ({"extra": {"messages": []}}, "extra holds 'messages'"),
        ({"extra": {"stop": {"a"}}}, "extra cannot be sent as JSON"),
        ({"document_chars": 0}, "document_chars is 0"),
        ({"document_chars": "9"}, "document_chars is '9'"),
        ({"requests_per_minute": "9"}, "a limit of '9' per minute"),
        ({"model": ""}, "name of a model"),
    ],
)
def test_settings_that_cannot_be_meant(options, message):
    with pytest.raises(SettingsError, match=message):
        ServerReader("http://127.0.0.1:9/v1", **{"model": "m", **options})


# --- stopping and going on ----------------------------------------------------------------------------


def test_at_the_cap_the_rest_is_an_error_that_says_so():
    items = [Item(f"q{number}", ()) for number in range(20)]
    readings, requests, _ = read([says("x")], items, budget=Budget(calls=6))
    assert len(requests) == 6
    left = [reading for reading in readings.values() if reading.status == "error"]
    assert len(left) == 14
    assert {reading.detail for reading in left} == {"not asked: the budget is used up: 6 of 6 calls"}


def test_cancelled_readings_end_with_what_was_answered():
    items = [Item(f"q{number}", ()) for number in range(50)]
    with FakeServer(lambda request: says("x") if request.number < 5 else HANG) as server:
        made = reader(server, concurrency=4)
        readings = made.read(items)
        next(readings)
        deadline = time.monotonic() + 5
        while len(server.requests) < 9 and time.monotonic() < deadline:
            time.sleep(0.01)
        readings.close()
        assert [reading.status for _, reading in readings] == ["ok"] * 4
        made.close()


def test_readings_that_are_left_ask_no_more():
    items = [Item(f"q{number}", ()) for number in range(2000)]
    with FakeServer(lambda request: says("x", delay=0.01)) as server:
        made = reader(server, concurrency=2)
        for _ in made.read(items):
            break
        time.sleep(0.2)
        seen = len(server.requests)
        time.sleep(0.1)
        assert len(server.requests) == seen < 1000
        made.close()


CLIENT = """
import sys
from pytest_retrieval_eval.readers.readings.cache import CachedReader, ReadingCache
from pytest_retrieval_eval.readers.reading import Item
from pytest_retrieval_eval.readers.services.server import ServerReader

url, path = sys.argv[1:]
with ReadingCache(path, lease=1.0) as cache:
    reader = CachedReader(ServerReader(url, "m", concurrency=3, backoff=0.01), cache)
    for index, reading in reader.read([Item(f"q{number}", ()) for number in range(60)]):
        print(index, reading.status, flush=True)
"""


def test_a_killed_client_goes_on_where_it_was(tmp_path):
    with FakeServer(lambda request: says("x", delay=0.02)) as server:
        arguments = [sys.executable, "-c", CLIENT, server.url, str(tmp_path / "cache")]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            seen = [process.stdout.readline() for _ in range(10)]
            os.kill(process.pid, signal.SIGKILL)
            seen += process.stdout.readlines()
        first = len(server.requests)
        again = subprocess.run(arguments, check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout
        asked = len(server.requests) - first
    assert sorted(again.split()[::2], key=int) == [str(number) for number in range(60)]
    # All that the client had been given is kept; what was lost is at most what was under way when it died.
    assert asked <= 60 - len([line for line in seen if line.endswith("\n")])
    assert first + asked - 60 <= 2 * 3


def test_trouble_of_every_kind_at_once_loses_nothing():
    def answer(request):
        seen = sum(earlier.text == request.text for earlier in server.requests[: request.number])
        kinds = [CUT, fails(429, Retry_After="0.05"), fails(500), Reply(raw=b"{")]
        number = int(request.text.split("q")[1].split("\n")[0])
        return kinds[(number + seen) % 4] if seen < number % 3 else says(f"a{number}")

    with FakeServer(answer) as server:
        made = reader(server, prompt={"closed_book": "q{query}"}, attempts=8)
        items = [Item(str(number), ()) for number in range(40)]
        readings = dict(made.read(items))
        made.close()
    assert {index: reading.text for index, reading in readings.items()} == {n: f"a{n}" for n in range(40)}
