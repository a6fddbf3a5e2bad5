"""The file of pairs to judge: worst queries first, each pair once, in two forms."""

from __future__ import annotations

import json

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.gates.tojudge import Pair, merged, stage, staged, write


class Collecting(MemoryBench):
    """A bench that collects the pairs of its gates."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.pairs = []

    def collect(self, pairs):
        self.pairs += pairs


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
