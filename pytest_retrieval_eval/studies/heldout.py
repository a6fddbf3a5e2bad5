"""The labels of people that a judge was not tuned on, and its grades of the same texts, from where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.labels.judgments import Judgments
from pytest_retrieval_eval.labels.store.judges import HUMAN
from pytest_retrieval_eval.studies.agreement import Pair, check_apart, grades_of
from pytest_retrieval_eval.studies.judge_validation import JudgeValidation, validate_judge

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck
    from pytest_retrieval_eval.labels.store.rows import Judgment, Key

HELD_OUT = "heldout"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a judge is validated with: labels of people, its grades of these pairs, and of all texts that it graded
    where those are more.

    ``weights`` are those of a sample, None where every pair was as likely. ``by_ids`` are all of its grades by query
    and document alone.
    """

    judge: str
    human: dict[Pair, float] = field(repr=False)
    grades: dict[Pair, float] = field(repr=False)
    pool: dict[Pair, float] | None = field(repr=False)
    weights: dict[Pair, float] | None = field(repr=False)
    by_ids: dict[Pair, float] = field(repr=False)

    def validation(self, check: JudgeCheck) -> JudgeValidation:
        """What comes of holding the judge to a check."""
        return validate_judge(
            self.human,
            self.grades,
            rel=check.rel,
            requirements=check.requirements,
            pool=self.pool,
            weights=self.weights,
            allow_missing=check.allow_missing,
        )


def held_out(judgments: Judgments) -> HeldOut:
    """The held-out labels of a folder of judgments, and the grades of the one judge that counts in it.

    A grade holds for the texts that were judged: where a text has changed since, the pair has no grade. What is also
    labelled for tuning is not held out.
    """
    if len(judgments.chosen) != 1:
        names = ", ".join(kept.name for kept in judgments.chosen) or "none"
        raise GateError(f"one judge is validated at a time, and those of {judgments.folder} are {names}: name one")
    judge = judgments.chosen[0].name
    rows: dict[Key, Judgment] = {}
    others: set[Key] = set()
    for row, _ in judgments.rows(HUMAN):
        if row.part == HELD_OUT:
            rows.setdefault(row.key, row)
        elif row.part is not None:
            others.add(row.key)
    for key in others:
        rows.pop(key, None)
    if not rows:
        raise GateError(
            f'{judgments.folder / HUMAN} holds no label that is held out ("part":"{HELD_OUT}"): a judge is '
            "validated on labels that it was not tuned on"
        )
    pairs = _names(rows)
    people = judgments.table(HUMAN)
    given = judgments.table(judge)
    labels = {query: people.of_query(query) for query in dict.fromkeys(key[0] for key in rows)}
    own = {query: given.of_query(query) for query in labels}
    weights = {pairs[key]: row.w for key, row in rows.items() if row.w is not None}
    if weights and len(weights) < len(rows):
        odd = next(row for row in rows.values() if row.w is None)
        raise GateError(
            f"{len(rows) - len(weights)} of {len(rows)} held-out labels have no weight, and the others have one; the "
            f"first is query {odd.q}, document {odd.d}: labels of a sample that was weighted, and others, are not one "
            "sample"
        )
    own_grades = {pairs[key]: own[key[0]][key] for key in rows if key in own[key[0]]}
    pool = {(key[0], "\x00".join(key[1:])): grade for key, grade in given}
    return HeldOut(
        judge=judge,
        human={pairs[key]: labels[key[0]][key] for key in rows},
        grades=own_grades,
        pool=pool if len(pool) > len(own_grades) else None,
        weights=weights or None,
        by_ids={**{(key[0], key[2]): grade for key, grade in given}, **own_grades},
    )


def _names(keys: dict[Key, Judgment]) -> dict[Key, Pair]:
    """The ids of each pair; with the hash behind them where several texts have the same."""
    found: dict[Key, Pair] = {}
    taken: set[Pair] = set()
    for key in keys:
        pair = key[0], key[2]
        found[key] = pair if pair not in taken else (key[0], f"{key[2]} (text {key[1]} {key[3]})")
        taken.add(pair)
    return found


def of_slice(evidence: HeldOut, dataset: Dataset, where: Mapping[str, object]) -> HeldOut:
    """The same of those queries alone whose tags are so; a slice without a held-out label is a GateError.

    A weight stays what it is: a pair of the slice stands for as many pairs of the slice.
    """
    chosen = dataset.queries.select(where)

    def inside(pairs: dict[Pair, float]) -> dict[Pair, float]:
        return {pair: value for pair, value in pairs.items() if pair[0] in chosen}

    human = inside(evidence.human)
    if not human:
        raise GateError(
            f"none of the {len(evidence.human)} held-out pairs is of one of the {len(chosen)} queries of "
            f"{dataset.name or 'the dataset'} that where= selects: have people label some of them"
        )
    grades = inside(evidence.grades)
    pool = inside(evidence.by_ids if evidence.pool is None else evidence.pool)
    return replace(
        evidence,
        human=human,
        grades=grades,
        pool=pool if len(pool) > len(grades) else None,
        weights=None if evidence.weights is None else inside(evidence.weights),
        by_ids=inside(evidence.by_ids),
    )


def evidence_of(
    check: JudgeCheck, root: Path, kept: Callable[[], Judgments], dataset: Callable[[], Dataset]
) -> HeldOut:
    """What a check names; its paths are from ``root``.

    ``kept`` are the judgments where it names no folder, ``dataset`` has the tags of queries where it is about some.
    """
    evidence = _evidence(check, root, kept)
    return evidence if check.where is None else of_slice(evidence, dataset(), check.where)


def _evidence(check: JudgeCheck, root: Path, kept: Callable[[], Judgments]) -> HeldOut:
    if check.human is None or check.grades is None:
        names = () if check.name is None else (check.name,)
        if check.judgments is not None:
            return held_out(Judgments.open(root / check.judgments, judged_by=names))
        judgments = kept()
        if names or not judgments.folder.is_dir():
            judgments = Judgments.open(judgments.folder, judged_by=names)
        return held_out(judgments)
    check_apart(root / check.human, root / check.grades)
    human, grades = (grades_of(Qrels.read(root / path)) for path in (check.human, check.grades))
    own = {pair: grade for pair, grade in grades.items() if pair in human}
    return HeldOut(Path(check.grades).name, human, own, grades if len(grades) > len(own) else None, None, grades)


def validated(
    check: JudgeCheck, root: Path, kept: Callable[[], Judgments], dataset: Callable[[], Dataset]
) -> tuple[str, JudgeValidation]:
    """The judge's name, and what came of its check."""
    evidence = evidence_of(check, root, kept, dataset)
    return evidence.judge, evidence.validation(check)
