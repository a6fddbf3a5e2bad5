"""What tests of labels share."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_retrieval_eval.labels.judgments import Judgments


@pytest.fixture
def store(tmp_path: Path) -> Judgments:
    """An empty folder of judgments."""
    return Judgments(tmp_path / "judgments")
