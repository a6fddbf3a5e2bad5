"""Which lines of a traceback are the user's own: those that pytest shows for an error of a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import Traceback


_NOT_THE_USERS = ("pytest_retrieval_eval", "_pytest", "pytest", "pluggy")


def users_frames(excinfo: pytest.ExceptionInfo[BaseException]) -> Traceback:
    """The lines of an exception's traceback that are neither pytest's nor ours; empty where there are none."""
    return excinfo.traceback.filter(
        lambda entry: str(entry.frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_USERS
    )
