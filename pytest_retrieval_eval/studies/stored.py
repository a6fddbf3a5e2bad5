"""What a folder of judgments says of the pool of some runs, as the labels that reports are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.labels.judgments import Judgments
from pytest_retrieval_eval.labels.pool import Pool
from pytest_retrieval_eval.labels.store.judges import HUMAN
from pytest_retrieval_eval.labels.store.rows import Key
from pytest_retrieval_eval.studies.agreement import Pair

Repeated = tuple[dict[Pair, float], dict[Pair, float]]


@dataclass(frozen=True, slots=True)
class Stored:
    """Labels of the pairs of a pool.

    ``qrels`` has people's labels before those of the judges; ``judge`` those of the first judge alone, ``human`` those
    of people, None where they have labelled nothing of the pool; ``repeated`` the judge's grades of the first and of
    the second time, None where there was no second.
    """

    name: str
    qrels: Qrels
    judge: Qrels
    human: Qrels | None
    repeated: Repeated | None


def stored(judgments: Judgments, pool: Pool) -> Stored:
    """The labels of a pool in a folder of judgments. A grade holds for the text that the runs have."""
    if not judgments.chosen:
        raise GateError(f"{judgments.folder} has no judge: pytest-retrieval-eval judge makes one's grades")
    name = judgments.chosen[0].name
    keys = _by_query(pool)
    whole: dict[Key, float] = {}
    for query in keys:
        whole.update({key: found.grade for key, found in judgments.grades(query).items()})
    people = _of(judgments, HUMAN, pool)
    return Stored(
        name=name,
        qrels=_qrels({key: grade for key, grade in whole.items() if key in pool.pairs}, pool, str(judgments.folder)),
        judge=graded_by(judgments, name, pool),
        human=_qrels(people, pool, HUMAN) if people else None,
        repeated=repeated_by(judgments, name),
    )


def graded_by(judgments: Judgments, name: str, pool: Pool) -> Qrels:
    """The grades of one judge for a pool; GateError where it has graded nothing of it."""
    found = _of(judgments, name, pool)
    if not found:
        raise GateError(f"{name} has graded none of the {len(pool.pairs)} pairs of the pool")
    return _qrels(found, pool, name)


def repeated_by(judgments: Judgments, name: str) -> Repeated | None:
    """A judge's grades of the pairs that it was asked for twice, each time; None where there are none."""
    again = {row.key: row.g for row, _ in judgments.rows(name) if row.r == 1}
    table = judgments.table(name)
    of_query = {query: table.of_query(query) for query in {key[0] for key in again}}
    both = [key for key in again if key in of_query[key[0]]]
    if not both:
        return None
    # Keys stand for pairs here: two texts of a document are two things to agree on.
    first = {(key[0], "\x00".join(key[1:])): of_query[key[0]][key] for key in both}
    return first, {(key[0], "\x00".join(key[1:])): again[key] for key in both}


def _by_query(pool: Pool) -> list[str]:
    return list(dict.fromkeys(key[0] for key in pool.pairs))


def _of(judgments: Judgments, name: str, pool: Pool) -> dict[Key, float]:
    table = judgments.table(name)
    found: dict[Key, float] = {}
    for query in _by_query(pool):
        found.update((key, grade) for key, grade in table.of_query(query).items() if key in pool.pairs)
    return found


def _qrels(grades: Mapping[Key, float], pool: Pool, source: str) -> Qrels:
    by_query: dict[str, dict[str, float]] = {query: {} for query in _by_query(pool)}
    for key, grade in grades.items():
        row = by_query[key[0]]
        if row.setdefault(key[2], grade) != grade:
            raise DataError(
                f"the runs have document {key[2]} with two texts, which got the grades {row[key[2]]:g} and {grade:g} "
                f"for query {key[0]}: retrieve from one corpus, or report on these runs apart"
            )
    return Qrels.of(by_query, source=source)
