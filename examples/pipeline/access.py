"""Who may read what in the handbook: roles that were invented for this example, from the metadata of the documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_retrieval_eval import Dataset

HANDBOOK = Path(__file__).parent.parent / "handbook" / "eval" / "handbook"
EVERYBODY = "*"


def documents() -> list[dict[str, Any]]:
    """The documents as their file has them."""
    lines = (HANDBOOK / "corpus.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def readers(document: dict[str, Any]) -> list[str]:
    """Finance is for finance and for managers, what concerns one site for that site, all else for everybody."""
    area, site = document["metadata"]["area"], document["metadata"]["site"]
    if area == "finance":
        return ["finance", "manager"]
    return [EVERYBODY] if site == "all" else [site]


def secured() -> Dataset:
    """The handbook with roles. Whoever asks may read what is relevant to the query, and nothing else restricted.

    An employee of one role asks: of a document that several roles may read the first.
    """
    plain = Dataset.read(HANDBOOK)
    corpus = {doc["_id"]: {"title": doc["title"], "text": doc["text"], "roles": readers(doc)} for doc in documents()}
    queries = {}
    for query_id in plain.queries:
        judged = plain.qrels.of_query(query_id) if query_id in plain.qrels.query_ids else {}
        gold = [doc for doc, grade in judged.items() if grade > 0]
        roles = sorted({corpus[doc]["roles"][0] for doc in gold} - {EVERYBODY})
        queries[query_id] = {
            "text": plain.queries.text(query_id),
            "tags": dict(plain.queries.tags(query_id)),
            "unanswerable": query_id in plain.queries.unanswerable,
            "roles": roles,
        }
    return Dataset.of(queries=queries, qrels=plain.qrels, corpus=corpus, name="handbook")
