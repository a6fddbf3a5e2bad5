"""What ``assert_recall_at(5)`` returns: a value to compare, which raises where the gate does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.gates.decide import check, record_error
from pytest_retrieval_eval.gates.gate import Gate, Operator
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.side import Side, measure_candidate
from pytest_retrieval_eval.gates.target import OperandError, Target
from pytest_retrieval_eval.gates.wording import shown
from pytest_retrieval_eval.measures.names import Measure

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench
    from pytest_retrieval_eval.gates.verdict import Verdict


class Measured:
    """A measure of the run under test, on the left of a comparison.

    ``>=``, ``>``, ``<=`` and ``<`` with a real number or a
    :class:`~pytest_retrieval_eval.gates.target.Target` decide a gate at once: they return the ``Verdict``
    where it holds, raise ``GateFailure`` where it does not and ``GateError`` where nothing could be
    measured. So a comparison works with and without ``assert``, and where asserts are compiled away.
    ``float()`` gives the mean, decides nothing.

    It is no float on purpose: with a subclass, ``numpy.float64(0.9) <= measured`` would return False without
    raising.

    Nothing is read before the first comparison; both sides of a chained comparison are measured once.
    """

    __slots__ = ("_bench", "_candidate", "_decided", "_measure", "_options")

    # numpy then leaves the comparison to this class; see above.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, measure: Measure | str, bench: Bench, options: Options | None = None) -> None:
        self._measure = Measure.parse(measure) if isinstance(measure, str) else measure
        self._bench = bench
        self._options = options or Options()
        self._candidate: Side | None = None
        self._decided = False

    @property
    def measure(self) -> Measure:
        """The measure."""
        return self._measure

    @property
    def options(self) -> Options:
        """The options."""
        return self._options

    @property
    def decided(self) -> bool:
        """Whether a comparison was tried, also one that raised."""
        return self._decided

    def __repr__(self) -> str:
        # Nothing is measured for a repr: pytest and debuggers ask for it at any time.
        return f"<Measured {self._measure}>"

    def _measured(self) -> Side:
        __tracebackhide__ = True
        if self._candidate is None:
            self._candidate = measure_candidate(self._measure, self._bench, self._options)
        return self._candidate

    def __float__(self) -> float:
        __tracebackhide__ = True
        return self._measured().mean

    def _compare(self, operator: Operator, other: object) -> Verdict:
        __tracebackhide__ = True
        self._decided = True
        text = f"{self._measure} {operator} {_text(other)}"
        try:
            if isinstance(other, Measured):
                raise OperandError(
                    f"{self._measure} {operator} {other._measure}: both sides are measured; to gate one run "
                    f"against another write assert_metric({str(self._measure)!r}, run=…) {operator} "
                    "against('other-run')"
                )
            gate = Gate(self._measure, operator, other, self._options)  # type: ignore[arg-type]
        except GateError as error:
            record_error(text, self._measure, operator, self._options, self._bench, error)
            raise error.with_traceback(None)  # noqa: B904  (it is the same error, without our frames)
        return check(gate, self._bench, self._measured)

    def __ge__(self, other: object) -> Verdict:
        __tracebackhide__ = True
        return self._compare(">=", other)

    def __gt__(self, other: object) -> Verdict:
        __tracebackhide__ = True
        return self._compare(">", other)

    def __le__(self, other: object) -> Verdict:
        __tracebackhide__ = True
        return self._compare("<=", other)

    def __lt__(self, other: object) -> Verdict:
        __tracebackhide__ = True
        return self._compare("<", other)

    def __eq__(self, other: object) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._measure} == …: equality of two means is chance; compare with >=, >, <= or <, "
            "or take a plain number with evaluate(…)"
        )

    def __ne__(self, other: object) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._measure} != …: inequality of two means says nothing; compare with >=, >, <= or <, "
            "or take a plain number with evaluate(…)"
        )

    def __bool__(self) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._measure} has no truth value: compare it directly, assert_metric({str(self._measure)!r}) "
            ">= baseline; for a plain number without a gate use evaluate(…)"
        )

    def _refuse_arithmetic(self, *_: object) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._measure} takes no part in arithmetic: put the number on the other side, "
            f"assert_metric({str(self._measure)!r}) >= baseline - 0.01; for a plain number use evaluate(…)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_arithmetic
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse_arithmetic
    __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _refuse_arithmetic
    __round__ = __int__ = _refuse_arithmetic


def _text(other: object) -> str:
    if isinstance(other, Target):
        return str(other)
    return str(other.measure) if isinstance(other, Measured) else shown(repr(other), 40)
