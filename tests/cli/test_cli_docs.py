"""The pages say what the program prints."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

PAGE = ROOT / "docs" / "reference" / "command-line.md"
PAGES = (PAGE, ROOT / "docs" / "how-to" / "slices.md", ROOT / "docs" / "explanation" / "rules.md")
MODULE = re.compile(r"```(?:python|yaml)\n# (\w+\.py|\w+\.gates\.yaml)\n(.*?)```", re.DOTALL)
EXAMPLE = ROOT / "examples" / "handbook"
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example with the modules that the pages add to it."""
    pytest.importorskip("bm25s")
    folder = tmp_path_factory.mktemp("docs") / "handbook"
    shutil.copytree(EXAMPLE, folder)
    for page in PAGES:
        for name, source in MODULE.findall(page.read_text(encoding="utf-8")):
            (folder / name).write_text(source, encoding="utf-8")
    return folder


def _steady(text: str) -> str:
    return re.sub(r"in [\d.]+ s,", "in S s,", text)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_outputs_are_real(handbook, page):
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for command, expected in blocks:
        program, *arguments = shlex.split(command)
        assert program == "pytest-retrieval-eval"
        done = subprocess.run(
            [sys.executable, "-m", "pytest_retrieval_eval.cli", *arguments],
            cwd=handbook,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=120,
            check=False,
        )
        printed, wanted = _steady(done.stdout), _steady(expected)
        if wanted.endswith("…\n"):  # the page cuts a long output there
            wanted = wanted.removesuffix("…\n")
            printed = printed[: len(wanted)]
        assert printed == wanted, f"$ {command}\n{done.stdout}"


def test_the_tests_on_the_pages_pass(handbook):
    names = [name for page in PAGES for name, _ in MODULE.findall(page.read_text(encoding="utf-8"))]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *(n for n in names if re.match(r"test_|.*\.gates\.yaml", n)),
        ],
        cwd=handbook,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


COMMANDS = (
    *(
        "run",
        "evaluate",
        "compare",
        "compare-all",
        "thresholds",
        "spans",
        "stages",
        "correlate",
        "efficiency",
        "questions",
    ),
    *("pool", "judge"),
    *(f"judgments {what}" for what in ("check", "compact", "show", "worksheet", "import", "export")),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_on_the_page(program, command):
    page = PAGE.read_text(encoding="utf-8")
    options = set(OPTION.findall(program(*command.split(), "--help").out.split("Example:")[0]))
    told = set(OPTION.findall(page))
    assert options - told - {"-h", "--help", "--output", "--measure", "--verbose", "--dataset"} == set()
    every = options.union(*(OPTION.findall(program(*other.split(), "--help").out) for other in COMMANDS))
    assert told <= every | {"-vv", "-c"}
