"""What ``assert_recall_at(5)`` returns: a value to compare, which raises where the gate does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.gates.case import Known, measure_candidate
from pytest_retrieval_eval.gates.decide import check, record_error
from pytest_retrieval_eval.gates.defaults import name_defaults
from pytest_retrieval_eval.gates.families import check_gates
from pytest_retrieval_eval.gates.gate import Gate, Operator
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.target import OperandError, Target
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.wording import shown

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

    Several measures are compared as one family, with one verdict. Nothing is read before the first
    comparison; both sides of a chained comparison are measured once.
    """

    __slots__ = ("_bench", "_decided", "_known", "_measures", "_options")

    # numpy then leaves the comparison to this class; see above.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, measure: Measure | str | Sequence[Measure | str], bench: Bench, options: Options | None = None
    ) -> None:
        several = [measure] if isinstance(measure, (str, Measure)) else measure
        self._measures = tuple(Measure.parse(each) if isinstance(each, str) else each for each in several)
        if not self._measures:
            raise SettingsError("an empty list of measures measures nothing; name at least one, such as recall@5")
        if len(set(self._measures)) < len(self._measures):
            raise SettingsError(f"a measure stands twice in the list {self._names}; each counts in its correction")
        self._bench = bench
        self._options = options or Options()
        self._known = Known()
        self._decided = False

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure, or several."""
        return self._measures

    @property
    def _names(self) -> str:
        return ", ".join(map(str, self._measures))

    @property
    def _argument(self) -> str:
        """The first argument of ``assert_metric``, for advice."""
        names = [str(measure) for measure in self._measures]
        return repr(names[0] if len(names) == 1 else names)

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
        return f"<Measured {self._names}>"

    def __float__(self) -> float:
        __tracebackhide__ = True
        if len(self._measures) > 1:
            raise OperandError(f"{self._names} are {len(self._measures)} measures, and have no one value")
        return measure_candidate(self._measures[0], self._bench, self._options, self._known).mean

    def _compare(self, operator: Operator, other: object) -> Verdict:
        __tracebackhide__ = True
        try:
            return self._verdict(operator, other)
        finally:
            # Not before: another thread may still be at it when the test ends.
            self._decided = True

    def _verdict(self, operator: Operator, other: object) -> Verdict:
        __tracebackhide__ = True
        text = f"{self._names} {operator} {_text(other)}"
        try:
            if isinstance(other, Measured):
                raise OperandError(
                    f"{self._names} {operator} {other._names}: both sides are measured; to gate one run "
                    f"against another write assert_metric({self._argument}, run=…) {operator} "
                    "against('other-run')"
                )
            gates = [Gate(measure, operator, other, self._options) for measure in self._measures]  # type: ignore[arg-type]
        except GateError as error:
            name_defaults(error, self._options.defaulted)
            record_error(text, self._names, operator, self._options, self._bench, error)
            raise error.with_traceback(None) from None
        if len(gates) == 1:
            return check(gates[0], self._bench, self._known)
        return check_gates(gates, self._bench, self._known)

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
            f"{self._names} == …: equality of two means is chance; compare with >=, >, <= or <, "
            "or take a plain number with evaluate(…)"
        )

    def __ne__(self, other: object) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._names} != …: inequality of two means says nothing; compare with >=, >, <= or <, "
            "or take a plain number with evaluate(…)"
        )

    def __bool__(self) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._names} has no truth value: compare it directly, assert_metric({self._argument}) "
            ">= baseline; for a plain number without a gate use evaluate(…)"
        )

    def _refuse_arithmetic(self, *_: object) -> NoReturn:
        __tracebackhide__ = True
        raise OperandError(
            f"{self._names} takes no part in arithmetic: put the number on the other side, "
            f"assert_metric({self._argument}) >= baseline - 0.01; for a plain number use evaluate(…)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_arithmetic
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse_arithmetic
    __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _refuse_arithmetic
    __round__ = __int__ = _refuse_arithmetic


def _text(other: object) -> str:
    if isinstance(other, Target):
        return str(other)
    return other._names if isinstance(other, Measured) else shown(repr(other), 40)
