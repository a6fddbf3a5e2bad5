"""When ids of two sides do not match: which they are, and under which change they would, with an example from each."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_retrieval_eval.errors import DataError, did_you_mean
from pytest_retrieval_eval.wording import counted, listed, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.dataset import Dataset
    from pytest_retrieval_eval.collection.qrels import Qrels
    from pytest_retrieval_eval.collection.runs.run import Ranking, Run


# With fewer counted queries a list without any judged document may be chance; with five it is another id
# scheme.
FEW = 5
_LOOKED_AT = 20  # queries, where one example is enough
# With more ids the closest one would take seconds to find.
_MOST_COMPARED = 20_000


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _stripped(text: str) -> str:
    return text.strip()


def _all_forms(text: str) -> str:
    return _nfkc(_nfkc(text).strip().casefold())


# From the mildest change to the strongest; the first one that matches anything is named.
_FORMS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("after Unicode normalisation (NFC)", _nfc),
    ("after Unicode normalisation (NFKC)", _nfkc),
    ("without regard to case", str.casefold),
    ("once white space around them is stripped", _stripped),
    ("once normalised, stripped and without regard to case", _all_forms),
)


def id_hint(labels: Iterable[str], run: Iterable[str]) -> str:
    """A sentence about ids of which none matches exactly; it names one of each side.

    >>> id_hint(["HR-1"], ["hr-1"])
    "They match without regard to case: 'HR-1' in the labels, 'hr-1' in the run."
    >>> id_hint(["a"], ["b"])
    "The labels have ids such as 'a', the run such as 'b'."
    """
    gold, found = list(dict.fromkeys(labels)), list(dict.fromkeys(run))
    for words, form in _FORMS:
        forms = {form(each): each for each in reversed(gold)}
        for each in found:
            same = forms.get(form(each))
            if same is not None and same != each:
                return f"They match {words}: {_id(same)} in the labels, {_id(each)} in the run."
    known = set(gold)
    for each in found:
        for end in range(len(each) - 1, 0, -1):
            if each[end] in "#:_-/@|" and each[:end] in known:
                return (
                    f"The run's ids begin with those of the labels ({_id(each[:end])} in the labels, "
                    f"{_id(each)} in the run): it ranks parts of documents, and the labels are on documents."
                )
    first = f"The labels have ids such as {_id(gold[0])}" if gold else "The labels have no ids"
    return f"{first}, the run such as {_id(found[0])}." if found else f"{first}, the run has none."


def other_kind(
    qrels: Qrels,
    run: Run,
    query_ids: Sequence[str],
    parts: Callable[[Mapping[str, Ranking], list[str]], str | None] | None = None,
) -> str:
    """Why no list of a run has a judged document, by what the first of these queries were answered and have labels of.

    ``parts`` may see in rankings and labels that the run ranks parts of documents.
    """
    looked_at = query_ids[:_LOOKED_AT]
    found = run.rankings(looked_at, depth=100)
    gold = [doc for query in looked_at for doc in qrels.of_query(query)]
    returned = [doc for ranking in found.values() for doc in ranking.docs]
    hint = None if parts is None else parts(found, gold)
    return f"the document ids of the run and of the labels are not of one kind. {hint or id_hint(gold, returned)}"


def other_documents(labelled: Sequence[str], returned: Sequence[str]) -> str:
    """Why no hit of a run covers a character of gold: the documents of both are others, or the offsets.

    >>> other_documents(["guide"], ["Guide"]).partition(". ")[2]
    "They match without regard to case: 'guide' in the labels, 'Guide' in the run."
    """
    common = set(labelled).intersection(returned)
    hint = (
        f"They have {listed(sorted(common), 1)} in common, so that the ids match, and the offsets are perhaps of "
        "another text."
    )
    return f"its hits and the labels are not of the same documents. {hint if common else id_hint(labelled, returned)}"


def part_hint(chunk: str, doc: str, how: str) -> str:
    """A sentence for a run of chunks whose documents have the labels.

    >>> part_hint("guide#3", "guide", "as the hits say").partition(": ")[2]
    "gate with unit='document'."
    """
    return (
        f"The run ranks parts of the labels' documents ({_id(chunk)} is part of {_id(doc)}, {how}): gate with "
        "unit='document'."
    )


def other_forms(qrels: Qrels, run: Run, most: int = 200) -> str | None:
    """A note on judged documents that the run has under another Unicode form of their id, so that they miss.

    Looks at the first ``most`` queries with a judged document that the run lacks and whose id is not plain ASCII;
    None where there is none.
    """
    docs = qrels.docs
    beyond_ascii = docs.data >= 0x80
    if not beyond_ascii.any():
        return None
    before = np.concatenate(([0], np.cumsum(beyond_ascii)))
    odd = before[docs.starts + docs.lengths] > before[docs.starts]
    odd[run.locate(qrels).row] = False
    missing = np.flatnonzero(odd)
    queries = list(dict.fromkeys(qrels.query_ids[int(row)] for row in qrels.query[missing]))[:most]
    lists = run.rankings(queries)
    count, example = 0, ""
    for row in missing.tolist():
        query, judged = qrels.query_ids[int(qrels.query[row])], docs[row]
        for found in lists[query].docs if query in lists else ():
            if not found.isascii() and found != judged and _nfc(found) == _nfc(judged):
                count += 1
                example = example or f"{_id(judged)} in the labels, {_id(found)} in the run"
                break
    if not count:
        return None
    return (
        f"{counted(count, 'judged document stands', 'judged documents stand')} in the run under another Unicode form "
        f"of the id and counts as not found ({example}): write ids in one form, or read both sides with "
        "normalize_ids=True"
    )


def absent_documents(dataset: Dataset) -> list[str]:
    """A warning about judged documents that a small corpus lacks, while it has most of the others.

    Where it has not even half of them, labels may be on something else, such as chunks; ids of the chunk table are no
    typing mistakes either. What cannot be read is an error of whoever needs a text or a chunk.
    """
    corpus, qrels = dataset.corpus, dataset.qrels
    if corpus is None or not len(qrels):
        return []
    query_of: dict[str, str] = {}
    for query, doc_id in zip(qrels.query.tolist(), qrels.docs, strict=True):
        query_of.setdefault(doc_id, qrels.query_ids[query])
    try:
        known = corpus.known_ids()
        missing = [] if known is None else [doc_id for doc_id in query_of if doc_id not in known]
        if not missing or 2 * len(missing) > len(query_of):
            return []
        chunks = dataset.chunks
    except DataError:
        return []
    missing = [doc_id for doc_id in missing if chunks is None or doc_id not in chunks]
    if known is None or not missing:
        return []
    named = ", ".join(f"{_id(doc_id)} ({shown(query_of[doc_id], 40)})" for doc_id in missing[:FEW])
    more = f" and {len(missing) - FEW:,} more" if len(missing) > FEW else ""
    what = counted(len(missing), "judged document is", "judged documents are")
    return [f"{what} not in {corpus.path or 'the corpus'}: {named}{more}{_closest(missing[:FEW], known)}"]


def _closest(missing: list[str], known: set[str]) -> str:
    """The first of the missing ids that is close to a known one, as the tail of a sentence."""
    if len(known) > _MOST_COMPARED:
        return ""
    for doc_id in missing:
        # Every number is close to some other.
        near = "" if doc_id.isdigit() else did_you_mean(doc_id, known)
        if near.startswith("did"):
            return f"; {near}" if len(missing) == 1 else f"; {_id(doc_id)}: {near}"
    return ""


def _id(text: str) -> str:
    # ascii() shows what two ids that look alike differ in.
    return f"'{shown(text, 60)}'" if text.isascii() else shown(ascii(text), 80)
