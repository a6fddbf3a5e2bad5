"""Fixtures that several test folders use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

# Sessions in this process share the engine: pytester drops what a session imports first, and numpy cannot be
# imported twice.
import hypothesis
import pytest
from support import HITS, QRELS, TAGS, TEXTS

import pytest_retrieval_eval.gatefile
import pytest_retrieval_eval.gates.measured
import pytest_retrieval_eval.readers.absent
import pytest_retrieval_eval.reports.terminal  # noqa: F401
from pytest_retrieval_eval.measures import registry

# A machine may be slow, which is no fault of what is tested.
hypothesis.settings.register_profile("any-speed", deadline=None)
hypothesis.settings.load_profile("any-speed")

registry.definitions()  # the rooms of measures are part of the engine


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of ours sees that it runs in CI, or under a user's own options."""
    for name in list(os.environ):
        if name in ("CI", "PYTEST_ADDOPTS", "PYTEST_PLUGINS") or name.startswith(("GITHUB_", "PYTEST_XDIST")):
            monkeypatch.delenv(name)


@pytest.fixture(params=[(), ("-n2",)], ids=["serial", "n2"])
def dist(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The arguments of one process, and of two workers."""
    return request.param


class Project:
    """A user's project in a temporary folder: a small collection, a retriever, tests."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.ini()

    def ini(self, *lines: str, datasets: tuple[str, ...] = ("small = eval/small",)) -> None:
        rows = "\n".join(f"    {line}" for line in datasets)
        head = f"[pytest]\nretrieval_datasets =\n{rows}\n" if datasets else "[pytest]\n"
        (self.path / "pytest.ini").write_text(head + "\n".join(lines) + "\n")

    def dataset(
        self,
        name: str = "eval/small",
        qrels: Mapping[str, Mapping[str, float]] = QRELS,
        texts: Mapping[str, str] = TEXTS,
        tags: Mapping[str, Mapping[str, object]] = TAGS,
    ) -> None:
        folder = self.path / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        rows = [{"_id": query, "text": text, "tags": tags.get(query, {})} for query, text in texts.items()]
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines = [f"{query}\t{doc}\t{grade}\n" for query, row in qrels.items() for doc, grade in row.items()]
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))

    def run_file(self, path: str, hits: Mapping[str, list[str]]) -> str:
        rows = [
            f"{query} Q0 {doc} {rank} {100 - rank} run\n"
            for query, docs in hits.items()
            for rank, doc in enumerate(docs, 1)
        ]
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(rows))
        return path

    def conftest(self, hits: Mapping[str, list[str]] = HITS, folder: str = ".") -> None:
        """A conftest.py whose retriever answers by query text, and counts its calls in a file."""
        by_text = {TEXTS.get(query, query): docs for query, docs in hits.items()}
        place = self.path / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "conftest.py").write_text(
            "import os, pathlib, pytest\n"
            f"HITS = {by_text!r}\n"
            f"CALLS = pathlib.Path({str(self.path / 'calls')!r})\n"
            "@pytest.fixture(scope='session')\n"
            "def retriever():\n"
            "    CALLS.mkdir(exist_ok=True)\n"
            f"    (CALLS / ('{folder}'.replace('/', '_') + '-' + str(os.getpid()))).touch()\n"
            "    return lambda query: HITS[query]\n"
        )

    @property
    def retriever_calls(self) -> int:
        folder = self.path / "calls"
        return len(list(folder.iterdir())) if folder.exists() else 0

    def test(self, body: str, name: str = "test_it.py") -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(body)

    def gates(self, text: str | bytes, name: str = "small.gates.yaml") -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())

    def run(self, *arguments: str, own_process: bool = False) -> pytest.RunResult:
        """A session of this project: in this process, or in others where workers or the process itself matter."""
        elsewhere = own_process or any(argument.startswith("-n") for argument in arguments)
        run = self.pytester.runpytest_subprocess if elsewhere else self.pytester.runpytest_inprocess
        return run("-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project with the small collection and a retriever whose recall@2 is 0.625."""
    made = Project(pytester)
    made.dataset()
    made.conftest()
    return made
