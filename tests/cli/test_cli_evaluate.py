"""``evaluate``: values, names, what is counted, what is refused."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys

import pytest
from support import testdata

from pytest_retrieval_eval.cli.inputs import parse_where, split_measures
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.measures.evaluate import evaluate


@pytest.fixture
def qrels(files):
    return files.qrels()


@pytest.fixture
def run(files):
    return files.run("run.trec", files.hits)


# --- what is printed ---------------------------------------------------------------------------------


def test_means_and_queries(program, qrels, run):
    result = program("evaluate", qrels, run, "-m", "recall@2", "--per-query")
    assert result.status == 0
    assert result.out == (
        "q1\trecall@2\t1.0\nq2\trecall@2\t1.0\nq3\trecall@2\t0.5\nq4\trecall@2\t0.0\nall\trecall@2\t0.625\n"
    )


def test_values_have_every_digit(program, qrels, run):
    expected = evaluate(Qrels.read(qrels), Run.read(run), ["ndcg@10"])["ndcg@10"]
    values = program("evaluate", qrels, run, "-m", "ndcg@10", "--per-query").values
    assert values == {
        **{(query, "ndcg@10"): value for query, value in expected.to_dict().items()},
        ("all", "ndcg@10"): expected.mean,
    }


def test_queries_come_in_the_order_of_the_qrels(program, files):
    qrels = files.qrels(qrels={"b": {"x": 1}, "10": {"x": 1}, "2": {"x": 1}})
    run = files.run("run.trec", {"2": ["x"], "10": ["x"], "b": ["x"]})
    result = program("evaluate", qrels, run, "-m", "hit@1,hit@2", "--per-query")
    assert [row[0] for row in result.rows] == ["b", "b", "10", "10", "2", "2", "all", "all"]


def test_a_measure_is_printed_as_it_was_named(program, qrels, run):
    result = program("evaluate", qrels, run, "-m", "P_2 ndcg_cut_5", "-m", "nDCG@5, recip_rank", "-m", "P_2")
    assert [row[1] for row in result.rows] == ["P_2", "ndcg_cut_5", "nDCG@5", "recip_rank"]
    assert result.values["all", "ndcg_cut_5"] == result.values["all", "nDCG@5"]


def test_counts_are_summed_and_lists_of_cutoffs_are_read(program, qrels, run):
    result = program("evaluate", qrels, run, "-m", "num_ret,P.1,2", "-m", "gm_map map")
    assert [row[1] for row in result.rows] == ["num_ret", "P.1", "P.2", "gm_map", "map"]
    scores = evaluate(Qrels.read(qrels), Run.read(run), ["num_ret", "gm(map)"])
    assert result.values["all", "num_ret"] == sum(scores["num_ret"].values)
    assert result.values["all", "gm_map"] == scores["gm(map)"].overall < result.values["all", "map"]
    document = json.loads(program("evaluate", qrels, run, "-m", "num_ret gm_map", "--json").out)
    assert [entry.get("sum") for entry in document["measures"]] == [result.values["all", "num_ret"], None]
    assert document["measures"][1]["geometric mean"] == result.values["all", "gm_map"]


def test_measures_of_a_module(program, module, qrels, run):
    name = module(
        "import numpy as np\n"
        "from pytest_retrieval_eval import measure\n"
        "@measure()\n"
        "def third(ranks, measure):\n"
        "    return np.full(ranks.queries, 0.25)\n"
    )
    result = program("evaluate", qrels, run, "-m", "third", "--plugin", name)
    assert result.values == {("all", "third"): 0.25}
    assert program("evaluate", qrels, run, "-m", "third").err.count("unknown measure third") == 1
    assert program("compare", qrels, run, run, "-m", "third", "--plugin", name).status == 0
    result = program("evaluate", qrels, run, "-m", "third", "--plugin", "no_such_module")
    assert result.status == 2
    assert "there is no module no_such_module" in result.err


def test_several_measures_in_one_value():
    assert split_measures(["map P_5,\tndcg(gain=exp, rel=2)@10\n", "recall(rel=2)@5"]) == [
        "map",
        "P_5",
        "ndcg(gain=exp, rel=2)@10",
        "recall(rel=2)@5",
    ]


def test_without_m_the_usual_measures_are_printed(program, qrels, run):
    result = program("evaluate", qrels, run)
    assert result.status == 0
    measures = [row[1] for row in result.rows]
    assert measures == ["ndcg@10", "mrr@10", "map", "precision@10", "recall@10", "recall@100", "judged@10"]


def test_the_usual_measures_are_those_that_fit(program, files):
    run = Run.of({"q1": ["a"], "q2": []}, name="short", depth=20)
    run.save("short.run.jsonl")
    measures = [row[1] for row in program("evaluate", files.qrels(), "short.run.jsonl").rows]
    assert "recall@10" in measures
    assert "recall@100" not in measures

    graded = files.qrels("graded.txt", {"q1": {"a": 0.5, "b": 0.25}})
    assert [row[1] for row in program("evaluate", graded, "short.run.jsonl").rows] == ["ndcg@10", "judged@10"]


def test_the_usual_measures_of_a_run_without_documents(program, files):
    Run.of({"q1": [], "q2": []}, name="nothing").save("nothing.run.jsonl")
    result = program("evaluate", files.qrels(), "nothing.run.jsonl")
    assert result.status == 0
    assert result.values["all", "ndcg@10"] == 0.0
    assert ("all", "judged@10") not in result.values
    assert program("evaluate", files.qrels(), "nothing.run.jsonl", "-m", "judged@10").status == 2


def test_json(program, files):
    dataset, run = files.dataset(), files.run("run.trec", files.hits)
    arguments = ("evaluate", dataset, run, "-m", "P_2", "-m", "mrr", "--where", "type=policy", "--json")
    document = json.loads(program(*arguments, "--per-query").out)
    assert document["measures"][0] == {
        "name": "P_2",
        "measure": "precision@2",
        "mean": 0.5,
        "n": 2,
        "queries": {"q1": 0.5, "q3": 0.5},
    }
    assert (document["run"], document["where"], document["mode"]) == (run, {"type": "policy"}, "default")
    assert "mean over 2 queries" in document["notes"]
    assert "queries" not in json.loads(program(*arguments).out)["measures"][0]


def test_ids_cannot_break_the_table(program, files):
    qrels = files.write("qrels.json", json.dumps({"tab\there": {"a": 1}, "all": {"a": 1}}))
    run = files.write("run.json", json.dumps({"tab\there": ["a"], "all": []}))
    result = program("evaluate", qrels, run, "-m", "hit@1", "--per-query")
    assert result.rows == [["tab\\there", "hit@1", "1.0"], ["all", "hit@1", "0.0"], ["all", "hit@1", "0.5"]]
    assert "note: a query has the id all; the means are the last lines" in result.err


# --- what is counted ---------------------------------------------------------------------------------


def test_what_is_not_counted_is_said_once_each(program, files):
    dataset = files.dataset()
    run = files.run("run.trec", {"q1": ["a"], "q2": ["b", "x", "y"], "q9": ["z"]})
    result = program("evaluate", dataset, run, "-m", "recall@2 hit@1")
    assert result.values == {("all", "recall@2"): 0.5, ("all", "hit@1"): 0.5}
    notes = result.err.splitlines()
    assert all(line.startswith("note: ") for line in notes)
    assert len(set(notes)) == len(notes)
    assert "note: 2 queries returned nothing: q3, q4" in notes
    assert "note: 1 run query has no judgments: q9" in notes
    assert "note: 1 query is unanswerable and not counted: q5" in notes
    assert "note: 1 query is unjudged and not counted: q6" in notes
    assert "note: 1 list is shorter than 2 ranks (1 hit): q1" in notes
    assert "note: mean over 4 queries" in notes


def test_different_numbers_of_queries_are_named(program, qrels, run):
    result = program("evaluate", qrels, run, "-m", "hit@1 hit(rel=2)@1")
    assert "note: means over different numbers of queries: hit@1 4, hit(rel=2)@1 2" in result.err.splitlines()


def test_no_query_counts(program, qrels, run):
    result = program("evaluate", qrels, run, "-m", "recall@2 recall(rel=9)@2")
    assert (result.status, result.out) == (2, "")
    assert "no query counts for recall(rel=9)@2" in result.errors[0]


def test_where(program, files):
    dataset, run = files.dataset(), files.run("run.trec", files.hits)

    def recall(*where):
        arguments = [word for item in where for word in ("--where", item)]
        return program("evaluate", dataset, run, "-m", "recall@2", *arguments)

    assert recall("type=policy").values["all", "recall@2"] == 0.75
    assert recall("type=policy", "type=faq").values["all", "recall@2"] == 0.625
    assert recall('type=["policy", "faq"]').values["all", "recall@2"] == 0.625
    assert recall("type=policy", "year=2024").values["all", "recall@2"] == 0.5
    assert recall("type=polcy").errors == [
        'pytest-retrieval-eval evaluate: where type = "polcy": no query has it; did you mean "policy"?'
    ]
    assert "did you mean 2024?" in recall('year="2024"').err
    assert recall("typ=policy").status == 2
    assert "expected TAG=VALUE" in recall("policy").err


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], None),
        (["a=b=c"], {"a": "b=c"}),
        (["a=true", "b=null", "c=1.5", 'd="true"'], {"a": True, "b": None, "c": 1.5, "d": "true"}),
        (["a=NaN", "b=", "c=[", "d=Infinity"], {"a": "NaN", "b": "", "c": "[", "d": "Infinity"}),
        (["a=x", "a=y"], {"a": ["x", "y"]}),
    ],
)
def test_values_of_where(items, expected):
    assert parse_where(items) == expected


def test_where_needs_tags(program, files, qrels, run):
    result = program("evaluate", qrels, run, "--where", "type=policy")
    assert result.status == 2
    assert "no query of qrels.txt has a tag; give the folder of the dataset, or tags with --queries" in result.err

    queries = f"{files.dataset()}/queries.jsonl"
    arguments = ("evaluate", qrels, run, "--queries", queries, "--where", "type=policy", "-m", "recall@2")
    assert program(*arguments).values["all", "recall@2"] == 0.75


def test_where_the_queries_come_from(program, files, run):
    dataset = files.dataset()
    result = program("evaluate", dataset, run, "--queries", f"{dataset}/queries.jsonl")
    assert "--queries goes with a file of judgments" in result.err
    result = program("evaluate", files.qrels(), run, "--split", "dev")
    assert "only a dataset folder has splits" in result.err
    assert program("evaluate", dataset, run, "--split", "dev", "-m", "hit@1").values["all", "hit@1"] == 0.5
    assert "there is no split 'dve'; did you mean dev?" in program("evaluate", dataset, run, "--split", "dve").err


def test_a_dataset_in_one_file(program, files, run):
    rows = [
        {"query_id": "q1", "query": "one", "relevant": ["a"], "tags": {"type": "x"}},
        {"query_id": "q2", "query": "two", "relevant": {"z": 1}, "tags": {"type": "y"}},
    ]
    path = files.write("small.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert program("evaluate", path, run, "-m", "hit@1").values["all", "hit@1"] == 0.5
    assert program("evaluate", path, run, "-m", "hit@1", "--where", "type=x").values["all", "hit@1"] == 1.0


def test_trec_mode_counts_the_topics_of_both_files(program, files):
    qrels = files.qrels(qrels={"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 0}, "4": {"a": 0}})
    run = files.run("run.trec", {"1": ["a"], "3": ["a"], "9": ["a"]})
    result = program("evaluate", qrels, run, "-m", "P_1", "--trec", "--per-query")
    assert result.values == {("1", "P_1"): 1.0, ("3", "P_1"): 0.0, ("all", "P_1"): 0.5}
    notes = result.err
    assert "2 topics of the qrels are not in the run and not counted (--trec-complete counts them 0): 2, 4" in notes
    assert "1 topic has nothing relevant and counted 0, as in trec_eval: 3" in notes
    assert "returned nothing" not in notes

    result = program("evaluate", qrels, run, "-m", "P_1", "--trec-complete")
    assert result.values == {("all", "P_1"): 0.25}
    assert "2 topics of the qrels are not in the run and counted 0: 2, 4" in result.err

    result = program("evaluate", qrels, run, "-m", "P_1")
    assert result.values == {("all", "P_1"): 0.5}
    assert "2 queries returned nothing: 2, 4" in result.err


def test_trec_mode_compares_scores_as_float32(program, files):
    qrels = files.qrels(qrels={"1": {"a": 1}})
    run = files.write("run.trec", "1 Q0 a 1 0.900000001 t\n1 Q0 b 2 0.9 t\n")
    assert program("evaluate", qrels, run, "-m", "mrr").values["all", "mrr"] == 1.0
    result = program("evaluate", qrels, run, "-m", "mrr", "--trec")
    assert result.values["all", "mrr"] == 0.5
    assert "float32" in result.err


# --- what is refused ---------------------------------------------------------------------------------


def test_failures_of_the_retriever_are_no_score(program, files):
    hits = {"q1": ["a"], "q2": [], "q3": ["c"], "q4": ["d"]}
    Run.of(hits, name="cand", errors={"q2": "TimeoutError: 5 s"}).save("cand.run.jsonl")
    arguments = ("evaluate", files.qrels(), "cand.run.jsonl", "-m", "hit@1")
    result = program(*arguments)
    assert (result.status, result.out) == (2, "")
    assert "the retriever failed on 1 of 4 queries, the first is q2: TimeoutError: 5 s" in result.err
    result = program(*arguments, "--allow-failures", "1")
    assert result.values["all", "hit@1"] == 0.75
    assert "1 query made the retriever fail: q2" in result.err


def test_a_failure_outside_the_slice_does_not_matter(program, files):
    hits = {"q1": ["a"], "q2": [], "q3": ["c"], "q4": ["d"]}
    Run.of(hits, name="cand", errors={"q2": "TimeoutError: 5 s"}).save("cand.run.jsonl")
    result = program("evaluate", files.dataset(), "cand.run.jsonl", "-m", "hit@1", "--where", "type=policy")
    assert result.values["all", "hit@1"] == 1.0


def test_a_cutoff_below_the_depth_of_the_run(program, files):
    Run.of({"q1": ["a"]}, name="cand", depth=10).save("cand.run.jsonl")
    result = program("evaluate", files.qrels(), "cand.run.jsonl", "-m", "hit@1 recall@20")
    assert (result.status, result.out) == (2, "")
    assert "recall@20 looks at 20 ranks, but cand.run.jsonl declares depth 10: retrieve at least 20 hits" in result.err
    made = Run.from_retriever(lambda text: ["a"], {"q1": "who?"}, name="shop:search", depth=10, progress=False)
    made.save("cand.run.jsonl")
    result = program("evaluate", files.qrels(), "cand.run.jsonl", "-m", "hit@1 recall@20")
    assert "depth 10: make it with `pytest-retrieval-eval run --depth 20`, or measure at k = 10" in result.err


def test_a_run_about_other_queries(program, files, qrels):
    result = program("evaluate", qrels, files.run("run.trec", {"Q1": ["a"], "Q2": ["b"]}), "-m", "hit@1")
    assert (result.status, result.out) == (2, "")
    assert "run.trec has none of the 4 judged queries of qrels.txt" in result.err
    assert "They match without regard to case: 'q1' in the labels, 'Q1' in the run." in result.err


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("recal@5", "unknown measure recal@5: did you mean recall@5?"),
        ("ndcg(gian=exp)@5", "ndcg has no parameter gian; did you mean gain?"),
        ("recall@0", "the cut-off must be at least 1"),
        ("recall@1.5", "the cut-off must be a whole number of at least 1, not 1.5"),
        ("ndcg(gain=exp@5", "a bracket is not closed"),
        ("", "-m '' names no measure; write one such as ndcg@10"),
        (" , ", "names no measure"),
    ],
)
def test_measures_that_there_are_not(program, qrels, run, measure, said):
    result = program("evaluate", qrels, run, "-m", "hit@1", "-m", measure)
    assert (result.status, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("pytest-retrieval-eval evaluate: ")
    assert said in result.err


GOOD_QRELS = "1 0 a 1\n2 0 b 1\n"
GOOD_RUN = "1 Q0 a 1 2.5 t\n2 Q0 b 1 2.5 t\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # cases 4, 33 and 39: conflicting grades, an empty file, a cut line
        ("1 0 a 0\n1 0 a 1\n", "qrels.txt:2: query '1', document 'a' has the grade 1, but 0 at qrels.txt:1"),
        ("", "no judgments in qrels.txt"),
        ("\n\n", "no judgments in qrels.txt"),
        ("1 0 a 1\n1 0 b", "qrels.txt:2"),
        ("1 0 a 1\n1 0 b x\n", "qrels.txt:2"),
        ("1 0 a nan\n", "qrels.txt:1"),
        (b"1 0 \xff 1\n", "qrels.txt:1: byte 0xff"),
    ],
)
def test_qrels_that_cannot_be_read(program, files, text, said):
    result = program("evaluate", files.write("qrels.txt", text), files.write("run.trec", GOOD_RUN))
    assert (result.status, result.out) == (2, "")
    assert len(result.errors) == 1
    assert result.errors[0].startswith("pytest-retrieval-eval evaluate: ")
    assert said in result.errors[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # cases 24 and 39: NaN, five columns, a decimal comma
        ("1 Q0 a 1 2.5\n", "run.trec:1"),
        ("1 Q0 a 1 2.5 t\n2 Q0 b 1 0,5 t\n", "run.trec:2"),
        ("1 Q0 a 1 nan t\n", "run.trec:1: query '1', document 'a': the score 'nan' is NaN"),
        ("1 Q0 a 1 2.5 t\n1 Q0 a 2 2.0 t\n", "run.trec:2: query '1'"),
        ("", "run.trec: the run has no line"),
    ],
)
def test_runs_that_cannot_be_read(program, files, text, said):
    result = program("evaluate", files.write("qrels.txt", GOOD_QRELS), files.write("run.trec", text))
    assert (result.status, result.out) == (2, "")
    assert len(result.errors) == 1
    assert said in result.errors[0]


def test_files_that_are_not_there(program, files, here):
    qrels, run = files.write("qrels.txt", GOOD_QRELS), files.write("run.trec", GOOD_RUN)
    (here / "folder").mkdir()
    files.write("cut.trec.gz", gzip.compress(GOOD_RUN.encode())[:-9])
    for arguments, said in [
        (("qrel.txt", run), "qrel.txt: there is no such file; did you mean qrels.txt?"),
        ((qrels, "run.trc"), "run.trc: there is no such file; did you mean run.trec?"),
        ((qrels, "folder"), "folder is a folder; expected a file"),
        (("folder", run), "folder: the folder has no qrels/; expected judgments in qrels/test.tsv"),
        ((qrels, "cut.trec.gz"), "cut.trec.gz: the gzip file is cut off"),
    ]:
        result = program("evaluate", *arguments)
        assert (result.status, result.out) == (2, "")
        assert result.errors == [f"pytest-retrieval-eval evaluate: {said}"] or said in result.errors[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_would_lose_its_beginning(program, qrels):
    os.mkfifo("pipe.trec")
    result = program("evaluate", qrels, "pipe.trec")
    assert (result.status, result.out) == (2, "")
    assert "pipe.trec is a pipe or a device; expected a file" in result.err


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        # cases 36, 38 and 40: byte order marks, CRLF, tabs, blank lines, comments, BEIR's header
        ("\ufeff" + GOOD_QRELS, "\ufeff" + GOOD_RUN),
        (GOOD_QRELS.replace("\n", "\r\n"), GOOD_RUN.replace("\n", "\r\n")),
        ("1\t0  a 1\n\n# note\n2 0\tb\t1\n", "1\tQ0 a  1 2.5\tt\n\n# a note\n2 Q0 b 1 2.5 t"),
        ("query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n", GOOD_RUN),
        ("1 0 a 1\n1 0 a 1\n2 0 b 1\n", GOOD_RUN),
    ],
    ids=["BOM", "CRLF", "blanks and comments", "BEIR header", "identical repeat"],
)
def test_files_as_editors_and_tools_leave_them(program, files, qrels, run):
    result = program(
        "evaluate",
        files.write("qrels.txt", qrels),
        files.write("run.trec", run),
        "-m",
        "hit@1",
        "--per-query",
    )
    assert (result.status, result.errors) == (0, [])
    assert result.values == {("1", "hit@1"): 1.0, ("2", "hit@1"): 1.0, ("all", "hit@1"): 1.0}


def test_an_identical_repeat_is_a_note(program, files):
    qrels = files.write("qrels.txt", "1 0 a 1\n1 0 a 1\n")
    result = program("evaluate", qrels, files.write("run.trec", GOOD_RUN), "-m", "hit@1")
    assert "note: 1 judgment is repeated with the same grade in qrels.txt and counted once" in result.err


# --- what other tools give ---------------------------------------------------------------------------

SPELLINGS = (
    r"ndcg_exp_cut_(\d+)=ndcg(gain=exp)@\1",
    r"judged_(\d+)=judged@\1",
    r"recip_rank_cut_(\d+)=mrr@\1",
    r"F1_cut_(\d+)=f1@\1",
)
CUT = "P|recall|ndcg_cut|map_cut|success|ndcg_exp_cut|judged|recip_rank_cut|F1_cut"
OURS = rf"^(map|Rprec|recip_rank|ndcg|({CUT})_\d+)$"


@pytest.mark.parametrize(
    ("mode", "settings", "pairs"),
    [
        ("--trec --per-query", "base,exp_err,judged,cutoffs", "trec-eval-test/|covid-r1/(BERT|wistud)"),
        ("--trec-complete", "complete", "trec-eval-test/|cacm|robust03/M"),
    ],
)
def test_values_of_other_tools(mode, settings, pairs):
    checker = testdata("conformance/check_expected.py")
    ours = f"{shlex.quote(sys.executable)} -m pytest_retrieval_eval.cli evaluate"
    command = [
        sys.executable,
        str(checker),
        *("--command", f'{ours} {{qrels}} {{run}} {mode} -m "$(cat {{measures}})"'),
        *("--settings", settings, "--pairs", pairs, "--measures", OURS, "--tol", "1e-9"),
        *(word for spelling in SPELLINGS for word in ("--rename", spelling)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 with a non-zero exit" in done.stdout


# --- gold spans --------------------------------------------------------------------------------------


def test_gold_spans(program, here):
    """A folder with gold spans alone; the chunk table says what the hits are."""
    folder = here / "shop"
    folder.mkdir()
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "refund?"}\n')
    (folder / "spans.jsonl").write_text('{"query_id": "q1", "doc_id": "guide", "start": 50, "end": 150}\n')
    table = [("c1", 0, 100), ("c2", 100, 200)]
    (folder / "chunks.jsonl").write_text(
        "".join(json.dumps({"chunk_id": name, "doc_id": "guide", "start": a, "end": z}) + "\n" for name, a, z in table)
    )
    (here / "old.trec").write_text("q1 Q0 c1 1 2 run\nq1 Q0 c2 2 1 run\n")
    (here / "new.trec").write_text("q1 Q0 c2 1 2 run\n")
    result = program("evaluate", "shop", "old.trec", "-m", "span_coverage@1 span_recall@1 span_iou@2")
    assert result.out == "all\tspan_coverage@1\t0.5\nall\tspan_recall@1\t1.0\nall\tspan_iou@2\t0.5\n"
    usual = program("evaluate", "shop", "old.trec")
    assert ("all", "span_recall@5") in usual.values
    compared = program("compare", "shop", "old.trec", "new.trec", "--gate", "span_coverage@2 >= baseline")
    assert compared.status == 1
    assert "cut at 100" in compared.out
    assert "span_ndcg@10  1.000 → 1.000" in program("compare", "shop", "old.trec", "new.trec").out
    (folder / "chunks.jsonl").unlink()
    missing = program("evaluate", "shop", "old.trec", "-m", "span_recall@1")
    assert missing.status == 2
    assert "put chunks.jsonl" in missing.err
