"""A folder with a small collection, and two ways to call the program: in process and as a process."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_retrieval_eval.cli import main

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"b": 2}, "q3": {"c": 1, "d": 1}, "q4": {"d": 3}}
TAGS = {
    "q1": {"type": "policy"},
    "q2": {"type": "faq"},
    "q3": {"type": "policy", "year": 2024},
    "q4": {"type": "faq"},
}
#: recall@2 is 1, 1, .5 and 0: 0.625 in the mean
HITS = {"q1": ["a", "b"], "q2": ["c", "b"], "q3": ["c", "a", "d"], "q4": ["a", "b", "c"]}
#: recall@2 is 1 for every query
BEST = {"q1": ["a"], "q2": ["b"], "q3": ["c", "d"], "q4": ["d"]}

_modules = itertools.count()


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]

    @property
    def values(self) -> dict[tuple[str, str], float]:
        return {(query, measure): float(value) for query, measure, value in self.rows}

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if not line.startswith("note: ")]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of every test is its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """``main(arguments)`` in this process."""

    def call(*arguments: object) -> Result:
        capfd.readouterr()
        status = main([str(argument) for argument in arguments])
        return Result(status, *capfd.readouterr())

    return call


def process(*arguments: object, environment: Mapping[str, str] | None = None, **options: object) -> Result:
    """``python -m pytest_retrieval_eval.cli arguments`` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_retrieval_eval.cli", *map(str, arguments)],
        capture_output=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
        **options,  # type: ignore[call-overload]
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(name="process")
def _process() -> Callable[..., Result]:
    return process


class Files:
    """Writes small files into the current folder and returns their paths as text."""

    hits = HITS
    best = BEST

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def qrels(self, name: str = "qrels.txt", qrels: Mapping[str, Mapping[str, float]] = QRELS) -> str:
        return self.write(name, "".join(f"{q} 0 {d} {g}\n" for q, judged in qrels.items() for d, g in judged.items()))

    def run(self, name: str, hits: Mapping[str, Sequence[str]]) -> str:
        return self.write(
            name,
            "".join(
                f"{query} Q0 {doc} {rank} {100 - rank} tag\n"
                for query, docs in hits.items()
                for rank, doc in enumerate(docs, 1)
            ),
        )

    def dataset(self, name: str = "small") -> str:
        rows = [{"_id": q, "text": f"text of {q}", "tags": TAGS[q]} for q in QRELS]
        rows.append({"_id": "q5", "text": "nobody knows", "unanswerable": True})
        rows.append({"_id": "q6", "text": "not judged"})
        self.write(f"{name}/queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        lines = "".join(f"{q}\t{d}\t{g}\n" for q, judged in QRELS.items() for d, g in judged.items())
        self.write(f"{name}/qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + lines)
        self.write(f"{name}/qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\n")
        return name


@pytest.fixture
def files(here: Path) -> Files:
    return Files(here)


@pytest.fixture
def module(here: Path) -> Iterator[Callable[[str], str]]:
    """``module(source)`` makes a module in the current folder; its name, unused before."""
    made: list[str] = []

    def make(source: str) -> str:
        made.append(f"retriever_of_a_test_{next(_modules)}")
        (here / f"{made[-1]}.py").write_text(source)
        importlib.invalidate_caches()
        return made[-1]

    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    yield make
    sys.dont_write_bytecode = before
    for name in made:
        sys.modules.pop(name, None)
