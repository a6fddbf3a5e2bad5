"""Readers of the command line: a file of settings or an import string, and the labels that are made with one."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_retrieval_eval.cli.console import PROGRAM, Console
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.gates.imported import import_made
from pytest_retrieval_eval.labels.labelling import ERAG, JUDGED, LabelSource
from pytest_retrieval_eval.labels.source import check_name, source
from pytest_retrieval_eval.settings import CACHE, JUDGMENTS, is_settings_file, settings_of

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.options import Options
    from pytest_retrieval_eval.labels.judged import Judged
    from pytest_retrieval_eval.readers.reading import Reader
    from pytest_retrieval_eval.readers.readings.store import ReadingCache


FILL = "the same command with --cache-mode rw"


def settings_in(text: str, option: str, what: str) -> tuple[dict[str, object], Path]:
    """The settings in that file, and the folder that their paths are relative to; ``option`` names the file."""
    from pytest_retrieval_eval.collection.formats.files import decode, read_bytes

    return settings_of(decode(read_bytes(text), text), f"{option} {text}", what), Path(text).absolute().parent


def given_reader(text: str) -> tuple[Mapping[str, object] | Reader, Path]:
    """What ``--reader`` names, the settings in a file or a reader, and the folder that their paths are relative to."""
    if is_settings_file(text):
        return settings_in(text, "--reader", "a reader, such as kind: transformers")
    return _imported(text), Path.cwd()


def opened_cache(arguments: argparse.Namespace) -> ReadingCache:
    """The cache that a command line names, or the usual one."""
    from pytest_retrieval_eval.readers.readings.store import ReadingCache

    return ReadingCache(arguments.cache or CACHE, arguments.cache_mode or "rw", fill=FILL)


def say_readings(cache: ReadingCache, console: Console, what: str = "reader") -> None:
    """What the readers behind a cache did, and what to know of it; said before they are closed."""
    from pytest_retrieval_eval.readers.readings.cache import told
    from pytest_retrieval_eval.readers.readings.counters import summary_line

    counters, notes = told(cache)
    for note in notes:
        console.note(note)
    console.say(summary_line(counters, what))


def _imported(text: str) -> Reader:
    """The reader that ``MODULE:NAME`` names, or that it makes when it is called."""
    return cast(
        "Reader",
        import_made(
            text,
            "--reader",
            "reader",
            ("identity", "read", "close"),
            example="myapp.readers:make",
            hint="; a function of a query and texts stands in a YAML file: kind: callable, function: MODULE:NAME",
        ),
    )


class Sources:
    """The sources of labels of a command, with the reader that it names, behind the cache that it names."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._reader: Reader | None = None
        self._cache: ReadingCache | None = None
        self._judged: Judged | None = None
        for name in arguments.labels or ():
            check_name(name)
        if arguments.judged_by is not None and JUDGED not in (arguments.labels or ()):
            raise SettingsError(f"--judged-by says whose judgments count; add --labels {JUDGED}")
        if ERAG not in (arguments.labels or ()):
            for name in ("reader", "answer_metric"):
                if getattr(arguments, name) is not None:
                    raise SettingsError(
                        f"--{name.replace('_', '-')} is about what a reader answers; add --labels {ERAG}"
                    )
        elif arguments.reader is None:
            raise SettingsError(
                f"--labels {ERAG} asks a reader: name it with --reader, a file of its settings or MODULE:NAME"
            )

    def __call__(self, name: str, options: Options | None = None) -> LabelSource:
        """The source of that name."""
        if name == JUDGED:
            if self._judged is None:
                from pytest_retrieval_eval.labels.judged import Judged
                from pytest_retrieval_eval.labels.judgments import Judgments

                given = self._arguments
                store = Judgments(given.judgments, judged_by=given.judged_by or (), contradictions=given.contradictions)
                option = "" if given.judgments == JUDGMENTS else f" --judgments {shlex.quote(given.judgments)}"
                command = f"compare … --to-judge pairs.jsonl; {PROGRAM} judge pairs.jsonl{option}"
                self._judged = Judged(store, fill=f"{PROGRAM} {command}")
            return self._judged
        if check_name(name) != ERAG:
            return source(name)
        from pytest_retrieval_eval.labels.erag import METRIC, Erag

        return Erag(self._opened(), self._arguments.answer_metric or METRIC)

    def _opened(self) -> Reader:
        if self._reader is None:
            from pytest_retrieval_eval.readers.session import behind_cache

            self._cache = opened_cache(self._arguments)
            self._reader = behind_cache(*given_reader(self._arguments.reader), self._cache)
        return self._reader

    def close(self, console: Console) -> None:
        """Let go of the reader, and say what it did."""
        if self._reader is None or self._cache is None:
            return
        say_readings(self._cache, console)
        self._reader.close()
        self._cache.close()
