"""What labels from a reader cost, beside the answer of the whole system: seconds, tokens and memory at each level.

The levels are those of Salemi & Zamani ("Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024,
table 2): one document at a time, the documents of a query together, and the answer end to end, by fusion in the decoder
or by concatenation; closed book beside them. Nothing is looked up: a row times work that was done.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.labels.scorable import scorable
from pytest_retrieval_eval.labels.texts import pool_of
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.reading import Item, Passage, Reader, Reading, read_all
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.readings.store import ReadingCache
from pytest_retrieval_eval.readers.session import LOCAL
from pytest_retrieval_eval.studies.memory import peak_above

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.runs.run import Run

Level = Literal["document", "query", "fusion", "concatenation", "end to end", "closed book"]
MAX_QUERIES = 20


@dataclass(frozen=True, slots=True)
class CostRow:
    """What one level costs with one reader.

    ``batch_size`` is the largest number of rows (prompts, or passages under fusion) in a call of the model; None where
    the reader decides that itself. ``matched`` marks rows that put the same k documents of a query into one batch: only
    those tell a level from another. ``seconds`` and ``cpu_seconds`` are per query, the median of the repeats.
    ``memory`` is the peak above the loaded model in bytes, None where it is not known. ``cache_hits`` is what it must
    be in a timing: 0.
    """

    reader: str
    level: Level
    batch_size: int | None
    matched: bool
    queries: int
    items: int
    seconds: float
    cpu_seconds: float
    input_tokens: float | None
    output_tokens: float | None
    truncated: int
    memory: int | None
    cache_hits: int


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The rows, and what they were measured on."""

    dataset: str
    run: str
    k: int
    queries: int
    repeat: int
    rows: tuple[CostRow, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """As builtin types; what is not known is null."""
        return asdict(self)


def efficiency(
    dataset: Dataset,
    run: Run,
    readers: Mapping[str, Mapping[str, object] | Reader],
    *,
    k: int = 5,
    max_queries: int = MAX_QUERIES,
    batch_sizes: Sequence[int] = (),
    repeat: int = 1,
    roots: Mapping[str, Path] | None = None,
    select: frozenset[str] | None = None,
) -> Efficiency:
    """Time each level of each reader on the first ``max_queries`` queries with answers, k documents each.

    A reader that is given as settings of a model in this process is made anew for each row, with its shapes set to the
    row's batch: padded to the longest, as in the paper, and one query at a time. ``batch_sizes`` adds rows that read
    documents of several queries together, that many a call. Any other reader batches as it will: it gets all items
    of a row at once. A reader in front of a cache is refused: what is looked up takes no time.

    Raises GateError where no query has k documents, or a reading failed; SettingsError.

    >>> from pytest_retrieval_eval import CallableReader, Dataset, Run
    >>> texts = {"a": "Ann did.", "b": "Bob watched."}
    >>> dataset = Dataset.of(queries={"q": "who?"}, qrels={"q": ["a"]}, answers={"q": "Ann"}, corpus=texts)
    >>> study = efficiency(dataset, Run.of({"q": ["a", "b"]}), {"first": CallableReader(lambda q, texts: "Ann")}, k=2)
    >>> [(row.level, row.items, row.cache_hits) for row in study.rows]
    [('document', 2, 0), ('end to end', 1, 0), ('closed book', 1, 0)]
    """
    sizes = (("batch size", size) for size in batch_sizes)
    for what, number in (("k", k), ("max_queries", max_queries), ("repeat", repeat), *sizes):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise SettingsError(f"{what} is {number!r}; expected a whole number from 1")
    if not readers:
        raise SettingsError("no reader is given; an efficiency report needs at least one")
    lists, notes = _lists(dataset, run, k, max_queries, select)
    rows = []
    for name, given in readers.items():
        for plan in _plans(given, k, batch_sizes):
            rows.append(_row(name, plan, lists, repeat, given, (roots or {}).get(name)))
    if any(row.memory is None for row in rows):
        notes.append("peak memory is not known on this system, or of a reader outside this process")
    return Efficiency(dataset.name, run.name or run.source, k, len(lists), repeat, tuple(rows), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A row to be: the level, the rows of a batch, whether one query is handed over at a time."""

    level: Level
    batch_size: int | None
    matched: bool = False
    by_query: bool = False


def _plans(given: Mapping[str, object] | Reader, k: int, batch_sizes: Sequence[int]) -> list[_Plan]:
    if not _is_local(given):
        return [_Plan("document", None), _Plan("end to end", None), _Plan("closed book", None)]
    fusion = isinstance(given, Mapping) and given.get("kind") == "fid"
    whole: Level = "fusion" if fusion else "concatenation"
    plans = [
        _Plan("document", 1, by_query=True),
        _Plan("query", k, matched=True, by_query=True),
        _Plan(whole, k if fusion else 1, matched=fusion, by_query=True),
        _Plan("closed book", 1, by_query=True),
    ]
    for size in dict.fromkeys(batch_sizes):
        plans += [_Plan("document", size), _Plan(whole, size), _Plan("closed book", size)]
    return plans


def _row(
    name: str,
    plan: _Plan,
    lists: Sequence[Item],
    repeat: int,
    given: Mapping[str, object] | Reader,
    root: Path | None,
) -> CostRow:
    reader, cuda, ours = _reader(given, plan.batch_size, root)
    groups = [_items(plan.level, item) for item in lists]
    calls = groups if plan.by_query else [[item for group in groups for item in group]]
    with tempfile.TemporaryDirectory() as folder, ReadingCache(folder, "off") as cache:
        timed = CachedReader(reader, cache)
        try:
            _read(timed, calls[0][:1], name)  # the model is loaded, and what is made once is made
            spent = []
            hits = timed.counters.hits
            readings: list[Reading] = []
            memory: int | None = 0
            for _ in range(repeat):
                one, held = peak_above(lambda: _timed(timed, calls, name), cuda=cuda)
                readings, seconds, cpu = one
                spent.append((seconds, cpu))
                memory = None if held is None or memory is None or not ours else max(memory, held)
            hits = timed.counters.hits - hits
        finally:
            if isinstance(given, Mapping):
                timed.close()
                reader.close()
    known = [r for r in readings if r.input_tokens is not None and r.output_tokens is not None]
    whole = len(known) == len(readings)
    count = len(lists)
    return CostRow(
        reader=name,
        level=plan.level,
        batch_size=plan.batch_size,
        matched=plan.matched,
        queries=count,
        items=len(readings),
        seconds=_median([seconds for seconds, _ in spent]) / count,
        cpu_seconds=_median([cpu for _, cpu in spent]) / count,
        input_tokens=sum(r.input_tokens or 0 for r in readings) / count if whole else None,
        output_tokens=sum(r.output_tokens or 0 for r in readings) / count if whole else None,
        truncated=sum(r.truncated for r in readings),
        memory=memory,
        cache_hits=hits,
    )


def _reader(
    given: Mapping[str, object] | Reader, batch_size: int | None, root: Path | None
) -> tuple[Reader, bool, bool]:
    """(the reader, whether its model is on CUDA, whether its memory is this process's)."""
    if not isinstance(given, Mapping):
        if isinstance(given, CachedReader):
            raise SettingsError("this reader has a cache in front of it, and a timing needs one that reads every time")
        return given, False, True
    settings = dict(given)
    if not _is_local(given):
        return reader_from(settings, root=root), False, settings.get("kind") == "callable"
    settings["shapes"] = {"policy": "dynamic", "rows": batch_size}
    settings["progress"] = False
    reader = reader_from(settings, root=root)
    return reader, _on_cuda(str(settings.get("device", "auto"))), True


def _on_cuda(device: str) -> bool:
    if device not in ("auto", "cuda") and not device.startswith("cuda:"):
        return False
    import torch

    return bool(torch.cuda.is_available())


def _is_local(given: object) -> bool:
    return isinstance(given, Mapping) and given.get("kind") in LOCAL


def _items(level: Level, whole: Item) -> list[Item]:
    if level in ("document", "query"):
        return [replace(whole, documents=(passage,)) for passage in whole.documents]
    return [replace(whole, documents=())] if level == "closed book" else [whole]


def _timed(reader: Reader, calls: Sequence[Sequence[Item]], name: str) -> tuple[list[Reading], float, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    readings = [reading for call in calls for reading in _read(reader, call, name)]
    return readings, time.perf_counter() - begin, time.process_time() - cpu


def _read(reader: Reader, items: Sequence[Item], name: str) -> list[Reading]:
    readings = read_all(reader, items, name)
    wrong = next((reading for reading in readings if not reading.answered), None)
    if wrong is not None:
        raise GateError(f"the reader {name} gave no answer, so that there is nothing to time: {wrong.detail}")
    return readings


def _lists(
    dataset: Dataset, run: Run, k: int, queries: int, select: frozenset[str] | None
) -> tuple[list[Item], list[str]]:
    chosen = scorable(dataset, select, "efficiency")
    rankings = run.rankings(chosen.query_ids, depth=k)
    full = [query for query in chosen.query_ids if query in rankings and len(dict.fromkeys(rankings[query].docs)) == k]
    if not full:
        raise GateError(f"no list of the run {run.name or run.source} has {k} documents: nothing can be timed")
    ids = full[:queries]
    notes = [f"only {len(ids)} queries have {k} documents"] if len(ids) < queries else []
    pool = pool_of(dataset, [run], ids, k, "efficiency")
    texts = pool.texts[0]
    return [
        Item(
            dataset.queries.text(query),
            tuple(Passage(texts[doc].text, texts[doc].title) for doc in pool.tops[0][query]),
        )
        for query in ids
    ], notes


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
