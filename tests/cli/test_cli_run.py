"""``run``: what is asked, what is written, what failures do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_retrieval_eval.collection.runs.run import Run

SEARCH = "def search(text):\n    return [(text.split()[-1], 2.0), ('z', 1.0)]\n"


@pytest.fixture
def dataset(files):
    return files.dataset()


@pytest.fixture
def ask(program, dataset, module):
    """Run a retriever: the source of its module, its name in there, and more arguments."""

    def call(source, name="search", *arguments, output="cand.run.jsonl.gz"):
        retriever = f"{module(source)}:{name}"
        return program("run", "--dataset", dataset, "--retriever", retriever, "-o", output, *arguments)

    return call


def test_every_query_is_asked_and_the_run_is_stored(ask, here):
    result = ask(SEARCH)
    assert (result.status, result.out) == (0, "")
    run = Run.read("cand.run.jsonl.gz")
    assert run.query_ids == ("q1", "q2", "q3", "q4", "q5", "q6")
    assert run.ranking("q3").docs == ["q3", "z"]
    assert run.ranking("q3").scores == [2.0, 1.0]
    assert run.depth == 100
    assert set(run.seconds) == set(run.query_ids)
    assert re.fullmatch(r"6 queries in [\d.]+ s, 0 failed; wrote cand.run.jsonl.gz\n", result.err)
    assert [path.name for path in here.iterdir() if "cand" in path.name] == ["cand.run.jsonl.gz"]


def test_the_run_says_where_it_comes_from(ask):
    ask(SEARCH, "search", "--depth", "7")
    header = Run.read("cand.run.jsonl.gz").header
    assert header["retriever"].endswith(":search")
    assert header["dataset"] == "small"
    assert header["labels"].startswith("sha256:")
    assert Run.read("cand.run.jsonl.gz").depth == 7


def test_what_is_stored_can_be_evaluated(ask, program, dataset):
    ask("def search(text):\n    return {'q1': ['a'], 'q2': ['b']}.get(text.split()[-1], [])\n")
    result = program("evaluate", dataset, "cand.run.jsonl.gz", "-m", "hit@1")
    assert result.values == {("all", "hit@1"): 0.5}


def test_a_split_asks_what_it_judges_and_what_has_no_answer(ask):
    assert ask(SEARCH, "search", "--split", "dev").status == 0
    assert Run.read("cand.run.jsonl.gz").query_ids == ("q1", "q2", "q5")
    assert "did you mean dev?" in ask(SEARCH, "search", "--split", "dve").err


def test_depth(ask):
    ask("def search(text, limit):\n    return [str(i) for i in range(limit + 5)]\n", "search", "--depth", "3")
    assert Run.read("cand.run.jsonl.gz").returned.tolist() == [3] * 6


def test_batches(ask):
    source = "def search(texts):\n    return [[f'batch-of-{len(texts)}', text.split()[-1]] for text in texts]\n"
    assert ask(source, "search", "--batch-size", "4").status == 0
    run = Run.read("cand.run.jsonl.gz")
    assert run.ranking("q4").docs == ["batch-of-4", "q4"]
    assert run.ranking("q5").docs == ["batch-of-2", "knows"]


def test_asynchronous_retrievers(ask):
    source = (
        "import asyncio\n"
        "running = most = 0\n"
        "async def search(text):\n"
        "    global running, most\n"
        "    running += 1\n"
        "    most = max(most, running)\n"
        "    await asyncio.sleep(0.01)\n"
        "    running -= 1\n"
        "    return [f'most-{most}']\n"
    )
    assert ask(source, "search", "--concurrency", "2").status == 0
    run = Run.read("cand.run.jsonl.gz")
    assert {run.ranking(query).docs[0] for query in run.query_ids} == {"most-2"}


def test_attributes_and_objects_with_methods(ask):
    source = (
        "class Index:\n"
        "    def lookup(self, text): return ['a']\n"
        "    def invoke(self, text): return ['b']\n"
        "class Box: index = Index()\n"
    )
    assert ask(source, "Box.index.lookup").status == 0
    assert Run.read("cand.run.jsonl.gz").ranking("q1").docs == ["a"]
    assert ask(source, "Box.index").status == 0
    assert Run.read("cand.run.jsonl.gz").ranking("q1").docs == ["b"]


def test_a_factory_is_called_only_when_asked(ask):
    source = (
        "class Index:\n    def invoke(self, text): return ['made']\n"
        "def make():\n    return lambda text: ['made']\n"
        "async def later(): ...\n"
        "def broken():\n    raise RuntimeError('no index')\n"
    )
    for name in ("Index", "make"):
        refused = ask(source, name)
        assert refused.status == 2
        assert "add --factory" in refused.err
        assert ask(source, name, "--factory").status == 0
        assert Run.read("cand.run.jsonl.gz").ranking("q1").docs == ["made"]
    assert "is asynchronous; expected a plain function" in ask(source, "later", "--factory").err
    failed = ask(source, "broken", "--factory")
    assert (failed.status, len(failed.err.splitlines())) == (2, 1)
    assert "() failed: RuntimeError: no index (" in failed.err
    assert "expected something to call" in ask("x = 3\n", "x", "--factory").err


def test_trec_output_says_what_it_loses(ask):
    result = ask(SEARCH, output="cand.trec")
    assert result.status == 0
    assert "note: cand.trec: the TREC format cannot say, and loses: seconds" in result.err
    assert Run.read("cand.trec").ranking("q3").docs == ["q3", "z"]


FLAKY = "def search(text):\n    if '3' in text: raise TimeoutError('5 s')\n    return ['a']\n"


def test_a_retriever_that_fails_now_and_then(ask):
    result = ask(FLAKY)
    assert result.status == 1
    assert "note: the retriever failed on 1 query: q3: TimeoutError: 5 s (retriever_of" in result.err
    assert re.search(r"^6 queries in [\d.]+ s, 1 failed; wrote cand.run.jsonl.gz$", result.err, re.MULTILINE)
    assert "allow more with --allow-failures 1" in result.err
    (said,) = Run.read("cand.run.jsonl.gz").errors.values()
    assert re.fullmatch(r"TimeoutError: 5 s \(retriever_of_\w+\.py:2 in search\)", said)
    assert ask(FLAKY, "search", "--allow-failures", "1").status == 0


@pytest.mark.parametrize("allowed", [(), ("--allow-failures", "6")])
def test_a_retriever_that_always_fails_writes_nothing(ask, here, allowed):
    # case 35
    (here / "cand.run.jsonl.gz").write_bytes(b"the run of yesterday")
    result = ask("def search(text):\n    raise ConnectionError('refused')\n", "search", *allowed)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert "the retriever failed on 6 of 6 queries, and nothing was written: q1: ConnectionError: refused" in result.err
    assert (here / "cand.run.jsonl.gz").read_bytes() == b"the run of yesterday"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def search(text):\n    return {'a', 'b'}\n", "query 'q1'"),
        ("def search(text):\n    return [('a', float('nan'))]\n", "NaN"),
        ("def search(text):\n    raise SystemExit(0)\n", "the retriever left the program (SystemExit: 0)"),
        ("search = 7\n", "expected a callable from query text to hits"),
        ("def search(): ...\n", "takes no argument, and a retriever takes the text of a query"),
        ("raise SystemExit(0)\n", "cannot be imported: SystemExit: 0"),
        (
            "import no_such_package\n",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_package' (",
        ),
        ("def search(text)\n", "cannot be imported: SyntaxError"),
        ("def serch(text): ...\n", "has no 'search'; did you mean serch?"),
    ],
)
def test_retrievers_that_are_none(ask, here, source, said):
    result = ask(source)
    assert (result.status, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert said in result.err
    assert not (here / "cand.run.jsonl.gz").exists()


@pytest.mark.parametrize(
    ("retriever", "said"),
    [
        ("search", "expected MODULE:NAME, such as myapp.search:search"),
        ("no.such:search", "there is no module no; it is looked for in the current folder"),
        ("src/app.py:search", "expected a module, not a file; did you mean src.app:search?"),
    ],
)
def test_import_strings_that_name_nothing(program, dataset, retriever, said):
    result = program("run", "--dataset", dataset, "--retriever", retriever, "-o", "x.run.jsonl")
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert said in result.err


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("cand.jsn", "cand.jsn: a run is saved as .run.jsonl"),
        ("small", "small is a folder; expected the name of a file"),
        ("small/queries.jsonl/x.run.jsonl", "queries.jsonl is no folder"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_asked(ask, here, output, said):
    result = ask("import pathlib\npathlib.Path('asked').touch()\n" + SEARCH, output=output)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert said in result.err
    assert not (here / "asked").exists()


def test_an_empty_index_is_said(ask):
    result = ask("def search(text):\n    return []\n")
    assert result.status == 0
    assert "note: the retriever returned no document for any query: is its index empty?" in result.err


def test_queries_without_text_cannot_be_asked(program, files, module):
    files.write("bare/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    retriever = f"{module(SEARCH)}:search"
    result = program("run", "--dataset", "bare", "--retriever", retriever, "-o", "x.run.jsonl")
    assert result.status == 2
    assert "query 'q1' has no text" in result.err


def test_the_program_in_a_process_of_its_own(process, files, here):
    files.write("app/__init__.py", "")
    files.write("app/search.py", "def search(text):\n    print('noise on stdout')\n    return ['ä']\n")
    arguments = (
        "run",
        "--dataset",
        files.dataset(),
        "--retriever",
        "app.search:search",
        "-o",
        "new/x.run.jsonl",
    )
    assert process(*arguments, cwd=here).status == 0
    header, *rows = (here / "new" / "x.run.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(header)["retriever"] == "app.search:search"
    assert len(rows) == 6


def test_texts_are_kept_as_the_hits_have_them_else_as_the_dataset_has(ask, dataset):
    (Path(dataset) / "corpus.jsonl").write_text(
        '{"_id": "a", "title": "A", "text": "of the corpus"}\n{"_id": "b", "title": "B", "text": "of the corpus too"}\n'
    )
    source = """
def search(text):
    return [{"id": "a", "text": "as it was found"}, {"id": "b"}, {"id": "gone"}]
"""
    result = ask(source, "search", "--texts")
    assert result.status == 0
    assert "1 document has no text" in result.err
    kept = Run.read("cand.run.jsonl.gz").texts
    assert {doc: (each.title, each.text) for doc, each in kept.items()} == {
        "a": ("", "as it was found"),
        "b": ("B", "of the corpus too"),
    }
    ask(source)
    assert Run.read("cand.run.jsonl.gz").texts == {}


def test_texts_that_cannot_be_kept(ask):
    result = ask(SEARCH, "search", "--texts", output="cand.trec")
    assert (result.status, result.err) == (
        2,
        "pytest-retrieval-eval run: cand.trec: only a *.run.jsonl keeps texts (--texts)\n",
    )
    changing = "def search(text):\n    return [{'id': 'a', 'text': text}]\n"
    result = ask(changing, "search", "--texts")
    assert result.status == 2
    assert "the document 'a' comes with another text than for a query before" in result.err
