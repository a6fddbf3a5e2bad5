from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.readers.prompts import CAUSAL, Prompt, fit
from pytest_retrieval_eval.readers.reading import Item, Passage

WORD = st.text("abc", min_size=1, max_size=4)
WORDS = st.lists(WORD, max_size=12).map(" ".join)
ITEMS = st.builds(Item, WORDS.filter(bool), st.lists(st.builds(Passage, WORDS, WORDS), max_size=4).map(tuple))


def encode(prompts):
    return [[len(word) for word in prompt.split()] for prompt in prompts]


def cuts(text):
    """Behind each word."""
    return [at for at in range(1, len(text) + 1) if text[at - 1] != " " and (at == len(text) or text[at] == " ")]


def fit_words(item, most, prompt):
    """The prompt as words, and what ``fit`` says of it."""
    seen = []

    def keep(prompts):
        seen.extend(prompts)
        return encode(prompts)

    (found,) = fit([item], prompt.fill, keep, cuts, most)
    shown = [text for text in seen if tuple(encode([text])[0]) == found.ids]
    return found, shown[-1].split() if shown else None


def test_a_prompt_has_title_text_and_query():
    two = Item("who?", (Passage("Ann did.", "Deeds"), Passage("{query}")))
    assert Prompt().fill(two) == "question: who? title: Deeds context: Ann did. context: {query}"
    assert CAUSAL.fill(two) == "Passage: Deeds\nAnn did.\nPassage: {query}\nQuestion: who?\nAnswer:"
    assert CAUSAL.fill(Item("who?", ())) == "Question: who?\nAnswer:"
    numbered = Prompt.of({"document": "[{rank}] {title}: {text}", "untitled": "[{rank}] {text}"}, CAUSAL)
    assert numbered.fill(two).splitlines()[:2] == ["[1] Deeds: Ann did.", "[2] {query}"]


@given(ITEMS, st.integers(1, 60))
def test_documents_are_cut_and_the_query_never(item, most):
    prompt = Prompt()
    whole = prompt.fill(item).split()
    found, words = fit_words(item, most, prompt)
    if len(whole) <= most:
        assert (found.cut, found.problem, len(found.ids)) == (False, "", len(whole))
        return
    bare = prompt.fill(item, [""] * len(item.documents)).split()
    if len(bare) > most:
        assert found.problem
        assert str(most) in found.problem
        return
    assert found.cut
    assert len(found.ids) <= most
    assert words[: 1 + len(item.query.split())] == ["question:", *item.query.split()]
    # one number of tokens for all documents, and one more would not fit
    kept = len(found.ids) - len(bare)
    lengths = [len(passage.text.split()) for passage in item.documents]
    shares = [sum(min(length, cap) for length in lengths) for cap in range(max(lengths) + 1)]
    assert kept == max(share for share in shares if len(bare) + share <= most)


@pytest.mark.parametrize(
    ("templates", "text"),
    [
        ({"prmpt": "x"}, "there is no template 'prmpt'; did you mean prompt"),
        ("{query}", r"the template prompt has no place \{documents\}"),
        ({"document": "{title} {txet}"}, r"the template document has the place \{txet\}; did you mean text"),
        ({"document": "{text}"}, r"the template document has no place \{title\}"),
        ({"closed_book": "{documents} {query}"}, r"the template closed_book has the place \{documents\}"),
        ({"separator": 3}, "the template separator is 3; expected text"),
    ],
)
def test_templates_that_cannot_be(templates, text):
    with pytest.raises(SettingsError, match=text):
        Prompt.of(templates, Prompt())
