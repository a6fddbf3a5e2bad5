"""The example of a judged pool: its page shows what its commands print, and the judgments are what the page says."""

from __future__ import annotations

import subprocess
import sys

import pages
import pytest
from support import ROOT

from pytest_retrieval_eval.labels.judgments import Judgments

EXAMPLE = ROOT / "examples" / "pool"


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """The folder in which the demo ran, and what it printed."""
    pytest.importorskip("bm25s")
    folder = tmp_path_factory.mktemp("pool")
    command = (sys.executable, "-B", "demo.py", str(folder))
    done = subprocess.run(
        command, cwd=EXAMPLE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stdout
    return folder, done.stdout


def test_the_page_shows_what_is_printed(story):
    blocks = pages.blocks(EXAMPLE / "README.md", "console")
    assert len(blocks) == 6
    for block in blocks:
        for part in pages.LEFT_OUT.split(block.text):
            assert part in story[1]


def test_a_pair_is_judged_once_and_people_go_first(story):
    store = Judgments(story[0] / "judgments")
    (judge,) = store.judges
    pairs = [(row.q, row.d) for row, _ in store.rows(judge)]
    people = {(row.q, row.d) for row, _ in store.rows("human")}
    assert (len(pairs), len(set(pairs)), len(people)) == (766 + 17, 766 + 17, 1291)
    assert not people & set(pairs)
    # What the page says of the rule: it has only zeros to give here.
    assert {row.g for row, _ in store.rows(judge)} == {0}
    assert store.check() == []
