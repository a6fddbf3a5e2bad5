"""The grade of a reply: found where it is stated, and never made up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.labels.judging.replies import Scale, parse

SCALE = Scale(0, 3)


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ('{"thought": "It says so.", "grade": 2}', 2),
        ('  {"grade": 0}\n', 0),
        ('{"grade": 2.0}', 2),
        ('{"grade": "2"}', 2),
        ('{"grade": " 3 "}', 3),
        ('{"Grade": 1}', 1),
        ("2", 2),
        ("```json\n{\"grade\": 1}\n```", 1),
        ("Here it is:\n```\n{\"grade\": 1}\n```\nHope this helps!", 1),
        ('The passage names it.\n{"grade": 3}', 3),
        ('{"grade": 3} because the passage names it', 3),
        ('{"result": {"grade": 2}}', 2),
        ('[{"grade": 2}]', 2),
        ('{"grade": 2}\n{"grade": 2}', 2),
        ('{"note": "no grade here"} {"grade": 2}', 2),
        ("{'grade': 1}", 1),
        ("{'thought': \"it's near\", 'grade': 1}", 1),
        ('{"grade": 1,}', 1),
        ("{grade: 2}", 2),
        ('{"thought": "he said "yes" there", "grade": 1}', 1),
        ('{"thought": "a } in it", "grade": 2}', 2),
        ('{"thought": "the form is {\\"grade\\": 0}", "grade": 2}', 2),
        ('<think>maybe {"grade": 0}, or 1</think>{"grade": 2}', 2),
        ("On a scale of 0 to 3, where 3 is best, it is off the subject. Final score: 0", 0),
        ("The relevance is judged from 0 (worst) to 3.\n\n**Grade: 2**", 2),
        ("Score: 2 out of 3", 2),
        ("Score: 2/3.", 2),
        ("relevance = 1", 1),
    ],
)  # fmt: skip
def test_a_grade_that_is_stated(reply, grade):
    found = parse(reply, SCALE)
    assert (found.grade, found.outcome, found.detail) == (grade, "graded", "")


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        # nothing there
        ("", "unreadable"),
        (" \n", "unreadable"),
        ("{}", "unreadable"),
        ("[]", "unreadable"),
        ("null", "unreadable"),
        ("true", "unreadable"),
        ("The passage is about the moon.", "unreadable"),
        ("<html><body><h1>502 Bad Gateway</h1></body></html>", "unreadable"),
        ('{"score": 2}', "unreadable"),
        ('{"thought": "grade"}', "unreadable"),
        # refusals
        ("I cannot judge this.", "refused"),
        ("I'm sorry, but I can't help with that. Score: 0", "refused"),
        ("I am unable to give a grade: 0", "refused"),
        # no whole number of the scale
        ('{"grade": true}', "unreadable"),
        ('{"grade": false}', "unreadable"),
        ('{"grade": null}', "unreadable"),
        ('{"grade": 1.5}', "unreadable"),
        ('{"grade": "1.5"}', "unreadable"),
        ('{"grade": NaN}', "unreadable"),
        ('{"grade": Infinity}', "unreadable"),
        ('{"grade": [2]}', "unreadable"),
        ('{"grade": {"value": 2}}', "unreadable"),
        ('{"grade": ""}', "unreadable"),
        ('{"grade": "high"}', "unreadable"),
        ('{"grade": "<b>2</b>"}', "unreadable"),
        ('{"grade": "2 out of 3"}', "unreadable"),
        ('{"grade": "２"}', "unreadable"),
        ('{"grade": "²"}', "unreadable"),
        ('{"grade": "٢"}', "unreadable"),
        ('{"grade": ２}', "unreadable"),
        ("٢", "unreadable"),
        ("<b>2</b>", "unreadable"),
        ('{"grade": -1}', "out of scale"),
        ('{"grade": 4}', "out of scale"),
        ('{"grade": "10"}', "out of scale"),
        ('{"grade": 1e3}', "out of scale"),
        ("10", "out of scale"),
        ("-1", "out of scale"),
        ("Score: 10", "out of scale"),
        ("Score: -1", "out of scale"),
        ("Score: 1.5", "unreadable"),
        ("10 out of 10", "unreadable"),
        ("Score: 10 out of 10", "ambiguous"),
        ("Score: 2 out of 10", "ambiguous"),
        ("Score: 2/5", "ambiguous"),
        # several
        ('{"grade": 1}\n{"grade": 2}', "ambiguous"),
        ('{"grade": 1, "grade": 2}', "ambiguous"),
        ('[{"grade": 1}, {"grade": 2}]', "ambiguous"),
        ('{"a": {"grade": 1}, "b": {"grade": 2}}', "ambiguous"),
        ("```json\n{\"grade\": 1}\n```\nor\n```json\n{\"grade\": 2}\n```", "ambiguous"),
        ("{'grade': 1} {'grade': 2}", "ambiguous"),
        ("{'grade': 1, 'grade': 2}", "ambiguous"),
        ("{'thought': 'as in {\"grade\": 0}', 'grade': 2}", "ambiguous"),
        ('{"grade": 2} {"grade": null}', "unreadable"),
        ("Score: 1\nScore: 2", "ambiguous"),
        ("Score: 1 or 2", "ambiguous"),
        ("Score: 0 to 3, as you like", "ambiguous"),
        ("Score: 2, were it not for the date", "ambiguous"),
        # cut off
        ('{"thought": "It says', "truncated"),
        ('{"grade": ', "truncated"),
        ('{"grade": 1', "truncated"),
        ('{"grade": 1, "thought": "as', "truncated"),
        ('{"grade": 2} {"grade"', "truncated"),
        ('```json\n{"grade": 2', "truncated"),
        ("<think>It could be 2", "truncated"),
        # almost JSON, and no grade in it
        ("{grade: 0|1|2}", "unreadable"),
        ("{'grade': }", "unreadable"),
        ("{'grade': two}", "unreadable"),
        ("{'grade': True}", "unreadable"),
        ("{'grade': 1.5}", "unreadable"),
        ("{'grade': 7}", "out of scale"),
        ("{the grade is 2}", "unreadable"),
        ("{'thought': 'the form {\"grade\": 2} was asked for'}", "unreadable"),
        ("{" * 5000 + '"grade": ' + "}" * 5000, "unreadable"),
        ("{" * 5000, "truncated"),
    ],
)  # fmt: skip
def test_no_grade_is_made_up(reply, outcome):
    found = parse(reply, SCALE)
    assert found.grade is None
    assert found.outcome == outcome
    assert found.detail


def test_a_reply_that_was_cut_off_has_no_grade_whatever_it_says():
    assert parse('{"grade": 2}', SCALE, cut=True).outcome == "truncated"


def test_what_is_said_with_the_grade_is_kept():
    assert parse('{"thought": "It names the date.", "grade": 2}', SCALE).said == "It names the date."
    assert parse('{"grade": "2", "reason": "near"}', SCALE).said == "near"


def test_another_key():
    assert parse('{"relevance": 2, "grade": 1}', SCALE, key="relevance").grade == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["grade", "a", "Grade"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(alphabet="{}[]\"':, grade0123.-\n`tru", max_size=60) | JSON.map(json.dumps) | st.text(max_size=40))
def test_a_grade_is_of_the_scale_and_stands_in_the_reply(reply):
    found = parse(reply, SCALE)
    if found.grade is None:
        assert found.outcome != "graded"
        assert found.detail
    else:
        assert found.grade in SCALE
        assert str(found.grade) in reply


@settings(deadline=None)  # a busy machine is no failure
@given(JSON.map(json.dumps), st.integers(0, 3))
def test_one_object_between_other_words(noise, grade):
    """A grade is what json itself reads from the only object that has the key."""
    reply = f"Well.\n{json.dumps({'thought': noise, 'grade': grade})}\nDone."
    assert parse(reply, SCALE).grade == grade


@settings(deadline=None)  # a busy machine is no failure
@given(st.integers(0, 3), st.data())
def test_a_reply_cut_anywhere_has_no_grade(grade, data):
    whole = json.dumps({"thought": "it says {so}", "grade": grade, "more": [1, {"a": 2}]})
    assert parse(whole[: data.draw(st.integers(0, len(whole) - 1))], SCALE).grade is None


@pytest.mark.parametrize("ends", [(0, 0), (2, 1), (True, 2), (0, 1.5)])
def test_scales_that_are_none(ends):
    with pytest.raises(SettingsError, match="expected two whole numbers"):
        Scale(*ends)
