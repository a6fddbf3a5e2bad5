"""Rows of a file as mappings, whatever the file is: JSON Lines, a table in text with a header line, or Parquet.

For files of moderate size, whose rows are looked at one by one: gold spans and chunk tables.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_retrieval_eval.collection.formats.files import (
    PARQUET,
    PathLike,
    bare_suffixes,
    excerpt,
    json_lines,
    lines,
    utf8,
    write_atomically,
)
from pytest_retrieval_eval.errors import DataError, did_you_mean

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def is_table(path: PathLike) -> bool:
    """Whether the ending says that rows are those of a table in text."""
    return delimiter_of(path) is not None


def delimiter_of(path: PathLike) -> str | None:
    """What stands between the cells of a table in text, by the ending; None for other files."""
    return next((mark for ending, mark in _DELIMITERS.items() if bare_suffixes(path)[-1:] == [ending]), None)


def rows_of(path: PathLike) -> Iterator[tuple[str | int, dict[str, Any]]]:
    """The rows, and where each stands: its line, or ``file: row n`` of a Parquet file.

    Empty cells of a table are absent; numbers in its cells stay text.
    """
    if bare_suffixes(path)[-1:] == [PARQUET]:
        from pytest_retrieval_eval.collection.formats.frames import parquet_rows

        for row, values in enumerate(parquet_rows(path), 1):
            yield f"{path}: row {row}", {key: value for key, value in values.items() if value is not None}
    elif is_table(path):
        yield from _cells(path)
    else:
        yield from json_lines(path)


def _cells(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    # The csv module joins the lines of a quoted cell itself, and wants their ends.
    reader = csv.reader((line + "\n" for _, line in lines(path)), delimiter=delimiter_of(path) or ",", strict=True)
    names: list[str] | None = None
    begin = 1
    try:
        for cells in reader:
            number, begin = begin, reader.line_num + 1
            if not cells:
                continue
            if names is None:
                names = [cell.strip() for cell in cells]
                if len(set(names)) < len(names):
                    raise DataError(f"{path}:{number}: the header {excerpt(names)} names a column twice")
                continue
            if len(cells) != len(names):
                raise DataError(
                    f"{path}:{number}: {excerpt(cells)} has {len(cells)} cells; expected {len(names)}, as the header "
                    f"says: {', '.join(names)}"
                )
            yield number, {name: cell for name, cell in zip(names, cells, strict=True) if cell != ""}
    except csv.Error as error:
        raise DataError(f"{path}:{begin}: the table cannot be read ({error})") from None


def value_of(
    row: Mapping[str, Any],
    keys: Sequence[str],
    where: str,
    what: str,
    others: Iterable[str] = (),
    expected: str = "",
) -> Any:
    """The value under the first of some keys; where there is none, an error that knows what was mistyped.

    ``others`` are keys of such a row that mean something else, ``expected`` says what a row has.
    """
    for key in keys:
        if key in row:
            return row[key]
    taken = set(others)
    mistyped = did_you_mean(keys[0], [key for key in row if key not in taken])
    hint = f"; is {mistyped[len('did you mean ') : -1]!r} meant to be it?" if mistyped.startswith("did") else ""
    tail = f"; expected {expected}" if expected else ""
    raise DataError(f"{where}: the {what} has no {keys[0]!r}{hint}; found the keys {excerpt(list(row))}{tail}")


def offset(value: object, *, of_text: bool) -> int | None:
    """An offset: an integer of 0 or more, or its decimal digits where cells are text; None for anything else."""
    if of_text and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if type(value) is int and value >= 0 else None


def write_rows(path: PathLike, rows: Iterable[Mapping[str, Any]], keys: tuple[str, ...], what: str) -> None:
    """Rows as JSON Lines, or as a table of those keys that any row has; by the ending."""
    mark = delimiter_of(path)
    if mark is None and bare_suffixes(path)[-1:] != [".jsonl"]:
        raise DataError(f"{path}: {what} are written as .jsonl, .csv or .tsv (also .gz, .zst, .bz2, .xz)")
    with write_atomically(path) as out:
        if mark is None:
            for row in rows:
                out.write(utf8(json.dumps(row, ensure_ascii=False) + "\n"))
            return
        kept = list(rows)
        used = [key for key in keys if any(key in row for row in kept)]
        text = io.StringIO()
        writer = csv.writer(text, delimiter=mark, lineterminator="\n")
        writer.writerow(used)
        writer.writerows([[row.get(key, "") for key in used] for row in kept])
        out.write(utf8(text.getvalue()))
