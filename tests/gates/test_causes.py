"""What a failed gate's lost queries have in common."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from gates_support import MemoryBench
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.gates.causes import causes_of_loss, hypergeometric_tail
from pytest_retrieval_eval.measures.evaluate import evaluate


def bench_of(n, before, after, tags=lambda i: {}, **more):
    """A bench with one relevant document g for each of n queries; lists are made from the query's number."""
    rows = {f"q{i}": {"text": "x", "tags": tags(i)} for i in range(n)}
    gold = {f"q{i}": {f"g{i}": 1, "bad": 0} for i in range(n)}
    dataset = Dataset.of(queries=rows, qrels=gold, name="handbook", **more)
    return MemoryBench(dataset, {f"q{i}": after(i) for i in range(n)}, {f"q{i}": before(i) for i in range(n)})


def good(i):
    return [f"g{i}", "x", "y"]


def causes(bench, gate="hit@1 >= baseline", **options):
    verdict = bench.decide(gate, **options)
    assert verdict.status == "failed"
    return verdict.causes


def test_a_tag_that_the_lost_queries_share():
    def after(i):
        return ["x", f"g{i}"] if i < 31 or 190 <= i < 200 else good(i)

    def tags(i):
        return {"type": "acronym" if i < 36 else "policy", "half": i % 2, "id": i}

    found = causes(bench_of(210, good, after, tags))
    said = [cause for cause in found if "overall" in cause]
    assert len(said) == 1
    assert said[0].startswith("31 of the 41 lost queries are type=acronym (36 of 210 overall; by chance p = ")


def test_tags_of_another_type_are_told_apart():
    def after(i):
        return ["x"] if i < 30 else good(i)

    # Half of the lost queries has the number, the other half the text that reads like it; then two long texts.
    long = "x" * 40
    for one, other, first, second in (
        (1, "1", "1", '"1"'),
        (True, "true", "true", '"true"'),
        (None, "null", "null", '"null"'),
        (f"{long}a", f"{long}b", f'"{long}a"', f'"{long}b"'),
    ):
        found = causes(bench_of(200, good, after, lambda i, of=(one, other): {"v": of[i % 2] if i < 30 else "rest"}))
        named = sorted(cause.split(" are ")[1].split(" (")[0] for cause in found if "overall" in cause)
        assert named == sorted([f"v={first}", f"v={second}"])


def test_no_tag_is_named_for_what_chance_explains():
    rng = np.random.Generator(np.random.PCG64(3))
    named = 0
    for _ in range(30):
        lost = set(rng.choice(200, 30, replace=False).tolist())
        bench = bench_of(
            200,
            good,
            lambda i, lost=lost: ["x"] if i in lost else good(i),
            lambda i: {"a": i % 5, "b": i % 7, "c": [i % 3, "all"]},
        )
        named += any("overall" in cause for cause in causes(bench))
    # Holm keeps the chance of naming any tag below 5 %: 6 of 30 or more have the chance .003
    assert named < 6


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n), st.integers(0, n)))
)
def test_the_tail_is_the_count_of_draws(numbers):
    total, having, drawn, a = numbers
    draws = sum(math.comb(having, i) * math.comb(total - having, drawn - i) for i in range(a, min(having, drawn) + 1))
    expected = float(Fraction(draws, math.comb(total, drawn)))
    assert hypergeometric_tail(a, total, having, drawn) == pytest.approx(max(expected, 5e-324), rel=1e-9)


def test_the_tail_is_never_zero():
    assert 0 < hypergeometric_tail(3500, 7000, 3500, 3500) < 1e-300


def test_where_the_relevant_documents_went():
    def after(i):
        if i < 4:
            return ["x", "y"]
        return ["x"] * 0 + [f"n{j}" for j in range(i)] + [f"g{i}"] if i < 9 else good(i)

    found = causes(bench_of(50, good, after), "recall@3 >= baseline")
    assert (
        "of the 9 relevant documents that left the top 3, 4 are nowhere in the list and 5 fell to rank 7 in the median"
        in found
    )
    order = causes(bench_of(50, good, lambda i: ["x", f"g{i}"] if i < 5 else good(i)), "mrr >= baseline")
    assert "5 relevant documents fell, from rank 1 to rank 2 in the median" in order
    both = causes(
        bench_of(50, good, lambda i: ["x"] if i < 2 else ["x", f"g{i}"] if i < 5 else good(i)), "mrr >= baseline"
    )
    assert "2 relevant documents left the list and 3 fell, from rank 1 to rank 2 in the median" in both


def test_the_same_document_in_many_lists():
    found = causes(bench_of(60, good, lambda i: ["hub", f"u{i}"] if i < 20 else [f"v{i}"] if i < 22 else good(i)))
    assert "hub took a place in the top 1 in 20 of the 22 lost queries" in found
    each = causes(bench_of(60, good, lambda i: [f"u{i}"] if i < 20 else good(i)))
    assert (
        "no document took a place in more than 1 of the 20 lost queries: 20 different ones came into the top 1" in each
    )
    many = causes(bench_of(300, good, lambda i: ["hub"] if i < 200 else good(i)))
    assert "hub took a place in the top 1 in all 50 lost queries that were looked up" in many


def test_ties_and_unjudged_documents():
    def after(i):
        if i < 3:
            return {"x": 1.0, f"g{i}": 1.0}
        if i < 8:
            return {"bad": 2.0, f"g{i}": 1.0}
        return {f"g{i}": 2.0, "x": 1.0}

    found = causes(bench_of(40, lambda i: {f"g{i}": 2.0, "x": 1.0}, after))
    assert "3 of the 8 lost queries hang on a tie: another order of equal scores would save them" in found
    assert (
        "3 of the 8 lost queries hang on unjudged documents: were those judged, they could be as good as before"
        in found
    )


def test_a_measure_without_bounds_counts_unjudged_documents():
    found = causes(
        bench_of(40, good, lambda i: ["x", f"g{i}"] if i < 3 else ["bad", f"g{i}"] if i < 8 else good(i)),
        "map(denominator=retrieved)@1 >= baseline",
    )
    assert (
        "3 of the 8 lost queries have more documents in the top 1 that nobody judged than before, and that may be "
        "relevant" in found
    )


@pytest.mark.parametrize("measure", ["recall@3", "ndcg@3", "map@2", "precision@2", "mrr@3"])
def test_what_hangs_on_unjudged_documents_is_what_some_judgments_could_undo(measure):
    """Beside every way to judge the documents that nobody judged, one query at a time."""
    rng = np.random.Generator(np.random.PCG64(11))
    names = ["a", "b", "c", "u", "v", "w"]
    gold = {f"q{i}": {"a": 1, "b": int(rng.integers(3)), "c": 0} for i in range(40)}
    before = {query: list(rng.permutation(names)[:4]) for query in gold}
    after = {query: list(rng.permutation(names)[:4]) for query in gold}
    old, new = (evaluate(Qrels.of(gold), Run.of(run), measure)[measure] for run in (before, after))
    lost, hang = [query for query in gold if new.get(query) < old.get(query) - 1e-9], 0
    for query in lost:
        holes = [doc for doc in after[query] if doc not in gold[query]]
        judged = [dict(zip(holes, grades, strict=True)) for grades in itertools.product(range(3), repeat=len(holes))]
        labels = Qrels.of(
            {f"{query}-{j}": {**gold[query], **each} for j, each in enumerate(judged)} | {"top": {"a": 2}}
        )
        run = Run.of({f"{query}-{j}": after[query] for j in range(len(judged))} | {"top": ["a"]})
        found = evaluate(labels, run, measure)[measure]
        hang += max(found.get(f"{query}-{j}") for j in range(len(judged))) >= old.get(query) - 1e-9
    bench = MemoryBench(gold, after, before)
    said = [cause for cause in bench.decide(f"{measure} >= baseline", rule="each").causes if "unjudged" in cause]
    assert hang > 0
    assert measure == "precision@2" or hang < len(lost)
    n = f"all {hang}" if hang == len(lost) else f"{hang} of the {len(lost)}"
    end = (
        "s on unjudged documents: were those judged, it"
        if hang == 1
        else " on unjudged documents: were those judged, they"
    )
    assert said == [f"{n} lost queries hang{end} could be as good as before"]


def test_queries_for_which_nothing_was_returned():
    found = causes(bench_of(40, good, lambda i: [] if i < 3 else ["bad"] if i < 5 else good(i)))
    assert "for 3 of the 5 lost queries the run returned nothing: q0, q1, q2" in found


def test_what_changed_since_the_baseline_was_saved():
    bench = bench_of(40, good, lambda i: ["x"] if i < 5 else good(i))
    bench.baselines[None] = bench.baselines[None].with_header(labels="sha256:0", query_set="sha256:0")
    assert causes(bench)[0] == "the labels and the queries have changed since the baseline was saved"
    bench.baselines[None] = bench.baselines[None].with_header(labels=bench.data.label_digest, query_set=None)
    assert not any("changed since" in cause for cause in causes(bench))


def test_a_fixed_target():
    found = causes(
        bench_of(
            40, good, lambda i: ["x", f"g{i}"] if i < 10 else ["bad"] if i < 20 else good(i), lambda i: {"t": i < 20}
        ),
        "hit@1 >= 0.9",
    )
    assert found == (
        "all 20 queries below the target are t=true (20 of 40 overall; by chance p = 1.5e-11)",
        "of the 20 relevant documents of the 20 queries below the target that are beyond rank 1, 10 are nowhere in "
        "the list and 10 stand at rank 2 in the median",
        "10 of the 20 queries below the target hang on unjudged documents: were those judged, they could reach the "
        "target",
    )


def test_an_upper_limit_speaks_of_tags_and_of_nothing_that_fell():
    bench = bench_of(40, lambda i: ["x"] if i < 30 else good(i), good, lambda i: {"t": i < 30})
    found = causes(bench, "hit@1 <= baseline")
    assert found == ("all 30 lost queries are t=true (30 of 40 overall; by chance p = 2.4e-09)",)


def test_nothing_is_said_where_there_is_nothing():
    assert bench_of(40, good, good).decide("hit@1 >= baseline").causes == ()
    assert causes(bench_of(40, good, lambda i: ["x"] if i == 0 else good(i))) == ()


def test_the_text_has_them_before_the_queries_in_ten_lines_at_most():
    bench = bench_of(
        60, good, lambda i: [] if i < 3 else ["hub", f"g{i}"] if i < 20 else good(i), lambda i: {"t": i < 20}
    )
    lines = bench.explain(bench.decide("hit@1 >= baseline")).splitlines()
    at = lines.index("what the lost queries have in common:")
    end = next(i for i, line in enumerate(lines) if line.startswith("q0  "))
    assert all(line.startswith(("  - ", "    ")) for line in lines[at + 1 : end])
    assert 3 < end - at <= 10


def test_seven_thousand_queries_take_no_time(monkeypatch):
    n = 7000
    rows = {f"q{i}": {"text": "x", "tags": {"type": i % 10, "area": f"a{i % 97}"}} for i in range(n)}
    gold = {f"q{i}": {f"g{i}": 1} for i in range(n)}
    dataset = Dataset.of(queries=rows, qrels=gold, name="handbook")
    before = Run.of({f"q{i}": [f"g{i}", "x"] for i in range(n)}, name="before")
    after = Run.of({f"q{i}": ["x", f"g{i}"] if i % 10 == 3 else [f"g{i}", "x"] for i in range(n)}, name="after")
    bench = MemoryBench(dataset, after, before)
    spent = []

    def timed(*arguments):
        start = time.process_time()
        result = causes_of_loss(*arguments)
        spent.append(time.process_time() - start)
        return result

    monkeypatch.setattr("pytest_retrieval_eval.gates.causes.causes_of_loss", timed)
    looked_up = []
    rankings = Run.rankings
    monkeypatch.setattr(
        Run, "rankings", lambda run, ids, **more: looked_up.append(len(ids)) or rankings(run, ids, **more)
    )
    verdict = bench.decide("hit@1 >= baseline")
    assert verdict.causes[0].startswith("all 700 lost queries are type=3 (700 of 7000 overall; by chance p = ")
    assert verdict.causes[2] == "x took a place in the top 1 in all 50 lost queries that were looked up"
    assert looked_up[:2] == [50, 50]  # the diff's; the causes look up none (the rest are pairs to judge)
    assert spent[0] < 2.0  # 0.05 s on a desk
