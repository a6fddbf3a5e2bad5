"""A small pipeline over the handbook: rewrite → BM25 and LSA → fusion → role filter → reranker.

Every stage is a real one and none needs a download. The second retriever stands where an embedding model would: latent
semantic analysis of character n-grams (TF-IDF and a singular value decomposition in numpy), which finds words by their
parts and is no neural model. Each stage leaves a run behind, so that gates can look at it.

The environment variable PIPELINE_FAULT breaks one stage on purpose: ``fusion``, ``filter``, ``leak`` or ``reranker``.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from access import EVERYBODY, documents

from pytest_retrieval_eval import Dataset, Run, fuse

sys.path.append(str(Path(__file__).parent.parent / "handbook"))
from search import Searcher, split_chunks, tokenize_stemmed

FAULTS = ("fusion", "filter", "leak", "reranker")
DEPTH, RERANKED = 50, 20

ABBREVIATIONS = {
    "vpn": "remote access",
    "mfa": "second factor hardware key",
    "pto": "vacation",
    "wfh": "remote work from home",
    "po": "purchase order",
    "nda": "confidentiality agreement",
    "wifi": "wireless network",
    "sso": "single sign-on",
}


def rewrite(query: str) -> str:
    """The query with what its abbreviations mean.

    >>> rewrite("VPN from the train")
    'VPN from the train remote access'
    """
    words = re.findall(r"\w+", query.lower())
    return " ".join([query, *(ABBREVIATIONS[word] for word in words if word in ABBREVIATIONS)])


class Lsa:
    """Latent semantic analysis: documents and queries as sums of character n-grams, in few dimensions."""

    def __init__(self, texts: Mapping[str, str], dimensions: int = 80) -> None:
        self._ids = list(texts)
        counts = [Counter(_grams(text)) for text in texts.values()]
        self._column: dict[str, int] = {}
        for count in counts:
            for gram in count:
                self._column.setdefault(gram, len(self._column))
        matrix = np.zeros((len(texts), len(self._column)))
        for row, count in enumerate(counts):
            for gram, times in count.items():
                matrix[row, self._column[gram]] = 1.0 + math.log(times)
        self._idf = np.log(len(texts) / (matrix > 0).sum(axis=0)) + 1.0
        matrix *= self._idf
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        keep = min(dimensions, len(values))
        self._axes = right[:keep].T
        self._documents = _unit(left[:, :keep] * values[:keep])

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """The documents nearest to the query."""
        vector = np.zeros(len(self._column))
        for gram, times in Counter(_grams(query)).items():
            if gram in self._column:
                vector[self._column[gram]] = (1.0 + math.log(times)) * self._idf[self._column[gram]]
        near = self._documents @ _unit((vector @ self._axes)[None])[0]
        order = sorted(range(len(self._ids)), key=lambda row: (-near[row], self._ids[row]))
        return [(self._ids[row], float(near[row])) for row in order[:limit]]


def _grams(text: str) -> list[str]:
    """Character n-grams of the stemmed words, within their borders."""
    return [
        f" {word} "[start : start + size]
        for word in tokenize_stemmed(text)
        for size in (3, 4, 5)
        for start in range(max(len(word) + 3 - size, 1))
    ]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


class Reranker:
    """Orders documents by how much of the query their title and their best passage hold, rare words first."""

    def __init__(self, titles: Mapping[str, str], texts: Mapping[str, str]) -> None:
        self._titles = {doc: frozenset(tokenize_stemmed(title)) for doc, title in titles.items()}
        self._passages = {
            doc: [frozenset(tokenize_stemmed(chunk)) for chunk in split_chunks(text)] for doc, text in texts.items()
        }
        holding = Counter(word for doc in texts for word in frozenset().union(*self._passages[doc]) | self._titles[doc])
        self._weight = {word: math.log(1 + len(texts) / n) for word, n in holding.items()}

    def score(self, words: frozenset[str], doc: str) -> float:
        """The share of the query's weight that the best passage holds, and half of that of the title."""
        total = sum(self._weight.get(word, 0.0) for word in words) or 1.0
        passage = max((self._held(words & passage) for passage in self._passages[doc]), default=0.0)
        return (passage + 0.5 * self._held(words & self._titles[doc])) / total

    def _held(self, words: frozenset[str]) -> float:
        return sum(self._weight.get(word, 0.0) for word in words)


def run_pipeline(dataset: Dataset) -> dict[str, Run]:
    """The run that each stage leaves behind, in pipeline order."""
    fault = os.environ.get("PIPELINE_FAULT", "")
    if fault and fault not in FAULTS:
        raise ValueError(f"PIPELINE_FAULT={fault}: expected one of {', '.join(FAULTS)}")
    queries = dataset.queries
    rows = documents()
    texts = {row["_id"]: f"{row['title']}\n{row['text']}" for row in rows}
    bm25, lsa = Searcher(rows), Lsa(texts)
    asked = {query_id: rewrite(queries.text(query_id)) for query_id in queries}
    found = {
        "bm25": Run.of({q: bm25.search(text, limit=DEPTH) for q, text in asked.items()}, name="bm25", depth=DEPTH),
        "lsa": Run.of({q: lsa.search(text, DEPTH) for q, text in asked.items()}, name="lsa", depth=DEPTH),
    }
    found["fused"] = fuse([found["bm25"], found["bm25"] if fault == "fusion" else found["lsa"]])
    corpus = dataset.corpus.get_many(texts)
    allowed = {
        query_id: [doc for doc in docs if _may_read(queries.roles(query_id), corpus[doc].roles, fault)]
        for query_id, docs in ((q, found["fused"].ranking(q).docs) for q in queries)
    }
    found["filtered"] = Run.of(allowed, name="filtered", depth=DEPTH)
    reranker = Reranker({row["_id"]: row["title"] for row in rows}, texts)
    reranked = {
        query_id: [*_reranked(reranker, asked[query_id], docs[:RERANKED], fault), *docs[RERANKED:]]
        for query_id, docs in allowed.items()
    }
    found["reranked"] = Run.of(reranked, name="reranked", depth=DEPTH)
    return found


def _reranked(reranker: Reranker, query: str, docs: list[str], fault: str) -> list[str]:
    """By what the passages say, and where the stages before had put the documents."""
    words = frozenset(tokenize_stemmed(query))
    scores = {doc: reranker.score(words, doc) + 10.0 / (10 + place) for place, doc in enumerate(docs)}
    return sorted(docs, key=lambda doc: scores[doc], reverse=fault != "reranker")


def _may_read(asker: tuple[str, ...], readers: tuple[str, ...], fault: str) -> bool:
    if fault == "filter":  # every role of the document is asked for, and not any of them
        return set(readers) <= {*asker, EVERYBODY}
    if fault == "leak" and "finance" in readers:  # the tag was renamed when finance moved
        return True
    return EVERYBODY in readers or bool(set(asker) & set(readers))
