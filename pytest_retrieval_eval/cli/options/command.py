"""What a command is: its words, its options, and the function that does it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn


class CommandLineError(Exception):
    """A command line that cannot be understood: ``program`` is the command that was asked, the text says why."""

    def __init__(self, program: str, sentence: str) -> None:
        super().__init__(sentence)
        self.program = program


class Parser(argparse.ArgumentParser):
    """argparse's, without abbreviations and without an exit of its own on errors."""

    def __init__(self, **keywords: Any) -> None:
        # An abbreviation that works today is another option's tomorrow.
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        """Raise CommandLineError."""
        raise CommandLineError(self.prog, f"{message}; see {self.prog} --help")


@dataclass(frozen=True, eq=False)
class Command:
    """One command. ``does`` is ``module:function`` in ``cli``: the module is imported once the command is asked for.

    A command with ``inner`` ones, such as ``cache stats``, does nothing by itself.
    """

    name: str
    help: str
    description: str = ""
    epilog: str = ""
    options: Callable[[Parser], None] | None = None
    does: str = ""
    inner: tuple[Command, ...] = ()

    def add_to(self, commands: Any) -> None:
        """Teach argparse this command; parsed arguments have ``does`` and ``program``, the words that asked for it."""
        parser: Parser = commands.add_parser(
            self.name, help=self.help, description=self.description or self.help, epilog=self.epilog or None
        )
        if self.options is not None:
            self.options(parser)
        if self.inner:
            below = parser.add_subparsers(dest="inner", required=True, metavar="WHAT", parser_class=Parser)
            for command in self.inner:
                command.add_to(below)
        else:
            parser.set_defaults(does=self.does, program=parser.prog)
