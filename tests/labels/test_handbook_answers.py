"""The example's gold answers are true to its text, and make labels."""

from __future__ import annotations

import json

from support import ROOT

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.labels.source import source
from pytest_retrieval_eval.measures.evaluate import evaluate

FOLDER = ROOT / "examples" / "handbook" / "eval" / "handbook"


def test_every_answer_stands_in_a_gold_quote():
    dataset = Dataset.read(FOLDER)
    answers = dataset.answers
    assert answers is not None
    quotes: dict[str, list[str]] = {}
    for line in (FOLDER / "quotes.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        quotes.setdefault(row["query_id"], []).append(row["quote"].lower())
    assert len(answers) >= 190
    for query in answers:
        assert query not in dataset.queries.unanswerable
        for answer in answers.of_query(query):
            assert any(answer.lower() in quote for quote in quotes[query]), (query, answer)


def test_labels_of_the_stored_run():
    dataset = Dataset.read(FOLDER)
    run = Run.read(dataset.baseline_path("main"))
    for name in ("contains(kilt)", "contains(dpr)"):
        labelling = source(name).label(dataset, [run], depth=5, select=None)
        qrels = labelling.qrels_of(run)
        found = evaluate(qrels, run, "hit@5", queries=dataset.queries)["hit@5"]
        assert found.n == len(dataset.answers or ())
        assert 0.85 < found.mean < 1
        # Nearly every document that answers fully, as judged by hand, contains the answer.
        full = [
            qrels.grade(query, doc)
            for query in qrels.query_ids
            for doc, grade in dataset.qrels.of_query(query).items()
            if grade == 3 and qrels.grade(query, doc) is not None
        ]
        assert len(full) > 150
        assert sum(map(bool, full)) / len(full) > 0.9, name
        assert len(labelling.notes) == 1
        assert "no gold answer" in labelling.notes[0]
