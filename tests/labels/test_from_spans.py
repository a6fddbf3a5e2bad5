"""Labels of chunks from gold spans, against a slow form of the rule; gates over runs of other chunkings."""

from __future__ import annotations

import pytest
from gates_support import MemoryBench
from hypothesis import given
from hypothesis import strategies as st
from support import testdata

from pytest_retrieval_eval import spans_to_qrels
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.spans.chunks import Chunk, Chunks
from pytest_retrieval_eval.collection.spans.spans import Spans
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.gates.options import Options

PLACES = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    st.lists(st.tuples(st.sampled_from("qr"), st.sampled_from("xy"), PLACES, st.sampled_from([0.5, 1, 2])), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.sampled_from("xyz"), PLACES), min_size=1),
    st.sampled_from([0.1, 0.5, 1 / 3, 1.0]),
)
def test_a_share_of_the_shorter(gold, table, share):
    kept = {(query, doc, place): grade for query, doc, place, grade in gold}  # one grade for one span
    rows = [
        {"query_id": query, "doc_id": doc, "start": place[0], "end": place[1], "grade": grade}
        for (query, doc, place), grade in kept.items()
    ]
    expected = {query: {} for query, _, _ in kept}
    for (query, doc, place), grade in kept.items():
        for chunk, (other, extent) in table.items():
            shared = set(range(*place)) & set(range(*extent))
            shorter = min(place[1] - place[0], extent[1] - extent[0])
            if doc == other and shared and len(shared) / shorter >= share - 1e-12:
                expected[query][chunk] = max(grade, expected[query].get(chunk, 0))
    chunks = Chunks.of({chunk: Chunk(doc, *extent) for chunk, (doc, extent) in table.items()})
    assert spans_to_qrels(Spans.of(rows), chunks, share).to_dict() == expected


def test_touching_is_not_overlapping():
    chunks = Chunks.of({"a": Chunk("d", 0, 10), "b": Chunk("d", 10, 20)})
    assert spans_to_qrels(Spans.of({"q": [("d", 10, 12)]}), chunks).to_dict() == {"q": {"b": 1.0}}
    with pytest.raises(DataError, match="min_overlap is 0"):
        spans_to_qrels(Spans.of({"q": [("d", 10, 12)]}), chunks, 0)


@pytest.mark.parametrize(
    ("extents", "relevant"),
    [
        ([(0, 1000), (1000, 2000), (2000, 3000)], 3),
        ([(2900, 3900)], 0),
        ([(2500, 3500)], 1),  # half of the shorter
        ([(2501, 3501)], 0),
        ([(3000, 4000)], 0),
        ([(0, 90000)], 1),  # the span is the shorter
    ],
)
def test_worked_examples(extents, relevant):
    table = Chunks.of({f"c{i}": Chunk("it-handbook", *extent) for i, extent in enumerate(extents)})
    found = spans_to_qrels(Spans.of({"q": [("it-handbook", 0, 3000)]}), table)
    assert len(found.of_query("q")) == relevant
    assert len(spans_to_qrels(Spans.of({"q": [("elsewhere", 0, 3000)]}), table)) == 0


SPANS = {"q1": [("d", 5, 15)], "q2": [("d", 40, 50), ("e", 0, 4)], "q3": [("e", 90, 99)]}
TABLE = Chunks.of({f"d#{i}": Chunk("d", 10 * i, 10 * i + 10) for i in range(6)} | {"e#0": Chunk("e", 0, 50)})


def bench_of(candidate, baseline=None, **more):
    return MemoryBench(Dataset.of(spans=SPANS, chunks=TABLE, name="parts", **more), candidate, baseline)


def test_a_run_of_the_table():
    run = {"q1": ["d#2", "d#1"], "q2": ["e#0", "d#4"], "q3": ["d#0"], "q9": ["d#0"]}
    verdict = bench_of(run).decide("recall@2 >= 0.1", labels="spans")
    # q1: both halves of the span are relevant; q3 has gold that no chunk of the table holds, and counts.
    assert (verdict.n, verdict.value) == (3, pytest.approx((1 / 2 + 1 + 0) / 3))
    assert verdict.judged == (1.0, None)
    assert verdict.labels == "spans"


def test_runs_of_two_chunkings():
    new = Run.of({"q1": [Hit("big", doc_id="d", start=0, end=30)], "q2": [Hit("tail", doc_id="d", start=45, end=60)]})
    bench = bench_of(new, {"q1": ["d#3", "d#0"], "q2": ["d#3", "d#5"]})
    verdict = bench.decide("hit@2 >= baseline", labels="spans")
    assert (verdict.value, verdict.reference) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert any("returns chunks that the chunk table lacks" in note for note in verdict.notes)
    worse = MemoryBench(bench.data, bench.baselines[None], new).decide("hit@2 >= baseline", labels="spans")
    moves = {move.doc_id: move.said for query in worse.queries for move in (*query.moves, *query.intruders)}
    assert moves["tail"] == "holds the gold span 40 to 50 of d"
    assert moves["d#5"] == "holds no gold span"


def test_spans_and_judgments_together():
    run = {"q1": ["d#1"], "q4": ["d#1"]}
    bench = bench_of(run, qrels={"q4": {"d#1": 1}}, queries=dict.fromkeys(["q1", "q2", "q3", "q4"], "?"))
    verdict = bench.decide("hit@1 >= 0.1", labels=["spans", "qrels"])
    assert (verdict.n, verdict.value) == (4, 0.5)


def test_what_is_missing():
    with pytest.raises(GateError, match=r"shop has no gold spans; add spans.jsonl"):
        MemoryBench(Dataset.of(qrels={"q": ["a"]}, name="shop"), {"q": ["a"]}).decide("hit@1 >= 0.1", labels="spans")
    with pytest.raises(DataError, match=r"query 'q1', rank 1: nothing says which document the chunk 'x'"):
        bench_of({"q1": ["x"]}).decide("hit@1 >= 0.1", labels="spans")
    with pytest.raises(SettingsError, match=r"labels=spans do not depend on the runs"):
        Options.of(labels="spans", normalise="list")


def test_real_spans_of_two_chunkings():
    folder = testdata("data/chroma-chunking")
    spans = Spans.read(folder / "spans.jsonl")
    sizes = []
    for name in ("chunks_fixed800.jsonl", "chunks_sent400.jsonl"):
        qrels = spans_to_qrels(spans, Chunks.read(folder / name))
        found = [query for query in qrels.query_ids if qrels.of_query(query)]
        assert len(found) == len(spans.query_ids)
        sizes.append(len(qrels) / len(found))
    assert all(1 <= size < 10 for size in sizes)


def test_a_chunk_id_that_another_chunking_uses_too():
    """R of a run is that of its own chunks, and not that of others under the same ids."""
    gold = {f"q{i}": [("d", 100 * i + 45, 100 * i + 75)] for i in range(3)}
    # Today's chunks of 60 hold half of the gold each; those of 100, under the same ids, all of it.
    table = Chunks.of({f"d#{i}": Chunk("d", 60 * i, 60 * i + 60) for i in range(5)})
    old = Run.of({f"q{i}": [Hit(f"d#{i}", None, "d", 100 * i, 100 * i + 100)] for i in range(3)}, name="old")
    bench = MemoryBench(Dataset.of(spans=gold, chunks=table, name="parts"), {"q0": ["d#0"]}, old)
    verdict = bench.decide("recall@1 >= baseline", labels="spans")
    assert verdict.reference == 1.0
    assert verdict.value == pytest.approx((1 / 2) / 3)
    assert any("run old returns chunks that the chunk table lacks, or has at another place" in n for n in verdict.notes)
    said = "1 id of a chunk is not the same part of a document everywhere (d#0): each counts by its own"
    assert any(note.startswith(said) for note in verdict.notes)
    # What is told of such an id is what its grade says.
    new = Run.of({"q0": [Hit("d#1", None, "d", 0, 30)]}, name="new")
    before = Run.of({"q0": [Hit("d#0", None, "d", 0, 100), Hit("d#1", None, "d", 0, 100)]}, name="before")
    diffs = MemoryBench(Dataset.of(spans=gold, name="parts"), new, before).decide("hit@1 >= baseline", labels="spans")
    told = {move.doc_id: (move.grade, move.said) for diff in diffs.queries for move in (*diff.moves, *diff.intruders)}
    assert told["d#1"] == (0.0, "holds no gold span")
    assert told["d#0"] == (1.0, "holds the gold span 45 to 75 of d")


def test_chunks_beyond_the_end_of_their_document_are_an_error():
    more = {"spans": {"q": [("d", 5, 15)]}, "corpus": {"d": "x" * 40}, "name": "parts"}
    beyond = Run.of({"q": [Hit("a", None, "d", 0, 41)]}, name="old")
    for labels, gate in (("spans", "recall@1 >= 0.5"), (None, "span_recall@1 >= 0.5")):
        bench = MemoryBench(Dataset.of(**more), beyond)
        with pytest.raises(
            DataError, match=r"run old: query 'q', rank 1: the chunk 'a' ends at 41 of 'd', which has 40"
        ):
            bench.decide(gate, labels=labels)
        fine = Run.of({"q": [Hit("a", None, "d", 0, 40)]})
        assert MemoryBench(Dataset.of(**more), fine).decide(gate, labels=labels).value == 1.0
    # A document without gold may have any length: nobody has looked at it.
    other = Run.of({"q": [Hit("b", None, "e", 0, 99), Hit("a", None, "d", 0, 40)]})
    assert MemoryBench(Dataset.of(**more), other).decide("span_recall@2 >= 0.5").value == 1.0
    table = Chunks.of({"a": Chunk("d", 0, 20), "b": Chunk("d", 20, 60)})
    with pytest.raises(DataError, match="chunks: the chunk 'b' ends at 60 of 'd', which has 40"):
        MemoryBench(Dataset.of(chunks=table, **more), {"q": ["a"]}).decide("recall@1 >= 0.5", labels="spans")
