"""Gold spans read from rows, and written."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.collection.formats.files import (
    JsonIds,
    PathLike,
    bare_suffixes,
    excerpt,
    json_document,
    json_number,
    read_bytes,
)
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.formats.rows import is_table, offset, rows_of, value_of, write_rows
from pytest_retrieval_eval.collection.spans.locate import plain
from pytest_retrieval_eval.collection.spans.spans import Span, Spans
from pytest_retrieval_eval.errors import DataError

QUERY_KEYS = ("query_id", "query-id", "qid")
DOC_KEYS = ("doc_id", "corpus-id", "corpus_id", "docid", "document_id")
_KEYS = ("query_id", "doc_id", "start", "end", "text", "hash", "grade", "group")
_PARAGRAPH_IDS = ("document_id", "doc_id", "id")
_HASH = re.compile(r"(sha256:)?[0-9a-f]{64}")


def text_hash(text: str) -> str:
    """``sha256:<hex>`` of a passage, as the ``hash`` of a span has it."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_spans(path: PathLike, normalize_ids: bool) -> Spans:
    """See Spans.read."""
    builder = SpansBuilder(str(path), normalize_ids)
    if bare_suffixes(path)[-1:] == [".json"] or _is_squad(path):
        for where, row in _squad_rows(json_document(path), str(path)):
            builder.add_row(row, where)
        return builder.done()
    table = is_table(path)
    for place, row in rows_of(path):
        where = place if isinstance(place, str) else f"{path}:{place}"
        answers = row.get("answers")
        if isinstance(answers, Mapping) and "answer_start" in answers:
            for span in _flat_squad_row(row, where):
                builder.add_row(span, where, place)
        else:
            builder.add_row(row, where, place, of_text=table)
    return builder.done()


def spans_of(spans: Mapping[Any, Iterable[Any]] | Iterable[Any], source: str) -> Spans:
    """See Spans.of."""
    builder = SpansBuilder(source)
    if isinstance(spans, Mapping):
        for query_id, those in spans.items():
            if isinstance(those, (str, Mapping)) or not isinstance(those, Iterable):
                raise DataError(
                    f"{source}: query {excerpt(query_id)}: the spans are {excerpt(those)}; expected a list of "
                    "(document, start, end), mappings or Span"
                )
            for number, item in enumerate(those, 1):
                where = f"query {excerpt(query_id)}, span {number}"
                row = _row(item, where)
                if row.setdefault("query_id", query_id) != query_id:
                    raise DataError(f"{where}: the span itself says query {excerpt(row['query_id'])}")
                builder.add_row(row, where)
        return builder.done()
    if isinstance(spans, (str, bytes)) or not isinstance(spans, Iterable):
        raise DataError(f"{source} are {excerpt(spans)}; expected a mapping from query to spans, or a list of Span")
    counts: dict[Any, int] = {}
    for item in spans:
        row = _row(item, "a span")
        query_id = value_of(row, QUERY_KEYS, f"span {sum(counts.values()) + 1}", "span", _KEYS)
        known = query_id if isinstance(query_id, (str, int)) else excerpt(query_id)
        counts[known] = counts.get(known, 0) + 1
        builder.add_row(row, f"query {excerpt(query_id)}, span {counts[known]}")
    return builder.done()


def _row(item: Any, where: str) -> dict[str, Any]:
    if isinstance(item, Span):
        return {key: value for key in _KEYS if (value := getattr(item, key)) is not None}
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, (tuple, list)) and len(item) == 3:
        return dict(zip(("doc_id", "start", "end"), item, strict=True))
    raise DataError(f"{where}: {excerpt(item)} is no span; expected (document, start, end), a mapping or a Span")


class SpansBuilder:
    """Collects spans that each know where they stand, and refuses what cannot be gold."""

    def __init__(self, source: str, normalize_ids: bool = False) -> None:
        self.source = source
        self._query_text, self._doc_text = JsonIds(normalize_ids), JsonIds(normalize_ids)
        self._queries: dict[str, int] = {}
        self._docs: dict[str, int] = {}
        self._group_names: dict[str, JsonIds] = {}  # of each query
        self._groups: dict[tuple[str, str], int] = {}
        self._rows: list[tuple[int, int, int, int, float, int]] = []
        self._texts: list[str | None] = []
        self._hashes: list[str | None] = []
        self._names: list[str | int | None] = []
        self._places: list[str | int] = []
        self._seen: dict[tuple[object, ...], int] = {}
        self._at: dict[tuple[str, str, int, int], int] = {}
        self._repeats: list[str] = []
        self._misfits: list[str] = []

    def add_row(
        self, row: Mapping[str, Any], where: str, place: str | int | None = None, *, of_text: bool = False
    ) -> None:
        """One span; ``place`` is what is kept of ``where``, and ``of_text`` says that numbers come as text."""
        query = self._query_text(value_of(row, QUERY_KEYS, where, "span", _KEYS), where)
        doc = self._doc_text(value_of(row, DOC_KEYS, where, "span", _KEYS), where)
        given = [value_of(row, (key,), where, "span", _KEYS) for key in ("start", "end")]
        start, end = (offset(value, of_text=of_text) for value in given)
        if start is None or end is None or start >= end:
            empty = "; an empty span matches nothing" if start is not None and start == end else ""
            raise DataError(
                f"{where}: the span goes from {excerpt(given[0])} to {excerpt(given[1])}{empty}; "
                "expected two integers in code points, 0 <= start < end (end exclusive)"
            )
        grade = _grade(row.get("grade"), where, of_text)
        name = self._group(row.get("group"), query, where)
        text, digest = self._copies(row, start, end, where)
        if (query, doc, start, end) in self._at:
            self._refuse_other_text(self._at[query, doc, start, end], text, digest, where)
        self._at.setdefault((query, doc, start, end), len(self._rows))
        own = (query, doc, start, end, name)
        if own in self._seen:
            before = self._seen[own]
            if self._rows[before][4] != grade:
                raise DataError(
                    f"{where}: query {query!r} has the span {start} to {end} of document {doc!r} with the grade "
                    f"{grade:g}, but with {self._rows[before][4]:g} at {self._place(before)}; expected one grade"
                )
            if name is None:
                self._repeats.append(f"{where}: query {query!r}, document {doc!r}, {start} to {end}")
            return
        self._seen[own] = len(self._rows)
        group = len(self._groups)
        key = (query, f"={name}") if name is not None else (query, f"#{group}")
        self._rows.append(
            (
                self._queries.setdefault(query, len(self._queries)),
                self._docs.setdefault(doc, len(self._docs)),
                start,
                end,
                grade,
                self._groups.setdefault(key, group),
            )
        )
        self._texts.append(text)
        self._hashes.append(digest)
        self._names.append(name)
        self._places.append(where if place is None else place)

    def _refuse_other_text(self, before: int, text: str | None, digest: str | None, where: str) -> None:
        """A repeat may say what the first one does not; where both say something, it is the same."""
        known, hashed = self._texts[before], self._hashes[before]
        other = text is not None and known is not None and plain(text).text != plain(known).text
        if other or (digest is not None and hashed is not None and digest != hashed):
            raise DataError(
                f"{where}: the span has another text than at {self._place(before)}, where it stands in the same place; "
                "expected one passage"
            )
        self._texts[before], self._hashes[before] = known or text, hashed or digest

    def done(self) -> Spans:
        """The finished spans; none at all is a DataError."""
        if not self._rows:
            raise DataError(f"no spans in {self.source}")
        query, doc, start, end, grade, group = zip(*self._rows, strict=True)
        order = np.argsort(np.array(query, np.int64), kind="stable")
        chosen = order.tolist()

        def column(values: Iterable[int]) -> Ints:
            return read_only(np.array(values, np.int64)[order])

        grades = read_only(np.array(grade, np.float64)[order])
        return Spans(
            tuple(self._queries),
            column(query),
            tuple(self._docs),
            column(doc),
            column(start),
            column(end),
            grades,
            column(group),
            [self._texts[row] for row in chosen],
            [self._hashes[row] for row in chosen],
            self.source,
            tuple(self._warnings()),
            [self._names[row] for row in chosen],
            [self._places[row] for row in chosen],
        )

    def _place(self, row: int) -> str:
        place = self._places[row]
        return place if isinstance(place, str) else f"{self.source}:{place}"

    def _group(self, value: object, query: str, where: str) -> str | int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise DataError(f"{where}: the group is {excerpt(value)}; expected a string or an integer")
        self._group_names.setdefault(query, JsonIds())(value, where)  # 1 and "1" are not two groups
        return value

    def _copies(self, row: Mapping[str, Any], start: int, end: int, where: str) -> tuple[str | None, str | None]:
        text, digest = row.get("text"), row.get("hash")
        if text is not None and (not isinstance(text, str) or not text):
            raise DataError(f"{where}: the text of the span is {excerpt(text)}; expected the passage as a string")
        if text is not None and re.search("[\ud800-\udfff]", text):
            raise DataError(f"{where}: the text of the span has half of a surrogate pair; expected Unicode text")
        if digest is not None:
            if not isinstance(digest, str) or not _HASH.fullmatch(digest):
                raise DataError(
                    f"{where}: the hash of the span is {excerpt(digest)}; expected sha256: and 64 hex digits"
                )
            digest = digest if digest.startswith("sha256:") else f"sha256:{digest}"
        if text is not None and len(text) != end - start:
            self._misfits.append(_misfit(text, end - start, where))
        return text, digest

    def _warnings(self) -> Iterator[str]:
        if self._repeats:
            count = "1 span is" if len(self._repeats) == 1 else f"{len(self._repeats)} spans are"
            yield f"{count} repeated in {self.source} and counted once; first at {self._repeats[0]}"
        if self._misfits:
            count = "1 span has a text" if len(self._misfits) == 1 else f"{len(self._misfits)} spans have texts"
            yield f"{count} of another length than its offsets say in {self.source}; first at {self._misfits[0]}"
        overlaps = self._overlaps()
        if overlaps:
            first, second = overlaps[0]
            count = "1 gold span overlaps" if len(overlaps) == 1 else f"{len(overlaps)} gold spans overlap"
            row = self._rows[second]
            yield (
                f"{count} another of the same query in {self.source}: if they are alternatives, give them one group; "
                f"first at {self._place(second)}: query {list(self._queries)[row[0]]!r}, document "
                f"{list(self._docs)[row[1]]!r}, {row[2]} to {row[3]} and {self._rows[first][2]} to "
                f"{self._rows[first][3]}"
            )

    def _overlaps(self) -> list[tuple[int, int]]:
        """Pairs of rows of one query and document, of different groups, that share a character."""
        found: list[tuple[int, int]] = []
        order = sorted(range(len(self._rows)), key=lambda row: self._rows[row][:4])
        before: list[int] = []  # the rows of this query and document that reach furthest, of each group
        for row in order:
            query, doc, start, _, _, group = self._rows[row]
            if before and self._rows[before[0]][:2] != (query, doc):
                before = []
            other = next((b for b in before if self._rows[b][3] > start and self._rows[b][5] != group), None)
            if other is not None:
                found.append((other, row))
            before = [b for b in before if self._rows[b][3] > start] + [row]
        return found


def _misfit(text: str, length: int, where: str) -> str:
    units = {
        "bytes of UTF-8": len(text.encode()),
        "units of UTF-16": len(text.encode("utf-16-le")) // 2,
    }
    counted = next((what for what, n in units.items() if n == length), None)
    hint = f"; the offsets seem to count {counted}, not code points" if counted else ""
    return f"{where}: {length} code points by its offsets, {len(text)} in {excerpt(text, 40)}{hint}"


def _grade(value: object, where: str, of_text: bool) -> float:
    if value is None:
        return 1.0
    if of_text and isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    number = json_number(value, where, "grade")
    if math.isinf(number):
        raise DataError(f"{where}: the grade is {number}; expected a finite number")
    return number


# --- SQuAD ----------------------------------------------------------------------------------------


def _is_squad(path: PathLike) -> bool:
    # A file of JSON Lines has no object that goes over several lines, nor "data" or "paragraphs" in its first keys.
    if bare_suffixes(path)[-1:] != [""] and bare_suffixes(path):
        return False
    return re.match(rb'\s*\{\s*"(version|data|paragraphs)"\s*:', read_bytes(path)[:200]) is not None


def _squad_rows(document: object, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    articles = document.get("data") if isinstance(document, Mapping) else document
    if not isinstance(articles, list):
        raise DataError(
            f"{source}: expected SQuAD's form, {{'data': [{{'title', 'paragraphs': [{{'context', 'qas'}}]}}]}}; spans "
            "of another form are written as JSON Lines (.jsonl)"
        )
    for a, article in enumerate(articles):
        paragraphs = _list(article, "paragraphs", f"{source}: article {a}")
        for p, paragraph in enumerate(paragraphs):
            place = f"{source}: article {a}, paragraph {p}"
            doc_id = paragraph_id(article, paragraph, p, place)
            context = paragraph.get("context")
            for qa in _list(paragraph, "qas", place):
                if not isinstance(qa, Mapping) or "id" not in qa:
                    raise DataError(f"{place}: the question {excerpt(qa)} has no 'id'")
                for answer in _list(qa, "answers", f"{place}: question {excerpt(qa['id'])}"):
                    where = f"{place}: question {excerpt(qa['id'])}"
                    if not isinstance(answer, Mapping):
                        raise DataError(f"{where}: the answer is {excerpt(answer)}; expected text and answer_start")
                    yield (
                        where,
                        _answer(qa["id"], doc_id, answer.get("text"), answer.get("answer_start"), context, where),
                    )


def paragraph_id(article: Mapping[str, Any], paragraph: object, number: int, where: str) -> object:
    """The document id of a paragraph: its own, else the article's title and its number there."""
    if not isinstance(paragraph, Mapping):
        raise DataError(f"{where}: the paragraph is {excerpt(paragraph)}; expected context and qas")
    own = next((paragraph[key] for key in _PARAGRAPH_IDS if paragraph.get(key) is not None), None)
    if own is not None:
        return own
    title = article.get("title")
    if not isinstance(title, str) or not title:
        raise DataError(f"{where}: neither the paragraph has a document_id nor the article a title to name it by")
    return f"{title}#{number}"


def _flat_squad_row(row: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """SQuAD as data sets have it: a question in each row, its answers in two lists."""
    texts, starts = row["answers"].get("text"), row["answers"]["answer_start"]
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        raise DataError(f"{where}: the answers are {excerpt(row['answers'])}; expected equally many texts and starts")
    query_id = value_of(row, ("query_id", "id"), where, "question")
    doc_id = value_of(row, DOC_KEYS, where, "question", ("id", "question", "answers", "context", "title"))
    for text, start in zip(texts, starts, strict=True):
        yield _answer(query_id, doc_id, text, start, row.get("context"), where)


def _answer(
    query_id: object, doc_id: object, text: object, start: object, context: object, where: str
) -> dict[str, Any]:
    begin = offset(start, of_text=False)
    if not isinstance(text, str) or not text or begin is None:
        raise DataError(
            f"{where}: the answer has the text {excerpt(text)} and answer_start {excerpt(start)}; expected a text and "
            "an integer of 0 or more"
        )
    if isinstance(context, str) and context[begin : begin + len(text)] != text:
        raise DataError(
            f"{where}: the answer {excerpt(text, 40)} does not stand at {begin} of its context, where "
            f"{excerpt(context[begin : begin + len(text)], 40)} stands; expected answer_start in code points"
        )
    return {
        "query_id": query_id,
        "doc_id": doc_id,
        "start": begin,
        "end": begin + len(text),
        "text": text,
        "group": "answers",
    }


def _list(value: object, key: str, where: str) -> list[Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(found, list):
        raise DataError(f"{where}: {key} is {excerpt(found)}; expected a list")
    return found


# --- writing --------------------------------------------------------------------------------------


def write_spans(spans: Spans, path: PathLike) -> None:
    """See Spans.write."""
    rows = [span_row(spans.span(row)) for row in range(len(spans))]
    write_rows(path, rows, _KEYS, "spans")


def span_row(span: Span) -> dict[str, Any]:
    """What a line says of a span: nothing that is understood without."""
    row = _row(span, "")
    if span.grade == 1.0:
        del row["grade"]
    elif span.grade == int(span.grade):
        row["grade"] = int(span.grade)
    return row
