"""P@k by a judge's labels, corrected by what people said of some of the same pairs. Nothing applies it by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.stats import Interval, bootstrap_mean
from pytest_retrieval_eval.studies.agreement import Labels, Pair, grades_of, weights_of

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run


@dataclass(frozen=True, slots=True)
class CorrectedPrecision:
    """P@k of a run by the judge's grades, and corrected by what people said of some of the same pairs.

    ``plain`` is what the judge says, ``value`` the corrected mean with its ``interval``, ``bias`` what the judge adds
    on average; ``n_human`` pairs of people were used of ``n_pairs`` in the lists.
    """

    k: int
    rel: float
    plain: float
    value: float
    interval: Interval
    bias: float
    n_human: int
    n_pairs: int


def corrected_precision(
    run: Run,
    judge: Labels,
    human: Labels,
    *,
    k: int,
    rel: float = 1.0,
    weights: Mapping[Pair, float] | None = None,
) -> CorrectedPrecision:
    """P@k over the queries of the judge's grades, as people would see it: prediction-powered (Angelopoulos & al. 2023).

    The mean of the judge's labels over all places of the lists, minus the judge's mean error on those that people have
    labelled. ``weights`` are one over the chance that a pair was put before people (1 for all without): a sample in
    which some pairs were likelier is weighted back. A pair in the lists without a grade of the judge counts as not
    relevant, as in P@k. Nothing applies this by itself.

    The interval is the bootstrap's over the labelled pairs: it says how well they stand for these lists, and nothing
    of other queries. Raises GateError with fewer than 10 labelled pairs in the lists.

    >>> from pytest_retrieval_eval import Run
    >>> run = Run.of({"q": [f"d{n}" for n in range(20)]})
    >>> judge = {("q", f"d{n}"): 1 for n in range(20)}
    >>> human = {("q", f"d{n}"): int(n != 3) for n in range(10)}  # one in ten is none to people
    >>> found = corrected_precision(run, judge, human, k=20)
    >>> found.plain, found.value, found.n_human
    (1.0, 0.9, 10)
    """
    if k < 1:
        raise SettingsError(f"k={k}: expected 1 or more")
    machine, people = grades_of(judge), grades_of(human)
    queries = list(dict.fromkeys(query for query, _ in machine))
    listed = [(query, doc) for query, row in run.rankings(queries, k).items() for doc in dict.fromkeys(row.docs)]
    places = len(queries) * k
    plain = sum(machine.get(pair, 0.0) >= rel for pair in listed) / places if places else 0.0
    used = [pair for pair in listed if pair in people and pair in machine]
    if len(used) < 10:
        raise GateError(
            f"{len(used)} of the {len(listed)} pairs in the top {k} have a label of people beside the judge's grade: a "
            "correction needs at least 10"
        )
    weight = weights_of(used, weights)
    errors = np.array([float(machine[pair] >= rel) - float(people[pair] >= rel) for pair in used])
    bias = math.fsum((weight * errors).tolist()) / math.fsum(weight.tolist())
    # The weighted mean is linear around its value: what each pair adds to it is resampled.
    parts = bias + weight * (errors - bias) / (math.fsum(weight.tolist()) / len(used))
    spread = bootstrap_mean(parts)
    filled = len(listed) / places  # places without a document are known to hold nothing relevant
    return CorrectedPrecision(
        k=k,
        rel=rel,
        plain=plain,
        value=plain - filled * bias,
        interval=Interval(plain - filled * spread.high, plain - filled * spread.low, spread.level, spread.method),
        bias=filled * bias,
        n_human=len(used),
        n_pairs=len(listed),
    )
