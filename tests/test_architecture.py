"""The floors hold: nothing imports upward, and only pytest's side imports pytest."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support import ROOT

PACKAGE = ROOT / "pytest_retrieval_eval"
TABLE = re.compile(r"^\| (\d*) ?\| `(\w+)` \| ", re.MULTILINE)


def floors() -> dict[str, int]:
    """The floor of each room, as the table of the page on architecture has it."""
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    found: dict[str, int] = {}
    floor = 0
    for number, room in TABLE.findall(page.partition("## Rooms and floors")[2].partition("\n## ")[0]):
        floor = int(number) if number else floor
        found[room] = floor
    return found


FLOOR = floors()
PYTESTS_SIDE = {"context", "fixtures", "gatefile", "plugin", "reports/terminal.py"}


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path) -> list[tuple[str, bool]]:
    """(module, whether it is imported for types only) of every import in a file, also inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in typed) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            deeper = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(name, id(node) in typed) for name in [node.module, *deeper]]
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_nothing_imports_upward(path):
    room = room_of(path)
    for module, typed_only in imports_of(path):
        parts = module.split(".")
        if parts[0] != "pytest_retrieval_eval" or len(parts) == 1 or typed_only:
            continue
        other = parts[1]
        if other in FLOOR and other != room:
            assert FLOOR[other] < FLOOR[room], f"{room} imports {module}"


# Classes of data that offer what another file does with them, as in `Run.read` or `Spans.write`, and import it then.
OFFERING = {
    "collection.spans.chunks",
    "collection.dataset",
    "collection.runs.run",
    "collection.spans.spans",
    "collection.runs.traces",
}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def needed_by(path: Path, modules: set[str]) -> set[str]:
    """The files that a file imports, in functions too; of a class of data that offers, those of its start alone."""
    found = {name for name, typed_only in imports_of(path) if not typed_only}
    if module_of(path) in OFFERING:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found &= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    inside = {name.removeprefix("pytest_retrieval_eval.") for name in found}
    return (inside & modules) - {module_of(path)}


def test_no_files_import_each_other_in_a_circle():
    modules = {module_of(path) for path in FILES}
    left = {module_of(path): needed_by(path, modules) for path in FILES}
    while left:
        needed_by_any = set().union(*left.values())
        free = [name for name, needed in left.items() if not needed & set(left) or name not in needed_by_any]
        assert free, f"a circle among {sorted(left)}"
        for name in free:
            del left[name]


def test_readers_know_nothing_of_the_test_collection_but_its_file_helpers():
    allowed = "pytest_retrieval_eval.collection.formats"
    for path in (PACKAGE / "readers").rglob("*.py"):
        for module, _ in imports_of(path):
            if module.startswith("pytest_retrieval_eval.collection."):
                assert module.startswith(allowed), f"{path.name} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_pytests_side_imports_pytest(path):
    inside = path.relative_to(PACKAGE).as_posix()
    if room_of(path) in PYTESTS_SIDE or inside in PYTESTS_SIDE:
        return
    assert not [module for module, _ in imports_of(path) if module.split(".")[0] in ("pytest", "_pytest")]


def test_every_room_has_a_floor_and_says_what_it_is():
    assert set(FLOOR) == {room_of(path) for path in FILES}
    assert sorted(set(FLOOR.values())) == list(range(max(FLOOR.values()) + 1))
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path


def test_no_room_stands_higher_than_what_it_imports_asks_for():
    """A floor that is higher than need be forbids imports for no reason that anybody could name."""
    below: dict[str, set[int]] = {room: set() for room in FLOOR}
    for path in FILES:
        for module, typed_only in imports_of(path):
            other = module.removeprefix("pytest_retrieval_eval.").partition(".")[0]
            if module.startswith("pytest_retrieval_eval.") and other in FLOOR and other != room_of(path):
                below[room_of(path)] |= set() if typed_only else {FLOOR[other]}
    assert {room: max(found, default=-1) + 1 for room, found in below.items()} == FLOOR


def test_no_assert_is_logic():
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)], path
