"""The label source ``erag``: how right the reader answers a query from one retrieved document alone.

The method is eRAG (Salemi & Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024,
arXiv 2404.13781): the language model of the system reads each document by itself, and what its answer scores against
the gold answers is the label of that document, a degree from 0 to 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.labels.answers import Metric, answer_score, metric
from pytest_retrieval_eval.labels.labelling import Labelling, qrels_from
from pytest_retrieval_eval.labels.scorable import Scorable, scorable
from pytest_retrieval_eval.labels.texts import Pool, changed_note, pool_of
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.reading import Item, Passage, Reader, Reading, identity_digest, read_all
from pytest_retrieval_eval.wording import listed

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.runs.run import Run

METRIC = "em"
"""How an answer is held against the gold answers where nothing else is said."""

NO_READER = (
    "labels=erag: there is no reader: set the ini value retrieval_reader to its settings, such as "
    "{kind: transformers, model: models/reader}, give them as reader=, or override the fixture retrieval_reader"
)
# From so many queries on, labels that are all 0 are no chance, but a reader or answers of other queries.
_FEW = 5
_LONGEST = 80  # characters of an answer in one line
_NAMED = 3  # models in one line

Places = Mapping[str, Mapping[str, Item]]  # query → document → what the reader is asked


class Erag:
    """Labels from a reader and a downstream metric (a name of ``labels.answers``, or a function).

    What it has read it keeps: it is made for one comparison. ``absent`` is called where the reader cannot be had on
    this machine; without it that is an AbsentReaderError. ``partial`` is True while it labels some queries of more:
    then labels that are all 0 may be chance.
    """

    name, pooled = "erag", True

    def __init__(
        self,
        reader: Reader | None = None,
        answer_metric: str | Metric = METRIC,
        *,
        absent: Callable[[AbsentReaderError], NoReturn] | None = None,
    ) -> None:
        self._reader = reader
        self._metric = metric(answer_metric)
        self._metric_name = answer_metric if isinstance(answer_metric, str) else _called(answer_metric)
        self._absent = absent
        self.partial = False
        self._known: dict[Item, Reading] = {}

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> EragLabelling:
        """The labels of the documents in the first ``depth`` ranks of the runs, for the queries with answers.

        Each pair of a query's text and a document's text is read once, whichever runs have it. A query of which a
        reading failed has no labels; why stands in ``failed``.
        """
        chosen = scorable(dataset, select, self.name)
        pool = pool_of(dataset, runs, chosen.query_ids, depth, f"labels={self.name}")
        asked = _asked(dataset, chosen, pool)
        readings = self._read(dict.fromkeys(item for one in asked for docs in one.values() for item in docs.values()))
        failed = _failed(asked, readings)
        made = [self._qrels(one, readings, failed, chosen) for one in asked]
        if not self.partial:
            self._refuse_nothing(dataset, made, failed)
        several = len(asked) > 1
        of_run = {id(run): number if several else 0 for number, run in enumerate(runs)}
        texts = dict(zip(map(id, runs), pool.texts, strict=True))
        tops = dict(zip(map(id, runs), pool.tops, strict=True))

        def said(query_id: str, doc_id: str) -> str | None:
            item = next((one[query_id][doc_id] for one in asked if doc_id in one.get(query_id, {})), None)
            return None if item is None else self._said(readings[item], chosen.answers.of_query(query_id))

        return EragLabelling(
            lambda run: made[of_run[id(run)]],
            failed,
            (*chosen.notes, *_notes(readings), *([changed_note(pool.changed)] if pool.changed else [])),
            said,
            {"answers": lambda: chosen.answers.digest, "reader": self._digest},
            lambda run: {doc: texts[id(run)][doc] for docs in tops[id(run)].values() for doc in docs},
            most=1.0,
            reader=self._who,
            readings_of=lambda run: {
                (query_id, doc): readings[item]
                for query_id, docs in asked[of_run[id(run)]].items()
                for doc, item in docs.items()
            },
        )

    def closed_book(
        self, dataset: Dataset, *, select: frozenset[str] | None
    ) -> tuple[dict[str, float], dict[str, str]]:
        """What the reader scores from no document at all, for each query with answers; and the queries that failed."""
        chosen = scorable(dataset, select, self.name)
        asked = {query_id: Item(dataset.queries.text(query_id), ()) for query_id in chosen.query_ids}
        readings = self._read(dict.fromkeys(asked.values()))
        failed = {
            query_id: _failure(readings[item], "no document")
            for query_id, item in asked.items()
            if not readings[item].answered
        }
        scores = {
            query_id: self._score(readings[item], chosen.answers.of_query(query_id))
            for query_id, item in asked.items()
            if query_id not in failed
        }
        return scores, failed

    def _read(self, items: Mapping[Item, None]) -> dict[Item, Reading]:
        """The reading of each item."""
        if self._reader is None:
            raise GateError(NO_READER)
        every = [item for item in items if item not in self._known]
        try:
            self._known |= dict(zip(every, read_all(self._reader, every), strict=True))
        except AbsentReaderError as error:
            if self._absent is not None:
                self._absent(error)
            raise
        return {item: self._known[item] for item in items}

    def _digest(self) -> str | None:
        """The digest of the reader, for the header of a baseline; None where it has no identity."""
        identity = None if self._reader is None else self._reader.identity
        return None if identity is None else f"sha256:{identity_digest(identity)}"

    def _who(self) -> dict[str, str]:
        """The kind and model of the reader, as far as its identity names them, and the digest of it."""
        identity, digest = None if self._reader is None else self._reader.identity, self._digest()
        if identity is None or digest is None:
            return {}
        model = identity.get("model") or identity.get("name") or ""  # a model of a folder has only digests
        return {"kind": str(identity.get("kind", "")), "model": str(model), "digest": digest}

    def _score(self, reading: Reading, golds: Sequence[str]) -> float:
        return answer_score(self._metric, reading.text, golds) or 0.0  # None is for no gold answer, and there is one

    def _qrels(
        self, asked: Places, readings: Mapping[Item, Reading], failed: Mapping[str, str], chosen: Scorable
    ) -> Qrels:
        return qrels_from(
            {
                query_id: {}
                if query_id in failed
                else {doc: self._score(readings[item], chosen.answers.of_query(query_id)) for doc, item in docs.items()}
                for query_id, docs in asked.items()
            },
            self.name,
            scale="unit",
            always=frozenset(chosen.query_ids),
        )

    def _said(self, reading: Reading, golds: Sequence[str]) -> str:
        if not reading.answered:
            return f"the reader gave no answer: {_failure(reading, '')}"
        if not reading.text.strip():
            return "the reader answered nothing"
        cut = ", cut off" if reading.status == "length" else ""
        score = self._score(reading, golds)
        return f"the reader answered {_short(reading.text)} ({self._metric_name} {score:.3g}){cut}"

    def _refuse_nothing(self, dataset: Dataset, made: Sequence[Qrels], failed: Mapping[str, str]) -> None:
        if not failed and not any(len(qrels) for qrels in made):
            raise GateError(
                f"no run returned a document for any query of {dataset.name} that has answers: is the index empty?"
            )
        queries = len(made[0].query_ids) - len(failed)
        if queries >= _FEW and not any(qrels.grades.any() for qrels in made):
            raise GateError(
                f"labels={self.name}: the reader answers none of {queries} queries of {dataset.name} from any document "
                f"that was retrieved ({self._metric_name} is 0 for all): are "
                f"{dataset.answers.source if dataset.answers else 'these'} the answers of these queries, and does the "
                "prompt ask for answers as short as they are?"
            )


@dataclass(frozen=True)
class EragLabelling(Labelling):
    """The labels of one comparison, with the readings that they were made from: of a run, by query and document."""

    readings_of: Callable[[Run], Mapping[tuple[str, str], Reading]] = field(default=lambda run: {})


class Readings(dict[tuple[str, str], Reading]):
    """The reading of each (query, document) that was read; another pair is a DataError that says which were.

    >>> Readings({("q1", "d1"): Reading("14 days", "ok", 9, 2)})["q1", "d7"]
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.DataError: 'd7' was not read for query 'q1'; read for it: d1
    """

    def __missing__(self, pair: object) -> Reading:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise DataError(f"readings[{excerpt(pair)}]: expected readings[query_id, doc_id]")
        query_id, doc_id = pair
        of_query = [doc for query, doc in self if query == query_id]
        if of_query:
            raise DataError(
                f"{excerpt(doc_id)} was not read for query {excerpt(query_id)}; read for it: {listed(of_query)}"
            )
        queries = list(dict.fromkeys(query for query, _ in self))
        raise DataError(f"nothing was read for query {excerpt(query_id)}; read were: {listed(queries) or 'none'}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadQrels(Qrels):
    """Labels with the ``readings`` behind them, by query and document; ``failed`` are queries without, and why."""

    readings: Mapping[tuple[str, str], Reading] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def joined(cls, qrels: Qrels, readings: Mapping[tuple[str, str], Reading], **more: Any) -> ReadQrels:
        """The labels with their readings."""
        own = {each.name: getattr(qrels, each.name) for each in fields(Qrels) if each.name != "_cache"}
        return cls(**own, readings=Readings(readings), **more)


@dataclass(frozen=True, slots=True)
class Lift:
    """What documents add to what the reader knows by itself, query by query.

    ``closed_book`` is what its answer scores without any document, ``best`` the highest label of the documents that
    were retrieved (0 where there are none).

    >>> lift = Lift({"q1": 1.0, "q2": 0.0}, {"q1": 1.0, "q2": 1.0})
    >>> lift.mean, lift.of_query("q2")
    (0.5, 1.0)
    """

    closed_book: Mapping[str, float]
    best: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def of_query(self, query_id: str) -> float:
        """The lift of one query, from -1 to 1."""
        return self.best[query_id] - self.closed_book[query_id]

    @property
    def mean(self) -> float:
        """The mean over the queries."""
        return sum(map(self.of_query, self.best)) / len(self.best)


def _asked(dataset: Dataset, chosen: Scorable, pool: Pool) -> list[Places]:
    """What the reader is asked for each document of each query: once for all runs, or for each where texts differ."""

    def places(texts: Mapping[str, Document]) -> Places:
        return {
            query_id: {
                doc: Item(dataset.queries.text(query_id), (Passage(texts[doc].text, texts[doc].title),))
                for doc in pool.of_query(query_id)
            }
            for query_id in chosen.query_ids
        }

    return [places(texts) for texts in (pool.texts if pool.changed else pool.texts[:1])]


def _failed(asked: Sequence[Places], readings: Mapping[Item, Reading]) -> dict[str, str]:
    """The queries of which a document could not be read, with the first reason."""
    found: dict[str, str] = {}
    for places in asked:
        for query_id, docs in places.items():
            for doc, item in docs.items():
                if not readings[item].answered:
                    found.setdefault(query_id, _failure(readings[item], doc))
    return found


def _failure(reading: Reading, what: str) -> str:
    word = "declined" if reading.status == "refused" else "failed"
    return f"the reader {word}{f' for {what}' if what else ''}{f': {reading.detail}' if reading.detail else ''}"


def _notes(readings: Mapping[Item, Reading]) -> list[str]:
    """What the reader could not do as it was asked, where that makes labels worth less."""
    total = len(readings)
    cut = sum(reading.truncated for reading in readings.values())
    long = sum(reading.status == "length" for reading in readings.values())
    notes = []
    if cut:
        notes.append(f"the reader saw only the beginning of {cut} of {total} documents, which are longer than it takes")
    if long:
        notes.append(f"{long} of {total} answers were cut off at the largest number of tokens")
    models = Counter(reading.model for reading in readings.values() if reading.model)
    if len(models) > 1:  # of one reader: behind its name there are several, or there was another before
        shown = ", ".join(f"{model} ({count})" for model, count in models.most_common(_NAMED))
        more = f" and {len(models) - _NAMED} more" if len(models) > _NAMED else ""
        notes.append(f"the answers come from {len(models)} models, as the reader's service names them: {shown}{more}")
    return notes


def _short(text: str) -> str:
    """An answer in one line.

    >>> _short("It  is 14 days." + " And more." * 20)
    "'It is 14 days. And more. And more. And more. And more. And more. And more. And m…'"
    """
    line = " ".join(text.split())
    return repr(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…")


def _called(function: object) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)
