"""Judges: a reader that is asked for a grade, a chat server, a function, a vote of several."""

from __future__ import annotations

import inspect
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import GateError, SettingsError, raised
from pytest_retrieval_eval.labels.judging.judge import Graded, Judge, Pair
from pytest_retrieval_eval.labels.judging.prompts import JudgePrompt, in_words
from pytest_retrieval_eval.labels.judging.replies import PARSER_VERSION, Parsed, Scale, checked, parse
from pytest_retrieval_eval.readers.reading import Item, Passage, Reader, Reading
from pytest_retrieval_eval.readers.readings.cache import CachedReader, ReadingCache
from pytest_retrieval_eval.readers.services.server import ServerReader, check_whole

# What names the weights of a local reader's model in its identity.
_PINNING = ("files", "revision", "weights")


class ServerJudge:
    """A judge on an OpenAI-compatible server.

    ``prompt`` is the name of a built-in template or a :class:`JudgePrompt`. The model's name must be exact (a date or a
    revision), or ``weights`` the digest of the weights behind it, or ``pin`` True: you vouch that the name always means
    the same model. ``structured`` asks the service to hold its replies to a JSON Schema, where it can. With a
    ``cache`` the raw replies are kept. ``document_chars`` cuts documents, in characters. The further settings are those
    of :class:`~pytest_retrieval_eval.readers.services.server.ServerReader`; ``max_tokens`` (of a reply) is 512 unless
    given.
    What cannot be meant is a SettingsError; a pair whose reply gives no grade is no error: its grade is None, with why.

    >>> from pytest_retrieval_eval import Pair, ServerJudge
    >>> judge = ServerJudge("http://localhost:8000/v1", "judge-2024-08-06", prompt="pool012")
    >>> read, written = judge.estimate([Pair("q1", "d7", "Who wrote it?", "Ann did.")])  # tokens; nothing is sent
    >>> str(judge.scale), written
    ('0 to 2', 512)
    >>> judge.close()
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        prompt: JudgePrompt | str = "pool012",
        pin: bool | None = None,
        structured: bool = False,
        document_chars: int | None = None,
        cache: ReadingCache | None = None,
        max_tokens: int = 512,
        extra: Mapping[str, object] | None = None,
        **settings: Any,
    ) -> None:
        asked = JudgePrompt.named(prompt) if isinstance(prompt, str) else prompt
        if structured:
            schema = {"name": "grading", "strict": True, "schema": asked.schema}
            extra = {**(extra or {}), "response_format": {"type": "json_schema", "json_schema": schema}}
        reader = ServerReader(
            url,
            model,
            prompt=asked,
            pin=pin,
            document_chars=document_chars,
            max_tokens=max_tokens,
            extra=extra,
            **settings,
        )
        self._asking = _Asking(reader, cache, asked)
        self.reader = reader
        self.identity: Mapping[str, object] | None = {
            "kind": "server judge",
            "reader": reader.identity,
            "parser": PARSER_VERSION,
        }

    @property
    def scale(self) -> Scale:
        """That of the template."""
        return self._asking.prompt.scale

    @property
    def floating(self) -> str:
        """That of the reader: a sentence where the model's name is not exact and nothing else pins the model."""
        return self.reader.floating and f"the judge's model is not pinned: {self.reader.floating}"

    def grade(self, pairs: Sequence[Pair], *, repetition: int = 0) -> Iterator[tuple[int, Graded]]:
        """See :class:`~pytest_retrieval_eval.labels.judging.judge.Judge`."""
        return self._asking.grade([_item(pair, repetition) for pair in pairs])

    def estimate(self, pairs: Iterable[Pair]) -> tuple[int, int]:
        """About how many tokens the pairs take at most, (read, written), with nothing in the cache. None is sent."""
        return self.reader.estimate(_item(pair) for pair in pairs)

    def close(self) -> None:
        """Close the connections."""
        self._asking.close()


def _item(pair: Pair, repetition: int = 0) -> Item:
    return Item(pair.query, (Passage(pair.text, pair.title),), repetition)


class ReaderJudge:
    """A judge on any reader: it is given the whole prompt as the query of an item without documents.

    The reader must pass it on as it is: its template for items without documents is ``{query}``. ``document_chars``
    cuts documents, in characters. A reader whose identity holds the digest or the revision of its weights is pinned;
    ``pin`` True says it of another. With a ``cache`` the replies are kept.

    >>> from pytest_retrieval_eval import CallableReader, Pair, ReaderJudge
    >>> judge = ReaderJudge(CallableReader(lambda prompt, texts: '{"thought": "It names Ann.", "grade": 2}'))
    >>> [graded.grade for _, graded in judge.grade([Pair("q1", "d7", "Who wrote it?", "Ann wrote it.")])]
    [2]
    """

    def __init__(
        self,
        reader: Reader,
        *,
        prompt: JudgePrompt | str = "pool012",
        document_chars: int | None = None,
        pin: bool = False,
        cache: ReadingCache | None = None,
    ) -> None:
        asked = JudgePrompt.named(prompt) if isinstance(prompt, str) else prompt
        check_whole("document_chars", document_chars)
        self._asking = _Asking(reader, cache, asked)
        self._reader = reader
        self._document_chars = document_chars
        self._pin = pin

    @property
    def identity(self) -> Mapping[str, object] | None:
        """The reader's, the prompt and the parser; None where the reader has none."""
        reader = self._reader.identity
        if reader is None:
            return None
        return {
            "kind": "reader judge",
            "reader": dict(reader),
            "prompt": self._asking.prompt.identity,
            "document_chars": self._document_chars,
            "parser": PARSER_VERSION,
        }

    @property
    def scale(self) -> Scale:
        """That of the template."""
        return self._asking.prompt.scale

    @property
    def floating(self) -> str:
        """A sentence where nothing in the reader's identity pins its weights."""
        reader = self._reader.identity or {}
        if isinstance(self._reader, ServerReader):
            return "" if self._pin else self._reader.floating
        if self._pin or any(reader.get(name) for name in _PINNING) or reader.get("kind") == "callable":
            return ""
        return (
            "nothing in the identity of the judge's reader pins its model (files, revision or weights): name a "
            "revision, or vouch for the model (pin=True)"
        )

    def grade(self, pairs: Sequence[Pair], *, repetition: int = 0) -> Iterator[tuple[int, Graded]]:
        """See :class:`~pytest_retrieval_eval.labels.judging.judge.Judge`."""
        self._check_words_around()
        cut = self._document_chars
        items = [
            Item(self._asking.prompt.text(pair.query, Passage(pair.text[:cut], pair.title)), (), repetition)
            for pair in pairs
        ]
        for index, graded in self._asking.grade(items):
            shortened = cut is not None and len(pairs[index].text) > cut
            yield index, replace(graded, truncated=graded.truncated or shortened)

    def close(self) -> None:
        """Close the reader."""
        self._asking.close()

    def _check_words_around(self) -> None:
        around = (self._reader.identity or {}).get("prompt")
        closed_book = around.get("closed_book") if isinstance(around, Mapping) else None
        if closed_book is not None and closed_book != "{query}":
            raise SettingsError(
                "the judge's reader puts words of its own around the prompt: its template closed_book is "
                f"{excerpt(closed_book)}; expected '{{query}}'"
            )


class _Asking:
    """A reader, perhaps behind a cache, whose texts are read as grades."""

    def __init__(self, reader: Reader, cache: ReadingCache | None, prompt: JudgePrompt) -> None:
        self._reader: Reader = reader if cache is None else CachedReader(reader, cache)
        self.prompt = prompt

    def grade(self, items: Sequence[Item]) -> Iterator[tuple[int, Graded]]:
        # A server is asked from now on, and not from the first look at an answer.
        return _Gradings(self._reader.read(items), self._graded)

    def close(self) -> None:
        self._reader.close()

    def _graded(self, reading: Reading) -> Graded:
        if reading.status == "refused":
            found = Parsed(None, "refused", reading.detail)
        elif reading.status == "error":
            found = Parsed(None, "error", reading.detail)
        else:
            found = parse(reading.text, self.prompt.scale, key=self.prompt.key, cut=reading.status == "length")
        return Graded(
            grade=found.grade,
            outcome=found.outcome,
            detail=found.detail,
            said=found.said,
            truncated=reading.truncated,
            model=reading.model,
            input_tokens=reading.input_tokens,
            output_tokens=reading.output_tokens,
        )


class _Gradings(Iterator[tuple[int, Graded]]):
    """The gradings behind some readings. An interrupt ends the wait for the next, not the gradings: after ``close``
    they still yield what had been answered, where the readings do.
    """

    def __init__(self, readings: Iterator[tuple[int, Reading]], graded: Callable[[Reading], Graded]) -> None:
        self._readings, self._graded = readings, graded

    def __next__(self) -> tuple[int, Graded]:
        index, reading = next(self._readings)
        return index, self._graded(reading)

    def close(self) -> None:
        """Ask for nothing more."""
        close = getattr(self._readings, "close", None)
        if close is not None:
            close()


class CallableJudge:
    """A judge that is a function ``(query, text) -> grade``, where the grade is a number of the scale or a reply.

    A text is read as the reply of a model is. What the function raises, and what is no grade, is no grade. ``identity``
    is a text that names everything that can change a grade; without it grades cannot be kept.

    >>> judge = CallableJudge(lambda query, text: int(query in text), Scale(0, 1), identity="contains the query, v1")
    >>> [graded.grade for _, graded in judge.grade([Pair("q", "a", "tea", "green tea"), Pair("q", "b", "tea", "milk")])]
    [1, 0]
    """

    def __init__(self, function: Callable[[str, str], object], scale: Scale, *, identity: str | None = None) -> None:
        if not callable(function):
            raise SettingsError(f"the judge is {excerpt(function)}; expected a callable: function(query, text)")
        if inspect.iscoroutinefunction(function):
            raise SettingsError("the judge is an asynchronous function; expected one that gives the grade itself")
        if identity is not None and not (isinstance(identity, str) and identity.strip()):
            raise SettingsError(f"the identity of the judge is {excerpt(identity)}; expected a text, or None")
        self._function, self.scale, self.floating = function, scale, ""
        self.identity: Mapping[str, object] | None = None
        if identity is not None:
            ends = [scale.least, scale.most]
            self.identity = {"kind": "callable judge", "name": identity, "scale": ends, "parser": PARSER_VERSION}

    def grade(self, pairs: Sequence[Pair], *, repetition: int = 0) -> Iterator[tuple[int, Graded]]:
        """See :class:`~pytest_retrieval_eval.labels.judging.judge.Judge`."""
        for index, pair in enumerate(pairs):
            yield index, self._one(pair)

    def close(self) -> None:
        """Nothing is held."""

    def _one(self, pair: Pair) -> Graded:
        try:
            given = self._function(pair.query, in_words(Passage(pair.text, pair.title)))
        except Exception as error:  # the user's function may raise anything; a GateError is meant for the user
            if isinstance(error, GateError):
                raise
            return Graded(None, "error", f"the judge raised {raised(error)}")
        found = parse(given, self.scale) if isinstance(given, str) else checked(given, self.scale)
        return Graded(found.grade, found.outcome, found.detail, found.said)


class VoteJudge:
    """A vote of several judges on one scale.

    ``combine`` is ``majority``: the grade that more than half of all members gave; or ``median``: the middle one of an
    odd number of members, all of whom must have given a grade. Where there is none, the pair has no grade. Members of
    different scales are a SettingsError.

    >>> from pytest_retrieval_eval import CallableJudge, Pair, Scale, VoteJudge
    >>> said = [CallableJudge(lambda query, text, grade=grade: grade, Scale(0, 2)) for grade in (2, 2, 0)]
    >>> [graded.grade for _, graded in VoteJudge(said).grade([Pair("q1", "d7", "Who?", "Ann did.")])]
    [2]
    """

    def __init__(self, judges: Sequence[Judge], *, combine: Literal["majority", "median"] = "majority") -> None:
        if len(judges) < 2:
            raise SettingsError(f"a vote of {len(judges)} judges; expected at least 2")
        if combine not in ("majority", "median"):
            raise SettingsError(f"a vote by {combine!r}; expected majority or median")
        if combine == "median" and len(judges) % 2 == 0:
            raise SettingsError(f"a vote by median of {len(judges)} judges has no middle; expected an odd number")
        scales = {judge.scale for judge in judges}
        if len(scales) > 1:
            shown = ", ".join(sorted(map(str, scales)))
            raise SettingsError(f"the judges of a vote have different scales ({shown}); expected one")
        self._judges, self._combine = list(judges), combine
        self.scale = judges[0].scale
        members = [judge.identity for judge in judges]
        self.identity: Mapping[str, object] | None = None
        if None not in members:
            self.identity = {"kind": "vote", "combine": combine, "judges": members}

    @property
    def floating(self) -> str:
        """That of the first member that is not pinned."""
        return next((judge.floating for judge in self._judges if judge.floating), "")

    def grade(self, pairs: Sequence[Pair], *, repetition: int = 0) -> Iterator[tuple[int, Graded]]:
        """See :class:`~pytest_retrieval_eval.labels.judging.judge.Judge`."""
        given: list[dict[int, Graded]] = [{} for _ in self._judges]
        waiting = {number: judge.grade(pairs, repetition=repetition) for number, judge in enumerate(self._judges)}
        try:
            while waiting:  # one of each in turn
                for number, gradings in list(waiting.items()):
                    found = next(gradings, None)
                    if found is None:
                        del waiting[number]
                        continue
                    index, graded = found
                    given[number][index] = graded
                    if all(index in member for member in given):
                        yield index, self._count([member.pop(index) for member in given])
        finally:
            for gradings in waiting.values():
                close = getattr(gradings, "close", None)
                if close is not None:
                    close()
        if any(given):
            raise GateError("a judge of a vote gave nothing for a pair that another has graded")

    def close(self) -> None:
        """Close all members."""
        for judge in self._judges:
            judge.close()

    def _count(self, members: Sequence[Graded]) -> Graded:
        votes = tuple(member.grade for member in members)
        grades = [grade for grade in votes if grade is not None]
        grade: int | None = None
        if self._combine == "median" and len(grades) == len(votes):
            grade = int(statistics.median(grades))
        elif self._combine == "majority" and grades:
            most, count = Counter(grades).most_common(1)[0]
            grade = most if 2 * count > len(votes) else None
        said = next((member.said for member in members if member.grade == grade and member.said), "")
        truncated = any(member.truncated for member in members)
        if grade is not None:
            return Graded(grade, "graded", said=said, truncated=truncated, votes=votes)
        failed = next((member for member in members if member.grade is None), None)
        if failed is not None and (self._combine == "median" or not grades):
            return Graded(None, failed.outcome, failed.detail, truncated=truncated, votes=votes)
        shown = ", ".join("none" if vote is None else str(vote) for vote in votes)
        return Graded(None, "ambiguous", f"no grade has a majority: {shown}", truncated=truncated, votes=votes)
