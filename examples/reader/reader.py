"""A reader without a model: it answers with the sentence that shares most words with the query."""

from __future__ import annotations

import re

COMMON = frozenset(["a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "how", "i", "in"])
COMMON |= {"is", "it", "may", "must", "my", "of", "on", "or", "the", "to", "what", "when", "where", "which", "who"}


def answer(query: str, texts: list[str]) -> str:
    """The sentence of the first text; "" without one, since such a reader knows nothing by itself."""
    asked = stems(query) - COMMON
    sentences = [line for text in texts[:1] for line in re.split(r"(?<=[.!?])\s+|\n+", text) if line.strip()]
    return max(sentences, key=lambda sentence: len(asked & stems(sentence)), default="")


def stems(text: str) -> set[str]:
    """The words of a text without their endings."""
    return {re.sub(r"(ing|ed|es|s)$", "", word) for word in re.findall(r"\w+", text.lower())}
