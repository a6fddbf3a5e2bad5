"""Chunks that say where they stand and what they say: a corpus that has another text there is an error."""

from __future__ import annotations

import json
import unicodedata

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval import Chunk, Chunks, Corpus, DataError, Dataset, Run, Traces, evaluate, spans_to_qrels
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.runs.retrieve import from_retriever
from pytest_retrieval_eval.collection.spans.extents import extents, with_offsets
from pytest_retrieval_eval.collection.spans.spans import Spans

LINES = [f"Rückgabe {n}: Für Größe {n} zahlen wir den Preis {n} binnen {n + 9} Tagen zurück 🙂." for n in range(40)]
TEXT = "\r\n".join(LINES)
PLAIN = "".join(f"Rule {n} of the house: whoever comes {n} minutes late pays {n + 3} coins.  " for n in range(60))
TITLE = "House rules"


def chunk(text: str, start: int, end: int, *, says: str | None = None, shift: int = 0) -> Chunk:
    """The chunk of these characters; it may say another text, or be said to stand elsewhere."""
    return Chunk("d", start + shift, end + shift, text[start:end] if says is None else says)


def found(table: dict[str, Chunk], text: str = TEXT, title: str = "") -> None:
    """Ask where the chunks of a table stand, all of which a run returns."""
    corpus = Corpus.of({"d": {"title": title, "text": text}})
    extents(Run.of({"q": [*table]}, name="main"), Chunks.of(table), corpus=corpus)


def pieces(text: str) -> list[tuple[int, int]]:
    return [(start, start + 150) for start in range(400, 1900, 150)]


def test_the_place_the_texts_and_how_many_are_named(tmp_path):
    parts = pieces(TEXT)
    rows = [
        {"chunk_id": f"d#{n}", "doc_id": "d", "start": start + 30 * (n > 3), "end": end + 30 * (n > 3), "text": t}
        for n, (start, end) in enumerate(parts)
        for t in [TEXT[start:end]]
    ]
    path = tmp_path / "chunks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = Run.of({"q": [f"d#{n}" for n in range(8)]}, name="main")
    with pytest.raises(DataError) as caught:
        extents(run, Chunks.read(path), corpus=Corpus.of({"d": TEXT}))
    said = str(caught.value)
    start, end = parts[4]
    assert said.startswith(f"{path}:5: the chunk 'd#4' is {start + 30}-{end + 30} of 'd', where '")
    assert repr(TEXT[start + 30 : start + 50])[1:-1] in said
    assert f"its text is '{TEXT[start : start + 20]}" in said.replace("\\r\\n", "\r\n")
    assert f"(it stands at {start}-{end}: was the document edited since?)" in said
    assert "4 of 8 chunks that run main returns contradict the corpus" in said


READINGS = {
    "bytes of UTF-8": lambda text, start, end: (len(text[:start].encode()), len(text[:end].encode())),
    "UTF-16 code units": lambda text, start, end: (
        len(text[:start].encode("utf-16-le")) // 2,
        len(text[:end].encode("utf-16-le")) // 2,
    ),
    "a line end of two characters as one": lambda text, start, end: (
        len(text[:start].replace("\r\n", "\n")),
        len(text[:end].replace("\r\n", "\n")),
    ),
    "the text in Unicode form NFD": lambda text, start, end: (
        len(unicodedata.normalize("NFD", text[:start])),
        len(unicodedata.normalize("NFD", text[:end])),
    ),
    "from the beginning of the title": lambda text, start, end: (len(TITLE) + 1 + start, len(TITLE) + 1 + end),
    "from 1": lambda text, start, end: (start + 1, end + 1),
}


@pytest.mark.parametrize("cause", READINGS)
def test_what_offsets_count_is_named_where_that_explains_them(cause):
    table = {
        f"d#{n}": Chunk("d", *READINGS[cause](TEXT, *part), TEXT[slice(*part)]) for n, part in enumerate(pieces(TEXT))
    }
    with pytest.raises(DataError, match=rf"\(it stands there if offsets count {cause}\)"):
        found(table, title=TITLE)


def test_a_text_of_another_document_stands_nowhere():
    with pytest.raises(DataError, match=r"\(it stands nowhere in this document: was that edited since, or"):
        found({"d#0": chunk(TEXT, 400, 550, says=PLAIN[400:550])})


def test_tokens_are_no_characters():
    table = {
        f"d#{n}": Chunk("d", start // 4, end // 4, PLAIN[start:end]) for n, (start, end) in enumerate(pieces(PLAIN))
    }
    with pytest.raises(DataError, match="10 of 10 chunks"):
        found(table, PLAIN)


HEAD = "House > Rules > Coming late\n"
AGREEING = {
    "as it is": lambda text, s, e: chunk(text, s, e),
    "no text": lambda text, s, e: Chunk("d", s, e),
    "an empty text": lambda text, s, e: chunk(text, s, e, says=""),
    "white space": lambda text, s, e: chunk(text, s, e, says=" ".join(text[s:e].split())),
    "composed": lambda text, s, e: chunk(text, s, e, says=unicodedata.normalize("NFD", text[s:e])),
    "a header": lambda text, s, e: chunk(text, s, e, says=HEAD + text[s:e]),
    "a header before little": lambda text, s, e: chunk(text, s, s + 12, says=HEAD + text[s : s + 12]),
    "a footer": lambda text, s, e: chunk(text, s, e, says=f"{text[s:e]}\n(page 3 of 7)"),
    "marks of overlap": lambda text, s, e: chunk(text, s, e, says=f"[…] {text[s - 40 : e + 40]} […]"),
    "overlap": lambda text, s, e: chunk(text, s, e, says=text[s - 100 : e + 100]),
    "a window around a sentence": lambda text, s, e: chunk(text, s + 60, s + 90, says=text[s:e]),
    "a beginning": lambda text, s, e: chunk(text, s, e, says=text[s : s + 60] + "…"),
    "the whole document": lambda text, s, e: Chunk("d", 0, len(text), text[s:e]),
    "a header that the end was counted with": lambda text, s, e: chunk(text, s, e + len(HEAD), says=HEAD + text[s:e]),
    "lower case without signs": lambda text, s, e: chunk(
        text, s, e, says="".join(c for c in text[s:e].lower() if c.isalnum() or c.isspace())
    ),
}


@pytest.mark.parametrize("text", [TEXT, PLAIN], ids=["unicode", "ascii"])
@pytest.mark.parametrize("form", AGREEING)
def test_what_chunkers_do_to_a_text_is_no_contradiction(form, text):
    found({f"d#{n}": AGREEING[form](text, *part) for n, part in enumerate(pieces(text))}, text)


@pytest.mark.parametrize("form", ["a header", "as it is", "a footer", "white space"])
def test_what_chunkers_do_hides_no_offsets_of_another_text(form):
    moved = {}
    for n, part in enumerate(pieces(PLAIN)):
        said = AGREEING[form](PLAIN, *part)
        moved[f"d#{n}"] = Chunk("d", said.start + 40, said.end + 40, said.text)
    with pytest.raises(DataError, match="10 of 10 chunks"):
        found(moved, PLAIN)


# --- where it is looked at -------------------------------------------------------------------------

GOLD = [(f"q{n}", start, end) for n, (start, end) in enumerate(pieces(PLAIN))]
WRONG = {f"d#{n}": chunk(PLAIN, start, end, shift=75 * (n == 7)) for n, (_, start, end) in enumerate(GOLD)}


def collection(**more) -> Dataset:
    return Dataset.of(
        queries={query: f"question {query}" for query, _, _ in GOLD},
        spans={query: [("d", start, end)] for query, start, end in GOLD},
        corpus={"d": PLAIN, "other": "Nothing."},
        name="house",
        **more,
    )


def returning(*numbers: int) -> Run:
    return Run.of({query: [f"d#{n}" for n in numbers] for query, _, _ in GOLD}, name="main", depth=10)


@pytest.mark.parametrize("gate", ["span_recall@5 >= 0", "span_precision@5 >= 0"])
def test_a_gate_errs_on_chunks_that_the_run_returns_and_on_no_others(gate):
    dataset = collection(chunks=WRONG)
    assert MemoryBench(dataset, returning(0, 1, 2)).decide(gate).ok
    with pytest.raises(DataError, match=r"chunks: the chunk 'd#7' is .* 1 of 3 chunks that run main returns"):
        MemoryBench(dataset, returning(0, 1, 7)).decide(gate)


def test_documents_of_chunks_that_are_not_returned_are_not_read(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"_id": "d", "text": PLAIN}, {"_id": "late", "text": 3}]  # reading on would be an error
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = Chunks.of(WRONG | {"late#0": Chunk("late", 0, 3, "abc")})
    extents(returning(0), table, corpus=Corpus.read(path))
    with pytest.raises(DataError, match="expected strings"):
        extents(Run.of({"q": ["late#0"]}), table, corpus=Corpus.read(path))


def test_labels_of_spans_err_too():
    dataset = collection(chunks=WRONG)
    with pytest.raises(DataError, match="1 of 10 chunks that are parts of documents with gold contradicts"):
        MemoryBench(dataset, returning(0, 1, 2)).decide("recall@5 >= 0", labels="spans")
    with pytest.raises(DataError, match="'d#7'"):
        spans_to_qrels(Spans.of({"q": [("d", 400, 550)]}), dataset.chunks)


def test_offsets_that_the_table_gave_a_stored_run_are_looked_at():
    hits = {query: [Hit("d#7", doc_id="d", start=WRONG["d#7"].start, end=WRONG["d#7"].end)] for query, _, _ in GOLD}
    with pytest.raises(DataError, match="'d#7'"):
        MemoryBench(collection(chunks=WRONG), Run.of(hits)).decide("span_recall@5 >= 0")
    moved = {query: [Hit("d#7", doc_id="d", start=1000, end=1150)] for query, _, _ in GOLD}  # of another table
    assert MemoryBench(collection(chunks=WRONG), Run.of(moved)).decide("span_recall@5 >= 0").ok
    with pytest.raises(DataError, match="'d#7'"):
        with_offsets(returning(7), collection(chunks=WRONG).chunks)


def test_chunks_that_were_found_by_their_text_are_not_looked_at_again():
    table = {"d#0": Chunk("d", text=HEAD + PLAIN[400:550]), "d#1": WRONG["d#1"]}
    placed, _ = Chunks.of(table).located(Corpus.of({"d": PLAIN}))
    found = extents(Run.of({"q": ["d#0", "d#1"]}), placed.within(Corpus.of({"d": "another text"})), query_ids=["x"])
    assert found.start.tolist() == [-1, -1]
    with pytest.raises(DataError, match="'d#1'"):
        extents(Run.of({"q": ["d#0", "d#1"]}), placed.within(Corpus.of({"d": "another text"})))


def test_hits_that_say_both_err_when_they_are_retrieved():
    def search(text):
        start, end = GOLD[int(text[-1])][1:]
        return [{"id": "x", "doc_id": "d", "start": start + 75, "end": end + 75, "text": PLAIN[start:end]}]

    dataset = collection()
    with pytest.raises(DataError, match=r"query 'q0', hit 1: the chunk 'x' .* 10 of 10 hits that say"):
        from_retriever(search, dataset.queries, corpus=dataset.corpus, progress=False)


def test_hits_of_traces_that_say_both_err_when_they_are_measured():
    calls = {
        query: [[{"id": f"{query}x", "doc_id": "d", "start": start + 75, "end": end + 75, "text": PLAIN[start:end]}]]
        for query, start, end in GOLD
    }
    run, dataset = Traces.of(calls).run(), collection()
    with pytest.raises(DataError, match=r"query 'q0', hit 1: .* 10 of 10 hits of the traces of run traces contradict"):
        MemoryBench(dataset, run).decide("span_recall@5 >= 0")
    with pytest.raises(DataError, match="traces of run traces"):
        evaluate(None, run, "span_recall@5", spans=dataset.spans, corpus=dataset.corpus)
