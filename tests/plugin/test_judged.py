"""labels=judged in a session: what is missing is named and written, and once it is judged the gate is decided."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.cli import main
from pytest_retrieval_eval.labels.judgments import Judgments

TEST = """
import pytest

@pytest.mark.retrieval(labels="judged")
def test_marked(metric, baseline):
    assert metric("hit@1") >= baseline

def test_there(judgments, retrieval_judgments):
    assert judgments is retrieval_judgments
    assert judgments.folder.name == "judgments"
"""
GATES = """
dataset: small
baseline: main
defaults: {labels: judged}
gates:
  top: "hit@1 >= baseline"
  deep: {gate: "recall@3 >= 0.9", judged: 0.5}
  both: {gate: "hit@1 >= 0.1", labels: [qrels, judged]}
"""
MINE = """
from pytest_retrieval_eval.labels.judging.judges import CallableJudge
from pytest_retrieval_eval.labels.judging.replies import Scale

def judge():
    return CallableJudge(lambda query, text: 2 if "second" in query else 1, Scale(0, 2), identity="mine")
"""


@pytest.fixture
def judged(project):
    rows = [{"_id": doc, "title": "", "text": f"passage {doc}"} for doc in "abcd"]
    (project.path / "eval/small/corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    project.run_file("eval/small/baselines/old.trec", {"q1": ["b"], "q2": ["b"], "q3": ["d"], "q4": ["d"]})
    (project.path / "mine.py").write_text(MINE)
    return project


def fill(project, pairs, *more):
    assert main(["judge", str(project.path / pairs), "--judge", "mine:judge", *more]) == 0


def test_the_pairs_are_written_judged_and_then_decided(judged, dist, monkeypatch):
    monkeypatch.chdir(judged.path)
    judged.ini("retrieval_baseline = old", "retrieval_baseline_dir =")
    judged.test(TEST.replace('labels="judged"', 'labels="judged", baseline="old"'))
    place = judged.path / "eval/small/baselines/old.run.jsonl.gz"
    from pytest_retrieval_eval.collection.runs.run import Run

    Run.read(judged.path / "eval/small/baselines/old.trec").save(place)
    result = judged.run("--retrieval-to-judge=pairs.jsonl", *dist)
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert "8 pairs of query and document in the first ranks have no judgment; judge them with: pytest" in text
    assert (
        "pytest --retrieval-to-judge=pairs.jsonl test_it.py::test_marked; pytest-retrieval-eval judge pairs.jsonl"
        in text
    )
    rows = [json.loads(line) for line in (judged.path / "pairs.jsonl").read_text().splitlines()]
    assert {(row["query_id"], row["doc_id"]) for row in rows} == {
        ("q1", "a"), ("q1", "b"), ("q2", "b"), ("q2", "c"), ("q3", "c"), ("q3", "d"), ("q4", "a"), ("q4", "d")
    }  # fmt: skip
    fill(judged, "pairs.jsonl")
    before = sorted(str(path) for path in (judged.path / "judgments").rglob("*"))
    result = judged.run("-v", *dist)
    result.assert_outcomes(passed=2)
    # A gate reads, and writes nothing.
    assert sorted(str(path) for path in (judged.path / "judgments").rglob("*")) == before
    # A text that changed is unjudged again, and the gate says so.
    rows = [{"_id": doc, "title": "", "text": f"passage {doc} anew"} for doc in "abcd"]
    (judged.path / "eval/small/corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged.run().assert_outcomes(passed=1, failed=1)


def test_gate_files(judged, monkeypatch, dist):
    monkeypatch.chdir(judged.path)
    judged.ini("retrieval_judgments = eval/judged")
    judged.gates(GATES.replace("baseline: main\n", "").replace("hit@1 >= baseline", "hit@1 >= 0.9"))
    judged.run("--retrieval-to-judge=pairs.jsonl").assert_outcomes(failed=3)
    fill(judged, "pairs.jsonl", "--judgments", "eval/judged")
    result = judged.run("--retrieval-json=report.json", *dist)
    result.assert_outcomes(passed=3)
    report = json.loads((judged.path / "report.json").read_text())
    found = {test["nodeid"].rpartition("::")[2]: test["verdicts"][0] for test in report["tests"]}
    assert {name: verdict["labels"] for name, verdict in found.items()} == {
        "top": "judged",
        "deep": "judged",
        "both": "qrels, judged",
    }


def test_an_inconclusive_gate_in_the_summary(judged, monkeypatch):
    monkeypatch.chdir(judged.path)
    judged.ini("retrieval_judgments = eval/judged")
    judged.test("def test_top(metric):\n    assert metric('hit@1', labels='judged') >= 0.1\n")
    judged.run("--retrieval-to-judge=pairs.jsonl")
    rows = (judged.path / "pairs.jsonl").read_text().splitlines()
    (judged.path / "some.jsonl").write_text("\n".join(rows[:2]) + "\n")
    fill(judged, "some.jsonl", "--judgments", "eval/judged")
    result = judged.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "inconclusive" in text
    assert "2 pairs in the first 1 ranks of the run have no judgment" in text
    assert "pytest-retrieval-eval judge pairs.jsonl --judgments eval/judged" in text


def test_whose_judgments_count(judged, monkeypatch):
    monkeypatch.chdir(judged.path)
    judged.test("def test_top(metric):\n    assert metric('hit@1', labels='judged') >= 0.1\n")
    judged.run("--retrieval-to-judge=pairs.jsonl")
    fill(judged, "pairs.jsonl")
    (judged.path / "mine.py").write_text(MINE.replace("mine", "yours"))
    (judged.path / "yours.py").write_text(MINE.replace('"mine"', '"yours"'))
    assert main(["judge", "pairs.jsonl", "--judge", "yours:judge"]) == 0
    names = sorted(Judgments("judgments").judges)
    result = judged.run()
    result.assert_outcomes(failed=1)
    assert "has the grades of 2 judges" in result.stdout.str()
    judged.ini(f"retrieval_judged_by = {names[0]}")
    judged.run().assert_outcomes(passed=1)
    judged.ini("retrieval_judged_by = another")
    assert "no judge 'another'" in judged.run().stdout.str()
    judged.ini("retrieval_contradictions = last")
    wrong = judged.run()
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*retrieval_contradictions = last: *"])


def test_a_project_s_own_judgments(judged, monkeypatch):
    monkeypatch.chdir(judged.path)
    judged.test("def test_top(metric):\n    assert metric('hit@1', labels='judged') >= 0.1\n")
    judged.run("--retrieval-to-judge=pairs.jsonl")
    fill(judged, "pairs.jsonl", "--judgments", "elsewhere")
    conftest = judged.path / "conftest.py"
    own = "@pytest.fixture(scope='session')\ndef retrieval_judgments():\n    return {value}\n"
    before = conftest.read_text()
    conftest.write_text(before + own.format(value="'elsewhere'"))
    judged.test(
        "def test_top(metric, judgments):\n"
        "    assert judgments.folder.name == 'elsewhere'\n"
        "    assert metric('hit@1', labels='judged') >= 0.1\n"
    )
    judged.run(own_process=True).assert_outcomes(passed=1)
    judged.test("def test_top(metric):\n    assert metric('hit@1', labels='judged') >= 0.1\n")
    conftest.write_text(before + own.format(value="7"))
    result = judged.run(own_process=True)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*retrieval_judgments returned int, expected Judgments or the path*"])
