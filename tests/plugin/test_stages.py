"""Stages of a pipeline in gates: where they come from, what is measured, where their baselines lie."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from support import HITS, ROOT, TEXTS

FUSED = {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["b", "d"]}  # recall@2 is 1
BM25 = {"q1": ["b", "a"], "q2": ["a"], "q3": ["c"], "q4": ["a"]}  # recall@2 is (1 + 0 + .5 + 0) / 4 = 0.375

AUTHOR = ["-c", "user.name=A", "-c", "user.email=a@example.com"]

CONFTEST = """
import pathlib, pytest
from pytest_retrieval_eval import Run

@pytest.fixture(scope="session")
def retrieval_stages():
    return {"bm25": "runs/bm25.trec", "dense": pathlib.Path("runs/dense.trec"), "fused": Run.of(%r)}
"""


@pytest.fixture
def pipeline(project):
    project.run_file("runs/bm25.trec", BM25)
    project.run_file("runs/dense.trec", {"q1": ["a"]})
    project.run_file("runs/fused.trec", FUSED)
    return project


def ini(project, *lines):
    project.ini(
        "retrieval_runs =",
        "    old = runs/bm25.trec",
        "retrieval_stages =",
        "    bm25 = old",
        "    dense = runs/dense.trec",
        "    fused = runs/fused.trec",
        *lines,
    )


BODY = """
import pytest

def test_function(assert_recall_at):
    verdict = assert_recall_at(2, stage="bm25") <= 0.375
    assert verdict.stage == "bm25" and abs(verdict.value - 0.375) < 1e-9

@pytest.mark.retrieval(stage="fused")
def test_marker(gate, assert_metric):
    assert assert_metric("recall@2") >= 1.0
    assert gate("recall@2 >= against(bm25) + 0.6")
    assert gate("recall@2 >= 1", stage="fused")

def test_a_stage_is_a_run(assert_metric, against, stages):
    assert list(stages) == ["bm25", "dense", "fused"] and len(stages["fused"]) == 4
    assert assert_metric("recall@2", run="fused") >= against("bm25") + 0.6
    assert assert_metric("recall@2") >= 0.625          # the retriever

@pytest.mark.retrieval(run="fused")
def test_the_marker_names_one(assert_recall_at, run):
    assert run.ranking("q4").docs == ["b", "d"]
    assert assert_recall_at(2) >= 1.0
"""


@pytest.mark.parametrize("source", ["ini", "fixture"])
def test_every_way_to_name_a_stage(pipeline, source, dist):
    if source == "ini":
        ini(pipeline)
    else:
        with (pipeline.path / "conftest.py").open("a") as file:
            file.write(CONFTEST % FUSED)
    pipeline.test(BODY)
    pipeline.run(*dist).assert_outcomes(passed=4)


def test_gate_files(pipeline, dist):
    ini(pipeline)
    pipeline.gates(
        "gates:\n"
        "  of_the_ini: {gate: recall@2 >= 1, stage: fused}\n"
        "  lift: {gate: recall@2 >= against(bm25) + 0.6, stage: fused}\n"
        "  as_a_run: {gate: recall@2 >= 1, run: fused}\n",
        "a.gates.yaml",
    )
    pipeline.gates(
        "stages: {first: old, last: runs/fused.trec}\n"
        "defaults: {stage: last}\n"
        "gates:\n"
        "  last: recall@2 >= against(first) + 0.6\n"
        "  first: {gate: recall@2 <= 0.375, stage: first}\n",
        "b.gates.yaml",
    )
    pipeline.run(*dist).assert_outcomes(passed=5)


def test_two_folders_with_stages_of_their_own_keep_apart(pipeline, dist):
    for folder, file in (("one", "bm25"), ("two", "fused")):
        text = "import pytest\n@pytest.fixture(scope='session')\ndef retrieval_stages():\n"
        (pipeline.path / folder).mkdir()
        (pipeline.path / folder / "conftest.py").write_text(f"{text}    return {{'last': 'runs/{file}.trec'}}\n")
    for number in range(2):
        pipeline.test(
            "def test_it(gate):\n    assert gate('recall@2 <= 0.375', stage='last')\n", f"one/test_one{number}.py"
        )
        pipeline.test(
            "def test_it(gate):\n    assert gate('recall@2 >= 1', stage='last')\n"
            "def test_name(gate, against):\n    assert gate('recall@2 >= against(last)', stage='last')\n",
            f"two/test_two{number}.py",
        )
    pipeline.run(*dist).assert_outcomes(passed=6)


def test_each_stage_has_a_baseline_of_its_own(pipeline):
    ini(pipeline)
    pipeline.test(
        "def test_whole(assert_recall_at, baseline):\n    assert assert_recall_at(2) >= baseline\n"
        "def test_fused(assert_recall_at, baseline):\n    assert assert_recall_at(2, stage='fused') >= baseline\n"
        "def test_bm25(gate):\n    gate('recall@2 >= baseline[next]', stage='bm25')\n"
    )
    missing = pipeline.run()
    missing.assert_outcomes(failed=3)
    missing.stdout.fnmatch_lines(["*no baseline yet (*baselines?main.fused.run.jsonl.gz does not exist)*"])
    pipeline.run("--retrieval-update=new").assert_outcomes(passed=3)
    folder = pipeline.path / "eval/small/baselines"
    stored = sorted(path.name for path in folder.iterdir())
    assert stored == ["main.fused.run.jsonl.gz", "main.run.jsonl.gz", "next.bm25.run.jsonl.gz"]
    pipeline.run().assert_outcomes(passed=3)
    # A stage that got worse is held against itself, not against the whole pipeline.
    pipeline.run_file("runs/fused.trec", {**FUSED, "q4": ["b"]})
    failed = pipeline.run()
    failed.assert_outcomes(passed=2, failed=1)
    failed.stdout.fnmatch_lines(["*FAILED. 0.750 is below 1.000*stage fused, baseline main.fused)*"])


def test_stages_of_another_commit_and_what_has_no_stages(pipeline):
    ini(pipeline)
    pipeline.test("def test_it(gate):\n    gate('recall@2 >= baseline', stage='fused')\n")
    pipeline.run("--retrieval-update=new", "--retrieval-save-runs", "saved").assert_outcomes(passed=1)
    assert [path.name for path in (pipeline.path / "saved").iterdir()] == ["small.fused.run.jsonl.gz"]
    for arguments in (["init", "-q"], ["add", "-A"], [*AUTHOR, "commit", "-q", "-m", "A baseline"]):
        subprocess.run(["git", *arguments], cwd=pipeline.path, check=True)
    (pipeline.path / "eval/small/baselines/main.fused.run.jsonl.gz").unlink()
    pipeline.run("-o", "retrieval_baseline=git:HEAD").assert_outcomes(passed=1)
    for name in ("git:HEAD:runs/fused.trec", "memory://main.run.jsonl.gz"):
        result = pipeline.run("-o", f"retrieval_baseline={name}")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"*baseline {name} is one file, and stage='fused' asks for the baseline of a*"])


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("'recall@2 >= 0', stage='fuse'", "there is no stage 'fuse'; did you mean fused?"),
        ("'recall@2 >= 0', stage='a.b'", "stage= names a stage of the pipeline, which is made of letters*"),
        ("'recall@2 >= 0', stage='fused', run='old'", "run= and stage='fused' both say what is measured*"),
        ("'recall@2 >= against(fusd)'", "there is no run 'fusd'*did you mean fused?*"),
    ],
)
def test_what_names_no_stage(pipeline, gate, said):
    ini(pipeline)
    pipeline.test(f"def test_it(gate):\n    gate({gate})\n")
    result = pipeline.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("[1]", "retrieval_stages returned list, expected a mapping"),
        ("{'fused': 7}", "the stage 'fused' of retrieval_stages is int, expected a Run"),
        ("{'a b': 'old'}", "the name of a stage is made of letters"),
        ("{}", "there is no stage 'fused'; no stage is named by the fixture"),
        ("pytest.skip('not here')", "the fixture retrieval_stages skips"),
    ],
)
def test_what_the_fixture_must_return(pipeline, returned, said):
    with (pipeline.path / "conftest.py").open("a") as file:
        file.write(f"\n@pytest.fixture(scope='session')\ndef retrieval_stages():\n    return {returned}\n")
    pipeline.test("def test_it(gate):\n    gate('recall@2 >= 0', stage='fused')\n")
    result = pipeline.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_a_wrong_name_in_the_ini_file_ends_the_session(pipeline):
    pipeline.ini("retrieval_stages = a.b = runs/bm25.trec")
    result = pipeline.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*retrieval_stages: the name 'a.b' is made of other characters*"])


def test_the_blocks_of_the_page_are_real(project, dist):
    page = (ROOT / "docs" / "how-to" / "pipeline.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|yaml)\n(.*?)```", page, re.DOTALL)
    conftest, tests, gates = blocks[0], blocks[1], blocks[-1]
    assert "def retrieval_stages" in conftest
    assert "nothing-leaks" in gates
    package = project.path / "myapp"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "search.py").write_text(
        f"HITS = {HITS!r}\nTEXTS = {dict(zip(TEXTS.values(), TEXTS, strict=True))!r}\n"
        "def bm25(query):\n    return HITS[TEXTS[query]]\n"
        "def dense(query):\n    return ['d', 'b']\n"
    )
    project.run_file("runs/reranked.trec", FUSED)
    (project.path / "conftest.py").write_text(conftest)
    folder = project.path / "eval/small"
    rows = [{"_id": query, "text": text, "roles": ["staff"]} for query, text in TEXTS.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    docs = [{"_id": doc, "text": "", "roles": ["staff"]} for doc in "abcd"]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs))
    project.test(tests)
    project.gates(gates)
    project.ini("pythonpath = .")
    arguments = ("--retrieval-update=new", *dist)
    project.run(*arguments, own_process=True).assert_outcomes(passed=4)
    stored = [path.name for path in (folder / "baselines").iterdir()]
    assert stored == ["main.bm25.run.jsonl.gz"]


def test_slices_of_stages_and_of_roles(pipeline, dist):
    ini(pipeline)
    folder = pipeline.path / "eval/small"
    roles = dict(zip(TEXTS, ("staff", "staff", "guest", "guest"), strict=False))
    rows = [
        {"_id": query, "text": text, "roles": [roles[query]], "tags": {"role": roles[query]}}
        for query, text in TEXTS.items()
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    docs = [{"_id": doc, "text": "", "roles": ["staff", "guest"] if doc in "ab" else ["staff"]} for doc in "abcd"]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs))
    pipeline.test(
        "import pytest\nfrom pytest_retrieval_eval import GateFailure\n"
        "def test_slices(assert_recall_at, against):\n"
        "    verdict = assert_recall_at(2, stage='fused', by='role', min_n=1) >= against('bm25')\n"
        "    assert sorted(part.slice for part in verdict.slices) == ['role=guest', 'role=staff']\n"
        "def test_staff(gate):\n    assert gate('leaks@2 <= 0', stage='fused', where={'role': 'staff'})\n"
        "def test_guests(gate):\n"
        "    with pytest.raises(GateFailure, match='guest'):\n"
        "        gate('leaks@2 <= 0', stage='fused', where={'role': 'guest'})\n"
    )
    pipeline.gates(
        "defaults: {stage: fused}\n"
        "gates:\n"
        "  staff: {gate: leaks@2 <= 0, where: {role: staff}}\n"
        "  guests: {gate: leaks@2 <= 0, where: {role: guest}, xfail: the filter is not built yet}\n"
        "  each: {gate: recall@2 >= against(bm25), by: role, min_n: 1}\n",
    )
    pipeline.run(*dist).assert_outcomes(passed=5, xfailed=1)


def test_a_gate_without_a_run_is_told_of_the_stages(pipeline):
    (pipeline.path / "conftest.py").unlink()
    pipeline.test("def test_it(assert_recall_at):\n    assert assert_recall_at(2) >= 0.1\n")
    plain = pipeline.run()
    plain.assert_outcomes(failed=1)
    assert "stage=…" not in plain.stdout.str()
    (pipeline.path / "conftest.py").write_text(CONFTEST % FUSED)
    pipeline.run().stdout.fnmatch_lines(["*there is no run to measure: *stage=…*"])
    (pipeline.path / "conftest.py").unlink()
    ini(pipeline)
    pipeline.run().stdout.fnmatch_lines(["*there is no run to measure: *stage=…*"])
