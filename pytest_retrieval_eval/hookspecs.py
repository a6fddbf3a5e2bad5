"""What others may plug in, by pluggy hooks: in a conftest.py, in a plugin of pytest, or in a module of ``--plugin``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pytest_retrieval_eval.labels.judging.judge import Judge
    from pytest_retrieval_eval.measures.registry import Definition
    from pytest_retrieval_eval.readers.reading import Reader

hookspec = pluggy.HookspecMarker("pytest")

NAMED = {
    "pytest_retrieval_answer_metrics": "labels.answers",
    "pytest_retrieval_readers": "readers.config",
    "pytest_retrieval_judges": "labels.judging.config",
}
"""The hooks that give functions by name, and the module whose ``register`` and ``unregister`` take each."""


@hookspec
def pytest_retrieval_measures() -> Iterable[Definition]:  # type: ignore[empty-body]
    """Measures that this session knows beside the built-in ones: what ``@measure`` or ``Definition`` makes.

    Asked once, when pytest is configured or the conftest.py is found; the measures are taken out again at the
    end of the session.
    """


@hookspec
def pytest_retrieval_answer_metrics() -> Mapping[str, Callable[[str, str], float]]:  # type: ignore[empty-body]
    """Metrics of answers that this session knows beside KILT's: by name, a function of an answer and one gold answer.

    It gives a degree from 0 to 1; the best over the gold answers counts. Asked once, as for measures, and taken out
    again at the end of the session.
    """


@hookspec
def pytest_retrieval_readers() -> Mapping[str, Callable[[Mapping[str, object]], Reader]]:  # type: ignore[empty-body]
    """Kinds of readers that this session knows beside the built-in ones: by name, what makes a reader of its settings.

    The settings are those of the ini value, a gate file or a keyword without their ``kind``. Asked once, as for
    measures, and taken out again at the end of the session.
    """


@hookspec
def pytest_retrieval_judges() -> Mapping[str, Callable[[Mapping[str, object]], Judge]]:  # type: ignore[empty-body]
    """Kinds of judges beside the built-in ones: by name, what makes a judge of its settings without their ``kind``.

    The settings are those of ``judgments/judge.yaml`` or of another file. Asked once, as for measures, and taken out
    again at the end of the session.
    """
