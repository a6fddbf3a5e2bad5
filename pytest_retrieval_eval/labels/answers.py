"""How right an answer is: KILT's downstream metrics, and those that others add.

The rules are those of KILT (Petroni et al., KILT: a Benchmark for Knowledge Intensive Language Tasks, NAACL 2021),
whose figures papers report; another normalisation gives other figures.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean, raised

Metric = Callable[[str, str], float]
"""A metric takes what was answered and one gold answer, and gives a degree from 0 to 1."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised_answer(text: str) -> str:
    """KILT's normal form: lower case, no ASCII punctuation, no English articles, single blanks.

    >>> normalised_answer("The U.S.A., a well-known  country")
    'usa wellknown country'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def accuracy(predicted: str, gold: str) -> float:
    """1 if both are the same text, apart from white space around it; case counts (KILT: FEVER)."""
    return float(predicted.strip() == gold.strip())


def em(predicted: str, gold: str) -> float:
    """Exact match: 1 if both have the same normal form."""
    return float(normalised_answer(predicted) == normalised_answer(gold))


def f1(predicted: str, gold: str) -> float:
    """The harmonic mean of precision and recall over the words of the normal forms, as multisets."""
    ours, theirs = normalised_answer(predicted).split(), normalised_answer(gold).split()
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2.0 * same / (len(ours) + len(theirs)) if same else 0.0


def rouge_l(predicted: str, gold: str) -> float:
    """ROUGE-L (f) of the package ``rouge``, as KILT has it: the texts as they are, a blank between words.

    Texts in which it finds no word score 0.
    """
    try:
        return float(_rouge().get_scores(predicted, gold)[0]["rouge-l"]["f"])
    except ValueError:  # what the package raises for a text such as "" or "..."
        return 0.0


@lru_cache(maxsize=1)
def _rouge() -> Any:
    try:
        from rouge import Rouge
    except ImportError:
        raise GateError(
            "rouge_l needs the package rouge; install it with: pip install 'pytest-retrieval-eval[erag]'"
        ) from None
    return Rouge(metrics=["rouge-l"])


METRICS: dict[str, Metric] = {"accuracy": accuracy, "em": em, "f1": f1, "rouge_l": rouge_l}
"""The metrics by name; what a hook gives stands here for its session."""


def metric(name: str | Metric) -> Metric:
    """The metric of that name; a function is taken as it is.

    >>> metric("f1")("the cat sat", "cat")
    0.6666666666666666
    >>> metric("rouge")
    Traceback (most recent call last):
    pytest_retrieval_eval.errors.SettingsError: there is no answer metric 'rouge'; did you mean rouge_l?
    """
    if callable(name):
        return name
    if name not in METRICS:
        raise SettingsError(f"there is no answer metric {name!r}; {did_you_mean(str(name), METRICS)}")
    return METRICS[name]


def register(name: str, function: Metric) -> bool:
    """Add a metric, if it is not there; a name that another has, or no name, is a SettingsError."""
    if not isinstance(name, str) or not name.isidentifier() or not callable(function):
        raise SettingsError(f"an answer metric is a name and a function of two texts, not {name!r} and {function!r}")
    if name in METRICS and METRICS[name] is not function:
        raise SettingsError(f"there is an answer metric {name!r} already; give yours another name")
    new = name not in METRICS
    METRICS[name] = function
    return new


def unregister(name: str) -> None:
    """Take a metric out again."""
    METRICS.pop(name, None)


def answer_score(name: str | Metric, predicted: str, golds: Sequence[str] | Iterable[str]) -> float | None:
    """The best value over the gold answers; None where there is none, for then nothing can be scored.

    An answer of white space alone scores 0, whatever the metric. A value that is no number from 0 to 1 (an error in
    the last digits apart) is a GateError, and so is what the metric raises.

    >>> answer_score("em", "Paris.", ["Rome", "paris"]), answer_score("f1", " ", ["a b"]), answer_score("em", "x", [])
    (1.0, 0.0, None)
    """
    function, texts = metric(name), list(golds)
    if not texts:
        return None
    if not predicted.strip():
        return 0.0
    return max(_scored(function, predicted, gold) for gold in texts)


def _scored(function: Metric, predicted: str, gold: str) -> float:
    called = getattr(function, "__name__", None) or type(function).__name__
    try:
        value: object = function(predicted, gold)
    except GateError:
        raise
    except Exception as error:  # anyone may write a metric
        raise GateError(f"the answer metric {called} raised {raised(error)}") from error
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not -1e-6 <= number <= 1.0 + 1e-6:  # NaN compares with nothing
        raise GateError(f"the answer metric {called} gave {value!r}; expected a number from 0 to 1")
    return min(max(number, 0.0), 1.0)
