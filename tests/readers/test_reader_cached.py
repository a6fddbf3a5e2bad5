"""A reader of a model behind the cache: no call on a repeat, and a reading is kept under what it was made with."""

from __future__ import annotations

import copy

import pytest
from reader_models import items, t5, texts, tokenizer

from pytest_retrieval_eval.readers.models.fid import FidReader
from pytest_retrieval_eval.readers.models.plan import Shapes
from pytest_retrieval_eval.readers.models.transformers_reader import Seq2seqReader
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.readings.store import ReadingCache

pytestmark = pytest.mark.model


@pytest.mark.parametrize("cls", [Seq2seqReader, FidReader])
def test_what_was_read_with_fewer_rows_is_kept_as_what_a_reader_with_fewer_rows_reads(cls, tmp_path):
    torch = pytest.importorskip("torch")
    asked = items(12, documents=2, most=20)
    small = copy.deepcopy(t5())
    generate = small.generate

    def limited(**inputs):
        if len(inputs["attention_mask"]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(**inputs)

    small.generate = limited

    def reader(rows, model=small):
        return cls(model, tokenizer=tokenizer(), max_new_tokens=6, shapes=Shapes(rows=rows))

    with ReadingCache(tmp_path) as cache:
        first = CachedReader(reader(8), cache)
        found = texts(first, asked)
        assert (first.counters.hits, first.counters.misses) == (0, 12)
        told = CachedReader(reader(2), cache)
        assert texts(told, asked) == found
        assert (told.counters.hits, told.counters.calls) == (12, 0)
        # no reading with two rows stands under the name of a reader with eight
        roomy = CachedReader(reader(8, t5()), cache)
        assert texts(roomy, asked) == texts(reader(8, t5()), asked)
        assert roomy.counters.hits == 0
