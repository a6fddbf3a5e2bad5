"""Labels without a model: a document is relevant if it contains a gold answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_retrieval_eval.labels.answers import normalised_answer

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Document

# How many texts are kept in normal form: several gates look at the same documents.
_KEPT = 8192


class _Words(dict[int, str]):
    """What becomes of a character: marks, letters and digits stay, blanks and controls part words, and anything
    else is a word of its own.
    """

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))[0]
        self[code] = found = chr(code) if kind in "LNM" else " " if kind in "ZC" else f" {chr(code)} "
        return found


_WORDS = _Words()


@lru_cache(maxsize=_KEPT)
def _normal(text: str) -> str:
    return normalised_answer(text)


@lru_cache(maxsize=_KEPT)
def _words(text: str) -> str:
    """The words as DPR's tokenizer finds them (in canonical decomposition), lower case, a blank around each."""
    found = unicodedata.normalize("NFD", text).translate(_WORDS).split()
    return f" {' '.join(found)} ".lower() if found else ""


def contains_kilt(text: str, answers: Sequence[str]) -> str | None:
    """The first answer whose normal form (KILT's) is a part of the text's; None where none is.

    An answer of which nothing is left in normal form, such as "the", is in no text.

    >>> contains_kilt("It takes fourteen (14) days.", ["two weeks", "14 Days"])
    '14 Days'
    """
    return next((answer for answer in answers if (normal := _normal(answer)) and normal in _normal(text)), None)


def contains_dpr(text: str, answers: Sequence[str]) -> str | None:
    """The first answer whose words stand in the text one after another (DPR, Karpukhin et al., EMNLP 2020).

    >>> contains_dpr("It takes 14 days.", ["4 day", "14 Days"]), contains_dpr("in party", ["art"])
    ('14 Days', None)
    """
    return next((answer for answer in answers if (words := _words(answer)) and words in _words(text)), None)


KINDS: Mapping[str, Callable[[str, Sequence[str]], str | None]] = {"kilt": contains_kilt, "dpr": contains_dpr}
"""Each way to look for an answer; of a text alone, since a title says what a document is about, not what it says."""


def found_in(kind: str, document: Document, answers: Sequence[str]) -> str | None:
    """The first answer that the document contains."""
    return KINDS[kind](document.text, answers)
