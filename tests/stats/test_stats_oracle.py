"""Paired tests between real systems, against the values that other tools gave for them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from support import testdata

from pytest_retrieval_eval.stats import benjamini_hochberg, bootstrap_mean, holm, randomization_test, t_test

COLLECTIONS = ["covid-r1", "cast21-docs", "robust03", "vaswani"]


def load(collection: str) -> tuple[dict[str, list[dict[str, Any]]], dict[str, dict[str, dict[str, float]]]]:
    """The comparisons per measure, and the values per run, measure and topic."""
    file = testdata(f"conformance/{collection}/significance.json")
    comparisons = json.loads(file.read_text(encoding="utf-8"))["measures"]
    values: dict[str, dict[str, dict[str, float]]] = {}
    for run in {row[side] for rows in comparisons.values() for row in rows for side in "AB"}:
        values[run] = {}
        table = testdata(f"conformance/{collection}/expected/{run}/base.tsv").read_text(encoding="utf-8")
        for line in table.splitlines():
            topic, measure, value = line.split("\t")
            if topic != "all" and measure in comparisons:
                values[run].setdefault(measure, {})[topic] = float(value)
    return comparisons, values


def monte_carlo_error(p: float, resamples: int = 200_000) -> float:
    return 5.0 * math.sqrt(p * (1.0 - p) / resamples) + 1e-5


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_real_systems(collection: str) -> None:
    comparisons, values = load(collection)
    exact = 0
    for measure, rows in comparisons.items():
        for row in rows:
            a, b = values[row["A"]][measure], values[row["B"]][measure]
            topics = sorted(a.keys() & b.keys())
            differences = np.array([a[topic] - b[topic] for topic in topics])
            where = f"{collection} {measure} {row['A']} {row['B']}"
            assert len(topics) == row["n"], where

            t = t_test(differences)
            assert t.p_two_sided == pytest.approx(row["p_ttest"], rel=1e-6), where
            assert t.statistic == pytest.approx(row["t"], rel=1e-6), where

            test = randomization_test(differences, resamples=50_000)
            assert test.n_different == row["wins"] + row["losses"], where
            if row["p_randomization_exact"] is not None and test.resamples is None:
                exact += 1
                # Theirs counts ties to within 1e-12, ours to within 1e-9: of 2**30 sums a few lie between.
                assert test.p_two_sided == pytest.approx(row["p_randomization_exact"], abs=2e-8), where
            p = row["p_randomization_mc"]
            error = monte_carlo_error(p) + (monte_carlo_error(p, 50_000) if test.resamples else 0.0)
            assert test.p_two_sided == pytest.approx(p, abs=error), where
            assert min(test.p_worse, test.p_better) <= test.p_two_sided / 2.0 + 1e-12, where

            first = row["first12"]
            twelve = np.array([a[topic] - b[topic] for topic in first["topics"]])
            assert randomization_test(twelve).p_two_sided == pytest.approx(first["p_exact"], abs=1e-12), where

            low, high = row["bootstrap_ci95"]
            interval = bootstrap_mean(differences)
            # Theirs is the percentile interval: BCa moves the ends, by less than a fifth of the width here.
            assert interval.low == pytest.approx(low, abs=0.2 * (high - low)), where
            assert interval.high == pytest.approx(high, abs=0.2 * (high - low)), where
    assert exact or collection not in ("covid-r1", "robust03")


@pytest.mark.parametrize("collection", ["covid-r1", "robust03"])
def test_adjusted_p_values(collection: str) -> None:
    comparisons, _ = load(collection)
    for rows in comparisons.values():
        p = [row["p_ttest"] for row in rows]
        assert holm(p) == pytest.approx([row["adjusted"]["holm"] for row in rows], rel=1e-9)
        assert benjamini_hochberg(p) == pytest.approx([row["adjusted"]["fdr_bh"] for row in rows], rel=1e-9)
