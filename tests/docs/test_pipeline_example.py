"""The example of a pipeline: all of its gates hold, and each fault is found and named by the right gate."""

from __future__ import annotations

import shutil

import pytest
from support import ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture
def example(pytester, monkeypatch):
    """A copy of the example beside the handbook that it searches."""
    pytest.importorskip("bm25s")
    for name in ("handbook", "pipeline"):
        shutil.copytree(EXAMPLES / name, pytester.path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(pytester.path / "pipeline")
    return pytester


def gates(example, *arguments):
    return example.runpytest_inprocess(
        "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--rootdir=.", "-c", "pytest.ini", *arguments
    )


def test_the_pipeline_holds(example):
    gates(example).assert_outcomes(passed=6)


@pytest.mark.parametrize(
    ("fault", "gate", "said"),
    [
        ("fusion", "both-retrievers-are-heard", ["*FAILED. 0.841 is below 0.851*stage fused, against bm25)*"]),
        (
            "filter",
            "nothing-is-withheld",
            [
                "withheld(from=fused) <= 0: FAILED.*",
                '    want   fin-per-diem-2025 "Per diem 2025" (grade 3)   not in the list',
                "           rank 1 after fused; asked by finance, who may read it (finance, manager)",
            ],
        ),
        (
            "leak",
            "nothing-leaks",
            [
                "leaks <= 0: FAILED.*",
                'q164  leaks 8.000  "LSO approval"*',
                '    leak   fin-purchasing "Purchase orders and approval limits" (grade 0)   rank 2',
                "           asked by no role; only for finance, manager",
            ],
        ),
        (
            "reranker",
            "the-reranker-helps",
            [
                "lift(ndcg@10, from=filtered) >= 0.05: FAILED. −0.* is below 0.050*",
                "*by stage, of the * relevant documents that are not in the top 10: * never found (bm25 or lsa), *",
                '    want   it-vpn-setup "Setting up FjordLink remote access" (grade 3)   rank 19',
                "           ranked down by reranked: rank 2 → 19",
            ],
        ),
    ],
)
def test_a_fault_is_named_by_its_gate(example, monkeypatch, fault, gate, said):
    monkeypatch.setenv("PIPELINE_FAULT", fault)
    result = gates(example, "pipeline.gates.yaml")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines([*[line.replace("[", "[[]") for line in said], f"*next: pytest *::{gate}"])
