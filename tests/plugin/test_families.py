"""`gate_family`, lists of measures and slices in tests, with and without workers."""

from __future__ import annotations

import pytest

TESTS = """
import pytest

def test_all_failures_at_once(gate_family, metric, recall_at):
    with gate_family(correction="holm"):
        assert recall_at(2) >= 0.7
        assert metric("mrr") >= 0.1
        assert metric("hit@1") >= 0.9

def test_holds(gate_family, gate):
    with gate_family() as family:
        gate("recall@2 >= 0.6")
        gate(["mrr >= 0.1", "hit@1 >= 0.1"])
    assert family.verdict and len(family.verdict.members) == 3

@pytest.mark.xfail(reason="known", strict=True)
def test_known(gate_family, recall_at):
    with gate_family():
        assert recall_at(2) >= 0.7

@pytest.mark.xfail(reason="an error is no failure")
def test_nothing_inside(gate_family):
    with gate_family():
        pass

def test_not_used(gate_family):
    pass

def test_not_entered(gate_family, recall_at):
    gate_family()
    recall_at(2) >= 0.7

def test_nested(gate_family, recall_at):
    with gate_family():
        recall_at(2) >= 0.1
        with gate_family():
            recall_at(2) >= 0.1

def test_another_exception(gate_family, recall_at):
    with pytest.raises(KeyError):
        with gate_family():
            recall_at(2) >= 0.1
            raise KeyError("x")

def test_skipped(gate_family, recall_at):
    with gate_family():
        recall_at(2) >= 0.9
        pytest.skip("later")

def test_measures(metric):
    assert metric(["recall@2", "mrr"]) >= 0.6

@pytest.mark.retrieval(by="type", min_n=2)
def test_slices(recall_at):
    assert recall_at(2) >= 0.6
"""


def test_families_lists_and_slices(project, dist):
    project.test(TESTS)
    result = project.run(*dist)
    result.assert_outcomes(passed=2, failed=7, xfailed=1, skipped=1)
    text = result.stdout.str()
    for line in (
        "recall@2 >= 0.7, mrr >= 0.1, hit@1 >= 0.9: FAILED. 2 of 3 comparisons do not hold",
        "nothing was compared inside gate_family",
        "this test asks for gate_family and compared nothing",
        "a gate_family stands inside another",
        "recall@2 >= 0.6: FAILED. 1 of 2 slices fails: type=faq, 0.500 is below 0.600",
        "  failed   type=faq      n = 2   0.500",
    ):
        assert line in text, line
    section = text[text.index("retrieval gates") : text.index("short test summary")]
    assert (
        len([line for line in section.splitlines() if "::test_all_failures_at_once" in line and "next" not in line])
        == 1
    )
    assert "measured.py" not in text
    assert "families.py" not in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("metric('recall@2', by='typ') >= 0.1", "did you mean type?"),
        ("metric('recall@2', by='type') >= 0.1", "every slice has fewer than 10 counted queries"),
        ("metric([]) >= 0.1", "empty list of measures"),
        ("gate([])", "empty list of gates"),
        ("metric(['recall@2', 'mrr'])", "never compared it|compared nothing"),
        (
            "metric('mrr') >= 0.1; gate_family().__enter__(); metric('mrr') >= 0.9",
            "began a gate_family and did not end it",
        ),
        (
            "with gate_family():\n        for _ in range(2):\n            metric('mrr') >= 0.1",
            "mrr >= 0.1 stands twice in one gate_family",
        ),
        (
            "import contextlib\n    metric('mrr') >= 0.1\n    with contextlib.suppress(KeyError), gate_family():\n"
            "        metric('mrr') >= 0.9\n        raise KeyError",
            "KeyError left a gate_family before its 1 comparison could be decided",
        ),
    ],
)
def test_what_measures_nothing_is_an_error(project, line, said):
    project.test(f"def test_it(metric, gate, gate_family):\n    {line}\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([f"E .*({said})"])


def test_slices_and_lists_in_a_gate_file(project):
    (project.path / "small.gates.yaml").write_text(
        "gates:\n"
        '  slices: {gate: "recall@2 >= 0.6", by: type, min_n: 2}\n'
        '  several: {gate: ["recall@2 >= 0.6", "mrr >= 0.9"]}\n'
        '  fine: {gate: ["recall@2 >= 0.6", "mrr >= 0.1"]}\n'
        '  lonely: {gate: "recall@2 >= baseline", rule: significant, correction: holm}\n'
    )
    result = project.run("small.gates.yaml")
    result.assert_outcomes(passed=1, failed=3)
    text = result.stdout.str()
    assert "recall@2 >= 0.6: FAILED. 1 of 2 slices fails: type=faq, 0.500 is below 0.600" in text
    assert "recall@2 >= 0.6, mrr >= 0.9: FAILED. 1 of 2 comparisons does not hold: mrr >= 0.9" in text
    assert "correction='holm' is for a family of comparisons, and this is one" in text
    assert "(a comparison raises" not in text


def test_the_same_measure_of_something_else_is_another_comparison(project):
    project.test(
        "from pytest_retrieval_eval import Run\n"
        "def test_it(metric, gate_family, against):\n"
        "    with gate_family() as family:\n"
        "        metric('mrr') >= 0.1\n"
        "        metric('mrr') >= 0.2\n"
        "        metric('mrr', where={'type': 'faq'}) >= 0.1\n"
        "        metric('mrr') >= against(Run.of({'q1': ['a']}))\n"
        "        metric('mrr') >= against(Run.of({'q2': ['b']}))\n"
        "    assert len(family.verdicts) == 5\n"
    )
    project.run().assert_outcomes(passed=1)
