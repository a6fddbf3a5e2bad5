"""Gates that are decided together: a list of measures in one entry, and what ``gate_family`` collects.

A correction for several comparisons decides only where one gate owns them all; so a family is one gate, with
one verdict whose ``members`` are those of its comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.gates.case import Case, Known, measured_case
from pytest_retrieval_eval.gates.corrections import NAMES
from pytest_retrieval_eval.gates.decide import concluded, decide_cases, record_error
from pytest_retrieval_eval.gates.defaults import name_defaults
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.rules import check_alone
from pytest_retrieval_eval.gates.slices import worst_status
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.wording import counted, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.bench import Bench


def parse_gates(texts: Sequence[str], options: Options | None = None, /, **keywords: object) -> tuple[Gate, ...]:
    """The gates of a list of texts, which share their options (or the keywords of some); an empty list is an error.

    >>> [str(gate) for gate in parse_gates(["recall@5 >= baseline", "ndcg@10>=0.8"])]
    ['recall@5 >= baseline', 'ndcg@10 >= 0.8']
    """
    if isinstance(texts, str) or not isinstance(texts, (list, tuple)):
        raise SettingsError(f"a family is a list of gates such as ['recall@5 >= baseline'], not {shown(repr(texts))}")
    if not texts:
        raise SettingsError("an empty list of gates measures nothing; write at least one, such as recall@5 >= baseline")
    gates = tuple(Gate.parse(text, options, **keywords) for text in texts)
    for gate, text in zip(gates, map(str, gates), strict=True):
        if sum(text == str(other) for other in gates) > 1:
            raise SettingsError(f"the gate {text} stands twice in one list; each counts in the correction of {gate}")
    return gates


def check_gates(gates: Sequence[Gate], bench: Bench, known: Known | None = None) -> Verdict:
    """Decide gates as one family, record its verdict, and raise where one of them does not hold.

    As :func:`~pytest_retrieval_eval.gates.decide.check` for a single gate, which a list of one is.
    """
    __tracebackhide__ = True
    family = getattr(bench, "family", None)
    try:
        if len(gates) == 1:
            check_alone(gates[0])
        cases = [measured_case(gate, bench, known) for gate in gates]
        verdict = decide_gates(cases)
        if family is not None:
            collected: Verdict = family.collect(cases, verdict)
            return collected
    except GateError as error:
        first = gates[0]
        name_defaults(error, first.options.defaulted)
        record_error(family_text(gates), _measures(gates), first.operator, first.options, bench, error)
        raise error.with_traceback(None) from None
    return concluded(verdict, bench)


def decide_gates(cases: Sequence[Case], correction: str | None = None) -> Verdict:
    """The verdict on the comparisons of a family."""
    verdicts = decide_cases(cases, correction)
    return family_verdict(verdicts)


def _same(one: Gate, other: Gate) -> bool:
    """Whether two gates are one; a target of a run is not to be compared with a number."""
    return (str(one), one.options) == (str(other), other.options) and one.target == other.target


def family_text(gates: Sequence[Gate]) -> str:
    """The gates of a family as one text.

    >>> family_text(parse_gates(["recall@5 >= baseline", "ndcg@10 >= baseline"]))
    'recall@5, ndcg@10 >= baseline'
    >>> family_text(parse_gates(["recall@5 >= baseline", "ndcg@10 >= 0.8"]))
    'recall@5 >= baseline, ndcg@10 >= 0.8'
    """
    return _text([str(gate) for gate in gates])


def _text(gates: Sequence[str]) -> str:
    parts = [gate.partition(" ") for gate in gates]
    if len({end for _, _, end in parts}) == 1:
        return f"{', '.join(measure for measure, _, _ in parts)} {parts[0][2]}"
    return ", ".join(gates)


def _measures(gates: Sequence[Gate]) -> str:
    return ", ".join(dict.fromkeys(str(gate.measure) for gate in gates))


def family_verdict(members: Sequence[Verdict]) -> Verdict:
    """One verdict on several comparisons: as bad as the worst of them; that of a single one is its own."""
    if len(members) == 1:
        return members[0]
    status = worst_status(member.status for member in members)
    first = members[0]
    bad = [member for member in members if not member.ok]

    def shared(name: str) -> str:
        values = {getattr(member, name) for member in members}
        return str(values.pop() or "") if len(values) == 1 else ""

    if bad:
        verb = "does" if len(bad) == 1 else "do"
        reason = f"{len(bad)} of {counted(len(members), 'comparison')} {verb} not hold: " + "; ".join(
            f"{member.gate}, {member.reason}" for member in bad[:3]
        )
        reason += f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    elif status == "updated":
        reason = "the baseline was written from this run"
    else:
        reason = f"all {len(members)} comparisons hold"
    return Verdict(
        gate=_text([member.gate for member in members]),
        status=status,
        reason=reason,
        measure=", ".join(dict.fromkeys(member.measure for member in members)),
        operator=first.operator,
        dataset=shared("dataset"),
        run=shared("run"),
        baseline=shared("baseline") or None,
        reference_kind=shared("reference_kind") or None,
        labels=shared("labels"),
        where=shared("where"),
        rule=shared("rule"),
        alpha=first.alpha,
        n=max(member.n for member in members),
        members=tuple(members),
    )


class GateFamily:
    """Collects the comparisons made inside ``with``, decides them together, and raises once at the end.

    ``begin`` and ``end`` tell the surroundings where comparisons are to be collected, and ``end`` why they were
    not decided, where an exception left the block. Inside, a comparison
    returns its verdict as it stands alone and does not raise; the verdict is truthy, since nothing is decided
    yet. A ``GateError`` inside, and any other exception, passes through, and nothing is decided.
    """

    def __init__(
        self,
        bench: Bench,
        begin: Callable[[GateFamily], None],
        end: Callable[[str | None], None],
        correction: str = "holm",
    ) -> None:
        if correction not in NAMES:
            raise SettingsError(
                f"{shown(repr(correction))} is no correction of p-values; {did_you_mean(str(correction), NAMES)}"
            )
        self._bench, self._begin, self._end, self._correction = bench, begin, end, correction
        self._cases: list[tuple[list[Case], Verdict]] = []
        self._entered = False
        self.verdict: Verdict | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What was collected so far, each as it stands alone; once decided, the members of the verdict."""
        if self.verdict is not None:
            return self.verdict.members or (self.verdict,)
        return tuple(verdict for _, verdict in self._cases)

    def collect(self, cases: Sequence[Case], verdict: Verdict) -> Verdict:
        """Take in one comparison; returns its verdict, marked as collected."""
        for case in cases:
            options: Options = case.gate.options
            if options.correction is not None:
                raise SettingsError(
                    f"{case.gate}: correction={options.correction!r} stands inside a gate_family, whose correction "
                    f"({self._correction}) decides for all its comparisons; leave it out"
                )
            if any(_same(case.gate, other.gate) for several, _ in self._cases for other in several):
                raise SettingsError(
                    f"{case.gate} stands twice in one gate_family; each counts in the correction of the others: "
                    "compare it once"
                )
        self._cases.append((list(cases), verdict))
        return replace(verdict, collected=True)

    def __enter__(self) -> GateFamily:
        __tracebackhide__ = True
        if self._entered:
            raise GateError("a gate_family is used once: make another with gate_family(…)")
        self._begin(self)
        self._entered = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if kind is not None:
            left = counted(len(self._cases), "comparison")
            self._end(f"{kind.__name__} left a gate_family before its {left} could be decided")
            return
        self._end(None)
        if not self._cases:
            message = (
                "nothing was compared inside gate_family: compare inside its with block, as in "
                "`assert assert_recall_at(5) >= baseline`"
            )
            record_error("gate_family", "", "", Options(), self._bench, GateError(message))
            raise GateError(message)
        self.verdict = self._decided()
        concluded(self.verdict, self._bench)

    def _decided(self) -> Verdict:
        cases = [case for several, _ in self._cases for case in several]
        leaves = [leaf for case in cases for leaf in case.leaves]
        tested = sum(leaf.gate.options.rule == "significant" and leaf.p is not None for leaf in leaves)
        if tested < 2:
            # Nothing is adjusted, so that each stands as it was decided alone.
            alone = family_verdict([part for _, verdict in self._cases for part in verdict.members or (verdict,)])
            note = (
                f"correction={self._correction!r} adjusts the p-values of comparisons under rule='significant'; "
                f"there {'is one' if tested else 'are none'} here, and nothing was adjusted"
            )
            return replace(alone, notes=() if self._correction == "none" or len(leaves) < 2 else (note,))
        return family_verdict(decide_cases(cases, self._correction))
