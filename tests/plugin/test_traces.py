"""Gates on traces in a session: from the fixture and from a file, in one process and two."""

from __future__ import annotations

import json

from pytest_retrieval_eval import Run

CONFTEST = """\
import pytest
from pytest_retrieval_eval import Traces

@pytest.fixture(scope="session")
def retrieval_traces():
    calls = {"q1": [["a"], ["a"]], "q2": [["b"]], "q3": [["c"], ["d"], ["a"]], "q4": []}
    return Traces.of(calls, name="agent")
"""
TEST = """\
def test_budget(assert_metric):
    assert assert_metric("calls") <= 3

def test_chain(metric, baseline):
    assert metric("chain_complete@1") >= 0.75
    assert metric("chain_recall@1") >= baseline

def test_traces_are_there(retrieval_traces, retrieval_run, recall_at):
    assert retrieval_traces["q1"][0].docs == ("a",)
    assert retrieval_run.calls["q1"] == retrieval_traces["q1"]
    assert recall_at(3) >= 0.75
"""


def test_traces_are_gated(project, dist):
    (project.path / "conftest.py").write_text(CONFTEST)
    project.test(TEST)
    project.run(*dist, "--retrieval-update=new").assert_outcomes(passed=3)
    stored = Run.read(project.path / "eval/small/baselines/main.run.jsonl.gz")
    assert [call.docs for call in stored.calls["q3"]] == [("c",), ("d",), ("a",)]


def test_a_file_of_traces_is_a_run(project):
    rows = '{"query_id": "q1", "calls": [{"hits": ["a"]}]}\n{"query_id": "q2", "calls": []}\n'
    rows += '{"query_id": "q3", "calls": []}\n{"query_id": "q4", "calls": [["d"], ["x"], ["y"]]}\n'
    (project.path / "agent.traces.jsonl").write_text(rows)
    project.gates("run: agent.traces.jsonl\ngates:\n  budget: calls <= 2\n  found: chain_complete >= 0.5\n")
    result = project.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*calls.max <= 2: FAILED. 3.000 is above 2.000*", "*q4  calls 3.000*fourth question*"])


def test_hops_in_python_and_in_a_gate_file_with_slices(project, dist):
    (project.path / "conftest.py").write_text(CONFTEST)
    hops = {"q1": [["a"]], "q2": [["b"]], "q3": [["c"], ["d"]], "q4": [["d"], ["d"]]}
    rows = [
        {"_id": query, "text": query, "hops": each, "tags": {"kind": "one" if query < "q3" else "two"}}
        for query, each in hops.items()
    ]
    (project.path / "eval/small/queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    project.test(
        "def test_first(metric):\n    assert metric('hop_recall(hop=1, gold=hop)@1', by='kind', min_n=1) >= 0.5\n"
        "def test_second(metric):\n    verdict = metric('hop_recall(hop=2, gold=hop)@1') >= 0.5\n"
        "    assert verdict.n == 2\n"
    )
    project.gates(
        "gates:\n"
        "  second: hop_recall(hop=2, gold=hop)@1 >= 0.5\n"
        "  of-two: {gate: 'hop_recall(hop=1, gold=hop)@1 <= 0.5', where: {kind: two}}\n"
        "  third: hop_recall(hop=3, gold=hop)@1 >= 0\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*no query has a hop 3; the longest has 2*"])


def test_two_sources_of_the_run_are_an_error(project):
    (project.path / "conftest.py").write_text(CONFTEST)
    project.test("def test_budget(gate):\n    gate('calls <= 3')\n")
    path = project.run_file("other.trec", {"q1": ["a"]})
    result = project.run(f"--retrieval-run={path}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*meets a project's own fixture retrieval_traces*"])


def test_a_fixture_that_is_no_trace_is_an_error(project):
    (project.path / "conftest.py").write_text(CONFTEST.replace('Traces.of(calls, name="agent")', "7"))
    project.test("def test_budget(gate):\n    gate('calls <= 3')\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the fixture retrieval_traces returned int, expected Traces*"])
