"""Labels from answers in a session: marker, gate file, and the baseline that keeps its texts."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.labels.answers import METRICS

TEXTS = {"a": "It takes 14 days.", "b": "It rains.", "c": "Ask in Graz.", "d": "Two weeks."}
ANSWERS = {"q1": ["14 days"], "q2": ["rains"], "q3": ["two weeks"]}
TEST = """
import pytest

@pytest.mark.retrieval(labels="contains(kilt)")
def test_marked(metric, baseline):
    assert metric("hit@1") >= baseline

def test_deeper(metric, baseline):
    assert metric("recall@2", labels=["contains(dpr)"]) >= baseline

def test_judged(metric, baseline):
    assert metric("hit@1") >= baseline
"""
GATES = """
dataset: small
defaults: {labels: contains(kilt)}
gates:
  found: "hit@3 >= 0.99"
  list: {gate: "recall@3 >= 0.99", normalise: list}
  both: {gate: "hit@1 >= 0.2", labels: [qrels, contains(kilt)]}
"""
PLACE = "eval/small/baselines/main.run.jsonl.gz"
# In every list of the candidate a document contains the answer.
HITS = {"q1": ["a", "b"], "q2": ["c", "b"], "q3": ["c", "a", "d"], "q4": ["a", "b", "c"]}


@pytest.fixture
def answered(project):
    write(project.path / "eval/small", TEXTS)
    project.conftest(HITS)
    return project


def write(folder, texts):
    rows = [{"_id": doc, "title": "", "text": text} for doc, text in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"query_id": query, "answers": found} for query, found in ANSWERS.items()]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_baseline_keeps_the_texts_that_its_labels_read(answered, dist):
    answered.test(TEST)
    answered.run("--retrieval-update=new", *dist).assert_outcomes(passed=3)
    stored = Run.read(answered.path / PLACE)
    # Two ranks of the queries with answers: no more was read. q4 has none, and rank 3 of q3 was not looked at.
    assert {doc: found.text for doc, found in stored.texts.items()} == {doc: TEXTS[doc] for doc in "abc"}
    assert str(stored.header["answers"]).startswith("sha256:")
    answered.run(*dist).assert_outcomes(passed=3)
    # The document that said it is rewritten: the same lists are worse than they were.
    write(answered.path / "eval/small", {**TEXTS, "a": "It takes a while."})
    result = answered.run(*dist)
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert "note: the text of 1 document is not the same for both sides" in text
    assert "changed: the corpus has changed since the baseline was saved" in text


def test_a_document_that_the_corpus_lacks_is_an_error_whatever_the_target(answered, dist):
    answered.test(TEST)
    answered.run("--retrieval-update=new").assert_outcomes(passed=3)
    answered.test(TEST + "\n\ndef test_fixed(metric):\n    assert metric('hit@1', labels='contains(kilt)') >= 0.1\n")
    write(answered.path / "eval/small", {doc: text for doc, text in TEXTS.items() if doc != "a"})
    result = answered.run(*dist)
    result.assert_outcomes(passed=1, failed=3)  # the judgments read no text
    for gates, labels in ((2, "contains(kilt)"), (1, "contains(dpr)")):
        said = f"E   *labels={labels} read the text of each retrieved document, and 1 has none (a; in run retriever): *"
        result.stdout.fnmatch_lines([said.replace("[", "[[]")] * gates)


def test_the_same_baseline_again_is_left_alone(answered):
    answered.test(TEST)
    answered.run("--retrieval-update=all").assert_outcomes(passed=3)
    before = (answered.path / PLACE).read_bytes()
    answered.run("--retrieval-update=all").assert_outcomes(passed=3)
    assert (answered.path / PLACE).read_bytes() == before


def test_gate_files_take_labels(answered, dist):
    answered.gates(GATES)
    result = answered.run(*dist, "--retrieval-json=report.json")
    result.assert_outcomes(passed=3)
    report = json.loads((answered.path / "report.json").read_text())
    found = {test["nodeid"].rpartition("::")[2]: test["verdicts"][0] for test in report["tests"]}
    assert {name: verdict["labels"] for name, verdict in found.items()} == {
        "found": "contains(kilt)",
        "list": "contains(kilt)",
        "both": "qrels, contains(kilt)",
    }
    assert (found["found"]["n"], found["both"]["n"]) == (3, 4)
    assert found["found"]["provenance"]["dataset"]["answers"].startswith("sha256:")


def test_a_gate_file_names_the_line_of_a_wrong_source(answered):
    answered.gates(GATES.replace("[qrels, contains(kilt)]", "[qrels, contained]"))
    result = answered.run()
    result.stdout.re_match_lines([r".*small.gates.yaml:7: there are no labels 'contained'; did you mean contains"])
    answered.gates(GATES.replace("labels: [qrels, contains(kilt)]", "labels: qrels, normalise: list"))
    answered.run().stdout.re_match_lines([r".*small.gates.yaml:7: normalise= says which documents"])


HOOK = """
def pytest_retrieval_answer_metrics():
    return {{"first_word": {value}}}
"""


def test_a_metric_of_the_conftest(project, dist):
    place = project.path / "conftest.py"
    first = "lambda predicted, gold: float(predicted.split()[0] == gold.split()[0])"
    place.write_text(place.read_text() + HOOK.format(value=first))
    project.test(
        "from pytest_retrieval_eval.labels.answers import answer_score\n"
        "def test_it():\n    assert answer_score('first_word', 'Graz now', ['Leeds', 'Graz']) == 1\n"
    )
    project.run(*dist).assert_outcomes(passed=1)
    assert "first_word" not in METRICS


def test_what_is_no_metric(project):
    place = project.path / "conftest.py"
    place.write_text(place.read_text() + HOOK.format(value="1"))
    project.test("def test_it():\n    pass\n")
    result = project.run(own_process=True)
    assert result.ret == 4
    result.stderr.re_match_lines([r"ERROR: .*conftest.py: pytest_retrieval_answer_metrics: an answer metric is a name"])
