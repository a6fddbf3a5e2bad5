"""Verdicts cross processes: builtin types only, and back."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from gates_support import MemoryBench, hits, one_each
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.gates.verdict import STATUSES, Interval, Move, QueryDiff, Verdict, builtin

numbers = st.floats(allow_nan=False, allow_infinity=False)
some = lambda strategy: st.one_of(st.none(), strategy)  # noqa: E731
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
moves = st.builds(Move, st.text(), some(numbers), some(st.integers(1)), some(st.integers(1)), some(st.text()))
queries = st.builds(
    QueryDiff,
    st.text(),
    numbers,
    some(numbers),
    some(st.text()),
    st.dictionaries(st.text(), json_values, max_size=3),
    st.lists(moves, max_size=3).map(tuple),
    st.lists(moves, max_size=3).map(tuple),
    some(st.text()),
    st.booleans(),
)
verdicts = st.builds(
    Verdict,
    gate=st.text(),
    status=st.sampled_from(STATUSES),
    reason=st.text(),
    measure=st.text(),
    operator=st.sampled_from([">=", ">", "<=", "<"]),
    baseline=some(st.text()),
    n=st.integers(0),
    value=some(numbers),
    interval=some(st.builds(Interval, numbers, numbers, numbers, st.text())),
    p=some(numbers),
    resolvable=some(st.booleans()),
    judged=st.tuples(some(numbers), some(numbers)),
    ties=some(st.tuples(numbers, numbers)),
    queries=st.lists(queries, max_size=3).map(tuple),
    notes=st.lists(st.text(), max_size=3).map(tuple),
    baseline_changes=st.lists(st.text(), max_size=3).map(tuple),
    to_judge=st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple),
    to_judge_total=st.integers(0, 10**6),
)


def only_builtin(value):
    if isinstance(value, dict):
        return all(type(key) is str and only_builtin(each) for key, each in value.items())
    if type(value) is list:
        return all(map(only_builtin, value))
    return value is None or type(value) in (bool, int, float, str)


@given(verdicts)
def test_a_verdict_comes_back_as_it_went(verdict):
    fields = verdict.to_dict()
    assert only_builtin(fields)
    assert Verdict.from_dict(fields) == verdict
    assert Verdict.from_dict(json.loads(json.dumps(fields))) == verdict
    assert pickle.loads(pickle.dumps(verdict)) == verdict
    assert bool(verdict) == (verdict.status in ("passed", "weak", "updated"))


def test_real_verdicts_are_builtin_too():
    bench = MemoryBench(one_each(6), hits([True, False] * 3), hits([True] * 6), bm25=hits([False] * 6))
    for text, options in (
        ("ndcg@5 >= baseline", {}),
        ("hit@1 >= 0.9", {"allow_failures": np.int64(1)}),
        ("hit@1 >= against(bm25) - 0.1", {"rule": "noninferior", "alpha": np.float64(0.1)}),
        ("map <= 0.5 * baseline", {"rule": "each", "allow": np.int32(2)}),
    ):
        fields = bench.decide(text, **options).to_dict()
        assert only_builtin(fields)
        assert Verdict.from_dict(json.loads(json.dumps(fields, allow_nan=False))).to_dict() == fields


def test_tags_of_any_type_become_builtin():
    tags = {
        "a": np.int64(3),
        "b": (1, np.float32(0.5)),
        "c": {"d": np.bool_(True)},
        "e": np.str_("x"),
        "f": 2 + 1j,
    }
    assert builtin(tags) == {"a": 3, "b": [1, 0.5], "c": {"d": True}, "e": "x", "f": "(2+1j)"}
    assert only_builtin(builtin(tags))


def test_what_cannot_be_a_verdict():
    fields = Verdict("g", "passed", "r", "mrr", ">=").to_dict()
    with pytest.raises(DataError, match="did you mean passed"):
        Verdict.from_dict({**fields, "status": "pased"})
    with pytest.raises(DataError, match="without 'gate'"):
        Verdict.from_dict({"status": "passed"})
    assert Verdict.from_dict({**fields, "of a newer version": 1}) == Verdict("g", "passed", "r", "mrr", ">=")
