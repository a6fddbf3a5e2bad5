"""Texts with places to fill, where what is filled in is data and is never read as a template."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pytest_retrieval_eval.errors import SettingsError, did_you_mean

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def places(template: str) -> frozenset[str]:
    """The names of the places in a template: a word in braces, and nothing else, is a place.

    >>> sorted(places('{query} from {documents} as {"grade": 0}, {}'))
    ['documents', 'query']
    """
    return frozenset(_PLACE.findall(template))


def check(template: str, what: str, known: Collection[str], needed: Collection[str] = ()) -> None:
    """Raise SettingsError where a template has a place that does not exist, or lacks one that it needs.

    >>> check("Answer {qury}", "the prompt", known=["query", "documents"])
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: the prompt has the place {qury}; did you mean query?
    """
    if not isinstance(template, str):
        raise SettingsError(f"{what} is {template!r}; expected text")
    found = places(template)
    for name in sorted(found - set(known)):
        raise SettingsError(f"{what} has the place {{{name}}}; {did_you_mean(name, known)}")
    for name in sorted(set(needed) - found):
        raise SettingsError(f"{what} has no place {{{name}}}; every prompt must show it")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its places filled, all in one pass: braces in the values are plain text.

    >>> fill("Q: {query} D: {text}", {"query": "what is {text}?", "text": "{query} and {}"})
    'Q: what is {text}? D: {query} and {}'
    """
    return _PLACE.sub(lambda match: values[match.group(1)], template)
