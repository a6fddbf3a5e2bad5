"""What the lost queries of a failed gate have in common, a sentence each.

Everything comes from what both sides know already: the ranks of the judged documents, tags, ties. What took
a place is known for the queries that the diff has looked up, and the sentence says how many those are. The
sentences are observations, not proofs: a tag is named where so many lost queries share it that chance does not
explain it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_retrieval_eval.gates.accessdiff import access_causes
from pytest_retrieval_eval.gates.diff import level_of, ranks_in, within
from pytest_retrieval_eval.gates.incomplete import bounds_of
from pytest_retrieval_eval.gates.side import Side, cutoff_of, value_names
from pytest_retrieval_eval.gates.spandiff import spans_that_left
from pytest_retrieval_eval.stats.corrections import holm
from pytest_retrieval_eval.stats.tolerance import TOLERANCE
from pytest_retrieval_eval.wording import counted, listed, p_text, shown

if TYPE_CHECKING:
    from pytest_retrieval_eval.gates.rules import Comparison
    from pytest_retrieval_eval.gates.verdict import QueryDiff
    from pytest_retrieval_eval.measures.evaluate import TieInterval

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# A tag value is looked at where this many counted queries have it, and named below this adjusted p.
_FEWEST, _CHANCE = 3, 0.05
# A document that took a place in fewer lists than this is no pattern.
_PATTERN = 3
# How many tag values and how many documents are named at most.
_TAGS, _DOCUMENTS = 3, 2


def causes_of_loss(
    side: Side,
    reference: Side,
    comparison: Comparison,
    tied: TieInterval | None,
    queries: Sequence[QueryDiff],
    changes: Sequence[str],
) -> tuple[str, ...]:
    """What is behind the queries that lost against a run; a single one speaks for itself."""
    lost = comparison.differences < -TOLERANCE
    n = int(lost.sum())
    if n < 2:
        return ()
    what = counted(n, "lost query", "lost queries")
    if side.by_access:
        return (*access_causes(side, _ids(side, lost)), *_tags(side, lost, what))
    found = [_changed(changes), _nothing(side, lost, what), *_tags(side, lost, what)]
    if comparison.sign > 0 and side.by_judgment:
        found.append(_left(side, reference, lost))
        found += _took_places(side, queries, lost)
    elif comparison.sign > 0 and side.by_span:
        found.append(spans_that_left(side, reference, lost))
    if tied is not None:
        ordered = tied.high if comparison.sign > 0 else tied.low
        equal = comparison.sign * (ordered - comparison.factor * comparison.before) >= -TOLERANCE
        found.append(_ties(int((lost & equal).sum()), what))
    best = _best(side, comparison.sign)
    if best is not None:
        equal = comparison.sign * (best - comparison.factor * comparison.before) >= -TOLERANCE
        found.append(_hang(int((lost & equal).sum()), what, "be as good as before"))
    elif comparison.sign > 0 and side.by_judgment:
        k = side.judged_at.cutoff or 1
        more = _holes(side, k)[_rows(side)] > _holes(reference, k)[_rows(side)]
        found.append(_unjudged(int((lost & more).sum()), what, k, " than before"))
    return tuple(each for each in found if each)


def causes_of_missing(side: Side, target: float, sign: int, tied: TieInterval | None) -> tuple[str, ...]:
    """What is behind the queries that miss a fixed target; a single one speaks for itself."""
    missing = sign * (side.scores.values - target) < -TOLERANCE
    n = int(missing.sum())
    if n < 2:
        return ()
    what = f"{counted(n, 'query', 'queries')} {'below' if sign > 0 else 'above'} the target"
    if side.by_access:
        return (*access_causes(side, _ids(side, missing)), *_tags(side, missing, what))
    found = [_nothing(side, missing, what), *_tags(side, missing, what)]
    if sign > 0 and side.by_judgment:
        found.append(_stand(side, missing, what))
    if tied is not None:
        ordered = tied.high if sign > 0 else tied.low
        found.append(_ties(int((missing & (sign * (ordered - target) >= -TOLERANCE)).sum()), what))
    best = _best(side, sign)
    if best is not None:
        found.append(_hang(int((missing & (sign * (best - target) >= -TOLERANCE)).sum()), what, "reach the target"))
    elif sign > 0 and side.by_judgment:
        k = side.judged_at.cutoff or 1
        found.append(_unjudged(int((missing & (_holes(side, k)[_rows(side)] > 0)).sum()), what, k, ""))
    return tuple(each for each in found if each)


def _of(n: int, what: str) -> str:
    """``n`` of what ``what`` counts.

    >>> _of(2, "41 lost queries"), _of(41, "41 lost queries")
    ('2 of the 41 lost queries', 'all 41 lost queries')
    """
    return f"all {what}" if f"{n:,}" == what.split(" ", 1)[0] else f"{n:,} of the {what}"


def _changed(changes: Sequence[str]) -> str:
    words = [
        word
        for word in ("labels", "gold answers", "gold spans", "queries", "corpus")
        if any(_says(change, word) for change in changes)
    ]
    if not words:
        return ""
    verb = "has" if words == ["corpus"] else "have"
    return f"the {' and the '.join(words)} {verb} changed since the baseline was saved"


def _says(change: str, word: str) -> bool:
    return change.startswith(f"the {word} ") and " changed since" in change


def _nothing(side: Side, lost: Bools, what: str) -> str:
    empty = set(side.evaluation.counts.returned_nothing) | set(side.failed)
    ids = [query for query, one in zip(side.scores.query_ids, lost.tolist(), strict=True) if one and query in empty]
    if not ids:
        return ""
    return f"for {_of(len(ids), what)} the run returned nothing: {listed(ids)}"


def _left(side: Side, reference: Side, lost: Bools) -> str:
    """The relevant documents that the lost queries have lost: from the list, or only from its top."""
    cutoff, after, before = cutoff_of(side.measure), ranks_in(side), ranks_in(reference)
    gold = _gold(side, lost)
    gone = gold & within(before, cutoff) & ~within(after, cutoff)
    fell = gold & within(before, cutoff) & within(after, cutoff) & (after > before)
    n, below = int(gone.sum()), int(fell.sum())
    if n and cutoff is not None:
        nowhere = int((gone & (after == 0)).sum())
        verb = "document that left" if n == 1 else "documents that left"
        return (
            f"of the {n:,} relevant {verb} the top {cutoff}, {_whereabouts(nowhere, after[gone & (after > 0)], side)}"
        )
    parts = [f"{counted(n, 'relevant document')} left the list{_depth(side)}"] if n else []
    if below:
        median = " in the median" if below > 1 else ""
        who = f"{below:,}" if n else counted(below, "relevant document")
        parts.append(f"{who} fell, from rank {_median(before[fell])} to rank {_median(after[fell])}{median}")
    return " and ".join(parts)


def _depth(side: Side) -> str:
    return f" ({side.run.depth} deep)" if side.run.depth is not None else ""


def _stand(side: Side, missing: Bools, what: str) -> str:
    cutoff, after = cutoff_of(side.measure), ranks_in(side)
    out = _gold(side, missing) & ~within(after, cutoff)
    n = int(out.sum())
    if not n:
        return ""
    nowhere = int((out & (after == 0)).sum())
    verb = "document of" if n == 1 else "documents of"
    beyond = f" beyond rank {cutoff}" if cutoff is not None else " missing"
    told = _whereabouts(nowhere, after[out & (after > 0)], side, "stands", "stand")
    return f"of the {n:,} relevant {verb} the {what} that {'is' if n == 1 else 'are'}{beyond}, {told}"


def _whereabouts(nowhere: int, ranks: Ints, side: Side, one: str = "fell", many: str = "fell") -> str:
    parts = []
    if nowhere:
        parts.append(f"{nowhere:,} {'is' if nowhere == 1 else 'are'} nowhere in the list{_depth(side)}")
    if len(ranks):
        to = "to" if one == "fell" else "at"
        median = " in the median" if len(ranks) > 1 else ""
        parts.append(f"{len(ranks):,} {one if len(ranks) == 1 else many} {to} rank {_median(ranks)}{median}")
    return " and ".join(parts)


def _median(ranks: Ints) -> str:
    return f"{float(np.median(ranks)):g}"


def _took_places(side: Side, queries: Sequence[QueryDiff], lost: Bools) -> list[str]:
    """The documents that took a place in many lists, over the queries that were looked up."""
    ids = {query for query, one in zip(side.scores.query_ids, lost.tolist(), strict=True) if one}
    known = [query for query in queries if query.query_id in ids and query.looked_up]
    times = Counter(move.doc_id for query in known for move in query.intruders)
    if len(known) < _PATTERN or not times:
        return []
    most = [(doc, n) for doc, n in times.most_common(_DOCUMENTS) if n >= _PATTERN]
    looked = f"{len(known)} lost queries" + (" that were looked up" if len(known) < len(ids) else "")
    cutoff = cutoff_of(side.measure)
    place = f"the top {cutoff}" if cutoff is not None else "the top"
    if not most:
        if len(known) < 2 * _PATTERN:
            return []
        return [
            f"no document took a place in more than {max(times.values())} of the {looked}: "
            f"{len(times):,} different ones came into {place}"
        ]
    return [f"{shown(doc, 40)} took a place in {place} in {_of(n, looked)}" for doc, n in most]


def _ties(n: int, what: str) -> str:
    if not n:
        return ""
    them = "it" if n == 1 else "them"
    return f"{_of(n, what)} hang{'s' if n == 1 else ''} on a tie: another order of equal scores would save {them}"


def _best(side: Side, sign: int) -> Floats | None:
    """The best that unjudged documents could make each query; None where the measure has no exact bounds."""
    bounds = bounds_of(side)
    if bounds is None:
        return None
    return bounds.high if sign > 0 else bounds.low


def _hang(n: int, what: str, good: str) -> str:
    if not n:
        return ""
    them = "it" if n == 1 else "they"
    return f"{_of(n, what)} hang{'s' if n == 1 else ''} on unjudged documents: were those judged, {them} could {good}"


def _unjudged(n: int, what: str, k: int, than: str) -> str:
    if not n:
        return ""
    more = "more documents" if than else "documents"
    return (
        f"{_of(n, what)} {'has' if n == 1 else 'have'} {more} in the top {k} that nobody judged{than}, and that may "
        "be relevant"
    )


def _tags(side: Side, lost: Bools, what: str) -> list[str]:
    """The tag values that the lost queries share more often than chance explains.

    The tail of the hypergeometric distribution, Holm over all tag values that enough counted queries have:
    which are tested does not depend on which queries were lost.
    """
    queries, ids = side.dataset.queries, side.scores.query_ids
    having: dict[tuple[str, bool, object], list[int]] = {}
    for place, query_id in enumerate(ids):
        if query_id not in queries:
            continue
        for tag, value in queries.tags(query_id).items():
            # 1 is 1.0, and true is not 1; a list is all of its values.
            for each in dict.fromkeys(value) if isinstance(value, tuple) and _plain(*value) else (value,):
                if _plain(each):
                    having.setdefault((tag, isinstance(each, bool), each), []).append(place)
    total, n = len(ids), int(lost.sum())
    names: dict[tuple[str, bool, object], str] = {}
    for tag in dict.fromkeys(tag for tag, _, _ in having):
        keys = [key for key in having if key[0] == tag]
        names |= dict(zip(keys, value_names(tag, [each for _, _, each in keys]), strict=True))
    tested = [(names[key], places) for key, places in having.items() if _FEWEST <= len(places) < total]
    if not tested or n == total:
        return []
    shares = [int(lost[places].sum()) for _, places in tested]
    p = [hypergeometric_tail(a, total, len(places), n) for a, (_, places) in zip(shares, tested, strict=True)]
    adjusted = holm(p)
    order = sorted(range(len(tested)), key=lambda i: (adjusted[i], p[i], tested[i][0]))
    return [
        f"{_of(shares[i], what)} are {tested[i][0]} "
        f"({len(tested[i][1])} of {total} overall; by chance p = {p_text(float(adjusted[i]))})"
        for i in order[:_TAGS]
        if adjusted[i] < _CHANCE and shares[i] >= _FEWEST
    ]


def _plain(*values: object) -> bool:
    return all(isinstance(value, (str, int, float, bool, type(None))) for value in values)


def hypergeometric_tail(a: int, total: int, having: int, drawn: int) -> float:
    """The chance that ``drawn`` of ``total`` queries hold at least ``a`` of the ``having`` that have a tag.

    >>> round(hypergeometric_tail(2, 4, 2, 2), 6), hypergeometric_tail(0, 4, 2, 2)
    (0.166667, 1.0)
    """

    def log_choose(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    least, most = max(0, having + drawn - total), min(having, drawn)
    if a <= least:
        return 1.0
    whole = log_choose(total, drawn)
    terms = [
        math.exp(log_choose(having, i) + log_choose(total - having, drawn - i) - whole) for i in range(a, most + 1)
    ]
    # A chance that is too small for a float is not 0.
    return max(min(math.fsum(terms), 1.0), math.ulp(0.0))


def _ids(side: Side, chosen: Bools) -> list[str]:
    return [query_id for query_id, one in zip(side.scores.query_ids, chosen.tolist(), strict=True) if one]


def _rows(side: Side) -> Ints:
    """The places of the counted queries among those of the labels."""
    place = {query_id: row for row, query_id in enumerate(side.qrels.query_ids)}
    return np.array([place[query_id] for query_id in side.scores.query_ids], np.int64)


def _gold(side: Side, chosen: Bools) -> Bools:
    """The rows of the labels that are relevant documents of the chosen queries."""
    qrels = side.qrels
    wanted = np.zeros(len(qrels.query_ids), bool)
    wanted[_rows(side)[chosen]] = True
    gold: Bools = wanted[qrels.query] & (qrels.grades >= level_of(side))
    return gold


def _holes(side: Side, k: int) -> Ints:
    """How many documents of each query's top k nobody judged."""
    ranks = side.evaluation.ranks
    holes: Ints = np.minimum(ranks.returned, k) - ranks.hits(-np.inf, k)
    return holes
