"""Stale gold: kept, moved with its passage, or said to be ambiguous or lost; never put at another passage."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import Span, Spans
from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.spans.anchors import _common_subsequences, check_spans
from pytest_retrieval_eval.collection.spans.spanrows import text_hash

OLD = "Refunds take 14 days. Returns are free for members. The desk opens at nine, and at ten on Mondays."
GOLD = "Returns are free for members."
AT = OLD.index(GOLD)


def span(text=GOLD, start=None, **more):
    start = OLD.index(text) if start is None else start
    return Span("q1", "guide", start, start + len(text), **{"text": text, **more})


def came(one, new, old=None):
    """The one anchor of a span held against a text, with or without the old one."""
    found = check_spans(Spans.of([one]), Corpus.of({"guide": new}), None if old is None else Corpus.of({"guide": old}))
    return found.rows[0]


class TestCase51:
    """The source was edited and the gold's offsets hold other text: re-anchored, or an error; never a miss."""

    def test_an_insertion_before_it_moves_the_gold(self):
        new = "From May on: " + OLD
        anchor = came(span(), new)
        assert (anchor.status, anchor.now.start, anchor.now.text) == ("moved", AT + 13, GOLD)
        assert anchor.found == new[AT : AT + len(GOLD)]

    def test_an_edit_of_the_gold_itself_loses_it(self):
        new = OLD.replace("free for members", "free for everybody")
        for old in (None, OLD):
            assert came(span(), new, old).status == "lost"


class TestWithoutTheOldSource:
    def test_kept(self):
        assert came(span(), OLD).status == "kept"
        assert came(Span("q1", "guide", AT, AT + len(GOLD), hash=text_hash(GOLD)), OLD).status == "kept"

    def test_the_stored_text_is_compared_as_chunks_are(self):
        text = OLD.replace("are free", "are\r\nfree")
        one = Span("q1", "guide", AT, AT + len(GOLD) + 1, text=GOLD.replace("are free", "are\nfree"))
        assert came(one, text).status == "kept"

    def test_white_space_around_the_gold_moves_with_it(self):
        anchor = came(Span("q1", "guide", AT - 1, AT + len(GOLD), text=f" {GOLD}"), "From May on: " + OLD)
        assert (anchor.now.start, anchor.now.text) == (AT + 12, f" {GOLD}")

    def test_several_places_are_ambiguous(self):
        anchor = came(span(), f"{GOLD} Once more: {GOLD}")
        assert (anchor.status, anchor.now, anchor.note) == ("ambiguous", None, "it stands in 2 places")

    def test_a_word_is_not_cut(self):
        one = Span("q1", "guide", 0, 6, text="9 days")
        assert came(one, "It takes 19 days.").status == "ambiguous"
        assert came(one, "It takes 19 days.").note == "it stands only within longer words"
        assert came(one, "It takes 19 days, or 9 days.").now.start == 21
        assert came(Span("q1", "guide", 0, 2, text="東京"), "私は東京都にいる").now.start == 2

    def test_a_hash_finds_its_passage(self):
        one = Span("q1", "guide", AT, AT + len(GOLD), hash=text_hash(GOLD))
        anchor = came(one, "From May on: " + OLD)
        assert (anchor.status, anchor.now.start, anchor.now.text) == ("moved", AT + 13, None)
        assert anchor.now.hash == one.hash
        assert came(one, OLD[::-1]).status == "lost"
        assert came(one, f"- {GOLD} {GOLD}").status == "ambiguous"

    def test_a_span_that_says_nothing_is_unchecked_unless_it_cannot_be(self):
        one = Span("q1", "guide", 3, 9)
        assert came(one, OLD).status == "unchecked"
        anchor = came(one, "short")
        assert (anchor.status, anchor.note) == ("lost", "the document ends at 5")

    def test_a_document_that_is_gone(self):
        (anchor,) = check_spans(Spans.of([span()]), Corpus.of({"faq": OLD})).rows
        assert (anchor.status, anchor.note) == ("lost", "the corpus has no document 'guide'")


class TestWithTheOldSource:
    def test_the_edits_decide_between_places_that_read_the_same(self):
        old = "A: 14 days by post. B: 14 days by train. C: nothing."
        new = "Since May. A: 14 days by post. New: 14 days by ship. B: 14 days by train."
        for number, wanted in ((0, new.index("14")), (1, new.rindex("14"))):
            start = old.index("14", 8 * number)
            one = Span("q1", "guide", start, start + 7, text="14 days")
            assert came(one, new).status == "ambiguous"
            assert came(one, new, old).now.start == wanted

    def test_a_copy_of_another_passage_is_not_taken_for_it(self):
        old = "By post: 14 days. By train: 14 days, and more of it."
        one = Span("q1", "guide", 9, 16, text="14 days")
        anchor = came(one, "By train: 14 days, and more of it.", old)
        assert (anchor.status, anchor.note) == ("lost", "what reads the same is another passage of the old source")

    def test_what_nothing_decides_is_ambiguous(self):
        one = Span("q1", "guide", 3, 4, text="G")
        anchor = came(one, "G. G", "G. G. G")
        assert (anchor.status, anchor.note) == ("ambiguous", "it stands in 2 places; the old source does not decide")

    def test_a_span_without_text_moves_and_says_none_then(self):
        one = Span("q1", "guide", AT, AT + len(GOLD))
        anchor = came(one, "From May on: " + OLD, OLD)
        assert (anchor.status, anchor.now.start, anchor.now.text) == ("moved", AT + 13, None)
        assert anchor.span.text == GOLD

    def test_an_old_source_that_does_not_hold_the_passage_is_said(self):
        anchor = came(span(), f"{GOLD} {GOLD}", "something else")
        assert (anchor.status, anchor.note) == (
            "ambiguous",
            "it stands in 2 places; the old source does not hold the passage either",
        )

    def test_large_documents_are_decided_by_what_stands_around(self):
        drawn = random.Random(1)
        part = ["".join(drawn.choice("abcdefgh ") for _ in range(30_000)) for _ in range(3)]
        old = f"{part[0]} 14 days {part[1]} 14 days {part[2]}"
        start = old.rindex("14 days")
        new = f"New. {part[0]} 14 days {part[1][5000:]} 14 days {part[2]}"
        one = Span("q1", "guide", start, start + 7, text="14 days")
        assert came(one, new, old).now.start == new.rindex("14 days")
        assert came(one, f"New. {part[2]} 14 days {part[0]} 14 days", old).status == "ambiguous"

    def test_a_document_written_anew_decides_nothing(self):
        old = "A: 14 days by post. " + "All of this will be gone. " * 9 + "B: 14 days by train."
        one = Span("q1", "guide", 3, 10, text="14 days")
        anchor = came(one, "x 14 days y 14 days z", old)
        assert (anchor.status, anchor.note) == (
            "ambiguous",
            "it stands in 2 places; the two versions have too little in common",
        )


class TestTogether:
    def spans(self):
        rows = [span(), span("14 days"), span("The desk opens at nine", group="g"), Span("q2", "guide", 0, 7)]
        return Spans.of([*rows, Span("q2", "faq", 0, 3, text="Yes")])

    def test_counts_current_and_lines(self):
        new = OLD.replace("Refunds take 14 days.", "Refunds take some days.") + " (The desk is in room 3.)"
        found = check_spans(self.spans(), Corpus.of({"guide": new, "faq": "Yes. Yes."}))
        assert found.counts == {"kept": 1, "moved": 2, "ambiguous": 0, "lost": 1, "unchecked": 1}
        assert str(found) == "gold spans of spans: 1 kept, 2 moved, 1 lost, 1 unchecked"
        current = found.current
        assert [(one.start, one.text) for one in current.of_query("q1")] == [
            (new.index(GOLD), GOLD),
            (new.index("The desk"), "The desk opens at nine"),
        ]
        assert len(current.of_query("q2")) == 2
        assert current.digest != self.spans().digest
        lost = next(found.lines("lost"))
        assert lost == ("lost: query 'q1', span 2: query 'q1', 'guide' 13-20: gold '14 days', at 13-20 now 'some da'")
        assert len(list(found.lines())) == 3

    def test_nothing_changed_leaves_the_spans_as_they_are(self):
        corpus = Corpus.of({"guide": OLD, "faq": "Yes."})
        assert check_spans(self.spans(), corpus).current is not None
        assert check_spans(self.spans(), corpus).current.digest == self.spans().digest


@settings(deadline=None)  # a busy machine is no failure
@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_common_subsequences_are_those_of_the_textbook(old, new):
    found = _common_subsequences(old, range(len(old) + 1), new, range(len(new) + 1))
    table = np.zeros((len(old) + 1, len(new) + 1), int)
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            table[i + 1, j + 1] = table[i, j] + 1 if one == other else max(table[i, j + 1], table[i + 1, j])
    assert (found == table).all()


@st.composite
def edited(draw, alphabet="東京都", inserted="南北西", gold=None):
    """An old text, a gold passage in it, the text after edits around it, and where the passage stands then."""
    before = draw(st.text(alphabet, max_size=40))
    passage = draw(st.text(alphabet, min_size=1, max_size=6)) if gold is None else gold
    after = draw(st.text(alphabet, max_size=40))

    def edits(text):
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(text)))
            gone = draw(st.integers(0, 8))
            text = text[:at] + draw(st.text(inserted, max_size=8)) + text[at + gone :]
        return text

    new_before, new_after = edits(before), edits(after)
    return before + passage + after, len(before), passage, new_before + passage + new_after, len(new_before)


@settings(deadline=None)  # a busy machine is no failure
@given(edited("abc ", "abcxyz \n", gold="GOLD 14 days"))
def test_unique_gold_is_found_after_any_edits_around_it(case):
    old, start, passage, new, wanted = case
    one = Span("q1", "guide", start, start + len(passage), text=passage)
    if any(new[at : at + 1].isalnum() for at in (wanted - 1, wanted + len(passage)) if 0 <= at < len(new)):
        return  # it became a part of a longer word
    for source in (None, old):
        anchor = came(one, new, source)
        assert anchor.status == ("kept" if wanted == start else "moved")
        assert anchor.now.start == wanted


@settings(deadline=None)  # a busy machine is no failure
@given(edited())
def test_gold_that_is_not_unique_is_never_put_at_another_passage(case):
    """What is inserted occurs in no passage, so that the true place is always among the best ones."""
    old, start, passage, new, wanted = case
    anchor = came(Span("q1", "guide", start, start + len(passage), text=passage), new, old)
    times = sum(new.startswith(passage, at) for at in range(len(new)))
    origins = sum(old.startswith(passage, at) for at in range(len(old)))
    if anchor.status == "ambiguous":
        assert times > 1 or origins > 1
    else:
        assert anchor.status == ("kept" if wanted == start else "moved")
        assert anchor.now.start == wanted


def test_half_a_surrogate_pair_in_a_document_is_a_character_like_any_other():
    """JSON can say it, and UTF-8 cannot."""
    text = "sad \ud83d face, gold here"
    one = Span("q", "d", text.index("gold"), text.index("gold") + 4, hash=text_hash("gold"))
    came = check_spans(Spans.of({"q": [one]}), Corpus.of({"d": "More: " + text}))
    assert came.rows[0].status == "moved"
    assert came.places["d"][1:] == [[one.start + 6, one.end + 6]]
