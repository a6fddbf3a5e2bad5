"""Every benchmark of speed, one after another, and one table of their figures and targets.

    python benchmarks/all.py [--quick] [--only measures session …] [--write]

``--quick`` leaves out large inputs and slow peers, ``--write`` makes the page docs/explanation/speed.md of the table.
Peers that are not installed are left out, which is said (``pip install '.[bench]'`` has those from PyPI). The status is
1 where a target is missed or a benchmark failed. All take a quarter of an hour, for peers take minutes over 7 million
rows; only a quiet machine gives figures to keep.
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
import importlib.util
import json
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.figures import Figure

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
PEERS = {
    "pytrec_eval-terrier": "pytrec_eval",
    "ir_measures": "ir_measures",
    "ranx": "ranx",
    "scipy": "scipy",
    "transformers": "transformers",
}
HEAD = """\
# Speed

<!-- Made by: python benchmarks/all.py --write -->

What an evaluation, a session, a test and a reading cost beside other tools, measured by `make bench`. Both sides of a
ratio take turns in one run; it is of medians of CPU time, and says how many times ours the peer takes. A figure without
a peer is ours alone. Targets are what a ratio must be at least, and a figure without a peer at most.

S is 300 queries × 100 documents, M 6,980 × 1,000, G 50 × 1,000 with 1,300 judgments a query, L 100,000 × 100. *From
file, whole process* is a process that starts, imports, reads both files and has the values of every query.

"""


def installed() -> tuple[list[str], list[str]]:
    """The peers that are here, with their versions, and those that are not."""
    here = [f"{name} {importlib.metadata.version(name)}" for name, module in PEERS.items() if _is_here(module)]
    absent = [name for name, module in PEERS.items() if not _is_here(module)]
    (here if shutil.which("trec_eval") else absent).append("trec_eval")
    return here, absent


def _is_here(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def measured(name: str, options: list[str]) -> list[Figure] | str:
    """The figures of one benchmark, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        command = [sys.executable, str(Path(ROOT, "benchmarks", f"{name}.py")), *options, "--json", str(path)]
        status = subprocess.run(command).returncode
        if status not in (0, 1) or not path.exists():
            return f"benchmarks/{name}.py ended with status {status} and without figures"
        return [Figure(**one) for one in json.loads(path.read_text())]


def table(found: list[Figure]) -> str:
    """The figures as a table of Markdown."""
    rows = ["| what | ours | peer | ratio | target | |", "|---|---|---|---|---|---|"]
    for one in found:
        cells = [_number(value) for value in (one.ours, one.peer, one.ratio)]
        side = "≤" if one.ratio is None else "≥"
        target = "" if one.target is None else f"{side} {_number(one.target)}"
        rows.append(f"| {' | '.join([one.what, *cells, target, {True: 'met', False: 'missed', None: ''}[one.met]])} |")
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
    parts, failed, missed = [], [], 0
    for name in dict.fromkeys(arguments.only):
        title, quick = BENCHMARKS[name]
        print(f"== {name}", flush=True)
        found = measured(name, quick if arguments.quick else [])
        loads.append(os.getloadavg()[0])
        if isinstance(found, str):
            failed.append(found)
            continue
        missed += sum(one.met is False for one in found)
        parts.append(f"## {title}\n\n{table(found)}")
    here, absent = installed()
    said = f"Measured on {datetime.date.today()}: {machine()}. The load was {min(loads):.1f} to {max(loads):.1f}"
    said += ", so that other work took part of the machine.\n" if max(loads) > 1.5 else ".\n"
    if arguments.quick:
        said += "Quick: without large inputs and slow peers.\n"
    left_out = [name for name in BENCHMARKS if name not in arguments.only]
    said += f"Not measured: {', '.join(left_out)}.\n" if left_out else ""
    said += f"Peers here: {', '.join(here)}." + (f" Not here: {', '.join(absent)}.\n" if absent else "\n")
    said += "".join(f"Failed: {sentence}.\n" for sentence in failed)
    text = said + "\n" + "\n".join(parts)
    print(f"\n{text}\n{missed} targets missed")
    if arguments.write:
        PAGE.write_text(HEAD + text)
    return int(bool(missed or failed))


if __name__ == "__main__":
    sys.exit(main())
