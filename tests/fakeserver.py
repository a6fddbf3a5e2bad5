"""A server on the loopback that speaks as OpenAI's chat endpoint does, and fails on request.

``FakeServer(answer)`` asks ``answer(request)`` what to do with each request, in the order of arrival; ``answer`` may be
a list as well, whose last reply is used for all that follow. Threads and sockets only; nothing leaves the machine.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    """What arrived: its number from 0, path, headers (names in lower case), JSON body and time."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float

    @property
    def text(self) -> str:
        """The content of the last message."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class Reply:
    """What to do: send a status, headers and a body, after a delay; or hang; or cut the connection."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang: bool = False
    cut: bool = False
    raw: bytes | None = None
    promised: int | None = None  # a Content-Length that is not kept


def says(text: Any, *, model: str | None = None, finish: str | None = "stop", tokens: tuple[int, int] | None = (10, 3),
         fingerprint: str | None = "fp_1", delay: float = 0.0, **message: Any) -> Reply:  # fmt: skip
    """A chat completion. ``model`` None repeats the model that was asked for."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
    }
    if fingerprint is not None:
        body["system_fingerprint"] = fingerprint
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return Reply(body, delay=delay)


def fails(status: int, message: str = "no", *, code: str | None = None, **headers: str) -> Reply:
    """An error in OpenAI's form; headers with an underscore for the hyphen."""
    body = {"error": {"message": message, "type": "some_error", "code": code}}
    return Reply(body, status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})


HANG = Reply(hang=True)
CUT = Reply(cut=True)
TRUNCATED = Reply(raw=b'{"id": "chatcmpl-1", "choices": [{"message": {"content": "The an')
SHORT = Reply(raw=b'{"id": "chatcmpl-1", "cho', promised=500)

Answers = Callable[[Request], Reply] | Sequence[Reply]


class FakeServer:
    """Use it in a ``with`` block; ``url`` is the base URL, ``requests`` what has arrived."""

    def __init__(self, answer: Answers) -> None:
        self.requests: list[Request] = []
        self.most_at_once = 0
        self._answer = answer
        self._lock = threading.Lock()
        self._at_once = 0
        self._closing = threading.Event()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _reply_to(self, handler: _Handler) -> tuple[Request, Reply]:
        length = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else {}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            request = Request(len(self.requests), handler.path, headers, body, time.monotonic())
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if callable(self._answer):
                reply = self._answer(request)
            else:
                reply = self._answer[min(request.number, len(self._answer) - 1)]
            self._closing.wait(30 if reply.hang else reply.delay)
        finally:
            with self._lock:
                self._at_once -= 1
        return request, reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def do_POST(self) -> None:
        request, reply = self.fake._reply_to(self)
        if reply.cut or reply.hang:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = reply.body
        if isinstance(body, dict) and "model" in body and body["model"] is None:
            body = {**body, "model": request.body.get("model")}
        content = reply.raw if reply.raw is not None else json.dumps(body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(reply.promised or len(content)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        if reply.promised:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
