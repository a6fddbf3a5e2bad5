"""What a judge has to reach before its grades count, and which labels of people say so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

from pytest_retrieval_eval.errors import SettingsError, did_you_mean

Mode = Literal["point", "lower"]
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a judge has to reach, and how many pairs it takes to say so.

    Args:
        tpr, tnr, kappa: the least of each.
        min_pairs: pairs with a label of people.
        min_not_relevant: those of them that people call not relevant. 30 are the least, 50 are better.
        mode: ``point`` holds the values against the thresholds, ``lower`` the lower ends of their intervals.

    The first three are shares from 0 to 1; what cannot be meant is a SettingsError.

    >>> Requirements(tpr=0.9, mode="lower")
    Requirements(tpr=0.9, tnr=0.85, kappa=0.6, min_pairs=100, min_not_relevant=30, mode='lower')
    """

    tpr: float = 0.85
    tnr: float = 0.85
    kappa: float = 0.60
    min_pairs: int = 100
    min_not_relevant: int = 30
    mode: Mode = "point"

    def __post_init__(self) -> None:
        for name in ("tpr", "tnr", "kappa"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value <= 1.0:
                raise SettingsError(f"{name}={value!r}: expected a number above 0, and not above 1")
        for name in ("min_pairs", "min_not_relevant"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise SettingsError(f"{name}={value!r}: expected a whole number of 1 or more")
        if self.mode not in MODES:
            raise SettingsError(f"mode={self.mode!r}: expected one of {', '.join(MODES)}")


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A judge that is to be held against people, as a test, a gate file and the command line name it.

    Args:
        name: the judge, a folder of the judgments or the beginning of its digest; the only one without.
        judgments: the folder of judgments.
        human: a file of the labels of people, instead of those that the folder has as held out.
        grades: a file of the judge's grades, with human.
        where: tags of queries, so that only held-out labels of these count; all without.
        rel: the grade from which on a document is relevant.
        tpr: the least share of relevant pairs that the judge calls so.
        tnr: the least share of pairs that are not relevant that the judge calls so.
        kappa: the least Cohen's kappa.
        mode: whether the values reach them (point), or the lower ends of their intervals (lower).
        min_pairs: the least pairs with a label of people.
        min_not_relevant: the least of them that are not relevant.
        allow_missing: how many of them may lack a grade of the judge.
    """

    name: str | None = None
    judgments: str | Path | None = None
    human: str | Path | None = None
    grades: str | Path | None = None
    where: Mapping[str, object] | None = None
    rel: float = 1.0
    tpr: float = 0.85
    tnr: float = 0.85
    kappa: float = 0.60
    mode: Mode = "point"
    min_pairs: int = 100
    min_not_relevant: int = 30
    allow_missing: int = 0

    def __post_init__(self) -> None:
        _ = self.requirements  # refuses what cannot be meant
        for name in ("name", "judgments", "human", "grades"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, (str, Path)) or not str(value).strip()):
                raise SettingsError(f"{name}={value!r}: expected a text")
        if self.where is not None and not (isinstance(self.where, Mapping) and self.where):
            raise SettingsError(f"where={self.where!r}: expected tags such as {{'type': 'policy'}}")
        if isinstance(self.rel, bool) or not isinstance(self.rel, (int, float)) or not math.isfinite(self.rel):
            raise SettingsError(f"rel={self.rel!r}: expected a grade")
        if type(self.allow_missing) is not int or self.allow_missing < 0:
            raise SettingsError(f"allow_missing={self.allow_missing!r}: expected a whole number")
        if (self.human is None) != (self.grades is None):
            raise SettingsError("human and grades go together: one is what people say, the other what the judge does")
        if self.human is not None and (self.name is not None or self.judgments is not None):
            raise SettingsError("human and grades are files of their own: leave name and judgments out")

    @classmethod
    def of(cls, values: Mapping[str, object]) -> JudgeCheck:
        """The check of a mapping; SettingsError for a key that is none.

        >>> JudgeCheck.of({"tpr": 0.9, "mode": "lower"}).requirements.mode
        'lower'
        """
        __tracebackhide__ = True
        known = [each.name for each in fields(cls)]
        for key in values:
            if key not in known:
                raise SettingsError(f"{key!r} is nothing that a judge is held to; {did_you_mean(str(key), known)}")
        return cls(**values)  # type: ignore[arg-type]

    @property
    def requirements(self) -> Requirements:
        """What is asked of the judge."""
        return Requirements(self.tpr, self.tnr, self.kappa, self.min_pairs, self.min_not_relevant, self.mode)
