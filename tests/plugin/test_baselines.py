"""Baselines: written on request by the controller alone, read on every later run, never in part."""

from __future__ import annotations

import gzip
import json
import subprocess

import pytest
from support import HITS

WORSE = {**HITS, "q1": ["b", "c"]}
GATE = "def test_it(recall_at, baseline):\n    assert recall_at(2) >= baseline\n"
PLACE = "eval/small/baselines/main.run.jsonl.gz"


def lines_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_no_baseline_yet_is_an_error_and_the_message_is_the_command(project, dist):
    project.test(GATE)
    result = project.run(*dist)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*pytest --retrieval-update=new test_it.py::test_it"])
    result.stdout.re_match_lines(["next: pytest --retrieval-update=new test_it.py::test_it"])
    assert not (project.path / "eval/small/baselines").exists()


def test_a_baseline_is_written_and_then_held(project, dist):
    project.test(GATE)
    result = project.run("--retrieval-update=new", *dist)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "UPDATED*recall@2*",
            "baseline written: *main.run.jsonl.gz",
        ]
    )
    header, *rows = lines_of(project.path / PLACE)
    assert header["format"] == "retrieval-run"
    assert header["depth"] == 100
    assert [row["query_id"] for row in rows] == ["q1", "q2", "q3", "q4"]
    project.run(*dist).assert_outcomes(passed=1)
    project.conftest(WORSE)
    result = project.run(*dist)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*recall@2 >= baseline.*FAILED", "E .*q1 .*1.000 → 0.000"])


def test_new_keeps_what_is_there_and_all_replaces_it(project, dist):
    project.test(GATE)
    project.run("--retrieval-update=new", *dist)
    before = (project.path / PLACE).read_bytes()
    project.conftest(WORSE)
    project.run("--retrieval-update=new", *dist).assert_outcomes(failed=1)
    assert (project.path / PLACE).read_bytes() == before
    result = project.run("--retrieval-update=all", *dist)
    result.assert_outcomes(passed=1)
    assert (project.path / PLACE).read_bytes() != before
    assert lines_of(project.path / PLACE)[1]["hits"][0]["id"] == "b"


def test_an_equal_run_leaves_the_file_as_it_is(project, dist):
    project.test(GATE)
    project.run("--retrieval-update=new")
    path = project.path / PLACE
    # Saved at another time, from another commit, with other versions: the same run from the same data all the same.
    header, *rows = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    said = json.loads(header)
    assert "seconds" not in json.loads(rows[0])
    said |= {"time": "2020-01-01T00:00:00+00:00", "commit": "0" * 40, "dirty": True, "versions": {"numpy": "1.26.0"}}
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(said, sort_keys=True).encode() + b"\n" + b"".join(rows))
    before = path.read_bytes()
    result = project.run("--retrieval-update=all", *dist)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["baseline unchanged: *main.run.jsonl.gz"])
    result.stdout.no_fnmatch_line("*git add*")
    assert path.read_bytes() == before
    # Other labels are other data: the file says what it was measured on.
    project.dataset(qrels={"q1": {"a": 2}, "q2": {"b": 2}, "q3": {"c": 1, "d": 1}, "q4": {"d": 3}})
    project.run("--retrieval-update=all").stdout.fnmatch_lines(["baseline written: *main.run.jsonl.gz"])
    assert path.read_bytes() != before
    # What cannot be read is replaced.
    path.write_bytes(b"\x1f\x8b cut off")
    project.run("--retrieval-update=all").stdout.fnmatch_lines(["baseline written: *main.run.jsonl.gz"])
    assert lines_of(path)[0]["format"] == "retrieval-run"


def test_a_baseline_is_the_same_bytes_up_to_time_and_commit(project):
    project.test(GATE)
    found = []
    for _ in range(2):
        project.run("--retrieval-update=all")
        header, *rows = lines_of(project.path / PLACE)
        found.append(({**header, "time": "", "commit": "", "dirty": ""}, rows))
        (project.path / PLACE).unlink()
    assert found[0] == found[1]


def test_only_baselines_of_gates_that_ran_are_written(project, dist):
    project.test(
        "def test_main(recall_at, baseline):\n    assert recall_at(2) >= baseline\n"
        "def test_old(recall_at, baseline):\n    assert recall_at(2) >= baseline['old'] - 0.1\n"
    )
    project.run("--retrieval-update=all", "-k", "old", *dist).assert_outcomes(passed=1)
    assert [path.name for path in (project.path / "eval/small/baselines").iterdir()] == ["old.run.jsonl.gz"]


def test_a_gate_that_errs_writes_nothing(project, dist):
    project.test("def test_it(recall_at, baseline):\n    assert recall_at(200) >= baseline\n")
    project.run("--retrieval-update=all", *dist).assert_outcomes(failed=1)
    assert not (project.path / "eval/small/baselines").exists()


def test_a_gate_that_errs_after_its_baseline_was_asked_for_writes_nothing(project):
    project.test("def test_it(recall_at, baseline):\n    assert recall_at(2, by='type') >= baseline\n")
    project.run("--retrieval-update=new").assert_outcomes(failed=1)
    assert not (project.path / "eval/small/baselines").exists()


def test_a_retriever_that_fails_never_becomes_a_baseline(project, dist):
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    return {}.__getitem__\n"
    )
    project.test(GATE)
    result = project.run("--retrieval-update=all", *dist)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*4 of 4"])
    assert not (project.path / "eval/small/baselines").exists()


@pytest.mark.parametrize("update", ["new", "all"])
def test_ci_writes_no_baseline_unless_told_so(project, dist, monkeypatch, update):
    monkeypatch.setenv("CI", "1")
    project.test(GATE)
    result = project.run(f"--retrieval-update={update}", *dist)
    assert result.ret == 4
    result.stderr.re_match_lines([".*refused where CI is set"])
    assert not (project.path / "eval/small/baselines").exists()
    project.run(f"--retrieval-update={update}", "--retrieval-update-in-ci", *dist).assert_outcomes(passed=1)
    assert (project.path / PLACE).exists()


def test_two_runs_for_one_baseline_write_neither(project, dist):
    project.run_file("other.trec", WORSE)
    project.test(
        "def test_a(recall_at, baseline):\n    assert recall_at(2) >= baseline\n"
        "def test_b(recall_at, baseline):\n    assert recall_at(2, run='other.trec') >= baseline\n"
    )
    result = project.run("--retrieval-update=all", *dist)
    assert result.ret != 0
    result.stdout.re_match_lines(["ERROR: .*main.run.jsonl.gz was not written.*different runs"])
    assert not (project.path / PLACE).exists()


def test_a_lost_worker_writes_nothing_and_is_not_green(project):
    project.test(GATE)
    project.test("import os\ndef test_dies():\n    os._exit(0)\n", "test_dies.py")
    result = project.run("--retrieval-update=all", "-n2")
    assert result.ret != 0
    assert not (project.path / PLACE).exists()


def test_an_internal_error_writes_nothing_and_is_not_green(project, dist):
    text = (project.path / "conftest.py").read_text()
    text += (
        "def pytest_runtest_teardown(item):\n    pass\n"
        "def pytest_runtest_logfinish(nodeid):\n"
        "    if 'test_last' in nodeid:\n        raise RuntimeError('from a hook')\n"
    )
    (project.path / "conftest.py").write_text(text)
    project.test(GATE)
    project.test("def test_last():\n    pass\n", "test_last.py")
    result = project.run("--retrieval-update=all", *dist)
    assert result.ret != 0
    assert not (project.path / PLACE).exists()


def test_the_folder_of_baselines_can_be_set(project, dist):
    project.ini("retrieval_baseline_dir = stored", "retrieval_baseline = release")
    project.test(GATE)
    project.run("--retrieval-update=new", *dist).assert_outcomes(passed=1)
    assert (project.path / "stored/small/release.run.jsonl.gz").exists()
    project.run(*dist).assert_outcomes(passed=1)


def test_what_changed_since_the_baseline_is_named(project):
    project.test(GATE)
    project.run("--retrieval-update=new")
    project.dataset(qrels={"q1": {"a": 1, "b": 0}, "q2": {"x": 1}, "q3": {"c": 1, "d": 1}, "q4": {"d": 3}})
    project.conftest(WORSE)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*(labels|judgments|qrels).*changed"])


def test_runs_are_saved_by_the_controller(project, dist):
    project.run_file("other.trec", WORSE)
    project.test(
        "def test_a(recall_at):\n    assert recall_at(2) >= 0.6\n"
        "def test_b(recall_at):\n    assert recall_at(2, run='other.trec') >= 0.3\n"
    )
    result = project.run("--retrieval-save-runs", "saved", *dist)
    result.assert_outcomes(passed=2)
    names = sorted(path.name for path in (project.path / "saved").iterdir())
    assert len(names) == 2
    assert all(name.startswith("small.") and name.endswith(".run.jsonl.gz") for name in names)


def test_nothing_is_left_in_the_temporary_folder(project, dist, monkeypatch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tmp")
    monkeypatch.setenv("TMPDIR", str(folder))
    project.test(GATE)
    project.run("--retrieval-update=new", *dist, own_process=True).assert_outcomes(passed=1)
    assert [path.name for path in folder.iterdir() if path.name.startswith("retrieval")] == []


# --- baselines from elsewhere -----------------------------------------------------------------------------------


def committed(project, *paths):
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("add", *paths),
        ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a baseline"),
    ):
        subprocess.run(["git", *arguments], cwd=project.path, check=True, capture_output=True)


def test_a_baseline_of_another_commit(project, dist):
    project.test(GATE)
    project.run("--retrieval-update=new")
    committed(project, "eval")
    project.conftest(WORSE)
    project.run("--retrieval-update=all").assert_outcomes(passed=1)
    # The working tree's baseline has moved along; the commit's has not.
    project.test(
        "import pytest\n"
        "def test_here(gate):\n    gate('recall@2 >= baseline')\n"
        "def test_there(gate):\n    gate('recall@2 >= baseline[git:main]')\n"
        "@pytest.mark.retrieval(baseline='git:HEAD')\n"
        "def test_marked(recall_at, baseline):\n    assert recall_at(2) >= baseline\n"
        f"def test_path(recall_at, baseline):\n    assert recall_at(2) >= baseline['git:main:./{PLACE}']\n"
        "def test_none(recall_at, baseline):\n    assert recall_at(2) >= baseline['git:main:nothing.trec']\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(passed=1, failed=4)
    for line in ("recall@2 >= baseline[[]git:main[]]: FAILED*", "recall@2 >= baseline: FAILED*"):
        result.stdout.fnmatch_lines([f"E * {line}"])
    result.stdout.fnmatch_lines(["*there is no file nothing.trec at the commit *(main)*"])
    project.ini("retrieval_baseline = git:main")
    result = project.run("-k", "test_here", *dist)
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("name", ["git:main", "memory://bucket/main.trec"])
def test_what_lies_elsewhere_is_not_written(project, name):
    project.test(GATE)
    project.run("--retrieval-update=new")
    committed(project, "eval")
    project.ini(f"retrieval_baseline = {name}")
    before = (project.path / PLACE).read_bytes()
    result = project.run("--retrieval-update=all")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [f"*baseline {name}: --retrieval-update=all writes files only*retrieval_baseline=main*"]
    )
    assert (project.path / PLACE).read_bytes() == before


def test_baselines_and_runs_at_urls(project):
    project.run_file("bucket/small/main.run.trec", HITS)
    project.run_file("bucket/worse.trec", WORSE)
    bucket = (project.path / "bucket").as_uri()
    project.ini(f"retrieval_runs = worse = {bucket}/worse.trec")
    project.test(
        "def test_held(recall_at, baseline):\n"
        f"    assert recall_at(2) >= baseline['{bucket}/small/main.run.trec']\n"
        "def test_worse(recall_at, baseline):\n"
        f"    assert recall_at(2, run='worse') >= baseline['{bucket}/small/main.run.trec']\n"
        "def test_against(recall_at, against):\n"
        f"    assert recall_at(2) >= against('{bucket}/worse.trec')\n"
        "def test_absent(recall_at, baseline):\n"
        f"    assert recall_at(2) >= baseline['{bucket}/none.trec']\n"
    )
    result = project.run()
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines([f"*{bucket}/none.trec: there is no such file*"])
    result = project.run("-k", "held", f"--retrieval-run={bucket}/worse.trec")
    result.assert_outcomes(failed=1)


def test_the_folder_of_baselines_may_be_a_url(project):
    project.test(GATE)
    project.ini("retrieval_baseline_dir = stored")
    project.run("--retrieval-update=new").assert_outcomes(passed=1)
    url = (project.path / "stored").as_uri()
    project.ini(f"retrieval_baseline_dir = {url}")
    project.run().assert_outcomes(passed=1)
    project.ini(f"retrieval_baseline_dir = {url}", "retrieval_baseline = none")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{url}/small/none.run.jsonl.gz: there is no such file*"])


def test_a_folder_in_the_place_of_a_baseline_is_one_sentence(project, dist):
    (project.path / "eval/small/baselines/main.run.jsonl.gz").mkdir(parents=True)
    project.test(
        "import pytest\n@pytest.mark.xfail\ndef test_it(recall_at, baseline):\n    recall_at(2) >= baseline\n"
        "def test_other(recall_at, baseline):\n    recall_at(2) >= baseline['other']\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines([r"E .*DataError: .*main.run.jsonl.gz is a folder"])
    result = project.run("--retrieval-update=all", *dist)
    assert result.ret == 4
    result.stdout.re_match_lines([r"ERROR: .*main.run.jsonl.gz was not written: .* is a folder"])
    result.stdout.fnmatch_lines(["baseline written: *other.run.jsonl.gz"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_file_above_the_baseline_is_one_sentence(project):
    (project.path / "eval/small/baselines").touch()
    project.test(GATE)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"E .*DataError: .*cannot read the file: Not a directory"])
    result = project.run("--retrieval-update=all")
    assert result.ret == 4
    assert "was not written" in result.stdout.str()


def test_an_attempt_that_measured_nothing_leaves_nothing_of_the_one_before(project):
    project.test(
        "import pathlib, pytest\n"
        "@pytest.fixture\ndef again():\n"
        "    if pathlib.Path('seen').exists():\n        raise KeyError('gone')\n    pathlib.Path('seen').touch()\n"
        "def test_it(again, recall_at, baseline):\n    recall_at(2) >= baseline\n    raise KeyError('later')\n"
    )
    (project.path / "conftest.py").write_text(
        (project.path / "conftest.py").read_text() + "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem)\n"
        "    runtestprotocol(item, nextitem=nextitem)\n"
        "    return True\n"
    )
    result = project.run("--retrieval-update=all")
    result.assert_outcomes(failed=1, errors=1)
    assert "baseline written" not in result.stdout.str()
