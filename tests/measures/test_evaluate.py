"""Which queries count, what is said about the others, and the objects that evaluate gives."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError
from pytest_retrieval_eval.measures import registry
from pytest_retrieval_eval.measures.evaluate import Evaluation, QueryCounts, Short, evaluate
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.ranks import JudgedRanks
from pytest_retrieval_eval.measures.registry import Definition

QRELS = {
    "hit": {"a": 2, "b": 0},
    "miss": {"a": 1},
    "absent": {"a": 3},
    "empty": {"a": 1},
    "nothing": {"a": 0, "b": -1},
    "unjudged": {},
    "refused": {"a": 1},
}
RUN = {
    "hit": ["a", "b"],
    "miss": ["x", "y", "z"],
    "empty": [],
    "nothing": ["a", "x"],
    "unjudged": ["a"],
    "refused": ["a"],
    "later": ["a"],
    "stranger": ["a"],
}
QUERIES = Queries.of(
    {
        **dict.fromkeys(QRELS, "text"),
        "later": "judged by nobody yet",
        "refused": {"text": "what nobody can answer", "unanswerable": True},
    }
)


@pytest.fixture
def evaluation() -> Evaluation:
    return evaluate(Qrels.of(QRELS), Run.of(RUN), ["recall@2", "judged@2", "ndcg@5"], queries=QUERIES)


class TestWhichQueriesCount:
    def test_ranking_measures(self, evaluation: Evaluation) -> None:
        scores = evaluation["recall@2"]
        assert scores.to_dict() == {"hit": 1.0, "miss": 0.0, "absent": 0.0, "empty": 0.0}
        assert scores.query_ids == ("hit", "miss", "absent", "empty")
        assert (scores.n, len(scores), scores.mean) == (4, 4, 0.25)

    def test_n_can_differ_with_the_level(self, evaluation: Evaluation) -> None:
        assert evaluation["recall(rel=2)@2"].query_ids == ("hit", "absent")
        assert evaluation["recall(rel=3)@2"].query_ids == ("absent",)

    def test_judged_counts_what_has_judgments_and_a_list(self, evaluation: Evaluation) -> None:
        assert evaluation["judged@2"].to_dict() == {"hit": 1.0, "miss": 0.0, "nothing": 0.5}

    def test_ndcg_counts_any_grade_above_zero(self) -> None:
        evaluation = evaluate(Qrels.of({"1": {"a": 0.25}, "2": {"a": 0.0}}), Run.of({"1": ["a"]}), "ndcg")
        assert evaluation["ndcg"].to_dict() == {"1": 1.0}

    def test_the_account(self, evaluation: Evaluation) -> None:
        counts = evaluation.counts
        assert counts.judged == 5
        assert counts.unjudged == ("unjudged", "later")
        assert counts.without_relevant == ("nothing",)
        assert counts.unanswerable == ("refused",)
        assert counts.returned_nothing == ("absent", "empty")
        assert counts.not_in_collection == ("stranger",)
        assert counts.failed == ()
        assert counts.duplicates == 0
        assert counts.short == (Short(5, ("hit", "miss", "nothing"), 7),)
        assert counts.notes() == (
            "2 queries returned nothing: absent, empty",
            "2 queries are unjudged and not counted: unjudged, later",
            "1 query has judgments and nothing relevant, and is not counted: nothing",
            "1 query is unanswerable and not counted: refused",
            "1 run query has no judgments: stranger",
            "3 lists are shorter than 5 ranks (7 hits): hit, miss, nothing",
        )

    def test_without_queries_all_other_run_queries_are_strangers(self) -> None:
        counts = evaluate(Qrels.of(QRELS), Run.of(RUN), "recall@2").counts
        assert counts.not_in_collection == ("later", "stranger")
        assert counts.unjudged == ("unjudged",)
        assert counts.unanswerable == ()

    def test_nothing_to_note(self) -> None:
        assert evaluate(Qrels.of({"1": ["a"]}), Run.of({"1": ["a"]}), "hit@1").counts.notes() == ()

    def test_a_long_list_of_ids_is_cut(self) -> None:
        counts = QueryCounts(unjudged=tuple("abcdefgh"))
        assert counts.notes() == ("8 queries are unjudged and not counted: a, b, c, d, e and 3 more",)

    def test_failures_of_the_retriever_are_reported(self) -> None:
        run = Run.of({"1": ["a"], "2": []}, errors={"2": "timeout"})
        evaluation = evaluate(Qrels.of({"1": ["a"], "2": ["b"]}), run, "hit@1")
        assert evaluation.counts.failed == ("2",)
        assert "1 query made the retriever fail: 2" in evaluation.counts.notes()
        assert evaluate(Qrels.of({"1": ["a"], "2": ["b"]}), run, "hit@1", select=["1"]).counts.failed == ()


class TestSelect:
    def test_scores_and_account_are_of_the_selection(self) -> None:
        evaluation = evaluate(
            Qrels.of(QRELS), Run.of(RUN), "recall@2", queries=QUERIES, select={"hit", "absent", "later"}
        )
        assert evaluation["recall@2"].to_dict() == {"hit": 1.0, "absent": 0.0}
        assert evaluation.counts.judged == 2
        assert evaluation.counts.unjudged == ("later",)
        assert evaluation.counts.unanswerable == ()
        assert evaluation.counts.returned_nothing == ("absent",)

    def test_an_unknown_query_is_an_error(self) -> None:
        with pytest.raises(DataError, match=r"names 1 query that is neither .* the first is hitt; did you mean hit\?"):
            evaluate(Qrels.of(QRELS), Run.of(RUN), "recall@2", select=["hitt", "hit"])

    def test_an_empty_selection_is_an_error(self) -> None:
        with pytest.raises(GateError, match="the selection holds no query"):
            evaluate(Qrels.of(QRELS), Run.of(RUN), "recall@2", select=[])

    def test_repeats_outside_the_selection_are_not_counted(self) -> None:
        qrels = Qrels.of({"1": ["a"], "2": ["b"]})
        run = Run.of({"1": ["a", "a"], "2": ["b", "b", "b"], "9": ["z", "z"]})
        assert evaluate(qrels, run, "hit@1").counts.duplicates == 3
        assert evaluate(qrels, run, "hit@1", select=["1"]).counts.duplicates == 1


class TestTrecMode:
    RUN: ClassVar = {
        query: {doc: 1.0 / rank for rank, doc in enumerate(docs, 1)} for query, docs in RUN.items() if docs
    }

    def test_topics_in_both_count(self) -> None:
        evaluation = evaluate(Qrels.of(QRELS), Run.of(self.RUN), "recall@2", queries=QUERIES, trec=True)
        assert evaluation["recall@2"].to_dict() == {"hit": 1.0, "miss": 0.0, "nothing": 0.0, "refused": 1.0}
        assert evaluation.counts.unanswerable == ()

    def test_the_notes_say_so(self) -> None:
        qrels, run = Qrels.of(QRELS), Run.of(self.RUN)
        notes = evaluate(qrels, run, "map", trec=True).counts.notes()
        assert notes[0] == "2 queries returned nothing and are left out: absent, empty"
        assert "1 query has judgments and nothing relevant, and counts 0: nothing" in notes
        notes = evaluate(qrels, run, "map", trec=True, complete=True).counts.notes()
        assert notes[0] == "2 queries returned nothing: absent, empty"

    def test_complete_counts_all_topics_of_the_qrels(self) -> None:
        evaluation = evaluate(Qrels.of(QRELS), Run.of(self.RUN), "recall@2", trec=True, complete=True)
        assert evaluation["recall@2"].n == 6
        assert evaluation["recall@2"].mean == pytest.approx(2 / 6)

    def test_the_order_is_trec_evals_whatever_the_list_says(self) -> None:
        qrels, run = Qrels.of({"1": ["b"]}), Run.of({"1": [("a", 1.0), ("b", 2.0)]})
        assert evaluate(qrels, run, "mrr")["mrr"].mean == 0.5
        assert evaluate(qrels, run, "mrr", trec=True)["mrr"].mean == 1.0

    def test_complete_alone_is_an_error(self) -> None:
        with pytest.raises(MeasureError, match="trec=True"):
            evaluate(Qrels.of(QRELS), Run.of(RUN), "recall@2", complete=True)

    def test_no_common_topic(self) -> None:
        evaluation = evaluate(Qrels.of({"1": ["a"]}), Run.of({"2": {"a": 1.0}}), "recall@2", trec=True)
        with pytest.raises(GateError, match="no topic of qrels is in the run"):
            _ = evaluation["recall@2"].mean


class TestNoQueryCounts:
    def test_the_level_is_too_high(self) -> None:
        evaluation = evaluate(Qrels.of(QRELS), Run.of(RUN), "recall(rel=4)@5")
        assert evaluation["recall(rel=4)@5"].n == 0
        for ask in (
            lambda: evaluation["recall(rel=4)@5"].mean,
            lambda: evaluation["recall(rel=4)@5"].distribution,
            lambda: evaluation.ties("recall(rel=4)@5"),
        ):
            with pytest.raises(GateError) as caught:
                ask()
            assert str(caught.value) == (
                "no query counts for recall(rel=4)@5: no document has grade >= 4; the highest grade in qrels is 3."
            )

    def test_nothing_is_relevant_at_all(self) -> None:
        evaluation = evaluate(Qrels.of({"1": {"a": 0}}), Run.of({"1": ["a"]}), "ndcg@5")
        with pytest.raises(GateError, match=r"no document has grade above 0; the highest grade in qrels is 0\."):
            _ = evaluation["ndcg@5"].mean

    def test_the_selected_queries_cannot_count(self) -> None:
        evaluation = evaluate(Qrels.of(QRELS), Run.of(RUN), "recall@5", queries=QUERIES, select=["refused", "later"])
        with pytest.raises(GateError, match="none of the 2 selected queries can be counted"):
            _ = evaluation["recall@5"].mean
        evaluation = evaluate(Qrels.of(QRELS), Run.of(RUN), "recall@5", select=["nothing"])
        with pytest.raises(GateError, match="5 queries of qrels with a relevant document are unanswerable or not"):
            _ = evaluation["recall@5"].mean

    def test_a_run_without_a_query(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.trec"
        path.write_text("")
        with pytest.raises(GateError):
            evaluate(Qrels.of(QRELS), Run.read(path), "recall@5")


class TestMeasures:
    def test_one_measure_or_many_in_any_spelling(self) -> None:
        qrels, run = Qrels.of(QRELS), Run.of(RUN)
        for asked in ("P@2", Measure.parse("P@2"), ["P_2"], ("precision@2", "P@2")):
            evaluation = evaluate(qrels, run, asked)
            assert evaluation.measures == (Measure.parse("precision@2"),)
            assert len(evaluation) == 1

    def test_no_measure(self) -> None:
        with pytest.raises(MeasureError, match="no measure was asked for"):
            evaluate(Qrels.of(QRELS), Run.of(RUN), [])

    def test_an_unknown_measure(self) -> None:
        for asked in ("recal@5", Measure("recal", 5)):
            with pytest.raises(MeasureError, match=r"did you mean recall@5\?"):
                evaluate(Qrels.of(QRELS), Run.of(RUN), asked)

    def test_a_measure_that_was_not_asked_for_is_computed_later(self, evaluation: Evaluation) -> None:
        assert evaluation["hit@1"].mean == 0.25
        assert evaluation.scores(Measure.parse("hit@1")) is evaluation["hit@1"]
        assert [str(scores.measure) for scores in evaluation] == ["recall@2", "judged@2", "ndcg@5"]

    def test_a_measure_from_outside(self) -> None:
        kept = np.zeros(0)

        def first_grade(ranks: JudgedRanks, measure: Measure) -> NDArray[np.float64]:
            kept.resize(ranks.queries, refcheck=False)
            kept[:] = 0.0
            top = ranks.rank == 1
            kept[ranks.query[top]] = ranks.grade[top]
            return kept

        registry.register(Definition("first_grade", "grade of the first", "here", first_grade, high=9.0))
        try:
            evaluation = evaluate(Qrels.of(QRELS), Run.of(RUN), "first_grade")
            assert evaluation["first_grade"].to_dict() == {
                "hit": 2.0, "miss": 0.0, "absent": 0.0, "empty": 0.0, "refused": 1.0
            }  # fmt: skip
            kept[:] = 7.0  # what the measure keeps is not what we keep
            assert evaluation["first_grade"].values.max() == 2.0
            tied = evaluate(Qrels.of({"1": ["a"]}), Run.of({"1": {"a": 1.0, "b": 1.0}}), "first_grade")
            with pytest.raises(MeasureError, match="does not say how the order of tied documents moves it"):
                tied.ties("first_grade")
        finally:
            registry.unregister("first_grade")

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            (np.zeros(3), r"gave values of shape \(3,\); expected one for each of the 7 queries"),
            (np.full(7, np.nan), "gave nan for query hit; expected a finite number"),
            (np.full(7, np.inf), "gave inf for query hit"),
        ],
    )
    def test_a_measure_from_outside_that_is_wrong(self, values: NDArray[np.float64], sentence: str) -> None:
        registry.register(Definition("wrong", "wrong", "here", lambda ranks, measure: values))
        try:
            with pytest.raises(MeasureError, match=sentence):
                evaluate(Qrels.of(QRELS), Run.of(RUN), "wrong")
        finally:
            registry.unregister("wrong")


class TestScores:
    def test_one_query(self, evaluation: Evaluation) -> None:
        scores = evaluation["recall@2"]
        assert scores.get("hit") == 1.0
        assert scores.get("nothing") is None
        assert scores.get("nothing", 0.5) == 0.5
        assert type(scores.get("hit")) is float

    def test_the_mean_is_exactly_rounded(self) -> None:
        qrels = Qrels.of({str(i): {str(d): 1 for d in range(10)} for i in range(10)})
        run = Run.of({str(i): ["0"] for i in range(10)})
        assert evaluate(qrels, run, "recall@1")["recall@1"].mean == 0.1

    def test_distribution(self, evaluation: Evaluation) -> None:
        spread = evaluation["recall@2"].distribution
        assert (spread.n, spread.minimum, spread.maximum, spread.zeros) == (4, 0.0, 1.0, 0.75)

    def test_measures_with_the_same_queries_share_their_ids(self) -> None:
        evaluation = evaluate(Qrels.of(QRELS), Run.of(RUN), ["recall@2", "map"])
        assert evaluation["recall@2"].query_ids is evaluation["map"].query_ids

    def test_where_all_count_the_ids_are_those_of_the_qrels(self) -> None:
        qrels = Qrels.of({"1": ["a"], "2": ["b"]})
        assert evaluate(qrels, Run.of({"1": ["a"]}), "map")["map"].query_ids is qrels.query_ids

    def test_how_it_prints(self, evaluation: Evaluation) -> None:
        assert repr(evaluation["recall@2"]) == "Scores(recall@2, n=4, mean=0.2500)"
        assert repr(evaluation["recall(rel=4)@2"]) == "Scores(recall(rel=4)@2, n=0)"
        assert "Scores(judged@2, n=3" in repr(evaluation)

    def test_data_frame(self, evaluation: Evaluation) -> None:
        pytest.importorskip("pandas")
        frame = evaluation.to_frame()
        assert list(frame.columns) == ["query_id", "measure", "value"]
        assert len(frame) == 4 + 3 + 4
        assert frame[frame.measure == "recall@2"].set_index("query_id").value.to_dict() == {
            "hit": 1.0, "miss": 0.0, "absent": 0.0, "empty": 0.0
        }  # fmt: skip

    def test_data_frame_without_pandas(self, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "pandas", None)
        with pytest.raises(GateError, match="pip install pandas"):
            evaluation.to_frame()


def test_a_streamed_file_is_not_loaded_to_be_measured_and_accounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bm25.trec"
    path.write_text("1 Q0 a 1 2.0 bm25\n1 Q0 b 2 1.0 bm25\n9 Q0 z 1 1.0 bm25\n")
    run = Run.read(path)
    monkeypatch.setattr(
        type(run), "duplicates", property(lambda self: pytest.fail("repeats are asked of a sorted run"))
    )
    evaluation = evaluate(Qrels.of({"1": ["b"], "2": ["a"]}), run, ["mrr", "judged@2"])
    assert evaluation["mrr"].to_dict() == {"1": 0.5, "2": 0.0}
    assert evaluation.counts.not_in_collection == ("9",)
    assert evaluation.counts.returned_nothing == ("2",)


def test_warnings_of_qrels_and_run_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("1 0 a 1\n1 0 a 1\n")
    qrels = Qrels.read(path)
    evaluation = evaluate(qrels, Run.of({"1": [("a", 0.0), ("b", 0.5)]}), "mrr")
    assert evaluation.warnings[: len(qrels.warnings)] == qrels.warnings
    assert len(qrels.warnings) == 1
