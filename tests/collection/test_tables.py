"""Runs and judgments from Parquet files, Arrow tables and data frames."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
runs = st.dictionaries(
    ids, st.dictionaries(ids, st.floats(allow_nan=False) | st.integers(0, 3).map(float), min_size=1), min_size=1
)
qrels = st.dictionaries(ids, st.dictionaries(ids, st.integers(-1, 4).map(float), min_size=1), min_size=1)


def arrow(columns: dict[str, list[Any]]) -> Any:
    return pa.table(columns)


def dictionary(columns: dict[str, list[Any]]) -> Any:
    """As categories are kept: indices into a dictionary of strings."""
    encoded = {
        name: pa.array(values).dictionary_encode() if values and isinstance(values[0], str) else values
        for name, values in columns.items()
    }
    return pa.table(encoded)


def sliced(columns: dict[str, list[Any]]) -> Any:
    """Arrays that begin in the middle of their buffers, in chunks of three rows."""
    first = {name: [values[0]] for name, values in columns.items()}
    whole = pa.concat_tables([pa.table(first), pa.table(columns), pa.table(first)]).combine_chunks()
    whole = whole.slice(1, whole.num_rows - 2)
    return pa.Table.from_batches(whole.to_batches(max_chunksize=3), whole.schema)


def pandas(columns: dict[str, list[Any]]) -> Any:
    return pd.DataFrame(columns)


def pandas_objects(columns: dict[str, list[Any]]) -> Any:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def pandas_categories(columns: dict[str, list[Any]]) -> Any:
    frame = pd.DataFrame(columns)
    return frame.astype({name: "category" for name, values in columns.items() if isinstance(values[0], str)})


def polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


FORMS = [arrow, dictionary, sliced, pandas, pandas_objects, pandas_categories, polars]
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)


def rows_of(maps: dict[str, dict[str, float]], value: str) -> dict[str, list[Any]]:
    rows = [(query, doc, number) for query, docs in maps.items() for doc, number in docs.items()]
    return {
        name: list(column) for name, column in zip(("query_id", "doc_id", value), zip(*rows, strict=True), strict=True)
    }


@forms
@settings(deadline=None, max_examples=10)
@given(run=runs)
def test_a_run_is_the_same_from_a_mapping_and_from_a_table(form: Any, run: Any) -> None:
    assert Run.of(form(rows_of(run, "score"))).digest == Run.of(run).digest


@forms
@settings(deadline=None, max_examples=10)
@given(judged=qrels)
def test_judgments_are_the_same_from_a_mapping_and_from_a_table(form: Any, judged: Any) -> None:
    found = Qrels.of(form(rows_of(judged, "relevance")))
    assert found.to_dict() == judged
    assert found.query_ids == tuple(judged)


@settings(deadline=None, max_examples=10)
@given(run=runs, random=st.randoms())
def test_the_order_of_the_rows_does_not_matter(run: Any, random: Any) -> None:
    columns = rows_of(run, "score")
    order = list(range(len(columns["score"])))
    random.shuffle(order)
    shuffled = {name: [values[i] for i in order] for name, values in columns.items()}
    assert Run.of(pa.table(shuffled)).digest == Run.of(run).digest


@settings(deadline=None, max_examples=10)
@given(
    run=runs | st.dictionaries(ids, st.lists(ids, unique=True), min_size=1) | st.just({"1": [("a", 0.1), ("b", 0.2)]})
)
def test_a_run_comes_back_from_parquet(run: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("runs") / "bm25.parquet"
    saved = Run.of(run, depth=7, seconds={"1": 0.5}, errors={"2": "timeout"}, header={"commit": "abc"})
    saved.save(path)
    again = Run.read(path)
    assert again.digest == saved.digest
    assert set(again.query_ids) == set(saved.query_ids)
    assert (again.ordered_by, again.depth, again.name) == (saved.ordered_by, 7, "bm25")
    assert (dict(again.seconds), dict(again.errors), dict(again.header)) == (
        {"1": 0.5},
        {"2": "timeout"},
        {"commit": "abc"},
    )
    first = path.read_bytes()
    again.save(path)
    assert Run.read(path).digest == saved.digest
    saved.save(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("hits", [{"q": {"a": 2.0, "b": 1.0}}, {"q": ["b", "a"]}], ids=["scores", "ranks"])
def test_a_run_is_the_run_of_its_own_frame(hits: Any) -> None:
    run = Run.of(hits)
    again = Run.of(run.to_frame())
    assert (again.digest, again.ordered_by) == (run.digest, run.ordered_by)


def test_the_frame_of_judgments_is_read_again() -> None:
    judged = Qrels.of({"1": {"a": 2, "b": 0}, "2": {"c": 0.5}})
    assert Qrels.of(judged.to_frame()).digest == judged.digest


@pytest.mark.parametrize(
    ("names", "given_columns"),
    [
        (("query_id", "doc_id", "score"), None),
        (("qid", "docno", "score"), None),
        (("Query-ID", "corpus-id", "Score"), None),
        (("query", "document_id", "similarity"), None),
        (("a", "b", "c"), {"query": "a", "document": "b", "score": "c"}),
        (("qid", "b", "score"), {"document": "b"}),
    ],
)
def test_columns_are_known_by_their_usual_names_or_named(names: Any, given_columns: Any) -> None:
    table = pa.table(dict(zip(names, (["1"], ["d"], [3.0]), strict=True)))
    assert Run.of(table, columns=given_columns).to_dict() == {"1": {"d": 3.0}}


def test_the_frame_of_another_tool_has_the_text_and_a_number_beside_the_ids() -> None:
    frame = pd.DataFrame(
        {"qid": ["1"], "docid": [4711], "docno": ["d"], "rank": [0], "score": [3.0], "query": ["text"]}
    )
    assert Run.of(frame).to_dict() == {"1": {"d": 3.0}}


def test_integer_ids_become_their_digits() -> None:
    assert Run.of(pa.table({"qid": [7], "docid": [12], "score": [1]})).to_dict() == {"7": {"12": 1.0}}
    mixed = pd.DataFrame({"qid": pd.Series([7, "x"], dtype=object), "docid": [1, 2], "score": [1, 2]})
    assert Run.of(mixed).to_dict() == {"7": {"1": 1.0}, "x": {"2": 2.0}}


def test_without_scores_the_rank_orders_each_list() -> None:
    table = pa.table({"qid": ["1", "2", "1"], "docid": ["a", "b", "c"], "rank": [2, 1, 1]})
    run = Run.of(table)
    assert run.ordered_by == "list"
    assert run.to_dict() == {"1": ["c", "a"], "2": ["b"]}


def test_scores_count_where_ranks_contradict_them_and_it_is_said() -> None:
    run = Run.of(pa.table({"qid": ["1", "1"], "docid": ["a", "b"], "score": [1.0, 2.0], "rank": [1, 2]}), name="t")
    assert run.ranking("1").docs == ["b", "a"]
    assert "rise down every list" in run.warnings[0]
    columns = {"qid": ["1"] * 3, "docid": ["a", "b", "c"], "score": [1.0, 2.0, 0.5], "rank": [1, 2, 3]}
    assert Run.of(pa.table(columns), name="t").warnings == (
        "t: in 1 rows the rank contradicts the score; the scores were used",
    )


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"qid": ["1", None], "docid": ["a", "b"], "score": [1, 2]}, "t: row 2: qid is null"),
        ({"qid": ["1", "1"], "docid": ["a", ""], "score": [1, 2]}, "t: row 2: docid is the empty string"),
        (
            {"qid": ["1", "1"], "docid": ["a", "b"], "score": [1.0, None]},
            "t: row 2: query '1', document 'b': the score is",
        ),
        (
            {"qid": ["1", "1"], "docid": ["a", "b"], "score": [float("nan"), 1.0]},
            "t: row 1: query '1', document 'a': the",
        ),
        (
            {"qid": ["1", "2", "1"], "docid": ["a", "b", "a"], "score": [1, 2, 3]},
            "t: row 3: query '1' has document 'a' a",
        ),
        ({"qid": ["1", "2", "1"], "docid": ["a", "b", "c"], "rank": [1, 1, 1]}, "t: row 3: query '1' has the rank 1 a"),
        ({"qid": ["1"], "docid": ["a"], "score": ["3"]}, "score is a column of string; expected numbers"),
        ({"qid": [1.5], "docid": ["a"], "score": [3]}, "qid is a column of double; expected ids"),
        ({"qid": ["1"], "docid": ["a"], "score": [True]}, "score is a column of bool; expected numbers"),
        ({"qid": ["1"], "docid": ["a"]}, "t: no column says the score or the rank; found qid, docid"),
        ({"qid": ["1"], "text": ["a"], "score": [1]}, "t: no column says the document; found qid, text, score"),
        ({"qid": ["1"], "doc_id": ["a"], "chunk_id": ["b"], "score": [1]}, "may each be the document"),
        ({"qid": [], "docid": [], "score": []}, "t: the table has no row"),
    ],
)
def test_a_run_that_cannot_be_one_is_refused_with_its_row(columns: Any, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        Run.of(pa.table(columns), name="t")
    assert sentence in str(caught.value)


def test_columns_that_are_named_must_exist() -> None:
    table = pa.table({"qid": ["1"], "docid": ["a"], "points": [1]})
    with pytest.raises(DataError, match="there is no column 'point' for the score; did you mean points"):
        Run.of(table, columns={"score": "point"})
    with pytest.raises(DataError, match="columns names 'grade'; expected a mapping with query, document, score, rank"):
        Run.of(table, columns={"grade": "points"})
    with pytest.raises(DataError, match="named for tables alone"):
        Run.of({"1": ["a"]}, columns={"score": "points"})


def test_a_column_name_that_stands_twice_is_refused() -> None:
    table = pa.table([["1"], ["a"], [1.0], [2.0]], names=["qid", "docid", "score", "score"])
    with pytest.raises(DataError, match="score"):
        Run.of(table)


@pytest.mark.parametrize(
    ("grades", "sentence"),
    [
        ([1.0, None], "row 2: query '1', document 'b': the grade is null or NaN"),
        ([float("inf"), 1.0], "row 1: query '1', document 'a': the grade is infinite"),
    ],
)
def test_grades_are_finite(grades: Any, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        Qrels.of(pa.table({"qid": ["1", "1"], "docid": ["a", "b"], "label": grades}))
    assert sentence in str(caught.value)


def test_repeated_judgments_are_as_in_files() -> None:
    columns = {"qid": ["1", "2", "1"], "docid": ["a", "b", "a"], "grade": [1, 1, 1]}
    found = Qrels.of(pa.table(columns))
    assert found.to_dict() == {"1": {"a": 1.0}, "2": {"b": 1.0}}
    assert "1 judgment is repeated with the same grade in qrels" in found.warnings[0]
    with pytest.raises(DataError, match="qrels: row 3: query '1', document 'a' has the grade 2, but 1 at qrels: row 1"):
        Qrels.of(pa.table({**columns, "grade": [1, 1, 2]}))


def test_judgments_in_parquet_may_be_normalised(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(pa.table({"query_id": ["1", "1"], "doc_id": ["Cafe\u0301", "b"], "relevance": [1, 0]}), path)
    assert Qrels.read(path).to_dict() == {"1": {"Cafe\u0301": 1.0, "b": 0.0}}
    assert Qrels.read(path, normalize_ids=True).to_dict() == {"1": {"Caf\u00e9": 1.0, "b": 0.0}}
    named = Qrels.read(path, columns={"query": "doc_id", "document": "query_id"})
    assert named.query_ids == ("Cafe\u0301", "b")


def test_many_batches_are_one_run(tmp_path: Path) -> None:
    count = 300_000
    query = np.repeat(np.arange(300), 1000)
    table = pa.table({"qid": query, "docid": np.arange(count) % 7919, "score": np.sin(np.arange(count))})
    pq.write_table(table, tmp_path / "run.parquet", row_group_size=70_001)
    run = Run.read(tmp_path / "run.parquet")
    assert run.returned.tolist() == [1000] * 300
    expected = table.slice(299_000).to_pandas().sort_values("score", ascending=False)
    assert run.ranking("299").docs == expected["docid"].astype(str).tolist()


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with pytest.raises(DataError, match=r"run\.parquet"):
        Run.read(path)
    path.write_text("1 Q0 d 1 2.5 t\n")
    with pytest.raises(DataError, match=r"run\.parquet: the file is no Parquet"):
        Run.read(path)
    whole = tmp_path / "whole.parquet"
    Run.of({"1": {"a": 1.0}}).save(whole)
    path.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"run\.parquet: the file is no Parquet"):
        Run.read(path)


def test_an_id_that_is_no_utf8_is_refused() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], "<i4")), pa.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(DataError, match="docid is no UTF-8 text"):
        Run.of(pa.table({"qid": ["1"], "docid": broken, "score": [1.0]}))


def test_without_pyarrow_pandas_frames_are_read_and_the_rest_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"qid": [1, 1], "docid": ["a", "b"], "score": [1.0, 2.0]})
    table = pa.table({"qid": ["1"], "docid": ["a"], "score": [1.0]})
    Run.of(table).save(tmp_path / "run.parquet")
    missing = pd.DataFrame({"qid": ["1", None], "docid": ["a", "b"], "score": [1.0, 2.0]})
    wrong = pd.DataFrame({"qid": ["1"], "docid": ["a"], "score": ["high"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert Run.of(frame).to_dict() == {"1": {"b": 2.0, "a": 1.0}}
    with pytest.raises(DataError, match="row 2: qid is null"):
        Run.of(missing)
    with pytest.raises(DataError, match="row 1: score is 'high'; expected a number"):
        Run.of(wrong)
    for load in (lambda: Run.of(table), lambda: Run.read(tmp_path / "run.parquet")):
        with pytest.raises(DataError, match=r"pip install 'pytest-retrieval-eval\[parquet\]'"):
            load()
    with pytest.raises(DataError, match="Parquet is written with the package pyarrow"):
        Run.of({"1": ["a"]}).save(tmp_path / "other.parquet")


def test_the_documentation_shows_what_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    block = next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if not code.startswith(">>>"))
    exec(compile(block, "formats.md", "exec"), {})
    assert capsys.readouterr().out.split() == re.findall(r"# (\S+)$", block, re.MULTILINE)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_before_it_loses_its_beginning(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match="is a pipe or a device; expected a file"):
        Run.read(tmp_path / "pipe.jsonl")
