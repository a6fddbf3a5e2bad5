"""What a gate on a large folder of judgments costs: opening it, labelling two runs, measuring both.

    python benchmarks/judged_gate.py [--queries N]

12,360 queries with 62 graded documents each (766,320 grades, about as many as published of 62 configurations), a corpus
of 200,000, and two runs of 20 graded documents a query. Prints CPU time and peak memory of each step; the status is 1
where all of it took 30 s or 800 MB.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = ROOT

# ruff: noqa: E402
import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path

from pytest_retrieval_eval.collection.dataset import Document
from pytest_retrieval_eval.labels.judging.judges import CallableJudge
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments, text_hash
from pytest_retrieval_eval.labels.pool import document_hash

DOCUMENTS, GRADED, DEPTH = 200_000, 62, 20

GATE = """
import json, sys, time
from pathlib import Path

place, begun, steps = Path(sys.argv[1]), time.process_time(), {}

def step(name):
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024
    steps[name] = {"seconds": round(time.process_time() - begun, 1), "MB": peak}

from pytest_retrieval_eval import Dataset, Run, evaluate
from pytest_retrieval_eval.labels.judged import Judged
from pytest_retrieval_eval.labels.judgments import Judgments
data, runs = Dataset.read(place / "data"), [Run.read(path) for path in sorted(place.glob("*.trec"))]
judgments = Judgments.open(place / "judgments")
judgments.table(judgments.chosen[0].name)
step("opened")
labelling = Judged(judgments).label(data, runs, depth=10, select=None)
step("labelled")
means = [evaluate(labelling.qrels_of(run), run, "ndcg@10").scores("ndcg@10").mean for run in runs]
step("measured")
print(json.dumps({"unjudged": len(labelling.unjudged), "means": means, "steps": steps}))
"""


def make(place: Path, queries: int) -> None:
    """The dataset, its judgments and two runs."""
    draw = random.Random(0)
    (place / "data" / "qrels").mkdir(parents=True)
    texts = [f"Passage {number} says something of subject {number % 977}. " * 3 for number in range(DOCUMENTS)]
    _write(place / "data" / "corpus.jsonl", ({"_id": f"d{n}", "text": text} for n, text in enumerate(texts)))
    _write(place / "data" / "queries.jsonl", ({"_id": f"q{n}", "text": f"what of {n}?"} for n in range(queries)))
    (place / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\n", encoding="utf-8")
    hashes = [document_hash(Document("", text)) for text in texts]
    rows: list[Judgment] = []
    runs: tuple[list[str], list[str]] = ([], [])
    for number in range(queries):
        docs, asked = draw.sample(range(DOCUMENTS), GRADED), text_hash(f"what of {number}?")
        rows += [Judgment(f"q{number}", asked, f"d{doc}", hashes[doc], doc % 3, "2026-01-31T12:00:00Z") for doc in docs]
        for lines in runs:
            top = draw.sample(docs, DEPTH)
            lines += [f"q{number} Q0 d{doc} {rank} {DEPTH - rank} x\n" for rank, doc in enumerate(top, 1)]
    store = Judgments(place / "judgments")
    store._put(store.keep(CallableJudge(lambda query, text: 0, Scale(0, 2), identity="benchmark")).name, rows)
    for name, lines in zip(("a", "b"), runs, strict=True):
        (place / f"{name}.trec").write_text("".join(lines), encoding="utf-8")


def _write(path: Path, rows: object) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")  # type: ignore[attr-defined]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=12_360)
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), parser.parse_args().queries)
        worst = False
        for what in ("from the text", "through the index"):
            command = [sys.executable, "-c", GATE, name]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ROOT}
            )
            found = json.loads(done.stdout)
            print(what, found["steps"], "unjudged", found["unjudged"])
            last = found["steps"]["measured"]
            worst |= last["seconds"] >= 30 or last["MB"] >= 800 or found["unjudged"] > 0
    return int(worst)


if __name__ == "__main__":
    raise SystemExit(main())
