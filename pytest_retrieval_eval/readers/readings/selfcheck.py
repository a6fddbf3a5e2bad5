"""Whether kept texts are what a reader says today: a sample is read again, one item at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.readers.reading import Reader, Reading, identity_digest, read_all
from pytest_retrieval_eval.readers.readings.kept import Kept
from pytest_retrieval_eval.readers.readings.store import ReadingCache


@dataclass(frozen=True)
class SelfCheck:
    """``checked`` readings were made again, ``flips`` of them with another text: (as kept, as read now).

    ``failed`` could not be read again and count nowhere.
    """

    reader: str
    checked: int
    flips: tuple[tuple[Kept, Reading], ...]
    failed: int

    @property
    def rate(self) -> float:
        """The share of texts that changed."""
        return len(self.flips) / self.checked


def selfcheck(cache: ReadingCache, reader: Reader, *, digest: str | None = None, sample: int = 100) -> SelfCheck:
    """Read a sample of the readings of a cache again, each alone, and compare the texts.

    ``digest`` is how the digest of the reader begins whose readings are checked; by default those of ``reader``. The
    sample is drawn by the keys: the same for the same cache. Nothing is stored. Raises GateError where there is
    nothing to check, or nothing could be read.
    """
    if digest is None:
        if reader.identity is None:
            raise GateError("the reader has no identity: say whose readings to check")
        digest = identity_digest(reader.identity)
    chosen = sorted(_drawn(cache, digest))[:sample]
    if not chosen:
        held = ", ".join(f"{each.digest[:12]} ({each.readings})" for each in cache.stats().readers)
        raise GateError(
            f"{cache.path} holds no readings of the reader {digest[:12]}; it holds those of: {held or 'no reader'}"
        )
    keys = {key for _, key in chosen}
    flips, checked, failed = list[tuple[Kept, Reading]](), 0, 0
    for kept in cache.kept(digest):
        if kept.key not in keys:
            continue
        again = read_all(reader, [kept.item])[0]
        if not again.answered:
            failed += 1
            continue
        checked += 1
        if again.text != kept.reading.text:
            flips.append((kept, again))
    if not checked:
        raise GateError(f"none of {failed} readings could be made again")
    return SelfCheck(digest, checked, tuple(flips), failed)


def alone(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of a reader, changed so that a model in this process reads batches of one row.

    >>> alone({"kind": "fid", "model": "models/t5"})
    {'kind': 'fid', 'model': 'models/t5', 'shapes': {'policy': 'fixed', 'rows': 1}}
    >>> alone({"kind": "server", "url": "http://localhost:8000/v1", "model": "m"})["kind"]
    'server'
    """
    if settings.get("kind") not in ("transformers", "fid", "causal"):
        return settings
    shapes = settings.get("shapes", "fixed")
    given = dict(shapes) if isinstance(shapes, Mapping) else {"policy": shapes}
    # A bucket has as many rows as fit its tokens, and one at least.
    least = {"tokens": 1} if given.get("policy") == "bucket" else {"rows": 1}
    return {**settings, "shapes": {**given, **least}}


def _drawn(cache: ReadingCache, digest: str) -> Iterator[tuple[str, str]]:
    for kept in cache.kept(digest):
        # By another digest than the key itself, so that the sample is none of neighbours in the file.
        yield hashlib.sha256(f"selfcheck {kept.key}".encode()).hexdigest(), kept.key
