"""A gate is decided by a comparison, in every form a test may write it; a test that compares nothing fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

PASSING = {
    "bare": "recall_at(2) >= 0.6",
    "assert": "assert recall_at(2) >= 0.6",
    "long name": "assert assert_recall_at(2) >= 0.6",
    "reflected": "assert 0.6 <= recall_at(2)",
    "chained": "assert 0.6 <= recall_at(2) <= 0.7",
    "upper": "assert recall_at(2) < 0.63",
    "equal means are equal": "assert recall_at(2) >= 0.625 and recall_at(2) <= 0.625",
    "numpy": "import numpy; assert numpy.float64(0.6) <= recall_at(2)",
    "gate": "gate('recall@2 >= 0.6')",
    "metric": "assert metric('recall@2') >= 0.6",
    "raises": "import pytest, pytest_retrieval_eval\n    with pytest.raises(pytest_retrieval_eval.GateFailure):\n"
    "        assert recall_at(2) >= 0.7",
}
FAILING = {
    "bare": "recall_at(2) >= 0.7",
    "assert": "assert recall_at(2) >= 0.7",
    "reflected": "0.7 <= recall_at(2)",
    "chained": "assert 0.1 <= recall_at(2) <= 0.2",
    "strict": "assert recall_at(2) > 0.625",
    "numpy": "import numpy; numpy.float64(0.7) <= recall_at(2)",
    "gate": "gate('recall@2 >= 0.7')",
    "negated": "assert not recall_at(2) < 0.6",
}
MISUSED = {
    "nothing called": ("pass", "compared nothing"),
    "not compared": ("recall_at(2)", "never compared it|compared nothing"),
    "one of two left open": ("assert recall_at(2) >= 0.1; recall_at(3)", "never compared it"),
    "float is no comparison": ("assert float(recall_at(2)) > 0.1", "compared nothing"),
    "truth value": ("assert recall_at(2)", "compare it directly"),
    "equality": ("assert recall_at(2) == 0.625", "chance"),
    "unknown measure": ("assert metric('recal@5') >= 0.1", "did you mean recall@5"),
    "no name of a measure": ("assert metric(None) >= 0.1", "named by a text"),
    "a negative run": ("from pytest_retrieval_eval import baseline\n    assert recall_at(2) >= -baseline", "a > 0"),
    "cut-off 0": ("assert recall_at(0) >= 0", "cut-off"),
    "unknown keyword": ("assert recall_at(2, wher={'type': 'faq'}) >= 0.1", "did you mean where"),
    "unknown tag": ("assert recall_at(2, where={'typ': 'faq'}) >= 0.1", "did you mean type"),
    "unknown value": ("assert recall_at(2, where={'type': 'fax'}) >= 0.1", "did you mean .?faq"),
    "empty gate": ("gate('')", "gate"),
    "nan": ("assert recall_at(2) >= float('nan')", "NaN|nan"),
    "both measured": ("assert recall_at(2) >= metric('recall@2')", "against"),
    "deeper than the retriever was asked": ("assert recall_at(101) >= 0.1", "100"),
    "swallowed error": (
        "import pytest, pytest_retrieval_eval\n    with pytest.raises(pytest_retrieval_eval.GateError):\n"
        "        metric('recall@2', where={'type': 'fax'}) >= 0.1",
        "compared nothing",
    ),
    "swallowed error beside a gate that holds": (
        "import contextlib\n    with contextlib.suppress(Exception):\n"
        "        metric('recall@2', where={'type': 'fax'}) >= 0.1\n    recall_at(2) >= 0.1",
        "could not be measured, and the test went on",
    ),
    "swallowed typo beside a gate that holds": (
        "import contextlib\n    with contextlib.suppress(Exception):\n        gate('recal@2 >= 0.1')\n"
        "    recall_at(2) >= 0.1",
        "could not be measured, and the test went on",
    ),
    "lost in another thread": (
        "import concurrent.futures as futures\n    with futures.ThreadPoolExecutor() as pool:\n"
        "        pool.submit(lambda: recall_at(2) >= 0.9)",
        "did not hold in another thread",
    ),
}


def body(line):
    return f"def test_it(recall_at, metric, gate, assert_recall_at):\n    {line}\n"


@pytest.mark.parametrize("line", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("plain", [(), ("--assert=plain",)], ids=["rewritten", "plain"])
def test_a_gate_that_holds_passes(project, line, plain):
    project.test(body(line))
    project.run(*plain).assert_outcomes(passed=1)


@pytest.mark.parametrize("line", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("plain", [(), ("--assert=plain",)], ids=["rewritten", "plain"])
def test_a_gate_that_does_not_hold_fails(project, line, plain):
    project.test(body(line))
    result = project.run(*plain)
    result.assert_outcomes(failed=1)
    if "not" not in line:
        result.stdout.fnmatch_lines(["E*recall@2*FAILED*"])


@pytest.mark.parametrize(("line", "expected"), MISUSED.values(), ids=MISUSED)
def test_what_measures_nothing_is_an_error(project, line, expected):
    project.test(body(line))
    result = project.run()
    result.assert_outcomes(failed=1)
    assert result.ret == 1
    result.stdout.re_match_lines([f"E .*({expected})"])


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        ("recall_at(2) >= 0.9", "recall@2 >= 0.9: FAILED"),
        ("suppressed(lambda: gate('recal@2 >= 0.1'))", "could not be measured, and the test went on"),
        ("recall_at(2)", "never compared it"),
    ],
    ids=["worse", "swallowed", "left open"],
)
def test_what_a_finalizer_compares_counts_as_well(project, late, expected):
    project.test(
        "def suppressed(call):\n    try:\n        call()\n    except Exception:\n        pass\n"
        f"def test_it(recall_at, gate, request):\n    request.addfinalizer(lambda: {late})\n    recall_at(2) >= 0.1\n"
        "def test_next(recall_at):\n    recall_at(2) >= 0.1\n"
    )
    result = project.run()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.re_match_lines([f"E .*({expected})"])


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ("gate('recall@2 >= 0.9')", "recall@2 >= 0.9 was compared"),
        ("gate('recall@2 >= 0.1')", "recall@2 >= 0.1 was compared"),
        ("recall_at(2) >= 0.9", "<Measured recall@2> was made"),
        ("gate('recal@2 >= 0.1')", "a gate was made (*did you mean recall*"),
    ],
    ids=["worse", "good", "made", "typo"],
)
@pytest.mark.parametrize("workers", [(), ("-n2", "--dist=loadfile")], ids=["serial", "xdist"])
def test_what_a_thread_compares_after_its_test_is_no_green_session(project, workers, late, said):
    project.test(
        "import threading\n"
        "go, done = threading.Event(), threading.Event()\n"
        "def test_it(recall_at, gate):\n"
        "    def later():\n"
        "        go.wait(60)\n"
        f"        try:\n            {late}\n"
        "        except Exception:\n            pass\n"
        "        finally:\n            done.set()\n"
        "    threading.Thread(target=later, daemon=True).start()\n"
        "    recall_at(2) >= 0.1\n"
        "def test_next():\n    go.set()\n    assert done.wait(60)\n"
    )
    result = project.run(*workers)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines([f"ERROR: test_it.py::test_it: {said} after the test had ended, *"])


def test_several_threads_of_a_test_may_compare(project):
    project.test(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import pytest, time\n"
        "from pytest_retrieval_eval import Dataset\n"
        "made = []\n"
        "@pytest.fixture(scope='session')\n"
        "def retrieval_dataset():\n"
        "    made.append(time.sleep(0.2))\n"
        "    return Dataset.read('eval/small')\n"
        "def test_it(metric):\n"
        "    with ThreadPoolExecutor() as pool:\n"
        "        assert all(pool.map(lambda k: metric(f'recall@{k}') >= 0.1, range(1, 9)))\n"
        "    assert len(made) == 1\n"
    )
    project.run().assert_outcomes(passed=1)


def test_all_forms_under_two_workers(project):
    for number, line in enumerate([*PASSING.values(), *FAILING.values()]):
        project.test(body(line), f"test_{number}.py")
    result = project.run("-n2")
    result.assert_outcomes(passed=len(PASSING), failed=len(FAILING))
    assert result.ret == 1


def test_asserts_that_are_compiled_away_do_not_pass(project):
    project.test(
        body("assert recall_at(2) >= 0.7") + "\n" + body("assert metric('recall@2') >= 0.7").replace("it", "b")
    )
    done = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", "-p", "no:cacheprovider", "--assert=plain"],
        cwd=project.path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "2 failed" in done.stdout
    assert "compared nothing" in done.stdout


def test_skips_and_other_exceptions_keep_their_outcome(project, dist):
    project.test(
        "import pytest\n"
        "def test_skipped(recall_at):\n    pytest.skip('later')\n"
        "def test_broken(recall_at):\n    raise KeyError('x')\n"
        "@pytest.mark.xfail(reason='known', strict=True)\n"
        "def test_known(recall_at):\n    assert recall_at(2) >= 0.9\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(skipped=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["E*KeyError: 'x'"])


@pytest.mark.parametrize("strict", ["True", "False"])
def test_an_error_stays_a_failure_under_xfail(project, dist, strict):
    project.test(
        "import pytest\n"
        f"@pytest.mark.xfail(strict={strict})\n"
        "def test_typo(metric):\n    assert metric('recal@2') >= 0.9\n"
        f"@pytest.mark.xfail(strict={strict})\n"
        "def test_nothing(metric):\n    pass\n"
        f"@pytest.mark.xfail(strict={strict}, raises=AssertionError)\n"
        "def test_worse(metric):\n    assert metric('recall@2') >= 0.9\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(failed=2, xfailed=1)
    assert result.ret == 1


HIDDEN = {
    "behind another exception": (
        "    try:\n        metric('recall@2', where={'typ': 1}) >= 0.1\n    except Exception as error:\n"
        "        raise AssertionError('x') from error\n"
    ),
    "in a group": (
        "    try:\n        metric('recal@2') >= 0.1\n    except Exception as error:\n"
        "        class Group(Exception):\n            exceptions = (error,)\n        raise Group() from None\n"
    ),
    "called an expected failure": (
        "    try:\n        metric('recal@2') >= 0.1\n    except Exception:\n        pytest.xfail('known')\n"
    ),
}


@pytest.mark.parametrize("skip", ["pytest.skip('later')", "import unittest; raise unittest.SkipTest('later')"])
def test_an_error_is_not_skipped_over(project, dist, skip):
    project.test(
        "import pytest\n"
        "def test_it(metric):\n"
        f"    try:\n        metric('recal@2') >= 0.1\n    except Exception:\n        {skip}\n"
        "def test_family(metric, gate_family):\n"
        f"    with gate_family():\n        metric('recall@2') >= 0.1\n        {skip}\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(failed=1, skipped=1)
    assert "did you mean recall@2" in result.stdout.str()


@pytest.mark.parametrize("lines", HIDDEN.values(), ids=HIDDEN)
def test_an_error_is_not_hidden_from_xfail(project, lines):
    project.test(f"import pytest\n@pytest.mark.xfail\ndef test_it(metric):\n{lines}")
    project.run().assert_outcomes(failed=1)


def test_unittest_does_not_expect_an_error(project, dist):
    project.test(
        "import pytest, unittest\n"
        "class TestIt(unittest.TestCase):\n"
        "    @pytest.fixture(autouse=True)\n"
        "    def give(self, metric):\n        self.metric = metric\n"
        "    @unittest.expectedFailure\n"
        "    def test_error(self):\n        self.metric('recall@2', where={'typ': 1}) >= 0.1\n"
        "    @unittest.expectedFailure\n"
        "    def test_worse(self):\n        self.metric('recall@2') >= 0.9\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(failed=1, xfailed=1)
    assert "did you mean type" in result.stdout.str()


def test_a_fixture_obtained_at_run_time_counts_as_well(project):
    project.test(
        "def test_nothing(request):\n    request.getfixturevalue('recall_at')\n"
        "def test_open(request):\n    request.getfixturevalue('recall_at')(2)\n"
        "def test_good(request):\n    assert request.getfixturevalue('recall_at')(2) >= 0.6\n"
    )
    project.run().assert_outcomes(failed=2, passed=1)


def test_the_caret_stands_under_the_comparison_and_our_frames_are_hidden(project):
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.7\n")
    for style in ("long", "short"):
        result = project.run(f"--tb={style}")
        text = result.stdout.str()
        assert "measured.py" not in text
        assert "decide.py" not in text
        assert "assert recall_at(2) >= 0.7" in text
        assert text.count("test_it.py:2") >= 1


def test_an_error_shows_no_traceback_through_the_engine(project):
    project.test("def test_it(metric):\n    assert metric('recall@2', where={'typ': 1}) >= 0.7\n")
    text = project.run().stdout.str()
    assert "pytest_retrieval_eval/" not in text.replace("\\", "/")


def test_an_error_of_a_file_shows_no_traceback_either(project):
    project.test("def test_it(metric):\n    assert metric('recall@2', run='eval') >= 0.7\n")
    text = project.run().stdout.str()
    assert "eval is a folder; expected a file" in text
    assert "pytest_retrieval_eval/" not in text.replace("\\", "/")
    assert "direct cause" not in text


def test_in_ci_the_message_is_printed_once(project, monkeypatch):
    monkeypatch.setenv("CI", "true")
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.7\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    summary = [line for line in result.outlines if line.startswith("FAILED test_it.py")]
    assert len(summary) == 1
    assert result.stdout.str().count("q4") == 1


def test_reruns_count_each_attempt_for_itself(project):
    project.test(
        "import pathlib\n"
        "def test_it(recall_at):\n"
        "    first = not pathlib.Path('seen').exists()\n"
        "    pathlib.Path('seen').touch()\n"
        "    assert recall_at(2) >= (0.9 if first else 0.6)\n"
    )
    (project.path / "conftest.py").write_text(
        (project.path / "conftest.py").read_text() + "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    for attempt in range(2):\n"
        "        reports = runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "        if not any(report.failed for report in reports):\n"
        "            break\n"
        "    for report in reports:\n"
        "        item.ihook.pytest_runtest_logreport(report=report)\n"
        "    return True\n"
    )
    result = project.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["PASSED *recall@2*", "1 passed"])
