"""Readers over one prompt: encoder-decoder models (T5, Flan-T5, BART), and causal and chat models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.loading import Loaded
from pytest_retrieval_eval.readers.local import LocalReader, no_memory, refused_prompt
from pytest_retrieval_eval.readers.prompts import CAUSAL, Fitted
from pytest_retrieval_eval.readers.reading import Item, Reading

# Ahead of a template that asks what day it is.
_ONE_DATE = "{%- macro strftime_now(form) -%}{{ date_string }}{%- endmacro -%}"


class _PromptReader(LocalReader):
    """Each item is one prompt and one row of a batch."""

    left: ClassVar[bool]

    def _read(self, items: Sequence[Item], loaded: Loaded) -> Iterator[tuple[int, Reading]]:
        prompts = self._fit(items, loaded)
        fitting = []
        for index, prompt in enumerate(prompts):
            if prompt.problem:
                yield index, refused_prompt(prompt)
            else:
                fitting.append(index)
        chosen = [prompts[index] for index in fitting]
        lengths = [len(prompt.ids) for prompt in chosen]

        def work(members: Sequence[int], rows: int, padded: int) -> list[Reading]:
            return self._answer(loaded, [chosen[member] for member in members], rows, padded)

        with self._bar(sum(lengths)) as advance:
            for members, readings in self._batches(lengths, work):
                for position, member in enumerate(members):
                    reading = no_memory(lengths[member]) if readings is None else readings[position]
                    yield fitting[member], reading
                advance(sum(lengths[member] for member in members))

    def _answer(self, loaded: Loaded, prompts: Sequence[Fitted], rows: int, padded: int) -> list[Reading]:
        ids, mask = padded_rows([prompt.ids for prompt in prompts], rows, padded, loaded.pad, left=self.left)
        before = padded if self.left else 1  # the prompt, or the token with which a decoder starts
        device = loaded.model.device
        generated = self._generate(loaded, before, input_ids=ids.to(device), attention_mask=mask.to(device))
        self.totals.padded_tokens += rows * padded
        self.totals.input_tokens += sum(len(prompt.ids) for prompt in prompts)
        return [
            self._reading(loaded, row[before:], len(prompt.ids), prompt.cut)
            for prompt, row in zip(prompts, generated.tolist(), strict=False)
        ]


class Seq2seqReader(_PromptReader):
    """An encoder-decoder model: the whole prompt goes into the encoder. Its documents stand one behind the other.

    The settings are those of :class:`~pytest_retrieval_eval.readers.local.LocalReader`.
    """

    kind = "transformers"
    auto_class = "AutoModelForSeq2SeqLM"
    left = False


class CausalReader(_PromptReader):
    """A causal model, padded on the left; with the tokenizer's chat template where it has one.

    ``chat`` None uses the template where there is one; True insists on it; False leaves it out. ``system`` is the
    first message of the chat. A template that asks for the date of today is told ``date``, always the same: else each
    day would have its own texts.
    """

    kind = "causal"
    auto_class = "AutoModelForCausalLM"
    left = True
    default_prompt = CAUSAL
    default_max_input_tokens = 2048

    def __init__(
        self, model: Any, *, chat: bool | None = None, system: str = "", date: str = "1 January 2025", **settings: Any
    ) -> None:
        super().__init__(model, **settings)
        if system and chat is False:
            raise SettingsError("system is a message of a chat, and chat is off")
        self.chat, self.system, self.date = chat, system, date
        self._templated: bool | None = None

    def _further_identity(self) -> dict[str, object]:
        return {"chat": {"template": self.chat, "system": self.system, "date": self.date}}

    def _load(self) -> Loaded:
        loaded = super()._load()
        if self._templated is None:
            has = bool(getattr(loaded.tokenizer, "chat_template", None))
            if (self.chat or self.system) and not has:
                raise SettingsError("the tokenizer of the model has no chat template: leave out chat and system")
            self._templated = has and self.chat is not False
        return loaded

    def _build(self, item: Item, texts: Sequence[str] | None) -> str:
        prompt = super()._build(item, texts)
        if not self._templated or self._loaded is None:
            return prompt
        messages = [{"role": "user", "content": prompt}]
        if self.system:
            messages.insert(0, {"role": "system", "content": self.system})
        tokenizer = self._loaded.tokenizer
        template = tokenizer.get_chat_template()
        if "strftime_now" in template:
            template = _ONE_DATE + template
        return str(
            tokenizer.apply_chat_template(
                messages, chat_template=template, tokenize=False, add_generation_prompt=True, date_string=self.date
            )
        )

    def _encode(self, loaded: Loaded, prompts: Sequence[str]) -> Sequence[Sequence[int]]:
        # A chat template writes the special tokens itself.
        special = not self._templated
        found = loaded.tokenizer(list(prompts), add_special_tokens=special, verbose=False)
        return found["input_ids"]  # type: ignore[no-any-return]


def padded_rows(prompts: Sequence[Sequence[int]], rows: int, padded: int, pad: int, *, left: bool) -> tuple[Any, Any]:
    """(ids, mask), both rows × padded, as int64 tensors; rows that lack are copies of the last prompt.

    A copy ends when its original does: a row of padding could go on to the largest number of new tokens, and every
    other row with it.
    """
    import torch

    ids = torch.full((rows, padded), pad, dtype=torch.int64)
    mask = torch.zeros((rows, padded), dtype=torch.int64)
    for row in range(rows):
        prompt = prompts[min(row, len(prompts) - 1)]
        place = slice(padded - len(prompt), padded) if left else slice(0, len(prompt))
        ids[row, place] = torch.tensor(prompt, dtype=torch.int64)
        mask[row, place] = 1
    return ids, mask
