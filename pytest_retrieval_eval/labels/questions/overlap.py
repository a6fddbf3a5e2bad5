"""How much of a question stands word for word in the passage that it was written from.

A question that repeats its source is found by any search that compares words, and says little about a retriever.
"""

from __future__ import annotations

import re
import unicodedata

# Words that English questions are built with. Other languages have theirs counted, which makes more of an overlap.
_FUNCTION_WORDS = frozenset(
    """
    a about after all am an and any are as at be because been before being but by can could did do does doing for
    from had has have having he her his how i if in into is it its may me might must my no nor not of off on once or
    our out over shall she should so some such than that the their them then there these they this those to too under
    until up us was we were what when where which while who whom whose why will with would you your
    """.split()  # noqa: SIM905  # a list would be a page long
)
# Scripts that put no blank between words: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_POINTING = re.compile(r"\b(?:the|this|that|above) (passage|text|document|excerpt|paragraph|question)\b", re.IGNORECASE)
_PARTS = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def words(text: str) -> frozenset[str]:
    """The distinct words of a text, in lower case; of scripts without blanks every two characters that stand together.

    >>> sorted(words("Who pays? WHO pays FL-204!"))
    ['204', 'fl', 'pays', 'who']
    >>> sorted(words("返金期間"))
    ['期間', '返金', '金期']
    """
    found: set[str] = set()
    for part in _PARTS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if len(part) > 1 and _IS_UNSPACED.match(part):
            found.update(part[place : place + 2] for place in range(len(part) - 1))
        else:
            found.add(part)
    return frozenset(found)


def shared(question: str, passage: str) -> frozenset[str]:
    """The words of a question that say what it is about, and that its source has too.

    >>> sorted(shared("How long do refunds take?", "Refunds take 14 days."))
    ['refunds', 'take']
    """
    return _content(question) & words(passage)


def word_overlap(question: str, passage: str) -> float:
    """The share of a question's distinct words that its passage has too, from 0 to 1.

    Case does not count, and neither do English function words (*how*, *the*, *do*, …), unless the question has no
    others. Words are compared as they stand: *refund* is not *refunds*. A question without a single word overlaps
    fully: nothing shows that it has words of its own.

    >>> word_overlap("How long do refunds take?", "Refunds take 14 days.")  # long, refunds, take
    0.6666666666666666
    >>> word_overlap("When do I see my money again?", "Refunds take 14 days.")
    0.0
    >>> word_overlap("Who is it?", "It is Ann."), word_overlap("???", "It is Ann.")
    (0.6666666666666666, 1.0)
    """
    asked = _content(question)
    return len(asked & words(passage)) / len(asked) if asked else 1.0


def points_at(question: str, passage: str) -> bool:
    """Whether an English question speaks of *the passage*, which nobody who searches has seen.

    Not where its source itself has that word.

    >>> points_at("What does the passage say?", "Refunds take 14 days.")
    True
    >>> points_at("Who signs the document?", "A document is signed by Ann.")
    False
    """
    return any(noun.casefold() not in words(passage) for noun in _POINTING.findall(question))


def _content(question: str) -> frozenset[str]:
    every = words(question)
    return (every - _FUNCTION_WORDS) or every
