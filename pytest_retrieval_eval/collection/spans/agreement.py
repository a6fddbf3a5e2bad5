"""Chunks that say both where they stand and what they say: whether the corpus agrees.

Offsets of another text (bytes for characters, a document that was edited since) would have gold spans measured at
wrong characters, and nothing would look wrong.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.collection.spans.locate import Source, plain
from pytest_retrieval_eval.errors import DataError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus, Document
    from pytest_retrieval_eval.collection.runs.hits import Hit

_BETWEEN = ("\n", " ", "\n\n", ". ", ": ", "")  # what stands between a title and its text, in an index


class Part(NamedTuple):
    """A chunk that says which characters of which document it is, and what they are."""

    chunk_id: str
    doc_id: str
    start: int
    end: int
    text: str


def refuse_contradictions(parts: Sequence[Part], corpus: Corpus, where: Callable[[int], str], what: str) -> None:
    """Raise DataError where the text of a part is not what the corpus has at its offsets (see ``Source.holds``).

    ``where`` gives the place of each part by its number, and ``what`` says behind a number of parts of how many of
    which they are. A document that the corpus lacks is passed over.
    """
    documents = corpus.get_many(dict.fromkeys(part.doc_id for part in parts))
    doubted: dict[str, list[int]] = {}
    for number, (_, doc_id, start, end, text) in enumerate(parts):
        document = documents.get(doc_id)
        if document is not None and document.text[start:end] != text:
            doubted.setdefault(doc_id, []).append(number)
    wrong: list[int] = []
    for doc_id, numbers in doubted.items():
        source = Source(documents[doc_id].text)  # one index at a time
        wrong += [n for n in numbers if not source.holds(parts[n].text, parts[n].start, parts[n].end)]
    if not wrong:
        return
    first = min(wrong)
    chunk_id, doc_id, start, end, text = parts[first]
    here = documents[doc_id].text[start:end]
    raise DataError(
        f"{where(first)}: the chunk {excerpt(chunk_id)} is {start}-{end} of {excerpt(doc_id)}, where "
        f"{excerpt(here) if here else 'nothing'} stands, and its text is {excerpt(text)} "
        f"({_cause(documents[doc_id], parts[first])}). {len(wrong)} {what} "
        f"{'contradicts' if len(wrong) == 1 else 'contradict'} the corpus so: gold would be measured at wrong "
        "characters. Offsets count code points of the document's text as the corpus has it, end exclusive: make them "
        "anew, or leave them out, and chunks are found by their texts. Leave a text out that is no copy of the "
        "passage, such as a summary"
    )


def refuse_contradicting_hits(found: Mapping[str, Iterable[Hit]], corpus: Corpus, what: str) -> None:
    """Raise DataError where the text of a hit is not what the corpus has at its offsets; ``found`` is by query."""
    parts: dict[Part, str] = {}
    for query_id, hits in found.items():
        for rank, hit in enumerate(hits, 1):
            if hit.doc_id is None or hit.start is None or hit.end is None or hit.text is None:
                continue
            parts.setdefault(Part(hit.id, hit.doc_id, hit.start, hit.end, hit.text), f"query {query_id!r}, hit {rank}")
    if parts:
        refuse_contradictions([*parts], corpus, [*parts.values()].__getitem__, f"of {len(parts)} {what}")


def _cause(document: Document, part: Part) -> str:
    """What the offsets may count, or where the text stands."""
    wanted, here = plain(part.text).text, plain(document.text[part.start : part.end]).text
    for words, said in _readings(document, part.start, part.end):
        found = plain(said).text
        if found != here and (found == wanted or (2 * len(found) >= len(wanted) and found in wanted)):
            return f"it stands there if offsets count {words}"
    place = Source(document.text).find(part.text)
    if place.found:
        return f"it stands at {place.start}-{place.end}: was the document edited since?"
    if place.status == "ambiguous":
        return f"it stands in {place.times} other places"
    return "it stands nowhere in this document: was that edited since, or is it another one?"


def _readings(document: Document, start: int, end: int) -> Iterator[tuple[str, str]]:
    """What stands at offsets that do not count the characters of the text."""
    text = document.text
    yield "bytes of UTF-8", text.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "ignore")
    units = text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end]
    yield "UTF-16 code units", units.decode("utf-16-le", "ignore")
    yield "from 1", text[max(start - 1, 0) : max(end - 1, 0)]
    if document.title:
        for between in _BETWEEN:
            yield "from the beginning of the title", f"{document.title}{between}{text}"[start:end]
    yield "a line end of two characters as one", text.replace("\r\n", "\n")[start:end]
    yield "a line end as two characters", text.replace("\n", "\r\n")[start:end]
    yield "the text without repeated white space", " ".join(text.split())[start:end]
    for form in ("NFC", "NFD", "NFKC"):
        yield f"the text in Unicode form {form}", unicodedata.normalize(form, text)[start:end]
