"""The label source ``contains(…)``: 1 for a retrieved document that contains a gold answer, 0 for any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.labels.containment import KINDS, found_in
from pytest_retrieval_eval.labels.labelling import Labelling, qrels_from
from pytest_retrieval_eval.labels.scorable import scorable
from pytest_retrieval_eval.labels.texts import changed_note, pool_of

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run

# From so many queries on, labels that are all 0 are no chance, but the answers of other queries.
_FEW = 5


class Contains:
    """Labels from containment, in KILT's way or DPR's."""

    pooled = True

    def __init__(self, kind: str) -> None:
        if kind not in KINDS:
            raise SettingsError(f"there is no containment {kind!r}; {did_you_mean(kind, KINDS)}")
        self.kind = kind
        self.name = f"contains({kind})"

    def label(
        self, dataset: Dataset, runs: Sequence[Run], *, depth: int | None, select: frozenset[str] | None
    ) -> Labelling:
        """The labels of the documents in the first ``depth`` ranks of the runs, for the queries with answers."""
        chosen = scorable(dataset, select, self.name)
        pool = pool_of(dataset, runs, chosen.query_ids, depth, f"labels={self.name}")
        found = [
            {
                query_id: {
                    doc: found_in(self.kind, texts[doc], chosen.answers.of_query(query_id))
                    for doc in pool.of_query(query_id)
                }
                for query_id in chosen.query_ids
            }
            for texts in (pool.texts if pool.changed else pool.texts[:1])
        ]
        made = [
            qrels_from(
                {
                    query_id: {doc: 0.0 if answer is None else 1.0 for doc, answer in docs.items()}
                    for query_id, docs in of_run.items()
                },
                self.name,
                always=frozenset(chosen.query_ids),
            )
            for of_run in found
        ]
        self._refuse_nothing(dataset, made)
        by_run = dict(zip(map(id, runs), made if pool.changed else made * len(runs), strict=True))
        read = dict(zip(map(id, runs), pool.texts, strict=True))
        tops = dict(zip(map(id, runs), pool.tops, strict=True))

        def said(query_id: str, doc_id: str) -> str | None:
            for of_run in found:
                if doc_id in of_run.get(query_id, {}):
                    answer = of_run[query_id][doc_id]
                    return f"contains the answer {answer!r}" if answer is not None else "contains no answer"
            return None

        notes = list(chosen.notes)
        if pool.changed:
            notes.append(changed_note(pool.changed))
        return Labelling(
            lambda run: by_run[id(run)],
            notes=tuple(notes),
            said=said,
            digests={"answers": lambda: chosen.answers.digest},
            texts=lambda run: {doc: read[id(run)][doc] for docs in tops[id(run)].values() for doc in docs},
            most=1.0,
        )

    def _refuse_nothing(self, dataset: Dataset, made: Sequence[Qrels]) -> None:
        if not any(len(qrels) for qrels in made):
            raise GateError(
                f"no run returned a document for any query of {dataset.name} that has answers: is the index empty?"
            )
        queries = len(made[0].query_ids)
        if queries >= _FEW and not any(qrels.grades.any() for qrels in made):
            raise GateError(
                f"labels={self.name}: no retrieved document of {dataset.name} contains an answer of its query, for "
                f"{queries} queries: are {dataset.answers.source if dataset.answers else 'these'} the answers of these "
                "queries, and in the language of the documents?"
            )
