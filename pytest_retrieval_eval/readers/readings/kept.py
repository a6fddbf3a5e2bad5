"""A reading as it is kept: with the item and the reader that it belongs to, as JSON that checks itself.

A kept reading can be verified (its key follows from its reader and its item), read again by another reader or with
other batches, and carried to another machine.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.readers.reading import STATUSES, Item, Passage, Reading, item_key

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True)
class Kept:
    """One reading of a cache: ``key`` is that of ``identity`` and ``item``.

    ``versions`` names the libraries that were loaded when it was made, ``made`` is when, in seconds since 1970.
    """

    key: str
    identity: Mapping[str, object]
    item: Item
    reading: Reading
    versions: Mapping[str, str] = field(default_factory=dict)
    made: float = 0.0

    def check(self) -> None:
        """Raise DataError where the key is not that of the reader and the item."""
        if item_key(self.identity, self.item) != self.key:
            raise DataError(f"the reading {self.key[:12]} is not one of the reader and the item that it is kept with")

    def to_json(self) -> dict[str, object]:
        """The reading in JSON's own types."""
        return {
            "key": self.key,
            "identity": dict(self.identity),
            "item": item_to_json(self.item),
            "reading": reading_to_json(self.reading),
            "versions": dict(self.versions),
            "made": self.made,
        }

    @classmethod
    def of_json(cls, value: object) -> Kept:
        """The reading that :meth:`to_json` wrote; DataError for anything else. The key is not checked."""
        found = _mapping(value, "a kept reading")
        key, made = found.get("key"), found.get("made")
        timed = isinstance(made, (int, float)) and not isinstance(made, bool)
        if not isinstance(key, str) or not timed or not math.isfinite(cast("float", made)):
            raise DataError("a kept reading has no key or no time")
        versions = _mapping(found.get("versions"), "the versions of a kept reading")
        return cls(
            key,
            _mapping(found.get("identity"), "the reader of a kept reading"),
            item_of_json(found.get("item")),
            reading_of_json(found.get("reading")),
            {name: str(version) for name, version in versions.items()},
            float(cast("float", made)),
        )


def item_to_json(item: Item) -> dict[str, object]:
    """An item in JSON's own types.

    >>> item_of_json(item_to_json(Item("who?", (Passage("Ann did.", "Ann"),)))).documents
    (Passage(text='Ann did.', title='Ann'),)
    """
    return {
        "query": item.query,
        "documents": [[passage.title, passage.text] for passage in item.documents],
        "repetition": item.repetition,
    }


def item_of_json(value: object) -> Item:
    """The item that :func:`item_to_json` wrote; DataError for anything else."""
    found = _mapping(value, "an item")
    query, documents, repetition = found.get("query"), found.get("documents"), found.get("repetition")
    if not isinstance(query, str) or not isinstance(documents, list) or not isinstance(repetition, int):
        raise DataError("an item has no query, documents or repetition")
    passages = []
    for each in documents:
        if not isinstance(each, list) or len(each) != 2 or not all(isinstance(text, str) for text in each):
            raise DataError("a document of an item is no pair of title and text")
        passages.append(Passage(text=each[1], title=each[0]))
    return Item(query, tuple(passages), repetition)


def reading_to_json(reading: Reading) -> dict[str, object]:
    """A reading in JSON's own types."""
    return {
        "text": reading.text,
        "status": reading.status,
        "input_tokens": reading.input_tokens,
        "output_tokens": reading.output_tokens,
        "truncated": reading.truncated,
        "detail": reading.detail,
        "model": reading.model,
    }


def reading_of_json(value: object) -> Reading:
    """The reading that :func:`reading_to_json` wrote; DataError for anything else."""
    found = _mapping(value, "a reading")
    texts = [found.get(name) for name in ("text", "detail", "model")]
    tokens = [found.get(name) for name in ("input_tokens", "output_tokens")]
    status, truncated = found.get("status"), found.get("truncated")
    if (
        not all(isinstance(text, str) for text in texts)
        or not all(number is None or (isinstance(number, int) and not isinstance(number, bool)) for number in tokens)
        or status not in STATUSES
        or not isinstance(truncated, bool)
    ):
        raise DataError("a reading lacks its text, status or token counts")
    text, detail, model = cast("list[str]", texts)
    input_tokens, output_tokens = cast("list[int | None]", tokens)
    return Reading(text, status, input_tokens, output_tokens, truncated, detail, model)


def to_text(value: object) -> str:
    """JSON in one form, ASCII: half of a surrogate pair in a text survives, and equal values are equal texts."""
    return _ENCODER.encode(value)


def checksum(*parts: str) -> str:
    """What tells that none of the texts has changed since they were stored."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _mapping(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DataError(f"{what} is no JSON object")
    return cast("dict[str, object]", value)
