"""`--retrieval-json`: every gate with its whole verdict, never half a file, never an earlier session's."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest
from support import HITS, ROOT

from pytest_retrieval_eval.gates.verdict import QueryDiff, Verdict
from pytest_retrieval_eval.reports import schema
from pytest_retrieval_eval.reports.document import GatedTest, Report, unfinished, write_document
from pytest_retrieval_eval.session.ledger import Ledger

TESTS = """
import pytest

def test_held(recall_at):
    assert recall_at(2) >= 0.3

def test_two(gate, baseline):
    gate("recall@2 >= baseline")
    gate("mrr@2 >= 0.99")

def test_errs(recall_at):
    assert recall_at(200) >= 0.5

def test_compares_nothing(recall_at):
    recall_at(2)

@pytest.mark.xfail(strict=False)
def test_expected(recall_at):
    assert recall_at(2) >= 0.9

def test_of_another_kind():
    pass

def test_breaks_afterwards(recall_at):
    assert recall_at(2) >= 0.3
    raise ValueError("x")
"""


def refuse(name):
    raise ValueError(f"{name} is no JSON")


def read(project, name="out/report.json"):
    found = json.loads((project.path / name).read_text(encoding="utf-8"), parse_constant=refuse)
    jsonschema.validate(found, schema.schema(), jsonschema.Draft202012Validator)
    return found


def session(project, *arguments, own_process=False):
    return project.run("--retrieval-json=out/report.json", *arguments, own_process=own_process)


def by_name(report):
    return {test["nodeid"].rpartition("::")[2]: test for test in report["tests"]}


def without_times(report):
    report = {key: value for key, value in report.items() if key != "time"}
    report["tests"] = [{**test, "seconds": None} for test in report["tests"]]
    return report


@pytest.fixture
def gated(project):
    project.test("def test_it(recall_at, baseline):\n    assert recall_at(2) >= baseline\n")
    project.run("--retrieval-update=new")
    project.conftest({**HITS, "q1": ["b", "c"]})
    return project


def test_every_gate_of_a_session(gated):
    gated.test(TESTS)
    result = session(gated)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["report written: *report.json"])
    report = read(gated)
    assert (report["complete"], report["incomplete_because"], report["exit_status"]) == (True, None, 1)
    assert report["counts"] == {"error": 1, "failed": 2, "passed": 2}
    found = by_name(report)
    assert {name: test["outcome"] for name, test in found.items()} == {
        "test_held": "passed",
        "test_two": "failed",
        "test_errs": "failed",
        "test_compares_nothing": "failed",
        "test_expected": "xfailed",
        "test_breaks_afterwards": "failed",
    }
    assert all(test["seconds"] > 0 for test in report["tests"])
    (verdict,) = found["test_two"]["verdicts"]  # the first gate raised
    assert verdict["gate"] == "recall@2 >= baseline"
    assert (verdict["status"], verdict["n"], verdict["reference"], verdict["value"]) == ("failed", 4, 0.625, 0.375)
    (query,) = verdict["queries"]
    assert (query["query_id"], query["before"], query["after"]) == ("q1", 1.0, 0.0)
    assert query["moves"][0]["doc_id"] == "a"
    assert verdict["p"] == 1.0
    assert Verdict.from_dict(verdict).to_dict() == verdict
    assert "declares depth 100" in found["test_errs"]["verdicts"][0]["reason"]
    assert ": set the ini value retrieval_depth = " in found["test_errs"]["verdicts"][0]["reason"]
    assert found["test_errs"]["errors"] == []
    assert found["test_compares_nothing"]["verdicts"] == []
    assert "compared nothing" in found["test_compares_nothing"]["errors"][0]
    # The same from two workers, up to times; sorted by node id.
    assert [test["nodeid"] for test in report["tests"]] == sorted(test["nodeid"] for test in report["tests"])
    assert session(gated, "-n2").ret == 1
    assert without_times(read(gated)) == without_times(report)


def test_where_the_numbers_come_from(gated):
    session(gated)
    ((verdict,),) = [test["verdicts"] for test in read(gated)["tests"]]
    run, reference, dataset = (verdict["provenance"][side] for side in ("run", "reference", "dataset"))
    assert (run["name"], run["depth"], run["queries"]) == ("retriever", 100, 4)
    assert reference["header"]["retriever"] == "retriever"
    assert reference["source"].endswith("main.run.jsonl.gz")
    assert dataset["name"] == "small"
    assert dataset["labels"] == reference["header"]["labels"]
    assert dataset["query_set"] == reference["header"]["query_set"]
    assert dataset["corpus"] is None


def test_what_was_written_and_what_not(project):
    project.test("def test_it(recall_at, baseline):\n    assert recall_at(2) >= baseline\n")
    session(project, "--retrieval-update=all")
    report = read(project)
    assert [(file["kind"], file["path"].rpartition("/")[2]) for file in report["written"]] == [
        ("baseline", "main.run.jsonl.gz")
    ]
    assert report["counts"] == {"updated": 1}
    session(project, "--retrieval-update=all")
    assert (read(project)["written"], len(read(project)["unchanged"])) == ([], 1)


def test_an_empty_session_and_a_part_of_one(project):
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.5\ndef test_other():\n    pass\n")
    session(project, "-k", "other")
    report = read(project)
    assert (report["tests"], report["complete"], report["deselected"]) == ([], True, True)


def test_stopping_is_said(gated, dist):
    gated.test("def test_a(recall_at, baseline):\n    assert recall_at(2) >= baseline\ndef test_b():\n    pass\n" * 1)
    session(gated, "-x", *dist)
    report = read(gated)
    assert not report["complete"]
    assert "stopp" in report["incomplete_because"] or "interrupted" in report["incomplete_because"]
    assert report["counts"] == {"failed": 1}


# --- never a file of an earlier session -------------------------------------------------------------------------


@pytest.fixture
def stale(project):
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.5\n")
    (project.path / "out").mkdir()
    (project.path / "out/report.json").write_text('{"complete": true, "of": "an earlier session"}')
    return project


def test_an_ini_value_that_cannot_be_used(stale):
    stale.ini("retrieval_depth = 0")
    assert session(stale).ret == 4
    assert read(stale)["incomplete_because"] == "the session has not ended, or was killed"


def test_a_conftest_that_cannot_be_imported(stale):
    (stale.path / "conftest.py").write_text("import nothing_of_this_name\n")
    assert session(stale).ret == 4
    assert not read(stale)["complete"]


def test_a_module_that_cannot_be_collected(stale):
    stale.test("import nothing_of_this_name\n", "test_other.py")
    assert session(stale).ret == 2
    assert "not every test could be collected" in read(stale)["incomplete_because"]


def test_a_process_that_is_killed(stale):
    stale.test("import os\ndef test_dies():\n    os._exit(1)\n", "test_zdies.py")
    session(stale, own_process=True)
    assert not read(stale)["complete"]


def test_a_lost_worker(stale):
    stale.test("import os\ndef test_dies():\n    os._exit(0)\n", "test_dies.py")
    assert session(stale, "-n2").ret != 0
    assert read(stale)["incomplete_because"].startswith("the worker gw")


def test_an_internal_error(stale):
    with (stale.path / "conftest.py").open("a") as file:
        file.write("def pytest_runtest_logfinish(nodeid):\n    raise RuntimeError('from a hook')\n")
    assert session(stale).ret == 3
    report = read(stale)
    assert report["incomplete_because"] == "pytest had an internal error (RuntimeError)"
    assert report["counts"] == {"weak": 1} or report["counts"] == {"passed": 1}


@pytest.mark.parametrize("option", ["--collect-only", "--fixtures", "--markers", "--setup-plan"])
def test_what_runs_nothing_writes_nothing(stale, option):
    before = (stale.path / "out/report.json").read_text()
    session(stale, option)
    assert (stale.path / "out/report.json").read_text() == before


def test_a_folder_is_no_report(project):
    project.test("def test_it(recall_at):\n    assert recall_at(2) >= 0.5\n")
    result = project.run("--retrieval-json=eval")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--retrieval-json=eval: expected the name of a file*"])


# --- the document -----------------------------------------------------------------------------------------------


def test_numbers_without_a_word_in_json_are_null(tmp_path):
    query = QueryDiff("q1", math.nan, tags={"weight": math.inf, "lang": "\ud800"})
    verdict = Verdict("recall@5 >= 0.5", "failed", "…", "recall@5", ">=", bound=-math.inf, queries=(query,))
    path = tmp_path / "deep" / "report.json"
    write_document(path, Report(tests=(GatedTest("t", "failed", 0.1, (), (verdict,)),)))
    found = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    (written,) = found["tests"][0]["verdicts"]
    assert written["bound"] is None
    assert (written["queries"][0]["after"], written["queries"][0]["tags"]["weight"]) == (None, None)


def test_an_unfinished_report_is_a_report():
    jsonschema.validate(unfinished().to_dict(), schema.schema(), jsonschema.Draft202012Validator)


def test_the_shipped_schema_is_the_classes_own():
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    command = "python -m pytest_retrieval_eval.reports.schema"
    assert schema.SHIPPED.read_text(encoding="utf-8") == schema.text(), f"make it anew: {command}"


def test_the_page_shows_a_report():
    page = (ROOT / "docs/reference/report-json.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    known = schema.schema()
    assert list(shown) == list(known["properties"])
    (test,) = shown["tests"]
    assert list(test) == list(known["$defs"]["GatedTest"]["properties"])
    assert set(test["verdicts"][0]) <= set(known["$defs"]["Verdict"]["properties"])
    for name in ("queries", "causes", "provenance"):
        assert name in known["$defs"]["Verdict"]["properties"]
    from importlib.resources import files

    assert (files("pytest_retrieval_eval.reports") / "retrieval-report.schema.json").is_file()


def test_every_field_is_described():
    for name, definition in schema.schema()["$defs"].items():
        missing = [field for field, said in definition["properties"].items() if "description" not in said]
        assert name not in ("Verdict", "GatedTest", "AdjustedP", "WrittenFile") or missing == []


def test_the_items_of_a_gate_file(gated):
    (gated.path / "small.gates.yaml").write_text(
        "dataset: small\nbaseline: main\ngates:\n  held: recall@2 >= 0.3\n  lost: recall@2 >= baseline\n"
    )
    gated.dataset("eval/small")
    session(gated, "-k", "gates.yaml")
    found = by_name(read(gated))
    assert {name: test["outcome"] for name, test in found.items()} == {"held": "passed", "lost": "failed"}
    assert found["lost"]["verdicts"][0]["provenance"]["reference"]["source"].endswith("main.run.jsonl.gz")


def test_slices_and_families_are_within_their_verdict(gated):
    gated.test(
        "def test_it(gate):\n    gate('recall@2 >= baseline', by='type', min_n=1)\n"
        "def test_family(gate, gate_family):\n"
        "    with gate_family(correction='holm'):\n        gate('recall@2 >= 0.1')\n        gate('mrr@2 >= 0.1')\n"
    )
    session(gated)
    found = by_name(read(gated))
    (sliced,) = found["test_it"]["verdicts"]
    assert sorted(part["slice"] for part in sliced["slices"]) == ["type=faq", "type=policy"]
    assert sliced["provenance"]["run"]["name"] == "retriever"
    assert Verdict.from_dict(sliced).to_dict() == sliced
    (family,) = found["test_family"]["verdicts"]
    assert [member["gate"] for member in family["members"]] == ["recall@2 >= 0.1", "mrr@2 >= 0.1"]


def test_the_adjusted_p_values_of_the_session(project, dist):
    """Holm by hand: the p-values sorted, times how many are left, never below the one before."""
    project.run_file("old.trec", {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["d"]})
    project.test(
        "def test_a(gate):\n    gate('recall@2 >= against(old.trec) - 0.9', sided='one')\n"
        "def test_b(gate):\n    gate(['mrr >= against(old.trec) - 0.9', 'hit@1 >= 0.1'])\n"
        "def test_c(gate):\n    gate('hit@1 >= against(old.trec) - 0.9', by='type', min_n=1)\n"
    )
    result = session(project, *dist)
    result.stdout.fnmatch_lines(["p adjusted by Holm over 4 comparisons*"])
    found = read(project)["adjusted"]
    places = [(each["nodeid"].partition("::")[2], each["gate"].partition(" ")[0], each["slice"]) for each in found]
    assert sorted(places) == [
        ("test_a", "recall@2", ""),
        ("test_b", "mrr", ""),
        ("test_c", "hit@1", "type=faq"),
        ("test_c", "hit@1", "type=policy"),
    ]
    raw = [each["p"] for each in found]
    assert raw == sorted(raw)
    assert raw[0] < 0.5
    expected, least = [], 0.0
    for place, p in enumerate(raw):
        least = max(least, min(1.0, p * (len(raw) - place)))
        expected.append(least)
    assert [each["p_adjusted"] for each in found] == expected
    assert [each["sided"] for each in found if each["nodeid"].endswith("test_a")] == ["one"]
    session(project, "-k", "test_a", *dist)
    assert read(project)["adjusted"] == []


def test_what_fails_around_a_test(project):
    project.test(
        "import pytest\n"
        "@pytest.fixture\n"
        "def broken():\n    yield\n    raise ValueError('afterwards')\n"
        "def test_teardown(recall_at, broken):\n    assert recall_at(2) >= 0.3\n"
        "@pytest.mark.retrieval(dataset='nothing')\n"
        "def test_setup(retrieval_dataset, recall_at):\n    assert recall_at(2) >= 0.3\n"
        "def test_skips(recall_at):\n    assert recall_at(2) >= 0.3\n    pytest.skip('later')\n"
    )
    session(project)
    found = by_name(read(project))
    assert {name: test["outcome"] for name, test in found.items()} == {
        "test_teardown": "error",
        "test_setup": "error",
        "test_skips": "skipped",
    }
    assert found["test_teardown"]["verdicts"][0]["gate"] == "recall@2 >= 0.3"
    assert found["test_setup"]["verdicts"] == []
    assert "there is no dataset 'nothing'" in found["test_setup"]["errors"][0]


def test_an_attempt_that_is_repeated_counts_once():
    ledger = Ledger()
    for outcome in ("failed", "passed"):  # a rerun begins with its setup
        for phase in ("setup", "call", "teardown"):
            ledger.hear("t", phase, outcome if phase == "call" else "passed", 0.25)
    assert ledger.outcomes == {"t": ("passed", 0.75)}
