"""What several test modules share: where real data lies, and a small collection."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

# Before torch is imported, here or in a session that a test starts: small models stall on a busy machine where each
# process has a thread for every core, and no test asks the hub for anything.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "RETRIEVAL_TEST_DATA"
DATA = Path(os.environ.get(VARIABLE, ROOT.parent / "shared"))


QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"b": 2}, "q3": {"c": 1, "d": 1}, "q4": {"d": 3}}
TEXTS = {"q1": "first question", "q2": "second question", "q3": "third question", "q4": "fourth question"}
TAGS = {"q1": {"type": "policy"}, "q2": {"type": "faq"}, "q3": {"type": "policy"}, "q4": {"type": "faq"}}
#: recall@2 is 1, 1, .5 and 0: 0.625 in the mean
HITS = {"q1": ["a", "b"], "q2": ["c", "b"], "q3": ["c", "a", "d"], "q4": ["a", "b", "c"]}


def make_once(folder: Path) -> int:
    """Claim a value that costs a mark in a file; for many processes at once."""
    from pytest_retrieval_eval.once import Once

    def make() -> int:
        with (folder / "made").open("a") as file:
            file.write("x")
        return 7

    return Once(folder / "once").get("key", make)


def testdata(path: str) -> Path:
    """A file or folder of the conformance collections; the test is skipped where they are absent."""
    place = DATA / path
    if not place.exists():
        pytest.skip(f"{path} is not here; set {VARIABLE} to the folder of the conformance collections")
    return place


testdata.__test__ = False  # type: ignore[attr-defined]  # its name begins like a test's


def script(path: str) -> ModuleType:
    """A script of this repository as a module; its folder stays off the path of imports."""
    name = f"scripts.{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
