"""``compare``: the report, gates, and the exit status."""

from __future__ import annotations

import json
import subprocess

import pytest

from pytest_retrieval_eval.cli import main
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.gates.verdict import Verdict


@pytest.fixture
def best(files):
    return files.run("best.trec", files.best)


@pytest.fixture
def cand(files):
    return files.run("cand.trec", files.hits)


@pytest.fixture
def compare(program, files, best, cand):
    """Compare the best run with a worse one, on judgments with texts and tags."""
    dataset = files.dataset()

    def call(*arguments, sides=(best, cand), on=dataset):
        return program("compare", on, *sides, *arguments)

    return call


# --- the report --------------------------------------------------------------------------------------


def test_without_a_gate_it_reports_and_the_status_is_0(compare):
    result = compare("-m", "recall@2")
    assert (result.status, result.errors) == (0, [])
    lines = result.out.splitlines()
    assert lines[:2] == ["small: best → cand", ""]
    assert lines[2].startswith("recall@2  1.000 → 0.625   Δ −0.375  95 % CI [")
    assert lines[3].startswith("2 worse · 0 better · 2 equal of 4")
    assert 'q4  recall@2 1.000 → 0.000  "text of q4"   (type=faq)' in lines
    assert lines.index('q4  recall@2 1.000 → 0.000  "text of q4"   (type=faq)') < next(
        place for place, line in enumerate(lines) if line.startswith("q3  recall@2 1.000 → 0.500")
    )
    assert not any(word in result.out for word in ("FAILED", "PASSED", ">=", "weak"))


def test_without_measures_the_usual_ones_are_compared(compare):
    out = compare().out
    for measure in ("ndcg@10", "recall@10", "mrr@10"):
        assert f"\n{measure}  " in out


def test_a_note_is_said_once(compare):
    out = compare("-m", "hit@1 hit@2 hit@3").out
    assert out.count("1 query is unanswerable and not counted: q5") == 1


def test_a_run_with_itself(compare, best):
    result = compare("-m", "recall@2", sides=(best, best))
    assert result.status == 0
    assert "0 worse · 0 better · 4 equal of 4: identical" in result.out
    assert "p = 1 two-sided" in result.out


def test_more_queries_with_v(program, files):
    many = {f"q{i:03}": {"a": 1} for i in range(70)}
    qrels = files.qrels(qrels=many)
    good = files.run("good.trec", {query: ["a"] for query in many})
    bad = files.run("bad.trec", {query: ["b", "a"] for query in many})

    def told(*arguments):
        result = program("compare", qrels, good, bad, "-m", "hit@1", *arguments)
        assert result.status == 0
        return sum(line.startswith("q0") for line in result.out.splitlines())

    assert (told(), told("-v"), told("-vv"), told("-v", "-v")) == (15, 60, 70, 70)


def test_options_reach_the_evidence(compare):
    assert "one-sided .01)" in compare("-m", "recall@2", "--alpha", "0.01").out
    assert "one-sided (paired randomization" in compare("-m", "recall@2", "--sided", "one").out
    result = compare("-m", "recall@2", "--where", "type=policy")
    assert "small, where type=policy: best → cand" in result.out
    assert "1 worse · 0 better · 1 equal of 2" in result.out


def test_tags_and_texts_from_a_file(compare, files):
    result = compare("-m", "recall@2", "--queries", "small/queries.jsonl", on=files.qrels())
    assert '"text of q4"   (type=faq)' in result.out
    assert "has a tag; give the folder" in compare("--where", "type=faq", on=files.qrels()).err


def test_json(compare):
    result = compare("-m", "P_2", "--gate", "recall@2 >= baseline", "--where", "type=policy", "--json")
    assert result.status == 1
    document = json.loads(result.out)
    assert (document["baseline"], document["candidate"]) == ("best.trec", "cand.trec")
    assert document["where"] == {"type": "policy"}
    (report,) = document["measures"]
    assert (report["measure"], report["n"], report["reference"], report["value"]) == (
        "precision@2",
        2,
        0.75,
        0.5,
    )
    assert not {"gate", "status", "reason"} & set(report)
    (gate,) = document["gates"]
    verdict = Verdict.from_dict(gate)
    assert (verdict.status, verdict.worst[0].query_id) == ("failed", "q3")


# --- gates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "arguments", "status", "word"),
    [
        ("recall@2 >= baseline", (), 1, "FAILED"),
        ("recall@2 >= baseline - 0.4", (), 0, "WEAK"),
        ("recall@2 >= 0.6 * baseline", (), 0, ""),
        ("recall@2 <= baseline", (), 0, ""),
        ("recall@2 >= 0.625", (), 0, "PASSED"),
        ("recall@2 > 0.625", (), 1, "FAILED"),
        ("recall@2 >= against(best.trec) - 0.4", (), 0, ""),
        ("recall@2 >= baseline", ("--where", "type=faq"), 1, "FAILED"),
        ("recall@1 >= baseline - 0.6", ("--where", "type=policy", "--rule", "each"), 0, "PASSED"),
        ("recall@2 >= baseline", ("--rule", "each", "--allow", "1"), 1, "FAILED"),
        ("recall@2 >= baseline", ("--rule", "each", "--allow", "2"), 0, "PASSED"),
        ("recall@2 >= baseline - 0.5", ("--rule", "noninferior"), 1, "FAILED"),
        ("recall@2 >= baseline", ("--rule", "significant"), 1, "FAILED"),
        ("recall@2 >= baseline - 0.4", ("--judged", "0.9"), 1, "INCONCLUSIVE"),
        ("recall@2 >= baseline - 0.4", ("--by", "type", "--min-n", "2"), 1, "failed   type=faq"),
        ("recall@2 >= baseline - 0.5", ("--by", "type", "--min-n", "2"), 0, "type=policy"),
        (
            "recall@2 >= baseline",
            ("--by", "type", "--min-n", "2", "--rule", "significant", "--correction", "bh"),
            1,
            "p adjusted by Benjamini–Hochberg over 2 slices",
        ),
    ],
)
def test_gates_decide_the_status(compare, gate, arguments, status, word):
    result = compare("--gate", gate, *arguments)
    assert (result.status, result.errors) == (status, [])
    assert word in result.out
    assert "a comparison raises where it does not hold" not in result.out


def test_a_floor_that_holds_does_not_hide_a_loss(compare):
    # case 60
    result = compare("--gate", "recall@2 >= 0.6", "--gate", "recall@2 >= baseline")
    assert result.status == 1
    assert "recall@2 >= 0.6: PASSED. 0.625 is above 0.600" in result.out
    assert "recall@2 >= baseline: FAILED. 0.625 is below 1.000" in result.out
    assert result.out.endswith("2 gates: 1 passed, 1 failed\n")


def test_measures_beside_gates(compare):
    result = compare("--gate", "recall@2 >= 0.6", "-m", "hit@1")
    assert result.status == 0
    assert "\nhit@1  1.000 → " in result.out
    assert result.out.index("\nhit@1  ") < result.out.index("recall@2 >= 0.6: PASSED")


def test_a_gate_that_cannot_be_decided_leaves_the_others_their_verdicts(compare, files):
    result = compare(
        "--gate",
        "recall(rel=9)@2 >= 0.1",
        "--gate",
        "recall@2 >= baseline",
        "--gate",
        "hit@1 >= baseline[old]",
    )
    assert result.status == 2
    assert "recall@2 >= baseline: FAILED" in result.out
    assert "3 gates: 2 error, 1 failed" in result.out
    first, second = result.errors
    assert first.startswith("pytest-retrieval-eval compare: recall(rel=9)@2 >= 0.1: ")
    assert "Create it with: pytest-retrieval-eval run --dataset small --retriever MODULE:NAME -o " in second


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        # case 59: a mistyped measure and an empty gate are no passes
        ("recal@5 >= baseline", "did you mean recall@5?"),
        ("", "an empty gate measures nothing"),
        ("recall@5", "there is no comparison"),
        ("recall@5 >= 80%", "a target is a number such as 0.8"),
        ("recall@5 == 0.8", "means are compared with >=, >, <= or <"),
        ("recall@5 >= baselin", "did you mean baseline?"),
        ("recall@5 >= nan", "'nan' is no target"),
        ("recall@2 >= against(none.trec)", "none.trec: there is no such file"),
    ],
)
def test_gates_that_are_none(compare, gate, said):
    result = compare("--gate", "recall@2 >= 0.1", "--gate", gate)
    assert (result.status, result.out) == (2, "")
    assert len(result.errors) == 1
    assert said in result.errors[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rule", "each"), "--rule says how a gate decides, and there is none; add --gate"),
        (("--judged", "0.5"), "--judged says how a gate decides"),
        (("--allow", "1"), "--allow says how a gate decides"),
        (("--by", "type"), "--by says how a gate decides"),
        (("--min-n", "2"), "--min-n says how a gate decides"),
        (("--gate", "hit@1 >= 0", "--by", "tpye"), "did you mean type?"),
        (("--gate", "hit@1 >= 0", "--by", "type"), "every slice has fewer than 10 counted queries"),
        (("--gate", "hit@1 >= 0", "--allow", "1"), "allow=1 counts queries under rule='each'"),
        (("--alpha", "0.7"), "alpha= lies between 0 and 0.5"),
        (("--alpha", "nan"), "alpha="),
        (("-m", "recal@5"), "did you mean recall@5?"),
        (("--where", "type=polcy"), 'did you mean "policy"?'),
        (("--gate", "hit@1 >= baseline", "--rule", "noninferior"), "needs a margin above 0"),
    ],
)
def test_wrong_use(compare, arguments, said):
    result = compare(*arguments)
    assert result.status == 2
    assert len(result.errors) == 1
    assert said in result.errors[0]


# --- where runs come from ----------------------------------------------------------------------------


def test_a_baseline_by_its_name(compare, files, cand):
    Run.of(files.best, name="stored", depth=10).save("small/baselines/main.run.jsonl.gz")
    assert "small: main → cand" in compare("-m", "recall@2", sides=("main", cand)).out
    assert compare("--gate", "recall@2 >= baseline[main]", sides=(cand, cand)).status == 1
    result = compare("-m", "recall@2", sides=("mian", cand))
    assert result.status == 2
    assert "no baseline yet (small/baselines/mian.run.jsonl.gz does not exist). Create it with: " in result.err


def test_a_file_beside_a_baseline_of_the_same_name(compare, files, best, cand):
    Run.of(files.hits).save("small/baselines/main.run.jsonl.gz")
    files.run("main", files.best)
    assert "recall@2  1.000 → 0.625" in compare("-m", "recall@2", sides=("main", cand)).out


@pytest.mark.parametrize("name", ["bast.trec", "runs/bast", "bast.run.jsonl.gz"])
def test_runs_that_are_not_there(compare, cand, name):
    result = compare(sides=(name, cand))
    assert (result.status, result.out) == (2, "")
    assert f"{name}: there is no such file" in result.errors[0]


def test_a_run_about_other_queries(compare, files, best):
    result = compare("-m", "recall@2", sides=(best, files.run("other.trec", {"Q1": ["a"]})))
    assert result.status == 2
    assert "run other has none of the 4 judged queries of small" in result.err


def test_a_run_deeper_than_declared(compare, best):
    Run.of({"q1": ["a"], "q2": ["b"]}, name="flat", depth=2).save("flat.run.jsonl")
    result = compare("-m", "recall@5", sides=(best, "flat.run.jsonl"))
    assert result.status == 2
    assert "recall@5 looks at 5 ranks, but run flat declares depth 2" in result.err
    assert compare(sides=(best, "flat.run.jsonl")).status == 2


def test_failures_of_the_retriever(compare, files, best):
    Run.of({**files.best, "q4": []}, errors={"q4": "TimeoutError: 5 s"}).save("flaky.run.jsonl")
    arguments = ("--gate", "recall@2 >= 0.5")
    result = compare(*arguments, sides=(best, "flaky.run.jsonl"))
    assert result.status == 2
    assert "retriever failed on 1 of " in result.err
    assert compare(*arguments, "--allow-failures", "1", sides=(best, "flaky.run.jsonl")).status == 0
    result = compare("-m", "recall@2", "--allow-failures", "1", sides=(best, "flaky.run.jsonl"))
    assert "the retriever failed: TimeoutError: 5 s" in result.out


def test_a_malformed_line_is_an_error_of_the_whole_comparison(compare, files, best):
    bad = files.write("bad.trec", "q1 Q0 a 1 2.5 t\nq1 Q0 b 2 x t\n")
    result = compare("--gate", "hit@1 >= 0.1", "--gate", "hit@2 >= 0.1", sides=(best, bad))
    assert (result.status, result.out) == (2, "")
    assert len(result.errors) == 1
    assert "bad.trec:2: " in result.errors[0]


# --- runs from elsewhere -----------------------------------------------------------------------------


def test_baselines_at_a_commit_and_at_a_url(compare, files, here, best, cand):
    stored = here / "small" / "baselines" / "main.run.jsonl.gz"
    Run.read(best).save(stored)
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("add", "small"),
        ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a baseline"),
    ):
        subprocess.run(["git", *arguments], cwd=here, check=True, capture_output=True)
    Run.read(cand).save(stored)  # the working tree's own has moved along
    assert compare("--gate", "recall@2 >= baseline", sides=("main", cand)).status == 0
    for name in ("git:main", "git:HEAD:small/baselines/main.run.jsonl.gz", (here / "best.trec").as_uri()):
        result = compare("--gate", "recall@2 >= baseline", sides=(name, cand))
        assert (result.status, result.errors) == (1, []), name
        assert "0.625 is below 1.000" in result.out
        assert compare("--gate", f"recall@2 >= baseline[{name}]", sides=(cand, cand)).status == 1
    absent = compare("--gate", "recall@2 >= baseline", sides=("git:origin/main", cand))
    assert absent.status == 2
    assert "has no commit origin/main" in absent.err


def test_a_report_calls_slower_queries_worse(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.tsv").write_text("q1 0 a 1\nq2 0 b 1\n")
    for name, slowest in (("old", 0.1), ("new", 0.2)):
        Run.of({"q1": ["a"], "q2": ["b"]}, seconds={"q1": 0.01, "q2": slowest}).save(tmp_path / f"{name}.run.jsonl")
    assert main(["compare", "qrels.tsv", "old.run.jsonl", "new.run.jsonl", "-m", "latency.p95"]) == 0
    out = capsys.readouterr().out
    assert "latency.p95  95.5 ms → 190.5 ms" in out
    assert "1 worse · 0 better · 1 equal of 2" in out
    assert "q2  latency 100.0 ms → 200.0 ms" in out
