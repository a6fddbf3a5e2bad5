"""What a judge is asked: templates, in which query and passage are fenced off as data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from pytest_retrieval_eval.collection.formats.files import decode, read_bytes
from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.readers import templates
from pytest_retrieval_eval.readers.reading import Passage

_USER = "===== user ====="
# Built in: the scale of each, and the key of the words that come with the grade.
_BUILT_IN: Mapping[str, tuple[Scale, str]] = {
    "handbook03": (Scale(0, 3), "reason"),
    "pool012": (Scale(0, 2), "thought"),
}


@dataclass(frozen=True)
class JudgeExample:
    """A pair that has been graded already, shown to the judge before the one that it is to grade.

    ``said`` are the words that go with the grade, as the judge is to write them.

    >>> prompt = JudgePrompt.named("pool012", [JudgeExample("when?", "In May.", 2, "It names the month.")])
    >>> [message["role"] for message in prompt.messages("who?", [Passage("Ann did.")])]
    ['system', 'user', 'assistant', 'user']
    """

    query: str
    passage: str
    grade: int
    said: str


@dataclass(frozen=True)
class JudgePrompt:
    """A template, its scale, and the examples that go before.

    The template is one text: what stands before the line ``===== user =====`` is the system message, what follows the
    message of the user. Its places are ``{query}``, ``{passage}`` and ``{fence}``; every other brace is a brace.
    ``{fence}`` is a mark that does not occur in query or passage and follows from them, so that no passage can close
    its own fence. ``key`` is the key of the grade in the reply, ``said`` that of the words beside it.

    >>> prompt = JudgePrompt.named("pool012")
    >>> prompt.scale, [message["role"] for message in prompt.messages("who?", [Passage("Ann did.")])]
    (Scale(least=0, most=2), ['system', 'user'])
    """

    template: str
    scale: Scale
    said: str = "thought"
    key: str = "grade"
    examples: tuple[JudgeExample, ...] = ()
    name: str = "own"
    _parts: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        what = f"the judge's template {self.name}"
        lines = self.template.split("\n")
        if lines.count(_USER) > 1:
            raise SettingsError(f"{what} has the line {_USER!r} {lines.count(_USER)} times; expected it once at most")
        at = lines.index(_USER) if _USER in lines else -1
        system = "\n".join(lines[:at]) if at >= 0 else ""
        user = "\n".join(lines[at + 1 :])
        templates.check(system, f"{what} (before the user's message)", ["fence"])
        templates.check(user, what, ["query", "passage", "fence"], ["query", "passage", "fence"])
        object.__setattr__(self, "_parts", (system.strip(), user.strip()))
        for example in self.examples:
            if example.grade not in self.scale:
                raise SettingsError(
                    f"an example has the grade {example.grade!r}; expected a whole number from {self.scale}"
                )

    @classmethod
    def named(cls, name: str, examples: Sequence[JudgeExample] = ()) -> JudgePrompt:
        """A template that comes with the package: ``pool012`` or ``handbook03``."""
        if name not in _BUILT_IN:
            raise SettingsError(f"there is no judge's template {name!r}; {did_you_mean(name, _BUILT_IN)}")
        scale, said = _BUILT_IN[name]
        text = (resources.files("pytest_retrieval_eval.labels.judging") / "templates" / f"{name}.txt").read_text(
            encoding="utf-8"
        )
        return cls(text, scale, said, examples=tuple(examples), name=name)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        scale: Scale,
        *,
        said: str = "thought",
        key: str = "grade",
        examples: Sequence[JudgeExample] = (),
    ) -> JudgePrompt:
        """A template of one's own, from a file."""
        text = decode(read_bytes(path), path).replace("\r\n", "\n")
        return cls(text, scale, said, key, tuple(examples), name=os.path.basename(os.fspath(path)))

    @property
    def identity(self) -> dict[str, object]:
        """All of it that can change a grade; the name of a template cannot."""
        return {
            "template": self.template,
            "scale": [self.scale.least, self.scale.most],
            "key": self.key,
            "said": self.said,
            "examples": [[one.query, one.passage, one.grade, one.said] for one in self.examples],
        }

    @property
    def schema(self) -> dict[str, object]:
        """The JSON Schema of a reply, for services that hold a reply to one."""
        grades = list(range(self.scale.least, self.scale.most + 1))
        return {
            "type": "object",
            "properties": {self.said: {"type": "string"}, self.key: {"type": "integer", "enum": grades}},
            "required": [self.said, self.key],
            "additionalProperties": False,
        }

    def messages(self, query: str, documents: Sequence[Passage]) -> list[dict[str, str]]:
        """The messages for a query and the one document to grade."""
        if len(documents) != 1:
            raise SettingsError(f"a judge grades one document at a time, not {len(documents)}")
        system, _ = self._parts
        shown = [{"role": "system", "content": system}] * bool(system)
        for one in self.examples:
            reply = json.dumps({self.said: one.said, self.key: one.grade}, ensure_ascii=False)
            shown += [self._user(one.query, one.passage), {"role": "assistant", "content": reply}]
        return [*shown, self._user(query, in_words(documents[0]))]

    def text(self, query: str, document: Passage) -> str:
        """The same as one text, for readers that take no messages."""
        return "\n\n".join(message["content"] for message in self.messages(query, [document]))

    def _user(self, query: str, passage: str) -> dict[str, str]:
        values = {"query": query, "passage": passage, "fence": fence(query, passage)}
        return {"role": "user", "content": templates.fill(self._parts[1], values)}


def in_words(document: Passage) -> str:
    """A document as a judge reads it: its title, if it has one, above its text."""
    return f"{document.title}\n\n{document.text}" if document.title else document.text


def fence(*texts: str) -> str:
    """A mark that occurs in none of the texts, the same for the same texts.

    >>> mark = fence("who?", "Ann did.")
    >>> mark == fence("who?", "Ann did."), mark == fence("who?", f"Ann did. {mark}")
    (True, False)
    """
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass"))
    while any(digest.hexdigest()[:12] in text for text in texts):  # not before the end of the world, but cheap
        digest.update(b".")
    return digest.hexdigest()[:12]
