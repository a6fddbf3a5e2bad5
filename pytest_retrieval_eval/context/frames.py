"""Which lines of a traceback are the user's own: those that pytest shows for an error of a gate."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, Traceback


_NOT_THE_USERS = ("pytest_retrieval_eval", "_pytest", "pytest", "pluggy")


def users_frames(excinfo: pytest.ExceptionInfo[BaseException]) -> Traceback:
    """The lines of an exception's traceback that are neither pytest's nor ours; empty where there are none."""
    return excinfo.traceback.filter(
        lambda entry: str(entry.frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_USERS
    )


def repr_error(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> str | TerminalRepr:
    """What pytest prints of an error of ours: the user's lines in the style of the session, and the sentence.

    Where no line of the user's raised it, the sentence and pytest's word on how to see the frames.
    """
    lines = None
    for entry in reversed(users_frames(excinfo)):
        lines = TracebackType(lines, entry.frame.raw, entry._rawentry.tb_lasti, entry._rawentry.tb_lineno)
    if lines is None:
        return excinfo.getrepr(tbfilter=users_frames, chain=False)
    return item.repr_failure(pytest.ExceptionInfo.from_exc_info((excinfo.type, excinfo.value, lines)))
