"""The grade in the reply of a judge. There is no default: a reply without one clear grade has none.

A reply is read as JSON wherever it has JSON: the whole of it, a fenced block, or objects between other words. What is
almost JSON is repaired by a library, and the repaired grade counts only where the reply itself states it. Only a
reply without any object is searched for a line that ends in a stated grade ("Final score: 0").
"""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import SettingsError

PARSER_VERSION = 1
"""Part of a judge's identity: another way to read replies is another judge."""

# Characters behind its thoughts, beyond which a reply is not looked through for a grade.
_LONGEST = 100_000

Outcome = Literal["graded", "unreadable", "ambiguous", "out of scale", "truncated", "refused", "error"]
"""What became of a pair; only ``graded`` has a grade."""


@dataclass(frozen=True)
class Scale:
    """The grades that a judge may give: the whole numbers from ``least`` to ``most``.

    >>> 2 in Scale(0, 2), 3 in Scale(0, 2), str(Scale(0, 3))
    (True, False, '0 to 3')
    """

    least: int
    most: int

    def __post_init__(self) -> None:
        whole = all(isinstance(end, int) and not isinstance(end, bool) for end in (self.least, self.most))
        if not whole or self.least >= self.most:
            raise SettingsError(
                f"a scale from {self.least!r} to {self.most!r}; expected two whole numbers, least first"
            )

    def __contains__(self, grade: object) -> bool:
        return isinstance(grade, int) and not isinstance(grade, bool) and self.least <= grade <= self.most

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


@dataclass(frozen=True)
class Parsed:
    """The grade of a reply and what was said with it; or None, the kind of failure and a sentence about it."""

    grade: int | None
    outcome: Outcome
    detail: str = ""
    said: str = ""


class _NoGradeError(Exception):
    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome: Outcome = outcome


def parse(reply: str, scale: Scale, *, key: str = "grade", cut: bool = False) -> Parsed:
    """The grade that a reply states; ``cut`` says that the reply was cut off at its largest length.

    Where several grades are stated they must be equal. A grade is a whole number of the scale, also as ``2.0`` or
    ``"2"``; never true, null, a fraction, or digits of another script.

    >>> parse('{"thought": "It names the date.", "grade": 2}', Scale(0, 2))
    Parsed(grade=2, outcome='graded', detail='', said='It names the date.')
    >>> parse("On a scale of 0 to 3 it is far off. Final score: 0", Scale(0, 3)).grade
    0
    >>> parse("10", Scale(0, 3))
    Parsed(grade=None, outcome='out of scale', detail='the grade is 10; expected a whole number from 0 to 3', said='')
    >>> parse("I cannot judge this.", Scale(0, 3)).outcome
    'refused'
    """
    try:
        grade, said = _grade(reply, scale, key, cut)
    except _NoGradeError as error:
        return Parsed(None, error.outcome, str(error))
    return Parsed(grade, "graded", said=said)


def checked(value: object, scale: Scale) -> Parsed:
    """A value as a grade of the scale, by the same rules.

    >>> checked(2.0, Scale(0, 3)).grade, checked(True, Scale(0, 3)).grade
    (2, None)
    """
    try:
        return Parsed(_checked(value, scale), "graded")
    except _NoGradeError as error:
        return Parsed(None, error.outcome, str(error))


def _grade(reply: str, scale: Scale, key: str, cut: bool) -> tuple[int, str]:
    if cut:
        raise _NoGradeError("truncated", "the reply was cut off at the largest number of tokens")
    text = _without_thinking(reply)
    if not text:
        raise _NoGradeError("unreadable", "the reply is empty")
    if len(text) > _LONGEST:
        raise _NoGradeError("unreadable", f"the reply is {len(text):,} characters long; expected a grade")
    whole = _whole_number(text)
    if whole is not None:
        return _checked(whole, scale), ""
    found: list[tuple[object, str]] = []
    broken: list[str] = []
    for region, value in _regions(text):
        if value is None:
            broken.append(region)
        else:
            found += _stated(value, key)
    for region in broken:
        found += _repaired(region, key)
    if not found and not broken:
        return _in_prose(text, scale), ""
    if not found:
        raise _NoGradeError("unreadable", f"the reply has no {key!r}: {excerpt(text, 120)}")
    grades = {_checked(value, scale) for value, _ in found}
    if len(grades) > 1:
        shown = " and ".join(map(str, sorted(grades)))
        raise _NoGradeError("ambiguous", f"the reply states the grades {shown}: {excerpt(text, 120)}")
    return grades.pop(), next((said for _, said in reversed(found) if said), "")


# --- the value -------------------------------------------------------------------------------------


class _Twice:
    """The value of a key that stands twice in an object, with different values."""


def _checked(value: object, scale: Scale) -> int:
    """The value as a grade of the scale."""
    grade: object = value
    if isinstance(value, _Twice):
        raise _NoGradeError("ambiguous", "the reply states its grade twice, and differently")
    if isinstance(value, str):
        grade = _whole_number(value.strip())
    elif isinstance(value, numbers.Integral) or (isinstance(value, float) and value.is_integer()):
        grade = value if isinstance(value, bool) else int(value)
    if not isinstance(grade, int) or isinstance(grade, bool):
        raise _NoGradeError("unreadable", f"the grade is {excerpt(value)}; expected a whole number from {scale}")
    if grade not in scale:
        raise _NoGradeError("out of scale", f"the grade is {excerpt(value)}; expected a whole number from {scale}")
    return grade


def _whole_number(text: str) -> int | None:
    # Not str.isdigit, for which "²" and digits of every script are digits.
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


def _stated(value: object, key: str) -> list[tuple[object, str]]:
    """(grade, other words) of an object that has the key, or of those inside one that has not."""
    if isinstance(value, list):
        return [pair for inner in value for pair in _stated(inner, key)]
    if not isinstance(value, dict):
        return []
    named = [inner for name, inner in value.items() if name.strip().lower() == key.lower()]
    if not named:
        return [pair for inner in value.values() for pair in _stated(inner, key)]
    said = next((inner.strip() for inner in value.values() if isinstance(inner, str) and len(inner.strip()) > 1), "")
    return [(inner, said) for inner in named]


# --- where the JSON is --------------------------------------------------------------------------------


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        made[name] = _Twice() if name in made and made[name] != value else value
    return made


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def _regions(text: str) -> Iterator[tuple[str, object]]:
    """Each outermost ``{…}`` as (its text, its value); the value is None where it is not JSON.

    What stands inside something that is not JSON is not looked at by itself: it may be part of a text in it. An
    object that does not end is a reply that was cut off.
    """
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = None, _closing(text, at)
            if end < 0:
                raise _NoGradeError("truncated", f"an object in the reply does not end: {excerpt(text, 120)}") from None
        yield text[at:end], value
        at = text.find("{", end)


def _closing(text: str, start: int) -> int:
    """Behind the brace that closes the one at ``start``; -1 where none does."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return -1


def _without_thinking(reply: str) -> str:
    """The reply behind the thoughts that some models put before it, in tags of their own."""
    text = reply.strip()
    if text.startswith("<think>"):
        _, end, text = text.partition("</think>")
        if not end:
            raise _NoGradeError("truncated", "the reply has thoughts only, which do not end")
    return text.strip()


# --- what is almost JSON ------------------------------------------------------------------------------


def _repaired(region: str, key: str) -> list[tuple[object, str]]:
    """(grade, other words) of an object that is not quite JSON, where what it says can be checked.

    The library closes, quotes and guesses; what it makes of a region counts only if each place of the region that
    gives the key a value gives it the value that the library found.
    """
    name = re.escape(key)
    values = re.findall(rf"(?i)(?<![\w])[\"'“”]?{name}[\"'“”]?\s*[:=]\s*([^,}}\n]*)", region)
    if not values:
        return []
    try:
        import json_repair
    except ImportError:
        raise SettingsError(
            "reading the replies of a judge needs the package json-repair; install it with: "
            "pip install 'pytest-retrieval-eval[judge]'"
        ) from None
    try:
        made = json_repair.loads(region)
    except Exception as error:  # someone else's parser, on any text
        raise _NoGradeError("unreadable", f"the reply is no JSON ({error}): {excerpt(region, 120)}") from None
    found = _stated(made, key)
    plain = {value.strip().strip("\"'“”").strip() for value in values}
    if len(plain) > 1:
        raise _NoGradeError("ambiguous", f"the reply gives {key!r} several values: {excerpt(region, 120)}")
    if len(found) != 1 or str(found[0][0]).strip() != plain.pop():
        raise _NoGradeError("unreadable", f"the reply is no JSON that can be repaired: {excerpt(region, 120)}")
    return found


# --- plain words ----------------------------------------------------------------------------------------

_LABEL = r"(?:final\s+|overall\s+)?(?:relevance\s+)?(?:grade|score|rating|relevance)"
# A label, a number, and the rest of the line.
_STATEMENT = re.compile(rf"(?i)\b{_LABEL}\b[\s*_`]*(?:is|=|:)[\s*_`]*([+-]?[0-9]+(?:\.[0-9]+)?)([^\n]*)")
_DECLINES = re.compile(
    r"(?i)\b(?:can(?:no|')t|can’t|could not|unable to|not able to|won(?:'|’)t|will not|refuse to|decline to)\b"
)


def _in_prose(text: str, scale: Scale) -> int:
    """The grade at the end of a line that states it, where nothing else in the reply speaks against it."""
    if _DECLINES.search(text):
        raise _NoGradeError("refused", f"the judge declined: {excerpt(text, 120)}")
    statements = _STATEMENT.findall(text)
    if not statements:
        raise _NoGradeError("unreadable", f"the reply states no grade: {excerpt(text, 120)}")
    grades = set()
    for number, rest in statements:
        of = re.match(r"[\s*_`]*(?:/|out\s+of\b)[\s*_`]*([0-9]+)(.*)", rest)
        if of:  # "2 out of 3" on a scale to 3 is a grade, "10 out of 10" is none
            rest = of[2] if int(of[1]) == scale.most else "on another scale"
        if re.search(r"\w", rest):
            raise _NoGradeError("ambiguous", f"more follows the grade in its line: {excerpt(text, 120)}")
        grades.add(_checked(float(number), scale))
    if len(grades) > 1:
        raise _NoGradeError("ambiguous", f"the reply states several grades: {excerpt(text, 120)}")
    return grades.pop()
