"""A reader that is a function of the user's: ``fn(query, texts) -> answer``, batched or not, awaited or not."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import DataError, SettingsError, raised
from pytest_retrieval_eval.readers.prompts import Prompt
from pytest_retrieval_eval.readers.reading import Item, Reading

_PLAIN = Prompt(document="{title}\n{text}", untitled="{text}")
Unit = tuple[int, ...]


class CallableReader:
    r"""Asks ``function(query, texts)`` for an answer; ``texts`` is the list of the item's documents, title first.

    With ``batch_size`` it is ``function(queries, texts of each)`` and gives a list of answers. An asynchronous function
    runs up to ``concurrency`` times at once. An answer is a text; or a :class:`Reading`, which may say ``refused``.
    What else it returns is a DataError; what it raises is the reading ``error`` of its items.

    ``identity`` is a text that names everything that can change an answer: change it with the model or the prompt.
    Without it nothing is kept in a cache. ``documents`` makes a text of title and text (as in :class:`Prompt`).

    >>> reader = CallableReader(lambda query, texts: texts[0].split()[0] if texts else "", identity="first word, v1")
    >>> from pytest_retrieval_eval import Passage
    >>> [reading.text for _, reading in reader.read([Item("who?", (Passage("Ann did."),))])]
    ['Ann']
    """

    def __init__(
        self,
        function: Callable[..., Any],
        identity: str | None = None,
        *,
        batch_size: int | None = None,
        concurrency: int = 8,
        documents: Mapping[str, str] | None = None,
    ) -> None:
        if not callable(function):
            raise SettingsError(f"the reader is {excerpt(function)}; expected a callable: function(query, texts)")
        if identity is not None and (not isinstance(identity, str) or not identity.strip()):
            raise SettingsError(
                f"the identity of the reader is {excerpt(identity)}; expected a text, or None: no cache"
            )
        for name, value in (("batch_size", 1 if batch_size is None else batch_size), ("concurrency", concurrency)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingsError(f"{name} is {excerpt(value)}; expected an integer of at least 1")
        for name in documents or {}:
            if name not in ("document", "untitled"):
                raise SettingsError(f"documents: there is no template {name!r}; known: document, untitled")
        self._function, self._name = function, identity
        self._batch_size, self._concurrency = batch_size, concurrency
        self._documents = Prompt.of(documents, _PLAIN)
        self._loop: _Loop | None = None

    @property
    def identity(self) -> Mapping[str, object] | None:
        """The text that was given, and how documents become texts; None without it."""
        if self._name is None:
            return None
        templates = {"document": self._documents.document, "untitled": self._documents.untitled}
        return {"kind": "callable", "name": self._name, "documents": templates}

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        """(index, reading) of each item as the function gives them."""
        size = self._batch_size or 1
        units = [tuple(range(begin, min(begin + size, len(items)))) for begin in range(0, len(items), size)]
        for number, unit in enumerate(units):
            value = None
            if not _is_async(self._function):
                try:
                    value = self._function(*self._arguments(items, unit))
                except Exception as error:
                    yield from self._failed(unit, error)
                    continue
                if not inspect.isawaitable(value):
                    yield from self._readings(unit, value)
                    continue
            yield from self._awaited(items, units[number:], value)
            return

    def close(self) -> None:
        """End the loop of an asynchronous function."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _arguments(self, items: Sequence[Item], unit: Unit) -> tuple[Any, list[Any]]:
        texts = [
            [self._documents.of_passage(passage, passage.text, rank) for rank, passage in enumerate(item.documents, 1)]
            for item in (items[index] for index in unit)
        ]
        if self._batch_size is None:
            return items[unit[0]].query, texts[0]
        return [items[index].query for index in unit], texts

    def _awaited(self, items: Sequence[Item], units: Sequence[Unit], first: Any) -> Iterator[tuple[int, Reading]]:
        """``first`` is what a plain function has handed out for the first unit, if it is known already."""
        if self._loop is None:
            self._loop = _Loop()

        async def ask(unit: Unit) -> Any:
            if first is not None and unit == units[0]:
                return await first
            value = self._function(*self._arguments(items, unit))
            return await value if inspect.isawaitable(value) else value

        for unit, value, error in self._loop.results(ask, units, self._concurrency):
            yield from self._readings(unit, value) if error is None else self._failed(unit, error)

    def _failed(self, unit: Unit, error: BaseException) -> Iterator[tuple[int, Reading]]:
        detail = raised(error)
        for index in unit:
            yield index, Reading("", "error", None, None, detail=detail)

    def _readings(self, unit: Unit, value: Any) -> Iterator[tuple[int, Reading]]:
        answers = [value]
        if self._batch_size is not None:
            if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence) or len(value) != len(unit):
                raise DataError(f"the reader returned {excerpt(value)}; expected a list of {len(unit)} answers")
            answers = list(value)
        for index, answer in zip(unit, answers, strict=True):
            if isinstance(answer, Reading):
                yield index, answer
            elif isinstance(answer, str):
                yield index, Reading(answer, "ok" if answer.strip() else "empty", None, None)
            else:
                raise DataError(f"the reader returned {excerpt(answer)}; expected a text")


class _Loop:
    """An event loop in a thread of its own: whoever reads may have a loop that runs, and reads step by step."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="retrieval-reader", daemon=True)
        self._thread.start()

    def results(
        self, ask: Callable[[Unit], Any], units: Sequence[Unit], concurrency: int
    ) -> Iterator[tuple[Unit, Any, BaseException | None]]:
        """(unit, value, error) as they are completed. Who stops listening cancels what is under way."""
        done: queue.SimpleQueue[tuple[Unit, Any, BaseException | None]] = queue.SimpleQueue()
        stop, ended = asyncio.Event(), threading.Event()

        async def one(unit: Unit, places: asyncio.Semaphore) -> None:
            async with places:
                try:
                    done.put((unit, await ask(unit), None))
                except BaseException as error:  # also what the function cancels or exits by itself
                    if stop.is_set():
                        raise
                    done.put((unit, None, error))

        async def run() -> None:
            places = asyncio.Semaphore(concurrency)
            tasks = [asyncio.ensure_future(one(unit, places)) for unit in units]
            await stop.wait()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            ended.set()

        asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            for _ in units:
                unit, value, error = done.get()
                if error is not None and not isinstance(error, (Exception, asyncio.CancelledError)):
                    raise error
                yield unit, value, error
        finally:
            self._loop.call_soon_threadsafe(stop.set)
            ended.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _is_async(function: Any) -> bool:
    return any(
        inspect.iscoroutinefunction(target)
        for target in (function, getattr(function, "__call__", None))  # noqa: B004
    )
