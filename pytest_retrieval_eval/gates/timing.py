"""What is worth saying beside a gate on times: whether they can be compared, and how few queries it hangs on."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_retrieval_eval.gates.side import Side
from pytest_retrieval_eval.measures.registry import aggregate, definition
from pytest_retrieval_eval.wording import shown

# What has to be alike for two lists of times to say something of the retriever alone.
_CONDITIONS = {
    "machine": "the machine",
    "warmup": "the number of queries to warm up",
    "repeat": "the number of passes",
    "batch": "the size of a batch",
    "concurrency": "how many queries were asked at the same time",
}


def timing_notes(side: Side, reference: Side | None) -> tuple[str, ...]:
    """A sentence for whatever makes a gate on times say less than it seems to."""
    notes = [*_few(side)]
    if reference is not None and reference.stored is not side.stored:
        notes += _unlike(side, reference)
    return tuple(notes)


def _few(side: Side) -> list[str]:
    how, link = aggregate(side.measure)
    _, dot, share = definition(link.name).name.partition(".p")
    if how != "statistic" or not dot or not share.isdecimal():
        return []
    needed = -(-100 // (100 - int(share)))
    n = side.scores.n
    if n >= needed:
        return []
    return [
        f"{side.measure} over {n} queries is next to the slowest of them: with {needed} one would be expected above it"
    ]


def _unlike(side: Side, reference: Side) -> list[str]:
    new, old = side.stored.header.get("timing"), reference.stored.header.get("timing")
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return []
    return [
        f"unequal footing: {what} was {shown(str(old.get(key)), 60)} for {reference.label} and is "
        f"{shown(str(new.get(key)), 60)} for {side.label}"
        for key, what in _CONDITIONS.items()
        if old.get(key) != new.get(key)
    ]
