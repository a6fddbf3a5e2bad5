"""`pool report` and `judge validate`: what they print, their exit status, and the page."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser

import pytest
from support import ROOT

from pytest_retrieval_eval import Run

WORLD = {
    "lex-1": {"q1": ["a", "x"], "q2": ["b", "x"]},
    "lex-2": {"q1": ["x", "y"], "q2": ["b", "y"]},
    "dense<i>": {"q1": ["c", "d"], "q2": ["b", "e"]},
}
GOLD = {"q1": {"a": 1, "c": 2, "d": 1, "x": 0, "y": 0}, "q2": {"b": 1, "e": 1, "x": 0, "y": 0}}
FAMILIES = {name: {"family": name[:3], "dim": len(name)} for name in WORLD}


def qrels(path, grades):
    path.write_text("".join(f"{q} 0 {d} {g}\n" for q, row in grades.items() for d, g in row.items()))
    return path


@pytest.fixture
def world(tmp_path):
    """Three runs, their judgments and tags."""
    for name, hits in WORLD.items():
        rows = [{"query_id": query, "docs": docs} for query, docs in hits.items()]
        lines = [
            f"{row['query_id']} Q0 {doc} {rank} {9 - rank} x\n" for row in rows for rank, doc in enumerate(row["docs"])
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    qrels(tmp_path / "qrels.txt", GOLD)
    qrels(tmp_path / "people.txt", {q: {d: min(g, 1) for d, g in row.items()} for q, row in GOLD.items()})
    qrels(tmp_path / "small.txt", {"q1": {"a": 1, "x": 0}, "q2": {"b": 1, "x": 0}})
    (tmp_path / "tags.json").write_text(json.dumps(FAMILIES))
    return tmp_path


def report(program, world, *more):
    runs = [str(world / f"{name}.trec") for name in WORLD]
    return program("pool", "report", str(world / "qrels.txt"), *runs, "-m", "precision@2", "--depth", "2", *more)


def test_the_report_says_all_of_it(program, world):
    done = report(
        program, world, "--tags", str(world / "tags.json"), "--human", str(world / "people.txt"), "--price", "0.5"
    )
    assert done.status == 0
    text = " ".join(done.out.split())
    assert "9 different pairs of 12: 25.0 % need no judgment of their own" in text
    assert "dense<i> 1.0000" in text
    assert "without den, dense<i> (+0.5000) falls behind lex-1 (−0.2500)" in text
    assert re.search(r"den 1 3 3 1 dense<i> −0.7500 0", text)
    assert "8 of 9 pairs have the same grade: 88.9 %" in text
    assert "3 in the same order" in text
    assert re.search(r"dim 8 5 1.0000 / 0.3750 2 \+0.6250", text)
    assert re.search(r"1 4 6 2.00 3.00", text)


def test_the_report_as_json_and_as_a_page_that_loads_nothing(program, world):
    pytest.importorskip("jinja2")
    page = world / "report.html"
    done = report(program, world, "--json", "--html", str(page))
    found = json.loads(done.out)
    assert (found["reuse"]["unique"], found["table"]["rows"][0]["name"]) == (9, "dense<i>")
    assert (found["reuse"]["share"], found["stability"], found["pairs"]) == (0.25, None, None)
    text = page.read_text()
    seen = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append(tag)
            assert not {"src", "href"} & {name for name, _ in attributes}

    Reader().feed(text)
    assert seen.count("svg") == 2
    assert seen.count("polyline") == 3
    assert seen.count("circle") == 3
    assert "script" not in seen
    assert "i" not in seen  # names are escaped
    assert "dense&lt;i&gt;" in text
    assert "@import" not in text


class Page(HTMLParser):
    """The structure of a page: what is open must be closed in its order, and what a browser would load or run."""

    VOID = frozenset({"meta", "line", "circle", "polyline"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.tables, self.loads = [], [], {}, [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [name for name, _ in attributes if name in ("src", "href", "xlink:href", "data", "action")]
        self.loads += [name for name, _ in attributes if name.startswith("on")]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append((tag, dict(attributes).get("scope")))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data.strip())


HOSTILE = "<script>alert('\"&amp;')</script>"


def test_the_page_is_sound_and_what_is_hostile_in_it_is_text(program, tmp_path):
    pytest.importorskip("jinja2")
    names = ("lex<b>", "dense&lt;'\"")
    queries = (f"q1{HOSTILE}", "q2", "</table>")
    paths = [str(tmp_path / f"{name}.run.jsonl") for name in names]
    for number, path in enumerate(paths):
        Run.of({query: [f"{number}{HOSTILE}", "x"] for query in queries}).save(path)
    grades = {queries[0]: {f"0{HOSTILE}": 1, "x": 0}, "q2": {f"1{HOSTILE}": 1}, "</table>": {"x": 0}}
    (tmp_path / "qrels.json").write_text(json.dumps(grades))
    page = tmp_path / "report.html"
    done = program(
        "pool", "report", str(tmp_path / "qrels.json"), *paths, "-m", "precision@1", "--depth", "2", "--html", str(page)
    )
    assert done.status == 0, done.err
    found = Page(page.read_text(encoding="utf-8"))
    assert found.loads == []
    assert not {"script", "link", "img", "iframe", "b", "i", "object", "base"} & set(found.tags)
    assert found.texts["title"] == ["The judged pool"]
    assert set(names) < set(found.texts["th"])
    assert len(found.tables) == len(found.texts["caption"]) == 3
    for table in found.tables:
        assert set(table[0]) == {("th", "col")}
        assert all(row[0] == ("th", "row") and {tag for tag, _ in row[1:]} == {"td"} for row in table[1:])
        assert len({len(row) for row in table}) == 1
    # The query without anything relevant is named, as text.
    said = [text for text in found.texts["p"] if "no say" in text]
    assert said == ["1 judged query has no say in precision@1, since no judged document is relevant to it: </table>"]
    assert "url(" not in page.read_text()
    assert "http" not in page.read_text()


def test_the_queries_that_count_in_no_mean_are_named(program, world):
    qrels(world / "qrels.txt", {**GOLD, **{f"e{n:02}": {"x": 0} for n in range(22)}})
    text = " ".join(report(program, world).out.split())
    assert "over 2 queries 22 judged queries have no say in precision@2, since no judged document is relevant" in text
    assert "to them: e00, e01, e02" in text
    assert "e19 and 2 more" in text
    table = json.loads(report(program, world, "--json").out)["table"]
    assert table["uncounted"] == [f"e{n:02}" for n in range(22)]


def test_without_jinja2_it_says_what_to_install(program, world, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = report(program, world, "--html", str(world / "report.html"))
    assert done.status == 2
    assert "pip install 'pytest-retrieval-eval[report]'" in done.err
    assert not (world / "report.html").exists()


def test_a_ranking_that_did_not_stay_is_status_1(program, world):
    done = report(program, world, "--before", str(world / "small.txt"))
    assert done.status == 1
    assert "the ranking by precision@2 did NOT stay" in done.out
    assert "lex-1 (+0.2500) falls behind dense<i> (−0.5000)" in done.out
    same = report(program, world, "--before", str(world / "people.txt"), "--min-tau", "1")
    assert same.status == 0
    assert "the ranking by precision@2 stayed: rho 1.000, tau 1.000" in same.out
    assert "tau has to reach 1" in same.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--min-tau", "0.5"], "--min-tau goes with --before"),
        (["--tags", "none.json"], "none.json"),
        (["-m", "precision@500"], None),
        (["-m", "recal@2"], "did you mean recall"),
    ],
)
def test_what_cannot_be_reported(program, world, more, said):
    done = report(program, world, *more)
    if said is None:
        assert done.status == 0  # TREC files declare no depth
    else:
        assert done.status == 2
        assert said in done.err


def test_tags_that_do_not_fit(program, world):
    path = world / "odd.json"
    for tags, said in (
        ({"lex-11": {}}, "there is no run 'lex-11'; did you mean lex-1?"),
        ({"lex-1": {"family": "a"}}, "the run lex-2 has no tag family, and others have one"),
        ({"lex-1": 3}, "expected an object with the tags of each run"),
    ):
        path.write_text(json.dumps(tags))
        done = report(program, world, "--tags", str(path))
        assert done.status == 2
        assert said in done.err


@pytest.mark.parametrize(
    ("command", "page"),
    [("pool report", "pool-report"), ("judge again", "pool-report"), ("judge validate", "judge-validation")],
)
def test_every_option_is_on_the_page(program, command, page):
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    help = program(*command.split(), "--help").out
    options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", help)) - {"--help", "--measure"}
    assert options
    assert options <= set(re.findall(r"--[a-z][a-z-]*", text))


# --- judge validate


def labels(folder, tp, fn, tn, fp):
    sides = [(1, 1)] * tp + [(1, 0)] * fn + [(0, 0)] * tn + [(0, 1)] * fp
    for name, place in (("human.txt", 0), ("judge.txt", 1)):
        qrels(folder / name, {f"q{row}": {f"d{row}": side[place]} for row, side in enumerate(sides)})
    return "--human", str(folder / "human.txt"), "--grades", str(folder / "judge.txt")


def test_a_judge_is_validated_from_files(program, tmp_path):
    files = labels(tmp_path, 63, 7, 27, 3)
    done = program("judge", "validate", *files)
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0].split("\t") == ["figure", "value", "low", "high", "threshold", "n", "holds"]
    assert lines[2].split("\t") == ["tnr", "0.900", "0.744", "0.965", "0.85", "30", "yes, underpowered"]
    assert "a judge whose TPR and TNR are .90 passes with such a sample in 75 % of cases" in done.out
    strict = program("judge", "validate", *files, "--mode", "lower", "--json")
    assert strict.status == 1
    found = json.loads(strict.out)
    assert (found["status"], found["judge"], found["checks"][0]["underpowered"]) == ("failed", "judge.txt", True)
    assert program("judge", "validate", *labels(tmp_path, 40, 0, 40, 0)).status == 1
    nothing = program("judge", "validate", *labels(tmp_path, 100, 0, 0, 0))
    assert nothing.status == 2
    assert "so that the judge has no TNR" in nothing.err


def test_grades_are_not_held_against_themselves(program, tmp_path):
    _, human, _, grades = labels(tmp_path, 60, 10, 30, 0)
    done = program("judge", "validate", "--human", human, "--grades", human)
    assert (done.status, done.out) == (2, "")
    assert "is given for both sides, and grades agree with themselves; name two files" in done.err
    runs = []
    for name in ("one", "two"):
        runs.append(str(tmp_path / f"{name}.trec"))
        (tmp_path / f"{name}.trec").write_text("".join(f"q{row} Q0 d{row} 1 1 x\n" for row in range(100)))
    for option in ("--second", "--human", "--repeated", "--before"):
        done = program("pool", "report", grades, *runs, option, str(tmp_path / "." / "judge.txt"))
        assert (done.status, "given for both sides" in done.err) == (2, True), option


def test_a_judge_is_validated_on_a_slice(program, tmp_path):
    files = labels(tmp_path, 60, 10, 30, 0)
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\n")
    rows = [{"_id": f"q{n}", "text": "?", "metadata": {"dear": 20 <= n < 90}} for n in range(100)]
    (tmp_path / "data" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    where = ("--where", "dear=true", "--dataset", str(tmp_path / "data"))
    done = program("judge", "validate", *files, *where, "--min-pairs", "70", "--min-not-relevant", "20")
    assert done.status == 1
    # Of the slice's 70 pairs 50 are relevant to people, and the judge misses ten of these.
    assert done.out.splitlines()[1].split("\t")[:2] == ["tpr", "0.800"]
    assert "judge judge.txt where dear=true: failed. TPR 0.800 is below 0.85" in done.out
    few = program("judge", "validate", *files, *where, "--json")
    assert few.status == 1
    assert json.loads(few.out)["where"] == {"dear": True}
    assert json.loads(few.out)["reason"].startswith("70 pairs have labels of people, and 100 are needed")
    assert "--where and --dataset go together" in program("judge", "validate", *files, *where[:2]).err
    assert "leave --where out" in program("judge", "validate", *files, *where, "--correct", "x").err
    wrong = program("judge", "validate", *files, "--where", "deer=true", *where[2:])
    assert (wrong.status, "deer" in wrong.err) == (2, True)


def test_precision_is_corrected_on_demand_alone(program, tmp_path):
    files = labels(tmp_path, 50, 0, 30, 20)
    run = tmp_path / "run.trec"
    run.write_text("".join(f"q{row} Q0 d{row} 1 1 x\n" for row in range(100)))
    done = program("judge", "validate", *files, "--correct", str(run), "-k", "1")
    assert "precision@1 by the judge 0.700, corrected by 100 labels of people 0.500 [" in done.out
    assert "corrected" not in program("judge", "validate", *files).out
    assert program("judge", "validate", *files, "-k", "1").status == 2


def test_the_folder_of_judgments_has_to_be_there(program, tmp_path):
    done = program("judge", "validate", "--judgments", str(tmp_path / "none"))
    assert done.status == 2
    assert "there is no folder of judgments" in done.err
    assert program("judge", "validate", "--tpr", "2").status == 2
