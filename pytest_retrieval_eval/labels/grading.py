"""A judge works through pairs: each grade is in the journal when it arrives, and a pair without one is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.formats.files import excerpt, locked
from pytest_retrieval_eval.errors import GateError, raised
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments, now
from pytest_retrieval_eval.labels.pool import key_of
from pytest_retrieval_eval.labels.store.failures import Failure
from pytest_retrieval_eval.labels.store.journal import side_folder
from pytest_retrieval_eval.labels.store.rows import Key
from pytest_retrieval_eval.readers.reading import NOT_ASKED

if TYPE_CHECKING:
    from pytest_retrieval_eval.labels.judging.judge import Graded, Judge, Pair
    from pytest_retrieval_eval.labels.judging.replies import Scale

_END = object()


@dataclass(slots=True)
class Filled:
    """What became of pairs: how many had a grade, got one, were failed, or were not asked at all, and why."""

    judge: str
    pairs: int
    reused: int = 0
    graded: int = 0
    failures: list[Failure] = field(default_factory=list)
    left: list[Key] = field(default_factory=list)
    stopped: str = ""
    tokens: tuple[int, int] = (0, 0)

    @property
    def complete(self) -> bool:
        """Whether every pair has a grade now."""
        return self.reused + self.graded == self.pairs

    @property
    def share(self) -> float:
        """The share of the pairs that have a grade now."""
        return (self.reused + self.graded) / self.pairs if self.pairs else 1.0


def fill_judgments(
    judgments: Judgments,
    judge: Judge,
    pairs: Iterable[Pair],
    *,
    repetition: int = 0,
    also_human: bool = False,
    allow_floating: bool = False,
    told: Callable[[Graded], object] | None = None,
) -> Filled:
    """Ask a judge for the pairs that have no grade of this judge yet, nor one of people.

    A pair that fails is not tried again by this call: the next one asks for it. ``also_human`` asks for pairs that
    people have judged as well, to hold the judge against them; ``repetition`` from 1 asks for pairs again, beside the
    grades that count. ``told`` hears of each grade. Whatever ends the call, what came is kept, and what is in the
    journal is put into the files; one process at a time judges for one judge, since two would pay twice. A judge that
    is not pinned is a SettingsError unless ``allow_floating``; one that raises, or gives what is no grade, a GateError.

    >>> import tempfile
    >>> from pytest_retrieval_eval import CallableJudge, Judgments, Pair, Scale
    >>> judge = CallableJudge(lambda query, text: int("Ann" in text), Scale(0, 1), identity="names Ann, v1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     filled = fill_judgments(Judgments(folder), judge, [Pair("q1", "d7", "Who?", "Ann did.")])
    >>> filled.graded, filled.reused, filled.complete
    (1, 0, True)
    """
    kept = judgments.keep(judge, allow_floating=allow_floating)
    taken = (
        f"another process is judging for {kept.name} in {judgments.folder}, and both would pay for the same pairs: "
        "wait for it"
    )
    with locked(side_folder(judgments.folder) / f"{kept.name}.judging", taken=taken):
        try:
            return _fill(judgments, judge, kept.name, pairs, repetition, also_human, told)
        finally:
            judgments.compact()


def _fill(
    judgments: Judgments,
    judge: Judge,
    name: str,
    pairs: Iterable[Pair],
    repetition: int,
    also_human: bool,
    told: Callable[[Graded], object] | None,
) -> Filled:
    by_key = {key_of(pair): pair for pair in pairs}
    known = _known(judgments, name, by_key, repetition, also_human)
    asked = {key: pair for key, pair in by_key.items() if key not in known}
    filled = Filled(name, len(by_key), len(by_key) - len(asked))
    if not asked:
        return filled
    attempts = {each.key: each.attempts for each in judgments.failures(name)}
    keys = list(asked)
    left = set(range(len(keys)))
    given: object = judge.grade(list(asked.values()), repetition=repetition)
    if not isinstance(given, Iterable):
        raise GateError(f"grade() of the judge returned {excerpt(given)}; expected pairs of an index and a Graded")
    gradings = iter(given)

    def keep(each: object) -> Graded:
        index, graded = _checked(each, left, judge.scale)
        left.remove(index)
        _keep(judgments, filled, keys[index], graded, repetition, attempts)
        return graded

    try:
        for each in iter(lambda: _next(gradings), _END):
            graded = keep(each)
            if told is not None:
                told(graded)
    except BaseException:  # also of Ctrl-C: what was answered meanwhile is paid for
        _close(gradings)
        with suppress(GateError):  # the reason why this ends is another, and is to be heard
            for each in iter(lambda: _next(gradings), _END):
                keep(each)
        raise
    finally:
        _close(gradings)
    return filled


def _close(gradings: object) -> None:
    close = getattr(gradings, "close", None)
    if close is not None:
        close()


def _next(gradings: Iterator[object]) -> object:
    """What a judge gives next, or _END; whatever it raises is a GateError."""
    try:
        return next(gradings, _END)
    except GateError:
        raise
    except Exception as error:  # anyone may write a judge
        raise GateError(f"the judge raised {raised(error)}") from error


def _checked(given: object, left: set[int], scale: Scale) -> tuple[int, Graded]:
    """What a judge gave, as its ``grade`` promises it: anyone may write a judge, and what is no grade is not kept."""
    from pytest_retrieval_eval.labels.judging.judge import Graded

    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], Graded):
        raise GateError(f"the judge gave {excerpt(given)}; expected pairs of a pair's index and a Graded")
    index, graded = given
    if isinstance(index, bool) or index not in left:
        raise GateError(f"the judge graded pair {excerpt(index)}, which it was not asked for or has graded before")
    if graded.grade is not None and (type(graded.grade) is not int or graded.grade not in scale):
        raise GateError(f"the judge gave the grade {excerpt(graded.grade)}, and its scale is {scale}")
    return index, graded


def _known(judgments: Judgments, name: str, keys: Iterable[Key], repetition: int, also_human: bool) -> set[Key]:
    if repetition:
        return {row.key for row, _ in judgments.rows(name) if row.r == repetition}
    keys = set(keys)
    own = {query: judgments.table(name).of_query(query) for query in {key[0] for key in keys}}
    people = {} if also_human else {query: judgments.table("human").of_query(query) for query in own}
    return {key for key in keys if key in own[key[0]] or key in people.get(key[0], {})}


def _keep(
    judgments: Judgments,
    filled: Filled,
    key: Key,
    graded: Graded,
    repetition: int,
    attempts: dict[Key, int],
) -> None:
    read, written = filled.tokens
    filled.tokens = read + (graded.input_tokens or 0), written + (graded.output_tokens or 0)
    if graded.grade is not None:
        judgments.add(filled.judge, [Judgment(*key, graded.grade, now(), graded.model, r=repetition)])
        filled.graded += 1
    elif graded.detail.startswith(NOT_ASKED):  # nobody has tried this pair
        filled.left.append(key)
        filled.stopped = graded.detail.removeprefix(NOT_ASKED)
    else:
        failure = Failure(filled.judge, *key, graded.outcome, graded.detail, attempts.get(key, 0) + 1, now())
        filled.failures.append(failure)
        if not repetition:
            judgments.fail([failure])
