"""What the calls of a service may cost altogether, counted by all processes in one file.

An amount is held before a call is sent and settled when its answer tells what it really was. A call whose answer
never came (the process was killed, the connection was cut) stays counted in full: the service may have done the work.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_retrieval_eval.errors import DataError, SettingsError

# The file counts cost in whole millionths of a millionth, so that what is set aside and given back leaves nothing.
_SCALE = 10**12
_SCHEMA = """
CREATE TABLE IF NOT EXISTS spent (
    one INTEGER PRIMARY KEY CHECK (one = 1), calls INTEGER NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL
);
INSERT OR IGNORE INTO spent VALUES (1, 0, 0, 0);
"""


@dataclass(frozen=True)
class Price:
    """What a model costs: the price of a million tokens read, and of a million written, in any currency.

    >>> Price(input=0.15, output=0.60).of(1_000_000, 500_000)
    0.45
    """

    input: float
    output: float

    def __post_init__(self) -> None:
        for name, value in (("input", self.input), ("output", self.output)):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and math.isfinite(value) and value >= 0):
                raise SettingsError(f"the price of {name} tokens is {value!r}; expected a number that is not negative")

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The price of a call."""
        return (self.input * input_tokens + self.output * output_tokens) / 1_000_000


@dataclass(frozen=True)
class Spent:
    """Calls, tokens (read and written) and cost."""

    calls: int
    tokens: int
    cost: float


@dataclass(frozen=True)
class Hold:
    """An amount that is set aside for a call under way."""

    input_tokens: int
    output_tokens: int


class Budget:
    """Caps on calls, tokens and cost; None is no cap.

    ``path`` is a file that all processes share which are to keep within the caps together; what it holds counts from
    the start, so a new file is a new budget. Without it the budget is this object's alone. A cap on cost needs the
    model's ``price``: without one the cost cannot be known, and nothing is taken for free.

    >>> budget = Budget(calls=1)
    >>> hold = budget.hold(100, 20)
    >>> budget.hold(100, 20) is None, budget.exhausted
    (True, 'the budget is used up: 1 of 1 calls')
    >>> budget.settle(hold, 90, 5)
    >>> budget.spent
    Spent(calls=1, tokens=95, cost=0.0)
    """

    def __init__(
        self,
        *,
        calls: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        price: Price | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        for name, cap in (("calls", calls), ("tokens", tokens), ("cost", cost)):
            if cap is not None and (isinstance(cap, bool) or not (math.isfinite(cap) and cap >= 0)):
                raise SettingsError(f"a budget of {cap!r} {name}; expected a number that is not negative")
        if cost is not None and price is None:
            raise SettingsError(
                "a budget in money needs the model's price: give what a million input tokens and a million output "
                "tokens cost"
            )
        self._caps = Spent(*(math.inf if cap is None else cap for cap in (calls, tokens, cost)))  # type: ignore[arg-type]
        self._price = price or Price(0, 0)
        self._path = path
        self._lock = threading.Lock()
        self._database = self._open()

    @property
    def capped(self) -> bool:
        """Whether there is any cap."""
        return self._caps != Spent(math.inf, math.inf, math.inf)  # type: ignore[arg-type]

    @property
    def spent(self) -> Spent:
        """What all processes have spent or set aside until now."""
        with self._lock, self._reading():
            return self._row()

    @property
    def exhausted(self) -> str:
        """A sentence that says how much of the caps is used."""
        spent, parts = self.spent, []
        if self._caps.calls != math.inf:
            parts.append(f"{spent.calls} of {self._caps.calls} calls")
        if self._caps.tokens != math.inf:
            parts.append(f"{spent.tokens} of {self._caps.tokens} tokens")
        if self._caps.cost != math.inf:
            parts.append(f"{spent.cost:.4f} of {self._caps.cost:.4f} in cost")
        return "the budget is used up: " + ", ".join(parts)

    def hold(self, input_tokens: int, output_tokens: int) -> Hold | None:
        """Set aside what a call may take; None where it would go beyond a cap."""
        with self._lock, self._writing():
            spent = self._row()
            wanted = self._plus(spent, 1, input_tokens, output_tokens)
            # A sum of prices that equals the cap but for rounding is within it.
            room = wanted.calls <= self._caps.calls and wanted.tokens <= self._caps.tokens
            if not (room and wanted.cost <= self._caps.cost * (1 + 1e-9)):
                return None
            self._store(wanted)
        return Hold(input_tokens, output_tokens)

    def settle(self, hold: Hold, input_tokens: int, output_tokens: int) -> None:
        """The call was answered: what it really took."""
        with self._lock, self._writing():
            rest = self._plus(self._row(), 0, -hold.input_tokens, -hold.output_tokens)
            self._store(self._plus(rest, 0, input_tokens, output_tokens))

    def release(self, hold: Hold) -> None:
        """The service declined the call: it took nothing."""
        with self._lock, self._writing():
            self._store(self._plus(self._row(), -1, -hold.input_tokens, -hold.output_tokens))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _plus(self, spent: Spent, calls: int, input_tokens: int, output_tokens: int) -> Spent:
        cost = round(spent.cost * _SCALE) + round(self._price.of(input_tokens, output_tokens) * _SCALE)
        return Spent(spent.calls + calls, spent.tokens + input_tokens + output_tokens, max(0, cost) / _SCALE)

    def _open(self) -> sqlite3.Connection:
        place = ":memory:" if self._path is None else os.fspath(self._path)
        database = None
        try:
            database = sqlite3.connect(place, timeout=30, isolation_level=None, check_same_thread=False)
            database.execute("PRAGMA synchronous = OFF")  # the death of a process loses nothing; of a machine, may
            database.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
            database.execute("COMMIT")
        except sqlite3.Error as error:
            if database is not None:
                database.close()
            raise DataError(
                f"{place}: cannot be used to count what calls cost ({error}); name a file that may be made"
            ) from None
        return database

    def _row(self) -> Spent:
        calls, tokens, cost = self._database.execute("SELECT calls, tokens, cost FROM spent").fetchone()
        return Spent(calls, tokens, cost / _SCALE)

    def _store(self, spent: Spent) -> None:
        row = spent.calls, spent.tokens, round(spent.cost * _SCALE)
        self._database.execute("UPDATE spent SET calls = ?, tokens = ?, cost = ?", row)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:  # the latter of more than 9 million, or of a count that is none
            place = "" if self._path is None else f"{self._path}: "
            raise DataError(f"{place}what calls cost cannot be counted ({error})") from None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._reading():
            self._database.execute("BEGIN IMMEDIATE")  # read and write as one, whatever other processes do
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
