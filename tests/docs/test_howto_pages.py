"""The sessions that how-to pages show are real."""

from __future__ import annotations

import doctest

import pytest
from support import ROOT


@pytest.mark.parametrize("page", ["unjudged.md", "chunks.md"])
def test_the_python_sessions_are_real(page):
    found = doctest.testfile(str(ROOT / "docs" / "how-to" / page), module_relative=False)
    assert found.attempted >= 5
    assert found.failed == 0
