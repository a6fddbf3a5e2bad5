"""Gates on a pipeline: at which stage documents were lost, what leaked, and lift as a gate."""

from __future__ import annotations

import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import Dataset, GateError, GateFailure, Run, Stages
from pytest_retrieval_eval.gates.bench import Baseline
from pytest_retrieval_eval.gates.verdict import Verdict


class PipelineBench(MemoryBench):
    """A bench that knows stages, and their baselines by ``NAME.STAGE``."""

    def __init__(self, dataset, candidate, baseline=None, *, stages=None, old_stages=None, **runs):
        super().__init__(dataset, candidate, baseline, **runs)
        self._stages = Stages({name: Run.of(lists, name=name) for name, lists in (stages or {}).items()})
        self._old = old_stages or {}

    def stages(self):
        return self._stages

    def stage_baseline(self, dataset, name, stage, candidate):
        return Baseline(Run.of(self._old[stage]), f"main.{stage}")


def query_names(n):
    return [f"q{number}" for number in range(n)]


# Queries with a gold document each: found by bm25, by dense, by none; lost by fusion, by the filter, by the reranker.
GOLD = {query: {f"gold{query}": 1, "bad": 0} for query in query_names(6)}
STAGES = {
    "bm25": {
        "q0": ["goldq0", "bad"],
        "q1": ["x"],
        "q2": ["x"],
        "q3": ["y", "goldq3"],
        "q4": ["goldq4"],
        "q5": ["goldq5"],
    },
    "dense": {"q0": ["z"], "q1": ["z", "goldq1"], "q2": ["z"], "q3": ["z"], "q4": ["z"], "q5": ["z"]},
    "fused": {
        "q0": ["goldq0", "z", "bad"],
        "q1": ["z", "x", "goldq1"],
        "q2": ["x", "z"],
        "q3": ["y", "z"],
        "q4": ["goldq4", "z"],
        "q5": ["goldq5", "z"],
    },
    "filtered": {
        "q0": ["goldq0", "z", "bad"],
        "q1": ["z", "x", "goldq1"],
        "q2": ["x", "z"],
        "q3": ["y", "z"],
        "q4": ["z"],
        "q5": ["goldq5", "z"],
    },
}
FINAL = {**STAGES["filtered"], "q1": ["goldq1", "x", "z"], "q5": ["z", "goldq5"]}
BEST = {query: [f"gold{query}"] for query in GOLD}


@pytest.mark.parametrize("last", [{}, {"reranked": FINAL}], ids=["the run under test", "a stage"])
def test_a_failure_says_at_which_stage_documents_were_lost(last):
    bench = PipelineBench(GOLD, FINAL, BEST, stages={**STAGES, **last})
    end = "reranked" if last else "the end"
    verdict = bench.decide("recall@1 >= baseline")
    fates = {query.query_id: query.moves[0].fate for query in verdict.queries}
    assert fates == {
        "q2": "never found: not in the list of bm25 or dense",
        "q3": "lost at fused: rank 2 after bm25 or dense",
        "q4": "lost at filtered: rank 1 after fused",
        "q5": f"ranked down by {end}: rank 1 → 2",
    }
    told = (
        "by stage, of the 4 relevant documents that are not in the top 1: 1 never found (bm25 or dense), "
        f"1 lost at fused, 1 lost at filtered, 1 ranked down by {end}"
    )
    assert verdict.causes[0] == told
    with pytest.raises(GateFailure) as failure:
        bench.check("recall@1 >= 0.9")
    text = " ".join(str(failure.value).split())
    assert told in text
    assert "lost at filtered: rank 1 after fused" in text
    assert Verdict.from_dict(verdict.to_dict()) == verdict


def test_the_trail_ends_at_the_stage_that_is_gated():
    bench = PipelineBench(GOLD, FINAL, stages=STAGES, old_stages={"fused": BEST})
    verdict = bench.decide("recall@1 >= baseline", stage="fused")
    assert verdict.stage == "fused"
    assert verdict.baseline == "main.fused"
    fates = {query.query_id: query.moves[0].fate for query in verdict.queries}
    assert fates["q1"] == "ranked down by fused: rank 2 → 3"
    assert fates["q3"].startswith("lost at fused")
    assert "q4" not in fates


def test_a_first_stage_and_a_pipeline_of_one_have_no_trail():
    bench = PipelineBench(GOLD, FINAL, stages=STAGES)
    assert bench.decide("recall@1 >= 0.9", stage="bm25").queries[0].moves[0].fate is None
    alone = PipelineBench(GOLD, FINAL, stages={"reranked": FINAL})
    assert alone.decide("recall@1 >= 0.9").queries[0].moves[0].fate is None


def test_a_stage_that_cannot_be_opened_does_not_hide_the_failure():
    bench = PipelineBench(GOLD, FINAL)

    def opened(name, value):
        raise OSError(f"no such file: {value}")

    bench._stages = Stages({"bm25": "gone.trec", "fused": "gone.trec"}, opened)
    verdict = bench.decide("recall@1 >= 0.9")
    assert verdict.status == "failed"
    assert "at which stage documents were lost is unknown: no such file: gone.trec" in verdict.notes


def test_lift_is_gated_against_a_number_a_run_and_a_baseline():
    lists = {"q0": ["x", "y", "goldq0"], "q1": ["x", "goldq1"], "q5": ["goldq5"]}
    after = {"q0": ["goldq0", "x", "y"], "q1": ["x", "goldq1"], "q5": ["goldq5"]}
    gold = {query: GOLD[query] for query in lists}
    bench = PipelineBench(
        gold, after, lists, stages={"fused": lists}, old_stages={"fused": lists}, inverted={**after, "q0": lists["q0"]}
    )
    verdict = bench.decide("lift(ndcg@10, from=fused) >= 0.5")
    assert (verdict.status, verdict.value, verdict.n) == ("passed", 0.5, 2)
    assert "1 query had no better order, and is left out" in verdict.notes
    # What was best before can only lose, which lift does not see: it is said.
    lost = PipelineBench(gold, {**after, "q5": ["x", "goldq5"]}, stages={"fused": {**lists, "q5": ["goldq5", "x"]}})
    notes = lost.decide("lift(ndcg@10, from=fused) >= 0.5").notes
    assert "1 query had no better order, and is left out: 1 of them got worse (q5)" in notes
    assert bench.decide("lift(ndcg@10, from=fused) >= baseline + 0.4").reference == 0
    assert bench.decide("lift(mrr, from=fused) >= against(inverted) + 0.5").reference == 0
    assert bench.decide("lift(recall@1, from=fused) >= 0.6").status == "failed"
    with pytest.raises(GateError, match="no stages are known"):
        PipelineBench(gold, after).decide("lift(ndcg@10, from=fused) >= 0.5")


def test_lift_is_compared_over_the_queries_with_a_gap_on_both_sides():
    # q0 has a gap on both sides, q1 in the run alone, q2 in the baseline alone.
    poor, rich = {query: ["x", f"gold{query}"] for query in GOLD}, {query: [f"gold{query}", "x"] for query in GOLD}
    gold = {query: GOLD[query] for query in ("q0", "q1", "q2")}
    now = {"q0": poor["q0"], "q1": poor["q1"], "q2": rich["q2"]}
    then = {"q0": poor["q0"], "q1": rich["q1"], "q2": poor["q2"]}
    bench = PipelineBench(gold, {**now, "q0": rich["q0"]}, then, stages={"fused": now}, old_stages={"fused": then})
    verdict = bench.decide("lift(mrr, from=fused) >= baseline")
    assert (verdict.n, verdict.value, verdict.reference) == (1, 1.0, 0.0)
    assert verdict.status == "inconclusive"
    (note,) = [note for note in verdict.notes if "gap on both sides" in note]
    assert "1 query has a gap in run candidate alone (q1); 1 query has a gap in baseline main alone (q2)" in note
    worse = PipelineBench(gold, now, {**then, "q0": rich["q0"]}, stages={"fused": now}, old_stages={"fused": then})
    assert worse.decide("lift(mrr, from=fused) >= baseline").status == "failed"
    none = PipelineBench(
        {query: gold[query] for query in ("q1", "q2")}, now, then, stages={"fused": now}, old_stages={"fused": then}
    )
    with pytest.raises(GateError, match="none has one on both sides: gate it with a fixed target"):
        none.decide("lift(mrr, from=fused) >= baseline - 1")


def first_stage_that_loses(n, lost, tags=lambda i: {}):
    """A reranker that does well on n queries, as before; the first stage now returns nothing for the first ``lost``."""
    gold = {f"q{i:02}": {f"g{i:02}": 1} for i in range(n)}
    queries = {query: {"text": query, "tags": tags(i)} for i, query in enumerate(gold)}
    dataset = Dataset.of(queries=queries, qrels=gold, name="pipeline")
    before = {query: ["x", f"g{query[1:]}"] for query in gold}
    after = {query: [f"g{query[1:]}", "x"] for query in gold}
    gone = {query: ["x"] for query in list(gold)[:lost]}
    return PipelineBench(
        dataset, {**after, **gone}, after, stages={"fused": {**before, **gone}}, old_stages={"fused": before}
    )


def test_a_first_stage_that_loses_documents_makes_no_green_gate_on_lift():
    gate = "lift(ndcg@10, from=fused) >= baseline"
    verdict = first_stage_that_loses(50, 48).decide(gate)
    assert (verdict.status, verdict.n) == ("inconclusive", 2)
    assert verdict.reason.startswith(
        "only 2 of the 50 queries that have a gap on either side have one on both, and 80 % are needed: on those "
    )
    assert verdict.reason.endswith("gate ndcg@10, which counts them all")
    assert "48 queries had no better order, and are left out: the stage fused has nothing for 48 of them" in " ".join(
        verdict.notes
    )
    with pytest.raises(GateFailure, match="INCONCLUSIVE"):
        first_stage_that_loses(50, 48).check(gate)
    assert [first_stage_that_loses(50, lost).decide(gate).status for lost in (0, 10, 11)] == [
        "weak",
        "weak",
        "inconclusive",
    ]
    # A gate that does not hold on what both have has failed.
    bench = first_stage_that_loses(50, 48)
    assert bench.decide("lift(ndcg@10, from=fused) >= baseline + 0.1").status == "failed"


def test_a_slice_that_the_first_stage_loses_is_not_passed_over():
    gate, hard = "lift(ndcg@10, from=fused) >= baseline", lambda i: {"type": "hard" if i < 12 else "easy"}
    # 8 of 12 hard queries are left: fewer than a slice needs, and they decide all the same, as they would have done.
    verdict = first_stage_that_loses(100, 4, hard).decide(gate, by="type")
    assert {part.slice: part.status for part in verdict.slices} == {"type=hard": "inconclusive", "type=easy": "weak"}
    assert verdict.status == "inconclusive"
    assert first_stage_that_loses(100, 2, hard).decide(gate, by="type").status == "weak"
    with pytest.raises(GateError, match="none of the 12 queries of type=hard that count on one side counts on both"):
        first_stage_that_loses(100, 12, hard).decide(gate, by="type")


def test_lift_needs_labels_of_what_the_stage_before_returned():
    bench = PipelineBench(GOLD, FINAL, stages=STAGES)
    for labels in ("contains(kilt)", ["qrels", "contains(dpr)"]):
        with pytest.raises(GateError, match="needs labels of all that the stage before returned"):
            bench.decide("lift(ndcg@10, from=fused) >= 0.5", labels=labels)


def test_lift_reads_stages_of_chunks_as_documents():
    lists = {"q0": ["c1", "c2", "c3"]}
    dataset = Dataset.of(qrels={"q0": {"a": 1}}, chunks=_chunks(), name="handbook")
    bench = PipelineBench(dataset, {"q0": ["c3", "c1", "c2"]}, stages={"fused": lists})
    verdict = bench.decide("lift(mrr, from=fused) >= 1", unit="document")
    assert verdict.value == 1.0


def _chunks():
    from pytest_retrieval_eval import Chunks

    return Chunks.of({"c1": "b", "c2": "b", "c3": "a"})


def secured(candidate, **options):
    roles = {"q0": ["staff"], "q1": [], "q2": ["hr"]}
    dataset = Dataset.of(
        queries={
            query: {"text": f"text {query}", "roles": each, "tags": {"kind": "pay"}} for query, each in roles.items()
        },
        qrels={"q0": {"guide": 1, "pay": 0}, "q2": {"pay": 1}},
        corpus={
            "guide": {"text": "", "roles": ["*"]},
            "pay": {"text": "", "title": "Salaries", "roles": ["hr", "board"]},
            "plan": {"text": "", "roles": []},
        },
        name="handbook",
    )
    return PipelineBench(dataset, candidate, **options)


CLEAN = {"q0": ["guide"], "q1": ["guide"], "q2": ["pay", "guide"]}
LEAKING = {"q0": ["guide", "pay"], "q1": ["pay", "plan"], "q2": ["pay"]}


def test_a_leak_names_query_role_document_and_rank():
    assert secured(CLEAN).decide("leaks@10 <= 0").status == "passed"
    with pytest.raises(GateFailure) as failure:
        secured(LEAKING).check("leaks@10 <= 0")
    text = str(failure.value)
    assert "leaks@10 <= 0: FAILED. 1.000 is above 0.000" in text
    assert 'q1  leaks@10 2.000  "text q1"' in text
    assert 'leak   pay "Salaries" (not judged)   rank 1\n           asked by no role; only for hr, board' in text
    assert "leak   plan (not judged)   rank 2\n           asked by no role; for nobody" in text
    assert 'leak   pay "Salaries" (grade 0)   rank 2\n           asked by staff; only for hr, board' in text
    assert "pay was returned to 2 queries" in text
    assert "by who asked: 2 documents for no role, 1 document for staff" in text


@settings(max_examples=25, deadline=None)
@given(
    readers=st.lists(st.sampled_from([["hr"], ["*"], ["staff"], []]), min_size=1, max_size=4),
    lists=st.lists(st.lists(st.integers(0, 3), unique=True, max_size=4), min_size=1, max_size=4),
    k=st.integers(1, 5),
)
def test_a_leak_never_passes_and_nothing_else_fails(readers, lists, k):
    docs = {f"d{number}": {"text": "", "roles": roles} for number, roles in enumerate(readers)}
    run = {f"q{place}": [f"d{n}" for n in each if n < len(readers)] for place, each in enumerate(lists)}
    queries = {query: {"text": query, "roles": ["staff"]} for query in run}
    dataset = Dataset.of(queries=queries, qrels={"q0": {"d0": 1}}, corpus=docs, name="handbook")
    if not any(run.values()):  # an index without a document shows nothing
        with pytest.raises(GateError, match="returned no document"):
            PipelineBench(dataset, run).decide(f"leaks@{k} <= 0")
        return
    leaking = {doc for each in run.values() for doc in each[:k] if docs[doc]["roles"] in (["hr"], [])}
    verdict = PipelineBench(dataset, run).decide(f"leaks@{k} <= 0")
    assert verdict.status == ("failed" if leaking else "passed")
    assert {move.doc_id for query in verdict.queries for move in query.moves} == leaking


def test_leaks_in_slices_and_of_a_stage_and_against_a_run():
    bench = secured(CLEAN, stages={"fused": LEAKING}, fused=LEAKING)
    assert bench.decide("leaks@10 <= 0", by="kind", min_n=3).status == "passed"
    assert bench.decide("leaks@1 <= 0", stage="fused", where={"kind": "pay"}).status == "failed"
    assert bench.decide("leaks@10 <= 0", stage="fused", by="kind", min_n=1).status == "failed"
    assert bench.decide("leaks@10 <= against(fused)").status in ("passed", "weak")
    worse = secured(LEAKING, fused=CLEAN).decide("leaks@10 <= against(fused)")
    assert worse.status == "failed"
    assert {move.doc_id for query in worse.queries for move in query.moves} == {"pay", "plan"}


def test_a_filter_that_removes_what_may_be_read_is_found():
    bench = secured({**CLEAN, "q2": ["guide"]}, stages={"fused": LEAKING})
    assert bench.decide("leaks@10 <= 0").status == "passed"
    verdict = bench.decide("withheld(from=fused) <= 0")
    assert verdict.status == "failed"
    (query,) = verdict.queries
    (move,) = query.moves
    assert (query.query_id, move.doc_id) == ("q2", "pay")
    assert move.said == "rank 1 after fused; asked by hr, who may read it (hr, board)"
    # What the asker may not read is no loss.
    assert secured(CLEAN, stages={"fused": LEAKING}).decide("withheld(from=fused) <= 0").status == "passed"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": "contains(kilt)"}, "reads who may read what, so that labels="),
        ({"judged": 0.5}, "reads who may read what, and no judgments"),
    ],
)
def test_options_that_say_nothing_of_access(options, said):
    with pytest.raises(GateError, match=said):
        secured(CLEAN).decide("leaks@10 <= 0", **options)


def test_a_failed_query_is_an_error_unless_tolerated():
    run = Run.of({**CLEAN, "q0": []}, errors={"q0": "timed out"})
    with pytest.raises(GateError, match="retriever failed on 1 of 3"):
        secured(run).decide("leaks@10 <= 0")
    assert secured(run).decide("leaks@10 <= 0", allow_failures=1).n == 2
