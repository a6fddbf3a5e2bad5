from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slowrun import check

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.run import Ranking, Run
from pytest_retrieval_eval.errors import DataError

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12) | st.integers(0, 99).map(str)
scores = st.sampled_from([0.0, -0.0, 0.5, 1.0, float("inf"), float("-inf")]) | st.floats(allow_nan=False)
maps = st.dictionaries(ids, st.dictionaries(ids, scores, max_size=12), min_size=1, max_size=8)
lists = st.dictionaries(ids, st.lists(st.tuples(ids, scores), max_size=12), min_size=1, max_size=8)


@st.composite
def qrels_for(draw: st.DrawFn, docs: dict[str, list[str]]) -> Qrels:
    judged: dict[str, dict[str, int]] = {"\x00nowhere": {"x": 1}}
    for query, of_query in docs.items():
        if draw(st.booleans()):
            judged[query] = {doc: 1 for doc in {*of_query, draw(ids)} if draw(st.booleans())}
    return Qrels.of(judged)


@settings(deadline=None)
@given(st.data(), maps, st.booleans())
def test_mappings_are_located_as_the_slow_way_says(st_data: Any, run: dict[str, dict[str, float]], f32: bool) -> None:
    qrels = st_data.draw(qrels_for({query: list(hits) for query, hits in run.items()}))
    expected = {query: list(hits.items()) for query, hits in run.items()}
    check(Run.of(run).locate(qrels, float32=f32), expected, qrels, float32=f32)
    as_columns = Run.of(run)._file.backing.columns()
    check(as_columns.locate(qrels, float32=f32), expected, qrels, float32=f32)


@settings(deadline=None)
@given(st.data(), lists)
def test_lists_are_located_as_the_slow_way_says(st_data: Any, run: dict[str, list[tuple[str, float]]]) -> None:
    qrels = st_data.draw(qrels_for({query: [doc for doc, _ in hits] for query, hits in run.items()}))
    scored = Run.of(run)
    check(scored.locate(qrels), run, qrels, by_list=True)
    bare = Run.of({query: [doc for doc, _ in hits] for query, hits in run.items()})
    check(bare.locate(qrels), run, qrels, by_list=True)


@settings(deadline=None)
@given(st.data(), maps)
def test_single_precision_ranks_a_list_by_its_scores(st_data: Any, run: dict[str, dict[str, float]]) -> None:
    qrels = st_data.draw(qrels_for({query: list(hits) for query, hits in run.items()}))
    given_lists = {query: list(hits.items()) for query, hits in run.items()}
    scored = {query: hits for query, hits in given_lists.items() if hits} or {"q": [("d", 1.0)]}
    check(Run.of(scored).locate(qrels, float32=True), scored, qrels, by_list=True, float32=True)


@given(maps)
def test_rankings_fall_and_ties_fall_by_id(run: dict[str, dict[str, float]]) -> None:
    rankings = Run.of(run).rankings(run)
    for query, hits in run.items():
        ordered = sorted(hits.items(), key=lambda hit: (hit[1], hit[0].encode()), reverse=True)
        assert rankings[query].docs == [doc for doc, _ in ordered]


@given(maps | lists)
def test_a_run_is_the_run_of_its_own_dictionary(given_run: Any) -> None:
    run = Run.of(given_run)
    again = Run.of(run.to_dict())
    assert again.digest == run.digest
    assert again.rankings(again.query_ids) == run.rankings(run.query_ids)
    assert run.returned.tolist() == [len(hits) for hits in given_run.values()]


def located(run: Run, judged: Any) -> list[int]:
    return run.locate(Qrels.of(judged)).rank.tolist()


def test_a_repeated_document_counts_once_and_is_reported() -> None:
    run = Run.of({"1": ["a", "a", "b"], "2": ["x"], "3": ["c", "d", "c", "c"]})
    assert located(run, {"1": ["a", "b"], "3": ["c"]}) == [1, 3, 1]
    assert dict(run.duplicates) == {"1": 1, "3": 2}
    assert located(Run.of({"1": ["A", "A"]}), {"1": ["A", "B"]}) == [1]


def test_ties_go_by_document_id_descending() -> None:
    judged = {"1": ["b"]}
    assert located(Run.of({"1": {"a": 1.0, "b": 1.0}}), judged) == [1]
    tied = Run.of({"1": {"b": 1.0, "c": 1.0}}).locate(Qrels.of(judged))
    assert (tied.rank.tolist(), tied.tie_first.tolist(), tied.tie_last.tolist()) == ([2], [1], [2])
    assert tied.ties.tolist() == [2]


def test_scores_are_compared_in_double_precision_but_for_trec_eval() -> None:
    run, qrels = Run.of({"1": {"a": 0.900000001, "b": 0.9}}), Qrels.of({"1": ["a"]})
    assert run.locate(qrels).rank.tolist() == [1]
    assert run.locate(qrels, float32=True).rank.tolist() == [2]


def test_a_list_of_distances_keeps_its_order_with_one_warning() -> None:
    run = Run.of({"1": [("a", 0.0), ("b", 0.4), ("c", 0.5)]})
    assert located(run, {"1": ["a"]}) == [1]
    assert run.ordered_by == "list"
    assert len(run.warnings) == 1
    assert "distances" in run.warnings[0]


def test_a_query_without_hits_is_in_the_run() -> None:
    found = Run.of({"1": [], "2": ["a"]}).locate(Qrels.of({"1": ["a"], "2": ["a"], "3": ["a"]}))
    assert found.in_run.tolist() == [True, True, False]
    assert found.returned.tolist() == [0, 1, 0]


def test_a_query_without_judgments_is_unknown() -> None:
    found = Run.of({"9": ["z"], "1": ["a"]}).locate(Qrels.of({"1": ["a"]}))
    assert found.unknown == ("9",)


@pytest.mark.parametrize("judged", ["10", "010"])
def test_integers_are_ids_by_their_decimal_text(judged: str) -> None:
    qrels = Qrels.of({"7": [judged]})
    expected = [1] if judged == "10" else []
    assert Run.of({7: {10: 2.0, 11: 1.0}}).locate(qrels).rank.tolist() == expected
    assert Run.of({7: [10, 11]}).locate(qrels).rank.tolist() == expected
    assert Run.of({7: {10: 1.0, 9: 1.0}}).locate(qrels).rank.tolist() == [2] * len(expected)
    assert Run.of({7: {10: 2.0}}).ranking("7").docs == ["10"]


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ({"1": {"a", "b"}}, "query '1'.*set"),
        ([("1", ["a"])], "from a mapping from query to hits, or from a table, not from a list"),
        ({}, "the run has no query"),
        ({"1": {"a": float("nan")}}, "query '1'.*document 'a'.*NaN"),
        ({"1": {"b": 1.0}, "2": {"a": None}}, "query '2'.*document 'a'.*None"),
        ({"1": {"a": "high"}}, "query '1'.*document 'a'.*'high'"),
        ({"1": {"a": "1.5"}}, "query '1'.*document 'a'.*'1.5'"),
        ({"1": {"a": True}}, "query '1'.*document 'a'.*True"),
        ({"1": {"a": 10**400}}, "query '1'.*document 'a'.*too large"),
        ({"1": [("a", 10**400)]}, "query '1'.*too large"),
        ({"1": [Hit("a", 1.0, "d", 5, 4)]}, "query '1'.*'a' has start 5 and end 4"),
        ({"1": [Hit("a", 1.0, "d", 5)]}, "query '1'.*'a' has start 5 and end None"),
        ({"1": [("a", 1.0), ("b", float("nan"))]}, "query '1'.*document 'b'.*NaN"),
        ({"1": [("a", 1.0), "b"]}, "query '1'.*document 'b' has no score"),
        ({"1": [("a", 1.0)], "2": ["b"]}, "query '1'.*query '2' has none"),
        ({"1": {"a": 1.0}, "2": ["b"]}, "query '1' is a mapping, sorted by score, and query '2' a list"),
        ({"1": {"": 1.0}}, "query '1'.*empty string"),
        ({"1": ["a", ""]}, "query '1'.*empty string"),
        ({"": ["a"]}, "empty string"),
        ({"1": ["a"], 1: ["b"]}, "become.* one"),
        ({"1": {2.5: 1.0}}, "query '1'.*2.5 is no id"),
        ({None: ["a"]}, "None is no id"),
        ({"1": "abc"}, "query '1'.*'abc'"),
        ({"1": None}, "query '1'.*None"),
        ({"1": ["a\ud800"]}, "surrogate"),
    ],
)
def test_what_is_no_run_is_refused(hits: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Run.of(hits)


def test_integers_among_strings_are_found_too() -> None:
    run = Run.of({"1": {"a": 3.0, 10: 2.0, "b": 1.0}, "2": {"a": 1.0, **dict.fromkeys(range(3), 0.0)}})
    assert run.locate(Qrels.of({"1": ["10", "b"], "2": ["2", "0", "7"]})).rank.tolist() == [2, 3, 2, 4]
    assert run.ranking("1").docs == ["a", "10", "b"]
    with pytest.raises(DataError, match=r"query '1'.*become the one document id '1'"):
        Run.of({"1": {"1": 1.0, 1: 2.0}}).ranking("1")


def test_a_broken_id_of_a_mapping_is_found_when_its_documents_are_read() -> None:
    with pytest.raises(DataError, match="surrogate"):
        Run.of({"1": {"a": 1.0, "a\ud800": 1.0}}).ranking("1")


def test_chunks_keep_their_place_in_the_document() -> None:
    run = Run.of({"1": [Hit("d#2", 2.0, "d", 10, 20), Hit("e", 1.0)]})
    assert run.ranking("1") == Ranking(["d#2", "e"], [2.0, 1.0], ["d", None], [10, None], [20, None])


def test_rankings_are_cut_and_absent_queries_are_empty() -> None:
    run = Run.of({"1": {"a": 1.0, "b": 2.0, "c": 0.5}})
    assert run.rankings(["1", "2"], depth=2) == {"1": Ranking(["b", "a"], [2.0, 1.0]), "2": Ranking([], [])}


def test_digests_tell_runs_apart() -> None:
    runs = [
        {"1": {"a": 1.0, "b": 0.5}},
        {"1": {"a": 1.0, "b": 0.25}},
        {"1": {"a": 1.0, "c": 0.5}},
        {"2": {"a": 1.0, "b": 0.5}},
        {"1": {"a": 1.0, "b": 0.5}, "2": {}},
        {"1": {"ab": 1.0, "c": 0.5}},
        {"1": {"a": 1.0, "bc": 0.5}},
        {"1": ["a", "b"]},
        {"1": ["b", "a"]},
    ]
    assert len({Run.of(run).digest for run in runs}) == len(runs)
    parts = [(), ("d",), ("d", 0, 9), ("d", 0, 8), ("e", 0, 9)]
    assert len({Run.of({"1": [Hit("a", 1.0, *part)]}).digest for part in parts}) == len(parts)
    assert Run.of({"2": {}, "1": {"b": 0.5, "a": 1}}).digest == Run.of(runs[4]).digest


def test_inputs_are_not_changed_and_results_cannot_be() -> None:
    hits = {"1": {"b": 1.0, "a": 1.0}}
    run = Run.of(hits)
    found = run.locate(Qrels.of({"1": ["a"]}))
    assert hits == {"1": {"b": 1.0, "a": 1.0}}
    assert list(hits["1"]) == ["b", "a"]
    for array in (found.row, found.rank, found.tie_first, found.tie_last, found.returned, found.in_run, found.ties):
        assert not array.flags.writeable


def test_trec_mode_needs_scores() -> None:
    with pytest.raises(DataError, match="no scores, by which trec_eval ranks"):
        Run.of({"1": ["a"]}, name="bm25").locate(Qrels.of({"1": ["a"]}), float32=True)


def test_many_lists_are_located_in_stretches() -> None:
    rng = np.random.default_rng(7)
    run = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(rng.integers(0, 300, 400))} for i in range(700)}
    qrels = Qrels.of({query: [f"d{i % 400}", "d7"] for i, query in enumerate(reversed(run))})
    expected = {query: list(hits.items()) for query, hits in run.items()}
    by_map, by_columns = Run.of(run).locate(qrels), Run.of(run)._file.backing.columns().locate(qrels, float32=False)
    for name in ("row", "rank", "tie_first", "tie_last", "returned", "ties"):
        assert getattr(by_map, name).tolist() == getattr(by_columns, name).tolist()
    some = qrels.select(qrels.query_ids[:40])
    check(Run.of(run).locate(some), expected, some)


def test_a_run_can_be_walked_and_asked() -> None:
    run = Run.of({"1": ["a"], "2": []}, name="bm25", depth=10)
    assert (list(run), len(run), "2" in run, "3" in run) == (["1", "2"], 2, True, False)
    assert (run.name, run.depth, repr(run)) == ("bm25", 10, "<Run 'bm25'>")


def test_a_frame_has_a_row_for_each_hit() -> None:
    frame = Run.of({"1": {"a": 1.0, "b": 2.0}, "2": {"c": 1.0}}).to_frame()
    assert frame.to_dict("list") == {
        "query_id": ["1", "1", "2"],
        "rank": [1, 2, 1],
        "doc_id": ["b", "a", "c"],
        "score": [2.0, 1.0, 1.0],
    }
