"""The example of three chunkers: one baseline, no label changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pages
import pytest
from support import ROOT

EXAMPLE = ROOT / "examples" / "chunking"


def gates_with(chunker: str) -> tuple[int, str]:
    pytest.importorskip("bm25s", reason="the search of the example needs the extra demo")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--color=no"]
    done = subprocess.run(
        command, cwd=EXAMPLE, env=os.environ | {"CHUNKER": chunker}, capture_output=True, encoding="utf-8", check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("chunker", ["sections", "windows"])
def test_an_equally_good_chunking_passes(chunker):
    status, text = gates_with(chunker)
    assert status == 0, text
    assert "2 passed" in text


def test_one_that_cuts_evidence_apart_fails_and_says_where():
    status, text = gates_with("scraps")
    assert status == 1, text
    assert "2 failed" in text
    shown = [line.removeprefix("E   ").strip() for line in text.splitlines()]
    for page in (EXAMPLE / "README.md", ROOT / "docs" / "how-to" / "new-chunker.md"):
        (block,) = [each for each in pages.blocks(page, "") if each.text.startswith("q001 ")]
        for line in block.text.splitlines():
            assert line.strip() in shown, line


def test_the_figures_of_its_page():
    values = {}
    for chunker in ("windows", "scraps"):
        for name, after, before in re.findall(
            r"(span_\w+)\S*@5 >= baseline - 0.02:.*? ([01]\.\d+) is .*?\(baseline ([01]\.\d+)\)", gates_with(chunker)[1]
        ):
            values[chunker, name], values["sections", name] = after, before
    rows = re.findall(
        r"^\| `(\w+)` \| ([01]\.\d+) \| ([01]\.\d+) \|$", (EXAMPLE / "README.md").read_text(), re.MULTILINE
    )
    assert len(rows) == 3
    for chunker, found, covered in rows:
        assert (values[chunker, "span_recall"], values[chunker, "span_coverage"]) == (found, covered)
