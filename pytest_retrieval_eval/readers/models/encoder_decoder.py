"""Readers with an encoder-decoder model, in two stages: the encoder first, then the decoder over its states.

An encoder's work grows with every token of padding, a decoder's with every batch: each step of each batch goes through
all of its weights, for one token a row. So the encoder runs in batches of closely equal lengths, and each of its inputs
once; its states are kept without their padding, and laid into larger batches of coarser lengths for the decoder. Both
lengths are an item's own (see :mod:`~pytest_retrieval_eval.readers.models.plan`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_retrieval_eval.readers.models.loading import Loaded
from pytest_retrieval_eval.readers.models.local import LocalReader, no_memory, refused_prompt
from pytest_retrieval_eval.readers.models.rows import padded_rows
from pytest_retrieval_eval.readers.prompts import Fitted
from pytest_retrieval_eval.readers.reading import Item, Reading

COARSER = 4
"""How many times as large ``step`` and ``tokens`` of the shapes are for the decoder."""


@dataclass(frozen=True)
class _Laid:
    """An item as the decoder sees it: the numbers of its prompts."""

    index: int
    prompts: tuple[int, ...]
    tokens: int
    cut: bool


class EncoderDecoderReader(LocalReader):
    """What goes through the encoder by itself is for a kind of reader to say.

    The states of at most ``held_tokens`` tokens are held at a time (one item's are always); that changes no text. The
    other settings are those of :class:`~pytest_retrieval_eval.readers.models.local.LocalReader`.
    """

    auto_class = "AutoModelForSeq2SeqLM"

    def __init__(self, model: Any, *, held_tokens: int = 1 << 16, **settings: Any) -> None:
        super().__init__(model, **settings)
        self._held_tokens = held_tokens
        self.encoded = 0  # prompts that went through the encoder

    @abstractmethod
    def _parts(self, item: Item) -> list[Item]:
        """The items whose prompts the encoder reads, one by one, for this item; in order."""

    @abstractmethod
    def _kin(self, item: Item) -> object:
        """Equal for items that may share parts: their states are held together where there is room."""

    def _further_identity(self) -> dict[str, object]:
        return {"decoder": {"coarser": COARSER}}

    def _read(self, items: Sequence[Item], loaded: Loaded) -> Iterator[tuple[int, Reading]]:
        prompts, of_item = self._prompts(items, loaded)
        readable = []
        for index, numbers in enumerate(of_item):
            bad = next((prompts[number] for number in numbers if prompts[number].problem), None)
            if bad is not None:
                yield index, refused_prompt(bad)
            else:
                tokens = sum(len(prompts[number].ids) for number in numbers)
                readable.append(_Laid(index, numbers, tokens, any(prompts[number].cut for number in numbers)))
        with self._bar(sum(item.tokens for item in readable)) as advance:
            for window in self._windows(items, readable, prompts):
                for item, reading in self._window(loaded, prompts, window):
                    yield item.index, reading
                    advance(item.tokens)

    def _window(
        self, loaded: Loaded, prompts: Sequence[Fitted], window: Sequence[_Laid]
    ) -> Iterator[tuple[_Laid, Reading]]:
        """Encode and decode a window; once more where memory ran out on the way and the shapes are others now.

        States and texts of one reading are so made in the same shapes: those that the identity names by then.
        """
        left = list(window)
        while left:
            shapes = self._plan.shapes
            states = self._states(loaded, prompts, sorted({number for item in left for number in item.prompts}))
            if self._plan.shapes != shapes:
                continue
            for item, reading in self._decoded(loaded, prompts, list(left), states):
                if self._plan.shapes != shapes:
                    break
                left.remove(item)
                yield item, reading

    def _prompts(self, items: Sequence[Item], loaded: Loaded) -> tuple[list[Fitted], list[tuple[int, ...]]]:
        """The distinct prompts of all items, and the numbers of those of each item."""
        numbers: dict[Item, int] = {}
        of_item = []
        for item in items:
            of_item.append(tuple(numbers.setdefault(part, len(numbers)) for part in self._parts(item)))
        return self._fit(list(numbers), loaded), of_item

    def _windows(
        self, items: Sequence[Item], readable: Sequence[_Laid], prompts: Sequence[Fitted]
    ) -> Iterator[list[_Laid]]:
        """Items whose states are held together: kin side by side, and the longest first, as in every plan."""
        families: dict[object, list[_Laid]] = {}
        for item in readable:
            families.setdefault(self._kin(items[item.index]), []).append(item)
        window: list[_Laid] = []
        held: set[int] = set()

        def tokens(chosen: Iterable[_Laid]) -> int:
            return sum(
                len(prompts[number].ids) for number in {number for one in chosen for number in one.prompts} - held
            )

        holding = 0
        for family in sorted(families.values(), key=lambda family: -max(item.tokens for item in family)):
            # One that is too large for a window is parted, any other is not.
            parts = [family] if tokens(family) <= self._held_tokens else [[item] for item in family]
            for part in parts:
                if window and holding + tokens(part) > self._held_tokens:
                    yield window
                    window, held, holding = [], set(), 0
                holding += tokens(part)
                window += part
                held |= {number for item in part for number in item.prompts}
        if window:
            yield window

    def _states(self, loaded: Loaded, prompts: Sequence[Fitted], numbers: Sequence[int]) -> dict[int, Any]:
        """The encoder's states of each prompt, tokens × width; those are left out for which memory was too small."""
        encoder, device = loaded.model.get_encoder(), loaded.model.device

        def work(members: Sequence[int], rows: int, padded: int) -> list[Any]:
            texts = [prompts[numbers[member]].ids for member in members]
            ids, mask = padded_rows(texts, rows, padded, loaded.pad, left=False)
            states = encoder(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state
            self.totals.padded_tokens += rows * padded
            self.totals.input_tokens += sum(len(text) for text in texts)
            self.encoded += len(members)
            # Copies: a view would hold the padded states of the whole batch.
            return [states[row, : len(text)].clone() for row, text in enumerate(texts)]

        found: dict[int, Any] = {}
        for members, states in self._batches([len(prompts[number].ids) for number in numbers], work):
            if states is not None:
                found.update((numbers[member], state) for member, state in zip(members, states, strict=True))
        return found

    def _decoded(
        self, loaded: Loaded, prompts: Sequence[Fitted], window: Sequence[_Laid], states: dict[int, Any]
    ) -> Iterator[tuple[_Laid, Reading]]:
        whole = [item for item in window if all(number in states for number in item.prompts)]
        for item in window:
            if item not in whole:
                yield item, no_memory(item.tokens)

        def work(members: Sequence[int], rows: int, padded: int) -> list[Reading]:
            chosen = [whole[member] for member in members]
            return self._answer(loaded, prompts, chosen, states, rows, padded)

        for members, readings in self._batches([item.tokens for item in whole], work, COARSER):
            for position, member in enumerate(members):
                yield whole[member], no_memory(whole[member].tokens) if readings is None else readings[position]

    def _answer(
        self,
        loaded: Loaded,
        prompts: Sequence[Fitted],
        chosen: Sequence[_Laid],
        states: dict[int, Any],
        rows: int,
        padded: int,
    ) -> list[Reading]:
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        # The ids are for what looks a token up in the prompt, such as encoder_no_repeat_ngram_size. Without the mask
        # generate takes every state for a real one, padding too: other texts, and no error.
        texts = [[token for number in item.prompts for token in prompts[number].ids] for item in chosen]
        ids, mask = padded_rows(texts, rows, padded, loaded.pad, left=False)
        one = states[chosen[0].prompts[0]]
        laid = one.new_zeros((rows, padded, one.shape[-1]))
        for row in range(rows):
            item = chosen[min(row, len(chosen) - 1)]
            laid[row, : item.tokens] = torch.cat([states[number] for number in item.prompts])
        # A fresh output object: beam search, were it ever on, would expand the caller's in place.
        output = BaseModelOutput(last_hidden_state=laid)
        generated = self._generate(
            loaded, 1, input_ids=ids.to(one.device), attention_mask=mask.to(one.device), encoder_outputs=output
        )
        return [
            self._reading(loaded, row[1:], item.tokens, item.cut)
            for item, row in zip(chosen, generated.tolist(), strict=False)
        ]
