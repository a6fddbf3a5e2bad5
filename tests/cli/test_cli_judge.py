"""``pool`` and ``judge``: the plan, the judging, and what happens when it is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from fakeserver import HANG, FakeServer, Reply, fails, says
from support import ROOT

from pytest_retrieval_eval.labels.judgments import Judgments

GRADED = '{"thought": "it says so", "grade": 1}'


def make(folder, *, queries=10, depth=10):
    """A dataset of queries × documents, and a run that returns them all."""
    (folder / "data" / "qrels").mkdir(parents=True)
    rows = [{"_id": f"q{i}", "text": f"question {i}"} for i in range(queries)]
    (folder / "data" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    docs = [f"d{i}-{j}" for i in range(queries) for j in range(depth)]
    rows = [{"_id": doc, "title": "", "text": f"passage {doc}."} for doc in docs]
    (folder / "data" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0-0\t1\n")
    lines = [f"q{i} Q0 d{i}-{j} {j + 1} {depth - j} bm25\n" for i in range(queries) for j in range(depth)]
    (folder / "bm25.trec").write_text("".join(lines))


def settings(folder, server, **more):
    (folder / "judgments").mkdir(exist_ok=True)
    given = {"url": server.url, "model": "judge-2024-08-06", "attempts": 1, "timeout": 20, **more}
    (folder / "judgments" / "judge.yaml").write_text(json.dumps(given))


JUDGE = ("judge", "--dataset", "data", "--run", "bm25.trec", "--depth", "10")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    return tmp_path


def test_100_pairs_of_which_7_time_out(place, program):
    """Case 70 of the contract."""
    slow = {f"passage d{i}-3." for i in range(7)}

    def answer(request):
        return fails(504, "timeout") if any(text in request.text for text in slow) else says(GRADED)

    with FakeServer(answer) as server:
        settings(place, server, concurrency=4)
        result = program(*JUDGE)
        assert result.status == 1
        assert "100 pairs: 0 judged, 100 to judge by judge-2024-08-06-" in result.err
        assert "graded 93, reused 0, 930 tokens read and 279 written" in result.err
        assert "7 pairs got no grade, and are asked for next time" in result.err
        assert "incomplete: bm25: judged@10 = 0.93" in result.err
        listed = [line.split("\t") for line in result.out.splitlines()]
        assert sorted(row[1] for row in listed) == [f"d{i}-3" for i in range(7)]
        assert {row[2] for row in listed} == {"error"}
        assert len(server.requests) == 100
        store = Judgments(place / "judgments")
        assert [(each.d, each.attempts) for each in store.failures()] == [(f"d{i}-3", 1) for i in range(7)]
        result = program(*JUDGE)
        assert len(server.requests) == 107
        assert {each.attempts for each in store.failures()} == {2}
        slow.clear()
        result = program(*JUDGE)
        assert result.status == 0
        assert "100 pairs: 93 judged, 7 to judge" in result.err
        assert len(server.requests) == 114
        assert store.failures() == []
        assert not (place / "judgments" / "failures.jsonl").exists()
        assert program(*JUDGE).status == 0
        assert len(server.requests) == 114


def test_at_a_cap_it_stops_and_says_how_far_it_came(place, program):
    with FakeServer([says(GRADED)]) as server:
        settings(place, server, concurrency=3)
        result = program(*JUDGE, "--budget-calls", "93")
        assert (result.status, len(server.requests)) == (1, 93)
        assert "7 pairs not asked for: the budget is used up: 93 of 93 calls" in result.err
        assert "incomplete: bm25: judged@10 = 0.93" in result.err
        assert result.out == ""
        # Nobody has tried them: they are no failures.
        assert Judgments(place / "judgments").failures() == []
        assert program(*JUDGE).status == 0
        assert len(server.requests) == 100


def test_a_cap_that_processes_share(place, program):
    with FakeServer([says(GRADED)]) as server:
        settings(place, server, budget={"calls": 60, "path": "spent.sqlite"})
        assert program(*JUDGE).status == 1
        assert len(server.requests) == 60
        result = process_of(place)
        assert result.returncode == 1
        assert "40 pairs not asked for: the budget is used up: 60 of 60 calls" in result.stderr
        assert len(server.requests) == 60


def process_of(place):
    command = [sys.executable, "-m", "pytest_retrieval_eval.cli", *JUDGE]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)


def test_a_process_that_is_killed_pays_for_nothing_twice(place):
    """Killed while others are under way; the same command then asks for what was never answered, once."""
    answered, hold = [], threading.Event()

    def answer(request):
        if len(answered) < 40 or hold.is_set():
            answered.append(request.text)
            return says(GRADED)
        return HANG

    with FakeServer(answer) as server:
        settings(place, server, concurrency=4, timeout=60)
        command = [sys.executable, "-m", "pytest_retrieval_eval.cli", *JUDGE]
        process = subprocess.Popen(command, cwd=place, stderr=subprocess.DEVNULL)
        store = Judgments(place / "judgments")
        deadline = time.monotonic() + 60
        while (kept := _kept(store)) < 40 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert kept == 40
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        hold.set()
        again = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
        assert again.returncode == 0, again.stderr
        assert "100 pairs: 40 judged, 60 to judge" in again.stderr
    assert len(answered) == len(set(answered)) == 100
    assert _kept(store) == 100
    assert [problem for problem in Judgments(place / "judgments").check() if problem] == []


def _kept(store):
    return sum(1 for name in Judgments(store.folder).judges for _ in Judgments(store.folder).rows(name))


def test_an_interrupt_keeps_what_came(place):
    pairs = {}

    def answer(request):  # a pair that is asked for again, as on a slow machine, is still the same pair
        return says(GRADED) if pairs.setdefault(request.text, len(pairs)) < 30 else HANG

    with FakeServer(answer) as server:
        settings(place, server, concurrency=2)
        command = [sys.executable, "-m", "pytest_retrieval_eval.cli", *JUDGE]
        process = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True)
        store = Judgments(place / "judgments")
        deadline = time.monotonic() + 60
        while _kept(store) < 30 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "interrupted; every grade that came is in judgments" in said
    assert _kept(store) == 30
    assert Judgments(store.folder).check() == []


def test_the_file_of_pairs(place, program):
    rows = [
        {"query_id": "q1", "query": "question 1", "doc_id": "d1-0", "text": "its own text", "rank": 1, "gates": ["x"]},
        {"query_id": "q1", "doc_id": "d1-1"},
    ]
    (place / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "pairs.tsv").write_text("query_id\tdoc_id\ttext\nq2\td2-0\tan altered text\n")
    with FakeServer([says(GRADED)]) as server:
        settings(place, server)
        result = program("judge", "pairs.jsonl")
        assert result.status == 2
        assert "1 pairs have no text to judge: q1 d1-1 (no query); name the dataset" in result.err
        assert "not exact (white space)" in program("judge", "pairs.tsv").err
        assert program("judge", "pairs.jsonl", "--dataset", "data").status == 0
        assert program("judge", "pairs.tsv", "--dataset", "data").status == 0
    asked = "\n".join(request.text for request in server.requests)
    assert "its own text" in asked
    assert "passage d1-1." in asked
    assert "passage d2-0." in asked
    assert "altered" not in asked


def test_the_plan(place, program):
    assert program("pool", "data", "bm25.trec", "--depth", "5").out.splitlines() == [
        "run\tpairs\tunjudged\tfirst\talone\tjudged@5",
        "bm25\t50\t50\t50\t50\t0.0000",
        "pool\t50\t50\t\t\t",
    ]
    with FakeServer([says(GRADED)]) as server:
        settings(place, server, budget={"price": {"input": 1000, "output": 0}})
        result = program("pool", "data", "bm25.trec", "--depth", "10", "--to-judge", "pairs.jsonl", "--json")
        document = json.loads(result.out)
        assert (document["pairs"], document["new"], document["reused"], document["factor"]) == (100, 100, 0, 1.0)
        assert document["cost"] == pytest.approx(document["tokens"]["read"] / 1000)
        assert not server.requests
        assert len((place / "pairs.jsonl").read_text().splitlines()) == 100
        assert program("judge", "pairs.jsonl").status == 0
        result = program("pool", "data", "bm25.trec", "--depth", "10")
        assert "100 judged, 0 to judge" in result.err
        assert result.out.splitlines()[1] == "bm25\t100\t0\t0\t0\t1.0000"


def test_another_judge_takes_over_nothing(place, program):
    """Case 68 of the contract."""
    with FakeServer([says(GRADED)]) as server:
        settings(place, server)
        program(*JUDGE)
        settings(place, server, prompt="handbook03")
        result = program(*JUDGE)
    assert len(server.requests) == 200
    assert "is another judge than judge-2024-08-06-" in result.err
    assert "grades of 2 judges" in program("pool", "data", "bm25.trec", "--depth", "10").err
    name = sorted(Judgments(place / "judgments").judges)[0]
    assert "100 judged" in program("pool", "data", "bm25.trec", "--depth", "10", "--judged-by", name).err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("judge",), "say what to judge"),
        (("judge", "pairs.jsonl", "--run", "x"), "say what to judge"),
        (JUDGE, "there is no judge: write its settings into judgments/judge.yaml"),
        ((*JUDGE, "--judge", "nothing"), "expected MODULE:NAME"),
        ((*JUDGE, "--judge", "json:dumps"), "--judge json:dumps: json.dumps cannot be called without"),
        ((*JUDGE, "--judge", "json:dumps"), "becomes a judge by CallableJudge(function, Scale(0, 2), identity=…)"),
        ((*JUDGE, "--judge", "ill_judge:make"), "ill_judge.make() failed: RuntimeError: no key"),
        ((*JUDGE, "--judge", "m:judge", "--budget-calls", "3"), "goes with a file of settings"),
        ((*JUDGE, "--judge", "m:judge", "--cache", "kept"), "--cache goes with a file of settings"),
        ((*JUDGE, "--budget-cost", "much"), "is not an amount"),
    ],
)
def test_what_cannot_be_asked(place, program, arguments, sentence):
    (place / "ill_judge.py").write_text("def make():\n    raise RuntimeError('no key')\n")
    result = program(*arguments)
    assert result.status == 2
    assert sentence in result.err
    assert "Traceback" not in result.err


def test_a_judge_in_python_and_a_floating_name(place, program):
    (place / "mine.py").write_text(
        "from pytest_retrieval_eval.labels.judging.judges import CallableJudge\n"
        "from pytest_retrieval_eval.labels.judging.replies import Scale\n"
        "def judge():\n    return CallableJudge(lambda query, text: 2, Scale(0, 2), identity='mine')\n"
    )
    result = program(*JUDGE, "--judge", "mine:judge")
    assert result.status == 0
    assert "tokens" not in result.err  # a function takes none
    with FakeServer([says(GRADED)]) as server:
        settings(place, server, model="latest")
        assert "floating name" in program(*JUDGE).err
        assert not server.requests
        assert program(*JUDGE, "--allow-floating").status == 0
    kept = [judge.floating for judge in Judgments(place / "judgments").judges.values()]
    assert sorted(map(bool, kept)) == [False, True]


def test_a_reply_without_a_grade_is_no_zero(place, program):
    with FakeServer([Reply(status=200, body=says("I cannot judge this.").body)]) as server:
        settings(place, server)
        result = program(*JUDGE)
    assert result.status == 1
    assert "graded 0, reused 0" in result.err
    assert {each.outcome for each in Judgments(place / "judgments").failures()} == {"refused"}


def test_a_changed_parser_reads_kept_replies_again_without_a_call(place, program, monkeypatch):
    said = {"passage d3-3.": "I cannot judge this."}
    with FakeServer(
        lambda request: says(next((said[text] for text in said if text in request.text), GRADED))
    ) as server:
        settings(place, server, budget={"calls": 100})
        first = program(*JUDGE)
        assert "replies: 0 hits, 100 misses, 100 calls, 1,000 tokens in, 300 out" in first.err
        assert "a reply that states no grade is kept" in first.err
        assert (place / ".retrieval-cache" / "readings.sqlite").exists()
        monkeypatch.setattr("pytest_retrieval_eval.labels.judging.judges.PARSER_VERSION", 2)
        # The budget has no room for a single call: what is kept takes none of it.
        again = program(*JUDGE, "--budget-calls", "0")
        assert len(server.requests) == 100
        assert "100 pairs: 0 judged, 100 to judge" in again.err
        assert "replies: 100 hits, 0 misses, 0 calls" in again.err
        assert "graded 99, reused 0\n" in again.err
        assert (first.status, again.status) == (1, 1)
        assert len(Judgments(place / "judgments").judges) == 2
        # The pair without a grade alone is asked for anew.
        said.clear()
        assert program(*JUDGE, "--cache-mode", "refresh").status == 0
        assert len(server.requests) == 101


def test_replies_are_kept_where_it_is_said_or_nowhere(place, program):
    with FakeServer([says(GRADED)]) as server:
        settings(place, server)
        assert program(*JUDGE, "--cache-mode", "off").status == 0
        assert not (place / ".retrieval-cache").exists()
        (place / "judgments").rename(place / "first")
        settings(place, server)
        result = program(*JUDGE, "--cache", "kept", "--cache-mode", "ro")
        assert result.status == 2
        assert "100 of 100 readings are not in kept/readings.sqlite" in result.err
        assert program(*JUDGE, "--cache", "kept").status == 0
        assert (place / "kept" / "readings.sqlite").exists()
        assert not (place / ".retrieval-cache").exists()
        assert len(server.requests) == 200


def test_a_kind_of_judge_from_a_module(place, program):
    page = (ROOT / "docs" / "how-to" / "judges.md").read_text(encoding="utf-8")
    (module,) = re.findall(r"```python\n(# house_judge.py\n.*?)```", page, re.DOTALL)
    (given,) = re.findall(r"```yaml\n(# judgments/judge.yaml\n.*?)```", page, re.DOTALL)
    (place / "house_judge.py").write_text(module)
    (place / "judgments").mkdir()
    (place / "judgments" / "judge.yaml").write_text(given)
    assert "a judge of kind 'counting'; known: server, vote" in program(*JUDGE).err
    result = program(*JUDGE, "--plugin", "house_judge")
    assert (result.status, "graded 100" in result.err) == (0, True)
    assert (
        "100 judged, 0 to judge" in program("pool", "data", "bm25.trec", "--depth", "10", "--plugin", "house_judge").err
    )
    # It is known for that command alone.
    assert "a judge of kind 'counting'" in program(*JUDGE).err
    (place / "judgments" / "judge.yaml").write_text("kind: counting\n")
    result = program(*JUDGE, "--plugin", "house_judge")
    assert (result.status, "the judge of kind counting cannot be made: KeyError: 'word'" in result.err) == (2, True)
    (place / "wrong_judge.py").write_text("def pytest_retrieval_judges():\n    return 3\n")
    assert (
        "pytest_retrieval_judges gave a int (3); expected a mapping" in program(*JUDGE, "--plugin", "wrong_judge").err
    )
    (place / "other_judge.py").write_text(
        "def pytest_retrieval_judges():\n    return {'counting': lambda settings: 3}\n"
    )
    assert "made 3, which has no identity" in program(*JUDGE, "--plugin", "other_judge").err
    (place / "taken_judge.py").write_text("def pytest_retrieval_judges():\n    return {'vote': print}\n")
    assert "there is a kind of judge 'vote' already" in program(*JUDGE, "--plugin", "taken_judge").err


def test_labels_that_are_imported_again_say_what_they_changed(place, program):
    table = place / "labels.csv"

    def imported(*rows):
        table.write_text("query_id,doc_id,grade,weight\n" + "".join(f"{row}\n" for row in rows))
        return program("judgments", "import", "labels.csv", "--name", "ann", "--dataset", "data").err.strip()

    assert imported("q1,d1-1,1,2", "q1,d1-2,0,2") == "2 labels of ann, 2 new"
    assert imported("q1,d1-1,1,2", "q1,d1-2,0,2") == "2 labels of ann, 0 new"
    assert imported("q1,d1-1,1,3", "q1,d1-2,0,2", "q1,d1-3,0,2") == "3 labels of ann, 1 new, 1 with another weight"
