"""Calls of an HTTP service that takes and gives JSON: many at once, paced, retried, within a budget.

The calls are asynchronous and run in a thread of their own; the caller sees a plain iterator that yields each answer
when it arrives, so that it can be stored at once. Whoever stops (an interrupt, a cap, an error of the caller's) loses
the calls under way, never an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.services.budget import Budget
from pytest_retrieval_eval.readers.services.pace import Bucket, Window, back_off, retry_after

if TYPE_CHECKING:
    import ssl

    import httpx

    from pytest_retrieval_eval.readers.services.budget import Hold

# Failures that another attempt may mend, and those of them that say that the service has too much to do.
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_OVERLOADED = frozenset({408, 429, 503, 529})
# What no other call would fare better with: the key or the address is wrong.
_HOPELESS = frozenset({401, 404})
# Calls that failed for the service's reasons, one after the other, after which the rest is not tried.
_IN_A_ROW = 10
# Bytes of a reply, unpacked, beyond which it is no answer of a language model.
_LARGEST = 64 * 2**20


@dataclass(frozen=True)
class Call:
    """The JSON object to send, and how many tokens it holds and asks for at most (for limits and budgets)."""

    body: Mapping[str, object]
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Answer:
    """What became of a call: the JSON object of the reply, or None and the reason in ``error``.

    ``status`` is the HTTP status of the last attempt, None where there was no reply; ``code`` is the word by which
    the service names an error, where it gives one.
    """

    body: Mapping[str, Any] | None
    status: int | None = None
    error: str = ""
    code: str = ""
    attempts: int = 1


class Stream(Iterator[tuple[int, Answer]]):
    """The answers of one :meth:`Engine.run`, as (number of the call, answer), in the order of their arrival.

    When it ends, ``stopped`` says why calls were left unmade, and is empty where none were. After :meth:`cancel`
    it still yields what had been answered, then ends. An interrupt (Ctrl-C) ends the wait and not the stream. As a
    context manager it is cancelled at the end of the block, so that no call is made whose answer nobody waits for.
    """

    def __init__(self) -> None:
        self.stopped = ""
        self._arrived: queue.SimpleQueue[tuple[int, Answer] | BaseException | None] = queue.SimpleQueue()
        self._ended = False
        self._cancel: Callable[[], None] = lambda: None
        self._stop = asyncio.Event()  # the same as ``stopped``, for those who sleep in the loop

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    def __next__(self) -> tuple[int, Answer]:
        if self._ended:
            raise StopIteration
        found = self._arrived.get()
        if found is None:
            self._ended = True
            raise StopIteration
        if isinstance(found, BaseException):
            raise found
        return found

    def cancel(self, reason: str = "the calls were cancelled") -> None:
        """Make no more calls and drop those under way; what has been answered can still be read."""
        if not self._ended:
            self.stopped = self.stopped or reason
            self._cancel()

    def _stop_for(self, reason: str) -> None:
        """Send nothing more; what is under way may still be answered."""
        self.stopped = self.stopped or reason
        self._stop.set()

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not beyond the end of it all."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


@dataclass
class _Reply:
    """One attempt: a body, or an error and whether to try again (not before ``wait`` seconds) or to stop it all."""

    body: Mapping[str, Any] | None = None
    status: int | None = None
    error: str = ""
    code: str = ""
    retry: bool = False
    overloaded: bool = False
    wait: float | None = None
    stop: bool = False
    billed: bool = True
    usage: tuple[int, int] | None = None


class Engine:
    """Calls of one URL.

    ``key_env`` names the environment variable that holds the API key (none is sent without it); ``key_header`` the
    header that carries it, as a bearer token in ``Authorization`` and bare in any other. At most ``concurrency``
    calls are under way, fewer while the service shows that it is overloaded; ``requests_per_minute`` and
    ``tokens_per_minute`` are its limits. A call takes at most ``timeout`` seconds and is tried ``attempts`` times where
    that may help (statuses 408, 409, 429, 5xx, a connection cut, a reply cut short or out of time), after a wait
    from the whole of a range that doubles from ``backoff`` seconds, or as long as the service asks for; where that is
    more than ``patience`` seconds, the calls stop. Other statuses are not tried again.
    """

    def __init__(
        self,
        url: str,
        *,
        key_env: str | None = None,
        key_header: str = "Authorization",
        concurrency: int = 16,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout: float = 120.0,
        attempts: int = 6,
        backoff: float = 0.5,
        patience: float = 120.0,
        budget: Budget | None = None,
    ) -> None:
        self._url = url
        self.place = _place(url)
        for name, number in (("concurrency", concurrency), ("attempts", attempts)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise SettingsError(f"{name} is {number!r}; expected a whole number from 1")
        for name, seconds in (("timeout", timeout), ("backoff", backoff), ("patience", patience)):
            if isinstance(seconds, bool) or not (isinstance(seconds, (int, float)) and seconds > 0):
                raise SettingsError(f"{name} is {seconds!r}; expected a number of seconds above 0")
        self._key = _key(key_env)
        self._key_header = key_header
        self._timeout, self._attempts, self._backoff, self._patience = timeout, attempts, backoff, patience
        self._window = Window(concurrency)
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute)
        self._budget = budget if budget is not None and budget.capped else None
        self._thread: _Loop | None = None
        # A client for each call under way, and each with one connection: within one pool, what httpcore does for a
        # call takes time with the square of the number of connections.
        self._clients: list[httpx.AsyncClient] = []
        self._idle: list[httpx.AsyncClient] = []
        self._under_way = 0  # calls that have a place in the window
        self._held = 0  # calls that have a hold on the budget
        self._failed_in_a_row = 0
        self._not_before = 0.0
        self._httpx = _httpx()

    def run(self, calls: Iterable[Call]) -> Stream:
        """Make the calls; ``calls`` is read in another thread, only as fast as they can be made."""
        if self._thread is None:
            self._thread = _Loop()
        stream = Stream()
        self._thread.start(self._drive(stream, calls), stream)
        return stream

    def close(self) -> None:
        """Drop what is under way and close the connections."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(self._close_clients)

    # --- in the thread of the loop --------------------------------------------------------------

    async def _close_clients(self) -> None:
        clients, self._clients, self._idle = self._clients, [], []
        for client in clients:
            await client.aclose()

    async def _drive(self, stream: Stream, calls: Iterable[Call]) -> None:
        """Start calls as the window has room; end when all are done, or the stream has stopped."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            for number, call in enumerate(calls):
                while self._under_way >= self._window.size and not stream.stopped:
                    if tasks:
                        await asyncio.wait(tasks, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
                        tasks = _unfinished(tasks)
                    else:  # the window is full of another stream's calls
                        await asyncio.sleep(0.02)
                if stream.stopped:
                    break
                self._under_way += 1
                task = asyncio.ensure_future(self._make(stream, number, call))
                task.add_done_callback(self._has_room)
                tasks.add(task)
                if number % 16 == 15:
                    await asyncio.sleep(0)  # a source that never waits must not starve the calls
            while tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                tasks = _unfinished(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _has_room(self, _: object) -> None:
        self._under_way -= 1

    async def _make(self, stream: Stream, number: int, call: Call) -> None:
        """One call until it is answered, fails for good, or the stream stops before it could be sent."""
        for attempt in range(1, self._attempts + 1):
            await self._pause(stream, call)
            hold = await self._hold(stream, call)
            if stream.stopped:
                if hold is not None and self._budget is not None:
                    self._budget.release(hold)
                    self._held -= 1
                return
            sent = time.monotonic()
            try:
                reply = await self._send(call)
            finally:
                self._held -= hold is not None
            self._account(call, hold, reply)
            # From here to the answer there is no await: what has been answered cannot be cancelled any more.
            if reply.body is not None:
                self._window.answered()
                self._failed_in_a_row = 0
                stream._arrived.put((number, Answer(reply.body, reply.status, attempts=attempt)))
                return
            if reply.overloaded:
                self._window.overloaded(sent=sent, now=time.monotonic())
            if reply.retry and reply.wait is not None and reply.wait > self._patience:
                reply.stop = True
                reply.error += f", and asks to wait {reply.wait:.0f} s, more than the {self._patience:g} s allowed"
            if reply.stop or not reply.retry or attempt == self._attempts:
                self._give_up(stream, number, attempt, reply)
                return
            wait = back_off(attempt, self._backoff)
            if reply.wait is not None:
                wait = reply.wait + wait / 10  # those who were told the same moment do not return at once
                if reply.overloaded:
                    self._not_before = max(self._not_before, time.monotonic() + reply.wait)
            await stream._sleep(wait)

    def _give_up(self, stream: Stream, number: int, attempts: int, reply: _Reply) -> None:
        error = f"{self.place} {reply.error}" + (f" (in each of {attempts} attempts)" if attempts > 1 else "")
        error = self._hide_key(error)
        # A call that is wrong itself shows that the service answers.
        self._failed_in_a_row = self._failed_in_a_row + 1 if reply.retry or reply.status == 403 else 0
        if reply.stop:
            stream._stop_for(error)
        elif self._failed_in_a_row >= _IN_A_ROW:
            stream._stop_for(f"{_IN_A_ROW} calls failed one after the other, at last: {error}")
        stream._arrived.put((number, Answer(None, reply.status, error, reply.code, attempts)))

    async def _pause(self, stream: Stream, call: Call) -> None:
        """Wait as long as the limits per minute and the service's own words ask for."""
        wait = self._requests.take(1) if self._requests else 0.0
        if self._tokens:
            wait = max(wait, self._tokens.take(call.input_tokens + call.output_tokens))
        if wait > 0:
            await stream._sleep(wait)
        while not stream.stopped and (wait := self._not_before - time.monotonic()) > 0:
            await stream._sleep(wait)

    async def _hold(self, stream: Stream, call: Call) -> Hold | None:
        """Set aside what the call may take; stops the stream where the budget has no room for it.

        What other calls of ours have set aside is mostly more than they will take: they are waited for first.
        """
        if self._budget is None:
            return None
        while not stream.stopped:
            hold = self._budget.hold(call.input_tokens, call.output_tokens)
            if hold is not None:
                self._held += 1
                return hold
            if self._held == 0:
                stream._stop_for(self._budget.exhausted)
                break
            await stream._sleep(0.02)
        return None

    def _account(self, call: Call, hold: Hold | None, reply: _Reply) -> None:
        """Correct what was set aside by what the reply says that it took."""
        took = reply.usage if reply.usage is not None else (call.input_tokens, call.output_tokens)
        if not reply.billed:
            took = (0, 0)
        if self._tokens:
            self._tokens.give(call.input_tokens + call.output_tokens - sum(took))
        if hold is not None and self._budget is not None:
            if reply.billed:
                self._budget.settle(hold, *took)
            else:
                self._budget.release(hold)

    async def _send(self, call: Call) -> _Reply:
        import anyio

        content = json.dumps(call.body, allow_nan=False).encode("ascii")
        client = self._idle.pop() if self._idle else self._open_client()
        try:
            # Not asyncio.wait_for: in Python below 3.12 it can lose an answer that arrives while it is cancelled.
            with anyio.fail_after(self._timeout):
                async with client.stream("POST", self._url, content=content, headers=self._headers()) as response:
                    data = await _body_of(response)
        except (TimeoutError, self._httpx.TimeoutException):
            return _Reply(error=f"did not answer within {self._timeout:g} s", retry=True, overloaded=True)
        except self._httpx.HTTPError as error:  # also a body that does not unpack
            return self._failed(error)
        finally:
            self._idle.append(client)
        return _read(response, data)

    def _failed(self, error: Exception) -> _Reply:
        """No reply: the connection could not be made, or broke."""
        said = str(error) or type(error).__name__
        never_sent = isinstance(error, (self._httpx.ConnectError, self._httpx.UnsupportedProtocol))
        hopeless = isinstance(error, self._httpx.UnsupportedProtocol) or "CERTIFICATE_VERIFY_FAILED" in said
        what = "cannot be reached" if never_sent else "broke off the connection"
        return _Reply(error=f"{what} ({said})", retry=not hopeless, stop=hopeless, billed=not never_sent)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            bearer = self._key_header.lower() == "authorization"
            headers[self._key_header] = f"Bearer {self._key}" if bearer else self._key
        return headers

    def _hide_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    def _open_client(self) -> httpx.AsyncClient:
        # Redirects are not followed: the key and the texts go where the user said, and nowhere else.
        client: httpx.AsyncClient = self._httpx.AsyncClient(timeout=self._timeout, verify=_trusted())
        self._clients.append(client)
        return client


class _Loop:
    """An event loop in a thread, which ends with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="retrieval-eval-calls", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, None], stream: Stream) -> None:
        """Run the coroutine; what it raises goes to the stream, and its end ends the stream."""
        made: list[asyncio.Task[None]] = []

        def begin() -> None:
            task = self._loop.create_task(work)
            made.append(task)
            self._tasks.add(task)
            task.add_done_callback(end)

        # A callback and no `finally` of the coroutine's: one that is cancelled before its first step has none.
        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                stream._arrived.put(error)
            stream._arrived.put(None)

        def cancel() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the stream has ended with it
                self._loop.call_soon_threadsafe(lambda: made[0].cancel())

        stream._cancel = cancel
        self._loop.call_soon_threadsafe(begin)

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End all streams, run the coroutine function ``last``, and leave the thread."""

        async def finish() -> None:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await last()

        asyncio.run_coroutine_threadsafe(finish(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()


def _unfinished(tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """The tasks that still run; what one of them raised is raised."""
    for task in tasks:
        if task.done() and not task.cancelled():
            task.result()
    return {task for task in tasks if not task.done()}


async def _body_of(response: httpx.Response) -> bytes | None:
    """The body of a reply, unpacked; None where it goes on and on, as a few packed bytes may."""
    parts, size = list[bytes](), 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > _LARGEST:
            return None
    return b"".join(parts)


def _read(response: httpx.Response, data: bytes | None) -> _Reply:
    """What a reply says: its JSON object, or why there is none and what to do about it."""
    status = response.status_code
    if data is None:
        return _Reply(status=status, error=f"answered {status} with more than {_LARGEST:,} bytes")
    wait = retry_after(response.headers.get("Retry-After"), date=response.headers.get("Date"))
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):  # also what is not UTF-8, and brackets without end
        body = None
    if 200 <= status < 300:
        if not isinstance(body, dict):
            what = "a JSON object that is cut off or malformed" if body is None else f"a JSON {type(body).__name__}"
            return _Reply(status=status, error=f"answered with {what}; expected a JSON object", retry=body is None)
        if not (body.get("error") and not body.get("choices")):
            return _Reply(body=body, status=status, usage=_usage(body))
        # Gateways pass on the error of the service behind them under their own good status.
        inner = body["error"].get("code") if isinstance(body["error"], dict) else None
        status = inner if isinstance(inner, int) and not isinstance(inner, bool) else 200
    code, said = _said(body, data)
    # A quota that is used up comes as 429 as well, and no wait brings it back.
    spent = code == "insufficient_quota"
    return _Reply(
        status=status,
        error=f"answered {status}" + (f" ({said})" if said else ""),
        code=code,
        retry=status in _TRANSIENT and not spent,
        overloaded=status in _OVERLOADED,
        wait=wait,
        stop=spent or status in _HOPELESS,
        billed=False,
    )


def _said(body: object, data: bytes) -> tuple[str, str]:
    """The code and the message of an error, in the forms in which services give them."""
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, str):
        return "", _short(error)
    if isinstance(error, dict):
        code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
        said = error.get("message") or error.get("detail") or error.get("code") or ""
        return code if isinstance(code, str) else "", _short(said if isinstance(said, str) else json.dumps(said))
    # Not in the encoding that the reply names, which may be none of text at all.
    return "", _short(data.decode("utf-8", "replace"))


def _short(text: str, limit: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _usage(body: Mapping[str, Any]) -> tuple[int, int] | None:
    """The tokens read and written, where the reply counts them."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
        return None
    return cast("tuple[int, int]", counts)


def _place(url: str) -> str:
    """The URL as messages name it: without what may be secret in it."""
    try:
        parts = urlsplit(url)
        _httpx().URL(url)  # which knows more of what a URL may be
    except (ValueError, _httpx().InvalidURL) as error:
        raise SettingsError(f"the URL of a service cannot be read ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError("the URL of a service must begin with http:// or https:// and name a host")
    if parts.username or parts.password:
        raise SettingsError(
            f"the URL of {parts.hostname} holds a user name or a password; put the key into an environment variable "
            "and name that (key_env)"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _key(variable: str | None) -> str:
    """The API key in an environment variable."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise SettingsError(f"the environment variable {variable} is not set; it must hold the API key")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise SettingsError(
            f"the environment variable {variable} does not hold an API key: it has blanks or odd characters"
        )
    return key


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates to trust; reading them takes a tenth of a second."""
    context: ssl.SSLContext = _httpx().create_ssl_context()
    return context


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise SettingsError(
            "calling a server needs the package httpx; install it with: pip install 'pytest-retrieval-eval[server]' "
            "(for a judge: [judge])"
        ) from None
    return httpx
