"""What the page of failures shows is what is printed, and each rule and each source of labels is on it."""

from __future__ import annotations

import failures
import pytest

from pytest_retrieval_eval.gates.options import RULES
from pytest_retrieval_eval.labels.source import NAMES


def test_the_page_of_failures_is_what_is_printed():
    pytest.importorskip("bm25s", reason="the bundled example needs the demo extra")
    assert failures.PAGE.read_text(encoding="utf-8") == failures.page()


def test_every_rule_and_every_source_of_labels_has_a_section_that_says_how_to_read_it():
    sections = {
        heading: [shown.title.split("`")[1] for shown in group if shown.title.startswith("`")]
        for heading, group in failures.SHOWN.items()
    }
    assert sorted(sections["Rules"]) == sorted(RULES)
    assert sorted(sections["Where relevance comes from"]) == sorted(NAMES)
    assert all(shown.meaning for group in failures.SHOWN.values() for shown in group)
