"""A bar for what takes long: how much is done, how fast, and how long the rest will take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytest_retrieval_eval.errors import SettingsError

_QUIET_SECONDS = 2.0
_MANY = 10_000  # from so many on, numbers are shown as 12.3k


@contextmanager
def progress(wanted: bool | None, total: int, *, doing: str, unit: str) -> Iterator[Callable[[int], object]]:
    """A bar on stderr; yields what is to be told how much more is done.

    It appears after two seconds on a terminal; ``wanted`` forces it, or forbids it.
    """
    if wanted is False or (wanted is None and not _is_terminal()):
        yield _nothing
        return
    try:
        from tqdm import tqdm
    except ImportError:
        if wanted:
            raise SettingsError(
                "progress=True needs the package tqdm; install it with: pip install 'pytest-retrieval-eval[progress]'"
            ) from None
        yield _nothing
        return
    with tqdm(
        total=total,
        delay=0.0 if wanted else _QUIET_SECONDS,
        desc=doing,
        unit=unit,
        unit_scale=total >= _MANY,
        file=sys.stderr,
        leave=False,
    ) as bar:
        yield bar.update


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:  # stderr may be closed, None or someone's stand-in
        return False


def _nothing(_: int) -> None:
    pass
