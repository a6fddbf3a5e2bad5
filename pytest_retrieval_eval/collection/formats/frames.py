"""Parquet files, Arrow tables and data frames as tables of columns.

Whatever offers Arrow's interface is read through pyarrow (the extra ``parquet``); pandas frames can be read without
it. Nothing here imports pandas or polars: frames are known by their shape.
"""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_retrieval_eval.collection.formats.files import (
    JsonIds,
    PathLike,
    compression,
    excerpt,
    open_bytes,
    read_bytes,
)
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import PADDING, Ints
from pytest_retrieval_eval.collection.formats.tables import Column, Floats, Table, Where
from pytest_retrieval_eval.errors import DataError

_ROWS = 1 << 17  # of a batch


def is_frame(value: object) -> bool:
    """Whether a value is an Arrow table or a data frame.

    >>> is_frame({"q1": ["d1"]})
    False
    """
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_arrow") or _is_pandas(value)


def frame_table(frame: Any, source: str) -> Table:
    """The table of a data frame or Arrow table."""
    if _is_pandas(frame):
        return _Pandas(frame, source)
    pyarrow = arrow(f"{source}: a {type(frame).__name__} is read with")
    try:
        table = pyarrow.table(frame) if hasattr(frame, "__arrow_c_stream__") else frame.to_arrow()
        return _Arrow(pyarrow, source, table.column_names, table.to_batches(max_chunksize=_ROWS))
    except (pyarrow.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{source}: the {type(frame).__name__} gives no Arrow table ({error})") from None


def parquet_table(path: PathLike) -> tuple[Table, dict[bytes, bytes]]:
    """The table in a Parquet file, and what its schema says beside the columns."""
    pyarrow, file = _parquet_file(path)
    return _Parquet(pyarrow, str(path), file), dict(file.schema_arrow.metadata or {})


def parquet_rows(path: PathLike) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as mappings from column to value, None where there is none."""
    pyarrow, file = _parquet_file(path)
    try:
        for batch in file.iter_batches(batch_size=_ROWS):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: the file cannot be read ({_line(error)}); get it again, whole") from None
    finally:
        file.close()


def _parquet_file(path: PathLike) -> tuple[Any, Any]:
    """The package and the opened file."""
    pyarrow = arrow(f"{path}: Parquet is read with")
    parquet = importlib.import_module("pyarrow.parquet")
    open_bytes(path).close()  # what cannot be opened is said in our words
    try:
        return pyarrow, parquet.ParquetFile(io.BytesIO(read_bytes(path)) if compression(path) else path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: the file is no Parquet ({_line(error)}); get it again, whole") from None


def arrow(what: str) -> Any:
    """The package pyarrow; where it is absent the sentence ``what`` is ended with what to install."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise DataError(
            f"{what} the package pyarrow, which is not installed: pip install 'pytest-retrieval-eval[parquet]'"
        ) from None


def _is_pandas(value: object) -> bool:
    return hasattr(value, "iloc") and hasattr(value, "columns")


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


class _Arrow:
    """Record batches."""

    def __init__(self, pyarrow: Any, source: str, names: Sequence[str], batches: Any) -> None:
        self._pyarrow, self.source = pyarrow, source
        self.names: Sequence[str] = tuple(names)
        self._batches = batches

    def batches(self, names: Sequence[str]) -> Iterator[Sequence[Column]]:
        """The rows of some columns."""
        for batch in self._batches:
            yield [_ArrowColumn(self._pyarrow, batch.column(name), name) for name in names]


class _Parquet:
    """A Parquet file, of which only the columns that are asked for are read."""

    def __init__(self, pyarrow: Any, source: str, file: Any) -> None:
        self._pyarrow, self.source, self._file = pyarrow, source, file
        self.names: Sequence[str] = tuple(file.schema_arrow.names)
        self.empty = not file.metadata.num_rows

    def batches(self, names: Sequence[str]) -> Iterator[Sequence[Column]]:
        """The rows of some columns."""
        try:
            for batch in self._file.iter_batches(batch_size=_ROWS, columns=list(names)):
                yield [_ArrowColumn(self._pyarrow, batch.column(name), name) for name in names]
        except (self._pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{self.source}: the file cannot be read ({_line(error)}); get it again, whole") from None
        finally:
            self._file.close()


class _ArrowColumn:
    """An Arrow array."""

    def __init__(self, pyarrow: Any, array: Any, name: str) -> None:
        self._pyarrow, self._array, self._name = pyarrow, array, name

    def ids(self, where: Where) -> Ids:
        """The bytes of the array; a dictionary's are kept once."""
        array, types = self._array, self._pyarrow.types
        if types.is_dictionary(array.type):
            if array.null_count or array.dictionary.null_count:
                array = array.dictionary_decode()
            else:
                rows: Ints = array.indices.to_numpy(zero_copy_only=False).astype(np.int64)
                return _ArrowColumn(self._pyarrow, array.dictionary, self._name).ids(where)[rows]
        if array.null_count:
            row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"{where(row)}: {self._name} is null; expected an id")
        text = types.is_string(array.type) or types.is_large_string(array.type)
        if not (text or types.is_integer(array.type) or str(array.type) == "string_view"):
            raise DataError(
                f"{where(0)}: {self._name} is a column of {array.type}; expected ids, as strings or integers"
            )
        if not text:
            array = array.cast(self._pyarrow.large_string())
        try:
            array.validate(full=True)
        except self._pyarrow.ArrowInvalid as error:
            raise DataError(f"{where(0)}, or below: {self._name} is no UTF-8 text ({_line(error)})") from None
        return _bytes_of(array, np.int32 if types.is_string(array.type) else np.int64)

    def numbers(self, where: Where) -> Floats:
        """The values as float64."""
        array, types = self._array, self._pyarrow.types
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        fine = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
        if not any(is_type(array.type) for is_type in fine):
            raise DataError(f"{where(0)}: {self._name} is a column of {array.type}; expected numbers")
        values: Floats = array.cast(self._pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return values


def _bytes_of(array: Any, offset: type[np.signedinteger[Any]]) -> Ids:
    count = len(array)
    _, offsets, values = array.buffers()
    if not count or values is None:
        return Ids(np.zeros(PADDING, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64))
    edges = np.frombuffer(offsets, offset)[array.offset : array.offset + count + 1].astype(np.int64)
    data = np.zeros(int(edges[-1] - edges[0]) + PADDING, np.uint8)
    data[:-PADDING] = np.frombuffer(values, np.uint8)[edges[0] : edges[-1]]
    return Ids(data, edges[:-1] - edges[0], np.diff(edges))


class _Pandas:
    """A pandas frame: through Arrow column by column where pyarrow is there, else through lists."""

    def __init__(self, frame: Any, source: str) -> None:
        self._frame, self.source = frame, source
        self.names: Sequence[str] = tuple(map(str, frame.columns))
        try:
            self._pyarrow: Any = importlib.import_module("pyarrow")
        except ImportError:
            self._pyarrow = None

    def batches(self, names: Sequence[str]) -> Iterator[Sequence[Column]]:
        """The rows of some columns."""
        for first in range(0, len(self._frame), _ROWS):
            part = self._frame.iloc[first : first + _ROWS]
            yield [self._column(part.iloc[:, self.names.index(name)], name) for name in names]

    def _column(self, series: Any, name: str) -> Column:
        if self._pyarrow is not None:
            try:
                array = self._pyarrow.Array.from_pandas(series)
            except (self._pyarrow.ArrowException, UnicodeEncodeError):  # of several types: value by value
                return _Values(series.tolist(), name)
            chunked = isinstance(array, self._pyarrow.ChunkedArray)
            return _ArrowColumn(self._pyarrow, array.combine_chunks() if chunked else array, name)
        return _Values(series.tolist(), name)


class _Values:
    """A column as a list of Python values."""

    def __init__(self, values: list[Any], name: str) -> None:
        self._values, self._name = values, name

    def ids(self, where: Where) -> Ids:
        """The values as ids, each checked."""
        for row, value in enumerate(self._values):
            if _is_missing(value):
                raise DataError(f"{where(row)}: {self._name} is null; expected an id")
        ids = JsonIds()
        return Ids.of([ids(value, where(row)) for row, value in enumerate(self._values)])

    def numbers(self, where: Where) -> Floats:
        """The values as numbers, each checked."""
        numbers = np.empty(len(self._values))
        for row, value in enumerate(self._values):
            if _is_missing(value):
                numbers[row] = np.nan
            elif isinstance(value, str | bool) or not hasattr(value, "__float__"):
                raise DataError(f"{where(row)}: {self._name} is {excerpt(value)}; expected a number")
            else:
                numbers[row] = float(value)
        return numbers


def _is_missing(value: Any) -> bool:
    # pandas.NA has no truth value; it is known by its name, for nothing here imports pandas
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    )
