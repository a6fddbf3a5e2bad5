"""The sessions that how-to pages show are real."""

from __future__ import annotations

import doctest

import pytest
from fakeserver import FakeServer, says
from support import ROOT


@pytest.mark.parametrize("page", ["unjudged.md", "chunks.md"])
def test_the_python_sessions_are_real(page):
    found = doctest.testfile(str(ROOT / "docs" / "how-to" / page), module_relative=False)
    assert found.attempted >= 5
    assert found.failed == 0


def test_the_session_of_the_server_page_is_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "server-reader.md").read_text(encoding="utf-8")
    with FakeServer([says("Ann")]) as server:
        session = text.replace("http://localhost:8000/v1", server.url)
        test = doctest.DocTestParser().get_doctest(session, {}, "server-reader.md", None, 0)
        found = doctest.DocTestRunner().run(test)
    assert found.attempted >= 9
    assert found.failed == 0
    assert len(server.requests) == 2
