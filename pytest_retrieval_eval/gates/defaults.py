"""What holds for the gates of a project that do not say otherwise: the ini value ``retrieval_defaults``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.gates.options import KEYWORDS, Options
from pytest_retrieval_eval.labels.labelling import ERAG
from pytest_retrieval_eval.labels.source import NAMES, is_pooled
from pytest_retrieval_eval.wording import shown

NAME = "retrieval_defaults"

# Values with an ini value of their own.
_ELSEWHERE = {
    "dataset": "retrieval_datasets",
    "run": "retrieval_run",
    "baseline": "retrieval_baseline",
    "reader": "retrieval_reader",
}
# A default of these is for the gates that read it, and stands alone; here is what makes a gate read it.
_READ_WITH: dict[str, dict[str, object]] = {
    "allow": {"rule": "each"},
    "min_n": {"by": "type"},
    "correction": {"rule": "significant"},
    "normalise": {"labels": "contains(kilt)"},
    "pool": {"labels": "contains(kilt)"},
    "answer_metric": {"labels": ERAG},
}


def check_defaults(defaults: Mapping[str, object]) -> None:
    """Refuse a default that no gate could use; a ``SettingsError`` names the ini value."""
    known = [name for name in KEYWORDS if name not in _ELSEWHERE]
    for name, value in defaults.items():
        if name in _ELSEWHERE:
            raise SettingsError(f"{NAME}: {name} stands in the ini value {_ELSEWHERE[name]}")
        if name not in known:
            raise SettingsError(f"{NAME}: a gate has no default {shown(name)!r}; {did_you_mean(name, known)}")
        if value is None:
            raise SettingsError(f"{NAME}: {name} has no value; give one, or leave the line out")
        if name == "answer_metric" and isinstance(value, str):
            continue  # whether there is one of that name is known once the hooks have been asked
        try:
            Options.of(**{**_READ_WITH.get(name, {}), name: value})
        except GateError as error:
            raise SettingsError(f"{NAME}: {error}") from None


def with_defaults(defaults: Mapping[str, object], keywords: Mapping[str, object], *, several: bool = False) -> Options:
    """Options from ``keywords``, and from the defaults where they are silent; None as a keyword is no silence.

    A default that the gate does not read (``allow`` under another rule, ``min_n`` without slices, ``correction``
    for one comparison, ``pool`` with labels that do not depend on the runs, ``answer_metric`` where nobody reads) is
    left out; ``several``: the gate is a family of comparisons.

    >>> with_defaults({"rule": "each", "allow": 2, "min_n": 20}, {}).allow
    2
    >>> with_defaults({"rule": "each", "allow": 2}, {"rule": "mean"}).allow
    0
    """
    __tracebackhide__ = True
    used = {name: value for name, value in defaults.items() if name not in keywords}
    both = used | dict(keywords)
    labels = both.get("labels") or "qrels"
    fixed = not _pooled(labels)
    unread = {
        "allow": both.get("rule") != "each",
        "min_n": both.get("by") is None,
        "correction": both.get("rule") != "significant" or not (several or both.get("by") is not None),
        "normalise": fixed,
        "pool": fixed,
        "answer_metric": not reads_answers(labels),
        "stage": both.get("run") is not None,
    }
    used = {name: value for name, value in used.items() if not unread.get(name, False)}
    try:
        return replace(Options.of(**used, **keywords), defaulted=used)
    except GateError as error:
        name_defaults(error, used)
        raise error.with_traceback(None) from None


def reads_answers(labels: object) -> bool:
    """Whether a reader's answers are among the sources of these labels."""
    return labels == ERAG or (isinstance(labels, (list, tuple)) and ERAG in labels)


def _pooled(labels: object) -> bool:
    names = [labels] if isinstance(labels, str) else labels if isinstance(labels, (list, tuple)) else []
    # An unknown name is an error of its own, which Options raises.
    return all(name in NAMES for name in names) and is_pooled(names)


def name_defaults(error: GateError, used: Mapping[str, object]) -> None:
    """Say in ``error`` which of the keywords that it speaks of stand in the ini file."""
    text = str(error)
    told = [f"{name}={value!r}" for name, value in used.items() if re.search(rf"\b{name}=", text)]
    if told and NAME not in text:
        verb = "is a default" if len(told) == 1 else "are defaults"
        said = f"{' and '.join(told)} {verb} of this project (ini value {NAME}), and a gate may say otherwise"
        error.args = (f"{text}; {said}",)


def told_defaults(used: Mapping[str, object]) -> str:
    """The defaults in words.

    >>> told_defaults({"rule": "each", "allow": 2})
    "rule='each', allow=2 (ini value retrieval_defaults)"
    """
    return f"{', '.join(f'{name}={shown(repr(value), 60)}' for name, value in used.items())} (ini value {NAME})"
