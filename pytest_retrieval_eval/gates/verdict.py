"""What a gate decided and everything that a report prints about it.

The classes hold builtin types only, so that they cross processes and go into JSON: ``Verdict.from_dict``
reads what ``Verdict.to_dict`` gives, also after ``json.dumps`` and ``json.loads``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from pytest_retrieval_eval.errors import DataError, did_you_mean

Status = Literal["passed", "failed", "weak", "inconclusive", "error", "updated"]
STATUSES: tuple[str, ...] = get_args(Status)
_TEXTS = ("notes", "baseline_changes", "causes")
_PARTS = ("slices", "members")


@dataclass(frozen=True, slots=True)
class Move:
    """A document of one query on both sides.

    ``grade`` None means that nobody has judged it; ``before`` and ``after`` are 1-based ranks in the
    baseline's and the candidate's list, None where it is not in the list. ``said`` is what the source of the labels
    says of it: what a reader answered from it, or why it is relevant. ``fate`` is the stage of the pipeline at which
    it was lost, where the stages are known.
    """

    doc_id: str
    grade: float | None = None
    before: int | None = None
    after: int | None = None
    title: str | None = None
    said: str | None = None
    fate: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as builtin types."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Move:
        """What ``to_dict`` gave."""
        return cls(**_fields(cls, fields))


@dataclass(frozen=True, slots=True)
class Holding:
    """What the top k of a list holds of a gold span.

    Args:
        covered: the share of the span that all chunks of the top k cover together.
        chunk_id, rank: the chunk that covers most of it; None where none covers any.
        start, end: where that chunk lies in the document, in code points, end exclusive.
        share: the share of the span that this chunk covers by itself.
        cuts: the places inside the span where this chunk begins or ends.
        cut_texts: the text around each of them, with a bar at the place; empty where nobody knows the text.
        found: the rank at which enough of the span is covered for it to be found, also below k; None where none is.
    """

    covered: float = 0.0
    chunk_id: str | None = None
    rank: int | None = None
    start: int | None = None
    end: int | None = None
    share: float = 0.0
    cuts: tuple[int, ...] = ()
    cut_texts: tuple[str, ...] = ()
    found: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as builtin types."""
        result = {name: getattr(self, name) for name in self.__slots__}
        return {**result, "cuts": list(self.cuts), "cut_texts": list(self.cut_texts)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Holding:
        """What ``to_dict`` gave."""
        known = _fields(cls, fields)
        for name in ("cuts", "cut_texts"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


@dataclass(frozen=True, slots=True)
class SpanChange:
    """A gold span of one query on both sides.

    Args:
        doc_id, start, end: where it lies, in code points, end exclusive.
        after, before: what each side holds of it; ``before`` is None for a fixed target.
        grade: its grade.
        text: its text, where somebody knows it.
        alternatives: how many other spans would do in its place.
        is_found, was_found: whether the top k has enough of it, or of an alternative; None for a fixed target.
    """

    doc_id: str
    start: int
    end: int
    after: Holding
    before: Holding | None = None
    grade: float = 1.0
    text: str | None = None
    alternatives: int = 0
    is_found: bool = False
    was_found: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as builtin types."""
        result = {name: getattr(self, name) for name in self.__slots__}
        result["after"] = self.after.to_dict()
        result["before"] = None if self.before is None else self.before.to_dict()
        return result

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SpanChange:
        """What ``to_dict`` gave."""
        known = _fields(cls, fields)
        known["after"] = Holding.from_dict(known["after"])
        if known.get("before") is not None:
            known["before"] = Holding.from_dict(known["before"])
        return cls(**known)


@dataclass(frozen=True, slots=True)
class QueryDiff:
    """One query whose value changed (or, for a fixed target, missed it).

    ``before`` is None for a fixed target. ``moves`` are the relevant documents that fell or left, then those
    that rose; ``intruders`` what took their place in the top k; ``spans`` the gold spans of which more or less is
    found, for measures of those. ``looked_up`` is False where there were too many queries to look up the intruders
    or spans of this one.
    """

    query_id: str
    after: float
    before: float | None = None
    text: str | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()
    intruders: tuple[Move, ...] = ()
    note: str | None = None
    looked_up: bool = True
    spans: tuple[SpanChange, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as builtin types."""
        result = {name: getattr(self, name) for name in _names(QueryDiff)[0]}
        result["tags"] = _copy(self.tags)
        result["moves"] = [move.to_dict() for move in self.moves]
        result["intruders"] = [move.to_dict() for move in self.intruders]
        result["spans"] = [span.to_dict() for span in self.spans]
        return result

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> QueryDiff:
        """What ``to_dict`` gave."""
        known = _fields(cls, fields)
        for name in ("moves", "intruders"):
            known[name] = tuple(Move.from_dict(move) for move in known.get(name, ()))
        known["spans"] = tuple(SpanChange.from_dict(span) for span in known.get("spans", ()))
        known["tags"] = _copy(known.get("tags", {}))
        return cls(**known)


class Interval(NamedTuple):
    """A confidence interval: ``level`` is 0.95 for 95 %, ``method`` is ``BCa`` or ``percentile``."""

    low: float
    high: float
    level: float
    method: str


class Spread(NamedTuple):
    """How the values of the queries lie behind a mean: quantiles, the share of zeros, a histogram.

    ``counts`` are queries in equal parts of ``low`` to ``high``.
    """

    minimum: float
    p05: float
    p25: float
    p50: float
    p75: float
    maximum: float
    zeros: float
    low: float
    high: float
    counts: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """The fields as builtin types."""
        return {**self._asdict(), "counts": list(self.counts)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Spread:
        """What ``to_dict`` gave."""
        return cls(**{**fields, "counts": tuple(fields["counts"])})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one comparison, truthy where the gate holds.

    >>> verdict = Verdict("recall@5 >= 0.8", "failed", "0.750 is below 0.800", "recall@5", ">=", value=0.75)
    >>> bool(verdict), verdict.reason
    (False, '0.750 is below 0.800')

    Args:
        gate: the gate's text, such as ``recall@5 >= baseline - 0.01``.
        status: ``passed``, ``weak`` (passed, but a drop worth seeing could have gone unseen), ``failed``,
            ``inconclusive`` (a declared condition does not hold; counts as failed), ``error`` (nothing was
            measured) or ``updated`` (the baseline was written from this very run).
        reason: one sentence.
        measure, operator: of the gate.
        stage: the stage of the pipeline whose run was measured; "" for the run under test.
        dataset, run, baseline: names; ``baseline`` is that of the run on the right side, None for a fixed
            target.
        reference_kind: ``baseline``, ``run`` or None for a fixed target.
        labels, where: the source of labels, and the slice as text ("" for every query).
        rule, alpha, sided, margin, allow: what the rule decided with: ``sided`` (``one`` or ``two``) says
            which p ``p`` is, the margin is in units of the measure.
        factor: of the run on the right side; differences are candidate − factor · run.
        n: the number of queries counted.
        value: the candidate's mean.
        target: the number that ``value`` was held against.
        reference: the mean of the run on the right side.
        delta: ``value`` − ``factor`` · ``reference``.
        interval: of the mean difference; of the mean for a fixed target.
        bound: under ``noninferior``, the one-sided bound of the mean difference.
        p, p_one_sided: of the paired randomization test, the printed one and the one-sided one.
        p_method: ``exact`` or ``Monte Carlo, B resamples``.
        smallest_p: the smallest ``p`` that the queries that differ allow.
        resolvable: whether ``p`` could have come below alpha.
        detectable, detectable_at: the smallest mean drop that would be detected with 80 % power, one-sided at the
            level ``detectable_at``: alpha, divided by the number of comparisons where their correction decides.
        worse, better, equal: queries by their difference, or by their distance from a fixed target (beyond
            1e-9).
        cutoff: the rank down to which the measure looks; None for the whole list.
        judged, judged_k: mean judged@k of candidate and reference (None where undefined), and its k.
        ties: the lowest and the highest mean of the candidate over the orders of tied documents; None
            without ties.
        bounds: of candidate and reference, the lowest and highest mean if every unjudged document of the lists
            were judged; None where the measure has no exact bounds or they would take long.
        spread: of candidate and reference, how the values of the queries lie.
        measured_in: the unit of ``value``, ``target`` and what else is in units of the measure (``ms``), else "".
        unit: ``document`` where chunks were ranked and documents measured, else "".
        label_scale: what a grade is: ``levels``, or ``unit`` for degrees from 0 to 1.
        queries: all queries that changed, worst first; for a fixed target those that miss it, the farthest
            first.
        notes: one sentence each.
        baseline_changes: what changed since the baseline was saved, a sentence each.
        to_judge: the first 20 (query, document) pairs that would put both sides on equal footing, worst queries
            first.
        to_judge_total: how many such pairs there are.
        missing_baseline: under ``error``, whether the baseline has yet to be made.
        causes: what the lost queries of a failed gate have in common, a sentence each.
        p_adjusted, correction: ``p`` adjusted within the family that the comparison is decided in, and by
            what (``holm`` or ``bh``); None where it stands alone.
        by: the tag whose values are the slices.
        slices: a verdict for each slice, worst first.
        slice, decides: of a slice, which one it is, and whether it has the queries that it takes to decide.
        members: the verdicts of a family: of a list of measures, or of what ``gate_family`` collected.
        reader: who read, where the labels are a reader's: its ``kind``, ``model`` ("" where only digests name it) and
            the ``digest`` of its identity; empty else, and where it has no identity.
        collected: whether a family has yet to decide; until then a verdict is truthy.
        provenance: where the numbers come from, where the bench asks for it: of ``run`` and ``reference`` name,
            source, depth, queries and header, of ``dataset`` name, path and the digests of labels, queries and corpus.
    """

    gate: str
    status: Status
    reason: str
    measure: str
    operator: str
    dataset: str = ""
    run: str = ""
    baseline: str | None = None
    reference_kind: str | None = None
    labels: str = "qrels"
    where: str = ""
    rule: str = "mean"
    alpha: float = 0.05
    sided: str = "two"
    margin: float | None = None
    factor: float = 1.0
    allow: int = 0
    n: int = 0
    value: float | None = None
    target: float | None = None
    reference: float | None = None
    delta: float | None = None
    interval: Interval | None = None
    bound: float | None = None
    p: float | None = None
    p_one_sided: float | None = None
    p_method: str | None = None
    smallest_p: float | None = None
    resolvable: bool | None = None
    detectable: float | None = None
    detectable_at: float | None = None
    worse: int = 0
    better: int = 0
    equal: int = 0
    cutoff: int | None = None
    judged: tuple[float | None, float | None] = (None, None)
    judged_k: int | None = None
    ties: tuple[float, float] | None = None
    bounds: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)
    spread: tuple[Spread | None, Spread | None] = (None, None)
    unit: str = ""
    measured_in: str = ""
    label_scale: str = "levels"
    queries: tuple[QueryDiff, ...] = ()
    notes: tuple[str, ...] = ()
    baseline_changes: tuple[str, ...] = ()
    to_judge: tuple[tuple[str, str], ...] = ()
    to_judge_total: int = 0
    missing_baseline: bool = False
    causes: tuple[str, ...] = ()
    p_adjusted: float | None = None
    correction: str | None = None
    by: str | None = None
    slice: str = ""
    decides: bool = True
    slices: tuple[Verdict, ...] = ()
    members: tuple[Verdict, ...] = ()
    collected: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)
    stage: str = ""
    reader: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the test goes on: passed, weak or updated."""
        return self.status in ("passed", "weak", "updated")

    def __bool__(self) -> bool:
        return self.ok or self.collected

    @property
    def worst(self) -> tuple[QueryDiff, ...]:
        """The queries that changed, worst first."""
        return self.queries

    @property
    def identical(self) -> bool:
        """Whether every counted query has the same value on both sides."""
        return self.reference is not None and self.n > 0 and self.equal == self.n

    def to_dict(self) -> dict[str, Any]:
        """The verdict as dicts, lists, texts, numbers, bools and None."""
        result = {name: getattr(self, name) for name in _names(Verdict)[0]}
        result["interval"] = None if self.interval is None else self.interval._asdict()
        result["ties"] = None if self.ties is None else list(self.ties)
        result["judged"] = list(self.judged)
        result["bounds"] = [None if ends is None else list(ends) for ends in self.bounds]
        result["spread"] = [None if spread is None else spread.to_dict() for spread in self.spread]
        result["queries"] = [query.to_dict() for query in self.queries]
        for name in _TEXTS:
            result[name] = list(result[name])
        for name in _PARTS:
            result[name] = [part.to_dict() for part in result[name]]
        result["to_judge"] = [list(pair) for pair in self.to_judge]
        result["provenance"] = _copy(self.provenance)
        result["reader"] = dict(self.reader)
        return result

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Verdict:
        """What ``to_dict`` gave, in this process or another; a ``DataError`` where it cannot be a verdict."""
        known = _fields(cls, fields)
        if known["status"] not in STATUSES:
            raise DataError(
                f"a verdict cannot have the status {known['status']!r}; {did_you_mean(str(known['status']), STATUSES)}"
            )
        if known.get("interval") is not None:
            known["interval"] = Interval(**known["interval"])
        if known.get("ties") is not None:
            known["ties"] = tuple(known["ties"])
        known["judged"] = tuple(known.get("judged", (None, None)))
        known["bounds"] = tuple(None if ends is None else tuple(ends) for ends in known.get("bounds", (None, None)))
        spread = known.get("spread", (None, None))
        known["spread"] = tuple(None if each is None else Spread.from_dict(each) for each in spread)
        known["queries"] = tuple(QueryDiff.from_dict(query) for query in known.get("queries", ()))
        for name in _TEXTS:
            known[name] = tuple(known.get(name, ()))
        for name in _PARTS:
            known[name] = tuple(cls.from_dict(part) for part in known.get(name, ()))
        known["to_judge"] = tuple((query, doc) for query, doc in known.get("to_judge", ()))
        return cls(**known)


def _fields(cls: type, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The known ones of ``fields``: a newer version may have written more; what has no default is needed."""
    names, needed = _names(cls)
    for name in needed:
        if name not in fields:
            raise DataError(f"a {cls.__name__} without {name!r} cannot be read; it was written incompletely")
    return {name: fields[name] for name in names if name in fields}


@lru_cache
def _names(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All fields of a class, and those without a default."""
    missing = dataclasses.MISSING
    every = dataclasses.fields(cls)
    needed = [each.name for each in every if each.default is missing and each.default_factory is missing]
    return tuple(each.name for each in every), tuple(needed)


def _copy(value: Any) -> Any:
    """A JSON value with its own dicts and lists; what JSON has no type for becomes its text.

    >>> _copy({"a": (1, True, None, 0.5), 2: {"x"}})
    {'a': [1, True, None, 0.5], '2': "{'x'}"}
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _copy(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(each) for each in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return _copy(value.item()) if hasattr(value, "item") else str(value)


def builtin(value: Any) -> Any:
    """``value`` in builtin types, for the fields of a verdict that hold users' own data (tags)."""
    return _copy(value)
