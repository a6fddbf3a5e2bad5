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
FILE = "shown.gates.yaml"
MOST = {"note": 3, "cause": 2}  # how many of each a text here shows

INTRODUCTION = """# What a failure looks like

Each text below is what pytest prints for the gate above it, from the examples of this repository;
`python tests/failures.py` makes this page, and a test holds it against what is printed today. Where a text goes on,
with more notes, more that queries have in common, or more queries, it ends with an ellipsis here.

Every failure reads in the same order:

1. **The verdict**: the gate, `FAILED`, `INCONCLUSIVE` or an error, and why in one clause; in brackets what was measured
   on what.
2. **The evidence**: the means, baseline → run under test, their difference with its interval, and p; how many queries
   got worse, the smallest drop that so many queries could have shown, and how much of the first k documents is judged;
   the bounds, between which the mean would lie if everything unjudged were judged.
3. **Notes**: what is odd about the data, and what hangs on it. Where the verdict could be another one, a note says so.
4. **What the lost queries have in common**: often the cause.
5. **The queries**, worst first. `lost` and `fell` are relevant documents that left the first k or stand lower, `want`
   those that are missing where there is no run to compare with, `now` what took their place.

[Which rule decides](rules.md) says how each number comes about, and [what to do about unjudged
documents](../how-to/unjudged.md) what `judged@k` and the bounds are for.
"""

INI = """[pytest]
retrieval_datasets = handbook = eval/handbook
retrieval_run = runs/refactored.run.jsonl.gz
retrieval_reader = {kind: callable, function: "reader:answer", identity: "sentence with most words of the query, v1"}
pythonpath = .
"""


@dataclass(frozen=True)
class Shown:
    """One text: its title, how to read it and what to do, its entry of a gate file, and whose session shows it."""

    title: str
    meaning: str
    name: str
    gate: str
    session: str = "handbook"
    queries: int = 1  # how many of them the text here shows


SHOWN = {
    "Rules": (
        Shown(
            "`mean`: worse than the baseline",
            "The default. The mean fell below the baseline, and 74 queries lost where 5 won, which p says is no "
            "chance. Mend the change, or, where it is meant, store a new baseline with `--retrieval-update=all` and "
            "commit it.",
            "mean",
            "recall@5 >= baseline",
            queries=2,
        ),
        Shown(
            "Below a number",
            "The mean is too low, whatever it was before. No run stands beside it, so there is no difference and no "
            "p; queries that have all that they can have are not listed.",
            "number",
            "recall@5 >= 0.8",
        ),
        Shown(
            "`noninferior`: a loss up to the margin is not ruled out",
            "The gate asks for evidence that no more than the margin is lost: the lower bound of the difference "
            "counts, not the mean. More queries narrow it.",
            "noninferior",
            "{gate: recall@5 >= baseline - 0.05, rule: noninferior}",
        ),
        Shown(
            "`significant`: the loss is more than noise",
            "The gate fails only where the paired test says so at `alpha`; p is one-sided then.",
            "significant",
            "{gate: ndcg@10 >= baseline, rule: significant}",
        ),
        Shown(
            "`each`: golden queries, one by one",
            "No query may lose; `allow` says how many may. For queries that were chosen by hand. The means stand "
            "there for information.",
            "each",
            "{gate: hit@5 >= baseline, rule: each, where: {critical: true}}",
            queries=2,
        ),
        Shown(
            "By slices",
            "Each value of the tag decides for itself, and the gate fails where one of them does. Slices with fewer "
            "than `min_n` queries are shown and do not decide, and neither does the line `all:`. Below stands the "
            "text of each slice that fails, as if it were a gate of its own.",
            "slices",
            "{gate: recall@5 >= baseline, by: type}",
        ),
        Shown(
            "Several gates that are decided together",
            "A list is one test: all are measured, and the failure has all that do not hold, one after another.",
            "together",
            "[recall@5 >= baseline, mrr@10 >= baseline]",
        ),
    ),
    "Where relevance comes from": (
        Shown(
            "`qrels`: judgments of people",
            "The default. Grades stand behind the titles. A document that nobody judged counts as not relevant: here "
            "the share of judged documents fell, so that the run under test may be better than measured, and the note "
            "says how many pairs somebody should look at. `--retrieval-to-judge` writes them into a file.",
            "qrels",
            "{gate: ndcg@5 >= baseline, labels: qrels, where: {area: legal}}",
            queries=3,
        ),
        Shown(
            "`spans`: chunks that hold gold",
            "A chunk is relevant if it shares at least half of the shorter of the two with a gold span, so that each "
            "side has labels of its own chunks. Here the same ids are other parts of a document than before, as a "
            "note says, so that no chunk is named under the queries; which gold was lost, and where it was cut, a "
            "gate on [gold spans](#gold-spans) tells.",
            "spans",
            "{gate: mrr@5 >= baseline, labels: spans}",
            "chunking",
        ),
        Shown(
            "`contains(kilt)`: documents with a gold answer in them",
            "No judgment is needed, and nothing is unjudged. Under each document stands the answer that was found, or "
            "that none was; queries without gold answers are left out, and a note names them.",
            "contains-kilt",
            "{gate: hit@3 >= baseline, labels: contains(kilt)}",
        ),
        Shown(
            "`contains(dpr)`: the same, word by word",
            "The words of an answer must stand one after another, and punctuation counts. Close to `contains(kilt)`, "
            "and still another measure: here one more query is lost than above.",
            "contains-dpr",
            "{gate: hit@3 >= baseline, labels: contains(dpr)}",
        ),
        Shown(
            "`erag`: what a reader answers from a document",
            "The brackets name the reader and the metric of answers. Relevance is how right the reader was, from 0 to "
            "1, and under each document stands what it answered: a document may be relevant and the reader fail on "
            "it.",
            "erag",
            "{gate: hit@3 >= baseline, labels: erag, answer_metric: f1}",
            queries=2,
        ),
        Shown(
            "`judged`: a pool with gaps",
            "Documents without a grade leave the gate undecided, which is red: nobody knows what they are worth. The "
            "text has the command that fills the gap, and under each document stands who judged it.",
            "judged",
            "{gate: ndcg@5 >= 0.5, labels: judged}",
        ),
        Shown(
            "A list of sources",
            "For each query and document the first source that has a grade wins: here people, and for what they have "
            "not judged, gold answers. So nearly everything is judged, and the bounds are narrow.",
            "list",
            "{gate: precision@5 >= 0.25, labels: [qrels, contains(kilt)]}",
        ),
        Shown(
            "Not enough is judged",
            "`judged=0.9` asks for a share of the top documents that is judged; below it nothing is decided, though "
            "the number itself would do.",
            "judged-share",
            "{gate: precision@5 >= 0.1, judged: 0.9}",
        ),
    ),
    "Gold spans": (
        Shown(
            "Gold that is no longer found",
            "The chunks changed, the gold did not. For each query: the gold span with its offsets and its text, which "
            "chunk of the first k held most of it *before* and *after*, how much, at which rank, and where a cut went "
            "through it. What the lost queries have in common tells cut apart from ranked lower and not found at all: "
            "the first is the chunker's fault, the others are the ranking's.",
            "span-recall",
            "span_recall(min_coverage=0.9)@5 >= baseline",
            "chunking",
            queries=2,
        ),
        Shown(
            "Characters of the gold that are missing",
            "Coverage is a share of the gold's characters, so that a query may lose a part.",
            "span-coverage",
            "span_coverage@5 >= baseline",
            "chunking",
        ),
    ),
    "The whole pipeline": (
        Shown(
            "A stage that withholds what was found",
            "The document was found, its asker may read it, and the filter dropped it.",
            "withheld",
            "withheld(from=fused) <= 0",
            "filter",
        ),
        Shown(
            "A restricted document that leaks",
            "The query, its role, the document, whose it is, and the rank.",
            "leaks",
            "leaks <= 0",
            "leak",
        ),
        Shown(
            "A reranker that makes it worse",
            "Lift is the share of the gap between the order before and the best one that the reranker recovered; "
            "below 0 it made things worse. The causes count by stage where relevant documents were lost.",
            "lift",
            "lift(ndcg@10, from=filtered) >= 0.05",
            "reranker",
        ),
        Shown(
            "Latency: slower than agreed",
            "Times are compared as they were measured; the text says on how many queries, and where they came from. "
            "The slowest queries come first.",
            "latency",
            "{gate: latency.p95 <= 1ms, run: runs/slow.run.jsonl}",
        ),
        Shown(
            "Abstention: an answer where there is none",
            "Of the queries that are marked unanswerable, the share for which nothing was returned, or nothing with a "
            "score of the threshold. The queries below got something all the same; `pytest-retrieval-eval thresholds` "
            "shows what other thresholds would do.",
            "abstention",
            "abstention.recall(threshold=2) >= 0.9",
        ),
    ),
    "Judges": (
        Shown(
            "A judge that may not be believed",
            "A judge's grades are held against labels of people: the rates at which it is right on relevant and on "
            "other pairs, and the agreement beyond chance, each with its interval and what is asked. The notes say "
            "what the sample is worth. Here the judge calls relevant what the search returns among the first ten.",
            "judge",
            "{judge: {human: eval/handbook/qrels/test.tsv, grades: runs/judge.tsv}}",
        ),
    ),
    "Green, and worth a look": (
        Shown(
            "A weak pass",
            "The gate holds and the test is green; `pytest -v` says how large a loss could have gone unseen among so "
            "few queries. Label more of them, decide by `rule: each`, or say with `retrieval_weak_drop` which loss "
            "matters.",
            "weak",
            "{gate: hit@10 >= baseline, where: {area: legal, type: keyword}}",
        ),
    ),
    "Nothing could be measured": (
        Shown(
            "No such baseline",
            "An error, never a pass, and never taken for a worse retriever. The text has the command that stores "
            "today's run as the baseline, which a first gate needs, too. Is it a slip of the pen, mend the name.",
            "no-baseline",
            "recall@5 >= baseline[release-4]",
        ),
        Shown(
            "A slice without queries",
            "A gate on no queries would pass for ever.",
            "no-queries",
            "{gate: recall@5 >= 0.5, where: {type: acronyms}}",
        ),
        Shown(
            "A measure that does not fit",
            "What the measure needs is missing; the text says what, for which query, and two ways to give it.",
            "no-spans",
            "{gate: span_recall@5 >= 0.5}",
        ),
    ),
}
#: Whose folder and environment a session has.
SESSIONS = {
    "handbook": ("project", {}),
    "chunking": ("chunking", {"CHUNKER": "scraps"}),
    **{fault: ("pipeline", {"PIPELINE_FAULT": fault}) for fault in ("filter", "leak", "reranker")},
}


def page() -> str:
    """The page as it comes out today."""
    with tempfile.TemporaryDirectory() as folder:
        texts = _texts(Path(folder))
    parts = [INTRODUCTION]
    for heading, group in SHOWN.items():
        parts.append(f"## {heading}\n")
        for shown in group:
            meaning = "\n".join(textwrap.wrap(shown.meaning, 118))
            entry = f"```yaml\n{shown.name}: {shown.gate}\n```"
            parts.append(f"### {shown.title}\n\n{meaning}\n\n{entry}\n\n```text\n{texts[shown.name]}\n```\n")
    return "\n".join(parts)


def _texts(folder: Path) -> dict[str, str]:
    """What is printed for each gate, by its name."""
    for name in ("handbook", "chunking", "pipeline"):
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    _project(folder / "project")
    found = {}
    for session, (name, environment) in SESSIONS.items():
        here = [shown for group in SHOWN.values() for shown in group if shown.session == session]
        gates = "".join(f"  {shown.name}: {shown.gate}\n" for shown in here)
        (folder / name / FILE).write_text(f"gates:\n{gates}", encoding="utf-8")
        printed = _pytest(folder / name, FILE, **environment)
        failures = re.split(r"^=+ retrieval gates =+$", printed, flags=re.MULTILINE)[0]
        sections = re.split(r"^_{4,} (\S+) _{4,}$", failures, flags=re.MULTILINE)
        failed = dict(zip(sections[1::2], sections[2::2], strict=True))
        for shown in here:
            if shown.name in failed:
                text = _shortened(_failure(failed[shown.name]), shown.queries)
            else:
                text = _summary(_pytest(folder / name, "-v", f"{FILE}::{shown.name}", **environment), printed)
            found[shown.name] = text.replace(f"{folder / name}{os.sep}", "").replace(f"{folder}{os.sep}", "")
    return found


def _project(project: Path) -> None:
    """The handbook's search after its tokenizer was changed, with a reader, judgments, times and grades of a judge."""
    shutil.copytree(ROOT / "examples/handbook/eval", project / "eval")
    shutil.copy(ROOT / "examples/reader/reader.py", project)
    (project / "pytest.ini").write_text(INI, encoding="utf-8")
    (project / "engine.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'examples/handbook')!r})\nfrom search import Searcher\n"
        "def refactored():\n    searcher = Searcher.open(tokenizer='refactored')\n"
        "    return lambda query: searcher.search(query, limit=100)\n",
        encoding="utf-8",
    )
    runs, qrels = project / "runs", "eval/handbook/qrels/test.tsv"
    runs.mkdir()
    command = [sys.executable, "-m", "pytest_retrieval_eval.cli"]
    search = ["run", "--dataset", "eval/handbook", "--factory", "--retriever", "engine:refactored"]
    _run([*command, *search, "-o", "runs/refactored.run.jsonl.gz"], project)
    _run([*command, "judgments", "import", qrels, "--dataset", "eval/handbook", "--name", "author"], project)
    rows = ['{"format": "retrieval-run", "version": 1, "depth": 100}']
    for number in range(1, 224):
        hit, seconds = {"id": "it-vpn-setup", "score": 1}, round(0.0008 + 0.00001 * (number % 50), 5)
        rows.append(json.dumps({"hits": [hit], "query_id": f"q{number:03}", "seconds": seconds}))
    (runs / "slow.run.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (runs / "judge.tsv").write_text(_believer(project / qrels, runs / "refactored.run.jsonl.gz"), encoding="utf-8")


def _believer(qrels: Path, run: Path) -> str:
    """Grades of a judge for the pairs that people judged: what stands among the first ten of a run is relevant."""
    from pytest_retrieval_eval import Qrels, Run

    stored = Run.read(run)
    first = {query: stored.ranking(query).docs[:10] for query in stored.query_ids}
    people = Qrels.read(qrels).to_dict()
    return "".join(
        f"{query} 0 {doc} {int(doc in first[query])}\n" for query, judged in people.items() for doc in judged
    )


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


def _failure(section: str) -> list[str]:
    """The lines of a failed gate's text, without what pytest puts around them."""
    section = re.split(r"^-+ Captured ", section, flags=re.MULTILINE)[0]
    lines = [re.sub(r"^E ( {2})?", "", line).rstrip() for line in section.strip("\n").splitlines()]
    return [re.sub(r"^pytest_retrieval_eval\.errors\.\w+: ", "", line) for line in lines]


def _shortened(lines: list[str], queries: int) -> str:
    """A text with its first notes, causes and queries, and an ellipsis where more of them stood."""
    most = {**MOST, "query": queries}
    kept: list[str] = []
    seen = dict.fromkeys(MOST, 0)
    kind = ""
    for line in lines:
        started = _started(line)
        if started or not line.startswith(" "):
            kind = started
            seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= most.get(kind, len(lines)):
            kept.append(line)
        elif kept[-1] != "…":
            kept.append("…")
    return "\n".join(kept).rstrip()


def _started(line: str) -> str:
    """What a line begins: a note, a cause, a query, or something else (empty)."""
    if line.startswith(("note: ", "to judge: ")):
        return "note"
    if line.startswith("  - "):
        return "cause"
    return "query" if re.match(r"q\d+  |… and", line) else ""


def _summary(verbose: str, printed: str) -> str:
    """The lines of a gate that holds, in the section that a session ends with."""
    section = re.search(r"^=+ retrieval gates =+\n(.*?)^\d+ \w+$", verbose, re.MULTILINE | re.DOTALL)
    if section is None:
        raise LookupError(f"no gate in\n{verbose}\n{printed}")
    return section[1].rstrip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
