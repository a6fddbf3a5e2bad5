"""What the page of the cache shows is real."""

from __future__ import annotations

import doctest
import re
import shlex

import pages
from readers_support import items
from support import ROOT

from pytest_retrieval_eval.cli import main
from pytest_retrieval_eval.readers.reading import Reading, item_key
from pytest_retrieval_eval.readers.readings.cache import ReadingCache
from pytest_retrieval_eval.readers.readings.kept import Kept

PAGE = ROOT / "docs" / "how-to" / "cache.md"
TEXT = PAGE.read_text(encoding="utf-8")
IDENTITY = {"kind": "shouting"}


def test_the_python_session_is_real():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted >= 15
    assert found.failed == 0


def test_the_outputs_are_real(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with ReadingCache(tmp_path / ".retrieval-cache") as cache:
        for item in items("a", "b", "c"):
            cache.put(Kept(item_key(IDENTITY, item), IDENTITY, item, Reading("A", "ok", 1, 1)))
    sessions = pages.sessions(PAGE)
    assert len(sessions) == 4
    for command, expected in sessions:
        program, *arguments = shlex.split(command)
        assert program == "pytest-retrieval-eval"
        assert main(arguments) == 0
        printed = "".join(capfd.readouterr())
        assert re.sub(r"\([\d,]+ bytes", "(SIZE bytes", printed) == expected


def test_every_command_and_option_is_on_the_page(capfd):
    for command in ("stats", "gc", "verify", "selfcheck", "push", "pull"):
        assert f"`{command}" in TEXT
        assert main(["cache", command, "--help"]) == 0
        options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", capfd.readouterr().out))
        assert {option for option in options - {"--help"} if option not in TEXT} == set()
