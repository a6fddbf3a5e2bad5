import os

import pytest
from chunk_search import ChunkSearcher


@pytest.fixture(scope="session")
def retriever():
    searcher = ChunkSearcher(os.environ.get("CHUNKER", "sections"))
    return lambda query: searcher.search(query, limit=20)
