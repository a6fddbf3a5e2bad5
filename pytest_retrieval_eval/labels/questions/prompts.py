"""What a reader is asked for questions, and which lines of its reply are questions."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources

from pytest_retrieval_eval.collection.formats.files import decode, read_bytes
from pytest_retrieval_eval.labels.judging.prompts import fence, in_words
from pytest_retrieval_eval.readers import templates
from pytest_retrieval_eval.readers.reading import Item, Passage

# What a list puts before its items, and what stands around a quotation.
_MARKER = re.compile(r"^(?:(?:[-*•–]|\(?\d{1,3}[.):]|[Qq](?:uestion)?\s*\d*:)\s+)+")
_AROUND = "\"'`*_“”„«»‘’ \t"
_QUESTION_MARKS = ("?", "？", "؟", "⁇", "՞", ";")
_SHOWN = 12
# Half of a surrogate pair is no Unicode text, and no file of queries can hold it.
_HALF = re.compile("[\ud800-\udfff]")
# The kinds of readers that put a query into words of their own, unless they are told to leave it as it is.
_AS_IT_IS: Mapping[str, Mapping[str, str]] = {
    "server": {"system": "", "closed_book": "{query}"},
    "transformers": {"closed_book": "{query}"},
    "fid": {"closed_book": "{query}"},
    "causal": {"closed_book": "{query}"},
}


@dataclass(frozen=True)
class QuestionPrompt:
    """The texts with which questions are asked for, and asked for once more in other words.

    A word in braces is a place; what is filled in is data, and ``{fence}`` a mark that does not occur in it.

    >>> item = QuestionPrompt.built_in().ask(Passage("Refunds take 14 days."), 2)
    >>> "Write 2 questions" in item.query, item.query.count("Refunds take 14 days."), item.documents
    (True, 1, ())
    """

    asking: str
    rewriting: str

    def __post_init__(self) -> None:
        needed = ["passage", "fence"]
        templates.check(self.asking, "the template for questions", [*needed, "questions"], needed)
        known = [*needed, "question", "words"]
        templates.check(self.rewriting, "the template for rewriting", known, [*needed, "question"])

    @classmethod
    def built_in(cls) -> QuestionPrompt:
        """The templates that come with the package."""
        home = resources.files("pytest_retrieval_eval.labels.questions") / "templates"
        return cls(*((home / name).read_text(encoding="utf-8") for name in ("ask.txt", "rewrite.txt")))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> QuestionPrompt:
        """A template for questions of one's own, from a file; the one for rewriting stays the package's."""
        return cls(decode(read_bytes(path), path).replace("\r\n", "\n"), cls.built_in().rewriting)

    def ask(self, passage: Passage, number: int) -> Item:
        """The request for so many questions that a passage answers."""
        text = in_words(passage)
        counted = "one question" if number == 1 else f"{number} questions"
        values = {"passage": text, "fence": fence(text), "questions": counted}
        return Item(templates.fill(self.asking, values).strip(), ())

    def rewrite(self, question: str, passage: Passage, shared: Collection[str]) -> Item:
        """The request for the same question in other words than those that it shares with the passage."""
        text = in_words(passage)
        listed = ", ".join(sorted(shared)[:_SHOWN])
        values = {"passage": text, "question": question, "words": listed, "fence": fence(text, question)}
        return Item(templates.fill(self.rewriting, values).strip(), ())


def as_it_is(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings of a reader which then puts no words of its own around what it is asked.

    >>> as_it_is({"kind": "server", "model": "m", "prompt": "Answer {query} from {documents}"})["prompt"]
    {'system': '', 'closed_book': '{query}'}
    """
    kind, inner = settings.get("kind"), settings.get("reader")
    if kind == "ray" and isinstance(inner, Mapping):
        return {**settings, "reader": as_it_is(inner)}
    plain = _AS_IT_IS.get(kind) if isinstance(kind, str) else None
    return {**settings} if plain is None else {**settings, "prompt": dict(plain)}


def questions_in(reply: str, *, cut: bool = False) -> list[str]:
    """The lines of a reply that end in a question mark, without bullets, numbers and quotation marks, each once.

    What is no question (a greeting, a heading, a reason) is left; ``cut`` says that the reply broke off, and that its
    last line is none that can be believed.

    >>> questions_in('Here you are:\\n1. "Who pays?"\\n- When is it paid?\\n- Who pays?\\nI hope this helps!')
    ['Who pays?', 'When is it paid?']
    """
    lines = reply.splitlines()
    found = []
    for line in lines[: len(lines) - cut]:
        text = _MARKER.sub("", line.strip()).strip(_AROUND)
        text = " ".join(_MARKER.sub("", text).split())
        if text.endswith(_QUESTION_MARKS) and any(map(str.isalnum, text)) and _HALF.search(text) is None:
            found.append(text)
    return list(dict.fromkeys(found))
