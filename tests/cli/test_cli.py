"""What holds for every command: wrong use, streams, encodings, start-up."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib import metadata

import pytest

from pytest_retrieval_eval.cli import parser


def words(commands, before=()):
    """The words of every command, and of every command of a command."""
    for command in commands:
        yield (*before, *command.name.split()), command
        yield from words(command.inner, (*before, command.name))


COMMANDS = dict(words(parser.COMMANDS.values()))


def test_version(program):
    result = program("--version")
    assert (result.status, result.err) == (0, "")
    assert result.out == f"pytest-retrieval-eval {metadata.version('pytest-retrieval-eval')}\n"


@pytest.mark.parametrize("command", [(), *COMMANDS])
def test_help(program, command):
    result = program(*command, "--help")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(" ".join(["usage: pytest-retrieval-eval", *command]))
    assert "None" not in result.out


def test_each_command_names_the_function_that_does_it():
    for command in COMMANDS.values():
        module, _, name = command.does.partition(":")
        assert command.inner or callable(getattr(importlib.import_module(f"pytest_retrieval_eval.cli.{module}"), name))


def test_help_of_the_program_says_what_the_exit_status_means(program):
    text = " ".join(program("--help").out.split())
    assert "0 all is well; 1 a gate failed" in text
    for name in parser.COMMANDS:
        assert f" {name} " in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "pytest-retrieval-eval: a command is missing: run, spans, evaluate, compare, "),
        (
            ("evalute", "a", "b"),
            "pytest-retrieval-eval: there is no command 'evalute'; did you mean evaluate?; see ",
        ),
        (
            ("evaluate",),
            "pytest-retrieval-eval evaluate: the following arguments are required: QRELS, RUN; see ",
        ),
        (("evaluate", "a", "b", "--per"), "pytest-retrieval-eval: unrecognized arguments: --per; see "),
        (("evaluate", "a", "b", "--trec", "--trec-complete"), "not allowed with argument --trec; see "),
        (("run", "--dataset", "d", "-o", "x"), "arguments are required: --retriever; see "),
        (("run", "--depth", "0"), "argument --depth: 0 is not a whole number of at least 1; see "),
        (("run", "--depth", "ten"), "argument --depth: 'ten' is not a whole number such as 10; see "),
        (("compare", "a", "b", "c", "--rule", "means"), "argument --rule: invalid choice: 'means'"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(program, arguments, said):
    result = program(*arguments)
    assert (result.status, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_startup_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from pytest_retrieval_eval.cli import main\n"
        "for command in ([], ['run'], ['evaluate'], ['compare']):\n"
        "    main([*command, '--help'])\n"
        "main(['--version'])\n"
        "print(sorted({'numpy', 'scipy', 'yaml', 'pytest', 'pluggy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_pytest_is_never_imported(files):
    qrels, run = files.qrels(), files.run("run.trec", {"q1": ["a"]})
    code = (
        "import sys\n"
        "from pytest_retrieval_eval.cli import main\n"
        f"main(['evaluate', {qrels!r}, {run!r}])\n"
        f"main(['compare', {qrels!r}, {run!r}, {run!r}, '--gate', 'hit@1 >= baseline'])\n"
        "print('pytest' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "utf-16"},
    ],
    ids=["C locale", "ascii", "utf-16"],
)
def test_output_is_utf8_under_any_locale(process, files, environment):
    qrels = files.qrels(qrels={"größe-寸法": {"déjà": 1}})
    run = files.run("run.trec", {"größe-寸法": ["déjà"]})
    result = process("evaluate", qrels, run, "-m", "hit@1", "--per-query", environment=environment)
    assert result.status == 0
    assert result.out == "größe-寸法\thit@1\t1.0\nall\thit@1\t1.0\n"


def test_a_file_name_that_is_no_text_can_be_named_in_an_error(process, files):
    result = process("evaluate", files.qrels(), b"no-\xff.trec".decode(errors="surrogateescape"))
    assert result.status == 2
    assert "no-\\udcff.trec: there is no such file" in result.err


def test_the_streams_are_given_back_as_they_were(program, files):
    before = sys.stdout.encoding, sys.stdout.errors
    program("evaluate", files.qrels(), files.run("run.trec", {"q1": ["a"]}))
    assert (sys.stdout.encoding, sys.stdout.errors) == before


def test_a_reader_that_leaves_early_is_no_error(files):
    many = {f"q{i}": {"a": 1} for i in range(20_000)}
    qrels, run = files.qrels(qrels=many), files.run("run.trec", {query: ["a"] for query in many})
    command = [sys.executable, "-m", "pytest_retrieval_eval.cli", "evaluate", qrels, run, "--per-query"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        err = running.stderr.read().decode()
        assert running.wait(60) == 0
    assert [line for line in err.splitlines() if not line.startswith("note: ")] == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is Linux's")
def test_a_full_disk_is_one_sentence(files):
    qrels, run = files.qrels(), files.run("run.trec", {"q1": ["a"]})
    command = [sys.executable, "-m", "pytest_retrieval_eval.cli", "evaluate", qrels, run]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert errors == ["pytest-retrieval-eval evaluate: the result cannot be written: No space left on device"]


def test_a_fault_of_ours_has_a_traceback_and_is_no_failed_gate(program, files, monkeypatch):
    def broken(*_: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr("pytest_retrieval_eval.cli.evaluating.evaluate_run", broken)
    result = program("evaluate", files.qrels(), "x")
    assert result.status == 2
    assert "RuntimeError: a bug" in result.err
    assert "Traceback" in result.err


def test_an_interrupt_is_no_traceback(program, files, monkeypatch):
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_retrieval_eval.cli.evaluating.evaluate_run", interrupted)
    result = program("evaluate", files.qrels(), "x")
    assert (result.status, result.out) == (130, "")
    assert result.err == "pytest-retrieval-eval evaluate: interrupted; nothing was written\n"


def test_what_the_system_refuses_is_one_sentence(program, files, monkeypatch):
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied", "secret")

    monkeypatch.setattr("pytest_retrieval_eval.cli.evaluating.evaluate_run", refused)
    result = program("evaluate", files.qrels(), "x")
    assert (result.status, result.err) == (2, "pytest-retrieval-eval evaluate: secret: Permission denied\n")
