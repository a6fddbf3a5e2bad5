"""Which dataset, run and fixtures a test's gates mean."""

from __future__ import annotations

import os

import pytest
from support import HITS, QRELS, TEXTS

PERFECT = {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["d"]}
SHORT_NAMES = (
    *("dataset", "queries", "qrels", "run", "baseline", "against", "metric", "gate"),
    *("recall_at", "precision_at", "hit_at", "f1_at", "ndcg_at", "mrr_at", "map_at"),
    *("spans", "span_recall_at", "span_coverage_at"),
)


def test_a_marker_names_the_dataset_and_the_run(project, dist):
    project.ini("retrieval_runs =", "    best = runs/best.trec", datasets=("small = eval/small", "other = eval/other"))
    project.dataset("eval/other", qrels={"q1": {"z": 1}})
    project.run_file("runs/best.trec", PERFECT)
    project.test(
        "import pytest\n"
        "def test_plain(recall_at):\n    assert 0.6 <= recall_at(2) <= 0.63\n"
        "@pytest.mark.retrieval(run='best')\n"
        "def test_best(recall_at):\n    assert recall_at(2) >= 1.0\n"
        "@pytest.mark.retrieval(run='runs/best.trec', where={'type': 'faq'})\n"
        "def test_path(recall_at):\n    assert (recall_at(2) >= 1.0).n == 2\n"
        "@pytest.mark.retrieval(dataset='other')\n"
        "def test_other(recall_at, dataset, qrels, run):\n"
        "    assert dataset.name == 'other' and qrels.query_ids == ('q1',) and len(run.query_ids) == 4\n"
        "    with pytest.raises(Exception, match='no judged document|recall'):\n"
        "        assert recall_at(2) >= 0.5\n"
        "    assert recall_at(2) <= 0.0\n"
        "def test_arguments_win(recall_at):\n    assert recall_at(2, run='best') >= 1.0\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(passed=5)


@pytest.mark.parametrize("first", ["a", "eval/small"])
def test_a_dataset_has_the_name_it_is_asked_for_by_whichever_comes_first(project, first):
    project.ini(datasets=("a = eval/small", "b = eval/small"))
    project.run_file("best.trec", PERFECT)
    project.test(
        "import pytest\n"
        f"@pytest.mark.retrieval(dataset={first!r})\n"
        "def test_a(recall_at):\n    assert (recall_at(2) <= 0.7).dataset == 'a'\n"
        "@pytest.mark.retrieval(dataset='b')\n"
        "def test_b(recall_at):\n    assert (recall_at(2) >= 1.0).dataset == 'b'\n"
    )
    result = project.run("--retrieval-run", "b=best.trec")
    result.assert_outcomes(passed=2)
    assert result.ret == 0


def test_a_list_of_datasets_makes_one_case_each(project, dist):
    project.ini(datasets=("small = eval/small", "other = eval/other"))
    project.dataset("eval/other", qrels={"q1": {"a": 1}})
    project.test(
        "import pytest\n"
        "@pytest.mark.retrieval(dataset=['small', 'other'])\n"
        "def test_each(recall_at, dataset):\n"
        "    assert recall_at(2) >= (1.0 if dataset.name == 'other' else 0.6)\n"
    )
    result = project.run("-v", *dist)
    result.assert_outcomes(passed=2)
    assert "test_each[small]" in result.stdout.str()
    assert "test_each[other]" in result.stdout.str()


def test_the_hidden_parameter_does_not_show(project):
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n")
    project.run("-v").stdout.fnmatch_lines(["test_it.py::test_it PASSED*"])


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("datset='small'", "did you mean dataset"),
        ("'small'", "keywords only"),
        ("dataset=3", "expected a name"),
        ("dataset=[]", "expected a name"),
        ("run=None", "expected a name"),
    ],
)
def test_a_marker_that_cannot_be_used_is_an_error(project, dist, marker, expected):
    project.test(f"import pytest\n@pytest.mark.retrieval({marker})\ndef test_it(recall_at):\n    recall_at(2) >= 0\n")
    result = project.run(*dist)
    assert result.ret != 0
    assert expected in result.stdout.str() + result.stderr.str()
    result.assert_outcomes(errors=1)


def test_a_keyword_is_that_of_the_closest_marker_that_has_it(project, dist):
    project.ini(datasets=("small = eval/small", "other = eval/other"))
    project.dataset("eval/other", qrels={"q1": {"a": 1}, "q2": {"c": 1}})
    project.test(
        "import pytest\n"
        "pytestmark = pytest.mark.retrieval(dataset='other', where={'type': 'policy'})\n"
        "def test_module(recall_at):\n    assert (recall_at(2) >= 1.0).n == 1\n"
        "@pytest.mark.retrieval(where={'type': 'faq'})\n"
        "class TestIt:\n"
        "    def test_class(self, recall_at):\n"
        "        held = recall_at(2) >= 1.0\n"
        "        assert (held.dataset, held.where) == ('other', 'type=faq')\n"
        "    @pytest.mark.retrieval(dataset='small')\n"
        "    def test_function(self, recall_at):\n"
        "        held = recall_at(2) >= 0.5\n"
        "        assert (held.dataset, held.where, held.n) == ('small', 'type=faq', 2)\n"
    )
    project.run(*dist).assert_outcomes(passed=3)


def test_the_fixture_of_the_context_is_no_project_s(project, dist):
    project.test(
        "import pytest\n@pytest.fixture\ndef retrieval_context():\n    return 7\n"
        "def test_it(recall_at):\n    recall_at(2) >= 0.1\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(errors=1)
    assert "retrieval_context tells gates which marker is whose, and is not to be overridden" in result.stdout.str()
    project.test(
        "import pytest\n@pytest.fixture\ndef retrieval_context():\n    return 7\n"
        "def test_it(retrieval_context):\n    assert retrieval_context == 7\n"
    )
    project.run().assert_outcomes(passed=1)


CONTRADICTIONS = {
    "function": "@mark(baseline='a')\n@mark(baseline='b')\ndef test_it(recall_at):\n    recall_at(2) >= 0.1\n",
    "class": (
        "@mark(baseline='a')\nclass Base:\n    pass\n@mark(baseline='b')\nclass TestIt(Base):\n"
        "    def test_it(self, recall_at):\n        recall_at(2) >= 0.1\n"
    ),
    "module": "pytestmark = [mark(rule='mean'), mark(rule='each')]\ndef test_it(recall_at):\n    recall_at(2) >= 0.1\n",
}


@pytest.mark.parametrize("lines", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_markers_that_contradict_each_other_are_an_error(project, lines):
    project.test(f"import pytest\nmark = pytest.mark.retrieval\n{lines}")
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "stands twice, with" in result.stdout.str()


LATE = {
    "a parameter's marks": (
        "@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.retrieval(dataset='other'))])\n"
        "def test_it(recall_at, x):\n    assert recall_at(2) >= 0.1\n"
    ),
    "add_marker in a fixture": (
        "@pytest.fixture(autouse=True)\ndef late(request):\n"
        "    request.node.add_marker(pytest.mark.retrieval(run='best'))\n"
        "def test_it(recall_at):\n    assert recall_at(2) >= 0.1\n"
        "def test_none():\n    pass\n"
    ),
    "add_marker in the test": (
        "def test_it(recall_at, request):\n    request.node.add_marker(pytest.mark.retrieval(baseline='b'))\n"
        "    assert recall_at(2) >= 0.1\n"
        "def test_none():\n    pass\n"
    ),
}


@pytest.mark.parametrize("lines", LATE.values(), ids=LATE)
def test_a_marker_that_comes_too_late_is_an_error(project, dist, lines):
    project.test(f"import pytest\n{lines}")
    result = project.run(*dist)
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes.get("failed", 0) + outcomes.get("errors", 0)) == (1, 1)
    assert "was settled already" in result.stdout.str()


def test_two_folders_with_their_own_retriever_keep_apart(project, dist):
    (project.path / "conftest.py").unlink()
    project.conftest(HITS, "one")
    project.conftest(PERFECT, "two")
    for folder, bound in (("one", "0.6 <= recall_at(2) <= 0.63"), ("two", "recall_at(2) >= 1.0")):
        for number in range(3):
            project.test(f"def test_it(recall_at):\n    assert {bound}\n", f"{folder}/test_{folder}{number}.py")
    result = project.run(*dist)
    result.assert_outcomes(passed=6)
    assert project.retriever_calls == 2


@pytest.mark.parametrize("name", ["retriever", "part", "retrieval_run"])
def test_a_fixture_of_another_folder_outside_the_root_is_refused(project, dist, name):
    (project.path / "conftest.py").unlink()
    project.ini(datasets=("small = ../eval/small",))
    (project.path / "root").mkdir()
    (project.path / "pytest.ini").rename(project.path / "root" / "pytest.ini")
    project.run_file("runs/best.trec", PERFECT)
    for folder in ("one", "two"):
        value = repr(str(project.path / "runs/best.trec")) if name == "retrieval_run" else "lambda query: ['a', 'b']"
        more = "@pytest.fixture(scope='session')\ndef retriever(part):\n    return part\n" if name == "part" else ""
        project.test(
            f"import pytest\n@pytest.fixture(scope='session')\ndef {name}():\n    return {value}\n{more}",
            f"{folder}/conftest.py",
        )
        project.test("def test_it(recall_at):\n    recall_at(2) >= 0.1\n", f"{folder}/test_{folder}.py")
    folders = ("-c", "root/pytest.ini", "--rootdir", "root", "--import-mode=importlib", "one", "two")
    result = project.run(*folders, *dist)
    result.assert_outcomes(passed=1, failed=1)
    assert "which is not above this test" in result.stdout.str()
    project.run(*folders[:-1]).assert_outcomes(passed=1)


def test_two_folders_with_their_own_dataset_keep_apart(project, dist):
    for folder, grade in (("one", 1), ("two", 0)):
        project.test(
            "import pytest\nfrom pytest_retrieval_eval import Dataset\n"
            "@pytest.fixture(scope='session')\n"
            "def retrieval_dataset():\n"
            f"    return Dataset.of(queries={TEXTS!r}, qrels={{'q1': {{'a': {grade}, 'b': 1}}}}, name='{folder}')\n",
            f"{folder}/conftest.py",
        )
        project.test(
            f"def test_it(precision_at, dataset):\n    assert dataset.name == '{folder}'\n"
            f"    assert {(1 + grade) / 2} <= precision_at(2) <= {(1 + grade) / 2}\n",
            f"{folder}/test_{folder}.py",
        )
    project.run(*dist).assert_outcomes(passed=2)


def test_a_retriever_of_different_parts_in_one_process_is_refused(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        "import pytest\n"
        f"ONE = { {TEXTS[q]: d for q, d in HITS.items()}!r}\nTWO = { {TEXTS[q]: d for q, d in PERFECT.items()}!r}\n"
        "@pytest.fixture(scope='session')\ndef index():\n    return ONE\n"
        "@pytest.fixture(scope='session')\ndef retriever(index):\n    return index.get\n"
    )
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n", "one/test_one.py")
    project.test(
        "import pytest, conftest\n@pytest.fixture(scope='session')\ndef index():\n    return conftest.TWO\n",
        "two/conftest.py",
    )
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n", "two/test_two.py")
    result = project.run("--import-mode=importlib", "-p", "no:randomly")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([".*define retriever beside the fixture that differs"])


def test_the_retriever_runs_once_a_session(project, dist):
    for number in range(6):
        project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.6\n", f"test_{number}.py")
    project.run(*dist).assert_outcomes(passed=6)
    assert project.retriever_calls == 1


def test_once_gives_a_users_own_fixture_the_same(project, dist):
    (project.path / "conftest.py").write_text(
        "import os, pathlib, pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def embeddings(retrieval_once):\n"
        "    def make():\n"
        f"        folder = pathlib.Path({str(project.path)!r}) / 'calls'\n"
        "        folder.mkdir(exist_ok=True)\n"
        "        (folder / str(os.getpid())).touch()\n"
        "        return {'a': [1.5, 2], 'b': None}\n"
        "    return retrieval_once('embeddings', make)\n"
    )
    for number in range(4):
        project.test("def test_it(embeddings):\n    assert embeddings['a'] == [1.5, 2]\n", f"test_{number}.py")
    project.run(*dist).assert_outcomes(passed=4)
    assert project.retriever_calls == 1


def test_a_value_that_cannot_travel_is_refused_under_workers(project):
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\n"
        "def made(retrieval_once):\n    return retrieval_once('key', lambda: {1: (2, 3)})\n"
    )
    project.test("def test_it(made):\n    pass\n")
    result = project.run("-n2")
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines([".*JSON has no tuples"])


FOREIGN = {
    "function": "@pytest.fixture\ndef {name}():\n    {mark}\n    return 1\n",
    "session": "@pytest.fixture(scope='session')\ndef {name}():\n    {mark}\n    return 1\n",
    "parametrised": "@pytest.fixture(params=[1, 2], scope='module')\ndef {name}(request):\n    {mark}\n    return 1\n",
    "skipping": "@pytest.fixture(scope='session')\ndef {name}():\n    {mark}\n    pytest.skip('foreign')\n",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_fixtures_under_every_short_name_are_never_touched(project, dist, kind):
    touched = project.path / "touched"
    mark = f"open({str(touched)!r}, 'a').write('x')"
    text = (project.path / "conftest.py").read_text()
    for name in SHORT_NAMES:
        text += FOREIGN[kind].format(name=name, mark=mark)
    (project.path / "conftest.py").write_text(text)
    project.run_file("b.trec", HITS)
    project.test(
        "from pytest_retrieval_eval import baseline, against\n"
        "import pytest\n"
        "def test_gate(assert_recall_at, assert_metric):\n"
        "    assert assert_recall_at(2) >= 0.6\n"
        "    assert assert_metric('ndcg@2') >= against('b.trec')\n"
        "@pytest.mark.retrieval(where={'type': 'faq'})\n"
        "def test_marked(assert_metric, retrieval_dataset, retrieval_run):\n"
        "    assert assert_metric('recall@2') >= 0.5\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(passed=2)
    assert not touched.exists()


def test_a_foreign_fixture_works_as_its_project_wrote_it(project):
    text = (project.path / "conftest.py").read_text()
    text += "@pytest.fixture\ndef gate():\n    return 'open'\n"
    text += "@pytest.fixture(params=[1, 2])\ndef run(request):\n    return 3\n"
    (project.path / "conftest.py").write_text(text)
    project.test("def test_it(gate, run):\n    assert gate == 'open' and run == 3\n")
    result = project.run()
    result.assert_outcomes(passed=2)
    assert "retrieval gates" not in result.stdout.str()


OVERRIDES = {
    "run path": ("retrieval_run", "return 'best.trec'", "recall_at(2) >= 1.0"),
    "run object": (
        "retrieval_run",
        f"from pytest_retrieval_eval import Run; return Run.of({PERFECT!r})",
        "recall_at(2) >= 1.0",
    ),
    "baseline path": (
        "retrieval_baseline",
        "import pathlib; return pathlib.Path('best.trec').absolute()",
        "recall_at(2) <= baseline",
    ),
    "baseline object": (
        "retrieval_baseline",
        f"from pytest_retrieval_eval import Run; return Run.of({PERFECT!r})",
        "recall_at(2) <= baseline - 0.3",
    ),
    "dataset path": ("retrieval_dataset", "return 'eval/small'", "recall_at(2) >= 0.6"),
}


@pytest.mark.parametrize(("name", "value", "line"), OVERRIDES.values(), ids=OVERRIDES)
@pytest.mark.parametrize("scope", ["session", "function"])
def test_a_project_overrides_prefixed_fixtures(project, name, value, line, scope):
    if scope == "function" and name == "retrieval_dataset":
        pytest.skip("session-scoped fixtures of ours ask for the dataset")
    project.run_file("best.trec", PERFECT)
    text = (project.path / "conftest.py").read_text()
    text += f"@pytest.fixture(scope='{scope}')\ndef {name}():\n    {value}\n"
    (project.path / "conftest.py").write_text(text)
    project.test(f"def test_it(recall_at, baseline):\n    assert {line}\n")
    project.run().assert_outcomes(passed=1)


WRONG_OVERRIDES = {
    "run of no kind": ("retrieval_run", "session", "return 3", "returned int"),
    "baseline of no kind": ("retrieval_baseline", "session", "return None", "returned NoneType"),
    "dataset of no kind": ("retrieval_dataset", "session", "return {}", "returned dict"),
    "run skips": ("retrieval_run", "session", "pytest.skip('no index')", "skips .*no index"),
    "dataset skips": ("retrieval_dataset", "session", "pytest.skip('no data')", "skips .*no data"),
    "retriever skips": ("retriever", "session", "pytest.skip('no index')", "skips .*no index"),
    "retriever of function scope": ("retriever", "function", "return list", "retrieval_runs"),
    "retriever returns nothing": ("retriever", "session", "return None", "retriever"),
    "retriever cannot be opened": ("retriever", "session", "raise OSError('no index')", "no index"),
}


@pytest.mark.parametrize(("name", "scope", "value", "expected"), WRONG_OVERRIDES.values(), ids=WRONG_OVERRIDES)
def test_an_override_that_cannot_be_used_is_an_error(project, dist, name, scope, value, expected):
    text = (project.path / "conftest.py").read_text()
    text += f"@pytest.fixture(scope='{scope}')\ndef {name}():\n    {value}\n"
    (project.path / "conftest.py").write_text(text)
    project.test("def test_it(recall_at, baseline):\n    assert recall_at(2) >= baseline\n")
    result = project.run(*dist)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([f"E .*{expected}"])


def test_a_skipping_override_is_an_error_where_the_test_asks_for_it_directly(project, dist):
    text = (project.path / "conftest.py").read_text()
    text += "@pytest.fixture(scope='session')\ndef retrieval_dataset():\n    pytest.skip('no data')\n"
    (project.path / "conftest.py").write_text(text)
    project.test("def test_it(recall_at, qrels):\n    assert recall_at(2) >= 0\n")
    result = project.run(*dist)
    result.assert_outcomes(errors=1)
    assert result.ret == 1


SKIPS = ("pytest.skip('gone')", "pytest.xfail('gone')", "raise unittest.SkipTest('gone')")


@pytest.mark.parametrize("skip", SKIPS[:2])
def test_a_search_function_that_skips_is_an_error(project, dist, skip):
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n"
        f"    def search(query):\n        {skip}\n    return search\n"
    )
    project.test("def test_one(recall_at):\n    recall_at(2) >= 0\ndef test_two(recall_at):\n    recall_at(2) >= 0\n")
    result = project.run(*dist)
    result.assert_outcomes(failed=2)
    assert "the fixture retriever skips (gone)" in result.stdout.str()


@pytest.mark.parametrize("skip", SKIPS)
@pytest.mark.parametrize("asked", ["retriever", "retrieval_dataset", "retrieval_run", "retrieval_baseline"])
def test_what_only_gates_use_never_skips_a_test_also_through_its_parts(project, asked, skip):
    (project.path / "conftest.py").write_text(
        "import pytest, unittest\n"
        f"@pytest.fixture(scope='session')\ndef index():\n    {skip}\n"
        f"@pytest.fixture(scope='session')\ndef {asked}(index):\n    return index\n"
    )
    project.test(
        f"def test_one({asked}, recall_at):\n    recall_at(2) >= 0\n"
        f"def test_two({asked}, recall_at):\n    recall_at(2) >= 0\n"
    )
    result = project.run()
    result.assert_outcomes(errors=2)
    assert f"the fixture {asked} skips (gone)" in result.stdout.str()


def test_a_test_without_gates_may_skip_with_the_retriever(project):
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever():\n    pytest.skip('gone')\n"
    )
    project.test("def test_one(retriever):\n    pass\n")
    project.run().assert_outcomes(skipped=1)


def test_a_run_as_a_parameter_is_the_run_under_test(project, dist):
    project.ini("retrieval_runs =", "    best = runs/best.trec")
    project.run_file("runs/best.trec", PERFECT)
    project.run_file("runs/worst.trec", {"q1": ["z", "b"]})
    project.test(
        "import pytest\n"
        "@pytest.mark.parametrize(('retrieval_run', 'mean'), [('best', 1.0), ('runs/worst.trec', 0.0)])\n"
        "def test_it(recall_at, retrieval_run, mean):\n    assert mean <= recall_at(2) <= mean\n"
    )
    project.run(*dist).assert_outcomes(passed=2)
    project.run("--retrieval-run", "runs/best.trec").assert_outcomes(failed=2)


PARAMETERS = {
    "given directly": ("retriever", "[str.split, str.upper]", "retriever depends on a parameter .*retriever"),
    "indirect": ("retriever", "[1, 2], indirect=True", "retriever depends on a parameter .*retriever"),
    "of a part": ("index", "[1, 2], indirect=True", "retriever depends on a parameter .*index"),
    "run": ("retrieval_run", "['a'], indirect=True", "without indirect=True.*retrieval.run='a'"),
    "dataset": ("retrieval_dataset", "['a'], indirect=True", "without indirect=True.*retrieval.dataset='a'"),
    "baseline": ("retrieval_baseline", "['a'], indirect=True", "without indirect=True.*retrieval.baseline='a'"),
    "labels": ("retrieval_qrels", "['a']", "gates do not read the fixture retrieval_qrels"),
}


@pytest.mark.parametrize(("name", "values", "expected"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_parameter_that_would_not_be_measured_is_an_error(project, name, values, expected):
    (project.path / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session')\ndef index(request):\n    return getattr(request, 'param', 0)\n"
        "@pytest.fixture(scope='session')\ndef retriever(index, request):\n"
        "    return lambda query: ['a', 'b', 'c', 'd']\n"
    )
    project.test(
        f"import pytest\n@pytest.mark.parametrize({name!r}, {values})\n"
        f"def test_it(recall_at, {name}):\n    recall_at(2) >= 0\n"
    )
    result = project.run()
    outcomes = result.parseoutcomes()
    assert "passed" not in outcomes
    result.stdout.re_match_lines([f"E .*({expected})"])


def test_a_retriever_that_is_built_from_the_dataset_is_run_for_each(project, dist):
    project.ini(datasets=("small = eval/small", "other = eval/other"))
    project.dataset("eval/other")
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef retriever(retrieval_dataset):\n"
        "    hits = ['a', 'b', 'c', 'd'] if retrieval_dataset.name == 'small' else ['x', 'b']\n"
        "    return lambda query: hits\n"
    )
    project.test(
        "import pytest\n"
        "@pytest.mark.retrieval(dataset=['small', 'other'])\n"
        "def test_it(recall_at, dataset):\n"
        "    bound = 1.0 if dataset.name == 'small' else 0.25\n"
        "    assert bound <= recall_at(4) <= bound\n"
        "def test_argument(recall_at):\n    recall_at(4, dataset='other') >= 0\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.re_match_lines([r"E .*built from retrieval_dataset.*marker.*dataset='other'"])


@pytest.mark.parametrize("name", ["retrieval_dataset", "retrieval_run", "retrieval_baseline"])
def test_an_override_of_different_parts_in_one_process_is_refused(project, name):
    project.run_file("runs/best.trec", PERFECT)
    value = {"retrieval_dataset": "'small'", "retrieval_run": "'runs/best.trec'", "retrieval_baseline": "best"}[name]
    best = "from pytest_retrieval_eval import Run\nbest = Run.read('runs/best.trec')\n"
    part = "@pytest.fixture(scope='session')\ndef part():\n    return 1\n"
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + best
        + part
        + f"@pytest.fixture(scope='session')\ndef {name}(part):\n    return {value}\n"
    )
    project.test(f"import pytest\n{part}", "two/conftest.py")
    for folder in ("one", "two"):
        project.test(
            "def test_it(recall_at, baseline):\n"
            + f"    recall_at(2) >= {'0.1 * baseline' if name == 'retrieval_baseline' else '0.1'}\n",
            f"{folder}/test_{folder}.py",
        )
    result = project.run("--import-mode=importlib", "-p", "no:randomly")
    result.assert_outcomes(passed=1, failed=1)
    assert f"the fixture {name} (" in result.stdout.str()
    assert "is built from part (two::" in result.stdout.str()


def test_a_parametrised_retriever_is_refused(project):
    (project.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session', params=[1, 2])\ndef retriever(request):\n    return list\n"
    )
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*is parametrised.*retrieval_runs"])


def test_without_a_retriever_or_a_run_the_message_says_what_to_do(project):
    (project.path / "conftest.py").unlink()
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*define a session-scoped fixture `retriever`"])


def test_a_unittest_class_takes_the_default_and_no_marker(project):
    project.test(
        "import unittest, pytest\n"
        "class Plain(unittest.TestCase):\n"
        "    @pytest.fixture(autouse=True)\n"
        "    def _ask(self, recall_at):\n        self.recall_at = recall_at\n"
        "    def test_it(self):\n        assert self.recall_at(2) >= 0.6\n"
        "@pytest.mark.retrieval(where={'type': 'faq'})\n"
        "class Marked(Plain):\n"
        "    def test_it(self):\n        assert self.recall_at(2) >= 0.6\n"
    )
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.re_match_lines(["E .*name the fixture in the test's arguments"])


def test_a_marker_meets_an_overriding_fixture(project):
    project.run_file("best.trec", PERFECT)
    text = (project.path / "conftest.py").read_text()
    text += "@pytest.fixture(scope='session')\ndef retrieval_run():\n    return 'best.trec'\n"
    (project.path / "conftest.py").write_text(text)
    project.test(
        "import pytest\n@pytest.mark.retrieval(run='best.trec')\n"
        "def test_it(recall_at):\n    assert recall_at(2) >= 1\n"
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(["E .*only one of them can be the run under test"])


def test_qrels_and_queries_are_at_hand(project):
    project.test(
        "def test_it(qrels, queries, retrieval_qrels, retrieval_queries, run, retrieval_run):\n"
        f"    assert qrels.to_dict() == {QRELS!r}\n"
        "    assert queries.text('q1') == 'first question'\n"
        "    assert qrels is retrieval_qrels and run is retrieval_run\n"
    )
    project.run().assert_outcomes(passed=1)


def test_a_retriever_that_raises_is_told_with_the_line_of_the_users(project, dist):
    project.dataset()
    project.test("def search(text):\n    return 1 / len(text[:0])\n", "myapp/search.py")
    project.test(
        "import pytest, sys\nsys.path.insert(0, '.')\nfrom myapp.search import search\n"
        "@pytest.fixture(scope='session')\ndef retriever():\n    return search\n",
        "conftest.py",
    )
    project.test(
        "def test_one(recall_at):\n    assert recall_at(2) >= 0.5\n"
        "def test_two(recall_at):\n    assert recall_at(3) >= 0.5\n"
    )
    result = project.run(*dist, own_process=True)
    result.assert_outcomes(failed=2)
    place = os.path.join("myapp", "search.py") + ":2 in search"
    said = f"retriever failed on 4 of 4 queries in run retriever: q1: ZeroDivisionError: division by zero ({place}). A"
    assert result.stdout.str().count(f"GateError: {said}") == 2
