"""Retrievers on the handbook, and the run of each: BM25, latent semantic analysis, their fusion, and a fourth.

The second stands where an embedding model would. It is the latent semantic analysis of the example of a pipeline, in
numpy: it finds words by their parts, and is no neural model. The fourth came later: BM25 for a query whose
abbreviations are spelled out.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "handbook"), str(HERE.parent / "pipeline")]

from access import documents  # noqa: E402
from pipeline import Lsa, rewrite  # noqa: E402
from search import Searcher  # noqa: E402

from pytest_retrieval_eval import Dataset, Run, fuse  # noqa: E402

DATASET = HERE.parent / "handbook" / "eval" / "handbook"
DEPTH = 20
FIRST = ("bm25", "lsa", "hybrid")
FOURTH = "expanded"


def write_runs(folder: Path) -> dict[str, Path]:
    """The run of each retriever, as a file in the folder."""
    queries = Dataset.read(DATASET).queries
    rows = documents()
    bm25, lsa = Searcher(rows), Lsa({row["_id"]: f"{row['title']}\n{row['text']}" for row in rows})

    def run(name, search):
        return Run.of({query: search(queries.text(query)) for query in queries}, name=name, depth=DEPTH)

    runs = {
        "bm25": run("bm25", lambda text: bm25.search(text, DEPTH)),
        "lsa": run("lsa", lambda text: lsa.search(text, DEPTH)),
        FOURTH: run(FOURTH, lambda text: bm25.search(rewrite(text), DEPTH)),
    }
    # Reciprocal rank fusion.
    runs["hybrid"] = fuse([runs["bm25"], runs["lsa"]], name="hybrid")
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.run.jsonl.gz" for name in runs}
    for name, path in paths.items():
        runs[name].save(path)
    return paths
