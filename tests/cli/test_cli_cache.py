"""``pytest-retrieval-eval cache``: looks after readings, and says what is wrong with them."""

from __future__ import annotations

import json
import sqlite3

import pytest
from readers_support import IDENTITY, items

from pytest_retrieval_eval.readers.config import reader_from, shapes_from
from pytest_retrieval_eval.readers.reading import Reading, identity_digest, item_key
from pytest_retrieval_eval.readers.readings.cache import CachedReader, ReadingCache
from pytest_retrieval_eval.readers.readings.kept import Kept
from pytest_retrieval_eval.readers.readings.selfcheck import alone
from pytest_retrieval_eval.settings import CACHE

DIGEST = identity_digest(IDENTITY)


def fill(folder, *names, identity=IDENTITY, **versions):
    with ReadingCache(folder) as cache:
        for name in names:
            (item,) = items(name)
            cache.put(Kept(item_key(identity, item), identity, item, Reading(f"text of {name}", "ok", 3, 1), versions))


def damage(folder):
    connection = sqlite3.connect(folder / "readings.sqlite")
    connection.execute("UPDATE readings SET reading = 'x' WHERE key = (SELECT min(key) FROM readings)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "arguments", [("stats",), ("gc", "--unused-for", 1), ("verify",), ("selfcheck", "--reader", "a:b"), ("push", "x")]
)
def test_a_cache_that_is_not_there_is_not_an_empty_one(program, here, arguments):
    result = program("cache", *arguments)
    assert (result.status, result.out) == (2, "")
    assert "there is no cache of readings in .retrieval-cache" in result.err
    assert result.err.startswith(f"pytest-retrieval-eval cache {arguments[0]}: ")
    assert not (here / CACHE).exists()


def test_stats(program, here):
    fill(here / CACHE, "a", torch="2.5")
    fill(here / CACHE, "b", torch="2.6")
    fill(here / CACHE, "a", identity={"kind": "other"})
    result = program("cache", "stats")
    assert result.status == 0
    assert result.rows[0] == [DIGEST[:12], "2", '{"kind":"counting"}']
    assert result.rows[-1][:2] == ["all", "3"]
    assert "2 sets of library versions" in result.err
    found = json.loads(program("cache", "stats", "--json").out)
    assert found["readings"] == 3
    assert found["readers"][0] == {
        "digest": DIGEST,
        "readings": 2,
        "versions": [{"torch": "2.5"}, {"torch": "2.6"}],
        "identity": IDENTITY,
    }


def test_gc(program, here):
    fill(here / "c", "a", "b")
    fill(here / "c", "a", identity={"kind": "other"})
    assert program("cache", "gc", "--cache", "c").status == 2
    assert "no reader whose digest begins with 'zz'" in program("cache", "gc", "--cache", "c", "--digest", "zz").err
    assert "2 readers whose digest" in program("cache", "gc", "--cache", "c", "--digest", "").err
    assert "deleted 0 readings of 3" in program("cache", "gc", "--cache", "c", "--unused-for", 1).err
    assert "deleted 2 readings of 3" in program("cache", "gc", "--cache", "c", "--digest", DIGEST[:8]).err
    assert program("cache", "stats", "--cache", "c").rows[-1][1] == "1"


def test_verify(program, here):
    fill(here / CACHE, "a", "b")
    result = program("cache", "verify")
    assert (result.status, result.out, result.err) == (0, "", "2 readings, 0 damaged\n")
    damage(here / CACHE)
    result = program("cache", "verify")
    assert result.status == 1
    assert len(result.rows) == 1
    assert "2 readings, 1 damaged\n" in result.err
    result = program("cache", "verify", "--delete")
    assert result.status == 0
    assert "2 readings, 1 damaged, and deleted\n" in result.err
    assert program("cache", "verify").err == "1 reading, 0 damaged\n"


READER = """
from pytest_retrieval_eval.readers.reading import Reading

class Reader:
    identity = {identity!r}
    def read(self, items):
        for number, item in enumerate(items):
            title = item.documents[0].title
            yield number, Reading("other" if title == "b" else f"text of {{title}}", "ok", 3, 1)
    def close(self):
        print("closed")

reader = Reader()
nothing = 7
"""


@pytest.mark.parametrize("name", ["Reader", "reader"])
def test_selfcheck(program, here, module, name):
    fill(here / CACHE, "a", "b", "c", "d")
    source = module(READER.format(identity=IDENTITY))
    result = program("cache", "selfcheck", "--reader", f"{source}:{name}")
    assert result.status == 0
    key = item_key(IDENTITY, items("b")[0])
    assert f'{key}\t"text of b"\t"other"\n' in result.out
    assert "closed\n" in result.out
    assert (
        f"read 4 readings of {DIGEST[:12]} again: 1 with another text (25.0%, 95 % interval 4.6% to 69.9%)"
        in result.err
    )


def test_selfcheck_of_another_readers_readings(program, here, module):
    fill(here / CACHE, "a")
    source = module(READER.format(identity={"kind": "batch of one"}))
    result = program("cache", "selfcheck", "--reader", f"{source}:reader")
    assert result.status == 2
    assert f"it holds those of: {DIGEST[:12]} (1)" in result.err
    result = program("cache", "selfcheck", "--reader", f"{source}:reader", "--digest", DIGEST[:5])
    assert result.status == 0
    assert "0 with another text" in result.err


def test_selfcheck_with_the_settings_of_a_reader(program, here, module):
    source = module("def answer(query, texts):\n    return 'other' if 'b did' in texts[0] else texts[0]\n")
    (here / "reader.yaml").write_text(f"kind: callable\nfunction: {source}:answer\nidentity: first text, v1\n")
    reader = reader_from({"kind": "callable", "function": lambda query, texts: texts[0], "identity": "first text, v1"})
    with ReadingCache(here / CACHE) as cache:
        assert len(list(CachedReader(reader, cache).read(items("a", "b", "c")))) == 3
    result = program("cache", "selfcheck", "--reader", "reader.yaml")
    assert result.status == 0
    assert "read 3 readings" in result.err
    assert "1 with another text" in result.err
    (here / "list.yaml").write_text("- kind\n")
    (here / "broken.json").write_text("{")
    (here / "nameless.yaml").write_text(f"kind: callable\nfunction: {source}:answer\n")
    for file, said in (
        ("list.yaml", "expected the settings"),
        ("broken.json", "this is no YAML"),
        ("nameless.yaml", "no identity"),
        ("absent.yaml", "absent.yaml"),
    ):
        result = program("cache", "selfcheck", "--reader", file)
        assert (result.status, len(result.err.splitlines())) == (2, 1)
        assert said in result.err


def test_one_row_is_the_least_of_every_kind_of_shapes():
    for shapes in ("fixed", "bucket", {"step": 64}, {"policy": "bucket", "tokens": 9}):
        found = shapes_from(alone({"kind": "causal", "model": "m", "shapes": shapes})["shapes"])
        before = shapes_from(shapes)
        assert [found.rows_at(length) for length in (1, 32, 4096)] == [1, 1, 1]
        assert (found.policy, found.step) == (before.policy, before.step)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nosuch", "expected MODULE:NAME"),
        ("nosuch:x", "there is no module nosuch"),
        ("{}:raeder", "did you mean reader"),
        ("{}:nothing", "no reader"),
    ],
)
def test_what_is_no_reader_is_said(program, here, module, name, said):
    fill(here / CACHE, "a")
    result = program("cache", "selfcheck", "--reader", name.format(module(READER.format(identity=IDENTITY))))
    assert result.status == 2
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_push_and_pull(program, here):
    pytest.importorskip("fsspec")
    fill(here / CACHE, "a", "b")
    assert program("cache", "push", "shared").err == "pushed 2 readings in 1 segment; 0 were there\n"
    fill(here / "other", "b", "c")
    assert (
        program("cache", "push", "--cache", "other", "shared").err == "pushed 2 readings in 1 segment; 0 were there\n"
    )
    assert program("cache", "pull", "shared").err == "pulled 1 segment with 2 readings: 1 new, 0 in conflict\n"
    assert program("cache", "pull", "--cache", "third", "shared").err.startswith(
        "pulled 2 segments with 4 readings: 3 new"
    )
    assert program("cache", "pull", "nowhere").status == 2


def test_a_command_line_that_cannot_be_understood(program):
    assert program("cache").status == 2
    result = program("cache", "stat")
    assert result.status == 2
    assert "stat" in result.err
    assert program("cache", "stats", "--nosuch").err.startswith("pytest-retrieval-eval")
