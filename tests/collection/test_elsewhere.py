"""Runs at URLs, with fsspec and without it."""

from __future__ import annotations

import sys

import pytest

from pytest_retrieval_eval.collection.runs.elsewhere import run_of_bytes
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.settings import is_url

RUN = Run.of({"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 1.0}}, depth=7)


@pytest.fixture
def bucket():
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()


@pytest.mark.parametrize("name", ["main.run.jsonl.gz", "main.run.jsonl", "main.trec", "main.trec.xz"])
def test_every_format(bucket, tmp_path, name):
    RUN.save(tmp_path / name) if "trec" not in name else _trec(tmp_path / name)
    bucket.pipe(f"/stored/{name}", (tmp_path / name).read_bytes())
    run = Run.read(f"memory://stored/{name}")
    assert run.digest == RUN.digest
    assert run.name == "main"
    assert run.source == f"memory://stored/{name}"


def _trec(path):
    with pytest.warns(UserWarning, match="loses"):
        RUN.save(path)


def test_a_path_is_a_path(tmp_path):
    RUN.save(tmp_path / "main.run.jsonl")
    assert Run.read(tmp_path / "main.run.jsonl").digest == RUN.digest
    assert Run.read(str(tmp_path / "main.run.jsonl")).digest == RUN.digest


def test_faults_are_named_by_the_url(bucket):
    bucket.pipe("/bad.trec", b"q1 Q0 a\n")
    bucket.pipe("/lfs.run.jsonl.gz", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    bucket.pipe("/cut.run.jsonl.gz", b"\x1f\x8b\x08")
    for url, said in {
        "memory://bad.trec": "memory://bad.trec:1: ",
        "memory://cut.run.jsonl.gz": "memory://cut.run.jsonl.gz: the gzip file is cut off",
        "memory://lfs.run.jsonl.gz": "memory://lfs.run.jsonl.gz is a Git LFS pointer",
        "memory://none.trec": "memory://none.trec: there is no such file",
        "nonsense://none.trec": "nonsense://none.trec: cannot read the file: ValueError",
    }.items():
        with pytest.raises(DataError) as error:
            Run.read(url)
        assert str(error.value).startswith(said)


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        DataError, match=r"^s3://b/a.trec: URLs need the package fsspec; .*pytest-retrieval-eval\[fsspec\]"
    ):
        Run.read("s3://b/a.trec")


def test_warnings_name_the_origin():
    rising = b"".join(f"q1 Q0 d{i} {i} {i}.0 t\n".encode() for i in (1, 2, 3))
    run = run_of_bytes(rising, "a.trec", "git:abc:a.trec")
    assert all(warning.startswith("git:abc:a.trec: ") for warning in run.warnings)
    assert run.warnings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://b/a", True),
        ("file:///a", True),
        ("a://", False),
        ("C:/a", False),
        ("x=s3://b/a", False),
        ("git:main", False),
    ],
)
def test_what_is_a_url(text, expected):
    assert is_url(text) is expected
