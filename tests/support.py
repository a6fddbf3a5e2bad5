"""What several test modules share: where real data lies, and how a pytester session is cleaned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("RETRIEVAL_TEST_DATA", ROOT.parent / "shared"))


def testdata(path: str) -> Path:
    """A file or folder of the conformance collections; the test is skipped where they are absent."""
    place = DATA / path
    if not place.exists():
        pytest.skip(f"{path} is not here; set RETRIEVAL_TEST_DATA to the folder of the conformance collections")
    return place


testdata.__test__ = False  # type: ignore[attr-defined]  # its name begins like a test's
