"""A session cut in shards: two processes at once, each with half of the gates, lose nothing of each other's."""

from __future__ import annotations

import json
import subprocess
import sys

from support import HITS, QRELS

from pytest_retrieval_eval import Run

TESTS = """
def test_main(recall_at, baseline):
    assert recall_at(2) >= baseline

def test_main_again(metric, baseline):
    assert metric("mrr") >= baseline

def test_first(recall_at, baseline):
    assert recall_at(2) >= baseline["first"]

def test_kept(recall_at, baseline):
    assert recall_at(2) >= baseline["kept"] - 0.5

def test_number(recall_at):
    assert recall_at(2) >= 0.6
"""
GATES = "gates:\n  second: recall@2 >= baseline[second]\n  again: mrr >= baseline\n"
SHARDS = {
    "a": ("-k", "test_main_again or first or second"),
    "b": (
        *("--deselect", "test_it.py::test_main_again"),
        *("--deselect", "test_it.py::test_first"),
        *("--deselect", "small.gates.yaml::second"),
    ),
}
# What each shard says of a test in its file, but for the time that it took.
TOLD = ("nodeid", "outcome", "errors", "verdicts")


def both_at_once(project, *arguments, more=()):
    """The reports of two shards that run at the same time; ``more``: arguments of one of them."""
    begun = [
        project.pytester.popen(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                f"--retrieval-json={name}.json",
                *cut,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        for name, cut in SHARDS.items()
    ]
    for process in begun:
        text = process.communicate(timeout=120)[0].decode()
        assert process.returncode == 0, text
    return [json.loads((project.path / f"{name}.json").read_text()) for name in SHARDS]


def told(*reports):
    tests = [{key: test[key] for key in TOLD} for report in reports for test in report["tests"]]
    return sorted(tests, key=lambda test: test["nodeid"])


def test_two_shards_are_one_session(project):
    project.test(TESTS)
    project.gates(GATES)
    folder = project.path / "eval/small/baselines"
    folder.mkdir()
    for name in ("kept", "of-a-gate-that-is-gone"):
        Run.of({query: ["a"] for query in QRELS}, name=name).save(folder / f"{name}.run.jsonl.gz")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    reports = both_at_once(project, "--retrieval-update=new", more={"b": ("-n2",)})
    for report in reports:
        assert (report["complete"], report["deselected"], report["exit_status"]) == (True, True, 0)
        assert report["complaints"] == []
    names = [[test["nodeid"].partition("::")[2] for test in report["tests"]] for report in reports]
    assert names == [["second", "test_first", "test_main_again"], ["again", "test_kept", "test_main", "test_number"]]
    # The missing ones are written, by both shards where both asked for one; the others stay to the last byte.
    written = [{(file["kind"], file["path"].rpartition("/")[2]) for file in report["written"]} for report in reports]
    assert ("baseline", "first.run.jsonl.gz") in written[0]
    assert ("baseline", "second.run.jsonl.gz") in written[0]
    assert ("baseline", "main.run.jsonl.gz") in written[0] | written[1]
    assert not any("kept" in path or "gone" in path for _, path in written[0] | written[1])
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(after) == {*before, "main.run.jsonl.gz", "first.run.jsonl.gz", "second.run.jsonl.gz"}
    assert all(after[name] == content for name, content in before.items())
    for name in ("main", "first", "second"):
        found = Run.read(folder / f"{name}.run.jsonl.gz")
        assert {query: list(found.ranking(query).docs) for query in found} == HITS

    # From now on the shards together say what one session says.
    shards = both_at_once(project)
    project.run("--retrieval-json=whole.json").assert_outcomes(passed=7)
    whole = json.loads((project.path / "whole.json").read_text())
    assert told(*shards) == told(whole)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == after


def test_a_shard_that_updates_all_touches_what_it_ran(project):
    project.test(TESTS)
    project.run("--retrieval-update=new", "-k", "first or test_main")
    folder = project.path / "eval/small/baselines"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"main.run.jsonl.gz", "first.run.jsonl.gz"}
    project.conftest({**HITS, "q1": ["b", "c"]})
    project.run("--retrieval-update=all", "-k", "first").assert_outcomes(passed=1, deselected=4)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after["main.run.jsonl.gz"] == before["main.run.jsonl.gz"]
    assert after["first.run.jsonl.gz"] != before["first.run.jsonl.gz"]
    # A shard without any gate is no error, and writes an empty report.
    result = project.run("--retrieval-update=all", "--retrieval-json=none.json", "-k", "nothing_of_that_name")
    assert result.ret == 5
    report = json.loads((project.path / "none.json").read_text())
    assert (report["complete"], report["tests"], report["written"]) == (True, [], [])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == after
