"""The tutorial, followed from an empty folder: every file is written, every command prints what the page shows."""

from __future__ import annotations

import pages
import pytest
from support import ROOT

PAGE = ROOT / "docs" / "tutorial.md"


def test_the_tutorial_can_be_followed(tmp_path):
    pytest.importorskip("xdist")
    assert pages.follow(PAGE, tmp_path, home="/home/you/library") >= 10


def test_it_leads_to_every_how_to_page():
    text = PAGE.read_text(encoding="utf-8").partition("## Where to go next\n")[2]
    assert [page.name for page in (ROOT / "docs/how-to").glob("*.md") if f"](how-to/{page.name})" not in text] == []
