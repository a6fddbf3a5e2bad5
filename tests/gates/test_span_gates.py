"""Gates on gold spans: both sides on the same gold, each with its own chunks, and a failure that names the evidence."""

from __future__ import annotations

import json

import pytest
from gates_support import MemoryBench
from support import testdata

from pytest_retrieval_eval import Chunk, Chunks, Dataset, GateError, GateFailure, Run, Span, Spans
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.gates.baselines import described_run, provenance
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.reports.text import explain

N = 30
TEXT = "Refunds take 14 days from the day on which the goods arrive. "  # 61 characters


def collection(chunks: Chunks | None = None, **more: object) -> Dataset:
    """Thirty documents, each with its gold at 100–161, of which the spans carry no copy."""
    corpus = {f"d{i:02d}": "x" * 100 + TEXT + "y" * 139 for i in range(N)}
    return Dataset.of(
        queries={f"q{i:02d}": {"text": f"question {i}", "tags": {"half": i % 2}} for i in range(N)},
        spans={f"q{i:02d}": [(f"d{i:02d}", 100, 160)] for i in range(N)},
        corpus=corpus,
        chunks=chunks,
        name="shop",
        **more,
    )


def chunked(size: int, *, only: int = N, first: int = 0, name: str = "") -> Run:
    """The chunks of the right document for the first ``only`` queries, of the wrong one for the others."""
    lists = {}
    for i in range(N):
        doc = f"d{i if i < only else (i + 1) % N:02d}"
        parts = [(start, min(start + size, 300)) for start in range(first, 300, size)]
        parts.sort(key=lambda part: -max(min(part[1], 160) - max(part[0], 100), 0))
        lists[f"q{i:02d}"] = [Hit(f"{doc}/{start}", None, doc, start, end) for start, end in parts]
    return Run.of(lists, name=name or f"chunks{size}")


def test_an_equally_good_chunking_passes() -> None:
    bench = MemoryBench(collection(), chunked(170), chunked(300))
    for gate in ("span_recall@1 >= baseline", "span_coverage@1 >= baseline", "span_ndcg@5 >= baseline"):
        verdict = bench.check(gate)
        assert verdict.ok, gate
        assert verdict.identical
        assert verdict.labels == "spans"
        assert verdict.judged == (None, None)
        assert verdict.judged_k is None
        assert not verdict.to_judge
        assert not verdict.causes


def test_a_chunking_that_cuts_evidence_apart_fails_and_says_where() -> None:
    # 100–122, 122–144 and 144–160 lie in three chunks: the first two together hold 73 %.
    bench = MemoryBench(collection(), chunked(22, first=12), chunked(300))
    with pytest.raises(GateFailure) as failure:
        bench.check("span_recall@1 >= baseline")
    text = str(failure.value)
    assert 'lost   d00 100–160  "Refunds take 14 days from the day on which the goods arrive."' in text
    assert "before 100 % in d00/0 (rank 1, 0–300)" in text
    assert "after  37 % in d00/100 (rank 1, 100–122), cut at 122" in text
    assert '"…funds take 14 days f|rom the day on which…"' in " ".join(text.split())
    assert "of the 30 gold spans that are no longer found in the top 1, 30 are cut" in text
    assert "judged" not in text.replace("not judged", "judged")
    assert bench.check("span_recall@2 >= baseline").ok
    with pytest.raises(GateFailure):
        bench.check("span_coverage@2 >= baseline")


def test_lost_evidence_is_named_with_where_it_is_now() -> None:
    new = {f"q{i:02d}": [Hit(f"x{n}", None, "d00", 200, 250) for n in range(4)] for i in range(1, N)}
    for i in range(1, N - 5):
        new[f"q{i:02d}"].append(Hit("own", None, f"d{i:02d}", 50, 200))
    new["q00"] = [Hit("own", None, "d00", 0, 300)]
    verdict = MemoryBench(collection(), Run.of(new, name="new"), chunked(300)).decide("span_recall@3 >= baseline")
    assert verdict.status == "failed"
    text = explain(verdict, None)
    assert "after  nothing of it in the top 3; found at rank 5" in text
    assert "in the median and 5 are not found in the list" in " ".join(text.split())
    change = verdict.queries[0].spans[0]
    assert (change.doc_id, change.start, change.end, change.was_found, change.is_found) == (
        verdict.queries[0].query_id.replace("q", "d"),
        100,
        160,
        True,
        False,
    )
    assert change.before is not None
    assert change.before.covered == 1.0
    assert change.after.covered == 0.0


def test_a_verdict_crosses_processes() -> None:
    verdict = MemoryBench(collection(), chunked(22, first=12), chunked(300)).decide("span_recall@1 >= baseline")
    plain = json.loads(json.dumps(verdict.to_dict()))
    again = Verdict.from_dict(plain)
    assert again == verdict
    assert explain(again) == explain(verdict)
    held = again.queries[0].spans[0].after
    assert held.cuts == (122,)
    assert held.share == pytest.approx(22 / 60) == held.covered
    # What an earlier version wrote has no spans.
    for query in plain["queries"]:
        del query["spans"]
    assert Verdict.from_dict(plain).queries[0].spans == ()


def test_a_fixed_target_names_what_is_missing() -> None:
    bench = MemoryBench(collection(), chunked(300, only=N - 2))
    with pytest.raises(GateFailure) as failure:
        bench.check("span_recall@1 >= 1.0")
    text = str(failure.value)
    assert text.count("want   d") == 2
    assert "now    nothing of it in the top 1" in text
    verdict = bench.decide("span_recall@1 >= 0.9")
    assert verdict.ok
    assert verdict.n == N
    assert verdict.value == pytest.approx(28 / 30)


def test_alternatives_and_their_text() -> None:
    spans = [
        Span("q", "a", 0, 10, text="ten chars.", group="g"),
        Span("q", "b", 0, 20, text="twenty characters!!!", group="g"),
    ]
    data = Dataset.of(spans=spans, name="small")
    old = Run.of({"q": [Hit("b1", None, "b", 0, 20)]})
    new = Run.of({"q": [Hit("a1", None, "a", 0, 4)]})
    verdict = MemoryBench(data, new, old).decide("span_recall@1 >= baseline")
    (change,) = verdict.queries[0].spans
    assert (change.doc_id, change.alternatives, change.text) == ("b", 1, "twenty characters!!!")
    assert 'lost   b 0–20, or 1 alternative  "twenty characters!!!"' in explain(verdict)


def test_each_side_has_its_own_offsets() -> None:
    """The baseline says itself what its chunks are; the chunk table is of today's chunks, under the same ids."""
    old = {f"q{i:02d}": [Hit("c", None, f"d{i:02d}", 90, 170)] for i in range(N)}
    table = Chunks.of({f"n{i:02d}": Chunk(f"d{i:02d}", 0, 300) for i in range(N)} | {"c": Chunk("d00", 0, 9)})
    new = Run.of({f"q{i:02d}": [f"n{i:02d}"] for i in range(N)})
    bench = MemoryBench(collection(table), new, Run.of(old))
    assert bench.check("span_recall@1 >= baseline").identical
    with pytest.raises(GateFailure):
        bench.check("span_precision@1 >= baseline")


def test_slices_and_where() -> None:
    bench = MemoryBench(collection(), chunked(300, only=20), chunked(170))
    verdict = bench.decide("span_recall@1 >= baseline", by="half", min_n=5)
    assert {each.slice: each.n for each in verdict.slices} == {"half=0": 15, "half=1": 15}
    assert verdict.status == "failed"
    assert bench.decide("span_recall@1 >= 0.6", where={"half": 1}).n == 15


@pytest.mark.parametrize(
    ("gate", "options", "expected"),
    [
        ("span_recall@1 >= 0.5", {"labels": "qrels"}, "span_recall@1 reads gold spans, so that labels=qrels would say"),
        ("span_recall@1 >= 0.5", {"unit": "document"}, "leave unit='document' out"),
        ("span_recall@1 >= 0.5", {"judged": 0.9}, "leave judged=0.9 out"),
        ("recall@1 >= 0.5", {}, "no relevance labels.*or gate a measure of its gold spans"),
    ],
)
def test_what_means_nothing_is_refused(gate: str, options: dict[str, object], expected: str) -> None:
    with pytest.raises(GateError, match=expected):
        MemoryBench(collection(), chunked(300)).decide(gate, **options)


def test_what_is_missing_is_an_error_that_says_what_to_do() -> None:
    no_offsets = Run.of({f"q{i:02d}": ["c1"] for i in range(N)})
    with pytest.raises(GateError, match=r"rank 1.*'c1'.*Return hits with doc_id, start and end, or put chunks\.jsonl"):
        MemoryBench(collection(), no_offsets).decide("span_recall@1 >= 0.5")
    no_spans = Dataset.of(qrels={"q00": ["c1"]}, name="judged")
    with pytest.raises(GateError, match=r"no gold spans.*put spans\.jsonl"):
        MemoryBench(no_spans, no_offsets).decide("span_recall@1 >= 0.5")
    empty = Run.of({f"q{i:02d}": [] for i in range(N)})
    with pytest.raises(GateError, match="returned no document for any query"):
        MemoryBench(collection(), empty).decide("span_recall@1 >= 0.0")


def test_a_run_over_other_documents_is_an_error() -> None:
    other = Run.of({f"q{i:02d}": [Hit("c", None, f"D{i:02d}", 0, 300)] for i in range(N)})
    with pytest.raises(GateError, match=r"holds no character of any gold span.*match without regard to case"):
        MemoryBench(collection(), other, chunked(300)).decide("span_recall@1 >= baseline")
    elsewhere = Run.of({f"q{i:02d}": [Hit("c", None, f"d{i:02d}", 200, 300)] for i in range(N)})
    with pytest.raises(GateError, match=r"holds no character.*offsets are perhaps of another text"):
        MemoryBench(collection(), elsewhere).decide("span_recall@1 >= 0.0")


# --- real data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["chroma-chunking", "squadshifts-newwiki"])
def test_rechunking_real_data(folder: str) -> None:
    home = testdata(f"data/{folder}")
    squad = folder.startswith("squad")
    runs, tables = {}, {}
    for chunking in ("fixed800", "sent400"):
        table = tables[chunking] = Chunks.read(home / f"chunks_{chunking}.jsonl")
        for name in ("bm25-stem", "dense-minilm"):
            run = Run.read(home / f"runs/chunks/{name}.{chunking}.trec.gz")
            runs[name, chunking] = with_offsets(run, table)
    ids = runs["bm25-stem", "fixed800"].query_ids
    spans = Spans.read(home / ("spans_articles.jsonl" if squad else "spans.jsonl")).select(ids)
    data = Dataset.of(spans=spans, name=folder)
    for name in ("bm25-stem", "dense-minilm"):
        old, small = runs[name, "fixed800"], runs[name, "sent400"]
        # The same passages with some overlap, under other ids.
        windows = {
            query: [Hit(f"w{hit.id}", None, hit.doc_id, max(hit.start - 80, 0), hit.end + 80) for hit in hits]
            for query, hits in lists(old).items()
        }
        for measure in ("span_recall@20", "span_coverage@20", "span_ndcg@20"):
            verdict = MemoryBench(data, Run.of(windows), old).decide(f"{measure} >= baseline")
            assert verdict.ok, explain(verdict)
        # Chunks of twice the size hold no less.
        verdict = MemoryBench(data, old, small).decide("span_recall@20 >= baseline - 0.02")
        assert verdict.ok, explain(verdict)
        hurt = {
            query: [hit for hit in hits if not any(holds(hit, span) for span in spans.of_query(query))]
            if place % 7 == 0
            else hits
            for place, (query, hits) in enumerate(lists(small).items())
        }
        verdict = MemoryBench(data, Run.of(hurt), small).decide("span_recall@20 >= baseline - 0.03")
        assert verdict.status == "failed"
        lost = [span for query in verdict.queries for span in query.spans]
        assert lost
        assert all(
            span.was_found and not span.is_found and span.after.covered == 0.0 for span in lost if span.was_found
        )
        assert all(len(span.text or "") == span.end - span.start for span in lost)
        assert "lost   " in explain(verdict)


def lists(run: Run) -> dict[str, list[Hit]]:
    found = run.rankings(run.query_ids)
    return {
        query: [
            Hit(doc, None, where, start, end)
            for doc, where, start, end in zip(one.docs, one.doc_id, one.start, one.end, strict=True)
        ]
        for query, one in found.items()
    }


def with_offsets(run: Run, table: Chunks) -> Run:
    made = {}
    for query, ranking in run.rankings(run.query_ids, depth=50).items():
        chunks = [(doc, table.get(doc)) for doc in ranking.docs]
        made[query] = [Hit(doc, None, chunk.doc_id, chunk.start, chunk.end) for doc, chunk in chunks]
    return Run.of(made)


def holds(hit: Hit, span: Span) -> bool:
    return hit.doc_id == span.doc_id and hit.start < span.end and span.start < hit.end


BEFORE = {f"d{i:02d}": f"Item {i}. {TEXT}And nothing else of note here." for i in range(6)}


def shelf(corpus, text="Refunds take 14 days") -> Dataset:
    """Gold at the same offsets in the file of spans, whatever became of the documents."""
    at = BEFORE["d00"].index(text)
    spans = {f"q{i}": [Span(f"q{i}", f"d{i:02d}", at, at + len(text), text=text)] for i in range(6)}
    return Dataset.of(queries={f"q{i}": f"question {i}" for i in range(6)}, spans=spans, corpus=corpus, name="shelf")


def whole(corpus) -> Run:
    lists = {f"q{i}": [Hit(f"d{i:02d}#0", None, f"d{i:02d}", 0, len(corpus[f"d{i:02d}"]))] for i in range(6)}
    return Run.of(lists, name="whole")


@pytest.mark.parametrize(("measure", "labels"), [("span_recall@1", None), ("recall@1", "spans")])
def test_a_baseline_of_a_former_text_is_no_yardstick(measure, labels):
    """Moved gold against offsets that did not move would make the baseline look bad, and a bad retriever pass."""
    old = whole(BEFORE)
    old = old.with_header(**provenance(old, shelf(BEFORE)))
    gate = f"{measure} >= baseline"
    assert MemoryBench(shelf(BEFORE), whole(BEFORE), old).decide(gate, labels=labels).value == 1.0

    edited = {**BEFORE, "d01": "p" * 90 + " " + BEFORE["d01"], "d02": "New: " + BEFORE["d02"]}
    bench = MemoryBench(shelf(edited), whole(edited), old)
    with pytest.raises(
        GateError,
        match=r"baseline main was saved when 2 gold spans stood elsewhere in 2 documents that were edited since "
        r"\(d01, d02\)",
    ):
        bench.decide(gate, labels=labels)
    # What is not looked at may have been edited, and so may what leaves the gold where it is.
    some = Dataset.of(
        queries={f"q{i}": {"text": "x", "tags": {"kept": i not in (1, 2)}} for i in range(6)},
        spans=shelf(edited).spans,
        corpus=edited,
    )
    assert MemoryBench(some, whole(edited), old).decide(gate, labels=labels, where={"kept": True}).reference == 1.0
    behind = {doc: text + " More." for doc, text in BEFORE.items()}
    assert MemoryBench(shelf(behind), whole(behind), old).decide(gate, labels=labels).reference == 1.0
    # Saved again, it is one of today's texts; a run that is stored anew stays one of its own.
    new = whole(edited)
    again = new.with_header(**provenance(new, shelf(edited)))
    assert MemoryBench(shelf(edited), new, again).decide(gate, labels=labels).reference == 1.0
    assert provenance(old, shelf(edited))["gold"] == old.header["gold"]


def test_gold_in_other_places_of_a_text_that_stayed_is_measured():
    old = whole(BEFORE)
    old = old.with_header(**provenance(old, shelf(BEFORE)))
    verdict = MemoryBench(shelf(BEFORE, "14 days"), whole(BEFORE), old).decide("span_recall@1 >= baseline")
    assert (verdict.value, verdict.reference) == (1.0, 1.0)
    assert any("the gold spans have changed" in change for change in verdict.baseline_changes)
    assert set(old.header) - set(described_run(old)["header"]) == {"gold"}  # as large as the gold


@pytest.mark.parametrize("corpus", [None, {"d": "x" * 20}])
def test_gold_of_a_query_that_nobody_asks(corpus):
    data = Dataset.of(queries={"q": "x"}, spans={"q": [("d", 0, 5)], "zz": [("d", 0, 5)]}, corpus=corpus, name="shop")
    bench = MemoryBench(data, Run.of({"q": [Hit("a", None, "d", 0, 9)]}))
    for gate, labels in (("span_recall@1 >= 0.1", None), ("recall@1 >= 0.1", "spans")):
        verdict = bench.decide(gate, labels=labels)
        assert verdict.value == 0.5
        assert "1 query with gold spans is not in queries: zz" in verdict.notes
