"""Ids that are the same to a reader and not to a computer."""

from __future__ import annotations

import unicodedata

from gates_support import MemoryBench

from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.gates.decide import decide
from pytest_retrieval_eval.gates.gate import Gate


def test_some_ids_in_another_unicode_form_are_said():
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    gold = {f"q{n}": {(decomposed if n < 3 else composed): 1} for n in range(6)}
    run = Run.of({query: ["x", composed] for query in gold})
    verdict = decide(Gate.parse("recall@5 >= 0.5"), MemoryBench(gold, run))
    (note,) = [note for note in verdict.notes if "Unicode" in note]
    assert verdict.value == 0.5
    assert note.startswith("3 judged documents stand in the run under another Unicode form")
    assert "'cafe\\u0301' in the labels, 'caf\\xe9' in the run" in note


def test_ids_of_one_form_are_not_spoken_of():
    gold = {f"q{n}": {"café": 1, "naïve": 1} for n in range(6)}
    run = Run.of({query: ["x", "café"] for query in gold})
    verdict = decide(Gate.parse("recall@5 >= 0.5"), MemoryBench(gold, run))
    assert not [note for note in verdict.notes if "Unicode" in note]
