"""What an import string names: a retriever, for the command line and for gate files; a reader or a judge."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean, raised
from pytest_retrieval_eval.wording import shown


def import_retriever(text: str, *, factory: bool = False, given: str = "--retriever") -> Any:
    """The object that an import string such as ``myapp.search:search`` names, or what it returns when called.

    ``given`` is where the string stands, for errors; only the command line has a ``--factory``. Raises
    SettingsError where there is no such object, its module cannot be imported, or it cannot be a retriever.
    """
    found, name = _named(text, given, "myapp.search:search")
    if factory:
        return _made(text, found)
    line = given == "--retriever"
    if inspect.isclass(found):
        advice = ", or add --factory to make one without arguments" if line else ""
        raise SettingsError(f"{given} {text}: {name} is a class; name an instance of it{advice}")
    if callable(found) and _takes_nothing(found):
        advice = "add --factory" if line else "name what it returns"
        raise SettingsError(
            f"{given} {text}: {name} takes no argument, and a retriever takes the text of a query; if it makes the "
            f"retriever, {advice}"
        )
    return found


def import_made(text: str, given: str, what: str, parts: Sequence[str], *, example: str, hint: str = "") -> Any:
    """The reader or judge that an import string names, or that it makes when it is called without arguments.

    ``what`` says which of them, and ``parts`` are the attributes that it must have. Raises SettingsError where there
    is none; ``hint`` then says what to do about an object that cannot be called so.
    """
    found, name = _named(text, given, example)
    made = found
    if callable(found) and (inspect.isclass(found) or not all(hasattr(found, part) for part in parts)):
        try:
            inspect.signature(found).bind()
        except TypeError as error:
            raise SettingsError(f"{given} {text}: {name} cannot be called without arguments: {error}{hint}") from None
        except ValueError:  # built in: it hides its signature
            pass
        try:
            made = found()
        except GateError:
            raise
        except (Exception, SystemExit) as error:
            raise SettingsError(f"{given} {text}: {name}() failed: {raised(error)}") from error
    if not all(hasattr(made, part) for part in parts):
        known = f"{', '.join(parts[:-1])} or {parts[-1]}"
        raise SettingsError(f"{given} {text}: {shown(repr(made))} is no {what}: it has no {known}{hint}")
    return made


def _named(text: str, given: str, example: str) -> tuple[Any, str]:
    """The object of that name, and the name with its module."""
    module_name, colon, path = text.partition(":")
    if not (module_name and colon and path):
        raise SettingsError(f"{given} {text}: expected MODULE:NAME, such as {example}")
    if "/" in module_name or module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        raise SettingsError(f"{given} {text}: expected a module, not a file; did you mean {dotted}:{path}?")
    found = _import(given, text, module_name)
    name = module_name
    for attribute in path.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            near = did_you_mean(attribute, [each for each in dir(found) if not each.startswith("_")])
            hint = f"; {near}" if near.startswith("did") else ""
            raise SettingsError(f"{given} {text}: {name} has no {attribute!r}{hint}") from None
        name = f"{name}.{attribute}"
    return found, name


def _import(given: str, text: str, module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            where = (
                "in the current folder and among the installed packages"
                if given.startswith("--")
                else "where pytest looks for modules: add its folder to the ini value pythonpath"
            )
            raise SettingsError(f"{given} {text}: there is no module {error.name}; it is looked for {where}") from None
        raise _cannot_import(given, text, module_name, error) from error
    except (Exception, SystemExit) as error:  # a script without a main guard may leave with status 0
        raise _cannot_import(given, text, module_name, error) from error


def _cannot_import(given: str, text: str, module_name: str, error: BaseException) -> SettingsError:
    return SettingsError(f"{given} {text}: {module_name} cannot be imported: {raised(error)}")


def _made(text: str, factory: Any) -> Any:
    if not callable(factory):
        raise SettingsError(f"--factory: {text} is {excerpt(factory)}; expected something to call without arguments")
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise SettingsError(f"--factory: {text}() failed: {raised(error)}") from error
    if inspect.iscoroutine(made):
        made.close()
        raise SettingsError(f"--factory: {text} is asynchronous; expected a plain function that returns the retriever")
    return made


def _takes_nothing(call: Any) -> bool:
    try:
        return not inspect.signature(call).parameters
    except (TypeError, ValueError):  # built in, or it hides its signature
        return False
