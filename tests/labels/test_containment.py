"""Answer containment in KILT's and DPR's way, against slow forms of both rules."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.labels.answers import normalised_answer
from pytest_retrieval_eval.labels.containment import contains_dpr, contains_kilt


@pytest.mark.parametrize(
    ("text", "answer", "kilt", "dpr"),
    [
        ("The deadline is 14 days.", "14 Days", True, True),
        ("a party of ten", "art", True, False),  # part of a word
        ("the U.S.A. and others", "USA", True, False),  # DPR keeps points as words
        ("the U.S.A. and others", "U.S.A.", True, True),
        ("up to 14  \n days", "14 days", True, True),  # white space
        ("fourteen (14) days", "14 days", True, False),  # brackets are words to DPR
        ("caf\u00e9 in Graz", "cafe\u0301", False, True),  # DPR compares decomposed text
        ("the answer", "the", False, True),  # nothing is left of it in KILT's normal form
        ("what? no!", "?", False, True),
        ("what no", "?", False, False),
        ("days 14", "14 days", False, False),
    ],
)
def test_both_ways(text, answer, kilt, dpr):
    assert (contains_kilt(text, [answer]) is not None) is kilt
    assert (contains_dpr(text, [answer]) is not None) is dpr


def test_the_first_answer_that_is_there():
    assert contains_dpr("in Graz and Leeds", ["Umeå", "Leeds", "Graz"]) == "Leeds"
    assert contains_kilt("in Graz", []) is None


def tokens(text):
    """DPR's SimpleTokenizer: runs of letters, digits and marks, else single characters but blanks and controls."""
    words, run = [], ""
    for char in unicodedata.normalize("NFD", text):
        kind = unicodedata.category(char)[0]
        if kind in "LNM":
            run += char
            continue
        words += [run] if run else []
        run = ""
        words += [] if kind in "ZC" else [char]
    return [word.lower() for word in (*words, run) if word]


TEXTS = st.text(alphabet="ab A1.-(é\u0301\n\u00a0ß”\u200b", max_size=25) | st.text(max_size=15)


@given(TEXTS, TEXTS, st.data())
def test_dpr_is_a_run_of_tokens(text, answer, data):
    if data.draw(st.booleans()) and text:  # else an answer is hardly ever there
        start = data.draw(st.integers(0, len(text) - 1))
        answer = text[start : data.draw(st.integers(start, len(text)))]
    words, wanted = tokens(text), tokens(answer)
    found = bool(wanted) and any(words[i : i + len(wanted)] == wanted for i in range(len(words)))
    assert (contains_dpr(text, [answer]) is not None) is found
    normal = normalised_answer(answer)
    assert (contains_kilt(text, [answer]) is not None) is (bool(normal) and normal in normalised_answer(text))
