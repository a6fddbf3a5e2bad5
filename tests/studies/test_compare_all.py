"""Several configurations: which differ, which are worth having, and the tables that say so."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import Chunk, Dataset, GateError, Run, SettingsError, Span, compare_all
from pytest_retrieval_eval.cli import main
from pytest_retrieval_eval.reports.configurations import latex, markdown
from pytest_retrieval_eval.stats import holm, randomization_test
from pytest_retrieval_eval.studies.compare_all import _letters
from pytest_retrieval_eval.studies.pareto import front

POINTS = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.tuples(*[st.integers(0, 4)] * 3), min_size=1)
IDS = [f"q{number:02d}" for number in range(40)]


def run(found, milliseconds, name):
    lists = {query: ["gold"] if hit else ["other"] for query, hit in zip(IDS, found, strict=True)}
    return Run.of(lists, name=name, seconds=dict.fromkeys(IDS, milliseconds / 1000))


def three():
    dataset = Dataset.of(qrels={query: {"gold": 1} for query in IDS}, name="handbook")
    return dataset, {
        "bm25": run([n % 2 for n in range(40)], 8, "bm25"),
        "dense": run([n % 10 for n in range(40)], 20, "dense"),
        "slow": run([n % 11 for n in range(40)], 90, "slow"),
        "late": run([n % 10 and n % 11 for n in range(40)], 120, "late"),
    }


@given(POINTS, st.lists(st.booleans(), min_size=3, max_size=3))
def test_the_front_holds_no_dominated_one_and_drops_no_other(points, lower):
    def dominates(one, other):
        better = [(a < b) if low else (a > b) for a, b, low in zip(one, other, lower, strict=True)]
        worse = [(a > b) if low else (a < b) for a, b, low in zip(one, other, lower, strict=True)]
        return any(better) and not any(worse)

    kept = front(points, lower)
    expected = {name for name, point in points.items() if not any(dominates(each, point) for each in points.values())}
    assert set(kept) == expected
    assert kept


@settings(max_examples=60)
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1])))
def test_two_share_a_letter_exactly_where_they_do_not_differ(differing):
    names = list("abcdef")
    letters = _letters(names, [(names[one], names[two]) for one, two in differing])
    for one, two in itertools.combinations(range(6), 2):
        assert bool(set(letters[names[one]]) & set(letters[names[two]])) == ((one, two) not in differing)


def test_every_pair_is_tested_and_corrected():
    dataset, runs = three()
    found = compare_all(dataset, runs, ["recall@1", "latency.p95"], pareto=["recall@1", "latency.p95"])
    values = {name: [float(hits == ["gold"]) for hits in each.to_dict().values()] for name, each in runs.items()}
    pairs = list(itertools.combinations(runs, 2))
    expected = [
        randomization_test([b - a for a, b in zip(values[one], values[two], strict=True)]).p_two_sided
        for one, two in pairs
    ]
    told = [pair for pair in found.pairs if pair.measure == "recall@1"]
    assert [(pair.first, pair.second) for pair in told] == pairs
    assert [pair.p for pair in told] == pytest.approx(expected)
    assert [pair.p_adjusted for pair in told] == pytest.approx(holm(expected).tolist())
    assert found.cell("bm25", "recall@1").group != found.cell("dense", "recall@1").group
    assert found.cell("dense", "recall@1").group == found.cell("slow", "recall@1").group
    assert found.cell("slow", "latency.p95").value == pytest.approx(90)
    # slow is as good as dense and takes longer, late is worse than both.
    assert found.front == ("bm25", "dense")
    assert compare_all(dataset, runs, ["recall@1"], pareto=["latency.p95"]).front == ("bm25",)


def test_tables_say_it():
    dataset, runs = three()
    runs["a|b_c"] = runs.pop("late")
    found = compare_all(dataset, runs, ["recall@1", "latency.p95"])
    text = markdown(found)
    assert "| **bm25** | 0.500 [" in text
    assert "latency.p95 (ms)" in text
    assert "| a\\|b_c |" in text
    runs["_x_ <b> `c` *d* ~e~"] = runs.pop("a|b_c")
    assert r"| \_x\_ \<b> \`c\` \*d\* \~e\~ |" in markdown(compare_all(dataset, runs, ["recall@1"]))
    assert "correction Holm" in text
    table = latex(found)
    assert r"a|b\_c & 0.8" in table
    assert r"\textbf{bm25} & 0.500$^{a}$ [" in table
    assert table.count(r"\\") == 5


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"runs": {"one": run([1] * 40, 1, "one")}}, GateError, "1 run was given"),
        ({"measures": []}, GateError, "no measure was asked for"),
        ({"measures": ["num_ret"]}, GateError, "num_ret is a sum over the queries"),
        (
            {"measures": ["recall(rel=9)@1"]},
            GateError,
            "no query counts for recall(rel=9)@1: no document has grade >= 9",
        ),
        ({"pareto": ["recall(rel=9)@1"]}, GateError, "no query counts for recall(rel=9)@1"),
        ({"correction": "bonferoni"}, SettingsError, "'bonferoni' is no correction"),
        ({"alpha": 0.7}, SettingsError, "alpha lies between 0 and 0.5"),
    ],
)
def test_what_means_nothing_is_refused(change, error, sentence):
    dataset, runs = three()
    asked = {"runs": runs, "measures": ["recall@1"], **change}
    with pytest.raises(error, match=r".") as caught:
        compare_all(dataset, **asked)
    assert sentence in str(caught.value)


def test_a_failed_query_and_one_without_time_are_errors():
    dataset, runs = three()
    lists = runs["dense"].to_dict()
    runs["broken"] = Run.of(lists, name="broken", errors={"q03": "timeout"}, seconds=dict.fromkeys(IDS, 0.001))
    with pytest.raises(GateError, match=r"broken: the retriever failed on 1 of 40 queries, the first is q03"):
        compare_all(dataset, runs, ["recall@1"])
    found = compare_all(dataset, runs, ["recall@1", "latency.p95"], allow_failures=1)
    assert {cell.n for cell in found.cells if cell.measure == "latency.p95"} == {39}
    runs["broken"] = Run.of(lists, name="broken")
    with pytest.raises(GateError, match=r"broken has a time for none of the queries"):
        compare_all(dataset, runs, ["latency.p95"])


def test_gold_is_measured_where_its_passage_stands_today():
    corpus = {"guide": "Since May: by post 14 days, by train 9 days.", "faq": "Ask us."}
    spans = {"q1": [Span("q1", "guide", 8, 15, text="14 days")], "q2": [Span("q2", "faq", 0, 7, text="Ask us.")]}
    chunks = {"guide#0": Chunk("guide", 0, 26), "faq#0": Chunk("faq", 0, 7)}
    runs = {
        "good": Run.of({"q1": ["guide#0"], "q2": ["faq#0"]}),
        "bad": Run.of({"q1": ["faq#0"], "q2": ["faq#0"]}),
    }
    queries = {"q1": "how long?", "q2": "who?"}
    dataset = Dataset.of(queries=queries, corpus=corpus, spans=spans, chunks=chunks, name="small")
    found = compare_all(dataset, runs, ["span_recall@1"])
    assert [cell.value for cell in found.cells] == [1.0, 0.5]
    assert any("1 of 2 gold spans (50 %) was moved" in note for note in found.notes)
    lost = Dataset.of(queries=queries, corpus={**corpus, "guide": "Gone."}, spans=spans, chunks=chunks, name="small")
    with pytest.raises(GateError, match="1 gold span of 2 of small is stale"):
        compare_all(lost, runs, ["span_recall@1"])
    tolerant = compare_all(lost, runs, ["span_recall@1"], allow_stale=1)
    assert {cell.n for cell in tolerant.cells} == {1}


def test_the_command_line_prints_the_tables(tmp_path, monkeypatch, capsys):
    _, runs = three()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.tsv").write_text("".join(f"{query} 0 gold 1\n" for query in IDS))
    for name, each in runs.items():
        each.save(tmp_path / f"{name}.run.jsonl")
    arguments = ["compare-all", "qrels.tsv", "bm25.run.jsonl", "quick=dense.run.jsonl", "-m", "recall@1 latency.p95"]
    assert main(arguments) == 0
    assert "Pareto front over recall@1 (high), latency.p95 (low): bm25, quick." in capsys.readouterr().out
    assert main([*arguments, "--json", "--pareto", "latency.p95"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["front"] == ["bm25"]
    assert len(document["pairs"]) == 2
    assert main([*arguments, "--latex"]) == 0
    assert capsys.readouterr().out == latex(
        compare_all(
            Dataset.of(qrels={query: {"gold": 1} for query in IDS}, name="qrels.tsv"),
            {"bm25": runs["bm25"], "quick": runs["dense"]},
            ["recall@1", "latency.p95"],
        )
    )
    assert main(["compare-all", "qrels.tsv", "bm25.run.jsonl"]) == 2
    assert "1 run was given" in capsys.readouterr().err


def test_the_command_line_reports_thresholds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"_id": "a", "text": "?", "relevant": {"gold": 1}},
        {"_id": "b", "text": "?", "unanswerable": True},
    ]
    (tmp_path / "set.jsonl").write_text(
        "".join(
            json.dumps({"query_id": row["_id"], "query": "?", **{k: row[k] for k in row if k[0] in "ru"}}) + "\n"
            for row in rows
        )
    )
    Run.of({"a": {"gold": 0.9}, "b": {"gold": 0.3}}).save(tmp_path / "x.run.jsonl")
    assert main(["thresholds", "set.jsonl", "x.run.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1:] == ["none\t0\t0\t0\t-\t0.000\t0.000", "0.6\t1\t1\t0\t1.000\t1.000\t1.000\tbest"]
    assert "AUC 1.000" in err


def test_a_run_of_other_ids_is_refused_and_the_change_that_joins_them_is_named():
    queries = [f"q{n}" for n in range(6)]
    data = Dataset.of(queries=dict.fromkeys(queries, "text"), qrels={query: ["doc"] for query in queries})
    good, bad = (Run.of({query: [doc] for query in queries}, name=doc) for doc in ("doc", "DOC"))
    with pytest.raises(GateError, match=r"DOC has no judged document .* not of one kind\. .*without regard to case"):
        compare_all(data, {"good": good, "bad": bad}, ["recall@1"])
    # One that found nothing relevant, but a document that somebody has judged, is measured: 0.
    poor = Run.of({query: ["other"] for query in queries}, name="poor")
    data = Dataset.of(
        queries=dict.fromkeys(queries, "text"), qrels={query: {"doc": 1, "other": 0} for query in queries}
    )
    assert compare_all(data, {"good": good, "poor": poor}, ["recall@1"]).cells[1].value == 0


def test_a_run_of_chunks_of_other_documents_is_refused():
    queries = [f"q{n}" for n in range(6)]
    spans = {query: [Span(query, "guide", 0, 5)] for query in queries}
    data = Dataset.of(queries=dict.fromkeys(queries, "text"), spans=spans)
    good, bad = (
        Run.of({query: [{"id": "c", "doc_id": doc, "start": 0, "end": 9}] for query in queries}, name=doc)
        for doc in ("guide", "Guide")
    )
    with pytest.raises(GateError, match=r"Guide holds no character of any gold span: .*without regard to case"):
        compare_all(data, {"good": good, "bad": bad}, ["span_recall@1"])
