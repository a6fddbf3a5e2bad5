"""The reference page says what the program prints."""

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
EXAMPLE = ROOT / "examples" / "handbook"
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example with the module that the page adds to it."""
    pytest.importorskip("bm25s")
    folder = tmp_path_factory.mktemp("docs") / "handbook"
    shutil.copytree(EXAMPLE, folder)
    (source,) = re.findall(r"```python\n# refactored.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "refactored.py").write_text(source)
    return folder


def _steady(text: str) -> str:
    return re.sub(r"in [\d.]+ s,", "in S s,", text)


def test_the_outputs_are_real(handbook):
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
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


@pytest.mark.parametrize("command", ["run", "evaluate", "compare"])
def test_every_option_is_on_the_page(program, command):
    page = PAGE.read_text(encoding="utf-8")
    options = set(OPTION.findall(program(command, "--help").out.split("Example:")[0]))
    told = set(OPTION.findall(page))
    assert options - told - {"-h", "--output", "--measure", "--verbose", "--dataset"} == set()
    assert told <= options | set(OPTION.findall(program("run", "--help").out)) | set(
        OPTION.findall(program("evaluate", "--help").out)
    ) | set(OPTION.findall(program("compare", "--help").out)) | {"-vv", "-c"}
