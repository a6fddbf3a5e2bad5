"""Readings travel between machines: by what they hold, and never in place of what is there."""

from __future__ import annotations

import gzip
import hashlib
import uuid

import pytest
from readers_support import IDENTITY, Counting, items, texts

from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.readers import session
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.reading import Reading, item_key
from pytest_retrieval_eval.readers.readings.cache import CachedReader, CacheMissError, ReadingCache
from pytest_retrieval_eval.readers.readings.kept import Kept, to_text
from pytest_retrieval_eval.readers.readings.segments import Pulled, Pushed, pull, push
from pytest_retrieval_eval.readers.readings.selfcheck import selfcheck

pytest.importorskip("fsspec")


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return (
        f"memory://{uuid.uuid4().hex}/readings" if request.param == "memory" else f"file://{tmp_path}/shared/readings"
    )


@pytest.fixture
def machine(tmp_path):
    """``machine(name)`` is the cache of a machine."""
    caches = {}

    def make(name):
        if name not in caches:
            caches[name] = ReadingCache(tmp_path / name)
        return caches[name]

    yield make
    for cache in caches.values():
        cache.close()


def kept(name, text="x", status="ok"):
    (item,) = items(name)
    return Kept(item_key(IDENTITY, item), IDENTITY, item, Reading(text, status, 1, 1), {"torch": "2.6"}, 5.0)


class Sitting:
    """Makes the reader of some settings, which loads nothing, and has another read in its place."""

    def __init__(self, make, identity, other):
        self.make, self.identity, self.other = make, identity, other

    def read(self, items):
        self.make()
        return self.other.read(items)

    def close(self):
        pass


def fill(cache, *names, **keywords):
    for name in names:
        cache.put(kept(name, **keywords))


def test_whose_settings_read_it_travels_along(machine, place, tmp_path, monkeypatch):
    model, settings = tmp_path / "model", {"kind": "fid", "model": "model", "device": "cpu", "dtype": "float32"}
    model.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (model / name).write_text("{}")
    counting = Counting(tmp_path / "log")
    monkeypatch.setattr(session, "SeatedReader", lambda make, identity: Sitting(make, identity, counting))
    reader = session.behind_cache(settings, tmp_path, machine("one"))
    assert texts(reader, items("a", "b")) == ["a", "b"]
    push(machine("one"), place)

    model.rename(tmp_path / "elsewhere")
    pull(machine("two"), place)
    with ReadingCache(tmp_path / "two", "ro") as pipeline:
        reader = session.behind_cache(settings, tmp_path, pipeline)
        assert texts(reader, items("a", "b")) == ["a", "b"]
        assert (reader.counters.hits, reader.counters.calls) == (2, 0)
        with pytest.raises(CacheMissError):
            texts(reader, items("c"))
        with pytest.raises(AbsentReaderError):
            session.behind_cache({**settings, "max_new_tokens": 4}, tmp_path, pipeline)
    assert counting.calls == ["a", "b"]


def test_an_identity_that_was_cut_short_is_said_and_left_out(machine, tmp_path):
    fill(machine("one"), "a")
    push(machine("one"), str(tmp_path / "shared"))
    (tmp_path / "shared" / f"{'0' * 32}.reader.json").write_text('{"kind": "fi')
    (tmp_path / "shared" / f"{'1' * 32}.reader.json").write_text('{"kind": "fid", "scale": NaN}')
    found = pull(machine("two"), str(tmp_path / "shared"))
    assert found.new == 1
    assert found.warnings[0].endswith(f"{'0' * 32}.reader.json: it is no identity of a reader; it was left out")
    assert not (tmp_path / "two" / "readers").exists()


def test_what_one_machine_has_read_another_need_not(machine, place, tmp_path):
    counting = Counting(tmp_path / "log")
    texts(CachedReader(counting, machine("one")), items("a", "b"))
    assert push(machine("one"), place) == Pushed(2, 1, 0)
    assert pull(machine("two"), place) == Pulled(1, 2, 2, 0, ())
    assert texts(CachedReader(counting, machine("two")), items("a", "b", "c")) == ["a", "b", "c"]
    assert counting.calls == ["a", "b", "c"]
    assert list(machine("two").damaged()) == []
    assert [each for each in machine("two").kept() if each.item == items("a")[0]] == [
        each for each in machine("one").kept() if each.item == items("a")[0]
    ]


def test_only_what_is_new_travels(machine, place):
    fill(machine("one"), "a", "b")
    push(machine("one"), place)
    assert push(machine("one"), place) == Pushed(0, 0, 2)
    pull(machine("two"), place)
    assert pull(machine("two"), place) == Pulled(0, 0, 0, 0, ())
    fill(machine("two"), "c")
    assert push(machine("two"), place) == Pushed(1, 1, 2)
    assert pull(machine("one"), place) == Pulled(1, 1, 1, 0, ())


def test_segments_have_a_largest_size_and_equal_readings_make_one_segment(machine, place):
    fill(machine("one"), *"abcde")
    fill(machine("two"), *"abcde")
    assert push(machine("one"), place, largest=2) == Pushed(5, 3, 0)
    assert push(machine("two"), place, largest=2) == Pushed(5, 3, 0)
    assert pull(machine("three"), place) == Pulled(3, 5, 5, 0, ())


def test_of_two_texts_of_a_key_the_one_that_was_here_stays(machine, place):
    fill(machine("one"), "a", "b", text="one")
    fill(machine("two"), "a", text="two")
    push(machine("one"), place)
    assert pull(machine("two"), place) == Pulled(1, 2, 1, 1, ())
    assert machine("two").get_many([kept("a").key, kept("b").key]) == {
        kept("a").key: kept("a", "two").reading,
        kept("b").key: kept("b", "one").reading,
    }


def test_a_place_that_was_tidied_up_is_filled_again(machine, tmp_path):
    place = tmp_path / "shared"
    fill(machine("one"), "a")
    push(machine("one"), str(place))
    for segment in place.iterdir():
        segment.unlink()
    assert push(machine("one"), str(place)) == Pushed(1, 1, 0)
    assert pull(machine("two"), str(place)).new == 1


def test_a_segment_that_was_cut_short_is_said_and_tried_again(machine, tmp_path):
    place = tmp_path / "shared"
    fill(machine("one"), "a", "b")
    push(machine("one"), str(place))
    (segment,) = place.iterdir()
    whole = segment.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", gzip.compress(b"{}\n")):
        segment.write_bytes(broken)
        found = pull(machine("two"), str(place))
        assert (found.segments, found.new) == (0, 0)
        assert "was left out" in found.warnings[0]
    segment.write_bytes(whole)
    assert pull(machine("two"), str(place)) == Pulled(1, 2, 2, 0, ())


def test_what_is_no_reading_of_its_key_is_refused(machine, tmp_path):
    wrong = Kept(kept("a").key, IDENTITY, items("b")[0], Reading("poison", "ok", 1, 1))
    rows = [kept("c"), wrong, kept("d", status="refused")]
    data = "".join(f"{to_text(row.to_json())}\n" for row in rows).encode() + b'{"key": 1}\n[]\nnone\n'
    for time in ("NaN", "1e999"):  # neither is a time
        data += to_text(kept("e").to_json()).replace('"made":5.0', f'"made":{time}').encode() + b"\n"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / f"{hashlib.sha256(data).hexdigest()}.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "shared" / "README").write_text("no segment")
    found = pull(machine("one"), str(tmp_path / "shared"))
    assert (found.readings, found.new) == (1, 1)
    assert "7 of its readings are not what their keys say" in found.warnings[0]
    assert [each.key for each in machine("one").kept()] == [kept("c").key]


def test_a_place_that_is_not_there_is_said(machine, tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        pull(machine("one"), str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no folder")
    for name in ("empty", "file"):
        with pytest.raises(
            DataError, match=rf"{name} holds no readings: nothing was pushed there yet, or it is another"
        ):
            pull(machine("one"), str(tmp_path / name))
    with pytest.raises(DataError, match="nosuchscheme"):
        push(machine("one"), "nosuchscheme://bucket")
    fill(machine("one"), "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be"):
        push(machine("one"), str(tmp_path / "file" / "below"))


# --- selfcheck -----------------------------------------------------------------------------------------


def test_selfcheck_reads_a_sample_again_one_at_a_time(machine, tmp_path):
    cache = machine("one")
    fill(cache, *"abc", text="wrong")
    texts(CachedReader(Counting(tmp_path / "log"), cache), items(*"defgh"))
    again = Counting(tmp_path / "again")
    found = selfcheck(cache, again)
    assert (found.checked, len(found.flips), found.rate, found.failed) == (8, 3, 3 / 8, 0)
    assert {len(batch) for batch in again.batches} == {1}
    assert {(old.reading.text, new.text) for old, new in found.flips} == {("wrong", name) for name in "abc"}
    few = Counting(tmp_path / "few")
    assert selfcheck(cache, few, sample=4).checked == 4
    assert selfcheck(cache, few, sample=4).checked == 4
    assert few.calls[:4] == few.calls[4:]


def test_selfcheck_of_another_reader_and_of_nothing(machine, tmp_path):
    cache = machine("one")
    with pytest.raises(GateError, match="no reader"):
        selfcheck(cache, Counting(tmp_path / "log"))
    fill(cache, "a", text="a")
    digest = cache.stats().readers[0].digest
    other = Counting(tmp_path / "log", identity={"kind": "batch of one"})
    with pytest.raises(GateError, match=rf"holds those of: {digest[:12]} \(1\)"):
        selfcheck(cache, other)
    assert selfcheck(cache, other, digest=digest[:6]).rate == 0
    with pytest.raises(GateError, match="no identity"):
        selfcheck(cache, Counting(tmp_path / "log", identity=None))

    class Refusing(Counting):
        def read(self, items):
            yield 0, Reading("", "refused", None, None, detail="declined")

    with pytest.raises(GateError, match="none of 1"):
        selfcheck(cache, Refusing(tmp_path / "log"))
