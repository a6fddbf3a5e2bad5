"""`judge again`, and a report from a folder of judgments."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.labels.judgments import Judgment, Judgments

#: Grades 1 for documents with an even number; the second time, the third query's documents get the other grade.
MODULE = """
from pathlib import Path
from pytest_retrieval_eval.labels.judging.judge import Graded
from pytest_retrieval_eval.labels.judging.replies import Scale

class Judge:
    identity = {"kind": "%(name)s"}
    scale = Scale(0, 1)
    floating = ""

    def grade(self, pairs, *, repetition=0):
        for place, pair in enumerate(pairs):
            grade = %(grade)s
            if repetition and pair.query_id == "q2":
                grade = 1 - grade
            if repetition and Path("refuse").exists() and pair.query_id == "q1":
                yield place, Graded(None, "refused", "it refused")
            else:
                yield place, Graded(grade, "graded")

    def close(self):
        pass
"""
EVEN = "int(pair.doc_id[-1]) % 2 == 0 and 1 or 0"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Two runs over three queries, a judge that has graded their pool, and another one that calls all relevant."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    queries = [{"_id": f"q{i}", "text": f"question {i}"} for i in range(3)]
    corpus = [{"_id": f"d{i}{j}", "text": f"passage {i}{j}"} for i in range(3) for j in range(4)]
    (tmp_path / "data" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (tmp_path / "data" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td00\t1\n")
    for name, order in (("even", (0, 2, 1)), ("odd", (1, 3, 0))):
        lines = [f"q{i} Q0 d{i}{j} {rank} {9 - rank} x\n" for i in range(3) for rank, j in enumerate(order, 1)]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    (tmp_path / "again_even.py").write_text(MODULE % {"name": "even", "grade": EVEN})
    (tmp_path / "again_all.py").write_text(MODULE % {"name": "all", "grade": "1"})
    return tmp_path


RUNS = ("--dataset", "data", "--run", "even.trec", "--run", "odd.trec", "--depth", "3")
POOL = ("data", "even.trec", "odd.trec", "--depth", "3")


def names(place):
    return {kept.identity["kind"]: name for name, kept in Judgments(place / "judgments").judges.items()}


def test_a_judge_is_asked_again_and_the_report_tells_of_it(place, program):
    even = ("--judge", "again_even:Judge")
    first = program("judge", "again", *POOL, *even)
    assert first.status == 2
    assert "there is no first time yet" in first.err
    assert not (place / "judgments" / "human").exists()
    assert program("judge", *RUNS, *even).status == 0
    done = program("judge", "again", *POOL, *even, "--sample", "12", "--json")
    found = json.loads(done.out)
    assert (done.status, found["n"], found["same"], found["asked"]) == (0, 12, 8, 12)
    once_more = program("judge", "again", *POOL, *even, "--sample", "12")
    assert "8 of 12 pairs have the same grade: 66.7 %" in once_more.out

    report = json.loads(program("pool", "report", *POOL, "-m", "precision@3", "--judgments", "judgments", "--json").out)
    assert report["repeated"]["same"] == 8
    assert [row["name"] for row in report["table"]["rows"]] == ["even", "odd"]
    assert (report["judged"], report["reuse"]["unique"], report["reuse"]["independent"]) == (12, 12, 18)
    assert report["human"] is None


def test_pairs_that_are_refused_the_second_time_are_status_1(place, program):
    assert program("judge", *RUNS, "--judge", "again_even:Judge").status == 0
    (place / "refuse").touch()
    done = program("judge", "again", *POOL, "--judge", "again_even:Judge")
    assert done.status == 1
    assert "4 pairs of the sample got no second grade" in done.err


def test_a_second_judge_and_people_of_the_folder(place, program):
    for module in ("again_even", "again_all"):
        assert program("judge", *RUNS, "--judge", f"{module}:Judge").status == 0
    known = names(place)
    store = Judgments(place / "judgments")
    # People say the opposite of the first judge for one query.
    own = [key for key, _ in Judgments(place / "judgments", judged_by=[known["even"]]).table(known["even"])]
    people = [Judgment(*key, 1 - int(key[2][-1]) % 2 if key[0] != "q2" else int(key[2][-1]) % 2) for key in own]
    store.add_human("ann", people)
    folder = ("--judgments", "judgments", "--judged-by", known["even"])
    done = program("pool", "report", *POOL, "-m", "precision@3", *folder, "--second", known["all"], "--json")
    report = json.loads(done.out)
    assert (report["human"]["items"]["n"], report["human"]["items"]["same"]) == (12, 8)
    assert (report["second"]["items"]["n"], report["second"]["items"]["same"]) == (12, 6)
    assert report["pairs"]["pairs"][0]["kind"] == "same"
    # Two judges, and none is named.
    assert program("pool", "report", *POOL, "--judgments", "judgments").status == 2
    assert program("pool", "report", *POOL, "--judged-by", known["even"]).status == 2
