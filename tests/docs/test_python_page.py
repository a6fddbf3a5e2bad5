"""The public names: each is on the page, is shown at work somewhere, and pages use no other ones."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
import python_page
from support import ROOT

import pytest_retrieval_eval

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSIONS = "\n".join(
    line
    for page in PAGES
    for line in page.read_text(encoding="utf-8").splitlines()
    if line.startswith((">>> ", "... "))
)


def test_the_page_is_made_from_the_docstrings():
    assert python_page.PAGE.read_text(encoding="utf-8") == python_page.page()
    shown = [name for room in python_page.GROUPS.values() for name in python_page.names_of(room)]
    assert sorted(shown) == sorted(pytest_retrieval_eval.__all__)


@pytest.mark.parametrize("name", pytest_retrieval_eval.__all__)
def test_each_name_is_shown_at_work(name):
    value = getattr(pytest_retrieval_eval, name)
    own = inspect.getsource(value) if inspect.isclass(value) or inspect.isfunction(value) else value.__doc__ or ""
    used = re.compile(rf"\b{name}\b")
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    assert ">>> " in own or used.search(SESSIONS) or is_error


def test_the_package_offers_what_it_lists():
    source = (ROOT / "pytest_retrieval_eval" / "__init__.py").read_text(encoding="utf-8")
    offered = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pytest_retrieval_eval.")
        for alias in node.names
    }
    assert offered == set(pytest_retrieval_eval.__all__) == set(dir(pytest_retrieval_eval))
