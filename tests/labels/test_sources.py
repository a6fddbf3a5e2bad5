"""Gates on labels that are made for the runs of a comparison."""

from __future__ import annotations

import json

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval.collection.dataset import Dataset, Document
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.spans.chunks import Chunk, Chunks
from pytest_retrieval_eval.errors import GateError, GateFailure, SettingsError
from pytest_retrieval_eval.gates.decide import decide
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.target import against, baseline
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.labels.labelling import Labelling, qrels_from
from pytest_retrieval_eval.labels.source import source as source_of
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.reports.text import explain

TEXTS = {
    "fee": "The fee is 20 euros a month.",
    "city": "Our office is in Graz.",
    "old": "The fee was 15 euros.",
    "rain": "It rains.",
    "both": "In Graz the fee is 20 euros.",
}
QUERIES = {"q1": "how much?", "q2": "where?", "q3": "who?", "q4": "why?"}
ANSWERS = {"q1": ["20 euros", "twenty euros"], "q2": ["Graz"], "q3": ["Ada"], "q4": []}


def dataset_of(*, answers=ANSWERS, corpus=TEXTS, qrels=None, **more):
    return Dataset.of(
        queries=QUERIES, qrels=qrels or {"q1": {"fee": 3}}, corpus=corpus, answers=answers, name="shop", **more
    )


GOOD = {"q1": ["fee", "rain"], "q2": ["both", "city"], "q3": ["rain", "old"], "q4": ["rain"]}
BAD = {"q1": ["old", "fee"], "q2": ["rain", "city"], "q3": ["rain", "old"], "q4": ["rain"]}


def bench_of(candidate=GOOD, baseline=BAD, dataset=None, **more):
    return MemoryBench(dataset or dataset_of(), candidate, baseline, **more)


KILT = {"labels": "contains(kilt)"}


def test_every_query_with_answers_counts():
    # q3 finds nothing and counts 0, as a reader that never answers would; q4 has no answers and cannot be scored.
    verdict = bench_of().decide("hit@1 >= 0.5", **KILT)
    assert (verdict.value, verdict.n) == (pytest.approx(2 / 3), 3)
    assert verdict.labels == "contains(kilt)"
    assert verdict.judged == (1.0, None)
    assert any("1 query has no gold answer" in note and "q4" in note for note in verdict.notes)


def test_both_sides_are_labelled_together():
    verdict = bench_of().decide("recall@1 >= baseline", **KILT)
    # R of q2 is 1: the first document of either list that contains the answer.
    assert verdict.value == pytest.approx(2 / 3)
    assert verdict.reference == 0
    verdict = bench_of().decide("recall@2 >= baseline", **KILT)
    assert verdict.value == pytest.approx((1 + 2 / 2 + 0) / 3)
    assert verdict.reference == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_a_list_as_the_whole_truth():
    verdict = bench_of().decide("recall@2 >= baseline", normalise="list", **KILT)
    assert (verdict.value, verdict.reference) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_a_query_that_a_list_misses_counts_under_its_own_list():
    # What is relevant to q2 and q4 is known from qrels alone, and no list has any of it: that is 0, not no query.
    qrels = {"q1": {"fee": 1}, "q2": {"fee": 2}, "q4": {"city": 1, "fee": 2}}
    mixed = {"labels": ["qrels", "contains(kilt)"], "normalise": "list"}
    lists = {"q1": ["fee"], "q2": ["rain"], "q3": ["rain"], "q4": ["rain", "city"]}
    bench = bench_of(lists, {**lists, "q4": ["rain"]}, dataset_of(qrels=qrels))
    for gate, value in (("hit@1", 1 / 4), ("recall@2", 2 / 4)):
        verdict = bench.decide(f"{gate} >= 0.9", **mixed)
        assert (verdict.status, verdict.value, verdict.n) == ("failed", value, 4)
    # And both sides count the same queries.
    verdict = bench.decide("recall@2 >= baseline", **mixed)
    assert (verdict.value, verdict.reference, verdict.n) == (2 / 4, 1 / 4, 4)


def test_further_runs_belong_to_the_pool():
    third = {"q1": ["both"], "q2": ["rain"]}
    bench = bench_of(GOOD, BAD, third=third)
    assert bench.decide("recall@2 >= 0.1", **KILT).value == pytest.approx(2 / 3)
    assert bench.decide("recall@2 >= 0.1", pool=["third"], **KILT).value == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert bench.decide("recall@2 >= 0.1", pool=[Run.of(third)], **KILT).value == pytest.approx((1 / 2 + 1 + 0) / 3)
    # One run alone says whose documents they are.
    said = [bench.decide(f"{name}@2 >= 0.1", **KILT).notes for name in ("recall", "ndcg", "hit")]
    assert [any("takes them for all that is relevant" in note for note in notes) for notes in said] == [1, 1, 0]
    assert not any("takes them" in note for note in bench.decide("recall@2 >= 0.1", pool=["third"], **KILT).notes)


def test_what_else_a_session_has_measured_changes_nothing():
    bench = bench_of(GOOD, BAD, third={"q1": ["both", "fee"], "q2": ["city", "both"]})
    fresh = bench_of().decide("ndcg@2 >= baseline", **KILT)
    measured = bench.measured("ndcg@2", **KILT)
    assert float(measured) > 0
    measured >= against("third") - 1.0
    again = measured >= baseline
    assert (again.value, again.reference) == (fresh.value, fresh.reference)
    alone = bench.measured("ndcg@2", **KILT)
    assert float(alone) == bench_of().decide("ndcg@2 >= 0", **KILT).value


def test_the_first_source_that_has_a_grade_wins():
    dataset = dataset_of(qrels={"q1": {"fee": 3, "old": 2}, "q3": {"old": 1}})
    both = ("qrels", "contains(kilt)")
    verdict = bench_of(dataset=dataset).decide("ndcg@2 >= baseline", labels=both)
    grades = {"q1": {"fee": 3, "old": 2}, "q2": {"both": 1, "city": 1}, "q3": {"old": 1}}
    for run, value in ((GOOD, verdict.value), (BAD, verdict.reference)):
        assert value == pytest.approx(evaluate(Qrels.of(grades), Run.of(run), "ndcg@2")["ndcg@2"].mean)
    assert verdict.labels == "qrels, contains(kilt)"
    # The other way round containment answers for every pair that it knows.
    other = bench_of(dataset=dataset).decide("ndcg@2 >= baseline", labels=both[::-1])
    assert other.value != verdict.value


class Degrees:
    """A source that gives degrees, and fails on some queries."""

    name, pooled = "contains(dpr)", True

    def __init__(self, labels, failed=()):
        self.labels, self.failed, self.asked = labels, dict(failed), []

    def label(self, dataset, runs, *, depth, select):
        self.asked.append(([run.name for run in runs], depth, select))
        known = {query: docs for query, docs in self.labels.items() if query not in self.failed}
        qrels = qrels_from(known, self.name, scale="unit", always=frozenset(known))
        return Labelling(lambda run: qrels, self.failed, said=lambda query, doc: f"answered {doc.upper()}")


class PluggedBench(MemoryBench):
    def __init__(self, source, *arguments, **runs):
        super().__init__(*arguments, **runs)
        self.source = source

    def labels(self, name, options):
        return self.source


LABELS = {
    "q1": {"fee": 0.9, "old": 0.2, "rain": 0.0},
    "q2": {"both": 0.5, "city": 0.6, "rain": 0.1},
    "q3": {"rain": 0.3},
}


def test_a_source_is_asked_of_the_bench():
    source = Degrees(LABELS)
    bench = PluggedBench(source, dataset_of(), GOOD, BAD, third=GOOD)
    verdict = bench.decide("precision@2 >= baseline", labels="contains(dpr)", pool=["third"])
    assert source.asked == [(["candidate", "main", "third"], 2, None)]
    assert verdict.value == pytest.approx((0.9 + 1.1 + 0.3) / 2 / 3)
    assert verdict.label_scale == "unit"
    assert verdict.bounds == (None, None)


def test_a_query_that_could_not_be_labelled_is_left_out_of_both_sides():
    source = Degrees(LABELS, {"q2": "the reader refused", "q4": "timeout"})
    bench = PluggedBench(source, dataset_of(), GOOD, BAD)
    with pytest.raises(GateError, match=r"2 queries of shop could not be .*q2, q4.*the reader refused; timeout"):
        bench.decide("hit@1 >= baseline", labels="contains(dpr)")
    with pytest.raises(GateError, match="1 tolerated"):
        bench.decide("hit@1 >= baseline", labels="contains(dpr)", allow_failures=1)
    verdict = bench.decide("hit@1 >= baseline", labels="contains(dpr)", allow_failures=2)
    assert verdict.n == 2
    assert (verdict.value, verdict.reference) == (pytest.approx(0.6), pytest.approx(0.25))
    assert any("2 queries could not be labelled, and are left out of both sides: q2, q4" in n for n in verdict.notes)


def test_a_family_and_an_error_say_their_labels():
    bench = bench_of()
    family = bench.measured(["hit@1", "recall@2"], **KILT) >= baseline
    assert family.labels == "contains(kilt)"
    assert "labels contains(kilt)" in explain(family).splitlines()[0]
    broken = bench_of(dataset=dataset_of(answers=None))
    with pytest.raises(GateError):
        broken.check("hit@1 >= 0.5", **KILT)
    assert (broken.recorded[0].status, broken.recorded[0].labels) == ("error", "contains(kilt)")


def test_where_and_by_hold():
    queries = {
        query: {"text": text, "tags": {"type": "a" if query != "q2" else "b"}} for query, text in QUERIES.items()
    }
    dataset = Dataset.of(queries=queries, qrels={"q1": ["fee"]}, corpus=TEXTS, answers=ANSWERS, name="shop")
    verdict = bench_of(dataset=dataset).decide("hit@1 >= baseline", where={"type": "b"}, **KILT)
    assert (verdict.n, verdict.value, verdict.reference) == (1, 1.0, 0.0)
    verdict = bench_of(dataset=dataset).decide("hit@1 >= baseline", by="type", min_n=1, **KILT)
    assert [(each.slice, each.n, each.value) for each in verdict.slices] == [("type=a", 2, 0.5), ("type=b", 1, 1.0)]


def test_a_failure_says_why_a_document_is_relevant():
    bench = bench_of(BAD, GOOD)
    with pytest.raises(GateFailure) as failure:
        bench.check("hit@1 >= baseline", **KILT)
    text = str(failure.value)
    assert "labels contains(kilt)" in text.splitlines()[0]
    assert "lost   fee (grade 1)   rank 1 → 2\n           contains the answer '20 euros'" in text
    assert "old: contains no answer" in text
    verdict = bench.recorded[-1]
    assert verdict.queries[0].moves[0].said == "contains the answer '20 euros'"
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict
    fixed = bench.decide("mrr@2 >= 0.9", **KILT)
    assert "want   fee (grade 1)   rank 2\n           contains the answer" in explain(fixed)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"labels": "contains(klit)"}, r"no labels 'contains\(klit\)'; did you mean contains\(kilt\)\?"),
        ({"labels": ("qrels", "nothing")}, "no labels 'nothing'"),
        ({"labels": ("qrels", "qrels")}, "names a source twice"),
        ({"normalise": "list"}, r"normalise= says .*labels=qrels do not depend on the runs"),
        ({"pool": ["third"]}, r"pool= says .*labels=qrels do not depend on the runs"),
        ({"labels": "contains(kilt)", "normalise": "sum"}, "normalise= is pool or list"),
        ({"labels": "contains(kilt)", "pool": 7}, "pool= takes a list of runs, not 7"),
        ({"labels": "contains(kilt)", "pool": [7]}, "pool= takes names or paths of runs"),
    ],
)
def test_options_that_mean_nothing(options, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Options.of(**options)


def test_what_is_missing():
    with pytest.raises(GateError, match=r"labels=contains\(kilt\): shop has no gold answers; add answers.jsonl"):
        bench_of(dataset=dataset_of(answers=None)).decide("hit@1 >= 0.5", **KILT)
    with pytest.raises(GateError, match="none of 4 queries of shop has an answer"):
        bench_of(dataset=dataset_of(answers={"other": "x"})).decide("hit@1 >= 0.5", **KILT)
    with pytest.raises(GateError, match=r"2 have none \(both, city; in run candidate\): neither the corpus"):
        texts = {doc: text for doc, text in TEXTS.items() if doc not in ("both", "city")}
        bench_of(dataset=dataset_of(corpus=texts)).decide("hit@2 >= 0.5", **KILT)
    with pytest.raises(GateError, match=r"have none .*no corpus.jsonl and no chunks.jsonl"):
        bench_of(dataset=dataset_of(corpus=None)).decide("hit@2 >= 0.5", **KILT)
    with pytest.raises(GateError, match="no run returned a document for any query of shop that has answers"):
        bench_of({"q1": [], "q4": ["rain"]}).decide("hit@2 >= 0.5", **KILT)
    with pytest.raises(GateError, match="returned no document for any query of shop: is its index empty"):
        bench_of({"q1": []}).decide("hit@2 >= baseline", **KILT)
    queries = {f"q{i}": "?" for i in range(5)}
    strangers = Dataset.of(
        queries=queries, qrels={"q1": ["x"]}, corpus=TEXTS, answers=dict.fromkeys(queries, "nowhere"), name="shop"
    )
    with pytest.raises(GateError, match="no retrieved document of shop contains an answer of its query, for 5 queries"):
        bench_of({query: ["rain"] for query in queries}, dataset=strangers).decide("hit@1 >= 0.0", **KILT)


class Mixed(PluggedBench):
    def labels(self, name, options):
        return self.source if name == "contains(dpr)" else source_of(name)


def test_levels_and_degrees_have_no_common_scale():
    bench = Mixed(Degrees(LABELS), dataset_of(), GOOD, BAD)
    with pytest.raises(GateError, match=r"levels up to 3, and others of .* degrees from 0 to 1"):
        bench.decide("ndcg@2 >= baseline", labels=["qrels", "contains(dpr)"])
    # Judgments of 0 and 1 are degrees as well.
    bench = Mixed(Degrees(LABELS), dataset_of(qrels={"q1": {"fee": 1}}), GOOD, BAD)
    verdict = bench.decide("precision@2 >= baseline", labels=["qrels", "contains(dpr)"])
    assert verdict.value == pytest.approx((1.0 + 1.1 + 0.3) / 2 / 3)
    assert verdict.label_scale == "unit"


def test_every_measure_takes_a_query_in_which_nothing_helps():
    bench = bench_of()
    verdict = bench.decide("hit@2 >= 0.1", **KILT)
    assert verdict.n == 3
    runs = [Run.of({**GOOD, "q3": []})]
    qrels = source_of("contains(kilt)").label(dataset_of(), runs, depth=None, select=None).qrels_of(runs[0])
    for name in (
        "hit@2",
        "precision@2",
        "recall@2",
        "f1@2",
        "ndcg@2",
        "ndcg(gain=exp)",
        "map",
        "map@2",
        "mrr",
        "r_precision",
        "err@2",
        "rbp@2",
        "bpref",
        "condensed(ndcg@2)",
        "set_recall",
        "iprec(recall=0.5)",
    ):
        scores = evaluate(qrels, runs[0], name)[name]
        assert scores.to_dict()["q3"] == 0, name
        assert scores.n == 3, name


def test_the_text_of_a_chunk():
    run = Run.of(
        {"q1": ["c1"], "q2": [Hit("c2", doc_id="city", start=0, end=15), Hit("c3", doc_id="city")], "q3": ["c4"]}
    )
    chunks = Chunks.of({"c1": Chunk("fee", 11, 19), "c3": Chunk("city", 17, 21, "Graz"), "c4": Chunk("x", text="Ada")})
    verdict = MemoryBench(dataset_of(chunks=chunks), run).decide("precision@2 >= 0", **KILT)
    by_query = {query.query_id: query for query in verdict.queries}
    assert verdict.value == pytest.approx(0.5)
    assert not by_query  # none lies below 0
    labels = decide(Gate.parse("hit@1 >= 0.9", **KILT), MemoryBench(dataset_of(chunks=chunks), run))
    assert [query.query_id for query in labels.queries] == ["q2"]


def test_documents_of_chunks():
    chunks = Chunks.of({"c1": "rain", "c2": "fee", "c3": "city"})
    run = Run.of({"q1": ["c1", "c2"], "q2": ["c3"], "q3": ["c1"]})
    verdict = MemoryBench(dataset_of(chunks=chunks), run).decide("mrr >= 0.1", unit="document", **KILT)
    assert verdict.value == pytest.approx((0.5 + 1 + 0) / 3)


def test_a_text_that_changed_counts_for_its_own_side():
    # The baseline keeps what it was saved with: "fee" said nothing then.
    old = Run.of(GOOD, name="main").with_texts({"fee": Document("", "The fee is secret.")})
    verdict = MemoryBench(dataset_of(), GOOD, old).decide("hit@1 >= baseline", **KILT)
    assert verdict.value == pytest.approx(2 / 3)
    assert verdict.reference == pytest.approx(1 / 3)
    assert any("the text of 1 document is not the same for both sides" in note for note in verdict.notes)
    # A document that is gone from the corpus, and that the baseline alone returns, is read from it, for both.
    texts = {doc: text for doc, text in TEXTS.items() if doc != "both"}
    kept = Run.of(GOOD, name="main").with_texts({"both": Document("", TEXTS["both"])})
    verdict = MemoryBench(dataset_of(corpus=texts), BAD, kept).decide("hit@1 <= baseline", **KILT)
    assert verdict.reference == pytest.approx(2 / 3)


@pytest.mark.parametrize("rest", [{}, {"fee": Document("", "The fee is 20 euros.")}], ids=["one text", "several"])
def test_what_the_baseline_has_stored_is_not_read_for_a_run_of_a_stale_index(rest):
    texts = {doc: text for doc, text in TEXTS.items() if doc != "both"}
    kept = Run.of(GOOD, name="main").with_texts({"both": Document("", TEXTS["both"]), **rest})
    said = []
    for gate in ("hit@1 >= 0.1", "hit@1 >= baseline", "hit@1 >= against(old)"):
        with pytest.raises(
            GateError, match=r"1 has none \(both; in run candidate\): .*index built from another"
        ) as error:
            MemoryBench(dataset_of(corpus=texts), GOOD, kept, old=kept).decide(gate, **KILT)
        said.append(str(error.value))
    assert len(set(said)) == 1
    # A run that has stored the text itself reads it, beside any other.
    verdict = MemoryBench(dataset_of(corpus=texts), kept, kept).decide("hit@1 >= baseline", **KILT)
    assert verdict.value == verdict.reference == pytest.approx(2 / 3)
    # So does no baseline read what the candidate has stored.
    with pytest.raises(GateError, match=r"1 has none \(both; in run main\)"):
        MemoryBench(dataset_of(corpus=texts), kept, Run.of(GOOD, name="main")).decide("hit@1 >= baseline", **KILT)


def test_a_part_of_a_document_that_is_gone_is_not_the_chunk_of_its_id():
    hits = {"q1": [Hit("c1", doc_id="gone", start=0, end=9)]}
    chunks = Chunks.of({"c1": Chunk("fee", text=TEXTS["fee"])})
    with pytest.raises(GateError, match="the hit 'c1' is gone 0-9, and chunks has another part under that id"):
        MemoryBench(dataset_of(chunks=chunks), Run.of(hits, name="stale")).decide("hit@1 >= 0.1", **KILT)


def test_labels_that_were_made_from_other_answers():
    dataset = dataset_of()
    assert dataset.answers is not None
    then = Run.of(BAD, header={"answers": "sha256:other", "labels": "sha256:other"})
    now = Run.of(BAD, header={"answers": dataset.answers.digest, "labels": "sha256:other"})
    changed = MemoryBench(dataset, GOOD, then).decide("hit@1 >= baseline", **KILT).baseline_changes
    assert [said for said in changed if "have changed" in said] == [
        "the gold answers have changed since the baseline was saved; both sides are scored on today's"
    ]
    assert MemoryBench(dataset, GOOD, now).decide("hit@1 >= baseline", **KILT).baseline_changes == ()


LONG = {"guide": "It rains in Graz. " + "The fee is 20 euros a month. " + "Ask at the desk."}  # 63 characters


def of_parts(*parts, name="run"):
    return Run.of({"q1": [Hit(chunk, None, "guide", start, end) for chunk, start, end in parts]}, name=name)


@pytest.mark.parametrize("table", [None, {"guide#0": Chunk("guide", 0, 18)}], ids=["hits", "table"])
def test_a_chunk_id_that_was_used_for_another_part(table):
    """Each side reads its own part of the document, whatever today's table says of the id."""
    chunks = None if table is None else Chunks.of(table)
    dataset = dataset_of(answers={"q1": ["20 euros"]}, corpus=LONG, chunks=chunks)
    small, large = of_parts(("guide#0", 0, 18), name="small"), of_parts(("guide#0", 0, 47), name="large")
    for candidate, stored, found in ((small, large, (0.0, 1.0)), (large, small, (1.0, 0.0))):
        verdict = bench_of(candidate, stored, dataset).decide("hit@1 >= baseline", **KILT)
        assert (verdict.value, verdict.reference) == found
        assert any("the text of 1 document is not the same" in note for note in verdict.notes)


def test_a_part_under_the_id_of_its_document_is_that_part():
    dataset = dataset_of(answers={"q1": ["20 euros"]}, corpus=LONG)
    assert bench_of(of_parts(("guide", 0, 18)), None, dataset).decide("hit@1 >= 0", **KILT).value == 0
    assert bench_of(of_parts(("guide", 0, 47)), None, dataset).decide("hit@1 >= 0", **KILT).value == 1


def test_parts_that_no_text_can_be_of():
    dataset = dataset_of(answers={"q1": ["20 euros"]}, corpus=LONG)
    with pytest.raises(GateError, match=r"the hits '0' are guide 0-18 and, for query 'q1', guide 18-47"):
        bench_of(of_parts(("0", 0, 18), ("0", 18, 47)), None, dataset).decide("hit@2 >= 0", **KILT)
    with pytest.raises(GateError, match="the chunk '0' ends at 99 of 'guide', which has 63"):
        bench_of(of_parts(("0", 0, 99)), None, dataset).decide("hit@2 >= 0", **KILT)
    # Without a corpus nobody knows the text of a part that the table has no longer.
    chunks = Chunks.of({"0": Chunk("guide", 0, 18, "The fee is 20 euros.")})
    dataset = dataset_of(answers={"q1": ["20 euros"]}, corpus=None, chunks=chunks)
    with pytest.raises(GateError, match="chunks has another part under that id, so that its text is nowhere"):
        bench_of(of_parts(("0", 18, 47)), None, dataset).decide("hit@2 >= 0", **KILT)
    assert bench_of(of_parts(("0", 0, 18)), None, dataset).decide("hit@2 >= 0", **KILT).value == 1


def test_what_only_judgments_know_may_hang_on_unjudged_documents():
    """q4 has no answers: of its list one document is judged, and the other may be relevant."""
    dataset = dataset_of(qrels={"q4": {"rain": 1}})
    run = {**GOOD, "q4": ["city", "rain"]}
    verdict = bench_of(run, None, dataset).decide("hit@1 >= 0.4", labels=["qrels", "contains(kilt)"])
    assert (verdict.value, verdict.n) == (2 / 4, 4)
    assert verdict.bounds[0] == (2 / 4, 3 / 4)
    assert verdict.judged == (3 / 4, None)
    # What is said of the queries without answers is true, although q4 counts.
    assert any("1 query has no gold answer, and is not labelled by contains(kilt): q4" in n for n in verdict.notes)
    assert not any("not counted" in note for note in verdict.notes)
    assert bench_of(run, None, dataset).decide("hit@1 >= 0.4", **KILT).bounds == (None, None)


def test_labels_of_chunks_and_a_ranking_of_documents():
    dataset = Dataset.of(spans={"q": [("guide", 0, 9)]}, chunks=Chunks.of({"a": Chunk("guide", 0, 18)}), name="shop")
    with pytest.raises(GateError, match="labels=spans are of chunks, and unit='document' ranks documents"):
        MemoryBench(dataset, {"q": ["a"]}).decide("hit@1 >= 0.5", labels="spans", unit="document")


@pytest.mark.parametrize("labels", ["contains(kilt)", ["contains(kilt)", "qrels"]])
def test_a_level_that_no_label_can_reach(labels):
    for gate in ("hit(rel=2)@1 <= 0.5", "recall(rel=2)@2 >= baseline"):
        with pytest.raises(
            GateError, match=r"grade of at least 2, and a source of labels=contains\(kilt\).* gives 1 at most"
        ):
            bench_of().decide(gate, labels=labels)
