"""A reader that reads only what no process has read before: looks up, claims, reads, keeps, and waits for others."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.readers.promise import check_promise
from pytest_retrieval_eval.readers.reading import (
    Item,
    Reader,
    Reading,
    check_given,
    given_by,
    identity_digest,
    item_key,
    item_keys,
)
from pytest_retrieval_eval.readers.readings.counters import Counters, summary_line
from pytest_retrieval_eval.readers.readings.kept import Kept
from pytest_retrieval_eval.readers.readings.store import MODES, CacheMissError, Claims, Mode, ReadingCache

__all__ = ["MODES", "CacheMissError", "CachedReader", "Counters", "Mode", "ReadingCache", "summary_line", "told"]

Factory = Callable[[], Reader]
_LIBRARIES = ("accelerate", "bitsandbytes", "openai", "peft", "ray", "tokenizers", "torch", "transformers", "vllm")
_SHORTEST, _LONGEST = 0.05, 1.0  # seconds between two looks at what others are reading
_SHOWN = 5
_END = object()


class CachedReader:
    """A reader behind a cache. It is a :class:`~pytest_retrieval_eval.readers.reading.Reader` itself.

    ``reader`` is a reader, or a callable without arguments that makes one: then ``identity`` (or an attribute of that
    name of the callable) says whose readings to look up, and the model is made at the first miss only. ``counters``
    and ``notes`` say what happened. ``claim`` limits how many items are claimed at a time, so that several processes
    share the work of a reader that may run more than once; without it the first takes all that nobody has claimed.

    >>> import tempfile
    >>> from pytest_retrieval_eval import Passage
    >>> class Echo:
    ...     identity = {"kind": "echo"}
    ...     def read(self, items):
    ...         for number, item in enumerate(items):
    ...             yield number, Reading(item.documents[0].text, "ok", None, None)
    ...     def close(self):
    ...         pass
    >>> item = Item("who?", (Passage("Ann"),))
    >>> with tempfile.TemporaryDirectory() as folder, ReadingCache(folder) as cache:
    ...     reader = CachedReader(Echo(), cache)
    ...     texts = [reading.text for _, reading in [*reader.read([item, item]), *reader.read([item])]]
    >>> texts, summary_line(reader.counters)
    (['Ann', 'Ann', 'Ann'], 'reader: 1 hit, 1 miss, 1 call, tokens unknown, 0.0 s')
    """

    def __init__(
        self,
        reader: Reader | Factory,
        cache: ReadingCache,
        *,
        identity: Mapping[str, object] | None = None,
        claim: int | None = None,
    ) -> None:
        made = hasattr(reader, "read") and not isinstance(reader, type)
        self._reader = cast(Reader, reader) if made else None
        self._make = None if made else cast(Factory, reader)
        told = None if made else getattr(reader, "identity", None)
        # Of a class that makes it a property, only an instance has one.
        self._identity = identity if identity is not None or not isinstance(told, Mapping) else told
        self._promised = None if made else self._identity
        self._cache = cache
        self._claim = claim
        # What was read and could not be stored, as on a full disk: it is not read again.
        self._unstored: dict[str, Kept] = {}
        self._nameless = False
        self.counters = Counters()
        cache.clients.append(self)

    @property
    def identity(self) -> Mapping[str, object] | None:
        """The reader's identity as it is now; a reader whose maker does not tell it is made for the answer.

        It may change while a reader reads: where memory ran out, a reader goes on with smaller batches, and what it
        reads from then on is kept as what a reader with smaller batches reads.
        """
        if self._reader is not None:
            self._identity = self._reader.identity
        elif self._promised is not None:
            self._identity = self._promised
        elif self._identity is None:
            self._identity = self._model().identity
        return self._identity

    @property
    def notes(self) -> list[str]:
        """What the user should know: damage, readings of several library versions, a reader without an identity."""
        notes = list(self._cache.warnings)
        if self._nameless and self._cache.cache_mode != "off":
            notes.append("the reader has no identity: its readings are not kept, and are made again in each session")
        versions: tuple[Mapping[str, str], ...] = ()
        if self._identity is not None:
            with suppress(GateError):  # what is wrong with the file is said by whoever reads
                versions = self._cache.versions(self._identity)
        if self._identity is not None and len(versions) > 1:
            shown = "; ".join(
                ", ".join(f"{name} {version}" for name, version in each.items()) or "unknown" for each in versions
            )
            notes.append(
                f"the readings of the reader {identity_digest(self._identity)[:12]} were made with several library "
                f"versions ({shown}); `pytest-retrieval-eval cache selfcheck` tells whether that changes texts"
            )
        return notes

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        """As any reader; equal items are read once. What has been read is kept, however this ends.

        In the mode ``ro`` a miss raises :class:`CacheMissError` before anything is given. A reader that gives no
        reading for an item, or one for an item that it was not asked, is a GateError.
        """
        places: dict[Item, list[int]] = {}
        for place, item in enumerate(items):
            places.setdefault(item, []).append(place)
        if not places:
            return
        unique = list(places)
        identity = self._identity if self._cache.cache_mode == "off" else self.identity
        if self._cache.cache_mode == "off" or identity is None:
            self._nameless = identity is None
            self.counters.misses += len(unique)
            for number, reading in self._call(unique):
                yield from ((place, reading) for place in places[unique[number]])
            return
        missing = dict(zip(item_keys(identity, unique), unique, strict=True))
        self._store_again(missing)
        found = self._cache.get_many(list(missing))
        self.counters.hits += len(found)
        self.counters.misses += len(missing) - len(found)
        if self._cache.cache_mode == "ro" and len(found) < len(missing):
            raise self._miss({key: item for key, item in missing.items() if key not in found}, len(missing))
        for key, reading in found.items():
            yield from ((place, reading) for place in places[missing.pop(key)])
        if not missing:
            return
        with self._cache.claims() as claims:
            for key, reading in self._read_with_others(missing, identity, claims):
                yield from ((place, reading) for place in places[missing[key]])

    def close(self) -> None:
        """Close the reader, if one was made. The cache stays open: it may serve other readers."""
        with suppress(GateError):  # that the file cannot be written was said when it could not
            self._store_again(list(self._unstored))
        if self._reader is not None:
            self._reader.close()
            if self._make is not None:
                self._reader = None

    # --- how it is done -------------------------------------------------------------------------------

    def _read_with_others(
        self, wanted: Mapping[str, Item], asked: Mapping[str, object], claims: Claims
    ) -> Iterator[tuple[str, Reading]]:
        """Each reading of ``wanted``: read here what nobody else reads, and wait for the rest."""
        left = dict(wanted)
        pause = _SHORTEST
        while left:
            begin = time.perf_counter()
            mine, found = claims.take(list(left), self._claim)
            self.counters.waited += len(found)
            for key, reading in found.items():
                del left[key]
                yield key, reading
            if mine:
                for key, reading in self._read_and_keep({key: left[key] for key in mine}, asked, claims):
                    del left[key]
                    yield key, reading
                pause = _SHORTEST
            elif left:
                # A look at many readings takes a while itself, and others want the file as well.
                pause = _SHORTEST if found else min(pause * 1.5, _LONGEST)
                time.sleep(max(pause, 4 * (time.perf_counter() - begin)))

    def _read_and_keep(
        self, wanted: Mapping[str, Item], asked: Mapping[str, object], claims: Claims
    ) -> Iterator[tuple[str, Reading]]:
        keys, items = list(wanted), list(wanted.values())
        versions: dict[str, str] | None = None  # known once a model has been loaded

        def keep(number: int, reading: Reading) -> Reading:
            nonlocal versions
            key, identity = keys[number], self.identity
            if identity is None or not reading.answered:
                claims.release(key)
                return reading
            if identity != asked:
                claims.release(key)
                key = item_key(identity, items[number])
            versions = loaded_versions() if versions is None else versions
            self._unstored[key] = Kept(key, identity, items[number], reading, versions, time.time())
            reading = self._cache.put(self._unstored[key], claims)
            del self._unstored[key]
            return reading

        try:
            for number, reading in self._call(items, late=keep):
                yield keys[number], keep(number, reading)
        finally:
            with suppress(GateError):  # what an interrupt came upon while it was being stored
                self._store_again(list(self._unstored))

    def _store_again(self, keys: Iterable[str]) -> None:
        for key in [key for key in keys if key in self._unstored]:
            self._cache.put(self._unstored[key])
            del self._unstored[key]

    def _call(
        self, items: Sequence[Item], late: Callable[[int, Reading], object] | None = None
    ) -> Iterator[tuple[int, Reading]]:
        """What the reader reads, counted, and checked to be one reading for each item.

        Where this ends early the reader's iterator is closed, and what it still gives after that (answers that were
        paid for, and had arrived) goes to ``late``.
        """
        counters = self.counters
        begin = time.perf_counter()
        readings = iter(given_by(self._model(), items))
        asked = set(range(len(items)))
        ended = False
        try:
            while True:
                found = next(readings, _END)
                counters.seconds += time.perf_counter() - begin
                if found is _END:
                    break
                number, reading = check_given(found, asked)
                asked.remove(number)
                self._count(reading)
                yield number, reading
                begin = time.perf_counter()  # what the caller does meanwhile is no reading
            ended = True
        finally:
            close = getattr(readings, "close", None)
            if close is not None and not ended:
                close()
                if late is not None:
                    with suppress(Exception):  # the reason why this ends is another, and is to be heard
                        for found in readings:
                            number, reading = check_given(found, asked)
                            asked.remove(number)
                            self._count(reading)
                            late(number, reading)
        if asked:
            raise GateError(f"the reader gave no reading for {len(asked)} of {len(items)} items")

    def _count(self, reading: Reading) -> None:
        counters = self.counters
        counters.calls += 1
        counters.failed += not reading.answered
        if reading.input_tokens is None or reading.output_tokens is None:
            counters.unknown_tokens += 1
        counters.input_tokens += reading.input_tokens or 0
        counters.output_tokens += reading.output_tokens or 0

    def _model(self) -> Reader:
        if self._reader is None:
            made = cast(Factory, self._make)()
            if self._promised is not None:
                check_promise(self._promised, made)
            self._reader = made
        return self._reader

    def _miss(self, missing: Mapping[str, Item], asked: int) -> CacheMissError:
        shown = [
            f"{key} ({item.query[:60]!r}, {len(item.documents)} document{'' if len(item.documents) == 1 else 's'})"
            for key, item in list(missing.items())[:_SHOWN]
        ]
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        return CacheMissError(
            f"{len(missing)} of {asked} readings are not in {self._cache.path}, and in the mode ro nothing is read: "
            f"{', '.join(shown)}{more}; to fill the cache run: {self._cache.fill}"
        )


def told(cache: ReadingCache) -> tuple[Counters, list[str]]:
    """What all readers behind a cache did together, and what their user should know."""
    notes = [note for reader in cache.clients for note in reader.notes]
    return sum((reader.counters for reader in cache.clients), Counters()), list(dict.fromkeys(notes))


def loaded_versions() -> dict[str, str]:
    """The versions of those libraries of language models that this process has loaded."""
    from importlib import metadata

    versions = {}
    for name in _LIBRARIES:
        if name in sys.modules:
            try:
                versions[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                versions[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    return versions
