"""Runs that lie in no folder of this machine: at a URL, or as bytes that something else has fetched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError

# What a large file is in a repository (or a bucket) whose files are kept by Git LFS: a few lines that name it.
_LFS = b"version https://git-lfs.github.com/spec/"


class AbsentError(DataError):
    """There is no such file where one was looked for."""


@dataclass(frozen=True)
class Fetched(os.PathLike[str]):
    """A file that is opened where it was put, and named in every message by where it came from."""

    place: Path
    origin: str

    def __fspath__(self) -> str:
        return str(self.place)

    def __str__(self) -> str:
        return self.origin


def run_of_bytes(data: bytes, file_name: str, origin: str, columns: Mapping[str, str] | None = None) -> Run:
    """The run in the bytes of a file; ``file_name`` says its format by its ending, ``origin`` where it came from."""
    refuse_lfs_pointer(data, origin)
    with tempfile.TemporaryDirectory(prefix="retrieval-eval-") as folder:
        place = Path(folder) / file_name
        place.write_bytes(data)
        run = Run.read(Fetched(place, origin), columns=columns)
        len(run.query_ids)  # a TREC file is read when it is asked for, and it goes with the folder
    return run


def refuse_lfs_pointer(data: bytes, origin: str) -> None:
    """Raise DataError where a file is not what it is called but a pointer to it."""
    if data.startswith(_LFS):
        raise DataError(
            f"{origin} is a Git LFS pointer, not the run itself: fetch the file with `git lfs pull`, or keep runs out "
            "of LFS (in .gitattributes); a baseline at a commit is read as it is stored there"
        )


def run_at(url: str, columns: Mapping[str, str] | None = None) -> Run:
    """The run at a URL such as ``s3://bucket/main.run.jsonl.gz``."""
    return run_of_bytes(_bytes_at(url), url.partition("?")[0].rstrip("/").rpartition("/")[2], url, columns)


def _bytes_at(url: str) -> bytes:
    """What lies at a URL that fsspec knows; DataError with the reason where it cannot be read."""
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise DataError(
            f"{url}: URLs need the package fsspec; install it with: pip install 'pytest-retrieval-eval[fsspec]'"
        ) from None
    try:
        with fsspec.open(url, "rb") as file:
            data: bytes = file.read()
    except FileNotFoundError:
        raise AbsentError(f"{url}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{url} is a folder; expected a file") from None
    except ImportError as error:  # the package of this kind of store
        raise DataError(f"{url}: {error}") from None
    except Exception as error:  # every store has exceptions of its own
        raise DataError(f"{url}: cannot read the file: {type(error).__name__}: {error}") from error
    return data
