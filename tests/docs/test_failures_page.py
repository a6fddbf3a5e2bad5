"""What the page of failures shows is what is printed."""

from __future__ import annotations

import pytest

pytest.importorskip("bm25s", reason="the bundled example needs the demo extra")


def test_the_page_of_failures_is_what_is_printed():
    import failures

    assert failures.PAGE.read_text(encoding="utf-8") == failures.page()
