"""Readers over one prompt: encoder-decoder models (T5, Flan-T5, BART), and causal and chat models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.models.encoder_decoder import EncoderDecoderReader
from pytest_retrieval_eval.readers.models.loading import Loaded
from pytest_retrieval_eval.readers.models.local import LocalReader, no_memory, refused_prompt
from pytest_retrieval_eval.readers.models.rows import padded_rows
from pytest_retrieval_eval.readers.prompts import CAUSAL, Fitted
from pytest_retrieval_eval.readers.reading import Item, Reading

# Ahead of a template that asks what day it is.
_ONE_DATE = "{%- macro strftime_now(form) -%}{{ date_string }}{%- endmacro -%}"


class Seq2seqReader(EncoderDecoderReader):
    """An encoder-decoder model: the whole prompt goes into the encoder. Its documents stand one behind the other.

    The settings are those of :class:`~pytest_retrieval_eval.readers.models.encoder_decoder.EncoderDecoderReader`.
    """

    kind = "transformers"

    def _parts(self, item: Item) -> list[Item]:
        return [Item(item.query, item.documents)]

    def _kin(self, item: Item) -> object:
        return item.query, item.documents


class CausalReader(LocalReader):
    """A causal model, padded on the left; with the tokenizer's chat template where it has one.

    ``chat`` None uses the template where there is one; True insists on it; False leaves it out. ``system`` is the
    first message of the chat. A template that asks for the date of today is told ``date``, always the same: else each
    day would have its own texts.
    """

    kind = "causal"
    auto_class = "AutoModelForCausalLM"
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
        ids, mask = padded_rows([prompt.ids for prompt in prompts], rows, padded, loaded.pad, left=True)
        device = loaded.model.device
        generated = self._generate(loaded, padded, input_ids=ids.to(device), attention_mask=mask.to(device))
        self.totals.padded_tokens += rows * padded
        self.totals.input_tokens += sum(len(prompt.ids) for prompt in prompts)
        return [
            self._reading(loaded, row[padded:], len(prompt.ids), prompt.cut)
            for prompt, row in zip(prompts, generated.tolist(), strict=False)
        ]
