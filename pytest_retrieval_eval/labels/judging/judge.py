"""What a judge is: it grades pairs of a query and a document, and says who it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.labels.judging.replies import Outcome, Scale
from pytest_retrieval_eval.readers.reading import identity_digest


@dataclass(frozen=True)
class Pair:
    """A query and a document to grade. A judge sees the texts, never the ids.

    >>> Pair("q1", "d7", "Who wrote it?", "It was written by Ann.").doc_id
    'd7'
    """

    query_id: str
    doc_id: str
    query: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Graded:
    """What a judge made of a pair: a grade of its scale, or None and why.

    ``outcome`` is ``graded``, or what stood in the way; then ``detail`` is a sentence about it. ``said`` are the
    judge's words beside the grade, ``truncated`` says that it saw only the beginning of the document, ``model`` is what
    a service says that it ran, ``votes`` are the grades of the members of a vote (None for one that gave none).
    """

    grade: int | None
    outcome: Outcome
    detail: str = ""
    said: str = ""
    truncated: bool = False
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    votes: tuple[int | None, ...] = ()


class Judge(Protocol):
    """Grades pairs. There is no default grade: a pair that got none comes back without one.

    ``identity`` holds everything that can change a grade, in JSON values: the kind, the model, the template, the
    scale, the examples, the version of the parser, the parameters, how documents are cut. None says that grades cannot
    be told apart from another judge's: they cannot be kept. ``floating`` is a sentence where the identity does not
    pin what it names (a model's name behind which the model may change), and empty where it does.
    """

    @property
    def identity(self) -> Mapping[str, object] | None:
        """Everything that can change a grade; None where that cannot be said."""
        ...

    @property
    def scale(self) -> Scale:
        """The grades that it may give."""
        ...

    @property
    def floating(self) -> str:
        """Why the identity does not pin the judge; empty where it does."""
        ...

    def grade(self, pairs: Sequence[Pair], *, repetition: int = 0) -> Iterator[tuple[int, Graded]]:
        """(index into ``pairs``, what became of it) of each pair once, as they are completed, in any order.

        ``repetition`` numbers further gradings of the same pairs, for the agreement of a judge with itself.
        """
        ...

    def close(self) -> None:
        """Free what the judge holds. It may be called more than once."""
        ...


def judge_digest(judge: Judge, *, allow_floating: bool = False) -> str:
    """The digest of a judge's identity, under which its grades are kept and used by gates: 64 hexadecimal digits.

    Raises SettingsError for a judge without an identity, and for one that is not pinned unless ``allow_floating``.

    >>> from pytest_retrieval_eval import CallableJudge, Scale
    >>> judge = CallableJudge(lambda query, text: int(query in text), Scale(0, 1), identity="holds the query, v1")
    >>> len(judge_digest(judge))
    64
    """
    if judge.identity is None:
        raise SettingsError(
            "the judge has no identity, so its grades cannot be told apart from another judge's: give it a text that "
            "names everything that can change a grade"
        )
    if judge.floating and not allow_floating:
        raise SettingsError(f"{judge.floating}; or allow floating names")
    return identity_digest(judge.identity)
