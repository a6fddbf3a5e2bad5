"""``stages``, and stages on the command lines of ``evaluate`` and ``compare``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import Dataset, GateError, MeasureError, Run, evaluate
from pytest_retrieval_eval.cli import main
from pytest_retrieval_eval.stats.ratios import bootstrap_ratio
from pytest_retrieval_eval.studies.stages import stage_report

QRELS = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1}, "q4": {"e": 0}}
RUNS = {
    "bm25": {"q1": ["x", "a"], "q2": ["c", "x"], "q3": ["x"]},
    "dense": {"q1": ["b", "y"], "q2": ["y", "z"], "q3": ["y", "d"]},
    "fused": {"q1": ["x", "b", "a"], "q2": ["y", "c"], "q3": ["x", "y", "d"]},
    "reranked": {"q1": ["a", "x", "b"], "q2": ["c", "y"], "q3": ["y", "x", "d"]},
}
TAGS = {"q1": "policy", "q2": "faq", "q3": "faq"}


def dataset():
    queries = {query: {"text": query, "tags": {"kind": tag}} for query, tag in TAGS.items()}
    return Dataset.of(queries=queries, qrels=QRELS, name="handbook")


def stages(**other):
    return {name: Run.of(hits, name=name) for name, hits in {**RUNS, **other}.items()}


def value(stage, measure, queries=("q1", "q2", "q3")):
    scores = evaluate(dataset().qrels, Run.of(RUNS[stage]), measure).scores(measure).to_dict()
    return float(np.mean([scores[query] for query in queries]))


def test_the_report_measures_every_stage_on_the_same_queries():
    report = stage_report(dataset(), stages(), ["ndcg@3", "recall@1"], by="kind")
    assert [row.stage for row in report.rows] == list(RUNS)
    assert report.counts == {"ndcg@3": 3, "recall@1": 3}
    for row in report.rows:
        assert row.means == pytest.approx({name: value(row.stage, name) for name in ("ndcg@3", "recall@1")})
    fused = report.rows[2]
    assert (fused.pool, fused.pool_recall) == (3, 1.0)
    # All that is relevant is in the lists of fused: nothing but the order is in the way.
    assert fused.ceilings == pytest.approx({"ndcg@3": 1.0, "recall@1": (0.5 + 1 + 1) / 3})
    assert report.rows[0].ceilings["ndcg@3"] < 1


def test_lift_is_the_ratio_of_means_and_joining_is_told_against_the_better_part():
    report = stage_report(dataset(), stages(), "ndcg@3", by="kind")
    (lift,) = report.lifts
    before, after = value("fused", "ndcg@3"), value("reranked", "ndcg@3")
    assert (lift.before, lift.stage, lift.n) == ("fused", "reranked", 3)
    assert lift.share == pytest.approx((after - before) / (1.0 - before))
    assert lift.low <= lift.share <= lift.high
    told = {each.slice: each for each in report.hybrids}
    assert set(told) == {"", "kind=faq", "kind=policy"}
    faq = {name: value(name, "ndcg@3", ("q2", "q3")) for name in ("bm25", "dense", "fused")}
    assert told["kind=faq"].best == max(("bm25", "dense"), key=lambda name: faq[name])
    assert told["kind=faq"].delta == pytest.approx(faq["fused"] - max(faq["bm25"], faq["dense"]))
    assert told[""].parts == ("bm25", "dense")
    assert json.loads(json.dumps(report.to_dict()))["lifts"][0]["share"] == lift.share


def test_the_numbers_of_the_issue():
    """0.61 before, 0.79 after, a ceiling of 0.92: 58 % of what could be recovered."""
    share, _ = bootstrap_ratio([0.79 - 0.61] * 5, [0.92 - 0.61] * 5)
    assert f"{share:.0%}" == "58%"


@settings(max_examples=30, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=1, max_size=20),
    scale=st.floats(0.1, 10),
)
def test_a_ratio_lies_in_its_interval_whatever_the_unit(pairs, scale):
    parts, wholes = (np.array(column) for column in zip(*pairs, strict=True))
    ratio, interval = bootstrap_ratio(parts, wholes, resamples=500)
    assert ratio == pytest.approx(parts.sum() / wholes.sum())
    assert (parts / wholes).min() - 1e-9 <= interval.low <= interval.high <= (parts / wholes).max() + 1e-9
    other, _ = bootstrap_ratio(parts * scale, wholes * scale, resamples=500)
    assert other == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("parts", "wholes", "said"), [([1.0], [0.0], "more than 0"), ([1.0], [1.0, 2.0], "one of each"), ([], [], "parts")]
)
def test_what_has_no_ratio(parts, wholes, said):
    with pytest.raises(ValueError, match=said):
        bootstrap_ratio(parts, wholes)


@pytest.mark.parametrize(
    ("given", "measures", "error", "said"),
    [
        ({"one": Run.of(RUNS["bm25"])}, "ndcg@3", GateError, "two stages or more"),
        (stages(late={"other": ["x"]}), "ndcg@3", GateError, "the stage late has none of the queries"),
        (stages(), "num_rel_ret", MeasureError, "compared by means"),
        (stages(), "span_recall@5", MeasureError, "compared by means"),
        (stages(), "unjudged@3", MeasureError, "no gap can be told"),
        (stages(), "recall(rel=9)@3", GateError, "no query counts for recall.rel=9.@3: no document has grade >= 9"),
        ({**stages(), "short": Run.of(RUNS["bm25"], depth=2)}, "ndcg@3", GateError, "the stage short declares depth 2"),
        (
            {**stages(), "broken": Run.of(RUNS["bm25"], errors={"q4": "timed out"})},
            "ndcg@3",
            GateError,
            "the stage broken failed on 1 queries, the first is q4",
        ),
    ],
)
def test_what_cannot_be_reported(given, measures, error, said):
    with pytest.raises(error, match=said):
        stage_report(dataset(), given, measures)


@pytest.fixture
def files(tmp_path, monkeypatch):
    folder = tmp_path / "eval"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": query, "text": query, "roles": ["staff"], "tags": {"kind": tag}} for query, tag in TAGS.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    docs = [{"_id": doc, "text": "", "roles": ["hr" if doc == "x" else "*"]} for doc in "abcdexyz"]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs))
    lines = [
        f"{query}\t{doc}\t{grade}\n" for query, row in QRELS.items() for doc, grade in row.items() if query != "q4"
    ]
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    for name, run in stages().items():
        run.save(tmp_path / f"{name}.run.jsonl")
        run.save(folder / "baselines" / f"main.{name}.run.jsonl.gz")
    monkeypatch.chdir(tmp_path)
    return [f"{name}={name}.run.jsonl" for name in RUNS]


def test_the_command(files, capsys):
    assert main(["stages", "eval", *files, "-m", "ndcg@3", "--by", "kind"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "eval: ndcg@3 over 3 queries" in told
    assert "fused → reranked ndcg@3" in told
    assert "bm25 + dense → fused ndcg@3 kind=faq" in told
    assert main(["stages", "eval", *files, "--json"]) == 0
    assert [row["stage"] for row in json.loads(capsys.readouterr().out)["rows"]] == list(RUNS)
    assert main(["stages", "eval", "bm25"]) == 2
    assert "expected a stage as NAME=RUN" in capsys.readouterr().err


def test_evaluate_and_compare_read_stages(files, capsys):
    named = [part for each in files[:3] for part in ("--stages", each)]
    measures = ["-m", "lift(ndcg@3, from=fused)", "-m", "leaks@3", "-m", "withheld(from=fused)"]
    assert main(["evaluate", "eval", "reranked.run.jsonl", *named, *measures]) == 0
    told = dict(line.split("\t")[1:] for line in capsys.readouterr().out.splitlines())
    assert float(told["leaks@3"]) == pytest.approx(2 / 3)
    assert float(told["withheld(from=fused)"]) == 0
    gates = ["--gate", "ndcg@3 >= baseline", "--gate", "ndcg@3 >= against(fused)"]
    gates += ["--gate", "lift(ndcg@3, from=fused) >= baseline"]
    arguments = ["compare", "eval", "main", "reranked.run.jsonl", *named, "--stage", "reranked", *gates]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "stage reranked, baseline main.reranked" in told
    assert "3 gates" in told
    # A stage that got worse is held against its own baseline, and the failure says where documents went.
    worse = ["compare", "eval", "main", "dense.run.jsonl", *named[:2], *named[4:], "--stage", "reranked", *gates[:2]]
    assert main(worse) == 1
    assert "lost at reranked: rank 2 after" in capsys.readouterr().out
    assert main([*arguments, "--stages", "reranked=bm25.run.jsonl"]) == 2
    assert "--stage reranked is CANDIDATE" in capsys.readouterr().err


def test_a_tag_of_which_nothing_can_be_told(files, program):
    passing = [files[2], files[3]]
    done = program("stages", "eval", *passing, "-m", "ndcg@3", "--by", "kind")
    assert (done.status, "note: --by kind: no stage joins several others" in done.err) == (0, True)
    done = program("stages", "eval", *passing, "-m", "ndcg@3", "--by", "knid")
    assert (done.status, done.out) == (2, "")
    assert "has the tag 'knid'; did you mean kind?" in done.err
