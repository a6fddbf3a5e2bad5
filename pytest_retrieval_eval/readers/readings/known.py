"""Which identity belongs to a reader's settings: remembered beside the readings, for machines without the model.

Readings are found by the identity of their reader, which holds the digests of the model's files. Whoever has the
readings and not the model knows it from here: it is what a reader of these settings was when it read last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pytest_retrieval_eval.collection.formats.files import write_atomically
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.readers.reading import identity_digest
from pytest_retrieval_eval.readers.readings.kept import to_text


def place_of(folder: Path, settings: Mapping[str, object]) -> Path:
    """The file, in the folder of a cache, that has the identity of a reader of these settings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode()).hexdigest()
    return folder / "readers" / f"{digest[:32]}.json"


def identity_in(record: Path) -> Mapping[str, object] | None:
    """The identity that a file has; None where there is none that can be read."""
    try:
        return parsed(record.read_bytes())
    except (OSError, DataError):
        return None


def parsed(data: bytes) -> Mapping[str, object]:
    """The identity in these bytes; DataError where they hold none."""
    try:
        found = json.loads(data)
        if isinstance(found, dict):
            identity_digest(found)  # of what is no identity, such as one with NaN, there is none
            return found
    except (ValueError, RecursionError, DataError):
        pass
    raise DataError("it is no identity of a reader")


def remember(record: Path, identity: Mapping[str, object]) -> None:
    """Write the identity, unless it stands there."""
    if identity_in(record) != identity:
        record.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(record) as file:
            file.write(to_text(dict(identity)).encode("ascii"))
