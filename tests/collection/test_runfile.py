from __future__ import annotations

import gzip
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.run import Ranking, Run
from pytest_retrieval_eval.errors import DataError

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
numbers = st.floats(allow_nan=False)
spans = st.just((None, None)) | st.tuples(st.integers(0, 10**6), st.integers(0, 9)).map(lambda s: (s[0], sum(s)))
hits_of_chunks = st.builds(lambda i, s, d, span: Hit(i, s, d, *span), ids, numbers, st.none() | ids, spans)
maps = st.dictionaries(ids, st.dictionaries(ids, numbers, max_size=8), min_size=1, max_size=6)
bare = st.dictionaries(ids, st.lists(ids, max_size=8), min_size=1, max_size=6)
pairs = st.dictionaries(ids, st.lists(st.tuples(ids, numbers), max_size=8), min_size=1, max_size=6)
chunks = st.dictionaries(
    ids,
    st.lists(hits_of_chunks, max_size=8),
    min_size=1,
    max_size=6,
)
json_values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def facts(run: Run) -> dict[str, Any]:
    """All that a run says, but for where it came from."""
    return {
        "rankings": run.rankings(sorted(run.query_ids)),
        "ordered_by": run.ordered_by,
        "depth": run.depth,
        "header": dict(run.header),
        "seconds": dict(run.seconds),
        "errors": dict(run.errors),
        "duplicates": dict(run.duplicates),
        "digest": run.digest,
    }


# --- our format -----------------------------------------------------------------------------------


@in_a_folder
@given(st.data(), maps | bare | pairs | chunks)
def test_our_format_keeps_everything(tmp_path: Path, data: st.DataObject, hits: Any) -> None:
    some = st.sampled_from(sorted(hits))
    run = Run.of(
        hits,
        depth=data.draw(st.none() | st.integers(1, 1000)),
        seconds=data.draw(st.dictionaries(some, st.floats(0, 100))),
        errors=data.draw(st.dictionaries(some, st.text(st.characters(exclude_categories=["Cs"]), max_size=5))),
        header=data.draw(st.dictionaries(st.sampled_from(["retriever", "dataset", "time"]), json_values)),
    )
    path = tmp_path / data.draw(st.sampled_from(["x.run.jsonl", "x.run.jsonl.gz"]))
    run.save(path)
    again = Run.read(path)
    assert facts(again) == facts(run)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first


@in_a_folder
@given(maps, st.sampled_from([(",", ":"), (", ", ":  "), (" , ", ": ")]))
def test_lines_that_are_spaced_otherwise_say_the_same(tmp_path: Path, hits: Any, separators: tuple[str, str]) -> None:
    run, written, spaced = (
        Run.of(hits, seconds=dict.fromkeys(hits, 0.25)),
        tmp_path / "a.run.jsonl",
        tmp_path / "b.jsonl",
    )
    run.save(written)
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").split("\n")[:-1]]
    spaced.write_text("".join(json.dumps(row, separators=separators) + "\n" for row in rows), encoding="utf-8")
    assert facts(Run.read(spaced)) == facts(Run.read(written)) == facts(run)


@pytest.mark.parametrize(
    "hits",
    [
        '{"id": "a", "score": 07.5}',
        '{"id": "a", "score": 1_0.5}',
        '{"id": "a", "score": \u0661.5}',
        '{"id": "a", "score": .5}',
        '{"id": "a", "score": 0.5}, ',
        '{"id": "a", "score": 0.5}{"id": "b", "score": 0.5}',
        '{"id": "a\tb", "score": 0.5}',
        '{"id": "a", "score": 0.5}, {"id": "b", "score": 0.5',
    ],
)
def test_a_line_that_is_almost_as_it_is_written_is_no_json(tmp_path: Path, hits: str) -> None:
    path = tmp_path / "x.run.jsonl"
    line = f'{{"hits": [{hits}], "query_id": "q"}}'
    path.write_text(
        '{"format": "retrieval-run", "version": 1, "ordered_by": "score"}\n' + line + "\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"x.run.jsonl:2: malformed JSON"):
        Run.read(path)


def test_our_format_can_be_read_by_eye(tmp_path: Path) -> None:
    path = tmp_path / "bm25.run.jsonl"
    run = Run.of({"b": [], "a": [Hit("é#1", 2.5, "é", 0, 9), Hit("x", 1.0)]}, depth=10, seconds={"a": 0.25})
    run.with_header(retriever="bm25").save(path)
    assert path.read_text("utf-8") == (
        '{"depth": 10, "format": "retrieval-run", "ordered_by": "list", "queries": 2, '
        '"retriever": "bm25", "version": 1}\n'
        '{"hits": [{"doc_id": "é", "end": 9, "id": "é#1", "score": 2.5, "start": 0}, {"id": "x", "score": 1.0}], '
        '"query_id": "a", "seconds": 0.25}\n'
        '{"hits": [], "query_id": "b"}\n'
    )


def test_equal_runs_are_equal_bytes_whenever_they_are_saved(tmp_path: Path) -> None:
    one, two = tmp_path / "one.run.jsonl.gz", tmp_path / "two.run.jsonl.gz"
    Run.of({"1": {"a": 1.0, "b": 1.0}, "2": {"c": 0.1}}).save(one)
    Run.of({"2": {"c": 0.1}, "1": {"b": 1, "a": 1}}).save(two)
    assert one.read_bytes() == two.read_bytes()


HEADER = '{"format": "retrieval-run", "version": 1, "depth": 10}\n'
SCORED = '{"format": "retrieval-run", "version": 1, "ordered_by": "score"}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "other", "version": 1}\n', r":1: the format is 'other'; expected 'retrieval-run'"),
        ('{"format": "retrieval-run", "version": 2}\n', r":1: version 2 .* upgrade"),
        ('{"format": "retrieval-run", "version": 1, "depth": 0}\n', r":1: the depth is 0"),
        ('{"format": "retrieval-run", "version": 1, "ordered_by": "x"}\n', r":1: ordered_by is 'x'"),
        (HEADER, "the run has no query"),
        (HEADER + '{"query_id": "1"}\n', r":2: expected the keys query_id and hits, found query_id"),
        (HEADER + '{"query_id": "1", "hits": {"a": 1}}\n', r":2: hits is .*; expected a list"),
        (HEADER + '{"query_id": "1", "hits": [{"score": 1}]}\n', r":2, rank 1: .* is no hit"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a", "score": 1}, "b"]}\n', r":2, rank 2: 'b' is no hit"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a", "score": "1"}]}\n', r":2, rank 1: the score is '1'"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a", "score": true}]}\n', r":2, rank 1: the score is True"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a", "score": NaN}]}\n', r":2: document 'a' .* NaN"),
        (HEADER + '{"query_id": "1", "hits": [{"id": null, "score": 1}]}\n', r":2, rank 1: None is no id"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "", "score": 1}]}\n', r":2: .*rank 1.*empty string"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a", "score": 1, "start": -1}]}\n', r"offset -1"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a"}, {"id": "b", "score": 1}]}\n', r":2: document 'a' has no"),
        (HEADER + '{"query_id": "1", "hits": []}\n{"query_id": "1", "hits": []}\n', r":3: query '1' .*\(.*:2\)"),
        (SCORED + '{"query_id": "1", "hits": [{"id": "a"}]}\n', r":2: the list has no scores"),
        (SCORED + json.dumps({"query_id": "1", "hits": [{"id": "a", "score": 1}] * 2}), "'a' a second time"),
        (HEADER + '{"query_id": "1", "hits": [], "seconds": "x"}\n', r":2: the seconds is 'x'"),
        (HEADER + '{"query_id": "1", "hits": [], "error": 3}\n', r":2: the error is 3"),
        (HEADER + '{"query_id": "1", "hits": [{"id": "a", "sc', r":2: malformed JSON"),
        (HEADER[:-2] + ', "queries": 2}\n{"query_id": "1", "hits": []}\n', "declares 2 queries, the file has 1"),
    ],
)
def test_what_is_malformed_is_said_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.run.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        Run.read(path)


def test_lines_of_others_are_lists_in_rank_order(tmp_path: Path) -> None:
    path = tmp_path / "x.run.jsonl"
    hits = [{"id": 7, "score": 1}, {"id": "b", "score": 3, "note": "kept by nobody"}, {"id": "7", "score": 0}]
    path.write_text(HEADER + json.dumps({"query_id": 1, "hits": hits}) + "\n")
    run = Run.read(path)
    assert (run.ordered_by, run.depth, run.ranking("1").docs) == ("list", 10, ["7", "b", "7"])
    assert dict(run.duplicates) == {"1": 1}


def test_lines_by_score_are_sorted_with_their_chunks(tmp_path: Path) -> None:
    path = tmp_path / "x.run.jsonl"
    hits = [{"id": "a", "score": 1}, {"id": "b", "score": 2, "doc_id": "B", "start": 3, "end": 4}]
    path.write_text(SCORED + json.dumps({"query_id": 1, "hits": hits}) + "\n")
    assert Run.read(path).ranking("1") == Ranking(["b", "a"], [2.0, 1.0], ["B", None], [3, None], [4, None])


def test_messages_that_are_no_unicode_are_kept(tmp_path: Path) -> None:
    run = Run.of({"1": []}, errors={"1": "no file caf\udce9"})
    run.save(tmp_path / "x.run.jsonl")
    assert dict(Run.read(tmp_path / "x.run.jsonl").errors) == {"1": "no file caf\udce9"}


def test_thirty_thousand_hits_are_read_in_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "x.run.jsonl"
    Run.of({f"q{q}": [(f"d{q}-{d}", 100.5 - d) for d in range(100)] for q in range(300)}).save(path)
    begin = time.process_time()
    Run.read(path)
    assert time.process_time() - begin < 1  # about 0.05 s; the bound is for a crowded machine


# --- TREC -----------------------------------------------------------------------------------------

plain_ids = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f\ufeff"), min_size=1, max_size=12
)
plain_maps = st.dictionaries(plain_ids, st.dictionaries(plain_ids, numbers, max_size=8), min_size=1, max_size=6)


@in_a_folder
@given(plain_maps)
def test_trec_gives_back_the_same_scores(tmp_path: Path, hits: dict[str, dict[str, float]]) -> None:
    kept = {query: docs for query, docs in hits.items() if docs}
    path = tmp_path / "x.trec"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Run.of(hits).save(path)
    assert len(caught) == (len(kept) < len(hits))
    if kept:
        assert Run.read(path).to_dict() == Run.of(kept).to_dict()


@in_a_folder
@given(st.dictionaries(plain_ids, st.lists(plain_ids, min_size=1, unique=True), min_size=1), st.booleans())
def test_trec_keeps_the_order_of_a_list(tmp_path: Path, hits: dict[str, list[str]], scored: bool) -> None:
    given_hits: Any = {q: [(d, 0.5) for d in docs] for q, docs in hits.items()} if scored else hits
    path = tmp_path / "x.run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Run.of(given_hits).save(path)
    again = Run.read(path)
    assert {query: again.ranking(query).docs for query in hits} == hits


def test_trec_says_what_it_loses(tmp_path: Path) -> None:
    run = Run.of(
        {"1": [Hit("a", 0.1, "d"), Hit("b", 0.2)], "2": []},
        depth=5,
        seconds={"1": 1.0},
        errors={"2": "TimeoutError"},
    )
    with pytest.warns(
        UserWarning, match="1 error, seconds, the declared depth, .*part.*, 1 query without hits, the sc"
    ):
        run.save(tmp_path / "x.trec")
    assert (tmp_path / "x.trec").read_text() == "1 Q0 a 1 2.0 run\n1 Q0 b 2 1.0 run\n"


def test_trec_of_a_scored_run_loses_nothing(tmp_path: Path) -> None:
    Run.of({"1": {"a": 0.1, "b": 3}}, name="bm 25").save(tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == "1 Q0 b 1 3.0 bm_25\n1 Q0 a 2 0.1 bm_25\n"


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ({"1": {"a b": 1.0}}, "the id 'a b' has white space"),
        ({"1\n": {"a": 1.0}}, r"the id '1\\n' has white space"),
        ({"1": ["a", "b", "a"]}, "query '1' has document 'a' a second time"),
    ],
)
def test_trec_refuses_what_would_change_values(tmp_path: Path, hits: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Run.of(hits).save(tmp_path / "x.trec")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["x.json", "x", "x.jsonl", "x.csv.gz"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"is saved as \.run\.jsonl, \.trec"):
        Run.of({"1": ["a"]}).save(tmp_path / name)


# --- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.json", "x.json.gz", "results", "x.jsonl"])
@pytest.mark.parametrize("indent", [None, 2])
def test_beir_results_are_sorted_by_score(tmp_path: Path, name: str, indent: int | None) -> None:
    text = json.dumps({"1": {"a": 0.5, "b": 0.9}, "2": {}}, indent=indent)
    raw = text.encode("utf-8-sig")
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    run = Run.read(tmp_path / name)
    assert run.ranking("1").docs == ["b", "a"]
    assert (run.query_ids, run.ordered_by, run.depth) == (("1", "2"), "score", None)


def test_json_lists_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"1": ["a", 7], "2": []}')
    run = Run.read(tmp_path / "x.json")
    assert (run.ranking("1").docs, run.ranking("1").scores) == (["a", "7"], None)


def test_json_lines_have_one_hit_each(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"query_id": 1, "doc_id": "a", "score": 1}\n\n{"query_id": "1", "doc_id": "b", "score": 2.5}\n'
    )
    assert Run.read(tmp_path / "x.jsonl").to_dict() == {"1": {"b": 2.5, "a": 1.0}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"query_id": "1", "doc_id": "a"}\n', r":1: the row has no 'score'; .*; expected query_id, doc_id and score"),
        ('{"query_id": "1", "score": 1}\n', r":1: the row has no 'doc_id'; found the keys \['query_id', 'score'\]"),
        (
            '{"query_id": "1", "doc_id": "a", "score": 1}\n{"doc_id": "a", "score": 1}\n',
            r":2: the row has no 'query_id'",
        ),
        ('{"query_id": "1", "doc_id": "a", "score": "1"}\n', r":1: the score is '1'"),
        ('{"query_id": "1", "doc_id": "a", "score": 1}\n' * 2, r":2: .*second time \(the first: line 1\)"),
        ('{"1": {"a": 1, "a": 2}}', r"the key 'a' stands twice"),
        ('{"1": {"a": NaN}}', r"query '1'.*document 'a'.*NaN"),
        ('{"1": "a"}', r"query '1'.*'a'"),
        ('{"1": {"a": 1}', r"malformed JSON"),
        ("[1, 2]", r"expected \{query"),
        ("{}", "the run has no query"),
        ("1 Q0 a 1 2 t", "expected JSON, as its ending says"),
    ],
)
def test_json_of_another_form_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(DataError, match=message):
        Run.read(tmp_path / "x.jsonl")


# --- across formats -------------------------------------------------------------------------------


def test_a_run_is_the_same_in_all_formats(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    hits = {f"q{q}": {f"d{d}": float(s) for d, s in enumerate(rng.normal(size=30).round(1))} for q in range(20)}
    run = Run.of(hits)
    qrels = Qrels.of({query: [f"d{d}" for d in range(0, 30, 3)] for query in hits})
    (tmp_path / "x.json").write_text(json.dumps(hits))
    for name in ("x.run.jsonl", "x.run.jsonl.gz", "x.trec", "x.txt.gz", "x.run.zst", "x.json"):
        if name != "x.json":
            run.save(tmp_path / name)
        again = Run.read(tmp_path / name)
        found, expected = again.locate(qrels), run.locate(qrels)
        assert found.rank.tolist() == expected.rank.tolist()
        assert found.tie_last.tolist() == expected.tie_last.tolist()
        assert found.ties.tolist() == expected.ties.tolist()
        assert again.digest == run.digest
        assert again.name == "x"


def test_the_depth_is_declared_by_the_header() -> None:
    run = Run.of({"1": ["a"]}).with_header(depth=100, commit="abc")
    assert (run.depth, dict(run.header)) == (100, {"commit": "abc"})
    with pytest.raises(DataError, match="integer of 1 or more, not 0"):
        run.with_header(depth=0)
    with pytest.raises(DataError, match="'format' is the file format's own"):
        run.with_header(format="x")
    with pytest.raises(DataError, match="kept as JSON"):
        run.with_header(place=Path("x"))
