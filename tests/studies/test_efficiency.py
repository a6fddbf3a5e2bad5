"""What reading costs at each level: rows that did the work, of the items that they say."""

from __future__ import annotations

import json
import sys

import pytest

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.readers.callable_reader import CallableReader
from pytest_retrieval_eval.readers.reading import Reading
from pytest_retrieval_eval.readers.readings.cache import CachedReader
from pytest_retrieval_eval.readers.readings.store import ReadingCache
from pytest_retrieval_eval.reports.studies import efficiency_text
from pytest_retrieval_eval.studies.efficiency import efficiency

QUERIES = {f"q{n}": f"w{n} w1" for n in range(4)}


def dataset():
    corpus = {f"d{n}": " ".join(f"w{(n * 7 + place) % 100}" for place in range(6 + n % 3)) for n in range(8)}
    return Dataset.of(queries=QUERIES, corpus=corpus, answers=dict.fromkeys(QUERIES, "w1"), name="words")


def run():
    return Run.of({"q0": ["d0", "d1"], "q1": ["d2", "d3"], "q2": ["d4"], "q3": ["d6", "d7"]}, name="bm25")


class Counts:
    """Counts what it reads; the tokens of a reading are its documents."""

    def __init__(self, fails=False):
        self.identity, self.fails, self.items = {"kind": "counts"}, fails, []

    def read(self, items):
        for index, item in enumerate(items):
            self.items.append(item)
            if self.fails:
                yield index, Reading("", "error", None, None, detail="no model")
            else:
                yield index, Reading("w1", "ok", len(item.documents), 1)

    def close(self):
        pass


def test_each_level_reads_what_it_says_every_time():
    reader = Counts()
    made = efficiency(dataset(), run(), {"counts": reader}, k=2, repeat=2)
    assert [(row.level, row.queries, row.items, row.input_tokens, row.cache_hits) for row in made.rows] == [
        ("document", 3, 6, 2.0, 0),
        ("end to end", 3, 3, 2.0, 0),
        ("closed book", 3, 3, 0.0, 0),
    ]
    assert len(reader.items) == 2 * (6 + 3 + 3) + 3  # and one of each row ahead, to load what there is to load
    assert all(row.batch_size is None and not row.matched and row.seconds > 0 for row in made.rows)
    assert made.notes[0] == "only 3 queries have 2 documents"
    if sys.platform == "linux":
        assert all(row.memory is not None and row.memory < 1 << 30 for row in made.rows)
    document = json.loads(json.dumps(made.to_dict()))
    assert [row["level"] for row in document["rows"]] == ["document", "end to end", "closed book"]
    assert "cache hits" in efficiency_text(made)


def test_memory_is_that_of_the_row():
    if sys.platform != "linux":
        pytest.skip("the peak of a process can be set back on Linux only")
    # By call: one ahead, then the level's three. So large that it is not taken from what the process freed before.
    held = iter([1 << 27, 0, 0, 1 << 26, 0, 0, 0, 0])
    rows = []

    def answer(query, texts):
        rows.append(len(bytearray(next(held, 0))))
        return "w1"

    made = efficiency(dataset(), run(), {"reader": CallableReader(answer)}, k=2)
    first, *others = (row.memory for row in made.rows)
    assert (1 << 25) < first < (1 << 27)  # the fourth call, and not the one ahead of the timing
    assert all(other < 1 << 25 for other in others)


def test_what_cannot_be_timed_is_said(tmp_path):
    with pytest.raises(GateError, match=r"gave no answer.*no model"):
        efficiency(dataset(), run(), {"counts": Counts(fails=True)}, k=2)
    with pytest.raises(GateError, match="no list of the run bm25 has 3 documents"):
        efficiency(dataset(), run(), {"counts": Counts()}, k=3)
    with pytest.raises(SettingsError, match="repeat is 0"):
        efficiency(dataset(), run(), {"counts": Counts()}, repeat=0)
    with pytest.raises(SettingsError, match="no reader is given"):
        efficiency(dataset(), run(), {})
    with ReadingCache(tmp_path) as cache, pytest.raises(SettingsError, match="a cache in front of it"):
        efficiency(dataset(), run(), {"kept": CachedReader(Counts(), cache)}, k=2)


@pytest.mark.model
def test_a_model_of_this_process_is_timed_in_matched_batches(tmp_path):
    models = pytest.importorskip("reader_models")
    models.t5().save_pretrained(tmp_path)
    models.tokenizer().save_pretrained(tmp_path)
    settings = {"model": str(tmp_path), "max_new_tokens": 4, "device": "cpu"}
    prompt = efficiency(dataset(), run(), {"prompt": {"kind": "transformers", **settings}}, k=2)
    made = efficiency(dataset(), run(), {"fid": {"kind": "fid", **settings}}, k=2, batch_sizes=[3])
    assert [(row.reader, row.level, row.batch_size, row.matched, row.items) for row in (*prompt.rows, *made.rows)] == [
        ("prompt", "document", 1, False, 6),
        ("prompt", "query", 2, True, 6),
        ("prompt", "concatenation", 1, False, 3),
        ("prompt", "closed book", 1, False, 3),
        ("fid", "document", 1, False, 6),
        ("fid", "query", 2, True, 6),
        ("fid", "fusion", 2, True, 3),
        ("fid", "closed book", 1, False, 3),
        ("fid", "document", 3, False, 6),
        ("fid", "fusion", 3, False, 3),
        ("fid", "closed book", 3, False, 3),
    ]
    rows = {(row.reader, row.level, row.batch_size): row for row in (*prompt.rows, *made.rows)}
    assert rows["fid", "fusion", 2].input_tokens == rows["fid", "document", 1].input_tokens  # the same passages
    assert rows["prompt", "query", 2].input_tokens == rows["prompt", "document", 1].input_tokens
    assert rows["prompt", "concatenation", 1].input_tokens < rows["prompt", "document", 1].input_tokens  # one question
    assert all(row.cache_hits == 0 and row.truncated == 0 for row in rows.values())
    text = efficiency_text(made)
    assert "*: the 2 documents of a query in one batch" in text
    assert text.count(" * ") == 2
