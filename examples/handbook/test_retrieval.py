"""The gates of the handbook search: what has to hold before a change is merged."""

import pytest


def test_recall(assert_recall_at, baseline):
    assert assert_recall_at(5) >= baseline


def test_ranking(assert_ndcg_at, baseline):
    assert assert_ndcg_at(10) >= baseline - 0.01


def test_critical_queries_find_an_answer(assert_metric):
    assert assert_metric("hit(rel=2)@5", where={"critical": True}) >= 1.0


@pytest.mark.retrieval(where={"type": ["keyword", "acronym"]})
def test_exact_words_are_easy(assert_mrr_at):
    assert assert_mrr_at(10) >= 0.85
