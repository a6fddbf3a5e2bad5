"""Which queries can be labelled from gold answers; the others are left out, and said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.answers import Answers
    from pytest_retrieval_eval.collection.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Scorable:
    """The queries of a dataset that have gold answers, and a note on those that have none."""

    answers: Answers
    query_ids: tuple[str, ...]
    notes: tuple[str, ...] = ()


def scorable(dataset: Dataset, select: frozenset[str] | None, needs: str) -> Scorable:
    """The answerable queries of ``select`` with gold answers; ``needs`` names the labels that read them.

    None at all is a GateError.
    """
    answers, queries = dataset.answers, dataset.queries
    name = dataset.name or "the dataset"
    if answers is None:
        raise GateError(
            f"labels={needs}: {name} has no gold answers; add answers.jsonl with a line "
            '{"query_id": …, "answers": […]} for each query that has some'
        )
    asked = [query for query in queries if query not in queries.unanswerable and (select is None or query in select)]
    known = tuple(query for query in asked if answers.of_query(query))
    if not known:
        raise GateError(f"labels={needs}: none of {len(asked)} queries of {name} has an answer in {answers.source}")
    without = [query for query in asked if not answers.of_query(query)]
    if not without:
        return Scorable(answers, known)
    one = len(without) == 1
    more = f" and {len(without) - 5} more" if len(without) > 5 else ""
    return Scorable(
        answers,
        known,
        (
            f"{len(without)} {'query has' if one else 'queries have'} no gold answer, and {'is' if one else 'are'} not "
            f"labelled by {needs}: {', '.join(without[:5])}{more}",
        ),
    )
