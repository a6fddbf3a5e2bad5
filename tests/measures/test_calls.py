"""Traces and what calls found: chains against sets, budgets, files, other tools' traces."""

from __future__ import annotations

import json
from datetime import datetime
from types import SimpleNamespace

import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import DataError, Dataset, GateError, GateFailure, Qrels, Queries, Run, Traces, evaluate
from pytest_retrieval_eval.reports.text import explain

DOCS = st.sampled_from("abcdef")
HITS = st.lists(DOCS, max_size=4, unique=True)
TRACES = st.lists(st.lists(HITS, max_size=4), min_size=1, max_size=5)
NEEDED = st.dictionaries(DOCS, st.sampled_from([0, 1, 2]), min_size=1)


@settings(max_examples=80, deadline=None)
@given(TRACES, st.data())
def test_a_chain_is_complete_exactly_where_the_needed_are_a_subset(traces, data):
    qrels = {f"q{number}": {**data.draw(NEEDED), "g": 2} for number in range(len(traces))}
    k = data.draw(st.integers(1, 4))
    made = Traces.of({f"q{number}": calls for number, calls in enumerate(traces)})
    names = [
        f"chain_complete@{k}",
        f"chain_recall(rel=2)@{k}",
        f"hop_recall(hop=2)@{k}",
        f"calls_to_complete(never=9)@{k}",
    ]
    qrels = {query: judged if data.draw(st.booleans()) else _without(judged) for query, judged in qrels.items()}
    qrels["q0"] = {**qrels["q0"], "a": 2}
    found = evaluate(Qrels.of(qrels), made.run(), names)
    for number, calls in enumerate(traces):
        query = f"q{number}"
        tops = [set(hits[:k]) for hits in calls]
        union = set().union(*tops)
        one, two = ({doc for doc, grade in qrels[query].items() if grade >= rel} for rel in (1, 2))
        complete, recall, hop, until = (found[name].get(query) for name in names)
        if not one:
            assert complete is None
            continue
        assert complete == (one <= union)
        assert hop == pytest.approx(len(one & tops[1]) / len(one) if len(tops) > 1 else 0)
        steps = [step for step in range(1, len(tops) + 1) if one <= set().union(*tops[:step])]
        assert until == (steps[0] if steps else 9)
        if two:
            assert recall == pytest.approx(len(two & union) / len(two))


def _without(judged):
    return {doc: grade for doc, grade in judged.items() if doc != "g"}


def agent(**more):
    return Traces.of(
        {
            "q1": [
                {"query": "who?", "hits": ["a", "b"], "seconds": 0.1, "cost": 0.5},
                {"query": "where?", "hits": ["b"], "seconds": 0.2, "cost": 0.5},
                {"query": "when?", "hits": ["c"], "seconds": 0.1, "cost": 0.5},
            ],
            "q2": [],
        },
        name="agent",
        **more,
    )


def dataset():
    queries = Queries.of({"q1": "first", "q2": {"text": "second", "unanswerable": True}})
    return Dataset.of(queries=queries, qrels={"q1": {"a": 1, "c": 1}}, name="hops")


def test_calls_are_budgeted_for_every_query():
    bench = MemoryBench(dataset(), agent().run())
    verdict = bench.check("calls <= 4")
    assert (verdict.measure, verdict.value, verdict.n, verdict.interval) == ("calls.max", 3.0, 2, None)
    assert not bench.decide("calls <= 2").ok
    assert bench.decide("calls.mean <= 2").value == 1.5
    assert bench.decide("redundant_calls <= 0.2").value == pytest.approx(1 / 6)
    assert bench.decide("latency.mean <= 250ms").value == pytest.approx(200)
    assert bench.decide("cost.mean <= 1").value == pytest.approx(0.75)
    # To have asked nothing is to have abstained.
    assert bench.decide("abstention.f1 >= 1").value == 1.0
    assert "q1  calls 3.000" in explain(bench.decide("calls <= 2"))


def test_a_budget_against_a_baseline():
    more = Traces.of({"q1": [["a"]] * 5, "q2": []}).run()
    bench = MemoryBench(dataset(), more, agent().run())
    assert bench.decide("calls <= baseline + 2").ok
    assert not bench.decide("calls <= baseline + 1").ok
    with pytest.raises(GateError, match=r"nothing can be of calls.max on these queries: take rule='mean' or 'each'"):
        bench.decide("calls <= baseline + 1", rule="noninferior")
    assert bench.decide("chain_recall@5 >= baseline - 0.6").delta == pytest.approx(-0.5)


def test_what_has_no_trace_is_an_error():
    with pytest.raises(GateError, match=r"has no traces, which measures of calls read"):
        MemoryBench(dataset(), {"q1": ["a"], "q2": []}).decide("calls <= 4")
    with pytest.raises(GateError, match=r"has no trace for 1 of 2 queries that count \(q2\)"):
        MemoryBench(dataset(), Traces.of({"q1": [["a"]]}).run()).decide("calls <= 4")
    with pytest.raises(GateError, match=r"retriever failed on 1 of 2 queries"):
        MemoryBench(dataset(), agent(errors={"q1": "lost"}).run()).decide("calls <= 4")


def test_a_chain_says_what_is_missing_and_refuses_other_ids():
    bench = MemoryBench(dataset(), Traces.of({"q1": [["a"]], "q2": []}).run(), agent().run())
    with pytest.raises(GateFailure, match=r"lost   c \(grade 1\)   rank 3 → gone"):
        bench.check("chain_complete >= baseline")
    five = Dataset.of(qrels={f"q{n}": {"doc:a": 1} for n in range(6)}, name="other")
    other = Traces.of({f"q{n}": [["a"]] for n in range(6)}).run()
    with pytest.raises(GateError, match=r"has no judged document in any list"):
        MemoryBench(five, other).decide("chain_complete >= 0")
    with pytest.raises(GateError, match=r"its calls still have those"):
        MemoryBench(dataset(), agent().run().with_header(unit="document")).decide("chain_complete >= 0.1")


def test_each_hop_is_a_run():
    hop = agent().hop(3)
    assert evaluate(Qrels.of({"q1": {"c": 1}}), hop, "recall@1")["recall@1"].mean == 1.0
    assert hop.ranking("q2").docs == []
    with pytest.raises(DataError, match=r"no query has a call number 4; the longest trace has 3"):
        agent().hop(4)


@pytest.mark.parametrize("name", ["a.traces.jsonl", "a.run.jsonl.gz", "a.parquet"])
def test_traces_are_kept_in_files(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    traces = agent(errors={"q2": "lost"})
    (traces if "traces" in name else traces.run()).save(tmp_path / name)
    again = Traces.read(tmp_path / name)
    assert dict(again) == dict(traces)
    assert again.errors == {"q2": "lost"}
    assert Run.read(tmp_path / name).digest == traces.run().digest
    assert again.run().without_seconds().calls["q1"][0].seconds is None


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ("abc", "expected a list of calls"),
        ([{"query": "?"}], "has no hits"),
        ([{"hits": ["a"], "seconds": -1}], "the seconds of a call are -1; expected a number of 0 or more"),
        ([{"hits": ["a"], "seconds": float("nan")}], "the seconds of a call are nan"),
        ([{"hits": ["a"], "cost": "much"}], "the cost of a call are 'much'"),
        ([{"hits": ["a"], "latency": 2}], "a call has no field 'latency'"),
        ([{"hits": {"a", "b"}}], "a set, which has no order"),
        ([{"hits": ["a"], "query": 3}], "the query of a call is 3; expected a text"),
    ],
)
def test_what_is_no_call_is_refused(calls, sentence):
    with pytest.raises(DataError, match=r"query 'q1'") as caught:
        Traces.of({"q1": calls})
    assert sentence in str(caught.value)


def test_a_broken_file_names_its_line(tmp_path):
    place = tmp_path / "x.jsonl"
    place.write_text('{"query_id": "q1", "calls": []}\n{"query_id": "q1", "calls": []}\n')
    with pytest.raises(DataError, match=r"x.jsonl:2: query 'q1' has a second trace"):
        Traces.read(place)
    place.write_text('{"query_id": "q1", "calls": []}\n{"id": "q2"}\n')
    with pytest.raises(DataError, match=r"x.jsonl:2: .* is no trace"):
        Traces.read(place)


@settings(max_examples=40, deadline=None)
@given(TRACES, st.data())
def test_a_hop_is_held_against_what_it_needs_itself(traces, data):
    """Against sets: the share of the hop's own documents in the top k of the call of that number."""
    hop, k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    chains = [
        data.draw(st.lists(st.lists(DOCS, min_size=1, max_size=2, unique=True), min_size=1, max_size=3)) for _ in traces
    ]
    queries = Queries.of({f"q{n}": {"text": "?", "hops": hops} for n, hops in enumerate(chains)})
    qrels = Qrels.of({f"q{n}": {doc: 1 for docs in hops for doc in docs} | {"x": 0} for n, hops in enumerate(chains)})
    name = f"hop_recall(hop={hop}, gold=hop)@{k}"
    run = Traces.of({f"q{n}": [["x"], *calls[1:]] if n == 0 else calls for n, calls in enumerate(traces)}).run()
    expected = {
        f"q{n}": len(set(hops[hop - 1]) & set(run.calls[f"q{n}"][hop - 1].docs[:k] if hop <= len(calls) else ()))
        / len(hops[hop - 1])
        for n, (hops, calls) in enumerate(zip(chains, [run.calls[f"q{n}"] for n in range(len(traces))], strict=True))
        if hop <= len(hops)
    }
    if not expected:
        with pytest.raises(GateError, match=f"no query has a hop {hop}; the longest has"):
            evaluate(qrels, run, name, queries=queries)
        return
    assert evaluate(qrels, run, name, queries=queries).scores(name).to_dict() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("hops", "said"),
    [
        ({}, r"reads what each hop needs, and 1 of 2 queries do not say \(q1\): give them hops in queries.jsonl"),
        ({"hops": [["a"], ["z"]]}, r"hop 2 of the query q1 needs z, which the labels do not call relevant"),
        ({"hops": [["a"]]}, r"no query has a hop 2; the longest has 1"),
    ],
)
def test_a_hop_that_nobody_describes_is_an_error_and_no_0(hops, said):
    queries = Queries.of({"q1": {"text": "first", **hops}, "q2": {"text": "second", "hops": [["a"]]}})
    data = Dataset.of(queries=queries, qrels={"q1": {"a": 1, "c": 1}, "q2": {"a": 1}}, name="hops")
    run = Traces.of({"q1": [["a"], ["c"]], "q2": [["a"]]}).run()
    with pytest.raises(GateError, match=said):
        MemoryBench(data, run).decide("hop_recall(hop=2, gold=hop)@5 >= 0")


@pytest.mark.parametrize("hops", [[], "d4", ["d4"], [[]], [["d4"], "d2"]])
def test_hops_that_are_none(hops):
    with pytest.raises(DataError, match=r"the hops of query 'q1' are .* expected a list with the ids"):
        Queries.of({"q1": {"text": "first", "hops": hops}})


def test_events_of_llamaindex_are_traces():
    class Event(SimpleNamespace):
        def class_name(self):
            return self.kind

    def event(kind, span, second, **more):
        when = datetime(2026, 1, 1, 0, 0, second)
        return Event(kind=f"Retrieval{kind}Event", span_id=span, timestamp=when, **more)

    def nodes(*ids):
        return [SimpleNamespace(node=SimpleNamespace(node_id=each), score=0.5) for each in ids]

    first, then = SimpleNamespace(query_str="first?"), "then?"
    events = [
        event("Start", "s1", 0, str_or_query_bundle=first),
        Event(kind="EmbeddingStartEvent", span_id="s1"),
        event("End", "s1", 2, str_or_query_bundle=first, nodes=nodes("a", "b")),
        event("Start", "s2", 3, str_or_query_bundle=then),
        event("End", "s2", 4, str_or_query_bundle=then, nodes=nodes("c")),
    ]
    traces = Traces.of_llamaindex({"q1": events, "q2": []})
    assert [(call.query, call.docs, call.seconds) for call in traces["q1"]] == [
        ("first?", ("a", "b"), 2.0),
        ("then?", ("c",), 1.0),
    ]
    assert traces["q2"] == ()
    with pytest.raises(DataError, match=r"query 'q1': the retrieval of the span 's2' began and has no RetrievalEnd"):
        Traces.of_llamaindex({"q1": events[:-1]})
    with pytest.raises(DataError, match=r"the span 's2' has no RetrievalStartEvent before it"):
        Traces.of_llamaindex({"q1": events[4:]})


def test_run_trees_of_langchain_are_traces():
    def retriever(start, question, ids):
        documents = [{"page_content": "…", "metadata": {"id": each}} for each in ids]
        return {
            "run_type": "retriever",
            "name": "store",
            "start_time": f"2026-01-01T00:00:0{start}Z",
            "end_time": f"2026-01-01T00:00:0{start}.500000+00:00",
            "inputs": {"query": question},
            "outputs": {"documents": documents},
            "child_runs": [],
        }

    tree = {
        "run_type": "chain",
        "child_runs": [
            {"run_type": "tool", "child_runs": [retriever(3, "then?", ["c"])]},
            retriever(1, "first?", ["a", "b"]),
        ],
    }
    traces = Traces.of_langchain({"q1": tree})
    assert [(call.query, call.docs, call.seconds, call.tool) for call in traces["q1"]] == [
        ("first?", ("a", "b"), 0.5, "store"),
        ("then?", ("c",), 0.5, "store"),
    ]
    with pytest.raises(DataError, match=r"has no outputs.documents"):
        Traces.of_langchain({"q1": {"run_type": "retriever", "name": "x"}})


def test_spans_of_opentelemetry_are_traces():
    def span(start, attributes, kind=None):
        said = {**attributes, **({"openinference.span.kind": kind} if kind else {})}
        return {
            "traceId": "t1",
            "name": "retrieve",
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + 250_000_000),
            "attributes": [{"key": key, "value": {_KIND[type(value)]: value}} for key, value in said.items()],
        }

    hits = {"retrieval.documents.1.document.id": "b", "retrieval.documents.0.document.id": "a"}
    hits["retrieval.documents.0.document.score"] = 0.5
    hits["retrieval.documents.1.document.score"] = 0.25
    spans = [
        span(2_000, {"input.value": "then?", "retrieval.documents.0.document.id": "c"}, "RETRIEVER"),
        span(1_000, {"input.value": "first?", **hits}, "RETRIEVER"),
        span(0, {"query_id": "q1"}, "AGENT"),
    ]
    document = json.loads(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    traces = Traces.of_opentelemetry(document)
    assert [(call.query, call.docs, call.seconds) for call in traces["q1"]] == [
        ("first?", ("a", "b"), 0.25),
        ("then?", ("c",), 0.25),
    ]
    with pytest.raises(DataError, match=r"the trace t1 names 0 queries in the attribute 'query_id'"):
        Traces.of_opentelemetry(spans[:2])
    del spans[1]["endTimeUnixNano"]
    with pytest.raises(DataError, match=r"has the end time None; expected nanoseconds"):
        Traces.of_opentelemetry(spans)


_KIND = {str: "stringValue", float: "doubleValue"}
