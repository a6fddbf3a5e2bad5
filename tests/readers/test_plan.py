from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.models.plan import Plan, Shapes, is_out_of_memory

LENGTHS = st.lists(st.integers(0, 300), max_size=60)
SHAPES = st.builds(
    Shapes,
    st.sampled_from(["fixed", "bucket", "dynamic"]),
    rows=st.integers(1, 9),
    step=st.integers(1, 70),
    tokens=st.integers(1, 900),
)


def nothing():
    pass


def run(plan, lengths, work=None, freed=nothing):
    """(members, rows, padded) of each batch that was done."""
    done = []

    def record(members, rows, padded):
        if work:
            work(members, rows, padded)
        done.append((tuple(members), rows, padded))
        return [f"r{member}" for member in members]

    return list(plan.run(lengths, record, freed)), done


@given(SHAPES, LENGTHS)
def test_every_item_is_read_once_and_fits_its_batch(shapes, lengths):
    results, done = run(Plan(shapes), lengths)
    assert sorted(member for members, _, _ in done for member in members) == list(range(len(lengths)))
    assert {member: text for members, texts in results for member, text in zip(members, texts, strict=True)} == {
        member: f"r{member}" for member in range(len(lengths))
    }
    for members, rows, padded in done:
        assert len(members) <= rows
        assert all(lengths[member] <= padded for member in members)
    longest = [max(lengths[member] for member in members) for members, _, _ in done]
    assert longest == sorted(longest, reverse=True)


@given(SHAPES, LENGTHS, st.randoms(use_true_random=False))
def test_a_fixed_shape_is_the_items_own(shapes, lengths, rng):
    def shape_of(order):
        _, done = run(Plan(Shapes("fixed", rows=shapes.rows, step=shapes.step)), [lengths[index] for index in order])
        return {order[member]: (rows, padded) for members, rows, padded in done for member in members}

    whole = shape_of(range(len(lengths)))
    some = rng.sample(range(len(lengths)), len(lengths) // 2)
    assert shape_of(some) == {index: whole[index] for index in some}
    for index, (rows, padded) in whole.items():
        assert rows == shapes.rows
        assert padded % shapes.step == 0
        assert padded - lengths[index] < max(shapes.step, shapes.step * (lengths[index] == 0) + 1)


@given(LENGTHS, st.integers(1, 900), st.integers(1, 70))
def test_buckets_hold_one_padded_length_within_the_budget(lengths, tokens, step):
    _, done = run(Plan(Shapes("bucket", tokens=tokens, step=step)), lengths)
    for members, rows, padded in done:
        assert rows == len(members)
        assert rows == 1 or rows * padded <= tokens
        assert {max(1, -(-lengths[member] // step)) * step for member in members} == {padded}


@given(SHAPES, LENGTHS, st.integers(1, 5))
def test_coarser_shapes_are_those_with_larger_steps_and_budgets(shapes, lengths, times):
    done, same = [], []
    for plan, coarser, found in (
        (Plan(shapes), times, done),
        (Plan(Shapes(shapes.policy, shapes.rows, shapes.step * times, shapes.tokens * times)), 1, same),
    ):
        list(
            plan.run(lengths, lambda *batch, found=found: found.append(batch) or [0] * len(batch[0]), nothing, coarser)
        )
    assert done == same


def above(limit, error=torch.OutOfMemoryError):
    def work(members, rows, padded):
        if rows > limit:
            raise error("no more")

    return work


@pytest.mark.parametrize("policy", ["fixed", "bucket", "dynamic"])
def test_memory_that_runs_out_above_three_rows_halves_until_it_fits(policy):
    plan, freed = Plan(Shapes(policy, rows=8, tokens=8 * 32)), []
    results, done = run(plan, [20] * 21, above(3), lambda: freed.append(1))
    assert sorted(member for members, _ in results for member in members) == list(range(21))
    assert all(texts is not None for _, texts in results)
    assert {rows for _, rows, _ in done} <= ({2} if policy == "fixed" else {1, 2})
    assert len(freed) == 2  # 8, 4: and then the ceiling is known
    run(plan, [20] * 5, above(3), lambda: freed.append(1))
    assert len(freed) == 2
    assert plan.notes[0].startswith("out of memory at 8 rows of ")


def test_the_ceiling_of_a_bucket_is_its_own_and_that_of_fixed_shapes_is_in_the_identity():
    def work(members, rows, padded):
        if rows * padded > 256:
            raise torch.OutOfMemoryError("no more")

    bucket = Plan(Shapes("bucket", tokens=1024))
    _, done = run(bucket, [128] * 4 + [32] * 20, work)
    assert bucket.ceilings == {128: 2, 32: 5}  # 4 × 128; then 20, 10 × 32
    assert bucket.shapes == Shapes("bucket", tokens=1024)
    fixed = Plan(Shapes("fixed", rows=8))
    _, done = run(fixed, [128] * 4 + [32] * 20, work)
    assert {rows for _, rows, _ in done} == {2}
    assert fixed.shapes.identity == Shapes("fixed", rows=2).identity != Shapes("fixed", rows=8).identity
    assert "'rows: 2'" in fixed.notes[-1]


def test_an_item_that_does_not_fit_alone_has_no_result_and_the_others_do():
    def work(members, rows, padded):
        if padded > 64:
            raise RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
            )

    results, _ = run(Plan(Shapes()), [100, 20, 30, 70], work)
    found = {
        member: None if texts is None else texts[at] for members, texts in results for at, member in enumerate(members)
    }
    assert found == {0: None, 3: None, 1: "r1", 2: "r2"}


def test_what_torch_raises_where_memory_runs_out_is_recognised():
    with pytest.raises(RuntimeError) as error:
        torch.empty(1 << 50)
    assert is_out_of_memory(error.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(MemoryError())


@pytest.mark.parametrize("error", [RuntimeError("shapes cannot be multiplied"), ValueError("no"), KeyboardInterrupt()])
def test_no_other_exception_is_tried_again(error):
    calls = []

    def work(members, rows, padded):
        calls.append(rows)
        raise error

    with pytest.raises(type(error)):
        run(Plan(Shapes()), [20] * 9, work)
    assert calls == [8]


def test_the_failed_batch_holds_nothing_while_memory_is_freed():
    import weakref

    held, seen = [], []

    class Tensor:
        pass

    def work(members, rows, padded):
        tensor = Tensor()
        held.append(weakref.ref(tensor))
        if rows > 1:
            raise torch.OutOfMemoryError("no more")

    run(Plan(Shapes(rows=2)), [5], work, lambda: seen.append([each() for each in held]))
    assert seen == [[None]]


def test_who_stops_listening_starts_no_further_batch():
    calls = []
    batches = Plan(Shapes(rows=2)).run([5] * 10, lambda members, *_: calls.append(members) or list(members), nothing)
    assert next(batches)[1] == [0, 1]
    batches.close()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Shapes("fixde"), "did you mean fixed"),
        (lambda: Shapes(rows=0), "rows of the shapes is 0; expected an integer of at least 1"),
        (lambda: Shapes("bucket", step=0), "step of the shapes is 0; expected an integer of at least 1"),
        (lambda: Shapes(step=True), "step of the shapes is True"),
    ],
)
def test_shapes_that_cannot_be(make, text):
    with pytest.raises(SettingsError, match=text):
        make()


def test_the_identity_holds_what_moves_a_text():
    assert Shapes("dynamic").identity is None
    assert Shapes("fixed", tokens=1).identity == Shapes("fixed", tokens=2).identity
    assert Shapes("fixed", rows=4).identity != Shapes("fixed", rows=8).identity
    assert Shapes("bucket", step=16).identity != Shapes("bucket", step=32).identity
