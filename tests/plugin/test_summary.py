"""The section at the end of a session, and that every verdict reaches it."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys

import pytest
from support import HITS

GATES = (
    "def test_good(recall_at):\n    assert recall_at(2) >= 0.6\n"
    "def test_bad(recall_at):\n    assert recall_at(2) >= 0.7\n"
    "def test_typo(metric):\n    assert metric('recall@2', where={'typ': 1}) >= 0.7\n"
    "def test_two(recall_at):\n    assert 0.1 <= recall_at(2) <= 0.9\n"
)


def test_one_line_a_gate(project, dist):
    project.test(GATES)
    result = project.run(*dist)
    result.assert_outcomes(passed=2, failed=2)
    text = result.stdout.str()
    section = text[text.index("retrieval gates") :]
    lines = section.splitlines()
    gates = [line for line in lines if "::test_" in line and line.split()[0] in ("PASSED", "FAILED", "ERROR")]
    gates = [line for line in gates if "recall@2" in line and "   test_it.py" in line]
    assert sorted(line.split()[0] for line in gates) == ["ERROR", "FAILED", "PASSED", "PASSED", "PASSED"]
    assert "1 error, 1 failed, 3 passed" in section
    result.stdout.fnmatch_lines(["next: pytest -vv *test_it.py::test_bad*"])


def test_quiet_shows_what_did_not_pass(project):
    project.test(GATES)
    result = project.run("-q")
    text = result.stdout.str()
    section = text[text.index("retrieval gates") :]
    assert "PASSED " not in section
    assert "FAILED " in section


@pytest.mark.parametrize(("flag", "shown"), [((), 15), (("-v",), 20), (("-vv",), 20)])
def test_more_queries_with_more_verbosity(project, flag, shown):
    texts = {f"q{n:02}": f"question {n}" for n in range(20)}
    project.dataset(qrels={query: {"a": 1} for query in texts}, texts=texts, tags={})
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    return lambda query: "
        "['a'] if query == 'never' else ['z', 'a']\n"
    )
    project.test("def test_it(recall_at):\n    assert recall_at(1) >= 0.7\n")
    text = project.run(*flag).stdout.str()
    errors = [line for line in text.splitlines() if line.startswith("E ") and '"question ' in line]
    assert len(errors) == shown


def test_four_gates_under_two_workers_are_four_records(project):
    for number in range(4):
        project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n", f"test_{number}.py")
    result = project.run("-n2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["4 passed"])
    assert len([line for line in result.outlines if line.startswith("PASSED ")]) == 4


def test_results_that_get_lost_on_the_way_are_noticed(project):
    text = (project.path / "conftest.py").read_text()
    text += (
        "def pytest_report_from_serializable(config, data):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        "        data.pop('_retrieval_eval', None)\n"
    )
    (project.path / "conftest.py").write_text(text)
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n")
    result = project.run("-n2")
    assert result.ret == 3
    result.stdout.re_match_lines(["ERROR: .*not to be trusted: the worker .* 0 arrived"])


def test_tags_of_any_json_kind_and_odd_names_travel(project, dist):
    project.dataset(
        tags={"q4": {"type": None, "n": 1.5, "list": [1, {"a": True}], "ü\u2028\x1b[31m": "\x00"}},
        texts={"q1": "first question", "q2": "second question", "q3": "third question", "q4": "fourth question"},
    )
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.9\n")
    result = project.run(*dist)
    result.assert_outcomes(failed=1)
    assert "\x1b[31m" not in result.stdout.str()


def test_a_long_retrieval_shows_its_progress_to_a_person(project):
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))  # not on Windows
    project.dataset(texts={f"q{n}": f"question {n}" for n in range(6)}, tags={})
    (project.path / "conftest.py").write_text(
        "import pytest, time\n@pytest.fixture(scope='session')\n"
        "def retriever():\n    return lambda query: (time.sleep(0.5), ['a'])[1]\n"
    )
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.1\n")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, cwd=project.path, env=environment, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        # A terminal whose other side has closed raises on Linux and ends elsewhere.
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                shown += chunk
        os.close(ours)
    assert process.returncode == 0
    assert "retrieving" in shown.decode()
    assert "/6" in shown.decode()


def test_the_next_command_is_whole_where_many_gates_fail(project):
    project.test("".join(f"def test_{n}(recall_at):\n    assert recall_at(2) >= 0.9\n" for n in range(7)))
    project.run("-p", "no:cacheprovider").stdout.fnmatch_lines(["next: pytest -vv"])  # nobody keeps what failed last
    project.run("-p", "cacheprovider").stdout.fnmatch_lines(["next: pytest -vv --last-failed"])
    lines = (f"def test_{n}(recall_at, baseline):\n    assert recall_at(2) >= baseline['b{n}']\n" for n in range(7))
    project.test("".join(lines))
    project.run().stdout.fnmatch_lines(["next: pytest --retrieval-update=new"])
    project.run("--retrieval-update=new").stdout.no_fnmatch_line("next: git add*")  # not in a repository
    (project.path / ".git").mkdir()
    project.run("--retrieval-update=all", "-o", "retrieval_baseline_dir=kept").stdout.fnmatch_lines(
        ["next: git add kept/small"]
    )


def test_a_gate_that_cannot_fail_is_weak(project):
    project.test(
        "def test_all(recall_at):\n    assert recall_at(2) >= 0\n"
        "def test_most(recall_at):\n    assert recall_at(2) <= 1\n"
        "def test_margin(recall_at, against):\n    assert recall_at(2) >= against('b.trec') - 1\n"
        "def test_low(recall_at, against):\n    assert recall_at(2) >= 0.1 * against('b.trec')\n"
    )
    project.run_file("b.trec", HITS)
    result = project.run()
    result.assert_outcomes(passed=4)
    lines = [line for line in result.outlines if line.startswith("WEAK")]
    assert len(lines) >= 3


def test_the_section_says_what_weak_means_and_with_v_why(project):
    project.test(
        "def test_all(recall_at):\n    assert recall_at(2) >= 0\n"
        "def test_slices(recall_at):\n    assert recall_at(2, by='type', min_n=1) >= 0\n"
    )
    legend = "weak: it holds, but a loss worth seeing could have gone unseen *; -v says how large"
    project.run().stdout.fnmatch_lines(["WEAK *::test_all", "WEAK *::test_slices", "2 weak", legend])
    told = project.run("-v")
    told.stdout.fnmatch_lines(
        [
            "WEAK *::test_all",
            " * this gate cannot fail, *",
            "WEAK *::test_slices",
            " * type=*: this gate cannot fail, *",
        ]
    )
    told.stdout.no_fnmatch_line("weak: it holds*")
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n")
    project.run().stdout.no_fnmatch_line("weak: *")


def test_a_weak_gate_that_lost_something_is_not_said_to_have_missed_it(project):
    texts = {f"q{n}": f"question {n}" for n in range(8)}
    project.dataset(qrels={query: {"a": 1} for query in texts}, texts=texts, tags={})
    project.run_file("old.trec", {query: ["z" if query in ("q6", "q7") else "a"] for query in texts})
    project.run_file("new.trec", {query: ["z" if query in ("q0", "q1", "q2") else "a"] for query in texts})
    lost = (
        "def test_lost(metric, against):\n"
        "    assert metric('hit@1', run='new.trec', rule='significant') >= against('old.trec')\n"
    )
    missed = "def test_missed(metric):\n    assert metric('hit@1', run='new.trec') >= 0\n"
    of_loss = "weak: it holds, but there is a loss, and the test cannot tell that from chance *; -v says how large"
    of_none = "weak: it holds, but a loss worth seeing could have gone unseen *; -v says how large"
    project.test(lost)
    plain = project.run()
    plain.stdout.fnmatch_lines(["WEAK * 0.625 is below 0.750, but p = *", "1 weak", of_loss])
    plain.stdout.no_fnmatch_line(of_none)
    told = project.run("-v")
    told.stdout.fnmatch_lines(["WEAK *", "* the mean fell by 0.125 and the test cannot tell that from chance"])
    project.test(lost + missed)
    project.run().stdout.fnmatch_lines(["2 weak", of_loss, of_none])


DISTANCES = (
    "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n"
    "    return lambda query: [('a', 0.0), ('b', 0.4), ('d', 0.5)]\n"
)


def test_what_is_odd_about_the_data_is_said_once_also_where_every_gate_holds(project, dist):
    (project.path / "conftest.py").write_text(DISTANCES)
    labels = project.path / "eval/small/qrels/test.tsv"
    labels.write_text(labels.read_text() + labels.read_text().splitlines()[-1] + "\n")
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.1\n    assert recall_at(3) >= 0.1\n")
    project.test("def test_other(recall_at):\n    assert recall_at(1) >= 0.1\n", "test_other.py")
    result = project.run("-q", *dist)
    assert result.ret == 0
    notes = [line for line in result.outlines if line.startswith("note: ")]
    assert len(notes) == 2
    result.stdout.re_match_lines_random(
        [
            r"note: run retriever: scores rise down every list",
            r"note: dataset small: 1 judgment is repeated with the same grade",
        ]
    )


def test_labels_that_changed_since_the_baseline_are_said_where_the_gate_holds(project):
    project.test("def test_it(gate):\n    gate('recall@2 >= baseline')\n    gate('recall@1 >= baseline')\n")
    assert project.run("--retrieval-update=new").ret == 0
    assert "note: " not in project.run().stdout.str()
    project.dataset(qrels={"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}, "q4": {"d": 1}})
    result = project.run()
    assert result.ret == 0
    assert [line for line in result.outlines if line.startswith("note: ")] == [
        "note: baseline main of small: the labels have changed since the baseline was saved; both sides are scored on "
        "today's"
    ]
    (project.path / "conftest.py").write_text(DISTANCES)
    lines = project.run().outlines
    assert any(line.startswith("E ") and "changed: the labels have changed" in line for line in lines)


def test_next_leaves_out_what_failed_as_expected(project, dist):
    known = (
        "import pytest\n"
        "@pytest.mark.xfail(reason='known')\n"
        "def test_known(metric):\n    assert metric('recall@2') >= 0.99\n"
    )
    project.test(known)
    result = project.run(*dist)
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(["FAILED *test_known*"])
    result.stdout.no_fnmatch_line("next:*")
    project.test(known + "def test_bad(metric):\n    assert metric('recall@2') >= 0.99\n")
    project.run(*dist).stdout.re_match_lines([r"next: pytest -vv \S*test_it.py::test_bad$"])


def test_a_gate_that_could_not_be_made_shows_the_users_lines_and_is_in_the_section(project, dist):
    project.test(
        "def low(metric):\n    return metric('recall@2', rule='signficant')\n"
        "def test_name(metric):\n    assert metric('recal@5') >= 0.5\n"
        "def test_word(metric):\n    assert metric('recall@2', whre={'type': 'faq'}) >= 0.5\n"
        "def test_rule(metric):\n    assert low(metric) >= 0.5\n"
        "def test_text(gate):\n    gate('recal@5 >= 0.5')\n"
        "def test_family(gate_family):\n    gate_family(correction='hlm')\n"
        "def test_value(recall_at):\n    assert recall_at(2)\n"
        "def test_caught(metric):\n"
        "    try:\n        metric('recal@5')\n    except Exception:\n        pass\n"
        "    assert metric('recall@2') >= 0.5\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(failed=7)
    failures, _, section = result.stdout.str().partition("FAILURES")[2].partition("retrieval gates")
    assert ".py:" in failures
    for line in failures.splitlines():
        assert ".py:" not in line or line.startswith("test_it.py:")
    for line in ("return metric('recall@2', rule='signficant')", "assert low(metric)", "gate('recal@5 >= 0.5')"):
        assert line in failures
    lines = section.partition("short test summary")[0].splitlines()
    assert sorted(" ".join(line.split()) for line in lines if line.startswith("ERROR")) == [
        "ERROR 'hlm' is no correction of p-values; did you mean holm? test_it.py::test_family",
        "ERROR 'signficant' is not a rule; the rules are mean, noninferior, significant or each test_it.py::test_rule",
        "ERROR a gate has no keyword 'whre'; did you mean where? test_it.py::test_word",
        "ERROR recall@2 has no truth value: compare it directly, assert_metric('recall@2') >= baseline; for a plain "
        "number without a gate use evaluate(…) test_it.py::test_value",
        *(
            f"ERROR unknown measure recal@5: did you mean recall@5? test_it.py::{name}"
            for name in ("test_caught", "test_name", "test_text")
        ),
    ]
    assert "7 errors, 1 passed" in lines
    assert "names.py:" in project.run("--full-trace", "-k", "test_name").stdout.str()
    short = project.run("--tb=line", "-k", "test_name", *dist).stdout.str()
    assert "test_it.py:4: " in short
    assert "names.py" not in short


def test_a_users_fixture_that_cannot_make_a_gate_shows_its_own_lines(project):
    project.test(
        "import pytest\n@pytest.fixture\ndef floor(recall_at):\n    return recall_at(2, rle='mean')\n"
        "def test_it(floor):\n    pass\n"
    )
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["> *return recall_at(2, rle='mean')", "test_it.py:4: SettingsError", "ERROR * 'rle'; *::test_it", "1 error"]
    )
    result.stdout.no_fnmatch_line("*fixtures.py*")


def test_an_error_that_no_line_of_the_user_raised_is_a_sentence_without_a_traceback(project):
    project.ini(datasets=("small = eval/elsewhere",))
    project.test(
        "def test_a(dataset):\n    pass\n"
        "def test_b(recall_at):\n    pass\n"
        "def test_c(recall_at):\n    recall_at(2) >= 1\n"
    )
    result = project.run()
    result.assert_outcomes(errors=1, failed=2)
    text = result.stdout.str()
    assert "eval/elsewhere: there is no such file" in text
    assert "compared nothing" in text
    assert "recall_at(2) >= 1" in text  # a line of the user's is shown
    for internal in ("plugin.py", "attempt.py", "dataset.py", "Attempt("):
        assert internal not in text
    assert "attempt.py" in project.run("--full-trace", "-k", "test_b").stdout.str()
