"""What an OpenAI-compatible chat endpoint is sent, and what its reply means."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.reading import Status
from pytest_retrieval_eval.readers.services.calls import Answer

_PATH = "/chat/completions"
# Codes by which a service says that it declines the content of a request.
_DECLINED = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
# What makes a name exact: a date (2024-08-06, 20241022), the short dates of two makers, or a revision (@1a2b3c4).
_DATE = r"20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
_EXACT = re.compile(
    rf"(?:^|[-_:@/]){_DATE}(?=$|[-_:])"
    r"|(?:^|/)gpt-.*-(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"
    r"|(?:^|/)[a-z-]*(?:mistral|mixtral|ministral|codestral|magistral|devstral|pixtral)[a-z0-9-]*-2\d(?:0[1-9]|1[0-2])$"
    r"|@(?:sha256:)?[0-9a-f]{7,64}$"
)


@dataclass(frozen=True)
class Reply:
    """The text of a reply, how it ended, and what the service says about it.

    ``model`` is what the service says that it ran, with its fingerprint in brackets where it gives one; ``stranger``
    that it is another than the reply must come from.
    """

    text: str
    status: Status
    detail: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    stranger: bool = False


def chat_url(url: str) -> str:
    """The address of the chat endpoint under a base URL; one that names it already is left as it is.

    >>> chat_url("http://localhost:8000/v1/"), chat_url("https://a.example/x/chat/completions?api-version=2024-10-21")
    ('http://localhost:8000/v1/chat/completions', 'https://a.example/x/chat/completions?api-version=2024-10-21')
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(_PATH) else path + _PATH, fragment=""))


def pinned(model: str) -> bool:
    """Whether a model's name says exactly which model it is: by a date or a revision.

    >>> [pinned(name) for name in ("gpt-4o-2024-08-06", "claude-3-5-sonnet-20241022", "gpt-4-0613", "llama@1a2b3c4")]
    [True, True, True, True]
    >>> [pinned(name) for name in ("gpt-4o", "gpt-4o-latest", "meta-llama/Llama-3.1-8B-Instruct", "qwen2.5:7b")]
    [False, False, False, False]
    """
    return _EXACT.search(model) is not None


class Parameters(Mapping[str, object]):
    """The generation parameters of a request, each of them sent explicitly; None leaves one out.

    ``max_tokens_field`` is the name under which the service takes the largest number of tokens
    (``max_completion_tokens`` for some of OpenAI's models); ``extra`` are further fields of the request.

    >>> dict(Parameters(seed=None, extra={"top_k": 1}))
    {'temperature': 0.0, 'top_p': 1.0, 'max_tokens': 64, 'top_k': 1}
    """

    def __init__(
        self,
        *,
        temperature: float | None = 0.0,
        top_p: float | None = 1.0,
        max_tokens: int = 64,
        seed: int | None = 0,
        max_tokens_field: str = "max_tokens",
        extra: Mapping[str, object] | None = None,
    ) -> None:
        _number("temperature", temperature, 0.0, 10.0)
        _number("top_p", top_p, 0.0, 1.0)
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise SettingsError(f"max_tokens is {max_tokens!r}; expected a whole number from 1")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise SettingsError(f"seed is {seed!r}; expected a whole number, or None to send none")
        named = {"temperature": temperature, "top_p": top_p, max_tokens_field: max_tokens, "seed": seed}
        for name in extra or {}:
            if name in named or name in ("model", "messages", "n", "stream", "max_tokens"):
                raise SettingsError(f"extra holds {name!r}, which has a setting of its own or cannot be changed")
        try:
            json.dumps(dict(extra or {}), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"extra cannot be sent as JSON ({error})") from None
        self.max_tokens = max_tokens
        self._fields = {name: value for name, value in {**named, **(extra or {})}.items() if value is not None}

    def __getitem__(self, name: str) -> object:
        return self._fields[name]

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def body(self, model: str, messages: Sequence[Mapping[str, str]], repetition: int = 0) -> dict[str, object]:
        """A request. Each repetition has a seed of its own: with one seed all would be the same reply."""
        fields = dict(self._fields)
        if repetition and isinstance(fields.get("seed"), int):
            fields["seed"] = int(str(fields["seed"])) + repetition
        return {"model": model, "messages": list(messages), **fields}


def estimated_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    """About how many tokens the messages are: rather too many than too few (three bytes each)."""
    return sum(4 + (len(message["content"].encode("utf-8", "surrogatepass")) + 2) // 3 for message in messages)


def understand(answer: Answer, expected: str | None) -> Reply:
    """What became of a call. ``expected`` is the model that the reply must name; None accepts any.

    A refusal is one that the service declares: by the field ``refusal``, by the end ``content_filter``, or by an error
    with such a code. A text that declines in its own words is a text.
    """
    if answer.body is None:
        status: Status = "refused" if answer.code in _DECLINED else "error"
        return Reply("", status, answer.error)
    body = answer.body
    model = body.get("model") if isinstance(body.get("model"), str) else ""
    fingerprint = body.get("system_fingerprint")
    named = f"{model} ({fingerprint})" if isinstance(fingerprint, str) and fingerprint else str(model)
    tokens = _tokens(body)
    if expected is not None and model != expected:
        said = f"the reply comes from the model {model!r}" if model else "the reply names no model"
        detail = f"{said}; only {expected!r} is accepted, since a name that is exact is held to"
        return Reply("", "error", detail, named, *tokens, stranger=True)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return Reply("", "error", "the reply has no message (choices[0].message)", named, *tokens)
    finish = choice.get("finish_reason") if isinstance(choice, dict) else None
    text, refusal = _text(message)
    if refusal or finish in ("content_filter", "refusal"):
        return Reply("", "refused", f"the service declined: {refusal or finish}", named, *tokens)
    if text is None:
        return Reply("", "error", "the content of the reply is no text", named, *tokens)
    if finish in ("error", "abort"):
        return Reply("", "error", f"the service ended the reply with {finish!r}", named, *tokens)
    if finish == "length":
        return Reply(text, "length", "", named, *tokens)
    return Reply(text, "ok" if text.strip() else "empty", "", named, *tokens)


def _text(message: Mapping[str, Any]) -> tuple[str | None, str]:
    """The text of a message (None where there is none that can be read), and the refusal it declares."""
    content, refusal = message.get("content"), message.get("refusal")
    declared = refusal if isinstance(refusal, str) else ""
    if content is None:
        return "", declared
    if isinstance(content, list):  # parts, of which some may be refusals
        parts = [part for part in content if isinstance(part, dict)]
        declared = declared or next((str(part["refusal"]) for part in parts if part.get("refusal")), "")
        texts = [part.get("text") for part in parts if part.get("type", "text") == "text"]
        found = [text for text in texts if isinstance(text, str)]
        return "".join(found) if len(found) == len(texts) else None, declared
    return (content, declared) if isinstance(content, str) else (None, declared)


def _tokens(body: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = body.get("usage")
    counts = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    known = [count if type(count) is int and count >= 0 else None for count in counts]
    return known[0], known[1]


def _number(name: str, value: object, least: float, most: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (number and least <= value <= most):  # type: ignore[operator]
        raise SettingsError(f"{name} is {value!r}; expected a number from {least:g} to {most:g}, or None to send none")
