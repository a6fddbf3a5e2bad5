"""What the README shows is what happens: its project runs, its failure is a real one, its tables are complete."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pages
import pytest
from support import ROOT

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
HANDBOOK = ROOT / "examples" / "handbook"
pytest.importorskip("bm25s", reason="the bundled example needs the demo extra")


def pytest_in(folder, *arguments, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture
def newcomer(tmp_path):
    """A project with the README's files, word for word, around a copy of the example's data."""
    shutil.copytree(HANDBOOK / "eval", tmp_path / "eval", ignore=shutil.ignore_patterns("baselines"))
    package = tmp_path / "myapp"
    package.mkdir()
    (package / "__init__.py").touch()
    code = (HANDBOOK / "search.py").read_text(encoding="utf-8")
    code = code.replace(
        'corpus_path: str | Path = CORPUS, tokenizer: str = "stemmed"', '_: str, tokenizer: str = "stemmed"'
    )
    code = code.replace(
        "Path(corpus_path).read_text", f"Path({str(HANDBOOK / 'eval/handbook/corpus.jsonl')!r}).read_text"
    )
    (package / "search.py").write_text(code, encoding="utf-8")
    for block in pages.blocks(PAGE, "toml", "python"):
        if block.name:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
    return tmp_path


def test_the_first_gate_works_as_written(newcomer):
    first = pytest_in(newcomer)
    assert first.returncode == 1
    assert "--retrieval-update=new" in first.stdout
    update = pytest_in(newcomer, "--retrieval-update=new")
    assert update.returncode == 0, update.stdout
    assert "baseline written" in update.stdout
    after = pytest_in(newcomer)
    assert after.returncode == 0, after.stdout
    assert "3 passed" in after.stdout


def test_the_commands_work_as_written(newcomer):
    with (newcomer / "myapp" / "search.py").open("a") as file:
        file.write('\n\nsearch = Searcher.open("index/").search\n')
    assert pytest_in(newcomer, "--retrieval-update=new").returncode == 0
    commands = [
        line
        for block in pages.blocks(PAGE, "sh")
        for line in block.text.splitlines()
        if line.startswith("pytest-retrieval-eval ")
    ]
    assert [command.split()[1] for command in commands] == ["run", "evaluate", "compare"]
    for command in commands:
        program = [sys.executable, "-m", "pytest_retrieval_eval.cli", *command.split()[1:]]
        done = subprocess.run(program, cwd=newcomer, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_the_engine_without_pytest_gives_what_the_comment_says(capsys):
    text = next(block.text for block in pages.blocks(PAGE, "python") if "evaluate(" in block.text)
    exec(compile(text, "README.md", "exec"), {})
    assert capsys.readouterr().out.split() == text.rpartition("#")[2].split()


def test_the_failure_is_copied_from_a_real_run():
    red = pytest_in(HANDBOOK, "--tb=short", "-k", "recall", "-vv", HANDBOOK_TOKENIZER="refactored").stdout
    red += pytest_in(HANDBOOK, "--tb=short", "-k", "recall", HANDBOOK_TOKENIZER="refactored").stdout
    printed = {re.sub(r"^E {3}(pytest_retrieval_eval\.errors\.GateFailure: )?", "", line) for line in red.splitlines()}
    shown = pages.blocks(PAGE, "text")[0].text.splitlines()
    missing = [line for line in shown if line != "..." and line not in printed]
    assert missing == []


def test_the_demo_is_green_then_red_and_ends_well():
    done = subprocess.run([sys.executable, HANDBOOK / "demo.py"], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    green, red = done.stdout.split("2. The same suite")
    assert "6 passed" in green
    assert "failed" not in green.rpartition("retrieval gates")[2]
    assert "recall@5 >= baseline: FAILED" in red
    assert "6 failed" in red
    assert "The failure above is the point of this demo" in red


def test_the_demo_notices_when_it_does_not_show_what_it_should(tmp_path):
    folder = tmp_path / "handbook"
    shutil.copytree(HANDBOOK, folder)
    (folder / "test_retrieval.py").write_text("def test_it():\n    pass\n")
    (folder / "handbook.gates.yaml").unlink()
    done = subprocess.run([sys.executable, folder / "demo.py"], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 1


def test_every_keyword_of_a_gate_is_in_the_table_of_keywords():
    from pytest_retrieval_eval.gates.options import KEYWORDS

    page = (ROOT / "docs/reference/pytest.md").read_text(encoding="utf-8")
    table = page.partition("## Keywords\n")[2].partition("\n## ")[0]
    first_cells = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(first_cells))) == sorted(KEYWORDS)


def prose(page):
    """A page without its fenced blocks and code, whose brackets are no links."""
    return re.sub(r"`[^`\n]*`", "code", re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL))


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    headings = [re.sub(r"[^\w\- ]", "", line.lower()) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {heading.replace(" ", "-") for heading in headings}


def test_links_in_the_documents_lead_somewhere():
    folders = ("docs", "examples", "benchmarks", "tests")
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]
    checked = 0
    for page in pages:
        for target in re.findall(r"\]\(([^)]+)\)", prose(page.read_text(encoding="utf-8"))):
            if "://" in target:
                continue
            checked += 1
            path, _, anchor = target.partition("#")
            place = page.parent / path if path else page
            assert place.exists(), f"{page}: {target}"
            if anchor:
                assert anchor in anchors(place.read_text(encoding="utf-8")), f"{page}: {target}"
    assert checked > 100


def test_the_list_of_pages_has_each_page_once_under_its_kind():
    listed = re.split(r"^\* ", (ROOT / "docs/README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [part.partition("\n")[0].partition(":")[0] for part in listed] == [
        "Tutorial",
        "How-to",
        "Reference",
        "Explanation",
    ]
    for part, folder in zip(listed, ("", "how-to", "reference", "explanation"), strict=True):
        linked = re.findall(r"\]\(([^)]+)\)", part)
        here = (ROOT / "docs" / folder).glob("*.md")
        assert sorted(linked) == sorted(f"{folder}/{page.name}".lstrip("/") for page in here if page.stem != "README")


def test_examples_that_the_documents_name_exist():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"\b(?:examples|benchmarks)/[\w/.]*\w", page.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{page}: {name}"
