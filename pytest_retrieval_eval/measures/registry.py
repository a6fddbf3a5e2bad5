"""The one process-wide table of measures: what a name means, its parameters, where it comes from.

A definition is data and one function over the judged ranks, so that a measure from outside is the equal of
ours: ``register`` it, and every gate, file and report can name it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_retrieval_eval.errors import MeasureError, did_you_mean
from pytest_retrieval_eval.measures.evidence import RANKS, check_kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pytest_retrieval_eval.measures.evaluate import Evaluation
    from pytest_retrieval_eval.measures.names import Measure
    from pytest_retrieval_eval.measures.ranks import JudgedRanks
    from pytest_retrieval_eval.stats.resampled import Statistic

Score: TypeAlias = "Callable[[JudgedRanks, Measure], NDArray[np.float64]]"
Counts: TypeAlias = "Callable[[JudgedRanks, Measure], NDArray[np.bool_]]"
Expected: TypeAlias = "Callable[[JudgedRanks, Measure], NDArray[np.float64] | None]"
Extremes: TypeAlias = "Callable[[JudgedRanks, Measure], tuple[NDArray[np.float64], NDArray[np.float64]] | None]"
Table: TypeAlias = "Callable[[JudgedRanks, Measure], JudgedRanks]"
Aggregate: TypeAlias = Literal["mean", "sum", "geometric mean", "statistic"]
Notes: TypeAlias = "Callable[[Evaluation, Measure], tuple[str, ...]]"
Classes: TypeAlias = "Callable[[JudgedRanks, Measure], NDArray[np.float64]]"

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a measure: what it may be, and what it is when nobody says.

    ``words`` are the words it accepts; ``number`` says that it accepts a number, which lies above ``above``
    and below ``below``, both exclusive unless the range is ``closed``; ``measure`` that its value is another
    measure, ``text`` that it is any text. ``default`` is None where it must be given. A parameter that is
    ``kept`` stays in the name even where it equals its default.

    >>> Parameter("how patient the reader is", default=0.8, number=True, above=0, below=1).default
    0.8
    """

    meaning: str
    default: float | str | None = None
    words: tuple[str, ...] = ()
    number: bool = False
    measure: bool = False
    above: float = -float("inf")
    below: float = float("inf")
    kept: bool = False
    closed: bool = False
    text: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """What a measure's name means; :func:`measure` makes one of a function.

    >>> first = Definition("first", "Whether the first hit is relevant.", "ours", lambda ranks, _: ranks.hits(1.0, 1))
    >>> first.cutoff, first.aggregate, first.binary
    ('optional', 'mean', True)

    ``score(ranks, measure)`` gives one float64 for every query of the qrels, in their order; where the
    query does not count for the measure the value is not looked at. ``counts(ranks, measure)`` gives one
    bool for every query; None is the rule of ranking measures: something is relevant at the measure's
    level. ``expected`` is the mean of the score over all orders of tied documents, where a closed form is
    known (else it is None, or gives None); ``rises`` says that of all orders of tied documents the one by
    falling grade, unjudged ones last, scores highest, and the opposite one lowest; ``falls`` that it is the
    other way round. Where that hangs on the parameters, it is a function of the measure. ``extremes`` gives the
    least and the largest value over these orders where no one order does. Both forms read a table whose lists
    may end within a tie, at ``ranks.end``.

    ``aggregate`` is what the values of the queries make together. ``table`` is set for a measure of another
    one, which is its parameter ``measure``: it gives the table that the other one is computed on.

    ``spellings`` are other names (case does not matter), ``stems`` names that carry the cut-off behind an
    underscore, as trec_eval's do (``ndcg_cut`` for ``ndcg_cut_10``), ``translations`` parameters as other
    tools spell them, ``readings`` whole names that stand for a measure with its parameters (``gm_map``), and
    ``placed`` the parameter that other tools write in the place of the cut-off. ``binary`` measures divide
    documents at a level, and take the parameter ``rel``; ``graded`` is what they score on the unit scale,
    where nobody names a level.

    ``no_counts`` says why no query may count for the measure, where ``counts`` has a reason of its own.

    ``common`` says what a query needs to count where that hangs on the run, such as ``a gap``: two runs then count
    different queries, and are compared over those that have it in both. ``notes`` are sentences on what the measure
    did not see of a run.

    ``reads`` is the kind of evidence that the table is of: ``ranks``, the ranks of judged documents, or another
    that ``register_evidence`` knows, such as ``spans``.

    ``statistic`` is what the values of the queries make together where ``aggregate`` is ``statistic``, such as a
    percentile: of samples as rows, and of the class that ``classes`` gives each query, one number a row. Intervals
    resample it, and paired tests do, or ``smooth`` where that is given: the same of more queries, since a percentile of
    few hangs on two or three of them, whose swaps can show nothing. ``extreme`` says that it hangs on one query alone,
    so that there are no intervals.
    ``measured_in`` is what a value is counted in (``ms``); in the text of a gate numbers then have one.
    """

    name: str
    meaning: str
    source: str
    score: Score
    cutoff: Literal["required", "optional", "none"] = "optional"
    binary: bool = True
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    graded: Score | None = None
    counts: Counts | None = None
    expected: Expected | None = None
    rises: bool | Callable[[Measure], bool] = False
    falls: bool = False
    extremes: Extremes | None = None
    aggregate: Aggregate = "mean"
    table: Table | None = None
    spellings: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    translations: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    readings: Mapping[str, str] = field(default_factory=dict)
    placed: str = ""
    low: float = 0.0
    high: float = 1.0
    reads: str = RANKS
    no_counts: str = ""
    common: str = ""
    notes: Notes | None = None
    statistic: Statistic | None = None
    smooth: Statistic | None = None
    classes: Classes | None = None
    extreme: bool = False
    measured_in: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise MeasureError(
                f"{self.name!r} cannot name a measure: a name is lower-case letters, digits and underscores, "
                "and begins with a letter."
            )
        if (self.statistic is None) is (self.aggregate == "statistic"):
            raise MeasureError(f"the measure {self.name}: aggregate='statistic' and a statistic go together.")
        parameters = dict(self.parameters)
        if self.binary and "rel" not in parameters:
            parameters = {"rel": REL, **parameters}
        object.__setattr__(self, "parameters", MappingProxyType(parameters))
        object.__setattr__(self, "translations", MappingProxyType(dict(self.translations)))
        object.__setattr__(self, "readings", MappingProxyType(dict(self.readings)))

    @property
    def module(self) -> str:
        """The module that the measure comes from."""
        return str(getattr(self.score, "__module__", None) or "unknown")


# An explicit level stays in the name: over grades that are no whole numbers it says what a plain name cannot.
REL = Parameter("the lowest grade that is relevant", 1.0, number=True, above=0.0, kept=True)

_definitions: dict[str, Definition] = {}
_spellings: dict[str, str] = {}
_stems: dict[str, str] = {}
_readings: dict[str, tuple[str, str]] = {}  # a whole name → what it stands for, and whose reading it is
_broken: list[str] = []  # a sentence for each package whose measures could not be had
ENTRY_POINTS = "pytest_retrieval_eval.measures"  # the group in which packages offer measures
# What has not been read yet, in the order in which it will be: our rooms, then installed packages.
_unread = [
    *("ranking", "interpolated", "user_models", "incomplete", "sets", "nested"),
    *("spans", "lift", "access", "times", "abstention", "calls", "foreign"),
    ENTRY_POINTS,
]
_changes = 0
_reading = threading.RLock()  # gates may be compared in several threads


def _read_on() -> bool:
    """Add the measures of what comes next; False where all are there.

    Names are looked up in what has been read, and only an unknown one has the rest read. So a process imports the
    rooms of common measures, and not what is read of times, roles or traces, until somebody names a measure of those.
    """
    with _reading:
        if not _unread:
            return False
        room = _unread[0]
        if room == ENTRY_POINTS:
            del _unread[0]  # what packages register has the rest read
            if _is_offered():
                _broken.extend(importlib.import_module("pytest_retrieval_eval.measures.extending").add_entry_points())
            return True
        measures = importlib.import_module(f"pytest_retrieval_eval.measures.{room}").MEASURES
        del _unread[0]  # not before: what could not be imported is an error each time, and no unknown name
        for one in measures:
            _add(one)
        return True


def _read_all() -> None:
    while _read_on():
        pass


def _is_offered() -> bool:
    """Whether some installed package may offer measures; to ask importlib.metadata costs as much as all else here."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except NotADirectoryError:  # an archive, which importlib.metadata looks into
            return True
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if ENTRY_POINTS.encode() in file.read():
                            return True
                except OSError:  # most packages have none
                    continue
    return False


def register(definition: Definition) -> None:
    """Add a measure for the whole process. To register the same definition again changes nothing.

    Raises MeasureError where the name, or one of its spellings, already means another measure.
    """
    global _changes
    _read_all()
    if _definitions.get(definition.name) is not definition:
        _add(definition)
        _changes += 1


def _add(definition: Definition) -> None:
    check_kind(definition.reads, definition.name)
    spelled = [definition.name, *definition.spellings, *definition.stems, *definition.readings]
    for word in spelled:
        if owner := _owner(word):
            raise MeasureError(
                f"the measure {definition.name} cannot be registered: {word!r} already names the measure "
                f"{owner}. Give it another name or spelling."
            )
    _definitions[definition.name] = definition
    _spellings.update((word.casefold(), definition.name) for word in definition.spellings)
    _stems.update((word.casefold(), definition.name) for word in definition.stems)
    _readings.update((word.casefold(), (text, definition.name)) for word, text in definition.readings.items())


def unregister(name: str) -> None:
    """Take a measure out again, with its spellings. Raises MeasureError where there is none."""
    global _changes
    definition(name)
    _changes += 1
    del _definitions[name]
    for table in (_spellings, _stems):
        for word in [word for word, owner in table.items() if owner == name]:
            del table[word]
    for word in [word for word, (_, owner) in _readings.items() if owner == name]:
        del _readings[word]


def _owner(word: str) -> str | None:
    low = word.casefold()
    if low in _definitions:
        return low
    return _spellings.get(low) or _stems.get(low) or _readings.get(low, (None, None))[1]


def changes() -> int:
    """How often a measure was added or taken out: what a name means may differ where this does."""
    return _changes


def definitions() -> tuple[Definition, ...]:
    """Every registered definition, ours first.

    >>> [d.name for d in definitions()][:3]
    ['hit', 'precision', 'recall']
    """
    _read_all()
    return tuple(_definitions.values())


def definition(name: str) -> Definition:
    """The definition of a measure's own name. Raises MeasureError with the closest name."""
    found = _definitions.get(name) or find(name)
    if found is None or found.name != name:
        raise MeasureError(f"unknown measure {name}: {suggestion(name)}")
    return found


def find(word: str, *, stem: bool = False) -> Definition | None:
    """What a word names: a measure's name or other spelling; with ``stem`` a name before ``_k``."""
    low = word.casefold()
    name = _named(low, stem=stem)
    if name is None:
        with _reading:
            while (name := _named(low, stem=stem)) is None and _read_on():
                pass
    return None if name is None else _definitions[name]


def _named(low: str, *, stem: bool) -> str | None:
    return _stems.get(low) if stem else (low if low in _definitions else _spellings.get(low))


def reading(text: str) -> str | None:
    """What a whole name stands for, as gm_map does for gm(map); None where it is no such name."""
    _read_all()
    return _readings.get(text.casefold(), (None,))[0]


def chain(measure: Measure) -> list[tuple[Definition, Measure]]:
    """The measure, the one inside it, and so on to the innermost, each with its definition."""
    links = [(definition(measure.name), measure)]
    while links[-1][0].table is not None and (inner := links[-1][1].inner) is not None:
        links.append((definition(inner.name), inner))
    return links


def bounds(measure: Measure) -> tuple[float, float]:
    """The least and the most that the measure can be for a query: those of the innermost measure."""
    innermost = chain(measure)[-1][0]
    return innermost.low, innermost.high


def reads(measure: Measure) -> str:
    """The kind of evidence that the measure reads: the first one in it that is not the ranks of judged documents."""
    each: Measure | None = measure
    while each is not None:
        kind = definition(each.name).reads
        if kind != RANKS:
            return kind
        each = each.inner
    return RANKS


def aggregate(measure: Measure) -> tuple[Aggregate, Measure]:
    """What the values of the queries make together, and the measure in the chain that says so."""
    return next(
        ((found.aggregate, link) for found, link in chain(measure) if found.aggregate != "mean"), ("mean", measure)
    )


def measured_in(measure: Measure) -> str:
    """What a value of the measure is counted in; empty for a share or a number."""
    return definition(measure.innermost.name).measured_in


def floor(measure: Measure) -> float:
    """The least that a value counts in a geometric mean."""
    declared = definition(measure.name).parameters.get("floor")
    value = measure.get("floor", None if declared is None else declared.default)
    return value if isinstance(value, float) else 0.0


def order(measure: Measure) -> Literal["rises", "falls"] | None:
    """How the order of tied documents by falling grade moves the measure; None where nobody can say."""
    links = chain(measure)
    for found, link in links:
        if not (found.falls or (found.rises(link) if callable(found.rises) else found.rises)):
            return None
    return "falls" if links[-1][0].falls else "rises"


def suggestion(word: str, rest: str = "") -> str:
    """The tail of an error sentence: the closest name with what followed it, or every name.

    >>> suggestion("recal", "@5")
    'did you mean recall@5?'
    """
    _read_all()
    tail = did_you_mean(word, [*_definitions, *(s for d in _definitions.values() for s in d.spellings)])
    if tail.startswith("known: "):
        tail = "known: " + ", ".join(sorted(_definitions))
    else:
        tail = tail.removesuffix("?") + rest + "?"
    return " ".join([tail, *(f"Not available: {sentence}" for sentence in _broken)])
