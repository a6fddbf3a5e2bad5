"""Questions for the passages of a collection, each with its passage as gold, and what became of those that are none."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.spans.spans import Span, Spans
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.labels.judging.prompts import in_words
from pytest_retrieval_eval.labels.questions.overlap import points_at, shared, word_overlap
from pytest_retrieval_eval.labels.questions.prompts import QuestionPrompt, questions_in
from pytest_retrieval_eval.readers.reading import Item, Passage, Reader, Reading

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus
    from pytest_retrieval_eval.collection.spans.chunks import Chunks

MAX_OVERLAP = 0.5
REWRITES = 2
# Of what is left, that which the same command may still bring: the others are decided.
_FAILED = ("refused", "error", "empty", "no question", "unplaced")


@dataclass(frozen=True)
class Source:
    """A passage to ask about, and where it stands in its document."""

    chunk_id: str
    doc_id: str
    start: int
    end: int
    passage: Passage

    @property
    def text(self) -> str:
        """What the reader sees of it."""
        return in_words(self.passage)


@dataclass(frozen=True)
class Question:
    """A question, the overlap with its passage, the one that it had at first, and how often it was rewritten."""

    text: str
    source: Source
    overlap: float
    first: float
    rewrites: int = 0


@dataclass(frozen=True)
class Left:
    """A passage or a question that made no query, and why.

    ``outcome`` is what the reader did (``refused``, ``error``, ``empty``, ``no question``), ``unplaced`` (nothing says
    where the passage stands), ``not alone`` (the question speaks of *the passage*), or ``overlap``: it repeats its
    passage. Questions of the last two are dropped.
    """

    chunk_id: str
    outcome: str
    detail: str = ""


@dataclass(frozen=True)
class Questions:
    """What came of asking: the questions in the order of their passages, and what was left."""

    written: tuple[Question, ...]
    left: tuple[Left, ...]
    passages: int
    max_overlap: float
    notes: tuple[str, ...] = ()
    taken: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def complete(self) -> bool:
        """Whether every passage was asked about, and every question came or was dropped for its overlap."""
        return not any(one.outcome in _FAILED for one in self.left)

    @property
    def dropped(self) -> int:
        """How many questions repeat their passage too much, and are none of the queries."""
        return sum(one.outcome == "overlap" for one in self.left)

    @property
    def rewritten(self) -> int:
        """How many of the questions are not as they came at first."""
        return sum(one.rewrites > 0 for one in self.written)

    def median(self, *, first: bool = False) -> float:
        """The median overlap of the questions as they are, or as they came at first."""
        return statistics.median(one.first if first else one.overlap for one in self.written)

    def queries(self) -> list[dict[str, object]]:
        """The lines of queries.jsonl; each has the tag ``synthetic: true``."""
        return [
            {
                "_id": query_id,
                "text": asked[0].text,
                "tags": {"synthetic": True},
                "metadata": {
                    "chunk_id": asked[0].source.chunk_id,
                    "overlap": round(max(one.overlap for one in asked), 4),
                    "rewrites": asked[0].rewrites,
                },
            }
            for query_id, asked in self._by_id().items()
        ]

    def spans(self) -> Spans:
        """The gold of each query: its passage; passages that led to the same question are alternatives."""
        rows = []
        for query_id, asked in self._by_id().items():
            # Two chunks may be the same place.
            places = {(one.source.doc_id, one.source.start, one.source.end): one.source.passage.text for one in asked}
            group = 1 if len(places) > 1 else None
            rows += [
                Span(query_id, doc_id, start, end, text=text, group=group)
                for (doc_id, start, end), text in places.items()
            ]
        return Spans.of(rows)

    def _by_id(self) -> dict[str, list[Question]]:
        same: dict[str, list[Question]] = {}
        for one in self.written:
            same.setdefault(one.text.casefold(), []).append(one)
        found: dict[str, list[Question]] = {}
        for asked in same.values():
            source = asked[0].source
            # Of the texts alone: other passages, or another order of them, change no id.
            said = "\0".join((source.doc_id, source.passage.text, asked[0].text))
            digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
            length = 10
            while (query_id := f"synthetic-{digest[:length]}") in self.taken or query_id in found:
                length += 2
                if length > len(digest):
                    raise GateError(f"the query ids of the dataset leave none for a question: {query_id} is taken")
            found[query_id] = asked
        return found


def sources_of(
    chunks: Chunks, corpus: Corpus, *, sample: int | None = None, seed: int = 0
) -> tuple[list[Source], list[Left]]:
    """The passages that a chunk table cuts out of a corpus, and those of which nobody knows where they stand.

    ``sample`` takes so many of the chunks: with the same seed the same ones, whatever their order.
    """
    placed, _ = chunks.located(corpus)
    rows: Sequence[int] = range(len(placed))
    if sample is not None:
        rows = sorted(sorted(rows, key=lambda row: _draw(seed, placed.ids[row]))[:sample])
    documents = corpus.get_many(placed.doc_ids)
    found, left = [], []
    for row in rows:
        chunk_id, doc_id = placed.ids[row], placed.doc_ids[int(placed.doc[row])]
        start, end = int(placed.start[row]), int(placed.end[row])
        document = documents.get(doc_id)
        if document is None:
            left.append(Left(chunk_id, "unplaced", f"the corpus has no document {doc_id!r}"))
        elif start < 0:
            left.append(Left(chunk_id, "unplaced", placed.unplaced.get(chunk_id, "neither offsets nor a text")))
        elif end > len(document.text):
            left.append(Left(chunk_id, "unplaced", f"it ends at {end}, and {doc_id!r} has {len(document.text)}"))
        elif document.text[start:end].strip():
            found.append(Source(chunk_id, doc_id, start, end, Passage(document.text[start:end], document.title)))
    return found, left


def _draw(seed: int, chunk_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{chunk_id}".encode("utf-8", "surrogatepass")).digest()


def write_questions(
    chunks: Chunks,
    corpus: Corpus,
    reader: Reader,
    *,
    sample: int | None = None,
    seed: int = 0,
    number: int = 1,
    max_overlap: float = MAX_OVERLAP,
    rewrites: int = REWRITES,
    prompt: QuestionPrompt | None = None,
    taken: Iterable[str] = (),
    told: Callable[[int], object] | None = None,
) -> Questions:
    """Ask a reader for ``number`` questions about each passage that a chunk table cuts out of a corpus.

    ``sample`` asks about so many of the chunks: with the same ``seed`` the same ones, whatever their order. A question
    that shares more than ``max_overlap`` (from 0 to 1) of its words with its passage is asked for in other words up to
    ``rewrites`` times, and dropped where that does not help. ``taken`` are ids that no question may have. ``told``
    hears how many passages there are, before the reader is asked. No passage at all, and no question at all, are
    GateErrors: then there is nothing to measure with.

    >>> from pytest_retrieval_eval import CallableReader, Chunk, Chunks, Corpus
    >>> corpus = Corpus.of({"refunds": "Refunds take 14 days. Ask your desk."})
    >>> chunks = Chunks.of({"refunds#1": Chunk("refunds", 0, 21)})
    >>> found = write_questions(chunks, corpus, CallableReader(lambda request, texts: "When is my money back?"))
    >>> [one["text"] for one in found.queries()], found.spans().span(0).text
    (['When is my money back?'], 'Refunds take 14 days.')
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise SettingsError(f"{number!r} questions of each passage: expected a whole number from 1")
    if not 0 <= max_overlap <= 1:
        raise SettingsError(f"the largest overlap is {max_overlap!r}; expected a share from 0 to 1")
    sources, left = sources_of(chunks, corpus, sample=sample, seed=seed)
    if not sources:
        raise GateError(f"there is no passage to ask about{f': {left[0].detail}' if left else ''}")
    if told is not None:
        told(len(sources))
    prompt = QuestionPrompt.built_in() if prompt is None else prompt
    asked = {source.chunk_id: prompt.ask(source.passage, number) for source in sources}
    readings = _read(reader, asked.values())
    first: list[Question] = []
    few, truncated = 0, sum(reading.truncated for reading in readings.values())
    for source in sources:
        reading = readings[asked[source.chunk_id]]
        texts = questions_in(reading.text, cut=reading.status == "length")[:number] if reading.answered else []
        if not texts:
            left.append(_without(source, reading))
            continue
        few += len(texts) < number
        for text in texts:
            if points_at(text, source.text):
                left.append(Left(source.chunk_id, "not alone", text))
                continue
            share = word_overlap(text, source.text)
            first.append(Question(text, source, share, share))
    reworded = _reworded(first, left, reader, prompt, max_overlap, rewrites)
    # Two questions of a passage may have become one.
    written = list({(one.source.chunk_id, one.text.casefold()): one for one in reversed(reworded)}.values())[::-1]
    notes = []
    if len(written) < len(reworded):
        same = len(reworded) - len(written)
        notes.append(f"rewritten into what another question of the same passage says, and left out: {same}")
    repeated = len(written) - len({one.text.casefold() for one in written})
    if repeated:
        notes.append(
            f"{repeated} of {len(written)} questions came from another passage too, and are one query with it: any of "
            "its passages is enough"
        )
    if few:
        notes.append(f"{few} of {len(sources)} passages led to fewer than {number} questions")
    if truncated:
        notes.append(f"the reader saw only the beginning of {truncated} of {len(sources)} requests")
    if not written:
        outcomes = ", ".join(sorted({one.outcome for one in left}))
        why = next((one.detail for one in left if one.detail), "")
        raise GateError(
            f"{len(sources)} passages led to no question ({outcomes}{f'; {why}' if why else ''}); nothing was written"
        )
    return Questions(tuple(written), tuple(left), len(sources), max_overlap, tuple(notes), frozenset(taken))


def _reworded(
    first: Sequence[Question],
    left: list[Left],
    reader: Reader,
    prompt: QuestionPrompt,
    max_overlap: float,
    rewrites: int,
) -> list[Question]:
    """The questions that may stay, in their order; what is wrong with the others goes to ``left``."""
    current: dict[int, Question] = dict(enumerate(first))
    for attempt in range(rewrites):
        high = {place: one for place, one in current.items() if one.overlap > max_overlap}
        if not high:
            break
        items = {
            # Where nothing came of it the request is the same again: the number makes it another one.
            place: replace(
                prompt.rewrite(one.text, one.source.passage, shared(one.text, one.source.text)), repetition=attempt
            )
            for place, one in high.items()
        }
        readings = _read(reader, items.values())
        for place, one in high.items():
            reading = readings[items[place]]
            if not reading.answered:
                left.append(Left(one.source.chunk_id, reading.status, f"{one.text} ({reading.detail})"))
                del current[place]
                continue
            for text in questions_in(reading.text, cut=reading.status == "length")[:1]:
                share = word_overlap(text, one.source.text)
                if share < one.overlap and not points_at(text, one.source.text):
                    current[place] = replace(one, text=text, overlap=share, rewrites=attempt + 1)
    for one in current.values():
        if one.overlap > max_overlap:
            left.append(Left(one.source.chunk_id, "overlap", f"{one.text} ({one.overlap:.2f})"))
    return [one for one in current.values() if one.overlap <= max_overlap]


def _read(reader: Reader, items: Iterable[Item]) -> Mapping[Item, Reading]:
    every = list(dict.fromkeys(items))
    found = {every[number]: reading for number, reading in reader.read(every)}
    if len(found) < len(every):
        raise GateError(f"the reader gave no reading for {len(every) - len(found)} of {len(every)} requests")
    return found


def _without(source: Source, reading: Reading) -> Left:
    if not reading.answered or reading.status == "empty":
        return Left(source.chunk_id, reading.status, reading.detail)
    said = " ".join(reading.text.split())
    return Left(source.chunk_id, "no question", said if len(said) <= 80 else f"{said[:80]}…")
