"""Installed is not used: an unused plugin imports nothing heavy, writes nothing, prints nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("numpy", "scipy", "yaml", "torch", "pandas", "filelock", "tqdm", "bm25s", "transformers")
PROBE = """
import json, sys, pytest
code = pytest.main(sys.argv[1:])
print("MODULES " + json.dumps(sorted(sys.modules)))
sys.exit(0 if code == 5 else int(code))
"""


def modules_of_a_session(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    text = done.stdout
    line = next(line for line in text.splitlines() if line.startswith("MODULES "))
    return set(json.loads(line.removeprefix("MODULES "))), text


@pytest.mark.parametrize("folder", ["empty", "unrelated"])
def test_an_unused_plugin_imports_nothing_heavy(tmp_path, folder, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    if folder == "unrelated":
        (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    with_plugin, printed = modules_of_a_session(tmp_path)
    without, _ = modules_of_a_session(tmp_path, "-p", "no:retrieval_eval")
    more = with_plugin - without
    assert not [name for name in HEAVY if name in with_plugin and name not in without]
    assert sorted(name for name in more if not name.startswith("pytest_retrieval_eval")) == []
    assert len(more) <= 17
    assert "retrieval gates" not in printed
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == ({"test_it.py"} if folder == "unrelated" else set())


def test_the_plugin_is_imported_without_the_rewriting_of_asserts(tmp_path):
    probe = (
        "import sys, pytest\n"
        "assert pytest.main(['-p', 'no:cacheprovider', 'test_it.py']) == 0\n"
        "from pytest_retrieval_eval.plugin import PlainImports\n"
        "loader = sys.modules['pytest_retrieval_eval.gates.decide'].__loader__\n"
        "print(type(loader).__name__, PlainImports in sys.meta_path)\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it():\n    import pytest_retrieval_eval.gates.decide\n")
    done = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "SourceFileLoader False"


def test_importing_the_package_imports_no_numpy():
    probe = "import sys, pytest_retrieval_eval; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_every_public_name_can_be_imported():
    import pytest_retrieval_eval

    for name in pytest_retrieval_eval.__all__:
        assert getattr(pytest_retrieval_eval, name) is not None
    assert set(pytest_retrieval_eval.__all__) <= set(dir(pytest_retrieval_eval))


def test_an_unknown_public_name_is_an_attribute_error():
    import pytest_retrieval_eval

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pytest_retrieval_eval.nothing  # noqa: B018
