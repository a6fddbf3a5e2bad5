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
    from pytest_retrieval_eval.collection.dataset import Corpus as Corpus
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
    from pytest_retrieval_eval.labels.judging.judges import CallableJudge as CallableJudge
    from pytest_retrieval_eval.labels.judging.judges import ServerJudge as ServerJudge
    from pytest_retrieval_eval.labels.judging.judges import VoteJudge as VoteJudge
    from pytest_retrieval_eval.labels.judging.prompts import JudgePrompt as JudgePrompt
    from pytest_retrieval_eval.labels.judging.replies import Scale as Scale
    from pytest_retrieval_eval.labels.judgments import Judgments as Judgments
    from pytest_retrieval_eval.labels.pool import plan_of as plan_of
    from pytest_retrieval_eval.labels.pool import pool_of as pool_of
    from pytest_retrieval_eval.labels.questions.written import write_questions as write_questions
    from pytest_retrieval_eval.measures.evaluate import evaluate as evaluate
    from pytest_retrieval_eval.measures.extending import measure as measure
    from pytest_retrieval_eval.measures.names import Measure as Measure
    from pytest_retrieval_eval.measures.ranks import JudgedRanks as JudgedRanks
    from pytest_retrieval_eval.measures.registry import Definition as Definition
    from pytest_retrieval_eval.measures.registry import Parameter as Parameter
    from pytest_retrieval_eval.readers.budget import Budget as Budget
    from pytest_retrieval_eval.readers.budget import Price as Price
    from pytest_retrieval_eval.readers.cache import CachedReader as CachedReader
    from pytest_retrieval_eval.readers.cache import ReadingCache as ReadingCache
    from pytest_retrieval_eval.readers.callable_reader import CallableReader as CallableReader
    from pytest_retrieval_eval.readers.config import reader_from as reader_from
    from pytest_retrieval_eval.readers.reading import Item as Item
    from pytest_retrieval_eval.readers.reading import Passage as Passage
    from pytest_retrieval_eval.readers.reading import Reading as Reading
    from pytest_retrieval_eval.readers.server import ServerReader as ServerReader
    from pytest_retrieval_eval.studies.compare_all import compare_all as compare_all
    from pytest_retrieval_eval.studies.correlate import correlate as correlate
    from pytest_retrieval_eval.studies.judge_validation import validate_judge as validate_judge
    from pytest_retrieval_eval.studies.pool_report import pool_report as pool_report
    from pytest_retrieval_eval.studies.stages import stage_report as stage_report
    from pytest_retrieval_eval.studies.thresholds import threshold_report as threshold_report

_LAZY = {
    "Answers": ("collection.answers", "Answers"),
    "Budget": ("readers.budget", "Budget"),
    "CachedReader": ("readers.cache", "CachedReader"),
    "CallableJudge": ("labels.judging.judges", "CallableJudge"),
    "CallableReader": ("readers.callable_reader", "CallableReader"),
    "Chunk": ("collection.chunks", "Chunk"),
    "Chunks": ("collection.chunks", "Chunks"),
    "Corpus": ("collection.dataset", "Corpus"),
    "Dataset": ("collection.dataset", "Dataset"),
    "Definition": ("measures.registry", "Definition"),
    "Gate": ("gates.gate", "Gate"),
    "Item": ("readers.reading", "Item"),
    "JudgePrompt": ("labels.judging.prompts", "JudgePrompt"),
    "JudgedRanks": ("measures.ranks", "JudgedRanks"),
    "Judgments": ("labels.judgments", "Judgments"),
    "Measure": ("measures.names", "Measure"),
    "Parameter": ("measures.registry", "Parameter"),
    "Passage": ("readers.reading", "Passage"),
    "Price": ("readers.budget", "Price"),
    "Qrels": ("collection.qrels", "Qrels"),
    "Queries": ("collection.queries", "Queries"),
    "Reading": ("readers.reading", "Reading"),
    "ReadingCache": ("readers.cache", "ReadingCache"),
    "Run": ("collection.run", "Run"),
    "Scale": ("labels.judging.replies", "Scale"),
    "ServerJudge": ("labels.judging.judges", "ServerJudge"),
    "ServerReader": ("readers.server", "ServerReader"),
    "Span": ("collection.spans", "Span"),
    "Spans": ("collection.spans", "Spans"),
    "Stages": ("collection.stages", "Stages"),
    "Traces": ("collection.traces", "Traces"),
    "Verdict": ("gates.verdict", "Verdict"),
    "VoteJudge": ("labels.judging.judges", "VoteJudge"),
    "against": ("gates.target", "against"),
    "baseline": ("gates.target", "BASELINE"),
    "compare_all": ("studies.compare_all", "compare_all"),
    "correlate": ("studies.correlate", "correlate"),
    "evaluate": ("measures.evaluate", "evaluate"),
    "fuse": ("collection.fusion", "fuse"),
    "measure": ("measures.extending", "measure"),
    "plan_of": ("labels.pool", "plan_of"),
    "pool_of": ("labels.pool", "pool_of"),
    "pool_report": ("studies.pool_report", "pool_report"),
    "reader_from": ("readers.config", "reader_from"),
    "spans_to_qrels": ("labels.from_spans", "to_qrels"),
    "stage_report": ("studies.stages", "stage_report"),
    "threshold_report": ("studies.thresholds", "threshold_report"),
    "validate_judge": ("studies.judge_validation", "validate_judge"),
    "write_questions": ("labels.questions.written", "write_questions"),
}

__all__ = [
    "Answers",
    "Budget",
    "CachedReader",
    "CallableJudge",
    "CallableReader",
    "Chunk",
    "Chunks",
    "Corpus",
    "DataError",
    "Dataset",
    "Definition",
    "Gate",
    "GateError",
    "GateFailure",
    "Item",
    "JudgePrompt",
    "JudgedRanks",
    "Judgments",
    "Measure",
    "MeasureError",
    "Parameter",
    "Passage",
    "Price",
    "Qrels",
    "Queries",
    "Reading",
    "ReadingCache",
    "Run",
    "Scale",
    "ServerJudge",
    "ServerReader",
    "SettingsError",
    "Span",
    "Spans",
    "Stages",
    "Traces",
    "Verdict",
    "VoteJudge",
    "against",
    "baseline",
    "compare_all",
    "correlate",
    "evaluate",
    "fuse",
    "measure",
    "plan_of",
    "pool_of",
    "pool_report",
    "reader_from",
    "spans_to_qrels",
    "stage_report",
    "threshold_report",
    "validate_judge",
    "write_questions",
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
