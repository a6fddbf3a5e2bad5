"""What the lists of a run hold of gold spans: how much of each is covered down to which rank.

Gold and hits meet where query and document are the same. The part of a hit inside a gold span is cut at all ends of
such parts into cells, and each cell belongs to the first rank that covers it: so duplicates and overlaps add nothing,
small chunks add up, and what is covered down to a rank is a sum over cells. Nothing is as large as queries times
ranks but the hits themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pytest_retrieval_eval.collection.formats.arrays import read_only
from pytest_retrieval_eval.collection.runs.located import borders
from pytest_retrieval_eval.errors import GateError, MeasureError
from pytest_retrieval_eval.measures.evidence import SPANS, Evidence, Given, register_evidence
from pytest_retrieval_eval.measures.ranks import (
    Bools,
    Facts,
    Floats,
    Ints,
    JudgedRanks,
    cached,
    facts_of,
    places,
    tally,
)

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.spans import Spans

_T = TypeVar("_T")
_CELLS = 1 << 22  # cells that are looked at at once
_NEVER = np.iinfo(np.int64).max
#: the lowest level of measures that read grades: anything above 0
ABOVE_ZERO = float(np.nextafter(0.0, 1.0))


class Extent:
    """Parts of documents, one a row: query, document, and ``start`` to ``end`` in code points, end exclusive."""

    __slots__ = ("doc", "end", "query", "start")

    def __init__(self, query: Ints, doc: Ints, start: Ints, end: Ints) -> None:
        self.query, self.doc, self.start, self.end = query, doc, start, end

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, rows: Ints | Bools) -> Extent:
        return Extent(self.query[rows], self.doc[rows], self.start[rows], self.end[rows])

    @property
    def length(self) -> Ints:
        """How many characters each part has."""
        return self.end - self.start

    def merged(self) -> Extent:
        """The same characters of each query in parts that do not overlap."""
        if not len(self):
            return self
        order = np.lexsort((self.start, self.doc, self.query))
        query, doc, start, end = self.query[order], self.doc[order], self.start[order], self.end[order]
        other = np.ones(len(order), bool)
        other[1:] = (query[1:] != query[:-1]) | (doc[1:] != doc[:-1])
        # The furthest end so far within the document: each document lies above the one before it.
        step = int(end.max()) + 1
        number = np.cumsum(other) - 1
        reach = np.maximum.accumulate(number * step + end) - number * step
        new = other.copy()
        new[1:] |= start[1:] > reach[:-1]
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(order)) - 1
        return Extent(query[first], doc[first], start[first], reach[last])


class Curve:
    """Cells of gold in rank order: the row of the gold, the rank that covers the cell first, and what the row has
    covered down to it.
    """

    __slots__ = ("covered", "length", "rank", "row", "rows")

    def __init__(self, row: Ints, rank: Ints, length: Ints, rows: int) -> None:
        order = np.lexsort((rank, row))
        self.rows = rows
        self.row, self.rank, self.length = row[order], rank[order], length[order]
        sums = np.cumsum(self.length)
        first = np.searchsorted(self.row, self.row)
        self.covered: Ints = sums - (sums[first] - self.length[first]) if len(sums) else sums

    def down_to(self, cutoff: int | None) -> Floats:
        """How many characters of each row are covered at the cut-off."""
        if cutoff is None:
            return tally(self.row, self.length.astype(np.float64), self.rows)
        keep = self.rank <= cutoff
        return tally(self.row[keep], self.length[keep].astype(np.float64), self.rows)

    def reached(self, wanted: Floats) -> Ints:
        """The first rank down to which so many characters of each row are covered; 0 where none is."""
        enough = self.covered >= wanted[self.row] * (1.0 - 1e-12)
        found = np.full(self.rows, _NEVER)
        np.minimum.at(found, self.row[enough], self.rank[enough])
        found[found == _NEVER] = 0
        return found


class Hits:
    """The hits of all lists: which part of which document stands at which rank of which query."""

    __slots__ = ("_docs", "_keys", "_order", "extent", "rank")

    def __init__(self, extent: Extent, rank: Ints, docs: int) -> None:
        self.extent, self.rank = extent, rank
        self._docs = docs
        keys = extent.query * docs + extent.doc
        self._order: Ints = np.argsort(keys, kind="stable")
        self._keys: Ints = keys[self._order]

    def within(self, gold: Extent) -> tuple[Ints, Ints, Ints, Ints]:
        """For each gold row and each hit that holds some of it: the row, the hit, and the part inside the gold."""
        # A document that no list has gets a key that no hit has.
        keys = np.where(gold.doc >= 0, gold.query * self._docs + gold.doc, -1)
        low = np.searchsorted(self._keys, keys, "left")
        count = np.searchsorted(self._keys, keys, "right") - low
        row = np.repeat(np.arange(len(gold)), count)
        place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count - low, count)
        hit = self._order[place]
        start = np.maximum(gold.start[row], self.extent.start[hit])
        end = np.minimum(gold.end[row], self.extent.end[hit])
        some = end > start
        return row[some], hit[some], start[some], end[some]

    def cover(self, gold: Extent) -> Curve:
        """What the lists cover of each gold row, and from which rank on."""
        row, hit, start, end = self.within(gold)
        rank = self.rank[hit]
        order = np.lexsort((rank, end, start, row))
        row, start, end, rank = row[order], start[order], end[order], rank[order]
        same = np.zeros(len(row), bool)  # as the one before, at a later rank: it adds nothing
        same[1:] = (row[1:] == row[:-1]) & (start[1:] == start[:-1]) & (end[1:] == end[:-1])
        row, start, end, rank = row[~same], start[~same], end[~same], rank[~same]
        clash = (row[1:] == row[:-1]) & (start[1:] < end[:-1])
        crowded = np.zeros(len(gold), bool)
        crowded[row[1:][clash]] = True
        cut = crowded[row]
        cells = _cells(row[cut], start[cut], end[cut], rank[cut])
        return Curve(
            np.concatenate((row[~cut], cells[0])),
            np.concatenate((rank[~cut], cells[1])),
            np.concatenate(((end - start)[~cut], cells[2])),
            len(gold),
        )


def _cells(row: Ints, start: Ints, end: Ints, rank: Ints) -> tuple[Ints, Ints, Ints]:
    """Row, first rank and length of the cells into which overlapping parts cut each row."""
    if not len(row):
        return row, rank, start
    numbers, number = np.unique(row, return_inverse=True)
    step = int(end.max()) + 1
    points = np.unique(np.concatenate((number * step + start, number * step + end)))
    first, last = np.searchsorted(points, number * step + start), np.searchsorted(points, number * step + end)
    best = np.full(len(points), _NEVER)
    size = last - first
    sums = np.cumsum(size)
    low = 0
    while low < len(row):
        high = max(int(np.searchsorted(sums, (sums[low - 1] if low else 0) + _CELLS, "right")), low + 1)
        count = size[low:high]
        cell = np.arange(int(count.sum())) + np.repeat(first[low:high] - (np.cumsum(count) - count), count)
        np.minimum.at(best, cell, np.repeat(rank[low:high], count))
        low = high
    covered = np.flatnonzero(best < _NEVER)
    return numbers[points[covered] // step], best[covered], points[covered + 1] - points[covered]


class Gold:
    """Gold at a level, for measures that count characters.

    ``parts`` are the characters that are gold in any case, merged, and then the spans that have alternatives;
    ``choice`` is the number of the group of such a span, -1 for the others.
    """

    __slots__ = ("choice", "choices", "parts")

    def __init__(self, extent: Extent, group: Ints) -> None:
        _, number, size = np.unique(group, return_inverse=True, return_counts=True)
        several = size[number] > 1
        fixed, optional = extent[~several].merged(), extent[several]
        self.parts = Extent(
            *(
                np.concatenate((getattr(fixed, name), getattr(optional, name)))
                for name in ("query", "doc", "start", "end")
            )
        )
        renumbered = np.unique(number[several], return_inverse=True)[1]
        self.choice: Ints = np.concatenate((np.full(len(fixed), -1), renumbered))
        self.choices = int(renumbered.max(initial=-1)) + 1

    def best(self, covered: Floats, queries: int) -> tuple[Bools, Floats]:
        """Which parts count, and covered ÷ length of each query: of each group the alternative that makes the share
        of its query largest.

        A share c ÷ n is at least s where c − s n is at least 0, which each group can make as large as it will by
        itself: s rises from 0 to the share of the choice that is best for s, until no choice is better (Dinkelbach).
        """
        query, length = self.parts.query, self.parts.length.astype(np.float64)
        chosen = self.choice < 0
        share = np.zeros(queries)
        options = np.flatnonzero(~chosen)
        while True:
            gain = covered[options] - share[query[options]] * length[options]
            order = np.lexsort((length[options], -gain, self.choice[options]))
            first = np.ones(len(order), bool)
            first[1:] = self.choice[options][order][1:] != self.choice[options][order][:-1]
            taken = chosen.copy()
            taken[options[order[first]]] = True
            whole = tally(query[taken], length[taken], queries)
            found = tally(query[taken], covered[taken], queries)
            better = np.divide(found, whole, out=np.zeros(queries), where=whole > 0)
            if not (better > share + 1e-14).any():
                return taken, np.maximum(better, share)
            share = np.maximum(better, share)


class Covered:
    """What the lists of one run hold of one set of gold spans; everything is found when it is first asked for."""

    def __init__(
        self, spans: Spans, gold: Extent, hits: Hits, rows: Ints, facts: Facts, returned: Ints, in_run: Bools
    ) -> None:
        self.spans, self.gold, self.hits, self.facts = spans, gold, hits, facts
        self.rows = rows  # of the run, one for each hit
        self.returned, self.in_run = returned, in_run
        self._cache: dict[object, object] = {}

    def share(self, key: object, make: Callable[[], _T]) -> _T:
        """What ``make`` gives, computed once: the common work of several measures."""
        return cached(self._cache, key, make)

    @property
    def queries(self) -> int:
        """How many queries have gold."""
        return self.facts.queries

    @property
    def curve(self) -> Curve:
        """What is covered of each gold span."""
        return self.share("curve", lambda: self.hits.cover(self.gold))

    def found(self, level: float, share: float) -> tuple[Ints, Ints, Floats]:
        """Query, rank and grade of each group of which a span of this level is covered by this share, in the order
        in which they are found: where several are at one rank, the higher grades first.

        Of a group the span that is found first counts; where several are at one rank, the one of the highest grade.
        """

        def build() -> tuple[Ints, Ints, Floats]:
            rank = self.curve.reached(share * self.gold.length.astype(np.float64))
            rows = np.flatnonzero((rank > 0) & (self.spans.grade >= level))
            group, grade, query = self.spans.group[rows], self.spans.grade[rows], self.gold.query[rows]
            order = np.lexsort((-grade, rank[rows], group))
            first = np.ones(len(order), bool)
            first[1:] = group[order][1:] != group[order][:-1]
            kept = order[first]
            query, at, grade = query[kept], rank[rows][kept], grade[kept]
            order = np.lexsort((-grade, at, query))
            return query[order], at[order], grade[order]

        return self.share(("found", level, share), build)

    def as_found(self, level: float, share: float) -> JudgedRanks:
        """The groups at the rank where they are found, several perhaps at one."""
        return self.share(("as found", level, share), lambda: self._table(*self.found(level, share)))

    def one_a_rank(self, level: float, share: float) -> JudgedRanks:
        """The groups at their effective ranks: those found at one rank take it and the next."""

        def build() -> JudgedRanks:
            query, rank, grade = self.found(level, share)
            place = places(query, self.queries) + 1
            # e_j − j is the largest of r_i − i over i ≤ j; each query lies above the one before it.
            ahead = int(place.max(initial=0))
            step = int(rank.max(initial=0)) + ahead + 1
            behind = np.maximum.accumulate(query * step + rank - place + ahead) - query * step - ahead
            return self._table(query, behind + place, grade)

        return self.share(("one a rank", level, share), build)

    def _table(self, query: Ints, rank: Ints, grade: Floats) -> JudgedRanks:
        none = np.zeros(self.queries, np.int64)
        return JudgedRanks(
            self.facts, query, rank, grade, rank, rank, returned=self.returned, in_run=self.in_run, ties=none
        )

    def _gold(self, level: float) -> tuple[Gold, Curve]:
        def build() -> tuple[Gold, Curve]:
            rows = np.flatnonzero((self.spans.grade >= level) & (self.gold.length > 0))
            gold = Gold(self.gold[rows], self.spans.group[rows])
            return gold, self.hits.cover(gold.parts)

        return self.share(("gold", level), build)

    def coverage(self, level: float, cutoff: int | None) -> Floats:
        """The share of each query's gold that the top ``cutoff`` covers."""
        gold, curve = self._gold(level)
        return gold.best(curve.down_to(cutoff), self.queries)[1]

    def overlap(self, level: float, cutoff: int | None, *, alternatives: bool) -> tuple[Floats, Floats]:
        """How many characters of the gold the top ``cutoff`` covers, and how many the gold has.

        With ``alternatives`` every span is gold; else of each group the best covered one.
        """
        gold, curve = self._gold(level)
        if gold.choices and not alternatives:
            taken, _ = gold.best(curve.down_to(cutoff), self.queries)
            parts = gold.parts[taken].merged()
            curve = self.hits.cover(parts)
        elif gold.choices:
            parts, curve = self.share(("any", level), lambda: self._any(gold))
        else:
            parts = gold.parts
        whole = tally(parts.query, parts.length.astype(np.float64), self.queries)
        return tally(parts.query, curve.down_to(cutoff), self.queries), whole

    def _any(self, gold: Gold) -> tuple[Extent, Curve]:
        parts = gold.parts.merged()
        return parts, self.hits.cover(parts)

    def retrieved(self, cutoff: int | None) -> Floats:
        """How many characters the top ``cutoff`` holds, each counted once."""

        def build() -> Floats:
            inside = self.hits.extent if cutoff is None else self.hits.extent[self.hits.rank <= cutoff]
            parts = inside.merged()
            return read_only(tally(parts.query, parts.length.astype(np.float64), self.queries))

        return self.share(("retrieved", cutoff), build)


def covered_of(ranks: JudgedRanks, measure: object) -> Covered:
    """What a measure of spans reads. Raises MeasureError for a table of other evidence."""
    if not isinstance(ranks.beside, Covered):
        raise MeasureError(f"{measure} reads gold spans, and the table that it was given has none.")
    return ranks.beside


def labels_of(spans: Spans) -> Qrels:
    """One label for each group of spans, named by the place of its first one; its grade is the highest of its spans."""
    from pytest_retrieval_eval.collection.formats.ids import Ids
    from pytest_retrieval_eval.collection.qrels import Qrels

    # A span without characters cannot be found: as a label it is one that nothing is asked of.
    grade = np.where(spans.end > spans.start, spans.grade, np.minimum(spans.grade, 0.0))
    order = np.lexsort((-grade, spans.group))
    first = np.ones(len(order), bool)
    first[1:] = spans.group[order][1:] != spans.group[order][:-1]
    rows = order[first]
    rows = rows[np.argsort(spans.query[rows], kind="stable")]
    names: list[str] = []
    seen: dict[tuple[int, str], int] = {}
    for row in rows.tolist():
        name = f"{spans.doc_ids[int(spans.doc[row])]}[{spans.start[row]}:{spans.end[row]}]"
        times = seen[int(spans.query[row]), name] = seen.get((int(spans.query[row]), name), 0) + 1
        names.append(name if times == 1 else f"{name} ({times})")
    return Qrels(
        spans.query_ids,
        read_only(spans.query[rows]),
        Ids.of(names),
        read_only(grade[rows]),
        spans.source,
        "levels",
        spans.warnings,
    )


def covered_spans(given: Given) -> Evidence:
    """The evidence of gold spans. Raises a GateError where there are none, DataError for a hit without offsets."""
    from pytest_retrieval_eval.collection.spans.extents import extents

    spans, run = given.spans, given.run
    if spans is None or not len(spans):
        raise GateError(
            "there are no gold spans, which span measures read: put spans.jsonl (query_id, doc_id, start, end) into "
            "the dataset, or give Spans"
        )
    if given.trec:
        raise MeasureError("trec_eval knows no spans: measure spans without trec mode.")
    labels = _labels(spans)
    where = extents(run, given.chunks, query_ids=spans.query_ids, lengths=spans.lengths, corpus=given.corpus)
    place = {query_id: number for number, query_id in enumerate(spans.query_ids)}
    query_of_list = np.array([place.get(query_id, -1) for query_id in where.query_ids], np.int64)
    sizes = np.diff(where.bounds)
    query = np.repeat(query_of_list, sizes)
    rank = np.arange(len(query)) - np.repeat(where.bounds[:-1], sizes) + 1
    known = query >= 0
    hits = Hits(
        Extent(query[known], where.doc[known], where.start[known], where.end[known]), rank[known], len(where.doc_ids)
    )
    numbers = {doc_id: number for number, doc_id in enumerate(where.doc_ids)}
    doc = np.array([numbers.get(doc_id, -1) for doc_id in spans.doc_ids], np.int64)
    gold = Extent(spans.query, doc[spans.doc], spans.start, spans.end)
    named = query_of_list >= 0
    returned, in_run = np.zeros(len(spans.query_ids), np.int64), np.zeros(len(spans.query_ids), bool)
    returned[query_of_list[named]] = sizes[named]
    in_run[query_of_list[named]] = True
    facts = facts_of(labels)
    covered = Covered(spans, gold, hits, np.flatnonzero(known), facts, returned, in_run)
    tied = _tied_lists(run, hits, gold, known)
    query, rank, grade = covered.found(ABOVE_ZERO, 0.5)
    return Evidence(
        labels,
        JudgedRanks(
            facts,
            query,
            rank,
            grade,
            rank,
            rank,
            returned=returned,
            in_run=in_run,
            ties=np.zeros(len(returned), np.int64),
            unknown=tuple(query_id for query_id in where.query_ids if query_id not in place),
            beside=covered,
        ),
        noun="gold span",
        tied=tied > 0,
        warnings=(_tie_warning(tied),) if tied else (),
        strangers=None if len(covered.curve.row) else lambda: (spans.doc_ids, where.doc_ids),
    )


def _tied_lists(run: Run, hits: Hits, gold: Extent, known: Bools) -> int:
    """In how many lists a hit that holds gold has the score of another hit."""
    columns = run.columns()
    if columns.by_list or columns.scores is None:
        return 0
    tied = np.zeros(len(known), bool)
    equal = (columns.scores[1:] == columns.scores[:-1]) & ~borders(columns.bounds)
    tied[1:] |= equal
    tied[:-1] |= equal
    if not tied.any():
        return 0
    holding = hits.within(gold)[1]
    holding = holding[tied[known][holding]]
    return len(np.unique(hits.extent.query[holding]))


def _tie_warning(lists: int) -> str:
    many = lists != 1
    return (
        f"in {lists} {'lists hits that hold' if many else 'list a hit that holds'} gold "
        f"{'have an' if many else 'has an'} equal score with another hit: they stand in the order of their ids, and "
        "another order could move measures of spans"
    )


def _labels(spans: Spans) -> Qrels:
    # Both sides of a comparison share what the spans alone say.
    made: Qrels = spans._cache.setdefault("labels", None) or labels_of(spans)
    spans._cache["labels"] = made
    return made


register_evidence(SPANS, covered_spans, "gold spans")
