"""What the settings of the systems did, after the fact, from stored runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import json_word
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.stats import Interval, bootstrap_mean
from pytest_retrieval_eval.studies.systems import Runs, measure_systems, named_runs


@dataclass(frozen=True, slots=True)
class Effect:
    """One value of a factor against another, over the systems that differ in nothing else.

    ``matched`` are pairs of such systems; ``difference`` is the mean of ``value`` minus that of ``other`` over them,
    with its interval over the queries. None where no two systems differ in this alone.
    """

    factor: str
    value: str
    other: str
    systems: tuple[int, int]
    means: tuple[float, float]
    matched: int
    difference: float | None
    interval: Interval | None


def factors(
    runs: Runs, qrels: Qrels, tags: Mapping[str, Mapping[str, object]], measure: str | Measure
) -> tuple[Effect, ...]:
    """What each tag of the systems did, after the fact: dimension, hybrid or not, with or without rewriting.

    ``tags`` has the tags of each run; one that a run lacks is null. The mean over all systems of a value mixes in what
    else they differ in; so the difference is taken over pairs that agree in every other tag.
    """
    systems = named_runs(runs, least=2)
    unknown = [name for name in tags if name not in systems]
    if unknown:
        raise SettingsError(f"tags are given for {unknown[0]}, which is no run; known: {', '.join(systems)}")
    names = list(dict.fromkeys(factor for name in systems for factor in tags.get(name, {})))
    if not names:
        raise GateError("no run has tags: there is no factor to look at")
    found = measure_systems(systems, qrels, measure)
    said = {name: {factor: json_word(tags.get(name, {}).get(factor)) for factor in names} for name in systems}
    effects = []
    for factor in names:
        values = sorted(dict.fromkeys(said[name][factor] for name in systems), key=_in_order)
        for other, value in combinations(values, 2):
            groups = [[name for name in systems if said[name][factor] == each] for each in (value, other)]
            matched = [
                (a, b)
                for a in groups[0]
                for b in groups[1]
                if all(said[a][each] == said[b][each] for each in names if each != factor)
            ]
            interval = difference = None
            if matched:
                by_query = np.mean([found.of(a) - found.of(b) for a, b in matched], axis=0)
                difference, interval = float(by_query.mean()), bootstrap_mean(by_query)
            effects.append(
                Effect(
                    factor=factor,
                    value=value,
                    other=other,
                    systems=(len(groups[0]), len(groups[1])),
                    means=(
                        math.fsum(found.means[name] for name in groups[0]) / len(groups[0]),
                        math.fsum(found.means[name] for name in groups[1]) / len(groups[1]),
                    ),
                    matched=len(matched),
                    difference=difference,
                    interval=interval,
                )
            )
    return tuple(effects)


def _in_order(word: str) -> tuple[bool, float, str]:
    """Numbers by size, before words."""
    try:
        return False, float(word), word
    except ValueError:
        return True, 0.0, word
