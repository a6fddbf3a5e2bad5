from __future__ import annotations

import asyncio
import threading

import pytest

from pytest_retrieval_eval.errors import DataError, SettingsError
from pytest_retrieval_eval.readers.callable_reader import CallableReader
from pytest_retrieval_eval.readers.reading import Item, Passage, Reading

ITEMS = [
    Item("q1", (Passage("alpha", "A"),)),
    Item("q2", (Passage("beta"), Passage("gamma"))),
    Item("q3", ()),
]
ANSWERS = ["q1: A\nalpha", "q2: beta|gamma", "q3: "]


def plain(query, texts):
    return f"{query}: {'|'.join(texts)}"


def plain_batch(queries, texts):
    return [plain(*pair) for pair in zip(queries, texts, strict=True)]


async def awaited(query, texts):
    await asyncio.sleep(0)
    return plain(query, texts)


async def awaited_batch(queries, texts):
    return plain_batch(queries, texts)


def hands_out(query, texts):
    return awaited(query, texts)


def read(reader, items=ITEMS):
    found = dict(reader.read(items))
    reader.close()
    return [found[index] for index in range(len(items))]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (plain, {}),
        (plain_batch, {"batch_size": 2}),
        (awaited, {}),
        (awaited, {"concurrency": 1}),
        (awaited_batch, {"batch_size": 2}),
        (hands_out, {}),
    ],
)
def test_every_form_of_function_gives_the_same_answers(function, options):
    assert [reading.text for reading in read(CallableReader(function, **options))] == ANSWERS


def test_it_reads_where_a_loop_is_running_already():
    async def main():
        return [reading.text for reading in read(CallableReader(awaited))]

    assert asyncio.run(main()) == ANSWERS


def test_up_to_so_many_at_once():
    now, most = 0, 0

    async def count(query, texts):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return "x"

    read(CallableReader(count, concurrency=3), ITEMS * 4)
    assert most == 3


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_it_raises_is_the_error_of_its_items_alone(batch_size, asynchronous):
    def answer(query, texts):
        if "q2" in query:
            raise ValueError("no idea")
        return plain_batch(query, texts) if batch_size else plain(query, texts)

    async def later(query, texts):
        return answer(query, texts)

    readings = read(CallableReader(later if asynchronous else answer, batch_size=batch_size))
    failed = {0, 1} if batch_size else {1}
    place = f"tests/readers/test_callable.py:{answer.__code__.co_firstlineno + 2} in answer"
    for index, reading in enumerate(readings):
        if index in failed:
            assert (reading.status, reading.detail) == ("error", f"ValueError: no idea ({place})")
        else:
            assert reading.text == ANSWERS[index]


def test_an_interrupt_is_no_error_of_an_item():
    def answer(query, texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(CallableReader(answer))


def test_readings_pass_and_blank_answers_are_empty():
    refused = Reading("", "refused", 3, 0, detail="policy")
    answers = iter([refused, " \n", "yes"])
    readings = read(CallableReader(lambda query, texts: next(answers)))
    assert readings[0] == refused
    assert [reading.status for reading in readings] == ["refused", "empty", "ok"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("answer", [None, 3, b"yes", ["yes"]])
def test_what_is_no_text_is_a_data_error(answer, asynchronous):
    async def later(query, texts):
        return answer

    reader = CallableReader(later if asynchronous else lambda query, texts: answer)
    with pytest.raises(DataError, match=r"the reader returned .*; expected a text"):
        list(reader.read(ITEMS))
    reader.close()


def test_a_batch_of_another_length_is_a_data_error():
    with pytest.raises(DataError, match="expected a list of 2 answers"):
        read(CallableReader(lambda queries, texts: ["one"], batch_size=2))


def test_who_stops_listening_stops_the_calls():
    calls = []
    reader = CallableReader(lambda query, texts: calls.append(query) or "x")
    next(readings := reader.read(ITEMS))
    readings.close()
    assert calls == ["q1"]

    cancelled = threading.Event()

    async def slow(query, texts):
        if query == "q1":
            return "x"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    reader = CallableReader(slow)
    readings = reader.read(ITEMS)
    assert next(readings)[0] == 0
    readings.close()
    assert cancelled.wait(10)
    reader.close()


def test_without_a_name_nothing_is_cached():
    assert CallableReader(plain).identity is None
    named = CallableReader(plain, "plain, v1")
    assert named.identity != CallableReader(plain, "plain, v2").identity
    assert named.identity == CallableReader(awaited, "plain, v1", concurrency=2).identity
    assert named.identity != CallableReader(plain, "plain, v1", documents={"untitled": "text: {text}"}).identity


def test_documents_become_texts_as_the_templates_say():
    reader = CallableReader(plain, documents={"document": "{rank}. {title} {text}", "untitled": "{rank}. {text}"})
    assert [reading.text for reading in read(reader)] == ["q1: 1. A alpha", "q2: 1. beta|2. gamma", "q3: "]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("no function",), "expected a callable"),
        ((plain, " "), "the identity of the reader is ' '"),
        ((plain, None, {"batch_size": 0}), "batch_size is 0"),
        ((plain, None, {"concurrency": True}), "concurrency is True"),
        ((plain, None, {"documents": {"prompt": "x"}}), "there is no template 'prompt'; known: document, untitled"),
    ],
)
def test_settings_that_cannot_be(arguments, text):
    *positional, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises(SettingsError, match=text):
        CallableReader(*positional, **options)
