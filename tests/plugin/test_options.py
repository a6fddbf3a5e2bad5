"""Options and ini values: checked before any test runs, and none is silently without effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import HITS

PERFECT = {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["d"]}
GATE = "def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n"


@pytest.mark.parametrize(
    ("ini", "arguments", "expected"),
    [
        (("retrieval_depth = 0",), (), "retrieval_depth = 0"),
        (("retrieval_depth = many",), (), "retrieval_depth: found 'many'; expected a whole number such as 100"),
        (("retrieval_weak_drop = much",), (), "retrieval_weak_drop: found 'much'; expected a number such as 0.02"),
        (("retrieval_weak_drop = -1",), (), "retrieval_weak_drop"),
        (("retrieval_runs =", "    best"), (), "not of the form 'name = path'"),
        (("retrieval_runs =", "    a = x", "    a = y"), (), "stands twice"),
        ((), ("--retrieval-update=al",), "did you mean all"),
        ((), ("--retrieval-run=missing.trec",), "there is no file"),
        ((), ("--retrieval-run=small=missing.trec",), "there is no file"),
        ((), ("--retrieval-run=run.trec", "--retrieval-run=run.trec"), "was given before"),
    ],
)
def test_a_value_that_cannot_be_used_ends_the_session_with_one_sentence(project, dist, ini, arguments, expected):
    project.run_file("run.trec", HITS)
    project.ini(*ini)
    project.test(GATE)
    result = project.run(*arguments, *dist)
    assert result.ret == 4
    text = result.stderr.str() + result.stdout.str()
    result.stderr.re_match_lines([f".*({expected})"])
    assert "Traceback" not in text


def test_a_run_from_the_command_line_goes_before_the_retriever(project, dist):
    project.run_file("perfect.trec", PERFECT)
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 1\n")
    project.run("--retrieval-run=perfect.trec", *dist).assert_outcomes(passed=1)
    project.run("--retrieval-run=small=perfect.trec", *dist).assert_outcomes(passed=1)
    assert project.retriever_calls == 0


def test_a_run_that_no_gate_measures_is_not_green(project, dist):
    project.run_file("perfect.trec", PERFECT)
    project.test(GATE)
    result = project.run("--retrieval-run=othr=perfect.trec", *dist)
    assert result.ret == 4
    result.stdout.re_match_lines(["ERROR: --retrieval-run=othr=.*no gate"])
    project.test("def test_it():\n    pass\n")
    assert project.run("--retrieval-run=perfect.trec", *dist).ret == 4


def test_in_a_partial_run_it_is_a_note(project, dist):
    project.run_file("perfect.trec", PERFECT)
    project.test(GATE + "def test_other():\n    pass\n")
    result = project.run("--retrieval-run=perfect.trec", "-k", "other", *dist)
    assert result.ret == 0
    result.stdout.re_match_lines(["note: --retrieval-run=.*not all tests ran"])


MARKED = "import pytest\n@pytest.mark.retrieval(dataset='also')\n" + GATE.replace("test_", "test_also_")


@pytest.mark.parametrize("name", ["small", "also"])
def test_nor_is_the_run_of_a_dataset_whose_tests_were_left_out(project, dist, name):
    project.run_file("perfect.trec", PERFECT)
    project.dataset("also")
    project.test(GATE + MARKED + "def test_other():\n    pass\n")
    result = project.run(f"--retrieval-run={name}=perfect.trec", "-k", "other", *dist)
    assert result.ret == 0
    result.stdout.re_match_lines(["note: --retrieval-run=.*not all tests ran"])


def test_but_the_run_of_a_dataset_that_no_test_has_is_no_part_of_the_rest(project, dist):
    project.run_file("perfect.trec", PERFECT)
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.5\ndef test_other():\n    pass\n")
    result = project.run("--retrieval-run=smal=perfect.trec", "-k", "not other", *dist)
    result.assert_outcomes(passed=1)
    assert result.ret == 4
    result.stdout.re_match_lines(["ERROR: --retrieval-run=smal=.*nor a test has the dataset; did you mean small?"])


def test_what_is_left_out_without_a_word_is_left_out_too(project):
    """By a plugin that shortens the list of tests, and by pytest itself, which skips files without a failure."""
    project.run_file("perfect.trec", PERFECT)
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.5\n")
    project.test("def test_bad():\n    assert 0\n", "test_other.py")
    run, here = project.pytester.runpytest_inprocess, ("-p", "no:hypothesispytest")
    run(*here).assert_outcomes(passed=1, failed=1)
    text = (project.path / "conftest.py").read_text()
    last = run(*here, "--lf", "--retrieval-run=small=perfect.trec")
    text += "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n"
    (project.path / "conftest.py").write_text(text)
    shard = run(*here, "--retrieval-run=small=perfect.trec")
    for result in (last, shard):
        result.assert_outcomes(failed=1)
        result.stdout.re_match_lines(["note: --retrieval-run=small.*not all tests ran"])


def test_a_run_that_meets_an_overriding_fixture_is_an_error(project, dist):
    project.run_file("perfect.trec", PERFECT)
    text = (project.path / "conftest.py").read_text()
    text += "@pytest.fixture(scope='session')\ndef retrieval_run():\n    return 'perfect.trec'\n"
    (project.path / "conftest.py").write_text(text)
    project.test(GATE)
    result = project.run("--retrieval-run=perfect.trec", *dist)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*only one of them can be the run under test"])


def test_paths_of_the_command_line_are_relative_to_where_pytest_starts(project, dist, monkeypatch):
    project.run_file("sub/perfect.trec", PERFECT)
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 1\n", "sub/test_sub.py")
    monkeypatch.chdir(project.path / "sub")
    project.run("--retrieval-run=perfect.trec", *dist).assert_outcomes(passed=1)


def test_the_ini_names_the_run_and_the_split(project, dist):
    project.run_file("perfect.trec", PERFECT)
    project.ini("retrieval_run = perfect.trec", "retrieval_split = dev")
    (project.path / "eval/small/qrels/dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    project.test("def test_it(recall_at):\n    assert (recall_at(2) >= 1).n == 1\n")
    project.run(*dist).assert_outcomes(passed=1)


def test_the_depth_is_what_the_retriever_is_asked_for(project):
    project.ini("retrieval_depth = 3")
    project.test(
        "def test_it(recall_at, run):\n    assert run.depth == 3 and recall_at(3) >= 0.5\n"
        "def test_deeper(recall_at):\n    assert recall_at(4) >= 0.5\n"
    )
    result = project.run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines(["E .*recall@4.*3"])


def test_native_toml_takes_the_same_values(project):
    major = int(pytest.__version__.split(".")[0])
    if major < 9:
        pytest.skip("[tool.pytest] came with pytest 9")
    (project.path / "pytest.ini").unlink()
    (project.path / "pyproject.toml").write_text(
        '[tool.pytest]\nretrieval_datasets = ["small = eval/small"]\nretrieval_depth = 3\nretrieval_weak_drop = 0.01\n'
    )
    project.test("def test_it(recall_at, run):\n    assert run.depth == 3 and recall_at(2) >= 0.6\n")
    project.run().assert_outcomes(passed=1)
    (project.path / "pyproject.toml").write_text('[tool.pytest]\nretrieval_depth = "3"\n')
    result = project.run()
    assert result.ret == 4
    assert "Traceback" not in result.stderr.str()


def test_toml_ini_options_take_the_same_values(project):
    (project.path / "pytest.ini").unlink()
    (project.path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nretrieval_datasets = ["small = eval/small"]\nretrieval_depth = 3\n'
        'retrieval_runs = ["best = best.trec"]\n'
    )
    project.run_file("best.trec", PERFECT)
    project.test("def test_it(recall_at, run):\n    assert run.depth == 3 and recall_at(2, run='best') >= 1\n")
    project.run().assert_outcomes(passed=1)


def test_an_unknown_dataset_or_run_is_answered_with_a_suggestion(project):
    project.ini("retrieval_runs =", "    hybrid = h.trec")
    project.test(
        "def test_run(recall_at):\n    assert recall_at(2, run='hybird') >= 0\n"
        "def test_dataset(recall_at):\n    assert recall_at(2, dataset='smal') >= 0\n"
    )
    result = project.run()
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines(["E .*did you mean hybrid", "E .*did you mean small"])


def test_without_any_dataset_the_message_says_what_to_do(project):
    project.ini(datasets=())
    project.test(GATE)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*retrieval_datasets"])


@pytest.mark.parametrize(
    ("file", "section", "line"),
    [
        ("pytest.ini", "[pytest]", "retrieval_datasets = NAME = FOLDER"),
        ("tox.ini", "[pytest]", "retrieval_datasets = NAME = FOLDER"),
        ("setup.cfg", "[tool:pytest]", "retrieval_datasets = NAME = FOLDER"),
        ("pyproject.toml", "[tool.pytest.ini_options]", 'retrieval_datasets = ["NAME = FOLDER"]'),
        ("pyproject.toml", "[tool.pytest]", 'retrieval_datasets = ["NAME = FOLDER"]'),
        ("pytest.toml", "[pytest]", 'retrieval_datasets = ["NAME = FOLDER"]'),
    ],
)
def test_advice_names_the_file_in_use_and_works_in_it(project, file, section, line):
    if int(pytest.__version__.split(".")[0]) < 9 and (section == "[tool.pytest]" or file == "pytest.toml"):
        pytest.skip("came with pytest 9")
    (project.path / "pytest.ini").unlink()
    (project.path / file).write_text(f"{section}\n")
    project.test(GATE)
    result = project.run()
    result.assert_outcomes(failed=1)
    said = f"no dataset is configured: add to {file}, under {section}, {line}, or override"
    assert said in result.stdout.str()
    (project.path / file).write_text(f"{section}\n{line.replace('NAME', 'small').replace('FOLDER', 'eval/small')}\n")
    project.run().assert_outcomes(passed=1)


def test_help_lists_every_option_and_ini_value(project):
    from pytest_retrieval_eval.settings import FLAGS, INI

    text = project.run("--help").stdout.str()
    for name in [flag.flag for flag in FLAGS] + [ini.name for ini in INI]:
        assert name in text


def test_a_session_without_the_terminal_ends_as_any_other(project):
    project.test("def test_it(metric):\n    assert metric('recall@2') >= 0.9\n")
    project.gates("gates:\n  worse: recall@2 >= 0.9\n  mistyped: recall@2 >= baseline\n")
    result = project.run("-p", "no:terminal", own_process=True)
    assert result.ret == 1
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan", "--collect-only"])
def test_a_session_that_runs_no_test_writes_no_report_and_misses_nothing(project, dist, option):
    project.run_file("best.trec", {"q1": ["a"]})
    project.test(GATE)
    result = project.run(option, "--retrieval-json=out.json", "--retrieval-run=best.trec", *dist)
    assert result.ret == 0
    assert not (project.path / "out.json").exists()
    assert "no gate of this session" not in result.stdout.str()


@pytest.mark.parametrize("status", [0, 7])
def test_a_session_that_a_test_ends_is_not_complete(project, status):
    project.test(
        "import pytest\n"
        "def test_first(metric):\n    metric('recall@2') >= 0.1\n"
        f"def test_ends():\n    pytest.exit('enough', returncode={status})\n"
        "def test_never(metric):\n    metric('recall@2') >= 0.9\n"
    )
    result = project.run("--retrieval-json=out.json")
    assert result.ret == status
    report = json.loads((project.path / "out.json").read_text())
    assert (report["complete"], report["exit_status"]) == (False, status)


@pytest.mark.parametrize(
    "line",
    [
        "metric('recall@2', run='x' * 300)",
        "metric('recall@2', dataset='x' * 300)",
        "metric('recall@2') >= against('x' * 300)",
        "metric('recall@2', stage='x' * 300)",
    ],
)
def test_a_name_that_no_file_can_have_is_an_error_also_under_xfail(project, line):
    line += " >= 0.1" if ">=" not in line else ""
    project.test(f"import pytest\n@pytest.mark.xfail\ndef test_it(metric, against):\n    {line}\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E * there is no *"])


def test_a_run_of_a_gate_file_that_no_file_can_be_is_an_error(project):
    project.gates(f"gates:\n  long: {{gate: recall@2 >= 0.1, run: {'x' * 300}}}\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["small.gates.yaml:2: there is no run *"])


def test_a_folder_that_cannot_be_looked_into_is_an_error_also_under_xfail(project, monkeypatch):
    inside = Path.iterdir

    def closed(folder):
        if folder.name == "qrels":
            raise PermissionError(13, "Permission denied", str(folder))
        return inside(folder)

    monkeypatch.setattr(Path, "iterdir", closed)
    project.test(f"import pytest\n@pytest.mark.xfail\n{GATE}")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *qrels: cannot be read: Permission denied"])


def test_a_report_that_cannot_be_written_makes_the_session_complain(project, dist):
    project.test(f"import pathlib\n{GATE}    pathlib.Path('out.json').unlink()\n    pathlib.Path('out.json').mkdir()\n")
    result = project.run("--retrieval-json=out.json", *dist)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: --retrieval-json=*out.json was not written: *is a folder*"])
