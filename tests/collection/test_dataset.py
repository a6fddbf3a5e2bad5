from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from pytest_retrieval_eval.collection import dataset as dataset_module
from pytest_retrieval_eval.collection.dataset import Corpus, Dataset, Document
from pytest_retrieval_eval.collection.formats.files import digest
from pytest_retrieval_eval.collection.qrels import Qrels
from pytest_retrieval_eval.collection.queries import Queries
from pytest_retrieval_eval.collection.spans.chunks import Chunk
from pytest_retrieval_eval.errors import DataError

QUERIES = '{"_id": "q1", "text": "refund?"}\n{"_id": "q2", "text": "price?"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n"
CORPUS = '{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n{"_id": 3, "text": "three"}\n'


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "handbook"
    (home / "qrels").mkdir(parents=True)
    (home / "queries.jsonl").write_text(QUERIES)
    (home / "qrels" / "test.tsv").write_text(QRELS)
    (home / "corpus.jsonl").write_text(CORPUS)
    return home


class TestFolder:
    def test_beir_layout(self, folder):
        dataset = Dataset.read(folder)
        assert (dataset.name, dataset.path, dataset.split) == ("handbook", folder, "test")
        assert dataset.queries.ids == ("q1", "q2")
        assert dataset.qrels.to_dict() == {"q1": {"d1": 2.0}, "q2": {"d2": 1.0}}
        assert dataset.corpus.get("d1") == Document("T", "one")
        assert dataset.label_digest == dataset.qrels.digest
        assert dataset.corpus_digest == digest(folder / "corpus.jsonl")
        assert dataset.warnings == ()
        assert repr(dataset) == "<Dataset handbook: 2 queries, 2 judgments>"

    def test_name_of_the_current_folder(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        assert Dataset.read(".").name == "handbook"
        assert Dataset.read(".", name="other").name == "other"

    def test_compressed_parts(self, folder):
        for part in ("queries.jsonl", "qrels/test.tsv", "corpus.jsonl"):
            path = folder / part
            (folder / f"{part}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        dataset = Dataset.read(folder)
        assert len(dataset.queries) == len(dataset.qrels) == 2
        assert dataset.corpus.get("d2") == Document("", "two")

    def test_without_corpus(self, folder):
        (folder / "corpus.jsonl").unlink()
        dataset = Dataset.read(folder)
        assert dataset.corpus is None
        assert dataset.corpus_digest is None

    def test_without_queries_only_ids_are_known(self, folder):
        (folder / "queries.jsonl").unlink()
        dataset = Dataset.read(folder)
        assert dataset.queries.ids == ("q1", "q2")
        with pytest.raises(DataError, match="has no text"):
            dataset.queries.text("q1")

    def test_trec_judgments(self, folder):
        (folder / "qrels" / "test.tsv").write_text("q1 0 d1 1\n")
        assert Dataset.read(folder).qrels.to_dict() == {"q1": {"d1": 1.0}}


class TestSplits:
    @pytest.fixture
    def splits(self, folder):
        def splits(*names):
            (folder / "qrels" / "test.tsv").unlink()
            for name in names:
                (folder / "qrels" / name).write_text(QRELS)
            return folder

        return splits

    @pytest.mark.parametrize(
        ("names", "split", "chosen"),
        [
            (["test.tsv", "dev.tsv"], None, "test"),
            (["test.tsv", "dev.tsv"], "dev", "dev"),
            (["dev.tsv"], None, "dev"),
            (["dev.v2.txt", "README.md", ".dev.tsv.swp"], None, "dev.v2"),
        ],
    )
    def test_chosen(self, splits, names, split, chosen):
        assert Dataset.read(splits(*names), split=split).split == chosen

    @pytest.mark.parametrize(
        ("names", "split", "said"),
        [
            (["dev.tsv", "train.tsv"], None, "the splits are dev, train and none is test; choose one"),
            (["dev.tsv", "test.tsv"], "tests", "no split 'tests'; did you mean test\\?"),
            ([], None, "no judgments here"),
            (["test.tsv", "test.txt"], None, "test.tsv and test.txt are all the split 'test'"),
        ],
    )
    def test_refused(self, splits, names, split, said):
        with pytest.raises(DataError, match=said):
            Dataset.read(splits(*names), split=split)

    def test_judgments_beside_the_folder(self, folder):
        (folder / "qrels" / "test.tsv").rename(folder / "qrels.tsv")
        (folder / "qrels").rmdir()
        with pytest.raises(DataError, match=r"has no qrels/; .*move qrels\.tsv to qrels/test\.tsv"):
            Dataset.read(folder)


class TestOddities:
    def test_judged_query_without_text_is_kept_and_said(self, folder):
        (folder / "qrels" / "test.tsv").write_text("q1 0 d1 1\nq9 0 d1 1\n")
        dataset = Dataset.read(folder)
        assert "q9" in dataset.qrels.query_ids
        (warning,) = dataset.warnings
        assert "1 judged query is not in" in warning
        assert warning.endswith("q9")

    def test_unicode_forms(self, folder):
        (folder / "queries.jsonl").write_text('{"_id": "Caf\\u00e9", "text": "x"}\n')
        (folder / "qrels" / "test.tsv").write_text("Cafe\u0301 0 d1 1\n", encoding="utf-8")
        (warning,) = Dataset.read(folder).warnings
        assert "1 id matches after Unicode normalisation" in warning
        assert "normalize_ids=True" in warning
        dataset = Dataset.read(folder, normalize_ids=True)
        assert dataset.warnings == ()
        assert dataset.qrels.query_ids == dataset.queries.ids == ("Caf\u00e9",)

    def test_unanswerable_with_relevant_documents(self):
        dataset = Dataset.of(
            queries={"a": {"text": "x", "unanswerable": True}, "b": "y"}, qrels={"a": {"d": 1}, "b": {"d": 1}}
        )
        assert "1 query is marked unanswerable and has relevant documents: a" in dataset.warnings

    def test_repeats_of_the_judgments(self, folder):
        (folder / "qrels" / "test.tsv").write_text("q1 0 d1 1\nq1 0 d1 1\n")
        assert "repeated" in Dataset.read(folder).warnings[0]

    @pytest.fixture
    def library(self, tmp_path):
        """A folder of which the corpus has slugs, snails and moss; the judgments are to be written."""
        (tmp_path / "qrels").mkdir()
        corpus = "".join(f'{{"_id": "{doc}", "text": "{doc}"}}\n' for doc in ("slugs", "snails", "moss"))
        (tmp_path / "corpus.jsonl").write_text(corpus)

        def judged(rows):
            (tmp_path / "qrels" / "test.tsv").write_text("".join(f"{row}\n" for row in rows))
            return Dataset.read(tmp_path)

        return judged

    def test_judged_document_that_the_corpus_lacks(self, library, tmp_path):
        dataset = library(["q1 0 snails 1", "q2 0 slgus 3", "q2 0 moss 1", "q3 0 slgus 0"])
        said = f"1 judged document is not in {tmp_path / 'corpus.jsonl'}: 'slgus' (q2); did you mean slugs?"
        assert dataset.warnings == (said,)
        assert library(["q1 0 snails 1", "q2 0 slugs 3"]).warnings == ()

    def test_several_judged_documents_that_the_corpus_lacks(self):
        found = Dataset.of(
            qrels={"q1": ["a", "b", "c", "d", "snails", "slugs", "17"], "q2": ["slgus", "71"]},
            corpus=dict.fromkeys(["a", "b", "c", "d", "snails", "slugs", "18"], "text"),
        ).warnings
        assert found == (
            "3 judged documents are not in the corpus: '17' (q1), 'slgus' (q2), '71' (q2); "
            "'slgus': did you mean slugs?",
        )
        other = Dataset.of(qrels={"q1": ["a", "b", "xyz"]}, corpus={"a": "text", "b": "text"})
        assert other.warnings == ("1 judged document is not in the corpus: 'xyz' (q1)",)

    def test_labels_that_are_on_something_else_than_documents(self, library, tmp_path):
        assert library(["q1 0 slugs#1 1", "q1 0 moss#1 1"]).warnings == ()
        assert library(["q1 0 slugs#1 1", "q1 0 moss#1 1", "q1 0 moss 1"]).warnings == ()
        (tmp_path / "chunks.jsonl").write_text('{"chunk_id": "slugs#1", "doc_id": "slugs", "start": 0, "end": 2}\n')
        assert library(["q1 0 slugs#1 1", "q1 0 moss 1", "q1 0 snails 1"]).warnings == ()
        (warning,) = library(["q1 0 slugs#1 1", "q1 0 moss 1", "q1 0 snails 1", "q1 0 snials 1"]).warnings
        assert "'snials' (q1); did you mean snails?" in warning

    def test_a_large_or_damaged_corpus_is_not_looked_into(self, library, tmp_path, monkeypatch):
        rows = ["q1 0 snails 1", "q2 0 slgus 3", "q2 0 moss 1"]
        with monkeypatch.context() as patch:
            patch.setattr("pytest_retrieval_eval.collection.dataset.LARGEST_CORPUS", 10)
            assert library(rows).warnings == ()
        with (tmp_path / "corpus.jsonl").open("a") as file:
            file.write("no document\n")
        assert library(rows).warnings == ()  # whoever needs a text will say so

    def test_two_queries_with_one_text_stay_two(self):  # case 42
        dataset = Dataset.of(queries={"a": "same", "b": "same"}, qrels={"a": ["x"], "b": ["y"]})
        assert dataset.qrels.to_dict() == {"a": {"x": 1.0}, "b": {"y": 1.0}}
        assert len(dataset.queries) == 2

    @pytest.mark.parametrize("content", ["", "\n"])
    def test_empty_parts(self, folder, content):
        (folder / "queries.jsonl").write_text(content)
        with pytest.raises(DataError, match="no queries in"):
            Dataset.read(folder)
        (folder / "queries.jsonl").write_text(QUERIES)
        (folder / "qrels" / "test.tsv").write_text(content)
        with pytest.raises(DataError, match="no judgments in"):
            Dataset.read(folder)

    def test_no_such_dataset(self, tmp_path):
        with pytest.raises(DataError, match="no such file"):
            Dataset.read(tmp_path / "nothing")


class TestOneFile:
    ROWS = (
        {"query_id": "q1", "query": "refund?", "relevant": {"d1": 2, "d2": 0}, "tags": {"type": "policy"}},
        {"query_id": 2, "query": "price?", "relevant": ["d2"]},
        {"query_id": "q3", "query": "lunch?", "unanswerable": True},
    )

    @pytest.fixture
    def write(self, tmp_path):
        def write(*rows):
            path = tmp_path / "shop.v2.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            return path

        return write

    def test_rows(self, write):
        dataset = Dataset.read(write(*self.ROWS))
        assert dataset.name == "shop.v2"
        assert dataset.queries.ids == ("q1", "2", "q3")
        assert dataset.queries.select({"type": "policy"}) == {"q1"}
        assert dataset.qrels.to_dict() == {"q1": {"d1": 2.0, "d2": 0.0}, "2": {"d2": 1.0}}
        assert dataset.queries.unanswerable == {"q3"}
        assert dataset.corpus is None

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"query": "x", "relevant": []}, "no 'query_id'"),
            ({"query_id": "a", "relevant": []}, "has no 'text'"),
            ({"query_id": "a", "query": "x"}, "has no 'relevant'"),
            ({"query_id": "a", "query": "x", "relevent": []}, "found 'relevent'"),
            ({"query_id": "a", "query": "x", "relevant": "d1"}, "judgments are 'd1'"),
            ({"query_id": "q1", "query": "x", "relevant": []}, "stands already at .*:1"),
        ],
    )
    def test_refused(self, write, row, said):
        with pytest.raises(DataError, match=rf"shop\.v2\.jsonl:2: .*{said}"):
            Dataset.read(write(self.ROWS[0], row))

    def test_nothing_relevant_anywhere(self, write):
        with pytest.raises(DataError, match="no judgments"):
            Dataset.read(write({"query_id": "a", "query": "x", "relevant": []}))

    def test_a_file_has_no_splits(self, write):
        with pytest.raises(DataError, match="only a dataset folder has splits"):
            Dataset.read(write(*self.ROWS), split="dev")


class TestOf:
    def test_objects_and_mappings(self):
        qrels = Qrels.of({"a": ["d"]})
        dataset = Dataset.of(qrels=qrels, corpus={"d": "text", 1: {"title": "t", "text": "u"}}, name="n")
        assert dataset.qrels is qrels
        assert dataset.queries.ids == ("a",)
        assert dataset.corpus.get_many(["1", "z", "d"]) == {
            "1": Document("t", "u"),
            "d": Document("", "text"),
        }
        assert dataset.corpus_digest.startswith("sha256:")

    def test_empty(self):
        with pytest.raises(DataError, match="no judgments"):
            Dataset.of(qrels={})
        with pytest.raises(DataError, match="has no judgments"):
            Dataset.of(queries={"a": "x"}, qrels=Qrels.of({"a": ["d"]}).select([]))


class TestBaselinePath:
    def test_of_a_folder(self, folder):
        assert Dataset.read(folder).baseline_path("main") == folder / "baselines" / "main.run.jsonl.gz"

    def test_of_a_file(self, tmp_path):
        path = tmp_path / "shop.jsonl"
        path.write_text('{"query_id": "a", "query": "x", "relevant": ["d"]}\n')
        expected = tmp_path / "baselines" / "shop" / "release-4.1.run.jsonl.gz"
        assert Dataset.read(path).baseline_path("release-4.1") == expected

    @pytest.mark.parametrize("name", ["", "../x", "a/b", "a\\b", "a:b", ".hidden", "..", "a\nb", "a\0", None, "a b"])
    def test_names_stay_in_the_folder(self, folder, name):
        with pytest.raises(DataError, match="no name of a baseline"):
            Dataset.read(folder).baseline_path(name)

    def test_in_memory(self):
        with pytest.raises(DataError, match="retrieval_baseline_dir"):
            Dataset.of(qrels={"a": ["d"]}, name="n").baseline_path("main")


class TestCorpus:
    def test_nothing_is_read_before_it_is_asked(self, tmp_path):
        corpus = Corpus.read(tmp_path / "absent.jsonl")
        with pytest.raises(DataError, match="no such file"):
            corpus.get("d1")

    def test_one_pass_keeps_what_was_asked(self, folder, monkeypatch):
        passes = []
        read = dataset_module.lines

        def counted(path):
            passes.append(path)
            return read(path)

        monkeypatch.setattr(dataset_module, "lines", counted)
        corpus = Corpus.read(folder / "corpus.jsonl")
        assert list(corpus.get_many(["3", "d1", "none"])) == ["3", "d1"]
        assert corpus.get("d1") == Document("T", "one")
        assert corpus.get("none") is None
        assert len(passes) == 1

    def test_a_pass_ends_with_the_last_one_found(self, tmp_path):
        path = tmp_path / "corpus.jsonl"
        path.write_text(CORPUS + "malformed\n")
        corpus = Corpus.read(path)
        assert corpus.get("3") == Document("", "three")
        with pytest.raises(DataError, match=r"corpus\.jsonl:4: malformed JSON"):
            corpus.get("d9")

    @pytest.mark.parametrize(
        "line",
        [
            '{"text": "x", "_id": "a\\"b"}',
            '{"_id": "a\\"b", "text": "x"}',
            '{"id": "a\\"b", "text": "x", "title": null}',
            '  {  "_id"  :  "a\\u0022b"  , "text": "x"}',
            '{"metadata": {"_id": "z"}, "_id": "a\\"b", "text": "x"}',
        ],
    )
    def test_wherever_the_id_stands(self, tmp_path, line):
        path = tmp_path / "corpus.jsonl"
        path.write_text(line + "\n")
        assert Corpus.read(path).get('a"b') == Document("", "x")

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ('{"_id": "a", "title": "x"}', "text None"),
            ('{"_id": "a", "text": 1}', "text 1"),
            ('{"_id": "a", "text": "x", "title": []}', "title \\[\\]"),
            ('{"text": "x"}', "no '_id'"),
            ('{"_id": null, "text": "x"}', "None is no id"),
            ('["a"]', "one JSON object"),
            ('{"_id": "a", "text": ', "malformed JSON"),
        ],
    )
    def test_refused(self, tmp_path, line, said):
        path = tmp_path / "corpus.jsonl"
        path.write_text(line + "\n")
        with pytest.raises(DataError, match=rf"corpus\.jsonl:1: .*{said}"):
            Corpus.read(path).get("a")

    def test_digest_of_documents(self):
        one, two, other = (
            Corpus.of({"a": "x", "b": "y"}),
            Corpus.of({"b": "y", "a": "x"}),
            Corpus.of({"a": "x"}),
        )
        assert one.digest == two.digest != other.digest


class TestSpansAndNoQrels:
    SPANS = '{"query_id": "q1", "doc_id": "d1", "start": 0, "end": 3}\n'

    def test_a_folder_has_spans(self, folder):
        assert Dataset.read(folder).spans is None
        (folder / "spans.jsonl").write_text(self.SPANS)
        dataset = Dataset.read(folder)
        assert dataset.spans.of_query("q1")[0].doc_id == "d1"
        assert dataset.spans is dataset.spans
        assert len(dataset.qrels) == 2

    def test_spans_may_stand_without_qrels(self, folder):
        (folder / "spans.jsonl").write_text(self.SPANS)
        shutil.rmtree(folder / "qrels")
        dataset = Dataset.read(folder)
        assert (len(dataset.qrels), dataset.qrels.query_ids, dataset.split) == (0, ("q1", "q2"), None)
        assert len(dataset.spans) == 1
        (folder / "queries.jsonl").unlink()
        assert Dataset.read(folder).queries.ids == ("q1",)
        with pytest.raises(DataError, match="no qrels/"):
            Dataset.read(folder, split="dev")

    def test_answers_may_stand_without_qrels(self, folder):
        (folder / "answers.jsonl").write_text('{"query_id": "q1", "answers": ["14 days"]}\n')
        shutil.rmtree(folder / "qrels")
        assert Dataset.read(folder).qrels.query_ids == ("q1", "q2")
        (folder / "queries.jsonl").unlink()
        with pytest.raises(DataError, match="nothing names the queries"):
            Dataset.read(folder)

    def test_without_any_labels_it_is_an_error(self, folder):
        shutil.rmtree(folder / "qrels")
        with pytest.raises(DataError, match="no qrels/"):
            Dataset.read(folder)
        (folder / "spans.jsonl").write_text(self.SPANS)
        (folder / "qrels.tsv").write_text(QRELS)
        with pytest.raises(DataError, match=r"move qrels\.tsv to qrels/test\.tsv"):
            Dataset.read(folder)

    def test_ids_are_normalised_throughout(self, folder):
        (folder / "spans.jsonl").write_text('{"query_id": "q1", "doc_id": "Cafe\u0301", "start": 0, "end": 3}\n')
        (folder / "chunks.jsonl").write_text('{"chunk_id": "e\u0301", "doc_id": "Cafe\u0301"}\n')
        assert Dataset.read(folder).spans.doc_ids == ("Cafe\u0301",)
        dataset = Dataset.read(folder, normalize_ids=True)
        assert (dataset.spans.doc_ids, list(dataset.chunks)) == (("Café",), ["é"])

    def test_in_memory(self):
        dataset = Dataset.of(queries={"q1": "refund?", "q2": "price?"}, spans={"q1": [("d1", 0, 3)]})
        assert dataset.qrels.query_ids == ("q1", "q2")
        assert len(dataset.qrels) == 0
        assert dataset.spans.of_query("q1")[0].end == 3
        assert Dataset.of(spans={"q1": [("d1", 0, 3)]}).queries.ids == ("q1",)
        with pytest.raises(DataError, match="neither qrels nor spans"):
            Dataset.of(queries={"q1": "refund?"})


def test_a_part_that_is_replaced_takes_along_nothing_that_was_worked_out_from_the_former_one():
    text = "Since May refunds take 14 days."
    dataset = Dataset.of(
        queries={"q": "how long?"},
        qrels={"q": ["c"]},
        spans={"q": [{"doc_id": "d", "start": 8, "end": 30, "text": "refunds take 14 days."}]},
        corpus={"d": "Until 1999, " + text},
        chunks={"c": Chunk("d", text="refunds take 14 days.")},
    )
    assert (dataset.anchors.current.start.tolist(), dataset.chunks.placed().start.tolist()) == ([22], [22])
    edited = replace(dataset, corpus=Corpus.of({"d": text}), name="edited")
    assert (edited.anchors.current.start.tolist(), edited.chunks.placed().start.tolist()) == ([10], [10])
    assert dataset.anchors.current.start.tolist() == [22]
    qrels = dataset.qrels
    assert qrels.grade("q", "c") == 1
    other = replace(qrels, grades=np.array([3.0]))
    assert (other.grade("q", "c"), other.digest != qrels.digest) == (3, True)
    spans = dataset.spans
    assert spans.digest != replace(spans, start=np.array([9])).digest
    tagged = Queries.of({"q": {"text": "?", "tags": {"type": "a"}}})
    others = Queries.of({"q": {"text": "?", "tags": {"type": "b"}}})
    assert [*tagged.values_of("type")] == ['"a"']
    assert [*replace(tagged, _by_id=others._by_id).values_of("type")] == ['"b"']
