from __future__ import annotations

import asyncio
import gc
import importlib
import io
import itertools
import os
import re
import sys
import threading
import uuid
from collections import namedtuple
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.runs.hits import Hit, read_hits
from pytest_retrieval_eval.collection.runs.retrieve import from_retriever
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, SettingsError

QUERIES = {"q1": "one", "q2": "two", "q3": "three"}


def docs(run):
    return {query_id: ranking.docs for query_id, ranking in run.rankings(run.query_ids).items()}


def hits(result, **options):
    return read_hits(result, "query '1'", **options)


class TestForms:
    @pytest.mark.parametrize(
        "result",
        [
            ["a", "b"],
            ("a", "b"),
            iter(["a", "b"]),
            np.array(["a", "b"]),
            [("a", 0.9), ("b", 0.8)],
            [["a", 0.9], ["b", np.float32(0.8)]],
            [{"id": "a", "score": 1}, {"_id": "b", "_score": 0}],
            [{"doc_id": "a"}, {"chunk_id": "b"}],
            [SimpleNamespace(id="a", score=0.5), SimpleNamespace(chunk_id="b")],
            [Hit("a"), Hit("b", 0.5)],
            {"a": 2, "b": 1.5},
            {"b": np.float64(1.5), "a": np.int64(2)},
            {
                "documents": [
                    SimpleNamespace(id="a", score=1.0, meta={}),
                    SimpleNamespace(id="b", score=None, meta={}),
                ]
            },
        ],
    )
    def test_ids_in_order(self, result):
        assert [hit.id for hit in hits(result)] == ["a", "b"]

    def test_integers_and_uuids_become_text(self):
        name = uuid.UUID(int=1)
        assert [hit.id for hit in hits([1, np.int64(2), name, (3, 0.5)])] == ["1", "2", str(name), "3"]

    def test_scores(self):
        found = hits([("a", np.float32(0.5)), ("b", np.array(0.25)), ("c", float("-inf"))])
        assert [hit.score for hit in found] == [0.5, 0.25, float("-inf")]

    def test_a_mapping_is_sorted_with_ties_by_id_descending(self):  # cases 19, 23
        scores = {"b": 1.0, "a": 1.0, "é": 1.0, "z": 1.0, "\U0001f600": 1.0, "\uffff": 1.0, "top": 2.0}
        expected = ["top", *sorted(set(scores) - {"top"}, key=str.encode, reverse=True)]
        assert [hit.id for hit in hits(scores)] == expected

    def test_infinities_are_ordered(self):
        scores = {"a": 0.0, "b": float("inf"), "c": float("-inf")}
        assert [hit.id for hit in hits(scores)] == ["b", "a", "c"]

    def test_a_list_keeps_its_order(self):  # case 25
        assert [hit.id for hit in hits([("a", 0.0), ("b", 0.4), ("c", 0.5)])] == ["a", "b", "c"]

    def test_depth_cuts(self):
        assert [hit.id for hit in hits(map(str, itertools.count()), depth=3)] == ["0", "1", "2"]
        assert [hit.id for hit in hits({"a": 1, "b": 2, "c": 3}, depth=2)] == ["c", "b"]

    def test_empty(self):
        assert hits([]) == hits({}) == hits(()) == []

    def test_named_tuples(self):
        named = namedtuple("named", "id score text")
        pair = namedtuple("pair", "document value")
        assert hits([named("a", 0.5, "x"), pair("b", 0.4)]) == [Hit("a", 0.5), Hit("b", 0.4)]

    @settings(deadline=None)  # a busy machine is no failure
    @given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.floats(allow_nan=False)))
    def test_the_order_of_a_mapping_does_not_matter(self, scores):
        backwards = dict(reversed(scores.items()))
        assert hits(scores) == hits(backwards)
        values = [hit.score for hit in hits(scores)]
        assert values == sorted(values, reverse=True)


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict = field(default_factory=dict)
    id: str | None = None


@dataclass
class HaystackDocument:
    id: str
    content: str
    meta: dict = field(default_factory=dict)
    score: float | None = None


def llama(node_id, score, **more):
    given = {"metadata": {}, "start_char_idx": None, "end_char_idx": None, "ref_doc_id": None, **more}
    return SimpleNamespace(node=SimpleNamespace(node_id=node_id, **given), score=score, id_=node_id)


class TestFrameworks:
    def test_langchain(self):
        document = LangChainDocument("x", {"id": "mine", "doc_id": "guide", "start": 1, "end": 5}, id="theirs")
        expected = Hit("mine", None, "guide", 1, 5)
        assert hits([document]) == [expected]
        assert hits([(document, 0.5)]) == [Hit("mine", 0.5, "guide", 1, 5)]
        assert hits([LangChainDocument("x", {"source": "s"}, id="theirs")]) == [Hit("theirs")]
        assert hits([LangChainDocument("x", {"doc_id": "guide"})]) == [Hit("guide", doc_id="guide")]

    def test_llamaindex(self):
        node = llama("n1", 0.5, start_char_idx=0, end_char_idx=10, ref_doc_id="guide")
        assert hits([node, llama("n2", None)]) == [Hit("n1", 0.5, "guide", 0, 10), Hit("n2")]

    def test_haystack(self):
        document = HaystackDocument("h", "x", {"id": "other", "doc_id": "guide"}, 0.5)
        assert hits({"documents": [document]}) == [Hit("h", 0.5, "guide")]

    def test_chunks_of_mappings(self):
        row = {"id": "guide#1", "score": 1, "doc_id": "guide", "start": np.int64(3), "end": 9}
        assert hits([row]) == [Hit("guide#1", 1.0, "guide", 3, 9)]
        assert hits([{"id": "a", "metadata": {"doc_id": 7, "start": 0, "end": 2}}]) == [Hit("a", None, "7", 0, 2)]

    def test_metadata_of_other_meaning_is_left_alone(self):
        row = {"id": "a", "metadata": {"start": "2021-01-01", "end": None, "doc_id": ["x"]}}
        assert hits([row]) == [Hit("a")]

    @pytest.mark.parametrize(("start", "end"), [(5, 3), (-1, 3), (1.5, 3), ("1", "3"), (1, None), (True, 3)])
    def test_offsets_that_cannot_be(self, start, end):
        with pytest.raises(DataError, match="query '1', rank 2: the chunk 'b' has start"):
            hits(["a", {"id": "b", "start": start, "end": end}])


class TestRefusedForms:
    @pytest.mark.parametrize(
        ("result", "said"),
        [
            ({"a", "b"}, "returned a set, which has no order"),
            (frozenset("a"), "returned a set"),
            ({"a": 1}.keys(), "returned a set"),
            ("abc", "returned the text 'abc'"),
            (b"abc", "returned the text"),
            (None, "returned None; expected .*empty list for no hits"),
            (7, "returned 7; expected a list"),
            (object(), "expected a list of hits, best first, or a mapping"),
            (np.array(1.0), "expected a list of hits"),
            ([None], "rank 1: the hit None has no id"),
            (["a", {"score": 1.0}], "rank 2: the hit {'score': 1.0} has no id; expected an id, an"),
            ([{"id": None}], "rank 1: .*has no id"),
            ([{"id": ""}], "empty string"),
            ([{"id": 1.5}], "1.5 is no id"),
            ([True], "has no id"),
            ([("a", 1.0, 2.0)], "has 3 parts; expected \\(id, score\\)"),
            ([("a", float("nan"))], "query '1': document 'a' has the score NaN"),
            ([("a", np.float32("nan"))], "document 'a' has the score NaN"),
            ([("a", "0.5")], "document 'a' has the score '0.5'"),
            ([("a", True)], "score True"),
            ([("a", np.array([1.0, 2.0]))], "expected a number"),
            ([("a", 10**400)], "too large"),
            ([(("a", 1.0), 2.0)], r"\('a', 1.0\) is no id"),
            ({"a": float("nan")}, "document 'a' has the score NaN"),  # case 24
            ({"a": None}, "document 'a' has the score None"),
            ({"hits": ["a"]}, "document 'hits' has the score"),
            ({1: 0.5, "1": 0.4}, "become the one document id '1'"),
            (([1, 2], [0.9, 0.8]), "the hit 0.9 has no id"),
        ],
    )
    def test_refused(self, result, said):
        with pytest.raises(DataError, match=said):
            hits(result)

    def test_a_data_frame(self):
        pandas = pytest.importorskip("pandas")
        with pytest.raises(DataError, match="returned a DataFrame"):
            hits(pandas.DataFrame({"id": ["a"], "score": [1.0]}))

    @pytest.mark.parametrize("result", [{"a", "b"}, "abc", None, [{}], [("a", float("nan"))]])
    def test_the_form_of_hits_is_an_error_at_once_and_no_failure_of_a_query(self, result):
        asked = []

        def search(text):
            asked.append(text)
            return result

        with pytest.raises(DataError, match="query 'q1'"):
            from_retriever(search, QUERIES)
        assert asked == ["one"]


class TestRun:
    def test_of_a_function(self):
        def search(text):
            return [(text, 1.0), ("z", 0.5)]

        ticks = itertools.count()
        run = from_retriever(search, QUERIES, depth=5, clock=lambda: next(ticks) / 4)
        assert docs(run) == {"q1": ["one", "z"], "q2": ["two", "z"], "q3": ["three", "z"]}
        assert (run.name, run.depth, run.ordered_by) == ("search", 5, "list")
        assert run.ranking("q1").scores == [1.0, 0.5]
        assert run.seconds == {"q1": 0.25, "q2": 0.25, "q3": 0.25}
        assert run.errors == {}

    def test_through_run(self):
        assert docs(Run.from_retriever(lambda text: [text], {"a": "x"}, name="n")) == {"a": ["x"]}

    def test_names(self):
        class Searcher:
            def __call__(self, text):
                return [text]

        assert from_retriever(Searcher(), {"a": "x"}).name == "Searcher"
        assert from_retriever(lambda text: [text], {"a": "x"}).name == "retriever"
        assert from_retriever(lambda text: [text], {"a": "x"}, name="mine").name == "mine"

    def test_queries_with_one_text_are_both_asked(self):  # case 42
        asked = []
        run = from_retriever(lambda text: [str(asked.append(text))], {"a": "same", "b": "same"})
        assert asked == ["same", "same"]
        assert run.query_ids == ("a", "b")

    def test_a_query_without_hits_has_a_list(self):
        run = from_retriever(lambda text: [], QUERIES)
        assert run.query_ids == ("q1", "q2", "q3")
        assert run.returned.tolist() == [0, 0, 0]

    def test_mappings_are_ordered_by_score_and_know_their_ties(self):
        run = from_retriever(lambda text: {} if text == "two" else {"a": 1.0, "b": 1.0, "c": 3}, QUERIES, depth=2)
        assert run.ordered_by == "score"
        assert docs(run) == {"q1": ["c", "b"], "q2": [], "q3": ["c", "b"]}

    def test_mappings_and_lists_are_a_list(self):
        run = from_retriever(lambda text: {"a": 1, "b": 2} if text == "two" else [("c", 1)], QUERIES)
        assert run.ordered_by == "list"
        assert run.ranking("q2").docs == ["b", "a"]

    def test_scores_that_some_hits_lack(self):
        run = from_retriever(lambda text: ["a"] if text == "two" else [("a", 1.0), ("b", 2.0)], QUERIES)
        assert run.ranking("q1").docs == ["a", "b"]
        assert run.ranking("q1").scores is None

    def test_rising_scores_look_like_distances(self):  # case 25
        run = from_retriever(lambda text: [("a", 0.0), ("b", 0.4), ("c", 0.5)], QUERIES)
        assert run.ranking("q1").docs == ["a", "b", "c"]
        (warning,) = run.warnings
        assert "distances" in warning
        assert from_retriever(lambda text: [("a", 0.5), ("b", 0.4)], QUERIES).warnings == ()

    def test_chunks(self):
        run = from_retriever(lambda text: [Hit("g#1", 0.5, "g", 0, 9)], {"a": "x"})
        ranking = run.ranking("a")
        assert (ranking.doc_id, ranking.start, ranking.end) == (["g"], [0], [9])

    def test_depth_cuts_lists_and_endless_generators(self):
        def endless(text):
            yield from map(str, itertools.count())

        assert docs(from_retriever(endless, {"a": "x"}, depth=2)) == {"a": ["0", "1"]}
        assert docs(from_retriever(lambda text: list("abc"), {"a": "x"}, depth=2)) == {"a": ["a", "b"]}

    @pytest.mark.parametrize("keyword", ["limit", "k", "top_k", "depth"])
    def test_the_depth_is_given_to_whoever_insists_on_it(self, keyword):
        scope = {}
        exec(f"def wants(query, {keyword}): return [str({keyword})]", scope)
        exec(f"def has(query, {keyword}=7): return [str({keyword})]", scope)
        exec(f"def named(query, *, {keyword}): return [str({keyword})]", scope)
        exec(f"async def waits(query, {keyword}): return [str({keyword})]", scope)
        found = {
            name: docs(from_retriever(scope[name], {"a": "x"}, depth=5))["a"]
            for name in ("wants", "has", "named", "waits")
        }
        assert found == {"wants": ["5"], "has": ["7"], "named": ["5"], "waits": ["5"]}

    def test_a_query_parameter_of_that_name_is_the_query(self):
        assert docs(from_retriever(lambda k: [k], {"a": "x"})) == {"a": ["x"]}

    def test_built_in_without_signature(self):
        assert docs(from_retriever({"x": ["d"]}.get, {"a": "x"})) == {"a": ["d"]}

    @pytest.mark.parametrize("options", [{"depth": 0}, {"depth": True}, {"depth": 1.5}, {"batch_size": 0}])
    def test_settings(self, options):
        with pytest.raises(SettingsError, match="expected an integer of at least 1"):
            from_retriever(lambda text: [], QUERIES, **options)

    def test_no_queries(self):
        with pytest.raises(DataError, match="no queries"):
            from_retriever(lambda text: [], {})

    def test_queries_without_texts_are_refused_before_anything_is_asked(self):
        with pytest.raises(DataError, match="has no text"):
            from_retriever(pytest.fail, Queries.without_texts(["a"], "qrels"))


def kinds(run):
    """The failures of a run without the places, which all are in this file."""
    found = {
        query: re.fullmatch(r"(.*) \(tests/collection/test_retrieve\.py:\d+ in \w+\)", text)
        for query, text in run.errors.items()
    }
    return {query: match and match[1] for query, match in found.items()}


class TestFailures:
    @pytest.mark.parametrize("batch_size", [None, 3])
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_it_is_kept_with_the_line_of_the_users_that_raised(self, tmp_path, monkeypatch, batch_size, asynchronous):
        package = tmp_path / "myapp"
        package.mkdir()
        (package / "search.py").write_text(
            "import json\n\ndef search(text):\n    return parsed('{')\n\n"
            "def parsed(reply):\n    return json.loads(reply)\n\n"
            "async def later(text):\n    return search(text)\n"
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        module = importlib.import_module("myapp.search")
        del sys.modules["myapp"], sys.modules["myapp.search"]
        run = from_retriever(module.later if asynchronous else module.search, QUERIES, batch_size=batch_size)
        run.save(tmp_path / "made.run.jsonl")
        (text,) = set(Run.read(tmp_path / "made.run.jsonl").errors.values())
        assert text.startswith("JSONDecodeError: Expecting property name")
        assert text.endswith(f" ({os.path.join('myapp', 'search.py')}:7 in parsed)")

    def test_of_what_is_built_in_there_is_no_line(self):
        assert from_retriever({}.__getitem__, {"a": "x"}).errors == {"a": "KeyError: 'x'"}

    def test_an_exception_is_kept_and_is_no_score(self):  # case 35
        def search(text):
            if text == "two":
                raise TypeError("no index\ud800")
            return [text]

        run = from_retriever(search, QUERIES)
        assert kinds(run) == {"q2": "TypeError: no index\\ud800"}
        assert run.query_ids == ("q1", "q2", "q3")
        assert run.returned.tolist() == [1, 0, 1]
        assert set(run.seconds) == set(QUERIES)

    def test_while_iterating(self):
        def search(text):
            yield "a"
            raise ConnectionError("gone")

        assert set(kinds(from_retriever(search, QUERIES)).values()) == {"ConnectionError: gone"}

    def test_of_lazy_results(self):
        class Lazy:
            def __iter__(self):
                raise OSError("later")

        assert kinds(from_retriever(lambda text: Lazy(), {"a": "x"})) == {"a": "OSError: later"}

    def test_all_of_them(self):
        run = from_retriever(lambda text: 1 / 0, QUERIES)
        assert set(run.errors) == set(QUERIES)

    def test_an_exception_without_text(self):
        class Odd(Exception):
            def __str__(self):
                raise ValueError

        def search(text):
            raise Odd

        assert from_retriever(search, {"a": "x"}).errors["a"].startswith("Odd: ")

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, pytest.skip.Exception])
    def test_what_ends_the_session_ends_it(self, stop, caplog):
        def search(text):
            raise stop("now")

        async def waits(text):
            raise stop("now")

        for retriever in (search, waits):
            with pytest.raises(stop):
                from_retriever(retriever, QUERIES)
        gc.collect()
        assert caplog.text == ""  # no task is left of which nobody heard how it ended


class TestAsync:
    def test_concurrency_is_bounded_and_the_order_stays(self):
        running, most = 0, 0

        async def search(text):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            return [text]

        queries = {str(i): f"t{i}" for i in range(20)}
        run = from_retriever(search, queries, concurrency=3)
        assert most == 3
        assert docs(run) == {key: [text] for key, text in queries.items()}
        assert run.query_ids == tuple(queries)
        assert set(run.seconds) == set(queries)

    def test_where_a_loop_runs_already(self):
        async def search(text):
            await asyncio.sleep(0)
            return [threading.current_thread().name]

        async def main():
            return from_retriever(search, {"a": "x"})

        assert docs(asyncio.run(main()))["a"][0].startswith("retrieval")
        assert docs(from_retriever(search, {"a": "x"})) == {"a": [threading.current_thread().name]}

    def test_a_plain_function_that_returns_coroutines_is_asked_once(self):
        started = []

        async def search(text):
            started.append(text)
            return [text]

        assert docs(from_retriever(lambda text: search(text), QUERIES)) == {
            key: [text] for key, text in QUERIES.items()
        }
        assert sorted(started) == sorted(QUERIES.values())

    def test_async_generators(self):
        async def search(text):
            for i in itertools.count():
                yield f"{text}{i}"

        assert docs(from_retriever(search, {"a": "x"}, depth=2)) == {"a": ["x0", "x1"]}

    def test_failures_and_self_cancellation_are_kept(self):
        async def search(text):
            if text == "one":
                raise asyncio.CancelledError
            if text == "two":
                raise ValueError("bad")
            return [text]

        run = from_retriever(search, QUERIES)
        assert kinds(run) == {"q1": "CancelledError", "q2": "ValueError: bad"}

    def test_a_bad_form_stops_the_others(self):
        finished = []

        async def search(text):
            if text == "one":
                return {"a"}
            await asyncio.sleep(30)
            finished.append(text)
            return [text]

        with pytest.raises(DataError, match=r"query 'q1'.*set"):
            from_retriever(search, QUERIES)
        assert not finished

    def test_batches(self):
        async def search(texts):
            return [[text] for text in texts]

        assert docs(from_retriever(search, QUERIES, batch_size=2)) == {key: [text] for key, text in QUERIES.items()}


class TestBatches:
    def test_sizes_and_times(self):
        sizes = []

        def search(texts):
            sizes.append(len(texts))
            return (map(str, [text, "z"]) for text in texts)

        ticks = itertools.count()
        run = from_retriever(search, QUERIES, batch_size=2, depth=1, clock=lambda: float(next(ticks)))
        assert sizes == [2, 1]
        assert docs(run) == {"q1": ["one"], "q2": ["two"], "q3": ["three"]}
        assert run.seconds == {"q1": 0.5, "q2": 0.5, "q3": 1.0}

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (
                [["a"]],
                "queries 'q1' to 'q3': the retriever returned 1 answers; expected a list of 3 hit lists",
            ),
            ([], "returned 0 answers"),
            ("abc", "returned 'abc'; expected a list of 3"),
            ({"a": 1, "b": 2, "c": 3}, "expected a list of 3"),
            ({"a", "b", "c"}, "expected a list of 3"),
            (None, "returned None"),
            ([["a"], None, ["b"]], "query 'q2': the retriever returned None"),
            (["a", "b", "c"], "query 'q1': the retriever returned the text 'a'"),
        ],
    )
    def test_answers_of_another_form(self, answer, said):
        with pytest.raises(DataError, match=said):
            from_retriever(lambda texts: answer, QUERIES, batch_size=8)

    def test_an_exception_is_that_of_every_query_in_the_batch(self):
        def search(texts):
            if "one" in texts:
                raise ValueError("bad")
            return [[text] for text in texts]

        run = from_retriever(search, QUERIES, batch_size=2)
        assert set(run.errors) == {"q1", "q2"}


class TestObjects:
    @pytest.mark.parametrize("method", ["invoke", "get_relevant_documents", "retrieve"])
    def test_methods(self, method):
        assert docs(from_retriever(SimpleNamespace(**{method: lambda text: [text]}), {"a": "x"})) == {"a": ["x"]}

    def test_haystack(self):
        class Retriever:
            def run(self, query, top_k):
                return {"documents": [HaystackDocument(f"{query}-{i}", "") for i in range(top_k)]}

        run = from_retriever(Retriever(), {"a": "x"}, depth=2)
        assert docs(run) == {"a": ["x-0", "x-1"]}
        assert run.name == "Retriever"

    def test_haystack_async(self):
        class Retriever:
            async def run(self, query):
                return {"documents": [HaystackDocument(query, "")]}

        assert docs(from_retriever(Retriever(), {"a": "x"})) == {"a": ["x"]}

    def test_batch_of_a_runnable(self):
        retriever = SimpleNamespace(invoke=pytest.fail, batch=lambda texts: [[text] for text in texts])
        assert docs(from_retriever(retriever, QUERIES, batch_size=2))["q3"] == ["three"]

    @pytest.mark.parametrize(
        ("search", "said"),
        [
            (None, "the retriever is None; expected a callable"),
            ("myapp:search", "expected a callable from query text to hits"),
            (SimpleNamespace(search=len), "pass its method: .search"),
        ],
    )
    def test_no_retriever(self, search, said):
        with pytest.raises(DataError, match=said):
            from_retriever(search, QUERIES)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestProgress:
    def test_forced(self):
        with redirect_stderr(Terminal()) as stderr:
            from_retriever(lambda text: [text], QUERIES, progress=True)
        assert "retrieving" in stderr.getvalue()

    def test_quick_runs_show_nothing(self):
        with redirect_stderr(Terminal()) as stderr:
            from_retriever(lambda text: [text], QUERIES)
        assert stderr.getvalue().strip("\r ") == ""

    def test_no_terminal_no_bar(self, capsys):
        from_retriever(lambda text: [text], QUERIES)
        assert capsys.readouterr() == ("", "")

    def test_without_tqdm(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "tqdm", None)
        with redirect_stderr(Terminal()) as stderr:
            assert len(from_retriever(lambda text: [text], QUERIES)) == 3
        assert stderr.getvalue() == ""
        with pytest.raises(SettingsError, match=r"pytest-retrieval-eval\[progress\]"):
            from_retriever(lambda text: [text], QUERIES, progress=True)

    def test_stderr_that_is_gone(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", None)
        assert len(from_retriever(lambda text: [text], QUERIES)) == 3


class TestTextsOfHits:
    """Hits that say their document and carry a text, but not where it stands, are looked for in a corpus."""

    CORPUS = Corpus.of({"guide": "Refunds take 14 days.  Contact us. Or else. Or else.", "faq": "Contact us."})

    def search(self, _):
        return [
            {"id": "1", "doc_id": "guide", "text": "days. Contact"},
            {"id": "1", "doc_id": "faq", "content": "Contact us."},
            {"id": "3", "doc_id": "guide", "text": "Or else."},
            {"id": "4", "doc_id": "guide", "text": "Or else.", "start": 43, "end": 51},
            {"id": "5", "text": "Refunds"},
        ]

    def test_they_get_offsets_and_the_header_says_what_came_of_it(self):
        run = from_retriever(self.search, {"q": "?"}, corpus=self.CORPUS)
        found = run.ranking("q")
        assert found.start == [16, 0, None, 43, None]
        assert found.end == [30, 11, None, 51, None]
        assert run.header["located"] == (
            "2 of 3 chunks found by their text (1 as they are, 1 but for white space or Unicode form); "
            "1 in several places of their document"
        )

    def test_without_a_corpus_they_stay_as_they_are(self):
        run = from_retriever(self.search, {"q": "?"})
        assert run.ranking("q").start == [None, None, None, 43, None]
        assert "located" not in run.header
        assert "located" not in from_retriever(lambda _: ["a"], {"q": "?"}, corpus=self.CORPUS).header


def test_queries_are_asked_again_and_the_median_is_kept():
    ticks = iter([0, 5, 0, 1, 0, 10, 0, 3, 0, 20, 0, 2, 0, 30])
    asked = []

    def search(text):
        asked.append(text)
        return [f"{text}{len(asked) // 5}"]

    run = from_retriever(search, {"q1": "a", "q2": "b"}, warmup=1, repeat=3, clock=lambda: next(ticks), progress=False)
    assert asked == ["a", "a", "b", "a", "b", "a", "b"]
    assert dict(run.seconds) == {"q1": 2, "q2": 20}
    # The hits are those of the first pass, and that they changed is said.
    assert run.to_dict() == {"q1": ["a0"], "q2": ["b0"]}
    assert {key: run.header["timing"][key] for key in ("warmup", "repeat", "differing")} == {
        "warmup": 1,
        "repeat": 3,
        "differing": 2,
    }


def test_passes_of_an_asynchronous_retriever_share_a_loop():
    loops = []

    async def search(text):
        loops.append(asyncio.get_running_loop())
        return [text]

    run = from_retriever(search, {"q1": "a", "q2": "b"}, warmup=5, repeat=2, progress=False)
    assert len(loops) == 9
    assert len(set(loops)) == 1
    assert run.header["timing"]["concurrency"] == 8


def test_a_failure_of_any_pass_is_kept_and_one_while_warming_up_is_not():
    calls = []

    def search(text):
        calls.append(text)
        if len(calls) in (1, 4):
            raise TimeoutError("slow")
        return {"documents": [text], "cost": 0.5}

    run = from_retriever(search, {"q1": "a", "q2": "b"}, warmup=1, repeat=2, progress=False)
    assert kinds(run) == {"q1": "TimeoutError: slow"}
    assert dict(run.costs) == {"q1": 0.5, "q2": 0.5}


@pytest.mark.parametrize("options", [{"warmup": -1}, {"warmup": 1.5}, {"repeat": 0}, {"repeat": True}])
def test_passes_are_counted_in_whole_numbers(options):
    with pytest.raises(SettingsError, match=next(iter(options))):
        from_retriever(lambda text: [], {"q1": "a"}, **options)


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "free", True])
def test_a_cost_that_is_none_is_refused(cost):
    with pytest.raises(DataError, match=r"query 'q1': the retriever returned the cost"):
        from_retriever(lambda text: {"documents": ["a"], "cost": cost}, {"q1": "a"}, progress=False)


def test_times_and_costs_are_kept_in_files(tmp_path):
    run = Run.of({"q1": ["a"], "q2": []}, seconds={"q1": 0.25}, costs={"q2": 0.002})
    for name in ("a.run.jsonl", "a.parquet"):
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow")
        run.save(tmp_path / name)
        again = Run.read(tmp_path / name)
        assert (dict(again.seconds), dict(again.costs)) == ({"q1": 0.25}, {"q2": 0.002})
    assert not run.without_seconds().costs
