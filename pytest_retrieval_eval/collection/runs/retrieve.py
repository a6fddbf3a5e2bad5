"""Asks a retriever every query and keeps what it answers, how long it took, and where it failed.

A retriever is any callable from query text to hits: plain, asynchronous, or over batches of texts; or an
object of LangChain, LlamaIndex or Haystack, known by its methods. Nothing of theirs is imported.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import math
import os
import platform
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.runs.hits import Hit, is_scores, read_hits
from pytest_retrieval_eval.collection.spans.agreement import refuse_contradicting_hits
from pytest_retrieval_eval.errors import DataError, SettingsError, raised
from pytest_retrieval_eval.progress import progress as progress_bar

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus, Document
    from pytest_retrieval_eval.collection.runs.run import Run

_DEPTH_NAMES = ("limit", "k", "top_k", "depth")


def from_retriever(
    search: Any,
    queries: Queries | Mapping[str, str],
    *,
    depth: int = 100,
    name: str | None = None,
    batch_size: int | None = None,
    concurrency: int = 8,
    progress: bool | None = None,
    clock: Callable[[], float] = time.perf_counter,
    corpus: Corpus | None = None,
    texts: bool = False,
    warmup: int = 0,
    repeat: int = 1,
) -> Run:
    """Run a retriever over all queries.

    ``search`` takes a query text and returns hits (see ``hits.read_hits`` for the forms), at once or when
    awaited; with ``batch_size`` it takes a list of texts and returns a list of hit lists, one for each.
    It may also be an object with ``invoke``, ``get_relevant_documents``, ``retrieve`` or
    ``run(query=...)``. Where it has a parameter ``limit``, ``k``, ``top_k`` or ``depth`` without default,
    it gets the depth.

    ``depth`` is how many hits of each query are kept, and what the run declares. Asynchronous searches
    run up to ``concurrency`` at a time. Seconds of each query are taken with ``clock``; a batch's are
    shared out evenly.

    ``warmup`` queries (the first ones, from the beginning again where there are fewer) are asked before, and what
    comes of it is dropped. Then all queries are asked ``repeat`` times, pass after pass: the hits are those of the
    first pass, the seconds the median, and an exception of any pass is kept. How the times were taken is in the run's
    header, under ``timing``.

    ``texts`` keeps the texts that hits come with in the run (``Run.texts``); two texts under one id are a DataError.
    With a ``corpus``, hits that say their document and have a text, but do not say where it stands, are looked
    for there (see ``Chunks.located``); what came of it is in the run's header, under ``located``. A hit whose text is
    not what the corpus has at the offsets that it says is a DataError.

    An exception of the retriever is kept in ``Run.errors`` and is never a score. An answer that cannot be
    read (a set, a hit without id, a NaN score, a batch of the wrong length) raises DataError at once. The run
    is ordered by score where every answer is a mapping from document to score, else by list; the scores of
    lists are kept where every hit has one.

    >>> run = from_retriever(lambda text: [text[0], "z"], {"q1": "apple", "q2": "pear"}, depth=1)
    >>> run.ranking("q2").docs
    ['p']
    """
    _at_least_one("depth", depth)
    _at_least_one("concurrency", concurrency)
    _at_least_one("repeat", repeat)
    if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
        raise SettingsError(f"warmup is {excerpt(warmup)}; expected an integer of 0 or more")
    if batch_size is not None:
        _at_least_one("batch_size", batch_size)
    asked = queries if isinstance(queries, Queries) else Queries.of(queries)
    questions = [(query_id, asked.text(query_id)) for query_id in asked.ids]
    call = _callable(search, int(depth), batched=batch_size is not None)
    session = _Session(call, int(depth), batch_size is not None, clock, texts=texts or corpus is not None)
    size = batch_size or 1
    warm = [*islice(cycle(questions), warmup)] if questions else []
    passes = [(_units(warm, size), True), *((_units(questions, size), False) for _ in range(repeat))]
    with progress_bar(progress, len(warm) + repeat * len(questions), doing="retrieving", unit="query") as advance:
        session.ask_all(passes, concurrency, advance)
    came = None if corpus is None else _place(session.hits, corpus)
    timing = {
        "warmup": int(warmup),
        "repeat": int(repeat),
        "batch": size,
        "concurrency": int(concurrency) if session.waited else 1,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        **({"differing": len(session.differing)} if session.differing else {}),
    }
    run = _make_run(session, asked.ids, int(depth), name or _name(search)).with_header(timing=timing)
    if texts:
        run = run.with_texts(_texts_of(session.hits))
    return run if came is None else run.with_header(located=came)


FIXTURE = "retriever"  # what a run of pytest's fixture of that name is called


def deeper(run: Run, ranks: int) -> str:
    """What to do where a run is to have that many ranks: who asked the retriever decides where that is said.

    >>> deeper(from_retriever(lambda text: ["a"], {"q1": "apple"}, name="shop:search"), 500)
    'make it with `pytest-retrieval-eval run --depth 500`'
    """
    if "timing" not in run.header:
        return f"retrieve at least {ranks} hits a query"
    if run.name == FIXTURE:
        return f"set the ini value retrieval_depth = {ranks}"
    return f"make it with `pytest-retrieval-eval run --depth {ranks}`"


def _texts_of(found: Mapping[str, list[Hit]]) -> dict[str, Document]:
    """The text of each document whose hits came with one."""
    from pytest_retrieval_eval.collection.dataset import Document

    texts: dict[str, Document] = {}
    for query_id, hits in found.items():
        for hit in hits:
            if hit.text is not None and texts.setdefault(hit.id, Document("", hit.text)).text != hit.text:
                raise DataError(
                    f"query {query_id!r}: the document {hit.id!r} comes with another text than for a query before: "
                    "texts that are kept need an id for each; return unique ids of chunks"
                )
    return texts


def _units(texts: list[tuple[str, str]], size: int) -> list[Unit]:
    return [texts[begin : begin + size] for begin in range(0, len(texts), size)]


def _place(found: dict[str, list[Hit]], corpus: Corpus) -> str | None:
    """Give hits the offsets of their texts; a sentence on what came of it, None where no text was looked for.

    Hits that say both are a DataError where the corpus has another text at these offsets.
    """
    refuse_contradicting_hits(found, corpus, "hits that say offsets and a text")
    passages = {
        (hit.doc_id, hit.text): None
        for hits in found.values()
        for hit in hits
        if hit.doc_id and hit.text is not None and hit.start is None
    }
    if not passages:
        return None
    from pytest_retrieval_eval.collection.spans.locate import Locating, Place, locate

    places: dict[tuple[str | None, str | None], Place] = dict(zip(passages, locate(passages, corpus), strict=True))

    def placed(hit: Hit) -> Hit:
        place = places.get((hit.doc_id, hit.text)) if hit.start is None else None
        return replace(hit, start=place.start, end=place.end) if place is not None and place.found else hit

    for query_id, hits in found.items():
        found[query_id] = [placed(hit) for hit in hits]
    return str(Locating({str(number): place for number, place in enumerate(places.values())}))


def _make_run(session: _Session, ids: Sequence[str], depth: int, name: str) -> Run:
    from pytest_retrieval_eval.collection.runs.run import Run

    found = {query_id: session.hits.get(query_id, []) for query_id in ids}
    lists: Mapping[str, Any] = found
    if session.by_score:
        lists = {query_id: {hit.id: hit.score for hit in hits} for query_id, hits in found.items()}
    elif any(hit.score is None for hits in found.values() for hit in hits):
        # The order of the lists counts; scores that some hits lack would compare with nothing.
        lists = {query_id: [replace(hit, score=None) for hit in hits] for query_id, hits in found.items()}
    return Run.of(
        lists,
        name=name,
        depth=depth,
        errors={query_id: session.errors[query_id] for query_id in ids if query_id in session.errors},
        seconds={query_id: statistics.median(session.seconds[query_id]) for query_id in ids},
        costs={query_id: session.costs[query_id] for query_id in ids if query_id in session.costs},
    )


Unit = list[tuple[str, str]]


@dataclass(slots=True)
class _Answer:
    value: Any = None
    error: str | None = None


class _Session:
    """The passes over the queries: the answers of the first, times and errors so far."""

    def __init__(
        self, call: Callable[[Any], Any], depth: int, batched: bool, clock: Callable[[], float], texts: bool
    ) -> None:
        self._texts = texts  # whether those of hits are needed afterwards
        self._call, self._depth, self._batched, self._clock = call, depth, batched, clock
        self.hits: dict[str, list[Hit]] = {}
        self.seconds: dict[str, list[float]] = {}
        self.costs: dict[str, float] = {}
        self.differing: set[str] = set()  # queries with other hits in a later pass
        self.waited = False  # whether several queries were asked at a time
        self.errors: dict[str, str] = {}
        self._forms: set[bool] = set()  # of the answers that have hits: mappings to scores, or not

    @property
    def by_score(self) -> bool:
        return self._forms == {True}

    def ask_all(
        self, passes: Sequence[tuple[list[Unit], bool]], concurrency: int, advance: Callable[[int], object]
    ) -> None:
        """Ask the units of each pass; those of a pass that only warms up (True) leave nothing."""
        waits = _is_async(self._call)
        for number, (units, warm) in enumerate(passes):
            for index, unit in enumerate(units):
                if not waits:
                    begin = self._clock()
                    answer, waits = self._ask(unit)
                    if not waits:
                        self._keep(unit, answer, self._clock() - begin, warm)
                        advance(len(unit))
                        continue
                # A plain function may hand out coroutines: only its first answer shows it.
                left = [(units[index:], warm), *passes[number + 1 :]]
                self.waited = concurrency > 1
                # One loop for all passes: what a client keeps open belongs to it.
                _run_loop(functools.partial(self._ask_passes, left, concurrency, advance))
                return

    async def _ask_passes(
        self, passes: Sequence[tuple[list[Unit], bool]], concurrency: int, advance: Callable[[int], object]
    ) -> None:
        for units, warm in passes:
            await self._ask_async(units, concurrency, advance, warm)

    def _ask(self, unit: Unit) -> tuple[_Answer, bool]:
        try:
            value = self._call(self._argument(unit))
            if inspect.iscoroutine(value):
                value.close()  # never started: it is asked again where a loop runs
                return _Answer(), True
            if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
                return _Answer(), True
            return _Answer(self._drawn(value)), False
        except Exception as error:
            return _Answer(error=raised(error)), False

    async def _ask_async(
        self, units: list[Unit], concurrency: int, advance: Callable[[int], object], warm: bool
    ) -> None:
        places = asyncio.Semaphore(concurrency)
        stopping = False
        ends: list[BaseException] = []  # what ends the session, such as an interrupt

        async def ask(unit: Unit) -> None:
            async with places:
                begin = self._clock()
                try:
                    value = self._call(self._argument(unit))
                    if isinstance(value, Awaitable):
                        value = await value
                    if isinstance(value, AsyncIterator):
                        value = await _collected(value, self._limit)
                    answer = _Answer(self._drawn(value))
                except asyncio.CancelledError as error:
                    if stopping or ends:
                        raise
                    answer = _Answer(error=raised(error))  # the retriever cancelled itself
                except Exception as error:
                    answer = _Answer(error=raised(error))
                except BaseException as end:
                    # Out of a task it would leave the loop at once, and the other tasks with nobody to hear them.
                    ends.append(end)
                    for task in tasks:
                        task.cancel()
                    return
                self._keep(unit, answer, self._clock() - begin, warm)
                advance(len(unit))

        tasks = [asyncio.ensure_future(ask(unit)) for unit in units]
        try:
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            if not ends:
                raise
        finally:
            stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if ends:
            raise ends[0]

    @property
    def _limit(self) -> int | None:
        return None if self._batched else self._depth

    def _argument(self, unit: Unit) -> str | list[str]:
        return [text for _, text in unit] if self._batched else unit[0][1]

    def _drawn(self, value: Any) -> Any:
        # What is computed while iterating belongs to the retriever: its time and its exceptions.
        if self._batched:
            answers = _first(value, None)
            if isinstance(answers, (list, tuple)):
                return [_first(answer, self._depth) for answer in answers]
            return answers
        return _first(value, self._depth)

    def _keep(self, unit: Unit, answer: _Answer, seconds: float, warm: bool) -> None:
        if warm:
            return
        for query_id, _ in unit:
            self.seconds.setdefault(query_id, []).append(seconds / len(unit))
        if answer.error is not None:
            for query_id, _ in unit:
                self.errors.setdefault(query_id, answer.error)
            return
        answers = _of_batch(answer.value, unit) if self._batched else [answer.value]
        for (query_id, _), value in zip(unit, answers, strict=True):
            hits = read_hits(value, f"query {query_id!r}", depth=self._depth)
            if not self._texts and any(hit.text is not None for hit in hits):
                hits = [replace(hit, text=None) for hit in hits]
            if len(self.seconds[query_id]) > 1 and query_id in self.hits:
                if [hit.id for hit in hits] != [hit.id for hit in self.hits[query_id]]:
                    self.differing.add(query_id)
                continue
            self.hits[query_id] = hits
            if (price := _cost(value, query_id)) is not None:
                self.costs[query_id] = price
            if hits:
                self._forms.add(is_scores(value))


def _cost(value: Any, query_id: str) -> float | None:
    """The cost in an answer such as {"documents": […], "cost": 0.0021}."""
    found = value.get("cost") if isinstance(value, Mapping) and not is_scores(value) else None
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < math.inf:
        raise DataError(f"query {query_id!r}: the retriever returned the cost {excerpt(found)}; expected a number >= 0")
    return float(found)


def _of_batch(value: Any, unit: Unit) -> Sequence[Any]:
    where = f"queries {unit[0][0]!r} to {unit[-1][0]!r}"
    wanted = f"a list of {len(unit)} hit lists, one for each text of the batch"
    if isinstance(value, (str, bytes, Mapping, Set)) or not isinstance(value, Iterable):
        raise DataError(f"{where}: the retriever returned {excerpt(value)}; expected {wanted}")
    answers = list(value)
    if len(answers) != len(unit):
        raise DataError(f"{where}: the retriever returned {len(answers)} answers; expected {wanted}")
    return answers


def _first(value: Any, depth: int | None) -> Any:
    finished = (list, tuple, str, bytes, bytearray, Mapping, Set, Hit)
    if isinstance(value, finished) or hasattr(value, "iloc") or not isinstance(value, Iterable):
        return value  # read_hits takes it, or says what is wrong with it
    return list(islice(value, depth))


async def _collected(value: AsyncIterator[Any], limit: int | None) -> list[Any]:
    found: list[Any] = []
    async for item in value:
        found.append(item)
        if limit is not None and len(found) >= limit:
            break
    return found


def _run_loop(main: Callable[[], Any]) -> None:
    """Run a coroutine to its end, in a thread of its own where this one has a loop that runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _in_new_loop(main)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="retrieval") as pool:
        pool.submit(contextvars.copy_context().run, _in_new_loop, main).result()


def _in_new_loop(main: Callable[[], Any]) -> None:
    # Not asyncio.run: it unsets the thread's current loop, which a test suite may still want.
    loop = asyncio.new_event_loop()
    task = None
    try:
        task = loop.create_task(main())
        loop.run_until_complete(task)
    finally:
        try:
            if task is not None and not task.done():  # Ctrl-C
                task.cancel()
                loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()


def _callable(search: Any, depth: int, *, batched: bool) -> Callable[[Any], Any]:
    if callable(search):
        return _with_depth(search, depth)
    methods = ("batch",) if batched else ("invoke", "get_relevant_documents", "retrieve")
    for method in methods:
        found = getattr(search, method, None)
        if callable(found):
            return _with_depth(found, depth)
    run = getattr(search, "run", None)
    if callable(run) and not batched:
        keyword = _depth_keyword(run, depth, skip=0)
        if inspect.iscoroutinefunction(run):

            async def ask(text: str) -> Any:
                return await run(query=text, **keyword)

            return ask
        return lambda text: run(query=text, **keyword)
    named = "search" if callable(getattr(search, "search", None)) else None
    hint = f"; pass its method: .{named}" if named else ""
    wanted = "batch" if batched else "invoke, get_relevant_documents, retrieve or run(query=...)"
    raise DataError(
        f"the retriever is {excerpt(search)}; expected a callable from query text to hits, "
        f"or an object with {wanted}{hint}"
    )


def _with_depth(call: Callable[..., Any], depth: int) -> Callable[[Any], Any]:
    keyword = _depth_keyword(call, depth, skip=1)
    if not keyword:
        return call
    if _is_async(call):

        async def ask(argument: Any) -> Any:
            return await call(argument, **keyword)

        return ask
    return lambda argument: call(argument, **keyword)


def _depth_keyword(call: Callable[..., Any], depth: int, *, skip: int) -> dict[str, int]:
    """The depth under the name that the callable insists on; nothing where it has a default of its own."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):  # built in, or it hides its signature
        return {}
    return {
        parameter.name: depth
        for parameter in parameters[skip:]
        if parameter.name in _DEPTH_NAMES
        and parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def _is_async(call: Any) -> bool:
    return any(
        check(target)
        for check in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        for target in (call, getattr(call, "__call__", None))  # noqa: B004
    )


def _name(search: Any) -> str:
    owner = search.func if isinstance(search, functools.partial) else search
    name = getattr(owner, "__name__", None) or type(search).__name__
    return "retriever" if name == "<lambda>" else str(name)


def _at_least_one(name: str, value: object) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
        raise SettingsError(f"{name} is {excerpt(value)}; expected an integer of at least 1")
