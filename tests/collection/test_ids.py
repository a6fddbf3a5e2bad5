from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import PairTable, descending, pair_keys, same_bytes, scramble
from pytest_retrieval_eval.errors import DataError

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=30)


@given(texts)
def test_a_column_gives_back_its_strings(ids: list[str]) -> None:
    column = Ids.of(ids)
    assert list(column) == ids
    assert len(column) == len(ids)
    assert [column[i] for i in range(len(ids))] == ids
    assert column[::-1].strings() == ids[::-1]
    assert column.strings(slice(1, 3)) == ids[1:3]


@given(texts, st.integers(0, 5))
def test_keys_depend_on_the_id_alone(ids: list[str], skip: int) -> None:
    whole = Ids.of(ids).keys()
    alone = [int(Ids.of([text]).keys()[0]) for text in ids]
    assert whole.tolist() == alone
    assert Ids.of(ids)[skip:].keys().tolist() == alone[skip:]


@given(texts, texts)
def test_bytes_are_compared_exactly(some: list[str], others: list[str]) -> None:
    pairs = [(a, b) for a in some for b in [*others, *some]]
    left, right = Ids.of([a for a, _ in pairs]), Ids.of([b for _, b in pairs])
    same = same_bytes(left.data, left.starts, left.lengths, right.data, right.starts, right.lengths)
    assert same.tolist() == [a == b for a, b in pairs]


@given(texts)
def test_ids_are_ordered_by_bytes_descending(ids: list[str]) -> None:
    column = Ids.of(ids)
    order = np.lexsort(descending(column.data, column.starts, column.lengths)) if ids else np.zeros(0, np.int64)
    assert column[order].strings() == sorted(ids, key=str.encode, reverse=True)


def test_few_rows_of_a_large_column_are_decoded_alone() -> None:
    column = Ids.of([f"doc{i}" for i in range(10_000)] + ["Überblick"])
    assert column.strings([10_000, 0]) == ["Überblick", "doc0"]


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(DataError, match=r"'b\\ud800'.*surrogate"):
        Ids.of(["a", "b\ud800"])


def test_columns_cannot_be_written_to() -> None:
    column = Ids.of(["a"])
    for array in (column.data, column.starts, column.lengths, column.keys()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_table_proposes_every_row_of_a_key_that_collides() -> None:
    pairs = np.array([7, 5, 7, 9], np.uint64)
    positions, rows = PairTable(pairs).probe(np.array([9, 7, 1], np.uint64))
    assert sorted(zip(positions.tolist(), rows.tolist(), strict=True)) == [(0, 3), (1, 0), (1, 2)]


@pytest.mark.parametrize("size", [0, 1, 3000])
def test_a_table_finds_its_own_pairs(size: int) -> None:
    docs = Ids.of([f"document-{i}" for i in range(size)])
    pairs = pair_keys(scramble(Ids.of(["q"] * size).keys()), docs.keys())
    positions, rows = PairTable(pairs).probe(pairs)
    assert positions.tolist() == rows.tolist() == list(range(size))
