from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.queries import Queries, nfc_twins
from pytest_retrieval_eval.errors import DataError

LINES = [
    {"_id": "q1", "text": "refund?", "tags": {"type": "policy", "vip": True, "year": 2024}},
    {"query_id": 2, "query": "refund?", "metadata": {"type": "price", "year": 2024.0}, "unanswerable": True},
    {"id": "q3", "text": "", "tags": {"type": "policy", "topics": ["a", "b"]}, "roles": ["admin", "user"]},
]


@pytest.fixture
def write(tmp_path):
    def write(content, name="queries.jsonl"):
        if not isinstance(content, str):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path = tmp_path / name
        path.write_text(content, "utf-8", newline="")
        return path

    return write


@pytest.fixture
def queries(write):
    return Queries.read(write(LINES))


class TestReading:
    def test_beir_lines(self, queries):
        assert queries.ids == ("q1", "2", "q3") == tuple(queries)
        assert queries.text("2") == "refund?"
        assert queries.tags("2") == {"type": "price", "year": 2024.0}
        assert queries.unanswerable == {"2"}
        assert queries.roles("q3") == ("admin", "user")
        assert queries.roles("q1") == ()
        assert len(queries) == 3
        assert "q1" in queries
        assert "q9" not in queries

    def test_two_queries_may_have_one_text(self, queries):  # case 42
        assert queries.text("q1") == queries.text("2")

    def test_tags_win_over_metadata(self, write):
        row = {"_id": "1", "text": "x", "metadata": {"a": 1, "b": 1}, "tags": {"a": 2}}
        assert Queries.read(write([row])).tags("1") == {"a": 2, "b": 1}

    @pytest.mark.parametrize(
        "content",
        ["q1\tone two\nq2\ta\tb\n", "\ufeffquery-id\ttext\r\n# note\r\n\r\nq1\tone two\r\nq2\ta\tb\r\n"],
    )
    def test_table(self, write, content):
        queries = Queries.read(write(content, "queries.tsv"))
        assert {query_id: queries.text(query_id) for query_id in queries} == {"q1": "one two", "q2": "a\tb"}

    def test_an_id_may_begin_with_a_hash(self, write):
        assert Queries.read(write("#1\tone\n", "queries.tsv")).ids == ("#1",)

    def test_duplicate_names_both_lines(self, write):
        row = {"_id": "a", "text": "x"}
        with pytest.raises(DataError, match=r"jsonl:3: the query id 'a' stands already at .*jsonl:1"):
            Queries.read(write([row, {"_id": "b", "text": "x"}, row]))

    def test_an_integer_and_a_string_become_one_id(self, write):
        with pytest.raises(DataError, match="1 and '1' become one"):
            Queries.read(write([{"_id": 1, "text": "x"}, {"_id": "1", "text": "y"}]))

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"text": "x"}, "has no '_id'"),
            ({"_id": "a"}, "query 'a' has no 'text'"),
            ({"_id": "a", "text": None}, "text of query 'a' is None"),
            ({"_id": "a", "text": ["x"]}, "expected a string"),
            ({"_id": "a", "text": "\ud83d"}, "surrogate"),
            ({"_id": True, "text": "x"}, "True is no id"),
            ({"_id": "a", "text": "x", "tags": ["b"]}, "tags of query 'a' are"),
            ({"_id": "a", "text": "x", "unanswerable": "true"}, "expected true or false"),
            ({"_id": "a", "text": "x", "roles": [1]}, "roles of query 'a'"),
        ],
    )
    def test_what_cannot_be_a_query(self, write, row, said):
        with pytest.raises(DataError, match=rf"queries\.jsonl:1: .*{said}"):
            Queries.read(write([row]))

    @pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
    def test_no_queries(self, write, content):
        with pytest.raises(DataError, match="no queries in"):
            Queries.read(write(content))

    def test_table_without_tab(self, write):
        with pytest.raises(DataError, match=r"tsv:2: 'q2 x' has no tab"):
            Queries.read(write("q1\tx\nq2 x\n", "queries.tsv"))

    def test_normalised_ids(self, write):
        path = write([{"_id": "Cafe\u0301", "text": "x"}])
        assert Queries.read(path).ids == ("Cafe\u0301",)
        assert Queries.read(path, normalize_ids=True).ids == ("Caf\u00e9",)


class TestOf:
    def test_texts_and_rows(self):
        queries = Queries.of({1: "one", "b": {"query": "two", "unanswerable": True}})
        assert queries.ids == ("1", "b")
        assert queries.unanswerable == {"b"}

    @pytest.mark.parametrize("value", [[], "text", None, {}, {1: "a", "1": "b"}, {"a": None}, {"a": 1}])
    def test_refused(self, value):
        with pytest.raises(DataError):
            Queries.of(value)

    def test_neither_side_changes_the_other(self):
        given = {"a": {"text": "x", "tags": {"topics": ["t"]}}}
        queries = Queries.of(given)
        given["a"]["tags"]["topics"].append("u")
        given["a"]["tags"]["new"] = 1
        assert queries.tags("a") == {"topics": ("t",)}
        with pytest.raises(TypeError):
            queries.tags("a")["new"] = 1

    def test_unknown_id(self):
        with pytest.raises(DataError, match="has no query 'q12'; did you mean q1"):
            Queries.of({"q1": "x"}).text("q12")

    def test_only_ids(self):
        queries = Queries.without_texts(["a", "b"], "qrels.tsv")
        assert queries.ids == ("a", "b")
        with pytest.raises(DataError, match="query 'a' has no text"):
            queries.text("a")

    def test_pickle(self, queries):
        again = pickle.loads(pickle.dumps(queries))
        assert again.ids == queries.ids
        assert again.tags("q1") == queries.tags("q1")


class TestSelect:
    @pytest.mark.parametrize(
        ("where", "ids"),
        [
            ({}, {"q1", "2", "q3"}),
            ({"type": "policy"}, {"q1", "q3"}),
            ({"type": ["policy", "price"]}, {"q1", "2", "q3"}),
            ({"type": "policy", "vip": True}, {"q1"}),
            ({"year": 2024}, {"q1", "2"}),
            ({"year": 2024.0}, {"q1", "2"}),
            ({"topics": [["a", "b"]]}, {"q3"}),
            ({"topics": "b"}, {"q3"}),
            ({"topics": ["a", "b"]}, {"q3"}),
        ],
    )
    def test_selected(self, queries, where, ids):
        assert queries.select(where) == ids

    @pytest.mark.parametrize(
        ("where", "said"),
        [
            ({"type": "polcy"}, 'type = "polcy": .*did you mean "policy"\\?'),
            ({"type": ["policy", "polcy"]}, "did you mean"),
            ({"typ": "policy"}, "has the tag 'typ'; did you mean type\\?"),
            ({"vip": "true"}, "did you mean true\\?"),
            ({"vip": 1}, "vip = 1: no query"),
            ({"vip": False}, "vip = false"),
            ({"year": "2024"}, 'year = "2024": .*did you mean 2024\\?'),
            ({"year": float("nan")}, "no query"),
            ({"type": "price", "vip": True}, "has all of these"),
            ({"type": []}, "empty list"),
            ({"type": None}, "type = null"),
            ({"type": object()}, "no JSON value"),
            ("policy", "expected a mapping"),
        ],
    )
    def test_refused(self, queries, where, said):
        with pytest.raises(DataError, match=said):
            queries.select(where)

    def test_no_tags_at_all(self):
        with pytest.raises(DataError, match="no query has any tag"):
            Queries.of({"a": "x"}).select({"type": "policy"})

    def test_values_of(self, queries):
        assert queries.values_of("type") == {'"policy"': {"q1", "q3"}, '"price"': {"2"}}
        assert queries.values_of("year") == {"2024": {"q1", "2"}}
        assert queries.values_of("vip") == {"true": {"q1"}}

    @settings(deadline=None)  # a busy machine is no failure
    @given(
        st.dictionaries(
            st.text("abc", min_size=1),
            st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from("01"),
            min_size=1,
        )
    )
    def test_values_part_the_queries_that_have_the_tag(self, values):
        queries = Queries.of({key: {"text": "", "tags": {"t": value}} for key, value in values.items()})
        parts = queries.values_of("t")
        assert sorted(name for part in parts.values() for name in part) == sorted(values)
        for text, part in parts.items():
            assert queries.select({"t": json.loads(text)}) == part


def test_nfc_twins():
    assert nfc_twins(["Cafe\u0301", "x", "y"], {"Caf\u00e9", "y"}) == ["Cafe\u0301"]
    assert nfc_twins(["K"], {"\u212a"}) == ["K"]
    assert nfc_twins(["a"], {"b"}) == []
