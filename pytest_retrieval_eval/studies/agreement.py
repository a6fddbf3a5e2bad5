"""How far two sets of grades of the same pairs agree: two judges, a judge and people, a judge and itself."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.collection.formats.files import PathLike
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.stats import Interval, wilson

Pair: TypeAlias = tuple[str, str]
"""(query id, document id)"""
Labels: TypeAlias = "Qrels | Mapping[Pair, float]"


def grades_of(labels: Labels) -> dict[Pair, float]:
    """The grade of each pair.

    >>> from pytest_retrieval_eval import Qrels
    >>> grades_of(Qrels.of({"q": {"a": 2, "b": 0}}))
    {('q', 'a'): 2.0, ('q', 'b'): 0.0}
    """
    if isinstance(labels, Mapping):
        return {pair: float(grade) for pair, grade in labels.items()}
    return {(query, doc): grade for query, row in labels.to_dict().items() for doc, grade in row.items()}


def qrels_of(grades: Mapping[Pair, float], like: Qrels) -> Qrels:
    """Grades as qrels, with the queries of others in their order, also those that have none."""
    by_query: dict[str, dict[str, float]] = {query: {} for query in like.query_ids}
    for (query, doc), grade in grades.items():
        by_query.setdefault(query, {})[doc] = grade
    return Qrels.of(by_query, source=like.source, scale=like.scale)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa (Cohen 1960) of two lists of classes: the agreement beyond that of chance.

    None where chance alone agrees always (both lists hold one and the same class), so that there is no beyond.

    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} classes; expected as many, and one at least")
    n = len(first)
    agreeing = sum(a == b for a, b in zip(first, second, strict=True))
    ours, theirs = Counter(first), Counter(second)
    by_chance = sum(count * theirs[name] for name, count in ours.items())
    if by_chance == n * n:
        return None
    return (n * agreeing - by_chance) / (n * n - by_chance)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two sets of grades agree on the pairs that both have.

    Args:
        n: pairs that both have graded.
        same: pairs with the same grade.
        share: same ÷ n, and ``interval`` is Wilson's.
        kappa: Cohen's kappa of the grades; None where both give one and the same grade to all.
        rel: the grade from which on a document is relevant.
        same_class: pairs that both call relevant, or both not.
        class_share, class_interval, class_kappa: the same of these two classes.
        only_first, only_second: pairs that one of the two has not graded.
        table: (grade of the first, grade of the second, pairs), sorted.
    """

    n: int
    same: int
    share: float
    interval: Interval
    kappa: float | None
    rel: float
    same_class: int
    class_share: float
    class_interval: Interval
    class_kappa: float | None
    only_first: int
    only_second: int
    table: tuple[tuple[float, float, int], ...]


def agreement(first: Labels, second: Labels, *, rel: float = 1.0) -> Agreement:
    """How far two sets of grades agree. Raises GateError where they have no pair in common.

    >>> found = agreement({("q", "a"): 2, ("q", "b"): 0}, {("q", "a"): 1, ("q", "b"): 0, ("q", "c"): 1})
    >>> found.n, found.share, found.class_share, found.only_second
    (2, 0.5, 1.0, 1)
    """
    ours, theirs = grades_of(first), grades_of(second)
    both = [pair for pair in ours if pair in theirs]
    if not both:
        raise GateError(
            f"no pair of query and document has a grade in both sets ({len(ours)} and {len(theirs)} pairs): their "
            "agreement cannot be measured"
        )
    a, b = [ours[pair] for pair in both], [theirs[pair] for pair in both]
    n, same = len(both), sum(x == y for x, y in zip(a, b, strict=True))
    classes = [x >= rel for x in a], [y >= rel for y in b]
    same_class = sum(x == y for x, y in zip(*classes, strict=True))
    return Agreement(
        n=n,
        same=same,
        share=same / n,
        interval=wilson(same, n),
        kappa=cohen_kappa(a, b),
        rel=rel,
        same_class=same_class,
        class_share=same_class / n,
        class_interval=wilson(same_class, n),
        class_kappa=cohen_kappa(*classes),
        only_first=len(ours) - n,
        only_second=len(theirs) - n,
        table=tuple((*cell, count) for cell, count in sorted(Counter(zip(a, b, strict=True)).items())),
    )


def sample_pairs(pairs: Iterable[Pair], size: int, *, seed: int = 0) -> list[Pair]:
    """A random sample of pairs, sorted: the same for the same seed, in whatever order the pairs come.

    A pair stays in the sample of a seed while others are added to the pool, unless one of them takes its place.

    >>> sample_pairs([("q", "a"), ("q", "b"), ("q", "c")], 2)
    [('q', 'b'), ('q', 'c')]
    """
    if size < 1:
        raise ValueError(f"size is {size}; expected at least 1")

    def place(pair: Pair) -> bytes:
        return hashlib.sha256("\x00".join((str(seed), *pair)).encode()).digest()

    return sorted(sorted(set(pairs), key=place)[:size])


def check_apart(first: PathLike, second: PathLike) -> None:
    """SettingsError where grades that are to be held against each other are in one file, and agree for that reason."""
    if os.path.exists(first) and os.path.exists(second) and os.path.samefile(first, second):
        raise SettingsError(f"{second} is given for both sides, and grades agree with themselves; name two files")


def weights_of(pairs: Sequence[Pair], weights: Mapping[Pair, float] | None) -> NDArray[np.float64]:
    """The weight of each pair, 1 where there are none; DataError where one is missing, or not above 0."""
    if weights is None:
        return np.ones(len(pairs))
    found = np.array([weights.get(pair, 0.0) for pair in pairs], np.float64)
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if len(wrong):
        query, doc = pairs[int(wrong[0])]
        raise DataError(f"query {query}, document {doc} has no weight above 0; expected one for each labelled pair")
    return found
