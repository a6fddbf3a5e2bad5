"""Gates that stop reading once their verdict is settled."""

from __future__ import annotations

import pytest
from gates_support import MemoryBench

from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.labels.erag import Erag
from pytest_retrieval_eval.readers.callable_reader import CallableReader

N = 200
QUERIES = {f"q{number:03d}": f"question {number}" for number in range(N)}


class ReadingBench(MemoryBench):
    """Reads every query's own documents: "right" is right, "wrong" is wrong, "broken" raises."""

    stop_early = True

    def __init__(self, candidate, baseline=None, **more):
        words = ("right", "wrong", "broken")
        data = Dataset.of(
            queries=QUERIES,
            qrels={query: ["right"] for query in QUERIES},
            answers={query: ["right"] for query in QUERIES},
            corpus={f"{word} {query}": f"{word} {query}" for word in words for query in QUERIES},
            name="shop",
        )
        super().__init__(data, _lists(candidate), None if baseline is None else _lists(baseline), **more)
        self.read: list[tuple[str, str]] = []

    def answer(self, query, texts):
        self.read.append((query, texts[0]))
        word = texts[0].partition(" ")[0]
        if word == "broken":
            raise ValueError("broken")
        return word

    def labels(self, name, options):
        return Erag(CallableReader(self.answer))

    @property
    def queries(self):
        return {query for query, _ in self.read}


def _lists(word_of):
    return {query: [f"{word_of(number)} {query}"] for number, query in enumerate(QUERIES)}


def right(number):
    return "right"


def lost(share):
    return lambda number: "wrong" if number % 100 < 100 * share else "right"


ERAG = {"labels": "erag"}


def test_runs_that_are_alike_take_a_part_of_the_queries():
    bench = ReadingBench(lost(0.5), lost(0.5))
    verdict = bench.decide("hit@1 >= baseline - 0.1", **ERAG)
    assert verdict.status == "passed"
    read = len(bench.queries)
    assert read < N / 2
    # Each pair once: the final comparison reads nothing again, though this reader has no identity.
    assert len(bench.read) == len(set(bench.read))
    assert verdict.n == read
    assert f"of {N} queries in random order ({read} were read)" in verdict.reason
    assert "the mean loss over all is below 0.1 (anytime-valid, alpha 0.05)" in verdict.reason


def test_a_great_loss_is_found_soon():
    bench = ReadingBench(lost(0.6), right)
    verdict = bench.decide("hit@1 >= baseline - 0.1", **ERAG)
    assert (verdict.status, verdict.n) == ("failed", len(bench.queries))
    assert len(bench.queries) < N / 4
    assert "the mean loss over all is above 0.1" in verdict.reason
    # With the sign turned a loss is a gain.
    assert ReadingBench(lost(0.6), right).decide("hit@1 <= baseline + 0.1", **ERAG).status == "passed"
    assert ReadingBench(right, lost(0.6)).decide("hit@1 <= baseline + 0.1", **ERAG).status == "failed"


def test_a_loss_at_the_margin_takes_them_all_and_the_rule_decides():
    bench = ReadingBench(lost(0.1), right)
    verdict = bench.decide("hit@1 >= baseline - 0.1", **ERAG)
    assert (verdict.ok, verdict.n, len(bench.queries)) == (True, N, N)
    assert "early stopping: every query was read, and the rule decided" in verdict.notes
    assert verdict.reason.startswith("0.900 equals 0.900")


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("hit@1 >= baseline", {}, "the gate allows no loss; with a margin, such as hit@1 >= baseline - 0.05"),
        ("hit@1 >= 0.4", {}, "a fixed target has no margin"),
        ("hit@1 >= baseline - 0.1", {"rule": "noninferior"}, "rule='noninferior' is about each of them"),
        ("hit@1 >= baseline - 1", {}, "no query can lose as much as the margin"),
    ],
)
def test_where_nothing_can_be_settled_every_query_is_read(text, options, why):
    bench = ReadingBench(lost(0.5), lost(0.5))
    verdict = bench.decide(text, **ERAG, **options)
    assert (verdict.n, len(bench.queries)) == (N, N)
    assert why is None or any(
        note.startswith("early stopping: every query was read, since " + why) for note in verdict.notes
    )


def test_nothing_stops_early_unasked():
    bench = ReadingBench(lost(0.5), lost(0.5))
    bench.stop_early = False
    verdict = bench.decide("hit@1 >= baseline - 0.1", **ERAG)
    assert verdict.n == N
    assert not any("early" in note for note in verdict.notes)


def test_a_baseline_is_written_from_every_query():
    bench = ReadingBench(lost(0.5), update=True)
    verdict = bench.decide("hit@1 >= baseline - 0.1", **ERAG)
    assert (verdict.status, verdict.n) == ("updated", N)


def test_a_failure_settles_nothing():
    def broken(number):
        return "broken" if number % 10 == 3 else "right"

    bench = ReadingBench(broken, right)
    verdict = bench.decide("hit@1 >= baseline - 0.1", allow_failures=N // 10, **ERAG)
    assert (verdict.n, len(bench.queries)) == (N - N // 10, N)
    with pytest.raises(GateError, match="could not be labelled"):
        ReadingBench(broken, right).decide("hit@1 >= baseline - 0.1", **ERAG)


def test_a_reader_that_is_never_right_settles_nothing():
    with pytest.raises(GateError, match="the reader answers none of"):
        ReadingBench(lost(1), lost(1)).decide("hit@1 >= baseline - 0.1", **ERAG)
