"""What a reader is asked, what it answers, and the key under which an answer is kept.

An item is a query and a tuple of documents: one document asks what that document alone is worth, several ask for
the answer of the whole system, none asks what the model knows by itself. The same reader serves all three.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import DataError, GateError, raised

KEY_SCHEMA = 1
"""Part of every key: what is keyed otherwise is never taken for what was kept before."""

NOT_ASKED = "not asked: "
"""What the detail of a reading begins with whose item was left: a budget was used up, or the service is gone."""

# ASCII only, so that half of a surrogate pair in a text is no obstacle and no two texts become one.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

Status = Literal["ok", "empty", "length", "refused", "error"]
STATUSES: tuple[Status, ...] = ("ok", "empty", "length", "refused", "error")


@dataclass(frozen=True)
class Passage:
    """A document as a reader sees it. Its id is not part of it: a reader cannot see ids.

    >>> Passage("Ann did.", title="Deeds") == Passage("Ann did.")
    False
    """

    text: str
    title: str = ""


@dataclass(frozen=True)
class Item:
    """One question to a reader: a query and the documents to answer from, in order.

    ``repetition`` numbers further readings of the same question: a judge that grades again, a question that is written
    anew. Labels are made from the first.

    >>> item = Item("who?", (Passage("Ann did."), Passage("Bob watched.")))
    >>> len(item.documents), item.repetition
    (2, 0)
    """

    query: str
    documents: tuple[Passage, ...]
    repetition: int = 0


@dataclass(frozen=True)
class Reading:
    """What a reader made of an item.

    ``status`` is ``ok``; ``empty`` (the text is empty or blank); ``length`` (the text was cut off at the largest
    number of tokens); ``refused`` (the service declined); ``error`` (nothing was read). The last two say why in
    ``detail``, are never kept in a cache, and never become a label. Token counts are None where they are unknown;
    ``truncated`` says that the reader cut its input; ``model`` is what a service says that it ran.

    >>> Reading("Ann", "ok", 12, 1).answered, Reading("", "refused", 12, 0, detail="content filter").answered
    (True, False)
    """

    text: str
    status: Status
    input_tokens: int | None
    output_tokens: int | None
    truncated: bool = False
    detail: str = ""
    model: str = ""

    @property
    def answered(self) -> bool:
        """Whether this is an answer, good or bad, and no failure to get one."""
        return self.status not in ("refused", "error")


class Reader(Protocol):
    """A language model that answers from documents.

    ``identity`` holds JSON values: everything that can change a text (kind, model and revision, tokenizer, dtype,
    resolved generation parameters, templates, truncation, shapes), and nothing that cannot (URL, API key, time
    limits, device, versions). None says that the texts cannot be told apart from another reader's: nothing is kept.
    """

    @property
    def identity(self) -> Mapping[str, object] | None:
        """Everything that can change a text; None where that cannot be said."""
        ...

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        """(index into ``items``, reading) of each item once, as they are completed, in any order."""
        ...

    def close(self) -> None:
        """Free what the reader holds: a model, connections. It may be called more than once."""
        ...


def check_given(given: object, asked: Collection[int]) -> tuple[int, Reading]:
    """What a reader gave, as :meth:`Reader.read` promises it; ``asked`` are the items that it has not given yet.

    Anyone may write a reader: what is no reading must not be kept, nor become a label. It is a GateError.

    >>> check_given((0, Reading("Ann", "ok", None, None)), {0, 1})[1].text
    'Ann'
    >>> check_given((0, "Ann"), {0, 1})
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.GateError: the reader gave (0, 'Ann'); expected pairs of an item's index and a Reading
    """
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], Reading):
        raise GateError(f"the reader gave {excerpt(given)}; expected pairs of an item's index and a Reading")
    number, reading = given
    if isinstance(number, bool) or number not in asked:
        raise GateError(
            f"the reader gave a reading for item {excerpt(number)}, which it was not asked or has given before"
        )
    counts = (reading.input_tokens, reading.output_tokens)
    if not all(isinstance(text, str) for text in (reading.text, reading.detail, reading.model)):
        wrong = "its text, its detail or its model is no text"
    elif reading.status not in STATUSES:
        wrong = f"its status is none of {', '.join(STATUSES)}"
    elif not all(count is None or (isinstance(count, int) and not isinstance(count, bool)) for count in counts):
        wrong = "its counts of tokens are neither whole numbers nor None"
    elif not isinstance(reading.truncated, bool):
        wrong = "truncated is neither True nor False"
    else:
        return number, reading
    raise GateError(f"the reader gave {excerpt(reading)} for item {number}: {wrong}")


def given_by(reader: Reader, items: Sequence[Item]) -> Iterable[object]:
    """What ``reader`` gives for the items, one after the other, before anyone has looked at it."""
    given: object = reader.read(items)
    if not isinstance(given, Iterable):
        raise GateError(f"read() of the reader returned {excerpt(given)}; expected pairs of an index and a Reading")
    return given


def read_all(reader: Reader, items: Sequence[Item], name: str = "") -> list[Reading]:
    """The reading of each item, in the order of the items; of a reader of that name.

    Whatever the reader raises, and an item that it leaves out, is a GateError.
    """
    who = f"the reader {name}" if name else "the reader"
    asked, found = set(range(len(items))), dict[int, Reading]()
    try:
        for given in given_by(reader, items):
            number, found[number] = check_given(given, asked)
            asked.remove(number)
    except GateError:
        raise
    except Exception as error:  # anyone may write a reader
        raise GateError(f"{who} raised {raised(error)}") from error
    if asked:
        raise GateError(f"{who} gave no reading for {len(asked)} of {len(items)} items")
    return [found[number] for number in range(len(items))]


def identity_digest(identity: Mapping[str, object]) -> str:
    """The digest of an identity: 64 hexadecimal digits, whatever the order of its keys.

    Raises DataError for what JSON cannot say exactly: other types, keys that are no text, NaN and infinities.

    >>> identity_digest({"kind": "callable", "name": "a"}) == identity_digest({"name": "a", "kind": "callable"})
    True
    >>> identity_digest({"kind": "callable", "name": {1, 2}})
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.DataError: the identity of a reader holds a set at name; expected JSON values only
    """
    return _sha256(_plain(identity, ""))


def item_key(identity: Mapping[str, object], item: Item) -> str:
    """The key of what this reader makes of this item: 64 hexadecimal digits.

    It holds the identity, the query's text, the titles and texts of the documents in order, the number of the
    repetition and :data:`KEY_SCHEMA`; and nothing else. An identity that JSON cannot hold exactly is a DataError.

    >>> reader = {"kind": "callable", "name": "a"}
    >>> key = item_key(reader, Item("who?", (Passage("Ann did."), Passage("Bob did."))))
    >>> len(key), key == item_key(reader, Item("who?", (Passage("Bob did."), Passage("Ann did."))))
    (64, False)
    """
    return item_keys(identity, [item])[0]


def item_keys(identity: Mapping[str, object], items: Sequence[Item]) -> list[str]:
    """The key of each item, as :func:`item_key` has it."""
    digest = identity_digest(identity)
    return [
        _sha256(
            {
                "schema": KEY_SCHEMA,
                "reader": digest,
                "query": item.query,
                "documents": [[passage.title, passage.text] for passage in item.documents],
                "repetition": item.repetition,
            }
        )
        for item in items
    ]


def _sha256(value: object) -> str:
    return hashlib.sha256(_ENCODER.encode(value).encode("ascii")).hexdigest()


def _plain(value: object, place: str) -> object:
    """The value in the types of JSON, or DataError: two readers must not share a key by how they are written."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise DataError(f"the identity of a reader has the key {key!r}; expected keys that are text")
        return {key: _plain(inner, f"{place}.{key}" if place else key) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{place}[{number}]") for number, inner in enumerate(value)]
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        raise DataError(f"the identity of a reader holds {value!r} at {place}; expected a finite number")
    if value is not None and not isinstance(value, (str, int, float)):
        raise DataError(
            f"the identity of a reader holds a {type(value).__name__} at {place}; expected JSON values only"
        )
    return value
