"""A verdict as text: its lines, its limits, and that nothing users wrote can break them."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from gates_support import MemoryBench, hits, one_each
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.gates.verdict import Interval, Move, QueryDiff, Verdict
from pytest_retrieval_eval.reports.text import WIDTH, evidence, explain, headline, summary_line
from pytest_retrieval_eval.wording import shown

FAILED = Verdict(
    gate="recall@5 >= baseline",
    status="failed",
    reason="0.712 is below 0.744",
    measure="recall@5",
    operator=">=",
    dataset="handbook",
    run="candidate",
    baseline="main",
    reference_kind="baseline",
    n=300,
    value=0.712,
    target=0.744,
    reference=0.744,
    delta=-0.032,
    interval=Interval(-0.051, -0.014, 0.95, "BCa"),
    p=0.0007,
    p_one_sided=0.00035,
    p_method="exact",
    detectable=0.023,
    worse=41,
    better=9,
    equal=250,
    cutoff=5,
    judged=(0.91, 0.94),
    judged_k=5,
    queries=(
        QueryDiff(
            "q017",
            after=0.0,
            before=1.0,
            text="how do I get a new badge",
            tags={"type": "paraphrase"},
            moves=(Move("hr-badges", 3.0, 2, 9, "Badges and access"),),
            intruders=(Move("it-printing", 0.0, 8, 1, "Printing"), Move("fac-parking", None, None, 2)),
        ),
    ),
)


def test_the_whole_text():
    assert explain(FAILED).splitlines() == [
        "recall@5 >= baseline: FAILED. 0.712 is below 0.744 (handbook, run candidate, baseline main)",
        "recall@5  0.744 → 0.712   Δ −0.032  95 % CI [−0.051, −0.014] (BCa)   "
        "p = 0.0007 two-sided (paired randomization, exact)",
        "41 worse · 9 better · 250 equal of 300   smallest detectable drop 0.023 (80 % power, one-sided "
        ".05)   judged@5 0.94 → 0.91",
        'q017  recall@5 1.000 → 0.000  "how do I get a new badge"   (type=paraphrase)',
        '    lost   hr-badges "Badges and access" (grade 3)   rank 2 → 9',
        '    now    it-printing "Printing" (grade 0) rank 1, fac-parking (not judged) rank 2',
    ]


def test_every_number_below_0_has_the_same_minus():
    # A measure such as lift has values below 0, and not only differences.
    below = replace(FAILED, value=-0.834, reference=-0.5, target=-0.5, delta=-0.334)
    line = evidence(replace(below, queries=()))[0]
    assert line.startswith("recall@5  −0.500 → −0.834   Δ −0.334  95 % CI [−0.051, −0.014]")
    alone = replace(below, reference=None, baseline=None, reference_kind=None, delta=None)
    assert evidence(alone)[0].startswith("recall@5  −0.834   95 % CI [−0.051, −0.014]")
    query = replace(FAILED.queries[0], after=-1.0, before=-0.25, tags={"year": 1, "code": "1"})
    assert 'q017  recall@5 −0.250 → −1.000  "how do I get a new badge"   (year=1, code="1")' in explain(
        replace(below, queries=(query,))
    )


def test_more_digits_where_three_would_hide_a_difference():
    close = replace(FAILED, value=0.74396, delta=-0.00004, interval=Interval(-0.0001, -0.00001, 0.95, "BCa"))
    line = evidence(close)[0]
    assert "0.7440 → 0.7440" not in line
    assert "0.74400 → 0.74396" in line
    assert "Δ −0.00004" in line


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (1.0, "p = 1 "),
        (0.05, "p = 0.05 "),
        (0.0625, "p = 0.0625 "),
        (9.999e-5, "p = 0.0001 "),
        (0.00003, "p = 0.00003 "),
        (3e-15, "p = 3.0e-15 "),
        (5e-324, "p = 4.9e-324 "),
    ],
)
def test_p_is_never_zero(p, text):
    assert text in evidence(replace(FAILED, p=p))[0]


def test_the_label_says_how_a_document_moved():
    query = replace(
        FAILED.queries[0],
        moves=(
            Move("a", 1.0, 2, None),
            Move("b", 1.0, 1, 3),
            Move("c", 2.5, None, 4),
            Move("d", 1.0, 5, 2),
        ),
        intruders=(),
        note="nothing was returned",
    )
    lines = explain(replace(FAILED, queries=(query,))).splitlines()[4:]
    assert lines == [
        "    lost   a (grade 1)   rank 2 → gone",
        "    fell   b (grade 1)   rank 1 → 3",
        "    gained c (grade 2.5)   not in the list → 4",
        "    rose   d (grade 1)   rank 5 → 2",
        "    nothing was returned",
    ]


def test_the_number_of_queries_is_limited():
    queries = (*(QueryDiff(f"q{i}", 0.0, 1.0) for i in range(40)), QueryDiff("up", 1.0, 0.0))
    verdict = replace(FAILED, queries=queries)
    lines = explain(verdict).splitlines()
    assert len(lines) == 3 + 15 + 1
    assert lines[-1] == "… and 25 more queries got worse: run with -v for more, -vv for all"
    assert explain(verdict, limit=39).splitlines()[-1].startswith("… and 1 more query got worse")
    assert explain(verdict, limit=0).splitlines()[-1].startswith("… and 40 queries got worse")
    everything = explain(verdict, limit=None).splitlines()
    assert everything[-2:] == ["1 query got better:", "up  recall@5 0.000 → 1.000"]


def test_notes_changes_and_pairs():
    text = explain(
        replace(
            FAILED,
            notes=("one " * 60, "two"),
            baseline_changes=("the labels have changed",),
            to_judge=tuple(("q1", f"d{i}") for i in range(20)),
            to_judge_total=1000,
        )
    )
    lines = text.splitlines()
    assert "changed: the labels have changed" in lines
    assert "note: two" in lines
    assert "to judge: q1 d0, q1 d1, q1 d2, q1 d3, q1 d4, q1 d5 and 994 more" in lines
    assert max(len(line) for line in lines if line.startswith(("note", "  "))) <= WIDTH


def test_a_fixed_target():
    gold = {f"q{i}": {"a": 1} for i in range(4)}
    bench = MemoryBench(gold, {"q0": ["a"], "q1": ["x", "a"], "q2": ["x"], "q3": ["x", "y", "a"]})
    lines = explain(bench.decide("hit@1 >= 0.8")).splitlines()
    assert lines[0] == "hit@1 >= 0.8: FAILED. 0.250 is below 0.800 (handbook, run candidate)"
    assert lines[1].startswith("hit@1  0.250   95 % CI [")
    assert lines[1].endswith("n = 4")
    assert lines[2].startswith("3 below · 1 above · 0 at the target   judged@1 0.25")
    assert "    want   a (grade 1)   rank 2" in lines
    assert "    want   a (grade 1)   not in the list" in lines
    assert "compare it directly" in " ".join(lines[-2:])


def test_an_error_has_a_headline_and_no_evidence():
    error = Verdict("hit@1 >= x", "error", "no baseline yet.\nCreate it", "hit@1", ">=", where="type=policy")
    assert explain(error) == "hit@1 >= x: ERROR. no baseline yet.\\nCreate it (where type=policy)"
    assert evidence(error) == []
    assert summary_line(error) == "hit@1 >= x: no baseline yet.\\nCreate it"


def test_identical_sides_are_called_so():
    bench = MemoryBench(one_each(200), hits([True] * 200), hits([True] * 200))
    first, second = evidence(bench.decide("hit@5 >= baseline"))
    assert first == (
        "hit@5  1.000 → 1.000   Δ 0.000  95 % CI [0.000, 0.000] (percentile)   "
        "p = 1 two-sided (paired randomization, exact)"
    )
    assert second.startswith("0 worse · 0 better · 200 equal of 200: identical   smallest detectable drop 0.015 ")


def test_a_factor_is_said():
    bench = MemoryBench(one_each(10), hits([True] * 10), hits([True] * 10))
    verdict = bench.decide("hit@1 >= 0.9 * baseline")
    assert "Δ to 0.9 · baseline +0.100" in evidence(verdict)[0]
    assert headline(verdict).startswith("hit@1 >= 0.9 * baseline: WEAK. 1.000 is above 0.900 (baseline 1.000)")


HOSTILE = "id\n\r\t\x1b[31m\u202e\u2028\x00\ud800" + "x" * 300


def test_what_users_wrote_cannot_break_a_line():
    query = QueryDiff(
        HOSTILE, 0.0, 1.0, HOSTILE, {HOSTILE: [HOSTILE]}, (Move(HOSTILE, 1.0, 1, None, HOSTILE),),
        (Move(HOSTILE, None, None, 1, HOSTILE),) * 5, HOSTILE,
    )  # fmt: skip
    verdict = replace(
        FAILED,
        dataset=HOSTILE,
        run=HOSTILE,
        baseline=HOSTILE,
        where=HOSTILE,
        queries=(query,) * 3,
        to_judge=((HOSTILE, HOSTILE),) * 3,
    )
    text = explain(verdict)
    text.encode()
    for line in text.splitlines():
        assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl") for char in line)
    assert len(text.splitlines()) < 40
    assert max(map(len, text.splitlines()[6:])) <= 2 * WIDTH


@given(st.text(), st.integers(2, 80))
def test_shown_text_is_one_short_printable_line(text, width):
    result = shown(text, width)
    assert len(result) <= width
    assert "\n" not in result
    assert len(result.splitlines()) <= 1
    assert shown(result, 10**6) == result


def test_titles_and_tags_reach_the_text():
    dataset = Dataset.of(
        queries={"q1": {"text": "badge?", "tags": {"new": True, "lang": ["de", "en"], "of": None}}},
        qrels={"q1": {"a": 1}},
        corpus={"a": {"title": "Badges", "text": ""}, "b": {"title": "Printing", "text": ""}},
        name="handbook",
    )
    lines = explain(MemoryBench(dataset, {"q1": ["b", "a"]}, {"q1": ["a"]}).decide("hit@1 >= baseline")).splitlines()
    assert lines[-3:] == [
        'q1  hit@1 1.000 → 0.000  "badge?"   (new=true, lang=de|en, of=null)',
        '    lost   a "Badges" (grade 1)   rank 1 → 2',
        '    now    b "Printing" (not judged) rank 1',
    ]
