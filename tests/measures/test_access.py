"""leaks@k and withheld: counted against plain sets, and never silent about what nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import DataError, Dataset, GateError, Qrels, Queries, Run, evaluate
from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.runs.hits import Hit
from pytest_retrieval_eval.collection.spans.chunks import Chunks

ROLES = ["staff", "hr", "board"]
DOCS = "abcdef"


def queries_of(**roles):
    return Queries.of({query_id: {"text": query_id, "roles": each} for query_id, each in roles.items()})


def corpus_of(**roles):
    return Corpus.of({doc: {"text": doc, "roles": each} for doc, each in roles.items()})


@settings(max_examples=40, deadline=None)
@given(
    asker=st.lists(st.sampled_from(ROLES), unique=True),
    readers=st.fixed_dictionaries({doc: st.lists(st.sampled_from([*ROLES, "*"]), unique=True) for doc in DOCS}),
    docs=st.lists(st.sampled_from(DOCS), unique=True, min_size=1),
    gold=st.sets(st.sampled_from(DOCS)),
    k=st.integers(1, 7),
)
def test_leaks_are_what_stands_there_and_may_not_be_read(asker, readers, docs, gold, k):
    queries, corpus, run = queries_of(q=asker), corpus_of(**readers), Run.of({"q": docs})
    allowed = {doc for doc in DOCS if "*" in readers[doc] or set(asker) & set(readers[doc])}
    qrels = Qrels.of({"q": dict.fromkeys(gold, 1)}) if gold else None
    scores = evaluate(qrels, run, f"leaks@{k}", queries=queries, corpus=corpus).scores(f"leaks@{k}")
    assert scores.to_dict() == {"q": len(set(docs[:k]) - allowed)}
    if qrels is not None:
        filtered = Run.of({"q": [doc for doc in docs if doc in allowed][1:]})
        text, given = "withheld(from=fused)", {"queries": queries, "corpus": corpus, "stages": {"fused": run}}
        if gold.isdisjoint(docs):
            with pytest.raises(GateError, match=r"the stage fused has no relevant document in any list"):
                evaluate(qrels, filtered, text, **given)
            return
        scores = evaluate(qrels, filtered, text, **given).scores(text)
        assert scores.to_dict() == {"q": len(gold & set([doc for doc in docs if doc in allowed][:1]))}


def test_every_query_counts_whatever_is_relevant_or_judged():
    queries = Queries.of(
        {
            "relevant": {"text": "1", "roles": ["staff"]},
            "judged": {"text": "2", "roles": "staff"},
            "unjudged": {"text": "3", "roles": []},
            "unanswerable": {"text": "4", "roles": ["hr"], "unanswerable": True},
        }
    )
    corpus = corpus_of(open=["*"], secret=["hr"])
    qrels = Qrels.of({"relevant": {"open": 1}, "judged": {"open": 0}})
    run = Run.of({query_id: ["open", "secret"] for query_id in queries})
    evaluation = evaluate(qrels, run, ["leaks@2", "recall@2"], queries=queries, corpus=corpus)
    expected = {"relevant": 1.0, "judged": 1.0, "unjudged": 1.0, "unanswerable": 0.0}
    assert evaluation.scores("leaks@2").to_dict() == expected
    assert evaluation.scores("recall@2").to_dict() == {"relevant": 1.0}
    assert not evaluation.counts.notes()
    assert evaluate(None, run, "leaks@1", queries=queries, corpus=corpus).scores("leaks@1").mean == 0


def test_chunks_are_read_by_whoever_may_read_their_document():
    queries, corpus = queries_of(q=["staff"]), corpus_of(guide=["*"], pay=["hr"])
    chunks = Chunks.of({"c1": "guide", "c2": "pay"})
    run = Run.of({"q": [Hit("c1"), Hit("x", doc_id="pay"), Hit("c2")]})
    assert evaluate(None, run, "leaks", queries=queries, corpus=corpus, chunks=chunks).scores("leaks").mean == 2


def test_a_stage_that_was_not_asked_holds_nothing_to_withhold():
    queries, corpus = queries_of(q=["staff"], p=["staff"]), corpus_of(a=["*"])
    qrels, run = Qrels.of({"q": ["a"], "p": ["a"]}), Run.of({"q": ["a"], "p": ["a"]})
    for stage, said in (
        (Run.of({"q": ["a"]}), r"no list for 1 query \(p\)"),
        (Run.of({"q": [], "p": []}), "no relevant"),
    ):
        with pytest.raises(GateError, match=rf"the stage fused has {said}"):
            evaluate(qrels, run, "withheld(from=fused)", queries=queries, corpus=corpus, stages={"fused": stage})


Q, D = {"q": ["staff"]}, {"a": ["*"], "b": ["hr"]}


@pytest.mark.parametrize(
    ("queries", "docs", "said"),
    [
        ({"q": None}, D, r"1 query says \(q\) not who asks"),
        ({"q": ["*"]}, D, "which on a document means that everybody may"),
        (Q, {"a": ["*"], "b": None}, r"1 document is without roles in corpus.jsonl.*first is b, rank 2 of query q"),
        (Q, {"a": ["*"]}, r"1 document is not in the corpus.*first is b, rank 2 of query q"),
        ({"q": ["staff"], "other": ["staff"]}, D, r"the run has no list for 1 query \(other\)"),
        (Q, None, "the dataset has no corpus.jsonl"),
        (None, D, "need the queries, which say who asks"),
    ],
)
def test_what_nobody_knows_is_no_absence_of_leaks(queries, docs, said):
    with pytest.raises(GateError, match=said):
        evaluate(
            Qrels.of({"q": ["a"]}),
            Run.of({"q": ["a", "b"]}),
            "leaks@2",
            queries=None if queries is None else queries_of(**queries),
            corpus=None if docs is None else corpus_of(**docs),
        )


def test_only_what_was_selected_must_be_known():
    queries, corpus = queries_of(q=["staff"], other=None), corpus_of(a=["*"])
    run = Run.of({"q": ["a"], "other": ["nowhere"]})
    assert evaluate(None, run, "leaks@2", queries=queries, corpus=corpus, select=["q"]).scores("leaks@2").mean == 0


def test_a_query_that_failed_is_no_query_without_leaks():
    queries, corpus = queries_of(q=["staff"], broken=["staff"]), corpus_of(a=["*"])
    run = Run.of({"q": ["a"], "broken": []}, errors={"broken": "timed out"})
    assert evaluate(None, run, "leaks@1", queries=queries, corpus=corpus).scores("leaks@1").query_ids == ("q",)


def test_roles_are_read_from_files_and_are_part_of_the_digest(tmp_path):
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "pay?", "roles": ["staff"]}\n')
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "pay", "roles": ["hr", "board"]}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    dataset = Dataset.read(tmp_path)
    assert dataset.corpus.get("a").roles == ("hr", "board")
    assert dataset.queries.says_roles("q")
    assert not Queries.of({"q": "text"}).says_roles("q")
    assert corpus_of(a=["hr"]).digest != corpus_of(a=["*"]).digest
    with pytest.raises(DataError, match="the roles of the document are 7; expected a list of strings"):
        corpus_of(a=7)
