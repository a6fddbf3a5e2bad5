"""``evaluate``: qrels and a run become per-query scores, and an account of the queries that did not count.

A number without its n and without the queries that were left out is half a number: ``Scores`` carries the
values of the queries that count for one measure, ``QueryCounts`` says what happened to all others.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.collection.runs.stages import Stages
from pytest_retrieval_eval.errors import DataError, GateError, MeasureError, did_you_mean, raised
from pytest_retrieval_eval.measures import nested, registry
from pytest_retrieval_eval.measures.counts import QueryCounts, Short
from pytest_retrieval_eval.measures.evidence import RANKS, Evidence, Given, evidence_of
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.nested import reads_degrees, resolve, score
from pytest_retrieval_eval.measures.ranks import Bools, Floats, JudgedRanks
from pytest_retrieval_eval.measures.scores import Counted, Scores, TieInterval

__all__ = ["Evaluation", "QueryCounts", "Scores", "Short", "TieInterval", "evaluate"]

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.queries import Queries
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.chunks import Chunks
    from pytest_retrieval_eval.collection.spans.spans import Spans
    from pytest_retrieval_eval.measures.bounds import Bounds

_Kind = TypeVar("_Kind", np.float64, np.bool_)


def evaluate(
    qrels: Qrels | None,
    run: Run,
    measures: str | Measure | Iterable[str | Measure],
    *,
    queries: Queries | None = None,
    select: Collection[str] | None = None,
    trec: bool = False,
    complete: bool = False,
    unit: Literal["document"] | None = None,
    chunks: Chunks | None = None,
    spans: Spans | None = None,
    corpus: Corpus | None = None,
    stages: Mapping[str, Run] | None = None,
) -> Evaluation:
    """Measure a run on qrels, or on gold spans.

    A query counts for a ranking measure if at least one of its documents is relevant at the measure's
    level, and with value 0 if the run lacks it or returned nothing. It does not count if it has no
    judgments, if nothing is relevant, or if ``queries`` marks it unanswerable; queries of the run that are
    not in the collection are ignored. All of that is reported in ``counts``. ``select`` narrows the
    collection to these query ids.

    ``trec`` counts and ranks as trec_eval 9.0.8 does: the topics that are in both the qrels and the run
    count, also those without a relevant document (with 0), and scores are compared as float32; with
    ``complete`` (trec_eval's ``-c``) all topics of the qrels count.

    With ``unit="document"`` the run ranks chunks and the labels are on documents: each document stands at the
    rank of its best chunk (see ``Run.by_document``; ``chunks`` says which document a chunk is part of, where
    the hits do not), and k counts documents.

    Measures of spans (``span_recall@5``) read ``spans`` and not the qrels, which may be None; where the hits do not
    say which part of which document they are, ``chunks`` does. A query counts if it has gold at the level. Measures of
    both kinds may be asked for at once.

    ``lift`` and ``withheld`` read ``stages``, the runs of a pipeline's stages by name; ``leaks`` and ``withheld`` read
    who may read what, from ``queries`` and ``corpus``.

    Raises MeasureError for a measure that is unknown or does not fit the grades, GateError where the qrels
    judge nothing or the run has no query at all, DataError where ``select`` names a query that the
    collection lacks.

    The handbook's example, one query whose ranking is d7, d3, d1, d9, d4:

    >>> from pytest_retrieval_eval import Qrels, Run
    >>> qrels = Qrels.of({"q": {"d1": 3, "d3": 2, "d5": 2, "d4": 1}})
    >>> run = Run.of({"q": ["d7", "d3", "d1", "d9", "d4"]})
    >>> names = ["recall@5", "map", "ndcg@5", "ndcg(gain=exp)@5"]
    >>> for scores in evaluate(qrels, run, names):
    ...     print(scores.measure, round(scores.mean, 2), scores.n)
    recall@5 0.75 1
    map 0.44 1
    ndcg@5 0.55 1
    ndcg(gain=exp)@5 0.53 1
    """
    if complete and not trec:
        raise MeasureError("complete=True is trec_eval's -c: it goes with trec=True.")
    if unit not in (None, "document"):
        raise MeasureError(f"unit={unit!r}: expected 'document', or nothing where the labels are on what is ranked.")
    if unit is not None:
        if spans is not None:
            raise MeasureError(
                "unit='document' ranks documents, and spans are measured on chunks: give one of the two."
            )
        run, given_stages = run.by_document(chunks), stages
        if given_stages is not None:
            stages = Stages(dict.fromkeys(given_stages), lambda name, _: given_stages[name].by_document(chunks))
    elif chunks is not None and spans is None and corpus is None:
        raise MeasureError("chunks say which parts of documents are ranked: they go with unit='document' or spans.")
    wanted = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    if not wanted:
        raise MeasureError("no measure was asked for; name at least one, such as recall@5.")
    names = tuple(dict.fromkeys(_measure(name) for name in wanted))
    if qrels is not None and len(qrels) and qrels.scale == "unit" and float(qrels.grades.max()) > 1.0 + 1e-6:
        raise DataError(
            f"{qrels.source or 'the qrels'} are on the unit scale and have the label "
            f"{float(qrels.grades.max()):g}; expected labels from 0 to 1, or the scale levels."
        )
    given = Given(run, qrels, queries, spans, chunks, trec, corpus, stages)
    kind = registry.reads(names[0])
    evidence = evidence_of(kind, given)
    if not evidence.ranks.in_run.any() and not evidence.ranks.unknown:
        raise GateError(f"the {run.called} has no query at all: nothing can be measured.")
    evaluation = Evaluation(evidence, given, names, select, kind=kind, complete=complete)
    for name in names:
        evaluation.scores(name)
    return evaluation


class Evaluation:
    """The scores of one run on one set of labels, for any number of measures.

    ``measures`` are those that were asked for, in that order, and iterating gives their ``Scores``;
    ``scores`` (or ``evaluation[...]``) gives any other measure's as well. ``qrels`` are the labels, ``ranks`` the
    table and ``counts`` the account of the evidence that the first measure reads: of a measure of spans the labels
    are the gold spans. Measures of another kind of evidence are handed to an evaluation of that kind.
    """

    def __init__(
        self,
        evidence: Evidence,
        given: Given,
        measures: tuple[Measure, ...],
        select: Collection[str] | None = None,
        *,
        kind: str = RANKS,
        complete: bool = False,
    ) -> None:
        self.evidence = evidence
        self.given = given
        self.kind = kind
        self.qrels = evidence.labels
        self.run = given.run
        self.ranks = evidence.ranks
        self.measures = measures
        self.trec = given.trec
        self.complete = complete
        self._queries = queries = given.queries
        self._select = None if select is None else frozenset(select)
        self._scores: dict[Measure, Scores] = {}
        self._bounds: dict[Measure, Bounds] = {}
        self._counted: dict[object, Counted] = {}
        self._counts: QueryCounts | None = None
        self._warnings: tuple[str, ...] | None = None
        self._others: dict[str, Evaluation] = {}
        self._check_select()
        ids = self.qrels.query_ids
        inside = np.ones(len(ids), bool)
        if self._select is not None:
            inside &= np.fromiter(map(self._select.__contains__, ids), bool, len(ids))
        # trec_eval knows no unanswerable queries.
        if not self.trec and queries is not None and queries.unanswerable and not evidence.every:
            unanswerable = queries.unanswerable
            inside &= np.fromiter((query_id not in unanswerable for query_id in ids), bool, len(ids))
        self._inside: Bools = inside
        always = self.qrels.always
        self._always: Bools = np.fromiter(map(always.__contains__, ids), bool, len(ids))

    def narrowed(self, select: Collection[str]) -> Evaluation:
        """The same for these queries alone; nothing is found again."""
        return Evaluation(self.evidence, self.given, self.measures, select, kind=self.kind, complete=self.complete)

    def _home(self, measure: Measure) -> Evaluation:
        """The evaluation of the kind of evidence that the measure reads: this one, or one beside it."""
        kind = registry.reads(measure)
        if kind == self.kind:
            return self
        if kind not in self._others:
            evidence = evidence_of(kind, self.given)
            other = Evaluation(evidence, self.given, (), self._select, kind=kind, complete=self.complete)
            self._others[kind] = other
        return self._others[kind]

    def scores(self, measure: str | Measure) -> Scores:
        """The scores of a measure, computed now if it was not asked for before. Raises MeasureError."""
        if isinstance(measure, Measure) and measure in self._scores:
            return self._scores[measure]
        name = _measure(measure)
        home = self._home(name)
        if home is not self:
            return home.scores(name)
        if name not in self._scores:
            counted = self._count(name)
            if self.evidence.check is not None:
                self.evidence.check(name, counted.rows)
            values = self._values(name, self.ranks, counted)
            self._scores[name] = Scores(
                name, counted, values, partial(self._why_none, name), self._classes(name, counted)
            )
        return self._scores[name]

    __getitem__ = scores

    def __iter__(self) -> Iterator[Scores]:
        return (self.scores(measure) for measure in self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(repr(scores) for scores in self)})"

    def ties(self, measure: str | Measure) -> TieInterval:
        """The smallest, expected and largest mean over the orders of documents with equal scores.

        Of counts it is the sum, of gm the geometric mean. Raises MeasureError where a measure does not say how
        ties move it, GateError where no query counts.
        """
        name = _measure(measure)
        home = self._home(name)
        if home is not self:
            return home.ties(name)
        scores, counted = self.scores(name), self._count(name)
        if not self.evidence.tied:
            only = scores.overall
            return TieInterval(name, only, only, scores.query_ids, scores.values, scores.values, lambda: only)
        if self.trec and self.counts.duplicates:
            raise MeasureError(f"{self._repeats()}: intervals of ties in trec mode need a run without repeats.")
        order = registry.order(name)
        if order is not None:
            low = self._values(name, self.ranks.worst(), counted)
            high = self._values(name, self.ranks.best(), counted)
            if order == "falls":
                low, high = high, low
        else:
            ends = nested.extremes(self.ranks, name)
            if ends is None:
                raise MeasureError(f"{name} does not say how the order of tied documents moves it.")
            low, high = (read_only(values[counted.rows]) for values in ends)
        why = partial(self._why_none, name)

        def expect() -> float | None:
            values = nested.expected(self.ranks, name, counted.rows)
            return None if values is None else Scores(name, counted, values[counted.rows], why).overall

        return TieInterval(
            name,
            Scores(name, counted, low, why).overall,
            Scores(name, counted, high, why).overall,
            scores.query_ids,
            low,
            high,
            expect,
        )

    def bounds(self, measure: str | Measure) -> Bounds:
        """The smallest and largest value if every unjudged document *of the lists* were judged, exactly.

        Each may turn out to have any grade from 0 to the largest of the collection; also those below the
        cut-off, where a relevant one adds to R and to the ideal. Documents that the run did not return are
        left out: they are without number, and would bound every recall by 0. So all-irrelevant and
        all-relevant are no bounds; nDCG@3 of a, b and a third document falls where that one is relevant:

        >>> from pytest_retrieval_eval import Qrels, Run
        >>> evaluation = evaluate(Qrels.of({"q": {"a": 1, "b": 0}}), Run.of({"q": ["a", "b", "hole"]}), "ndcg@3")
        >>> bounds = evaluation.bounds("ndcg@3")
        >>> round(bounds.minimum, 2), bounds.maximum
        (0.92, 1.0)

        The queries are those that count today; on the unit scale map, r_precision and bpref have no known bounds.
        Those of bpref and of condensed lists, which leave out what is unjudged, need not hold the value of today.
        Raises MeasureError where a measure has none, GateError where no query counts.
        """
        from pytest_retrieval_eval.measures.bounds import Bounds, bounds_of, reads_holes

        name = _measure(measure)
        home = self._home(name)
        if home is not self:
            return home.bounds(name)
        if name in self._bounds:
            return self._bounds[name]
        if self.counts.duplicates and reads_holes(name):
            raise MeasureError(f"{name} has bounds over unjudged documents only of runs that repeat no document.")
        counted, why = self._count(name), partial(self._why_none, name)
        self.scores(name)  # refuses what does not fit
        graded = reads_degrees(self.ranks, name)
        ranks = self._settled()
        # One slice of the queries has the same bounds as another: what is shared is for all of them.
        ends = ranks.share(("bounds", name), lambda: bounds_of(ranks, name, score, graded=graded))
        low, high = (values[counted.rows] for values in ends)
        self._bounds[name] = Bounds(
            name,
            Scores(name, counted, low, why).overall,
            Scores(name, counted, high, why).overall,
            counted.ids,
            read_only(low),
            read_only(high),
        )
        return self._bounds[name]

    def _settled(self) -> JudgedRanks:
        """The table without the places of repeated documents, which nobody needs to judge."""
        if not self.counts.duplicates:
            return self.ranks
        if self.trec:
            raise MeasureError(f"{self._repeats()}: bounds in trec mode need a run without repeats.")

        def build() -> JudgedRanks:
            from pytest_retrieval_eval.measures.bounds import without_repeats

            place = {query_id: row for row, query_id in enumerate(self.qrels.query_ids)}
            found = [(place[q], rank) for q, all_ in self.run.repeats.items() if q in place for rank in all_]
            query, rank = np.array(found, np.int64).reshape(-1, 2).T
            return without_repeats(self.ranks, query, rank)

        return self.ranks.share("without repeats", build)

    def _repeats(self) -> str:
        name = self.run.name or self.run.source or "given"
        return f"the run {name} repeats documents, which trec_eval has no order for"

    @property
    def counts(self) -> QueryCounts:
        """What became of each query."""
        if self._counts is None:
            self._counts = self._account()
        return self._counts

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the qrels and the run warned of, and where reading scores as float32 made ties (``trec``)."""
        if self._warnings is None:
            note = self._float32_note() if self.trec else ""
            found = (*self.qrels.warnings, *self.run.warnings, *self.evidence.warnings)
            self._warnings = (*found, *([note] if note else []))
        return self._warnings

    def to_frame(self) -> Any:
        """A pandas data frame with the columns query_id, measure, value: a row for each query and measure."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise GateError("to_frame needs pandas, which is not installed: pip install pandas.") from error
        scores = list(self)
        return pandas.DataFrame(
            {
                "query_id": [query_id for one in scores for query_id in one.query_ids],
                "measure": [str(one.measure) for one in scores for _ in range(one.n)],
                "value": np.concatenate([one.values for one in scores]),
            }
        )

    def _count(self, measure: Measure) -> Counted:
        """Which queries count for a measure: the table of the contract, or trec_eval's topics."""
        ranks = self.ranks
        definition = registry.chain(measure)[-1][0]
        if definition.counts is not None:
            key: object = measure
        else:
            key = measure.rel if self._by_level(measure) and not self.trec else None
        if key in self._counted:
            return self._counted[key]
        mask = self._inside.copy()
        if self.trec:
            mask &= ranks.facts.judged > 0 if self.complete else ranks.in_run & (ranks.facts.judged > 0)
        if definition.counts is not None:
            mask &= self._asked(measure, definition.counts, *resolve(ranks, measure), np.bool_)
        elif not self.trec:
            mask &= self._relevant(measure)
        self._counted[key] = Counted(np.flatnonzero(mask), self.qrels.query_ids)
        return self._counted[key]

    def _values(self, measure: Measure, ranks: JudgedRanks, counted: Counted) -> Floats:
        self._fits(measure)
        values = self._asked(measure, score, ranks, measure, np.float64)
        # A copy, for a measure may keep the array that it gave.
        values = values.copy() if len(counted.rows) == ranks.queries else values[counted.rows]
        low, high = registry.bounds(measure)
        if len(values):
            # A NaN is the least and the largest of all.
            least, most = float(values.min()), float(values.max())
            if not (low - 1e-9 <= least and most <= high + 1e-9 and -math.inf < least and most < math.inf):
                raise _not_a_value(measure, counted, values)
        return read_only(values)

    def _classes(self, measure: Measure, counted: Counted) -> Floats | None:
        """The class of each query, where the measure sorts queries into such."""
        how, link = registry.aggregate(measure)
        classes = registry.definition(link.name).classes if how == "statistic" else None
        if classes is None:
            return None
        return read_only(self._asked(measure, classes, *resolve(self.ranks, measure), np.float64)[counted.rows])

    def _asked(
        self,
        measure: Measure,
        function: Callable[[JudgedRanks, Measure], Any],
        ranks: JudgedRanks,
        inner: Measure,
        dtype: type[_Kind],
    ) -> NDArray[_Kind]:
        """What a measure's function gives, one value for each query; whatever is wrong with it names the
        measure and where it comes from.
        """
        try:
            values = np.asarray(function(ranks, inner), dtype)
        except GateError:
            raise
        except Exception as error:
            raise MeasureError(f"{_named(measure)} raised {raised(error)}") from error
        if values.shape != (ranks.queries,):
            raise MeasureError(
                f"{_named(measure)} gave values of shape {values.shape}; expected one for each of the "
                f"{ranks.queries} queries of the qrels."
            )
        return values

    def _by_level(self, measure: Measure) -> bool:
        """Whether the measure divides documents at a level."""
        return registry.definition(measure.innermost.name).binary and not reads_degrees(self.ranks, measure)

    def _relevant(self, measure: Measure) -> Bools:
        """Which queries have a document that is relevant for the measure."""
        facts = self.ranks.facts
        found = facts.relevant(measure.rel) > 0 if self._by_level(measure) else facts.positive
        return found | self._always

    def _fits(self, measure: Measure) -> None:
        """A plain binary measure would cut grades that are no whole numbers at a level nobody chose."""
        inner = measure.innermost
        definition = registry.definition(inner.name)
        if not definition.binary or inner.get("rel") is not None:
            return
        if reads_degrees(self.ranks, measure):
            if definition.graded is not None:
                return
            raise MeasureError(
                f"{measure}: the labels of {self.qrels.source or 'these qrels'} lie on the unit scale, for "
                f"which {inner.name} has no definition. Say from which label on a document is relevant, "
                f"as in {_with_rel(measure)}."
            )
        row = self.ranks.facts.fractional
        if row is not None:
            query_id = self.qrels.query_ids[int(self.qrels.query[row])]
            raise MeasureError(
                f"{measure} needs to know which documents are relevant, and the grades of "
                f"{self.qrels.source or 'the qrels'} are no whole numbers (query {query_id}, document "
                f"{self.qrels.docs[row]}: {self.qrels.grades[row]:g}). Say from which grade on a document is "
                f"relevant, as in {_with_rel(measure)}, or use ndcg, which needs no level."
            )

    def _why_none(self, measure: Measure) -> str:
        """The sentence for a measure for which no query counts."""
        said = f"no query counts for {measure}: "
        facts, source = self.ranks.facts, self.qrels.source or "the qrels"
        definition = registry.chain(measure)[-1][0]
        if self._select is not None and not self._inside.any():
            return said + f"none of the {len(self._select)} selected queries can be counted in {source}."
        if self.trec and not (self.ranks.in_run & (facts.judged > 0) & self._inside).any():
            return said + f"no topic of {source} is in the run."
        if definition.no_counts:
            return said + definition.no_counts
        if definition.counts is not None:
            return said + f"the run has no list for any judged query of {source}, or the measure leaves all out."
        relevant = self._relevant(measure)
        if not relevant.any():
            level = f">= {measure.rel:g}" if self._by_level(measure) else "above 0"
            what = "document" if self.evidence.judged else self.evidence.noun
            return said + f"no {what} has grade {level}; the highest grade in {source} is {facts.highest:g}."
        what = "a relevant document" if self.evidence.judged else f"a {self.evidence.noun}"
        return said + (f"the {int(relevant.sum())} queries of {source} with {what} are unanswerable or not selected.")

    def _check_select(self) -> None:
        if self._select is None:
            return
        if not self._select:
            raise GateError("the selection holds no query, so that nothing can be measured.")
        given = self.given
        collections = (labels.query_ids for labels in (self.qrels, given.qrels, given.spans) if labels is not None)
        known = list(dict.fromkeys((*chain.from_iterable(collections), *(self._queries or ()))))
        unknown = self._select.difference(known)
        if unknown:
            first = min(unknown)
            raise DataError(
                f"the selection names {len(unknown)} "
                f"{'query that is' if len(unknown) == 1 else 'queries that are'} neither in "
                f"{self.qrels.source or 'the qrels'} nor among the queries, the first is {first}"
                + (f"; {did_you_mean(first, known)}" if len(known) <= 1000 else ".")
            )

    def _account(self) -> QueryCounts:
        ranks, ids, queries = self.ranks, self.qrels.query_ids, self._queries
        facts = ranks.facts
        chosen = self._select
        aside = queries is not None and not self.trec and not self.evidence.every
        unanswerable = queries.unanswerable if queries is not None and aside else frozenset[str]()
        judged = self._inside & ((facts.judged > 0) | self._always)
        levels = self.qrels.scale == "levels" and facts.fractional is None
        relevant = (facts.relevant(1.0) > 0 if levels else facts.positive) | self._always

        def named(mask: Bools) -> tuple[str, ...]:
            return tuple([ids[row] for row in np.flatnonzero(mask).tolist()])

        outside = [] if queries is None else self._beyond_qrels(queries)
        others = [query_id for query_id in outside if query_id not in unanswerable]
        collection = frozenset(queries or ())
        failed = [query_id for query_id in self.run.errors if chosen is None or query_id in chosen]
        # Sorted runs repeat nothing (their files are refused), and to ask a streamed one would load it.
        repeats = self.run.duplicates if self.run.ordered_by == "list" else {}
        short = []
        for cutoff in sorted({measure.cutoff for measure in self.measures if measure.cutoff is not None}):
            ends = judged & (ranks.returned > 0) & (ranks.returned < cutoff)
            if ends.any():
                short.append(Short(cutoff, named(ends), int(ranks.returned[ends].sum())))
        return QueryCounts(
            judged=int(judged.sum()),
            unjudged=() if self.evidence.every else named(self._inside & ~judged) + tuple(others),
            without_relevant=() if self.evidence.every else named(judged & ~relevant),
            unanswerable=tuple(
                [
                    query_id
                    for query_id in queries or ()
                    if query_id in unanswerable and (chosen is None or query_id in chosen)
                ]
            ),
            returned_nothing=named(judged & (ranks.returned == 0)),
            not_in_collection=tuple([query_id for query_id in ranks.unknown if query_id not in collection]),
            failed=tuple(failed),
            duplicates=sum(
                count
                for query_id, count in repeats.items()
                if query_id not in ranks.unknown and (chosen is None or query_id in chosen)
            ),
            short=tuple(short),
            trec=self.trec,
            complete=self.complete,
            noun=self.evidence.noun,
        )

    def _beyond_qrels(self, queries: Queries) -> list[str]:
        known = frozenset(self.qrels.query_ids)
        return [
            query_id
            for query_id in queries
            if query_id not in known and (self._select is None or query_id in self._select)
        ]

    def _float32_note(self) -> str:
        if not self.ranks.ties.any():
            return ""
        more = self.ranks.ties - self.run.locate(self.qrels).ties
        rows = np.flatnonzero(more > 0)
        if not len(rows):
            return ""
        where = "query" if len(rows) == 1 else "queries"
        return (
            f"trec mode compares scores as float32, as trec_eval 9.0.8 does: in {len(rows)} {where} "
            f"(the first is {self.qrels.query_ids[int(rows[0])]}) {int(more[rows].sum())} more documents are "
            "tied than as float64, and are ordered by document id."
        )


def _measure(name: str | Measure) -> Measure:
    return name.checked() if isinstance(name, Measure) else Measure.parse(name)


def _not_a_value(measure: Measure, counted: Counted, values: Floats) -> MeasureError:
    """The error for the first value that is no number, else the first one that the measure cannot have."""
    low, high = registry.bounds(measure)
    wrong = ~np.isfinite(values)
    said = "; expected a finite number"
    if not wrong.any():
        wrong = (values < low - 1e-9) | (values > high + 1e-9)
        said = f", and declares values from {low:g} to {high:g}"
    place = int(np.flatnonzero(wrong)[0])
    return MeasureError(f"{_named(measure)} gave {values[place]:g} for query {counted.ids[place]}{said}.")


def _named(measure: Measure) -> str:
    """The measure in an error, with the module that it comes from where that is not ours."""
    module = registry.definition(measure.innermost.name).module
    return f"the measure {measure}" + ("" if module.startswith(__package__) else f" of the module {module}")


def _with_rel(measure: Measure) -> Measure:
    if measure.inner is not None:
        return measure.having(measure=_with_rel(measure.inner))
    return measure.having(rel=0.5)
