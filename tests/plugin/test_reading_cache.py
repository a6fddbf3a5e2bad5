"""`retrieval_cache` in a session: one reading for all processes, and one line that says what was read."""

from __future__ import annotations

import pytest

from pytest_retrieval_eval.readers.readings.store import MODES
from pytest_retrieval_eval.settings import CACHE, CACHE_MODES, Settings

CONFTEST = """
import os, pytest
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.reading import Item, Passage, Reading

LOG = {log!r}

class Reader:
    identity = {{"kind": "counting"}}
    def read(self, items):
        for number, item in enumerate(items):
            with open(LOG, "a") as file:
                file.write("x")
            yield number, Reading(item.documents[0].text, "ok", 5, 1)
    def close(self):
        pass

@pytest.fixture(scope="session")
def read(retrieval_cache):
    reader = CachedReader(Reader, retrieval_cache, identity=Reader.identity)
    def read(*texts):
        items = [Item("who?", (Passage(text),)) for text in texts]
        return [reading.text for _, reading in sorted(reader.read(items), key=lambda found: found[0])]
    yield read
    reader.close()
"""
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(read, number):
    assert read("Ann", "Bob", "Eve") == ["Ann", "Bob", "Eve"]
"""


@pytest.fixture
def reading(project):
    project.test(CONFTEST.format(log=str(project.path / "log")), "conftest.py")
    project.test(TESTS)
    return project


def calls(project):
    log = project.path / "log"
    return len(log.read_text()) if log.exists() else 0


def test_the_session_reads_once_and_the_next_one_not_at_all(reading, dist):
    result = reading.run(*dist)
    result.assert_outcomes(passed=4)
    assert calls(reading) == 3
    result.stdout.re_match_lines([r"reader: \d+ hits?, \d+ miss(es)?.*, 3 calls, 15 tokens in, 3 out, \d+\.\d s"])
    result = reading.run("--retrieval-cache-mode=ro", *dist)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["reader: 12 hits, 0 misses, 0 calls"])
    assert calls(reading) == 3
    assert (reading.path / CACHE / ".gitignore").exists()


def test_refresh_reads_all_once_more_in_one_process_or_many(reading, dist):
    reading.run()
    reading.run("--retrieval-cache-mode=refresh", *dist).assert_outcomes(passed=4)
    assert calls(reading) == 6


def test_a_miss_in_the_mode_ro_fails_and_says_how_to_fill(reading):
    result = reading.run("--retrieval-cache-mode=ro")
    result.assert_outcomes(failed=4)
    result.stdout.re_match_lines([r"E .*3 of 3 readings.*run: pytest --retrieval-cache-mode=rw"])
    assert calls(reading) == 0


def test_off_and_another_folder(reading):
    reading.run("--retrieval-cache-mode=off").assert_outcomes(passed=4)
    assert calls(reading) == 12
    assert not (reading.path / CACHE).exists()
    reading.ini("retrieval_cache = kept/readings")
    reading.run().assert_outcomes(passed=4)
    assert (reading.path / "kept" / "readings" / "readings.sqlite").exists()


def test_a_mode_that_is_none_ends_the_session(project):
    result = project.run("--retrieval-cache-mode=rm")
    assert result.ret == 4
    result.stderr.re_match_lines([".*--retrieval-cache-mode=rm: "])


def test_the_settings_know_every_mode(tmp_path):
    assert CACHE_MODES == MODES
    settings = Settings.parse({}, {}, root=tmp_path, here=tmp_path, ci=False)
    assert (settings.cache, settings.cache_mode) == (tmp_path / CACHE, "rw")


def test_nothing_is_said_where_nothing_was_read(project):
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n")
    result = project.run()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("reader: *")
    assert not (project.path / CACHE).exists()
