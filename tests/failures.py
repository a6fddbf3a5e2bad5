"""The page of failures, made by running them: ``python tests/failures.py`` writes docs/explanation/failures.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "failures.md"
LINES = 16  # of a text; the rest is said to be there

INTRODUCTION = """# What a failure looks like

Each text below is what pytest prints, from the examples of this repository; `python tests/failures.py` makes this
page, and a test holds it against what is printed today. A text of more than {lines} lines ends with an ellipsis here.

The first line is always the verdict: the gate, `FAILED`, `INCONCLUSIVE` or an error, and why in one clause; in brackets
what was measured on what. What the other lines say, and what the rules mean, is in [which rule decides](rules.md).
"""

INI = """[pytest]
retrieval_datasets = handbook = eval/handbook
retrieval_run = runs/refactored.run.jsonl.gz
retrieval_reader = {kind: callable, function: "reader:answer", identity: "sentence with most words of the query, v1"}
pythonpath = .
"""


@dataclass(frozen=True)
class Shown:
    """One failure: its title, what it means and what to do, the entry of a gate file, and whose session shows it."""

    title: str
    meaning: str
    gate: str
    session: str = "handbook"


SHOWN = (
    Shown(
        "Worse than the baseline",
        "The mean fell below the baseline. Both means, the difference with its interval, a paired test, then what the "
        "lost queries have in common, then the queries. Mend the change, or, where it is meant, store a new baseline "
        "with `--retrieval-update=all` and commit it.",
        "recall@5 >= baseline",
    ),
    Shown(
        "Below a number",
        "The mean is too low, whatever it was before. Queries that have all that they can have are not listed.",
        "recall@5 >= 0.8",
    ),
    Shown(
        "`noninferior`: a loss up to the margin is not ruled out",
        "The gate asks for evidence that no more than the margin is lost: the lower bound of the difference counts, "
        "not the mean. More queries narrow it.",
        "{gate: recall@5 >= baseline - 0.05, rule: noninferior}",
    ),
    Shown(
        "`significant`: the loss is more than noise",
        "The gate fails only where the paired test says so at `alpha`.",
        "{gate: ndcg@10 >= baseline, rule: significant}",
    ),
    Shown(
        "`each`: golden queries, one by one",
        "No query may lose; `allow` says how many may. For queries that were chosen by hand.",
        "{gate: hit@5 >= baseline, rule: each, where: {critical: true}}",
    ),
    Shown(
        "By slices",
        "Each value of the tag decides for itself, and the gate fails with the first that does. Slices with fewer than "
        "`min_n` queries are shown and do not decide.",
        "{gate: recall@5 >= baseline, by: type}",
    ),
    Shown(
        "Several gates that are decided together",
        "A list is one test: all are measured, and the failure has all that do not hold.",
        "[recall@5 >= baseline, mrr@10 >= baseline]",
    ),
    Shown(
        "Labels from gold answers",
        "`contains(kilt)`: a document is relevant that has a gold answer in it, so that no judgment is needed.",
        "{gate: hit@3 >= baseline, labels: contains(kilt)}",
    ),
    Shown(
        "Labels from a reader",
        "`erag`: what the reader answered from the documents that moved stands below each query.",
        "{gate: hit@3 >= baseline, labels: erag, answer_metric: f1}",
    ),
    Shown(
        "Labels from a judged pool that has gaps",
        "Documents without a grade leave the gate undecided, which is red: nobody knows what they are worth. The text "
        "has the command that fills the gap.",
        "{gate: ndcg@5 >= 0.5, labels: judged}",
    ),
    Shown(
        "Not enough is judged",
        "`judged=0.9` asks for a share of the top documents that is judged; below it nothing is decided.",
        "{gate: precision@5 >= 0.1, judged: 0.9}",
    ),
    Shown(
        "Gold spans that are no longer found",
        "The chunks changed, the gold did not: which passage is lost, and where a cut went through it.",
        "span_recall(min_coverage=0.9)@5 >= baseline",
        "chunking",
    ),
    Shown(
        "A stage that withholds what was found",
        "The document was found, its asker may read it, and the filter dropped it.",
        "withheld(from=fused) <= 0",
        "filter",
    ),
    Shown(
        "A restricted document that leaks",
        "The query, its role, the document, whose it is, and the rank.",
        "leaks <= 0",
        "leak",
    ),
    Shown(
        "A reranker that makes it worse",
        "Lift is the share of the gap between the order before and the best one that the reranker recovered.",
        "lift(ndcg@10, from=filtered) >= 0.05",
        "reranker",
    ),
    Shown(
        "Slower than agreed",
        "Times are compared as they were measured; the text says on how many queries, and where they came from.",
        "latency.p95 <= 1ms",
        "slow",
    ),
    Shown(
        "Nothing could be measured: no such baseline",
        "An error, never a pass, and never taken for a worse retriever. The same holds for the two below.",
        '"recall@5 >= baseline[release-4]"',
    ),
    Shown("Nothing could be measured: a slice without queries", "", "{gate: recall@5 >= 0.5, where: {type: acronyms}}"),
    Shown("Nothing could be measured: a measure that does not fit", "", "{gate: span_recall@5 >= 0.5}"),
)
NAMES = {shown.title: f"gate{place:02}" for place, shown in enumerate(SHOWN)}


def page() -> str:
    """The page as it comes out today."""
    with tempfile.TemporaryDirectory() as folder:
        texts = _handbook(Path(folder) / "project") | _examples(Path(folder) / "examples")
    parts = [INTRODUCTION.format(lines=LINES)]
    for shown in SHOWN:
        gate = shown.gate.strip('"')
        meaning = "\n".join([*textwrap.wrap(shown.meaning, 118), "", ""] if shown.meaning else [])
        parts.append(f"## {shown.title}\n\n{meaning}```yaml\n{gate}\n```\n\n```text\n{texts[shown.title]}\n```\n")
    return "\n".join(parts)


def _handbook(project: Path) -> dict[str, str]:
    """The texts of the gates on the handbook's search after its tokenizer was changed."""
    shutil.copytree(ROOT / "examples/handbook/eval", project / "eval")
    shutil.copy(ROOT / "examples/reader/reader.py", project)
    (project / "pytest.ini").write_text(INI, encoding="utf-8")
    search = [sys.executable, "-m", "pytest_retrieval_eval.cli", "run", "--dataset", "eval/handbook", "--factory"]
    (project / "engine.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'examples/handbook')!r})\nfrom search import Searcher\n"
        "def refactored():\n    searcher = Searcher.open(tokenizer='refactored')\n"
        "    return lambda query: searcher.search(query, limit=100)\n",
        encoding="utf-8",
    )
    (project / "runs").mkdir()
    _run([*search, "--retriever", "engine:refactored", "-o", "runs/refactored.run.jsonl.gz"], project)
    author = ["judgments", "import", "eval/handbook/qrels/test.tsv", "--dataset", "eval/handbook", "--name", "author"]
    _run([sys.executable, "-m", "pytest_retrieval_eval.cli", *author], project)
    slow = project / "runs" / "slow.run.jsonl"
    rows = ['{"format": "retrieval-run", "version": 1, "depth": 100}']
    for number in range(1, 224):
        hit, seconds = {"id": "it-vpn-setup", "score": 1}, round(0.0008 + 0.00001 * (number % 50), 5)
        rows.append(json.dumps({"hits": [hit], "query_id": f"q{number:03}", "seconds": seconds}))
    slow.write_text("\n".join(rows) + "\n", encoding="utf-8")
    gates = ["dataset: handbook", "baseline: main", "gates:"]
    for shown in SHOWN:
        if shown.session == "handbook":
            gates.append(f"  {NAMES[shown.title]}: {shown.gate}")
        elif shown.session == "slow":
            gates.append(f"  {NAMES[shown.title]}: {{gate: {shown.gate}, run: {slow}}}")
    (project / "shown.gates.yaml").write_text("\n".join(gates) + "\n", encoding="utf-8")
    printed = _pytest(project)
    here = [shown for shown in SHOWN if shown.session in ("handbook", "slow")]
    return {shown.title: _text(printed, NAMES[shown.title], project) for shown in here}


def _examples(folder: Path) -> dict[str, str]:
    """The texts of the examples that have a fault of their own."""
    for name in ("handbook", "chunking", "pipeline"):
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    found = {}
    for shown in SHOWN:
        if shown.session == "chunking":
            printed = _pytest(folder / "chunking", "-k", "test_the_evidence_is_found", CHUNKER="scraps")
        elif shown.session in ("filter", "leak", "reranker"):
            printed = _pytest(folder / "pipeline", "pipeline.gates.yaml", PIPELINE_FAULT=shown.session)
        else:
            continue
        found[shown.title] = _text(printed, shown.gate, folder)
    return found


def _pytest(folder: Path, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", *arguments]
    return _run(command, folder, **environment)


def _run(command: list[str], folder: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTEST_ADDOPTS", "CI")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return done.stdout + done.stderr


def _text(printed: str, name: str, folder: Path) -> str:
    """The failure of one test: of the section that has its name, or whose text begins with its gate."""
    sections = re.split(r"^_{4,}.* (\S+) _{4,}$", printed, flags=re.MULTILINE)
    for title, text in zip(sections[1::2], sections[2::2], strict=True):
        body = re.split(r"^={4,}", text, flags=re.MULTILINE)[0]
        lines = [re.sub(r"^E ( {2})?", "", line).rstrip() for line in body.splitlines()]
        lines = [line.replace(f"{folder}{os.sep}", "").replace(str(folder), ".") for line in lines]
        verdict = re.compile(r": FAILED|INCONCLUSIVE|Error: ")
        start = next((place for place, line in enumerate(lines) if verdict.search(line)), 0)
        lines = "\n".join(lines[start:]).strip("\n").splitlines()
        if name in title or (lines and name in lines[0]):
            lines = [re.sub(r"^pytest_retrieval_eval\.errors\.\w+: ", "", line) for line in lines]
            return "\n".join([*lines[:LINES], *(["…"] if len(lines) > LINES else [])])
    raise LookupError(f"no failure of {name} in\n{printed}")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
