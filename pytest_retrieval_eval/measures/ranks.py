"""The ranks and grades of each query's judged documents: the sparse table that ranking measures read.

It is as large as the qrels at most, whatever the size of the run. A measure is a sum over its rows: the
rows above a cut-off are a prefix of the table in rank order, so that many cut-offs cost little more than
one, and every sum adds up in rank order, so that a value never depends on what else was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.errors import MeasureError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Located, Run
    from pytest_retrieval_eval.measures.names import Measure

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"
Gain: TypeAlias = "Callable[[Floats], Floats]"

_T = TypeVar("_T")
_A = TypeVar("_A", bound="NDArray[Any]")


def linear(grades: Floats) -> Floats:
    """The gain of trec_eval: the grade itself (Järvelin & Kekäläinen 2002). For grades above 0."""
    return grades


def exponential(grades: Floats) -> Floats:
    """The gain 2^g − 1 (Burges et al. 2005). For grades above 0."""
    return np.exp2(grades) - 1.0


def gain_of(ranks: JudgedRanks, measure: Measure) -> Gain:
    """The gain function that the measure names. Raises MeasureError where 2^g is too large for a float."""
    # On the unit scale every threshold makes the labels 0 and 1, of which both gains are the same.
    if measure.get("gain") != "exp" or ranks.scale == "unit":
        return linear
    if ranks.facts.highest > 1000:
        raise MeasureError(
            f"{measure}: the highest grade is {ranks.facts.highest:g}, and 2 to that power is no number "
            "any more. Use the linear gain, or smaller grades."
        )
    return exponential


def _closed(array: _A) -> _A:
    """A view that cannot be written to."""
    view: _A = array.view()
    return read_only(view)


class Facts:
    """What the qrels alone say about each query, computed once and shared by all runs on them.

    Arrays have one entry for each query of the qrels, in their order.
    """

    __slots__ = ("_cache", "grades", "highest", "judged", "positive", "queries", "query")

    def __init__(self, query: Ints, grades: Floats, queries: int) -> None:
        self.query = query
        self.grades = grades
        self.queries = queries
        self.judged: Ints = read_only(np.bincount(query, minlength=queries))
        self.positive: Bools = read_only(np.bincount(query[grades > 0], minlength=queries) > 0)
        self.highest = float(grades.max()) if len(grades) else 0.0
        self._cache: dict[object, object] = {}

    def relevant(self, rel: float) -> Ints:
        """The number of documents whose grade is at least ``rel``, for each query."""
        return cached(
            self._cache,
            ("relevant", rel),
            lambda: read_only(np.bincount(self.query[self.grades >= rel], minlength=self.queries)),
        )

    def total(self) -> Floats:
        """The sum of the labels on the unit scale, for each query."""
        return cached(
            self._cache,
            "total",
            lambda: read_only(tally(self.query, np.clip(self.grades, 0.0, 1.0), self.queries)),
        )

    @property
    def fractional(self) -> int | None:
        """The first row whose grade is no whole number, or None."""

        def find() -> int | None:
            rows = np.flatnonzero(self.grades != np.floor(self.grades))
            return int(rows[0]) if len(rows) else None

        return cached(self._cache, "fractional", find)

    def ideal(self) -> tuple[Ints, Ints, Floats]:
        """Query, rank and grade of every document of grade above 0 in the best order, sorted by rank."""

        def build() -> tuple[Ints, Ints, Floats]:
            keep = self.grades > 0
            query, grades = self.query[keep], self.grades[keep]
            query, grades = _descending(query, grades, self.queries)
            rank = places(query, self.queries) + 1
            order = by_rank(rank)
            return query[order], rank[order], grades[order]

        return cached(self._cache, "ideal", build)

    def ideal_dcg(self, gain: Gain, cutoff: int | None) -> Floats:
        """The largest DCG that any ranking of each query's judged documents has at the cut-off."""

        def build() -> Floats:
            query, rank, _ = self.ideal()
            weights = cached(
                self._cache, ("ideal", gain), lambda: gain(self.ideal()[2]) / np.log2(self.ideal()[1] + 1.0)
            )
            end = prefix(rank, cutoff)
            return read_only(tally(query[:end], weights[:end], self.queries))

        return cached(self._cache, ("ideal", gain, cutoff), build)


class Relevant:
    """The rows of the table whose grade reaches a level, in rank order."""

    __slots__ = ("first", "precision", "query", "rank")

    def __init__(self, ranks: JudgedRanks, rel: float) -> None:
        keep = ranks.grade >= rel
        query, rank = ranks.query[keep], ranks.rank[keep]
        place = places(query, ranks.queries)
        first = np.zeros(ranks.queries, np.int64)
        top = place == 0
        first[query[top]] = rank[top]
        order = by_rank(rank)
        self.query: Ints = query[order]
        self.rank: Ints = rank[order]
        #: precision at the rank of each row
        self.precision: Floats = ((place + 1) / rank)[order]
        #: rank of each query's first row, 0 where it has none
        self.first: Ints = read_only(first)


_COLUMNS = (
    *("facts", "query", "rank", "grade", "tie_first", "tie_last"),
    *("returned", "in_run", "ties", "unknown", "scale", "trec"),
)


class JudgedRanks:
    """Where a run ranks the judged documents: rows of (query, rank, grade, tie group), and facts per query.

    Rows are sorted by query and rank. ``query`` indexes the queries of the qrels, ``rank`` begins at 1,
    ``tie_first`` and ``tie_last`` are the ranks of the first and last document of the same score. For each
    query of the qrels, ``returned`` is the length of its list (0 where the run has none), ``in_run``
    whether the run names the query at all, ``ties`` how many documents stand in a tie. ``unknown`` are the
    run's queries that the qrels lack. ``trec`` says that trec_eval's rules hold: it takes a negative grade
    for no judgment. ``end`` is set in tables for closed forms over ties alone (``ending``). ``beside`` is what
    measures of another kind of evidence read; None in a table of judged documents.

    >>> from pytest_retrieval_eval import Qrels, Run, evaluate
    >>> ranks = evaluate(Qrels.of({"q1": {"a": 2, "b": 1}}), Run.of({"q1": ["x", "b", "a"]}), "recall@3").ranks
    >>> ranks.rank.tolist(), ranks.grade.tolist(), ranks.returned.tolist()
    ([2, 3], [1.0, 2.0], [3])
    """

    __slots__ = (
        "_cache",
        "beside",
        "end",
        "facts",
        "grade",
        "in_run",
        "queries",
        "query",
        "rank",
        "returned",
        "scale",
        "tie_first",
        "tie_last",
        "ties",
        "trec",
        "unknown",
    )

    def __init__(
        self,
        facts: Facts,
        query: Ints,
        rank: Ints,
        grade: Floats,
        tie_first: Ints,
        tie_last: Ints,
        *,
        returned: Ints,
        in_run: Bools,
        ties: Ints,
        unknown: tuple[str, ...] = (),
        scale: str = "levels",
        trec: bool = False,
        end: int | None = None,
        beside: object = None,
    ) -> None:
        order = _order(query, rank)
        if order is not None:
            query, rank, grade = query[order], rank[order], grade[order]
            tie_first, tie_last = tie_first[order], tie_last[order]
        self.facts = facts
        self.queries = facts.queries
        # Shared by all measures, so that none, wherever it comes from, may write into them.
        self.query, self.rank, self.grade = _closed(query), _closed(rank), _closed(grade)
        self.tie_first, self.tie_last = _closed(tie_first), _closed(tie_last)
        self.returned, self.in_run, self.ties = _closed(returned), _closed(in_run), _closed(ties)
        self.unknown = unknown
        self.scale = scale
        self.trec = trec
        self.end = end
        self.beside = beside
        self._cache: dict[object, object] = {}

    @classmethod
    def of(cls, qrels: Qrels, located: Located, *, trec: bool = False) -> JudgedRanks:
        """The table of what a run's ``locate`` found."""
        facts = facts_of(qrels)
        return cls(
            facts,
            qrels.query[located.row],
            located.rank,
            qrels.grades[located.row],
            located.tie_first,
            located.tie_last,
            returned=located.returned,
            in_run=located.in_run,
            ties=located.ties,
            unknown=located.unknown,
            scale=qrels.scale,
            trec=trec,
        )

    def share(self, key: object, make: Callable[[], _T]) -> _T:
        """What ``make`` gives, computed once for this table: the common work of several measures."""
        return cached(self._cache, key, make)

    def relevant(self, rel: float) -> Relevant:
        """The rows that are relevant at a level, in rank order."""
        return self.share(("rows", rel), lambda: Relevant(self, rel))

    def hits(self, rel: float, cutoff: int | None) -> Ints:
        """How many documents of the top ``cutoff`` are relevant at the level, for each query."""

        def build() -> Ints:
            rows = self.relevant(rel)
            return read_only(np.bincount(rows.query[: prefix(rows.rank, cutoff)], minlength=self.queries))

        return self.share(("hits", rel, cutoff), build)

    def dcg(self, gain: Gain, cutoff: int | None) -> Floats:
        """Discounted cumulated gain of the top ``cutoff``: Σ gain ÷ log2(rank + 1), for each query."""

        def rows() -> tuple[Ints, Ints, Floats]:
            keep = self.grade > 0
            order = by_rank(self.rank[keep])
            return self.query[keep][order], self.rank[keep][order], self.grade[keep][order]

        def build() -> Floats:
            query, rank, grade = self.share("gains", rows)
            weights = self.share(("gains", gain), lambda: gain(grade) / np.log2(rank + 1.0))
            end = prefix(rank, cutoff)
            return read_only(tally(query[:end], weights[:end], self.queries))

        return self.share(("dcg", gain, cutoff), build)

    def tied(self) -> bool:
        """Whether a judged document stands in a tie, so that another order of equal scores is possible."""
        return self.share("tied", lambda: bool((self.tie_last > self.tie_first).any()))

    def best(self) -> JudgedRanks:
        """The same run with every tie ordered well: higher grades first, unjudged documents last."""
        return self.share("best", lambda: self._ordered(best=True))

    def worst(self) -> JudgedRanks:
        """The same run with every tie ordered badly: unjudged documents first, higher grades last."""
        return self.share("worst", lambda: self._ordered(best=False))

    def _ordered(self, best: bool) -> JudgedRanks:
        if not self.tied():
            return self
        order = np.lexsort((-self.grade, self.tie_first, self.query))
        query, first, last = self.query[order], self.tie_first[order], self.tie_last[order]
        new = heads(query, first)
        starts = np.flatnonzero(new)
        place = np.arange(len(order)) - starts[np.cumsum(new) - 1]
        rank = first + place if best else last - place
        return self.with_columns(query=query, rank=rank, grade=self.grade[order], tie_first=first, tie_last=last)

    def condensed(self) -> JudgedRanks:
        """The lists without their unjudged documents. With ``trec`` a negative grade is no judgment."""
        return self.share("condensed", self._condensed)

    def _condensed(self) -> JudgedRanks:
        keep = self.grade >= 0 if self.trec else np.ones(len(self.grade), bool)
        query, group = self.query[keep], self.tie_first[keep]
        rank = places(query, self.queries) + 1
        new = heads(query, group)
        starts = np.flatnonzero(new)
        mine = np.cumsum(new) - 1
        first = rank[starts][mine]
        last = first + np.diff(np.append(starts, len(query)))[mine] - 1
        return self._with(
            keep,
            rank,
            first,
            last,
            returned=np.bincount(query, minlength=self.queries),
            ties=np.bincount(query[last > first], minlength=self.queries),
        )

    def cut(self, cutoff: int) -> JudgedRanks:
        """The lists as if only their top ``cutoff`` had been returned; trec_eval's -M."""

        return self.share(("cut", cutoff), lambda: self._ended(self.rank <= cutoff, cutoff))

    def ending(self, cutoff: int) -> JudgedRanks:
        """The cut lists with every document that some order of its tie brings into them.

        A tie that the cut divides keeps its rows and ranks; then ``end`` is the rank at which the lists end.
        """
        cutoff = cutoff if self.end is None else min(cutoff, self.end)

        def build() -> JudgedRanks:
            keep = self.tie_first <= cutoff
            divided = bool((self.tie_last[keep] > cutoff).any())
            return self._ended(keep, cutoff, end=cutoff if divided else None)

        return self.share(("ending", cutoff), build)

    def _ended(self, keep: Bools, cutoff: int, end: int | None = None) -> JudgedRanks:
        """These rows where they stand, in lists of at most ``cutoff``."""
        return self._with(
            keep,
            self.rank[keep],
            self.tie_first[keep],
            self.tie_last[keep],
            returned=np.minimum(self.returned, cutoff),
            ties=self.ties,
            end=end,
        )

    def with_beside(self, beside: object) -> JudgedRanks:
        """The same table with what measures of another kind of evidence read."""
        return self.with_columns(beside=beside)

    def reordered(self, pool: int | None = None) -> JudgedRanks:
        """The top ``pool`` of each list (all of it: None) in the best order: by falling grade, unjudged ones last.

        What a reranker can reach that orders these documents and leaves the others where they are.
        """

        def build() -> JudgedRanks:
            size = self.returned[self.query] if pool is None else np.minimum(self.returned[self.query], pool)
            inside = self.rank <= size
            first, last = np.where(inside, 1, self.rank), np.where(inside, size, self.rank)
            return self.with_columns(tie_first=first, tie_last=last, ties=self.returned).best()

        return self.share(("reordered", pool), build)

    def graded(self, facts: Facts, grade: Floats) -> JudgedRanks:
        """The same places with other grades, which are levels."""
        return self.with_columns(facts=facts, grade=grade, scale="levels", end=self.end)

    def with_columns(self, **columns: Any) -> JudgedRanks:
        """The same table with these columns for its own; ``end`` and ``beside`` are None unless given."""
        same = {name: getattr(self, name) for name in _COLUMNS}
        return JudgedRanks(**(same | columns))

    def _with(
        self,
        keep: Bools,
        rank: Ints,
        first: Ints,
        last: Ints,
        *,
        returned: Ints,
        ties: Ints,
        end: int | None = None,
    ) -> JudgedRanks:
        """These rows at other ranks, in lists of another length."""
        return self.with_columns(
            query=self.query[keep],
            rank=rank,
            grade=self.grade[keep],
            tie_first=first,
            tie_last=last,
            returned=read_only(returned),
            ties=read_only(ties),
            end=end,
        )


def judged_ranks(qrels: Qrels, run: Run, *, trec: bool = False) -> JudgedRanks:
    """Rank the judged documents of ``qrels`` in ``run``; with ``trec`` in the order of trec_eval 9.0.8.

    The tables of a run are kept with it for the last few qrels: its gates share them, and all that is worked out on
    them.
    """
    tables = _tables.setdefault(run, [])
    for known, table in tables:
        if known is qrels and table.trec == trec:
            return table
    table = JudgedRanks.of(qrels, run.locate(qrels, float32=trec), trec=trec)
    _tables[run] = [*tables[-3:], (qrels, table)]
    return table


_tables: WeakKeyDictionary[Run, list[tuple[Qrels, JudgedRanks]]] = WeakKeyDictionary()


@lru_cache(maxsize=4)
def facts_of(qrels: Qrels) -> Facts:
    """The facts of these qrels; kept for the last few, so that a baseline and a candidate share them."""
    return Facts(qrels.query, qrels.grades, len(qrels.query_ids))


def cached(cache: dict[object, object], key: object, make: Callable[[], _T]) -> _T:
    """``cache[key]``, made first where it is not there."""
    if key not in cache:
        cache[key] = make()
    return cache[key]  # type: ignore[return-value]  # a key is used with one kind of value


def prefix(rank: Ints, cutoff: int | None) -> int:
    """How many of these ranks, sorted ascending, are within the cut-off."""
    return len(rank) if cutoff is None else int(rank.searchsorted(cutoff, "right"))


def by_rank(rank: Ints) -> Ints:
    """The order of rows by rank; rows of equal rank stay in theirs."""
    # numpy sorts 16-bit numbers by radix, several times as fast.
    small = len(rank) == 0 or int(rank.max()) < 1 << 16
    return np.argsort(rank.astype(np.uint16) if small else rank, kind="stable")


def _descending(query: Ints, grades: Floats, queries: int) -> tuple[Ints, Floats]:
    """Queries and grades sorted by query, and within it by grade from high to low; grades above 0."""
    top = float(grades.max(initial=0.0))
    if top < 1 << 20 and bool((grades == np.floor(grades)).all()):
        # Only the values matter, so that whole grades can be sorted as one number with their query.
        step = int(top) + 1
        key = np.sort(query * step + (step - 1 - grades.astype(np.int64)))
        query = np.repeat(np.arange(queries), np.bincount(query, minlength=queries))
        return query, (step - 1 - (key - query * step)).astype(np.float64)
    order = np.lexsort((-grades, query))
    return query[order], grades[order]


def tally(query: Ints, weights: Floats, queries: int) -> Floats:
    """The sum of the weights of each query's rows, added in the order of the rows."""
    sums: Floats = np.bincount(query, weights, queries).astype(np.float64, copy=False)
    return sums


def places(query: Ints, queries: int) -> Ints:
    """For rows that are sorted by query: the place of each row among those of its query, from 0."""
    counts = np.bincount(query, minlength=queries)
    starts = np.cumsum(counts) - counts
    places: Ints = np.arange(len(query)) - starts[query]
    return places


def heads(query: Ints, first: Ints) -> Bools:
    """For rows in rank order: which of them begin a tied group, given the first rank of each one's."""
    new = np.ones(len(query), bool)
    new[1:] = (query[1:] != query[:-1]) | (first[1:] != first[:-1])
    return new


def _order(query: Ints, rank: Ints) -> Ints | None:
    """The order by query and rank, or None where the rows have it already."""
    if len(query) < 2:
        return None
    step = int(rank.max()) + 1
    key = query * step + rank
    if bool((key[1:] > key[:-1]).all()):
        return None
    size = (int(query.max()) + 1) * step
    if size <= 8 * len(key):  # most ranks are judged: each row has its own place
        at = np.full(size, -1)
        at[key] = np.arange(len(key))
        order: Ints = at[at >= 0]
        if len(order) == len(key):
            return order
    return np.argsort(key)
