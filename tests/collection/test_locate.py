"""Chunks are found by their text: white space and Unicode form are forgiven, a header is cut, nothing is guessed."""

from __future__ import annotations

import json
import random
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_retrieval_eval import Chunk, Chunks, DataError, Dataset, Run
from pytest_retrieval_eval.collection.dataset import Corpus
from pytest_retrieval_eval.collection.spans.extents import extents
from pytest_retrieval_eval.collection.spans.locate import Place, Source, locate, plain

WORDS = ["refund", "naïve", "Café", "Zürich", "straße", "東京", "한국어", "🙂", "office", "the", "a", "Ångström"]


def text_of(seed: int, words: int) -> str:
    """Words that are all different, so that every passage of it is unique."""
    drawn = random.Random(seed)
    return " ".join(f"{drawn.choice(WORDS)}{number}" for number in range(words))


class TestCase46:
    """Source "days.  Contact", chunk "days. Contact"; Café composed and decomposed; CRLF and LF."""

    def test_white_space(self):
        place = Source("Refunds take 14 days.  Contact us.").find("days. Contact")
        assert (place.status, place.start, place.end) == ("forgiven", 16, 30)

    @pytest.mark.parametrize(("source", "chunk"), [("NFC", "NFD"), ("NFD", "NFC")])
    def test_unicode_form(self, source, chunk):
        text = unicodedata.normalize(source, "Das Café Zürich öffnet um acht.")
        place = Source(text).find(unicodedata.normalize(chunk, "Café Zürich"))
        assert place.status == "forgiven"
        assert unicodedata.normalize("NFC", text[place.start : place.end]) == "Café Zürich"

    def test_line_ends(self):
        text = "one\r\ntwo\r\nthree"
        assert Source(text).find("two\nthree") == Place("forgiven", 5, 15)
        assert Source("one\ntwo\nthree").find("two\r\nthree") == Place("forgiven", 4, 13)

    def test_a_run_over_such_chunks_has_offsets_in_the_source(self):
        corpus = {"guide": "🙂 Take 14 days.  Contact the Cafe\u0301.\r\nNext: nothing."}
        chunks = Chunks.of({"g#1": Chunk("guide", text="days. Contact the Café.\nNext")})
        dataset = Dataset.of(queries={"q": "when?"}, qrels={"q": ["x"]}, corpus=corpus, chunks=chunks)
        found = extents(Run.of({"q": ["g#1"]}), dataset.chunks)
        assert corpus["guide"][found.start[0] : found.end[0]] == "days.  Contact the Cafe\u0301.\r\nNext"


class TestPlaces:
    def test_exact_is_preferred_to_forgiven(self):
        assert Source("a  b. Then a b.").find("a b") == Place("exact", 11, 14)

    def test_several_places_are_never_the_first(self):
        place = Source("14 days. Or 14 days.").find("14 days.")
        assert place == Place("ambiguous", times=2)
        assert not place.found
        long = text_of(1, 40)
        assert Source(f"{long}\n{long}").find(long).status == "ambiguous"
        assert Source(f"{long}\n{long}").find("A header of its own: " + long).status == "ambiguous"

    def test_overlapping_places_count(self):
        assert Source("abababa").find("aba").times == 3

    def test_white_space_around_the_chunk_belongs_to_it_where_it_stands_there(self):
        assert Source("one\n two \nthree").find("\n two \n") == Place("exact", 3, 10)
        assert Source("one two three").find("\n two \n") == Place("forgiven", 4, 7)

    def test_a_header_and_a_footer_are_cut_and_counted(self):
        text = text_of(2, 300)
        body = text[600:1100].strip()
        place = Source(text).find(f"Guide > Refunds:\n{body}\n(page 3 of 7)")
        assert (place.status, text[place.start : place.end]) == ("cut", body)
        assert (place.head, place.tail) == (len("Guide > Refunds:\n"), len("\n(page 3 of 7)"))

    def test_another_text_is_absent(self):
        source = Source(text_of(3, 200))
        assert source.find(text_of(4, 60).replace("refund", "x")).status == "absent"
        assert source.find("").status == source.find(" \n").status == "absent"
        short = source.text[:20]
        assert source.find(short + " and so much else that the header would be the chunk").status == "absent"

    def test_only_the_chunks_own_document_is_searched(self):
        corpus = Corpus.of({"a": "alpha beta", "b": "gamma delta"})
        found = locate([("a", "gamma delta"), ("b", "gamma delta"), ("c", "gamma")], corpus)
        assert [place.status for place in found] == ["absent", "exact", "no document"]

    def test_marks_in_another_order(self):
        text = "x a\u0323\u0307 y"
        for chunk in ("a\u0307\u0323 y", "\u1ea1\u0307 y", "\u0227\u0323 y"):
            place = Source(text).find(chunk)
            assert text[place.start : place.end] == "a\u0323\u0307 y"


@settings(deadline=None)  # a busy machine is no failure
@given(st.integers(0, 10**6), st.data())
def test_any_chunk_of_unique_text_is_found_however_it_was_spaced_and_composed(seed, data):
    """The law: its letters are those of the place; nothing else stands there but white space."""
    text = text_of(seed, data.draw(st.integers(5, 120)))
    text = unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD"])), text)
    text = re.sub(" ", lambda _: data.draw(st.sampled_from([" ", "  ", "\r\n", "\n\n", "\u00a0"])), text)
    pieces = re.split(r"(\s+)", text)
    first = data.draw(st.integers(0, len(pieces) - 1))
    last = data.draw(st.integers(first + 1, len(pieces)))
    begin, end = len("".join(pieces[:first])), len("".join(pieces[:last]))
    wanted = text[begin:end]
    chunk = unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD"])), " ".join(wanted.split()))
    if not any(char.isdigit() for char in chunk) or plain(text).text.count(plain(chunk).text) != 1:
        return  # white space, or a part such as refund1 of refund12
    place = Source(text).find(chunk)
    assert place.status in ("exact", "forgiven")
    assert (place.start, place.end) == (begin + len(wanted) - len(wanted.lstrip()), begin + len(wanted.rstrip()))


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(st.sampled_from("ab \ne\u0301\u0323é\u1ea1한"), max_size=60), st.data())
def test_a_place_is_right_or_not_given(text, data):
    """Against a slow reference: every stretch of the text whose NFD without white space is that of the chunk."""
    begin = data.draw(st.integers(0, len(text)))
    chunk = text[begin : data.draw(st.integers(begin, len(text)))]

    def bare(passage: str) -> str:
        return "".join(unicodedata.normalize("NFD", passage).split())

    whole, part = bare(text), bare(chunk)
    places = sum(whole.startswith(part, at) for at in range(len(whole))) if part else 0
    place = Source(text).find(chunk)
    if place.found:
        assert part in bare(text[place.start : place.end])
    if places > 1:
        assert place.status in ("exact", "ambiguous")  # one of them may be the very same, character by character
    elif places == 1:
        assert place.status in ("exact", "forgiven")


@settings(deadline=None)  # a busy machine is no failure
@given(st.text())
def test_plain_is_the_text_without_white_space_in_nfd(text):
    assert plain(text).text == "".join(char for char in unicodedata.normalize("NFD", text) if not char.isspace())


class TestTables:
    TEXT = "Refunds take 14 days. " + text_of(5, 60) + " Refunds take 14 days."

    def table(self):
        return Chunks.of(
            {
                "one": Chunk("guide", text=self.TEXT[40:200]),
                "two": Chunk("guide", text="Refunds take 14 days."),
                "three": Chunk("guide", text="nothing of the kind"),
                "four": Chunk("faq", text="x"),
                "five": Chunk("guide", 3, 9),
                "six": Chunk("guide"),
            }
        )

    def test_what_came_of_it(self):
        placed, came = self.table().located(Corpus.of({"guide": self.TEXT}))
        assert placed.get("one") == Chunk("guide", 40, 200, self.TEXT[40:200])
        assert placed.get("five") == Chunk("guide", 3, 9)
        assert [placed.get(name).start for name in ("two", "three", "four", "six")] == [None] * 4
        assert came.with_status("ambiguous", "no document") == ["two", "four"]
        assert str(came) == (
            "1 of 4 chunks found by their text (1 as they are); 1 in several places of their document; "
            "1 not in their document; 1 of a document that the corpus lacks"
        )

    @pytest.mark.parametrize(
        ("chunk", "why"),
        [
            ("two", "its text stands in 2 places of 'guide'"),
            ("three", "its text does not stand in 'guide'"),
            ("four", "the corpus has no document 'faq'"),
            ("six", "chunks does not say it. Return"),
        ],
    )
    def test_a_retrieved_chunk_without_a_place_is_an_error_that_says_why(self, chunk, why):
        dataset = Dataset.of(qrels={"q": ["x"]}, corpus={"guide": self.TEXT}, chunks=self.table())
        found = extents(Run.of({"q": ["five", "one"]}), dataset.chunks)
        assert (found.start.tolist(), found.end.tolist()) == ([3, 40], [9, 200])
        with pytest.raises(DataError, match=f"query 'q', rank 2: .*{why}"):
            extents(Run.of({"q": ["one", chunk]}), dataset.chunks)

    def test_a_folder_finds_its_chunks(self, tmp_path):
        (tmp_path / "qrels").mkdir()
        (tmp_path / "qrels" / "test.tsv").write_text("q\t0\ta\t1\n")
        Chunks.of({"one": Chunk("guide", text=self.TEXT[40:200])}).save(tmp_path / "chunks.jsonl")
        run = Run.of({"q": ["one"]})
        with pytest.raises(DataError, match=r"chunks\.jsonl does not say it"):
            extents(run, Dataset.read(tmp_path).chunks)
        (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "guide", "text": self.TEXT}))
        found = extents(run, Dataset.read(tmp_path).chunks)
        assert (found.start[0], found.end[0]) == (40, 200)
