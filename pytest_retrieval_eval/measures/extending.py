"""Measures from outside: a decorated function, a plugged-in module, the entry points of other packages."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_retrieval_eval.errors import MeasureError, raised
from pytest_retrieval_eval.measures.evidence import RANKS
from pytest_retrieval_eval.measures.registry import (
    ENTRY_POINTS,
    Counts,
    Definition,
    Parameter,
    Score,
    find,
    register,
    unregister,
)

if TYPE_CHECKING:
    from pytest_retrieval_eval.stats.resampled import Statistic

HOOK = "pytest_retrieval_measures"


def measure(
    name: str | None = None,
    *,
    meaning: str | None = None,
    source: str | None = None,
    cutoff: Literal["required", "optional", "none"] = "optional",
    binary: bool = True,
    parameters: Mapping[str, Parameter] | None = None,
    graded: Score | None = None,
    counts: Counts | None = None,
    rises: bool = False,
    aggregate: Literal["mean", "sum"] = "mean",
    statistic: Statistic | None = None,
    spellings: Sequence[str] = (),
    low: float = 0.0,
    high: float = 1.0,
    reads: str = RANKS,
) -> Callable[[Score], Definition]:
    """Make a measure of a function over the judged ranks, and register it for the whole process.

    The function takes the table (``JudgedRanks``) and the measure as it was asked for (its ``cutoff``,
    ``rel`` and other parameters), and gives one number for each query of the qrels, in their order. The
    measure has the function's name and the first line of its docstring, unless others are given. The other
    arguments are those of ``Definition``. To decorate the same function again replaces the measure.

    >>> import numpy as np
    >>> @measure(cutoff="required", rises=True)
    ... def top_grade(ranks, measure):
    ...     "Highest grade in the top k ÷ highest grade of the collection."
    ...     inside = ranks.rank <= measure.cutoff
    ...     best = np.zeros(ranks.queries)
    ...     np.maximum.at(best, ranks.query[inside], ranks.grade[inside])
    ...     return best / max(ranks.facts.highest, 1)
    >>> from pytest_retrieval_eval import Qrels, Run, evaluate
    >>> evaluate(Qrels.of({"q": {"a": 1, "b": 4}}), Run.of({"q": ["x", "a", "b"]}), "top_grade@2")["top_grade@2"].mean
    0.25
    >>> unregister("top_grade")
    """
    if callable(name):
        raise MeasureError("measure is called before it decorates: write @measure() or @measure('name').")

    def make(function: Score) -> Definition:
        said = meaning or (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")
        made = Definition(
            name or function.__name__,
            said or "(no description)",
            source or function.__module__,
            function,
            cutoff=cutoff,
            binary=binary,
            parameters=parameters or {},
            graded=graded,
            counts=counts,
            rises=rises,
            aggregate=aggregate if statistic is None else "statistic",
            statistic=statistic,
            spellings=tuple(spellings),
            low=low,
            high=high,
            reads=reads,
        )
        known = find(made.name)
        if known is not None and known.name == made.name and _place(known) == _place(made):
            unregister(made.name)
        register(made)
        return made

    return make


def _place(definition: Definition) -> tuple[object, ...]:
    """Where a measure's function is written; in a notebook each run of a cell is another place."""
    code = getattr(definition.score, "__code__", None)
    file = "" if definition.module == "__main__" else getattr(code, "co_filename", None)
    return definition.module, getattr(definition.score, "__qualname__", None), file


def checked(found: object, giver: str) -> tuple[Definition, ...]:
    """The definitions that somebody gave: one, or several. Raises MeasureError that names the giver."""
    if isinstance(found, Definition):
        return (found,)
    if isinstance(found, Iterable) and not isinstance(found, (str, bytes)):
        items = tuple(found)
        wrong = next((item for item in items if not isinstance(item, Definition)), None)
        if wrong is None:
            return items
        found = wrong
    raise MeasureError(
        f"{giver} gave {_shown(found)}; expected measures, as @measure(...) makes them of a function over the "
        "judged ranks."
    )


def _shown(value: object) -> str:
    text = repr(value)
    return f"a {type(value).__name__} ({text if len(text) <= 60 else text[:59] + '…'})"


def of_module(module: ModuleType, giver: str) -> tuple[Definition, ...]:
    """The measures of a module: what its hook gives, else those at its top level."""
    hook = getattr(module, HOOK, None)
    if callable(hook):
        return checked(_called(hook, giver), giver)
    found = tuple(dict.fromkeys(value for value in vars(module).values() if isinstance(value, Definition)))
    if not found:
        raise MeasureError(f"{giver} has no measure: decorate a function with @measure(...), or define {HOOK}.")
    return found


def _called(function: Callable[[], object], giver: str) -> object:
    try:
        return function()
    except Exception as error:
        raise MeasureError(f"{giver} raised {raised(error)}") from error


@contextmanager
def plugged(modules: Iterable[str], named: Mapping[str, Named] | None = None) -> Iterator[None]:
    """What these modules offer, registered for as long as the block runs: measures, and by ``named``, for each hook
    that gives functions by name, what takes them.

    Raises MeasureError for a module that cannot be imported, or offers nothing.
    """
    added: list[Definition] = []
    taken: list[tuple[Named, str]] = []
    try:
        for name in modules:
            giver, module = f"--plugin {name}", _imported(name)
            hooks = [hook for hook in named or {} if callable(getattr(module, hook, None))]
            for hook in hooks:
                _take((named or {})[hook], getattr(module, hook), f"{giver}: {hook}", taken)
            if not hooks or _has_measures(module):
                for found in of_module(module, giver):
                    register(found)
                    added.append(found)
        yield
    finally:
        withdraw(added)
        for registry, word in taken:
            registry.unregister(word)


class Named(Protocol):
    """What takes functions by name, such as kinds of readers."""

    def register(self, name: str, function: Any) -> bool:
        """Add one; False where it is there already."""

    def unregister(self, name: str) -> None:
        """Take it out again."""


def _take(registry: Named, hook: Callable[[], object], giver: str, taken: list[tuple[Named, str]]) -> None:
    given = _called(hook, giver)
    if not isinstance(given, Mapping):
        raise MeasureError(f"{giver} gave {_shown(given)}; expected a mapping from names to functions")
    for word, function in given.items():
        if registry.register(word, function):
            taken.append((registry, word))


def _has_measures(module: ModuleType) -> bool:
    return callable(getattr(module, HOOK, None)) or any(
        isinstance(value, Definition) for value in vars(module).values()
    )


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except MeasureError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise MeasureError(
                f"--plugin {name}: there is no module {error.name}; it is looked for in the current folder and "
                "among the installed packages"
            ) from None
        raise MeasureError(f"--plugin {name}: importing it raised {raised(error)}") from error


def withdraw(added: Iterable[Definition]) -> None:
    """Take these measures out again; what took their name since stays."""
    for made in added:
        if find(made.name) is made:
            unregister(made.name)


def add_entry_points() -> list[str]:
    """Register what installed packages offer; a sentence for each that could not be.

    A package that is broken is no reason that other measures cannot be had: its sentence stands in the error
    for a name that nobody knows.
    """
    failures = []
    for point in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value)):
        package = f" of the package {point.dist.name}" if point.dist else ""
        giver = f"the entry point {point.name} = {point.value}{package}"
        try:
            for found in _of_entry_point(point, giver):
                register(found)
        except MeasureError as error:
            failures.append(str(error))
    return failures


def _of_entry_point(point: metadata.EntryPoint, giver: str) -> tuple[Definition, ...]:
    try:
        loaded = point.load()
    except Exception as error:
        raise MeasureError(f"{giver} cannot be loaded: {raised(error)}") from error
    if isinstance(loaded, ModuleType):
        return of_module(loaded, giver)
    return checked(_called(loaded, giver) if callable(loaded) else loaded, giver)
