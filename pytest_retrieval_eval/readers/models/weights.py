"""Which model this is: digests of its files, or of the tensors of a model that is in memory.

Digests of large files are kept in the user's cache folder, by path, size and time of the last change, so that not every
process reads hundreds of megabytes to find out what it has.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.collection.formats.files import write_atomically
from pytest_retrieval_eval.errors import DataError, SettingsError
from pytest_retrieval_eval.readers.absent import AbsentReaderError, require

_ENDINGS = (".json", ".jinja", ".model", ".txt", ".safetensors", ".bin", ".pt", ".gguf")
_NOT_THE_MODEL = re.compile(
    r"(readme|license|notice|requirements).*|training_args\.bin|optimizer\.(pt|bin)|scheduler\.(pt|bin)"
    r"|rng_state.*|(trainer_state|all_results|eval_results|train_results)\.json|vocab_map.*",
    re.IGNORECASE,
)
_LARGE = 1 << 20
_COMMIT = re.compile(r"[0-9a-f]{40}")


def model_identity(model: str | os.PathLike[str], revision: str | None) -> dict[str, object]:
    """What names the model exactly: the digests of a folder's files, or the id and commit of a repository.

    Of a folder every file counts that the model or its tokenizer is loaded from; where the folder lies does not.
    Raises AbsentReaderError where there is no such model.
    """
    folder = Path(model)
    if folder.is_dir():
        return {"files": folder_digests(folder)}
    return {"model": str(model), "revision": resolved_revision(str(model), revision)}


def folder_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a model folder that can change a text, by name."""
    if (folder / "adapter_config.json").exists():
        raise SettingsError(
            f"{folder} is an adapter, and what it adapts is not in it: merge the two (merge_and_unload of peft), save "
            "the model with its tokenizer, and name that folder"
        )
    names = sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file() and path.name.endswith(_ENDINGS) and not _NOT_THE_MODEL.fullmatch(path.name)
    )
    if "config.json" not in names:
        raise AbsentReaderError(f"{folder} holds no model: there is no config.json in it")
    return {name: file_digest(folder / name) for name in names}


def file_digest(path: Path, kept: Path | None = None) -> str:
    """SHA-256 of a file's bytes as hexadecimal digits; of a large one from ``kept`` where it has not changed since."""
    path = path.resolve()
    before = path.stat()
    if before.st_size < _LARGE:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    folder = kept or cache_folder() / "digests"
    record = folder / (hashlib.sha256(os.fsencode(path)).hexdigest()[:32] + ".json")
    # A copy that keeps times may give other bytes the size and time of the former ones.
    stamp = [before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_ino]
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(record.read_bytes())
        if found["stamp"] == stamp:
            return str(found["sha256"])
    digester = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digester.update(chunk)
    # A file that is just being written could change again without a change of its time.
    if time.time_ns() - before.st_mtime_ns > 2_000_000_000 and path.stat().st_mtime_ns == before.st_mtime_ns:
        # A home that cannot be written costs time, no more.
        with suppress(OSError, DataError), write_atomically(record) as file:
            file.write(json.dumps({"stamp": stamp, "sha256": digester.hexdigest()}).encode())
    return digester.hexdigest()


def cache_folder() -> Path:
    """Where this project keeps what it can make again: below ``XDG_CACHE_HOME``, else ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-retrieval-eval"


def resolved_revision(model: str, revision: str | None) -> str:
    """The commit of a repository of the Hugging Face hub that a branch or tag names; a commit stays as it is."""
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    if model.startswith((".", "/", "~")) or model.count("/") > 1 or (os.sep != "/" and os.sep in model):
        raise AbsentReaderError(f"the model {model} is not here: there is no such folder")
    hub = require("huggingface_hub", "erag", f"the model {model!r}")
    try:
        folder = hub.snapshot_download(model, revision=revision, allow_patterns=["config.json"])
    except Exception as error:  # many kinds: no network, no such repository, not allowed, offline and not there
        said = str(error).strip().splitlines()
        raise AbsentReaderError(
            f"the model {model!r} is neither a folder nor to be had from the hub "
            f"({type(error).__name__}: {said[0] if said else ''})"
        ) from error
    return Path(folder).name


def tensors_digest(model: Any) -> str:
    """SHA-256 over names, types, shapes and bytes of the tensors of a model in memory."""
    import torch

    digester = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digester.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().to("cpu").contiguous().reshape(-1)
        digester.update(memoryview(flat.view(torch.uint8).numpy()))
    return digester.hexdigest()


def tokenizer_digest(tokenizer: Any) -> str:
    """SHA-256 of what a tokenizer in memory does: its whole state, or what can be seen of it, and its template."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    state: Mapping[str, object] = {
        "class": type(tokenizer).__name__,
        "state": backend.to_str() if backend is not None else sorted(tokenizer.get_vocab().items()),
        "special": {name: str(value) for name, value in tokenizer.special_tokens_map.items()},
        "chat_template": getattr(tokenizer, "chat_template", None),
        "clean_up": getattr(tokenizer, "clean_up_tokenization_spaces", None),
    }
    return hashlib.sha256(json.dumps(state, sort_keys=True, default=str).encode()).hexdigest()
