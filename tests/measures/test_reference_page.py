"""The reference page is what the registry says, and its examples are those of the handbook."""

from __future__ import annotations

import re
import subprocess
import sys
from math import log2

from support import ROOT

from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.reference import page

PAGE = ROOT / "docs" / "reference" / "measures.md"

# One query; d7, d3, d1, d9, d4 were returned; grades d1 3, d3 2, d5 2, d4 1. By hand, from the definitions.
BY_HAND = {
    "recall@5": 3 / 4,
    "precision@5": 3 / 5,
    "map": (1 / 2 + 2 / 3 + 3 / 5) / 4,
    "map(denominator=retrieved)": (1 / 2 + 2 / 3 + 3 / 5) / 3,
    "ndcg": (2 / log2(3) + 3 / 2 + 1 / log2(6)) / (3 + 2 / log2(3) + 2 / 2 + 1 / log2(5)),
    "ndcg(gain=exp)": (3 / log2(3) + 7 / 2 + 1 / log2(6)) / (7 + 3 / log2(3) + 3 / 2 + 1 / log2(5)),
    "err": 3 / 8 / 2 + 5 / 8 * 7 / 8 / 3 + 5 / 8 * 1 / 8 * 1 / 8 / 5,
    "rbp": 0.2 * (0.8 + 0.8**2 + 0.8**4),
    "rbp_tail": 0.8**5,
    "rbp_residual": 0.8**5 + 0.2 * (1 + 0.8**3),
    "mrr": 1 / 2,
    "r_precision": 2 / 4,
    "iprec(recall=0.5)": 2 / 3,
    "condensed(ndcg@5)": (2 + 3 / log2(3) + 1 / 2) / (3 + 2 / log2(3) + 2 / 2 + 1 / log2(5)),
    "set_f1": 2 * 3 / (5 + 4),
    "num_rel_ret": 3,
    "gm(map)": 0.4417,
    # Found are a span at rank 2 (its share is 1/4 at rank 1) and one at rank 3, of three.
    "span_recall@5": 2 / 3,
    "span_coverage@5": (400 + 100) / 600,
    "span_precision@5": (400 + 100) / (5 * 400),
    "span_iou@5": 500 / (2000 + 600 - 500),
    "span_ndcg": (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3) + 1 / 2),
    "span_mrr@3": 1 / 2,
    "span_map": (1 / 2 + 2 / 3) / 3,
    # The stage before had d4, d3, d1 and d5 at ranks 3, 4, 5 and 6: the best order of those is the ideal one.
    "lift(ndcg@5, from=fused)": (
        (2 / log2(3) + 3 / 2 + 1 / log2(6) - 1 / 2 - 2 / log2(5) - 3 / log2(6))
        / (3 + 2 / log2(3) + 2 / 2 + 1 / log2(5) - 1 / 2 - 2 / log2(5) - 3 / log2(6))
    ),
    "leaks": 2,
    "leaks@3": 1,
    "withheld(from=fused)": 1,
    "latency.p95": 12,
    "cost.mean": 0.002,
    "chain_recall": 3 / 4,
    "chain_complete": 0,
    "hop_recall": 1 / 4,
    "calls_to_complete": 10,
    "calls.mean": 2,
    "redundant_calls": 0,
    "abstention.precision": 1,
    "abstention.recall": 1 / 2,
    "abstention.f1": 2 / 3,
    # Of the four pairs, 0.4 against 0.5 is in the wrong order.
    "abstention.auc": 3 / 4,
}


def test_the_page_is_not_stale() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "pytest_retrieval_eval.measures"], capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert PAGE.read_text(encoding="utf-8") == made, (
        "docs/reference/measures.md is stale; make it anew with python -m pytest_retrieval_eval.measures"
    )


def test_every_measure_has_its_section() -> None:
    sections = re.findall(r"^## ([\w.]+)$", page(), re.MULTILINE)
    ours = [one.name for one in registry.definitions() if one.module.startswith("pytest_retrieval_eval.")]
    assert sections == [name for name in ours if name != "ir_measures"]


def test_the_examples() -> None:
    values = {name: float(value) for name, value in re.findall(r"`([^`]+)` (\d+\.\d{4})", page())}
    assert len(values) > 40
    for name, expected in BY_HAND.items():
        assert abs(values[name] - expected) <= 0.00005 + 1e-12, name
    for name in values:
        assert str(Measure.parse(name)) == name


def test_every_spelling_on_the_page_is_read() -> None:
    rows = re.findall(r"^\| also read \| (.*?) \|$", page(), re.MULTILINE)
    assert len(rows) > 10
    for spelling in re.findall(r"`([^`]+)`", " ".join(rows)):
        found = registry.find(spelling)
        if "=" in spelling:  # a parameter of ir_measures
            assert str(Measure.parse(f"ndcg({spelling})@5")) == "ndcg(gain=exp)@5"
        elif found is not None and found.placed:
            assert Measure.parse(f"{spelling}(recall=0.5)").name == found.name
        elif found is not None and found.cutoff == "required":
            assert Measure.parse(f"{spelling}@5").name == found.name
        else:
            assert Measure.parse(spelling).name in page()
