"""A file of gold spans with its moved spans put where their passages stand now; everything else stays as it is."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from typing import Any

from pytest_retrieval_eval.collection.formats.files import (
    BOM,
    PathLike,
    bare_suffixes,
    json_id,
    open_bytes,
    write_atomically,
)
from pytest_retrieval_eval.collection.formats.rows import delimiter_of, rows_of, value_of
from pytest_retrieval_eval.collection.spans.anchors import Anchors
from pytest_retrieval_eval.collection.spans.spanrows import DOC_KEYS, QUERY_KEYS
from pytest_retrieval_eval.collection.spans.spans import Span
from pytest_retrieval_eval.errors import DataError

_Key = tuple[str, str, int, int]


def rewrite(anchors: Anchors, path: PathLike) -> int:
    """Write the moved spans into their file, atomically; returns how many rows changed (none: nothing is written)."""
    content, changed = rewritten(anchors, path)
    if changed:
        with write_atomically(path) as out:
            out.write(content)
    return changed


def rewritten(anchors: Anchors, path: PathLike) -> tuple[bytes, int]:
    """The bytes that the file should have, and how many of its rows change.

    Of JSON Lines only the lines of moved spans change, and in them only the offsets and the copies of the text. A
    file that is no longer what was read raises DataError, and so does one of a format that cannot be changed in
    place (Parquet, SQuAD).
    """
    if bare_suffixes(path)[-1:] not in ([".jsonl"], [".csv"], [".tsv"]):
        raise DataError(
            f"{path}: moved spans are written into .jsonl, .csv and .tsv files alone; write the spans as spans.jsonl "
            "first (Spans.read(…).save(…))"
        )
    moved = {_key(anchor.span): anchor.now for anchor in anchors.with_status("moved") if anchor.now is not None}
    with open_bytes(path) as file:
        content = file.read()
    mark = delimiter_of(path)
    changed = _lines(content, path, moved) if mark is None else _table(content, path, moved, mark)
    if changed[2] != set(moved):
        raise DataError(f"{path}: the file has changed since its spans were read; run again")
    return changed[0], changed[1]


def _key(span: Span) -> _Key:
    return span.query_id, span.doc_id, span.start, span.end


def _now(row: dict[str, Any], moved: dict[_Key, Span], where: str, done: set[_Key]) -> dict[str, Any] | None:
    """The row with the new place of its span; None where the span did not move."""
    if isinstance(row.get("answers"), dict):
        raise DataError(f"{where}: answers of SQuAD cannot be moved in place; write the spans as spans.jsonl first")
    ids = [json_id(value_of(row, keys, where, "span"), where) for keys in (QUERY_KEYS, DOC_KEYS)]
    place = int(row["start"]), int(row["end"])
    for query, doc in (ids, [unicodedata.normalize("NFC", name) for name in ids]):
        now = moved.get((query, doc, *place))
        if now is None:
            continue
        done.add((query, doc, *place))
        new = {**row, "start": now.start, "end": now.end}
        return {**new, **{key: getattr(now, key) for key in ("text", "hash") if key in row}}
    return None


def _lines(content: bytes, path: PathLike, moved: dict[_Key, Span]) -> tuple[bytes, int, set[_Key]]:
    rows = {number: row for number, row in rows_of(path) if isinstance(number, int)}
    lines = content.split(b"\n")
    done: set[_Key] = set()
    count = 0
    for number, row in rows.items():
        new = _now(row, moved, f"{path}:{number}", done)
        if new is None:
            continue
        line = lines[number - 1]
        bom = BOM if number == 1 and line.startswith(BOM) else b""
        end = b"\r" if line.endswith(b"\r") else b""
        # As the line was written: with or without blanks and escapes.
        tight = b'": ' not in line
        text = json.dumps(new, ensure_ascii=line.isascii() and b"\\u" in line, separators=(",", ":") if tight else None)
        lines[number - 1] = bom + text.encode() + end
        count += 1
    return b"\n".join(lines), count, done


def _table(content: bytes, path: PathLike, moved: dict[_Key, Span], mark: str) -> tuple[bytes, int, set[_Key]]:
    text = content.removeprefix(BOM).decode()
    cells = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    names = next(row for row in cells if row)
    names = [name.strip() for name in names]
    done: set[_Key] = set()
    count, head = 0, True
    for at, row in enumerate(cells):
        if not row or head:
            head = head and not row
            continue
        said = {name: cell for name, cell in zip(names, row, strict=True) if cell != ""}
        new = _now(said, moved, f"{path}: row {at + 1}", done)
        if new is not None:
            cells[at] = [str(new.get(name, "")) for name in names]
            count += 1
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark, lineterminator="\r\n" if "\r\n" in text else "\n").writerows(cells)
    bom = BOM if content.startswith(BOM) else b""
    return bom + out.getvalue().encode(), count, done
