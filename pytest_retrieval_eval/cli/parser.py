"""A command line becomes arguments. Nothing heavy is imported before it has been understood."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from pytest_retrieval_eval.cli.console import PROGRAM
from pytest_retrieval_eval.cli.options import judges, measures, readers, runs
from pytest_retrieval_eval.cli.options.command import Parser
from pytest_retrieval_eval.errors import did_you_mean

COMMANDS = {each.name: each for each in (*runs.COMMANDS, *measures.COMMANDS, *readers.COMMANDS, *judges.COMMANDS)}


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments: ``does`` names the function for them, ``program`` is the command as it was asked for.

    Raises CommandLineError where they cannot be understood, and SystemExit with status 0 after ``--help`` and
    ``--version``.
    """
    parser = Parser(
        prog=PROGRAM,
        description="Runs, measures and compares retrieval outside a test run.",
        epilog=(
            "Exit status: 0 all is well; 1 a gate failed or was inconclusive, or the retriever failed on "
            "more queries than allowed; 2 nothing could be measured. Results go to stdout, notes and errors "
            "to stderr."
        ),
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS.values():
        command.add_to(commands)
    words = list(argv)
    if " ".join(words[:2]) in COMMANDS:  # pool report, beside pool
        words = [" ".join(words[:2]), *words[2:]]
    first = next((word for word in words if not word.startswith("-")), None)
    if first is None and not any(word in ("-h", "--help", "--version") for word in words):
        parser.error(f"a command is missing: {', '.join(COMMANDS)}")
    if first is not None and first not in COMMANDS:
        parser.error(f"there is no command {first!r}; {did_you_mean(first, COMMANDS)}")
    return parser.parse_args(words)


class _Version(argparse.Action):
    """Prints the version when asked, and looks it up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="Print the version and leave.")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        try:
            version = metadata.version(PROGRAM)
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"{PROGRAM} {version}", file=sys.stdout)
        raise SystemExit(0)
