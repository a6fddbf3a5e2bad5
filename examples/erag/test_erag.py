"""What a small instruct model can answer from the handbook's search results about money and contracts."""

import pytest

pytestmark = pytest.mark.retrieval(where={"area": ["finance", "legal"]})


def test_a_document_of_three_answers_the_question(metric):
    assert metric("hit@3") >= 0.08


def test_the_search_gives_the_reader_more_than_the_refactored_one(metric, against):
    assert metric("hit@3") >= against("refactored")


def test_what_is_of_use_stands_in_front(metric, against):
    assert metric("ndcg@3") >= against("refactored") - 0.02
