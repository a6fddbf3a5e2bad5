"""Gate files: each entry is a test item that means what the same gate means in Python."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from support import HITS, ROOT

from pytest_retrieval_eval import Run

PERFECT = {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["d"]}
WORSE = {**HITS, "q1": ["b", "c"]}
PLACE = "eval/small/baselines/main.run.jsonl.gz"


def test_each_entry_is_an_item_with_the_projects_fixtures(project, dist):
    project.gates(
        "gates:\n"
        "  recall: recall@2 >= 0.6\n"
        '  faq-only: {gate: "recall@2 >= 0.5", where: {type: faq}}\n'
        "  too.high:\n"
        "    gate: recall@2 >= 0.63\n"
    )
    result = project.run("-v", *dist)
    result.assert_outcomes(passed=2, failed=1)
    text = result.stdout.str()
    for name, outcome in (("recall", "PASSED"), ("faq-only", "PASSED"), ("too.high", "FAILED")):
        assert any(outcome in line and f"small.gates.yaml::{name}" in line for line in text.splitlines())
    assert project.retriever_calls == 1
    result.stdout.fnmatch_lines(
        ["FAILED *recall@2 >= 0.63*small.gates.yaml::too.high", "next: pytest -vv small.gates.yaml::too.high"]
    )


def test_a_failure_is_the_gates_text_without_a_traceback(project, dist):
    project.gates("gates:\n  first: recall@2 >= 0.6\n  second: recall@2 >= 0.9\n")
    result = project.run("--junitxml=out.xml", *dist)
    lines = result.stdout.str().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("___") and "second" in line)
    below = lines[at + 1 :] if not lines[at + 1].startswith("[gw") else lines[at + 2 :]
    assert below[0].startswith("recall@2 >= 0.9: FAILED. 0.625 is below 0.900")
    assert "gatefile.py" not in result.stdout.str()
    assert "evaluate(" not in result.stdout.str()
    result.stdout.re_match_lines(["FAILED small.gates.yaml::second - GateFailure: recall@2 >= 0.9: FAILED.*"])
    (failure,) = ElementTree.parse(project.path / "out.xml").iter("failure")
    assert failure.get("message").startswith("GateFailure: recall@2 >= 0.9: FAILED. 0.625 is below")
    assert "\n" not in failure.get("message")
    assert "q4" in failure.text


def test_a_failure_stands_on_its_line_of_the_file(project):
    project.gates("# a comment\ngates:\n  first: recall@2 >= 0.6\n  second: recall@2 >= 0.9\n")
    project.run("--tb=line").stdout.re_match_lines([".*small.gates.yaml:4: GateFailure: recall@2"])


def test_gates_are_selected_by_name_keyword_and_mark(project):
    project.ini("markers =", "    slow: takes long")
    project.gates(
        "gates:\n  one: recall@2 >= 0.6\n  two: {gate: recall@2 >= 0.5, marks: [slow]}\n  three: recall@2 >= 0.4\n"
    )
    project.run("small.gates.yaml::two").assert_outcomes(passed=1)
    project.run("-k", "one or three").assert_outcomes(passed=2, deselected=1)
    result = project.run("-m", "slow", "-v", "--strict-markers")
    result.assert_outcomes(passed=1, deselected=2)
    assert "::two" in result.stdout.str()
    assert project.run("small.gates.yaml::four").ret == 4


def test_a_mark_that_is_not_declared_is_an_error_where_marks_are_strict(project):
    project.gates("gates:\n  one: {gate: recall@2 >= 0.6, marks: [slwo]}\n")
    result = project.run("--strict-markers")
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines(["small.gates.yaml:2: marks: 'slwo' not found in `markers`.*"])


def test_a_list_of_datasets_makes_an_item_of_each(project):
    project.ini(datasets=("small = eval/small", "other = eval/other"))
    project.dataset("eval/other", qrels={"q1": {"a": 1}})
    project.gates(
        "dataset: [small, other]\ngates:\n  recall: recall@2 >= 0.7\n  hit: {gate: hit@2 >= 1, dataset: other}\n"
    )
    result = project.run("-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.re_match_lines_random([".*PASSED.*|.*::recall.other..*", ".*small.gates.yaml::hit.*"])
    result.stdout.re_match_lines(["FAILED small.gates.yaml::recall.small. - GateFailure.*"])


def test_paths_are_relative_to_the_file(project):
    project.dataset("sub/eval/near", qrels={"q1": {"a": 1}})
    project.run_file("sub/runs/best.trec", PERFECT)
    project.run_file("sub/runs/old.trec", HITS)
    project.gates(
        "dataset: eval/near\nrun: runs/best.trec\nruns: {old: runs/old.trec}\ngates:\n"
        "  path: recall@2 >= 1\n"
        "  name: {gate: recall@2 >= 0.6, run: old, dataset: small}\n"
        "  target: {gate: recall@2 >= against(old) + 0.3, dataset: ../eval/small}\n"
        "  path_target: {gate: recall@2 >= against(runs/old.trec) + 0.3, dataset: small}\n"
        "  too_much: {gate: recall@2 >= against(old) + 0.4, dataset: small}\n",
        "sub/near.gates.yml",
    )
    result = project.run()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.re_match_lines([r"recall@2 >= against\(old\) \+ 0.4: FAILED.*run best.*"])
    assert project.retriever_calls == 0


def test_a_name_of_the_ini_file_goes_before_a_path(project):
    project.ini("retrieval_runs =", "    best = runs/best.trec")
    project.run_file("runs/best.trec", PERFECT)
    project.run_file("sub/best", HITS)
    project.gates("run: best\ngates:\n  recall: recall@2 >= 1\n", "sub/a.gates.yaml")
    project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run: runs/non.trec", "there is no run 'runs/non.trec'.*no file beside this one"),
        ("run: bset", "there is no run 'bset'.*did you mean best"),
        ("runs: {best: gone.trec}\nrun: best", "there is no run 'best'.*no file beside this one.*gone.trec"),
        ("dataset: smal", "there is no dataset 'smal'.*did you mean small"),
        ("split: tset", "tset"),
        ("retriever: engine:serch", "retriever: engine:serch: engine has no 'serch'; did you mean search"),
        ("retriever: engin:search", "there is no module engin;.*pythonpath"),
        ("retriever: engine", "expected MODULE:NAME"),
        ("retriever: engine:Engine", "is a class; name an instance of it$"),
        ("retriever: engine:make", "takes no argument.*name what it returns"),
        ("retriever: broken:search", "broken cannot be imported: RuntimeError: no index"),
    ],
)
def test_what_the_file_names_and_is_not_there_is_an_error(project, line, expected):
    project.ini("pythonpath = .", "retrieval_runs =", "    best = runs/best.trec")
    (project.path / "engine.py").write_text(
        "def search(query):\n    return []\nclass Engine:\n    pass\ndef make():\n    return search\n"
    )
    (project.path / "broken.py").write_text("raise RuntimeError('no index')\n")
    project.gates(f"{line}\ngates:\n  recall: recall@2 >= 0\n")
    result = project.run("--junitxml=out.xml")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([f".*{expected}"])
    assert "Error: " in next(ElementTree.parse(project.path / "out.xml").iter("failure")).get("message")


def test_a_retriever_by_import_string_is_asked_once_a_session(project, dist):
    project.ini("pythonpath = src")
    (project.path / "src/myapp").mkdir(parents=True)
    conftest = project.path / "conftest.py"
    (project.path / "src/myapp/search.py").write_text(
        conftest.read_text().replace("@pytest.fixture(scope='session')\n", "")
        + "class Searcher:\n    def __call__(self, query):\n        return retriever()(query)\n"
        "searcher = Searcher()\n"
    )
    conftest.write_text("import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    raise OSError\n")
    gates = "".join(f"  g{number}: recall@2 >= 0.6\n" for number in range(4))
    project.gates(f"retriever: myapp.search:searcher\ngates:\n{gates}")
    project.gates(f"retriever: myapp.search:searcher\ngates:\n{gates}", "other.gates.yaml")
    project.run(*dist).assert_outcomes(passed=8)
    assert project.retriever_calls == 1


def test_two_folders_with_their_own_retriever_keep_apart(project, dist):
    (project.path / "conftest.py").unlink()
    for folder, hits, gate in (("one", HITS, "recall@2 <= 0.63"), ("two", PERFECT, "recall@2 >= 1")):
        project.conftest(hits, folder)
        project.gates(f"gates:\n  a: {gate}\n  b: {gate}\n  c: {gate}\n", f"{folder}/it.gates.yaml")
        project.test("def test_it(recall_at):\n    assert 0.6 <= recall_at(2) <= 1\n", f"{folder}/test_{folder}.py")
    project.run(*dist).assert_outcomes(passed=8)
    assert project.retriever_calls == 2


@pytest.mark.parametrize(
    ("fixture", "value", "header", "gate"),
    [
        ("retrieval_run", "'best.trec'", "", "recall@2 >= 1"),
        ("retrieval_run", "'best.trec'", "run: runs/hits.trec", "recall@2 <= 0.63"),
        ("retrieval_baseline", "pathlib.Path('best.trec').absolute()", "", "recall@2 <= baseline - 0.3"),
        ("retrieval_baseline", "None", "baseline: stored", "recall@2 >= baseline"),
        ("retrieval_dataset", "'eval/other'", "", "recall@2 >= 1"),
        ("retrieval_dataset", "None", "dataset: small", "recall@2 <= 0.63"),
    ],
)
def test_overriding_fixtures_hold_and_the_file_goes_before_them(project, fixture, value, header, gate):
    project.dataset("eval/other", qrels={"q1": {"a": 1}})
    project.run_file("best.trec", PERFECT)
    project.run_file("runs/hits.trec", HITS)
    conftest = (project.path / "conftest.py").read_text()
    (project.path / "conftest.py").write_text(
        f"{conftest}@pytest.fixture(scope='session')\ndef {fixture}():\n    return {value}\n"
    )
    project.gates(f"{header}\ngates:\n  it: {gate}\n")
    update = ("--retrieval-update=new",) if header.startswith("baseline") else ()
    project.run(*update).assert_outcomes(passed=1)
    if update:
        assert (project.path / "eval/small/baselines/stored.run.jsonl.gz").exists()


def test_a_split_of_the_file_goes_before_the_ini_value(project):
    (project.path / "eval/small/qrels/dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    project.gates("split: dev\ngates:\n  recall: recall@2 >= 1\n")
    project.gates("gates:\n  recall: recall@2 <= 0.63\n", "test.gates.yaml")
    project.run().assert_outcomes(passed=2)


def test_a_split_meets_a_dataset_made_in_code(project):
    conftest = (project.path / "conftest.py").read_text()
    (project.path / "conftest.py").write_text(
        f"{conftest}@pytest.fixture(scope='session')\ndef retrieval_dataset():\n    return 'eval/small'\n"
    )
    project.gates("split: dev\ngates:\n  recall: recall@2 >= 0\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["small.gates.yaml:3: split: dev meets.*retrieval_dataset.*"])


def test_the_command_lines_run_goes_first(project):
    project.run_file("best.trec", PERFECT)
    project.run_file("hits.trec", HITS)
    project.gates(
        "run: hits.trec\ngates:\n  header: recall@2 >= 1\n  entry: {gate: recall@2 >= 1, run: missing.trec}\n"
    )
    project.gates("retriever: nowhere:search\ngates:\n  imported: recall@2 >= 1\n", "b.gates.yaml")
    project.gates("gates:\n  plain: recall@2 >= 1\n", "c.gates.yaml")
    project.run("--retrieval-run=best.trec").assert_outcomes(passed=4)
    assert project.retriever_calls == 0
    result = project.run("--retrieval-run=othr=best.trec", "small.gates.yaml", "-k", "header")
    result.stdout.re_match_lines(["ERROR: --retrieval-run=othr=.*nor a test has the dataset; known: small"])
    project.gates("gates:\n  plain: recall@2 >= 0.6\n", "c.gates.yaml")
    result = project.run("--retrieval-run=othr=best.trec", "c.gates.yaml")
    result.assert_outcomes(passed=1)
    assert result.ret == 4


def test_baselines_and_runs_are_written_by_the_controller(project, dist):
    project.gates("gates:\n  a: recall@2 >= baseline\n  b: ndcg@2 >= baseline - 0.01\n")
    result = project.run(*dist)
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines(["next: pytest --retrieval-update=new small.gates.yaml::[ab] small.gates.yaml::[ab]"])
    result = project.run("--retrieval-update=new", "--retrieval-save-runs=saved", *dist)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["UPDATED*recall@2*", "baseline written: *main.run.jsonl.gz"])
    assert len(list((project.path / "saved").iterdir())) == 1
    project.conftest(WORSE)
    result = project.run(*dist)
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines(["q1 .*1.000 → 0.000.*"])


def test_a_lost_worker_writes_nothing_and_is_not_green(project):
    project.gates("gates:\n  a: recall@2 >= baseline\n")
    project.test("import os\ndef test_dies():\n    os._exit(0)\n", "test_dies.py")
    result = project.run("--retrieval-update=all", "-n2")
    assert result.ret != 0
    assert not (project.path / PLACE).exists()


def test_an_expected_failure_is_strict_and_only_a_measured_one(project, dist):
    project.gates(
        "gates:\n"
        "  fails: {gate: recall@2 >= 0.9, xfail: known since May}\n"
        "  holds: {gate: recall@2 >= 0.6, xfail: known since May}\n"
        "  errs: {gate: recall@200 >= 0.6, xfail: known since May}\n"
    )
    result = project.run("-rx", *dist)
    result.assert_outcomes(xfailed=1, failed=2)
    result.stdout.re_match_lines_random(
        [".*known since May.*", r".*\[XPASS\(strict\)\] known since May.*", ".*recall@200 looks at 200 ranks.*"]
    )


def test_a_users_exception_shows_the_users_frames_alone(project):
    text = (project.path / "conftest.py").read_text()
    (project.path / "conftest.py").write_text(text.replace("    return lambda", "    open_index()\n    return lambda"))
    with (project.path / "conftest.py").open("a") as file:
        file.write("def open_index():\n    raise OSError('no index here')\n")
    project.gates("gates:\n  recall: recall@2 >= 0.6\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "open_index()" in text
    assert "no index here" in text
    assert "site-packages" not in text
    assert "pytest_retrieval_eval" not in text.partition("FAILURES")[2]
    assert "_pytest" in project.run("--full-trace").stdout.str()


def test_other_plugins_see_an_ordinary_test(project):
    with (project.path / "conftest.py").open("a") as file:
        file.write(
            "@pytest.fixture(autouse=True)\n"
            "def seen(request, tmp_path):\n"
            "    assert request.node.name == request.function.__name__ == 'recall'\n"
            "    assert request.module.__file__.endswith('small.gates.yaml') and request.cls is None\n"
            "    assert request.node.location[:2] == ('small.gates.yaml', 1)\n"
            "    assert request.node.get_closest_marker('retrieval').kwargs == {'where': {'type': 'faq'}}\n"
            "    yield\n    (request.config.rootpath / 'torn').touch()\n"
        )
    project.gates("gates:\n  recall: {gate: recall@2 >= 0.5, where: {type: faq}}\n")
    project.run().assert_outcomes(passed=1)
    assert (project.path / "torn").exists()


def test_a_hook_that_swallows_a_gate_is_noticed(project):
    with (project.path / "conftest.py").open("a") as file:
        file.write("def pytest_pycollect_makeitem(collector, name, obj):\n    return []\n")
    project.gates("gates:\n  recall: recall@2 >= 0.5\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines(["small.gates.yaml:2: pytest made no test of the gate recall"])


def test_defaults_hold_where_a_gate_says_nothing_else(project):
    project.gates(
        "defaults: {where: {type: faq}, judged: 0.01}\n"
        "gates:\n  faq: recall@2 <= 0.5\n"
        '  policy: {gate: "recall@2 >= 0.7", where: {type: [policy]}}\n'
    )
    result = project.run()
    result.assert_outcomes(passed=2)


def test_slices_and_lists_of_gates_are_decided_as_in_python(project):
    project.gates(
        "gates:\n"
        "  family: [recall@2 >= 0.6, ndcg@2 >= 0.9]\n"
        "  measures:\n    gate:\n      - recall@2 >= 0.6\n      - hit@2 >= 0.5\n    where: {type: policy}\n"
        "  slices: {gate: recall@2 >= 0.6, by: type, min_n: 2}\n"
    )
    result = project.run()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.re_match_lines_random(["FAILED .*ndcg@2 >= 0.9, .*::family", "FAILED .*type=faq, .*::slices"])


def test_texts_stay_texts_and_values_are_jsons(project):
    tags = {"q1": {"no": "on", "year": 2024}, "q2": {"no": True}, "q3": {"no": "2024-01-01"}, "q4": {"no": None}}
    project.dataset(tags=tags)
    project.ini(datasets=("no = eval/small",))
    project.gates(
        "dataset: no\ngates:\n"
        "  on: {gate: recall@2 >= 1, where: {no: on}}\n"
        "  yes: {gate: recall@2 >= 1, where: {no: true}}\n"
        "  1: {gate: recall@2 >= 0.5, where: {no: 2024-01-01}}\n"
        "  null: {gate: recall@2 <= 0.0, where: {no: null}}\n"
        "  quoted: {gate: recall@2 >= 1, where: {year: '2024'}}\n"
        "  number: {gate: recall@2 >= 1, where: {year: 2024}}\n"
    )
    result = project.run("-v")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.re_match_lines(["FAILED small.gates.yaml::quoted - DataError.*where year.*"])


def test_the_ini_value_names_the_files(project):
    project.ini("retrieval_gate_files =", "    quality-*.yaml", "    checks/*.yml")
    project.gates("gates:\n  a: recall@2 >= 0.6\n", "quality-1.yaml")
    project.gates("gates:\n  b: recall@2 >= 0.6\n", "sub/checks/it.yml")
    project.gates("no gates: at all\n", "old.gates.yaml")
    project.gates("- something else\n", "other.yaml")
    project.run().assert_outcomes(passed=2)
    project.ini("retrieval_gate_files = *.py")
    result = project.run()
    assert result.ret == 4
    result.stderr.re_match_lines([".*retrieval_gate_files: '\\*.py' names no YAML files.*"])


G = "gates:\n  a: recall@2 >= 0.6\n"
REFUSED = {
    "empty": ("", 1, "no gates: write gates:"),
    "only a comment": ("# nothing\n", 1, "no gates"),
    "null": ("~\n", 1, "holds keys with values"),
    "no gates key": ("dataset: small\n", 1, "no gates"),
    "gates is empty": ("dataset: small\ngates: {}\n", 2, "gates: has no gate"),
    "gates is null": ("gates:\n", 1, "gates: holds keys with values .*, not nothing"),
    "gates is a list": ("gates:\n  - recall@5 >= 0.5\n", 2, "gates: holds keys with values .*, not a list"),
    "a list": ("- recall@5 >= 0.5\n", 1, "not a list"),
    "a text": ("recall@5 >= 0.5\n", 1, "holds keys with values"),
    "two documents": (G + "---\n" + G, 3, "no YAML: expected a single document"),
    "no comparison": ("gates:\n  a: recall@5\n", 2, "gate 'recall@5': there is no comparison"),
    "empty gate": ("gates:\n  a:\n", 2, "an empty gate measures nothing"),
    "number": ("gates:\n  a: 5\n", 2, "there is no comparison"),
    "equality": ("gates:\n  a: recall@5 == 0.5\n", 2, "equality of two floats is chance"),
    "measure": ("gates:\n  a: recal@5 >= 0.5\n", 2, "did you mean recall"),
    "no gates in a list": ("gates:\n  a: []\n", 2, "an empty list of gates measures nothing"),
    "gate twice in a list": ("gates:\n  a: [recall@5 >= 0.5, recall@5 >= 0.5]\n", 2, "stands twice in one list"),
    "gate is a mapping": ("gates:\n  a:\n    gate: {recall@5: 0.5}\n", 3, "a gate is a text"),
    "mapping in a list": ("gates:\n  a:\n    - {gate: recall@5 >= 0.5}\n", 3, "each gate of a list is a text"),
    "comma in a list": ("gates:\n  a: [rbp(p=0.8, rel=2)@10 >= 0.5]\n", 2, "comma inside .* splits .*: quote the gate"),
    "no gate key": ("gates:\n  a: {rule: mean}\n", 2, "has no key gate:"),
    "empty entry": ("gates:\n  a: {}\n", 2, "has no key gate:"),
    "name": ("gates:\n  a b: recall@5 >= 0.5\n", 2, "the name of a gate is made of letters.*'a b'"),
    "empty name": ("gates:\n  '': recall@5 >= 0.5\n", 2, "the name of a gate"),
    "dunder": ("gates:\n  __doc__: recall@5 >= 0.5\n", 2, "the name of a gate"),
    "hook": ("gates:\n  pytest_generate_tests: recall@5 >= 0.5\n", 2, "the name of a gate"),
    "colons": ("gates:\n  a::b: recall@5 >= 0.5\n", 2, "the name of a gate"),
    "twice": (G + "  b: recall@2 >= 0.5\n  a: recall@2 >= 0.7\n", 4, "'a' stands twice, first on line 2"),
    "header twice": ("run: x\nrun: y\n" + G, 2, "'run' stands twice"),
    "option twice": ("gates:\n  a:\n    gate: recall@5 >= 0.5\n    gate: recall@5 >= 0.1\n", 4, "stands twice"),
    "tag twice": ("gates:\n  a: {gate: recall@5 >= 0.5, where: {x: 1, x: 2}}\n", 2, "stands twice"),
    "unknown header": ("datset: small\n" + G, 1, "no key 'datset'; did you mean dataset"),
    "option in header": ("rule: mean\n" + G, 1, "under defaults:"),
    "gates at the top": ("recall: recall@5 >= 0.5\n", 1, "gates stand below gates:"),
    "unknown default": ("defaults: {rul: mean}\n" + G, 1, "no default 'rul'; did you mean rule"),
    "header in defaults": ("defaults:\n  run: x\n" + G, 2, "run: stands at the top of the file"),
    "defaults is a list": ("defaults: [rule]\n" + G, 1, "defaults: holds keys with values"),
    "unknown option": ("gates:\n  a:\n    gate: recall@5 >= 0.5\n    rul: mean\n", 4, "did you mean rule"),
    "rule": ("gates:\n  a: {gate: recall@5 >= 0.5, rule: men}\n", 2, "is not a rule"),
    "alpha": ("gates:\n  a:\n    gate: recall@5 >= 0.5\n    alpha: 5\n", 4, "alpha= lies between"),
    "alpha text": ("gates:\n  a:\n    gate: recall@5 >= 0.5\n    alpha: '0.01'\n", 4, "alpha= must be a real number"),
    "default alpha": ("defaults:\n  alpha: yes\n" + G, 2, "alpha= must be a real number"),
    "where text": ("gates:\n  a: {gate: recall@5 >= 0.5, where: faq}\n", 2, "where= takes tags"),
    "where null": ("gates:\n  a:\n    gate: recall@5 >= 0.5\n    where:\n", 4, "where: has no value"),
    "where empty": ("gates:\n  a: {gate: recall@5 >= 0.5, where: {}}\n", 2, "selects nothing in particular"),
    "dataset null": ("dataset:\n" + G, 1, "dataset: is a text, and nothing stands here"),
    "dataset mapping": ("dataset: {a: b}\n" + G, 1, "dataset: is a text, not a mapping"),
    "no datasets": ("dataset: []\n" + G, 1, "an empty list measures nothing"),
    "dataset twice": ("dataset: [a, a]\n" + G, 1, "a dataset stands twice"),
    "run list": ("run: [a, b]\n" + G, 1, "run: is a text, not a list"),
    "runs list": ("runs: [a, b]\n" + G, 1, "runs: holds keys with values"),
    "runs empty": ("runs: {}\n" + G, 1, "runs: names no run"),
    "runs value": ("runs:\n  a: [b]\n" + G, 2, "the run 'a' is a text, not a list"),
    "baseline list": ("baseline: [a]\n" + G, 1, "baseline: is a text, not a list"),
    "split list": ("split: [a]\n" + G, 1, "split: is a text"),
    "two sources": ("run: a\nretriever: b:c\n" + G, 2, "two sources of one run"),
    "skip": ("gates:\n  a:\n    gate: recall@5 >= 0.5\n    skip: flaky\n", 4, "measured nothing: delete it.*xfail"),
    "skip mark": ("gates:\n  a: {gate: recall@5 >= 0.5, marks: [skip]}\n", 2, "measured nothing"),
    "xfail mark": ("gates:\n  a: {gate: recall@5 >= 0.5, marks: [xfail]}\n", 2, "write xfail: REASON"),
    "marks text": ("gates:\n  a: {gate: recall@5 >= 0.5, marks: slow}\n", 2, "takes a list of names"),
    "marks number": ("gates:\n  a: {gate: recall@5 >= 0.5, marks: [5]}\n", 2, "'5' is no name of a mark"),
    "xfail empty": ("gates:\n  a: {gate: recall@5 >= 0.5, xfail: }\n", 2, "xfail: takes the reason"),
    "comma": ("gates:\n  a: {gate: rbp(p=0.8, rel=2)@10 >= 0.5}\n", 2, 'quote the gate, "rbp.p=0.8, rel=2.@10 >= 0.5"'),
    "comma in gates": ("gates: {a: rbp(p=0.8, rel=2)@10 >= 0.5}\n", 1, 'quote the gate, "rbp.p=0.8, rel'),
    "brackets": ('gates:\n  a: {gate: recall@5 >= baseline["x"]}\n', 2, "no YAML.*quote the gate"),
    "sign first": ("gates:\n  a: @5 >= 0.5\n", 2, "no YAML.*quote the gate"),
    "tab": ("gates:\n\ta: recall@5 >= 0.5\n", 2, "no YAML.*indent with spaces"),
    "unclosed": ("gates: {a: recall@5 >= 0.5\n", 2, "no YAML"),
    "merge key": ("gates:\n  a: {gate: recall@5 >= 0.5, <<: {rule: mean}}\n", 2, "merge keys .* defaults:"),
    "list as key": ("gates:\n  ? [a, b]\n  : recall@5 >= 0.5\n", 2, "a key is a name, not a list"),
    "mapping as key": ("? {a: b}\n: c\n", 1, "a key is a name, not a mapping"),
    "python tag": ("gates:\n  a: !!python/object/apply:os.system ['true']\n", 2, "tags such as"),
    "tag": ("dataset: !name small\n" + G, 1, "tags such as !name are not read"),
    "int tag": ("gates:\n  a: {gate: recall@5 >= 0.5, alpha: !!int '5'}\n", 2, "tags such as .*int are not read"),
    "unknown alias": ("gates:\n  a: *b\n", 2, "no YAML.*undefined alias"),
    "value in itself": ("gates:\n  a: {gate: recall@5 >= 0.5, where: &w {x: *w}}\n", 2, "contains itself|no YAML"),
    "deep value": ("gates:\n  a: {gate: recall@5 >= 0.5, where: {x: [[[[[1]]]]]}}\n", 2, "nested too deeply"),
    "deep file": (b"[" * 20000 + b"]" * 20000, 1, "nested too deeply"),
    "deep mapping": (b"{a: " * 5000 + b"1" + b"}" * 5000, 1, "nested too deeply"),
    "latin-1": (b"# caf\xe9\n" + G.encode(), 1, "not UTF-8: byte 0xe9"),
    "utf-16": (G.encode("utf-16"), 1, "not UTF-8"),
    "latin-1 below": (G.encode() + b"  b: recall@2 >= 0.5 # \xff\n", 3, "not UTF-8: byte 0xff"),
    "control": (b"gates:\n  a: recall@2 >= 0.5\n  b: \x00\n", 3, "the character U.0000"),
}


@pytest.mark.parametrize(("text", "line", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_cannot_be_meant_is_one_sentence_with_its_line(tmp_path, text, line, expected):
    from pytest_retrieval_eval.errors import SettingsError
    from pytest_retrieval_eval.gates.entries import read_gate_file

    path = tmp_path / "x.gates.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsError, match=expected) as raised:
        read_gate_file(path)
    assert str(raised.value).startswith(f"x.gates.yaml:{line}: ")
    assert "\n" not in str(raised.value)


def test_a_bad_file_ends_the_session_before_any_gate(project, dist):
    project.gates("gates:\n  a: recall@2 >= 0.6\n  b: {gate: recall@2 >= 0.6, rul: mean}\n", "sub/bad.gates.yaml")
    project.gates("gates:\n  a: recall@2 >= 0.6\n", "good.gates.yaml")
    result = project.run(*dist)
    assert result.parseoutcomes()["errors"] == 1
    assert result.ret in (1, 2)
    result.stdout.fnmatch_lines(["sub/bad.gates.yaml:3: a gate has no key 'rul'; did you mean rule*"])
    assert "Traceback" not in result.stdout.str()


KEPT = {
    "byte order mark": b"\xef\xbb\xbfgates:\n  a: recall@2 >= 0.6\n",
    "crlf": b"defaults:\r\n  where: {type: faq}\r\ngates:\r\n  a: recall@2 >= 0.5\r\n",
    "alias": b"gates:\n  a: {gate: recall@2 >= 0.5, where: &w {type: faq}}\n  b: {gate: recall@2 >= 0.5, where: *w}\n",
    "folded": b"gates:\n  a: >\n    recall@2 >= 0.6\n",
    "quoted comma": b'gates: {a: {gate: "recall(rel=1)@2 >= 0.6", where: {type: [faq, policy]}}}\n',
    "directive": b"%YAML 1.2\n---\ngates:\n  a: recall@2 >= 0.6\n...\n",
}


@pytest.mark.parametrize("data", KEPT.values(), ids=KEPT)
def test_unusual_files_are_read_as_they_mean(project, data):
    project.gates(data)
    result = project.run()
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == data.count(b"recall")


def test_many_aliases_are_read_in_no_time(tmp_path):
    from pytest_retrieval_eval.errors import SettingsError
    from pytest_retrieval_eval.gates.entries import read_gate_file

    rows = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    rows += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 12)]
    path = tmp_path / "x.gates.yaml"
    path.write_text("gates:\n  a:\n    gate: recall@2 >= 0.5\n    where: {" + ", ".join(rows) + "}\n")
    with pytest.raises(SettingsError, match="nested too deeply"):
        read_gate_file(path)


SCHEMA = ROOT / "pytest_retrieval_eval" / "gates.schema.json"


def test_the_shipped_schema_is_that_of_the_declarations():
    from pytest_retrieval_eval.gates.schema import schema

    command = "python -m pytest_retrieval_eval.gates.schema > pytest_retrieval_eval/gates.schema.json"
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(), f"stale: {command}"


def test_the_schema_tells_every_key_and_the_example_fits_it():
    validator = pytest.importorskip("jsonschema").Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    read = yaml.safe_load((ROOT / "examples/handbook/handbook.gates.yaml").read_text(encoding="utf-8"))
    assert list(validator.iter_errors(read)) == []
    for wrong in (
        {},
        {"gates": {}},
        {"gates": {"a b": "recall@5 >= 0.5"}},
        {"gates": {"a": {"rule": "mean"}}},
        {"gates": {"a": {"gate": "recall@5 >= 0.5", "rule": "men"}}},
        {"gates": {"a": {"gate": "recall@5 >= 0.5", "skip": "x"}}},
        {"gates": {"a": "recall@5 >= 0.5"}, "datset": "small"},
        {"gates": {"a": "recall@5 >= 0.5"}, "defaults": {"run": "x"}},
    ):
        assert list(validator.iter_errors(wrong)), wrong
    described = json.loads(SCHEMA.read_text(encoding="utf-8"))["properties"]
    entry = described["gates"]["additionalProperties"]["anyOf"][-1]["properties"]
    assert {name for name, value in {**described, **entry}.items() if "description" not in value} == set()


def test_the_files_of_the_documentation_are_collected_and_hold(project, monkeypatch):
    monkeypatch.delitem(sys.modules, "search", raising=False)  # that of an example, where one ran in this process
    pages = (ROOT / "docs/reference/gate-files.md", ROOT / "README.md")
    blocks = [
        block
        for page in pages
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        if "\ngates:" in f"\n{block}"
    ]
    assert len(blocks) >= 6
    tags = {"q1": {"type": "acronym"}, "q2": {"type": "keyword"}, "q3": {"type": "policy"}, "q4": {"critical": True}}
    project.ini("pythonpath = .", "markers =", "    slow: takes long", datasets=("handbook = eval/small",))
    project.dataset(tags=tags)
    project.dataset("eval/manuals", tags=tags)
    (project.path / "search.py").write_text("from conftest import HITS\nhandbook_search = HITS.get\n")
    for name, hits in (("candidate", PERFECT), ("bm25", {**HITS, "q1": ["x"]})):
        Run.of(hits).save(project.path / f"runs/{name}.run.jsonl.gz")
    for number, block in enumerate(blocks):
        project.conftest(HITS if "xfail" in block else PERFECT)
        project.gates(block, f"page{number}.gates.yaml")
        result = project.run("--retrieval-update=new", f"page{number}.gates.yaml")
        assert result.ret == 0, block
        gates = len(re.findall(r"\)?@\d+ >=", block)) + ("manuals" in block)
        assert sum(result.parseoutcomes().values()) == gates
