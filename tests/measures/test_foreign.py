"""Measures of the package ir_measures: its numbers, under its names."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from gates_support import MemoryBench, hits, one_each
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures.evaluate import evaluate
from pytest_retrieval_eval.measures.names import Measure

ir_measures = pytest.importorskip("ir_measures")

docs = st.sampled_from([f"d{i}" for i in range(8)])
PAIRS = {
    "ir_measures:nDCG@3": "ndcg@3",
    "ir_measures:AP": "map",
    "ir_measures:P(rel=2)@5": "precision(rel=2)@5",
    "ir_measures:RR": "mrr",
    "ir_measures:Judged@4": "judged@4",
    "ir_measures:Bpref": "bpref",
}


@settings(deadline=None, max_examples=25)
@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.tuples(st.dictionaries(docs, st.integers(-2, 3)), st.lists(docs, unique=True)),
        min_size=1,
    ).filter(lambda world: any(max(grades.values(), default=0) > 0 for grades, _ in world.values()))
)
def test_on_what_we_have_too_it_gives_the_same(world: dict[str, tuple[dict[str, int], list[str]]]) -> None:
    qrels = Qrels.of({query: grades for query, (grades, _) in world.items()})
    run = Run.of({query: ranking for query, (_, ranking) in world.items()})
    evaluation = evaluate(qrels, run, [*PAIRS, *PAIRS.values()])
    for theirs, ours in PAIRS.items():
        # Theirs counts queries with a grade above 0; a level leaves out more, judged@k takes others.
        got, expected = evaluation[theirs].to_dict(), evaluation[ours].to_dict()
        both = got.keys() & expected.keys()
        assert both == expected.keys() or ours.startswith("judged")
        assert {query: got[query] for query in both} == pytest.approx({q: expected[q] for q in both}, abs=1e-6), theirs


def test_a_measure_that_we_do_not_have() -> None:
    qrels, run = {"q": {"a": 2, "b": 1}}, {"q": {"b": 3.0, "x": 2.0, "a": 1.0}}
    (expected,) = ir_measures.iter_calc([ir_measures.parse_measure("Compat(p=0.9)")], qrels, run)
    evaluation = evaluate(Qrels.of(qrels), Run.of(run), "ir_measures:Compat(p=0.9)")
    assert 0 < expected.value < 1
    assert evaluation["ir_measures:Compat(p=0.9)"].mean == pytest.approx(expected.value)


@pytest.mark.parametrize(
    ("text", "cutoff"),
    [("ir_measures:Compat", None), ("ir_measures:nDCG(dcg='exp-log2')@10", 10), ("ir_measures:IPrec@0.5", None)],
)
def test_its_names_go_round(text: str, cutoff: int | None) -> None:
    measure = Measure.parse(text)
    assert (str(measure), measure.cutoff) == (text, cutoff)
    assert Measure.parse(str(measure)) == measure
    nested = Measure.parse(f"condensed({text})")
    assert (str(nested), nested.innermost) == (f"condensed({text})", measure)
    if cutoff:
        assert str(measure.at(5)) == text.replace("@10", "@5")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ir_measures:nothing@3", "measure not found: nothing"),
        ("ir_measures:P@", "see the documentation of ir_measures"),
        ("ir_measures:alpha_nDCG@10", "needs judgments by subtopic"),
        ("Compat(p=0.9)", r"unknown measure Compat.* The package ir_measures has it: write ir_measures:Compat\."),
    ],
)
def test_what_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(MeasureError, match=sentence):
        Measure.parse(text)


def test_what_it_cannot_compute_names_the_measure() -> None:
    with pytest.raises(MeasureError, match=r"ir_measures:SDCG@3 raised AssertionError: invalid param max_rel"):
        evaluate(Qrels.of({"q": {"a": 1}}), Run.of({"q": ["a"]}), "ir_measures:SDCG@3")
    with pytest.raises(MeasureError, match="reads whole grades"):
        evaluate(Qrels.of({"q": {"a": 0.5}}), Run.of({"q": ["a"]}), "ir_measures:nDCG@3")


def test_a_gate() -> None:
    bench = MemoryBench(one_each(3), hits([True, False, True]), hits([True, True, True]))
    assert bench.decide("ir_measures:Compat >= 0.5").ok
    assert bench.decide("ir_measures:Compat(p=0.9) >= baseline").status == "failed"


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def absent(name: str, *rest: Any) -> Any:
        if name == "ir_measures":
            raise ModuleNotFoundError("No module named 'ir_measures'", name=name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MeasureError, match=r"needs the package ir_measures.*pytest-retrieval-eval\[ir_measures\]"):
        Measure.parse("ir_measures:Compat")
