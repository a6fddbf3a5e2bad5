"""The stages of a retrieval pipeline by name, in their order, each with the run that it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_retrieval_eval.errors import DataError, GateError, did_you_mean

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run

# A name of a stage is part of a baseline's file name and of a measure's text.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def check_stage(name: object, what: str = "the name of a stage") -> str:
    """The name of a stage; DataError for what cannot be one.

    >>> check_stage("bm25")
    'bm25'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(
            f"{what} is made of letters, digits, _ and -, and begins with a letter, such as bm25; found {name!r}"
        )
    return name


class Stages(Mapping[str, "Run"]):
    """Stage → run, in pipeline order. A run is opened when it is asked for, and only once.

    >>> from pytest_retrieval_eval import Run
    >>> stages = Stages({"bm25": Run.of({"q": ["a"]}), "reranked": Run.of({"q": ["a"]})})
    >>> list(stages), stages["bm25"].ranking("q").docs
    (['bm25', 'reranked'], ['a'])
    >>> stages["rerank"]
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.GateError: there is no stage 'rerank'; did you mean reranked?
    """

    def __init__(self, stages: Mapping[str, Any], opened: Callable[[str, Any], Run] | None = None) -> None:
        """``opened(name, value)`` gives the run of a value that is none itself."""
        self._values = {check_stage(name): value for name, value in stages.items()}
        self._opened = opened
        self._runs: dict[str, Run] = {}

    def __getitem__(self, name: str) -> Run:
        if name not in self._values:
            none = "no stage is named by the fixture retrieval_stages or the ini value retrieval_stages"
            raise GateError(f"there is no stage {name!r}; {did_you_mean(name, self._values) if self._values else none}")
        if name not in self._runs:
            value = self._values[name]
            self._runs[name] = value if self._opened is None else self._opened(name, value)
        return self._runs[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Stages {', '.join(self._values) or '(none)'}>"
