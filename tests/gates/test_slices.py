"""Gates by the values of a tag: what a slice decides, what it only reports, and the correction over slices."""

from __future__ import annotations

import json
import math

import pytest
from gates_support import MemoryBench
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.errors import GateError, GateFailure
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.stats.corrections import benjamini_hochberg, holm


def bench_of(classes, **tags):
    """A bench from ``{value: [(before, after), …]}``: hits and misses of the queries of each type."""
    rows = [(kind, before, after) for kind, pairs in classes.items() for before, after in pairs]
    ids = [f"q{i:03d}" for i in range(len(rows))]
    queries = {
        query: {"text": query, "tags": {} if kind is None else {"type": kind}}
        for query, (kind, _, _) in zip(ids, rows, strict=True)
    }
    dataset = Dataset.of(queries=queries, qrels={query: {"gold": 1} for query in ids}, name="handbook")
    lists = {True: ["gold", "other"], False: ["other", "more"]}
    return MemoryBench(
        dataset,
        {query: lists[after] for query, (_, _, after) in zip(ids, rows, strict=True)},
        {query: lists[before] for query, (_, before, _) in zip(ids, rows, strict=True)},
    )


def changes(n, lost=0, gained=0):
    """n queries, of which some lose and some gain."""
    return [(True, False)] * lost + [(False, True)] * gained + [(True, True)] * (n - lost - gained)


def slices_of(verdict):
    return {each.slice: each for each in verdict.slices}


def test_slices_that_read_the_same_have_names_of_their_own():
    long = "x" * 40
    bench = bench_of({"1": changes(10), 1: changes(10), f"{long}a": changes(10), f"{long}b": changes(10)})
    names = [each.slice for each in bench.check("hit@1 >= baseline", by="type").slices]
    assert sorted(names) == ['type="1"', f'type="{long}a"', f'type="{long}b"', "type=1"]


def test_a_mean_that_stands_still_does_not_hide_a_class_that_collapses():
    bench = bench_of({"acronym": changes(20, lost=20), "policy": changes(60, gained=20)})
    assert bench.check("hit@1 >= baseline").delta == 0.0
    with pytest.raises(GateFailure) as caught:
        bench.check("hit@1 >= baseline", by="type")
    verdict = caught.value.verdict
    assert (verdict.status, verdict.delta, verdict.by) == ("failed", 0.0, "type")
    assert verdict.reason == "1 of 2 slices fails: type=acronym, 0.000 is below 1.000"
    assert [(each.slice, each.status, each.n, each.reference, each.value) for each in verdict.slices] == [
        ("type=acronym", "failed", 20, 1.0, 0.0),
        ("type=policy", "weak", 60, pytest.approx(2 / 3), 1.0),
    ]
    # a whole class without a judged document in any list is a loss, not another id scheme
    assert bench.recorded[-1] is verdict


@pytest.mark.parametrize("rule", ["mean", "significant", "each"])
def test_every_rule_that_compares_finds_the_class(rule):
    bench = bench_of({"acronym": changes(20, lost=20), "policy": changes(60, gained=20)})
    verdict = bench.decide("hit@1 >= baseline", by="type", rule=rule)
    assert (verdict.status, verdict.slices[0].slice, verdict.slices[0].status) == ("failed", "type=acronym", "failed")
    lax = bench.decide("hit@1 >= baseline - 0.1", by="type", rule="noninferior")
    assert slices_of(lax)["type=acronym"].status == "failed"


def test_a_slice_is_the_same_gate_on_the_same_queries():
    bench = bench_of({"a": changes(15, lost=3, gained=1), "b": changes(25, lost=2, gained=5), "c": changes(12)})
    verdict = bench.decide("mrr >= baseline - 0.05", by="type")
    for part in verdict.slices:
        alone = bench.decide("mrr >= baseline - 0.05", where={"type": part.slice.removeprefix("type=")})
        for name in (
            "status",
            "reason",
            "n",
            "value",
            "reference",
            "delta",
            "interval",
            "p",
            "worse",
            "where",
            "margin",
        ):
            assert getattr(part, name) == getattr(alone, name), name
        assert [query.query_id for query in part.queries] == [query.query_id for query in alone.queries]
    whole = bench.decide("mrr >= baseline - 0.05")
    assert (verdict.value, verdict.delta, verdict.p, verdict.n) == (whole.value, whole.delta, whole.p, whole.n)


def test_the_worst_slice_comes_first_and_small_ones_decide_nothing():
    bench = bench_of({
        "good": changes(10, gained=1),
        "bad": changes(10, lost=5),
        "worse": changes(10, lost=8),
        "tiny": changes(9, lost=9),
    })  # fmt: skip
    verdict = bench.decide("hit@1 >= baseline", by="type")
    assert [each.slice for each in verdict.slices] == ["type=worse", "type=bad", "type=good", "type=tiny"]
    assert [each.decides for each in verdict.slices] == [True, True, True, False]
    assert verdict.reason.startswith("2 of 3 slices fail: type=worse, ")
    assert "1 more is too small to decide" in verdict.reason
    fine = bench_of({"good": changes(10), "tiny": changes(9, lost=9)})
    assert fine.decide("hit@1 >= baseline", by="type").ok
    assert fine.decide("hit@1 >= baseline", by="type", min_n=9).status == "failed"
    assert bench.decide("hit@1 <= baseline", by="type").slices[0].slice == "type=good"


def test_all_slices_too_small_is_an_error():
    bench = bench_of({"a": changes(4), "b": changes(3)})
    with pytest.raises(
        GateError, match=r"every slice has fewer than 10 counted queries \(the largest, type=a, has 4\)"
    ):
        bench.check("hit@1 >= baseline", by="type")
    assert bench.recorded[-1].status == "error"
    assert bench.decide("hit@1 >= baseline", by="type", min_n=4).ok


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "typ"}, "did you mean type?"),
        ({"by": ""}, "names the tag"),
        ({"by": ["type"]}, "names the tag"),
        ({"by": "type", "min_n": 0}, "take 1 or more"),
        ({"min_n": 5}, "there are none; add by="),
        ({"by": "type", "rule": "significant", "correction": "holms"}, "did you mean holm?"),
        ({"by": "type", "correction": "holm"}, "rule='mean' decides by none"),
        ({"by": "type", "correction": "holm", "rule": "noninferior"}, "decides by none"),
        ({"correction": "holm", "rule": "significant"}, "for a family"),
    ],
)
def test_options_that_mean_nothing_are_errors(options, said):
    with pytest.raises(GateError) as caught:
        bench_of({"a": changes(20)}).decide("hit@1 >= baseline - 0.1", **options)
    assert said in str(caught.value)


def test_a_tag_that_no_counted_query_has():
    dataset = Dataset.of(
        queries={"q1": {"text": "a"}, "q2": {"text": "b", "tags": {"type": "x"}}}, qrels={"q1": {"a": 1}}, name="d"
    )
    with pytest.raises(GateError, match="none of the 1 counted query of d has a value of this tag"):
        MemoryBench(dataset, {"q1": ["a"]}).decide("hit@1 >= 0.5", by="type", min_n=1)
    with pytest.raises(GateError, match="no query has any tag"):
        MemoryBench({"q1": {"a": 1}}, {"q1": ["a"]}).decide("hit@1 >= 0.5", by="type")


def test_queries_without_the_tag_and_with_several_values_are_said():
    bench = bench_of({"a": changes(10)})
    rows = {
        **{f"a{i}": {"text": "x", "tags": {"type": "a"}} for i in range(10)},
        **{f"b{i}": {"text": "x", "tags": {"type": ["b", "a", "b"], "n": 1.0}} for i in range(10)},
        "none": {"text": "x"},
        "empty": {"text": "x", "tags": {"type": []}},
    }
    dataset = Dataset.of(queries=rows, qrels={query: {"gold": 1} for query in rows}, name="handbook")
    run = {query: ["gold"] for query in rows}
    verdict = MemoryBench(dataset, run, run).decide("hit@1 >= baseline", by="type")
    assert {each.slice: each.n for each in verdict.slices} == {"type=a": 20, "type=b": 10}
    for value, n in (("a", 20), ("b", 10), (["a", "b"], 20)):  # where means what a slice of that name does
        assert MemoryBench(dataset, run, run).decide("hit@1 >= baseline", where={"type": value}).n == n
    assert "2 queries have no value of type, and are in no slice: none, empty" in verdict.notes
    assert any(
        note.startswith("10 queries have several values of type, and count in each: b0") for note in verdict.notes
    )
    assert bench.decide("hit@1 >= baseline", by="type").notes == ()


def test_values_keep_their_json_type():
    rows = {
        f"q{value!r}{i}": {"text": "x", "tags": {"new": value}}
        for value in (True, "true", 1, "1", None)
        for i in range(2)
    }
    dataset = Dataset.of(queries=rows, qrels={query: {"gold": 1} for query in rows}, name="handbook")
    run = {query: ["gold"] for query in rows}
    verdict = MemoryBench(dataset, run).decide("hit@1 >= 0.5", by="new", min_n=2)
    assert [each.n for each in verdict.slices] == [2] * 5
    assert {each.slice for each in verdict.slices} == {"new=true", 'new="true"', "new=1", 'new="1"', "new=null"}
    said = {MemoryBench(dataset, run).decide("hit@1 >= 0.5", where={"new": value}).where for value in (1, "1", True)}
    assert said == {"new=1", 'new="1"', "new=true"}


def test_where_and_by_together():
    rows = {
        f"{lang}{i}": {"text": "x", "tags": {"lang": lang, "type": "a" if i < 12 else "b"}}
        for lang in ("de", "en")
        for i in range(24)
    }
    dataset = Dataset.of(queries=rows, qrels={query: {"gold": 1} for query in rows}, name="handbook")
    run = {query: ["gold"] if query.startswith("de") else ["x"] for query in rows}
    verdict = MemoryBench(dataset, run).decide("hit@1 >= 0.5", by="type", where={"lang": "de"})
    assert [(each.where, each.n, each.value) for each in verdict.slices] == [
        ("lang=de, type=a", 12, 1.0),
        ("lang=de, type=b", 12, 1.0),
    ]
    assert verdict.where == "lang=de"


# --- correction ----------------------------------------------------------------------------------


def test_significant_decides_by_adjusted_p():
    # p is 1/64 in each of two slices, and 1 elsewhere
    classes = {"a": changes(40, lost=9, gained=2), **{f"t{i}": changes(40, lost=2, gained=2) for i in range(1)}}
    bench = bench_of(classes)
    alone = bench.decide("hit@1 >= baseline", rule="significant", where={"type": "a"})
    assert (alone.status, alone.p) == ("failed", pytest.approx(67 / 2048))
    verdict = bench.decide("hit@1 >= baseline", rule="significant", by="type")
    a = slices_of(verdict)["type=a"]
    assert (a.p, a.p_adjusted, a.correction) == (alone.p, pytest.approx(2 * 67 / 2048), "holm")
    assert (a.status, verdict.ok) == ("weak", True)
    assert "by Holm over 2, is not below 0.05" in a.reason
    assert bench.decide("hit@1 >= baseline", rule="significant", by="type", correction="none").status == "failed"


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), min_size=2, max_size=4),
    st.sampled_from(["holm", "bh", "none"]),
)
def test_the_family_is_all_deciding_slices(sizes, correction):
    bench = bench_of(
        {f"t{i}": changes(20, lost, gained) for i, (lost, gained) in enumerate(sizes)} | {"tiny": changes(3, 3)}
    )
    verdict = bench.decide("hit@1 >= baseline", rule="significant", by="type", correction=correction)
    parts = [slices_of(verdict)[f"type=t{i}"] for i in range(len(sizes))]
    p = [each.p for each in parts]
    want = {"holm": holm, "bh": benjamini_hochberg, "none": lambda values: values}[correction](p)
    for i, (part, (lost, gained)) in enumerate(zip(parts, sizes, strict=True)):
        # oracle: the binomial tail
        k = lost + gained
        assert part.p == pytest.approx(sum(math.comb(k, j) for j in range(lost, k + 1)) / 2**k)
        adjusted = part.p if correction == "none" else part.p_adjusted
        assert adjusted == pytest.approx(want[i])
        others = [*p[:i], 2.0**-k, *p[i + 1 :]]
        reach = {"holm": holm, "bh": benjamini_hochberg, "none": lambda values: values}[correction](others)[i]
        # what the test could not have shown is decided by the means: never a pass for want of evidence
        expected = lost <= gained or (reach < 0.05 and adjusted >= 0.05)
        assert part.ok == expected
    assert slices_of(verdict)["type=tiny"].p_adjusted is None
    assert verdict.ok == all(part.ok for part in parts)


def test_a_correction_never_hides_what_it_made_unresolvable():
    # 5 of 10 lost, none gained: p = 1/32, which alone is below .05 and among ten slices cannot be
    bench = bench_of({f"t{i}": changes(10, lost=5 * (i == 0)) for i in range(10)})
    verdict = bench.decide("hit@1 >= baseline", rule="significant", by="type")
    worst = verdict.slices[0]
    assert (worst.status, worst.p, worst.p_adjusted, worst.resolvable) == ("failed", 1 / 32, 10 / 32, False)
    assert (
        "the test cannot resolve it (smallest p 0.0312 one-sided, 0.0625 two-sided, 0.3125 by Holm over 10)"
        in worst.reason
    )


# --- around it -----------------------------------------------------------------------------------


def test_a_fixed_target_by_slices():
    bench = bench_of({"a": changes(10, lost=9), "b": changes(30)})
    verdict = bench.decide("hit@1 >= 0.7", by="type")
    assert (verdict.value, verdict.status) == (pytest.approx(31 / 40), "failed")
    assert [(each.slice, each.status, each.value, each.p) for each in verdict.slices] == [
        ("type=a", "failed", pytest.approx(0.1), None),
        ("type=b", "passed", 1.0, None),
    ]


def test_a_session_that_writes_baselines_and_a_minimum_of_judged_documents():
    bench = bench_of({"a": changes(10, lost=3), "b": changes(10)})
    bench.update = True
    assert bench.check("hit@1 >= baseline", by="type").status == "updated"
    bench.update = False
    verdict = bench.decide("hit@1 >= baseline", by="type", judged=0.9)
    assert verdict.status == "inconclusive"
    assert [each.status for each in verdict.slices] == ["inconclusive", "weak"]


def test_slices_travel():
    bench = bench_of({"a": changes(10, lost=3), "b": changes(12), "c": changes(2)})
    verdict = bench.decide("hit@1 >= baseline", by="type", rule="significant")
    fields = verdict.to_dict()
    assert Verdict.from_dict(json.loads(json.dumps(fields, allow_nan=False))) == verdict
