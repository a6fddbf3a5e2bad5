"""A reading is made once: kept, found again, shared between processes, and never lost silently."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from readers_support import (
    IDENTITY,
    Counting,
    Shrinking,
    items,
    read_and_be_killed,
    read_as_nobody,
    read_in_order,
    texts,
)

from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.readers.process import is_gone, process_mark
from pytest_retrieval_eval.readers.reading import Item, Passage, Reading, item_key
from pytest_retrieval_eval.readers.readings import sqlitefile, store
from pytest_retrieval_eval.readers.readings.cache import (
    CachedReader,
    CacheMissError,
    Counters,
    ReadingCache,
    summary_line,
)
from pytest_retrieval_eval.readers.readings.kept import Kept
from pytest_retrieval_eval.readers.seat import SeatedReader


@pytest.fixture
def counting(tmp_path):
    return Counting(tmp_path / "log")


@pytest.fixture
def cache(tmp_path):
    with ReadingCache(tmp_path / "cache") as cache:
        yield cache


def kept(name, *, text="x", identity=IDENTITY, **versions):
    (item,) = items(name)
    return Kept(item_key(identity, item), identity, item, Reading(text, "ok", 1, 1), versions)


# --- what is read, and what is not --------------------------------------------------------------------


def test_the_second_time_nothing_is_read(tmp_path, counting):
    for _ in range(2):
        with ReadingCache(tmp_path / "cache") as cache:
            assert texts(CachedReader(counting, cache), items("Ann", "Bob")) == ["Ann", "Bob"]
    assert counting.calls == ["Ann", "Bob"]


def test_one_changed_document_is_one_call(cache, counting):
    reader = CachedReader(counting, cache)
    texts(reader, items(1, 2, 3))
    changed = [*items(1, 2), Item("who?", (Passage("It was 3.", "3"),))]
    texts(reader, changed)
    assert counting.calls == ["1", "2", "3", "3"]
    assert (reader.counters.hits, reader.counters.misses, reader.counters.calls) == (2, 4, 4)


def test_equal_items_are_read_once_and_all_answered(cache, counting):
    assert texts(CachedReader(counting, cache), items("a", "b", "a", "a")) == ["a", "b", "a", "a"]
    assert counting.calls == ["a", "b"]
    assert texts(CachedReader(counting, cache), []) == []


def test_another_reader_and_another_repetition_are_read(cache, counting, tmp_path):
    texts(CachedReader(counting, cache), items("a"))
    texts(CachedReader(Counting(tmp_path / "other", identity={"kind": "other"}), cache), items("a"))
    texts(CachedReader(counting, cache), [Item("who?", items("a")[0].documents, repetition=1)])
    assert len(counting.calls) == 2
    assert (tmp_path / "other").exists()


@pytest.mark.parametrize("status", ["refused", "error"])
def test_a_failure_is_given_and_never_kept(cache, status):
    class Failing:
        identity = IDENTITY
        calls = 0

        def read(self, items):
            self.calls += 1
            yield 0, Reading("", status, None, None, detail="declined")

        def close(self): ...

    failing = Failing()
    reader = CachedReader(failing, cache)
    for _ in range(2):
        assert [reading.status for _, reading in reader.read(items("a"))] == [status]
    assert failing.calls == 2
    assert cache.stats().readings == 0
    assert cache.stats().claimed == 0
    assert (reader.counters.calls, reader.counters.failed, reader.counters.unknown_tokens) == (2, 2, 2)
    with pytest.raises(ValueError, match="is not kept"):
        cache.put(Kept("k", IDENTITY, items("a")[0], Reading("", status, None, None)))


@pytest.mark.parametrize(
    "reading", [Reading("", "empty", 3, 0), Reading("\ud800 é\0", "length", None, 7, True, "", "m")]
)
def test_what_is_given_again_is_what_was_read(tmp_path, reading):
    (item,) = items(
        "\udc00\n",
    )
    key = item_key(IDENTITY, item)
    with ReadingCache(tmp_path) as cache:
        cache.put(Kept(key, IDENTITY, item, reading, {"torch": "2.6"}, 12.5))
    with ReadingCache(tmp_path, "ro") as cache:
        assert cache.get_many([key]) == {key: reading}
        assert list(cache.kept()) == [Kept(key, IDENTITY, item, reading, {"torch": "2.6"}, 12.5)]
        assert list(cache.damaged()) == []


def test_a_reader_without_an_identity_is_not_kept(cache, tmp_path):
    nameless = Counting(tmp_path / "log", identity=None)
    reader = CachedReader(nameless, cache)
    assert texts(reader, items("a", "a")) == texts(reader, items("a", "a")) == ["a", "a"]
    assert nameless.calls == ["a", "a"]
    assert not cache.path.exists()
    assert "no identity" in reader.notes[0]


def test_of_two_readings_of_a_key_the_first_stays(cache):
    assert cache.put(kept("a", text="first")).text == "first"
    assert cache.put(kept("a", text="second")).text == "first"
    assert cache.put_many([kept("a", text="third"), kept("a", text="first"), kept("b")]) == (1, 1)


# --- the model ------------------------------------------------------------------------------------------


def test_a_model_is_made_at_the_first_miss_only(tmp_path, counting):
    made = []

    def make():
        made.append(1)
        return counting

    for mode, names in (("rw", "a"), ("rw", "a"), ("ro", "a")):
        with ReadingCache(tmp_path / "cache", mode) as cache:
            reader = CachedReader(make, cache, identity=IDENTITY)
            assert texts(reader, items(*names)) == ["a"]
            reader.close()
    assert len(made) == 1
    assert counting.closed == 1
    make.identity = IDENTITY
    with ReadingCache(tmp_path / "cache") as cache:
        assert texts(CachedReader(make, cache), items("a", "b")) == ["a", "b"]
    assert len(made) == 2


@pytest.mark.parametrize("told", [IDENTITY, property(lambda self: IDENTITY)])
def test_a_class_may_make_the_reader(cache, counting, told):
    class Made(Counting):
        identity = told

        def __init__(self):
            self.log, self.before, self.batches = counting.log, counting.before, []

    assert texts(CachedReader(Made, cache), items("a")) == ["a"]
    assert cache.stats().readers[0].identity == IDENTITY


def test_a_maker_that_tells_no_identity_is_asked_for_a_model(cache, counting):
    assert texts(CachedReader(lambda: counting, cache), items("a")) == ["a"]
    assert cache.stats().readers[0].identity == IDENTITY


def test_a_model_that_is_not_what_was_promised_reads_nothing(cache, counting):
    with pytest.raises(GateError, match=r"promised kind='fid' but made kind='counting'"):
        texts(CachedReader(lambda: counting, cache, identity={"kind": "fid"}), items("a"))
    assert counting.calls == []
    assert counting.closed == 1


@pytest.mark.parametrize(("seated", "claim"), [(False, None), (True, None), (False, 1)])
def test_what_a_reader_reads_after_it_changed_is_kept_as_what_it_is(cache, tmp_path, seated, claim):
    reader = Shrinking(tmp_path / "log")
    identities = [{"kind": "shrinking", "rows": rows} for rows in (8, 4)]
    front = SeatedReader(lambda: reader, identities[0], seat=tmp_path / "seat") if seated else reader
    cached = CachedReader(front, cache, claim=claim)
    assert texts(cached, items("a", "b", "c")) == ["a", "b", "c"]
    assert cached.identity == identities[1]
    assert texts(cached, items("b", "c")) == ["b", "c"]
    front.close()
    assert reader.calls == ["+", "a", "b", "c", "-"]
    found = {kept.item.documents[0].title: kept.identity for kept in cache.kept()}
    assert found == {"a": identities[0], "b": identities[1], "c": identities[1]}
    assert (cache.stats().claimed, list(cache.damaged())) == (0, [])


@pytest.mark.parametrize(
    ("numbers", "said"), [([0], "no reading for 1 of 2"), ([0, 0], "item 0"), ([0, 2], "item 2"), ([0, -1], "item -1")]
)
def test_a_reader_that_does_not_keep_its_word_is_an_error(cache, numbers, said):
    class Wrong:
        identity = IDENTITY

        def read(self, items):
            for number in numbers:
                yield number, Reading("x", "ok", 1, 1)

        def close(self): ...

    with pytest.raises(GateError, match=said):
        texts(CachedReader(Wrong(), cache), items("a", "b"))
    assert cache.stats().readings == 1


# --- modes ----------------------------------------------------------------------------------------------


def test_in_the_mode_ro_a_miss_names_keys_and_the_command(tmp_path, counting):
    with ReadingCache(tmp_path / "cache") as cache:
        texts(CachedReader(counting, cache), items("a"))
    with ReadingCache(tmp_path / "cache", "ro", fill="make readings") as cache, pytest.raises(CacheMissError) as caught:
        texts(CachedReader(counting, cache), items("a", "b"))
    assert item_key(IDENTITY, items("b")[0]) in str(caught.value)
    assert "1 of 2 readings" in str(caught.value)
    assert str(caught.value).endswith("run: make readings")
    with ReadingCache(tmp_path / "none", "ro") as cache, pytest.raises(CacheMissError, match=r"2 of 2.*cache-mode=rw"):
        texts(CachedReader(counting, cache), items("a", "b"))
    assert counting.calls == ["a"]
    assert not (tmp_path / "none").exists()


def test_in_the_mode_refresh_everything_is_read_once_more(tmp_path, counting):
    with ReadingCache(tmp_path / "cache") as cache:
        cache.put(kept("a", text="old"))
    with ReadingCache(tmp_path / "cache", "refresh") as cache:
        for _ in range(2):
            assert texts(CachedReader(counting, cache), items("a")) == ["a"]
    with ReadingCache(tmp_path / "cache", "ro") as cache:
        assert texts(CachedReader(counting, cache), items("a")) == ["a"]
    assert counting.calls == ["a"]


def test_in_the_mode_refresh_a_time_in_the_future_is_none(tmp_path, counting):
    """As of what was pulled from a machine whose clock was ahead."""
    with ReadingCache(tmp_path / "cache") as cache:
        cache.put(replace(kept("a", text="old"), made=time.time() + 7200))
        assert texts(CachedReader(counting, cache), items("a")) == ["old"]
    with ReadingCache(tmp_path / "cache", "refresh") as cache:
        for _ in range(2):
            assert texts(CachedReader(counting, cache), items("a")) == ["a"]
    assert counting.calls == ["a"]


def test_in_the_mode_off_nothing_is_looked_up_or_kept(tmp_path, counting):
    with ReadingCache(tmp_path / "cache", "off") as cache:
        for _ in range(2):
            assert texts(CachedReader(counting, cache), items("a", "a")) == ["a", "a"]
    assert counting.calls == ["a", "a"]
    assert not (tmp_path / "cache").exists()


def test_an_unknown_mode_is_answered_with_the_closest(tmp_path):
    with pytest.raises(SettingsError, match="did you mean refresh"):
        ReadingCache(tmp_path, "refesh")


# --- many processes --------------------------------------------------------------------------------------


def test_eight_processes_read_ten_items_ten_times(tmp_path):
    orders = [[(start + step) % 10 for step in range(10)] for start in range(8)]
    with ProcessPoolExecutor(8) as pool:
        found = list(pool.map(read_in_order, [tmp_path] * 8, orders))
    assert found == [[str(name) for name in order] for order in orders]
    assert sorted(Counting(tmp_path / "log").calls) == [str(name) for name in range(10)]


def test_with_a_limit_the_work_is_shared(cache, counting):
    texts(CachedReader(counting, cache, claim=2), items(1, 2, 3, 4, 5))
    assert [len(batch) for batch in counting.batches] == [2, 2, 1]


def kill_over_its_claims(folder, lease):
    killed = multiprocessing.Process(target=read_and_be_killed, args=(folder, "abc", 1, lease))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL


def read_the_rest(folder, lease):
    """How many seconds it took."""
    begin = time.monotonic()
    assert read_in_order(folder, "abc", lease=lease) == ["a", "b", "c"]
    assert sorted(Counting(folder / "log").calls) == ["a", "b", "c"]
    with ReadingCache(folder / "cache") as cache:
        assert cache.stats().claimed == 0
    return time.monotonic() - begin


on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it cannot be seen here who is gone")


@on_linux
def test_what_a_killed_process_had_claimed_is_taken_over_at_once(tmp_path):
    kill_over_its_claims(tmp_path, 600)
    assert read_the_rest(tmp_path, 600) < 300


@on_linux
@pytest.mark.parametrize("part", ["host", "boot", "space", "start"])
def test_what_a_process_elsewhere_had_claimed_is_taken_over_after_the_lease(tmp_path, part):
    """As in a container of its own, which counts its processes from one: that number says nothing here."""
    kill_over_its_claims(tmp_path, 1)
    with closing(sqlite3.connect(tmp_path / "cache" / "readings.sqlite")) as connection:
        ((thread, expires),) = connection.execute("SELECT thread, expires FROM owners").fetchall()
        host, boot, *space, pid, start, number = thread.split(":")
        parts = {"host": host, "boot": boot, "space": ":".join(space), "pid": pid, "start": start, "thread": number}
        parts[part] = "" if part == "start" else "elsewhere"
        connection.execute("UPDATE owners SET thread = ?", (":".join(parts.values()),))
        connection.commit()
    read_the_rest(tmp_path, 1)
    assert time.time() >= expires


@on_linux
def test_a_number_that_another_process_has_now_is_no_sign_of_life():
    mark = process_mark()
    place, pid, start = mark.rsplit(":", 2)
    assert not is_gone(mark)
    assert is_gone(f"{place}:{pid}:{int(start) - 1}")
    assert not is_gone(f"{place}:{pid}")


def test_a_slow_reading_keeps_its_claim(tmp_path):
    slow = multiprocessing.Process(target=read_in_order, args=(tmp_path, "a", 2.5, 1.0))
    slow.start()
    with ReadingCache(tmp_path / "cache") as cache:
        deadline = time.monotonic() + 20
        while not cache.stats().claimed and time.monotonic() < deadline:
            time.sleep(0.01)
    assert read_in_order(tmp_path, "a", lease=1.0) == ["a"]
    slow.join()
    assert Counting(tmp_path / "log").calls == ["a"]


def test_a_child_process_has_a_connection_of_its_own(tmp_path, cache):
    cache.put(kept("a", text="a"))
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: cache.put(kept("b", text="b")))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert [each.reading.text for each in cache.kept()] == sorted("ab", key=lambda name: kept(name).key)


def test_a_reader_inside_a_reader_does_not_wait_for_itself(cache, counting, tmp_path):
    outer = CachedReader(counting, cache).read(items("a", "b"))
    assert next(outer)[1].text == "a"
    assert texts(CachedReader(Counting(tmp_path / "inner"), cache), items("b")) == ["b"]
    assert [reading.text for _, reading in outer] == ["b"]


# --- interrupted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("out of memory")])
def test_what_was_read_before_an_interruption_is_kept_and_its_claims_are_free(tmp_path, error):
    def before(item):
        if item.documents[0].title == "c":
            raise error

    with ReadingCache(tmp_path / "cache") as cache:
        with pytest.raises(BaseException, match=r"out of memory|^$"):
            texts(CachedReader(Counting(tmp_path / "log", before=before), cache), items(*"abcd"))
        assert (cache.stats().readings, cache.stats().claimed) == (2, 0)
        again = Counting(tmp_path / "again")
        assert texts(CachedReader(again, cache), items(*"abcd")) == list("abcd")
    assert again.calls == ["c", "d"]


def test_whoever_stops_listening_gives_the_rest_up(cache, counting):
    readings = CachedReader(counting, cache).read(items(*"abc"))
    next(readings)
    assert cache.stats().claimed == 2
    readings.close()
    assert (cache.stats().readings, cache.stats().claimed) == (1, 0)


def test_answers_that_had_arrived_at_an_interrupt_are_kept(cache, counting):
    class Stream:
        """As of a server: answers arrive on their own, and can still be read once no more are asked for."""

        def __init__(self, items):
            self.left = list(enumerate(items))
            self.arrived = 3

        def __iter__(self):
            return self

        def __next__(self):
            if not self.left or not self.arrived:
                raise StopIteration
            self.arrived -= 1
            number, item = self.left.pop(0)
            return number, Reading(item.documents[0].title, "ok", 5, 1)

        def close(self): ...

    class Server:
        identity = IDENTITY

        def read(self, items):
            return Stream(items)

        def close(self): ...

    reader = CachedReader(Server(), cache)
    readings = reader.read(items(*"abcd"))
    next(readings)
    readings.close()
    assert (cache.stats().readings, cache.stats().claimed, reader.counters.calls) == (3, 0, 3)
    assert texts(CachedReader(counting, cache), items(*"abcd")) == list("abcd")
    assert counting.calls == ["d"]


def test_an_interrupt_while_storing_loses_nothing(cache, counting, monkeypatch):
    put, interrupts = cache.put, [KeyboardInterrupt]

    def interrupted(*arguments):
        if interrupts:
            raise interrupts.pop()
        return put(*arguments)

    monkeypatch.setattr(cache, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        texts(CachedReader(counting, cache), items("a", "b"))
    assert (cache.stats().readings, cache.stats().claimed) == (1, 0)


# --- what can happen to a file ------------------------------------------------------------------------------


def test_a_damaged_row_is_a_miss_and_a_warning(tmp_path, counting):
    with ReadingCache(tmp_path / "cache") as cache:
        texts(CachedReader(counting, cache), items("a", "b"))
        connection = sqlite3.connect(cache.path)
        connection.execute("UPDATE readings SET reading = replace(reading, 'a', 'A') WHERE key = ?", (kept("a").key,))
        connection.commit()
        connection.close()
    with ReadingCache(tmp_path / "cache", "ro") as cache, pytest.raises(CacheMissError, match="1 of 2"):
        texts(CachedReader(counting, cache), items("a", "b"))
    with ReadingCache(tmp_path / "cache") as cache:
        assert [key for key, _ in cache.damaged()] == [kept("a").key]
        reader = CachedReader(counting, cache)
        assert texts(reader, items("a", "b")) == ["a", "b"]
        assert [note for note in reader.notes if "is damaged and counts as absent" in note] == reader.notes
        assert len(reader.notes) == 1
        assert list(cache.damaged()) == []
    assert counting.calls == ["a", "b", "a"]


def test_a_reading_under_another_items_key_is_found_by_its_key(cache):
    cache.put(Kept("0" * 64, IDENTITY, items("a")[0], Reading("x", "ok", 1, 1)))
    ((key, why),) = cache.damaged()
    assert key == "0" * 64
    assert "not one of the reader and the item" in why


def damage_header(path):
    path.write_bytes(b"no database at all" + path.read_bytes()[18:])


def damage_pages(path):
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 200] = os.urandom(200)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [damage_header, damage_pages])
def test_a_damaged_file_is_set_aside_and_said(tmp_path, counting, damage):
    with ReadingCache(tmp_path / "cache") as cache:
        texts(CachedReader(counting, cache), items("a", "b"))
    damage(cache.path)
    damaged = cache.path.read_bytes()
    with ReadingCache(tmp_path / "cache", "ro") as cache, pytest.raises(DataError, match=r"is damaged .*use rw"):
        texts(CachedReader(counting, cache), items("a", "b"))
    with ReadingCache(tmp_path / "cache") as cache:
        reader = CachedReader(counting, cache)
        assert texts(reader, items("a", "b")) == ["a", "b"]
        (warning,) = reader.notes
        assert "was damaged" in warning
        (aside,) = tmp_path.glob("cache/*.damaged-*[0-9]")
        assert aside.name in warning
        assert aside.read_bytes() == damaged
        assert cache.stats().readings == 2
    assert counting.calls == ["a", "b", "a", "b"]


def test_a_file_that_is_removed_meanwhile_is_begun_anew(cache, counting):
    reader = CachedReader(counting, cache)
    texts(reader, items("a"))
    shutil.rmtree(cache.folder)
    texts(reader, items("b"))
    assert cache.stats().readings == 1


def test_a_full_disk_is_said_and_what_was_read_is_not_read_again(tmp_path, monkeypatch, counting):
    with ReadingCache(tmp_path / "cache") as cache:
        texts(CachedReader(counting, cache), items("a"))
    limit, connect = 0, sqlite3.connect

    def small(*arguments, **keywords):
        connection = connect(*arguments, **keywords)
        if limit:
            connection.execute(f"PRAGMA max_page_count={limit}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    limit = 1  # no page more than there are
    long = [Item("who?", (Passage("x" * 20_000, "long"),))]
    with ReadingCache(tmp_path / "cache") as cache:
        reader = CachedReader(counting, cache)
        with pytest.raises(DataError, match=r"the disk is full.*what was stored before is safe"):
            texts(reader, long)
        assert texts(reader, items("a")) == ["a"]
        limit = 0
        cache.close()
        assert texts(reader, [*items("a"), *long]) == ["a", "long"]
        assert (cache.stats().readings, cache.stats().claimed) == (2, 0)
    assert counting.calls == ["a", "long"]


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.getuid() != 0, reason="only root can become somebody without rights"
)
@pytest.mark.parametrize("left", ["closed", "log"])
def test_a_folder_without_rights_can_be_read(left):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        cache = ReadingCache(folder / "cache")
        texts(CachedReader(Counting(folder / "log"), cache), items("a"))
        if left == "closed":
            cache.close()
        assert (folder / "cache" / "readings.sqlite-wal").exists() == (left == "log")
        for path in (folder / "cache").iterdir():
            path.chmod(0o444)
        (folder / "cache").chmod(0o555)
        with ProcessPoolExecutor(1) as pool:
            found, said = pool.submit(read_as_nobody, folder, ["a"]).result()
        cache.close()
    assert found == ["a"]
    assert said.startswith("DataError: ")
    assert "for reading only, use the mode ro" in said


def test_a_network_file_system_is_refused_for_writing_only(tmp_path, monkeypatch, counting):
    with ReadingCache(tmp_path / "cache") as cache:
        texts(CachedReader(counting, cache), items("a"))
    monkeypatch.setattr(sqlitefile, "filesystem_of", lambda path: "nfs4")
    with (
        ReadingCache(tmp_path / "cache") as cache,
        pytest.raises(DataError, match=r"network file system \(nfs4\).*push"),
    ):
        texts(CachedReader(counting, cache), items("a"))
    with ReadingCache(tmp_path / "cache", "ro") as cache:
        assert texts(CachedReader(counting, cache), items("a")) == ["a"]


def test_the_closest_mount_tells_the_file_system():
    mounts = "/dev/sda1 / ext4 rw 0 0\nhost:/a /srv nfs4 rw 0 0\n"
    mounts += "/dev/sdb /srv/fast xfs rw 0 0\n//h/s /my\\040share cifs rw 0 0"
    kinds = {
        path: sqlitefile.filesystem_of(Path(path), mounts) for path in ("/srv/x", "/srvx", "/srv/fast/x", "/my share/x")
    }
    assert kinds == {"/srv/x": "nfs4", "/srvx": "ext4", "/srv/fast/x": "xfs", "/my share/x": "cifs"}


def test_a_database_of_another_program_is_left_alone(tmp_path, counting):
    connection = sqlite3.connect(tmp_path / store.FILE)
    connection.execute("CREATE TABLE readings(key TEXT)")
    connection.commit()
    connection.close()
    for mode in ("rw", "ro"):
        with ReadingCache(tmp_path, mode) as cache, pytest.raises(DataError, match="of another program"):
            texts(CachedReader(counting, cache), items("a"))


def test_a_file_of_a_later_version_is_left_alone(cache, counting):
    texts(CachedReader(counting, cache), items("a"))
    cache.close()
    connection = sqlite3.connect(cache.path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DataError, match=r"a later version.*99"):
        texts(CachedReader(counting, cache), items("a"))


# --- housekeeping -----------------------------------------------------------------------------------------


def test_stats_count_readers_and_versions(cache):
    for name, version in (("a", "2.5"), ("b", "2.6"), ("c", "2.6")):
        cache.put(kept(name, torch=version))
    cache.put(kept("a", identity={"kind": "other"}))
    stats = cache.stats()
    assert (stats.readings, stats.path, stats.bytes > 0) == (4, cache.path, True)
    assert [(each.identity["kind"], each.readings) for each in stats.readers] == [("counting", 3), ("other", 1)]
    assert stats.readers[0].versions == ({"torch": "2.5"}, {"torch": "2.6"})


def test_mixed_versions_are_said(cache, counting):
    cache.put(kept("a", torch="2.5"))
    reader = CachedReader(counting, cache)
    texts(reader, items("a"))
    assert reader.notes == []
    cache.put(kept("b", torch="2.6"))
    assert "several library versions (torch 2.5; torch 2.6)" in reader.notes[0]


def test_gc_deletes_what_it_is_told_to(cache):
    for name in "abc":
        cache.put(kept(name))
    cache.put(kept("a", identity={"kind": "other"}))
    digest = next(each.digest for each in cache.stats().readers if each.identity["kind"] == "other")
    assert cache.gc(unused_for=3600) == 0
    assert cache.gc(digest=digest[:8], unused_for=3600) == 0
    assert cache.gc(digest=digest[:8]) == 1
    assert [each.identity for each in cache.stats().readers] == [IDENTITY]
    before = cache.stats().bytes
    cache.put(kept("large", text="x" * 500_000))
    assert cache.gc(unused_for=0) == 4
    assert cache.stats().bytes <= before
    assert cache.stats().readers == ()
    with pytest.raises(ValueError, match="to be told"):
        cache.gc()


def test_looking_up_is_using(cache, monkeypatch):
    cache.put(kept("a"))
    cache.put(kept("b"))
    now = time.time()
    monkeypatch.setattr(store.time, "time", lambda: now + 10 * 86400)
    cache.get_many([kept("a").key])
    assert cache.gc(unused_for=5 * 86400) == 1
    assert [each.key for each in cache.kept()] == [kept("a").key]


def test_counters_travel_and_add_up():
    one = Counters(hits=1, misses=3, calls=2, waited=1, input_tokens=10, seconds=0.5)
    total = one + Counters.from_dict(one.to_dict())
    assert (total.hits, total.misses, total.calls, total.seconds) == (2, 6, 4, 1.0)
    assert "(2 read by another process)" in summary_line(total)
