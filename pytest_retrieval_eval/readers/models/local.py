"""What the readers share whose model runs in this process: settings, identity, prompts as tokens, batches, totals."""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.progress import progress as progress_bar
from pytest_retrieval_eval.readers.models import loading, weights
from pytest_retrieval_eval.readers.models.plan import Plan, Shapes
from pytest_retrieval_eval.readers.prompts import Fitted, Prompt, fit
from pytest_retrieval_eval.readers.reading import Item, Reading

_GREEDY = {"do_sample": False, "num_beams": 1}
_OURS = frozenset(
    {
        *_GREEDY,
        "max_new_tokens",
        "max_length",
        "num_return_sequences",
        "return_dict_in_generate",
        "pad_token_id",
        "eos_token_id",
        "stop_strings",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
    }
)


@dataclass
class Totals:
    """What a reader has done so far; ``padded_tokens`` is the area of all batches of prompts, filling rows included."""

    items: int = 0
    truncated: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    padded_tokens: int = 0
    batches: int = 0
    seconds: float = 0.0

    @property
    def truncated_share(self) -> float:
        """The share of items whose documents were cut; 0 where nothing was read."""
        return self.truncated / self.items if self.items else 0.0

    @property
    def padding_share(self) -> float:
        """The share of the computed tokens of prompts that were padding or rows that only filled a shape."""
        return 1 - self.input_tokens / self.padded_tokens if self.padded_tokens else 0.0


class LocalReader(ABC):
    """A greedy reader over a transformers model.

    ``model`` is a folder, an id of the hub (``revision``: a branch, tag or commit), or a model object; with an object
    the ``tokenizer`` is given too. The model is loaded when the first item is read. ``dtype`` auto is bfloat16 on CUDA
    and float32 elsewhere; ``device`` auto is the first of CUDA, MPS and CPU. A prompt has at most
    ``max_input_tokens``; what is above is cut from the documents. An answer has at most ``max_new_tokens``, and ends
    before the first of the texts in ``stop``. ``generation`` holds further parameters of ``generate``; those that
    sample or search beams are refused. Answers are stripped of white space at both ends.
    """

    kind: ClassVar[str]
    auto_class: ClassVar[str]
    default_prompt: ClassVar[Prompt] = Prompt()
    default_max_input_tokens: ClassVar[int] = 512
    default_max_new_tokens: ClassVar[int] = 32

    def __init__(
        self,
        model: Any,
        *,
        tokenizer: Any = None,
        revision: str | None = None,
        prompt: Prompt | str | Mapping[str, object] | None = None,
        dtype: str = "auto",
        device: str = "auto",
        attention: str = "sdpa",
        max_input_tokens: int | None = None,
        max_new_tokens: int | None = None,
        stop: Sequence[str] = (),
        generation: Mapping[str, object] | None = None,
        shapes: Shapes | None = None,
        progress: bool | None = None,
    ) -> None:
        loading.check_names(dtype, device)
        self._in_memory = not isinstance(model, (str, os.PathLike))
        if self._in_memory != (tokenizer is not None):
            raise SettingsError(
                "a model object is given with its tokenizer; a folder or an id is given without one, since it has one"
            )
        if self._in_memory and (dtype != "auto" or device != "auto"):
            raise SettingsError("a model object keeps its dtype and device: move it before it is given")
        if attention not in ("sdpa", "eager", "flash_attention_2"):
            raise SettingsError(f"attention {attention!r}: expected sdpa, eager or flash_attention_2")
        self._model, self._tokenizer, self._revision = model, tokenizer, revision
        self._dtype, self._device, self._attention = dtype, device, attention
        self.prompt = Prompt.of(prompt, self.default_prompt)
        self.max_input_tokens = _at_least_one("max_input_tokens", max_input_tokens, self.default_max_input_tokens)
        self.max_new_tokens = _at_least_one("max_new_tokens", max_new_tokens, self.default_max_new_tokens)
        self.stop = _stops(stop)
        self.generation = _generation(generation)
        self._plan = Plan(shapes or Shapes())
        self._progress = progress
        self._loaded: loading.Loaded | None = None
        self._named: dict[str, object] | None = None
        self.totals = Totals()

    # --- the protocol of readers ---------------------------------------------------------------------

    @property
    def identity(self) -> Mapping[str, object] | None:
        """Everything that can change a text; None under ``dynamic`` shapes, whose texts depend on their neighbours.

        It changes where memory runs out under ``fixed`` shapes: what is read from then on is what a reader with fewer
        rows would have read. Neither the model nor torch is loaded for it, unless dtype or device are to be chosen.
        """
        shapes = self._plan.shapes.identity
        if shapes is None:
            return None
        if self._named is None:
            self._named = self._name_model()
        return {
            "kind": self.kind,
            **self._named,
            "prompt": self.prompt.identity,
            "max_input_tokens": self.max_input_tokens,
            "truncation": "documents to one number of tokens",
            "generation": {
                **self.generation,
                **_GREEDY,
                "max_new_tokens": self.max_new_tokens,
                "stop": list(self.stop),
            },
            "shapes": shapes,
            **self._further_identity(),
        }

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        """(index, reading) of each item, batch by batch."""
        if not items:
            return
        begin = time.perf_counter()
        try:
            loaded = self._load()
            for index, reading in self._read(items, loaded):
                self.totals.items += 1
                self.totals.truncated += reading.truncated
                self.totals.output_tokens += reading.output_tokens or 0
                now = time.perf_counter()
                self.totals.seconds += now - begin
                yield index, reading
                begin = time.perf_counter()  # what the caller did meanwhile is not the reader's time
        finally:
            self.totals.seconds += time.perf_counter() - begin

    def close(self) -> None:
        """Let go of the model that this reader has loaded."""
        if self._loaded is not None and not self._in_memory:
            self._loaded = None
            loading.free_memory()

    # --- further -------------------------------------------------------------------------------------

    @property
    def notes(self) -> Sequence[str]:
        """What happened that a report should say: memory that ran out."""
        return tuple(self._plan.notes)

    @property
    def shapes(self) -> Shapes:
        """The shapes as they are now: fewer rows than were asked for where memory ran out."""
        return self._plan.shapes

    # --- what a kind of reader adds ------------------------------------------------------------------

    @abstractmethod
    def _read(self, items: Sequence[Item], loaded: loading.Loaded) -> Iterator[tuple[int, Reading]]: ...

    def _further_identity(self) -> dict[str, object]:
        return {}

    def _build(self, item: Item, texts: Sequence[str] | None) -> str:
        return self.prompt.fill(item, texts)

    def _encode(self, loaded: loading.Loaded, prompts: Sequence[str]) -> Sequence[Sequence[int]]:
        return loaded.tokenizer(list(prompts), verbose=False)["input_ids"]  # type: ignore[no-any-return]

    # --- how it is done ------------------------------------------------------------------------------

    def _load(self) -> loading.Loaded:
        if self._loaded is None:
            self._loaded = loading.load(
                self._model,
                self._tokenizer,
                kind=self.kind,
                auto_class=self.auto_class,
                revision=str(self._name().get("revision") or "") or None,
                dtype=self._dtype,
                device=self._device,
                attention=self._attention,
            )
            longest = getattr(self._loaded.model.config, "max_position_embeddings", None)
            needed = self.max_input_tokens + (
                0 if self._loaded.model.config.is_encoder_decoder else self.max_new_tokens
            )
            if isinstance(longest, int) and needed > longest:
                raise SettingsError(
                    f"the model has {longest} positions, and max_input_tokens and max_new_tokens ask for {needed}"
                )
        return self._loaded

    def _name(self) -> dict[str, object]:
        if self._named is None:
            self._named = self._name_model()
        return self._named

    def _name_model(self) -> dict[str, object]:
        if self._in_memory:
            return {
                "tensors": weights.tensors_digest(self._model),
                "config": _config_digest(self._model.config),
                "generation_config": _config_digest(self._model.generation_config),
                "tokenizer": weights.tokenizer_digest(self._tokenizer),
                "dtype": loading.dtype_of(self._model),
                "attention": str(self._model.config._attn_implementation),
            }
        return {
            **weights.model_identity(self._model, self._revision),
            "dtype": loading.choose_dtype(self._dtype, self._device, self.kind),
            "attention": self._attention,
        }

    def _fit(self, items: Sequence[Item], loaded: loading.Loaded) -> list[Fitted]:
        return fit(
            items,
            self._build,
            lambda prompts: self._encode(loaded, prompts),
            lambda text: _token_ends(loaded.tokenizer, text),
            self.max_input_tokens,
        )

    def _bar(self, tokens: int) -> Any:
        # Tokens, not items: the longest are read first, and items a second would promise an end that never comes.
        return progress_bar(self._progress, tokens, doing="reading", unit="tok")

    def _batches(
        self, lengths: Sequence[int], work: Callable[[Sequence[int], int, int], list[Any]], coarser: int = 1
    ) -> Iterator[tuple[Sequence[int], list[Any] | None]]:
        import torch

        def measured(members: Sequence[int], rows: int, padded: int) -> list[Any]:
            with torch.inference_mode():
                results = work(members, rows, padded)
            self.totals.batches += 1
            return results

        yield from self._plan.run(lengths, measured, loading.free_memory, coarser)

    def _generate(self, loaded: loading.Loaded, before: int, **inputs: Any) -> Any:
        """Rows of ids; the first ``before`` of each are not the answer's."""
        stop = {"stopping_criteria": [_stopping(loaded.tokenizer, self.stop, before)]} if self.stop else {}
        return loaded.model.generate(
            **inputs,
            **self.generation,
            **stop,
            **_GREEDY,
            max_new_tokens=self.max_new_tokens,
            pad_token_id=loaded.pad,
            return_dict_in_generate=False,
        )

    def _reading(self, loaded: loading.Loaded, tokens: Sequence[int], input_tokens: int, cut: bool) -> Reading:
        """The reading behind the ids that were generated, without those of the prompt or the decoder's start."""
        end = next((at for at, token in enumerate(tokens) if token in loaded.ends), None)
        finished = end is not None
        kept = list(tokens if end is None else tokens[: end + 1])
        text = loaded.tokenizer.decode(kept, skip_special_tokens=True)
        for stop in self.stop:
            head, found, _ = text.partition(stop)
            if found:
                text, finished = head, True
                while kept[-1] == loaded.pad:  # the row ended there, and the batch went on
                    kept.pop()
        text = text.strip()
        status = "empty" if not text else "ok" if finished else "length"
        return Reading(text, status, input_tokens, len(kept), cut)  # type: ignore[arg-type]


def _stopping(tokenizer: Any, stop: Sequence[str], before: int) -> Callable[..., Any]:
    """Ends a row once its text holds one of the texts; transformers' own does not take every tokenizer."""
    import torch

    def ended(ids: Any, scores: Any, **_: Any) -> Any:
        texts = [tokenizer.decode(row, skip_special_tokens=True) for row in ids[:, before:].tolist()]
        return torch.tensor([any(one in text for one in stop) for text in texts], device=ids.device)

    return ended


def refused_prompt(fitted: Fitted) -> Reading:
    """The reading of an item whose prompt cannot be made to fit."""
    return Reading("", "error", None, None, detail=fitted.problem)


def no_memory(tokens: int) -> Reading:
    """The reading of an item that does not fit into memory by itself."""
    return Reading("", "error", None, None, detail=f"out of memory with this item alone ({tokens} tokens)")


def _token_ends(tokenizer: Any, text: str) -> Sequence[int]:
    if not getattr(tokenizer, "is_fast", False):
        return range(1, len(text) + 1)  # it does not say where its tokens end: any character will do
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    return [end for _, end in offsets]


def _config_digest(config: Any) -> str:
    """SHA-256 of the settings of a model or of its generation, without where they come from."""
    aside = ("transformers_version", "_name_or_path", "_commit_hash", "architectures", "dtype")
    found = {name: value for name, value in config.to_dict().items() if name not in aside}
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()


def _generation(given: Mapping[str, object] | None) -> dict[str, object]:
    for name in given or {}:
        if name in _OURS:
            raise SettingsError(
                f"generation: {name} is not to be set here: readers are greedy, and their length is max_new_tokens"
            )
    return dict(given or {})


def _stops(stop: Sequence[str]) -> tuple[str, ...]:
    found = (stop,) if isinstance(stop, str) else tuple(stop)
    for text in found:
        if not isinstance(text, str) or not text:
            raise SettingsError(f"stop holds {excerpt(text)}; expected texts that are not empty")
    return found


def _at_least_one(name: str, value: object, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{name} is {excerpt(value)}; expected an integer of at least 1")
    return value
