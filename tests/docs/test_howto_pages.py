"""The sessions that how-to pages show are real."""

from __future__ import annotations

import doctest
import re

import pages
import pytest
import yaml
from fakeserver import FakeServer, says
from support import ROOT

from pytest_retrieval_eval.gates.imported import import_made
from pytest_retrieval_eval.labels.judging.judge import Pair
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.store import MODES


@pytest.mark.parametrize(
    "page",
    [
        "how-to/unjudged.md",
        "how-to/answers.md",
        "how-to/chunks.md",
        "how-to/erag.md",
        "how-to/new-chunker.md",
        "how-to/stale-gold.md",
        "how-to/pipeline.md",
        "how-to/latency.md",
        "how-to/judge-validation.md",
        "how-to/judged-pool.md",
        "how-to/pool-report.md",
        "how-to/questions.md",
        "how-to/abstention.md",
        "how-to/agents.md",
        "how-to/configurations.md",
        "reference/formats.md",
    ],
)
def test_the_python_sessions_are_real(page):
    found = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert found.attempted >= 5
    assert found.failed == 0


@pytest.mark.parametrize(
    ("page", "reply", "examples", "calls"),
    [
        ("server-reader.md", "Ann", 9, 2),
        ("judges.md", '{"thought": "It names the author.", "grade": 2}', 11, 1),
    ],
)
def test_the_sessions_with_a_server_are_real(page, reply, examples, calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    with FakeServer([says(reply)]) as server:
        session = text.replace("http://localhost:8000/v1", server.url)
        test = doctest.DocTestParser().get_doctest(session, {}, page, None, 0)
        found = doctest.DocTestRunner().run(test)
    assert found.attempted >= examples
    assert found.failed == 0
    assert len(server.requests) == calls


def test_the_judge_of_the_page_of_judged_pools_grades(tmp_path, monkeypatch):
    (module,) = [each for each in pages.blocks(ROOT / "docs/how-to/judged-pool.md") if each.name == "judging.py"]
    (tmp_path / "judging.py").write_text(module.text)
    monkeypatch.syspath_prepend(tmp_path)
    judge = import_made("judging:judge", "--judge", "judge", ("grade",), example="judging:judge")
    pairs = [Pair("q1", doc, "Who wrote it?", text) for doc, text in (("a", "Ann wrote it?"), ("b", "No rain."))]
    assert [graded.grade for _, graded in judge.grade(pairs)] == [2, 0]


@pytest.mark.model
def test_the_sessions_with_a_model_are_real(tmp_path, monkeypatch):
    from reader_models import t5, tokenizer  # torch, which the other pages need not import

    t5().save_pretrained(tmp_path / "models" / "reader")
    tokenizer().save_pretrained(tmp_path / "models" / "reader")
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(ROOT / "docs" / "how-to" / "readers.md"), module_relative=False)
    assert found.attempted >= 10
    assert found.failed == 0


def test_the_settings_that_the_page_of_readers_shows_make_readers():
    page = ROOT / "docs" / "how-to" / "readers.md"
    settings = [yaml.safe_load(block.text) for block in pages.blocks(page, "yaml")]
    assert [each["kind"] for each in settings] == ["causal", "server", "ray"]
    for each in settings:
        reader_from(each).close()
    for block in pages.blocks(page, "sh"):
        for option in re.findall(r"--retrieval-cache-mode=(\w+)", block.text):
            assert option in MODES
