"""A process by a name that tells, on the machine where it ran, whether it is gone.

A number alone does not: numbers are used again, begin anew when a machine starts, and in a container count from one.
"""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")


def process_mark() -> str:
    """Host, start of the machine, space of process numbers, number and start of this process, joined by colons.

    What the system does not tell is left empty.
    """
    pid = os.getpid()
    return f"{_place()}:{pid}:{_started(pid)}"


def is_gone(mark: str) -> bool:
    """Whether the process with this mark has surely ended; False wherever that cannot be seen from here.

    >>> is_gone(process_mark()), is_gone("another machine:boot:pid:[1]:77:5")
    (False, False)
    """
    place, number, start = ("", "", *mark.rsplit(":", 2))[-3:]
    if place != _place() or not start:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is another user's
    return _started(int(number)) not in ("", start)


@lru_cache(maxsize=1)
def _place() -> str:
    """Where process numbers mean what they mean here."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        boot = space = ""
    return f"{platform.node()}:{boot}:{space}"


def _started(pid: int) -> str:
    """When a process started, in ticks since the machine did; ``ended`` for one that only waits to be collected."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    return "ended" if fields[0] in "ZX" else fields[19]
