"""Regression tests for retrieval: qrels, runs, baselines and gates in pytest.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import DataError, GateError, GateFailure, MeasureError, SettingsError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.answers import Answers as Answers
    from pytest_retrieval_eval.collection.chunks import Chunk as Chunk
    from pytest_retrieval_eval.collection.chunks import Chunks as Chunks
    from pytest_retrieval_eval.collection.dataset import Dataset as Dataset
    from pytest_retrieval_eval.collection.fusion import fuse as fuse
    from pytest_retrieval_eval.collection.qrels import Qrels as Qrels
    from pytest_retrieval_eval.collection.queries import Queries as Queries
    from pytest_retrieval_eval.collection.run import Run as Run
    from pytest_retrieval_eval.collection.spans import Span as Span
    from pytest_retrieval_eval.collection.spans import Spans as Spans
    from pytest_retrieval_eval.collection.stages import Stages as Stages
    from pytest_retrieval_eval.collection.traces import Traces as Traces
    from pytest_retrieval_eval.gates.gate import Gate as Gate
    from pytest_retrieval_eval.gates.target import BASELINE as baseline
    from pytest_retrieval_eval.gates.target import against as against
    from pytest_retrieval_eval.gates.verdict import Verdict as Verdict
    from pytest_retrieval_eval.labels.from_spans import to_qrels as spans_to_qrels
    from pytest_retrieval_eval.labels.judgments import Judgments as Judgments
    from pytest_retrieval_eval.measures.evaluate import evaluate as evaluate
    from pytest_retrieval_eval.measures.extending import measure as measure
    from pytest_retrieval_eval.measures.names import Measure as Measure
    from pytest_retrieval_eval.measures.ranks import JudgedRanks as JudgedRanks
    from pytest_retrieval_eval.measures.registry import Definition as Definition
    from pytest_retrieval_eval.measures.registry import Parameter as Parameter
    from pytest_retrieval_eval.studies.compare_all import compare_all as compare_all
    from pytest_retrieval_eval.studies.stages import stage_report as stage_report
    from pytest_retrieval_eval.studies.thresholds import threshold_report as threshold_report

_LAZY = {
    "Answers": ("collection.answers", "Answers"),
    "Chunk": ("collection.chunks", "Chunk"),
    "Chunks": ("collection.chunks", "Chunks"),
    "Dataset": ("collection.dataset", "Dataset"),
    "Definition": ("measures.registry", "Definition"),
    "Gate": ("gates.gate", "Gate"),
    "JudgedRanks": ("measures.ranks", "JudgedRanks"),
    "Judgments": ("labels.judgments", "Judgments"),
    "Measure": ("measures.names", "Measure"),
    "Parameter": ("measures.registry", "Parameter"),
    "Qrels": ("collection.qrels", "Qrels"),
    "Queries": ("collection.queries", "Queries"),
    "Run": ("collection.run", "Run"),
    "Span": ("collection.spans", "Span"),
    "Spans": ("collection.spans", "Spans"),
    "Stages": ("collection.stages", "Stages"),
    "Traces": ("collection.traces", "Traces"),
    "Verdict": ("gates.verdict", "Verdict"),
    "against": ("gates.target", "against"),
    "baseline": ("gates.target", "BASELINE"),
    "compare_all": ("studies.compare_all", "compare_all"),
    "evaluate": ("measures.evaluate", "evaluate"),
    "fuse": ("collection.fusion", "fuse"),
    "measure": ("measures.extending", "measure"),
    "stage_report": ("studies.stages", "stage_report"),
    "spans_to_qrels": ("labels.from_spans", "to_qrels"),
    "threshold_report": ("studies.thresholds", "threshold_report"),
}

__all__ = [
    "Answers",
    "Chunk",
    "Chunks",
    "DataError",
    "Dataset",
    "Definition",
    "Gate",
    "GateError",
    "GateFailure",
    "JudgedRanks",
    "Judgments",
    "Measure",
    "MeasureError",
    "Parameter",
    "Qrels",
    "Queries",
    "Run",
    "SettingsError",
    "Span",
    "Spans",
    "Stages",
    "Traces",
    "Verdict",
    "against",
    "baseline",
    "compare_all",
    "evaluate",
    "fuse",
    "measure",
    "spans_to_qrels",
    "stage_report",
    "threshold_report",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
