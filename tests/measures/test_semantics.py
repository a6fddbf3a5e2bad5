"""Where tools disagree on one input: which of them gives what, and what we give.

Each row is one measure on one small collection: our value, the tools that give it too, and what others give
instead. The values of the tools were taken from trec_eval 9.0.8 and 10.0-rc3, pytrec_eval-terrier 0.5.11,
ir_measures 0.4.3, ranx 0.3.21, gdeval.pl 1.3, rbp_eval 0.2, cwl_eval 1.0.12 and others of 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.measures.evaluate import evaluate


@dataclass(frozen=True)
class Row:
    """Our value (the mean where there are several topics), whose it is too, and who gives another."""

    measure: str
    value: float
    like: str
    unlike: Mapping[str, float] = field(default_factory=dict)
    trec: bool = False
    complete: bool = False


@dataclass(frozen=True)
class Case:
    about: str
    qrels: str
    run: str
    rows: tuple[Row, ...] = ()
    refused: str = ""  # or the error that reading or measuring it is


TEN = " ".join(f"1,Q0,x{i},1,{20 - i},r" for i in range(10))
CASES = [
    Case(
        "one score: docid descending; the file's order is b, a, c",
        "1,0,a,1 1,0,b,0 1,0,c,0",
        "1,Q0,b,1,1,r 1,Q0,a,2,1,r 1,Q0,c,3,1,r",
        (
            Row("mrr", 1 / 3, "trec_eval, pytrec_eval, trectools", {"ir_measures RR@10": 1.0, "ranx, BEIR": 0.5}),
            Row("mrr@10", 1 / 3, "no other tool", {"ir_measures": 1.0}),
            Row("ndcg@3", 0.5, "trec_eval", {"ranx": 0.6309, "scikit-learn, a mean over ties": 0.7103}),
        ),
    ),
    Case(
        "one score, and the last id is relevant",
        "1,0,a,0 1,0,b,0 1,0,c,1",
        "1,Q0,b,1,1,r 1,Q0,a,2,1,r 1,Q0,c,3,1,r",
        (
            Row("mrr", 1.0, "trec_eval, trectools", {"ir_measures RR@10, ranx, cwl_eval, BEIR": 1 / 3}),
            Row("rbp(p=0.5)", 0.5, "nobody: rbp_eval takes ties apart or the file's order", {"rbp_eval -s": 0.2917}),
        ),
    ),
    Case(
        "scores that differ as doubles and not as floats",
        "1,0,a,1 1,0,b,0",
        "1,Q0,a,1,0.1234567891,r 1,Q0,b,2,0.1234567890,r",
        (
            Row("mrr", 1.0, "trec_eval 10, ranx, gdeval", {"trec_eval 9, pytrec_eval, ir_measures": 0.5}),
            Row("mrr", 0.5, "trec_eval 9, pytrec_eval, ir_measures", {"trec_eval 10, ranx": 1.0}, trec=True),
        ),
    ),
    Case(
        "scores beyond the largest float",
        "1,0,a,1 1,0,b,0 1,0,c,0",
        "1,Q0,b,2,1e39,r 1,Q0,a,3,1e400,r 1,Q0,c,3,1e38,r",
        (
            Row("mrr", 1.0, "trec_eval 10, ranx", {"trec_eval 9": 0.5}),
            Row("mrr", 0.5, "trec_eval 9, pytrec_eval", {"trec_eval 10, ranx": 1.0}, trec=True),
        ),
    ),
    Case(
        "topic 3 only in the qrels, 4 only in the run, 5 judged and nothing relevant",
        "1,0,a,1 1,0,b,0 2,0,a,1 3,0,a,1 5,0,a,0",
        "1,Q0,a,1,2,r 1,Q0,b,2,1,r 2,Q0,b,1,2,r 2,Q0,a,2,1,r 4,Q0,a,1,1,r 5,Q0,a,1,1,r",
        (
            Row("mrr", 0.5, "BEIR's averages divide so by chance", {"trec_eval -c, ir_measures, ranx": 0.375}),
            Row("ndcg@10", 0.5436, "gdeval -c", {"trec_eval -c, ir_measures, ranx": 0.4077, "gdeval": 0.8155}),
            Row("mrr", 0.5, "trec_eval 9", {"trec_eval -c": 0.375}, trec=True),
            Row("ndcg@10", 0.5436, "trec_eval 9", {"trec_eval -c": 0.4077}, trec=True),
            Row("num_q", 3, "trec_eval 9", {"trec_eval 9 -c": 4}, trec=True),
            Row("mrr", 0.375, "trec_eval -c, ir_measures, ranx", {"trec_eval": 0.5}, trec=True, complete=True),
            Row("ndcg@10", 0.4077, "trec_eval -c", {"trec_eval": 0.5436}, trec=True, complete=True),
            Row("num_q", 4, "trec_eval 9 -c", {"trec_eval 9": 3}, trec=True, complete=True),
        ),
    ),
    Case(
        "a level of 2: nDCG does not hang on it, bpref takes lower grades for not relevant",
        "1,0,a,1 1,0,b,2 1,0,c,3 1,0,d,0 1,0,e,2",
        "1,Q0,a,1,9,r 1,Q0,d,2,8,r 1,Q0,b,3,7,r 1,Q0,c,4,6,r 1,Q0,x,5,5,r 1,Q0,e,6,4,r",
        (
            Row("map", 0.7708, "trec_eval"),
            Row("map(rel=2)", 0.4444, "trec_eval -l 2, pytrec_eval, ir_measures, ranx"),
            Row("bpref", 0.25, "trec_eval"),
            Row("bpref(rel=2)", 0.0, "trec_eval -l 2, pytrec_eval, ir_measures, ranx"),
            Row("mrr(rel=2)", 1 / 3, "trec_eval -l 2"),
            Row("ndcg@3", 0.3801, "trec_eval, with any -l", {"ranx ndcg@3-l2": 0.19}),
            Row("num_rel(rel=2)", 3, "trec_eval -l 2"),
        ),
    ),
    Case(
        "grades -2, -1, 0, 2, none, 1 in this order",
        "1,0,a,-2 1,0,b,2 1,0,c,-1 1,0,d,0 1,0,e,1",
        "1,Q0,a,1,9,r 1,Q0,c,2,8,r 1,Q0,d,3,7,r 1,Q0,b,4,6,r 1,Q0,x,5,5,r 1,Q0,e,6,4,r",
        (
            Row("map", 0.2917, "trec_eval, pytrec_eval"),
            Row("bpref", 0.0, "trec_eval"),
            Row("infap", 0.375, "trec_eval, pytrec_eval"),
            Row("ndcg@10", 0.4628, "trec_eval, ir_measures, ranx"),
            Row("ndcg(gain=exp)@10", 0.4539, "gdeval, ranx"),
            Row("judged@2", 1.0, "ir_measures, measure_judged.py", {"trectools": 0.0}),
            Row("judged@5", 0.8, "ir_measures"),
            Row("unjudged@5", 0.2, "nobody", {"trec_eval 10, trectools": 0.6}),
            Row("unjudged@5", 0.6, "trec_eval 10, trectools", trec=True),
            Row("condensed(map)", 0.325, "nobody: negative grades stay judged", {"trec_eval -J, pytrec_eval": 0.5833}),
            Row("condensed(map)", 0.5833, "trec_eval -J", {"lists that keep them": 0.325}, trec=True),
            Row("condensed(ndcg@10)", 0.6697, "trec_eval -J, ir_measures", trec=True),
            Row("condensed(num_ret)", 3, "trec_eval -J", trec=True),
            Row("err(gmax=4)@10", 0.05534, "gdeval, ir_measures"),
            Row("rbp", 0.1679, "ir_measures RBP(rel=1)", {"ranx, which sums grades": 0.2703}),
            Row("graded_rbp", 0.1352, "gains of grade ÷ 2", {"trec_eval 10, whose gain is an unset variable": 0.1028}),
        ),
    ),
    Case("a topic of negative grades alone", "1,0,a,-1", "1,Q0,a,1,1,r", refused="no query counts for map"),
    Case("a document twice in the run", "1,0,a,1 1,0,b,0", "1,Q0,a,1,3,r 1,Q0,b,2,2,r 1,Q0,a,3,1,r", refused="a"),
    Case("two grades for one document", "1,0,a,1 1,0,b,0 1,0,a,0", "1,Q0,a,1,3,r", refused="grade"),
    Case("a score that is no number", "1,0,a,1", "1,Q0,a,1,nan,r", refused="(?i)nan"),
    Case("a score that is a word", "1,0,a,1", "1,Q0,b,1,-1,r 1,Q0,a,2,abc,r", refused="abc"),
    Case(
        "infinite scores are ordered",
        "1,0,a,1 1,0,b,0",
        "1,Q0,b,1,2,r 1,Q0,a,2,inf,r 1,Q0,c,3,-inf,r",
        (Row("mrr", 1.0, "trec_eval, pytrec_eval, ir_measures, ranx, gdeval"),),
    ),
    Case(
        "the first relevant document at rank 11",
        "1,0,a,1",
        f"{TEN} 1,Q0,a,11,1,r",
        (
            Row("mrr", 1 / 11, "trec_eval, ir_measures RR, ranx"),
            Row("mrr@10", 0.0, "trec_eval -M 10, ir_measures RR@10, ranx mrr@10", {"trec_eval without -M": 1 / 11}),
            Row("cut(mrr)@10", 0.0, "trec_eval -M 10"),
            Row("mrr@11", 1 / 11, "ir_measures"),
        ),
    ),
    Case(
        "R = 5; relevant at 1, 3 and 4 of six",
        "1,0,r0,1 1,0,r1,1 1,0,r2,1 1,0,r3,1 1,0,r4,1",
        "1,Q0,r0,1,9,r 1,Q0,x,2,8,r 1,Q0,r1,3,7,r 1,Q0,r2,4,6,r 1,Q0,y,5,5,r 1,Q0,z,6,4,r",
        (
            Row("map", 0.4833, "trec_eval, ir_measures, ranx", {"scikit-learn, cwl_eval": 0.8056}),
            Row("map(denominator=retrieved)", 0.8056, "scikit-learn, cwl_eval", {"trec_eval": 0.4833}),
            Row("map@3", 1 / 3, "trec_eval map_cut_3, ir_measures, ranx, trectools"),
            Row("r_precision", 0.6, "trec_eval"),
            Row("precision@10", 0.3, "trec_eval, ranx"),
            Row("set_precision", 0.5, "trec_eval"),
            Row("set_f1", 0.5455, "trec_eval, ir_measures, ranx f1"),
            Row("f1@10", 0.4, "ranx f1@10", {"trec_eval -M 10 set_F": 0.5455}),
            Row("cut(set_f1)@10", 0.5455, "trec_eval -M 10 set_F", {"ranx f1@10": 0.4}),
        ),
    ),
    Case(
        "R = 5; three returned, all relevant",
        "1,0,r0,1 1,0,r1,1 1,0,r2,1 1,0,r3,1 1,0,r4,1",
        "1,Q0,r0,1,9,r 1,Q0,r1,3,7,r 1,Q0,r2,4,6,r",
        (
            Row("precision@5", 0.6, "trec_eval, ir_measures, ranx"),
            Row("r_precision", 0.6, "trec_eval, ir_measures, ranx"),
            Row("ndcg@5", 0.7227, "trec_eval, ranx"),
            Row("judged@5", 1.0, "ir_measures, measure_judged.py"),
            Row("unjudged@5", 0.0, "trec_eval 10"),
        ),
    ),
    Case(
        "fewer judged non-relevant documents than relevant ones",
        "1,0,n,0 1,0,r1,1 1,0,r2,1 1,0,r3,1",
        "1,Q0,n,1,9,r 1,Q0,r1,2,8,r 1,Q0,r2,3,7,r",
        (Row("bpref", 0.0, "trec_eval, pytrec_eval, ranx, trectools", {"the formula of SIGIR 2004": 0.4444}),),
    ),
    Case(
        "one of four judged non-relevant documents returned",
        "1,0,n1,0 1,0,n2,0 1,0,n3,0 1,0,n4,0 1,0,r0,1 1,0,r1,1 1,0,r2,1 1,0,r3,1 1,0,r4,1 1,0,r5,1",
        "1,Q0,n1,1,9,r 1,Q0,r0,2,8,r 1,Q0,r1,3,7,r 1,Q0,r2,4,6,r 1,Q0,r3,5,5,r",
        (Row("bpref", 0.5, "trec_eval, pytrec_eval, ranx, trectools", {"trec_eval's old_bpref": 0.0}),),
    ),
    Case(
        "no judged non-relevant document",
        "1,0,a,1",
        "1,Q0,b,1,2,r 1,Q0,a,2,1,r",
        (Row("bpref", 1.0, "trec_eval, pytrec_eval", {"ranx": float("nan")}),),
    ),
    Case(
        "grades up to 2 in the collection, up to 1 in topic 2",
        "1,0,a,2 1,0,b,1 1,0,c,0 2,0,a,1 2,0,b,1",
        "1,Q0,b,1,3,r 1,Q0,a,2,2,r 1,Q0,c,3,1,r 2,Q0,a,1,3,r 2,Q0,c,2,2,r 2,Q0,b,3,1,r",
        (
            Row("err@3", 0.4219, "gdeval, if its 4 were 2", {"gdeval, ir_measures": 0.1162}),
            Row("err(gmax=4)@3", 0.1162, "gdeval, ir_measures, to their five digits"),
            Row("ndcg(gain=exp)@3", 0.8582, "gdeval"),
        ),
    ),
    Case(
        "a grade of 5, and a topic that is no number",
        "106_1,0,a,5",
        "106_1,Q0,a,1.0,3,r",
        (Row("err@3", 31 / 32, "nobody: gdeval refuses grade, topic and rank"),),
    ),
    Case(
        "grades 2, none, 0, 1 in this order",
        "1,0,a,2 1,0,b,1 1,0,c,0 1,0,z,1",
        "1,Q0,a,1,4,r 1,Q0,x,2,3,r 1,Q0,c,3,2,r 1,Q0,b,4,1,r",
        (
            Row("rbp", 0.3024, "rbp_eval -B, ir_measures, cwl_eval, trectools", {"ranx": 0.5024}),
            Row("rbp(rel=2)", 0.2, "rbp_eval -b 2"),
            Row("graded_rbp", 0.2512, "rbp_eval -f 0.5, trec_eval 10 alone", {"trec_eval 10 after ndcg": 0.1605}),
            Row("rbp@2", 0.2, "rbp_eval -d 2"),
            Row("rbp_residual", 0.5696, "rbp_eval, cwl_eval, trec_eval 10", {"trectools": 0.16}),
            Row("rbp_residual@2", 0.8, "rbp_eval -d 2"),
            Row("rbp_tail", 0.4096, "nobody: the ranks below alone"),
        ),
    ),
    Case(
        "all that was returned is judged",
        "1,0,a,1 1,0,c,0 1,0,b,1 1,0,x,0",
        "1,Q0,a,1,4,r 1,Q0,x,2,3,r 1,Q0,c,3,2,r 1,Q0,b,4,1,r",
        (
            Row("rbp_residual", 0.4096, "rbp_eval, cwl_eval", {"trec_eval 10": 0.0}),
            Row("rbp_tail", 0.4096, "rbp_eval, cwl_eval"),
        ),
    ),
    Case(
        "document 7 returned for topic 7",
        "7,0,7,1 7,0,8,1",
        "7,Q0,7,1,3,r 7,Q0,9,2,2,r 7,Q0,8,3,1,r",
        (
            Row("precision@1", 1.0, "trec_eval", {"BEIR": 0.0}),
            Row("recall@3", 1.0, "trec_eval", {"BEIR": 0.5}),
            Row("ndcg@10", 0.9197, "trec_eval, BEIR ignore_identical_ids=False", {"BEIR": 0.3869}),
        ),
    ),
    Case(
        "topic 3 has no line in the run",
        "1,0,a,1 2,0,b,1 3,0,c,1",
        "1,Q0,x,1,1,r 1,Q0,a,2,1,r 1,Q0,m,3,1,r 2,Q0,b,1,2,r",
        (
            Row("ndcg@10", 0.5, "trec_eval -c", {"MTEB, trec_eval": 0.75}),
            Row("mrr", 0.4444, "trec_eval -c", {"MTEB, trec_eval": 0.6667}),
            Row("ndcg@10", 0.75, "MTEB, trec_eval", {"trec_eval -c": 0.5}, trec=True),
        ),
    ),
    Case("a run without a tag", "1,0,a,1 1,0,b,0", "1,Q0,b,1,2 1,Q0,a,2,1", refused="columns"),
    Case(
        "a run with a seventh column",
        "1,0,a,1 1,0,b,0",
        "1,Q0,b,1,2,r,extra 1,Q0,a,2,1,r,extra",
        (Row("mrr", 0.5, "trec_eval; ir_measures, pytrec_eval and ranx raise"),),
    ),
    Case(
        "grades 0.5 and 1.5 with a level in the name",
        "1,0,a,0.5 1,0,b,1.5",
        "1,Q0,b,1,2,r 1,Q0,a,2,1,r",
        (
            Row("mrr(rel=1)", 1.0, "trec_eval, which cuts 0.5 to 0; the others raise"),
            Row("recall(rel=0.5)@1", 0.5, "nobody"),
        ),
    ),
    Case("grades 0.5 and 1.5 without one", "1,0,a,0.5 1,0,b,1.5", "1,Q0,b,1,2,r", refused="no whole numbers"),
    Case(
        "ranks that contradict the scores",
        "1,0,a,1 1,0,b,0",
        "1,Q0,b,1,1,r 1,Q0,a,2,2,r",
        (Row("mrr", 1.0, "trec_eval, pytrec_eval, ir_measures, ranx: the rank column is not read"),),
    ),
    Case(
        "topic 01 in the qrels, 1 in the run: two topics, and a gate on it is an error",
        "01,0,a,1",
        "1,Q0,b,1,1,r",
        (Row("mrr", 0.0, "ir_measures; trec_eval and ranx stop"),),
    ),
]  # fmt: skip


def lines(text: str) -> str:
    return "".join(row.replace(",", " ") + "\n" for row in text.split())


def read(case: Case, folder: Path) -> tuple[Qrels, Run]:
    (folder / "qrels.txt").write_text(lines(case.qrels))
    (folder / "run.trec").write_text(lines(case.run))
    return Qrels.read(folder / "qrels.txt"), Run.read(folder / "run.trec")


@pytest.mark.parametrize("case", [case for case in CASES if case.rows], ids=lambda case: case.about)
def test_what_we_give(case: Case, tmp_path: Path) -> None:
    qrels, run = read(case, tmp_path)
    for row in case.rows:
        evaluation = evaluate(qrels, run, row.measure, trec=row.trec, complete=row.complete)
        assert evaluation[row.measure].overall == pytest.approx(row.value, abs=6e-5), (row.measure, row.like)
        for tool, other in row.unlike.items():
            assert not abs(other - row.value) < 1e-4, f"{tool} gives what we give"


@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=lambda case: case.about)
def test_what_we_refuse(case: Case, tmp_path: Path) -> None:
    with pytest.raises((DataError, GateError), match=case.refused):
        _ = evaluate(*read(case, tmp_path), "map")["map"].mean


def test_the_table_is_whole() -> None:
    assert len(CASES) >= 30
    assert all(bool(case.rows) != bool(case.refused) for case in CASES)
    assert len({case.about for case in CASES}) == len(CASES)
