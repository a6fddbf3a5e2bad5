"""What a page of the documentation shows: its blocks, the files in them, and the sessions, held against real ones."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# A file is named by the comment that its block begins with, else at the end of the line above: ``… `a.jsonl`:``.
FENCED = re.compile(r"(?:`(?P<above>[\w./-]+)`:\n\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (?P<name>[\w./-]+\.\w+)\n")
LEFT_OUT = re.compile(r"^…\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the file that it is (empty where it is none)."""

    kind: str
    text: str
    name: str = ""


def blocks(page: Path, *kinds: str) -> list[Block]:
    """The blocks of a page in their order, of the given languages or of all."""
    found = []
    for match in FENCED.finditer(page.read_text(encoding="utf-8")):
        named = NAMED.match(match["text"])
        found.append(Block(match["kind"], match["text"], named["name"] if named else match["above"] or ""))
    return [block for block in found if not kinds or block.kind in kinds]


def sessions(page: Path) -> list[tuple[str, str]]:
    """The commands of the ``console`` blocks, and what stands below each."""
    return [session for block in blocks(page, "console") for session in _commands(block.text)]


def _commands(shown: str) -> list[tuple[str, str]]:
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", shown, re.MULTILINE)


def steady(text: str) -> str:
    """A text without the times that differ from one run to the next."""
    return re.sub(r"\bin [\d.]+ ?s\b", "in S s", text)


def run(command: str, folder: Path, *, home: str = "") -> str:
    """What a command of a page prints in this folder, which the page calls ``home``."""
    words = shlex.split(command, comments=True)
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    program, *arguments = words
    assert program in ("pytest", "pytest-retrieval-eval", "python"), command
    done = subprocess.run(
        [Path(sys.executable) if program == "python" else Path(sys.executable).parent / program, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )
    return done.stdout.replace(str(folder), home) if home else done.stdout


def assert_printed(printed: str, shown: str, command: str) -> None:
    """What a page shows of an output is printed, line by line; a line of ``…`` stands for any number of lines."""
    *parts, last = LEFT_OUT.split(steady(shown))
    rest = "\n" + steady(printed)
    for number, part in enumerate([*parts, last]):
        place = rest.find("\n" + part)
        assert place == 0 or (number and place > 0), f"$ {command}\n{printed}\nhas not at its place\n{part}"
        rest = rest[place + len(part) :]
    assert rest == "\n" or (parts and not last), f"$ {command}\n{printed}\ngoes on after\n{last}"


def follow(page: Path, folder: Path, *, home: str) -> int:
    """Do in an empty folder what a page says, block by block; gives how many commands were held to what it shows."""
    held = 0
    for block in blocks(page):
        place = folder / block.name
        if block.kind == "console":
            for command, shown in _commands(block.text):
                assert_printed(run(command, folder, home=home), shown, command)
                held += 1
        elif block.kind == "diff":
            _change(place, block.text)
        elif block.name:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block.text, encoding="utf-8")
        else:
            assert block.kind == "sh", f"{page.name}: a block that nothing runs:\n{block.text}"
    return held


def _change(place: Path, diff: str) -> None:
    """Replace lines of a file that begin with ``-`` by the following ones with ``+``; ``+`` alone is put at its end."""
    text = place.read_text(encoding="utf-8")
    for removed, added in re.findall(r"((?:^-.*\n)*)((?:^\+.*\n)+)", diff, re.MULTILINE):
        old, new = (re.sub(r"^[-+]", "", lines, flags=re.MULTILINE) for lines in (removed, added))
        assert not old or text.count(old) == 1, f"{place.name} has not these lines once:\n{old}"
        text = text.replace(old, new) if old else text + new
    place.write_text(text, encoding="utf-8")
