"""Every value that trec_eval and its kin give on real collections, to the last printed digit.

The expected files carry 10 significant digits; a value may differ by half a unit of the last one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest
from support import DATA, testdata

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate
from pytest_retrieval_eval.measures.evidence import Evidence, Given
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import JudgedRanks

SETTINGS = ("base", "base64", "complete", "rel2", "rel3", "condensed", "cutoffs", "exp_err", "judged", "rbp")
RUNS = sorted(path.relative_to(DATA) for path in DATA.glob("conformance/*/expected/*"))
FILES = [(run, setting) for run in RUNS for setting in SETTINGS if (DATA / run / f"{setting}.tsv").exists()]

# Spellings of the expected files that are nobody's but theirs.
OURS = {
    r"err_cut_(\d+)\.gmax(\d)": r"err(gmax=\2)@\1",
    r"rbp_(0\.\d+)": r"rbp(p=\1)",
    r"rbp_(0\.\d+)_cut_10": r"rbp(p=\1)@10",
    r"rbp_(0\.\d+)\.rel2": r"rbp(p=\1, rel=2)",
    r"rbp_(0\.\d+)\.graded": r"graded_rbp(p=\1)",
    # What is not judged does not hang on how a grade is read.
    r"rbp_resid_(0\.\d+)(\.graded|\.rel2)?": r"rbp_residual(p=\1)",
    r"rbp_resid_(0\.\d+)\.neg_unjudged": r"rbp_residual(p=\1, negative=unjudged)",
    r"rbp_resid_(0\.\d+)_cut_10": r"rbp_residual(p=\1)@10",
    r"rbp_resid_(0\.\d+)_cut_10\.neg_unjudged": r"rbp_residual(p=\1, negative=unjudged)@10",
    r"ndcg_exp_cut_(\d+)": r"ndcg(gain=exp)@\1",
    r"ndcg_exp": "ndcg(gain=exp)",
}


def expected(path: Path) -> dict[str, dict[str, float]]:
    """Measure, as the file spells it → topic (or "all") → value."""
    values: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        topic, name, value = line.split("\t")
        if not line.startswith(("#", "topic\tmeasure")):
            values.setdefault(name, {})[topic] = float(value)
    return values


@lru_cache(maxsize=1)
def qrels_of(pair: Path) -> Qrels:
    return Qrels.read(pair / "qrels.txt")


@lru_cache(maxsize=1)
def run_of(path: Path) -> Run:
    return Run.read(path)


def ours(name: str, setting: str) -> Measure:
    level = int(setting[3:]) if setting.startswith("rel") else 1
    for theirs, spelling in OURS.items():
        name = re.sub(f"^{theirs}$", spelling, name)
    measure = Measure.parse(name)
    if setting == "condensed":
        measure = Measure.of("condensed", measure=measure)
    if level > 1 and registry.definition(measure.name).binary:
        return measure.having(rel=level)
    return measure


def in_double_precision(qrels: Qrels, run: Run) -> Evaluation:
    """trec_eval's topics, on the order that 64-bit scores give."""
    ranks = JudgedRanks.of(qrels, run.locate(qrels), trec=True)
    return Evaluation(Evidence(qrels, ranks, judged=True, tied=ranks.tied()), Given(run, qrels, trec=True), ())


@pytest.mark.parametrize(("folder", "setting"), FILES, ids=lambda part: str(part).removeprefix("conformance/"))
def test_every_value(folder: Path, setting: str) -> None:
    wanted = expected(testdata(f"{folder}/{setting}.tsv"))
    pair = (DATA / folder).parent.parent
    qrels, run = qrels_of(pair), run_of(pair / "runs" / f"{folder.name}.txt")
    measures = {name: ours(name, setting) for name in wanted}
    evaluation = evaluate(qrels, run, measures.values(), trec=True, complete=setting == "complete")
    double = in_double_precision(qrels, run)
    for name, values in wanted.items():
        # trec_eval 10 reads scores as 64-bit numbers; its unj is in a file of other tools' values.
        scores = (double if setting == "base64" or name.startswith("unj") else evaluation)[measures[name]]
        got = {**scores.to_dict(), "all": scores.overall}
        if values.keys() == {"all"}:
            assert setting == "complete" or name == "gm_map"  # only what they make together is given there
            got = {"all": scores.overall}
        assert got.keys() == values.keys(), name
        wrong = {topic: (got[topic], values[topic]) for topic in got if abs(got[topic] - values[topic]) > 1e-9}
        assert not wrong, name


@pytest.mark.parametrize("folder", RUNS, ids=lambda part: str(part).removeprefix("conformance/"))
def test_where_trec_eval_10_gives_something_else(folder: Path) -> None:
    """Another rounding of recall levels, and scores of 64 bits."""
    pair = (DATA / folder).parent.parent
    evaluation = in_double_precision(qrels_of(pair), run_of(pair / "runs" / f"{folder.name}.txt"))
    for line in testdata(f"{folder}/te10_differences.tsv").read_text(encoding="utf-8").splitlines():
        topic, name, _, value = line.split("\t")
        if topic.startswith("#"):
            continue
        measure = Measure.parse(name)
        if measure.name == "iprec":
            measure = measure.having(rounding="nearest")
        scores = evaluation[measure]
        got = scores.overall if topic == "all" else scores.get(topic)
        assert got == pytest.approx(float(value), abs=1e-9), (topic, name)


def test_the_collections_are_all_here() -> None:
    testdata("conformance")
    assert len(RUNS) >= 19
    assert len(FILES) >= 100


def test_a_note_says_where_single_precision_makes_ties() -> None:
    pair = testdata("conformance/covid-r1")
    evaluation = evaluate(qrels_of(pair), run_of(pair / "runs" / "BERT.txt"), "map", trec=True)
    assert any("in 29 queries (the first is 1) 259 more documents are tied" in note for note in evaluation.warnings)


def test_the_published_leaderboard() -> None:
    """TREC-COVID round 1: the official means to their four digits."""
    pair = testdata("conformance/covid-r1")
    evaluation = evaluate(
        qrels_of(pair), run_of(pair / "runs" / "sheikh_bm25_manual.txt"), ["ndcg@10", "P@5", "map"], trec=True
    )
    assert [round(scores.mean, 4) for scores in evaluation] == [
        round(expected(pair / "expected" / "sheikh_bm25_manual" / "base.tsv")[name]["all"], 4)
        for name in ("ndcg_cut_10", "P_5", "map")
    ]
