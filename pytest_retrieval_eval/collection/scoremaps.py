"""A run held as the dictionaries it was given: document → score for each query.

Measures need the scores, all of them, and of the documents only those that are judged: they are looked up in
the dictionaries as they are, and the other ids are never touched. Columns are made when more is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_retrieval_eval.collection.columns import Columns, cuts
from pytest_retrieval_eval.collection.files import json_id
from pytest_retrieval_eval.collection.hits import by_score
from pytest_retrieval_eval.collection.ids import Ids
from pytest_retrieval_eval.collection.keys import Ints
from pytest_retrieval_eval.collection.located import Floats, Located, RankOrder, falling, single

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.qrels import Qrels

_INTEGER = re.compile("0|-?[1-9][0-9]{0,999}")
_NONE: dict[Any, Any] = {}


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
        values = chain.from_iterable(scores.values() for scores in self._maps.values())
        try:
            scores = np.fromiter(values, np.float64, int(self.bounds[-1]))
        except (TypeError, ValueError, OverflowError):
            scores = np.array([np.nan])
        bad = bool(len(scores)) and bool(np.isnan(scores.min()))
        # One look at each dictionary shows whether its ids and scores are of a usual kind.
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
        place = {query: i for i, query in enumerate(self._maps)}
        lists = np.array([place.get(query, -1) for query in qrels.query_ids], np.int64)
        found = self._look_up(qrels)
        row = np.flatnonzero(~np.isnan(found))
        # by list, so that the lists of a stretch have a stretch of the rows
        row = row[np.argsort(lists[qrels.query[row]], kind="stable")]
        of_row, wanted = lists[qrels.query[row]], found[row]

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
            places = ranked.find(inside, sought)
            rank[rows], last[rows] = (place - bounds[inside] + 1 for place in places)
        first = rank.copy()
        tied = np.flatnonzero(last > first)
        if len(tied):
            rank[tied] += self._behind(qrels, row[tied], of_row[tied], float32)
        order = np.argsort(row)
        arrays = (
            row[order],
            rank[order],
            first[order],
            last[order],
            np.append(np.diff(self.bounds), 0)[lists],
            lists >= 0,
            ties[lists],
        )
        for array in arrays:
            array.flags.writeable = False
        known = set(qrels.query_ids)
        return Located(*arrays, unknown=tuple(query for query in self._maps if query not in known))

    def _look_up(self, qrels: Qrels) -> npt.NDArray[np.float64]:
        """The score of each judged document, NaN where its list does not have it."""
        docs = qrels.docs.strings()
        ends = np.searchsorted(qrels.query, np.arange(len(qrels.query_ids)), "right").tolist()
        nan, begin = float("nan"), 0
        parts = []
        for query, end in zip(qrels.query_ids, ends, strict=True):
            parts.append(map(self._maps.get(query, _NONE).get, docs[begin:end], repeat(nan)))
            begin = end
        found = np.fromiter(chain.from_iterable(parts), np.float64, len(docs))
        # A dictionary may have integers for ids, whose text is the id that is judged.
        missing = np.flatnonzero(np.isnan(found))
        counts = np.bincount(qrels.query[missing], minlength=len(qrels.query_ids))
        ends = np.cumsum(counts)
        for place in np.flatnonzero(counts).tolist():
            scores, count = self._maps.get(qrels.query_ids[place], _NONE), int(counts[place])
            if not scores or (16 * count > len(scores) and set(map(type, scores)) == {str}):
                continue
            for row in missing[ends[place] - count : ends[place]].tolist():
                if _INTEGER.fullmatch(docs[row]):
                    found[row] = scores.get(int(docs[row]), nan)
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


def _places_in_ties(docs: Iterable[Any], scores: Floats) -> dict[str, int]:
    """For each document that ties with others: how many of these stand before it."""
    names: dict[float, list[str]] = {}
    for doc, score in zip(docs, scores.tolist(), strict=True):
        names.setdefault(score, []).append(str(doc))
    # UTF-8 keeps the order of code points, so that comparing strings compares bytes
    return {name: i for group in names.values() if len(group) > 1 for i, name in enumerate(sorted(group, reverse=True))}
