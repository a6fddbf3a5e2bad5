"""Bytes and lines of a file, whatever it is compressed with; and files that appear whole or not at all.

Every reader of the package goes through here, so that each of them names the file and the line when something
is wrong, and so that a file cut short can never pass for a short file.
"""

from __future__ import annotations

import io
import json
import math
import numbers
import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pytest_retrieval_eval.errors import DataError, SettingsError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PathLike = str | os.PathLike[str]

PARQUET = ".parquet"
BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_NAMES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}


def compression(path: PathLike) -> str | None:
    """What a file is compressed with, by its ending: ``gzip``, ``zstd``, ``bzip2``, ``xz`` or None.

    >>> compression("runs/bm25.run.jsonl.gz"), compression("qrels.tsv")
    ('gzip', None)
    """
    return _NAMES.get(next(iter(_suffixes(path)[-1:]), ""))


def bare_suffixes(path: PathLike) -> list[str]:
    """The endings of a name, lower case, without that of the compression.

    >>> bare_suffixes("runs/bm25.run.jsonl.gz")
    ['.run', '.jsonl']
    """
    suffixes = _suffixes(path)
    return suffixes[:-1] if suffixes and suffixes[-1] in _NAMES else suffixes


def _suffixes(path: PathLike) -> list[str]:
    # As pathlib has them, which costs a whole process more to import than a small run to read.
    name = os.path.basename(os.fspath(path))
    return [] if name.endswith(".") else [f".{part.lower()}" for part in name.lstrip(".").split(".")[1:]]


def excerpt(value: object, limit: int = 80) -> str:
    """A value as an error message quotes it: its ``repr``, cut to ``limit`` characters.

    >>> excerpt("1 0 b")
    "'1 0 b'"
    >>> excerpt("x" * 100, limit=10)
    "'xxxxxx..."
    """
    if isinstance(value, (str, bytes)):
        value = value[: limit + 1]
    try:
        shown = repr(value)
    except Exception:  # someone else's object: the message must not fail on it
        shown = f"<{type(value).__name__}>"
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


# --- reading --------------------------------------------------------------------------------------


@contextmanager
def readable(path: PathLike) -> Iterator[None]:
    """What cannot be looked at inside the block (a folder or a file without permission, …) raises DataError."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{error.filename or path}: cannot be read: {error.strerror or error}") from error


def open_bytes(path: PathLike) -> BinaryIO:
    """The decompressed bytes of a file, from the start; the ending says how it is compressed.

    A missing file, a folder, a file without permission, a cut or damaged archive (also when that shows only
    while reading) and an absent ``zstandard`` raise DataError.
    """
    raw = _open_raw(path)
    kind = compression(path)
    if kind is None:
        return raw
    if not raw.peek(1):
        raw.close()
        raise DataError(f"{path}: the file has no bytes, so it is no {kind} file; it was probably cut off")
    try:
        return cast(BinaryIO, io.BufferedReader(_Guarded(raw, path, kind), _CHUNK))
    except BaseException:
        raw.close()
        raise


def read_bytes(path: PathLike) -> bytes:
    """All decompressed bytes of a file, without the byte order mark."""
    with open_bytes(path) as handle:
        data = _guard_plain(handle.read, path)()
    return data[len(BOM) :] if data.startswith(BOM) else data


def lines(path: PathLike) -> Iterator[tuple[int, str]]:
    r"""The lines of a UTF-8 file as (1-based number, text without LF or CRLF); a byte order mark is removed.

    Only LF ends a line: U+2028, form feeds and lone CR are text. Invalid UTF-8 raises DataError with file and
    line.
    """
    with open_bytes(path) as handle:
        read_line = _guard_plain(handle.readline, path)
        number = 0
        while raw := read_line():
            number += 1
            if number == 1 and raw.startswith(BOM):
                raw = raw[len(BOM) :]
                if not raw:
                    return
            if raw.endswith(b"\n"):
                raw = raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise not_utf8(path, number, raw, error) from None
            yield number, text


def filled_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, as ``lines`` gives them."""
    return ((number, text) for number, text in lines(path) if text and not text.isspace())


def json_lines(path: PathLike) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a JSON Lines file as (1-based line number, object); blank lines are skipped.

    A line that is not one JSON object, and a key that stands twice in an object, raise DataError.
    """
    return ((number, json_object(text, f"{path}:{number}")) for number, text in filled_lines(path))


def json_object(text: str, where: str) -> dict[str, object]:
    """The object that a line of a JSON Lines file is; anything else raises DataError."""
    value = json_value(text, where, expected="one JSON object in each line")
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected one JSON object in each line, found {excerpt(text)}")
    return value


def json_document(path: PathLike) -> object:
    """A whole file as one JSON value; a malformed one, or a key that stands twice, raises DataError."""
    data = read_bytes(path)
    return json_value(decode(data, path), str(path), expected="one JSON value", whole_file=True)


def json_value(text: str, where: str, *, expected: str = "JSON", whole_file: bool = False) -> object:
    """Parse JSON; what is wrong is said with ``where`` (``file:line``) and what was expected.

    >>> json_value('{"a": 1}', "q.jsonl:1")
    {'a': 1}
    >>> json_value('{"a": 1, "a": 2}', "q.jsonl:1")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.DataError: q.jsonl:1: the key 'a' stands twice in one JSON object
    """
    try:
        if text.count("{") >= _MANY:
            found = _PLAIN.decode(text)
            # Each key is followed by a colon: no more of these than keys, and none was lost.
            if text.count(":") == _number_of_keys(found):
                return found
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}" if whole_file else where
        line = text.split("\n")[error.lineno - 1] if whole_file else text
        raise DataError(
            f"{place}: malformed JSON ({error.msg} at column {error.colno}) in {excerpt(line)}; expected {expected}"
        ) from None
    except _RepeatedKeyError as error:
        raise DataError(f"{where}: the key {error.key!r} stands twice in one JSON object") from None
    except RecursionError:
        raise DataError(f"{where}: JSON nested too deeply; expected {expected}") from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise DataError(f"{where}: {error}; expected {expected}") from None


def decode(data: bytes, path: PathLike) -> str:
    """UTF-8 bytes of a whole file as text; invalid ones raise DataError with file and line."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        begin = data.rfind(b"\n", 0, error.start) + 1
        end = data.find(b"\n", error.start)
        raise not_utf8(path, number, data[begin : end if end >= 0 else None], error, begin) from None


def not_utf8(path: PathLike, number: int, raw: bytes, error: UnicodeDecodeError, begin: int = 0) -> DataError:
    """The sentence for a line that is not UTF-8; ``begin`` is where the line starts in the decoded bytes."""
    guess = "; the file looks like UTF-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in raw else ""
    byte = error.object[error.start]
    return DataError(
        f"{path}:{number}: byte 0x{byte:02x} at position {error.start - begin} is not UTF-8, "
        f"in {excerpt(raw)}{guess}; save the file as UTF-8"
    )


def digest(path: PathLike) -> str:
    """``sha256:<hex>`` of the decompressed text: without byte order mark, CRLF taken as LF.

    The same content has the same digest, compressed or not and on whatever system it was checked out.
    """
    import hashlib

    digester = hashlib.sha256()
    with open_bytes(path) as handle:
        read = _guard_plain(handle.read, path)
        first, held = True, b""
        while chunk := read(_CHUNK):
            chunk = held + chunk
            if first:
                chunk, first = chunk[len(BOM) :] if chunk.startswith(BOM) else chunk, False
            # A CR at the end may be half of a CRLF that the next chunk completes.
            held = b"\r" if chunk.endswith(b"\r") else b""
            digester.update((chunk[:-1] if held else chunk).replace(b"\r\n", b"\n"))
        digester.update(held)
    return "sha256:" + digester.hexdigest()


# --- values ---------------------------------------------------------------------------------------


def json_id(value: object, where: str) -> str:
    """An id as text: a string stays as it is, an integer becomes its decimal digits; else DataError.

    >>> json_id("01", "q.jsonl:1"), json_id(7, "q.jsonl:2")
    ('01', '7')
    """
    if isinstance(value, str):
        if not value:
            raise DataError(f"{where}: an id is the empty string; expected a document or query id")
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise DataError(
                    f"{where}: the id {value!r} has half of a surrogate pair; expected Unicode text"
                ) from None
        return str(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    raise DataError(f"{where}: {excerpt(value)} is no id; expected a string or an integer")


class JsonIds:
    """The ids of one file or mapping as text; two that become one raise DataError.

    With ``normalize`` ids are brought to Unicode form NFC.

    >>> ids = JsonIds()
    >>> ids(7, "q.jsonl:1")
    '7'
    >>> ids("7", "q.jsonl:2")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.DataError: q.jsonl:2: the ids 7 and '7' become one; write it in one way
    """

    __slots__ = ("_normalize", "_seen")

    def __init__(self, normalize: bool = False) -> None:
        self._normalize = normalize
        self._seen: dict[str, object] = {}

    def __call__(self, value: object, where: str) -> str:
        """The id as text; ``where`` says in an error where it stands."""
        text = json_id(value, where)
        if self._normalize and not text.isascii():
            text = unicodedata.normalize("NFC", text)
        first = self._seen.setdefault(text, value)
        if first is not value and first != value:
            raise DataError(f"{where}: the ids {first!r} and {value!r} become one; write it in one way")
        return text


def json_number(value: object, where: str, what: str) -> float:
    """A real number as float; a boolean, a string, NaN or anything else raises DataError.

    >>> json_number(1, "run.jsonl:2", "score")
    1.0
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise DataError(f"{where}: the {what} {excerpt(value)} is too large for a float") from None
        if not math.isnan(number):
            return number
        raise DataError(f"{where}: the {what} is NaN; expected a number")
    raise DataError(f"{where}: the {what} is {excerpt(value)}; expected a number")


# --- writing --------------------------------------------------------------------------------------


def utf8(text: str) -> bytes:
    r"""Text of a file. Half of a surrogate pair, which JSON can hold and UTF-8 cannot, is written as its JSON escape.

    >>> utf8('"\ud83d"')
    b'"\\ud83d"'
    """
    return text.encode("utf-8", "backslashreplace")


@contextmanager
def write_atomically(path: PathLike) -> Iterator[BinaryIO]:
    """A binary writer whose file appears under ``path`` only when the block ends without an exception.

    Folders are made, the ending says how to compress, gzip carries no time and no name (equal content gives
    equal bytes). On an exception nothing is left and an older file stays as it was. A link is followed, not
    replaced.
    """
    import secrets
    import shutil
    from pathlib import Path

    kind = compression(path)
    try:
        target = Path(os.path.realpath(path))
        if os.path.isdir(target):
            raise DataError(f"{path} is a folder; expected the name of a file to write")
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name is cut: a legal long name must not become an illegal one. mkstemp would ignore the umask.
        temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
        raw = open(temporary, "xb")  # noqa: SIM115  # closed below, before it is moved
    except (OSError, ValueError) as error:
        raise _cannot("write", path, error) from error
    try:
        with raw:
            writer = _compressor(kind, raw, path)
            try:
                yield writer
            finally:
                if writer is not raw:
                    writer.close()
        try:
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        except OSError as error:
            raise _cannot("write", path, error) from error
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        # Writing itself failed, on a full disk: what else fails in the block names its own file.
        if isinstance(error, OSError) and error.filename is None:
            raise _cannot("write", path, error) from error
        raise


@contextmanager
def locked(path: PathLike, *, taken: str = "") -> Iterator[None]:
    """Hold the lock that a file stands for; a process that is killed gives it up.

    Waits for whoever has it; where ``taken`` is a sentence, that is the SettingsError at once. The folder is made. The
    seat of a reader and a file of SQLite lock by themselves: a thread hands over the one, the other knows a mode
    without writing.
    """
    from pathlib import Path

    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0 if taken else -1)
    except Timeout:  # an OSError, too
        raise SettingsError(taken) from None
    except OSError as error:
        raise _cannot("lock", path, error) from error
    try:
        yield
    finally:
        lock.release()


# --- how it is done -------------------------------------------------------------------------------


class _RepeatedKeyError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json.loads keeps the last of two equal keys: the first grade would be lost in silence.
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RepeatedKeyError(key)
            seen.add(key)
    return made


def _number_of_keys(value: object) -> int:
    """How many keys the objects in a JSON value have together."""
    number, level = 0, [value]
    while level:
        objects = [each for each in level if type(each) is dict]
        arrays = [each for each in level if type(each) is list]
        number += sum(map(len, objects))
        inside = chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(arrays))
        level = [each for each in inside if type(each) is dict or type(each) is list]
    return number


_DECODER, _PLAIN = json.JSONDecoder(object_pairs_hook=_object), json.JSONDecoder()
# From so many objects on it is quicker to count keys than to look at each object.
_MANY = 16


def _open_raw(path: PathLike) -> io.BufferedReader:
    try:
        return open(path, "rb")
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _cannot("read", path, error) from error


def _missing(path: PathLike) -> DataError:
    from pathlib import Path

    place = Path(path)
    hint = ""
    with suppress(OSError):
        import difflib

        near = difflib.get_close_matches(place.name, os.listdir(place.parent), n=1)
        hint = f"; did you mean {place.parent / near[0]}?" if near else ""
    return DataError(f"{path}: there is no such file{hint}")


def _cannot(verb: str, path: PathLike, error: OSError | ValueError) -> DataError:
    if isinstance(error, IsADirectoryError) or (verb == "read" and os.path.isdir(path)):
        return DataError(f"{path} is a folder; expected a file")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataError(f"{path}: cannot {verb} the file: {reason}")


def _guard_plain(read: Callable[..., bytes], path: PathLike) -> Callable[..., bytes]:
    def guarded(*arguments: int) -> bytes:
        try:
            return read(*arguments)
        except OSError as error:
            raise _cannot("read", path, error) from error

    return guarded


def _zstandard(path: PathLike) -> Any:
    try:
        import zstandard
    except ImportError:
        raise DataError(
            f"{path}: zstd files need the package zstandard; install it with: pip install 'pytest-retrieval-eval[zstd]'"
        ) from None
    return zstandard


# Only what a file needs is imported: every session pays for imports.


def _decompressor(kind: str, raw: io.BufferedReader, path: PathLike) -> tuple[Any, tuple[type[Exception], ...]]:
    """A decompressor, and how it says, beside an OSError without number, that its file is damaged."""
    if kind == "gzip":
        import gzip
        import zlib

        return gzip.GzipFile(fileobj=raw, mode="rb"), (zlib.error,)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2File(raw, "rb"), ()
    if kind == "xz":
        import lzma

        return lzma.LZMAFile(raw, "rb"), (lzma.LZMAError,)
    return _Zstd(_zstandard(path), raw), ()


def _compressor(kind: str | None, raw: io.BufferedWriter, path: PathLike) -> BinaryIO:
    if kind is None:
        return raw
    if kind == "gzip":
        import gzip

        return cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6))
    if kind == "bzip2":
        import bz2

        return cast(BinaryIO, bz2.BZ2File(raw, "wb"))
    if kind == "xz":
        import lzma

        return cast(BinaryIO, lzma.LZMAFile(raw, "wb"))
    return cast(BinaryIO, _zstandard(path).ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False))


class _Guarded(io.RawIOBase):
    """A decompressor whose faults are DataErrors that name the file."""

    def __init__(self, raw: io.BufferedReader, path: PathLike, kind: str) -> None:
        self._inner, self._faults = _decompressor(kind, raw, path)
        self._raw, self._path, self._kind = raw, path, kind

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        try:
            return int(self._inner.readinto(buffer))
        except EOFError:
            raise DataError(f"{self._path}: the {self._kind} file is cut off; get it again, whole") from None
        except self._faults as error:
            raise self._damaged(error) from None
        except OSError as error:
            if error.errno is None:  # no fault of the system
                raise self._damaged(error) from None
            raise _cannot("read", self._path, error) from error

    def _damaged(self, error: Exception) -> DataError:
        return DataError(f"{self._path}: the {self._kind} file cannot be decompressed ({error}); get it again, whole")

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
            self._raw.close()
        super().close()


class _Zstd(io.RawIOBase):
    """zstd frames one after another; unlike zstandard's own reader it tells a cut file from a short one."""

    def __init__(self, zstandard: Any, raw: io.BufferedReader) -> None:
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._error: type[Exception] = zstandard.ZstdError
        self._raw, self._pending, self._frame = raw, b"", self._new()
        self._inside = True
        self._out = memoryview(b"")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._out:
            data = self._pending or self._raw.read(_CHUNK)
            self._pending = b""
            if not data:
                if self._inside:
                    raise EOFError
                return 0
            if not self._inside:
                self._frame, self._inside = self._new(), True
            try:
                self._out = memoryview(self._frame.decompress(data))
            except self._error as error:
                raise OSError(str(error)) from None
            if self._frame.eof:
                self._inside, self._pending = False, self._frame.unused_data
        view = memoryview(buffer).cast("B")
        taken = min(len(view), len(self._out))
        view[:taken] = self._out[:taken]
        self._out = self._out[taken:]
        return taken
