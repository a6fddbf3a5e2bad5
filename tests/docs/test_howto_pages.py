"""The sessions that how-to pages show are real."""

from __future__ import annotations

import doctest
import json
import re

import pages
import pytest
import yaml
from fakeserver import FakeServer, says
from support import QRELS, ROOT, TEXTS

from pytest_retrieval_eval.gates.imported import import_made
from pytest_retrieval_eval.labels.judging.judge import Pair
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.readings.store import MODES


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


def test_a_page_that_gates_on_a_baseline_says_how_the_first_one_comes_about():
    gated = re.compile(r"(?:>=|<=) baseline")
    told = {}
    for page in (ROOT / "docs/how-to").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if gated.search(text):
            told[page.name] = (
                "--retrieval-update=new" in text or "(ci.md#baselines-are-files-in-the-repository)" in text
            )
    assert len(told) > 10
    assert [name for name, said in told.items() if not said] == ["unjudged.md"]  # it begins with a failed gate


def written(page, folder):
    """The named files of a page, in a folder."""
    for block in pages.blocks(page):
        if block.name:
            (folder / block.name).write_text(block.text)


def test_the_page_of_judged_pools_can_be_followed(project):
    page, folder = ROOT / "docs/how-to/judged-pool.md", project.path
    project.dataset("eval/handbook")
    project.ini("pythonpath = .", datasets=("handbook = eval/handbook",))
    corpus = [{"_id": doc, "text": "It answers every question."} for doc in "abcd"]
    (folder / "eval/handbook/corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / "myapp").mkdir()
    (folder / "myapp/search.py").write_text("def bm25(query):\n    return ['a', 'b']\n\n\ndense = bm25\n")
    project.conftest({query: ["a", "b"] for query in QRELS})
    written(page, folder)
    pool, first, gap = (block.text.splitlines() for block in pages.blocks(page, "sh")[:3])
    for command in pool[1:]:  # the first installs
        printed = pages.run(f"{command} --judge judging:judge" if " judge " in command else command, folder)
    assert "graded 8, reused 0" in printed
    assert "no baseline yet" in pages.run("pytest", folder)
    assert [pages.run(command, folder).count("baseline written") for command in first] == [1]
    assert "1 passed" in pages.run("pytest", folder)
    project.conftest({query: ["a", "b", "c"] for query in QRELS})
    printed = [pages.run(gap[0], folder), pages.run(gap[2], folder)]
    assert "1 inconclusive" in printed[0]
    assert "graded 4, reused 0" in printed[1]
    assert "1 passed" in pages.run("pytest", folder)


def test_the_page_of_agents_can_be_followed(project, dist):
    page, folder = ROOT / "docs/how-to/agents.md", project.path
    project.dataset("eval/small", qrels={"q1": {"d4": 1, "d2": 1}})
    (folder / "runs").mkdir()
    (folder / "runs/agent.traces.jsonl").write_text(pages.blocks(page, "json")[0].text)
    rows = [{"_id": query, "text": TEXTS[query]} for query in ("q1", "q2")]
    (folder / "eval/small/queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "conftest.py").unlink()
    project.gates(pages.blocks(page, "yaml")[0].text)
    project.run("--retrieval-update=new", *dist).assert_outcomes(passed=6)
    project.run(*dist).assert_outcomes(passed=6)

    (folder / "small.gates.yaml").unlink()
    asked = folder / "asked"
    (folder / "myapp.py").write_text(
        f"def calls_of(text):\n    with open({str(asked)!r}, 'a') as file:\n        file.write(text)\n"
        "    return [['d4'], {'query': text, 'hits': ['d2']}]\n"
    )
    written(page, folder)
    project.ini("pythonpath = .")
    project.run(*dist).assert_outcomes(passed=1)
    assert asked.read_text() == TEXTS["q1"] + TEXTS["q2"]


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
