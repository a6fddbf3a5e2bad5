"""From runs to per-query values, beside the peers: from files, from dictionaries, and the evaluation alone.

    python benchmarks/measures.py [--quick] [--only M ranx …] [--repeat N] [--json PATH]

Runs are generated: S is 300 queries × 100 documents, M 6,980 × 1,000, G 50 × 1,000 with 1,300 judgments a query, L
100,000 × 100. From a file each side is a process of its own: CPU time with all that it imports, and peak memory, as
the system counts them. The rest is measured in one process a shape, in which everything is imported before. The sides
take turns; medians are compared. Peers that are not installed (pytrec_eval-terrier, ir_measures, ranx; the program
trec_eval) are left out, which is said. ``--only`` takes shapes, peers and parts (file, memory); ``--quick`` leaves out
M and L, and ranx. The status is 1 where a target is missed.
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
import importlib.util
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import Figures, json_option, median

# queries, documents and judgments of each query
SHAPES = {"S": (300, 100, 4), "G": (50, 1000, 1300), "M": (6980, 1000, 1), "L": (100_000, 100, 1)}
REPEAT = {"S": 7, "G": 7, "M": 3, "L": 1}

#: How many times the time of ours a side must take at least, by part, shape and side.
TARGETS = {
    ("file", "S", "pytrec_eval"): 1 / 1.1,
    ("file", "G", "pytrec_eval"): 1.0,
    ("file", "M", "pytrec_eval"): 7.0,
    ("file", "M", "trec_eval"): 8.0,
    ("file", "M", "ranx"): 20.0,
    ("file", "M", "wc -l"): 1 / 17,
    ("file", "L", "pytrec_eval"): 7.0,
    ("loaded", "S", "pytrec_eval"): 4.0,
    ("loaded", "G", "pytrec_eval"): 4.0,
    ("dicts", "S", "pytrec_eval"): 4.0,
    ("dicts", "G", "pytrec_eval"): 1.0,
    ("dicts", "M", "pytrec_eval"): 9.0,
}
PEAKS = {"M": 80.0}  # MB that ours may take from a file
PARTS = {
    "file": "from file, whole process",
    "loaded": "from file, all imported",
    "dicts": "from dictionaries, qrels ready",
    "both": "from dictionaries, qrels too",
    "alone": "evaluation alone",
}

CODE = {
    "ours": """
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.measures.evaluate import evaluate
for scores in evaluate(Qrels.read(sys.argv[1]), Run.read(sys.argv[2]), ["recall@5", "ndcg@10", "map", "mrr"]):
    scores.values
""",
    "pytrec_eval": """
import pytrec_eval
with open(sys.argv[1]) as file:
    qrels = pytrec_eval.parse_qrel(file)
with open(sys.argv[2]) as file:
    run = pytrec_eval.parse_run(file)
pytrec_eval.RelevanceEvaluator(qrels, {"recall_5", "ndcg_cut_10", "map", "recip_rank"}).evaluate(run)
""",
    "ir_measures": """
import ir_measures
from ir_measures import AP, RR, R, nDCG
qrels, run = ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2])
list(ir_measures.iter_calc([R@5, nDCG@10, AP, RR], qrels, run))
""",
    "ranx": """
from ranx import Qrels, Run, evaluate
qrels, run = Qrels.from_file(sys.argv[1], kind="trec"), Run.from_file(sys.argv[2], kind="trec")
evaluate(qrels, run, ["recall@5", "ndcg@10", "map", "mrr"], return_mean=False, make_comparable=True)
""",
}
CODE["ranx, cold"] = CODE["ranx"]
TREC_EVAL = ["trec_eval", "-q", "-m", "recall.5", "-m", "ndcg_cut.10", "-m", "map", "-m", "recip_rank"]


def generate(folder: Path, shape: str) -> tuple[Path, Path]:
    """Qrels and a run with scores of six decimals, about half of the judged documents retrieved."""
    import numpy as np

    queries, documents, judged = SHAPES[shape]
    rng = np.random.default_rng(7)
    qrels, run = folder / f"{shape}.qrels", folder / f"{shape}.trec"
    with qrels.open("w") as labels, run.open("w") as lists:
        for query in range(queries):
            docs = rng.choice(9_000_000, documents + judged, replace=False).tolist()
            scores = np.sort(rng.uniform(5, 30, documents))[::-1].tolist()
            name = 1000 + 151 * query
            pairs = zip(docs[:documents], scores, strict=True)
            lists.writelines(f"{name} Q0 {doc} {i} {s:.6f} b\n" for i, (doc, s) in enumerate(pairs, 1))
            retrieved = judged // 2 if judged > 1 else query % 2
            labelled = [
                *rng.choice(docs[:documents], retrieved, False).tolist(),
                *docs[documents:][: judged - retrieved],
            ]
            labels.writelines(f"{name} 0 {doc} {int(rng.integers(1, 3))}\n" for doc in labelled)
    return qrels, run


class ChildError(Exception):
    """A process that ended with an error: the last line of what it said."""


def child(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """CPU seconds and peak memory (MB) of a process; this one stays small, for a child's peak begins with it."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode().splitlines() or [""]
            raise ChildError(f"ended with status {process.returncode}: {said[-1]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def sides(quick: bool, only: set[str]) -> list[str]:
    """The sides that are here and wanted, ours first."""
    found = ["ours"]
    for name in ("pytrec_eval", "ir_measures", "ranx", "trec_eval", "wc -l"):
        if (name == "ranx" and quick) or (only and name.split()[0] not in only):
            continue
        here = shutil.which(name.split()[0]) if name in ("trec_eval", "wc -l") else importlib.util.find_spec(name)
        if here is None:
            print(f"{name} is not here and left out")
            continue
        found.append(name)
    return found


def from_files(
    figures: Figures, shape: str, names: list[str], repeat: int, qrels: Path, run: Path
) -> dict[str, tuple[float, float]]:
    """Median CPU seconds and peak memory of each side as a process; a peer that fails is kept as such."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    # Modules are compiled once, as they are where a package is installed; ranx keeps what it compiles beside.
    environment |= {"PYTHONPYCACHEPREFIX": str(run.parent / "bytecode"), "NUMBA_CACHE_DIR": str(run.parent / "numba")}
    begin = f"import sys\nsys.path.insert(0, {ROOT!r})\n"
    commands = {
        name: [sys.executable, "-c", begin + CODE[name], str(qrels), str(run)] for name in names if name in CODE
    }
    commands |= {"trec_eval": [*TREC_EVAL, str(qrels), str(run)]} if "trec_eval" in names else {}
    commands |= {"wc -l": ["wc", "-l", str(run)]} if "wc -l" in names else {}
    cold = {}
    for name, command in list(commands.items()):
        try:
            cold[name] = child(command, environment)
        except ChildError as error:
            print(figures.failed(f"{shape}, {PARTS['file']}: {name}", str(error)).what)
            del commands[name]
    turns = [{name: child(command, environment) for name, command in commands.items()} for _ in range(repeat)]
    result = {
        name: tuple(median(values) for values in zip(*(t[name] for t in turns), strict=True)) for name in commands
    }
    if "ranx" in cold and shape == "S":
        result["ranx, cold"] = cold["ranx"]
    return result  # type: ignore[return-value]  # pairs


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def in_memory(names: list[str], repeat: int, qrels_path: Path, run_path: Path) -> dict[str, dict[str, float]]:
    """Median CPU seconds by part and side, in this process."""
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.measures.evaluate import Evaluation, evaluate
    from pytest_retrieval_eval.measures.evidence import Evidence, Given
    from pytest_retrieval_eval.measures.ranks import JudgedRanks

    wanted = ["recall@5", "ndcg@10", "map", "mrr"]
    labels: dict[str, dict[str, int]] = {}
    for line in qrels_path.read_text().splitlines():
        query, _, doc, grade = line.split()
        labels.setdefault(query, {})[doc] = int(grade)
    lists: dict[str, dict[str, float]] = {}
    with run_path.open() as file:
        for line in file:
            query, _, doc, _, score, _ = line.split()
            lists.setdefault(query, {})[doc] = float(score)

    def ours(qrels: Qrels, run: Run) -> None:
        for scores in evaluate(qrels, run, wanted):
            scores.values  # noqa: B018

    ready, located = Qrels.of(labels), Run.of(lists)
    ours(ready, located)

    def alone() -> None:
        # A run keeps its table with all that was worked out on it: each turn has a new one.
        table = JudgedRanks.of(ready, located.locate(ready))
        evaluation = Evaluation(Evidence(ready, table, judged=True), Given(located, ready), ())
        for name in wanted:
            evaluation.scores(name).values  # noqa: B018

    works: dict[str, dict[str, Callable[[], object]]] = {
        "loaded": {"ours": lambda: ours(Qrels.read(qrels_path), Run.read(run_path))},
        "dicts": {"ours": lambda: ours(ready, Run.of(lists))},
        "both": {"ours": lambda: ours(Qrels.of(labels), Run.of(lists))},
        "alone": {"ours": alone},
    }
    if "pytrec_eval" in names:
        import pytrec_eval

        theirs = {"recall_5", "ndcg_cut_10", "map", "recip_rank"}
        evaluator = pytrec_eval.RelevanceEvaluator(labels, theirs)

        def from_file() -> object:
            with qrels_path.open() as file:
                judged = pytrec_eval.parse_qrel(file)
            with run_path.open() as file:
                return pytrec_eval.RelevanceEvaluator(judged, theirs).evaluate(pytrec_eval.parse_run(file))

        works["loaded"]["pytrec_eval"] = from_file
        works["dicts"]["pytrec_eval"] = works["alone"]["pytrec_eval"] = lambda: evaluator.evaluate(lists)
        works["both"]["pytrec_eval"] = lambda: pytrec_eval.RelevanceEvaluator(labels, theirs).evaluate(lists)
    if "ir_measures" in names:
        import ir_measures
        from ir_measures import AP, RR, R, nDCG

        prepared = ir_measures.evaluator([R @ 5, nDCG @ 10, AP, RR], labels)
        works["dicts"]["ir_measures"] = lambda: list(prepared.iter_calc(lists))
    if "ranx" in names:
        import ranx

        def evaluated(judged: object, run: object) -> object:
            return ranx.evaluate(judged, run, wanted, return_mean=False, make_comparable=True)

        judged, run = ranx.Qrels(labels), ranx.Run(lists)
        evaluated(judged, run)  # compiled
        works["dicts"]["ranx"] = lambda: evaluated(judged, ranx.Run(lists))
        works["alone"]["ranx"] = lambda: evaluated(judged, run)
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(repeat):
        for part, sides in works.items():
            for side, work in sides.items():
                times.setdefault((part, side), []).append(timed(work))
    return {part: {side: median(times[part, side]) for side in sides} for part, sides in works.items()}


def report(figures: Figures, part: str, shape: str, times: dict[str, tuple[float, float] | float]) -> None:
    """Print the sides, and keep them as figures."""
    cells = {side: found if isinstance(found, tuple) else (found, None) for side, found in times.items()}
    ours, peak = cells["ours"]
    print(f"\n{shape}, {PARTS[part]}")
    for side, (seconds, memory) in cells.items():
        shown = f"  {memory:7.0f} MB" if memory is not None else ""
        line = f"  {side:<12}{seconds * 1e3:10.1f} ms{shown}"
        if side != "ours":
            what = f"{shape}, {PARTS[part]}: {side}, ms"
            found = figures.ratio(what, ours * 1e3, seconds * 1e3, TARGETS.get((part, shape, side)))
            line += f"  {found.ratio:8.2f} × ours  {found.verdict}"
        elif peak is not None:
            line += f"  {figures.bound(f'{shape}, {PARTS[part]}: peak memory, MB', peak, PEAKS.get(shape)).verdict}"
        print(line.rstrip(), flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="S and G, without ranx")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="shapes, peers, parts (file, memory)")
    parser.add_argument("--repeat", type=int, help="how often each side has its turn")
    json_option(parser)
    parser.add_argument("--inner", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        names, repeat, qrels, run = arguments.inner
        print(json.dumps(in_memory(names.split(","), int(repeat), Path(qrels), Path(run))))
        return 0
    only = set(arguments.only)
    known = {*SHAPES, "file", "memory", "pytrec_eval", "ir_measures", "ranx", "trec_eval", "wc"}
    if only - known:
        parser.error(f"--only {' '.join(sorted(only - known))}: expected some of {', '.join(sorted(known))}")
    shapes = [shape for shape in SHAPES if shape in only] or (["S", "G"] if arguments.quick else list(SHAPES))
    names = sides(arguments.quick, only - {*SHAPES, "file", "memory"})
    parts = only & {"file", "memory"} or {"file", "memory"}
    figures = Figures(arguments.json)
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            # In a process of its own, so that this one stays small.
            code = f"import sys; sys.path.insert(0, {ROOT!r})\nfrom pathlib import Path\n"
            code += f"from benchmarks.measures import generate; generate(Path({folder!r}), {shape!r})"
            subprocess.run([sys.executable, "-c", code], check=True)
            qrels, run = Path(folder, f"{shape}.qrels"), Path(folder, f"{shape}.trec")
            repeat = arguments.repeat or REPEAT[shape]
            if "file" in parts:
                report(figures, "file", shape, dict(from_files(figures, shape, names, repeat, qrels, run)))
            if "memory" in parts and shape != "L":
                more = repeat * (3 if shape in "SG" else 1)
                command = [sys.executable, __file__, "--inner", ",".join(names), str(more), str(qrels), str(run)]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                if done.returncode:
                    print(figures.failed(f"{shape}, in memory", f"ended with status {done.returncode}").what)
                    continue
                for part, times in json.loads(done.stdout.splitlines()[-1]).items():
                    report(figures, part, shape, times)
            run.unlink()
    return figures.status


if __name__ == "__main__":
    sys.exit(main())
