"""The value of a fixture for a gate: one that skips or expects to fail is an error, since nothing was measured."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import cast

import pytest

from pytest_retrieval_eval.context.definitions import (
    OVERRIDABLE,
    fixture_definition,
    is_ours,
    parts_of,
    place_of,
    refuse_foreign,
)
from pytest_retrieval_eval.context.state import IS_GATE, session_of
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.session.process import Session


def ask(request: pytest.FixtureRequest, name: str) -> object:
    """The value of a fixture for a gate: one that skips is an error, since a skipped gate measured nothing."""
    session = session_of(request.config)
    with session.asking, nullcontext() if may_skip(request.config, name) else no_evasion(name):
        _note_parts(request, session, name)
        return request.getfixturevalue(name)


def _note_parts(request: pytest.FixtureRequest, session: Session, name: str) -> None:
    """Refuse a project's fixture that pytest would not make anew where what it is built from differs."""
    node = cast(pytest.Item, request._pyfuncitem)
    definition = fixture_definition(node, name)
    if definition is not None and not is_ours(definition):
        parts = parts_of(node, definition)
        refuse_foreign(node, (name, *parts))
        if definition.scope != "function":
            session.note_parts(name, place_of(definition), parts)


def may_skip(config: pytest.Config, name: str) -> bool:
    """Whether a fixture that only gates use may skip them: a reader that cannot be had on this machine, on a desk."""
    return name == "retrieval_reader" and session_of(config).settings.skip_without_reader


@contextmanager
def no_evasion(name: str) -> Generator[None, None, None]:
    """A skip, or an expected failure, of the fixture ``name`` or of what it returned is an error."""
    try:
        yield
    except BaseException as outcome:
        if is_evasion(outcome):
            raise skipped_fixture(name, outcome) from None
        raise


def is_evasion(outcome: BaseException) -> bool:
    """Whether an exception stands for a skip or an expected failure, in pytest's way or unittest's."""
    # Whoever raises unittest's has imported it.
    theirs = getattr(sys.modules.get("unittest"), "SkipTest", pytest.skip.Exception)
    return isinstance(outcome, (pytest.skip.Exception, pytest.xfail.Exception, theirs))


def skipped_fixture(name: str, outcome: BaseException) -> GateError:
    """The error for a fixture that a gate needs and that skips."""
    return GateError(f"the fixture {name} skips ({outcome}): a gate that is skipped has measured nothing")


def evading_fixture(node: pytest.Item, outcome: BaseException) -> str | None:
    """Which fixture that only gates use skipped, itself or in what it is built from, when ``node`` was set up.

    pytest keeps what a fixture raised, and raises it again for the next test without calling any hook.
    """
    names = getattr(node, "fixturenames", ())
    gated = node.stash.get(IS_GATE, False) or any(_is_assertion(node, name) for name in names)
    for name in OVERRIDABLE:
        definition = fixture_definition(node, name)
        if name not in names or definition is None or not (gated or name != "retriever"):
            continue
        if may_skip(node.config, name):
            continue
        for part in (name, *parts_of(node, definition)):
            found = fixture_definition(node, part)
            kept = found.cached_result[2] if found is not None and found.cached_result is not None else None
            if kept is not None and kept[0] is outcome:
                return name
    return None


def _is_assertion(node: pytest.Item, name: str) -> bool:
    """Whether that name is an assertion fixture of ours for this test."""
    named = ("metric", "gate", "gate_family", "erag", "judge_valid")
    ours = name.removeprefix("assert_") in named or name.endswith("_at")
    return ours and is_ours(fixture_definition(node, name))
