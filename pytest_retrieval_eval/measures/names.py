"""Measure names: ``"ndcg(gain=exp)@10"`` ↔ ``Measure("ndcg", 10, (("gain", "exp"),))``.

One grammar, ``name(parameter=value, …)@cut-off``, is printed; the spellings of trec_eval (``ndcg_cut_10``)
and of ir_measures (``nDCG(dcg='exp-log2')@10``) are read as well. Whatever is printed can be read again.
"""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from pytest_retrieval_eval.errors import MeasureError, did_you_mean
from pytest_retrieval_eval.measures import registry

ParameterValue: TypeAlias = "float | str | Measure"

_HEAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_]*)?")
_CUT = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[_.]([+-]?[0-9]{1,4000})")
_PLACED = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[_.@]([0-9]*\.[0-9]+|[01])")
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_DEEPEST = 10**9
_NESTED = "measure"  # the one parameter that is written without its key: condensed(ndcg@10)
PROVIDER = "ir_measures"  # ir_measures:Compat(p=0.9)@10 is that package's measure, in its spelling
_JUDGED_ONLY = "judged_only"  # ir_measures' word for the condensed list, a parameter of any measure


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure by name: which one, down to which rank, with which parameters.

    ``cutoff`` is None where the whole ranking counts. ``params`` are sorted by key; numbers are floats. A
    parameter that equals its default is left out, except ``rel``, so that one measure has one name.

    >>> Measure.parse("ndcg(gain=exp)@10")
    Measure('ndcg(gain=exp)@10')
    >>> str(Measure.parse("P_5")), str(Measure.parse("RR(rel=2)")), str(Measure.parse("AP@10"))
    ('precision@5', 'mrr(rel=2)', 'map@10')
    """

    name: str
    cutoff: int | None = None
    params: tuple[tuple[str, ParameterValue], ...] = ()

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            # numpy's integers are welcome; True, 5.0 and "5" are not whole numbers.
            if isinstance(self.cutoff, (bool, float, str)) or int(self.cutoff) != self.cutoff:
                raise _bad_cutoff(f"{self.name}@{self.cutoff}", repr(self.cutoff))
            object.__setattr__(self, "cutoff", _in_range(f"{self.name}@{self.cutoff}", int(self.cutoff)))
        params = tuple(
            sorted((key, float(value) if isinstance(value, (int, float)) else value) for key, value in self.params)
        )
        object.__setattr__(self, "params", params)

    @classmethod
    def of(cls, name: str, cutoff: int | None = None, **params: ParameterValue) -> Measure:
        """The same as parsing its name, from parts. Raises MeasureError as ``parse`` does.

        >>> Measure.of("recall", 5, rel=2) == Measure.parse("recall(rel=2)@5")
        True
        """
        return cls(name, cutoff, tuple(params.items())).checked()

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read a measure's name, in our spelling or in trec_eval's or ir_measures'.

        Raises MeasureError for an unknown name, parameter or value, with the closest known one; for a cut-
        off that is no whole number of at least 1, is missing where the measure needs one, or given where it
        has none.

        >>> Measure.parse("recal@5")
        Traceback (most recent call last):
        ...
        pytest_retrieval_eval.errors.MeasureError: unknown measure recal@5: did you mean recall@5?
        """
        if not isinstance(text, str):
            raise MeasureError(f"a measure is named by a text such as recall@5, not by {text!r}.")
        # What another package measures hangs on whether it is here.
        return _parse(text) if PROVIDER in text else _known(text, registry.changes())

    def checked(self) -> Measure:
        """This measure as ``parse`` gives it: known, complete, defaults left out. Raises MeasureError."""
        return _canonical(self, str(self)) if self.innermost.name == PROVIDER else _known(self, registry.changes())

    @property
    def rel(self) -> float:
        """The level: a document is relevant if its grade is at least this; 1 where the name is silent."""
        value = self.innermost.get("rel", 1.0)
        return value if isinstance(value, float) else 1.0

    @property
    def inner(self) -> Measure | None:
        """The measure inside this one, as ndcg@10 inside condensed(ndcg@10)."""
        value = self.get(_NESTED)
        return value if isinstance(value, Measure) else None

    @property
    def innermost(self) -> Measure:
        """The measure inside this one that has none inside; without any, this one."""
        return self if self.inner is None else self.inner.innermost

    def get(self, key: str, default: ParameterValue | None = None) -> ParameterValue | None:
        """The value that the name gives to a parameter, else ``default``."""
        for name, value in self.params:
            if name == key:
                return value
        return default

    def having(self, **params: ParameterValue) -> Measure:
        """The same measure with these parameters set, unchecked.

        >>> str(Measure.parse("recall@5").having(rel=2))
        'recall(rel=2)@5'
        """
        return Measure(self.name, self.cutoff, tuple({**dict(self.params), **params}.items()))

    def at(self, cutoff: int | None) -> Measure:
        """The same measure at another cut-off, or over the whole ranking (None). Raises MeasureError as
        ``parse``. A measure of another one that has no cut-off of its own hands it to the one inside.

        >>> str(Measure.parse("ndcg@10").at(100)), str(Measure.parse("condensed(ndcg@10)").at(5))
        ('ndcg@100', 'condensed(ndcg@5)')
        """
        if self.inner is not None and registry.definition(self.name).cutoff == "none":
            return self.having(**{_NESTED: self.inner.at(cutoff)}).checked()
        return Measure(self.name, cutoff, self.params).checked()

    def __str__(self) -> str:
        if self.name == PROVIDER and "name" in dict(self.params):
            return f"{PROVIDER}:{self.get('name')}" + ("" if self.cutoff is None else f"@{self.cutoff}")
        parts = [
            _print(value) if key == _NESTED and isinstance(value, Measure) else f"{key}={_print(value)}"
            for key, value in sorted(self.params, key=lambda item: (item[0] != _NESTED, item[0]))
        ]
        inside = f"({', '.join(parts)})" if parts else ""
        return f"{self.name}{inside}" + ("" if self.cutoff is None else f"@{self.cutoff}")

    def __repr__(self) -> str:
        return f"Measure({str(self)!r})"


def _print(value: ParameterValue) -> str:
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


@lru_cache(maxsize=512)
def _known(given: str | Measure, changes: int) -> Measure:
    """A name as it is read, or a measure as it is checked, while no measure is added or taken out."""
    return _parse(given) if isinstance(given, str) else _canonical(given, str(given))


def _parse(text: str) -> Measure:
    text = text.strip()
    head = _HEAD.match(text)
    if head is None:
        raise _malformed(text, "it begins with the name of a measure")
    if text.startswith(f"{PROVIDER}:"):
        theirs: Measure = _foreign().read(text.removeprefix(f"{PROVIDER}:"))
        return theirs.checked()
    word, rest = head[0], text[head.end() :].lstrip()
    if registry.find(word) is None and (whole := registry.reading(text)) is not None:
        return _parse(whole)
    placed = _PLACED.fullmatch(text)
    if placed and (known := registry.find(placed[1]) or registry.find(placed[1], stem=True)) and known.placed:
        return _canonical(Measure(known.name, None, ((known.placed, float(placed[2])),)), text)
    # trec_eval carries the cut-off in the name; a registered name that ends so wins over that reading.
    cut = _CUT.fullmatch(text)
    if cut and not registry.find(text) and (known := registry.find(cut[1], stem=True)):
        return _canonical(Measure(known.name, _in_range(text, int(cut[2]))), text)
    found = registry.find(word)
    if found is None:
        raise MeasureError(f"unknown measure {text}: {registry.suggestion(word, rest)}{_foreign().hint(word)}")
    params: dict[str, ParameterValue] = {}
    condensed = False
    if rest.startswith("("):
        inside, rest = _bracket(text, rest)
        for item in _items(inside):
            only = re.fullmatch(_JUDGED_ONLY + r"\s*=\s*(True|False)", item)
            if only and _JUDGED_ONLY not in found.parameters:
                condensed = only[1] == "True"
                continue
            key, value = _parameter(item, found, text)
            key, value = found.translations.get((key, str(value)), (key, value))
            if key in params:
                raise MeasureError(f"{text}: the parameter {key} is given twice.")
            params[key] = value
    cutoff: int | None = None
    if rest.strip():
        mark, _, number = rest.strip().partition("@")
        if mark or not rest.strip().startswith("@"):
            raise _malformed(text, f"after {text[: len(text) - len(rest)]} only a cut-off such as @10 may follow")
        if not _WHOLE.fullmatch(number.strip()):
            raise _bad_cutoff(text, number.strip() or "empty")
        cutoff = _in_range(text, int(number))
    measure = _canonical(Measure(found.name, cutoff, tuple(params.items())), text)
    return Measure("condensed", None, ((_NESTED, measure),)).checked() if condensed else measure


def _foreign() -> Any:
    # It imports this module, and is needed for few names.
    return importlib.import_module("pytest_retrieval_eval.measures.foreign")


def _bad_cutoff(text: str, given: str) -> MeasureError:
    return MeasureError(f"{text}: the cut-off must be a whole number of at least 1, not {given}.")


def _in_range(text: str, cutoff: int) -> int:
    if cutoff < 1:
        raise MeasureError(f"{text}: the cut-off must be at least 1, for it counts the ranks that are looked at.")
    if cutoff > _DEEPEST:
        raise MeasureError(f"{text}: the cut-off is beyond any ranking; the largest is {_DEEPEST}.")
    return cutoff


def _malformed(text: str, why: str) -> MeasureError:
    return MeasureError(
        f"{text!r} is no measure: {why}. Expected name@k or name(parameter=value)@k, as in recall@5 or "
        "ndcg(gain=exp)@10."
    )


def _bracket(text: str, rest: str) -> tuple[str, str]:
    """What stands between the bracket that opens ``rest`` and the one that closes it, and what follows."""
    depth = 0
    for place, char in enumerate(rest):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return rest[1:place], rest[place + 1 :]
    raise _malformed(text, "a bracket is not closed")


def _items(inside: str) -> list[str]:
    """Split at the commas that stand in no inner bracket."""
    items, depth, start = [], 0, 0
    for place, char in enumerate(inside):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            items.append(inside[start:place])
            start = place + 1
    items.append(inside[start:])
    return [item.strip() for item in items] if inside.strip() else []


def _parameter(item: str, found: registry.Definition, text: str) -> tuple[str, ParameterValue]:
    key, equals, value = (part.strip() for part in item.partition("="))
    nested = found.parameters.get(_NESTED)
    if nested and nested.measure and not (equals and (key == _NESTED or key in found.parameters)):
        return _NESTED, _parse(item)
    if not equals or not _HEAD.fullmatch(key):
        raise _malformed(text, f"{repr(item) if item else 'an empty place'} is no parameter=value")
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    declared = found.parameters.get(key)
    if declared and declared.measure:
        return key, _parse(value)
    if _NUMBER.fullmatch(value):
        return key, float(value)
    if _WORD.fullmatch(value):
        return key, value
    given = repr(value) if value else "nothing"
    raise _malformed(text, f"{given} is no value for {key}: it is neither a number nor a word")


def _canonical(measure: Measure, text: str) -> Measure:
    """The measure without its defaults, after all that can be wrong with it has been looked at."""
    found = registry.find(measure.name)
    if found is None or found.name != measure.name:
        rest = text.removeprefix(measure.name)
        raise MeasureError(f"unknown measure {text}: {registry.suggestion(measure.name, rest)}")
    params = []
    for key, value in measure.params:
        declared = found.parameters.get(key)
        if declared is None:
            raise MeasureError(
                f"{text}: {found.name} has no parameter {key}"
                + (f"; {did_you_mean(key, found.parameters)}" if found.parameters else ", nor any other.")
            )
        _check(declared, key, value, text)
        if isinstance(value, Measure):
            value = value.checked()
        if declared.kept or value != declared.default:
            params.append((key, value))
    for key, declared in found.parameters.items():
        if declared.default is None and key not in dict(params):
            raise MeasureError(f"{text}: {found.name} needs the parameter {key}: {declared.meaning}.")
    inside = str(Measure(found.name, None, tuple(params)))
    if found.cutoff == "required" and measure.cutoff is None:
        raise MeasureError(f"{text}: {found.name} needs a cut-off; write {inside}@5, or another k.")
    if found.cutoff == "none" and measure.cutoff is not None:
        hint = ", or give the cut-off to the measure inside" if measure.inner else ""
        raise MeasureError(f"{text}: {found.name} has no cut-off; write {inside}{hint}.")
    return Measure(found.name, measure.cutoff, tuple(params))


def _check(declared: registry.Parameter, key: str, value: ParameterValue, text: str) -> None:
    if declared.measure:
        if not isinstance(value, Measure):
            raise MeasureError(f"{text}: {key} must be a measure such as ndcg@10, not {_print(value)}.")
        return
    if isinstance(value, float) and declared.number:
        if math.isfinite(value) and declared.above < value < declared.below:
            return
        if declared.closed and value in (declared.above, declared.below):
            return
        if declared.closed:
            raise MeasureError(
                f"{text}: {key} must be a number from {_print(declared.above)} to {_print(declared.below)}, not "
                f"{_print(value)}: it is {declared.meaning}."
            )
        bounds = [f"above {_print(declared.above)}"] if math.isfinite(declared.above) else []
        bounds += [f"below {_print(declared.below)}"] if math.isfinite(declared.below) else []
        raise MeasureError(
            f"{text}: {key} must be a number {' and '.join(bounds)}, not {_print(value)}: it is {declared.meaning}."
        )
    if isinstance(value, str) and (declared.text or value in declared.words):
        return
    if declared.words and isinstance(value, str):
        raise MeasureError(f"{text}: {key} cannot be {value}; {did_you_mean(value, declared.words)}")
    expected = [*(["a number"] if declared.number else []), *declared.words]
    raise MeasureError(
        f"{text}: {key} cannot be {_print(value)}; expected {' or '.join(expected)}: it is {declared.meaning}."
    )
