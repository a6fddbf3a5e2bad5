"""Other kinds of evidence: a measure that reads neither judgments nor spans, from its registration to a gate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval import Dataset, GateError, GateFailure, Measure, MeasureError, Qrels, Run, evaluate
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evidence import Evidence, Given, register_evidence
from pytest_retrieval_eval.measures.extending import measure
from pytest_retrieval_eval.measures.ranks import JudgedRanks, facts_of


def clocks(given: Given) -> Evidence:
    """How long the run took for each query of the dataset, whatever is judged."""
    if not given.run.seconds:
        raise GateError("the run does not say how long its queries took")
    ids = tuple(given.queries or given.run.query_ids)
    labels = Qrels.of({query: {"answer": 1} for query in ids})
    seconds = np.array([given.run.seconds.get(query, np.nan) for query in ids])
    known, nothing, none = ~np.isnan(seconds), np.zeros(0, np.int64), np.zeros(len(ids), np.int64)
    table = JudgedRanks(
        facts_of(labels),
        *(nothing, nothing, np.zeros(0), nothing, nothing),
        returned=known.astype(np.int64),
        in_run=known,
        ties=none,
        beside=seconds,
    )
    return Evidence(labels, table, noun="clock")


@pytest.fixture
def slow():
    register_evidence("clocks of a test", clocks, "the times of a run")

    @measure("slow", reads="clocks of a test", cutoff="none", binary=False)
    def slow(ranks: Any, asked: Measure) -> Any:
        """1 for a query that took more than a second."""
        return ranks.beside > 1.0

    yield
    registry.unregister("slow")


DATA = Dataset.of(qrels={f"q{i}": ["a"] for i in range(12)}, name="small")


def run(*slow_ones: int, name: str = "") -> Run:
    hits = {f"q{i}": ["a"] for i in range(12)}
    return Run.of(hits, name=name, seconds={f"q{i}": 2.0 if i in slow_ones else 0.1 for i in range(12)})


def test_it_stands_beside_others(slow):
    found = evaluate(DATA.qrels, run(1), ["recall@1", "slow"])
    assert found["recall@1"].mean == 1.0
    assert found["slow"].to_dict() == {f"q{i}": float(i == 1) for i in range(12)}


def test_it_is_gated_as_any_other(slow):
    bench = MemoryBench(DATA, run(1, 2, 3), run(1))
    assert bench.check("slow <= 0.25").ok
    with pytest.raises(GateFailure) as failure:
        bench.check("slow <= baseline")
    verdict = failure.value.verdict
    assert [query.query_id for query in verdict.queries] == ["q2", "q3"]
    assert verdict.labels == "clocks of a test"
    assert verdict.judged == (None, None)
    assert not verdict.to_judge
    with pytest.raises(GateError, match=r"slow reads the times of a run, so that labels=qrels would say nothing"):
        bench.decide("slow <= 0.5", labels="qrels")
    with pytest.raises(GateError, match="does not say how long"):
        MemoryBench(DATA, Run.of({"q1": ["a"]})).decide("slow <= 0.5")


def test_a_name_means_one_thing(slow):
    with pytest.raises(MeasureError, match="'spans' is registered already"):
        register_evidence("spans", clocks, "spans")
    with pytest.raises(MeasureError, match=r"condensed makes other lists.*slow reads the times of a run"):
        evaluate(DATA.qrels, run(1), "condensed(slow)")
