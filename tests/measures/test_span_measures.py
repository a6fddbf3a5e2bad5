"""Measures of gold spans: worked examples, a slow reference, and laws."""

from __future__ import annotations

from itertools import pairwise
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spans_reference import Reference
from support import testdata

from pytest_retrieval_eval import Chunk, Chunks, Qrels, Run, Span, Spans, evaluate
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.extending import measure
from pytest_retrieval_eval.measures.names import Measure

NAMES = (
    "span_recall",
    "span_coverage",
    "span_precision",
    "span_iou",
    "span_ndcg",
    "span_mrr",
    "span_map",
)


def run_of(lists: dict[str, list[tuple[str, int, int]]]) -> Run:
    """A run whose hits say themselves which part of which document they are."""
    return Run.of(
        {
            query: [Hit(f"{doc}@{a}-{z}#{i}", None, doc, a, z) for i, (doc, a, z) in enumerate(hits)]
            for query, hits in lists.items()
        }
    )


def value(name: str, gold: Any, hits: list[tuple[str, int, int]]) -> float:
    found = evaluate(None, run_of({"q": hits}), name, spans=Spans.of({"q": gold}))
    return float(found.scores(name).mean)


HANDBOOK = [("it-handbook", 0, 3000)]
THOUSANDS = [("it-handbook", start, start + 1000) for start in (0, 1000, 2000)]


@pytest.mark.parametrize(
    ("name", "hits", "expected"),
    [
        ("span_coverage@2", THOUSANDS[:2], 2 / 3),
        ("span_coverage@6", THOUSANDS * 2, 1.0),
        ("span_coverage@3", [THOUSANDS[0]] * 3, 1 / 3),
        ("span_coverage@1", [("it-handbook", 2900, 3900)], 100 / 3000),
        ("span_recall@1", [("it-handbook", 2900, 3900)], 0.0),
        ("span_recall@2", THOUSANDS[:2], 1.0),  # 2/3 of it, together
        ("span_recall@1", THOUSANDS[:2], 0.0),
        ("span_mrr", THOUSANDS, 1 / 2),
        ("span_recall(min_coverage=0.7)@2", THOUSANDS, 0.0),
        ("span_recall(min_coverage=1)@3", THOUSANDS, 1.0),
        ("span_recall(min_coverage=0)@1", [("it-handbook", 2999, 3900)], 1.0),
        ("span_recall(min_coverage=0)@1", [("it-handbook", 3000, 3900)], 0.0),
        ("span_precision@2", [THOUSANDS[0], ("it-handbook", 2500, 3500)], 1500 / 2000),
        ("span_iou@2", [THOUSANDS[0], ("it-handbook", 2500, 3500)], 1500 / 3500),
        ("span_coverage@1", [("other", 0, 3000)], 0.0),
    ],
)
def test_worked_examples(name: str, hits: list[tuple[str, int, int]], expected: float) -> None:
    assert value(name, HANDBOOK, hits) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [1, 7, 1000, 2999, 5000])
def test_any_chunking_that_covers_the_gold_finds_it(size: int) -> None:
    """Case 43: other chunks, other ids."""
    hits = [("it-handbook", start, start + size) for start in range(0, 3000, size)]
    assert value(f"span_recall@{len(hits)}", HANDBOOK, hits) == 1.0
    assert value(f"span_coverage@{len(hits)}", HANDBOOK, hits) == 1.0


def test_a_chunk_that_is_the_whole_document() -> None:
    """Case 48: recall alone would praise it."""
    gold, hits = [("guide", 10, 39)], [("guide", 0, 80)]
    assert value("span_recall@1", gold, hits) == 1.0
    assert value("span_precision@1", gold, hits) == 29 / 80
    assert value("span_iou@1", gold, hits) == 0.3625


def test_touching_is_not_overlapping() -> None:
    for hit in (("guide", 0, 10), ("guide", 20, 30)):
        for name in NAMES:
            assert value(f"{name}@1", [("guide", 10, 20)], [hit]) == 0.0
    # Spans that touch are two, and a chunk that ends between them holds one.
    assert value("span_recall@1", [("guide", 0, 10), ("guide", 10, 20)], [("guide", 0, 10)]) == 0.5


def test_overlapping_chunks_add_nothing_twice() -> None:
    hits = [("guide", 0, 60), ("guide", 40, 100), ("guide", 20, 80)]
    assert value("span_coverage@3", [("guide", 0, 100)], hits) == 1.0
    assert value("span_coverage@2", [("guide", 0, 200)], hits) == 0.5
    assert value("span_precision@3", [("guide", 0, 50)], hits) == 0.5


def test_evidence_that_is_split_over_two_chunks_is_found_with_the_second() -> None:
    gold = [("guide", 90, 110)]
    halves = [("guide", 0, 99), ("other", 0, 50), ("guide", 99, 200)]
    assert [value(f"span_recall@{k}", gold, halves) for k in (1, 2, 3)] == [0.0, 0.0, 1.0]
    assert value("span_mrr", gold, halves) == 1 / 3
    # At exactly half it is found with the first.
    assert value("span_mrr", gold, [("guide", 0, 100)]) == 1.0


def test_offsets_are_code_points() -> None:
    text = "🙂🙂 refunds take 14 days 🙂"
    start = text.index("refunds")
    spans = Spans.of([Span("q", "faq", start, start + 20, text=text[start : start + 20])])
    run = Run.of({"q": [Hit("a", None, "faq", 0, start), Hit("b", None, "faq", start, len(text))]})
    found = evaluate(None, run, ["span_coverage@1", "span_coverage@2"], spans=spans)
    assert [scores.mean for scores in found] == [0.0, 1.0]


def test_spans_found_at_one_rank_take_it_and_the_next() -> None:
    gold = [("guide", 0, 10), ("guide", 20, 30), ("guide", 40, 50)]
    giant, apart = [("x", 0, 9), ("guide", 0, 50)], [("x", 0, 9), *gold]
    # e = 2, 3, 4 both times.
    assert value("span_ndcg", gold, giant) == value("span_ndcg", gold, apart)
    assert value("span_map", gold, giant) == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)
    assert value("span_recall@2", gold, giant) == 1.0
    assert value("span_recall@2", gold, apart) == pytest.approx(1 / 3)
    ideal = 1 + 1 / log2(3) + 1 / 2
    assert value("span_ndcg@3", gold, giant) == pytest.approx((1 / log2(3) + 1 / 2) / ideal)
    assert value("span_ndcg", gold, [("guide", 0, 50)]) == pytest.approx(1.0)


def test_graded_spans() -> None:
    gold = [Span("q", "a", 0, 10, grade=1.0), Span("q", "b", 0, 10, grade=3.0)]
    spans = Spans.of(gold)
    run = run_of({"q": [("a", 0, 10), ("b", 0, 10)]})
    found = evaluate(None, run, ["span_ndcg", "span_ndcg(gain=exp)", "span_recall(rel=2)@1"], spans=spans)
    linear, exponential, high = (scores.mean for scores in found)
    assert linear == pytest.approx((1 + 3 / log2(3)) / (3 + 1 / log2(3)))
    assert exponential == pytest.approx((1 + 7 / log2(3)) / (7 + 1 / log2(3)))
    assert high == 0.0


def test_alternatives() -> None:
    gold = [Span("q", "a", 0, 100, group="x"), Span("q", "b", 0, 10, group="x"), Span("q", "c", 0, 30)]
    spans = Spans.of(gold)

    def of(name: str, hits: list[tuple[str, int, int]]) -> float:
        return float(evaluate(None, run_of({"q": hits}), name, spans=spans)[name].mean)

    assert of("span_recall@2", [("b", 0, 10), ("c", 0, 30)]) == 1.0
    assert of("span_coverage@2", [("b", 0, 10), ("c", 0, 30)]) == 1.0
    assert of("span_coverage@1", [("b", 0, 5)]) == pytest.approx(5 / 40)
    assert of("span_coverage@2", [("a", 0, 100)]) == pytest.approx(100 / 130)
    assert of("span_precision@3", [("a", 0, 100), ("b", 0, 10), ("c", 0, 30)]) == 1.0
    assert of("span_iou@2", [("b", 0, 10), ("c", 0, 30)]) == 1.0


def test_an_empty_span_matches_nothing_and_asks_for_nothing() -> None:
    full = Spans.of({"q": [("a", 0, 10), ("a", 20, 30)], "p": [("a", 0, 5)]})
    # Files with such spans are refused; a table of one's own may hold them.
    empty = Spans(
        full.query_ids,
        full.query,
        full.doc_ids,
        full.doc,
        full.start,
        np.where(np.arange(3) == 0, full.end, full.start),
        full.grade,
        full.group,
        full.texts,
        full.hashes,
        "spans",
        (),
        full.group_names,
        full.places,
    )
    found = evaluate(None, run_of({"q": [("a", 0, 30)], "p": [("a", 0, 30)]}), "span_recall@1", spans=empty)
    assert found["span_recall@1"].to_dict() == {"q": 1.0}
    assert found.counts.without_relevant == ("p",)


def test_which_queries_count() -> None:
    spans = Spans.of({"q1": [("a", 0, 10)], "q2": [("a", 0, 10)], "q3": [Span("q3", "a", 0, 9, grade=0.0)]})
    run = run_of({"q1": [("a", 0, 10)], "q3": [("a", 0, 9)], "q9": [("a", 0, 9)]})
    found = evaluate(None, run, "span_recall@5", spans=spans)
    assert found["span_recall@5"].to_dict() == {"q1": 1.0, "q2": 0.0}
    notes = " | ".join(found.counts.notes())
    assert "1 query returned nothing: q2" in notes
    assert "1 run query has no gold spans: q9" in notes


def test_spans_and_judgments_at_once() -> None:
    spans = Spans.of({"q1": [("a", 0, 10)]})
    qrels = Qrels.of({"q1": ["c2"], "q2": ["c1"]})
    chunks = Chunks.of({"c1": Chunk("a", 0, 10), "c2": Chunk("a", 10, 20)})
    run = Run.of({"q1": ["c1", "c2"], "q2": ["c1"]})
    both = evaluate(qrels, run, ["recall@1", "span_recall@1"], spans=spans, chunks=chunks)
    assert both["recall@1"].to_dict() == {"q1": 0.0, "q2": 1.0}
    assert both["span_recall@1"].to_dict() == {"q1": 1.0}
    assert [str(scores.measure) for scores in both] == ["recall@1", "span_recall@1"]
    other = evaluate(qrels, run, "span_recall@1", spans=spans, chunks=chunks)
    assert other["recall@1"].mean == 0.5
    chosen = evaluate(qrels, run, ["recall@1", "span_recall@1"], spans=spans, chunks=chunks, select=["q1"])
    assert (chosen["recall@1"].n, chosen["span_recall@1"].n) == (1, 1)


def test_what_is_missing_is_said() -> None:
    run = Run.of({"q": ["c1"]})
    spans = Spans.of({"q": [("a", 0, 10)]})
    with pytest.raises(GateError, match=r"no gold spans.*spans\.jsonl"):
        evaluate(Qrels.of({"q": ["c1"]}), run, "span_recall@1")
    with pytest.raises(DataError, match=r"query 'q', rank 1.*'c1'.*chunks\.jsonl"):
        evaluate(None, run, "span_recall@1", spans=spans)
    with pytest.raises(GateError, match="judge no document"):
        evaluate(None, run, "recall@1", spans=spans)
    with pytest.raises(MeasureError, match="trec_eval knows no spans"):
        evaluate(None, run, "span_recall@1", spans=spans, trec=True)
    with pytest.raises(MeasureError, match="min_coverage must be a number from 0 to 1"):
        Measure.parse("span_recall(min_coverage=2)@5")
    with pytest.raises(MeasureError, match=r"span_recall needs a cut-off; write span_recall@5"):
        Measure.parse("span_recall")
    for name in ("condensed(span_ndcg@3)", "cut(span_map)@3"):
        with pytest.raises(MeasureError, match="gold spans"):
            evaluate(None, run_of({"q": [("a", 0, 10)]}), name, spans=spans)


def test_ties_are_not_passed_over() -> None:
    spans = Spans.of({"q": [("a", 0, 10)]})
    chunks = Chunks.of({"c1": Chunk("a", 0, 10), "c2": Chunk("b", 0, 10), "c3": Chunk("c", 0, 10)})
    tied = evaluate(None, Run.of({"q": {"c1": 1.0, "c2": 1.0}}), "span_recall@1", spans=spans, chunks=chunks)
    with pytest.raises(MeasureError, match="does not say how the order of tied documents moves it"):
        tied.ties("span_recall@1")
    assert any("equal score" in warning for warning in tied.warnings)
    apart = {"c1": 1.0, "c2": 0.5, "c3": 0.5}  # the tie holds no gold
    calm = evaluate(None, Run.of({"q": apart}), "span_recall@1", spans=spans, chunks=chunks)
    assert not calm.ties("span_recall@1").matters
    assert not calm.warnings


def test_measures_of_ones_own_read_spans_too() -> None:
    @measure("gold_chunks", reads="spans", binary=False, high=float("inf"))
    def gold_chunks(ranks: Any, asked: Measure) -> Any:
        """Hits that hold some gold."""
        covered = ranks.beside
        _, hit, _, _ = covered.hits.within(covered.gold)
        return np.bincount(covered.hits.extent.query[np.unique(hit)], minlength=ranks.queries)

    try:
        assert value("gold_chunks", [("a", 0, 10)], [("a", 0, 5), ("a", 5, 10), ("b", 0, 9)]) == 2.0
        with pytest.raises(MeasureError, match="reads 'colours', which nothing finds"):
            measure("colour", reads="colours")(lambda ranks, asked: ranks)
    finally:
        registry.unregister("gold_chunks")


# --- against the slow reference ---------------------------------------------------------------------------------

DOCS = ("a", "b")
PART = st.tuples(st.sampled_from(DOCS), st.integers(0, 14), st.integers(1, 8)).map(lambda p: (p[0], p[1], p[1] + p[2]))
GOLD = st.lists(
    st.builds(
        lambda part, grade, group: Span("q", *part, grade=float(grade), group=group),
        PART,
        st.sampled_from([1, 1, 2, 3]),
        st.sampled_from([None, None, "x", "y"]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda span: (span.doc_id, span.start, span.end),
)
HITS = st.lists(PART, max_size=7)
unhurried = settings(deadline=None, max_examples=60)


def measured(gold: list[Span], hits: list[tuple[str, int, int]], *names: str) -> dict[str, float]:
    found = evaluate(None, run_of({"q": hits}), names, spans=Spans.of(gold))
    return {str(scores.measure): scores.get("q", float("nan")) for scores in found}


@unhurried
@given(gold=GOLD, hits=HITS, k=st.integers(1, 8), share=st.sampled_from([0.25, 0.5, 2 / 3, 1.0]))
def test_the_slow_reference_agrees(gold: list[Span], hits: list[tuple[str, int, int]], k: int, share: float) -> None:
    slow = Reference(gold, hits)
    tail = "" if share == 0.5 else f"(min_coverage={share!r})"
    names = [f"span_{name}{tail}@{k}" for name in ("recall", "ndcg", "mrr", "map")]
    names += [f"span_{name}{tail}" for name in ("ndcg", "mrr", "map")]
    names += [f"span_{name}@{k}" for name in ("coverage", "precision", "iou")]
    found = list(measured(gold, hits, *names).values())
    expected = [slow.recall(k, share), slow.ndcg(k, share), slow.mrr(k, share), slow.map(k, share)]
    expected += [slow.ndcg(None, share), slow.mrr(None, share), slow.map(None, share)]
    expected += [slow.coverage(k), slow.precision(k)]
    assert found[:-1] == pytest.approx(expected, abs=1e-9)
    assert any(abs(found[-1] - each) < 1e-9 for each in slow.iou(k))
    assert all(0.0 <= each <= 1.0 for each in found)


# --- laws -------------------------------------------------------------------------------------------------------


@unhurried
@given(gold=GOLD, hits=HITS, more=PART, k=st.integers(1, 8))
def test_coverage_never_falls_when_a_chunk_is_added(
    gold: list[Span], hits: list[tuple[str, int, int]], more: tuple[str, int, int], k: int
) -> None:
    before = measured(gold, hits[:k], "span_coverage@9", "span_recall@9")
    after = measured(gold, [*hits[:k], more], "span_coverage@9", "span_recall@9")
    for name, low in before.items():
        assert after[name] >= low - 1e-12


@unhurried
@given(gold=GOLD, hits=HITS.filter(bool), data=st.data())
def test_characters_do_not_depend_on_how_a_chunk_is_split(
    gold: list[Span], hits: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(hits) - 1))
    doc, start, end = hits[place]
    cuts = sorted({start, end, *data.draw(st.lists(st.integers(start, end), max_size=3))})
    split = [*hits[:place], *((doc, a, z) for a, z in pairwise(cuts)), *hits[place + 1 :]]
    names = ("span_coverage@20", "span_precision@20", "span_iou@20", "span_recall@20")
    assert measured(gold, split, *names) == pytest.approx(measured(gold, hits, *names), abs=1e-12)


@unhurried
@given(gold=GOLD)
def test_the_best_order_scores_one(gold: list[Span]) -> None:
    """One hit for each group, the best grades first, each just its best span; gold that does not overlap."""
    apart = [
        Span("q", span.doc_id, 100 * i, 100 * i + span.end - span.start, grade=span.grade, group=span.group)
        for i, span in enumerate(gold)
    ]
    groups: dict[object, Span] = {}
    for i, span in enumerate(apart):
        key = i if span.group is None else span.group
        if key not in groups or span.grade > groups[key].grade:
            groups[key] = span
    best = sorted(groups.values(), key=lambda span: -span.grade)
    n = len(best)
    names = [f"{name}@{n}" for name in NAMES]
    values = measured(apart, [(span.doc_id, span.start, span.end) for span in best], *names)
    assert values == pytest.approx(dict.fromkeys(values, 1.0), abs=1e-12)


def test_names_round_trip() -> None:
    for name in NAMES:
        for text in (f"{name}@5", f"{name}(rel=2)@5"):
            if not (name == "span_ndcg" and "rel" in text):
                assert str(Measure.parse(text)) == text
    assert str(Measure.parse("span_recall(min_coverage=0.50)@5")) == "span_recall@5"
    assert str(Measure.parse("SPAN_AP@10")) == "span_map@10"


# --- real data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["chroma-chunking", "squadshifts-newwiki"])
@pytest.mark.parametrize("chunking", ["fixed800", "sent400"])
@pytest.mark.parametrize("name", ["bm25-stem", "dense-minilm"])
def test_real_data(folder: str, chunking: str, name: str) -> None:
    home = testdata(f"data/{folder}")
    gold = home / ("spans_articles.jsonl" if folder.startswith("squad") else "spans.jsonl")
    run = Run.read(home / f"runs/chunks/{name}.{chunking}.trec.gz")
    chunks = Chunks.read(home / f"chunks_{chunking}.jsonl")
    spans = Spans.read(gold).select(run.query_ids)
    names = ["span_recall@5", "span_ndcg@10", "span_mrr@10", "span_map@10"]
    names += ["span_coverage@5", "span_precision@5", "span_iou@5"]
    found = evaluate(None, run, names, spans=spans, chunks=chunks)
    lists = run.rankings(run.query_ids, depth=10)
    asked = [query for query in spans.query_ids if query in lists][:120]
    for query in asked:
        hits = [chunks.get(hit) for hit in lists[query].docs]
        slow = Reference(spans.of_query(query), [(hit.doc_id, hit.start, hit.end) for hit in hits])
        expected = [slow.recall(5), slow.ndcg(10), slow.mrr(10), slow.map(10), slow.coverage(5), slow.precision(5)]
        values = [scores.get(query) for scores in found]
        assert values[:-1] == pytest.approx(expected, abs=1e-9), query
        assert any(abs(values[-1] - each) < 1e-9 for each in slow.iou(5)), query
    assert all(0.1 < scores.mean < 1 for scores in found if "recall" in str(scores.measure))
