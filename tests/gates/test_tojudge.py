"""The file of pairs to judge: worst queries first, each pair once, in two forms."""

from __future__ import annotations

import json

import pytest
from gates_support import Collecting, MemoryBench
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.gates.tojudge import Pair, merged, stage, staged, write


def bench():
    dataset = Dataset.of(
        queries={"q1": "first?", "q2": "second?", "q3": "third?"},
        qrels={"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}},
        corpus={"a": {"title": "A", "text": "…"}, "x": {"title": "X", "text": "text of x"}, "y": "only text"},
        name="small",
    )
    after = {"q1": ["a", "x"], "q2": ["x", "y", "a"], "q3": ["z", "a"]}
    return Collecting(dataset, after, {"q1": ["a"], "q2": ["a"], "q3": ["a"]})


def test_pairs_of_all_gates_worst_first_and_each_once():
    collecting = bench()
    collecting.decide("mrr@3 >= baseline")
    collecting.decide("hit@1 >= 0.3")
    assert merged(collecting.pairs) == [
        {
            "query_id": "q2",
            "query": "second?",
            "doc_id": "x",
            "title": "X",
            "text": "text of x",
            "rank": 1,
            "gates": ["mrr@3 >= baseline", "hit@1 >= 0.3"],
            "dataset": "small",
        },
        {
            "query_id": "q2",
            "query": "second?",
            "doc_id": "y",
            "text": "only text",
            "rank": 2,
            "gates": ["mrr@3 >= baseline"],
            "dataset": "small",
        },
        {
            "query_id": "q3",
            "query": "third?",
            "doc_id": "z",
            "rank": 1,
            "gates": ["mrr@3 >= baseline", "hit@1 >= 0.3"],
            "dataset": "small",
        },
        {
            "query_id": "q1",
            "query": "first?",
            "doc_id": "x",
            "title": "X",
            "text": "text of x",
            "rank": 2,
            "gates": ["mrr@3 >= baseline"],
            "dataset": "small",
        },
    ]


def test_a_gate_in_which_nothing_was_lost_has_no_worst_query():
    collecting = bench()
    assert collecting.decide("hit@3 >= baseline").status == "weak"
    collecting.decide("mrr@3 >= baseline")
    assert [row["query_id"] for row in merged(collecting.pairs)] == ["q2", "q2", "q3", "q1"]


ids = st.sampled_from("abcdefgh")


@given(
    gold=st.dictionaries(
        st.sampled_from([f"q{i}" for i in range(9)]), st.dictionaries(ids, st.just(1), min_size=1), min_size=2
    ),
    lists=st.lists(st.lists(ids, min_size=1, max_size=8), min_size=9, max_size=9),
    k=st.integers(1, 6),
)
def test_a_verdict_counts_every_pair_and_names_the_first_twenty(gold, lists, k):
    # Many lists without any judged document are of other ids, which is an error.
    assume(any(set(found) & set(gold.get(f"q{i}", ())) for i, found in enumerate(lists)))
    # Lists may repeat documents: those fill a place and are no further pair.
    bench = Collecting(gold, {f"q{i}": found for i, found in enumerate(lists)}, {q: list(d) for q, d in gold.items()})
    verdict = bench.decide(f"mrr@{k} >= baseline", judged=1.0)
    pairs = [(pair.query_id, pair.doc_id) for pair in bench.pairs]
    assert len(set(pairs)) == len(pairs)
    expected = {(q, doc) for i, found in enumerate(lists) for q in [f"q{i}"] for doc in found[:k] if q in gold}
    expected -= {(q, doc) for q, docs in gold.items() for doc in docs}
    assert set(pairs) == expected
    if verdict.status == "inconclusive":
        assert verdict.to_judge == tuple(pairs[:20])
        assert verdict.to_judge_total == len(pairs)


def test_many_pairs_are_counted():
    new = {f"q{i}": ["a", *(f"n{i}-{j}" for j in range(9))] for i in range(30)}
    bench = Collecting({query: {"a": 1} for query in new}, new, {query: ["a"] for query in new})
    verdict = bench.decide("hit@7 >= baseline - 1")
    assert verdict.to_judge_total == len(bench.pairs) == 180
    assert verdict.to_judge == tuple((pair.query_id, pair.doc_id) for pair in bench.pairs[:20])
    assert "; 180 pairs to judge" in verdict.notes[-1]


def test_a_gate_without_a_collecting_bench_collects_nothing():
    plain = MemoryBench({"q": {"a": 1}}, {"q": ["x", "a"]})
    assert plain.decide("mrr@2 >= 0.1").to_judge == ()


def test_the_same_ids_in_two_datasets_are_two_pairs():
    rows = merged(
        [Pair("q", "x", 1, "g", 0, "one"), Pair("q", "x", 2, "g", 0, "two"), Pair("q", "x", 1, "g", 0, "one")]
    )
    assert [(row["dataset"], row["rank"], row["gates"]) for row in rows] == [("one", 1, ["g"]), ("two", 2, ["g"])]


def test_files(tmp_path):
    pairs = [Pair("q", "x", 1, "mrr >= 1", 0, "small", "tab\there", None, "two\nlines"), Pair("q", "y", 2, "b", 0)]
    stage(tmp_path / "staged.jsonl", pairs)
    assert staged([tmp_path / "staged.jsonl"]) == pairs
    rows = merged(pairs)
    write(tmp_path / "pairs.jsonl", rows)
    assert [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()] == rows
    write(tmp_path / "pairs.tsv", rows)
    header, first, second = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert header == "query_id\tquery\tdoc_id\ttitle\ttext\trank\tgates\tdataset"
    assert first == "q\ttab here\tx\t\ttwo lines\t1\tmrr >= 1\tsmall"
    assert second == "q\t\ty\t\t\t2\tb\t"
    with pytest.raises(SettingsError, match=r"\.jsonl or \.tsv"):
        write(tmp_path / "pairs.json", rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.jsonl", "pairs.tsv", "staged.jsonl"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queries.jsonl", '{"_id": "q1", "text": "one?"}\n'),
        ("run.jsonl", '{"format": "run", "version": 1}\n{"query_id": "q1", "hits": []}\n'),
        ("labels.jsonl", '{"query_id": "q1", "doc_id": "a", "grade": 1}\n'),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\n"),
        ("broken.jsonl", "{"),
    ],
)
def test_what_others_wrote_is_not_overwritten(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"the file is there, and holds no pairs to judge; .* not overwritten"):
        write(path, merged([Pair("q", "x", 1, "mrr >= 1", 0)]))
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.tsv", "pairs.jsonl.gz"])
def test_pairs_are_written_again(tmp_path, name):
    path = tmp_path / name
    sizes = []
    for count in (2, 3, 0, 1):  # without any a file of pairs is empty
        write(path, merged([Pair("q", f"d{n}", 1, "g", 0, text="half \ud83d of a pair") for n in range(count)]))
        sizes.append(path.stat().st_size)
    assert sizes[1] > sizes[0] > sizes[3] > sizes[2]
    write(tmp_path / "pairs.jsonl", merged([Pair("q", "d", 1, "g", 0, text="half \ud83d of a pair")]))
    assert json.loads((tmp_path / "pairs.jsonl").read_text())["text"] == "half \ud83d of a pair"
