"""``pytest-retrieval-eval run | evaluate | compare | compare-all | …``: the engine, no tests run.

pytest is never imported here, and nothing heavy before a command line has been understood.

Exit status: 0 where all is well; 1 where a gate failed or was inconclusive, a retriever failed on more queries
than allowed, a reading of a cache is damaged, or pairs were left without a grade; 2 where nothing could be measured:
wrong use, files that cannot be read, gates that cannot be decided.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_retrieval_eval.cli.console import INTERRUPTED, Console
from pytest_retrieval_eval.cli.options.command import CommandLineError
from pytest_retrieval_eval.cli.parser import parse
from pytest_retrieval_eval.errors import GateError

__all__ = ["main"]

GOOD, FAILED, UNUSABLE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Do what a command line says (``sys.argv`` without one) and return its exit status.

    Results go to stdout, everything else to stderr. What cannot be used is one sentence, without a traceback.
    """
    console = Console()
    try:
        status = _main(sys.argv[1:] if argv is None else list(argv), console)
        return status if console.close() else UNUSABLE
    finally:
        console.restore()


def _main(argv: list[str], console: Console) -> int:
    try:
        arguments = parse(argv)
        console.program = arguments.program
        return _do(arguments, console)
    except SystemExit as leaving:  # argparse has said what was to be said
        return leaving.code if isinstance(leaving.code, int) else GOOD
    except CommandLineError as error:
        console.program = error.program
        console.error(str(error))
    except GateError as error:
        console.error(str(error))
    except OSError as error:
        # Permissions, full disks, files that go away: not a fault of this program.
        place = f"{error.filename}: " if error.filename is not None else ""
        console.error(f"{place}{error.strerror or error}")
    except KeyboardInterrupt:
        console.error("interrupted; nothing was written")
        return INTERRUPTED
    except Exception:
        # A traceback's usual status is 1, which here would say that a gate failed.
        traceback.print_exc()
        console.error("this is a fault of the program, not of its input; please report it with the traceback above")
    return UNUSABLE


def _do(arguments: argparse.Namespace, console: Console) -> int:
    module, _, name = arguments.does.partition(":")
    do = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_here_first())
        if "plugin" in arguments:
            stack.enter_context(_plugged(arguments.plugin))
        status: int = do(arguments, console)
        return status


@contextlib.contextmanager
def _here_first() -> Iterator[None]:
    """What a command line names (MODULE:NAME, --plugin) is looked for in the current folder first."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)


def _plugged(modules: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """What the modules of ``--plugin`` offer."""
    from pytest_retrieval_eval.measures.extending import plugged

    named: dict[str, Any] = {}
    if modules:
        from pytest_retrieval_eval.hookspecs import NAMED

        named = {hook: importlib.import_module(f"pytest_retrieval_eval.{place}") for hook, place in NAMED.items()}
    return plugged(modules, named)
