"""Pairs that got no grade, and why. A failure is never a grade 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pytest_retrieval_eval.collection.formats.files import excerpt, json_id
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.labels.store.rows import Key, check_hash, to_line


@dataclass(frozen=True, slots=True)
class Failure:
    """A pair of texts that a judge gave no grade: what stood in the way, a sentence, how often it was tried."""

    judge: str
    q: str
    qh: str
    d: str
    dh: str
    outcome: str
    reason: str
    attempts: int = 1
    at: str = ""

    @property
    def key(self) -> Key:
        """What was to be graded."""
        return self.q, self.qh, self.d, self.dh

    @property
    def row(self) -> dict[str, object]:
        """As it stands in the journal of its judge."""
        return {
            "q": self.q,
            "qh": self.qh,
            "d": self.d,
            "dh": self.dh,
            "outcome": self.outcome,
            "reason": self.reason,
            "attempts": self.attempts,
            "at": self.at,
        }

    @property
    def line(self) -> str:
        """As it stands in the file of failures."""
        return to_line({"judge": self.judge, **self.row})


def failure_of(row: Mapping[str, object], judge: str | None, where: str) -> Failure:
    """The failure in a line; what is missing is a DataError."""
    name, attempts = row.get("judge", judge), row.get("attempts", 1)
    texts = [row.get(key, "") for key in ("outcome", "reason", "at")]
    whole = isinstance(attempts, int) and not isinstance(attempts, bool) and attempts > 0
    if not isinstance(name, str) or not whole or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: {excerpt(dict(row))} is no failure: expected judge, q, qh, d, dh, outcome, attempts")
    return Failure(
        name,
        json_id(row.get("q"), where),
        check_hash(row.get("qh"), where, "qh"),
        json_id(row.get("d"), where),
        check_hash(row.get("dh"), where, "dh"),
        str(texts[0]),
        str(texts[1]),
        int(str(attempts)),
        str(texts[2]),
    )


def merged(failures: Iterable[Failure]) -> list[Failure]:
    """One failure for each judge and pair, sorted: the latest, with the most attempts that any of them counts."""
    found: dict[tuple[str, Key], Failure] = {}
    for each in failures:
        before = found.get((each.judge, each.key))
        if before is not None:
            latest = max(before, each, key=lambda one: (one.attempts, one.at, one.outcome, one.reason))
            each = replace(latest, attempts=max(before.attempts, each.attempts))
        found[each.judge, each.key] = each
    return sorted(found.values(), key=lambda each: (each.judge, each.q, each.d, each.qh, each.dh))
