"""``correlate`` and ``efficiency`` on the command line."""

from __future__ import annotations

import json

import pytest

READER = '''
calls = []

def answer(query, texts):
    """The first word of the query, if a text has it."""
    calls.append(query)
    word = query.split()[0]
    return word if any(word in text for text in texts) else "unknown"

def make():
    from pytest_retrieval_eval.readers.callable_reader import CallableReader
    return CallableReader(answer, identity="first word, 1")
'''
DOCS = {"a": "red and round", "b": "blue and square", "c": "green", "d": "nothing at all"}


@pytest.fixture
def studied(files, module):
    """A dataset of six queries with answers, two runs, and the name of the module of a reader."""
    colours = ["red", "blue", "green", "red", "blue", "black"]
    rows = [{"_id": f"q{n}", "text": f"{colour} thing {n}"} for n, colour in enumerate(colours)]
    files.write("set/queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    files.write("set/corpus.jsonl", "".join(json.dumps({"_id": d, "text": t}) + "\n" for d, t in DOCS.items()))
    answers = [{"query_id": f"q{n}", "answers": [colour]} for n, colour in enumerate(colours)]
    files.write("set/answers.jsonl", "".join(json.dumps(row) + "\n" for row in answers))
    relevant = {"q0": "a", "q1": "b", "q2": "c", "q3": "a", "q4": "d", "q5": "d"}
    judged = "".join(f"{query}\t{doc}\t1\n" for query, doc in relevant.items())
    files.write("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + judged)
    good = {"q0": ["a", "b"], "q1": ["d", "b"], "q2": ["d", "a"], "q3": ["b", "a"], "q4": ["b", "d"], "q5": ["a", "b"]}
    files.run("good.trec", good)
    files.run("poor.trec", {query: ["d", "c"] for query in good})
    files.write("judge.txt", "".join(f"q{n} 0 {'abcabd'[n]} 1\n" for n in range(6)))
    return module(READER)


def rows_of(out):
    return [line.split() for line in out.splitlines()]


def test_correlate_as_text_json_and_chart(program, studied, here):
    pytest.importorskip("matplotlib")
    files = ("set", "good.trec", "poor.trec", "--reader", f"words={studied}:make")
    common = (*files, "-k", "1,2", "-m", "hit, precision", "--grades", "judge=judge.txt", "--resamples", "50")
    shown = program("correlate", *common, "--plot", "out.svg")
    assert (shown.status, shown.errors[-1]) == (0, "wrote out.svg")
    assert (here / "out.svg").read_text().startswith("<?xml")
    found = program("correlate", *common, "--json")
    assert found.status == 0
    assert "0 misses, 0 calls" in found.err  # what the first command read is in the cache
    document = json.loads(found.out)
    cells = {(c["run"], c["k"], c["labels"], c["measure"]): c for c in document["cells"]}
    assert len(cells) == 2 * 2 * 4 * 2
    hit = cells["good", 2, "erag", "hit@2"]
    assert (hit["tau"], hit["ceiling"], hit["n"], hit["auc"]) == (1.0, 1.0, 6, 1.0)  # it reads each text by itself
    table = [row for row in rows_of(shown.out) if row[:5] == ["words", "good", "2", "erag", "hit@2"]]
    assert table[0][5:7] == ["6", "1.000"]
    assert {c["labels"] for c in document["cells"]} == {"erag", "qrels", "contains(kilt)", "judge"}
    assert any(c["undefined"] and c["tau"] is None for c in document["cells"])
    assert "undefined: constant" in shown.out
    assert document["systems"][0]["pairs"] == 1
    assert document["answers"][0]["mean"] == pytest.approx(sum([1, 0, 0, 0, 1, 0]) / 6)


def test_correlate_says_what_it_cannot_use(program, studied, files):
    base = ("correlate", "set", "good.trec", "--reader", f"{studied}:make")
    assert (
        program(*base, "-k", "one")
        .err.splitlines()[-1]
        .endswith("-k one: expected whole numbers with commas, such as 1,3,5")
    )
    assert "two of --reader are called make" in program(*base, "--reader", f"{studied}:make").err
    assert "ndcg@3 has a cut-off" in program(*base, "-m", "ndcg@3").err
    assert "charts are SVG files" in program(*base, "--plot", "out.png").err
    result = program("correlate", "set", "good.trec", "--reader", "absent.yaml")
    assert (result.status, result.out) == (2, "")


def test_a_reader_from_a_file_of_settings(program, studied, files):
    settings = f"kind: callable\nfunction: {studied}:answer\nidentity: first word\n"
    files.write("readers/words.yaml", settings)
    result = program("correlate", "set", "good.trec", "--reader", "readers/words.yaml", "-k", "2", "--json")
    assert (result.status, json.loads(result.out)["readers"]) == (0, ["words"])


def test_efficiency_as_text_and_json(program, studied):
    common = ("efficiency", "set", "good.trec", "--reader", f"{studied}:make", "-k", "2", "--max-queries", "4")
    shown, found = program(*common), program(*common, "--json")
    assert shown.status == found.status == 0
    document = json.loads(found.out)
    assert [(row["level"], row["items"], row["cache_hits"]) for row in document["rows"]] == [
        ("document", 8, 0),
        ("end to end", 4, 0),
        ("closed book", 4, 0),
    ]
    assert [row[1] for row in rows_of(shown.out) if row[:1] == ["make"]] == ["document", "end", "closed"]
    assert "no list of the run" in program(*common[:-3], "3").err
