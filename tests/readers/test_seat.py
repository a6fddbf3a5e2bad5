"""However many processes read, one model is on the machine."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from readers_support import IDENTITY, Counting, Model, items, read_on_the_seat, texts

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.seat import SeatedReader, machine_seat


def calls(folder):
    """What was read, in order; fails where a second model came to life before the first was freed."""
    read, alive = [], 0
    for line in Counting(folder / "log").calls:
        alive += {"+": 1, "-": -1}.get(line, 0)
        assert alive in (0, 1)
        if line not in "+-":
            assert alive == 1
            read.append(line)
    assert alive == 0
    return read


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("cached", [True, False])
def test_four_processes_make_as_many_calls_as_one(tmp_path, cached):
    names = [[f"{(start + step) % 12}" for step in range(12)] for start in (0, 3, 6, 9)]
    if not cached:  # without a cache each process is answered for itself
        names = [each[:3] for each in names]
    with ProcessPoolExecutor(4) as pool:
        found = list(pool.map(read_on_the_seat, [tmp_path] * 4, names, [cached] * 4))
    assert found == names
    assert sorted(calls(tmp_path), key=int) == [str(name) for name in range(12)]


def test_readers_of_two_kinds_take_turns(tmp_path):
    with ProcessPoolExecutor(4) as pool:
        found = list(
            pool.map(read_on_the_seat, [tmp_path] * 4, ["ab", "cd", "ef", "gh"], [False] * 4, ["one", "two"] * 2)
        )
    assert found == [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]]
    assert sorted(calls(tmp_path)) == list("abcdefgh")


def test_what_a_killed_process_did_not_answer_the_next_one_reads(tmp_path):
    log = tmp_path / "log"
    holder = multiprocessing.Process(target=read_on_the_seat, args=(tmp_path, "abcd", False, "counting", 0.3, 2))
    holder.start()
    wait_for(log.exists)
    found = read_on_the_seat(tmp_path, "xyz", False)
    holder.join()
    assert holder.exitcode == -signal.SIGKILL
    assert found == ["x", "y", "z"]
    assert "".join(Counting(log).calls).replace("+", "").endswith("xyz-")


def test_the_model_lives_until_it_is_closed_and_is_made_again(tmp_path):
    made = []

    def make():
        made.append(Model(tmp_path / "log"))
        return made[-1]

    reader = SeatedReader(make, IDENTITY, seat=tmp_path / "seat")
    assert texts(reader, items("a")) == ["a"]
    assert texts(reader, items("b")) == ["b"]
    assert len(made) == 1
    reader.close()
    assert calls(tmp_path) == ["a", "b"]
    assert texts(reader, items("c")) == ["c"]
    reader.close()
    reader.close()
    assert calls(tmp_path) == ["a", "b", "c"]
    assert len(made) == 2


def test_two_readers_of_a_process_share_the_model(tmp_path):
    readers = [SeatedReader(lambda: Model(tmp_path / "log"), IDENTITY, seat=tmp_path / "seat") for _ in "ab"]
    assert [texts(reader, items(name)) for reader, name in zip(readers, "ab", strict=True)] == [["a"], ["b"]]
    for reader in readers:
        reader.close()
    assert calls(tmp_path) == ["a", "b"]


def test_a_reader_without_an_identity_reads_for_itself(tmp_path):
    readers = [SeatedReader(lambda: Model(tmp_path / "log"), None, seat=tmp_path / "seat") for _ in "ab"]
    assert [texts(reader, items(name)) for reader, name in zip(readers, "ab", strict=True)] == [["a"], ["b"]]
    for reader in readers:
        reader.close()
    assert calls(tmp_path) == ["a", "b"]
    assert Counting(tmp_path / "log").calls.count("+") == 2


def test_an_exception_of_the_reader_is_the_callers(tmp_path):
    def before(item):
        if item.documents[0].title == "b":
            raise LookupError("no b")

    reader = SeatedReader(lambda: Model(tmp_path / "log", before=before), IDENTITY, seat=tmp_path / "seat")
    with pytest.raises(LookupError, match="no b"):
        texts(reader, items("a", "b", "c"))
    assert texts(reader, items("c")) == ["c"]
    reader.close()
    assert calls(tmp_path) == ["a", "c"]


def test_a_model_that_cannot_be_made_is_said_to_all_who_wait(tmp_path):
    def make():
        time.sleep(0.3)
        raise GateError("there is no model t5-smal")

    here = SeatedReader(make, IDENTITY, seat=tmp_path / "seat")
    other = SeatedReader(make, IDENTITY, seat=tmp_path / "seat")
    with pytest.raises(GateError, match=r"^there is no model t5-smal"):
        texts(here, items("a"))
    with pytest.raises(GateError, match="there is no model t5-smal"):
        texts(other, items("a"))


def test_a_model_that_is_not_what_was_promised_reads_nothing(tmp_path):
    reader = SeatedReader(lambda: Model(tmp_path / "log"), {"kind": "other"}, seat=tmp_path / "seat")
    with pytest.raises(GateError, match="promised kind='other' but made kind='counting'"):
        texts(reader, items("a"))
    assert Counting(tmp_path / "log").calls[:2] == ["+", "-"]


def test_a_reading_that_is_missing_is_an_error(tmp_path):
    class Silent(Model):
        def read(self, items):
            return iter(())

    reader = SeatedReader(lambda: Silent(tmp_path / "log"), IDENTITY, seat=tmp_path / "seat")
    with pytest.raises(GateError, match="no reading for 2 of 2"):
        texts(reader, items("a", "b"))


def test_whoever_stops_listening_asks_for_nothing_more(tmp_path):
    reader = SeatedReader(
        lambda: Model(tmp_path / "log", before=lambda item: time.sleep(0.05)), IDENTITY, seat=tmp_path / "seat"
    )
    readings = reader.read(items("a", "b"))
    assert next(readings)[1].text == "a"
    readings.close()
    assert texts(reader, items("c")) == ["c"]
    reader.close()
    assert calls(tmp_path)[-1] == "c"


def test_who_pauses_longer_than_the_lease_is_still_answered(tmp_path):
    reader = SeatedReader(
        lambda: Model(tmp_path / "log", before=lambda item: time.sleep(0.3)),
        IDENTITY,
        seat=tmp_path / "seat",
        lease=0.2,
    )
    readings = reader.read(items("a", "b", "c"))
    assert next(readings)[1].text == "a"
    time.sleep(1.0)
    assert [reading.text for _, reading in readings] == ["b", "c"]
    reader.close()


def test_the_seat_of_a_machine_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = machine_seat()
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0
    assert machine_seat() == folder


def test_who_was_answered_meanwhile_makes_no_model(tmp_path):
    made, begun, go = [], threading.Event(), threading.Event()

    def make():
        made.append(threading.current_thread())
        begun.set()
        assert go.wait(20)
        raise AbsentReaderError("there is no such device")

    first, second = (SeatedReader(make, IDENTITY, seat=tmp_path) for _ in range(2))
    sit_down = second._mail.sit_down

    def sit_down_late():
        # The second has seen no answer yet. Now there is one, and the seat is free.
        go.set()
        made[0].join(20)
        return sit_down()

    second._mail.sit_down = sit_down_late
    with ThreadPoolExecutor(2) as pool:
        told = [pool.submit(texts, first, items("a"))]
        assert begun.wait(20)
        told.append(pool.submit(texts, second, items("b")))
        assert [str(each.exception(20)) for each in told] == [
            "there is no such device",
            "the process that reads for all could not: there is no such device",
        ]
    assert len(made) == 1


def test_a_model_that_is_not_here_is_told_to_all_as_that(tmp_path):
    begun, asked = threading.Event(), threading.Event()

    def make():
        begun.set()
        assert asked.wait(20)
        raise AbsentReaderError("there is no such device")

    def read(reader):
        with pytest.raises(AbsentReaderError) as caught:
            texts(reader, items("a"))
        return str(caught.value)

    first, second = (SeatedReader(make, IDENTITY, seat=tmp_path) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        told = [pool.submit(read, first)]
        assert begun.wait(20)
        told.append(pool.submit(read, second))
        mail = second._mail
        wait_for(lambda: sum(map(len, mail.asked(second._name).values())) == 2)
        asked.set()
        assert [each.result(20) for each in told] == [
            "there is no such device",
            "the process that reads for all could not: there is no such device",
        ]
