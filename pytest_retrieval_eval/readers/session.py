"""A reader as a session uses it: behind the cache of its readings, with one model on the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import GateError, raised
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.reading import Reader
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.readings.known import identity_in, place_of, remember
from pytest_retrieval_eval.readers.readings.store import ReadingCache
from pytest_retrieval_eval.readers.seat import SeatedReader

# Kinds that hold a model in the process, of which a machine has room for one copy.
LOCAL = ("transformers", "fid", "causal")


def key_of(given: object, root: Path | None) -> object:
    """What tells a reader from others of a session: its settings, or the object that it is.

    >>> key_of({"kind": "fid", "model": "a"}, None) == key_of({"model": "a", "kind": "fid"}, None)
    True
    """
    return (_frozen(given), root) if isinstance(given, Mapping) else id(given)


def _frozen(value: object) -> object:
    """A setting as part of a key; objects of one text (their ``repr``) are two where they are not equal."""
    if isinstance(value, Mapping):
        return tuple(sorted(((str(key), _frozen(each)) for key, each in value.items()), key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(each) for each in value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


def behind_cache(given: object, root: Path, cache: ReadingCache) -> CachedReader:
    """The reader that was given, or that its settings describe, behind ``cache``.

    A model of this machine is loaded at the first miss, by one process for all. One that is not here is known by what
    it was when it read last, so that a full cache needs no model. A function has no identity: nothing of it is kept.
    """
    if isinstance(given, Mapping):
        settings = {str(name): value for name, value in given.items()}
        if settings.get("kind") in LOCAL:
            return _local(settings, root, cache)
        return CachedReader(reader_from(settings, root=root), cache)
    if _is_reader(given):
        return CachedReader(cast(Reader, given), cache)
    if callable(given):
        from pytest_retrieval_eval.readers.callable_reader import CallableReader

        return CachedReader(CallableReader(given), cache)
    raise GateError(
        f"the reader is {excerpt(given)}; expected a reader, its settings ({{'kind': …}}), or a function of a query "
        "and a list of texts"
    )


def _is_reader(given: object) -> bool:
    try:
        return hasattr(given, "read") and hasattr(given, "identity") and hasattr(given, "close")
    except GateError:
        raise
    except Exception as error:  # anyone may write a reader, and its identity may be made when it is asked for
        raise GateError(f"the reader cannot tell its identity: {raised(error)}") from error


def _local(settings: Mapping[str, object], root: Path, cache: ReadingCache) -> CachedReader:
    record = place_of(cache.folder, settings)
    try:
        identity = reader_from(settings, root=root).identity
    except AbsentReaderError as error:
        kept = identity_in(record)
        if kept is None or cache.cache_mode in ("refresh", "off"):
            raise
        cache.warnings.append(
            f"the model of the reader is not on this machine; what it read elsewhere is looked up ({error})"
        )
        return CachedReader(_Absent(error), cache, identity=kept)

    def make() -> Reader:
        if identity is not None and cache.cache_mode in ("rw", "refresh"):
            remember(record, identity)
        return reader_from(settings, root=root)

    return CachedReader(SeatedReader(make, identity), cache)


class _Absent:
    """Makes no reader, and says why."""

    def __init__(self, error: AbsentReaderError) -> None:
        self._error = error

    def __call__(self) -> Reader:
        raise self._error.with_traceback(None)
