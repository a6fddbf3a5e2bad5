"""Whether a reader is the one that was promised before it was made."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.readers.reading import Reader, identity_digest


def check_promise(promised: Mapping[str, object], made: Reader) -> None:
    """Raise GateError where a reader has another identity than its readings were looked up by; it is closed then."""
    found = made.identity
    if found is not None and identity_digest(found) == identity_digest(promised):
        return
    made.close()
    raise GateError(
        "the reader that was made has another identity than was promised for it, and its readings would be kept as "
        f"another's: promised {_differences(promised, found)}"
    )


def _differences(promised: Mapping[str, object], made: Mapping[str, object] | None) -> str:
    other = dict(made or {})
    names = sorted(
        name
        for name in {*promised, *other}
        if promised.get(name) != other.get(name) or (name in promised) != (name in other)
    )
    return ", ".join(f"{name}={promised.get(name)!r} but made {name}={other.get(name)!r}" for name in names)
