"""Measures that a conftest.py brings: gates on them, in one process and under workers."""

from __future__ import annotations

import re

import pytest
from support import ROOT

from pytest_retrieval_eval.measures import registry

MEASURES = """
import numpy as np
from pytest_retrieval_eval import Definition

def {name}(ranks, measure):
    {body}

def pytest_retrieval_measures():
    return [Definition("{name}", "for a test", "this test", {name})]
"""
HALF = "return np.full(ranks.queries, 0.5)"


def add(project, body=HALF, *, name="half", folder="."):
    place = project.path / folder / "conftest.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = place.read_text() if place.exists() else ""
    place.write_text(text + MEASURES.format(body=body, name=name))


def test_a_gate_on_a_measure_of_the_conftest(project, dist):
    add(project)
    add(project, folder="deeper", name="deep")
    project.test(
        "import pytest\n"
        "def test_passes(assert_metric):\n    assert assert_metric('half') >= 0.5\n"
        "def test_fails(assert_metric):\n    assert assert_metric('half@3') >= 0.6\n"
    )
    project.test("def test_it(assert_metric):\n    assert assert_metric('deep') >= 0.5\n", "deeper/test_deep.py")
    result = project.run(*dist)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*half@3*0.500 is below 0.600*"])
    assert registry.find("half") is None
    assert registry.find("deep") is None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return np.zeros(1)", "the measure half of the module conftest gave values of shape (1,)"),
        ("return np.full(ranks.queries, np.nan)", "the measure half of the module conftest gave nan for query q1"),
        (
            "return 1 / 0",
            "measure half of the module conftest raised ZeroDivisionError: division by zero (conftest.py:",
        ),
    ],
)
def test_a_wrong_measure_is_an_error_also_under_xfail(project, body, sentence):
    add(project, body)
    project.test(
        "import pytest\n@pytest.mark.xfail\ndef test_it(assert_metric):\n    assert assert_metric('half') >= 0.1\n"
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    assert sentence in result.stdout.str()


@pytest.mark.parametrize(
    ("hook", "sentence"),
    [
        ("return 3", "gave a int (3); expected measures"),
        ("return None", "gave a NoneType (None); expected measures"),
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("return [Definition('recall', 'm', 's', len)]", "'recall' already names the measure recall"),
    ],
)
def test_a_wrong_hook_stops_the_session(project, hook, sentence):
    text = f"from pytest_retrieval_eval import Definition\ndef pytest_retrieval_measures():\n    {hook}\n"
    (project.path / "conftest.py").write_text(text)
    project.test("def test_it():\n    pass\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = result.stderr.str()
    assert sentence in message
    assert "conftest.py" in message
    assert "Traceback" not in message


def test_the_example_of_the_how_to(project):
    page = (ROOT / "docs" / "how-to" / "measures.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL):
        place = project.path / name
        place.write_text((place.read_text() if place.exists() else "") + text)
    # The last relevant document of the top 2 stands at 1, 2, 1 and nowhere; at level 2 at 2 and nowhere.
    result = project.run("-v")
    result.assert_outcomes(passed=2)
    project.test(
        "def test_it(assert_metric):\n    assert assert_metric('last_hit@2') > 0.5\n"
        # Precision at 2 is .5, .5, 1 and 0: a tenth of the way from the lowest is at .15.
        "def test_tenth(assert_metric):\n    assert assert_metric('low_precision@2') >= 0.15\n"
        "def test_no_mean(assert_metric):\n    assert assert_metric('low_precision@2') <= 0.15\n",
        "test_more.py",
    )
    result = project.run("test_more.py")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*0.500 equals 0.500*"])
