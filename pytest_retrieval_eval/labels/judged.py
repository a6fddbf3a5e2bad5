"""The label source ``judged``: the grades of a folder of judgments, for the texts that they were given for.

All that is judged of a query counts, whichever system brought it, so that the sides of a comparison are measured on the
union of what was ever pooled. What the first ranks of a run hold without a grade is told, so that nobody takes it for
irrelevant in silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.labels.judgments import Grade, Judgments
from pytest_retrieval_eval.labels.labelling import JUDGED, Labelling, Unjudged, qrels_from
from pytest_retrieval_eval.labels.pool import Pool, asked_queries, document_hash, pool_of, query_texts
from pytest_retrieval_eval.labels.store.rows import Key, text_hash
from pytest_retrieval_eval.labels.texts import changed_note, today
from pytest_retrieval_eval.settings import JUDGMENTS

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.runs.run import Run

FILL = "pytest-retrieval-eval judge"
_TOP = 10  # as judged@k of a measure without a cut-off
_KEPT = 8  # comparisons whose labels are kept for the next gate on the same runs


@dataclass(slots=True)
class _Known:
    """What is judged of a dataset today: the grades of each query, and the labels where no run has other texts."""

    dataset: Dataset
    query_ids: tuple[str, ...]
    query_hashes: Mapping[str, str]
    grades: Mapping[str, Mapping[Key, Grade]]
    hashes: Mapping[str, str]
    qrels: Qrels
    notes: tuple[str, ...]
    of_texts: dict[tuple[tuple[str, str], ...], Qrels] = field(default_factory=dict)
    made: list[tuple[tuple[Run, ...], int, frozenset[str] | None, Labelling]] = field(default_factory=list)


class Judged:
    """Labels from a folder of judgments. ``fill`` is the command that judges what is missing, for sentences."""

    name, pooled = JUDGED, False

    def __init__(
        self, judgments: Judgments | None = None, *, fill: str = FILL, known: list[_Known] | None = None
    ) -> None:
        self.judgments = Judgments(JUDGMENTS) if judgments is None else judgments
        self._fill = fill
        self._known: list[_Known] = [] if known is None else known

    def filled_by(self, command: str) -> Judged:
        """The same source, for a gate whose pairs another command judges."""
        return Judged(self.judgments, fill=command, known=self._known)

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """The grades that hold for the texts of each run, and the pairs in its first ``depth`` ranks without one.

        Where a measure reads the whole list, its first 10 ranks are looked at, as judged@10 is.
        """
        known = self._of(dataset)
        k = min([depth or _TOP, *(run.depth for run in runs if run.depth is not None)])
        for others, of_depth, of_queries, labelling in known.made:
            same = len(others) == len(runs) and all(run is other for run, other in zip(runs, others, strict=True))
            if same and of_depth == k and of_queries == select:
                return replace(labelling, fill=self._fill)
        labelling = self._label(known, runs, k, select)
        known.made[:] = [*known.made[1 - _KEPT :], (tuple(runs), k, select, labelling)]
        return labelling

    def _label(self, known: _Known, runs: Sequence[Run], k: int, select: frozenset[str] | None) -> Labelling:
        pool = pool_of(known.dataset, runs, k, select=select)
        made = {id(run): self._of_run(known, run, number, pool) for number, run in enumerate(runs)}
        changed = sorted({doc for run in runs for doc in self._other_texts(known, run)})
        notes = [*known.notes, *([changed_note(changed)] if changed and len(runs) > 1 else [])]
        tops = {
            id(run): {key[2]: pool.pairs[key] for keys in lists.values() for key in keys}
            for run, lists in zip(runs, pool.lists, strict=True)
        }

        def said(query_id: str, doc_id: str) -> str | None:
            given = {key[3]: grade for key, grade in known.grades.get(query_id, {}).items() if key[2] == doc_id}
            grade = given.get(known.hashes.get(doc_id, ""))
            if grade is None:
                return "judged when its text was another one" if given else None
            return f"judged {grade.grade:g} by {'people' if grade.source == 'human' else grade.source}"

        def texts(run: Run) -> Mapping[str, Document]:
            from pytest_retrieval_eval.collection.dataset import Document

            return {doc: Document(pair.title, pair.text) for doc, pair in tops[id(run)].items()}

        return Labelling(
            lambda run: made[id(run)],
            notes=tuple(notes),
            said=said,
            digests={"judgments": lambda: known.qrels.digest},
            texts=texts,
            unjudged=self._unjudged(known, pool),
            fill=self._fill,
            most=self.judgments.chosen[0].scale.most if self.judgments.chosen else math.inf,
        )

    def qrels(self, dataset: Dataset) -> Qrels:
        """The grades that hold for the texts that a dataset has today; none at all is a GateError."""
        found = self._of(dataset).qrels
        if not len(found):
            raise GateError(f"{self.judgments.folder} has no grade for the texts of {dataset.name or 'the dataset'}")
        return found

    # --- what is judged ----------------------------------------------------------------------------------

    def _of(self, dataset: Dataset) -> _Known:
        found = next((each for each in self._known if each.dataset is dataset), None)
        if found is None:
            found = self._read(dataset)
            self._known.append(found)
        return found

    def _read(self, dataset: Dataset) -> _Known:
        store = self.judgments
        query_ids = tuple(asked_queries(dataset))
        texts = query_texts(dataset, query_ids)
        query_hashes = {query: text_hash(text) for query, text in texts.items()}
        grades = {query: found for query in query_ids if (found := store.grades(query))}
        self._check_scale(grades)
        docs = list(dict.fromkeys(key[2] for found in grades.values() for key in found))
        hashes = {doc: document_hash(document) for doc, document in today(dataset, docs).items()}
        labels = {query: _holding(grades.get(query, {}), query_hashes[query], hashes) for query in query_ids}
        stale = sum(len(found) for found in grades.values()) - sum(map(len, labels.values()))
        notes = []
        for kept in store.chosen:
            torn = store.table(kept.name).torn
            notes += [f"the judge {kept.name} is not pinned: {kept.floating}"] if kept.floating else []
            notes += [f"left out of the journal of {kept.name} as torn: {torn} of its lines"] if torn else []
        if stale:
            what = "1 judgment is" if stale == 1 else f"{stale} judgments are"
            notes.append(f"{what} of texts that are others today, and {'does' if stale == 1 else 'do'} not count")
        qrels = qrels_from(labels, f"the judgments in {store.folder}", always=frozenset())
        return _Known(dataset, query_ids, query_hashes, grades, hashes, qrels, tuple(notes))

    def _check_scale(self, grades: Mapping[str, Mapping[Key, Grade]]) -> None:
        chosen = self.judgments.chosen
        if not chosen:
            return
        scale = chosen[0].scale
        for found in grades.values():
            for key, grade in found.items():
                if not scale.least <= grade.grade <= scale.most:
                    who = "people" if grade.source == "human" else grade.source
                    raise GateError(
                        f"labels={JUDGED}: {who} gave query {key[0]!r}, document {key[2]!r} the grade {grade.grade:g}, "
                        f"and {chosen[0].name} gives {scale}: their grades have no common scale"
                    )

    def _of_run(self, known: _Known, run: Run, number: int, pool: Pool) -> Qrels:
        """The labels as one run's side reads its documents: those of the dataset, unless it has texts of its own."""
        other = self._other_texts(known, run)
        for keys in pool.lists[number].values():  # also of parts that only the run's hits know
            for _, _, doc, doc_hash in keys:
                if doc not in known.hashes:
                    other[doc] = doc_hash
        if not other:
            return known.qrels
        which = tuple(sorted(other.items()))
        if which not in known.of_texts:
            hashes = {**known.hashes, **other}
            labels = {
                query: _holding(known.grades.get(query, {}), known.query_hashes[query], hashes)
                for query in known.query_ids
            }
            made = qrels_from(labels, known.qrels.source, always=frozenset())
            same = made.to_dict() == known.qrels.to_dict()
            known.of_texts[which] = known.qrels if same else made
        return known.of_texts[which]

    @staticmethod
    def _other_texts(known: _Known, run: Run) -> dict[str, str]:
        """The documents that a run stores with another text than they have today, with the hash of it."""
        stored = {doc: document_hash(document) for doc, document in run.texts.items()}
        return {doc: found for doc, found in stored.items() if doc in known.hashes and known.hashes[doc] != found}

    @staticmethod
    def _unjudged(known: _Known, pool: Pool) -> tuple[Unjudged, ...]:
        ranks: dict[Key, int] = {}
        for lists in pool.lists:
            for query_id, keys in lists.items():
                grades = known.grades.get(query_id, {})
                for rank, key in enumerate(keys, 1):
                    if key not in grades:
                        ranks[key] = min(rank, ranks.get(key, rank))
        pairs = ((pool.pairs[key], rank) for key, rank in ranks.items())
        return tuple(
            Unjudged(pair.query_id, pair.doc_id, rank, pair.query, pair.title, pair.text) for pair, rank in pairs
        )


def _holding(grades: Mapping[Key, Grade], query_hash: str, hashes: Mapping[str, str]) -> dict[str, float]:
    """Document → grade of one query, for the texts that query and documents have."""
    return {
        doc: grade.grade
        for (_, of_query, doc, of_doc), grade in grades.items()
        if of_query == query_hash and hashes.get(doc) == of_doc
    }
