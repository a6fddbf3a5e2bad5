"""Which definition of a fixture is in effect for a test, where it is from and what it is built from.

pytest has no public way to ask; this is the one room that uses its fixture manager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from _pytest.fixtures import FixtureDef


OVERRIDABLE = (
    "retriever",
    "retrieval_dataset",
    "retrieval_run",
    "retrieval_baseline",
    "retrieval_reader",
    "retrieval_judgments",
    "retrieval_stages",
    "retrieval_traces",
)
UNREAD = ("retrieval_queries", "retrieval_qrels", "retrieval_spans")  # parts of retrieval_dataset, for reading in tests
OUR_FIXTURES = "pytest_retrieval_eval.fixtures"


def fixture_definition(node: pytest.Item, name: str) -> FixtureDef[object] | None:
    """The definition of a fixture that is in effect for ``node``, or None where there is none.

    pytest has no public way to ask; this is the one place that uses its fixture manager.
    """
    found = node.session._fixturemanager.getfixturedefs(name, node)
    return found[-1] if found else None


def is_ours(definition: FixtureDef[object] | None) -> bool:
    """Whether a fixture is this plugin's own, not one that a project defines under the same name."""
    return definition is not None and definition.func.__module__ == OUR_FIXTURES


def place_of(definition: FixtureDef[object]) -> str:
    """Where a fixture is defined, as text that tells it from others of its name."""
    function = definition.func
    return f"{definition.baseid}::{function.__module__}.{getattr(function, '__qualname__', repr(function))}"


def parts_of(node: pytest.Item, definition: FixtureDef[object]) -> dict[str, str]:
    """Where each fixture that ``definition`` is built from is defined, for this test, through all levels."""
    parts: dict[str, str] = {}
    names = list(definition.argnames)
    while names:
        name = names.pop()
        if name in parts or name == "request":
            continue
        part = fixture_definition(node, name)
        parts[name] = place_of(part) if part is not None else ""
        names += part.argnames if part is not None else ()
    return parts


def refuse_foreign(node: pytest.Item, names: Sequence[str]) -> None:
    """Refuse a fixture of another folder's conftest.py: pytest gives those outside its root folder to every test."""
    root = node.config.rootpath
    for name in names:
        definition = fixture_definition(node, name)
        code = getattr(definition.func, "__code__", None) if definition is not None and not definition.baseid else None
        file = Path(code.co_filename) if code is not None else root
        outside = file.name == "conftest.py" and file.is_absolute() and root not in file.parents
        if outside and file.parent not in node.path.parents:
            raise GateError(
                f"the fixture {name} in effect here is that of {file}, which is not above this test: pytest gives "
                f"the fixtures of every conftest.py outside its root folder ({root}) to all tests. Start it with "
                "a --rootdir that holds them all"
            )


def parameters_of(node: pytest.Item) -> Mapping[str, object]:
    """The parameters of a test: those of its fixtures and those that it was given directly."""
    return cast("Mapping[str, object]", getattr(getattr(node, "callspec", None), "params", {}))
