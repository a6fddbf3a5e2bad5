"""The folder of judgments: what is written is kept, once, under the judge that gave it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.labels.judging.judges import CallableJudge
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Added, Judgment, Judgments, text_hash
from pytest_retrieval_eval.labels.store.failures import Failure

QH = text_hash("who?")


def judge_of(name="model a", most=2):
    return CallableJudge(lambda query, text: 0, Scale(0, most), identity=name)


def row(query="q1", doc="d1", grade=1, *, text="a text", at="2026-01-01T00:00:00Z", who="m", **more):
    return Judgment(query, QH, doc, text_hash(text), grade, at, who, **more)


def key(query="q1", doc="d1", text="a text"):
    return query, QH, doc, text_hash(text)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".index" not in path.parts
    }


def test_what_was_judged_counts_at_once_and_after_compaction(store):
    name = store.keep(judge_of()).name
    assert store.add(name, [row("q2", "b", 2), row("q1", "a", 0), row("q1", 'é"\\', 1)]) == 3
    for again in (store, Judgments(store.folder)):
        assert again.grade(key("q1", "a")).grade == 0
        assert again.grade(key("q1", 'é"\\')).source == name
        assert again.grade(key("q2", "c")) is None
    assert (store.folder / name / "journal.jsonl").exists()
    assert store.compact().rows == 3
    assert not (store.folder / name / "journal.jsonl").exists()
    lines = (store.folder / name / "all.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines == sorted(lines)
    assert json.loads(lines[0]) == {
        "q": "q1", "qh": QH, "d": "a", "dh": text_hash("a text"), "g": 0, "at": "2026-01-01T00:00:00Z", "who": "m"
    }  # fmt: skip
    assert Judgments(store.folder).grade(key("q1", 'é"\\')).grade == 1
    assert "merge=union" in (store.folder / ".gitattributes").read_text()
    assert store.check() == []


def test_a_grade_holds_for_the_text_that_was_judged(store):
    name = store.keep(judge_of()).name
    store.add(name, [row(text="old", grade=2)])
    assert store.unjudged([key(text="old"), key(text="new"), ("q1", text_hash("how?"), "d1", text_hash("old"))]) == [
        key(text="new"),
        ("q1", text_hash("how?"), "d1", text_hash("old")),
    ]


def test_a_grade_is_its_judge_s_alone(store):
    """Case 68 of the contract: A's grade is none of B."""
    a, b = store.keep(judge_of("model a")).name, store.keep(judge_of("model b")).name
    store.add(a, [row(grade=2)])
    store.add(b, [row(doc="d2", grade=1)])
    assert a != b
    assert Judgments(store.folder, judged_by=[b]).grade(key()) is None
    assert Judgments(store.folder, judged_by=[a]).grade(key()).grade == 2
    assert Judgments(store.folder, judged_by=[b, a]).grade(key()).source == a
    with pytest.raises(SettingsError, match="grades of 2 judges"):
        Judgments(store.folder).grade(key())
    with pytest.raises(SettingsError, match="no judge 'model-c'"):
        Judgments(store.folder, judged_by=["model-c"]).grade(key())
    other = store.keep(judge_of("model c", most=3)).name
    with pytest.raises(SettingsError, match="different scales"):
        Judgments(store.folder, judged_by=[a, other]).grade(key())
    # The same judge again has the same folder; one that cannot be told from others has none.
    assert store.keep(judge_of("model a")).name == a
    with pytest.raises(SettingsError, match="no identity"):
        store.keep(CallableJudge(lambda query, text: 0, Scale(0, 2)))


def test_an_identity_that_was_changed_by_hand(store):
    name = store.keep(judge_of()).name
    file = store.folder / name / "judge.json"
    file.write_text(file.read_text().replace("model a", "model z"))
    with pytest.raises(DataError, match="changed by hand"):
        _ = Judgments(store.folder).chosen
    file.unlink()
    (store.folder / name / "all.jsonl").write_text(row().line + "\n")
    with pytest.raises(DataError, match="nobody can tell which judge"):
        _ = Judgments(store.folder).chosen


def test_people_go_before_judges(store):
    name = store.keep(judge_of()).name
    store.add(name, [row(grade=0), row(doc="d2", grade=1)])
    assert store.add_human("ann", [row(grade=2, who="ann", part="heldout")]) == Added(1, 0)
    assert store.add_human("ann", [row(grade=2, who="ann", part="heldout")]) == Added(0, 0)
    assert (store.grade(key()).grade, store.grade(key()).source) == (2, "human")
    assert store.grade(key(doc="d2")).grade == 1
    assert store.sources == ("ann",)
    store.add_human("ben", [row(grade=1, who="ben", part="dev")])
    with pytest.raises(DataError, match=r"ann.jsonl:1\) and 1 \(.*ben.jsonl:1\)"):
        Judgments(store.folder).grade(key())


def test_contradictions_name_both_lines(store):
    name = store.keep(judge_of()).name
    late = row(grade=0, at="2026-02-01T00:00:00Z")
    store.add(name, [row(grade=2), row(doc="d0")])
    store.compact()
    store.add(name, [late])
    with pytest.raises(DataError, match=r"'d1' has the grades 2 \(.*all.jsonl:2\) and 0 \(.*journal.jsonl:2\)"):
        store.grade(key())
    store.compact()  # loses none of them
    with pytest.raises(DataError, match=r"all.jsonl:2\) and .*all.jsonl:3\)"):
        store.grade(key())
    store.add(name, [row(grade=1, at="2026-03-01T00:00:00Z")])
    for how, grade in (("first", 2), ("max", 2), ("median", 1)):
        assert Judgments(store.folder, contradictions=how).grade(key()).grade == grade
    assert len(store.contradictions()) == 1
    assert "has the grades" in store.check()[0]
    with pytest.raises(SettingsError, match="contradictions 'last'"):
        Judgments(store.folder, contradictions="last")


def test_a_torn_line_is_skipped_and_counted(store):
    name = store.keep(judge_of()).name
    store.add(name, [row(doc="a")])
    journal = store.folder / name / "journal.jsonl"
    with journal.open("ab") as file:
        file.write(b'\n{"q":"q1","qh":"0123')  # a process was killed here
    store.add(name, [row(doc="b")])
    with journal.open("ab") as file:
        file.write(b'\n{"q":"\xc3')
    again = Judgments(store.folder)
    assert [again.grade(key(doc=doc)).grade for doc in "ab"] == [1, 1]
    assert again.table(name).torn == 2
    assert "2 lines, and 2 torn" in again.check()[0]
    done = again.compact()
    assert (done.rows, done.torn) == (2, 2)
    assert again.check() == []


def test_a_process_that_is_killed_while_it_compacts(store):
    name = store.keep(judge_of()).name
    store.add(name, [row(doc="a"), row(doc="b")])
    journal = (store.folder / name / "journal.jsonl").read_bytes()
    store.compact()
    after = files_of(store.folder)
    (store.folder / name / "journal.jsonl").write_bytes(journal)  # as if it had not been removed
    assert Judgments(store.folder).compact().rows == 2
    assert files_of(store.folder) == after


APPEND = """
import sys
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments
store, name, mine = Judgments(sys.argv[1]), sys.argv[2], sys.argv[3]
for i in range(150):
    store.add(name, [Judgment(f"q{i}", "0" * 16, mine, "1" * 16, 1)])
    if i % 40 == 39:
        store.compact()
"""


def test_two_processes_lose_nothing_while_they_compact(store):
    name = store.keep(judge_of()).name
    command = [sys.executable, "-c", APPEND, str(store.folder), name]
    processes = [subprocess.Popen([*command, mine]) for mine in ("one", "two")]
    assert [process.wait(60) for process in processes] == [0, 0]
    kept = {(found.q, found.d) for found, _ in store.rows(name)}
    assert kept == {(f"q{i}", mine) for i in range(150) for mine in ("one", "two")}
    assert Judgments(store.folder).compact().torn == 0


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_branches_are_merged_by_version_control(store, tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    name = store.keep(judge_of()).name

    def commit(*rows):
        store.add(name, rows)
        store.compact()
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "judged")

    commit(*(row(f"q{i}", "d") for i in range(9)))
    git(tmp_path, "checkout", "-qb", "one")
    commit(row("q4", "c", 2), row("q4", "e", 1))
    git(tmp_path, "checkout", "-q", "main")
    commit(row("q4", "e", 1, at="2026-05-05T00:00:00Z"), row("q4", "f", 0), row("q4", "c", 1))
    assert ".index" not in git(tmp_path, "ls-files")
    git(tmp_path, "merge", "-q", "--no-edit", "one")
    # Nothing conflicted, and the contradiction did not pass in silence.
    with pytest.raises(DataError, match=r"'c' has the grades [12] .* and [12] "):
        Judgments(store.folder).grade(key("q4", "e"))
    merged = Judgments(store.folder, contradictions="max")
    assert {k[2]: grade.grade for k, grade in merged.grades("q4").items()} == {"c": 2, "d": 1, "e": 1, "f": 0}
    assert len(merged.table(name)) == 12
    merged.compact(tidy=True)
    lines = (store.folder / name / "all.jsonl").read_text().splitlines()
    assert len(lines) == 13  # both grades of c; e once
    assert [problem for problem in merged.check() if "grades" not in problem] == []


def test_folders_are_merged(store, tmp_path):
    a = store.keep(judge_of("a")).name
    store.add(a, [row(doc="x")])
    other = Judgments(tmp_path / "other")
    for judge, doc in (("a", "y"), ("b", "z")):
        kept = other.keep(judge_of(judge)).name
        other.add(kept, [row(doc=doc), row(doc="x")])
    other.add_human("ann", [row(doc="w", part="dev")])
    other.fail([Failure(a, *key(doc="v"), "error", "timeout", 2), Failure(a, *key(doc="x"), "error", "timeout")])
    assert store.merge(other) == 4
    assert store.merge(other) == 0
    assert {name: len(store.table(name)) for name in ("human", *store.judges)} == {"human": 1, a: 2, kept: 2}
    assert [(each.d, each.attempts) for each in store.failures()] == [("v", 2)]


def test_merged_folders_of_one_name_stay_apart(store, tmp_path):
    other = Judgments(tmp_path / "other")
    for folder, name, grade in ((store, "a", 0), (other, "b", 1)):
        kept = folder.keep(judge_of(name)).name
        folder.add(kept, [row(doc="x", grade=grade)])
        (folder.folder / kept).rename(folder.folder / "main")
    store, other = Judgments(store.folder), Judgments(other.folder)
    theirs = other.judges["main"].digest
    assert (store.merge(other), store.merge(other)) == (1, 0)
    found = {kept.digest == theirs: store.table(name).of_query("q1") for name, kept in store.judges.items()}
    assert {other: list(grades.values()) for other, grades in found.items()} == {False: [0.0], True: [1.0]}
    assert store.contradictions() == []


def test_failures_are_no_grades(store):
    name = store.keep(judge_of()).name
    store.fail([Failure(name, *key(doc=doc), "error", "timeout") for doc in "ab"])
    assert store.unjudged([key(doc="a")]) == [key(doc="a")]
    store.compact()
    store.fail([Failure(name, *key(doc="a"), "unreadable", "no grade", 2, "2026-02-02T00:00:00Z")])
    assert [(each.d, each.outcome, each.attempts) for each in store.failures()] == [
        ("a", "unreadable", 2),
        ("b", "error", 1),
    ]
    store.add(name, [row(doc="b")])
    assert [each.d for each in store.failures()] == ["a"]
    store.compact()
    assert [json.loads(line)["d"] for line in (store.folder / "failures.jsonl").read_text().splitlines()] == ["a"]


def test_many_rows_lie_in_several_files(store, monkeypatch):
    monkeypatch.setattr("pytest_retrieval_eval.labels.judgments._SHARDED", 100)
    name = store.keep(judge_of()).name
    rows = [row(f"q{i % 40}", f"d{i}", i % 3) for i in range(90)]
    store.add(name, rows)
    store.compact()
    assert [path.name for path in store._files(name)] == ["all.jsonl"]
    more = [row(f"q{i % 40}", f"d{i}", i % 3) for i in range(90, 130)]
    store.add(name, more)
    store.compact()
    assert len(store._files(name)) > 5
    assert not (store.folder / name / "all.jsonl").exists()
    assert {found.key: found.g for found, _ in store.rows(name)} == {each.key: each.g for each in [*rows, *more]}
    assert dict(Judgments(store.folder).table(name)) == {each.key: each.g for each in [*rows, *more]}
    assert store.check() == []


def test_an_index_says_what_the_files_say(store, monkeypatch):
    monkeypatch.setattr("pytest_retrieval_eval.labels.judgments._INDEXED", 100)
    monkeypatch.setattr("pytest_retrieval_eval.labels.store.table.INDEXED", 10)
    name = store.keep(judge_of()).name
    rows = [row(f"q{i // 4}", f"dö{i}", i % 3) for i in range(40)]
    store.add(name, rows)
    store.compact()
    expected = {each.key: each.g for each in rows}
    assert dict(Judgments(store.folder).table(name)) == expected
    index = store.folder / ".index" / f"{name}.npz"
    assert index.exists()
    assert dict(Judgments(store.folder).table(name)) == expected
    # Files that have changed are read again, whatever their times say; and so is a damaged index.
    file = store.folder / name / "all.jsonl"
    file.write_text(file.read_text().replace('"g":2', '"g":0'))
    assert set(dict(Judgments(store.folder).table(name)).values()) == {0, 1}
    index.write_bytes(index.read_bytes()[:200])
    assert set(dict(Judgments(store.folder).table(name)).values()) == {0, 1}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"q":"q1"}', "needs q, qh, d, dh and g"),
        (row().line.replace('"g":1', '"g":NaN'), "grade is NaN"),
        (row().line.replace('"g":1', '"g":true'), "the grade is True"),
        (row().line.replace(QH, "xyz"), "expected 16 hexadecimal digits"),
        ('{"q":', "malformed JSON"),
    ],
)
def test_a_line_that_is_no_judgment(store, line, sentence):
    name = store.keep(judge_of()).name
    (store.folder / name / "all.jsonl").write_text(row().line + "\n" + line + "\n")
    with pytest.raises(DataError, match=f"all.jsonl:2: .*{sentence}"):
        store.grade(key())


def test_grades_outside_of_the_scale_are_found(store):
    name = store.keep(judge_of()).name
    store.add(name, [row(grade=7)])
    assert "the grade 7 is none of" in store.check()[0]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(GateError, match="no folder of judgments"):
        Judgments.open(tmp_path / "none")
    assert Judgments(tmp_path / "none").unjudged([key()]) == [key()]
    assert Judgments(tmp_path / "none").check()[0].endswith("so that merges would conflict")
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="is a file"):
        Judgments(tmp_path / "file")


GRADED = st.tuples(st.sampled_from(["q1", "q2", 'q"3']), st.sampled_from("abcd"), st.integers(0, 2))


@settings(max_examples=40, deadline=None)
@given(st.lists(GRADED, max_size=30), st.lists(GRADED, max_size=30))
def test_order_and_repetition_change_nothing(tmp_path_factory, one, two):
    """The files depend on the set of rows alone: not on the order of their coming, nor on how often they come."""
    kept = []
    for rows in ([*one, *two], [*two[::-1], *one, *two]):
        store = Judgments(tmp_path_factory.mktemp("judgments"))
        name = store.keep(judge_of()).name
        store.add(name, (row(*each) for each in rows[: len(rows) // 2]))
        store.compact()
        store.add(name, (row(*each) for each in rows[len(rows) // 2 :]))
        store.compact()
        kept.append(files_of(store.folder))
        grades = {key(*each[:2]): max(g for q, d, g in rows if (q, d) == each[:2]) for each in rows}
        assert dict(Judgments(store.folder, contradictions="max").table(name)) == grades
    assert kept[0] == kept[1]


def test_half_of_a_surrogate_pair_is_kept(store):
    """A service may name its model so, and a reply may have been cut within a character."""
    name = store.keep(judge_of("one")).name
    store.add(name, [row(doc="a", who="m (\ud800)")])
    store.fail([Failure(name, *key(doc="b"), "unreadable", "it says \ud83d")])
    for _ in range(2):  # in the journal, and in the files
        again = Judgments(store.folder)
        assert [each.who for each, _ in again.rows(name)] == ["m (\ud800)"]
        assert [each.reason for each in again.failures()] == ["it says \ud83d"]
        store.compact()
