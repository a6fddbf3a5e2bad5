"""A reader as a session uses it: behind the cache of its readings, with one model on the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pytest_retrieval_eval.collection.files import excerpt
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.readers.cache import CachedReader
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.reading import Reader
from pytest_retrieval_eval.readers.store import ReadingCache

# Kinds that hold a model in the process, of which a machine has room for one copy.
LOCAL = ("transformers", "fid", "causal")


def key_of(given: object, root: Path | None) -> object:
    """What tells a reader from others of a session: its settings, or the object that it is.

    >>> key_of({"kind": "fid", "model": "a"}, None) == key_of({"model": "a", "kind": "fid"}, None)
    True
    """
    if isinstance(given, Mapping):
        return json.dumps([given, str(root)], sort_keys=True, default=repr)
    return id(given)


def behind_cache(given: object, root: Path, cache: ReadingCache) -> CachedReader:
    """The reader that was given, or that its settings describe, behind ``cache``.

    A model of this machine is loaded at the first miss, by one process for all. A function has no identity.
    """
    return CachedReader(_made(given, root), cache)


def _made(given: object, root: Path) -> Reader:
    if isinstance(given, Mapping):
        settings = {str(name): value for name, value in given.items()}
        reader = reader_from(settings, root=root)
        if settings.get("kind") not in LOCAL:
            return reader
        from pytest_retrieval_eval.readers.seat import SeatedReader

        return SeatedReader(lambda: reader_from(settings, root=root), reader.identity)
    if hasattr(given, "read") and hasattr(given, "identity") and hasattr(given, "close"):
        return given
    if callable(given):
        from pytest_retrieval_eval.readers.callable_reader import CallableReader

        return CallableReader(given)
    raise GateError(
        f"the reader is {excerpt(given)}; expected a reader, its settings ({{'kind': …}}), or a function of a query "
        "and a list of texts"
    )
