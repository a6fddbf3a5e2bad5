"""A small search engine for the handbook: BM25 (package ``bm25s``) over chunks of the documents.

Every document is cut at its headings and paragraphs into chunks of some hundred characters. A query is
scored against all chunks, and a document counts as much as its best chunk. Nothing is downloaded and
nothing is random: the same corpus and query give the same list.

    python search.py "lost my laptop on the train"
    python search.py --tokenizer refactored "lost my laptop on the train"
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import bm25s
import numpy as np

CORPUS = Path(__file__).parent / "eval" / "handbook" / "corpus.jsonl"
CHUNK_SIZE = 400

Tokenizer = Callable[[str], list[str]]

STOP_WORD_LIST = """
a about all am an and any are as at be been but by can could d did do does don for from get got had
has have he his how i if in into is it its just ll m me my no not of on or our re s she should so
some t than that the their them then there they this to us ve was we were what when where which who
whom why will with would you your
"""
STOP_WORDS = frozenset(STOP_WORD_LIST.split())
WORD = re.compile(r"\w+")
VOWEL = re.compile(r"[aeiouyäöü]")
SUFFIXES = (
    ("ational", "ate"), ("ization", "ize"), ("isation", "ise"), ("fulness", "ful"), ("iveness", "ive"),
    ("ements", ""), ("ement", ""), ("ments", ""), ("ment", ""), ("ations", ""), ("ation", ""),
    ("nesses", ""), ("ness", ""), ("ities", ""), ("ity", ""), ("ingly", ""), ("ings", ""), ("ing", ""),
    ("ions", ""), ("ion", ""), ("ies", "y"), ("ied", "y"), ("edly", ""), ("ed", ""), ("ers", ""), ("er", ""),
    ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ly", ""), ("s", ""), ("e", ""),
)  # fmt: skip


@cache
def stem(word: str) -> str:
    """Strip one English suffix from a lower-case word, so that "encrypted" and "encryption" meet.

    >>> [stem(word) for word in ("encrypted", "encryption", "encrypts", "policies", "pass", "vpn")]
    ['encrypt', 'encrypt', 'encrypt', 'policy', 'pass', 'vpn']
    """
    if word.endswith(("ss", "us", "is")) or not word.isalpha():
        return word
    for suffix, replacement in SUFFIXES:
        rest = word[: len(word) - len(suffix)]
        if word.endswith(suffix) and len(rest) >= 3 and VOWEL.search(rest):
            if not replacement and len(suffix) > 1 and rest[-1] == rest[-2] and rest[-1] not in "aeiouls":
                rest = rest[:-1]
            stemmed = rest + replacement
            return stemmed[:-1] if stemmed.endswith("e") and len(stemmed) > 3 else stemmed
    return word


def tokenize_stemmed(text: str) -> list[str]:
    """Lower-case, take the runs of word characters, drop stop words, stem.

    >>> tokenize_stemmed("Who pays for stolen Laptops?")
    ['pay', 'stolen', 'laptop']
    """
    return [stem(word) for word in WORD.findall(text.lower()) if word not in STOP_WORDS]


def tokenize_refactored(text: str) -> list[str]:
    """Split at white space and drop stop words: no regular expression, no stemmer to maintain.

    >>> tokenize_refactored("Who pays for stolen Laptops?")
    ['Who', 'pays', 'stolen', 'Laptops?']
    """
    return [word for word in text.split() if word not in STOP_WORDS]


TOKENIZERS: dict[str, Tokenizer] = {"stemmed": tokenize_stemmed, "refactored": tokenize_refactored}


def split_chunks(text: str, size: int = CHUNK_SIZE) -> Iterator[str]:
    """Cut a Markdown text before each heading, and where a section is longer than `size`, between paragraphs.

    >>> list(split_chunks("Intro.\\n\\n## One\\n\\nFirst.\\n\\nSecond.", size=20))
    ['Intro.', '## One\\n\\nFirst.', 'Second.']
    """
    for section in re.split(r"\n+(?=## )", text):
        chunk = ""
        for paragraph in section.split("\n\n"):
            if chunk and len(chunk) + 2 + len(paragraph) > size:
                yield chunk
                chunk = paragraph
            else:
                chunk = f"{chunk}\n\n{paragraph}" if chunk else paragraph
        if chunk.strip():
            yield chunk


class Searcher:
    """Ranks the documents of a corpus for a query."""

    def __init__(self, documents: list[dict[str, str]], tokenizer: str = "stemmed") -> None:
        self._tokenize = TOKENIZERS[tokenizer]
        self._ids = [document["_id"] for document in documents]
        chunks: list[list[str]] = []
        owners: list[int] = []
        for number, document in enumerate(documents):
            for chunk in split_chunks(document["text"]):
                chunks.append(self._tokenize(f"{document['title']}\n{chunk}"))
                owners.append(number)
        self._vocabulary: dict[str, int] = {}
        for tokens in chunks:
            for token in tokens:
                self._vocabulary.setdefault(token, len(self._vocabulary))
        self._owners = np.asarray(owners)
        self._index = bm25s.BM25()
        token_ids = [[self._vocabulary[token] for token in tokens] for tokens in chunks]
        self._index.index((token_ids, self._vocabulary), show_progress=False)

    @classmethod
    def open(cls, corpus_path: str | Path = CORPUS, tokenizer: str = "stemmed") -> Searcher:
        """Read a BEIR corpus (one JSON object a line with ``_id``, ``title``, ``text``) and index it."""
        lines = Path(corpus_path).read_text(encoding="utf-8").split("\n")
        return cls([json.loads(line) for line in lines if line.strip()], tokenizer)

    def search(self, query: str, limit: int = 100) -> list[tuple[str, float]]:
        """Return up to `limit` documents with their scores, best first, equal scores by id."""
        known = [token for token in self._tokenize(query) if token in self._vocabulary]
        if not known:
            return []
        best = np.zeros(len(self._ids))
        np.maximum.at(best, self._owners, self._index.get_scores(known))
        hits = [(doc_id, float(score)) for doc_id, score in zip(self._ids, best, strict=True) if score > 0]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]


def main() -> None:
    """Search from the command line."""
    parser = argparse.ArgumentParser(description="Search the handbook.")
    parser.add_argument("query")
    parser.add_argument("--tokenizer", choices=sorted(TOKENIZERS), default="stemmed")
    parser.add_argument("--limit", type=int, default=10)
    arguments = parser.parse_args()
    searcher = Searcher.open(tokenizer=arguments.tokenizer)
    for doc_id, score in searcher.search(arguments.query, arguments.limit):
        print(f"{score:7.3f}  {doc_id}")


if __name__ == "__main__":
    main()
