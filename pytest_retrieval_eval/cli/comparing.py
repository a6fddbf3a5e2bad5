"""``compare``: two runs on the same judgments, as a report and through gates."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.cli.console import PROGRAM, Console, json_text
from pytest_retrieval_eval.cli.inputs import (
    Named,
    by_spans,
    default_measures,
    named_measures,
    parse_where,
    read_collection,
    select_queries,
)
from pytest_retrieval_eval.cli.reading import Sources
from pytest_retrieval_eval.cli.staging import read_stages
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.errors import DataError, GateError, GateFailure, SettingsError
from pytest_retrieval_eval.gates.baselines import read_baseline
from pytest_retrieval_eval.gates.bench import Baseline
from pytest_retrieval_eval.gates.decide import check, decide
from pytest_retrieval_eval.gates.gate import Gate, Operator
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.revisions import Revision, is_revision, read_revision
from pytest_retrieval_eval.gates.target import baseline
from pytest_retrieval_eval.gates.tojudge import Pair, check_path, merged, write
from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import chain
from pytest_retrieval_eval.reports.text import explain, headline
from pytest_retrieval_eval.settings import is_url
from pytest_retrieval_eval.wording import counted

DEFAULT = ("ndcg@10", "recall@10", "mrr@10")
DEFAULT_OF_SPANS = ("span_ndcg@10", "span_recall@10", "span_coverage@10")
# What says how a gate decides, and means nothing for a report.
_GATES_ONLY = ("rule", "allow", "judged", "by", "min_n", "correction")
_RUN_ENDINGS = (".gz", ".zst", ".bz2", ".xz", ".jsonl", ".json", ".trec", ".txt", ".run")
# How many queries are shown without -v and with it; with -vv all of them, as in pytest.
_LIMITS = {0: 15, 1: 60}
# Of a verdict, what says how it was decided; a report has decided nothing.
_DECISION = (
    "gate",
    "by",
    "slice",
    "decides",
    "slices",
    "members",
    "collected",
    "p_adjusted",
    "correction",
    "status",
    "reason",
    "operator",
    "rule",
    "target",
    "margin",
    "bound",
    "allow",
    "resolvable",
)


def compare_runs(arguments: argparse.Namespace, console: Console) -> int:
    """The command. Everything is computed before anything is printed."""
    where = parse_where(arguments.where)
    sources = Sources(arguments)
    gates = [Gate.parse(text, **_options(arguments, where, gate=True)) for text in arguments.gate]
    report_options = Options.of(**_options(arguments, where, gate=False))
    measures = named_measures(arguments.measure)
    if not gates:
        for name in _GATES_ONLY:
            if getattr(arguments, name) is not None:
                raise SettingsError(
                    f"--{name.replace('_', '-')} says how a gate decides, and there is none; add --gate"
                )
    dataset = read_collection(arguments.qrels, queries=arguments.queries, split=arguments.split)
    select_queries(dataset, where)
    if arguments.to_judge is not None:
        check_path(Path(arguments.to_judge), "--to-judge")
    old, new = read_side(arguments.baseline, dataset, arguments.stage), Run.read(arguments.candidate)
    bench = FileBench(dataset, old, new, sources, _Pipeline(arguments, new))
    try:
        return _compared(arguments, bench, gates, measures, where, report_options, console)
    finally:
        sources.close(console)


def _compared(
    arguments: argparse.Namespace,
    bench: FileBench,
    gates: list[Gate],
    measures: list[Named],
    where: Mapping[str, object] | None,
    report_options: Options,
    console: Console,
) -> int:
    dataset = bench.data
    if not measures and not gates:
        known = dataset.qrels if arguments.labels is None else None
        usual = DEFAULT_OF_SPANS if by_spans(dataset) and arguments.labels is None else DEFAULT
        measures = default_measures(usual, known, bench.old, bench.new)
    reports = [decide(Gate(measure, _towards(measure), baseline, report_options), bench) for _, measure in measures]
    errors = _check(gates, bench)
    if arguments.json:
        console.write(json_text(_document(bench, where, reports)) + "\n")
    else:
        _print(bench, reports, _LIMITS.get(arguments.verbose), arguments.verbose > 0, console)
    if arguments.to_judge is not None:
        rows = merged(bench.pairs)
        write(Path(arguments.to_judge), rows)
        console.say(f"{counted(len(rows), 'pair')} to judge; wrote {arguments.to_judge}")
    for sentence in errors:
        console.error(sentence)
    if errors:
        return 2
    return 0 if all(bench.verdicts) else 1


class _Pipeline:
    """What a command line says of stages: their runs, and which of them the candidate is."""

    def __init__(self, arguments: argparse.Namespace, candidate: Run) -> None:
        self.stage: str | None = arguments.stage
        self.baseline: str = arguments.baseline
        self.stages = read_stages(arguments.stages)
        if self.stage is not None:
            if self.stage in self.stages:
                raise SettingsError(f"--stage {self.stage} is CANDIDATE: leave it out of --stages")
            before = self.stages
            named = {**dict.fromkeys(before), self.stage: None}
            self.stages = Stages(named, lambda name, _: candidate if name == self.stage else before[name])


def _towards(measure: Measure) -> Operator:
    """How a report holds a measure against the baseline: of times and other costs a larger value is the worse one."""
    return "<=" if chain(measure)[-1][0].falls else ">="


class FileBench:
    """Where the gates of a command line find their data: a dataset and two runs, from files."""

    def __init__(self, dataset: Dataset, old: Run, new: Run, sources: Sources, pipeline: _Pipeline) -> None:
        self.data, self.old, self.new, self.labels, self._pipeline = dataset, old, new, sources, pipeline
        self.verdicts: list[Verdict] = []
        self.pairs: list[Pair] = []
        self._runs: dict[str, Run] = {}

    def dataset(self, name: str | None) -> Dataset:
        """The one dataset."""
        if name not in (None, self.data.name):
            raise GateError(f"there is no dataset {name!r} here; the command line compares on {self.data.name}")
        return self.data

    def run(self, dataset: Dataset, ref: str | Path | Run | None) -> Run:
        """The candidate, or the run in a file that ``against(FILE)`` names."""
        if ref is None:
            return self.new
        if isinstance(ref, Run):
            return ref
        if ref in self._pipeline.stages:
            return self._pipeline.stages[str(ref)]
        if str(ref) not in self._runs:
            self._runs[str(ref)] = Run.read(ref)
        return self._runs[str(ref)]

    def baseline(self, dataset: Dataset, name: str | None, candidate: Run) -> Baseline:
        """The run that the command line names, or ``baseline[NAME]`` from the dataset's folder."""
        if name is None:
            return Baseline(self.old, self.old.name)
        return Baseline(_stored(name, dataset), name)

    def stages(self) -> Stages:
        """Those that the command line names."""
        return self._pipeline.stages

    def stage_baseline(self, dataset: Dataset, name: str | None, stage: str, candidate: Run) -> Baseline:
        """The baseline of a stage: of the one under test the run that the command line names, else ``NAME.STAGE``."""
        if name is None and stage == self._pipeline.stage:
            return Baseline(self.old, self.old.name)
        name = name if name is not None else self._pipeline.baseline
        if _is_file(name, dataset) or is_revision(name) or is_url(name):
            raise GateError(f"{name} is one run, and the baseline of the stage {stage} is asked for: name a baseline")
        return Baseline(_stored(f"{name}.{stage}", dataset), f"{name}.{stage}")

    def record(self, verdict: Verdict) -> None:
        """Keep it, to be printed."""
        self.verdicts.append(verdict)

    def collect(self, pairs: Sequence[Pair]) -> None:
        """Keep the pairs to judge, to be written."""
        self.pairs += pairs

    def explain(self, verdict: Verdict) -> str:
        """The headline is enough here: the whole text is printed with the other verdicts'."""
        return headline(verdict)


def read_side(text: str, dataset: Dataset, stage: str | None = None) -> Run:
    """The run that BASELINE means: a file, or a name in the ``baselines/`` of the dataset, of a stage where one is."""
    if is_revision(text):
        return _stored(text, dataset)
    if _is_file(text, dataset):
        return Run.read(text)
    return _stored(text if stage is None else f"{text}.{stage}", dataset)


def _is_file(text: str, dataset: Dataset) -> bool:
    return Path(text).is_file() or dataset.path is None or text.lower().endswith(_RUN_ENDINGS) or "/" in text


def _stored(name: str, dataset: Dataset) -> Run:
    if is_url(name):
        return Run.read(name)
    if is_revision(name):
        place = None if dataset.path is None else dataset.baseline_path("main")
        return read_revision(Revision.parse(name), place, Path.cwd())
    path = dataset.baseline_path(name)
    create = f"{PROGRAM} run --dataset {dataset.path} --retriever MODULE:NAME -o {path}"
    return read_baseline(path, how_to_create=create)


def _options(arguments: argparse.Namespace, where: Mapping[str, object] | None, *, gate: bool) -> dict[str, Any]:
    names = [
        "alpha",
        "sided",
        "answer_metric",
        "allow_failures",
        "allow_stale",
        "unit",
        "normalise",
        "stage",
        *(_GATES_ONLY if gate else ()),
    ]
    labels = tuple(arguments.labels) if arguments.labels else None
    return {
        "where": where,
        "labels": labels,
        "pool": tuple(arguments.pool),
        **{name: getattr(arguments, name) for name in names},
    }


def _check(gates: list[Gate], bench: FileBench) -> list[str]:
    """Decide every gate, each for itself; the sentences of those that could not be decided."""
    errors: list[str] = []
    for gate in gates:
        try:
            check(gate, bench)
        except GateFailure:
            continue
        except DataError:  # a file is not what it claims to be: no gate can be decided
            raise
        except GateError as error:
            said = str(error)
            errors.append(said if said.startswith(str(gate)) else f"{gate}: {said}")
    return errors


def _print(bench: FileBench, reports: list[Verdict], limit: int | None, verbose: bool, console: Console) -> None:
    told: set[str] = set()
    where = next((each.where for each in (*reports, *bench.verdicts) if each.where), "")
    about = f"{bench.data.name}, where {where}" if where else bench.data.name
    blocks = [f"{about}: {bench.old.name} → {bench.new.name}"]
    for report in reports:
        # The first line would name a gate that nobody asked for; "weak" and "could fail" are said of gates.
        notes = tuple(note for note in report.notes if not note.startswith(("weak: ", "unjudged documents: ")))
        report = replace(report, notes=notes)
        blocks.append(
            explain(_news(report, told), limit, in_python=False, spread=limit != _LIMITS[0]).partition("\n")[2]
        )
    for verdict in bench.verdicts:
        if verdict.status == "error":
            blocks.append(headline(verdict))
        elif verdict.ok and not verbose:
            # The queries are what to look at where a gate fails.
            blocks.append(
                explain(replace(_news(verdict, told), queries=()), limit, in_python=False, spread=limit != _LIMITS[0])
            )
        else:
            blocks.append(explain(_news(verdict, told), limit, in_python=False, spread=limit != _LIMITS[0]))
    if len(bench.verdicts) > 1:
        kinds = [verdict.status for verdict in bench.verdicts]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        blocks.append(f"{counted(len(kinds), 'gate')}: {counts}")
    console.write("\n\n".join(blocks) + "\n")


def _news(verdict: Verdict, told: set[str]) -> Verdict:
    """The verdict without the notes that stand above already, for another measure of the same two runs."""
    notes = tuple(note for note in verdict.notes if note not in told)
    changes = tuple(change for change in verdict.baseline_changes if change not in told)
    told.update(notes, changes)
    return replace(verdict, notes=notes, baseline_changes=changes)


def _document(bench: FileBench, where: Mapping[str, object] | None, reports: list[Verdict]) -> dict[str, object]:
    def undecided(verdict: Verdict) -> dict[str, Any]:
        return {key: value for key, value in verdict.to_dict().items() if key not in _DECISION}

    return {
        "dataset": bench.data.name,
        "qrels": bench.data.qrels.source,
        "baseline": bench.old.source,
        "candidate": bench.new.source,
        "where": dict(where or {}),
        "measures": [undecided(report) for report in reports],
        "gates": [verdict.to_dict() for verdict in bench.verdicts],
    }
