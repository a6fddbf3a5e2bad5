"""Which items are read together, in which shape, and what happens where memory runs out.

What moves a greedy text from one batching to the next is the *shape* of the computation: how many rows it has and how
long they are padded. A policy of shapes says how far the shape of an item depends on the items beside it:

``fixed``
    Not at all. An item is padded to the next multiple of ``step`` above its own length, and every batch has ``rows``
    rows; a batch that is not full is filled with copies of its last row.
``bucket``
    In the number of rows only. Padded as above; a batch holds as many rows of one padded length as ``tokens`` allow.
``dynamic``
    In both. ``rows`` items are padded to the longest of them. What is read so belongs to its neighbours too, and is
    never cached.

Longest first, so that memory runs out at the beginning or not at all, and the estimate of the time left errs on the
safe side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, cast, get_args

from pytest_retrieval_eval.errors import SettingsError, did_you_mean

T = TypeVar("T")
Policy = Literal["fixed", "bucket", "dynamic"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

_NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory")


# Finer lengths are less padding and more batches; under fixed shapes each batch may be filled up with copies.
_STEPS: Mapping[str, int] = {"fixed": 32, "bucket": 16, "dynamic": 32}


@dataclass(frozen=True)
class Shapes:
    """A policy of shapes and its sizes; see the module.

    >>> Shapes().padded(33), Shapes("bucket").rows_at(64)
    (64, 64)
    """

    policy: Policy = "fixed"
    rows: int = 8
    step: int = cast(int, None)  # None: the policy's own, so that it is a number from then on
    tokens: int = 4096

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise SettingsError(f"shapes {self.policy!r}: {did_you_mean(str(self.policy), POLICIES)}")
        if self.step is None:
            object.__setattr__(self, "step", _STEPS[self.policy])
        for name in ("rows", "step", "tokens"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingsError(f"{name} of the shapes is {value!r}; expected an integer of at least 1")

    @property
    def identity(self) -> dict[str, object] | None:
        """What of the shapes can change a text; None where the items beside an item can."""
        if self.policy == "fixed":
            return {"policy": "fixed", "rows": self.rows, "step": self.step}
        if self.policy == "bucket":
            return {"policy": "bucket", "step": self.step, "tokens": self.tokens}
        return None

    def padded(self, length: int) -> int:
        """The padded length of an item of its own: the next multiple of ``step``."""
        return max(1, -(-length // self.step)) * self.step

    def coarser(self, times: int) -> Shapes:
        """Shapes whose lengths are as many times coarser, with a budget of as many times the tokens.

        >>> Shapes("bucket").coarser(4).padded(33), Shapes("bucket").coarser(4).rows_at(128)
        (64, 128)
        """
        return replace(self, step=self.step * times, tokens=self.tokens * times)

    def rows_at(self, padded: int) -> int:
        """The largest number of rows of a batch of this padded length."""
        return max(1, self.tokens // padded) if self.policy == "bucket" else self.rows


class Plan:
    """Batches under a policy, and the ceilings that running out of memory has left.

    Under ``fixed`` the ceiling is the number of rows itself, for every length: texts then are those of a reader that
    was told so from the start, and ``shapes.identity`` says it. Under the others it holds for one padded length.
    """

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.ceilings: dict[int, int] = {}
        self.notes: list[str] = []

    def run(
        self,
        lengths: Sequence[int],
        work: Callable[[Sequence[int], int, int], list[T]],
        free: Callable[[], object],
        coarser: int = 1,
    ) -> Iterator[tuple[Sequence[int], list[T] | None]]:
        """Do the work batch by batch: ``work(members, rows, padded)`` gives a result for each member.

        With ``coarser`` the shapes are so many times coarser; what memory has taught holds for both.

        Yields (members, results) of each batch as soon as it is done: who stops listening loses no batch that was
        done, and starts no other. Where memory runs out the batch is halved, and again, until it has one row; the
        results are None where that was too much too. Every other exception is the caller's.
        """
        for group in _groups(self.shapes.coarser(coarser), lengths):
            begin = 0
            while begin < len(group):
                shapes = self.shapes.coarser(coarser)
                longest = lengths[group[begin]]
                padded = max(1, longest) if shapes.policy == "dynamic" else shapes.padded(longest)
                most = min(shapes.rows_at(padded), self.ceilings.get(padded, sys.maxsize))
                members = group[begin : begin + most]
                rows = most if shapes.policy == "fixed" else len(members)
                results = _unless_out_of_memory(work, members, rows, padded)
                if results is None:
                    # The except block is left: no frame of the failed batch holds its tensors any more.
                    free()
                    if rows > 1:
                        self._halve(rows, padded)
                        continue
                begin += len(members)
                yield members, results

    def _halve(self, rows: int, padded: int) -> None:
        fewer = rows // 2
        if self.shapes.policy == "fixed":
            self.shapes = replace(self.shapes, rows=fewer)
            advice = f"; with 'rows: {fewer}' in the reader's shapes the next session starts there and finds its cache"
        else:
            self.ceilings[padded] = fewer
            advice = ""
        self.notes.append(f"out of memory at {rows} rows of {padded} tokens: goes on with {fewer}{advice}")


def _groups(shapes: Shapes, lengths: Sequence[int]) -> list[list[int]]:
    """Indices that may share a batch, longest first, in the given order where lengths are equal."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    if shapes.policy == "dynamic":
        return [order]
    groups: dict[int, list[int]] = {}
    for index in order:
        groups.setdefault(shapes.padded(lengths[index]), []).append(index)
    return list(groups.values())


def _unless_out_of_memory(
    work: Callable[[Sequence[int], int, int], list[T]], members: Sequence[int], rows: int, padded: int
) -> list[T] | None:
    try:
        return work(members, rows, padded)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory for a tensor ran out, on an accelerator or in torch's allocator of the CPU.

    >>> is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    False
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, cast("type[BaseException]", torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)
