"""KILT's data sets: questions with answers and the places in Wikipedia that prove them, and pages cut into passages.

Petroni et al., KILT: a Benchmark for Knowledge Intensive Language Tasks, NAACL 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_retrieval_eval.collection.answers import Answers
from pytest_retrieval_eval.collection.formats.files import PathLike, excerpt, json_id, json_lines
from pytest_retrieval_eval.collection.qrels import Qrels, QrelsBuilder
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.errors import DataError

_WORD = re.compile(r"\S+")
_PLACE = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")


@dataclass(frozen=True, slots=True)
class Provenance:
    """A place that proves an answer: a page, and from where to where in it.

    ``start`` and ``end`` are (paragraph, character), the end exclusive; None where only the page is known. A character
    of None is the beginning of the first paragraph, or the end of the last one.
    """

    query_id: str
    page_id: str
    start: tuple[int, int | None] | None = None
    end: tuple[int, int | None] | None = None


@dataclass(frozen=True, slots=True)
class PagePart:
    """A passage of a page: its words, ``start`` and ``end`` as (paragraph, character), the end exclusive."""

    id: str
    page_id: str
    title: str
    text: str
    start: tuple[int, int]
    end: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kilt:
    r"""A KILT data set: queries, their answers (None where no row has one), and provenance.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "nq.jsonl")
    ...     _ = path.write_text('{"id": "q", "input": "where is Graz?", "output": [{"answer": "on the Mur", '
    ...                         '"provenance": [{"wikipedia_id": "7", "start_paragraph_id": 1}]}]}')
    ...     kilt = Kilt.read(path)
    >>> kilt.queries.text("q"), kilt.answers.of_query("q"), kilt.page_qrels().to_dict()
    ('where is Graz?', ('on the Mur',), {'q': {'7': 1.0}})
    >>> page = {"wikipedia_id": "7", "wikipedia_title": "Graz", "text": ["Graz", "Graz lies on the Mur."]}
    >>> kilt.passage_qrels(page_passages(page, words=3)).to_dict()
    {'q': {'7#0': 1.0, '7#1': 1.0}}
    """

    queries: Queries
    answers: Answers | None
    provenance: tuple[Provenance, ...]
    source: str

    @classmethod
    def read(cls, path: PathLike) -> Kilt:
        """KILT's JSON Lines: ``{"id", "input", "output": [{"answer", "provenance": [{"wikipedia_id", …}]}]}``."""
        queries: dict[str, str] = {}
        answers: dict[str, list[str]] = {}
        found: dict[Provenance, None] = {}
        for number, row in json_lines(path):
            where = f"{path}:{number}"
            for key in ("id", "input"):
                if key not in row:
                    raise DataError(f"{where}: the row has no {key!r}; found the keys {excerpt(list(row))}")
            query_id, output = json_id(row["id"], where), row.get("output") or []
            if query_id in queries:
                raise DataError(f"{where}: query {query_id!r} comes a second time; expected each query once")
            if not isinstance(output, list) or not all(isinstance(each, dict) for each in output):
                raise DataError(f"{where}: the output is {excerpt(output)}; expected a list of objects")
            queries[query_id] = str(row["input"])
            answers[query_id] = [each["answer"] for each in output if each.get("answer")]
            for each in output:
                for place in each.get("provenance") or ():
                    found[_provenance(query_id, place, where)] = None
        if not queries:
            raise DataError(f"{path}: the file has no query; expected KILT's JSON Lines")
        known = Answers.of(answers, source=str(path)) if any(answers.values()) else None
        return cls(Queries.of(queries), known, tuple(found), str(path))

    def page_qrels(self) -> Qrels:
        """Every page that proves an answer is relevant (grade 1)."""
        builder = QrelsBuilder(self.source)
        for query_id, page_id in dict.fromkeys((each.query_id, each.page_id) for each in self.provenance):
            builder.add(query_id, page_id, 1.0, self.source)
        return builder.done()

    def passage_qrels(self, parts: Iterable[PagePart]) -> Qrels:
        """Every passage that holds a word of a place that proves an answer is relevant (grade 1).

        A place of which only the page is known, and one that lies in none of the passages, are DataErrors.
        """
        by_page: dict[str, list[PagePart]] = {}
        for part in parts:
            by_page.setdefault(part.page_id, []).append(part)
        builder = QrelsBuilder(self.source)
        told: dict[tuple[str, str], None] = {}
        for place in self.provenance:
            if place.start is None:
                raise DataError(
                    f"{self.source}: query {place.query_id!r}: its provenance names page {place.page_id!r} and no "
                    "paragraph; use the pages (page_qrels)"
                )
            inside = [part.id for part in by_page.get(place.page_id, ()) if _meet(part, place)]
            if not inside:
                raise DataError(
                    f"{self.source}: query {place.query_id!r}: no passage of page {place.page_id!r} holds paragraph "
                    f"{place.start[0]}; expected the passages of every page that is named"
                )
            told.update(dict.fromkeys((place.query_id, part) for part in inside))
        for query_id, part_id in told:
            builder.add(query_id, part_id, 1.0, self.source)
        return builder.done()


def _meet(part: PagePart, place: Provenance) -> bool:
    start, end = place.start, place.end or place.start
    if start is None or end is None:
        return False
    first = (start[0], start[1] or 0)
    behind: tuple[float, float] = (end[0], float("inf") if end[1] is None else end[1])
    return part.start < behind and first < part.end


def _provenance(query_id: str, place: object, where: str) -> Provenance:
    if not isinstance(place, Mapping) or place.get("wikipedia_id") is None:
        raise DataError(f"{where}: the provenance is {excerpt(place)}; expected an object with wikipedia_id")
    page_id = json_id(place["wikipedia_id"], where)
    numbers = [place.get(key) for key in _PLACE]
    for key, number in zip(_PLACE, numbers, strict=True):
        if number is not None and (type(number) is not int or number < 0):
            raise DataError(f"{where}: {key} is {excerpt(number)}; expected an integer of 0 or more")
    first, begin, last, stop = numbers
    if first is None:
        return Provenance(query_id, page_id)
    last = first if last is None else last
    if (last, float("inf") if stop is None else stop) <= (first, begin or 0):
        raise DataError(f"{where}: the provenance ends at {(last, stop)}, before it starts at {(first, begin)}")
    return Provenance(query_id, page_id, (first, begin), (last, stop))


def passages(
    page_id: str, title: str, paragraphs: Sequence[str], *, words: int = 100, prefix_title: bool = True
) -> list[PagePart]:
    """A page cut into passages of so many words (the last one may be shorter), across its paragraphs.

    The ids are ``PAGE#0``, ``PAGE#1``, …; the title stands before the words of each, as in DPR and KILT's index.

    >>> [part.text for part in passages("7", "Graz", ["Graz lies on the", "Mur."], words=3)]
    ['Graz Graz lies on', 'Graz the Mur.']
    """
    if words < 1:
        raise DataError(f"words={words}: a passage has at least one word")
    found = [
        (number, match.start(), match.end(), match[0])
        for number, paragraph in enumerate(paragraphs)
        for match in _WORD.finditer(paragraph)
    ]
    made = []
    for number, first in enumerate(range(0, len(found), words)):
        some = found[first : first + words]
        text = " ".join(word for *_, word in some)
        made.append(
            PagePart(
                f"{page_id}#{number}",
                page_id,
                title,
                f"{title} {text}" if prefix_title and title else text,
                some[0][:2],
                (some[-1][0], some[-1][2]),
            )
        )
    return made


def page_passages(page: Mapping[str, Any], **options: Any) -> list[PagePart]:
    """The passages of a row of KILT's knowledge source: ``{"wikipedia_id", "wikipedia_title", "text": [text, …]}``.

    KILT's first paragraph is the title itself; it keeps its number and gives no words. ``words`` is how many words a
    passage has (100), ``prefix_title`` whether the title stands before them (True). A row of another form is a
    DataError.

    >>> page = {"wikipedia_id": "7", "wikipedia_title": "Graz", "text": ["Graz", "Graz lies on the Mur."]}
    >>> [(part.id, part.text) for part in page_passages(page, words=3)]
    [('7#0', 'Graz Graz lies on'), ('7#1', 'Graz the Mur.')]
    """
    for key, kind in (("wikipedia_id", (str, int)), ("wikipedia_title", str), ("text", list)):
        if not isinstance(page.get(key), kind):
            raise DataError(f"the page has {key} = {excerpt(page.get(key))}; expected a row of KILT's knowledge source")
    title, paragraphs = str(page["wikipedia_title"]), [str(each) for each in page["text"]]
    if paragraphs and paragraphs[0].strip() == title.strip():
        paragraphs[0] = ""
    return passages(json_id(page["wikipedia_id"], "the page"), title, paragraphs, **options)
