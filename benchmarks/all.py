"""Every benchmark of speed, one after another, and one table of their figures and targets.

    python benchmarks/all.py [--quick] [--only measures session …] [--write]

``--quick`` leaves out large inputs and slow peers, ``--write`` makes the page docs/explanation/speed.md of the table.
Peers that are not installed are left out, which is said (``pip install '.[bench]'`` has those from PyPI). The status is
1 where a target is missed or a benchmark failed. All take a quarter of an hour, for peers take minutes over 7 million
rows; only a quiet machine gives figures to keep. A benchmark that fails, or takes more than twenty minutes, is a
row that says so.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":  # this folder's statistics.py would hide the standard library's
    sys.path[0] = ROOT

# ruff: noqa: E402
import argparse
import datetime
import importlib.metadata
import json
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.figures import Figure, Figures

PAGE = Path(ROOT, "docs", "explanation", "speed.md")
# What each measures, and what it is told where quick is wanted.
BENCHMARKS = {
    "measures": ("Measures", ["--quick"]),
    "session": ("A pytest session", ["--repeat", "3"]),
    "statistics": ("Paired tests and intervals", ["--quick"]),
    "spans": ("Gold spans", ["--queries", "2000"]),
    "judgments": ("Kept judgments", []),
    "erag": ("Reading for eRAG", ["--repeat", "1"]),
}
LONGEST = 20 * 60  # seconds that one of them may take
PEERS = ("pytrec_eval-terrier", "ir_measures", "ranx", "scipy", "transformers")
HEAD = """\
# Speed

<!-- Made by: python benchmarks/all.py --write -->

What an evaluation, a session, a test and a reading cost beside other tools, measured by `make bench`. Both sides of a
ratio take turns in one run; it is of medians of CPU time, and says how many times ours the peer takes. A figure without
a peer is ours alone. Targets are what a ratio must be at least, and a figure without a peer at most.

S is 300 queries × 100 documents, M 6,980 × 1,000, G 50 × 1,000 with 1,300 judgments a query, L 100,000 × 100. *From
file, whole process* is a process that starts, imports, reads both files and has the values of every query.

What misses its target does so for these reasons. *A session*: numpy's import, some 70 dataclasses that are made at
import, then each gate's interval, bounds and diff; seconds depend on the machine, the ratio less. *S from
dictionaries*: reading 30,000 floats one by one is a quarter of the time, looking their documents up a third. *G
loaded*: the table of 65,000 judgments. *M, L from file*: finding the separators of a block and gathering the bytes of
ids. *Sign flips at n = 50*: a third of a millisecond, of which the draw of the patterns is most; it is about the
target, above or below.

"""


def installed() -> tuple[list[str], list[str]]:
    """The peers that are here, with their versions, and those that are not."""
    here, absent = [], []
    for name in PEERS:
        try:
            here.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            absent.append(name)
    (here if shutil.which("trec_eval") else absent).append("trec_eval")
    return here, absent


def measured(name: str, options: list[str]) -> list[Figure]:
    """The figures of one benchmark; where it failed, those that it had, and that it did."""
    script, why = f"benchmarks/{name}.py", ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        try:
            status = subprocess.run([sys.executable, script, *options, "--json", str(path)], cwd=ROOT, timeout=LONGEST)
            why = "" if status.returncode in (0, 1) else f"ended with status {status.returncode}"
        except subprocess.TimeoutExpired:
            why = f"was stopped after {LONGEST / 60:.0f} minutes"
        found = Figures()
        found.found += [Figure(**one) for one in json.loads(path.read_text())] if path.exists() else []
        if why or not found.found:
            found.failed(script, why or "ended without figures")
        return found.found


def table(found: list[Figure]) -> str:
    """The figures as a table of Markdown."""
    rows = ["| what | ours | peer | ratio | target | |", "|---|---|---|---|---|---|"]
    for one in found:
        cells = [_number(value) for value in (one.ours, one.peer, one.ratio)]
        side = "≤" if one.ratio is None else "≥"
        target = "" if one.target is None else f"{side} {_number(one.target)}"
        met = "failed" if one.ours is None else {True: "met", False: "missed", None: ""}[one.met]
        rows.append(f"| {' | '.join([one.what.replace('|', ' '), *cells, target, met])} |")
    return "\n".join(rows) + "\n"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine() -> str:
    """The machine, as far as it matters for ratios."""
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), CPU only, {platform.system()}, "
        f"Python {platform.python_version()}, numpy {importlib.metadata.version('numpy')}"
    )


def main() -> int:
    """Measure, print, and write the page if it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller inputs, fewer turns, no slow peers")
    parser.add_argument("--only", nargs="+", default=list(BENCHMARKS), choices=list(BENCHMARKS), metavar="NAME")
    parser.add_argument("--write", action="store_true", help="make docs/explanation/speed.md of the table")
    arguments = parser.parse_args()
    loads = [os.getloadavg()[0]]
    parts, missed, failed = [], 0, 0
    for name in dict.fromkeys(arguments.only):
        title, quick = BENCHMARKS[name]
        print(f"== {name}", flush=True)
        found = measured(name, quick if arguments.quick else [])
        loads.append(os.getloadavg()[0])
        failed += sum(one.ours is None for one in found)
        missed += sum(one.met is False and one.ours is not None for one in found)
        parts.append(f"## {title}\n\n{table(found)}")
    here, absent = installed()
    said = f"Measured on {datetime.date.today()}: {machine()}. The load was {min(loads):.1f} to {max(loads):.1f}"
    said += ", so that other work took part of the machine.\n" if max(loads) > 1.5 else ".\n"
    if arguments.quick:
        said += "Quick: without large inputs and slow peers.\n"
    left_out = [name for name in BENCHMARKS if name not in arguments.only]
    said += f"Not measured: {', '.join(left_out)}.\n" if left_out else ""
    said += f"Peers here: {', '.join(here)}." + (f" Not here: {', '.join(absent)}.\n" if absent else "\n")
    text = said + "\n" + "\n".join(parts)
    print(f"\n{text}\n{missed} targets missed, {failed} not measured")
    if arguments.write:
        PAGE.write_text(HEAD + text)
    return int(bool(missed or failed))


if __name__ == "__main__":
    sys.exit(main())
