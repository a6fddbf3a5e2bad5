"""What can go wrong, in four classes; how a mistyped name is answered, and how what a user's own code raised is told.

``GateFailure`` says that retrieval got worse. ``GateError`` and its two subclasses say that nothing could be
measured, and what to do about it: they are never assertion failures, so that no test can take "could not be
measured" for "measured and bad", or for "fine".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_retrieval_eval.gates.verdict import Verdict

_OURS = __name__.partition(".")[0]


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


def raised(error: BaseException, most: int = 1000) -> str:
    """What a user's own code raised, for a sentence: its kind, its text (``most`` characters of it), and its place.

    The place is the innermost line that is neither ours nor an installed package's; where there is none, the innermost
    line of a package.

    >>> try:
    ...     raise ValueError("no such index")
    ... except ValueError as error:
    ...     raised(error)
    'ValueError: no such index'
    """
    try:
        text = str(error)
    except Exception:  # someone else's class: the sentence must not fail on it
        text = "(its text cannot be had)"
    # Half of a surrogate pair could not be written to a file or a terminal.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    # What cannot be parsed says its own place, and was raised where somebody imported it.
    place = None if isinstance(error, SyntaxError) else _place(error.__traceback__)
    return f"{type(error).__name__}{f': {text[:most]}' if text else ''}{f' ({place})' if place else ''}"


def _place(traceback: TracebackType | None) -> str | None:
    import os

    home, library = os.path.join(os.getcwd(), ""), os.path.join(os.path.dirname(os.__file__), "")
    found = {True: "", False: ""}  # whether the line is the user's own
    while traceback is not None:
        code, name = traceback.tb_frame.f_code, str(traceback.tb_frame.f_globals.get("__name__", ""))
        path = code.co_filename
        if not path.startswith("<") and name.partition(".")[0] != _OURS:
            packaged = path.startswith(library) or "site-packages" in path or "dist-packages" in path
            found[not packaged] = f"{path.removeprefix(home)}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return found[True] or found[False] or None
