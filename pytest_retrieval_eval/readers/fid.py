"""Fusion in the decoder: passages are encoded one by one, and the decoder reads all of them at once.

Izacard & Grave, "Leveraging passage retrieval with generative models for open domain question answering" (EACL 2021),
on a stock encoder-decoder model such as transformers' T5: the encoder's states of an item's passages are laid one
behind the other, without their padding, and given to ``generate`` with the mask that belongs to them. A passage is
encoded once for all items of a query: its states serve the item that has it alone (eRAG) and the one that has all (end
to end).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_retrieval_eval.readers.loading import Loaded
from pytest_retrieval_eval.readers.local import LocalReader, no_memory, refused_prompt
from pytest_retrieval_eval.readers.prompts import Fitted
from pytest_retrieval_eval.readers.reading import Item, Reading
from pytest_retrieval_eval.readers.transformers_reader import padded_rows


@dataclass(frozen=True)
class _Fused:
    """An item as the decoder sees it: the numbers of its prompts."""

    index: int
    prompts: tuple[int, ...]
    tokens: int
    cut: bool


class FidReader(LocalReader):
    """Fusion in the decoder, with an encoder-decoder model whose encoder states may be concatenated, such as T5.

    An item with one document is read as a plain encoder-decoder reader would, one without documents closed book.
    ``max_input_tokens`` holds for each passage. The states of at most ``held_tokens`` tokens are held at a time (one
    item's are always); that changes no text. The other settings are those of
    :class:`~pytest_retrieval_eval.readers.local.LocalReader`.
    """

    kind = "fid"
    auto_class = "AutoModelForSeq2SeqLM"

    def __init__(self, model: Any, *, held_tokens: int = 1 << 16, **settings: Any) -> None:
        super().__init__(model, **settings)
        self._held_tokens = held_tokens
        self.encoded = 0  # passages that went through the encoder

    def _read(self, items: Sequence[Item], loaded: Loaded) -> Iterator[tuple[int, Reading]]:
        prompts, of_item = self._prompts(items, loaded)
        fused = []
        for index, numbers in enumerate(of_item):
            bad = next((prompts[number] for number in numbers if prompts[number].problem), None)
            if bad is not None:
                yield index, refused_prompt(bad)
            else:
                tokens = sum(len(prompts[number].ids) for number in numbers)
                fused.append(_Fused(index, numbers, tokens, any(prompts[number].cut for number in numbers)))
        with self._bar(sum(item.tokens for item in fused)) as advance:
            for window in self._windows(items, fused, prompts):
                for item, reading in self._fused(loaded, prompts, window):
                    yield item.index, reading
                    advance(item.tokens)

    def _fused(
        self, loaded: Loaded, prompts: Sequence[Fitted], window: Sequence[_Fused]
    ) -> Iterator[tuple[_Fused, Reading]]:
        """Encode and decode a window; once more where memory ran out on the way and the shapes are others now.

        States and texts of one reading are so made in the same shapes: those that the identity names by then.
        """
        left = list(window)
        while left:
            shapes = self._plan.shapes
            states = self._states(loaded, prompts, sorted({number for item in left for number in item.prompts}))
            if self._plan.shapes != shapes:
                continue
            for item, reading in self._decoded(loaded, list(left), states):
                if self._plan.shapes != shapes:
                    break
                left.remove(item)
                yield item, reading

    def _prompts(self, items: Sequence[Item], loaded: Loaded) -> tuple[list[Fitted], list[tuple[int, ...]]]:
        """The distinct prompts of all items, and the numbers of those of each item."""
        numbers: dict[Item, int] = {}
        of_item = []
        for item in items:
            alone = [Item(item.query, (passage,)) for passage in item.documents] or [Item(item.query, ())]
            of_item.append(tuple(numbers.setdefault(one, len(numbers)) for one in alone))
        return self._fit(list(numbers), loaded), of_item

    def _windows(
        self, items: Sequence[Item], fused: Sequence[_Fused], prompts: Sequence[Fitted]
    ) -> Iterator[list[_Fused]]:
        """Items whose states are held together; those of one query, which share passages, stand side by side."""
        by_query: dict[str, list[_Fused]] = {}
        for item in fused:
            by_query.setdefault(items[item.index].query, []).append(item)
        window: list[_Fused] = []
        held: set[int] = set()

        def tokens(chosen: Iterable[_Fused]) -> int:
            return sum(
                len(prompts[number].ids) for number in {number for one in chosen for number in one.prompts} - held
            )

        holding = 0
        for group in by_query.values():
            # A query whose passages are too many for one window is parted, any other is not.
            parts = [group] if tokens(group) <= self._held_tokens else [[item] for item in group]
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
        self, loaded: Loaded, window: Sequence[_Fused], states: dict[int, Any]
    ) -> Iterator[tuple[_Fused, Reading]]:
        whole = [item for item in window if all(number in states for number in item.prompts)]
        for item in window:
            if item not in whole:
                yield item, no_memory(item.tokens)

        def work(members: Sequence[int], rows: int, padded: int) -> list[Reading]:
            chosen = [whole[member] for member in members]
            return self._answer(loaded, chosen, states, rows, padded)

        for members, readings in self._batches([item.tokens for item in whole], work):
            for position, member in enumerate(members):
                yield whole[member], no_memory(whole[member].tokens) if readings is None else readings[position]

    def _answer(
        self, loaded: Loaded, chosen: Sequence[_Fused], states: dict[int, Any], rows: int, padded: int
    ) -> list[Reading]:
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        one = states[chosen[0].prompts[0]]
        laid = one.new_zeros((rows, padded, one.shape[-1]))
        # Without this mask generate takes every state for a real one, padding too: other texts, and no error.
        mask = torch.zeros((rows, padded), dtype=torch.int64, device=one.device)
        for row in range(rows):
            item = chosen[min(row, len(chosen) - 1)]
            laid[row, : item.tokens] = torch.cat([states[number] for number in item.prompts])
            mask[row, : item.tokens] = 1
        # A fresh output object: beam search, were it ever on, would expand the caller's in place.
        output = BaseModelOutput(last_hidden_state=laid)
        generated = self._generate(loaded, 1, encoder_outputs=output, attention_mask=mask)
        return [
            self._reading(loaded, row[1:], item.tokens, item.cut)
            for item, row in zip(chosen, generated.tolist(), strict=False)
        ]
