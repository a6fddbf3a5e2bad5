"""Gates on times in a session: in one process and two, from a gate file, and what a baseline keeps of them."""

from __future__ import annotations

import json

from pytest_retrieval_eval import Run

GATES = """\
gates:
  fast: {gate: "latency.p95 <= 30s"}
  no-slower: {gate: "latency.p95 <= baseline * 1000 + 10s"}
  found: {gate: "recall@2 >= baseline"}
"""
TEST = """\
def test_fast(assert_metric):
    assert assert_metric("latency.p95") <= 30_000
def test_no_slower(metric, baseline):
    assert metric("latency.p95") <= baseline * 1000 + 10_000
"""
BASELINE = "eval/small/baselines/main.run.jsonl.gz"


def test_times_are_gated_in_python_and_in_a_file(project, dist):
    project.ini("retrieval_warmup = 2", "retrieval_repeat = 3")
    project.gates(GATES)
    project.test(TEST)
    project.run(*dist, "--retrieval-update=new").assert_outcomes(passed=5)
    stored = Run.read(project.path / BASELINE)
    assert set(stored.seconds) == {"q1", "q2", "q3", "q4"}
    assert stored.header["timing"]["repeat"] == 3
    result = project.run("--retrieval-json=out.json")
    result.assert_outcomes(passed=5)
    notes = {note for gate in _verdicts(project) for note in gate["notes"]}
    assert "times of the median of 3 passes after 2 queries to warm up" in notes


def _verdicts(project):
    report = json.loads((project.path / "out.json").read_text())
    return [verdict for test in report["tests"] for verdict in test["verdicts"]]


def test_a_baseline_keeps_times_only_for_a_gate_that_reads_them(project):
    project.test("def test_found(recall_at, baseline):\n    assert recall_at(2) >= baseline\n", "test_found.py")
    project.run("--retrieval-update=new").assert_outcomes(passed=1)
    place = project.path / BASELINE
    first = place.read_bytes()
    assert not Run.read(place).seconds
    assert "timing" not in Run.read(place).header
    # A gate on times has none to compare with, and says so.
    project.test(TEST, "test_fast.py")
    result = project.run()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*has a time for none of the queries that count*"])
    # The same hits with times are another baseline,
    project.run("--retrieval-update=all").assert_outcomes(passed=3)
    second = place.read_bytes()
    assert second != first
    assert Run.read(place).seconds
    # and the same hits with other times are not, nor are those of a session that reads none.
    project.run("--retrieval-update=all").assert_outcomes(passed=3)
    project.run("--retrieval-update=all", "test_found.py").assert_outcomes(passed=1)
    assert place.read_bytes() == second


def test_a_slow_query_fails_the_gate_and_is_named(project):
    (project.path / "conftest.py").write_text(
        "import time, pytest\n"
        "def search(query):\n"
        "    time.sleep(0.3 if query == 'third question' else 0)\n"
        "    return ['a']\n"
        "@pytest.fixture(scope='session')\n"
        "def retriever():\n"
        "    return search\n"
    )
    project.test('def test_fast(gate):\n    gate("latency.p99 <= 200ms")\n')
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*latency.p99 over 4 queries is next to*", "*q3  latency 3*ms*third question*"])


def test_wrong_settings_are_usage_errors(project):
    for line, sentence in (
        ("retrieval_warmup = -1", "retrieval_warmup = -1: expected 0 or more"),
        ("retrieval_repeat = 0", "retrieval_repeat = 0: expected 1 or more"),
    ):
        project.ini(line)
        result = project.run()
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"*{sentence}*"])
