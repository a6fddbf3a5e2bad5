"""``correlate`` and ``efficiency``: what labels foretell of a reader's answers, and what they cost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.inputs import (
    by_name,
    parse_where,
    read_collection,
    read_runs,
    select_queries,
    split_measures,
    split_name,
)
from pytest_retrieval_eval.cli.reading import given_reader, opened_cache, say_readings
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.labels.labelling import ERAG, LabelSource
from pytest_retrieval_eval.readers.reading import Reader
from pytest_retrieval_eval.readers.session import behind_cache
from pytest_retrieval_eval.settings import is_settings_file

DEFAULT = (ERAG, "qrels", "contains(kilt)")


def correlate_labels(arguments: argparse.Namespace, console: Console) -> int:
    """List scores from labels against answers end to end; as text or JSON, and as a chart."""
    from pytest_retrieval_eval.reports.charts import check_chart, correlation_chart
    from pytest_retrieval_eval.reports.studies import correlation_text
    from pytest_retrieval_eval.studies.correlate import MEASURES, Given, correlate

    chart = None if arguments.plot is None else check_chart(Path(arguments.plot))
    dataset = read_collection(arguments.dataset, split=arguments.split)
    grades = _named(arguments.grades, "--grades")
    # Labels that the dataset does not have are no reason for an error unless somebody asked for them.
    usual = [name for name in DEFAULT if name != "qrels" or len(dataset.qrels)]
    labels: list[str | LabelSource] = [
        *(arguments.labels or usual),
        *(Given(name, Qrels.read(path)) for name, path in grades.items()),
    ]
    with _behind_cache(arguments, console) as readers:
        study = correlate(
            dataset,
            read_runs(arguments.run),
            readers,
            labels=labels,
            measures=split_measures(arguments.measure) or MEASURES,
            ks=_ks(arguments.k),
            answer_metric=arguments.answer_metric,
            normalise=arguments.normalise,
            select=select_queries(dataset, parse_where(arguments.where)),
            allow_failures=arguments.allow_failures,
            resamples=arguments.resamples,
        )
    for note in study.notes:
        console.note(note)
    for query, why in study.failed.items():
        console.note(f"{query} is left out: {why}")
    console.write(json_text(study.to_dict()) + "\n" if arguments.json else correlation_text(study))
    if chart is not None:
        correlation_chart(study, chart)
        console.say(f"wrote {chart}")
    return 0


def report_efficiency(arguments: argparse.Namespace, console: Console) -> int:
    """What each level of reading costs; nothing is looked up in a cache."""
    from pytest_retrieval_eval.reports.studies import efficiency_text
    from pytest_retrieval_eval.studies.efficiency import efficiency

    dataset = read_collection(arguments.dataset, split=arguments.split)
    given = _given(arguments.reader)
    try:
        study = efficiency(
            dataset,
            Run.read(arguments.run),
            {name: reader for name, (reader, _) in given.items()},
            k=arguments.k,
            max_queries=arguments.max_queries,
            batch_sizes=arguments.batch_size,
            repeat=arguments.repeat,
            roots={name: root for name, (_, root) in given.items()},
            select=select_queries(dataset, parse_where(arguments.where)),
        )
    finally:
        for reader, _ in given.values():
            if not isinstance(reader, Mapping):
                reader.close()
    for note in study.notes:
        console.note(note)
    console.write(json_text(study.to_dict()) + "\n" if arguments.json else efficiency_text(study))
    return 0


@contextmanager
def _behind_cache(arguments: argparse.Namespace, console: Console) -> Iterator[dict[str, Reader]]:
    """The readers behind the cache; what they did is said at the end, however it ends."""
    given = _given(arguments.reader)
    with opened_cache(arguments) as cache:
        readers: dict[str, Reader] = {name: behind_cache(one, root, cache) for name, (one, root) in given.items()}
        try:
            yield readers
        finally:
            say_readings(cache, console)
            for reader in readers.values():
                reader.close()


def _given(texts: Sequence[str]) -> dict[str, tuple[Mapping[str, object] | Reader, Path]]:
    """Each reader by its name, as settings or as it is, and the folder that its paths are relative to."""
    return {name: given_reader(what) for name, what in _named(texts, "--reader").items()}


def _named(texts: Sequence[str], option: str) -> dict[str, str]:
    """``NAME=WHAT`` by name; without a name that of the file, or of the object.

    >>> _named(["small=a.yaml", "readers/big.yaml", "myapp.readers:make"], "--reader")
    {'small': 'a.yaml', 'big': 'readers/big.yaml', 'make': 'myapp.readers:make'}
    """
    found = []
    for text in texts:
        name, what = split_name(text)
        if not name:
            imports = ":" in text and not is_settings_file(text)
            name = text.rpartition(":")[2] if imports else Path(text).stem
        if not name:
            raise SettingsError(f"{option} {text}: expected NAME=FILE, or what has a name of its own")
        found.append((name, what))
    return by_name(found, f"of {option}")


def _ks(text: str) -> list[int]:
    """``1,3,5``.

    >>> _ks("1,3,5")
    [1, 3, 5]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise SettingsError(f"-k {text}: expected whole numbers with commas, such as 1,3,5")
    return [int(part) for part in parts]
