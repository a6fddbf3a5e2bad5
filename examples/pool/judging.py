"""A judge for pairs that the handbook's author has not graded; it stands where a language model, or a person, would.

It knows the passages that the author marked as answers: a document that holds one for the query has its grade, every
other document has 0. That is a rule and no judgement: put a model's settings into judge.yaml for one.
"""

from __future__ import annotations

import json
from collections import defaultdict

from retrievers import DATASET

from pytest_retrieval_eval import CallableJudge, Scale


def judge() -> CallableJudge:
    """The judge, with all that can change a grade in its identity."""
    texts = {row["_id"]: row["text"] for row in _rows("queries.jsonl")}
    marked: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in _rows("spans.jsonl"):
        marked[texts[row["query_id"]]].append((row["text"], row["grade"]))

    def grade(query: str, text: str) -> int:
        return max((grade for passage, grade in marked.get(query, []) if passage in text), default=0)

    return CallableJudge(grade, Scale(0, 3), identity="marked passages of the handbook, v1")


def _rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATASET / name).read_text(encoding="utf-8").split("\n") if line.strip()]
