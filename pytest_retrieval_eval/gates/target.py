"""What a measure is held against: a number, or a·run + b of a baseline or of another run.

``baseline`` in a test is a :class:`Target`: nothing is read until a gate compares it, since the dataset,
labels and slice are those of the gate's left side.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.wording import number, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run

# A name that needs no quotes in a gate's text.
PLAIN_NAME = re.compile(r"[\w.:/@+~^\-]+")


class OperandError(GateError, TypeError):
    """Something was compared or combined that has no meaning as a gate.

    It is a ``TypeError`` for Python and a ``GateError`` for the test: nothing was measured.
    """


def real_number(value: object, what: str) -> float:
    """``value`` as a float; :class:`OperandError` unless it is a real number, ``SettingsError`` for NaN and
    ±inf.

    Integers, floats, fractions, decimals and numpy's scalars are numbers; a bool, a text and None are not.

    >>> from fractions import Fraction
    >>> real_number(Fraction(4, 5), "a target")
    0.8
    """
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise OperandError(f"{what} must be a real number, not {_kind(value)}")
    try:
        result = float(value)
    except (OverflowError, ValueError) as error:  # a signalling NaN, an integer beyond 1e308
        raise SettingsError(f"{what} must be a finite number, not {shown(str(value), 30)}") from error
    if not math.isfinite(result):
        raise SettingsError(f"{what} must be a finite number, not {result}: nothing can be held against it")
    return result


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return f"{type(value).__name__} ({shown(repr(value), 40)})"


@dataclass(frozen=True, slots=True)
class Reference:
    """Which run a target speaks of.

    ``kind`` is ``"baseline"`` (``name`` None means the configured one) or ``"run"`` (a name, a path, or a
    run).
    """

    kind: Literal["baseline", "run"]
    name: str | None = None
    run: Run | None = None
    path: Path | None = None

    @property
    def ref(self) -> str | Path | Run | None:
        """What a bench looks up: the run, the path or the name."""
        if self.run is not None:
            return self.run
        return self.path if self.path is not None else self.name

    def __str__(self) -> str:
        if self.kind == "baseline":
            return "baseline" if self.name is None else f"baseline[{quoted(self.name)}]"
        if self.name is not None:
            return f"against({quoted(self.name)})"
        name = str(self.path) if self.path is not None else self.run.name if self.run is not None else ""
        return f"against({quoted(name or 'run')})"


def quoted(name: str) -> str:
    """``name``, in JSON's quotes where the grammar of gates needs them.

    >>> quoted("release-4"), quoted("two words")
    ('release-4', '"two words"')
    """
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Target:
    """``factor`` × the mean of a run + ``offset``: the lazy right side of a gate.

    >>> 0.9 * baseline - 0.01
    <Target 0.9 * baseline - 0.01>
    >>> baseline["release-4"] + 0.02
    <Target baseline[release-4] + 0.02>
    """

    reference: Reference
    factor: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.factor < math.inf and math.isfinite(self.offset)):
            raise SettingsError(
                f"{number(self.factor)} * {self.reference} + {number(self.offset)}: a target is a · run + b with "
                "finite numbers, and a > 0"
            )

    # numpy's scalars then leave `np.float64(0.9) * baseline` to __rmul__.
    __array_ufunc__ = None

    def __str__(self) -> str:
        return self.text()

    def text(self, unit: str = "") -> str:
        """As a gate's text has it; ``unit`` is what the offset is counted in."""
        text = str(self.reference)
        if self.factor != 1.0:
            text = f"{number(self.factor)} * {text}"
        if self.offset:
            text += f" {'+' if self.offset > 0 else '-'} {number(abs(self.offset))}{unit}"
        return text

    def __repr__(self) -> str:
        return f"<Target {self}>"

    def __getitem__(self, name: str) -> Target:
        """Another named baseline: ``baseline["release-4"]``."""
        if self.reference.kind != "baseline" or self.reference.name is not None or not self._is_plain:
            raise OperandError(
                f"{self}[…] has no meaning: name a baseline on the plain one, baseline[{name!r}], "
                "and then add or multiply"
            )
        if not isinstance(name, str) or not name:
            raise OperandError(f"a baseline's name is a text such as baseline['release-4'], not {_kind(name)}")
        return Target(Reference("baseline", name))

    @property
    def _is_plain(self) -> bool:
        return self.factor == 1.0 and self.offset == 0.0

    def __add__(self, other: object) -> Target:
        return Target(self.reference, self.factor, self.offset + self._number(other, "+"))

    __radd__ = __add__

    def __sub__(self, other: object) -> Target:
        return Target(self.reference, self.factor, self.offset - self._number(other, "-"))

    def __rsub__(self, other: object) -> NoReturn:
        raise OperandError(
            f"{shown(repr(other), 30)} - {self} has no meaning: a target is a · run + b with a > 0; "
            f"write {self} - number"
        )

    def __mul__(self, other: object) -> Target:
        factor = self._number(other, "*")
        if factor <= 0:
            raise SettingsError(
                f"{number(factor)} * {self}: a target is a · run + b with a > 0; for a fixed target write the number"
            )
        return Target(self.reference, self.factor * factor, self.offset * factor)

    __rmul__ = __mul__

    def _number(self, other: object, sign: str) -> float:
        if isinstance(other, Target):
            raise OperandError(
                f"{self} {sign} {other}: a target is a · run + b of one run; two runs cannot be combined"
            )
        return real_number(other, f"what stands beside {self} {sign}")

    def _refuse_arithmetic(self, other: object) -> NoReturn:
        raise OperandError(f"a target allows +, - and * with numbers, nothing else: write 0.9 * {self}")

    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse_arithmetic
    __pow__ = __rpow__ = _refuse_arithmetic

    def _refuse_sign(self) -> NoReturn:
        raise OperandError(f"-({self}) has no meaning: a target is a · run + b with a > 0")

    __neg__ = __abs__ = _refuse_sign

    def _refuse_comparison(self, other: object) -> NoReturn:
        raise OperandError(f"{self} is a target and has no value of its own: write assert_metric('recall@5') >= {self}")

    def _compared(self, other: object) -> Any:
        # A Measured on the other side answers through its reflected comparison.
        if isinstance(other, (Real, Decimal, Target, str)) or other is None:
            self._refuse_comparison(other)
        return NotImplemented

    __lt__ = __le__ = __gt__ = __ge__ = _compared

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Target):
            return (self.reference, self.factor, self.offset) == (other.reference, other.factor, other.offset)
        if isinstance(other, (Real, Decimal)):
            self._refuse_comparison(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.reference, self.factor, self.offset))

    def __bool__(self) -> bool:
        self._refuse_comparison(None)

    def __float__(self) -> float:
        self._refuse_comparison(None)


baseline = Target(Reference("baseline"))


def against(run: str | Path | Run) -> Target:
    """A target of any run: a name that the session knows, a path, or a run in memory.

    >>> against("bm25") + 0.02
    <Target against(bm25) + 0.02>
    """
    if isinstance(run, str):
        if not run.strip():
            raise OperandError("against('') names no run: give a name, a path or a Run")
        return Target(Reference("run", run))
    if isinstance(run, Path):
        return Target(Reference("run", path=run))
    if isinstance(run, Target):
        raise OperandError(f"against({run}): this is a target already; write it without against")
    # A class from another room is known by what a gate needs of it, so that tests can stand in for it.
    if hasattr(run, "locate") and hasattr(run, "name"):
        return Target(Reference("run", str(run.name or "run"), run=run))
    raise OperandError(f"against() takes a run's name, a path or a Run, not {_kind(run)}")
