"""The pool of some runs: what their first ranks hold, each pair of query and document once, and what judging it takes.

After "Incremental Pooled LLM Evaluation for Cost-Effective Retrieval Model Selection" (Nelson, Bhathena, Joshi, Sharma,
2026): each pair is graded once, and a new run costs only the documents that it alone brings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import DataError, GateError
from pytest_retrieval_eval.labels import texts
from pytest_retrieval_eval.labels.judging.judge import Pair
from pytest_retrieval_eval.labels.judging.prompts import in_words
from pytest_retrieval_eval.labels.store.rows import Key, text_hash
from pytest_retrieval_eval.readers.reading import Passage

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset, Document
    from pytest_retrieval_eval.collection.runs.run import Run
    from pytest_retrieval_eval.labels.judgments import Judgments
    from pytest_retrieval_eval.readers.services.budget import Price

DEPTH = 20


def key_of(pair: Pair) -> Key:
    """What a grade of this pair is about: its ids, and the hashes of what a judge reads.

    >>> key_of(Pair("q1", "d7", "who?", "Ann did.")) == key_of(Pair("q1", "d7", "who?", "Ann did.", "A title"))
    False
    """
    return pair.query_id, text_hash(pair.query), pair.doc_id, text_hash(in_words(Passage(pair.text, pair.title)))


@dataclass(frozen=True, slots=True)
class Pool:
    """The first ``depth`` ranks of some runs.

    ``pairs`` has what is to be judged by its key; ``brought`` the numbers of the runs that bring each pair, ``lists``
    for each run the keys of each query in its order. A text that is another one for two runs is two pairs.
    """

    depth: int
    runs: tuple[str, ...]
    pairs: Mapping[Key, Pair]
    brought: Mapping[Key, tuple[int, ...]]
    lists: tuple[Mapping[str, tuple[Key, ...]], ...]

    def judged(self, judgments: Judgments) -> dict[str, float]:
        """judged@depth of each run: the mean share of judged documents over the queries that returned any."""
        missing = set(judgments.unjudged(self.pairs))
        found = {}
        for name, of_run in zip(self.runs, self.lists, strict=True):
            shares = [sum(key not in missing for key in keys) / len(keys) for keys in of_run.values() if keys]
            found[name] = math.fsum(shares) / len(shares) if shares else math.nan
        return found


def asked_queries(dataset: Dataset, select: frozenset[str] | None = None) -> list[str]:
    """The queries of a dataset whose documents are judged: all but those that are marked unanswerable."""
    queries = dataset.queries
    return [query for query in queries if query not in queries.unanswerable and (select is None or query in select)]


def pool_of(dataset: Dataset, runs: Sequence[Run], depth: int = DEPTH, *, select: frozenset[str] | None = None) -> Pool:
    """The pool of some runs over the queries of a dataset: the documents in the first ``depth`` ranks of any of them.

    ``select`` narrows the queries. A run that was not asked so deep, and a document without a text, are GateErrors.

    >>> from pytest_retrieval_eval import Dataset, Run
    >>> texts = {"d1": "Ann wrote it.", "d2": "It rains."}
    >>> dataset = Dataset.of(queries={"q1": "Who is Ann?"}, qrels={"q1": ["d1"]}, corpus=texts)
    >>> pool = pool_of(dataset, [Run.of({"q1": ["d1", "d2"]}), Run.of({"q1": ["d2", "d1"]})], 1)
    >>> sorted(pair.doc_id for pair in pool.pairs.values())
    ['d1', 'd2']
    """
    for run in runs:
        if run.depth is not None and run.depth < depth:
            raise GateError(
                f"run {run.name or run.source} declares depth {run.depth}, and the pool is {depth} deep: retrieve "
                f"{depth} hits a query, or take --depth {run.depth}"
            )
    query_ids = asked_queries(dataset, select)
    asked = query_texts(dataset, query_ids)
    found = texts.pool_of(dataset, runs, query_ids, depth, "judgments")
    pairs: dict[Key, Pair] = {}
    brought: dict[Key, list[int]] = {}
    lists = []
    for number, (tops, known) in enumerate(zip(found.tops, found.texts, strict=True)):
        hashes = {doc: document_hash(document) for doc, document in known.items()}
        of_run = {}
        for query_id, docs in tops.items():
            query_hash = text_hash(asked[query_id])
            keys = tuple((query_id, query_hash, doc, hashes[doc]) for doc in docs)
            of_run[query_id] = keys
            for key in keys:
                if key not in pairs:
                    document = known[key[2]]
                    pairs[key] = Pair(query_id, key[2], asked[query_id], document.text, document.title)
                brought.setdefault(key, []).append(number)
        lists.append(of_run)
    if not pairs:
        raise GateError(f"no run returned a document for any query of {dataset.name or 'the dataset'}: is it empty?")
    names = unique_names([run.name or run.source or "run" for run in runs])
    return Pool(depth, names, pairs, {key: tuple(numbers) for key, numbers in brought.items()}, tuple(lists))


def query_texts(dataset: Dataset, query_ids: Iterable[str]) -> dict[str, str]:
    """The texts of queries; a dataset that knows ids alone is a GateError, since nobody can judge an id."""
    try:
        return {query: dataset.queries.text(query) for query in query_ids}
    except DataError as error:
        raise GateError(f"a judge reads the text of each query: {error}") from None


def document_hash(document: Document) -> str:
    """The hash of a document as a judge reads it."""
    return text_hash(in_words(Passage(document.text, document.title)))


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of runs, a number behind those that come again.

    >>> unique_names(["bm25", "dense", "bm25"])
    ('bm25', 'dense', 'bm25 (2)')
    """
    made: list[str] = []
    for name in names:
        number = 1
        while (shown := name if number == 1 else f"{name} ({number})") in made:
            number += 1
        made.append(shown)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What one run brings to a pool: its pairs, those without a grade, those of them that no run before it in the
    list brings, and those that no other run brings.
    """

    name: str
    pairs: int
    unjudged: int
    first: int
    alone: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What judging a pool takes.

    ``pairs`` are all, ``new`` those without a grade; ``independent`` is what judging each run by itself from nothing
    would take, ``factor`` how many times the pool's pairs that is. ``tokens`` (read, written) and ``cost`` are of the
    new pairs at most, None where nobody can say.
    """

    depth: int
    pairs: int
    new: tuple[Pair, ...]
    runs: tuple[RunPlan, ...]
    tokens: tuple[int, int] | None = None
    cost: float | None = None

    @property
    def reused(self) -> int:
        """The pairs that have a grade."""
        return self.pairs - len(self.new)

    @property
    def independent(self) -> int:
        """The pairs of each run, added up."""
        return sum(run.pairs for run in self.runs)

    @property
    def factor(self) -> float:
        """How many times the pairs of the pool that is."""
        return self.independent / self.pairs


def plan_of(pool: Pool, judgments: Judgments, *, judge: object = None, price: Price | None = None) -> Plan:
    """What is to be judged of a pool: the pairs without a grade, in all and run by run.

    ``judge`` is asked how many tokens the new pairs take, where it can tell, and ``price`` what those cost.

    >>> import tempfile
    >>> from pytest_retrieval_eval import Dataset, Judgments, Run
    >>> dataset = Dataset.of(queries={"q1": "Who?"}, qrels={"q1": ["d1"]}, corpus={"d1": "Ann did.", "d2": "It rains."})
    >>> pool = pool_of(dataset, [Run.of({"q1": ["d1", "d2"]})], 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan = plan_of(pool, Judgments(folder))
    >>> plan.pairs, plan.reused, [pair.doc_id for pair in plan.new]
    (2, 0, ['d1', 'd2'])
    """
    new = judgments.unjudged(pool.pairs)
    missing = set(new)
    rows = []
    for number, name in enumerate(pool.runs):
        keys = [key for keys in pool.lists[number].values() for key in keys]
        open_ = [key for key in keys if key in missing]
        first = sum(pool.brought[key][0] == number for key in open_)
        alone = sum(len(pool.brought[key]) == 1 for key in open_)
        rows.append(RunPlan(name, len(keys), len(open_), first, alone))
    pairs = tuple(pool.pairs[key] for key in new)
    tokens, cost = estimated(pairs, judge, price)
    return Plan(pool.depth, len(pool.pairs), pairs, tuple(rows), tokens, cost)


def estimated(pairs: Sequence[Pair], judge: object, price: Price | None) -> tuple[tuple[int, int] | None, float | None]:
    """The tokens that pairs take at most and their price; None where the judge cannot tell, or has no price."""
    estimate = getattr(judge, "estimate", None)
    if estimate is None:
        return None, None
    tokens: tuple[int, int] = estimate(pairs)
    return tokens, None if price is None else price.of(*tokens)
