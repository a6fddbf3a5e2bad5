"""--retrieval-to-judge: one file from all gates of a session, with and without workers."""

from __future__ import annotations

import json

import pytest

GATES = """
def test_one(assert_metric):
    assert assert_metric("mrr@3") >= 0.1

def test_two(assert_hit_at):
    assert assert_hit_at(1) >= 0.9
"""


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_pairs_of_all_gates(project, dist):
    project.test(GATES)
    result = project.run("--retrieval-to-judge=out/pairs.jsonl", *dist)
    result.assert_outcomes(passed=1, failed=1)
    rows = rows_of(project.path / "out" / "pairs.jsonl")
    found = {(row["query_id"], row["doc_id"]): row for row in rows}
    # In the top 3: c of q2, a of q3 (b is judged for q1), a, b and c of q4.
    assert set(found) == {("q2", "c"), ("q3", "a"), ("q4", "a"), ("q4", "b"), ("q4", "c")}
    assert len(rows) == 5
    assert found["q2", "c"]["query"] == "second question"
    assert sorted(found["q2", "c"]["gates"]) == ["hit@1 >= 0.9", "mrr@3 >= 0.1"]
    assert found["q4", "b"]["gates"] == ["mrr@3 >= 0.1"]
    written = project.path / "out" / "pairs.jsonl"
    dataset = project.path / "eval" / "small"  # which has no corpus, so that the file has no texts
    result.stdout.fnmatch_lines(
        [
            "5 pairs to judge written: *out/pairs.jsonl",
            f"next: pytest-retrieval-eval judge {written} --dataset {dataset} --judge JUDGE",
        ]
    )


def test_the_next_command_judges_what_was_written(project):
    corpus = [{"_id": doc, "text": f"text of {doc}"} for doc in "abcd"]
    (project.path / "eval/small/corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    project.ini("retrieval_judgments = kept/grades")
    project.test(GATES)
    pairs = project.path / "pairs.jsonl"
    result = project.run("--retrieval-to-judge=pairs.jsonl")
    result.stdout.fnmatch_lines([f"next: pytest-retrieval-eval judge {pairs} --judgments kept/grades --judge JUDGE"])
    project.ini()
    (project.path / "judgments").mkdir()
    (project.path / "judgments" / "judge.yaml").touch()
    project.run("--retrieval-to-judge=pairs.jsonl").stdout.fnmatch_lines([f"next: pytest-retrieval-eval judge {pairs}"])
    result = project.run("--retrieval-to-judge=pairs.tsv")
    dataset = project.path / "eval" / "small"
    result.stdout.fnmatch_lines([f"next: pytest-retrieval-eval judge {pairs.with_suffix('.tsv')} --dataset {dataset}"])
    # Where every document is judged there is nothing to judge.
    project.test("def test_it(recall_at):\n    assert recall_at(1, where={'type': 'policy'}) >= 0.9\n")
    result = project.run("--retrieval-to-judge=pairs.jsonl")
    result.stdout.fnmatch_lines(["0 pairs to judge written: *", "next: pytest -vv *test_it.py::test_it"])


def test_a_file_of_something_else_is_not_overwritten(project, dist):
    project.test(GATES)
    labels = project.path / "eval/small/qrels/test.tsv"
    before = labels.read_bytes()
    result = project.run(f"--retrieval-to-judge={labels}", "--retrieval-update=all", *dist)
    assert result.ret != pytest.ExitCode.OK
    assert labels.read_bytes() == before
    result.stdout.fnmatch_lines(
        ["*no pairs to judge were written: *test.tsv: the file is there, and holds no pairs to judge; *"]
    )


def test_nothing_is_written_after_an_internal_error(project):
    project.test(GATES)
    (project.path / "breaks.py").write_text("def pytest_runtest_logfinish(nodeid):\n    raise RuntimeError('broken')\n")
    project.run("--retrieval-to-judge=pairs.jsonl", "-p", "breaks", own_process=True)
    assert not (project.path / "pairs.jsonl").exists()


def test_an_option_without_effect_is_an_error(project):
    project.test("def test_nothing(): pass\n")
    result = project.run("--retrieval-to-judge=pairs.tsv")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*no gate of this session was decided, and nothing was written*"])
    assert project.run("--retrieval-to-judge=pairs.tsv", "-k", "other").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    wrong = project.run("--retrieval-to-judge=pairs.json")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*expected a file that ends in .jsonl or .tsv*"])


def test_the_unit_comes_from_the_marker_or_the_gate(project):
    table = [{"chunk_id": f"{doc}-{i}", "doc_id": doc} for doc in "abcd" for i in range(3)]
    (project.path / "eval/small/chunks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    project.conftest({"q1": ["a-0", "a-1"], "q2": ["b-2"], "q3": ["c-0"], "q4": ["d-0"]})
    project.test(
        "import pytest\n"
        "@pytest.mark.retrieval(unit='document')\n"
        "def test_marked(assert_hit_at):\n"
        "    assert assert_hit_at(1) >= 1\n"
        "def test_given(assert_hit_at):\n"
        "    assert assert_hit_at(1, unit='document') >= 1\n"
    )
    project.run().assert_outcomes(passed=2)


def test_pairs_that_cannot_be_written_make_the_session_complain(project, dist):
    project.test("def test_it(metric):\n    metric('recall@2') >= 0.1\n")
    result = project.run("--retrieval-to-judge=pytest.ini/pairs.jsonl", *dist)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: no pairs to judge were written: *cannot write the file*"])
