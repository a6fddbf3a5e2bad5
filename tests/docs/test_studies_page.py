"""The how-to of the studies shows what the program prints."""

from __future__ import annotations

import re
import shlex
import shutil

import pages
import pytest
from support import ROOT

from pytest_retrieval_eval.cli import main

PAGE = ROOT / "docs" / "how-to" / "correlate.md"


def test_the_correlation_on_the_page_is_real(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "examples" / "handbook" / "eval", tmp_path / "eval")
    (module,) = [block for block in pages.blocks(PAGE, "python") if block.name]
    (tmp_path / "toy_reader.py").write_text(module.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ((command, expected),) = pages.sessions(PAGE)
    program, *arguments = shlex.split(command.replace(f"{module.name.removesuffix('.py')}:", "toy_reader:"))
    assert program == "pytest-retrieval-eval"
    assert main(arguments) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("command", ["correlate", "efficiency"])
def test_every_option_is_on_a_page(command, capsys):
    main([command, "--help"])
    options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", capsys.readouterr().out))
    reference = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    section = reference.split(f"## {command}\n")[1].split("\n## ")[0]
    told = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", section))
    assert options - {"--help"} == told
