"""The cells of a table in text, found by comparing all its bytes at once; for text that is written as it should be."""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.collection.formats.decimals import LEADING, NotANumber, parse_decimals
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import PADDING, Ints
from pytest_retrieval_eval.collection.formats.tables import Floats

_TAB, _LF, _BLANK = b"\t\n "


def text_columns(
    text: bytes, width: int, ids: tuple[int, int], number: int, *, tabs: bool
) -> tuple[Ids, Ids, Floats] | None:
    """Two columns of ids and one of finite numbers; None for text that must be looked at line by line.

    Every line has ``width`` cells with one tab (or, without ``tabs``, one blank or tab) between them; none is empty,
    begins with # or ends with CR.
    """
    if not text or text.startswith(b"#") or b"\n#" in text:
        return None
    ended = text.endswith(b"\n")
    data = np.zeros(LEADING + len(text) + (not ended) + PADDING, np.uint8)
    data[LEADING : LEADING + len(text)] = np.frombuffer(text, np.uint8)
    if not ended:
        data[LEADING + len(text)] = _LF
    inside = data[LEADING:-PADDING]
    control = inside <= _BLANK
    if control[0] or (control[1:] & control[:-1]).any():
        return None  # an empty cell, or CRLF
    ends = np.flatnonzero(control)
    if len(ends) % width:
        return None
    ends += LEADING
    lines = ends.reshape(-1, width)
    # Every line end is in its place, and the rest are as many separators as are due: no other control character.
    between = np.count_nonzero(inside == _TAB) + (0 if tabs else np.count_nonzero(inside == _BLANK))
    if between != len(ends) - len(lines) or (data[lines[:, -1]] != _LF).any():
        return None

    def cells(column: int) -> tuple[Ints, Ints]:
        starts = lines[:, column - 1] + 1 if column else np.append(LEADING, lines[:-1, -1] + 1)
        return starts, lines[:, column] - starts

    try:
        numbers = parse_decimals(data, *cells(number))
    except NotANumber:
        return None
    if not np.isfinite(numbers).all():
        return None
    first, second = (Ids(data.view(), *cells(column)) for column in ids)
    return first, second, numbers
