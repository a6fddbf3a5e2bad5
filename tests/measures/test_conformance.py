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
from pytest_retrieval_eval.collection.run import Run
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import judged_ranks

SETTINGS = ("base", "base64", "complete", "rel2", "rel3", "cutoffs", "exp_err", "judged", "rbp")
RUNS = sorted(path.relative_to(DATA) for path in DATA.glob("conformance/*/expected/*"))
FILES = [(run, setting) for run in RUNS for setting in SETTINGS if (DATA / run / f"{setting}.tsv").exists()]

# Spellings of the expected files that are nobody's but theirs.
OURS = {
    r"err_cut_(\d+)\.gmax(\d)": r"err(gmax=\2)@\1",
    r"rbp_(0\.\d+)": r"rbp(p=\1)",
    r"rbp_(0\.\d+)_cut_10": r"rbp(p=\1)@10",
    r"rbp_(0\.\d+)\.rel2": r"rbp(p=\1, rel=2)",
    r"ndcg_exp_cut_(\d+)": r"ndcg(gain=exp)@\1",
    r"ndcg_exp": "ndcg(gain=exp)",
}
MEASURED = re.compile(
    r"bpref|infAP|err_cut_\d+\.gmax\d|rbp_0\.\d+(_cut_10|\.rel2)?|map|Rprec|recip_rank|ndcg|ndcg_exp"
    r"|(P|recall|ndcg_cut|map_cut|success|recip_rank_cut|F1_cut|judged|ndcg_exp_cut)_\d+"
)


def expected(path: Path) -> dict[str, dict[str, float]]:
    """Measure, as the file spells it → topic (or "all") → value."""
    values: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        topic, name, value = line.split("\t")
        if not line.startswith(("#", "topic\tmeasure")) and MEASURED.fullmatch(name):
            values.setdefault(name, {})[topic] = float(value)
    return values


@lru_cache(maxsize=1)
def qrels_of(pair: Path) -> Qrels:
    return Qrels.read(pair / "qrels.txt")


@lru_cache(maxsize=1)
def run_of(path: Path) -> Run:
    return Run.read(path)


def ours(name: str, level: int) -> Measure:
    for theirs, spelling in OURS.items():
        name = re.sub(f"^{theirs}$", spelling, name)
    measure = Measure.parse(name)
    if level > 1 and registry.definition(measure.name).binary:
        return Measure.of(measure.name, measure.cutoff, rel=level)
    return measure


@pytest.mark.parametrize(("folder", "setting"), FILES, ids=lambda part: str(part).removeprefix("conformance/"))
def test_every_value(folder: Path, setting: str) -> None:
    wanted = expected(testdata(f"{folder}/{setting}.tsv"))
    pair = (DATA / folder).parent.parent
    qrels, run = qrels_of(pair), run_of(pair / "runs" / f"{folder.name}.txt")
    level = int(setting[3:]) if setting.startswith("rel") else 1
    measures = {name: ours(name, level) for name in wanted}
    if setting == "base64":  # trec_eval's topics, on the order that 64-bit scores give
        ranks = judged_ranks(qrels, run)
        evaluation = Evaluation(qrels, run, ranks, tuple(measures.values()), trec=True)
    else:
        evaluation = evaluate(qrels, run, measures.values(), trec=True, complete=setting == "complete")
    for name, values in wanted.items():
        scores = evaluation[measures[name]]
        got = {**scores.to_dict(), "all": scores.mean}
        if setting == "complete":  # only the means are given there
            got = {"all": scores.mean}
        assert got.keys() == values.keys(), name
        wrong = {topic: (got[topic], values[topic]) for topic in got if abs(got[topic] - values[topic]) > 1e-9}
        assert not wrong, name


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
