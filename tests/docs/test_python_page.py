"""The public names: each is on the page, its docstring shows it at work, and pages use no other ones."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
import python_page
from support import ROOT

import pytest_retrieval_eval

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_page_is_made_from_the_docstrings():
    assert python_page.PAGE.read_text(encoding="utf-8") == python_page.page()
    shown = [name for room in python_page.GROUPS.values() for name in python_page.names_of(room)]
    assert sorted(shown) == sorted(pytest_retrieval_eval.__all__)


@pytest.mark.parametrize("name", pytest_retrieval_eval.__all__)
def test_each_name_is_shown_at_work(name):
    value = getattr(pytest_retrieval_eval, name)
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    assert is_error or ">>> " in inspect.getdoc(value)


def test_the_package_offers_what_it_lists():
    """What type checkers read is what is loaded: the same names, of the same modules."""
    source = (ROOT / "pytest_retrieval_eval" / "__init__.py").read_text(encoding="utf-8")
    typed = {
        alias.asname: node.module.partition(".")[2]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pytest_retrieval_eval.")
        for alias in node.names
        if alias.name == alias.asname  # what a type checker takes for offered
    }
    lazy = {name: module for name, module in typed.items() if module != "errors"}
    assert lazy == pytest_retrieval_eval._LAZY
    assert set(typed) == set(pytest_retrieval_eval.__all__) == set(dir(pytest_retrieval_eval))


# Where a project's own code may import from beside the package itself.
PUBLIC_PLACES = {"pytest_retrieval_eval", "pytest_retrieval_eval.hookspecs"}
FENCED = re.compile(r"^```(?:python|pycon|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def imported(code):
    """The modules below the package that a piece of code, or a session of it, imports from."""
    said = re.findall(r"^\s*(?:>>> |\.\.\. )?\s*(?:from|import) (pytest_retrieval_eval[\w.]*)", code, re.MULTILINE)
    return set(said) - PUBLIC_PLACES


def test_pages_and_examples_import_from_the_package_alone():
    pages = {page: "\n".join(FENCED.findall(page.read_text(encoding="utf-8"))) for page in PAGES}
    examples = {path: path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.py")}
    read = {**pages, **examples}
    using = [path for path, code in read.items() if "pytest_retrieval_eval import" in code]
    assert len(using) > 20
    assert {path.name: found for path, code in read.items() if (found := imported(code))} == {}


@pytest.mark.parametrize("name", pytest_retrieval_eval.__all__)
def test_the_session_of_a_public_name_imports_from_the_package_alone(name):
    value = getattr(pytest_retrieval_eval, name)
    own = inspect.getsource(value) if inspect.isclass(value) or inspect.isfunction(value) else value.__doc__ or ""
    session = "\n".join(line for line in own.splitlines() if line.lstrip().startswith((">>>", "...")))
    assert imported(session) == set()
