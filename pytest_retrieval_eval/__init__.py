"""Regression tests for retrieval: qrels, runs, baselines and gates in pytest.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pytest_retrieval_eval.errors import DataError as DataError
from pytest_retrieval_eval.errors import GateError as GateError
from pytest_retrieval_eval.errors import GateFailure as GateFailure
from pytest_retrieval_eval.errors import MeasureError as MeasureError
from pytest_retrieval_eval.errors import SettingsError as SettingsError

if TYPE_CHECKING:
    from pytest_retrieval_eval.collection.answers import Answers as Answers
    from pytest_retrieval_eval.collection.dataset import Corpus as Corpus
    from pytest_retrieval_eval.collection.dataset import Dataset as Dataset
    from pytest_retrieval_eval.collection.kilt import Kilt as Kilt
    from pytest_retrieval_eval.collection.kilt import page_passages as page_passages
    from pytest_retrieval_eval.collection.qrels import Qrels as Qrels
    from pytest_retrieval_eval.collection.queries import Queries as Queries
    from pytest_retrieval_eval.collection.runs.fusion import fuse as fuse
    from pytest_retrieval_eval.collection.runs.run import Run as Run
    from pytest_retrieval_eval.collection.runs.stages import Stages as Stages
    from pytest_retrieval_eval.collection.runs.traces import Traces as Traces
    from pytest_retrieval_eval.collection.spans.anchors import check_spans as check_spans
    from pytest_retrieval_eval.collection.spans.chunks import Chunk as Chunk
    from pytest_retrieval_eval.collection.spans.chunks import Chunks as Chunks
    from pytest_retrieval_eval.collection.spans.spans import Span as Span
    from pytest_retrieval_eval.collection.spans.spans import Spans as Spans
    from pytest_retrieval_eval.gates.gate import Gate as Gate
    from pytest_retrieval_eval.gates.target import against as against
    from pytest_retrieval_eval.gates.target import baseline as baseline
    from pytest_retrieval_eval.gates.verdict import Verdict as Verdict
    from pytest_retrieval_eval.labels.answers import answer_score as answer_score
    from pytest_retrieval_eval.labels.answers import normalised_answer as normalised_answer
    from pytest_retrieval_eval.labels.from_spans import spans_to_qrels as spans_to_qrels
    from pytest_retrieval_eval.labels.grading import fill_judgments as fill_judgments
    from pytest_retrieval_eval.labels.judging.config import judge_from as judge_from
    from pytest_retrieval_eval.labels.judging.judge import Pair as Pair
    from pytest_retrieval_eval.labels.judging.judge import judge_digest as judge_digest
    from pytest_retrieval_eval.labels.judging.judges import CallableJudge as CallableJudge
    from pytest_retrieval_eval.labels.judging.judges import ReaderJudge as ReaderJudge
    from pytest_retrieval_eval.labels.judging.judges import ServerJudge as ServerJudge
    from pytest_retrieval_eval.labels.judging.judges import VoteJudge as VoteJudge
    from pytest_retrieval_eval.labels.judging.prompts import JudgeExample as JudgeExample
    from pytest_retrieval_eval.labels.judging.prompts import JudgePrompt as JudgePrompt
    from pytest_retrieval_eval.labels.judging.replies import Scale as Scale
    from pytest_retrieval_eval.labels.judging.requirements import Requirements as Requirements
    from pytest_retrieval_eval.labels.judgments import Judgments as Judgments
    from pytest_retrieval_eval.labels.making import make_labels as make_labels
    from pytest_retrieval_eval.labels.pool import plan_of as plan_of
    from pytest_retrieval_eval.labels.pool import pool_of as pool_of
    from pytest_retrieval_eval.labels.questions.overlap import word_overlap as word_overlap
    from pytest_retrieval_eval.labels.questions.written import write_questions as write_questions
    from pytest_retrieval_eval.measures.evaluate import evaluate as evaluate
    from pytest_retrieval_eval.measures.extending import measure as measure
    from pytest_retrieval_eval.measures.names import Measure as Measure
    from pytest_retrieval_eval.measures.ranks import JudgedRanks as JudgedRanks
    from pytest_retrieval_eval.measures.registry import Definition as Definition
    from pytest_retrieval_eval.measures.registry import Parameter as Parameter
    from pytest_retrieval_eval.readers.callable_reader import CallableReader as CallableReader
    from pytest_retrieval_eval.readers.config import reader_from as reader_from
    from pytest_retrieval_eval.readers.reading import Item as Item
    from pytest_retrieval_eval.readers.reading import Passage as Passage
    from pytest_retrieval_eval.readers.reading import Reading as Reading
    from pytest_retrieval_eval.readers.reading import item_key as item_key
    from pytest_retrieval_eval.readers.readings.cache import CachedReader as CachedReader
    from pytest_retrieval_eval.readers.readings.cache import ReadingCache as ReadingCache
    from pytest_retrieval_eval.readers.seat import SeatedReader as SeatedReader
    from pytest_retrieval_eval.readers.services.budget import Budget as Budget
    from pytest_retrieval_eval.readers.services.budget import Price as Price
    from pytest_retrieval_eval.readers.services.server import ServerReader as ServerReader
    from pytest_retrieval_eval.studies.compare_all import compare_all as compare_all
    from pytest_retrieval_eval.studies.corrected import corrected_precision as corrected_precision
    from pytest_retrieval_eval.studies.correlate import correlate as correlate
    from pytest_retrieval_eval.studies.judge_validation import chance_to_pass as chance_to_pass
    from pytest_retrieval_eval.studies.judge_validation import kappa_at as kappa_at
    from pytest_retrieval_eval.studies.judge_validation import validate_judge as validate_judge
    from pytest_retrieval_eval.studies.pool_report import pool_report as pool_report
    from pytest_retrieval_eval.studies.stages import stage_report as stage_report
    from pytest_retrieval_eval.studies.systems import ranking_stability as ranking_stability
    from pytest_retrieval_eval.studies.thresholds import threshold_report as threshold_report

# Name → the module that has it.
_LAZY = {
    "Answers": "collection.answers",
    "Budget": "readers.services.budget",
    "CachedReader": "readers.readings.cache",
    "CallableJudge": "labels.judging.judges",
    "CallableReader": "readers.callable_reader",
    "Chunk": "collection.spans.chunks",
    "Chunks": "collection.spans.chunks",
    "Corpus": "collection.dataset",
    "Dataset": "collection.dataset",
    "Definition": "measures.registry",
    "Gate": "gates.gate",
    "Item": "readers.reading",
    "JudgeExample": "labels.judging.prompts",
    "JudgePrompt": "labels.judging.prompts",
    "JudgedRanks": "measures.ranks",
    "Judgments": "labels.judgments",
    "Kilt": "collection.kilt",
    "Measure": "measures.names",
    "Pair": "labels.judging.judge",
    "Parameter": "measures.registry",
    "Passage": "readers.reading",
    "Price": "readers.services.budget",
    "Qrels": "collection.qrels",
    "Queries": "collection.queries",
    "ReaderJudge": "labels.judging.judges",
    "Reading": "readers.reading",
    "ReadingCache": "readers.readings.cache",
    "Requirements": "labels.judging.requirements",
    "Run": "collection.runs.run",
    "Scale": "labels.judging.replies",
    "SeatedReader": "readers.seat",
    "ServerJudge": "labels.judging.judges",
    "ServerReader": "readers.services.server",
    "Span": "collection.spans.spans",
    "Spans": "collection.spans.spans",
    "Stages": "collection.runs.stages",
    "Traces": "collection.runs.traces",
    "Verdict": "gates.verdict",
    "VoteJudge": "labels.judging.judges",
    "against": "gates.target",
    "answer_score": "labels.answers",
    "baseline": "gates.target",
    "chance_to_pass": "studies.judge_validation",
    "check_spans": "collection.spans.anchors",
    "compare_all": "studies.compare_all",
    "corrected_precision": "studies.corrected",
    "correlate": "studies.correlate",
    "evaluate": "measures.evaluate",
    "fill_judgments": "labels.grading",
    "fuse": "collection.runs.fusion",
    "item_key": "readers.reading",
    "judge_digest": "labels.judging.judge",
    "judge_from": "labels.judging.config",
    "kappa_at": "studies.judge_validation",
    "make_labels": "labels.making",
    "measure": "measures.extending",
    "normalised_answer": "labels.answers",
    "page_passages": "collection.kilt",
    "plan_of": "labels.pool",
    "pool_of": "labels.pool",
    "pool_report": "studies.pool_report",
    "ranking_stability": "studies.systems",
    "reader_from": "readers.config",
    "spans_to_qrels": "labels.from_spans",
    "stage_report": "studies.stages",
    "threshold_report": "studies.thresholds",
    "validate_judge": "studies.judge_validation",
    "word_overlap": "labels.questions.overlap",
    "write_questions": "labels.questions.written",
}

__all__ = sorted((*_LAZY, "DataError", "GateError", "GateFailure", "MeasureError", "SettingsError"))


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
