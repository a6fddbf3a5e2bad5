"""What became of the queries that do not count, or count 0: no number without it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_retrieval_eval.wording import counted, listed


@dataclass(frozen=True, slots=True)
class Short:
    """Lists that end above a cut-off: of which queries, and how many hits they have together."""

    cutoff: int
    queries: tuple[str, ...]
    hits: int

    def __str__(self) -> str:
        lists = counted(len(self.queries), "list is", "lists are")
        short = f"{lists} shorter than {counted(self.cutoff, 'rank')} ({counted(self.hits, 'hit')})"
        return f"{short}: {listed(self.queries)}"


_JUDGMENT = "judgment"
# One and many; with True the words for trec_eval's way of counting.
_RETURNED_NOTHING = {
    False: ("query returned nothing", "queries returned nothing"),
    True: ("query returned nothing and is left out", "queries returned nothing and are left out"),
}
_WITHOUT_RELEVANT = {
    False: (
        "query has judgments and nothing relevant, and is not counted",
        "queries have judgments and nothing relevant, and are not counted",
    ),
    True: (
        "query has judgments and nothing relevant, and counts 0",
        "queries have judgments and nothing relevant, and count 0",
    ),
}


@dataclass(frozen=True, slots=True)
class QueryCounts:
    """What became of each query: how many are judged, and which were left out, or counted 0, and why.

    Tuples of query ids. ``judged`` counts the queries with at least one judgment; ``unjudged`` have none,
    or an empty entry; ``without_relevant`` are judged, and nothing reaches grade 1 (grade 0 is passed,
    where grades are no whole numbers); ``unanswerable`` are marked so; ``returned_nothing`` are judged, and
    the run has no document for them; ``not_in_collection`` are in the run alone; ``failed`` are those for
    which the retriever raised. ``duplicates`` counts the documents that a list repeats, ``short`` the lists
    that end above a cut-off that was asked for. ``trec`` and ``complete`` say that queries counted as in
    trec_eval. ``noun`` is what one label is called; for gold spans "judged" is to have one.
    """

    judged: int = 0
    unjudged: tuple[str, ...] = ()
    without_relevant: tuple[str, ...] = ()
    unanswerable: tuple[str, ...] = ()
    returned_nothing: tuple[str, ...] = ()
    not_in_collection: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    duplicates: int = 0
    short: tuple[Short, ...] = ()
    trec: bool = False
    complete: bool = False
    noun: str = _JUDGMENT

    def notes(self) -> tuple[str, ...]:
        """What is worth saying, a sentence each; empty where every query counted and every list was full.

        >>> QueryCounts(returned_nothing=("2",), not_in_collection=("9",)).notes()
        ('1 query returned nothing: 2', '1 run query has no judgments: 9')
        """
        unlabelled = ("query is unjudged and not counted", "queries are unjudged and not counted")
        if self.noun != _JUDGMENT:
            unlabelled = (
                f"query has no {self.noun} and is not counted",
                f"queries have no {self.noun} and are not counted",
            )
        lines = [
            _note(self.returned_nothing, *_RETURNED_NOTHING[self.trec and not self.complete]),
            _note(self.unjudged, *unlabelled),
            _note(self.without_relevant, *_WITHOUT_RELEVANT[self.trec]),
            _note(
                self.unanswerable,
                "query is unanswerable and not counted",
                "queries are unanswerable and not counted",
            ),
            _note(self.not_in_collection, f"run query has no {self.noun}s", f"run queries have no {self.noun}s"),
            _note(self.failed, "query made the retriever fail", "queries made the retriever fail"),
        ]
        if self.duplicates:
            repeated = "1 document is" if self.duplicates == 1 else f"{self.duplicates} documents are"
            lines.append(f"{repeated} repeated in a list: only the first counts, the others fill a slot")
        return tuple([line for line in lines if line] + [str(short) for short in self.short])


def _note(ids: tuple[str, ...], one: str, many: str, most: int = 5) -> str:
    if not ids:
        return ""
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return f"{len(ids)} {one if len(ids) == 1 else many}: {', '.join(ids[:most])}{more}"
