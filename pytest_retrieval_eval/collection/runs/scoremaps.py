"""A run held as the dictionaries it was given: document → score for each query.

Measures need the scores, all of them, and of the documents only those that are judged: they are looked up in
the dictionaries as they are, and the other ids are never touched. Columns are made when more is asked for.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, pairwise, repeat
from operator import contains, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.formats.files import json_id
from pytest_retrieval_eval.collection.formats.ids import Ids
from pytest_retrieval_eval.collection.formats.keys import Ints
from pytest_retrieval_eval.collection.runs.columns import Columns, cuts
from pytest_retrieval_eval.collection.runs.hits import by_score
from pytest_retrieval_eval.collection.runs.located import Block, Floats, Located, Locator, RankOrder, falling, single

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels

_INTEGER = re.compile("0|-?[1-9][0-9]{0,999}")
_KEPT = 1 << 17  # judgments whose strings are kept for the next run
_EMPTY = repeat("")
_NONE: dict[Any, Any] = {}
_NAN = float("nan")
_VALUES = methodcaller("values")


class ScoreMaps:
    """Lists by score, as dictionaries. They are not copied: their owner must not change them."""

    by_list = False
    warnings: tuple[str, ...] = ()

    def __init__(self, maps: Mapping[str, Mapping[Any, Any]]) -> None:
        self._maps = maps
        self.bounds = np.concatenate(([0], np.cumsum(np.fromiter(map(len, maps.values()), np.int64, len(maps)))))
        self._scores = self._read_scores()
        self._columns: Columns | None = None

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries, as given."""
        return tuple(self._maps)

    def _read_scores(self) -> npt.NDArray[np.float64]:
        maps = self._maps.values()
        filled = list(filter(None, maps))
        try:
            scores = _packed(filled, int(self.bounds[-1]))
            # A bool would be 0 or 1; texts are no numbers to it.
            ends = scores[self.bounds[:-1][self.bounds[1:] > self.bounds[:-1]]]
            unsure = bool(((ends == 0.0) | (ends == 1.0)).any())
        except (struct.error, TypeError, ValueError, OverflowError):
            scores, unsure = _each(filled, int(self.bounds[-1])), True
        bad = bool(len(scores)) and bool(np.isnan(scores.min()))
        # One look at each dictionary shows whether its ids and scores are of a usual kind.
        docs = set(map(type, map(next, map(iter, filled))))
        firsts = set(map(type, map(next, map(iter, map(_VALUES, filled))))) if unsure else set[type]()
        if (
            bad
            or docs - {str}
            or any(issubclass(kind, str | bool) for kind in firsts)
            or any(map(contains, filled, _EMPTY))
        ):
            for query, given in self._maps.items():
                doc, score = next(iter(given.items()), ("", 0.0))
                if bad or type(doc) is not str or isinstance(score, str | bool) or "" in given:
                    by_score(given, f"query {query!r}")
        return scores

    def columns(self) -> Columns:
        """The dictionaries as columns, made once."""
        if self._columns is None:
            docs: list[str] = []
            for query, scores in self._maps.items():
                if set(map(type, scores)) <= {str}:
                    docs += scores
                else:
                    by_score(scores, f"query {query!r}")  # two ids that become one are an error
                    docs += (json_id(doc, f"query {query!r}") for doc in scores)
            self._columns = Columns.ranked(self.query_ids, self.bounds, Ids.of(docs), self._scores)
        return self._columns

    def locate(self, qrels: Qrels, *, float32: bool) -> Located:
        """Where the documents of the qrels stand."""
        if 3 * len(qrels) > int(self.bounds[-1]):  # so many are judged that to look them up costs more than all keys
            located = self._locate_by_keys(qrels, float32)
            if located is not None:
                return located
        return self._locate_by_score(qrels, float32)

    def _locate_by_keys(self, qrels: Qrels, float32: bool) -> Located | None:
        """As columns are located, but without sorting them; None where ids are no strings."""
        locator = Locator(qrels, float32=float32)
        queries, maps = Ids.of(self.query_ids), list(self._maps.values())
        for low, high in cuts(self.bounds):
            rows = slice(int(self.bounds[low]), int(self.bounds[high]))
            try:
                docs = Ids.of(list(chain.from_iterable(maps[low:high])))
            except TypeError:
                return None
            bounds = self.bounds[low : high + 1] - rows.start
            locator.add(Block(queries[low:high], bounds, docs, self._scores[rows]))
        return locator.result()

    def _locate_by_score(self, qrels: Qrels, float32: bool) -> Located:
        """The judged documents are looked up, and their scores in the sorted lists."""
        unknown: tuple[str, ...] = ()
        alike = self.query_ids == qrels.query_ids
        if alike:
            lists = np.arange(len(self._maps))
        else:
            place = {query: i for i, query in enumerate(self._maps)}
            lists = np.array([place.get(query, -1) for query in qrels.query_ids], np.int64)
            known = set(qrels.query_ids)
            unknown = tuple([query for query in self._maps if query not in known])
        found = self._look_up(qrels)
        row = np.flatnonzero(found == found)  # NaN is not equal to itself
        of_row = lists[qrels.query[row]]
        if not alike:  # by list, so that the lists of a stretch have a stretch of the rows
            order = np.argsort(of_row, kind="stable")
            row, of_row = row[order], of_row[order]
        wanted = found[row]

        rank, last = np.empty(len(row), np.int64), np.empty(len(row), np.int64)
        ties = np.zeros(len(self._maps) + 1, np.int64)  # the last one is that of queries without a list
        for low, high in cuts(self.bounds, 1 << 17):
            begin = self.bounds[low]
            scores: Floats = self._scores[begin : self.bounds[high]]
            rows = slice(*np.searchsorted(of_row, (low, high)).tolist())
            sought: Floats = wanted[rows]
            if float32:
                scores, sought = single(scores), single(sought)
            bounds = self.bounds[low : high + 1] - begin
            ranked = RankOrder(falling(scores, bounds), bounds)
            ties[low:high] = ranked.tied()
            inside = of_row[rows] - low
            before = bounds[inside] - 1
            rank[rows], last[rows] = (place - before for place in ranked.find(inside, sought))
        first = rank.copy()
        tied = np.flatnonzero(last > first)
        if len(tied):
            rank[tied] += self._behind(qrels, row[tied], of_row[tied], float32)
        columns = (row, rank, first, last)
        if not alike:
            order = np.argsort(row)
            columns = (row[order], rank[order], first[order], last[order])
        arrays = (*columns, np.append(np.diff(self.bounds), 0)[lists], lists >= 0, ties[lists])
        for array in arrays:
            array.flags.writeable = False
        return Located(*arrays, unknown=unknown)

    def _look_up(self, qrels: Qrels) -> npt.NDArray[np.float64]:
        """The score of each judged document, NaN where its list does not have it."""
        judged = qrels.share("judged ids", lambda: _judged_ids(qrels)) if len(qrels) <= _KEPT else _judged_ids(qrels)
        look_up = [self._maps.get(query, _NONE).get for query in qrels.query_ids]

        # No id costs a step of the interpreter.
        values = chain.from_iterable(map(map, look_up, judged.texts, repeat(repeat(_NAN))))
        found = np.fromiter(values, np.float64, len(qrels))
        # A dictionary may have integers for ids, whose text is the id that is judged.
        rows = judged.rows[np.isnan(found[judged.rows])]
        if len(rows):
            lists, ids = map(look_up.__getitem__, qrels.query[rows].tolist()), judged.integers.__getitem__
            found[rows] = [get(ids(row), _NAN) for get, row in zip(lists, rows.tolist(), strict=True)]
        return found

    def _behind(self, qrels: Qrels, rows: Ints, lists: Ints, float32: bool) -> list[int]:
        """How many documents of its tie group stand before each judged document."""
        groups: dict[int, dict[str, int]] = {}  # of each list: document → place in its tie group
        queries = self.query_ids
        behind = []
        for doc, place in zip(qrels.docs.strings(rows), lists.tolist(), strict=True):
            if place not in groups:
                scores = self._scores[self.bounds[place] : self.bounds[place + 1]]
                groups[place] = _places_in_ties(self._maps[queries[place]], single(scores) if float32 else scores)
            behind.append(groups[place][doc])
        return behind


def _packed(maps: Collection[Mapping[Any, Any]], count: int) -> npt.NDArray[np.float64]:
    """All scores in one array; `struct` reads numbers out of a tuple faster than numpy out of an iterator."""
    buffer, at = bytearray(8 * count), 0
    write = {size: struct.Struct(f"{size}d").pack_into for size in set(map(len, maps))}
    for given in maps:
        size = len(given)
        write[size](buffer, at, *given.values())
        at += 8 * size
    return np.frombuffer(buffer) if count else np.zeros(0)


def _each(maps: Collection[Mapping[Any, Any]], count: int) -> npt.NDArray[np.float64]:
    """The same as far as numpy reads them, else a NaN, so that each is looked at."""
    try:
        return np.fromiter(chain.from_iterable(given.values() for given in maps), np.float64, count)
    except (TypeError, ValueError, OverflowError):
        return np.array([np.nan])


class _Judged(NamedTuple):
    """The judged documents of each query; ``integers`` has, by row, those whose text is one; ``rows`` are theirs."""

    texts: list[list[str]]
    integers: dict[int, int]
    rows: Ints


def _judged_ids(qrels: Qrels) -> _Judged:
    docs, ends = qrels.docs.strings(), qrels.offsets.tolist()
    integers = {row: int(doc) for row, doc in enumerate(docs) if _INTEGER.fullmatch(doc)}
    texts = [docs[begin:end] for begin, end in pairwise(ends)]
    return _Judged(texts, integers, np.fromiter(integers, np.int64, len(integers)))


def _places_in_ties(docs: Iterable[Any], scores: Floats) -> dict[str, int]:
    """For each document that ties with others: how many of these stand before it."""
    names: dict[float, list[str]] = {}
    for doc, score in zip(docs, scores.tolist(), strict=True):
        names.setdefault(score, []).append(str(doc))
    # UTF-8 keeps the order of code points, so that comparing strings compares bytes
    return {name: i for group in names.values() if len(group) > 1 for i, name in enumerate(sorted(group, reverse=True))}
