"""The same in Python, for slices: what people ask in their own words is what a second retriever is for."""

import pytest


@pytest.mark.retrieval(where={"type": "paraphrase"})
def test_the_second_retriever_finds_paraphrases(assert_recall_at, against):
    assert assert_recall_at(10, stage="lsa") >= against("bm25")


def test_no_kind_of_question_leaks(assert_metric):
    assert assert_metric("leaks@10", by="type") <= 0
