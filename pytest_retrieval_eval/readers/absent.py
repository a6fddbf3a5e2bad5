"""Packages, models and accelerators that are not here: one class of errors, and sentences that say what to do."""

from __future__ import annotations

import importlib
from typing import Any

from pytest_retrieval_eval.errors import GateError


class AbsentReaderError(GateError):
    """A reader that cannot be built on this machine: a package, the model or the accelerator is absent."""


def require(module: str, extra: str, what: str) -> Any:
    """The module, or the error that names the extra which brings it.

    >>> require("no_such_package", "erag", "a reader of kind 'fid'")
    Traceback (most recent call last):
    pytest_retrieval_eval.readers.absent.AbsentReaderError: a reader of kind 'fid' needs the package no_such_package; \
install it with: pip install 'pytest-retrieval-eval[erag]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise  # the package is here, and something it needs is not
        raise AbsentReaderError(
            f"{what} needs the package {error.name}; install it with: pip install 'pytest-retrieval-eval[{extra}]'"
        ) from None
