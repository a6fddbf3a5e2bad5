"""KILT's downstream metrics, against its own figures and slow forms of its rules."""

from __future__ import annotations

import re
import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.labels import answers

# What was answered, the gold answer, then KILT's EM, F1 and ROUGE-L.
GOLDEN = [
    ("the", "a", 1.0, 0.0, 0.0),
    ("U.S.A.", "USA", 1.0, 1.0, 0.0),
    ("well-known", "well known", 0.0, 0.0, 0.0),
    ("“Paris”", "Paris", 0.0, 0.0, 0.0),
    ("vitamin A", "vitamin", 1.0, 1.0, 2 / 3),
    ("A", "a", 1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("predicted", "gold", "em", "f1", "rouge_l"), GOLDEN)
def test_kilts_own_figures(predicted, gold, em, f1, rouge_l):
    assert answers.em(predicted, gold) == em
    assert answers.f1(predicted, gold) == f1
    assert answers.rouge_l(predicted, gold) == pytest.approx(rouge_l, abs=1e-4)


def test_accuracy_keeps_the_case():
    assert answers.em("SUPPORTS", "supports") == 1
    assert answers.accuracy("SUPPORTS", "supports") == 0
    assert answers.accuracy(" SUPPORTS\n", "SUPPORTS") == 1


def test_rouge_is_that_of_the_package():
    assert answers.rouge_l("the same words", "the same words") == pytest.approx(0.999999995, abs=1e-12)
    assert answers.rouge_l("", "x") == answers.rouge_l("x", "...") == answers.rouge_l("...", "...") == 0


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge", None)
    answers._rouge.cache_clear()
    with pytest.raises(GateError, match=r"rouge_l needs the package rouge.*\[erag\]"):
        answers.rouge_l("a b", "a c")
    answers._rouge.cache_clear()


@pytest.mark.parametrize("name", ["em", "f1", "rouge_l", "accuracy"])
def test_a_blank_answer_scores_nothing(name):
    # Before normalisation: "the" and "" have the same normal form.
    assert answers.answer_score(name, " \n", ["the", " "]) == 0


def test_the_best_over_the_gold_answers():
    assert answers.answer_score(
        "f1", "fourteen days", ["two weeks", "14 days", "fourteen working days"]
    ) == pytest.approx(0.8)
    assert answers.answer_score("f1", "x", []) is None  # nothing can be scored, which is no 0


WORDS = st.lists(st.sampled_from(["a", "The", "an", "vat", "VAT", "20", "%", "U.S.", "well-known", "é", "  "]))
TEXTS = WORDS.map(" ".join) | st.text(max_size=20)


def slowly(text):
    kept = "".join(char for char in text.lower() if char not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


@given(TEXTS)
def test_the_normal_form_is_kilts(text):
    assert answers.normalised_answer(text) == slowly(text)
    assert answers.normalised_answer(answers.normalised_answer(text)) == slowly(slowly(text))


@given(TEXTS, TEXTS)
def test_f1_is_the_harmonic_mean(predicted, gold):
    ours, theirs = slowly(predicted).split(), slowly(gold).split()
    left, same = list(theirs), 0
    for word in ours:
        if word in left:
            left.remove(word)
            same += 1
    expected = 0.0
    if same:
        precision, recall = same / len(ours), same / len(theirs)
        expected = 2 * precision * recall / (precision + recall)
    assert answers.f1(predicted, gold) == pytest.approx(expected, abs=1e-12)
    assert answers.f1(predicted, gold) == answers.f1(gold, predicted)


def test_a_metric_of_ones_own():
    def first_word(predicted, gold):
        return float(predicted.split()[0] == gold.split()[0])

    assert answers.answer_score(first_word, "Umeå today", ["Graz", "Umeå"]) == 1
    answers.register("first_word", first_word)
    try:
        assert answers.answer_score("first_word", "Umeå today", ["Umeå"]) == 1
        with pytest.raises(SettingsError, match="'first_word' already"):
            answers.register("first_word", answers.em)
    finally:
        answers.unregister("first_word")
    with pytest.raises(SettingsError, match="no answer metric 'first_word'"):
        answers.metric("first_word")
    with pytest.raises(SettingsError, match="a name and a function"):
        answers.register("two words", first_word)


@pytest.mark.parametrize("value", [float("nan"), 1.5, -0.1, None, "much", 10**400])
def test_a_value_that_is_no_degree(value):
    with pytest.raises(GateError, match=r"answer metric odd gave .*; expected a number from 0 to 1"):
        answers.answer_score(type("odd", (), {"__call__": lambda self, p, g: value})(), "x", ["y"])


def test_the_last_digits_are_forgiven():
    assert answers.answer_score(lambda predicted, gold: 1.0000001, "x", ["y"]) == 1.0


def test_what_a_metric_raises_is_said():
    def odd(predicted, gold):
        return 1 / (len(gold) - 3)

    assert answers.answer_score(odd, "Paris", ["Paris"]) == 0.5
    place = f"tests/labels/test_answer_metrics.py:{odd.__code__.co_firstlineno + 1} in odd"
    with pytest.raises(GateError, match=rf"metric odd raised ZeroDivisionError: [a-z ]+ by zero \({place}\)"):
        answers.answer_score(odd, "Paris", ["Paris", "Ulm"])
