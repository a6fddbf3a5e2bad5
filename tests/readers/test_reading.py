"""What is in the key of a reading, and what is not."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.reading import Item, Passage, Reading, identity_digest, item_key, item_keys

# The fields that the identity of a transformers or server reader has.
IDENTITY = {
    "kind": "seq2seq",
    "model": "t5-small",
    "revision": "abc",
    "tokenizer": "sha256:1",
    "chat_template": None,
    "dtype": "float32",
    "quantisation": None,
    "adapters": [],
    "attention": "eager",
    "generation": {"do_sample": False, "num_beams": 1, "max_new_tokens": 32},
    "prompt": "question: {query} context: {context}",
    "document_template": "{title}\n{text}",
    "truncation": "document",
    "shapes": {"policy": "fixed", "rows": 8, "length": 32},
    "deployment": "",
}
ITEM = Item("who?", (Passage("Ann did.", "Ann"), Passage("Bob did.")))


@pytest.mark.parametrize("field", sorted(IDENTITY))
def test_every_field_of_the_identity_changes_the_key(field):
    key = item_key(IDENTITY, ITEM)
    assert item_key({**IDENTITY, field: "another"}, ITEM) != key
    assert item_key({name: value for name, value in IDENTITY.items() if name != field}, ITEM) != key


@pytest.mark.parametrize(
    "item",
    [
        Item("whom?", ITEM.documents),
        Item("who?", ITEM.documents[::-1]),
        Item("who?", ITEM.documents[:1]),
        Item("who?", ()),
        Item("who?", ITEM.documents, repetition=1),
        Item("who?", (Passage("Ann did.", "Anna"), ITEM.documents[1])),
        Item("who?", (Passage("Ann did it.", "Ann"), ITEM.documents[1])),
        Item("who?", (Passage("Ann", "Ann did."), ITEM.documents[1])),  # title and text are told apart
        Item("who?", (Passage("Ann did.Bob did.", "Ann"),)),
    ],
)
def test_every_field_of_the_item_changes_the_key(item):
    assert item_key(IDENTITY, item) != item_key(IDENTITY, ITEM)


SERVER = {"kind": "server", "url": "http://localhost:8000/v1", "model": "m"}


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "http://127.0.0.1:9000/v1"},
        {"key_env": "ANOTHER_KEY", "key_header": "api-key"},
        {"timeout": 1, "attempts": 1, "backoff": 0.1, "patience": 1},
        {"concurrency": 1, "requests_per_minute": 10, "tokens_per_minute": 1000},
        {"budget": {"calls": 10}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_where_and_how_fast_a_reader_reads_is_not_in_the_key(changed, monkeypatch):
    pytest.importorskip("httpx")
    monkeypatch.setenv("ANOTHER_KEY", "sk-secret")
    readers = [reader_from(SERVER), reader_from({**SERVER, **changed})]
    keys = {item_key(reader.identity, ITEM) for reader in readers}
    other = reader_from({**SERVER, "temperature": 0.5})
    assert len(keys) == 1
    assert item_key(other.identity, ITEM) not in keys
    for reader in (*readers, other):
        reader.close()


def test_the_key_of_today_is_the_key_of_tomorrow():
    """A pinned value: kept readings are lost when it changes, so KEY_SCHEMA must change with it."""
    assert item_key(IDENTITY, ITEM) == "305e533e26e61d885cbcda063715c4f4c97542e465d3d75925c1f764f629b4d6"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.randoms())
def test_the_order_of_keys_and_the_kind_of_mapping_do_not_count(identity, random):
    shuffled = list(identity.items())
    random.shuffle(shuffled)
    digest = identity_digest(identity)
    assert identity_digest(MappingProxyType(dict(shuffled))) == digest
    assert identity_digest(json.loads(json.dumps(identity))) == digest


TEXT = st.text(max_size=6) | st.sampled_from(["\ud800", "é", "e\u0301", '"', ",", '","'])
ITEMS = st.builds(Item, TEXT, st.lists(st.builds(Passage, TEXT, TEXT), max_size=3).map(tuple), st.integers(0, 2))


@given(ITEMS, ITEMS)
def test_two_items_share_a_key_only_if_they_are_equal(one, other):
    assert (item_key(IDENTITY, one) == item_key(IDENTITY, other)) == (one == other)
    assert item_keys(IDENTITY, [one, other]) == [item_key(IDENTITY, one), item_key(IDENTITY, other)]


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ({"generation": {"stop": {"a"}}}, "a set at generation.stop"),
        ({"adapters": [b"x"]}, r"a bytes at adapters\[0\]"),
        ({"temperature": float("nan")}, "nan at temperature"),
        ({"temperature": float("inf")}, "inf at temperature"),
        ({1: "a"}, "the key 1"),
    ],
)
def test_what_json_cannot_say_exactly_is_refused(identity, said):
    with pytest.raises(DataError, match=said):
        identity_digest(identity)


def test_a_refusal_and_an_error_are_no_answers():
    answered = {status: Reading("", status, None, None).answered for status in ("ok", "empty", "length")}
    assert answered == {"ok": True, "empty": True, "length": True}
    assert not Reading("", "refused", None, None, detail="declined").answered
    assert not Reading("", "error", None, None, detail="out of memory").answered
