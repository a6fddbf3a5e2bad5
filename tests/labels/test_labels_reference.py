"""Labels of several sources, over runs that use one id for different parts, against a slow form of the rules."""

from __future__ import annotations

import random
from math import log2

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval import Dataset, GateError, Run, Span
from pytest_retrieval_eval.collection.runs.hits import Hit

WORDS = ["ant", "bee", "cat", "dog", "eel", "fox"]
QUERIES = ("q1", "q2", "q3")


class Side:
    """A run over documents that were cut into parts of one size: ids are numbers, and so used by every chunking."""

    def __init__(self, rng, docs, name):
        size = rng.choice([8, 12, 20])
        self.parts = {
            f"{doc}{number}": (doc, start, min(start + size, len(text)))
            for doc, text in docs.items()
            for number, start in enumerate(range(0, len(text), size))
        }
        self.lists = {
            query: rng.sample(sorted(self.parts), min(len(self.parts), rng.randint(query == "q1", 4)))
            for query in QUERIES
        }
        rows = {query: [Hit(each, None, *self.parts[each]) for each in found] for query, found in self.lists.items()}
        self.run = Run.of(rows, name=name)

    def of_spans(self, spans):
        return {
            query: {
                each: max([0, *(s.grade for s in gold if shared(s, self.parts[each]))]) for each in self.lists[query]
            }
            for query, gold in spans.items()
        }

    def of_answers(self, other, answers, docs, k, both):
        own = {each for query in answers for each in self.lists[query][:k]}
        found = {}
        for query, answer in answers.items():
            pool = [each for side in both for each in side.lists[query][:k]]
            read = {each: (self if each in own else other).parts[each] for each in pool}
            found[query] = {each: float(answer in docs[d][s:e].split()) for each, (d, s, e) in read.items()}
        return found


def shared(span, part):
    doc, start, end = part
    overlap = min(end, span.end) - max(start, span.start)
    return span.doc_id == doc and overlap > 0 and 2 * overlap >= min(end - start, span.end - span.start)


def ndcg(made, lists, always, k):
    values = {}
    for query, grades in made.items():
        ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
        if ideal:
            gains = [max(grades.get(each, 0), 0) / log2(rank) for rank, each in enumerate(lists[query][:k], 2)]
            values[query] = sum(gains) / sum(grade / log2(rank) for rank, grade in enumerate(ideal, 2))
        elif query in always:
            values[query] = 0.0
    return values


@pytest.mark.parametrize(
    "labels", [["spans"], ["contains(dpr)"], ["spans", "contains(dpr)"], ["contains(dpr)", "spans"]], ids=", ".join
)
def test_random_runs(labels):
    compared = 0
    for seed in range(30):
        rng = random.Random(seed)
        docs = {doc: " ".join(rng.choice(WORDS) for _ in range(12)) for doc in "xy"}
        new, old = Side(rng, docs, "new"), Side(rng, docs, "old")
        spans = {}
        for query in QUERIES[:2]:
            starts = {(rng.choice("xy"), rng.randint(0, 30)): rng.choice([0, 1, 2]) for _ in range(2)}
            spans[query] = [Span(query, doc, at, at + rng.randint(2, 9), grade) for (doc, at), grade in starts.items()]
        answers = {query: rng.choice(WORDS) for query in QUERIES[1:]}
        k = rng.randint(1, 3)
        dataset = Dataset.of(
            queries=dict.fromkeys(QUERIES, "text"),
            spans=spans,
            answers={query: [answer] for query, answer in answers.items()},
            corpus=docs,
            name="parts",
        )
        always = {query for query in spans if "spans" in labels and any(span.grade > 0 for span in spans[query])}
        always |= set(answers) if "contains(dpr)" in labels else set()
        expected = []
        for side, other in ((new, old), (old, new)):
            sources = {
                "spans": side.of_spans(spans),
                "contains(dpr)": side.of_answers(other, answers, docs, k, (new, old)),
            }
            made = {}
            for name in labels:
                for query, grades in sources[name].items():
                    made[query] = {**grades, **made.get(query, {})}
            expected.append(ndcg(made, side.lists, always, k))
        try:
            verdict = MemoryBench(dataset, new.run, old.run).decide(f"ndcg@{k} >= baseline", labels=labels)
        except GateError as error:  # nothing was found, or nothing is to be found
            if "no query counts" not in str(error) and "returned no document" not in str(error):
                raise
            continue
        compared += 1
        assert verdict.n == len(expected[0])
        means = [sum(values.values()) / len(values) for values in expected]
        assert (verdict.value, verdict.reference) == (pytest.approx(means[0]), pytest.approx(means[1])), seed
    assert compared > 20
