"""The most memory that a piece of work held above what was held before it: of a CUDA device, or of this process."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

T = TypeVar("T")
Where = Literal["cuda", "process"]

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_KIB = 1024


def peak_above(work: Callable[[], T], *, cuda: bool = False) -> tuple[T, int | None]:
    """(what ``work`` returns, bytes that it held at its peak above those held when it began).

    On CUDA (``cuda``) it is what torch allocated on the current device. Otherwise it is the resident memory of this
    process, whose peak Linux lets a process set back; on other systems, None: it is not known there.

    >>> value, held = peak_above(lambda: len(bytearray(1 << 26)))
    >>> value, held is None or held >= 1 << 25
    (67108864, True)
    """
    if cuda:
        return _on_cuda(work)
    _let_go()
    before = _reset()
    value = work()
    peak = None if before is None else _kib("VmHWM")
    return value, None if peak is None or before is None else max(0, peak - before) * _KIB


def _on_cuda(work: Callable[[], T]) -> tuple[T, int | None]:
    import torch

    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = int(torch.cuda.memory_allocated())
    value = work()
    torch.cuda.synchronize()
    return value, int(torch.cuda.max_memory_allocated()) - before


def _reset() -> int | None:
    """The resident memory now, in KiB, with the peak set back to it; None where that cannot be done."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return None
    return _kib("VmRSS")


def _kib(name: str) -> int | None:
    with suppress(OSError):
        for line in _STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return None


def _let_go() -> None:
    """Give back what is free, so that the work before this hides nothing of this one's."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").malloc_trim(0)
