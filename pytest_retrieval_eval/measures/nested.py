"""Measures of other measures: on condensed lists, on cut lists, and their geometric mean."""

from __future__ import annotations

import numpy as np

from pytest_retrieval_eval.errors import MeasureError
from pytest_retrieval_eval.measures import graded, registry
from pytest_retrieval_eval.measures.evidence import words_for
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.orders import orders_of
from pytest_retrieval_eval.measures.ranks import Floats, Ints, JudgedRanks
from pytest_retrieval_eval.measures.registry import Definition, Parameter

_FLOOR = 0.00001  # trec_eval's, so that one query of value 0 does not make the whole mean 0


def resolve(ranks: JudgedRanks, measure: Measure) -> tuple[JudgedRanks, Measure]:
    """The innermost measure, and the table that it is computed on."""
    for found, link in registry.chain(measure):
        if found.table is None:
            return ranks, link
        ranks = found.table(ranks, link)
    raise MeasureError(f"{measure} has no measure inside.")


def reads_degrees(ranks: JudgedRanks, measure: Measure) -> bool:
    """Whether a binary measure reads labels as degrees: on the unit scale, without a level."""
    inner = measure.innermost
    return ranks.scale == "unit" and registry.definition(inner.name).binary and inner.get("rel") is None


def score(ranks: JudgedRanks, measure: Measure) -> Floats:
    """The values of the innermost measure on its table."""
    table, inner = resolve(ranks, measure)
    found = registry.definition(inner.name)
    by_degree = found.graded if reads_degrees(table, inner) else None
    return (by_degree or found.score)(table, inner)


def condense(ranks: JudgedRanks, measure: Measure) -> JudgedRanks:
    """The lists without unjudged documents."""
    return _judged(ranks, measure).condensed()


def cut(ranks: JudgedRanks, measure: Measure) -> JudgedRanks:
    """The top k of the lists."""
    return ranks if measure.cutoff is None else _judged(ranks, measure).cut(measure.cutoff)


def _judged(ranks: JudgedRanks, measure: Measure) -> JudgedRanks:
    """A table of judged documents, which can be made anew; one of other evidence has more beside it."""
    if ranks.beside is not None:
        raise MeasureError(
            f"{measure}: {measure.name} makes other lists of judged documents, and {measure.innermost} reads "
            f"{words_for(registry.reads(measure))}."
        )
    return ranks


def _rises_when_cut(measure: Measure) -> bool:
    # More relevant documents above the cut can lower a mean over those that are there.
    return measure.innermost.get("denominator") != "retrieved"


def plain(ranks: JudgedRanks, measure: Measure) -> JudgedRanks:
    """The lists as they are."""
    return ranks


def expected(ranks: JudgedRanks, measure: Measure, counted: Ints) -> Floats | None:
    """The mean of each query's value over all orders of tied documents; None where no closed form is known and the
    orders are too many to try each.

    Of a geometric mean over the n queries ``counted`` it is what makes that the expected one: queries are ordered
    independently, so that this is the product of the means of each value to the power 1/n.
    """
    how, link = registry.aggregate(measure)
    if how != "geometric mean":
        found = _over_ties(ranks, measure)
        form = registry.definition(found[1].name).expected if found else None
        if found is not None and form is not None:
            values = graded.expected(*found, form) if reads_degrees(*found) else form(*found)
            if values is not None:
                return values
    every = orders_of(ranks)
    if every is None:
        return None
    values = score(every.table, measure)
    if how != "geometric mean":
        return every.means(values)
    means: Floats = every.means(np.maximum(values, registry.floor(link)) ** (1.0 / len(counted))) ** len(counted)
    return means


def extremes(ranks: JudgedRanks, measure: Measure) -> tuple[Floats, Floats] | None:
    """The least and the largest value of each query over these orders, where no one order gives them."""
    form = registry.chain(measure)[-1][0].extremes
    if form is None:
        return None
    found = _over_ties(ranks, measure)
    ends = form(*found) if found and not reads_degrees(*found) else None
    if ends is None and (every := orders_of(ranks)) is not None:
        ends = every.ends(score(every.table, measure))
    return ends


def _over_ties(ranks: JudgedRanks, measure: Measure) -> tuple[JudgedRanks, Measure] | None:
    """The innermost measure, and a table for its forms over ties.

    The judged documents of a tie are in every order alike once the others are taken out, so that the forms hold
    on condensed lists; but how many there are to take out hangs on the order, where a cut divides the tie first.
    """
    for found, link in registry.chain(measure):
        if found.table is None:
            return ranks, link
        if found.table is cut and link.cutoff is not None:
            ranks = ranks.ending(link.cutoff)
        elif found.table is condense and ranks.end is None:
            ranks = ranks.condensed()
        elif found.table is not plain:
            return None
    return None


_MEASURE = Parameter("the measure inside", measure=True)

MEASURES = (
    Definition(
        "condensed",
        "the measure inside, after the documents without a judgment are taken out of each list",
        "Sakai, Alternatives to Bpref, SIGIR 2007; trec_eval -J",
        score,
        cutoff="none",
        binary=False,
        parameters={"measure": _MEASURE},
        table=condense,
        rises=True,
    ),
    Definition(
        "cut",
        "the measure inside, on lists that end at rank k",
        "trec_eval -M k",
        score,
        cutoff="required",
        binary=False,
        parameters={"measure": _MEASURE},
        table=cut,
        rises=_rises_when_cut,
    ),
    Definition(
        "gm",
        "geometric mean over the queries of the measure inside, each value raised to the floor",
        "Robertson, On GMAP and Other Transformations, CIKM 2006; gm_map of trec_eval",
        score,
        cutoff="none",
        binary=False,
        parameters={
            "measure": _MEASURE,
            "floor": Parameter("the least that a value counts", _FLOOR, number=True, above=0.0),
        },
        table=plain,
        rises=True,
        aggregate="geometric mean",
        readings={"gm_map": "gm(map)", "gmap": "gm(map)", "gm_bpref": "gm(bpref)"},
    ),
)
