"""The lines of a TREC run, ``query Q0 document rank score tag``, as checked blocks of whole queries.

The file goes through one buffer of about 1 MiB. Separators are found by comparing all bytes of the buffer at
once, and nothing becomes a Python object but the query ids. Lines with single separators, which is how runs
are written, take the short way; anything else (CRLF, runs of blanks, empty lines, comments, more columns) is
split more slowly, to the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.decimals import LEADING, NotANumber, parse_decimals
from pytest_retrieval_eval.collection.formats.files import BOM, PathLike, excerpt, not_utf8, open_bytes
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import PADDING, Bytes, Ints, changes, right_numbers
from pytest_retrieval_eval.collection.runs.located import Block, borders
from pytest_retrieval_eval.errors import DataError

FORMAT = "query Q0 document rank score tag"
_SIZE = 1 << 20
_COLUMNS = 6
_TAB, _LF, _CR, _BLANK, _HASH = b"\t\n\r #"


def read_blocks(path: PathLike) -> Iterator[TrecBlock]:
    """The rows of a file, checked, a buffer full of whole queries at a time.

    A block is valid until the next one is asked for. A query whose rows do not stand together comes again in
    a later block, or later in the same one. Malformed lines, scores that are no number or NaN, and a document
    that stands twice in one query raise DataError with file and line.
    """
    size, have = _SIZE, 0
    data = _buffer(size)
    first_line, width = 1, None
    with open_bytes(path) as handle:
        head = handle.read(len(BOM))
        if head != BOM:
            have = len(head)
            data[LEADING : LEADING + have] = np.frombuffer(head, np.uint8)
        ended = False
        while not ended:
            if have == size - 1:  # one query fills the buffer
                size *= 2
                larger = _buffer(size)
                larger[: LEADING + have] = data[: LEADING + have]
                data = larger
            # the last byte of the buffer is left for a line end that the file may lack
            count = handle.readinto(data[LEADING + have : LEADING + size - 1].data)  # type: ignore[attr-defined]
            ended = not count
            have += count
            if ended and have and data[LEADING + have - 1] != _LF:
                data[LEADING + have] = _LF
                have += 1
            end = _behind_last_line(data, LEADING, LEADING + have)
            if end == LEADING:
                continue
            _check_utf8(path, data, end, first_line)
            lines = _regular(path, first_line, data, end) if width in (None, _COLUMNS) else None
            if lines is None:
                lines = _irregular(path, first_line, data, end, width)
            width = lines.width
            begins = lines.begins()
            if not ended and len(begins):
                # the last query may go on in the part of the file that is still to come
                lines, begins = lines.before(int(begins[-1])), begins[:-1]
            if len(begins):
                yield lines.block(begins)
            first_line += lines.count
            rest = data[lines.end : LEADING + have].copy()
            have = len(rest)
            data[LEADING : LEADING + have] = rest


class TrecBlock(Block):
    """A block with the number of rows whose rank contradicts the score."""

    __slots__ = ("misranked",)

    misranked: int


Span = tuple[Ints, Ints]  # starts and lengths


@dataclass(frozen=True, eq=False, repr=False)
class _Lines:
    """Rows found in the lines of the buffer up to ``end``."""

    path: PathLike
    first_line: int  # its number in the file
    count: int  # of lines
    width: int | None  # columns of the file, once known
    data: Bytes
    end: int
    line_starts: Ints  # of the line of each row
    line_numbers: Ints | None  # of the line of each row, from 0; None where row i is line i
    query: Span
    doc: Span
    rank: Span
    score: Span

    def begins(self) -> Ints:
        """The rows in which a query begins."""
        if not len(self.line_starts):
            return np.zeros(0, np.int64)
        return np.concatenate(([0], changes(self.data, *self.query)))

    def before(self, row: int) -> _Lines:
        """The rows and lines before those of a row."""
        return replace(
            self,
            count=self._line(row),
            end=int(self.line_starts[row]),
            line_starts=self.line_starts[:row],
            line_numbers=None if self.line_numbers is None else self.line_numbers[:row],
            query=(self.query[0][:row], self.query[1][:row]),
            doc=(self.doc[0][:row], self.doc[1][:row]),
            rank=(self.rank[0][:row], self.rank[1][:row]),
            score=(self.score[0][:row], self.score[1][:row]),
        )

    def block(self, begins: Ints) -> TrecBlock:
        """The rows with their scores, checked; a query begins in each row of ``begins``."""
        try:
            scores = parse_decimals(self.data, *self.score)
        except NotANumber as error:
            raise self._bad_score(error.row) from None
        undefined = np.isnan(scores)
        if undefined.any():
            raise self._bad_score(int(undefined.argmax()))
        starts, lengths = self.query
        queries = Ids(self.data.view(), starts[begins], lengths[begins])
        docs = Ids(self.data.view(), *self.doc)
        block = TrecBlock(queries, np.append(begins, len(scores)), docs, scores)
        block.misranked = self._misranked(scores, block.bounds)
        refuse_repeated(block, lambda row: self._where(row)[0])
        return block

    def _misranked(self, scores: npt.NDArray[np.float64], bounds: Ints) -> int:
        """In how many rows the rank falls with the score, or rises with it, from the row before."""
        starts, lengths = self.rank
        border = borders(bounds)
        # Ranks that count up by one, as last digits and lengths show, contradict nothing: the usual case.
        digit = self.data[starts + lengths - 1]
        step = digit[1:] - digit[:-1]
        if ((((step == 1) | (step == 256 - 9)) & (lengths[1:] >= lengths[:-1])) | border).all():
            return 0
        ranks, number = right_numbers(self.data, starts + lengths, lengths)
        against = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
        against |= (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
        against &= number[1:] & number[:-1] & ~border
        return int(np.count_nonzero(against))

    def _line(self, row: int) -> int:
        return row if self.line_numbers is None else int(self.line_numbers[row])

    def _where(self, row: int) -> tuple[str, str]:
        """``file:line`` of a row, and the text of the line."""
        line = self.data[int(self.line_starts[row]) : self.end].tobytes().partition(b"\n")[0]
        return f"{self.path}:{self.first_line + self._line(row)}", line.removesuffix(b"\r").decode()

    def _bad_score(self, row: int) -> DataError:
        where, line = self._where(row)
        query, doc, score = (
            self.data[starts[row] : starts[row] + lengths[row]].tobytes().decode()
            for starts, lengths in (self.query, self.doc, self.score)
        )
        wrong = "is NaN" if score.lower().lstrip("+-") == "nan" else "is no number"
        hint = ""
        if line.startswith("#"):
            hint = "; the line has the columns of a row: if it is a comment, remove it"
        return DataError(
            f"{where}: query {query!r}, document {doc!r}: the score {excerpt(score)} {wrong}, "
            f"in the line {excerpt(line)}; expected a decimal number such as 12.5{hint}"
        )


def refuse_repeated(block: Block, where: Callable[[int], str]) -> None:
    """DataError for a document that stands more than once in one query; ``where`` says where a row is."""
    repeated = block.repeated()
    if len(repeated):
        row = int(repeated[0])
        query = block.queries[int(block.query_of(repeated[:1])[0])]
        raise DataError(
            f"{where(row)}: query {query!r} has document {block.docs[row]!r} a second time; "
            "expected each document once in a query; remove the repeats"
        )


def _regular(path: PathLike, first_line: int, data: Bytes, end: int) -> _Lines | None:
    """The rows of lines that have six columns and one blank or tab between them; None for any other text."""
    text = data[LEADING:end]
    control = text <= _BLANK
    if control[0] or (control[1:] & control[:-1]).any():
        return None  # an empty field
    separators = np.flatnonzero(control)
    separators += LEADING
    count, odd = divmod(len(separators), _COLUMNS)
    if odd:
        return None
    columns = separators.reshape(count, _COLUMNS)
    blanks = (_COLUMNS - 1) * count
    if np.count_nonzero(text == _BLANK) != blanks:
        blanks -= np.count_nonzero(text == _BLANK) + np.count_nonzero(text == _TAB)
        if blanks:
            return None
    # All but one separator a line are blanks or tabs; the other may be a line end or some control character.
    line_ends = columns[:, 5]
    if (data[line_ends] != _LF).any():
        return None
    starts = np.empty(count, np.int64)
    starts[0] = LEADING
    np.add(line_ends[:-1], 1, out=starts[1:])
    doc, rank, score = columns[:, 1] + 1, columns[:, 2] + 1, columns[:, 3] + 1
    return _Lines(
        path=path,
        first_line=first_line,
        count=count,
        width=_COLUMNS,
        data=data,
        end=end,
        line_starts=starts,
        line_numbers=None,
        query=(starts, columns[:, 0] - starts),
        doc=(doc, columns[:, 2] - doc),
        rank=(rank, columns[:, 3] - rank),
        score=(score, columns[:, 4] - score),
    )


def _irregular(path: PathLike, first_line: int, data: Bytes, end: int, width: int | None) -> _Lines:
    """The rows of any lines of six columns or more, blank lines and comments left out."""
    text = data[LEADING:end]
    line_end = text == _LF
    blank = (text == _BLANK) | (text == _TAB) | line_end
    blank[:-1] |= (text[:-1] == _CR) & line_end[1:]
    edges = np.diff(blank.astype(np.int8), prepend=np.int8(1))
    starts = np.flatnonzero(edges == -1)
    ends = np.flatnonzero(edges == 1)

    line_ends = np.flatnonzero(line_end)
    line_starts = np.concatenate(([0], line_ends[:-1] + 1))
    first = np.searchsorted(starts, line_starts)  # field of each line
    fields = np.diff(np.append(first, len(starts)))
    filled = np.flatnonzero(fields)
    marked = np.zeros(len(fields), np.bool_)
    marked[filled] = text[starts[first[filled]]] == _HASH
    if width is None:
        data_lines = np.flatnonzero((fields > 0) & ~marked)
        width = int(fields[data_lines[0]]) if len(data_lines) else None
    comment = marked & (fields != (width or _COLUMNS))
    rows = np.flatnonzero((fields > 0) & ~comment)
    short = rows[fields[rows] < _COLUMNS]
    if len(short):
        line = int(short[0])
        found = int(fields[line])
        raw = text[line_starts[line] : line_ends[line]].tobytes().removesuffix(b"\r").decode()
        hint = "; four columns are qrels" if found == 4 else ""
        raise DataError(
            f"{path}:{first_line + line}: found {found} column{'s' if found > 1 else ''} in {excerpt(raw)}; "
            f"expected {_COLUMNS}: {FORMAT}{hint}"
        )
    starts += LEADING
    ends += LEADING
    query, doc, rank, score = (
        (starts[first[rows] + column], ends[first[rows] + column] - starts[first[rows] + column])
        for column in (0, 2, 3, 4)
    )
    return _Lines(
        path=path,
        first_line=first_line,
        count=len(fields),
        width=width,
        data=data,
        end=end,
        line_starts=line_starts[rows] + LEADING,
        line_numbers=rows,
        query=query,
        doc=doc,
        rank=rank,
        score=score,
    )


def _buffer(size: int) -> Bytes:
    return np.zeros(LEADING + size + PADDING, np.uint8)


def _behind_last_line(data: Bytes, low: int, high: int) -> int:
    """Where the last complete line ends; ``low`` where there is none."""
    for start in (max(low, high - 4096), low):
        found = data[start:high].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
    return low


def _check_utf8(path: PathLike, data: Bytes, end: int, first_line: int) -> None:
    text = data[LEADING:end]
    if int(text.max()) < 128:
        return
    raw = text.tobytes()
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start)
        begin = raw.rfind(b"\n", 0, error.start) + 1
        shown = raw[begin:].partition(b"\n")[0]
        raise not_utf8(path, first_line + line, shown, error, begin) from None
