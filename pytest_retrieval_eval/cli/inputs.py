"""What commands read: measures and tags from the command line, judgments and runs from files."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from pytest_retrieval_eval.collection.dataset import Dataset, irds_id
from pytest_retrieval_eval.collection.formats.files import bare_suffixes, json_lines
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import TEXT_KEYS, Queries
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, MeasureError, SettingsError
from pytest_retrieval_eval.gates.side import cutoff_of
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import definition
from pytest_retrieval_eval.wording import both_ends, counted, shown

T = TypeVar("T")
Named = tuple[str, Measure]

# A name of trec_eval that begins a list, and the numbers that go on with it.
_LISTED = re.compile(r"([A-Za-z][A-Za-z0-9_-]*[_.])[0-9]+(\.[0-9]+)?")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


def split_measures(texts: Sequence[str]) -> list[str]:
    """The measures named by the values of ``-m``: apart by blanks or commas that stand in no bracket.

    Numbers after a name of trec_eval are more cut-offs of it, as they are there.

    >>> split_measures(["ndcg(gain=exp, rel=2)@10 P_5", "map,recall@100"])
    ['ndcg(gain=exp, rel=2)@10', 'P_5', 'map', 'recall@100']
    >>> split_measures(["ndcg_cut.5,10 map"])
    ['ndcg_cut.5', 'ndcg_cut.10', 'map']
    """
    names: list[str] = []
    for text in texts:
        depth, word = 0, ""
        before = len(names)
        stem = ""  # what stands before the numbers of a list such as ndcg_cut.5,10
        for char in f"{text} ":
            depth += (char == "(") - (char == ")")
            if depth > 0 or not (char == "," or char.isspace()):
                word += char
                continue
            if word:
                names.append(stem + word if stem and _NUMBER.fullmatch(word) else word)
                listed = _LISTED.fullmatch(names[-1])
                stem = listed[1] if listed and char == "," else ""
                word = ""
        if word:  # a bracket that is not closed: the parser of measures says so
            names.append(word.rstrip())
        if len(names) == before:
            raise MeasureError(f"-m {text!r} names no measure; write one such as ndcg@10")
    return names


def named_measures(texts: Sequence[str]) -> list[Named]:
    """Each measure with the name that the user gave it, in order, no name twice."""
    return [(name, Measure.parse(name)) for name in dict.fromkeys(split_measures(texts))]


def default_measures(names: Sequence[str], qrels: Qrels | None, *runs: Run) -> list[Named]:
    """Those of ``names`` that fit: no cut-off beyond a declared depth, no level that nobody chose.

    ``qrels`` is None where labels are made for the runs, of which no measure needs a level.

    A measure that the user did not ask for must not be the reason for an error.
    """
    graded_only = qrels is not None and (qrels.scale == "unit" or bool((qrels.grades % 1 != 0).any()))
    depths = [run.depth for run in runs if run.depth is not None]
    found = []
    for name in names:
        measure = Measure.parse(name)
        too_deep = measure.cutoff is not None and any(measure.cutoff > depth for depth in depths)
        if not too_deep and not (graded_only and definition(measure.innermost.name).binary):
            found.append((name, measure))
    if not found:
        raise MeasureError(f"none of the usual measures ({', '.join(names)}) fits these files; choose with -m")
    return found


def by_spans(dataset: Dataset) -> bool:
    """Whether the labels of a dataset are gold spans alone, so that the usual measures are those of spans."""
    return not len(dataset.qrels) and dataset.spans is not None


def parse_where(items: Sequence[str]) -> dict[str, object] | None:
    """The values of ``--where``: JSON where it is JSON, else text; a tag given twice means any.

    >>> parse_where(["type=policy", "year=2024", "type=price", 'code="7"'])
    {'type': ['policy', 'price'], 'year': 2024, 'code': '7'}
    """
    found: dict[str, list[object]] = {}
    for item in items:
        tag, equals, text = item.partition("=")
        if not (tag.strip() and equals):
            raise SettingsError(f"--where {shown(item)}: expected TAG=VALUE, such as type=policy")
        value = _json_or_text(text.strip())
        found.setdefault(tag.strip(), []).extend(value if isinstance(value, list) else [value])
    where: dict[str, object] = {tag: v[0] if len(v) == 1 else v for tag, v in found.items()}
    return where or None


def split_name(text: str) -> tuple[str, str]:
    """``NAME=WHAT`` as both; the name is empty where there is none, as in a file's name that has the sign itself.

    >>> split_name("bm25=runs/a.trec"), split_name("runs/a=b.trec")
    (('bm25', 'runs/a.trec'), ('', 'runs/a=b.trec'))
    """
    name, equals, what = text.partition("=")
    named = equals and name and what and "/" not in name and not Path(text).exists()
    return (name, what) if named else ("", text)


def by_name(pairs: Iterable[tuple[str, T]], what: str) -> dict[str, T]:
    """What was given by its name, in order; two of one name are an error."""
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise SettingsError(f"two {what} are called {name}: name them apart with NAME=FILE")
        found[name] = value
    return found


def read_runs(texts: Sequence[str]) -> dict[str, Run]:
    """The runs that ``FILE`` or ``NAME=FILE`` name, by these names or their own."""
    runs = [(name, Run.read(path)) for name, path in map(split_name, texts)]
    return by_name(((name or run.name or run.source, run) for name, run in runs), "runs")


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are no JSON


def read_collection(path: str, *, queries: str | None = None, split: str | None = None) -> Dataset:
    """A dataset, or a file of judgments as a dataset whose queries are in ``queries``, or have ids only."""
    place = Path(path)
    if irds_id(path) or place.is_dir() or _holds_queries(place):
        if queries is not None:
            raise SettingsError(f"--queries goes with a file of judgments, and {path} is a dataset with its own")
        return Dataset.read(place, split=split)
    if split is not None:
        raise SettingsError(f"--split {split}: {path} is a file of judgments, and only a dataset folder has splits")
    known = None if queries is None else Queries.read(queries)
    return Dataset.of(queries=known, qrels=Qrels.read(place), name=place.name)


def _holds_queries(path: Path) -> bool:
    """Whether a file is a dataset: its rows carry the query beside what is relevant to it."""
    if bare_suffixes(path)[-1:] != [".jsonl"]:
        return False
    first = next((row for _, row in json_lines(path)), {})
    return any(key in first for key in TEXT_KEYS) and ("relevant" in first or "unanswerable" in first)


def select_queries(dataset: Dataset, where: dict[str, object] | None) -> frozenset[str] | None:
    """The queries that ``--where`` selects, None for all."""
    if where is None:
        return None
    if not any(dataset.queries.tags(query_id) for query_id in dataset.queries):
        raise GateError(
            f"--where: no query of {dataset.name} has a tag; give the folder of the dataset, or tags with --queries"
        )
    return dataset.queries.select(where)


def check_depth(run: Run, measures: Sequence[Named]) -> None:
    """Refuse a cut-off below which the run has nothing because it was not asked for."""
    for name, measure in measures:
        cutoff = cutoff_of(measure)
        if cutoff is not None and run.depth is not None and cutoff > run.depth:
            from pytest_retrieval_eval.collection.runs.retrieve import deeper

            raise MeasureError(
                f"{name} looks at {counted(cutoff, 'rank')}, but {run.source} declares depth {run.depth}: "
                f"{deeper(run, cutoff)}, or measure at k = {run.depth} or less"
            )


def check_failures(run: Run, asked: Collection[str], allowed: int) -> None:
    """Refuse a run whose retriever raised: a failure is no score."""
    failed = [query_id for query_id in run.errors if query_id in asked]
    if len(failed) > allowed:
        first = failed[0]
        raise GateError(
            f"{run.source}: the retriever failed on {len(failed)} of "
            f"{counted(len(asked), 'query', 'queries')}, the first is {shown(first, 40)}: "
            f"{both_ends(run.errors[first], 200)}. A failure is no score; mend it, or count up to N failures 0 "
            "with --allow-failures N"
        )


def asked_queries(dataset: Dataset, select: frozenset[str] | None) -> Collection[str]:
    """The queries that a measurement is about."""
    return {*dataset.qrels.query_ids, *dataset.queries} if select is None else select


def judged_queries(qrels: Qrels) -> list[str]:
    """The queries with at least one judgment."""
    return [qrels.query_ids[row] for row in np.flatnonzero(np.diff(qrels.offsets)).tolist()]
