"""unit="document": chunks are ranked, and documents measured."""

from __future__ import annotations

import json

import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.spans.chunks import Chunk, Chunks
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError, SettingsError
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.reports.text import explain

TABLE = Chunks.of({f"{doc}#{i}": doc for doc in "abcd" for i in range(4)})


def bench_of(lists, labels=None, *, chunks=TABLE, baseline=None, **run):
    labels = labels or {query: {"a": 1} for query in lists}
    dataset = Dataset.of(qrels=labels, chunks=chunks, name="parts")
    return MemoryBench(dataset, Run.of(lists, name="candidate", **run), baseline)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), unique=True))
def test_each_document_stands_where_its_best_chunk_does(parts):
    run = Run.of({"q": [f"{doc}#{i}" for doc, i in parts]})
    assert run.by_document(TABLE).ranking("q").docs == list(dict.fromkeys(doc for doc, _ in parts))


@settings(deadline=None)
@given(st.dictionaries(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), st.integers(1, 3), min_size=1))
def test_by_score_a_document_has_the_score_of_its_best_chunk(parts):
    run = Run.of({"q": {f"{doc}#{i}": float(score) for (doc, i), score in parts.items()}})
    best = {doc: max(float(s) for (d, _), s in parts.items() if d == doc) for doc, _ in parts}
    documents = run.by_document(TABLE)
    assert documents.to_dict() == Run.of({"q": best}).to_dict()
    assert documents.ranking("q").docs == Run.of({"q": best}).ranking("q").docs
    assert documents.ordered_by == "score"


def test_hits_say_their_document_and_the_table_fills_in():
    run = Run.of({"q": [Hit("x", doc_id="a"), Hit("b#1"), Hit("y", doc_id="a")]}, depth=3)
    documents = run.by_document(TABLE)
    assert documents.ranking("q").docs == ["a", "b"]
    assert documents.depth == 3
    assert documents.by_document(None) is documents
    with pytest.raises(DataError, match=r"query 'q', rank 2: nothing says which document the chunk 'b#1' is part of"):
        run.by_document()
    with pytest.raises(DataError, match=r"rank 1.*'z'.*chunks lacks it"):
        Run.of({"q": ["z"]}).by_document(TABLE)


def test_a_gate_counts_documents_and_says_so():
    bench = bench_of({"q": ["b#0", "b#1", "a#2", "a#1"]})
    verdict = bench.decide("mrr@2 >= 0.5", unit="document")
    assert (verdict.value, verdict.unit, verdict.status) == (0.5, "document", "passed")
    assert "(parts, unit document, run candidate)" in explain(verdict)
    assert verdict.judged == (0.5, None)
    assert verdict.to_judge == ()


def test_both_sides_are_brought_to_documents():
    before = {"q": ["a#3", "a#2"], "r": ["a#0"]}
    bench = bench_of({"q": ["b#0", "a#2"], "r": ["a#1"]}, baseline=before)
    verdict = bench.decide("hit@1 >= baseline", unit="document")
    assert (verdict.value, verdict.reference, verdict.status) == (0.5, 1.0, "failed")
    (query,) = verdict.queries
    assert [(move.doc_id, move.before, move.after) for move in query.moves] == [("a", 1, 2)]
    assert [move.doc_id for move in query.intruders] == ["b"]


def test_a_baseline_is_stored_as_it_was_retrieved():
    bench = bench_of({"q": ["a#0", "a#1"]})
    bench.update = True
    stored = []
    bench.baseline = lambda dataset, name, candidate: (
        stored.append(candidate) or MemoryBench.baseline(bench, dataset, name, candidate)
    )
    assert bench.decide("hit@1 >= baseline", unit="document").status == "updated"
    assert stored[0].ranking("q").docs == ["a#0", "a#1"]


def test_lists_cut_before_there_were_k_documents():
    lists = {"q": ["a#0", "a#1", "a#2"], "r": ["a#0", "b#0", "c#0"]}
    verdict = bench_of(lists, depth=3).decide("recall@2 >= 1", unit="document")
    said = "1 list of 3 chunks holds fewer than 2 documents and was cut there (q): more chunks a query could change"
    assert any(note.startswith(said) for note in verdict.notes)
    # A list that ends before the declared depth has no more.
    short = bench_of({"q": ["a#0", "a#1"], "r": lists["r"]}, depth=3).decide("recall@2 >= 1", unit="document")
    assert not any("cut there" in note for note in short.notes)
    with pytest.raises(GateError, match="every list: retrieve more chunks a query"):
        bench_of({"q": lists["q"]}, depth=3).decide("recall@2 >= 1", unit="document")
    with pytest.raises(GateError, match="declares depth 3"):
        bench_of(lists, depth=3).decide("recall@4 >= 1", unit="document")


def test_a_run_of_chunks_on_labelled_documents_gets_the_hint():
    lists = {f"q{i}": ["a#0", "b#1"] for i in range(6)}
    with pytest.raises(GateError, match=r"'a#0' is part of 'a', as chunks says\): gate with unit='document'"):
        bench_of(lists).decide("recall@2 >= 0.5")
    hits = {query: [Hit("17", doc_id="a")] for query in lists}
    with pytest.raises(GateError, match=r"'17' is part of 'a', as the hits say\): gate with unit='document'"):
        bench_of(hits, chunks=None).decide("recall@2 >= 0.5")
    assert bench_of(hits, chunks=None).decide("recall@2 >= 0.5", unit="document").value == 1.0


def test_evaluate_takes_the_unit():
    qrels, run = Qrels.of({"q": {"a": 1}}), Run.of({"q": ["b#1", "b#2", "a#1"]})
    assert evaluate(qrels, run, "mrr", unit="document", chunks=TABLE)["mrr"].mean == 0.5
    with pytest.raises(MeasureError, match="they go with unit='document'"):
        evaluate(qrels, run, "mrr", chunks=TABLE)
    with pytest.raises(MeasureError, match="expected 'document'"):
        evaluate(qrels, run, "mrr", unit="chunk")
    with pytest.raises(SettingsError, match="unit= is 'document'"):
        bench_of({"q": ["a#0"]}).decide("mrr >= 1", unit="chunk")


# --- the chunk table --------------------------------------------------------------------------------


def test_a_folder_has_a_chunk_table(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("q\t0\ta\t1\n")
    assert Dataset.read(tmp_path).chunks is None
    rows = [{"chunk_id": 7, "doc_id": "a", "start": 0, "end": 5, "text": "Hello"}, {"chunk_id": "x", "doc_id": "b"}]
    (tmp_path / "chunks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chunks = Dataset.read(tmp_path).chunks
    assert list(chunks) == ["7", "x"]
    assert chunks.get("7") == Chunk("a", 0, 5, "Hello")
    assert chunks.get("x") == Chunk("b")
    assert (chunks.document_of("x"), chunks.document_of("y"), "x" in chunks, len(chunks)) == ("b", None, True, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"doc_id": "a"}', "no 'chunk_id'"),
        ('{"chunk_id": "x"}', "no 'doc_id'"),
        ('{"chunk_id": "x", "doc_id": "a", "start": 3}', "from 3 to None"),
        ('{"chunk_id": "x", "doc_id": "a", "start": 3, "end": 2}', "from 3 to 2"),
        ('{"chunk_id": "x", "doc_id": "a", "start": 0, "end": 2.5}', "two integers"),
        ('{"chunk_id": "x", "doc_id": "a", "text": 3}', "expected a string"),
        ('{"chunk_id": "x", "doc_id": "a"}\n{"chunk_id": "x", "doc_id": "b"}', r"chunks.jsonl:2: .*a second time"),
        ("", "has no chunk"),
    ],
)
def test_a_malformed_chunk_table_is_an_error(tmp_path, line, said):
    path = tmp_path / "chunks.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DataError, match=said):
        Chunks.read(path)


@pytest.mark.parametrize("given", [{}, {"x": ""}, {"x": 3}, {"": "a"}, ["x"]])
def test_a_table_in_memory_is_checked(given):
    with pytest.raises(DataError, match="expected a"):
        Chunks.of(given)
