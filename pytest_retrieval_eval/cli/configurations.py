"""``compare-all`` and ``thresholds``: several runs beside one another, and when one had better return nothing."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pytest_retrieval_eval.cli.console import Console, json_text
from pytest_retrieval_eval.cli.inputs import named_measures, parse_where, read_collection, read_runs, select_queries
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.reports.configurations import latex, markdown
from pytest_retrieval_eval.studies.compare_all import compare_all
from pytest_retrieval_eval.studies.thresholds import threshold_report

DEFAULT = ("ndcg@10", "recall@10", "mrr@10")


def compare_runs(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``compare-all``. Everything is computed before anything is printed."""
    dataset = read_collection(arguments.qrels, queries=arguments.queries, split=arguments.split)
    select = select_queries(dataset, parse_where(arguments.where))
    found = compare_all(
        dataset,
        read_runs(arguments.runs),
        [measure for _, measure in named_measures(arguments.measure or DEFAULT)],
        select=select,
        pareto=[measure for _, measure in named_measures(arguments.pareto)] if arguments.pareto else None,
        correction=arguments.correction,
        alpha=arguments.alpha,
        allow_failures=arguments.allow_failures,
        allow_stale=arguments.allow_stale,
    )
    if arguments.json:
        console.write(json_text(found.to_dict()) + "\n")
    else:
        console.write(latex(found) if arguments.latex else markdown(found))
    return 0


def report_thresholds(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``thresholds``."""
    dataset = read_collection(arguments.qrels, queries=arguments.queries, split=arguments.split)
    select = select_queries(dataset, parse_where(arguments.where))
    found = threshold_report(dataset, Run.read(arguments.run), select=select)
    if arguments.json:
        console.write(json_text(asdict(found)) + "\n")
        return 0
    console.write("threshold\tabstained\tright\tlost\tprecision\trecall\tf1\n")
    for row in found.rows:
        precision = "-" if row.precision is None else f"{row.precision:.3f}"
        threshold = "none" if row.threshold is None else f"{row.threshold:.6g}"
        best = "\tbest" if row == found.best else ""
        console.write(
            f"{threshold}\t{row.abstained}\t{row.right}\t{row.lost}\t{precision}\t{row.recall:.3f}\t{row.f1:.3f}{best}\n"
        )
    console.note(
        f"the top score tells {found.answerable} queries with an answer from {found.unanswerable} without: "
        f"AUC {found.auc:.3f}"
    )
    return 0
