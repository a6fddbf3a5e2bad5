"""A judge of a published agreement on the grades of people: what it does to the ranking of systems.

    python benchmarks/judged_pool.py FOLDER [FOLDER …]

Each folder has qrels.txt and runs/*.txt of TREC. The grades of people stand in for a judge: each is kept with a given
chance and else replaced by another of the scale, drawn at random. No language model is asked. Real judges err more on
hard pairs, and by habit rather than by chance; what is simulated is the arithmetic of the report, and its shape.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from pytest_retrieval_eval import Qrels, Run
from pytest_retrieval_eval.studies.agreement import agreement, grades_of, qrels_of
from pytest_retrieval_eval.studies.judges import classify_pairs
from pytest_retrieval_eval.studies.pooling import Reuse, growth, pooled

# (what is simulated, agreement, classes): of a second judge, and of a judge with itself.
CASES = (
    ("second judge", 0.84, 2),
    ("second judge", 0.92, 2),
    ("the same judge again", 0.93, 3),
    ("the same judge again", 0.96, 3),
)


@dataclass(frozen=True)
class Simulated:
    """Means over the seeds, and the least rho of all."""

    systems: int
    pairs: int
    agreement: float
    kappa: float
    rho: float
    rho_least: float
    tau: float
    same: float
    tie: float
    noise: float
    conflict: float


def noisy(grades: np.ndarray, keep: float, levels: int, seed: int) -> np.ndarray:
    """Grades of 0 to levels - 1 of which each stays with the chance ``keep``, else becomes any other."""
    raw = np.random.PCG64(seed).random_raw(2 * len(grades)).reshape(2, -1)
    changed = (raw[0] >> 11) / 2.0**53 >= keep
    step = 1 + (raw[1] >> 11) % (levels - 1)
    return np.where(changed, (grades + step) % levels, grades)


def simulate(
    folder: Path,
    keep: float,
    levels: int,
    *,
    measure: str = "ndcg@10",
    depth: int = 20,
    seeds: Iterable[int] = range(20),
) -> Simulated:
    """The judge against people, on the pairs of the pool that people have graded, averaged over the seeds."""
    people, runs = read(folder)
    pool = pooled(runs, depth)
    kept = {
        pair: min(max(grade, 0.0), levels - 1.0) for pair, grade in grades_of(people).items() if pair in pool.brought
    }
    pairs, grades = list(kept), np.array(list(kept.values()), int)
    truth = qrels_of(kept, people)
    rows = []
    for seed in seeds:
        given = dict(zip(pairs, noisy(grades, keep, levels, seed).tolist(), strict=True))
        found = classify_pairs(runs, qrels_of(given, people), truth, measure)
        items = agreement(kept, given)
        rows.append(
            (
                items.share,
                items.kappa,
                found.rankings.rho,
                found.rankings.tau,
                found.same,
                found.tie,
                found.noise,
                found.conflict,
            )
        )
    columns = [mean(column) for column in zip(*rows, strict=True)]
    return Simulated(
        len(runs), len(pairs), columns[0], columns[1], columns[2], min(row[2] for row in rows), *columns[3:]
    )


def read(folder: Path) -> tuple[Qrels, dict[str, Run]]:
    """The judgments and the runs of a folder."""
    runs = {path.stem: Run.read(path) for path in sorted((folder / "runs").glob("*.txt"))}
    return Qrels.read(folder / "qrels.txt"), runs


def main(folders: Iterable[str]) -> None:
    """Print the tables of the page."""
    for place in map(Path, folders):
        people, runs = read(place)
        rows = growth(pooled(runs, 20, queries=people.query_ids))
        saved = Reuse(rows[-1].independent, rows[-1].unique)
        print(
            f"\n{place.name}: {len(runs)} runs to depth 20: {saved.unique} unique of {saved.independent} pairs, ",
            end="",
        )
        print(f"{100 * saved.share:.1f} % reused, {saved.factor:.2f} times\n")
        print("| simulated | classes | agreement | kappa | rho (least) | tau | same | tie | noise | conflict |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for what, keep, levels in CASES:
            found = simulate(place, keep, levels)
            print(
                f"| {what} | {levels} | {100 * found.agreement:.1f} % | {found.kappa:.2f} | "
                f"{found.rho:.2f} ({found.rho_least:.2f}) | {found.tau:.2f} | {found.same:.2f} | {found.tie:.2f} | "
                f"{found.noise:.2f} | {found.conflict:.2f} |"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
