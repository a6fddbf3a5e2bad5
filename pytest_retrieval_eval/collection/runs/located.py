"""Where the judged documents stand in a run: all that a ranking measure needs to know of it.

Runs come block by block (`Block`: some queries with all their rows), from a file or from columns. A block is
probed with a table of the judged pairs, and only the rows found there get a rank. So the cost of a row that
nobody judged is one key and one look into a bitmap, and the result is as small as the qrels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import (
    Bools,
    Ints,
    Keys,
    PairTable,
    descending,
    pair_keys,
    same_bytes,
    scramble,
)

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels

Floats = npt.NDArray[np.float64] | npt.NDArray[np.float32]


class Located(NamedTuple):
    """The judged documents that a run returned, and how much it returned for each judged query.

    Per document found, ordered by ``row``: ``row`` (its row in the qrels), ``rank`` (1-based), ``tie_first``
    and ``tie_last`` (the ranks that its tie group spans; both are ``rank`` where it ties with nothing).
    Per query of the qrels: ``returned`` (length of the list), ``in_run`` (the run has the query, perhaps with
    an empty list), ``ties`` (how many documents of the list tie with another). All int64, ``in_run`` bool.
    ``unknown``: queries of the run that the qrels do not have.
    """

    row: Ints
    rank: Ints
    tie_first: Ints
    tie_last: Ints
    returned: Ints
    in_run: Bools
    ties: Ints
    unknown: tuple[str, ...]


class Block:
    """Some queries of a run with all their rows, in the order of the source.

    The rows of query i are ``bounds[i]`` … ``bounds[i + 1]``; ``scores`` is None where the run has none.
    """

    __slots__ = ("_names", "_pairs", "bounds", "docs", "queries", "scores")

    def __init__(self, queries: Ids, bounds: Ints, docs: Ids, scores: Floats | None) -> None:
        self.queries = queries
        self.bounds = bounds
        self.docs = docs
        self.scores = scores
        self._pairs: Keys | None = None
        self._names: list[bytes] | None = None

    @property
    def names(self) -> list[bytes]:
        """The ids of the queries, as bytes."""
        if self._names is None:
            self._names = self.queries.raw()
        return self._names

    @property
    def pairs(self) -> Keys:
        """The key of each row's (query, document) pair."""
        if self._pairs is None:
            queries = np.repeat(scramble(self.queries.keys()), np.diff(self.bounds))
            self._pairs = pair_keys(queries, self.docs.keys())
        return self._pairs

    def query_of(self, rows: Ints) -> Ints:
        """The query, as its place in the block, that each row belongs to."""
        return np.searchsorted(self.bounds, rows, "right") - 1

    def trend(self) -> tuple[bool, bool]:
        """Whether a score rises anywhere from one row of a list to the next, and whether one falls."""
        if self.scores is None or len(self.scores) < 2:
            return False, False
        inside = ~borders(self.bounds)
        rise = (self.scores[1:] > self.scores[:-1]) & inside
        fall = (self.scores[1:] < self.scores[:-1]) & inside
        return bool(rise.any()), bool(fall.any())

    def repeated(self) -> Ints:
        """The rows, but for the first, of documents that stand more than once in the list of one query."""
        # Half of each key sorts twice as fast; only where halves are equal the whole keys are looked at.
        halves = np.sort((self.pairs >> np.uint64(32)).astype(np.uint32))
        if (halves[1:] != halves[:-1]).all():
            return np.zeros(0, np.int64)
        ordered = np.sort(self.pairs)
        same = ordered[1:] == ordered[:-1]
        if not same.any():
            return np.zeros(0, np.int64)
        # Equal keys are rare: look at the bytes of those rows alone.
        rows = np.flatnonzero(np.isin(self.pairs, ordered[1:][same]))
        query = self.query_of(rows).tolist()
        seen: set[tuple[int, bytes]] = set()
        later = []
        for row, place in zip(rows.tolist(), query, strict=True):
            pair = (place, self.docs.bytes_at(row))
            if pair in seen:
                later.append(row)
            seen.add(pair)
        return np.array(later, np.int64)


class Locator:
    """Collects `Located` from the blocks of a run, whose queries come once each.

    With ``by_list`` the rows stand in rank order and nothing ties; else score decides, descending, then the
    document id, descending by bytes. ``float32`` compares scores in single precision.
    """

    def __init__(self, qrels: Qrels, *, by_list: bool = False, float32: bool = False) -> None:
        self._docs, self._query = qrels.docs, qrels.query
        self._by_list, self._float32 = by_list, float32
        self._index, self._table = qrels.share("judged pairs", lambda: _judged_pairs(qrels))
        count = len(qrels.query_ids)
        self._returned = np.zeros(count, np.int64)
        self._ties = np.zeros(count, np.int64)
        self._in_run = np.zeros(count, np.bool_)
        self._unknown: list[str] = []
        self._found: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, block: Block) -> None:
        """Locate the judged documents of a block."""
        names = block.names
        query = np.array([self._index.get(name, -1) for name in names], np.int64)
        known = query >= 0
        if not known.all():
            self._unknown += [names[i].decode() for i in np.flatnonzero(~known).tolist()]
        self._returned[query[known]] = np.diff(block.bounds)[known]
        self._in_run[query[known]] = True

        rows, judged = self._table.probe(block.pairs)
        list_of = block.query_of(rows)
        true = query[list_of] == self._query[judged]
        docs, wanted = block.docs, self._docs
        true &= same_bytes(
            docs.data,
            docs.starts[rows],
            docs.lengths[rows],
            wanted.data,
            wanted.starts[judged],
            wanted.lengths[judged],
        )
        rows, judged, list_of = rows[true], judged[true], list_of[true]

        scores = block.scores
        if self._by_list or scores is None:
            place = first = last = rows
        else:
            if self._float32:
                scores = single(scores)
            order = RankOrder(scores, block.bounds)
            place, first, last = order.places(rows, docs)
            self._ties[query[known]] = order.tied()[known]
        before = block.bounds[list_of] - 1
        self._found.append((judged, place - before, first - before, last - before))

    def result(self) -> Located:
        """What was found in all blocks so far."""
        columns = [np.concatenate(parts) for parts in zip(*self._found, strict=True)]
        if not columns:
            columns = [np.zeros(0, np.int64)] * 4
        at = np.full(len(self._query), -1)
        at[columns[0]] = np.arange(len(columns[0]))
        order = at[at >= 0]
        if len(order) < len(columns[0]):  # A document may be repeated in a list: the first counts.
            order = np.lexsort((columns[1], columns[0]))
            row = columns[0][order]
            order = order[np.concatenate(([True], row[1:] != row[:-1]))]
        row, rank, first, last = (column[order] for column in columns)
        arrays = (row, rank, first, last, self._returned, self._in_run, self._ties)
        for array in arrays:
            array.flags.writeable = False
        return Located(*arrays, unknown=tuple(self._unknown))


def _judged_pairs(qrels: Qrels) -> tuple[dict[bytes, int], PairTable]:
    """The place of each query, and the table of the judged pairs."""
    queries = Ids.of(qrels.query_ids)
    index = {query.encode(): place for place, query in enumerate(qrels.query_ids)}
    return index, PairTable(pair_keys(scramble(queries.keys())[qrels.query], qrels.docs.keys()))


class RankOrder:
    """The lists of a block in rank order: scores descending, ties found but resolved only where asked.

    Places are 0-based and count through the block.
    """

    def __init__(self, scores: Floats, bounds: Ints) -> None:
        self._bounds = bounds
        self._count = len(scores)
        self._scores = scores  # in rank order
        self._order: Ints | None = None  # place → row, where the rows do not stand in order already
        self._heads: Ints | None = None  # first place of every tie group, where there is a tie at all
        border = borders(bounds)
        not_falling = scores[1:] >= scores[:-1]
        not_falling &= ~border
        steps = np.flatnonzero(not_falling)
        if not len(steps):
            return
        rising = steps[scores[steps + 1] > scores[steps]]
        if len(rising):
            order = np.arange(self._count)
            unsorted = np.unique(np.searchsorted(bounds, rising, "right") - 1)
            for low, high in zip(bounds[unsorted].tolist(), bounds[unsorted + 1].tolist(), strict=True):
                order[low:high] = low + np.argsort(-scores[low:high])
            self._order = order
            scores = self._scores = scores[order]
        head = np.ones(self._count, np.bool_)
        np.not_equal(scores[1:], scores[:-1], out=head[1:])
        head[1:] |= border
        if not head.all():
            self._heads = np.flatnonzero(head)

    def _groups(self, places: Ints) -> tuple[Ints, Ints]:
        """First and last place of the tie group of each place."""
        if self._heads is None:
            return places, places
        group = np.searchsorted(self._heads, places, "right") - 1
        return self._heads[group], np.append(self._heads, self._count)[group + 1] - 1

    def tied(self) -> Ints:
        """For each list, how many of its documents tie with another one (int64)."""
        if self._heads is None:
            return np.zeros(len(self._bounds) - 1, np.int64)
        sizes = np.diff(np.append(self._heads, self._count))
        tied = sizes > 1
        lists = np.searchsorted(self._bounds, self._heads[tied], "right") - 1
        return np.bincount(lists, sizes[tied], len(self._bounds) - 1).astype(np.int64)

    def find(self, lists: Ints, scores: Floats) -> tuple[Ints, Ints]:
        """First and last place of the documents that have each score in each list; the list has such ones."""
        # Binary search in all lists at once: ``above`` is the last place known to have a higher score. The last of a
        # list has none, so that no step leads beyond it.
        above, last = self._bounds[lists] - 1, self._bounds[lists + 1] - 1
        step = 1 << int((last - above).max(initial=0)).bit_length()
        while step := step >> 1:
            further = np.minimum(above + step, last)
            above = np.where(self._scores[further] > scores, further, above)
        return self._groups(above + 1)

    def places(self, rows: Ints, docs: Ids) -> tuple[Ints, Ints, Ints]:
        """The place of each row, and the first and last place of its tie group."""
        places = rows
        if self._order is not None:
            inverse = np.empty(self._count, np.int64)
            inverse[self._order] = np.arange(self._count)
            places = inverse[rows]
        first, last = self._groups(places)
        tied = np.flatnonzero(last > first)
        if len(tied):
            heads, group = np.unique(first[tied], return_inverse=True)
            tails = self._groups(heads)[1]
            begin, resolved = self._resolve(heads, tails, docs)
            # Member m of a group stood at place heads + m; its place among the resolved is where it went.
            went = np.empty(len(resolved), np.int64)
            went[resolved] = np.arange(len(resolved))
            member = begin[group] + places[tied] - heads[group]
            places = places.copy()
            places[tied] = heads[group] + went[member] - begin[group]
        return places, first, last

    def rows(self, docs: Ids) -> Ints | None:
        """The row at each place with all ties resolved; None where the rows stand in this order already."""
        if self._heads is None:
            return self._order
        order = np.arange(self._count) if self._order is None else self._order.copy()
        tails = np.append(self._heads[1:], self._count) - 1
        tied = tails > self._heads
        heads, tails = self._heads[tied], tails[tied]
        members = _ranges(heads, tails)
        order[members] = order[members[self._resolve(heads, tails, docs)[1]]]
        return order

    def stands(self, docs: Ids) -> bool:
        """Whether the rows stand in rank order as they are."""
        rows = self.rows(docs)
        return rows is None or bool((rows == np.arange(self._count)).all())

    def _resolve(self, heads: Ints, tails: Ints, docs: Ids) -> tuple[Ints, Ints]:
        """Where each group begins in the concatenation of groups, and the order of that concatenation."""
        sizes = tails - heads + 1
        rows = _ranges(heads, tails)
        if self._order is not None:
            rows = self._order[rows]
        group = np.repeat(np.arange(len(heads)), sizes)
        keys = descending(docs.data, docs.starts[rows], docs.lengths[rows])
        return np.cumsum(sizes) - sizes, np.lexsort([*keys, group])


def borders(bounds: Ints) -> Bools:
    """Between which neighbouring rows one list ends and another begins (one fewer than there are rows)."""
    count = int(bounds[-1])
    border = np.zeros(max(count - 1, 0), np.bool_)
    border[bounds[(bounds > 0) & (bounds < count)] - 1] = True
    return border


def single(scores: Floats) -> Floats:
    """Scores in single precision."""
    with np.errstate(over="ignore"):  # what is beyond its range is infinity, as in C
        return scores.astype(np.float32)


def falling(scores: Floats, bounds: Ints) -> Floats:
    """The scores of each list, sorted to fall."""
    if not ((scores[1:] > scores[:-1]) & ~borders(bounds)).any():
        return scores
    scores = scores.copy()
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        scores[low:high][::-1].sort()
    return scores


def _ranges(first: Ints, last: Ints) -> Ints:
    """``first[0] … last[0], first[1] … last[1], …``."""
    sizes = last - first + 1
    return np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
