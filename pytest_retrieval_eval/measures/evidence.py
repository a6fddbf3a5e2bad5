"""What a measure reads of a run: where judged documents stand, what chunks hold of gold spans, and other such things.

Each kind of evidence is found once for a run, however many measures read it, and has the same form: labels that say
what there is to be found for each query, and a table that says where the run has it. So one way of counting queries,
one ``Scores`` and one kind of verdict serve all measures. A new kind registers the function that finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pytest_retrieval_eval.errors import GateError, MeasureError, did_you_mean

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.queries import Queries
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.collection.spans.chunks import Chunks
    from pytest_retrieval_eval.collection.spans.spans import Spans
    from pytest_retrieval_eval.measures.names import Measure
    from pytest_retrieval_eval.measures.ranks import Ints, JudgedRanks

RANKS, SPANS, TIMES, ABSTENTION, CALLS, ACCESS = "ranks", "spans", "times", "abstention", "calls", "access"
# What is about queries and no documents of theirs: a query that failed on one side has no value on either.
OF_QUERIES = frozenset({TIMES, ABSTENTION, CALLS})


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """All that ``evaluate`` was given; each kind of evidence takes what it needs, and says what is missing."""

    run: Run
    qrels: Qrels | None = None
    queries: Queries | None = None
    spans: Spans | None = None
    chunks: Chunks | None = None
    trec: bool = False
    corpus: Corpus | None = None
    stages: Mapping[str, Run] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What there is to be found, and where a run has it.

    ``labels`` name the queries and what each of them asks for; ``ranks`` is the table that measures get, and what
    else they read lies in its ``beside``. ``noun`` is what one label is called. ``judged`` says that a document
    without a label is one that nobody judged, so that judged@k, bounds and pairs to judge mean something. ``tied``
    says that another order of equal scores could move a value. ``strangers`` is set where the run has nothing at all
    of what is asked for, in evidence that is not ``judged``: it gives ids of both sides, those asked for first.
    ``every`` says that queries count whether or not they are judged or have an answer. ``check(measure, rows)`` raises
    a GateError where something that the measure must know is missing for the queries that count.
    """

    labels: Qrels
    ranks: JudgedRanks
    noun: str = "judgment"
    judged: bool = False
    tied: bool = False
    warnings: tuple[str, ...] = ()
    strangers: Callable[[], tuple[Sequence[str], Sequence[str]]] | None = None
    every: bool = False
    check: Callable[[Measure, Ints], None] | None = None


Find: TypeAlias = "Callable[[Given], Evidence]"


def _judged_ranks(given: Given) -> Evidence:
    from pytest_retrieval_eval.measures.ranks import judged_ranks

    qrels, source = given.qrels, "the qrels"
    if qrels is None or not len(qrels):
        source = qrels.source if qrels is not None and qrels.source else source
        raise GateError(f"{source} judge no document, so that nothing can be measured.")
    ranks = judged_ranks(qrels, given.run, trec=given.trec)
    return Evidence(qrels, ranks, judged=True, tied=ranks.tied())


_kinds: dict[str, Find] = {RANKS: _judged_ranks}
_words: dict[str, str] = {RANKS: "labels of documents"}
_labelled = {RANKS}


def register_evidence(kind: str, find: Find, words: str, *, labelled: bool = False) -> None:
    """Add a kind of evidence, which definitions of measures then name in ``reads``; ``words`` are what sentences call
    it. To add it again changes nothing.

    ``labelled`` says that it is about labels of documents, which any source of labels may make.
    """
    if _kinds.setdefault(kind, find) is not find:
        raise MeasureError(f"the evidence {kind!r} is registered already; give yours another name.")
    _words[kind] = words
    if labelled:
        _labelled.add(kind)


def words_for(kind: str) -> str:
    """What sentences call a kind of evidence."""
    return _words[kind]


def is_labelled(kind: str) -> bool:
    """Whether a kind of evidence is about labels of documents, from whatever source."""
    return kind in _labelled


def check_kind(kind: str, measure: str) -> None:
    """Refuse a kind of evidence that nobody finds."""
    if kind not in _kinds:
        raise MeasureError(f"the measure {measure} reads {kind!r}, which nothing finds; {did_you_mean(kind, _kinds)}")


def evidence_of(kind: str, given: Given) -> Evidence:
    """The evidence of one kind. Raises a GateError that says what is missing."""
    return _kinds[kind](given)
