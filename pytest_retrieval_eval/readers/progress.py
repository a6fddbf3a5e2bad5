"""A bar for long readings: tokens a second, and how long it will take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pytest_retrieval_eval.errors import SettingsError

_QUIET_SECONDS = 2.0


def progress(
    wanted: bool | None, total: int, *, doing: str = "reading", unit: str = "tok"
) -> AbstractContextManager[Callable[[int], object]]:
    """A bar on stderr that counts tokens of prompts; after two seconds on a terminal, or as ``wanted`` says.

    Tokens, not items: the longest are read first, and items a second would promise an end that never comes. What is
    done in the order of its coming counts another ``unit``.
    """
    if wanted is False or (wanted is None and not _is_terminal()):
        return nullcontext(_nothing)
    try:
        from tqdm import tqdm
    except ImportError:
        if wanted:
            raise SettingsError(
                "progress=True needs the package tqdm; install it with: pip install 'pytest-retrieval-eval[progress]'"
            ) from None
        return nullcontext(_nothing)
    return _Bar(tqdm, total, 0.0 if wanted else _QUIET_SECONDS, doing, unit)


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:  # stderr may be closed, None or someone's stand-in
        return False


def _nothing(_: int) -> None:
    pass


class _Bar:
    def __init__(self, tqdm: Any, total: int, delay: float, doing: str, unit: str) -> None:
        self._bar = tqdm(total=total, delay=delay, desc=doing, unit=unit, unit_scale=True, file=sys.stderr, leave=False)

    def __enter__(self) -> Callable[[int], object]:
        return self._bar.update  # type: ignore[no-any-return]

    def __exit__(self, *_: object) -> None:
        self._bar.close()
