"""The text of each retrieved document: stored with its run, else of the corpus, else of the chunk table.

A text that was stored with a run counts for that run, whatever the corpus says today: it is what was retrieved then. It
counts nothing where another run returns the document: what the corpus lacks, an index of another corpus has.
A hit that says which part of a document it is has the text of that part, whatever the chunk table says of its id: the
table of today may have other chunks under the same ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_retrieval_eval.collection.dataset import Document
from pytest_retrieval_eval.collection.spans.extents import beyond_end
from pytest_retrieval_eval.errors import GateError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Corpus, Dataset
    from pytest_retrieval_eval.collection.runs.run import Ranking, Run

_Part = tuple[str, int, int]  # document, start and end
_NAMED = 5  # how many documents a sentence names


@dataclass(frozen=True, slots=True)
class Pool:
    """The documents that some runs return, with their texts.

    ``tops`` has for each run the documents of each query, without repeats; ``texts`` for each run the text of every
    document of the pool, as that run's side reads it; ``changed`` are the documents whose text is not the same for
    all runs.
    """

    tops: tuple[Mapping[str, tuple[str, ...]], ...]
    texts: tuple[Mapping[str, Document], ...]
    changed: tuple[str, ...] = ()

    def of_query(self, query_id: str) -> tuple[str, ...]:
        """The documents that any of the runs returns for a query, those of the first run first."""
        return tuple(dict.fromkeys(doc for top in self.tops for doc in top.get(query_id, ())))


def pool_of(dataset: Dataset, runs: Sequence[Run], query_ids: Sequence[str], depth: int | None, needs: str) -> Pool:
    """The documents that the runs return for these queries, with their texts; ``needs`` names what reads them.

    A document is a GateError that names it where a run returns it, stores no text of it, and the dataset has none. What
    only another run returns is read as that one has it.
    """
    rankings = [run.rankings(query_ids, depth=depth) for run in runs]
    tops = tuple({query: tuple(dict.fromkeys(found.docs)) for query, found in each.items()} for each in rankings)
    kept = [{**_own_parts(dataset, run, each), **run.texts} for run, each in zip(runs, rankings, strict=True)]
    every = list(dict.fromkeys(doc for top in tops for docs in top.values() for doc in docs))
    found_today = today(dataset, [doc for doc in every if any(doc not in own for own in kept)])
    for run, top, own in zip(runs, tops, kept, strict=True):
        returned = dict.fromkeys(doc for docs in top.values() for doc in docs)
        _refuse_lost(dataset, run, [doc for doc in returned if doc not in own and doc not in found_today], needs)
    known: dict[str, Document] = {}
    for own in kept:
        known = {**own, **known}
    texts = tuple({doc: own.get(doc) or found_today.get(doc) or known[doc] for doc in every} for own in kept)
    changed = tuple(doc for doc in every if any(each[doc] != texts[0][doc] for each in texts[1:]))
    return Pool(tops, texts, changed)


def texts_of(dataset: Dataset, run: Run) -> tuple[dict[str, Document], list[str]]:
    """(the text of each document that a run returns, the documents whose text is nowhere)."""
    rankings = run.rankings(run.query_ids)
    every = list(dict.fromkeys(doc for ranking in rankings.values() for doc in ranking.docs))
    known = {**_own_parts(dataset, run, rankings), **run.texts}
    known |= today(dataset, [doc for doc in every if doc not in known])
    return {doc: known[doc] for doc in every if doc in known}, [doc for doc in every if doc not in known]


def changed_note(doc_ids: Sequence[str]) -> str:
    """The sentence on documents whose text is not the same for all runs."""
    what = "1 document" if len(doc_ids) == 1 else f"{len(doc_ids)} documents"
    more = f" and {len(doc_ids) - _NAMED} more" if len(doc_ids) > _NAMED else ""
    return (
        f"the text of {what} is not the same for both sides, and each reads its own: "
        f"{', '.join(doc_ids[:_NAMED])}{more}"
    )


def today(dataset: Dataset, doc_ids: Sequence[str]) -> dict[str, Document]:
    """The texts that the dataset has: of a document, or of a part of one as the chunk table says."""
    corpus, chunks = dataset.corpus, dataset.chunks
    found = {} if corpus is None else dict(corpus.get_many(doc_ids))
    parts: dict[str, _Part] = {}
    for doc in doc_ids:
        chunk = None if chunks is None or doc in found else chunks.get(doc)
        if chunk is None:
            continue
        if chunk.text is not None:
            found[doc] = Document("", chunk.text)
        elif chunk.start is not None and chunk.end is not None:
            parts[doc] = (chunk.doc_id, chunk.start, chunk.end)
    return found | _cut(corpus, parts)


def _own_parts(dataset: Dataset, run: Run, rankings: Mapping[str, Ranking]) -> dict[str, Document]:
    """The texts of the hits that say themselves which part of a document they are, where the table says otherwise.

    One id for two parts is a GateError: nothing says which text it names.
    """
    parts: dict[str, _Part] = {}
    for query, ranking in rankings.items():
        if ranking.doc_id is None:
            continue
        for doc, parent, start, end in zip(
            ranking.docs, ranking.doc_id, ranking.start or (), ranking.end or (), strict=True
        ):
            if parent is None or start is None or end is None or doc in run.texts:
                continue
            if parts.setdefault(doc, (parent, start, end)) != (parent, start, end):
                one, other = (f"{part[0]} {part[1]}-{part[2]}" for part in (parts[doc], (parent, start, end)))
                raise GateError(
                    f"{run.called}: the hits {doc!r} are {one} and, for query {query!r}, "
                    f"{other}: labels that read texts need an id for each part; return unique ids of chunks"
                )
    table, corpus = dataset.chunks, dataset.corpus
    if table is not None:
        parts = {doc: part for doc, part in parts.items() if not table.has_at(doc, *part)}
    found = _cut(corpus, parts)
    for doc, (parent, start, end) in parts.items():
        if doc in found:
            continue
        whole = None if corpus is None else corpus.get_many([parent]).get(parent)
        name = run.called
        if whole is not None:
            raise beyond_end(name, doc, parent, end, len(whole.text))
        named = None if table is None else table.placed().get(doc)
        if table is not None and named is not None and (named.start is not None or named.doc_id != parent):
            raise GateError(
                f"{name}: the hit {doc!r} is {parent} {start}-{end}, and {table.source} has another part under that "
                "id, so that its text is nowhere: add its document to corpus.jsonl, or save the baseline again under "
                "these labels: it then keeps the texts of its top documents"
            )
    return found


def _cut(corpus: Corpus | None, parts: Mapping[str, _Part]) -> dict[str, Document]:
    """The texts of parts of documents, of those that the corpus has."""
    if corpus is None or not parts:
        return {}
    whole = corpus.get_many(dict.fromkeys(parent for parent, _, _ in parts.values()))
    return {
        doc: Document(whole[parent].title, whole[parent].text[start:end])
        for doc, (parent, start, end) in parts.items()
        if parent in whole and end <= len(whole[parent].text)
    }


def _refuse_lost(dataset: Dataset, run: Run, lost: Sequence[str], needs: str) -> None:
    if not lost:
        return
    name = dataset.name or "the dataset"
    if dataset.corpus is None and dataset.chunks is None:
        where, what = f"{name} has no corpus.jsonl and no chunks.jsonl", ""
    else:
        where = f"neither the corpus nor the chunk table of {name} has them"
        what = (
            "Was the index built from another corpus? What another run has stored of them is not what this one reads. "
        )
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    raise GateError(
        f"{needs} read the text of each retrieved document, and {len(lost)} {'has' if len(lost) == 1 else 'have'} none "
        f"({', '.join(lost[:_NAMED])}{more}; in {run.called}): {where}. {what}Add the texts, or, of a baseline, save "
        "it again under these labels: it then keeps the texts of its top documents"
    )
