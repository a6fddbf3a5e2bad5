"""From run files and from dictionaries to per-query values, beside pytrec_eval.

    python benchmarks/reading.py [--quick]

Runs are generated: S is 300 queries × 100 documents, M 6,980 × 1,000, G 50 × 1,000 with 1,300 judgments a query.
From files each side is a process of its own: CPU time with everything that it imports, and peak memory. From
dictionaries both sides work in this process. The sides take turns. Prints medians and ratios beside those to
reach; exits with 1 where one is missed. Quick: without M.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = ROOT

# ruff: noqa: E402
import argparse
import gc
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

SHAPES = {"S": (300, 100, 4), "G": (50, 1000, 1300), "M": (6980, 1000, 1)}  # queries, documents, judgments a query
FROM_FILE = {"S": 0.9, "G": 1.0, "M": 7.0}  # how many times faster than pytrec_eval
FROM_DICTS = {"S": 4.0, "G": 1.0, "M": 9.0}
PEAK = 80  # MB, on M

PREAMBLE = f"""
import json, resource, sys
sys.path.insert(0, {ROOT!r})
"""
EPILOGUE = """
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
OURS = """
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.run import Run
from pytest_retrieval_eval.measures.evaluate import evaluate
evaluation = evaluate(Qrels.read(sys.argv[1]), Run.read(sys.argv[2]), ["recall@5", "ndcg@10", "map", "mrr"])
for measure in evaluation.measures:
    evaluation.scores(measure).values
"""
THEIRS = """
import pytrec_eval
with open(sys.argv[1]) as file:
    qrels = pytrec_eval.parse_qrel(file)
with open(sys.argv[2]) as file:
    run = pytrec_eval.parse_run(file)
pytrec_eval.RelevanceEvaluator(qrels, {"recall_5", "ndcg_cut_10", "map", "recip_rank"}).evaluate(run)
"""


def generate(folder: Path, shape: str) -> tuple[Path, Path]:
    """Qrels and a run with scores of six decimals, about half of the judged documents retrieved."""
    queries, documents, judged = SHAPES[shape]
    rng = np.random.default_rng(7)
    qrels, run = folder / f"{shape}.qrels", folder / f"{shape}.trec"
    with qrels.open("w") as labels, run.open("w") as lists:
        for query in range(queries):
            docs = rng.choice(9_000_000, documents + judged, replace=False).tolist()
            scores = np.sort(rng.uniform(5, 30, documents))[::-1].tolist()
            name, pairs = 1000 + 151 * query, zip(docs, scores, strict=False)
            lists.writelines(f"{name} Q0 {doc} {i} {s:.6f} b\n" for i, (doc, s) in enumerate(pairs, 1))
            labelled = rng.choice(docs if judged < documents else docs[judged // 2 :], min(judged, documents), False)
            if judged == 1 and query % 2:
                labelled = docs[-1:]
            labels.writelines(f"{name} 0 {doc} {int(rng.integers(1, 3))}\n" for doc in labelled)
    return qrels, run


def bytecode(folder: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, as they are where a package is installed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def child(code: str, qrels: Path, run: Path, environment: dict[str, str]) -> tuple[float, float]:
    """CPU seconds and peak memory (MB) of a process."""
    command = [sys.executable, "-c", PREAMBLE + code + EPILOGUE, str(qrels), str(run)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def from_dicts(qrels_path: Path, run_path: Path, runs: int) -> tuple[float, float]:
    """Median CPU seconds of evaluating a run in memory, ours and theirs; the qrels stand ready on both sides."""
    import pytrec_eval

    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.run import Run
    from pytest_retrieval_eval.measures.evaluate import evaluate

    with qrels_path.open() as file:
        labels = pytrec_eval.parse_qrel(file)
    with run_path.open() as file:
        lists = pytrec_eval.parse_run(file)
    qrels = Qrels.of(labels)
    evaluator = pytrec_eval.RelevanceEvaluator(labels, {"recall_5", "ndcg_cut_10", "map", "recip_rank"})

    def ours() -> None:
        evaluation = evaluate(qrels, Run.of(lists), ["recall@5", "ndcg@10", "map", "mrr"])
        for measure in evaluation.measures:
            evaluation.scores(measure).values  # noqa: B018

    ours()
    pairs = [(timed(ours), timed(lambda: evaluator.evaluate(lists))) for _ in range(runs)]
    return tuple(np.median(pairs, axis=0).tolist())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    missed = False

    def report(what: str, ours: float, theirs: float, least: float, note: str = "") -> None:
        nonlocal missed
        missed |= theirs / ours < least
        ratio = f"{theirs / ours:5.1f}× (≥ {least})"
        print(f"{what:<14}{ours * 1e3:9.1f} ms  pytrec_eval {theirs * 1e3:9.1f} ms  {ratio} {note}")

    with tempfile.TemporaryDirectory() as folder:
        environment = bytecode(Path(folder))
        for shape in ("S", "G") if quick else SHAPES:
            qrels, run = generate(Path(folder), shape)
            codes = (OURS, THEIRS)
            child(OURS, qrels, run, environment)
            turns = [[child(code, qrels, run, environment) for code in codes] for _ in range(3 if shape == "M" else 5)]
            (ours, peak), (theirs, their_peak) = np.median(turns, axis=0).tolist()
            report(f"{shape} from file", ours, theirs, FROM_FILE[shape], f"peak {peak:.0f} MB against {their_peak:.0f}")
            missed |= shape == "M" and peak > PEAK
            report(f"{shape} from dicts", *from_dicts(qrels, run, 5 if shape == "M" else 25), FROM_DICTS[shape])
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
