"""The page of words: every name that two places have stands there once, with what it means."""

from __future__ import annotations

import words_page


def test_the_page_is_made_from_the_names_of_the_code():
    assert words_page.PAGE.read_text(encoding="utf-8") == words_page.page()


def test_every_word_of_tests_and_settings_that_another_place_has_is_told():
    found = words_page.names()
    asked = {word for place in words_page.PLACES[1:4] for word in found[place]}
    shared = {word for word in asked if len(words_page.places_of(word, found)) > 1}
    assert sorted(shared - set(words_page.MEANINGS)) == []


def test_every_word_is_one_that_several_places_have():
    found = words_page.names()
    assert {word: places for word in words_page.MEANINGS if len(places := words_page.places_of(word, found)) < 2} == {}


# Options that take one thing of one kind in some commands, and named or several ones in others.
SEVERAL = {
    "--output": {"FILE", "DIR"},
    "--reader": {"FILE|MODULE:NAME", "[NAME=]FILE|MODULE:NAME"},
    "--grades": {"FILE", "NAME=FILE"},
    "--name": {"NAME", "JUDGE"},
    "-k": {"K", "K,…"},
}


def test_an_option_takes_the_same_in_every_command():
    taken = {}
    for action in words_page.options():
        taken.setdefault(action.option_strings[-1], set()).add(action.metavar or str(action.choices))
    assert {name: kinds for name, kinds in taken.items() if len(kinds) > 1} == SEVERAL
