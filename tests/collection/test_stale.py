"""Stale gold is an error or is left out; moved gold is measured where it stands; neither is ever a miss."""

from __future__ import annotations

import pytest

from pytest_retrieval_eval import Dataset, GateError, Span
from pytest_retrieval_eval.collection.spans.stale import current_spans

OLD = "Refunds take 14 days. Returns are free for members."


def dataset(*spans, **corpus):
    return Dataset.of(spans=spans, corpus=corpus or None, name="shop")


def span(text, query="q1", *, known=True):
    start = OLD.index(text)
    return Span(query, "guide", start, start + len(text), text=text if known else None)


def test_gold_that_still_stands_is_left_alone():
    spans, notes = current_spans(dataset(span("14 days"), guide=OLD))
    assert ([one.start for one in spans.of_query("q1")], notes) == ([13], ())


def test_without_a_corpus_nothing_can_be_said():
    spans, notes = current_spans(dataset(span("14 days")))
    assert (len(spans), notes) == (1, ())
    assert current_spans(Dataset.of(qrels={"q": ["a"]})) == (None, ())


def test_moved_gold_is_measured_where_it_stands_and_said():
    spans, notes = current_spans(dataset(span("14 days"), span("Returns are free"), guide="Now. " + OLD))
    assert [one.start for one in spans.of_query("q1")] == [18, 27]
    assert notes == (
        "2 of 2 gold spans (100 %) were moved with the source: --retrieval-reanchor=report lists them, "
        "--retrieval-reanchor=write keeps them",
    )


def test_lost_and_ambiguous_gold_is_an_error_with_both_texts():
    new = "Refunds take two weeks. Returns are free for members. Returns are free, mostly."
    data = dataset(span("14 days"), span("Returns are free", "q2"), guide=new)
    with pytest.raises(GateError) as caught:
        current_spans(data)
    said = str(caught.value)
    assert said.startswith("2 gold spans of 2 of shop are stale: the source was edited")
    assert "lost: query 'q1', span 1: query 'q1', 'guide' 13-20: gold '14 days', at 13-20 now 'two wee'" in said
    assert "ambiguous: query 'q2', span 1: " in said
    assert "(it stands in 2 places)" in said
    assert "allow_stale=n" in said
    with pytest.raises(GateError, match="2 gold spans of 2 of shop are stale, 1 tolerated"):
        current_spans(data, 1)
    with pytest.raises(GateError, match="every gold span of shop is stale"):
        current_spans(data, 2)


def test_tolerated_gold_is_left_out_and_said():
    data = dataset(span("14 days"), span("Returns are free", "q2"), guide=OLD.replace("14", "15"))
    spans, notes = current_spans(data, 1)
    assert spans.query_ids == ("q2",)
    assert notes[0].startswith("1 stale gold span left out: lost: ")


def test_many_stale_spans_are_not_all_listed():
    data = dataset(*(span("14 days", f"q{number}") for number in range(12)), guide="Refunds take two weeks. Yes.")
    with pytest.raises(GateError, match=r"12 gold spans of 12 .*; and 2 more\. Mend them"):
        current_spans(data)


def test_gold_that_nobody_can_check_is_said():
    _, notes = current_spans(dataset(span("14 days", known=False), span("Returns"), guide=OLD))
    assert notes == (
        "1 of 2 gold spans has neither text nor hash: nobody can tell whether the source has moved away from them",
    )
