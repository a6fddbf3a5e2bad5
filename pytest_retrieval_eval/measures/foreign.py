"""Measures of the package ir_measures that are not among ours: ``ir_measures:Compat(p=0.9)``.

The prefix says whose number it is. The package is asked about a collection made from the judged ranks, in our
order of documents: what a measure may depend on is in it, the names of documents are not.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures.names import PROVIDER, Measure
from pytest_retrieval_eval.measures.registry import Definition, Parameter

if TYPE_CHECKING:
    from pytest_retrieval_eval.measures.ranks import Floats, JudgedRanks

# Judgments by subtopic, which our qrels do not hold: any number would be of something else.
_BY_SUBTOPIC = frozenset({"alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"})


def read(text: str) -> Measure:
    """The measure that the package names so. Raises MeasureError, also where the package is absent."""
    library = _library(text)
    try:
        parsed = library.parse_measure(text)
    except Exception as error:
        raise MeasureError(f"{PROVIDER}:{text}: {error}; see the documentation of ir_measures.") from error
    if parsed.NAME in _BY_SUBTOPIC:
        raise MeasureError(f"{PROVIDER}:{text} needs judgments by subtopic, and qrels here have one grade a document.")
    cutoff = parsed.params.get("cutoff")
    name = str(parsed)
    if cutoff is not None:
        name = name.removesuffix(f"@{cutoff}")
    return Measure(PROVIDER, cutoff, (("name", name),))


def hint(word: str) -> str:
    """The end of the sentence about an unknown measure: that the package has it, where that is so."""
    if importlib.util.find_spec(PROVIDER) is None:
        return ""
    known = importlib.import_module(PROVIDER).measures.registry
    return f" The package ir_measures has it: write {PROVIDER}:{word}." if word in known else ""


def _library(text: str) -> Any:
    try:
        return importlib.import_module(PROVIDER)
    except ImportError as error:
        raise MeasureError(
            f"{PROVIDER}:{text} needs the package ir_measures, which cannot be imported ({error}): pip install "
            "'pytest-retrieval-eval[ir_measures]'"
        ) from error


def score(ranks: JudgedRanks, measure: Measure) -> Floats:
    """What ir_measures gives for the ranks and grades of the judged documents."""
    text = str(measure).removeprefix(f"{PROVIDER}:")
    library = _library(text)
    if ranks.scale == "unit" or ranks.facts.fractional is not None:
        raise MeasureError(f"{measure}: ir_measures reads whole grades, and those of the qrels are not.")
    qrels, run = _collection(ranks, library)
    values = np.zeros(ranks.queries)
    for found in library.iter_calc([library.parse_measure(text)], qrels, run):
        values[int(found.query_id)] = found.value
    return values


def _collection(ranks: JudgedRanks, library: Any) -> tuple[list[Any], list[Any]]:
    """Judgments and lists of the same ranks and grades; documents are named by their rank.

    Only of queries with a grade above 0: others have no value, and trec_eval, which may be asked in the end,
    crashes where all grades are negative.
    """
    positive = ranks.facts.positive.tolist()
    returned: dict[int, Counter[int]] = {}
    qrels: list[Any] = []
    for query, rank, grade in zip(ranks.query.tolist(), ranks.rank.tolist(), ranks.grade.tolist(), strict=True):
        returned.setdefault(query, Counter())[int(grade)] += 1
        if positive[query]:
            qrels.append(library.Qrel(str(query), f"rank{rank}", int(grade), "0"))
    for query, grade in zip(ranks.facts.query.tolist(), ranks.facts.grades.tolist(), strict=True):
        of_query = returned.get(query)
        if of_query is not None and of_query[int(grade)]:
            of_query[int(grade)] -= 1
        elif positive[query]:
            qrels.append(library.Qrel(str(query), f"missed{len(qrels)}", int(grade), "0"))
    run = [
        library.ScoredDoc(str(query), f"rank{rank}", float(length - rank))
        for query, length in enumerate(ranks.returned.tolist())
        if positive[query]
        for rank in range(1, length + 1)
    ]
    return qrels, run


MEASURES = (
    Definition(
        PROVIDER,
        "any measure of the package ir_measures, by its name there, as in ir_measures:Compat(p=0.9)",
        "ir_measures, which must be installed: the extra ir_measures",
        score,
        binary=False,
        parameters={"name": Parameter("the name in ir_measures, without its cut-off", text=True)},
        low=-float("inf"),
        high=float("inf"),
    ),
)
