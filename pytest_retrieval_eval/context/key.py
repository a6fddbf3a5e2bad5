"""What tells the session fixtures of one test from those of another.

Session-scoped fixtures cannot see a test's marker. So every test that uses gates carries a hidden parameter, a
:class:`ContextKey`, that holds what its marker says and which definition of each overridable fixture is in effect
for it; pytest keeps one set of session fixtures for each distinct key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from pytest_retrieval_eval.context.definitions import OVERRIDABLE, fixture_definition, is_ours, parameters_of, place_of
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.session.process import Session

MARKER = "retrieval"
KEYED = ("dataset", "run", "baseline")  # what of a marker is settled at collection


@dataclass(frozen=True)
class ContextKey:
    """What tells the session fixtures of one test from those of another.

    ``dataset``, ``run`` and ``baseline`` come from the marker; ``definitions`` says where each overridable fixture
    that is in effect for the test was defined.
    """

    dataset: str | None = None
    run: str | None = None
    baseline: str | None = None
    definitions: tuple[tuple[str, str], ...] = ()

    def check(self, marked: Mapping[str, object]) -> None:
        """Refuse a marker that came too late to be part of this key: what it names would not be measured."""
        for name in KEYED:
            value, kept = marked.get(name), getattr(self, name)
            if value != kept and not (isinstance(value, list | tuple) and kept in value):
                raise GateError(
                    f"@pytest.mark.retrieval({name}={value!r}) was given to this test when its {name} was settled "
                    "already (by the marks of a parameter, a hook or add_marker): mark the function, its class or its "
                    f"module, or name the {name} in the gate"
                )


def context_keys(node: pytest.Item) -> list[ContextKey]:
    """The keys of one test: one, or one for each dataset where the marker lists several."""
    marked = marked_values(node)
    found: list[tuple[str, str]] = []
    for name in OVERRIDABLE:
        definition = fixture_definition(node, name)
        if definition is not None:
            found.append((name, place_of(definition)))
    datasets = marked.get("dataset")
    names = cast("Sequence[str]", datasets) if isinstance(datasets, list | tuple) else [cast("str | None", datasets)]
    return [
        ContextKey(
            dataset=name,
            run=cast("str | None", marked.get("run")),
            baseline=cast("str | None", marked.get("baseline")),
            definitions=tuple(found),
        )
        for name in names
    ]


def dataset_names(items: Sequence[pytest.Item], session: Session) -> set[str] | None:
    """The names that datasets of these tests can have; None where a project's own fixture may give them any."""
    names = set(session.settings.datasets)
    for item in items:
        if not is_ours(fixture_definition(item, "retrieval_dataset")):
            return None
        key = parameters_of(item).get("retrieval_context")
        if isinstance(key, ContextKey) and key.dataset is not None:
            names.add(session.dataset_name(key.dataset))
    return names


def marked_values(node: pytest.Item) -> dict[str, object]:
    """The keywords of a test's ``retrieval`` markers, checked: of each keyword, what the closest marker says."""
    found: dict[str, tuple[object, object]] = {}
    for level, marker in node.iter_markers_with_node(MARKER):
        for key, value in _checked(marker).items():
            nearer, said = found.setdefault(key, (level, value))
            if nearer is level and said != value:
                raise SettingsError(
                    f"@pytest.mark.retrieval({key}=…) stands twice, with {said!r} and with {value!r}, on the same "
                    "function, class (with those that it inherits from) or module: keep one of them"
                )
    return {key: value for key, (_, value) in found.items()}


def _checked(marker: pytest.Mark) -> Mapping[str, object]:
    """The keywords of one marker."""
    from pytest_retrieval_eval.gates.options import KEYWORDS

    known = {"baseline", *KEYWORDS}
    if marker.args:
        raise SettingsError(f"@pytest.mark.retrieval takes keywords only, not {marker.args[0]!r}")
    for key in marker.kwargs:
        if key not in known:
            raise SettingsError(f"@pytest.mark.retrieval({key}=…): {did_you_mean(key, known)}")
    for key in KEYED:
        value = marker.kwargs.get(key)
        listed = key == "dataset" and isinstance(value, list | tuple) and len(value) > 0
        names = cast("Sequence[object]", value) if listed else [value]
        if key in marker.kwargs and not all(isinstance(name, str) and name for name in names):
            expected = "a name or a list of names" if key == "dataset" else "a name or a path, as text"
            raise SettingsError(f"@pytest.mark.retrieval({key}={value!r}): expected {expected}")
    return marker.kwargs
