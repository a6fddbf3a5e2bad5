from __future__ import annotations

import hashlib
import os
import time

import pytest

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.models import weights


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    for name in (
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "chat_template.jinja",
        "README.md",
        "optimizer.pt",
    ):
        (place / name).write_text(name)
    return place


def test_files_that_make_the_model_are_named_by_their_digests(folder, tmp_path):
    found = weights.model_identity(folder, None)
    names = ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]
    assert found == {"files": {name: hashlib.sha256(name.encode()).hexdigest() for name in names}}
    folder.rename(tmp_path / "elsewhere")
    assert weights.model_identity(tmp_path / "elsewhere", None) == found


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_change_of_one_changes_it(folder, name):
    before = weights.model_identity(folder, None)
    (folder / name).write_text("other")
    assert weights.model_identity(folder, None) != before


def test_an_adapter_does_not_say_what_it_adapts(folder):
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(SettingsError, match=r"is an adapter, .*: merge the two"):
        weights.model_identity(folder, None)


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"x" * (weights._LARGE + 1))
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))
    return path


def test_a_large_file_is_read_once(large, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    digest = weights.file_digest(large)
    assert digest == hashlib.sha256(large.read_bytes()).hexdigest()
    (record,) = (tmp_path / "cache").rglob("*.json")
    record.write_text(record.read_text().replace(digest, "kept"))
    assert weights.file_digest(large) == "kept"
    large.write_bytes(b"y" * (weights._LARGE + 1))
    assert weights.file_digest(large) == hashlib.sha256(large.read_bytes()).hexdigest()


def test_a_file_that_was_written_over_and_given_its_former_times_is_read_again(large, tmp_path):
    before = large.stat()
    weights.file_digest(large, tmp_path / "kept")
    with large.open("r+b") as file:
        file.write(b"other weights")
    os.utime(large, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert large.stat().st_mtime_ns == before.st_mtime_ns
    assert weights.file_digest(large, tmp_path / "kept") == hashlib.sha256(large.read_bytes()).hexdigest()


def test_a_file_that_was_just_written_is_not_remembered(large, tmp_path):
    os.utime(large)
    weights.file_digest(large, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_record_that_cannot_be_read_or_written_costs_time_only(large, tmp_path):
    kept = tmp_path / "kept"
    digest = weights.file_digest(large, kept)
    (record,) = kept.iterdir()
    record.write_text("[1")
    assert weights.file_digest(large, kept) == digest
    kept = tmp_path / "a file"
    kept.write_text("")
    assert weights.file_digest(large, kept) == digest


def test_a_repository_is_named_by_its_commit(tmp_path, monkeypatch):
    commit = "0123456789abcdef" * 2 + "01234567"
    assert weights.model_identity("someone/reader", commit) == {"model": "someone/reader", "revision": commit}
    cache = tmp_path / "hub" / "models--someone--reader"
    (cache / "snapshots" / commit).mkdir(parents=True)
    (cache / "snapshots" / commit / "config.json").write_text("{}")
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(commit)
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert weights.model_identity("someone/reader", None) == {"model": "someone/reader", "revision": commit}


@pytest.mark.parametrize("name", ["./models/reader", "/models/reader", "a/b/c", "~/reader"])
def test_what_cannot_be_a_repository_is_a_folder_that_is_not_here(name):
    with pytest.raises(AbsentReaderError, match="there is no such folder"):
        weights.model_identity(name, None)
