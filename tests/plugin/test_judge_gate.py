"""A judge held against people: as a fixture, as an entry of a gate file, in the session's summary."""

from __future__ import annotations

import json

import pytest

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.labels.judging.config import judge_from
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments, text_hash

HASH = text_hash("")


def rows(tp, fn, tn, fp):
    """What people and a judge say of so many pairs of each kind."""
    sides = [(1, 1)] * tp + [(1, 0)] * fn + [(0, 0)] * tn + [(0, 1)] * fp
    return [(f"q{place % 5}", f"d{place}", *side) for place, side in enumerate(sides)]


def files(folder, *counts):
    """The same as two files of judgments."""
    for name, place in (("human.txt", 2), ("judge.txt", 3)):
        (folder / name).write_text("".join(f"{row[0]} 0 {row[1]} {row[place]}\n" for row in rows(*counts)))


TEST = """
def test_judge(assert_judge_valid):
    verdict = assert_judge_valid(human="human.txt", grades="judge.txt")
    assert verdict
    assert [member.gate for member in verdict.members] == ["tpr >= 0.85", "tnr >= 0.85", "kappa >= 0.6"]

def test_strict(assert_judge_valid):
    assert_judge_valid(human="human.txt", grades="judge.txt", mode="lower")

def test_nothing(assert_judge_valid):
    pass

def test_mistyped(assert_judge_valid):
    assert_judge_valid(tprs=0.9)

def test_absent(assert_judge_valid):
    assert_judge_valid()
"""

GATES = """
gates:
  believable: {judge: {human: human.txt, grades: judge.txt}}
  strict:
    judge: {human: human.txt, grades: judge.txt, mode: lower}
    xfail: three hundred pairs would do
  demanding: {judge: {human: human.txt, grades: judge.txt, tnr: 0.95}}
"""


def test_the_fixture_decides_and_a_gate_file_does(project, dist):
    files(project.path, 63, 7, 27, 3)
    project.test(TEST)
    project.gates(GATES)
    result = project.run(*dist)
    # pytest counts a GateError as a failure of the test.
    result.assert_outcomes(passed=2, failed=5, xfailed=1)
    text = result.stdout.str()
    assert "the lower end of TPR 0.808 is below 0.85 (underpowered)" in text
    assert "TNR 0.900 is below 0.95 (underpowered)" in text
    assert "tnr  0.900   95 % CI [0.744, 0.965] (Wilson)   n = 30" in text
    assert "a judge whose TPR and TNR are .90 passes with such a sample in 1 % of cases" in text
    assert "nothing that a judge is held to; did you mean tpr?" in text
    assert "there is no folder of judgments" in text
    assert "this test asks for assert_judge_valid and compared nothing" in text


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{judge: {tpr: 1.5}}", "small.gates.yaml:2: tpr=1.5: expected a number above 0, and not above 1"),
        ("{judge: {tprs: 0.9}}", "'tprs' is nothing that a judge is held to; did you mean tpr?"),
        ("{judge: pool, rule: each}", "a gate with judge: measures no run and has no key 'rule'"),
        ("{judge: pool, skip: true}", "a gate that is skipped has measured nothing"),
        ("{judge: {human: a.txt}}", "human and grades go together"),
        ("{judge: {mode: middle}}", "expected one of point, lower"),
        ("{judge: {rel: high}}", "expected a grade"),
        ("{judge: {where: policy}}", "where='policy': expected tags such as {'type': 'policy'}"),
    ],
)
def test_an_entry_that_cannot_be_meant(project, entry, said):
    project.gates(f"gates:\n  judge: {entry}\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    assert said in " ".join(result.stdout.str().split())


class Fixed:
    """A judge that is never asked: its grades are put into the folder by hand."""

    def __init__(self):
        from pytest_retrieval_eval.labels.judging.replies import Scale

        self.identity = {"kind": "fixed"}
        self.scale = Scale(0, 1)
        self.floating = ""


def store(folder, counts, *, part="heldout", skip=0):
    judgments = Judgments(folder)
    kept = judgments.keep(Fixed())
    people = [Judgment(q, HASH, d, HASH, human, who="ann", part=part) for q, d, human, _ in rows(*counts)]
    judgments.add_human("ann", people)
    judgments.add(kept.name, [Judgment(q, HASH, d, HASH, judge) for q, d, _, judge in rows(*counts)[skip:]])
    return kept.name


def test_held_out_labels_of_the_project_s_judgments(project):
    name = store(project.path / "judgments", (63, 7, 27, 3))
    project.gates(f"gates:\n  kept: {{judge: {name}}}\n", name="gates/judge.gates.yaml")
    project.test("def test_it(assert_judge_valid):\n    assert assert_judge_valid().labels == 'judge " + name + "'\n")
    project.run().assert_outcomes(passed=2)


def test_the_project_says_where_its_judgments_are(project):
    name = store(project.path / "graded", (63, 7, 27, 3))
    project.ini("retrieval_judgments = graded")
    project.gates("gates:\n  kept: {judge: {}}\n")
    project.test("def test_it(assert_judge_valid):\n    assert assert_judge_valid().labels == 'judge " + name + "'\n")
    project.run().assert_outcomes(passed=2)


def test_what_is_not_held_out_or_not_judged_is_no_pass(project):
    store(project.path / "tuned", (63, 7, 27, 3), part="dev")
    store(project.path / "holes", (63, 7, 27, 3), skip=2)
    project.test(
        "def test_tuned(assert_judge_valid):\n    assert_judge_valid(judgments='tuned')\n"
        "def test_holes(assert_judge_valid):\n    assert_judge_valid(judgments='holes')\n"
        "def test_allowed(assert_judge_valid):\n"
        "    assert_judge_valid(judgments='holes', allow_missing=2, min_pairs=98)\n"
    )
    result = project.run()
    result.assert_outcomes(passed=1, failed=2)
    text = " ".join(result.stdout.str().split())
    assert "holds no label that is held out" in text
    assert "2 of 100 held-out pairs have no grade of the judge" in text


def tagged(folder, sure, dear):
    """A dataset with two kinds of queries, and what people and a judge say of each kind: (tp, fn, tn, fp)."""
    (folder / "data" / "qrels").mkdir(parents=True)
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nsure0\ta\t1\n")
    queries = [
        {"_id": f"{kind}{n}", "text": "?", "metadata": {"type": kind}} for kind in ("sure", "dear") for n in (0, 1)
    ]
    queries.append({"_id": "none", "text": "?", "metadata": {"type": "none"}})
    (folder / "data" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    for name, place in (("human.txt", 2), ("judge.txt", 3)):
        lines = []
        for kind, counts in (("sure", sure), ("dear", dear)):
            lines += [f"{kind}{n % 2} 0 d{n} {row[place]}\n" for n, row in enumerate(rows(*counts))]
        (folder / name).write_text("".join(lines))


SLICES = """
import pytest

pytestmark = pytest.mark.retrieval(dataset="data")
FILES = {"human": "human.txt", "grades": "judge.txt"}

def test_all(assert_judge_valid):
    assert assert_judge_valid(**FILES, tpr=0.9, tnr=0.9).n == 260

def test_dear(assert_judge_valid):
    assert_judge_valid(**FILES, tpr=0.9, tnr=0.9, where={"type": "dear"})

def test_few(assert_judge_valid):
    assert_judge_valid(**FILES, where={"type": ["dear", "none"]}, min_pairs=120)

def test_unlabelled(assert_judge_valid):
    assert_judge_valid(**FILES, where={"type": "none"})

def test_mistyped(assert_judge_valid):
    assert_judge_valid(**FILES, where={"type": "deer"})
"""


def test_a_slice_has_its_own_sample_and_thresholds(project, dist):
    tagged(project.path, (100, 0, 60, 0), (60, 10, 28, 2))
    project.test(SLICES)
    project.gates(
        "dataset: data\n"
        "gates:\n"
        "  sure: {judge: {human: human.txt, grades: judge.txt, tpr: 0.9, tnr: 0.9, where: {type: sure}}}\n"
        "  dear: {judge: {human: human.txt, grades: judge.txt, tpr: 0.9, tnr: 0.9, where: {type: dear}}}\n"
    )
    result = project.run(*dist)
    result.assert_outcomes(passed=2, failed=5)
    text = " ".join(result.stdout.str().split())
    assert "TPR 0.857 is below 0.9 (underpowered)" in text
    assert "where type=dear" in text
    assert "100 pairs have labels of people, and 120 are needed" in text
    assert "none of the 260 held-out pairs is of one of the 1 queries of data that where= selects" in text
    assert 'where type = "deer": no query has it; did you mean "dear"?' in text


def test_a_kind_of_judge_of_the_conftest(project, dist):
    (project.path / "conftest.py").write_text(
        "from pytest_retrieval_eval.labels.judging.judges import CallableJudge\n"
        "from pytest_retrieval_eval.labels.judging.replies import Scale\n"
        "def pytest_retrieval_judges():\n"
        "    def make(settings):\n"
        "        return CallableJudge(lambda query, text: settings['always'], Scale(0, 2), identity='always, v1')\n"
        "    return {'always': make}\n"
    )
    project.test(
        "from pytest_retrieval_eval.labels.judging.config import judge_from\n"
        "from pytest_retrieval_eval.labels.judging.judge import Pair\n"
        "def test_it():\n"
        "    judge = judge_from({'kind': 'vote', 'judges': [{'kind': 'always', 'always': 2}] * 2})\n"
        "    assert [graded.grade for _, graded in judge.grade([Pair('q', 'd', 'a', 'b')])] == [2]\n"
    )
    project.run(*dist).assert_outcomes(passed=1)
    with pytest.raises(SettingsError, match="a judge of kind 'always'"):
        judge_from({"kind": "always"})
