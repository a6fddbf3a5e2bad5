"""KILT's data sets: answers, pages and passages that prove them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.kilt import Kilt, PagePart, page_passages, passages
from pytest_retrieval_eval.errors import DataError

PAGE = {
    "wikipedia_id": 7,
    "wikipedia_title": "Graz",
    "text": ["Graz\n", "It lies on the Mur.", "It has a clock tower."],
}


def row(query_id, *outputs):
    return {"id": query_id, "input": f"{query_id}?", "output": list(outputs)}


def place(page, *at):
    names = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")
    return {"wikipedia_id": page, "title": "Graz", **dict(zip(names, at, strict=False))}


def read(folder, *rows):
    path = folder / "nq-dev-kilt.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return Kilt.read(path)


def test_answers_and_pages(tmp_path):
    kilt = read(
        tmp_path,
        row("q1", {"answer": "Mur", "provenance": [place("7", 1, 0, 1, 19)]}, {"answer": "the Mur"}),
        row("q2", {"provenance": [place("7"), place("8")]}, {"answer": "tower", "provenance": [place("7", 2)]}),
        row("q3"),
    )
    assert kilt.queries.text("q1") == "q1?"
    assert kilt.answers is not None
    assert kilt.answers.to_dict() == {"q1": ["Mur", "the Mur"], "q2": ["tower"], "q3": []}
    assert kilt.page_qrels().to_dict() == {"q1": {"7": 1.0}, "q2": {"7": 1.0, "8": 1.0}}


def test_passages_that_hold_the_place(tmp_path):
    parts = page_passages(PAGE, words=4)
    assert [(part.id, part.text) for part in parts] == [
        ("7#0", "Graz It lies on the"),
        ("7#1", "Graz Mur. It has a"),
        ("7#2", "Graz clock tower."),
    ]
    kilt = read(
        tmp_path,
        row("mur", {"answer": "x", "provenance": [place(7, 1, 15, 1, 18)]}),
        row("tower", {"provenance": [place(7, 2, 9, 2, 20)]}),
        row("first", {"provenance": [place(7, 1)]}),
        row("second", {"provenance": [place(7, 2)]}),
        # It ends where the word "Mur." begins: touching is not overlapping.
        row("lies", {"provenance": [place(7, 1, 0, 1, 15)]}),
    )
    assert {query: list(docs) for query, docs in kilt.passage_qrels(parts).to_dict().items()} == {
        "mur": ["7#1"],
        "tower": ["7#2"],
        "first": ["7#0", "7#1"],
        "second": ["7#1", "7#2"],
        "lies": ["7#0"],
    }


@given(st.lists(st.lists(st.sampled_from(["a", "bc", "d.", "  "])).map(" ".join)), st.integers(1, 5))
def test_passages_hold_every_word_once(paragraphs, words):
    parts = passages("p", "", paragraphs, words=words)
    every = [word for paragraph in paragraphs for word in paragraph.split()]
    assert " ".join(part.text for part in parts).split() == every
    assert all(len(part.text.split()) == words for part in parts[:-1])
    for part in parts:
        (first, begin), (last, end) = part.start, part.end
        assert paragraphs[first][begin:].split()[0] == part.text.split()[0]
        assert paragraphs[last][:end].split()[-1] == part.text.split()[-1]


def test_the_title_stands_before_each_passage_once():
    assert passages("7", "Graz", ["a b"], words=1, prefix_title=False)[1] == PagePart(
        "7#1", "7", "Graz", "b", (0, 2), (0, 3)
    )
    assert passages("7", "Graz", [" ", ""]) == []
    with pytest.raises(DataError, match="words=0"):
        passages("7", "Graz", ["a"], words=0)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"id": "q1"}], r"kilt.jsonl:1: the row has no 'input'"),
        ([row("q1"), row("q1")], r"kilt.jsonl:2: query 'q1' comes a second time"),
        ([{"id": "q1", "input": "?", "output": "x"}], "the output is"),
        ([row("q1", {"provenance": [{"title": "Graz"}]})], "expected an object with wikipedia_id"),
        ([row("q1", {"provenance": [place("7", -1)]})], "start_paragraph_id is -1"),
        ([row("q1", {"provenance": [place("7", 2, 5, 2, 5)]})], "ends at .* before it starts"),
    ],
)
def test_what_cannot_be_read(tmp_path, rows, sentence):
    with pytest.raises(DataError, match=sentence):
        read(tmp_path, *rows)


def test_a_place_that_no_passage_holds(tmp_path):
    parts = page_passages(PAGE)
    with pytest.raises(DataError, match="query 'q1': its provenance names page '7' and no paragraph"):
        read(tmp_path, row("q1", {"provenance": [place("7")]})).passage_qrels(parts)
    with pytest.raises(DataError, match="query 'q1': no passage of page '9' holds paragraph 1"):
        read(tmp_path, row("q1", {"provenance": [place("9", 1)]})).passage_qrels(parts)
    with pytest.raises(DataError, match="expected a row of KILT's knowledge source"):
        page_passages({"wikipedia_id": "7", "text": ["x"]})
