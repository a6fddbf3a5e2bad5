"""The page of public names, made from their docstrings: ``python tests/python_page.py`` writes it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest_retrieval_eval

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "python.md"

GROUPS = {
    "Collections": "collection",
    "Measures": "measures",
    "Gates": "gates",
    "Labels and judges": "labels",
    "Readers": "readers",
    "Studies": "studies",
    "Errors": "errors",
}
INTRODUCTION = """# Names in Python

All public names are imported from the package, `from pytest_retrieval_eval import …`, and are loaded when they are
first used. What stands in modules below it may change from release to release. Everything here works without pytest;
what a test asks for are [fixtures](pytest.md).
"""


def page() -> str:
    """The page as the docstrings of today make it."""
    parts = [INTRODUCTION]
    for title, room in GROUPS.items():
        rows = [f"| `{name}` | {first_sentence(name)} |" for name in names_of(room)]
        parts.append("\n".join([f"## {title}", "", "| name | what it is |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def names_of(room: str) -> list[str]:
    """The public names that a room of the house has."""
    return [name for name in pytest_retrieval_eval.__all__ if place(name).split(".")[1] == room]


def place(name: str) -> str:
    """The module that a public name comes from."""
    value = getattr(pytest_retrieval_eval, name)
    return value.__module__ if isinstance(getattr(value, "__module__", None), str) else type(value).__module__


def first_sentence(name: str) -> str:
    """The beginning of a docstring, without its markup."""
    text = " ".join((inspect.getdoc(getattr(pytest_retrieval_eval, name)) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([\w.]+)`", lambda found: f"`{found[1].rpartition('.')[2]}`", text).replace("``", "`")
    return re.split(r"(?<=[.;:]) (?=[A-Z`])", text)[0].rstrip(";:").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
