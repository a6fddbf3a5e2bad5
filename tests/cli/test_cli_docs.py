"""The pages say what the program prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from support import ROOT

PAGE = ROOT / "docs" / "reference" / "command-line.md"
PAGES = (
    PAGE,
    *(ROOT / "docs" / f"{page}.md" for page in ("how-to/slices", "how-to/configurations", "explanation/rules")),
)
EXAMPLE = ROOT / "examples" / "handbook"
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example with the modules that the pages add to it."""
    pytest.importorskip("bm25s")
    folder = tmp_path_factory.mktemp("docs") / "handbook"
    shutil.copytree(EXAMPLE, folder)
    for page in PAGES:
        for block in _files(page):
            (folder / block.name).write_text(block.text, encoding="utf-8")
    return folder


def _files(page: Path) -> list[pages.Block]:
    return [block for block in pages.blocks(page, "python", "yaml") if block.name]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_outputs_are_real(handbook, page):
    sessions = pages.sessions(page)
    assert len(sessions) >= 3
    for command, shown in sessions:
        pages.assert_printed(pages.run(command, handbook), shown, command)


def test_the_tests_on_the_pages_pass(handbook):
    names = [block.name for page in PAGES for block in _files(page)]
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
