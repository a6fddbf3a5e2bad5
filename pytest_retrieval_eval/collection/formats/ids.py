"""A column of ids, kept as UTF-8 bytes: millions of them without a Python object each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.keys import PADDING, Bytes, Ints, Keys, field_keys
from pytest_retrieval_eval.errors import DataError

_KEPT = 1 << 16  # ids whose strings are kept once made
_PAD = np.zeros(PADDING, np.uint8)


class Ids:
    """An immutable column of n ids.

    ``data`` holds the UTF-8 bytes (uint8; at least 8 zero bytes behind the last id, so that 8-byte reads are
    safe), ``starts`` and ``lengths`` (int64, n each) say where each id lies. Taking rows shares ``data``.

    >>> ids = Ids.of(["d1", "Café", ""])
    >>> ids[1], len(ids), list(ids[1:])
    ('Café', 3, ['Café', ''])
    """

    __slots__ = ("_keys", "_strings", "data", "lengths", "starts")

    def __init__(self, data: Bytes, starts: Ints, lengths: Ints) -> None:
        for column in (data, starts, lengths):
            column.flags.writeable = False
        self.data = data
        self.starts = starts
        self.lengths = lengths
        self._keys: Keys | None = None
        self._strings: list[str] | None = None

    @classmethod
    def of(cls, ids: Iterable[str]) -> Ids:
        """The column of some strings; DataError for a string that has no UTF-8 form (a lone surrogate)."""
        texts = ids if isinstance(ids, list | tuple) else list(ids)
        if not texts:
            return cls(_PAD.copy(), np.zeros(0, np.int64), np.zeros(0, np.int64))
        try:
            encoded = "\n".join(texts).encode()
            data = np.frombuffer(encoded + b"\n" + _PAD.tobytes(), np.uint8)
            ends = np.flatnonzero(data == 10)
            if len(ends) == len(texts):
                starts = np.concatenate(([0], ends[:-1] + 1))
                return cls(data, starts, ends - starts)
            # an id with a line end in it: every length for itself
            lengths = np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts))
            data = np.frombuffer("".join(texts).encode() + _PAD.tobytes(), np.uint8)
        except UnicodeEncodeError as error:
            raise DataError(
                f"the id {_culprit(texts)!r} holds half of a surrogate pair, which UTF-8 cannot write; "
                "ids must be valid Unicode"
            ) from error
        return cls(data, np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.strings())

    @overload
    def __getitem__(self, rows: int | np.integer) -> str: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[np.generic]) -> Ids: ...

    def __getitem__(self, rows: int | np.integer | slice | npt.NDArray[np.generic]) -> str | Ids:
        if isinstance(rows, int | np.integer):
            return self.bytes_at(int(rows)).decode()
        return Ids(self.data, self.starts[rows], self.lengths[rows])

    def bytes_at(self, row: int) -> bytes:
        """The UTF-8 bytes of one id."""
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])].tobytes()

    def raw(self) -> list[bytes]:
        """The UTF-8 bytes of each id."""
        view = self.data.data
        return [
            view[a:z].tobytes()
            for a, z in zip(self.starts.tolist(), (self.starts + self.lengths).tolist(), strict=True)
        ]

    def strings(self, rows: npt.NDArray[np.generic] | slice | Sequence[int] | None = None) -> list[str]:
        """The ids as strings: all of them, or those of some rows.

        >>> Ids.of(["a", "b", "c"]).strings([2, 0])
        ['c', 'a']
        """
        if rows is None and len(self) <= _KEPT:  # qrels: asked for by every run that is measured on them
            if self._strings is None:
                self._strings = self._decode(self.starts, self.lengths)
            return self._strings.copy()
        starts, lengths = self.starts, self.lengths
        if rows is not None:
            chosen = rows if isinstance(rows, slice) else np.asarray(rows)
            starts, lengths = starts[chosen], lengths[chosen]
        return self._decode(starts, lengths)

    def _decode(self, starts: Ints, lengths: Ints) -> list[str]:
        if not len(starts):
            return []
        # decode only what the rows span: a few rows of a large column must not cost the whole of it
        low, high = int(starts.min()), int((starts + lengths).max())
        window = self.data[low:high]
        begins, ends = (starts - low).tolist(), (starts + lengths - low).tolist()
        if high - low > 16 * int(lengths.sum()) + 1024:
            return [window[a:z].tobytes().decode() for a, z in zip(begins, ends, strict=True)]
        raw = window.tobytes()
        if raw.isascii():
            text = raw.decode("ascii")
            return [text[a:z] for a, z in zip(begins, ends, strict=True)]
        return [raw[a:z].decode() for a, z in zip(begins, ends, strict=True)]

    def packed(self) -> Ids:
        """The same ids over bytes of their own, without gaps: they no longer hold on to the source."""
        begins = np.cumsum(self.lengths) - self.lengths
        total = int(self.lengths.sum())
        data = np.zeros(total + PADDING, np.uint8)
        data[:total] = self.data[np.repeat(self.starts - begins, self.lengths) + np.arange(total)]
        return Ids(data, begins, self.lengths)

    @classmethod
    def join(cls, columns: Sequence[Ids]) -> Ids:
        """Columns, one after another; each over bytes of its own.

        >>> Ids.join([Ids.of(["a"]), Ids.of(["b", "c"])]).strings()
        ['a', 'b', 'c']
        """
        sizes = [len(column.data) - PADDING for column in columns]
        offsets = np.cumsum([0, *sizes])
        data = np.concatenate([*(column.data[:size] for column, size in zip(columns, sizes, strict=True)), _PAD])
        starts = [column.starts + offset for column, offset in zip(columns, offsets[:-1], strict=True)]
        if not columns:
            return cls.of([])
        return cls(data, np.concatenate(starts), np.concatenate([column.lengths for column in columns]))

    def keys(self) -> Keys:
        """The 64-bit key of each id (uint64, n), made once."""
        if self._keys is None:
            keys = field_keys(self.data, self.starts, self.lengths)
            keys.flags.writeable = False
            self._keys = keys
        return self._keys


def _culprit(texts: Sequence[str]) -> str:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            return text
    return ""
