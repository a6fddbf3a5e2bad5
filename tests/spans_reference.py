"""Measures of gold spans, character by character: slow, and plain enough to be seen to be right."""

from __future__ import annotations

from itertools import product
from math import log2

from pytest_retrieval_eval.collection.spans.spans import Span

Chunk = tuple[str, int, int]  # document, start, end
Chars = set[tuple[str, int]]


def chars(doc: str, start: int, end: int) -> Chars:
    return {(doc, place) for place in range(start, end)}


class Reference:
    """One query: its gold spans, and the chunks that a run returned, best first."""

    def __init__(self, gold: list[Span], hits: list[Chunk]) -> None:
        self.groups: list[list[Span]] = []
        named: dict[object, list[Span]] = {}
        for span in gold:
            if span.group is not None and span.group in named:
                named[span.group].append(span)
                continue
            group = [span]
            self.groups.append(group)
            if span.group is not None:
                named[span.group] = group
        self.hits = hits

    def top(self, k: int | None) -> Chars:
        held: Chars = set()
        for hit in self.hits[:k]:
            held |= chars(*hit)
        return held

    def rank_of(self, span: Span, share: float) -> int | None:
        wanted = chars(span.doc_id, span.start, span.end)
        for rank in range(1, len(self.hits) + 1):
            found = len(wanted & self.top(rank))
            if found and found >= share * len(wanted) - 1e-9:
                return rank
        return None

    def relevant(self, level: float) -> int:
        return sum(max(span.grade for span in group) >= level for group in self.groups)

    def found(self, share: float, level: float) -> list[tuple[int, float]]:
        """Rank and grade of each group that is found, in the order of finding."""
        result = []
        for group in self.groups:
            ranked = [(self.rank_of(span, share), -span.grade) for span in group if span.grade >= level]
            some = [(rank, grade) for rank, grade in ranked if rank is not None]
            if some:
                result.append(min(some))
        return [(rank, -grade) for rank, grade in sorted(result)]

    def effective(self, share: float, level: float) -> list[tuple[int, float]]:
        ranks: list[tuple[int, float]] = []
        before = 0
        for rank, grade in self.found(share, level):
            before = max(rank, before + 1)
            ranks.append((before, grade))
        return ranks

    def recall(self, k: int, share: float = 0.5, level: float = 1.0) -> float:
        return sum(rank <= k for rank, _ in self.found(share, level)) / self.relevant(level)

    def mrr(self, k: int | None = None, share: float = 0.5, level: float = 1.0) -> float:
        found = self.effective(share, level)
        return 1 / found[0][0] if found and (k is None or found[0][0] <= k) else 0.0

    def map(self, k: int | None = None, share: float = 0.5, level: float = 1.0) -> float:
        found = self.effective(share, level)
        return sum(j / e for j, (e, _) in enumerate(found, 1) if k is None or e <= k) / self.relevant(level)

    def ndcg(self, k: int | None = None, share: float = 0.5) -> float:
        found = self.effective(share, 1e-300)
        ideal = sorted((max(span.grade for span in group) for group in self.groups), reverse=True)
        best = sum(g / log2(j + 1) for j, g in enumerate(ideal, 1) if g > 0 and (k is None or j <= k))
        return sum(g / log2(e + 1) for e, g in found if k is None or e <= k) / best

    def choices(self, level: float) -> list[tuple[Span, ...]]:
        options = [[span for span in group if span.grade >= level] for group in self.groups]
        return list(product(*(option for option in options if option)))

    def _shares(self, k: int | None, level: float) -> list[tuple[float, tuple[Span, ...]]]:
        """Of each choice of alternatives the covered share; gold of a group counts beside all other gold."""
        held = self.top(k)
        shares = []
        for choice in self.choices(level):
            fixed: Chars = set()
            found = whole = 0
            for span in choice:
                gold = chars(span.doc_id, span.start, span.end)
                if sum(other.grade >= level for other in self._group_of(span)) == 1:
                    fixed |= gold
                else:
                    found, whole = found + len(gold & held), whole + len(gold)
            shares.append(((found + len(fixed & held)) / (whole + len(fixed)), choice))
        return shares

    def _group_of(self, span: Span) -> list[Span]:
        return next(group for group in self.groups if any(other is span for other in group))

    def coverage(self, k: int | None, level: float = 1.0) -> float:
        return max(share for share, _ in self._shares(k, level))

    def precision(self, k: int | None, level: float = 1.0) -> float:
        held, gold = self.top(k), set()
        for group in self.groups:
            for span in group:
                if span.grade >= level:
                    gold |= chars(span.doc_id, span.start, span.end)
        return len(gold & held) / len(held) if held else 0.0

    def iou(self, k: int | None, level: float = 1.0) -> set[float]:
        """One value for each choice that covers best."""
        held, values = self.top(k), set()
        shares = self._shares(k, level)
        best = max(share for share, _ in shares)
        for share, choice in shares:
            if share >= best - 1e-12:
                gold: Chars = set()
                for span in choice:
                    gold |= chars(span.doc_id, span.start, span.end)
                values.add(len(gold & held) / len(gold | held))
        return values
