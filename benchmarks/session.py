"""What twenty gates cost a pytest session, above a session without them.

    python benchmarks/session.py [--repeat N] [--json PATH]

A project of 300 queries × 100 documents with a stored baseline; twenty gates compare a run with it. Beside it the same
number of plain tests, without this plugin. Each session is a process: CPU time with all that it imports. The sides take
turns; medians are compared. The status is 1 where the difference is above 0.5 s, or scipy.stats was imported.
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

from benchmarks.figures import Figures, json_option, median
from benchmarks.measures import child

MOST = 0.5
GATES = ("recall_at(5)", "recall_at(100)", "ndcg_at(10)", "mrr_at(10)", 'metric("map")')
INI = "[pytest]\nretrieval_datasets = small = data\nretrieval_run = new.trec\n"


def project(folder: Path) -> None:
    """Queries, judgments, a run that is a little worse for some queries, and the tests of both sides."""
    rng = random.Random(7)
    (folder / "data" / "qrels").mkdir(parents=True)
    queries, labels, runs = [], ["query-id\tcorpus-id\tscore\n"], {"old.trec": [], "new.trec": []}
    for query in range(300):
        docs = rng.sample(range(9_000_000), 110)
        queries.append(json.dumps({"_id": f"q{query}", "text": f"question {query}"}) + "\n")
        labels += [f"q{query}\t{doc}\t{rng.randint(1, 3)}\n" for doc in rng.sample(docs, 4)]
        for name, lines in runs.items():
            if name == "new.trec" and query % 5 == 0:
                docs = docs[1:] + docs[:1]
            lines += [f"q{query} Q0 {doc} {rank} {40 - rank * 0.25:.6f} b\n" for rank, doc in enumerate(docs[:100], 1)]
    (folder / "data" / "queries.jsonl").write_text("".join(queries))
    (folder / "data" / "qrels" / "test.tsv").write_text("".join(labels))
    for name, lines in runs.items():
        (folder / name).write_text("".join(lines))
    (folder / "pytest.ini").write_text(INI)
    gates = "".join(
        f"def test_{i}({gate.partition('(')[0]}, baseline):\n    assert {gate} >= 0.5 * baseline\n\n"
        for i, gate in enumerate(GATES * 4)
    )
    (folder / "test_gates.py").write_text(gates)
    (folder / "test_plain.py").write_text("".join(f"def test_{i}():\n    assert True\n\n" for i in range(20)))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    json_option(parser)
    arguments = parser.parse_args()
    repeat = arguments.repeat
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        project(folder)
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONDONTWRITEBYTECODE", "CI")}
        environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONPATH": ROOT}
        # pytest reads its ini file in the current folder.
        os.chdir(folder)
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        write = [*pytest, "--retrieval-run", "old.trec", "--retrieval-update", "new", "test_gates.py"]
        subprocess.run(write, check=True, stdout=subprocess.DEVNULL, env=environment)
        check = "import pytest, sys; status = pytest.main(['-q', '-p', 'no:cacheprovider', 'test_gates.py']); "
        check += "sys.exit(status or 'scipy.stats' in sys.modules)"
        scipy = subprocess.run([sys.executable, "-c", check], stdout=subprocess.DEVNULL, env=environment).returncode
        sides = {
            "20 gates": [*pytest, "test_gates.py"],
            "20 plain tests": [*pytest, "-p", "no:retrieval_eval", "test_plain.py"],
        }
        for command in sides.values():
            child(command, environment)
        turns = [{name: child(command, environment)[0] for name, command in sides.items()} for _ in range(repeat)]
        os.chdir(ROOT)
    gates, plain = (median([turn[name] for turn in turns]) for name in sides)
    figures = Figures(arguments.json)
    figures.ratio("a pytest session with 20 gates on S: 20 plain tests, ms", gates * 1e3, plain * 1e3)
    more = figures.bound("20 gates on S above 20 plain tests, s", gates - plain, MOST)
    print(f"20 gates {gates * 1e3:.0f} ms, 20 plain tests {plain * 1e3:.0f} ms: {gates / plain:.2f} ×")
    print(f"difference {more.ours:.3f} s {more.verdict}")
    if scipy:
        print(figures.failed("20 gates on S", "scipy.stats is imported, or the gates failed").what)
    else:
        print("scipy.stats is not imported")
    return figures.status


if __name__ == "__main__":
    sys.exit(main())
