"""The two streams of the program: results on stdout, sentences on stderr, in UTF-8 under any locale."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from typing import Any, TextIO

from pytest_retrieval_eval.wording import shown

PROGRAM = "pytest-retrieval-eval"
INTERRUPTED = 130  # the status after Ctrl-C, as shells have it
# Long enough for any sentence; what is cut is someone's file of one endless line.
_LONGEST = 2000


class Console:
    """Where a command writes; ``program`` is the name that stands before errors."""

    def __init__(self) -> None:
        self.program = PROGRAM
        self._broken: OSError | None = None
        self._before = [(stream, _encoding_of(stream)) for stream in (sys.stdout, sys.stderr)]
        for stream, _ in self._before:
            # Ids and texts are any Unicode, file names may be none: both must be printable under LC_ALL=C.
            _reconfigure(stream, "utf-8", "backslashreplace")
        self._told: set[str] = set()

    def write(self, text: str) -> None:
        """Part of the result. Once nobody reads it any more (``| head``) the rest is dropped."""
        if sys.stdout is None or self._broken is not None:
            return
        try:
            sys.stdout.write(text)
        except OSError as error:
            self._broken = error

    def error(self, sentence: str) -> None:
        """Why there is no result: one line that begins with the program's name."""
        self._say(f"{self.program}: {shown(sentence, _LONGEST)}")

    def note(self, sentence: str) -> None:
        """What is worth knowing about a result: one line, said once."""
        line = shown(sentence, _LONGEST)
        if line not in self._told:
            self._told.add(line)
            self._say(f"note: {line}")

    def say(self, sentence: str) -> None:
        """What was done."""
        self._say(shown(sentence, _LONGEST))

    def _say(self, line: str) -> None:
        if sys.stderr is not None:
            with contextlib.suppress(OSError):
                sys.stderr.write(line + "\n")

    def close(self) -> bool:
        """Flush; False where the result could not be written and that is not what the reader wanted."""
        if sys.stdout is not None and self._broken is None:
            try:
                sys.stdout.flush()
            except OSError as error:
                self._broken = error
        if self._broken is None:
            return True
        # What is left in the buffer must not fail again when the interpreter ends.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(self._broken, BrokenPipeError):
            return True
        self.error(f"the result cannot be written: {self._broken.strerror or self._broken}")
        return False

    def restore(self) -> None:
        """Give the streams back as they were, to whoever called ``main`` from Python."""
        for stream, before in self._before:
            if before is not None:
                with contextlib.suppress(OSError, ValueError):
                    _reconfigure(stream, *before)


def _encoding_of(stream: TextIO | None) -> tuple[str, str] | None:
    encoding, errors = getattr(stream, "encoding", None), getattr(stream, "errors", None)
    return (encoding, errors) if isinstance(encoding, str) and isinstance(errors, str) else None


def _reconfigure(stream: TextIO | None, encoding: str, errors: str) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding=encoding, errors=errors)


def json_text(document: object) -> str:
    """A document as JSON of several lines; a number that JSON has no word for becomes null."""
    return json.dumps(_finite(document), ensure_ascii=False, indent=2)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
