"""One judgment as a line of a file, and what several lines on the same texts come to."""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_retrieval_eval.collection.formats.files import PathLike, excerpt, json_id, json_lines, json_number
from pytest_retrieval_eval.errors import DataError, SettingsError, did_you_mean

Contradictions = Literal["refuse", "first", "max", "median"]
"""What becomes of different grades of one pair: an error, or the grade given first, the largest, the middle one."""

Split = Literal["dev", "heldout"]
PARTS: tuple[str, ...] = get_args(Split)

Key = tuple[str, str, str, str]
"""Query, hash of its text, document, hash of its text: what a grade is about."""

_HASH = re.compile(r"[0-9a-f]{16}")
_DIGITS = 16


def text_hash(text: str) -> str:
    """The hash of a text that was judged: the first 16 hexadecimal digits of its SHA-256.

    >>> text_hash("Refunds take 14 days."), text_hash("Refunds take 15 days.")
    ('a2bf126b847a58be', '7bf1455bd3da0b74')
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class Judgment:
    """A grade, and the texts that it holds for.

    ``q`` and ``d`` are the ids of query and document, ``qh`` and ``dh`` the hashes of the texts that were read
    (:func:`text_hash`), ``g`` the grade, ``at`` the time (ISO 8601, UTC), ``who`` gave it: a person, or the model
    that the judge's service said it ran. ``part`` is ``dev`` or ``heldout`` for the labels of people, ``r`` counts
    further gradings of the same pair by one judge, for its agreement with itself. ``w`` says for how many pairs of the
    pool a label of a sample stands.
    """

    q: str
    qh: str
    d: str
    dh: str
    g: float
    at: str = ""
    who: str = ""
    part: str | None = None
    r: int = 0
    w: float | None = None

    @property
    def key(self) -> Key:
        """What the grade is about."""
        return self.q, self.qh, self.d, self.dh

    @property
    def said(self) -> tuple[Key, int, float, str | None]:
        """What the row says of which texts: rows that agree in it repeat each other."""
        return self.key, self.r, self.g, self.part

    @property
    def line(self) -> str:
        """The line of a file; equal judgments have equal lines.

        >>> Judgment("q1", "0" * 16, "d7", "1" * 16, 2.0, "2026-01-31", "ann").line
        '{"q":"q1","qh":"0000000000000000","d":"d7","dh":"1111111111111111","g":2,"at":"2026-01-31","who":"ann"}'
        """
        row: dict[str, object] = {"q": self.q, "qh": self.qh, "d": self.d, "dh": self.dh}
        row |= {"g": int(self.g) if self.g == int(self.g) else self.g, "at": self.at, "who": self.who}
        if self.part is not None:
            row["part"] = self.part
        if self.r:
            row["r"] = self.r
        if self.w is not None:
            row["w"] = self.w
        return to_line(row)

    @property
    def order(self) -> tuple[str, str, str, str, int, float, str, str]:
        """Where the line stands in a file."""
        return self.q, self.d, self.qh, self.dh, self.r, self.g, self.at, self.who


def to_line(row: Mapping[str, object]) -> str:
    """A row as JSON in one line, the same for the same row."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def judgment_of(row: Mapping[str, object], where: str) -> Judgment:
    """The judgment in a line of a file; what is missing or no grade is a DataError that says where."""
    for name in ("q", "qh", "d", "dh", "g"):
        if name not in row:
            raise DataError(f"{where}: a judgment needs q, qh, d, dh and g, and there is no {name!r}")
    for name in ("qh", "dh"):
        check_hash(row[name], where, name)
    grade = json_number(row["g"], where, "grade")
    if not math.isfinite(grade):
        raise DataError(f"{where}: the grade is {grade}; expected a finite number")
    part, times = row.get("part"), row.get("r", 0)
    if part is not None and part not in PARTS:
        raise DataError(f"{where}: the part is {excerpt(part)}; {did_you_mean(str(part), PARTS)}")
    if not isinstance(times, int) or isinstance(times, bool) or times < 0:
        raise DataError(f"{where}: the repetition is {excerpt(times)}; expected a whole number")
    texts = [row.get(name, "") for name in ("at", "who")]
    weight = None if row.get("w") is None else json_number(row["w"], where, "weight")
    if weight is not None and not 0 < weight < math.inf:
        raise DataError(f"{where}: the weight is {weight:g}; expected a number above 0")
    if not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: 'at' and 'who' are texts, not {excerpt(texts)}")
    return Judgment(
        json_id(row["q"], where),
        str(row["qh"]),
        json_id(row["d"], where),
        str(row["dh"]),
        grade,
        str(texts[0]),
        str(texts[1]),
        None if part is None else str(part),
        times,
        weight,
    )


def check_hash(value: object, where: str, name: str) -> str:
    """A hash as it was written by :func:`text_hash`, or DataError."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise DataError(f"{where}: {name!r} is {excerpt(value)}; expected {_DIGITS} hexadecimal digits")
    return value


def read_rows(path: PathLike) -> Iterator[tuple[Judgment, str]]:
    """The judgments of a file, each with its place."""
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        yield judgment_of(row, where), where


def without_repeats(rows: Iterable[Judgment]) -> list[Judgment]:
    """The rows in the order of a file; of those that say the same of the same texts, the earliest.

    Rows that contradict each other are all kept.
    """
    kept: dict[tuple[object, ...], Judgment] = {}
    for row in sorted(rows, key=lambda row: row.order):
        kept.setdefault(row.said, row)
    return list(kept.values())


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Different grades of one pair of texts, with the places of the lines that give them."""

    key: Key
    grades: tuple[float, ...]
    places: tuple[str, ...]

    def __str__(self) -> str:
        said = " and ".join(f"{grade:g} ({place})" for grade, place in zip(self.grades, self.places, strict=True))
        return f"query {self.key[0]!r}, document {self.key[2]!r} has the grades {said}"


def settled(
    key: Key, given: Sequence[tuple[Judgment, str]], how: Contradictions
) -> tuple[Judgment, Contradiction | None]:
    """The grade of a pair out of several lines, and the contradiction that there was, if any.

    ``median`` of an even number is the lower of the two in the middle, so that it is a grade that somebody gave.
    """
    by_grade: dict[float, tuple[Judgment, str]] = {}
    for row, place in given:
        by_grade.setdefault(row.g, (row, place))
    if len(by_grade) == 1:
        return given[0][0], None
    several = list(by_grade.values())
    found = Contradiction(key, tuple(row.g for row, _ in several), tuple(place for _, place in several))
    if how == "refuse":
        raise DataError(
            f"{found}: remove the line that is wrong, or take the first, max or median of them (contradictions=…)"
        )
    if how == "max":
        return by_grade[max(by_grade)][0], found
    if how == "median":
        return by_grade[statistics.median_low([row.g for row, _ in given])][0], found
    return min(given, key=lambda each: (each[0].at, each[0].g))[0], found


def check_contradictions(how: object) -> Contradictions:
    """What to do with contradictions, or SettingsError.

    >>> check_contradictions("maximum")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: contradictions 'maximum'; did you mean max?
    """
    if how not in get_args(Contradictions):
        raise SettingsError(f"contradictions {how!r}; {did_you_mean(str(how), get_args(Contradictions))}")
    return how  # type: ignore[return-value]
