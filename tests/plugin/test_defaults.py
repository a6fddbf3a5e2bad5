"""The ini value `retrieval_defaults`: keywords of gates that do not say otherwise, and never unseen."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.gates.defaults import check_defaults, with_defaults
from pytest_retrieval_eval.gates.options import KEYWORDS

SPREAD = {f"q{i}": ["b", "a"] if i % 2 else ["a", "b"] for i in range(1, 5)}


def defaults(project, *lines):
    project.ini("retrieval_defaults =", *(f"    {line}" for line in lines))


def test_each_place_goes_before_the_next(project, dist):
    # The order: argument, marker or entry, top of the gate file, ini.
    defaults(project, "rule = each", "allow = 1", "alpha = 0.2")
    project.test(
        "import pytest\n"
        "def said(verdict):\n    return verdict.rule, verdict.alpha, verdict.allow\n"
        "def test_ini(recall_at, against):\n"
        "    assert said(recall_at(2) >= against('run.trec')) == ('each', 0.2, 1)\n"
        "@pytest.mark.retrieval(alpha=0.1, allow=2)\n"
        "def test_marker(recall_at, against):\n"
        "    assert said(recall_at(2) >= against('run.trec')) == ('each', 0.1, 2)\n"
        "@pytest.mark.retrieval(alpha=0.1, allow=2)\n"
        "def test_argument(gate):\n"
        "    assert said(gate('recall@2 >= against(run.trec)', alpha=0.01)) == ('each', 0.01, 2)\n"
        "    assert said(gate('recall@2 >= against(run.trec)', rule='mean', allow=0)) == ('mean', 0.1, 0)\n"
        "def test_another_rule_does_not_read_allow(gate, metric, against):\n"
        "    assert said(gate('recall@2 >= against(run.trec)', rule='mean')) == ('mean', 0.2, 0)\n"
        "    assert said(metric('recall@2', rule=None) >= against('run.trec')) == ('mean', 0.2, 0)\n"
    )
    project.run_file("run.trec", {"q1": ["a"]})
    project.gates(
        "defaults: {allow: 3}\n"
        "gates:\n"
        "  from-the-top: recall@2 >= against(run.trec)\n"
        '  own: {gate: "recall@2 >= against(run.trec)", allow: 2}\n'
        '  other: {gate: ["recall@2 >= 0.5", "mrr >= 0.1"], rule: mean, allow: 0}\n'
    )
    project.run("--retrieval-json=out.json", *dist).assert_outcomes(passed=7)
    report = json.loads((project.path / "out.json").read_text())
    assert report["defaults"] == {"rule": "each", "allow": 1, "alpha": 0.2}
    found = {
        test["nodeid"].partition("::")[2]: [(each["rule"], each["alpha"], each["allow"]) for each in test["verdicts"]]
        for test in report["tests"]
    }
    assert found["from-the-top"] == [("each", 0.2, 3)]
    assert found["own"] == [("each", 0.2, 2)]
    assert found["other"] == [("mean", 0.2, 0)]


def test_a_default_is_seen_in_every_report(project, dist):
    """recall@2 falls in one query: a failure under `mean`, none under a lenient `each`."""
    project.run_file("old.trec", {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"]})
    project.gates("gates:\n  lenient: recall@2 >= against(old.trec)\n")
    project.run("small.gates.yaml", *dist).assert_outcomes(failed=1)
    defaults(project, "rule = each", "allow = 1")
    project.test("def test_strict(gate):\n    gate('recall@2 >= against(old.trec)', allow=0)\n")
    result = project.run("--retrieval-json=out.json", *dist)
    result.assert_outcomes(passed=1, failed=1)
    note = "defaults of this project: rule='each'{} (ini value retrieval_defaults)"
    result.stdout.fnmatch_lines(
        [
            "*recall@2 >= against(old.trec): FAILED. 1 query loses, 0 allowed*",
            f"*note: {note.format('')}",
            "defaults: rule='each', allow=1 (ini value retrieval_defaults)",
        ]
    )
    report = json.loads((project.path / "out.json").read_text())
    notes = {test["nodeid"].partition("::")[2]: test["verdicts"][0]["notes"] for test in report["tests"]}
    assert note.format(", allow=1") in notes["lenient"]
    assert note.format("") in notes["test_strict"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("rul = each",), "retrieval_defaults: a gate has no default 'rul'; did you mean rule?"),
        (("rule = eech",), "retrieval_defaults: 'eech' is not a rule"),
        (("alpha = 0.7",), "retrieval_defaults: alpha= lies between 0 and 0.5"),
        (("alpha = five",), "retrieval_defaults: alpha= .*'five'"),
        (("alpha = null",), "retrieval_defaults: alpha has no value"),
        (("allow = -1",), "retrieval_defaults: allow= is a number of queries"),
        (("min_n = 0",), "retrieval_defaults: min_n=0"),
        (("correction = hulm",), "retrieval_defaults: 'hulm' is no correction.*did you mean holm"),
        (("run = a.trec",), "retrieval_defaults: run stands in the ini value retrieval_run"),
        (("dataset = small",), "retrieval_defaults: dataset stands in the ini value retrieval_datasets"),
        (("defaulted = 1",), "retrieval_defaults: a gate has no default 'defaulted'"),
        (("noninferior",), "retrieval_defaults: 'noninferior' is not of the form 'name = value'"),
        (("alpha = 0.01", "alpha = 0.1"), "retrieval_defaults: the name 'alpha' stands twice"),
    ],
)
def test_what_no_gate_could_use_ends_the_session(project, lines, said):
    defaults(project, *lines)
    project.test("def test_it():\n    pass\n")
    result = project.run()
    assert result.ret == 4
    result.stderr.re_match_lines([f"ERROR: {said}"])
    assert "Traceback" not in result.stderr.str()


def test_workers_and_the_command_line_see_the_same(project, dist):
    project.test("def test_it(gate):\n    assert gate('recall@2 >= 0.6', rule=None).alpha == 0.2\n")
    project.run("-o", "retrieval_defaults=alpha = 0.2", *dist).assert_outcomes(passed=1)
    result = project.run("-o", "retrieval_defaults=alfa = 0.2", *dist)
    assert result.ret == 4
    result.stderr.re_match_lines([".*a gate has no default 'alfa'; did you mean alpha"])


def test_a_default_that_does_not_fit_a_gate_is_its_error(project, dist):
    defaults(project, "rule = noninferior")
    project.test(
        "def test_margin(recall_at, against):\n    recall_at(2) >= against('run.trec')\n"
        "def test_number(recall_at):\n    recall_at(2) >= 0.1\n"
        "def test_conflict(gate):\n    gate('recall@2 >= 0.1', allow=2)\n"
        "def test_family(gate, gate_family):\n    with gate_family():\n        gate('recall@2 >= 0.1')\n"
        "def test_its_own(recall_at):\n    assert recall_at(2, rule='mean') >= 0.1\n"
    )
    project.run_file("run.trec", {"q1": ["a"]})
    project.gates('gates:\n  list: {gate: ["recall@2 >= 0.1", "mrr >= 0.1"]}\n')
    result = project.run("--retrieval-json=out.json", *dist)
    result.assert_outcomes(passed=1, failed=5)
    origin = (
        "rule='noninferior' is a default of this project (ini value retrieval_defaults), and a gate may say otherwise"
    )
    text = result.stdout.str()
    assert "needs a margin above 0" in text
    report = json.loads((project.path / "out.json").read_text())
    for test in report["tests"]:
        name = test["nodeid"].partition("::")[2]
        said = [*(each["reason"] for each in test["verdicts"]), *test["errors"]][0]
        assert said.count(origin) == (0 if name == "test_its_own" else 1), (name, said)


def test_a_gate_file_is_read_with_the_defaults(project):
    """`allow` alone is an error in a gate file, but not where the project's rule is `each`."""
    project.gates('gates:\n  golden: {gate: "recall@2 >= against(run.trec)", allow: 2}\n')
    project.run_file("run.trec", {"q1": ["a"]})
    assert project.run().ret == 2
    defaults(project, "rule = each")
    project.run().assert_outcomes(passed=1)
    defaults(project, "rule = significant")
    result = project.run()
    assert result.ret == 2
    result.stdout.re_match_lines([".*small.gates.yaml:2: .*rule='significant' is a default of this project.*"])


def test_a_correction_is_for_families_alone(project):
    defaults(project, "rule = significant", "correction = bh", "min_n = 1")
    project.run_file("run.trec", SPREAD)
    project.test(
        "def test_it(gate, metric, gate_family):\n"
        "    alone = gate('recall@2 >= against(run.trec)')\n"
        "    assert alone.correction is None\n"
        "    several = gate(['recall@2 >= against(run.trec)', 'mrr >= against(run.trec)'])\n"
        "    assert [each.correction for each in several.members] == ['bh', 'bh']\n"
        "    sliced = gate('recall@2 >= against(run.trec)', by='type')\n"
        "    assert [(each.correction, each.decides) for each in sliced.slices] == [('bh', True)] * 2\n"
        "    with gate_family() as family:\n"
        "        gate('recall@2 >= against(run.trec)')\n"
        "        gate(['mrr >= against(run.trec)', 'hit@1 >= against(run.trec)'])\n"
        "    assert [each.correction for each in family.verdict.members] == ['bh'] * 3\n"
        "    with gate_family(correction='holm') as family:\n"
        "        gate(['mrr >= against(run.trec)', 'hit@1 >= against(run.trec)'])\n"
        "    assert [each.correction for each in family.verdict.members] == ['holm'] * 2\n"
    )
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize("table", ["tool.pytest.ini_options", "tool.pytest"])
def test_toml(project, table):
    if table == "tool.pytest" and int(pytest.__version__.split(".")[0]) < 9:
        pytest.skip("[tool.pytest] came with pytest 9")
    (project.path / "pytest.ini").unlink()
    file = project.path / "pyproject.toml"
    head = f'[{table}]\nretrieval_datasets = ["small = eval/small"]\nretrieval_defaults = '
    file.write_text(head + '["alpha = 0.01", \'where = {"type": "faq"}\', "rule = mean"]\n')
    project.test(
        "def test_it(recall_at):\n    found = recall_at(2) >= 0.5\n    assert (found.alpha, found.n) == (0.01, 2)\n"
    )
    project.run().assert_outcomes(passed=1)
    for wrong in ("[0.01]", "{alpha = 0.01}", '"alpha"'):
        file.write_text(head + wrong + "\n")
        result = project.run()
        assert result.ret == 4, wrong
        result.stderr.re_match_lines(["ERROR: .*retrieval_defaults: "])
        assert "Traceback" not in result.stderr.str()


def test_every_keyword_has_a_default_or_an_ini_value_of_its_own():
    values = {
        "labels": "qrels",
        "where": {"type": "faq"},
        "by": "type",
        "min_n": 3,
        "correction": "bh",
        "rule": "each",
        "alpha": 0.01,
        "sided": "two",
        "allow": 2,
        "judged": 0.9,
        "unit": "document",
        "allow_failures": 1,
        "allow_stale": 1,
        "normalise": "list",
        "pool": ("bm25",),
        "answer_metric": "f1",
        "stage": "fused",
    }
    assert set(values) | {"run", "dataset", "reader"} == set(KEYWORDS)
    check_defaults(values)
    pooled = {"labels": "contains(kilt)"}
    reading = {"allow": {"rule": "each"}, "min_n": {"by": "type"}, "correction": {"rule": "significant", "by": "t"}}
    reading |= {"normalise": pooled, "pool": pooled, "answer_metric": {"labels": "erag"}}
    for name, value in values.items():
        options = with_defaults({name: value}, reading.get(name, {}))
        assert getattr(options, name) == value
        assert options.defaulted == {name: value}
        assert name not in with_defaults({name: value}, {**reading.get(name, {}), name: value}).defaulted
