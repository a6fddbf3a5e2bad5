"""Gold spans: their columns, their files, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import DataError, Span, Spans
from pytest_retrieval_eval.collection.spans.spanrows import text_hash

ROWS = [
    {"query_id": "q1", "doc_id": "guide", "start": 3, "end": 9, "text": "refund", "grade": 2},
    {"query_id": "q2", "doc_id": "faq", "start": 0, "end": 5},
    {"query_id": "q1", "doc_id": "faq", "start": 7, "end": 12, "group": "price"},
    {"query_id": "q1", "doc_id": "guide", "start": 40, "end": 52, "group": "price", "hash": text_hash("x")},
]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class TestColumns:
    def test_rows_of_a_query_are_contiguous_and_queries_stand_as_first_seen(self, tmp_path):
        spans = Spans.read(jsonl(tmp_path / "spans.jsonl", ROWS))
        assert spans.query_ids == ("q1", "q2")
        assert spans.query.tolist() == [0, 0, 0, 1]
        assert spans.offsets.tolist() == [0, 3, 4]
        assert [spans.doc_ids[doc] for doc in spans.doc] == ["guide", "faq", "guide", "faq"]
        assert (spans.start.tolist(), spans.end.tolist()) == ([3, 7, 40, 0], [9, 12, 52, 5])
        assert spans.grade.tolist() == [2, 1, 1, 1]
        assert spans.texts == ["refund", None, None, None]
        assert spans.hashes == [None, None, text_hash("x"), None]
        assert [spans.where(row) for row in range(4)] == [f"{tmp_path}/spans.jsonl:{n}" for n in (1, 3, 4, 2)]
        assert spans.warnings == ()
        assert not any(column.flags.writeable for column in (spans.query, spans.start, spans.grade, spans.group))

    def test_rows_of_one_group_are_alternatives_and_others_stand_alone(self):
        spans = Spans.of(ROWS)
        one, price, price_too, faq = spans.group.tolist()
        assert price == price_too
        assert len({one, price, faq}) == 3
        assert sorted({one, price, faq}) == [0, 1, 2]

    def test_a_group_name_belongs_to_its_query(self):
        spans = Spans.of({"q1": [Span("q1", "d", 0, 3, group="g")], "q2": [Span("q2", "d", 0, 3, group="g")]})
        assert len(set(spans.group.tolist())) == 2

    def test_of_query_and_select(self):
        spans = Spans.of(ROWS)
        assert spans.of_query("q2") == [Span("q2", "faq", 0, 5)]
        assert spans.of_query("q1")[2] == Span("q1", "guide", 40, 52, hash=text_hash("x"), group="price")
        assert spans.of_query("q9") == []
        chosen = spans.select({"q2", "q9"})
        assert (chosen.query_ids, chosen.doc_ids, len(chosen)) == (("q2",), ("faq",), 1)
        assert chosen.of_query("q2") == spans.of_query("q2")
        assert chosen.group.tolist() == [0]
        with pytest.raises(DataError, match="not one string"):
            spans.select("q2")

    def test_in_memory_a_span_is_named_by_its_query(self):
        spans = Spans.of({"q1": [("a", 0, 2), ("a", 5, 8)]})
        assert [spans.where(row) for row in (0, 1)] == ["query 'q1', span 1", "query 'q1', span 2"]
        with pytest.raises(DataError, match=r"query 'q1', span 2: the span goes from 3 to 2"):
            Spans.of([Span("q1", "a", 0, 2), Span("q1", "a", 3, 2)])
        with pytest.raises(DataError, match="the span itself says query 'q2'"):
            Spans.of({"q1": [Span("q2", "a", 0, 2)]})
        with pytest.raises(DataError, match="is no span"):
            Spans.of({"q1": [("a", 3)]})
        for nothing in ([], {}, {"q1": []}):
            with pytest.raises(DataError, match="no spans in spans"):
                Spans.of(nothing)
        with pytest.raises(DataError, match="expected"):
            Spans.of("spans.jsonl")

    @settings(deadline=None)  # a busy machine is no failure
    @given(st.randoms(use_true_random=False))
    def test_the_digest_does_not_depend_on_order_nor_on_names_of_groups(self, random: random.Random):
        rows = [{**row, "text": None} for row in ROWS]
        random.shuffle(rows)
        renamed = [{**row, "group": 7} if row.get("group") else row for row in rows]
        assert Spans.of(renamed).digest == Spans.of(ROWS).digest

    @pytest.mark.parametrize("change", [{"start": 4}, {"end": 10}, {"grade": 1}, {"doc_id": "x"}, {"group": "price"}])
    def test_the_digest_depends_on_all_that_is_measured(self, change):
        assert Spans.of([{**ROWS[0], **change}, *ROWS[1:]]).digest != Spans.of(ROWS).digest


class TestFiles:
    def test_every_format_says_the_same(self, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        spans = Spans.of(ROWS)
        for name in ("a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.csv.xz"):
            spans.save(tmp_path / name)
            assert Spans.read(tmp_path / name).digest == spans.digest, name
            assert Spans.read(tmp_path / name).texts == spans.texts
            assert Spans.read(tmp_path / name).hashes == spans.hashes
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
        read = Spans.read(tmp_path / "a.parquet")
        # from_pylist takes the columns of the first row: text and grade, no group
        assert (read.of_query("q2"), read.of_query("q1")[0]) == (spans.of_query("q2"), spans.of_query("q1")[0])
        assert read.where(0) == f"{tmp_path}/a.parquet: row 1"
        with pytest.raises(DataError, match=r"written as \.jsonl, \.csv or \.tsv"):
            spans.save(tmp_path / "a.txt")

    def test_written_bytes_are_stable(self, tmp_path):
        Spans.of(ROWS).save(tmp_path / "a.jsonl")
        Spans.read(tmp_path / "a.jsonl").save(tmp_path / "b.jsonl")
        assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
        assert (tmp_path / "a.jsonl").read_text().splitlines()[0] == (
            '{"query_id": "q1", "doc_id": "guide", "start": 3, "end": 9, "text": "refund", "grade": 2}'
        )

    def test_a_byte_order_mark_crlf_and_blank_lines(self, tmp_path):
        text = "\r\n".join([json.dumps(ROWS[1]), "", json.dumps(ROWS[0]), ""])
        (tmp_path / "spans.jsonl.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
        spans = Spans.read(tmp_path / "spans.jsonl.gz")
        assert [spans.where(row).rpartition(":")[2] for row in (0, 1)] == ["1", "3"]

    def test_cells_with_quotes_and_line_ends(self, tmp_path):
        with (tmp_path / "spans.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["query_id", "doc_id", "start", "end", "text"])
            writer.writerow(["q1", "d", 0, 9, 'a "b",\nc'])
            writer.writerow(["q2", "d", 2, 2, ""])
        with pytest.raises(DataError, match=r"spans\.csv:4: the span goes from '2' to '2'; an empty span matches"):
            Spans.read(tmp_path / "spans.csv")

    def test_offsets_are_code_points(self, tmp_path):
        text = "🙂 naïve"
        row = {"query_id": "q", "doc_id": "d", "start": 0, "end": len(text), "text": text}
        assert Spans.read(jsonl(tmp_path / "spans.jsonl", [row])).warnings == ()
        utf16 = len(text.encode("utf-16-le")) // 2
        (warning,) = Spans.read(jsonl(tmp_path / "spans.jsonl", [{**row, "end": utf16}])).warnings
        assert "1 span has a text of another length than its offsets say" in warning
        assert "the offsets seem to count units of UTF-16, not code points" in warning

    def test_normalize_ids(self, tmp_path):
        decomposed = {"query_id": "q", "doc_id": "Cafe\u0301", "start": 0, "end": 3}
        path = jsonl(tmp_path / "spans.jsonl", [decomposed])
        assert Spans.read(path).doc_ids == ("Cafe\u0301",)
        assert Spans.read(path, normalize_ids=True).doc_ids == ("Café",)

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"start": 9, "end": 3}, "the span goes from 9 to 3; expected two integers"),
            ({"start": 3, "end": 3}, "from 3 to 3; an empty span matches nothing"),
            ({"start": -1}, "from -1 to 9"),
            ({"start": 3.0}, "from 3.0 to 9"),
            ({"start": True}, "from True to 9"),
            ({"end": "9"}, "from 3 to '9'"),
            ({"end": None}, "from 3 to None"),
            ({"grade": "2"}, "the grade is '2'"),
            ({"grade": float("inf")}, "expected a finite number"),
            ({"text": ""}, "the text of the span is ''"),
            ({"text": 3}, "the text of the span is 3"),
            ({"text": "\ud800"}, "half of a surrogate pair"),
            ({"hash": "md5:1"}, "expected sha256"),
            ({"group": 1.5}, "the group is 1.5"),
            ({"query_id": ""}, "an id is the empty string"),
        ],
    )
    def test_a_malformed_line_is_named(self, tmp_path, row, said):
        path = jsonl(tmp_path / "spans.jsonl", [ROWS[1], {**ROWS[0], **row}])
        with pytest.raises(DataError) as caught:
            Spans.read(path)
        assert str(caught.value).startswith(f"{path}:2: ")
        assert said in str(caught.value)

    def test_a_missing_key_is_guessed(self, tmp_path):
        row = {"query_id": "q", "doc_id": "d", "strat": 0, "end": 3}
        with pytest.raises(DataError, match=r"spans\.jsonl:1: the span has no 'start'; is 'strat' meant to be it\?"):
            Spans.read(jsonl(tmp_path / "spans.jsonl", [row]))
        with pytest.raises(DataError, match=r"no 'query_id'; found the keys \['doc_id'\]"):
            Spans.read(jsonl(tmp_path / "spans.jsonl", [{"doc_id": "d"}]))
        with pytest.raises(DataError, match="no spans in"):
            Spans.read(jsonl(tmp_path / "spans.jsonl", []))

    def test_two_groups_that_become_one(self, tmp_path):
        rows = [{**ROWS[0], "group": 1}, {**ROWS[2], "group": "1"}]
        with pytest.raises(DataError, match=r"spans\.jsonl:2: the ids 1 and '1' become one"):
            Spans.read(jsonl(tmp_path / "spans.jsonl", rows))

    def test_a_table_is_checked(self, tmp_path):
        path = tmp_path / "spans.csv"
        path.write_text("query_id,doc_id,start,end\nq,d,0\n")
        with pytest.raises(DataError, match=r"spans\.csv:2: \['q', 'd', '0'\] has 3 cells; expected 4"):
            Spans.read(path)
        path.write_text("query_id,doc_id,start,end\nq,d,0,3.0\n")
        with pytest.raises(DataError, match=r"spans\.csv:2: the span goes from '0' to '3\.0'"):
            Spans.read(path)
        path.write_text("query_id,doc_id,start,start\nq,d,0,3\n")
        with pytest.raises(DataError, match="names a column twice"):
            Spans.read(path)
        path.write_text('query_id,doc_id,start,end\nq,"d,0,3\n')
        with pytest.raises(DataError, match=r"spans\.csv:2: the table cannot be read"):
            Spans.read(path)


class TestOddities:
    def test_a_repeat_counts_once_and_is_said(self):
        spans = Spans.of({"q": [("d", 0, 4), ("d", 0, 4)]})
        assert len(spans) == 1
        assert "1 span is repeated in spans and counted once; first at query 'q', span 2" in spans.warnings[0]
        rows = [Span("q", "d", 0, 4), Span("q", "d", 0, 4, grade=2)]
        with pytest.raises(DataError, match="with the grade 2, but with 1 at query 'q', span 1"):
            Spans.of(rows)

    def test_alternatives_may_repeat_and_overlap(self):
        group = [Span("q", "d", 0, 4, group=1), Span("q", "d", 2, 8, group=1), Span("q", "d", 0, 4, group=1)]
        assert (len(Spans.of(group)), Spans.of(group).warnings) == (2, ())

    def test_overlapping_gold_without_a_group_is_said(self):
        (warning,) = Spans.of({"q": [("d", 0, 9), ("d", 5, 12), ("d", 20, 30), ("d", 9, 11)]}).warnings
        assert "2 gold spans overlap another of the same query" in warning
        assert "give them one group" in warning
        assert "query 'q', document 'd', 5 to 12 and 0 to 9" in warning
        apart = {"q": [("d", 0, 9), ("d", 9, 12), ("e", 3, 5)], "p": [("d", 2, 4)]}
        assert Spans.of(apart).warnings == ()


class TestSquad:
    CONTEXT = "The Monastic Brotherhood 🙂 elects two delegates."

    def document(self, **answer):
        answers = [{"text": "two delegates", "answer_start": 34, **answer}, {"text": "delegates", "answer_start": 38}]
        qas = [{"id": "5d65", "question": "who?", "answers": answers}, {"id": "none", "answers": []}]
        return {"version": "1.1", "data": [{"title": "Church", "paragraphs": [{"context": self.CONTEXT, "qas": qas}]}]}

    def test_answers_of_a_question_are_one_group(self, tmp_path):
        path = tmp_path / "dev.json"
        path.write_text(json.dumps(self.document()))
        spans = Spans.read(path)
        assert spans.of_query("5d65") == [
            Span("5d65", "Church#0", 34, 47, text="two delegates", group="answers"),
            Span("5d65", "Church#0", 38, 47, text="delegates", group="answers"),
        ]
        assert set(spans.group.tolist()) == {0}
        assert spans.query_ids == ("5d65",)

    def test_a_paragraph_may_have_an_id(self, tmp_path):
        document = self.document()
        document["data"][0]["paragraphs"][0]["document_id"] = 630
        path = tmp_path / "dev.json"
        path.write_text(json.dumps(document))
        assert Spans.read(path).doc_ids == ("630",)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ({"answer_start": 35}, "does not stand at 35 of its context"),
            ({"answer_start": -1}, "answer_start -1"),
            ({"text": ""}, "has the text ''"),
        ],
    )
    def test_an_answer_that_is_not_there_is_an_error(self, tmp_path, answer, said):
        path = tmp_path / "dev.json"
        path.write_text(json.dumps(self.document(**answer)))
        with pytest.raises(DataError, match=f"article 0, paragraph 0: question '5d65': .*{said}"):
            Spans.read(path)

    def test_a_file_of_another_form_is_an_error(self, tmp_path):
        path = tmp_path / "dev.json"
        path.write_text('{"q1": [1, 2]}')
        with pytest.raises(DataError, match="expected SQuAD's form"):
            Spans.read(path)

    def test_rows_with_two_lists(self, tmp_path):
        answers = {"text": ["two delegates", "delegates"], "answer_start": [34, 38]}
        row = {"id": "5d65", "doc_id": "Church", "context": self.CONTEXT, "answers": answers}
        spans = Spans.read(jsonl(tmp_path / "spans.jsonl", [row]))
        assert [(span.start, span.end, span.group) for span in spans.of_query("5d65")] == [
            (34, 47, "answers"),
            (38, 47, "answers"),
        ]
        row["answers"]["answer_start"] = [34]
        with pytest.raises(DataError, match="equally many texts and starts"):
            Spans.read(jsonl(tmp_path / "spans.jsonl", [row]))


def test_one_place_with_two_texts(tmp_path):
    """Which of them is the gold nobody can say; a repeat that only says more is taken at its word."""
    row = {"query_id": "q", "doc_id": "d", "start": 0, "end": 7}
    path = tmp_path / "spans.jsonl"
    for more in ({}, {"group": "a"}):
        rows = [{**row, "text": "14 days"}, {**row, **more, "text": "Refunds"}]
        path.write_text("".join(json.dumps(each) + "\n" for each in rows))
        with pytest.raises(DataError, match=r"spans.jsonl:2: the span has another text than at .*spans.jsonl:1"):
            Spans.read(path)
    path.write_text("".join(json.dumps(each) + "\n" for each in (row, {**row, "text": "14 days"})))
    assert Spans.read(path).texts == ["14 days"]
    hashes = [{**row, "hash": "sha256:" + digit * 64} for digit in "12"]
    path.write_text("".join(json.dumps(each) + "\n" for each in hashes))
    with pytest.raises(DataError, match="the span has another text than at"):
        Spans.read(path)
