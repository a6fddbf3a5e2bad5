"""A bench in memory: what a gate needs, without pytest's fixtures or files."""

from __future__ import annotations

from pathlib import Path

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.gates.baselines import MissingBaselineError
from pytest_retrieval_eval.gates.bench import Baseline
from pytest_retrieval_eval.gates.decide import check, decide
from pytest_retrieval_eval.gates.gate import Gate
from pytest_retrieval_eval.gates.measured import Measured
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.reports.text import explain


class MemoryBench:
    """Datasets, runs and baselines by name; ``recorded`` holds every verdict."""

    def __init__(self, dataset, candidate, baseline=None, *, update=False, **runs):
        self.data = dataset if isinstance(dataset, Dataset) else Dataset.of(qrels=dataset, name="handbook")
        self.runs = {
            None: _run(candidate, "candidate"),
            **{name: _run(run, name) for name, run in runs.items()},
        }
        self.baselines = {} if baseline is None else {None: _run(baseline, "main")}
        self.update = update
        self.recorded: list[Verdict] = []
        self.asked = 0

    def dataset(self, name: str | None) -> Dataset:
        self.asked += 1
        return self.data

    def run(self, dataset: Dataset, ref: str | Path | Run | None) -> Run:
        return ref if isinstance(ref, Run) else self.runs[ref]

    def baseline(self, dataset: Dataset, name: str | None, candidate: Run) -> Baseline:
        if self.update:
            return Baseline(candidate, name or "main", updated=True)
        if name not in self.baselines:
            raise MissingBaselineError(
                "no baseline yet. Create it with: pytest --retrieval-update=new tests/test_x.py::test_recall"
            )
        return Baseline(self.baselines[name], name or "main")

    def record(self, verdict: Verdict) -> None:
        self.recorded.append(verdict)

    def explain(self, verdict: Verdict) -> str:
        return explain(verdict)

    def decide(self, text: str, **options: object) -> Verdict:
        return decide(Gate.parse(text, **options), self)

    def check(self, text: str, **options: object) -> Verdict:
        return check(Gate.parse(text, **options), self)

    def measured(self, measure: str, **options: object) -> Measured:
        return Measured(measure, self, Options.of(**options))


class Collecting(MemoryBench):
    """A bench that collects the pairs to judge of its gates."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.pairs = []

    def collect(self, pairs):
        self.pairs += pairs


def _run(run, name):
    return run if isinstance(run, Run) else Run.of(run, name=name)


def hits(outcomes, doc="gold"):
    """Lists of one relevant document among others: found at rank 1 (True) or not at all (False)."""
    return {f"q{i:03d}": [doc, "other"] if hit else ["other", "more"] for i, hit in enumerate(outcomes)}


def one_each(n, doc="gold"):
    """Labels: the same relevant document, and a judged irrelevant one, for each of n queries."""
    return {f"q{i:03d}": {doc: 1, "other": 0} for i in range(n)}
