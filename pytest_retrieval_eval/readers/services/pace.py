"""How fast a service may be asked: limits per minute, a number of calls at once that adapts, and pauses.

Nothing here waits or knows of HTTP; the engine of :mod:`~pytest_retrieval_eval.readers.services.calls` asks how long
to wait.
"""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Callable
from datetime import timezone

from pytest_retrieval_eval.errors import SettingsError


class Bucket:
    """A limit per minute, spread evenly: what is taken beyond it is owed, and waited for before the next is sent.

    At most one second's share is saved up (and at least one unit), so that no minute sees more than its limit and
    that second. A single call that is larger than the share can still be made; those after it wait for longer.

    >>> now = 0.0
    >>> bucket = Bucket(60, clock=lambda: now)
    >>> bucket.take(1), bucket.take(1), bucket.take(1)
    (0.0, 1.0, 2.0)
    >>> now = 10.0
    >>> bucket.take(3)
    2.0
    """

    def __init__(self, per_minute: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        number = isinstance(per_minute, (int, float)) and not isinstance(per_minute, bool)
        if not (number and per_minute > 0 and math.isfinite(per_minute)):
            raise SettingsError(f"a limit of {per_minute!r} per minute; expected a number above 0")
        self._rate = per_minute / 60
        self._share = max(1.0, self._rate)
        self._clock = clock
        self._level = self._share
        self._at = clock()

    def take(self, amount: float) -> float:
        """Take an amount now; the seconds to wait before it may be used."""
        self._fill()
        self._level -= amount
        return max(0.0, -self._level / self._rate)

    def give(self, amount: float) -> None:
        """Give back what was taken and not used; a negative amount is what was used beyond that."""
        self._fill()
        self._level = min(self._share, self._level + amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._share, self._level + (now - self._at) * self._rate)
        self._at = now


class Window:
    """How many calls may be under way at once.

    It grows by one with each answer until the service first shows that it is overloaded, then by one with each round
    of answers; each sign of overload halves it, but only once for the calls that were under way together.

    >>> window = Window(16, start=4)
    >>> window.answered(); window.size
    5
    >>> window.overloaded(sent=1.0, now=2.0); window.overloaded(sent=1.5, now=2.1); window.size
    2
    >>> for _ in range(5):
    ...     window.answered()
    >>> window.size
    4
    """

    def __init__(self, most: int, *, start: int = 4) -> None:
        self._most = most
        self._width = float(min(start, most))
        self._cut_at = -math.inf

    @property
    def size(self) -> int:
        """The number of calls that may be under way now."""
        return int(self._width)

    def answered(self) -> None:
        """A call was answered in time."""
        step = 1.0 if self._cut_at == -math.inf else 1.0 / self._width
        self._width = min(float(self._most), self._width + step)

    def overloaded(self, *, sent: float, now: float) -> None:
        """A call that was sent at ``sent`` came back as too much, or not at all."""
        if sent >= self._cut_at:
            self._width = max(1.0, self._width / 2)
            self._cut_at = now


def back_off(attempt: int, base: float, most: float = 60.0, draw: Callable[[], float] = random.random) -> float:
    """Seconds to wait after the ``attempt``-th failure (1 is the first): anything up to a bound that doubles.

    The wait is drawn from the whole range ("full jitter"), so that callers which failed together do not return
    together.

    >>> [back_off(attempt, 0.5, most=3.0, draw=lambda: 1.0) for attempt in (1, 2, 3, 4)]
    [0.5, 1.0, 2.0, 3.0]
    """
    return draw() * min(most, base * 2.0 ** (attempt - 1))


def retry_after(value: str | None, *, date: str | None = None, now: Callable[[], float] = time.time) -> float | None:
    """The seconds that a ``Retry-After`` header asks to wait; None where there is none, or none that can be read.

    A time of day is held against the reply's own ``Date``, so that two clocks that differ do no harm.

    >>> retry_after("2"), retry_after("0.5"), retry_after("soon"), retry_after(None)
    (2.0, 0.5, None, None)
    >>> retry_after("Wed, 21 Oct 2015 07:28:30 GMT", date="Wed, 21 Oct 2015 07:28:00 GMT")
    30.0
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        until = _timestamp(value)
        if until is None:
            return None
        since = _timestamp(date)
        seconds = until - (now() if since is None else since)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _timestamp(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date without a zone is in GMT, as all dates of HTTP are.
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
