"""Held-out labels from a folder of judgments: which count, with which weights, and what is refused."""

from __future__ import annotations

import pytest

from pytest_retrieval_eval import GateError
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.labels.judging.replies import Scale
from pytest_retrieval_eval.labels.judgments import Judgment, Judgments, text_hash
from pytest_retrieval_eval.studies.heldout import held_out, of_slice

OLD, NEW = text_hash("old"), text_hash("new")


class Fixed:
    def __init__(self, kind):
        self.identity, self.scale, self.floating = {"kind": kind}, Scale(0, 1), ""


def folder(place, people, judge, kind="fixed"):
    judgments = Judgments(place)
    name = judgments.keep(Fixed(kind)).name
    judgments.add_human("ann", people)
    judgments.add(name, judge)
    return Judgments.open(place, judged_by=(name,))


def label(doc, grade, *, text=OLD, **more):
    return Judgment("q", OLD, doc, text, grade, **more)


def test_what_is_held_out_and_of_the_same_text(tmp_path):
    people = [
        label("a", 1, part="heldout"),
        label("b", 0, part="heldout", text=NEW),  # edited since the judge read it
        label("c", 1, part="dev"),
        label("d", 1),
        label("e", 1, part="heldout", who="ann"),
        label("e", 1, part="dev", who="bob"),  # tuned on, by someone else
        label("f", 1, part="heldout"),
        label("f", 0, part="heldout", text=NEW),  # two texts of one document are two pairs
    ]
    judge = [label(doc, 1) for doc in "abcdef"] + [label("f", 1, text=NEW)]
    found = held_out(folder(tmp_path / "judgments", people, judge))
    assert len(found.human) == 4
    assert found.human["q", "a"] == 1
    assert sorted(found.human.values()) == [0, 0, 1, 1]
    assert ("q", "b") in found.human
    assert ("q", "b") not in found.grades
    assert len(found.grades) == 3
    assert len(found.pool) == 7
    assert found.weights is None


def test_weights_come_with_the_labels(tmp_path):
    judge = [label("a", 1), label("b", 0)]
    people = [label("a", 1, part="heldout", w=10.0), label("b", 1, part="heldout", w=1.0)]
    found = held_out(folder(tmp_path / "judgments", people, judge))
    assert found.weights == {("q", "a"): 10.0, ("q", "b"): 1.0}
    assert found.pool is None  # the judge has graded nothing else
    mixed = [label("a", 1, part="heldout", w=10.0), label("b", 1, part="heldout")]
    with pytest.raises(GateError, match="1 of 2 held-out labels have no weight, and the others have one; the first is"):
        held_out(folder(tmp_path / "mixed", mixed, judge))


def test_one_judge_at_a_time_and_no_labels(tmp_path):
    place = tmp_path / "judgments"
    first = folder(place, [label("a", 1, part="heldout")], [label("a", 1)])
    second = folder(place, [], [label("a", 0)], kind="other")
    both = Judgments.open(place, judged_by=(first.chosen[0].name, second.chosen[0].name))
    with pytest.raises(GateError, match="one judge is validated at a time"):
        held_out(both)
    assert held_out(second).grades == {("q", "a"): 0}
    with pytest.raises(GateError, match="holds no label that is held out"):
        held_out(folder(tmp_path / "none", [label("a", 1, part="dev")], [label("a", 1)]))


def test_a_slice_is_of_its_queries_alone(tmp_path):
    def of(query, doc, grade, **more):
        return Judgment(query, OLD, doc, OLD, grade, **more)

    people = [of(q, d, 1, part="heldout", w=w) for q, d, w in (("q1", "a", 1.0), ("q2", "a", 5.0), ("q2", "b", 2.0))]
    judge = [of("q1", "a", 1), of("q1", "z", 0), of("q2", "a", 0), of("q2", "b", 1), of("q2", "z", 1)]
    whole = held_out(folder(tmp_path / "judgments", people, judge))
    tags = {"q1": {"text": "?", "tags": {"type": "sure"}}, "q2": {"text": "?", "tags": {"type": "dear"}}}
    dataset = Dataset.of(queries={**tags, "q3": {"text": "?", "tags": {"type": "none"}}}, qrels={"q1": ["a"]})
    found = of_slice(whole, dataset, {"type": "dear"})
    assert found.human == {("q2", "a"): 1, ("q2", "b"): 1}
    assert found.grades == {("q2", "a"): 0, ("q2", "b"): 1}
    assert found.weights == {("q2", "a"): 5.0, ("q2", "b"): 2.0}
    assert len(found.pool) == 3
    assert set(found.by_ids) == {("q2", "a"), ("q2", "b"), ("q2", "z")}
    with pytest.raises(GateError, match="none of the 3 held-out pairs is of one of the 1 queries"):
        of_slice(whole, dataset, {"type": "none"})
