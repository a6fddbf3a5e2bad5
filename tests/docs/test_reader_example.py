"""The example of gates on what a reader can answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pages
from support import ROOT


def test_the_second_session_reads_nothing(tmp_path):
    def session(*arguments):
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
        cache = f"retrieval_cache={tmp_path}"
        done = subprocess.run(
            [*command, "-o", cache], cwd=ROOT / "examples/reader", capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stdout
        assert "3 passed" in done.stdout
        return done.stdout

    assert "1,123 misses, 1,123 calls" in session()
    assert "0 misses, 0 calls" in session("--retrieval-cache-mode=ro")


def test_what_a_language_model_has_read_is_looked_up_without_it(tmp_path):
    example = tmp_path / "examples" / "erag"
    shutil.copytree(ROOT / "examples/erag", example, ignore=shutil.ignore_patterns("models", "build", ".gitignore"))
    (tmp_path / "examples" / "handbook").symlink_to(ROOT / "examples/handbook")
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=example, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stdout
    (shown,) = [each for each in pages.blocks(ROOT / "examples/erag/README.md", "") if "PASSED" in each.text]
    for line in shown.text.splitlines():
        assert line in done.stdout


def test_the_files_of_the_page_work(project):
    page = ROOT / "docs/how-to/erag.md"
    first, conftest, looking = [each.text for each in pages.blocks(page, "python") if ">>>" not in each.text]
    ((gates,), (toml,)) = ([each.text for each in pages.blocks(page, kind)] for kind in ("yaml", "toml"))

    project.dataset("eval/handbook")
    folder = project.path / "eval/handbook"
    corpus = [{"_id": doc, "text": text} for doc, text in {"d7": "two days", "d8": "three days"}.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    answers = [{"query_id": query, "answers": ["two days"]} for query in ("q1", "q2", "q3")]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (project.path / "pytest.ini").unlink()
    # Without the fixture the reader of the ini file would read.
    (project.path / "pyproject.toml").write_text(toml)
    project.conftest({"q1": ["d7"], "q2": ["d8", "d7"], "q3": ["d8"], "q4": ["d8"]})
    own = project.path / "conftest.py"
    own.write_text(own.read_text() + conftest)
    (project.path / "myapp.py").write_text("def answer(query, texts):\n    return texts[0] if texts else ''\n")
    project.test(first)
    project.test(looking, "test_looking.py")
    project.gates(
        gates.replace("{kind: transformers, model: models/reader}", "{kind: callable, function: 'myapp:answer'}"),
        "handbook.gates.yaml",
    )
    project.run("--retrieval-update=new").assert_outcomes(passed=5)
    result = project.run("-rP")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["two days"])
