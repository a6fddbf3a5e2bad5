"""Which characters each hit is: its own offsets, else those of the chunk table."""

from __future__ import annotations

import pytest

from pytest_retrieval_eval import Chunk, Chunks, DataError, Run
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.spans.extents import extents

TABLE = Chunks.of({"a#1": Chunk("a", 0, 10), "a#2": Chunk("a", 10, 25), "b#1": Chunk("b", 0, 8), "c#1": Chunk("c")})


def told(found, row):
    return found.doc_ids[found.doc[row]], int(found.start[row]), int(found.end[row])


def test_rows_stand_in_rank_order_of_the_run():
    run = Run.of({"q2": {"a#1": 0.1, "b#1": 0.9}, "q1": {"a#2": 1.0}})
    found = extents(run, TABLE)
    assert found.query_ids == run.query_ids
    assert found.bounds.tolist() == [0, 2, 3]
    assert [told(found, row) for row in range(3)] == [("b", 0, 8), ("a", 0, 10), ("a", 10, 25)]


def test_what_the_hit_says_comes_first():
    hits = [Hit("a#1", doc_id="z", start=3, end=5), Hit("a#2", doc_id="a"), Hit("b#1", start=1, end=2), Hit("b#1")]
    found = extents(Run.of({"q": hits}), TABLE)
    assert [told(found, row) for row in range(4)] == [("z", 3, 5), ("a", 10, 25), ("b", 1, 2), ("b", 0, 8)]
    alone = extents(Run.of({"q": hits[:1]}), None)
    assert told(alone, 0) == ("z", 3, 5)


@pytest.mark.parametrize(
    ("hit", "table", "said"),
    [
        (Hit("x"), TABLE, "which document the chunk 'x' is: the hit does not, and chunks lacks the chunk"),
        (Hit("x"), None, "which document the chunk 'x' is: the hit does not, and there is no chunk table"),
        (Hit("x", doc_id="a"), TABLE, "which characters of its document the chunk 'x' is: .* chunks lacks the chunk"),
        (Hit("c#1"), TABLE, "which characters of its document .* and chunks does not say it"),
        (Hit("x", start=0, end=3), None, "which document"),
        (Hit("a#1", doc_id="z"), TABLE, "it is part of 'z', and chunks that it is part of 'a'.*made with other chunks"),
    ],
)
def test_a_hit_of_which_nothing_is_known_is_an_error(hit, table, said):
    run = Run.of({"q1": [Hit("b#1", doc_id="b", start=0, end=8), hit]}, name="hybrid")
    with pytest.raises(DataError, match=f"run hybrid: query 'q1', rank 2: .*{said}"):
        extents(run, table)


def test_what_was_not_asked_for_need_not_be_known():
    run = Run.of({"q1": ["a#1", "x"], "q2": ["y"]})
    found = extents(run, TABLE, query_ids={"q1"}, depth=1)
    assert found.start.tolist() == [0, -1, -1]
    assert found.doc.tolist()[1:] == [-1, -1]
    assert not found.start.flags.writeable
    with pytest.raises(DataError, match="query 'q2', rank 1"):
        extents(run, TABLE, depth=1)


def test_an_empty_list_has_no_rows():
    found = extents(Run.of({"q1": [], "q2": ["a#1"]}), TABLE)
    assert found.bounds.tolist() == [0, 0, 1]
