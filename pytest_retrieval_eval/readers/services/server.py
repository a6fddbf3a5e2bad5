"""A reader on any OpenAI-compatible server: vLLM, llama.cpp, TGI, or a hosted service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.readers import templates
from pytest_retrieval_eval.readers.reading import NOT_ASKED, Item, Passage, Reading
from pytest_retrieval_eval.readers.services.budget import Budget
from pytest_retrieval_eval.readers.services.calls import Answer, Call, Engine, Stream
from pytest_retrieval_eval.readers.services.chat import Parameters, chat_url, estimated_tokens, pinned, understand

# Replies from another model, one after the other, after which no more are asked (and paid) for.
_STRANGERS = 3


_PARTS = {
    # part: (places that it may have, those that it must have)
    "system": (("query",), ()),
    "prompt": (("query", "documents"), ("query", "documents")),
    "document": (("rank", "title", "text"), ("text",)),
    "untitled": (("rank", "text"), ("text",)),
    "closed_book": (("query",), ("query",)),
    "separator": ((), ()),
}


@dataclass(frozen=True)
class ChatPrompt:
    """The messages of a request. A word in braces is a place: ``{query}``, and in ``prompt`` also ``{documents}``.

    ``document`` is written once for each document (``{rank}`` from 1, ``{title}``, ``{text}``; ``untitled`` where it
    has no title), with ``separator`` between them. ``closed_book`` is the message where there are no documents. What
    is filled in is data: braces in a query or a document stay as they are.

    >>> prompt = ChatPrompt()
    >>> print(prompt.messages("who?", [Passage("Ann did {query}.", title="Deeds")])[1]["content"])
    Passage 1: Deeds
    Ann did {query}.
    <BLANKLINE>
    Question: who?
    Short answer:
    """

    system: str = (
        "You answer questions from the passages that you are given. Give the answer itself, as short as it can be, "
        "without a sentence around it."
    )
    prompt: str = "{documents}\n\nQuestion: {query}\nShort answer:"
    document: str = "Passage {rank}: {title}\n{text}"
    untitled: str = "Passage {rank}:\n{text}"
    closed_book: str = "Question: {query}\nShort answer:"
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        for name, (known, needed) in _PARTS.items():
            templates.check(getattr(self, name), f"the prompt's {name}", known, needed)

    @classmethod
    def of(cls, parts: Mapping[str, str]) -> ChatPrompt:
        """A prompt from some of its parts; those that are not given are the default's."""
        for name in parts:
            if name not in _PARTS:
                raise SettingsError(f"a prompt has no part {name!r}; {did_you_mean(name, _PARTS)}")
        return cls(**parts)

    @property
    def identity(self) -> dict[str, object]:
        """The parts as they stand."""
        return asdict(self)

    def messages(self, query: str, documents: Sequence[Passage]) -> list[dict[str, str]]:
        """The messages for a query and its documents."""
        shown = self.separator.join(
            templates.fill(
                self.document if passage.title else self.untitled,
                {"rank": str(rank), "title": passage.title, "text": passage.text},
            )
            for rank, passage in enumerate(documents, 1)
        )
        user = templates.fill(self.prompt if documents else self.closed_book, {"query": query, "documents": shown})
        system = templates.fill(self.system, {"query": query})
        return [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": user}]


class Messages(Protocol):
    """What makes the messages of a request: :class:`ChatPrompt`, or another way to ask."""

    @property
    def identity(self) -> Mapping[str, object]:
        """Everything that can change a message, in JSON values."""
        ...

    def messages(self, query: str, documents: Sequence[Passage]) -> list[dict[str, str]]:
        """The messages for a query and its documents."""
        ...


class ServerReader:
    """A reader that asks a chat endpoint.

    ``url`` is the base URL (``http://localhost:8000/v1``), ``model`` the name that is asked for. ``deployment`` is your
    own label of what stands behind them, part of the identity: change it when the server changes and its names do
    not; ``weights`` the digest of the model's weights, where you know it. A name with a date or a revision (see
    :func:`~pytest_retrieval_eval.readers.services.chat.pinned`) is held to: a reply that names another model is an
    error. ``answers_as`` is the name that replies must carry where it is another one, ``pin`` True holds to ``model``
    whatever it looks like, False to nothing. ``document_chars`` cuts each document (never the query), in characters.
    The further settings are those of :class:`~pytest_retrieval_eval.readers.services.calls.Engine` and
    :class:`~pytest_retrieval_eval.readers.services.chat.Parameters`. What cannot be meant is a SettingsError; what the
    service does not answer is a reading with the status ``refused`` or ``error``.

    >>> from pytest_retrieval_eval import Item, Passage, ServerReader
    >>> reader = ServerReader("http://localhost:8000/v1", "small-2024-08-06", max_tokens=16)
    >>> read, written = reader.estimate([Item("who?", (Passage("Ann did."),))])  # tokens; nothing is sent
    >>> written
    16
    >>> reader.close()
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        deployment: str = "",
        weights: str | None = None,
        answers_as: str | None = None,
        pin: bool | None = None,
        prompt: Messages | Mapping[str, str] | None = None,
        document_chars: int | None = None,
        temperature: float | None = 0.0,
        top_p: float | None = 1.0,
        max_tokens: int = 64,
        seed: int | None = 0,
        max_tokens_field: str = "max_tokens",
        extra: Mapping[str, object] | None = None,
        key_env: str | None = None,
        key_header: str = "Authorization",
        concurrency: int = 16,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout: float = 120.0,
        attempts: int = 6,
        backoff: float = 0.5,
        patience: float = 120.0,
        budget: Budget | None = None,
    ) -> None:
        if not model:
            raise SettingsError("a server reader needs the name of a model")
        check_whole("document_chars", document_chars)
        self._model = model
        self._prompt: Messages = (
            ChatPrompt.of(prompt or {}) if prompt is None or isinstance(prompt, Mapping) else prompt
        )
        self._document_chars = document_chars
        self._parameters = Parameters(
            temperature=temperature,
            top_p=top_p,
            max_tokens=max_tokens,
            seed=seed,
            max_tokens_field=max_tokens_field,
            extra=extra,
        )
        held = pinned(model) if pin is None else pin
        self._expected = answers_as if answers_as is not None else (model if held else None)
        self._exact = held or bool(weights) or pinned(answers_as or "")
        self.answered_by: Counter[str] = Counter()
        self._engine = Engine(
            chat_url(url),
            key_env=key_env,
            key_header=key_header,
            concurrency=concurrency,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
            patience=patience,
            budget=budget,
        )
        self.identity: Mapping[str, object] = {
            "kind": "server",
            "model": model,
            "deployment": deployment,
            "weights": weights,
            "answers_as": answers_as,
            "prompt": dict(self._prompt.identity),
            "parameters": dict(self._parameters),
            "document_chars": document_chars,
        }

    @property
    def floating(self) -> str:
        """A sentence where nothing says exactly which model answers; empty where the identity pins it."""
        if self._exact:
            return ""
        return (
            f"the model {self._model!r} is a floating name, behind which the model may change: name one with a date or "
            "a revision, give the digest of its weights (weights=), vouch for it (pin=True)"
        )

    def read(self, items: Sequence[Item]) -> Readings:
        """Ask for each item; the readings come as they are answered.

        Items that were not asked, since a budget was used up or the service does not answer, come last, with the
        status ``error`` and the reason: no item is left without a reading, and none of those is kept or scored.
        """
        items = list(items)
        return Readings(self, items, self._engine.run(self._call(item) for item in items))

    def estimate(self, items: Iterable[Item]) -> tuple[int, int]:
        """About how many tokens the items take at most: (read, written). Nothing is sent."""
        calls = [(call.input_tokens, call.output_tokens) for call in map(self._call, items)]
        return sum(read for read, _ in calls), sum(written for _, written in calls)

    def close(self) -> None:
        """Drop what is under way and close the connections."""
        self._engine.close()

    def _call(self, item: Item) -> Call:
        documents = [Passage(passage.text[: self._document_chars], passage.title) for passage in item.documents]
        messages = self._prompt.messages(item.query, documents)
        body = self._parameters.body(self._model, messages, item.repetition)
        return Call(body, estimated_tokens(messages), self._parameters.max_tokens)

    def _reading(self, item: Item, answer: Answer) -> tuple[Reading, bool]:
        """The reading of an item, and whether another model answered than is held to."""
        reply = understand(answer, self._expected)
        if reply.model:
            self.answered_by[reply.model] += 1
        cut = self._document_chars
        reading = Reading(
            text=reply.text,
            status=reply.status,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            truncated=cut is not None and any(len(passage.text) > cut for passage in item.documents),
            detail=reply.detail,
            model=reply.model,
        )
        return reading, reply.stranger


class Readings(Iterator[tuple[int, Reading]]):
    """The readings of one :meth:`ServerReader.read`, as (index of the item, reading).

    :meth:`cancel` (or ``close``, as generators have it) drops the calls under way; what has been answered can still
    be read after it. Readings that are left (``break``, an exception) are cancelled when they are collected.
    """

    def __init__(self, reader: ServerReader, items: Sequence[Item], stream: Stream) -> None:
        self._reader, self._items, self._stream = reader, items, stream
        self._missing = dict.fromkeys(range(len(items)))
        self._strangers = 0
        self._cancelled = False

    def __next__(self) -> tuple[int, Reading]:
        for index, answer in self._stream:
            del self._missing[index]
            reading, stranger = self._reader._reading(self._items[index], answer)
            self._strangers = self._strangers + 1 if stranger else 0
            if self._strangers == _STRANGERS:
                self._stream.cancel(
                    f"{_STRANGERS} replies one after the other came from another model: {reading.detail}"
                )
            return index, reading
        if self._cancelled or not self._missing:
            raise StopIteration
        index = next(iter(self._missing))
        del self._missing[index]
        return index, Reading("", "error", None, None, detail=f"{NOT_ASKED}{self._stream.stopped}")

    def cancel(self) -> None:
        """Ask no more, and drop what is under way."""
        self._cancelled = True
        self._stream.cancel()

    close = cancel

    def __del__(self) -> None:
        self._stream.cancel()


def check_whole(name: str, value: object) -> None:
    """Raise SettingsError where a value is neither None nor a whole number from 1."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise SettingsError(f"{name} is {value!r}; expected a whole number from 1")
