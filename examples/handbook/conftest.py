import os

import pytest
from search import Searcher


@pytest.fixture(scope="session")
def retriever():
    searcher = Searcher.open(tokenizer=os.environ.get("HANDBOOK_TOKENIZER", "stemmed"))
    return lambda query: searcher.search(query, limit=100)
