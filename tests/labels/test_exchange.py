"""Judgments on their way to people and back, and from and to qrels and tables."""

from __future__ import annotations

import csv

import pytest

from pytest_retrieval_eval.cli import main
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import DataError, GateError, SettingsError
from pytest_retrieval_eval.labels.exchange import (
    check_ids,
    export_qrels,
    export_rows,
    read_labels,
    write_worksheet,
)
from pytest_retrieval_eval.labels.grading import fill_judgments
from pytest_retrieval_eval.labels.judging.judges import CallableJudge
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Added, Judgment, Judgments
from pytest_retrieval_eval.labels.pool import pool_of

N = 40


def dataset_of(**more):
    corpus = {f"d{i}": {"text": f'passage\n"{i}", with\ttabs', "title": "T"} for i in range(N)}
    return Dataset.of(queries={"q1": "one,\nor more?"}, qrels={"q1": ["d0"]}, corpus={**corpus, **more}, name="shop")


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def pool():
    return pool_of(dataset_of(), [Run.of({"q1": [f"d{i}" for i in range(N)]}, name="bm25")], N)


def judged(store, pool, relevant=30):
    """The first so many documents are relevant to the judge."""
    number = {pair.text: int(pair.doc_id[1:]) for pair in pool.pairs.values()}
    judge = CallableJudge(
        lambda query, text: int(number[text.partition("\n\n")[2]] < relevant), Scale(0, 2), identity="by number"
    )
    assert fill_judgments(store, judge, pool.pairs.values()).complete


def test_a_worksheet_goes_to_people_and_comes_back(store, pool, tmp_path):
    judged(store, pool)
    sheet = tmp_path / "sheet.csv"
    found = write_worksheet(sheet, store, pool.pairs, sample=12, min_not_relevant=8, seed=3)
    assert (found.rows, found.not_relevant, found.pairs) == (12, 8, 40)
    rows = rows_of(sheet)
    # Nothing on it says what the judge thinks, but for the weights: 10 pairs for 8 rows, 30 for 4.
    assert {row["grade"] for row in rows} == {""}
    assert {row["weight"] for row in rows} == {"1.25", "7.5"}
    assert sum(float(row["weight"]) for row in rows) == 40
    write_worksheet(tmp_path / "again.csv", store, pool.pairs, sample=12, min_not_relevant=8, seed=3)
    assert (tmp_path / "again.csv").read_bytes() == sheet.read_bytes()
    for number, row in enumerate(rows[:10]):
        row["grade"] = str(number % 3)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    labels, empty = read_labels(sheet, part="heldout", who="ann")
    assert (len(labels), empty) == (10, 2)
    assert store.add_human("ann", labels) == Added(10, 0)
    again = Judgments(store.folder)
    for number, row in enumerate(rows[:10]):
        key = next(key for key in pool.pairs if key[2] == row["doc_id"])
        assert (again.grade(key).grade, again.grade(key).source) == (number % 3, "human")
    kept = [row for row, _ in again.rows("human")]
    assert {(row.part, row.who) for row in kept} == {("heldout", "ann")}
    assert {row.w for row in kept} <= {1.25, 7.5}
    assert again.check() == []
    # What people have judged is on no further sheet.
    assert write_worksheet(tmp_path / "more.csv", again, pool.pairs, sample=100).rows == 30


def test_a_corrected_weight_takes_the_place_of_the_former_one(store, tmp_path):
    table = tmp_path / "labels.csv"
    for weight, added, expected in (
        ("", Added(1, 0), None),
        ("2", Added(0, 1), 2.0),
        ("7.5", Added(0, 1), 7.5),
        ("", Added(0, 0), 7.5),
    ):
        table.write_text(f"query_id,doc_id,grade,weight\nq1,d1,2,{weight}\n")
        assert store.add_human("ann", read_labels(table, dataset_of())[0]) == added
        assert [(row.g, row.w) for row, _ in store.rows("human")] == [(2, expected)]
    table.write_text('query_id,doc_id,grade,weight\nq1,d1,2,"7,5"\n')
    with pytest.raises(DataError, match=r"labels.csv:2: the weight is '7,5'; expected a number, such as 2 or 1.25"):
        read_labels(table, dataset_of())


def test_labels_of_a_table_and_of_qrels(store, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("query_id,doc_id,grade\nq1,d1,2\nq1,d2,\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 2\nq1 0 d3 0\n")
    (tmp_path / "lost.txt").write_text("q1 0 d1 2\nq9 0 d3 0\n")
    rows, empty = read_labels(table, dataset_of())
    assert ([(row.d, row.g) for row in rows], empty) == ([("d1", 2)], 1)
    more, _ = read_labels(tmp_path / "qrels.txt", dataset_of())
    assert more[0].key == rows[0].key
    with pytest.raises(SettingsError, match="name the dataset"):
        read_labels(table)
    with pytest.raises(GateError, match=r"has not the texts of 1 pairs.*q9 d3"):
        read_labels(tmp_path / "lost.txt", dataset_of())
    table.write_text("query_id,doc_id,grade\nq1,d1,good\n")
    with pytest.raises(DataError, match=r"labels.csv:2: the grade is 'good'"):
        read_labels(table, dataset_of())


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_worksheet_that_a_spreadsheet_has_written(store, pool, tmp_path, delimiter):
    judged(store, pool)
    sheet = tmp_path / "sheet.csv"
    write_worksheet(sheet, store, pool.pairs, sample=6)
    rows = rows_of(sheet)
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        table.writerow([*(f" {name}" for name in rows[0]), "remark"])
        table.writerows([[*(row | {"grade": f" {n} "}).values(), "a, b; c"] for n, row in enumerate(rows)])
        table.writerow([*({**rows[0], "query_hash": "", "document_hash": "", "grade": ""}).values(), ""])
        table.writerow([""] * 10)
    labels, empty = read_labels(sheet)
    assert ([row.g for row in labels], empty) == ([0, 1, 2, 3, 4, 5], 1)
    assert {row.key for row in labels} == {key for key in pool.pairs if key[2] in {row["doc_id"] for row in rows}}


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("query_id;document;grade", "0 columns have the name doc_id"),
        ("query_id,doc_id,grades", "0 columns have the name grade "),
        ("query_id,doc_id,grade,grade", "2 columns have the name grade "),
    ],
)
def test_a_table_without_the_columns_of_labels(tmp_path, head, said):
    table = tmp_path / "labels.csv"
    table.write_text(f"{head}\nq1,d1,2,0\n")
    with pytest.raises(DataError, match=rf"labels.csv:1: {said}.*expected one"):
        read_labels(table, dataset_of())


def test_qrels_are_those_of_today_s_texts(store, pool, tmp_path):
    judged(store, pool)
    assert export_qrels(tmp_path / "out.txt", store, dataset_of()) == 40
    qrels = Qrels.read(tmp_path / "out.txt")
    assert qrels.of_query("q1") == {f"d{i}": float(i < 30) for i in range(N)}
    assert export_qrels(tmp_path / "out.txt", store, dataset_of(d0="a new text")) == 39
    assert export_rows(tmp_path / "out.csv", store) == 40
    row = next(row for row in rows_of(tmp_path / "out.csv") if row["doc_id"] == "d7")
    assert (row["grade"], row["query_id"], row["source"]) == ("1", "q1", store.chosen[0].name)
    # A judge's grades do not come back as those of people, who would agree with it.
    with pytest.raises(DataError, match=r"out.csv:2: the grade is one of by-number-.*labels of people"):
        read_labels(tmp_path / "out.csv")
    # Those of people do: the hashes travel with the grades.
    people = Judgments(tmp_path / "people")
    people.add_human("ann", [Judgment(*key, 1, w=2.5) for key in pool.pairs])
    export_rows(tmp_path / "people.csv", people)
    back, _ = read_labels(tmp_path / "people.csv")
    assert {(each.key, each.w) for each in back} == {(key, 2.5) for key in pool.pairs}


def graded(sheet, grade="1", **changed):
    """Fill every row of a worksheet, the first with other cells."""
    rows = [row | {"grade": grade} for row in rows_of(sheet)]
    filled = [rows[0] | changed, *rows[1:]]
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(filled)
    return rows


def test_a_worksheet_with_grades_is_not_overwritten(store, pool, tmp_path):
    judged(store, pool)
    sheet = tmp_path / "sheet.csv"
    for _ in range(2):  # an empty one may be drawn again
        write_worksheet(sheet, store, pool.pairs, sample=4)
    graded(sheet)
    before = sheet.read_bytes()
    with pytest.raises(SettingsError, match=r"sheet.csv is there, and is a worksheet with grades: .* not overwritten"):
        write_worksheet(sheet, store, pool.pairs, sample=4)
    assert sheet.read_bytes() == before
    sheet.write_text("q1 0 d1 1\n")
    with pytest.raises(SettingsError, match="is there, and is no worksheet"):
        write_worksheet(sheet, store, pool.pairs, sample=4)


def test_a_worksheet_with_a_long_document_and_one_with_odd_characters(store, tmp_path):
    dataset = dataset_of(d0="long " * 50_000, d1="half \ud83d of a pair")
    pool = pool_of(dataset, [Run.of({"q1": ["d0", "d1"]}, name="bm25")], 2)
    assert fill_judgments(store, CallableJudge(lambda *_: 1, Scale(0, 2), identity="one"), pool.pairs.values()).complete
    write_worksheet(tmp_path / "sheet.csv", store, pool.pairs)
    limit = csv.field_size_limit(10**6)
    graded(tmp_path / "sheet.csv")
    csv.field_size_limit(limit)
    labels, _ = read_labels(tmp_path / "sheet.csv")
    assert {label.key for label in labels} == set(pool.pairs)
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        # Else the quote would take in all rows behind it.
        (['q1,d1,"good,2', "q1,d2,bad,0"], r"labels.csv:3: the table cannot be read \(.*is a quote missing"),
        (["q1,d1,good, or not,2"], "labels.csv:2: the row has 5 cells, and there are 4 columns"),
        (["q1,d1,good,-inf"], "labels.csv:2: the grade is '-inf'"),
    ],
)
def test_a_row_that_was_spoilt_is_an_error(tmp_path, lines, said):
    (tmp_path / "labels.csv").write_text("\n".join(["query_id,doc_id,remark,grade", *lines, ""]))
    with pytest.raises(DataError, match=said):
        read_labels(tmp_path / "labels.csv", dataset_of())


def test_a_row_whose_cells_moved_is_an_error(store, pool, tmp_path):
    judged(store, pool)
    sheet = tmp_path / "sheet.csv"
    write_worksheet(sheet, store, pool.pairs, sample=2)
    rows = graded(sheet)
    cells = [*rows[0].values()]
    del cells[1]
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[*rows[0]], cells, [*rows[1].values()]])
    with pytest.raises(DataError, match=r"sheet.csv:\d+: 'document_hash' is '\d.*'; expected 16 hexadecimal digits"):
        read_labels(sheet)


@pytest.mark.parametrize("weight", ["0", "-1.25", "nan"])
def test_a_weight_is_above_0(tmp_path, weight):
    (tmp_path / "labels.csv").write_text(f"query_id,doc_id,grade,weight\nq1,d1,1,{weight}\n")
    with pytest.raises(DataError, match=rf"labels.csv:2: the weight is '{weight}'; expected a number"):
        read_labels(tmp_path / "labels.csv", dataset_of())
    folder = tmp_path / "judgments/human"
    folder.mkdir(parents=True)
    (folder / "ann.jsonl").write_text(Judgment("q1", "0" * 16, "d1", "1" * 16, 1, w=float(weight)).line + "\n")
    with pytest.raises(DataError, match=r"ann.jsonl:1: .*(weight is|NaN)"):
        Judgments(tmp_path / "judgments").table("human")


@pytest.mark.parametrize(("column", "changed"), [("query_id", "1"), ("doc_id", "1e5")])
def test_ids_that_a_spreadsheet_changed_are_found(store, pool, tmp_path, column, changed):
    judged(store, pool)
    sheet = tmp_path / "sheet.csv"
    write_worksheet(sheet, store, pool.pairs, sample=4)
    rows = graded(sheet)
    check_ids(read_labels(sheet)[0], store)
    graded(sheet, **{column: changed})
    what = "query" if column == "query_id" else "document"
    with pytest.raises(DataError, match=rf"a label is of {what} '{changed}', and .* {what} '{rows[0][column]}'"):
        check_ids(read_labels(sheet)[0], store)
    # Texts that nobody has judged here may have any id.
    check_ids([Judgment("new", "0" * 16, "new", "1" * 16, 1)], store)


def test_nothing_to_draw_from(store, pool, tmp_path):
    with pytest.raises(GateError, match="has no judge yet"):
        write_worksheet(tmp_path / "sheet.csv", store, pool.pairs)
    store.keep(CallableJudge(lambda query, text: 0, Scale(0, 2), identity="new"))
    with pytest.raises(GateError, match="nothing to put on a worksheet"):
        write_worksheet(tmp_path / "sheet.csv", store, pool.pairs)


def test_on_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/qrels").mkdir(parents=True)
    (tmp_path / "data/queries.jsonl").write_text('{"_id": "q1", "text": "one?"}\n')
    (tmp_path / "data/corpus.jsonl").write_text('{"_id": "a", "text": "A"}\n{"_id": "b", "text": "B"}\n')
    (tmp_path / "data/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n")
    (tmp_path / "mine_of_exchange.py").write_text(
        "from pytest_retrieval_eval.labels.judging.judges import CallableJudge\n"
        "from pytest_retrieval_eval.labels.judging.replies import Scale\n"
        "judge = CallableJudge(lambda query, text: int(text == 'A'), Scale(0, 2), identity='mine')\n"
    )

    def program(*arguments):
        capfd.readouterr()
        status = main(list(arguments))
        return status, *capfd.readouterr()

    assert program("judgments", "check")[0] == 2
    assert program("judge", "--dataset", "data", "--run", "run.trec", "--judge", "mine_of_exchange:judge")[0] == 0
    status, out, _ = program("judgments", "show")
    name = out.partition("\t")[0]
    assert (status, out.split("\t")[1:4]) == (0, ["2", "1", "0:1 1:1"])
    assert program("judgments", "show", "--judged-by", name)[1] == out
    status, out, said = program("judgments", "show", "--judged-by", "nobody")
    assert (status, out, "has no judge 'nobody'" in said) == (2, "", True)
    status, _, said = program(
        "judgments", "worksheet", "--dataset", "data", "--run", "run.trec", "-o", "s.csv", "--sample", "1"
    )
    assert (status, "1 pair of 2 that the judge has graded, 1 of them not relevant" in said) == (0, True)
    assert "no row has a grade" in program("judgments", "import", "s.csv", "--name", "ann")[2]
    (tmp_path / "labels.csv").write_text("query_id,doc_id,grade\nq1,b,2\n")
    assert "name the dataset" in program("judgments", "import", "labels.csv", "--name", "ann")[2]
    status, _, said = program(
        "judgments", "import", "labels.csv", "--name", "ann", "--dataset", "data", "--part", "heldout"
    )
    assert (status, "1 label of ann, 1 new" in said) == (0, True)
    assert "human/ann\t1\t\theldout:1\t\n" in program("judgments", "show")[1]
    rows = [line.split("\t")[:4] for line in program("judgments", "show", "--query-id", "q1")[1].splitlines()]
    assert rows == [["q1", "b", "2", "human"], ["q1", "a", "1", name]]
    assert program("judgments", "check")[0] == 0
    file = tmp_path / "judgments" / name / "all.jsonl"
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    status, out, _ = program("judgments", "check")
    assert (status, "the lines are not sorted" in out) == (1, True)
    assert program("judgments", "compact")[0] == 0
    assert program("judgments", "check")[0] == 0
    assert "name the dataset" in program("judgments", "export", "out.txt")[2]
    assert program("judgments", "export", "out.txt", "--dataset", "data")[0] == 0
    assert sorted((tmp_path / "out.txt").read_text().splitlines()) == ["q1 0 a 1", "q1 0 b 2"]
    assert program("judgments", "export", "out.csv")[0] == 0
    # b by people only once: for the qrels; in the table both stand.
    assert len(rows_of(tmp_path / "out.csv")) == 3
    status, out, _ = program("evaluate", "data", "run.trec", "-m", "ndcg@2", "--labels", "judged")
    assert (status, out.split("\t")[:2]) == (0, ["all", "ndcg@2"])
    assert float(out.split("\t")[2]) == pytest.approx(0.8597187)
    status, out, _ = program("compare", "data", "run.trec", "run.trec", "--labels", "judged", "--gate", "hit@1 >= 0.9")
    assert status == 0
    assert "add --labels judged" in program("evaluate", "data", "run.trec", "--judged-by", name)[2]
