"""What labels foretell of a small model's answers: real questions, real documents, a reader in this process.

    python benchmarks/correlation.py DATA MODEL [--run NAME …] [-k 1,5] [--queries N] [--minutes M] [--out FOLDER]

DATA is a dataset folder with answers.jsonl, corpus.jsonl, qrels/small.tsv and runs/small/NAME.trec; MODEL the folder of
a causal model. It is asked, greedily and in float32 on the CPU, with the template below, for an answer of one line. It
reads texts without their titles, in blocks of ten queries in the order of the qrels. What is read stays in
FOLDER/readings, so that the same command goes on where it was stopped; with ``--minutes`` it stops reading by itself.
The study is then made of the queries whose readings are complete: they are the first ones, whatever came out of them.
Prints it, and writes correlation.json and correlation.svg into FOLDER.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = ROOT
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["HF_HUB_OFFLINE"] = "1"

# ruff: noqa: E402
import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.reading import Item, Passage
from pytest_retrieval_eval.readers.readings.cache import CachedReader, summary_line
from pytest_retrieval_eval.readers.readings.store import CacheMissError, ReadingCache
from pytest_retrieval_eval.reports.charts import correlation_chart
from pytest_retrieval_eval.reports.studies import correlation_text
from pytest_retrieval_eval.studies.correlate import correlate

LABELS = ("erag", "qrels", "contains(kilt)")
BLOCK = 10


def settings(model: str) -> dict[str, Any]:
    """The reader. Its template for a document without a title is ``Passage: {text}``."""
    return {
        "kind": "causal",
        "model": model,
        "dtype": "float32",
        "device": "cpu",
        "chat": False,
        "stop": ["\n"],
        "max_input_tokens": 4096,
        "max_new_tokens": 16,
        "shapes": {"policy": "bucket", "step": 32, "tokens": 4096},
        "progress": False,
    }


def without_titles(data: Dataset, doc_ids: Sequence[str]) -> Dataset:
    """The same dataset, of which the reader sees the texts alone."""
    corpus = data.corpus
    if corpus is None or data.answers is None:
        sys.exit("the dataset has no corpus.jsonl or no answers.jsonl")
    texts = {doc: found.text for doc, found in corpus.get_many(doc_ids).items()}
    return Dataset.of(queries=data.queries, qrels=data.qrels, corpus=texts, answers=data.answers, name=data.name)


def items(data: Dataset, runs: dict[str, Run], query: str, ks: Sequence[int]) -> list[Item]:
    """All that the study asks about a query: each document alone, and the first k together."""
    text, found = data.queries.text(query), []
    for run in runs.values():
        docs = run.rankings([query], depth=max(ks))[query].docs
        passages = [Passage((data.corpus.get(doc) or sys.exit(f"{doc} has no text")).text) for doc in docs]
        found += [Item(text, (passage,)) for passage in passages]
        found += [Item(text, tuple(passages[:k])) for k in ks]
    return list(dict.fromkeys(found))


def read(
    reader: CachedReader, data: Dataset, runs: dict[str, Run], ids: Sequence[str], ks: Sequence[int], until: float
):
    """Read block by block until the time is up."""
    for begin in range(0, len(ids), BLOCK):
        if time.monotonic() > until:
            return
        block = [item for query in ids[begin : begin + BLOCK] for item in items(data, runs, query, ks)]
        started, cpu = time.monotonic(), time.process_time()
        for _ in reader.read(block):
            if time.monotonic() > until:
                break
        spent = f"{time.monotonic() - started:.0f} s, {time.process_time() - cpu:.0f} s CPU"
        print(f"queries {begin + 1} to {begin + BLOCK}: {len(block)} items, {spent}", file=sys.stderr, flush=True)


def complete(model: str, cache: Path, data: Dataset, runs: dict[str, Run], ids: Sequence[str], ks: Sequence[int]):
    """The first queries, in whole blocks, of which everything is in the cache."""
    done: list[str] = []
    with ReadingCache(cache, "ro") as kept:
        reader = CachedReader(reader_from(settings(model)), kept)
        for begin in range(0, len(ids), BLOCK):
            block = list(ids[begin : begin + BLOCK])
            try:
                list(reader.read([item for query in block for item in items(data, runs, query, ks)]))
            except CacheMissError:
                break
            done += block
    return done


def main() -> int:
    """Read, correlate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("-k", default="1,5")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--metric", default="em")
    parser.add_argument("--out", type=Path, default=Path("correlation"))
    options = parser.parse_args()
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    ks = [int(k) for k in options.k.split(",")]
    data = Dataset.read(options.data, split="small")
    ids = data.qrels.query_ids[: options.queries]
    runs = {name: Run.read(options.data / "runs" / "small" / f"{name}.trec") for name in options.run or ["bm25-stem"]}
    ranked = [run.rankings(ids, depth=max(ks)) for run in runs.values()]
    data = without_titles(data, list({doc for one in ranked for found in one.values() for doc in found.docs}))
    options.out.mkdir(parents=True, exist_ok=True)
    place = options.out / "readings"
    if options.minutes > 0:
        with ReadingCache(place) as cache:
            reader = CachedReader(reader_from(settings(options.model)), cache)
            read(reader, data, runs, ids, ks, time.monotonic() + 60 * options.minutes)
            print(summary_line(reader.counters), file=sys.stderr)
            reader.close()
    done = complete(options.model, place, data, runs, ids, ks)
    if not done:
        sys.exit(f"not even the first {BLOCK} queries are complete: run it again")
    with ReadingCache(place, "ro") as cache:
        study = correlate(
            data,
            runs,
            {Path(options.model).name: CachedReader(reader_from(settings(options.model)), cache)},
            labels=LABELS,
            ks=ks,
            answer_metric=options.metric,
            select=done,
        )
    for note in study.notes:
        print(f"note: {note}", file=sys.stderr)
    print(correlation_text(study), end="")
    name = f"correlation-{options.metric}"
    (options.out / f"{name}.json").write_text(json.dumps(study.to_dict(), indent=1) + "\n", encoding="utf-8")
    correlation_chart(study, options.out / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
