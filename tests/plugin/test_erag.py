"""Gates on what a reader can answer, in a session: what is read, workers, failures, configuration."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.readers.callable_reader import CallableReader
from pytest_retrieval_eval.readers.reading import identity_digest

CORPUS = {"a": "14 days", "b": "It rains", "c": "Ask in Graz", "d": "two weeks", "e": "Umeå"}
ANSWERS = {"q1": ["14 days"], "q2": ["rains", "it rains!"], "q3": ["Two weeks"], "q4": ["umeå"]}
#: The labels of these lists are 1 0, 0 1, 0 0 1 and none: hit@2 is 0.5, hit@1 0.25.
HITS = {"q1": ["a", "b"], "q2": ["c", "b"], "q3": ["c", "a", "d"], "q4": []}
READER = '''
import os

LOG = {log!r}

def answer(query, texts):
    """Answers with the document, and counts."""
    handle = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, (query + "|" + "|".join(texts) + "\\n").encode())
    os.close(handle)
    {body}
    return texts[0] if texts else "14 days"
'''
FIXTURE = """
import pytest
from myreader import answer
from pytest_retrieval_eval.readers.callable_reader import CallableReader

@pytest.fixture(scope="session")
def retrieval_reader():
    return CallableReader(answer, identity="the document itself, v1")
"""
TEST = """
import pytest

pytestmark = pytest.mark.retrieval(labels="erag")

def test_hit(metric):
    assert metric("hit@2") >= 0.5

def test_rank(metric):
    assert metric("mrr@2") >= 0.3

def test_f1(metric):
    assert metric("hit@2", answer_metric="f1") >= 0.5

def test_deeper(metric):
    assert metric("hit@3") >= 0.7
"""


class Reading:
    """A project with answers, a reader that counts, and gates on what it answers."""

    def __init__(self, project):
        self.project, self.path = project, project.path
        self.folder = project.path / "eval/small"
        self.log = project.path / "log"
        self.corpus(CORPUS)
        self.answers(ANSWERS)
        self.reader()
        project.conftest(HITS)
        conftest = project.path / "conftest.py"
        conftest.write_text(conftest.read_text() + FIXTURE)
        project.test(TEST)

    def corpus(self, texts):
        rows = [{"_id": doc, "title": "", "text": text} for doc, text in texts.items()]
        (self.folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answers(self, answers):
        rows = [{"query_id": query, "answers": found} for query, found in answers.items()]
        (self.folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def reader(self, body="pass"):
        (self.path / "myreader.py").write_text(READER.format(log=str(self.log), body=body))

    def run(self, *arguments):
        self.log.unlink(missing_ok=True)
        return self.project.run(*arguments)

    @property
    def calls(self):
        return sorted(self.log.read_text(encoding="utf-8").splitlines()) if self.log.exists() else []


@pytest.fixture
def reading(project):
    return Reading(project)


def test_four_processes_make_as_many_calls_as_one(reading):
    result = reading.run("-n4")
    result.assert_outcomes(passed=4)
    # Two of q1, two of q2, three of q3, none of q4; the metric and the measure ask for nothing more.
    assert len(reading.calls) == len(set(reading.calls)) == 7
    result.stdout.re_match_lines([r"reader: \d+ hits?, \d+ miss(es)?.*, 7 calls, tokens unknown, \d+\.\d s"])


def test_the_verdict_and_the_report_name_the_reader(reading):
    reading.run("--retrieval-json=report.json").assert_outcomes(passed=4)
    report = json.loads((reading.path / "report.json").read_text())
    readers = [test["verdicts"][0]["reader"] for test in report["tests"]]
    identity = CallableReader(len, identity="the document itself, v1").identity
    expected = {"kind": "callable", "model": "the document itself, v1", "digest": f"sha256:{identity_digest(identity)}"}
    assert readers == [expected] * 4
    reading.project.test(TEST.replace(">= 0.7", ">= 0.9"))
    result = reading.run()
    result.stdout.fnmatch_lines(
        [f"*labels erag by the reader callable the document itself, v1 {expected['digest'][7:19]},*"]
    )
    reading.project.test(TEST.replace('labels="erag"', "").replace(', answer_metric="f1"', ""))
    reading.run("--retrieval-json=report.json")
    report = json.loads((reading.path / "report.json").read_text())
    assert [test["verdicts"][0]["reader"] for test in report["tests"]] == [{}] * 4


def test_each_pair_is_read_once_and_never_again(reading):
    result = reading.run()
    result.assert_outcomes(passed=4)
    assert len(reading.calls) == len(set(reading.calls)) == 7
    result.stdout.re_match_lines([r"reader: 18 hits, 7 misses, 7 calls, tokens unknown, \d+\.\d s"])
    result = reading.run()
    result.assert_outcomes(passed=4)
    assert reading.calls == []
    result.stdout.fnmatch_lines(["reader: 25 hits, 0 misses, 0 calls"])
    # A full cache that may only be read needs no reader that works.
    reading.reader("raise RuntimeError('there is no model here')")
    reading.run("--retrieval-cache-mode=ro").assert_outcomes(passed=4)
    assert reading.calls == []
    # One changed document is one call for each query that returns it.
    reading.reader()
    reading.corpus({**CORPUS, "c": "Ask in Vienna"})
    reading.run().assert_outcomes(passed=4)
    assert [call.rpartition("|")[2] for call in reading.calls] == ["Ask in Vienna"] * 2


def test_a_run_that_shares_its_documents_costs_what_is_new(reading):
    reading.run().assert_outcomes(passed=4)
    # Of the five documents of these lists four were read.
    reading.project.run_file("runs/new.trec", {"q1": ["b", "a"], "q2": ["b", "c"], "q3": ["e"], "q4": []})
    reading.project.test(
        "def test_it(metric):\n    assert metric('hit@2', labels='erag', run='runs/new.trec') >= 0.2\n"
    )
    reading.run().assert_outcomes(passed=1)
    assert reading.calls == ["third question|Umeå"]


def test_a_document_that_stands_twice_is_read_once(reading):
    reading.project.run_file("runs/one.trec", {"q1": ["b", "a"], "q2": ["b"], "q3": ["d"], "q4": []})
    reading.corpus({**CORPUS, "b": CORPUS["a"]})
    reading.project.test(
        "def test_it(metric):\n    assert metric('precision@2', labels='erag', run='runs/one.trec') >= 0.374\n"
    )
    # The two documents of q1 have one text: both are right, and one call says so.
    reading.run().assert_outcomes(passed=1)
    assert reading.calls == ["first question|14 days", "second question|14 days", "third question|two weeks"]


def test_a_reading_that_fails_is_no_label(reading, dist):
    reading.reader("if 'rains' in texts[0]: raise TimeoutError('the server is gone')")
    result = reading.run(*dist)
    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    assert "GateError: labels=erag: 2 queries of small could not be labelled: q1, q2" in text
    assert "the reader failed for b: TimeoutError: the server is gone (myreader.py:11 in answer)" in text
    # Left out of both sides where that is tolerated; the readings that came are kept.
    reading.project.test(
        "def test_it(metric):\n    assert metric('hit@3', labels='erag', allow_failures=2) <= 0.5\n"
        "def test_two(metric):\n    assert metric('hit@3', labels='erag', allow_failures=1) <= 0.5\n"
    )
    result = reading.run(*dist, "--retrieval-json=report.json")
    result.assert_outcomes(passed=1, failed=1)
    report = json.loads((reading.path / "report.json").read_text())
    verdict = report["tests"][0]["verdicts"][0]
    assert (verdict["n"], verdict["value"]) == (2, 0.5)
    assert any(note.startswith("2 queries could not be labelled") for note in verdict["notes"])
    assert {call.rpartition("|")[2] for call in reading.calls} == {"It rains"}
    # Once the reader reads again they count.
    reading.reader()
    reading.project.test("def test_it(metric):\n    assert metric('hit@3', labels='erag') >= 0.75\n")
    reading.run(*dist).assert_outcomes(passed=1)
    assert {call.rpartition("|")[2] for call in reading.calls} == {"It rains"}


def test_a_refusal_is_no_label(reading):
    reading.reader(
        "from pytest_retrieval_eval.readers.reading import Reading\n"
        "    if 'Graz' in texts[0]: return Reading('', 'refused', None, None, detail='content filter')"
    )
    result = reading.run()
    result.assert_outcomes(failed=4)
    assert "the reader declined for c: content filter" in result.stdout.str()


GATES = """
dataset: small
reader: {kind: callable, function: "myreader:answer", identity: "of the file"}
defaults: {labels: erag}
gates:
  hit: "hit@2 >= 0.5"
  f1: {gate: "hit@2 >= 0.5", answer_metric: f1}
  own: {gate: "hit@2 >= 0.5", reader: {kind: callable, function: "myreader:answer", identity: other}}
  judged: {gate: "hit@2 >= 0.5", labels: qrels}
"""


def test_gate_files_name_a_reader(reading):
    (reading.path / "test_it.py").unlink()
    reading.project.gates(GATES)
    # The fixture of the project is not asked: the file says who reads.
    reading.run().assert_outcomes(passed=4)
    # Two readers of six pairs each; the second gate of the file's reader asks for nothing more.
    assert len(reading.calls) == 2 * len(set(reading.calls)) == 12
    reading.project.gates(GATES.replace("labels: qrels}", "labels: qrels, answer_metric: f1}"))
    reading.run().stdout.re_match_lines([r".*small.gates.yaml:9: answer_metric= is about what a reader answers"])
    reading.project.gates(GATES.replace("answer_metric: f1", "answer_metric: f2"))
    reading.run().stdout.re_match_lines(
        [r".*small.gates.yaml:7: there is no answer metric 'f2'; known: accuracy, em, f1, rouge_l"]
    )


def test_the_ini_file_names_a_reader(reading):
    reading.project.conftest(HITS)
    result = reading.run()
    result.assert_outcomes(failed=4)
    assert "labels=erag: there is no reader: set the ini value retrieval_reader" in result.stdout.str()
    settings = '{kind: callable, function: "myreader:answer", identity: v1}'
    reading.project.ini(f"retrieval_reader = {settings}")
    reading.run().assert_outcomes(passed=4)
    assert len(reading.calls) == 7
    (reading.path / "eval/reader.yaml").write_text(settings)
    reading.project.ini("retrieval_reader = eval/reader.yaml", "retrieval_defaults = answer_metric = rouge")
    result = reading.run()
    # The marker's tests take the default of the project, and one has its own.
    result.assert_outcomes(passed=1, failed=3)
    assert "there is no answer metric 'rouge'; did you mean rouge_l?" in result.stdout.str()
    reading.project.ini("retrieval_reader = [kind]")
    result = reading.run()
    assert result.ret == 4
    result.stderr.re_match_lines([".*retrieval_reader: expected the settings of a reader with their kind"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("'hit@2', labels='qrels', answer_metric='f1'", "answer_metric= is about what a reader answers"),
        ("'hit@2', reader={'kind': 'fid'}", "reader= is about what a reader answers"),
        ("'hit@2', labels='erag', reader={'model': 'x'}", "reader= takes settings with a kind"),
        ("'hit@2', labels='erag', reader={'kind': 'fidd', 'model': 'x'}", "reader: kind is 'fidd'; did you mean fid?"),
        ("'hit@2', labels='erag', answer_metric=3", "answer_metric= takes the name of a metric"),
    ],
)
def test_what_cannot_be_meant_is_an_error(reading, arguments, sentence):
    reading.project.test(f"def test_it(metric):\n    assert metric({arguments}) >= 0.1\n")
    result = reading.run()
    result.assert_outcomes(failed=1)
    assert sentence in result.stdout.str()
    assert reading.calls == []


LOOKING = """
import pytest
from pytest_retrieval_eval import DataError, evaluate

def test_labels(erag, run):
    labels = erag.labels(run, depth=2)
    assert labels.to_dict() == {
        "q1": {"a": 1.0, "b": 0.0}, "q2": {"c": 0.0, "b": 1.0}, "q3": {"c": 0.0, "a": 0.0}, "q4": {}
    }
    assert labels.readings["q2", "c"].text == "Ask in Graz"
    assert ("q2", "d") not in labels.readings and labels.readings.get(("q2", "d")) is None
    for pair, sentence in [
        (("q2", "d"), "^'d' was not read for query 'q2'; read for it: c, b$"),
        (("q9", "d"), "^nothing was read for query 'q9'; read were: q1, q2, q3$"),
        ("q2", "expected readings.query_id, doc_id.$"),
    ]:
        with pytest.raises(DataError, match=sentence):
            labels.readings[pair]
    assert evaluate(labels, run, ["hit@2"])["hit@2"].mean == 0.5

def test_lift(erag):
    lift = erag.lift(depth=1)
    # Without a document the reader answers "14 days", which is right for q1.
    assert dict(lift.closed_book) == {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": 0.0}
    assert dict(lift.best) == {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": 0.0}
    assert lift.mean == 0.0
    assert erag.lift(depth=3).mean == 0.5

def test_gate(erag):
    assert erag.assert_metric("hit@2", answer_metric="f1") >= 0.5

def test_reader(reader):
    assert reader.identity["name"] == "the document itself, v1"
"""
IDLE = """
def test_nothing(erag):
    pass

def test_open(erag):
    erag.labels(depth=1)
    erag.assert_metric("hit@2")

def test_also(erag):
    erag.assert_metric("hit@2")
    erag.labels(depth=1)

def test_other(erag):
    assert erag.assert_metric("hit@2", labels="qrels") >= 0.5
"""


def test_a_test_may_look_at_what_was_read(reading, dist):
    reading.project.test(LOOKING)
    reading.run(*dist).assert_outcomes(passed=4)
    # Six pairs down to rank 2, the third rank of q3, and four queries without a document.
    assert len(reading.calls) == len(set(reading.calls)) == 11


def test_a_test_that_asks_for_erag_compares_or_looks(reading):
    reading.project.test(IDLE)
    result = reading.run()
    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    assert text.count("this test asks for erag and compared nothing") >= 3
    assert "erag has labels of its own" in text


def test_a_reader_that_is_not_here_skips_on_a_desk_and_fails_in_a_pipeline(reading, monkeypatch):
    reading.project.conftest(HITS)
    (reading.path / "models/reader").mkdir(parents=True)
    reading.project.ini("retrieval_reader = {kind: transformers, model: models/reader, dtype: float32}")
    reading.project.test("def test_it(metric):\n    assert metric('hit@2', labels='erag') >= 0.5\n")
    result = reading.run("--retrieval-json=report.json")
    result.assert_outcomes(skipped=1)
    told = "note: gates were skipped, and measured nothing: "
    assert told in result.stdout.str()
    assert "holds no model: there is no config.json in it" in result.stdout.str()
    assert "gates were skipped" in (reading.path / "report.json").read_text()
    monkeypatch.setenv("CI", "true")
    result = reading.run()
    result.assert_outcomes(failed=1)
    assert "--retrieval-allow-missing-reader skips the gate instead" in result.stdout.str()
    result = reading.run("--retrieval-allow-missing-reader")
    result.assert_outcomes(skipped=1)
    assert told in result.stdout.str()


SKIPPING = """

@pytest.fixture(scope="session")
def retrieval_reader():
    pytest.importorskip("a_library_of_models")
"""


def test_a_fixture_may_skip_where_its_reader_is_not_here(reading, monkeypatch):
    reading.project.conftest(HITS)
    conftest = reading.path / "conftest.py"
    conftest.write_text(conftest.read_text() + SKIPPING)
    reading.project.test(
        "def test_it(metric):\n    assert metric('hit@2', labels='erag') >= 0.5\n"
        "def test_other(metric, reader):\n    assert metric('hit@2', labels='erag') >= 0.5\n"
    )
    reading.run().assert_outcomes(skipped=2)
    monkeypatch.setenv("CI", "true")
    result = reading.run()
    result.assert_outcomes(failed=1, errors=1)
    assert result.stdout.str().count("GateError: the fixture retrieval_reader skips") >= 2
    reading.run("--retrieval-allow-missing-reader").assert_outcomes(skipped=2)


@pytest.mark.model
def test_a_full_cache_needs_no_model(reading, monkeypatch):
    from reader_models import t5, tokenizer

    model = reading.path / "models/reader"
    t5().save_pretrained(model)
    tokenizer().save_pretrained(model)
    reading.project.conftest(HITS)
    reading.project.ini("retrieval_reader = {kind: transformers, model: models/reader, device: cpu, max_new_tokens: 4}")
    reading.project.test(
        "def test_it(metric):\n"
        "    assert metric('hit@2', labels='erag', answer_metric=lambda predicted, gold: 0.5) >= 0.3\n"
    )
    reading.run().assert_outcomes(passed=1)
    model.rename(reading.path / "gone")
    result = reading.run("--retrieval-cache-mode=ro")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["reader: 6 hits, 0 misses, 0 calls", "note: the model of the reader is not on this*"])
    reading.corpus({**CORPUS, "c": "Ask in Vienna"})
    result = reading.run("--retrieval-cache-mode=ro")
    result.assert_outcomes(failed=1)
    assert "2 of 6 readings are not in" in result.stdout.str()
    # Something new is to be read, and nobody can.
    reading.run().assert_outcomes(skipped=1)
    monkeypatch.setenv("CI", "true")
    reading.run().assert_outcomes(failed=1)


def test_a_session_may_stop_early(reading):
    queries = {f"q{number}": f"question {number}" for number in range(200)}
    reading.project.dataset(texts=queries, qrels={query: {query: 1} for query in queries})
    reading.corpus({query: f"answer {query}" for query in queries})
    reading.answers({query: [f"answer {query}"] for query in queries})
    for name in ("old", "new"):
        reading.project.run_file(f"runs/{name}.trec", {query: [query] for query in queries})
    reading.project.ini("retrieval_run = runs/new.trec")
    reading.project.test(
        "def test_it(metric, against):\n"
        "    verdict = metric('hit@1', labels='erag') >= against('runs/old.trec') - 0.1\n"
        "    assert 'settled early' in verdict.reason\n"
    )
    reading.run("--retrieval-stop-early").assert_outcomes(passed=1)
    assert 10 < len(reading.calls) < 60
    # What was read stays read.
    reading.run().assert_outcomes(failed=1)
    assert 140 < len(reading.calls) < 190


OWN = """
import pytest
from myreader import answer
from pytest_retrieval_eval.readers.callable_reader import CallableReader

def pytest_retrieval_readers():
    return {"ours": lambda settings: CallableReader(answer, identity=settings["version"])}
"""


def test_a_project_has_kinds_of_readers_of_its_own(reading):
    reading.project.conftest(HITS)
    conftest = reading.path / "conftest.py"
    conftest.write_text(conftest.read_text() + OWN)
    reading.project.ini("retrieval_reader = {kind: ours, version: v1}")
    result = reading.run("--retrieval-json=report.json")
    result.assert_outcomes(passed=4)
    assert len(reading.calls) == 7
    report = json.loads((reading.path / "report.json").read_text())
    found = {test["nodeid"].rpartition("::")[2]: test["verdicts"][0]["labels"] for test in report["tests"]}
    assert found == {"test_hit": "erag", "test_rank": "erag", "test_f1": "erag(f1)", "test_deeper": "erag"}
    conftest.write_text(conftest.read_text().replace('"ours"', '"server"'))
    result = reading.run()
    assert result.ret == 4
    result.stderr.re_match_lines(
        [".*conftest.py: pytest_retrieval_readers: there is a kind of reader 'server' already"]
    )


@pytest.mark.parametrize(
    ("returned", "calls"),
    [("answer", 6), ("{'kind': 'callable', 'function': 'myreader:answer', 'identity': 'v1'}", 6), ("'myreader'", 0)],
)
def test_the_fixture_returns_a_function_settings_or_a_reader(reading, returned, calls):
    conftest = reading.path / "conftest.py"
    conftest.write_text(conftest.read_text().rpartition("    return ")[0] + f"    return {returned}\n")
    reading.project.test("def test_it(metric):\n    assert metric('hit@2', labels='erag') >= 0.5\n")
    result = reading.run()
    assert len(reading.calls) == calls
    text = result.stdout.str()
    assert ("the reader has no identity: its readings are not kept" in text) is (returned == "answer")
    assert ("the reader is 'myreader'; expected a reader, its settings" in text) is (calls == 0)
    result.assert_outcomes(passed=int(calls > 0), failed=int(calls == 0))


GATES_OF_RUNS = """
def test_it(metric, baseline):
    assert metric("hit@1", labels="erag") >= baseline
"""


@pytest.mark.parametrize("labels", [("contains(kilt)", "erag"), ("erag", "contains(kilt)")])
def test_a_baseline_knows_the_reader_whichever_gate_comes_first(reading, dist, labels):
    reading.project.test(
        "".join(
            f"def test_{number}(metric, baseline):\n    assert metric('hit@2', labels='{name}') >= baseline\n\n"
            for number, name in enumerate(labels)
        )
    )
    reading.run("--retrieval-update=new", *dist).assert_outcomes(passed=2)
    header = Run.read(reading.folder / "baselines/main.run.jsonl.gz").header
    identity = CallableReader(len, identity="the document itself, v1").identity
    assert header["reader"] == f"sha256:{identity_digest(identity)}"
    assert str(header["answers"]).startswith("sha256:")
    before = (reading.folder / "baselines/main.run.jsonl.gz").read_bytes()
    reading.run("--retrieval-update=all", *dist).assert_outcomes(passed=2)
    assert (reading.folder / "baselines/main.run.jsonl.gz").read_bytes() == before


def test_a_failure_quotes_the_reader_and_a_baseline_keeps_what_was_read(reading, dist):
    good = {**HITS, "q2": ["b", "c"], "q3": ["d"]}
    reading.project.conftest(good)
    conftest = reading.path / "conftest.py"
    conftest.write_text(conftest.read_text() + FIXTURE)
    reading.project.test(GATES_OF_RUNS)
    reading.run("--retrieval-update=new").assert_outcomes(passed=1)
    conftest.write_text(
        conftest.read_text().replace("['b', 'c']", "['c', 'b']").replace("document itself, v1", "doc, v2")
    )
    result = reading.run(*dist)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "the reader answered 'Ask in Graz' (em 0)" in text
    assert "the reader answered 'It rains' (em 1)" in text
    assert "the reader or its settings have changed since the baseline was saved" in text
    # What the baseline returned is read from its own texts, whatever became of them.
    reading.corpus({doc: found for doc, found in CORPUS.items() if doc != "d"})
    conftest.write_text(conftest.read_text().replace("['d']", "['c']"))
    result = reading.run()
    result.assert_outcomes(failed=1)
    assert "the reader answered 'two weeks' (em 1)" in result.stdout.str()
    reading.corpus({"b": "It rains"})
    result = reading.run()
    result.assert_outcomes(failed=1)
    # And that text of it alone: an index that still has a document which the corpus lacks is stale.
    assert "labels=erag read the text of each retrieved document, and 2 have none (a, c; in run" in result.stdout.str()
