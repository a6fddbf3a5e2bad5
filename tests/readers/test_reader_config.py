from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from fakeserver import FakeServer, says

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.absent import AbsentReaderError
from pytest_retrieval_eval.readers.callable_reader import CallableReader
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.models.fid import FidReader
from pytest_retrieval_eval.readers.models.plan import Shapes
from pytest_retrieval_eval.readers.models.transformers_reader import CausalReader, Seq2seqReader
from pytest_retrieval_eval.readers.reading import Item, Passage
from pytest_retrieval_eval.readers.services.server import ServerReader
from pytest_retrieval_eval.readers.session import key_of


def answer(query, texts):
    return texts[0]


@pytest.mark.parametrize(
    ("kind", "cls"), [("transformers", Seq2seqReader), ("fid", FidReader), ("causal", CausalReader)]
)
def test_a_mapping_makes_the_reader_of_its_kind(kind, cls, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    settings = {
        "kind": kind,
        "model": "model",
        "prompt": {"untitled": "text: {text}"},
        "dtype": "float32",
        "max_new_tokens": 7,
        "shapes": {"policy": "bucket", "tokens": 99},
        "stop": ["\n"],
    }
    reader = reader_from(settings, root=tmp_path)
    assert type(reader) is cls
    direct = cls(
        tmp_path / "model",
        prompt={"untitled": "text: {text}"},
        dtype="float32",
        max_new_tokens=7,
        shapes=Shapes("bucket", tokens=99),
        stop=["\n"],
    )
    assert reader.identity == direct.identity
    assert reader.identity["files"].keys() == {"config.json"}


def test_a_callable_by_its_import_string():
    reader = reader_from({"kind": "callable", "function": f"{__name__}:answer", "identity": "first, v1"})
    assert isinstance(reader, CallableReader)
    assert [reading.text for _, reading in reader.read([Item("q", (Passage("x"),))])] == ["x"]
    assert isinstance(reader_from({"kind": "callable", "function": answer}), CallableReader)


def test_a_server_with_a_budget(tmp_path):
    with FakeServer([says("Ann")]) as server:
        settings = {
            "kind": "server",
            "url": server.url,
            "model": "m",
            "prompt": "{documents} {query}",
        }
        budget = {"calls": 1, "cost": 2.5, "price": {"input": 1.0, "output": 2}, "path": "spent"}
        reader = reader_from({**settings, "budget": budget}, root=tmp_path)
        found = dict(reader.read([Item("q1", (Passage("x"),)), Item("q2", ())]))
        reader.close()
    other = ServerReader("http://other/v1", "m", prompt={"prompt": "{documents} {query}"})
    assert sorted(reading.status for reading in found.values()) == ["error", "ok"]
    assert (tmp_path / "spent").exists()
    assert reader.identity == other.identity


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "it has no kind; expected one of transformers, fid, causal, server, callable, ray"),
        ({"kind": "transformer"}, "kind is 'transformer'; did you mean transformers"),
        ({"kind": 3}, "kind is 3"),
        ({"kind": "fid"}, "kind fid needs the setting 'model'"),
        ({"kind": "fid", "model": "m", "chat": True}, "there is no setting 'chat' for kind fid"),
        ({"kind": "fid", "model": "m", "tokenizer": "t"}, "there is no setting 'tokenizer' for kind fid"),
        ({"kind": "causal", "model": "m", "sytem": "x"}, "did you mean system"),
        ({"kind": "fid", "model": 7}, "model is 7; expected the folder of a model"),
        ({"kind": "fid", "model": "m", "max_new_tokens": "7"}, "max_new_tokens is '7'; expected an integer"),
        ({"kind": "fid", "model": "m", "max_new_tokens": True}, "max_new_tokens is True; expected an integer"),
        ({"kind": "fid", "model": "m", "shapes": "fixd"}, "did you mean fixed"),
        ({"kind": "fid", "model": "m", "shapes": {"row": 4}}, "shapes has no 'row'; did you mean rows"),
        ({"kind": "fid", "model": "m", "shapes": {"rows": "4"}}, "rows of the shapes is '4'"),
        ({"kind": "fid", "model": "m", "dtype": "bf16"}, "dtype 'bf16'"),
        ({"kind": "server", "model": "m"}, "kind server needs the setting 'url'"),
        ({"kind": "server", "url": "u", "model": "m", "budget": {"cals": 3}}, "for budget; did you mean calls"),
        (
            {"kind": "server", "url": "u", "model": "m", "budget": {"price": {"input": 1}}},
            "price needs the setting 'output'",
        ),
        ({"kind": "server", "url": "u", "model": "m", "seed": True}, "seed is True; expected an integer"),
        ({"kind": "callable"}, "kind callable needs the setting 'function'"),
        ({"kind": "callable", "function": "nowhere"}, "expected MODULE:NAME"),
        ({"kind": "callable", "function": "nowhere_at_all:f"}, "cannot be had: ModuleNotFoundError"),
        ({"kind": "callable", "function": f"{__name__}:f"}, "cannot be had: AttributeError"),
    ],
)
def test_mappings_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        reader_from(settings)


@pytest.mark.parametrize("absent", ["torch", "transformers"])
def test_an_absent_package_names_the_extra(absent, monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    here = importlib.import_module

    def not_here(name):
        if name == absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return here(name)

    monkeypatch.setattr(importlib, "import_module", not_here)
    reader = FidReader(tmp_path, device="cpu", dtype="float32")
    message = rf"a reader of kind 'fid' needs the package {absent}; install it with: .*pytest-retrieval-eval\[erag\]"
    with pytest.raises(AbsentReaderError, match=message):
        list(reader.read([Item("q", ())]))


def test_the_readers_and_an_identity_cost_no_torch(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    probe = (
        "import sys\n"
        "from pytest_retrieval_eval.readers.config import reader_from\n"
        f"reader = reader_from({{'kind': 'fid', 'model': {str(tmp_path)!r}, 'dtype': 'float32'}})\n"
        "print(reader.identity['dtype'], *[name for name in ('torch', 'transformers', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "float32\n"


class Named:
    """A function that looks like any other of its class."""

    def __call__(self, query, texts):
        return ""

    def __repr__(self):
        return "Named()"


def test_settings_are_one_reader_where_they_are_equal_and_not_where_they_look_alike():
    one, other = Named(), Named()
    settings = {"kind": "callable", "function": one, "identity": "v1"}
    assert key_of(settings, None) == key_of({"identity": "v1", "function": one, "kind": "callable"}, None)
    assert key_of(settings, None) != key_of({**settings, "function": other}, None)
    assert key_of({"kind": "fid", "chat": 1}, None) != key_of({"kind": "fid", "chat": True}, None)
    assert key_of({"kind": "fid", "shapes": {"rows": [1]}}, Path("a")) == key_of(
        {"kind": "fid", "shapes": {"rows": [1]}}, Path("a")
    )
    assert key_of({"kind": "fid"}, Path("a")) != key_of({"kind": "fid"}, Path("b"))
