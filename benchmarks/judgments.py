"""What it costs to read a large folder of judgments.

    python benchmarks/judgments.py [--rows N] [--json PATH]

766,350 rows of one judge, 62 documents of each query, as they are written here. Each reading is a
process of its own: CPU time and peak memory with all that it imports, first from the text and then through the index.
The status is 1 where the text took 4 s or 300 MB, or the index 1 s.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = ROOT

# ruff: noqa: E402
import argparse
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

from benchmarks.figures import Figures, json_option
from pytest_retrieval_eval.labels.judging.judges import CallableJudge
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments

READ = """
import json, resource, sys
from pytest_retrieval_eval.labels.judgments import Judgments
store = Judgments.open(sys.argv[1])
name = store.chosen[0].name
rows = len(store.table(name))
grades = len(store.grades("q123"))
used = resource.getrusage(resource.RUSAGE_SELF)
seconds = used.ru_utime + used.ru_stime
with open("/proc/self/status") as file:  # ru_maxrss would be that of the process before it
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
print(json.dumps({"rows": rows, "of a query": grades, "seconds": round(seconds, 2), "MB": round(peak)}))
"""


def fill(folder: Path, rows: int) -> str:
    """Grades of made-up pairs, in the files that compaction makes."""
    store = Judgments(folder)
    name = store.keep(CallableJudge(lambda query, text: 0, Scale(0, 2), identity="benchmark")).name
    store._put(name, [_row(i) for i in range(rows)])
    return name


def _row(i: int) -> Judgment:
    query, doc = f"q{i // 62}", f"doc{i * 7919 % 9_999_991:07d}"
    hashes = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in (query, doc)]
    return Judgment(query, hashes[0], doc, hashes[1], i % 3, "2026-01-31T12:00:00Z", "judge-2024-08-06")


def read(folder: Path) -> dict[str, float]:
    """One reading in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": ROOT}
    found = subprocess.run(
        [sys.executable, "-c", READ, str(folder)], check=True, capture_output=True, text=True, env=environment
    )
    made: dict[str, float] = json.loads(found.stdout)
    return made


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=766_350)
    json_option(parser)
    arguments = parser.parse_args()
    rows, figures = arguments.rows, Figures(arguments.json)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "judgments"
        name = fill(folder, rows)
        size = sum(path.stat().st_size for path in (folder / name).glob("*.jsonl"))
        print(f"{size / 1e6:.0f} MB in {len(list((folder / name).glob('all*.jsonl')))} files")
        text, index, again = (read(folder) for _ in range(3))
        print("text ", text)
        print("index", index)
        print("index", again)
    if text["rows"] != rows:
        raise SystemExit(f"{text['rows']} rows were read of {rows}")
    figures.bound(f"{rows:,} judgments read from text, s", text["seconds"], 4)
    figures.bound(f"{rows:,} judgments read from text: peak memory, MB", text["MB"], 300)
    figures.bound(f"{rows:,} judgments read through the index, s", min(index["seconds"], again["seconds"]), 1)
    return figures.status


if __name__ == "__main__":
    raise SystemExit(main())
