"""What pytest carries of ours: the session on its config, the attempt on a test."""

from __future__ import annotations

import pytest

from pytest_retrieval_eval.session.attempt import Attempt
from pytest_retrieval_eval.session.process import Session

SESSION = pytest.StashKey[Session]()
ATTEMPT = pytest.StashKey[Attempt]()
IS_GATE = pytest.StashKey[bool]()  # an item that is a gate itself and asks for no assertion fixture


def session_of(config: pytest.Config) -> Session:
    """The state of this process."""
    return config.stash[SESSION]


def attempt_of(node: pytest.Item) -> Attempt:
    """The attempt that is running at this test."""
    if ATTEMPT not in node.stash:
        begin_attempt(node)
    return node.stash[ATTEMPT]


def begin_attempt(node: pytest.Item) -> None:
    """Begin an attempt at this test; what belongs to an earlier one stays with that."""
    node.stash[ATTEMPT] = Attempt(node.nodeid, session_of(node.config).too_late)
