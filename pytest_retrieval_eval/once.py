"""A value that is made once for a whole session, however many worker processes it has.

A session-scoped fixture is made once a *worker*: with four workers a retriever would be run four times. Here the
first process that wins a file lock makes the value and leaves it in a folder that all share; the others read it.
The claim is re-checked after the lock is won, since the value may have come while one waited for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.runs.run import Run

T = TypeVar("T")


class Once:
    """Values by key, each made once. ``folder`` is shared by the processes; None where there is only one.

    >>> once, made = Once(None), []
    >>> def make() -> int:
    ...     made.append(1)
    ...     return 42
    >>> once.get("answer", make), once.get("answer", make), len(made)
    (42, 42, 1)
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._values: dict[str, object] = {}

    def get(self, key: str, make: Callable[[], T]) -> T:
        """The value of ``key``, made by ``make()`` where no process has made it yet.

        Between processes a value travels as a file: it must be a :class:`Run` or built of JSON types; a ``TypeError``
        says so otherwise. A :class:`GateError` that ``make`` raises is raised for every process that asks: a
        retriever that cannot be opened is not opened again by each worker.
        """
        if key not in self._values:
            self._values[key] = make() if self._folder is None else self._shared(self._folder, key, make)
        return cast(T, self._values[key])

    def _shared(self, folder: Path, key: str, make: Callable[[], object]) -> object:
        from pytest_retrieval_eval.collection.formats.files import locked

        stem = folder / hashlib.sha256(key.encode()).hexdigest()[:32]
        with locked(f"{stem}.lock"):
            found = _read(stem)
            if found is None:
                try:
                    value = make()
                except GateError as error:
                    _write_json(stem, {"error": str(error)})
                    raise
                _write(stem, key, value)
                return value
        if "error" in found:
            raise GateError(str(found["error"]))
        return found["value"]


def _run_file(stem: Path) -> Path:
    return stem.with_name(stem.name + ".run.jsonl")


def _read(stem: Path) -> dict[str, object] | None:
    """What another process left: {"value": …} or {"error": …}; None where nothing has been made yet."""
    record = stem.with_name(stem.name + ".json")
    if not record.exists():
        return None
    found = cast("dict[str, object]", json.loads(record.read_text(encoding="utf-8")))
    if found.get("kind") == "run":
        from pytest_retrieval_eval.collection.runs.run import Run

        run = Run.read(_run_file(stem))
        run.name, run.source = str(found["name"]), str(found["source"])
        found["value"] = run
    return found


def _write(stem: Path, key: str, value: object) -> None:
    """Leave a value for the others; the record is written last, so that a value never appears in part."""
    if _is_run(value):
        run = cast("Run", value)
        run.save(_run_file(stem))
        _write_json(stem, {"kind": "run", "name": run.name, "source": run.source})
        return
    try:
        text = json.dumps(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"the value of {key!r} cannot be handed to other workers ({error}): return a Run, or numbers, texts, "
            "lists and dicts with text keys"
        ) from None
    if json.loads(text) != value:
        raise TypeError(
            f"the value of {key!r} would change on its way to other workers (JSON has no tuples and only text "
            "keys): return numbers, texts, lists and dicts with text keys"
        )
    _write_json(stem, {"kind": "json", "value": value})


def _is_run(value: object) -> bool:
    from pytest_retrieval_eval.collection.runs.run import Run

    return isinstance(value, Run)


def _write_json(stem: Path, record: dict[str, object]) -> None:
    from pytest_retrieval_eval.collection.formats.files import write_atomically

    with write_atomically(stem.with_name(stem.name + ".json")) as file:
        file.write(json.dumps(record).encode())
