"""The text that a model is given: templates, and how documents are cut where the prompt is too long.

The documents are cut, never the query: a query that does not fit by itself is an error of its item. Where an item has
several documents, all are cut to one number of tokens, the largest with which the prompt fits, so that the last
document is heard like the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.readers import templates
from pytest_retrieval_eval.readers.reading import Item, Passage

# template: (the places that it must have, others that it may have)
_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prompt": (("query", "documents"), ()),
    "document": (("text", "title"), ("rank",)),
    "untitled": (("text",), ("rank",)),
    "closed_book": (("query",), ()),
    "separator": ((), ()),
}


@dataclass(frozen=True)
class Prompt:
    """Templates with the places ``{query}``, ``{documents}``, ``{title}``, ``{text}`` and ``{rank}``.

    ``document`` makes one document of title and text, ``untitled`` one without a title; they are joined by
    ``separator`` and put into ``prompt``. ``closed_book`` is for items without documents. The defaults are the form
    in which T5 readers for open-domain answering are trained (Izacard & Grave, "Leveraging passage retrieval with
    generative models for open domain question answering", 2021, section 3).

    >>> Prompt().fill(Item("who?", (Passage("Ann did.", "Deeds"), Passage("Bob watched."))))
    'question: who? title: Deeds context: Ann did. context: Bob watched.'
    >>> Prompt().fill(Item("who?", ()))
    'question: who?'
    """

    prompt: str = "question: {query} {documents}"
    document: str = "title: {title} context: {text}"
    untitled: str = "context: {text}"
    closed_book: str = "question: {query}"
    separator: str = " "

    def __post_init__(self) -> None:
        for name, (needed, optional) in _PARTS.items():
            templates.check(getattr(self, name), f"the template {name}", (*needed, *optional), needed)

    @classmethod
    def of(cls, value: Prompt | str | Mapping[str, object] | None, default: Prompt) -> Prompt:
        """Templates from a mapping (those that it leaves out are the default's), or from ``prompt`` alone."""
        if value is None:
            return default
        if isinstance(value, Prompt):
            return value
        given = {"prompt": value} if isinstance(value, str) else dict(value)
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise SettingsError(f"prompt: there is no template {name!r}; {did_you_mean(str(name), known)}")
        return cls(**{**asdict(default), **given})

    @property
    def identity(self) -> dict[str, object]:
        """The templates as they stand."""
        return asdict(self)

    def fill(self, item: Item, texts: Sequence[str] | None = None) -> str:
        """The prompt of an item; ``texts`` stand in for those of its documents where they were cut."""
        if not item.documents:
            return templates.fill(self.closed_book, {"query": item.query})
        shown = [passage.text for passage in item.documents] if texts is None else texts
        documents = [
            self.of_passage(passage, text, rank)
            for rank, (passage, text) in enumerate(zip(item.documents, shown, strict=True), 1)
        ]
        return templates.fill(self.prompt, {"query": item.query, "documents": self.separator.join(documents)})

    def of_passage(self, passage: Passage, text: str, rank: int) -> str:
        """One document, as it stands in the prompt."""
        template = self.document if passage.title else self.untitled
        return templates.fill(template, {"title": passage.title, "text": text, "rank": str(rank)})


@dataclass(frozen=True)
class Fitted:
    """A prompt as token ids; ``cut`` says that a document was cut; ``problem`` that it cannot be made to fit."""

    ids: tuple[int, ...]
    cut: bool = False
    problem: str = ""


def fit(
    items: Sequence[Item],
    build: Callable[[Item, Sequence[str] | None], str],
    encode: Callable[[Sequence[str]], Sequence[Sequence[int]]],
    cuts: Callable[[str], Sequence[int]],
    most: int,
) -> list[Fitted]:
    """Token ids of each item's prompt, of at most ``most`` tokens.

    ``build(item, texts)`` gives the prompt, ``encode`` the ids of prompts, ``cuts`` the places (in characters) at
    which a text may be cut: behind each of its tokens.
    """
    found = []
    for item, ids in zip(items, encode([build(item, None) for item in items]), strict=True):
        found.append(Fitted(tuple(ids)) if len(ids) <= most else _cut(item, build, encode, cuts, most, len(ids)))
    return found


def _cut(item: Item, build: Any, encode: Any, cuts: Any, most: int, length: int) -> Fitted:
    places = [[0, *cuts(passage.text)] for passage in item.documents]

    def at(tokens: int) -> tuple[int, ...]:
        texts = [
            passage.text[: ends[min(tokens, len(ends) - 1)]]
            for passage, ends in zip(item.documents, places, strict=True)
        ]
        return tuple(encode([build(item, texts)])[0])

    best = at(0) if places else ()
    if not places or len(best) > most:
        least = len(best) if places else length
        return Fitted(
            (), problem=f"without any text of its documents the prompt has {least} tokens; at most {most} fit"
        )
    low, high = 0, max(len(ends) for ends in places) - 1
    while low < high:
        middle = (low + high + 1) // 2
        ids = at(middle)
        if len(ids) <= most:
            low, best = middle, ids
        else:
            high = middle - 1
    return Fitted(best, cut=True)


#: What a causal or chat model is asked, unless other templates are given.
CAUSAL = Prompt(
    prompt="{documents}\nQuestion: {query}\nAnswer:",
    document="Passage: {title}\n{text}",
    untitled="Passage: {text}",
    closed_book="Question: {query}\nAnswer:",
    separator="\n",
)
