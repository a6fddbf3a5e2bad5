"""Judge a pool of three retrievers once, then add a fourth: each command is printed, and what it prints."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from retrievers import DATASET, DENSE, FIRST, FOURTH, HERE, write_runs


def call(folder: Path, *arguments: str) -> None:
    """One command, in the folder, with the modules of this example at hand."""
    print(f"\n$ pytest-retrieval-eval {shlex.join(arguments)}", flush=True)
    known = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest_retrieval_eval.cli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": known},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(done.returncode)


def main(folder: Path) -> None:
    """The whole story in a folder, which keeps the judgments."""
    print(f"dense: the stored run of all-MiniLM-L6-v2, {DENSE.name} (dense.py computes it anew)", flush=True)
    runs = {name: str(path.relative_to(folder)) for name, path in write_runs(folder / "runs").items()}
    data = shutil.copytree(DATASET, folder / "handbook", dirs_exist_ok=True).name
    first = [runs[name] for name in FIRST]
    every = [*first, runs[FOURTH]]
    depth = ("--depth", "5")

    # What people have judged counts, and is never asked for again.
    call(folder, "judgments", "import", f"{data}/qrels/test.tsv", "--dataset", data, "--name", "author")
    call(folder, "pool", data, *first, *depth)
    named = [word for path in first for word in ("--run", path)]
    call(folder, "judge", "--dataset", data, *named, "--judge", "judging:judge", *depth)

    # A fourth retriever costs what it alone brings.
    call(folder, "pool", data, *every, *depth)
    call(folder, "judge", "--dataset", data, "--run", runs[FOURTH], "--judge", "judging:judge", *depth)
    call(folder, "judgments", "show")
    call(folder, "pool", "report", data, *every, "--judgments", "judgments", "-m", "ndcg@5", *depth)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made).resolve())
