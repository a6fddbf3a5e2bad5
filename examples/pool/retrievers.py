"""Retrievers on the handbook, and the run of each: BM25, an embedding model, their fusion, and a fourth.

The run of the embedding model is stored beside this file, so that nobody needs the model; `dense.py` computes it anew.
The fourth came later: BM25 for a query whose abbreviations are spelled out.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "handbook"), str(HERE.parent / "pipeline")]

from access import documents  # noqa: E402
from pipeline import rewrite  # noqa: E402
from search import Searcher  # noqa: E402

from pytest_retrieval_eval import Dataset, Run, fuse  # noqa: E402

DATASET = HERE.parent / "handbook" / "eval" / "handbook"
DEPTH = 20
DENSE = HERE / "dense.run.jsonl.gz"
FIRST = ("bm25", "dense", "hybrid")
FOURTH = "expanded"


def write_runs(folder: Path) -> dict[str, Path]:
    """The run of each retriever, as a file in the folder."""
    queries = Dataset.read(DATASET).queries
    bm25 = Searcher(documents())

    def run(name, search):
        return Run.of({query: search(queries.text(query)) for query in queries}, name=name, depth=DEPTH)

    runs = {
        "bm25": run("bm25", lambda text: bm25.search(text, DEPTH)),
        "dense": Run.read(DENSE),
        FOURTH: run(FOURTH, lambda text: bm25.search(rewrite(text), DEPTH)),
    }
    # Reciprocal rank fusion.
    runs["hybrid"] = fuse([runs["bm25"], runs["dense"]], name="hybrid")
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.run.jsonl.gz" for name in runs}
    for name, path in paths.items():
        runs[name].save(path)
    return paths
