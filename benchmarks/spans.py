"""Processor time of the measures of gold spans, beside a loop over queries, spans and intervals in plain Python.

    python benchmarks/spans.py [--queries N] [--json PATH]

10,000 queries with 3 gold spans each, 100 chunks a list from documents of which some have gold, 15 % of them
overlapping their neighbours; every measure at k = 100. The loop is run on a part of the queries and its time scaled up;
both must agree.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import argparse
import time
from math import log2

import numpy as np

from benchmarks.figures import Figures, json_option
from pytest_retrieval_eval import Run, Spans, evaluate
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.runs.columns import Chunks as Parts
from pytest_retrieval_eval.collection.runs.columns import Columns
from pytest_retrieval_eval.collection.runs.runfile import RunFile

CHUNKS, GOLD, K = 100, 3, 100
NAMES = [f"span_{name}@{K}" for name in ("recall", "coverage", "precision", "iou", "ndcg", "mrr", "map")]
LOOPED = 300


def world(queries: int) -> tuple[Run, Spans, list[list[tuple[str, int, int]]]]:
    """A run, its gold, and the run as plain lists."""
    rng = np.random.default_rng(11)
    rows = queries * CHUNKS
    doc = rng.integers(0, 30, rows)
    start = rng.integers(0, 40, rows) * 500
    start[rng.random(rows) < 0.15] += 250
    end = start + 500
    ids = [f"q{i}" for i in range(queries)]
    names = [f"d{number}" for number in doc.tolist()]
    parts = Parts(names, start, end)
    docs = Ids.of([f"{n}@{s}" for n, s in zip(names, start.tolist(), strict=True)])
    columns = Columns(tuple(ids), np.arange(queries + 1) * CHUNKS, docs, None, True, parts)
    gold: dict[str, list[tuple[str, int, int]]] = {}
    for query in ids:
        places = rng.integers(0, 40, GOLD) * 500 + rng.integers(0, 400, GOLD)
        where = rng.choice(30, GOLD, replace=False)
        gold[query] = [
            (f"d{d}", p, p + int(n))
            for d, p, n in zip(where, places.tolist(), rng.integers(40, 900, GOLD), strict=True)
        ]
    lists = [
        list(zip(names[i : i + CHUNKS], start[i : i + CHUNKS].tolist(), end[i : i + CHUNKS].tolist(), strict=True))
        for i in range(0, rows, CHUNKS)
    ]
    return Run(RunFile(columns), name="run"), Spans.of(gold), lists


def union(parts: list[tuple[int, int]]) -> int:
    """The length of the union of intervals."""
    total, reach = 0, -1
    for start, end in sorted(parts):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def loop(spans: Spans, hits: list[tuple[str, int, int]], query: str) -> list[float]:
    """All seven measures of one query, rank by rank."""
    gold = [(span.doc_id, span.start, span.end) for span in spans.of_query(query)]
    ranks, covered = [], 0
    for doc, first, last in gold:
        inside: list[tuple[int, int]] = []
        found = 0
        for rank, (other, start, end) in enumerate(hits[:K], 1):
            if other == doc and min(end, last) > max(start, first):
                inside.append((max(start, first), min(end, last)))
                if not found and 2 * union(inside) >= last - first:
                    found = rank
        covered += union(inside)
        if found:
            ranks.append(found)
    effective: list[int] = []
    for rank in sorted(ranks):
        effective.append(max(rank, effective[-1] + 1) if effective else rank)
    within = [e for e in effective if e <= K]
    by_doc: dict[str, list[tuple[int, int]]] = {}
    for doc, start, end in hits[:K]:
        by_doc.setdefault(doc, []).append((start, end))
    held, whole = sum(map(union, by_doc.values())), sum(z - a for _, a, z in gold)
    ideal = sum(1 / log2(j + 1) for j in range(1, len(gold) + 1))
    return [
        len(ranks) / len(gold),
        covered / whole,
        covered / held,
        covered / (held + whole - covered),
        sum(1 / log2(e + 1) for e in within) / ideal,
        1 / within[0] if within else 0.0,
        sum(j / e for j, e in enumerate(within, 1)) / len(gold),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000)
    json_option(parser)
    arguments = parser.parse_args()
    queries, figures = arguments.queries, Figures(arguments.json)
    run, spans, lists = world(queries)
    begin = time.process_time()
    found = evaluate(None, run, NAMES, spans=spans)
    fast = time.process_time() - begin
    begin = time.process_time()
    slow = [loop(spans, lists[i], f"q{i}") for i in range(min(LOOPED, queries))]
    loops = (time.process_time() - begin) / len(slow) * queries
    for place, name in enumerate(NAMES):
        if not np.allclose(found[name].values[: len(slow)], [row[place] for row in slow], atol=1e-9):
            raise SystemExit(f"{name}: the loop has other values")
    print(f"{queries:,} queries x {CHUNKS} chunks x {GOLD} spans, {len(NAMES)} measures at k = {K}: {fast:.2f} s")
    size = f"{queries:,} queries × {CHUNKS} chunks"
    figures.ratio(f"measures of gold spans, {size}: a plain loop, s", fast, loops)
    print(f"plain loop (from {len(slow)} queries): {loops:.2f} s, {loops / fast:.1f} times as long")
    begin = time.process_time()
    evaluate(None, run, [name.replace(f"@{K}", "@10") for name in NAMES], spans=spans)
    again = time.process_time() - begin
    figures.ratio(f"the next measures of gold spans, {size}: a plain loop, s", again, loops)
    print(f"the next measures of the same run: {again:.2f} s; the loop takes {loops / again:.1f} times as long")
    return figures.status


if __name__ == "__main__":
    sys.exit(main())
