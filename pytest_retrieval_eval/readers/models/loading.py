"""A model and its tokenizer in memory: device and dtype chosen and stated, loaded when the first item needs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.readers.absent import AbsentReaderError, require

DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Loaded:
    """A model that is ready: where it computes, in which dtype, which tokens end a text and which one pads."""

    model: Any
    tokenizer: Any
    device: str
    dtype: str
    ends: frozenset[int]
    pad: int


def check_names(dtype: str, device: str) -> None:
    """SettingsError for a dtype or device that there is not."""
    if dtype not in ("auto", *DTYPES):
        raise SettingsError(f"dtype {dtype!r}: {did_you_mean(dtype, ('auto', *DTYPES))}")
    if device.partition(":")[0] not in DEVICES:
        raise SettingsError(f"device {device!r}: {did_you_mean(device, DEVICES)}")


def choose_device(device: str, kind: str) -> str:
    """``auto`` is the first of CUDA, MPS and CPU that is here; another that is not here is an AbsentReaderError."""
    torch = require("torch", "erag", f"a reader of kind {kind!r}")
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if device == "auto":
        return "cuda" if cuda else "mps" if mps else "cpu"
    name, _, number = device.partition(":")
    if name == "cuda" and (not cuda or (number and int(number) >= torch.cuda.device_count())):
        have = f"{torch.cuda.device_count()} CUDA devices" if cuda else "no CUDA device"
        raise AbsentReaderError(f"the reader is to run on {device}, and this machine has {have}")
    if name == "mps" and not mps:
        raise AbsentReaderError(f"the reader is to run on {device}, and this machine has no such device")
    return device


def choose_dtype(dtype: str, device: str, kind: str) -> str:
    """``auto`` is bfloat16 on CUDA and float32 elsewhere. The device is only looked at where it decides."""
    if dtype != "auto":
        return dtype
    return "bfloat16" if choose_device(device, kind).startswith("cuda") else "float32"


def load(
    model: Any,
    tokenizer: Any,
    *,
    kind: str,
    auto_class: str,
    revision: str | None,
    dtype: str,
    device: str,
    attention: str,
) -> Loaded:
    """The model, from a folder, from the hub, or as the object that was given; in evaluation mode."""
    torch = require("torch", "erag", f"a reader of kind {kind!r}")
    transformers = require("transformers", "erag", f"a reader of kind {kind!r}")
    if isinstance(model, (str, os.PathLike)):
        place = choose_device(device, kind)
        wanted = choose_dtype(dtype, device, kind)
        if Path(model).is_dir():
            revision = None
        try:
            config = transformers.AutoConfig.from_pretrained(str(model), revision=revision)
            _check_kind(config, transformers, f"the model {model}", kind, auto_class)
            with _no_bar(transformers):
                found = getattr(transformers, auto_class).from_pretrained(
                    str(model), revision=revision, dtype=getattr(torch, wanted), attn_implementation=attention
                )
                tokens = transformers.AutoTokenizer.from_pretrained(str(model), revision=revision)
        except (OSError, ValueError) as error:
            raise _unloadable(model, auto_class, attention, error) from error
        found.to(place)
    else:
        found, tokens = model, tokenizer
        _check_kind(found.config, transformers, f"the model {type(found).__name__}", kind, auto_class)
        place = str(found.device)
    found.eval()
    return Loaded(found, tokens, place, dtype_of(found), _ends(found, tokens), _pad(found, tokens))


def dtype_of(model: Any) -> str:
    """The dtype of a model in memory, as this project names it."""
    return str(model.dtype).removeprefix("torch.")


def free_memory() -> None:
    """Give back what is not in use: cycles of objects, and the allocator's store on an accelerator."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def _check_kind(config: Any, transformers: Any, name: str, kind: str, auto_class: str) -> None:
    """SettingsError where another kind of reader, or none, is for such a model.

    The library itself loads the decoder of some encoder-decoder models (BART) as a causal model, which then says things
    that it was never trained to say.
    """
    both = bool(getattr(config, "is_encoder_decoder", False))
    if both == (auto_class == "AutoModelForSeq2SeqLM"):
        return
    what, right, known = (
        ("an encoder-decoder", "transformers (or fid)", transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING)
        if both
        else ("no encoder-decoder", "causal", transformers.MODEL_FOR_CAUSAL_LM_MAPPING)
    )
    ends = f"set kind: {right}" if type(config) in known else "no kind of reader is for it"
    raise SettingsError(
        f"{name} cannot answer as kind {kind}: it is {what} model (model_type {config.model_type}); {ends}"
    )


def _unloadable(model: object, auto_class: str, attention: str, error: Exception) -> Exception:
    said = (str(error).strip().splitlines() or [""])[0]
    if "does not support an attention implementation" in str(error) or "scaled_dot_product_attention" in str(error):
        return SettingsError(f"the model {model} has no attention {attention!r}: set attention to eager")
    if isinstance(error, OSError):
        return AbsentReaderError(f"the model {model} cannot be loaded ({said})")
    return SettingsError(f"the model {model} cannot be loaded as {auto_class}: {said}")


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    configured = model.generation_config.eos_token_id
    if configured is None:
        configured = tokenizer.eos_token_id
    if configured is None:
        raise SettingsError("neither the generation config nor the tokenizer of the model has an end-of-text token")
    return frozenset(configured if isinstance(configured, (list, tuple)) else [configured])


def _pad(model: Any, tokenizer: Any) -> int:
    """The id that fills rows up. It is masked, so any will do where the model names none: many causal models do not."""
    for found in (tokenizer.pad_token_id, model.generation_config.pad_token_id):
        if found is not None:
            return int(found)
    return min(_ends(model, tokenizer))


@contextmanager
def _no_bar(transformers: Any) -> Iterator[None]:
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
