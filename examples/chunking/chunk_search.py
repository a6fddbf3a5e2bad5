"""BM25 over chunks of the handbook, whose hits say which part of which document they are.

python chunk_search.py "lost my laptop on the train"
python chunk_search.py --chunker scraps "lost my laptop on the train"
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HANDBOOK = HERE.parent / "handbook"
if str(HANDBOOK) not in sys.path:
    sys.path.append(str(HANDBOOK))

import bm25s  # noqa: E402
from chunkers import CHUNKERS  # noqa: E402
from search import tokenize_stemmed  # noqa: E402

CORPUS = HANDBOOK / "eval" / "handbook" / "corpus.jsonl"


class ChunkSearcher:
    """Ranks the chunks that a chunker makes of a corpus."""

    def __init__(self, chunker: str = "sections", corpus: Path = CORPUS) -> None:
        self._chunks: list[dict[str, Any]] = []
        texts: list[list[str]] = []
        for line in corpus.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            text = document["text"]
            for number, (start, end) in enumerate(CHUNKERS[chunker](text)):
                # Ids such as chunkers give them: they mean another part of the document after each new chunking.
                chunk_id = f"{document['_id']}#{number}"
                self._chunks.append({"id": chunk_id, "doc_id": document["_id"], "start": start, "end": end})
                texts.append(tokenize_stemmed(f"{document['title']}\n{text[start:end]}"))
        self._vocabulary: dict[str, int] = {}
        for tokens in texts:
            for token in tokens:
                self._vocabulary.setdefault(token, len(self._vocabulary))
        self._index = bm25s.BM25()
        ids = [[self._vocabulary[token] for token in tokens] for tokens in texts]
        self._index.index((ids, self._vocabulary), show_progress=False)

    def search(self, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """Up to `limit` chunks with their scores and places, best first, equal scores by id."""
        known = [token for token in tokenize_stemmed(query) if token in self._vocabulary]
        if not known:
            return []
        scores = self._index.get_scores(known)
        hits = [
            {**chunk, "score": float(score)} for chunk, score in zip(self._chunks, scores, strict=True) if score > 0
        ]
        return sorted(hits, key=lambda hit: (-hit["score"], hit["id"]))[:limit]


def main() -> None:
    """Search from the command line."""
    parser = argparse.ArgumentParser(description="Search chunks of the handbook.")
    parser.add_argument("query")
    parser.add_argument("--chunker", choices=sorted(CHUNKERS), default="sections")
    arguments = parser.parse_args()
    for hit in ChunkSearcher(arguments.chunker).search(arguments.query, limit=10):
        print(f"{hit['score']:7.3f}  {hit['id']}  {hit['start']}-{hit['end']}")


if __name__ == "__main__":
    main()
