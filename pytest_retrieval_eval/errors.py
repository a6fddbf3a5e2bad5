"""What can go wrong, in four classes, and how a mistyped name is answered.

``GateFailure`` says that retrieval got worse. ``GateError`` and its two subclasses say that nothing could be
measured, and what to do about it: they are never assertion failures, so that no test can take "could not be
measured" for "measured and bad", or for "fine".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.verdict import Verdict


class GateError(Exception):
    """A question about retrieval that could not be answered: nothing was measured."""


class DataError(GateError, ValueError):
    """A file or value that cannot be what it claims to be: says where, what was expected, and what to do."""


class MeasureError(GateError, ValueError):
    """A measure, parameter or cut-off that does not exist or does not fit the data."""


class SettingsError(GateError, ValueError):
    """An option, ini value or marker argument that cannot be used."""


class GateFailure(AssertionError):
    """A gate was measured and did not hold; ``verdict`` carries the evidence."""

    def __init__(self, text: str, verdict: Verdict) -> None:
        super().__init__(text)
        self.verdict = verdict


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of an error sentence: the closest known name, or the list of all where none is close.

    >>> did_you_mean("recal@5", ["recall@5", "ndcg@5"])
    'did you mean recall@5?'
    >>> did_you_mean("x", ["b", "a"])
    'known: a, b'
    """
    names = sorted(set(known))
    import difflib  # an error has time for it

    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return "known: " + (", ".join(names) if names else "none")
