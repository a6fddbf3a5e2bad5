"""Commands that measure and compare runs."""

from __future__ import annotations

from pytest_retrieval_eval.cli.options.command import Command, Parser
from pytest_retrieval_eval.cli.options.shared import (
    add_allow_failures,
    add_allow_stale,
    add_collection,
    add_json,
    add_labels,
    add_measures,
    add_stages,
    add_unit,
    add_where,
    count,
)

_RULES = ("mean", "noninferior", "significant", "each")


def _add_evaluate(parser: Parser) -> None:
    add = parser.add_argument
    add_collection(parser)
    add("run", metavar="RUN", help="The run: a TREC file, *.run.jsonl[.gz], JSON or JSON lines.")
    add_measures(parser)
    add_where(parser)
    add("--per-query", action="store_true", help="Print each query that counts, before the means.")
    add(
        "--bounds",
        action="store_true",
        help="Print behind each value the least and the most that it could be if everything unjudged in the lists "
        "were judged.",
    )
    add(
        "--distribution",
        action="store_true",
        help="Print below the means how the values of the queries lie: histogram, quantiles, share of zeros.",
    )
    add_unit(parser)
    add_stages(parser)
    add_labels(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--trec",
        action="store_true",
        help="Count and rank as trec_eval 9.0.8 does: topics in both files, scores as 32-bit floats.",
    )
    mode.add_argument(
        "--trec-complete",
        action="store_true",
        help="The same over all topics of the qrels, as trec_eval -c does.",
    )
    add_allow_failures(parser)
    add_allow_stale(parser)
    add_json(parser)


def _add_compare(parser: Parser) -> None:
    add = parser.add_argument
    add_collection(parser)
    add(
        "baseline",
        metavar="BASELINE",
        help="The run to compare with: a file, or the name of the dataset's baseline.",
    )
    add("candidate", metavar="CANDIDATE", help="The run under test.")
    add_measures(parser)
    add(
        "--gate",
        action="append",
        default=[],
        metavar="GATE",
        help='Decide a gate, such as "recall@5 >= baseline - 0.01" or "ndcg@10 >= 0.8". May be repeated.',
    )
    add_where(parser)
    add("--rule", choices=_RULES, help="How gates against a run decide (default: mean).")
    add("--alpha", type=float, metavar="X", help="The chance of a false alarm (default: 0.05).")
    add("--sided", choices=("one", "two"), help="Which p is printed and decides (default: as the rule asks).")
    add("--allow", type=count, metavar="N", help="With --rule each, how many queries may lose (default: 0).")
    add("--by", metavar="TAG", help="Decide each gate for the queries of each value of this tag.")
    add("--min-n", type=count, metavar="N", help="With --by, the least queries of a slice that decides (default: 10).")
    add(
        "--correction",
        choices=("holm", "bh", "none"),
        help="With --by and --rule significant, how the p-values of the slices are adjusted (default: holm).",
    )
    add(
        "--judged",
        type=float,
        metavar="X",
        help="Call a gate inconclusive where less than this share of the candidate's top documents is judged.",
    )
    add(
        "--to-judge",
        metavar="PATH",
        help="Write the pairs of query and document without a judgment that were looked at, worst queries first: "
        "*.jsonl or *.tsv.",
    )
    add_unit(parser)
    add_stages(parser)
    add(
        "--stage",
        metavar="NAME",
        help="The candidate is the run of this stage, and a BASELINE that is a name the baseline of the same stage.",
    )
    add_labels(parser)
    add(
        "--normalise",
        choices=("pool", "list"),
        help="Where only what the runs return is labelled, whether R and the ideal order are those of all runs "
        "(default: pool) or of each list.",
    )
    add(
        "--pool",
        action="append",
        default=[],
        metavar="RUN",
        help="A further run whose documents belong to the pool. May be repeated.",
    )
    add_allow_failures(parser)
    add_allow_stale(parser)
    add("-v", "--verbose", action="count", default=0, help="Show more queries; -vv shows all of them.")
    add_json(parser)


def _add_compare_all(parser: Parser) -> None:
    add = parser.add_argument
    add_collection(parser)
    add("runs", nargs="+", metavar="[NAME=]RUN", help="The runs, two or more; their names are those of the files.")
    add_measures(parser)
    add_where(parser)
    add(
        "--pareto",
        action="append",
        default=[],
        metavar="NAME",
        help="A measure of the Pareto front (default: every measure). May be repeated.",
    )
    add(
        "--correction",
        choices=("holm", "bh", "none"),
        default="holm",
        help="How the p-values of a measure are adjusted for the number of pairs (default: holm).",
    )
    add("--alpha", type=float, default=0.05, metavar="X", help="Two runs differ below this p (default: 0.05).")
    add("--latex", action="store_true", help="Print a table for LaTeX's booktabs instead of Markdown.")
    add_json(parser)
    add_allow_failures(parser)
    add_allow_stale(parser)


def _add_stages_command(parser: Parser) -> None:
    add = parser.add_argument
    add_collection(parser)
    add("stages", nargs="+", metavar="NAME=RUN", help="A stage and its run, in pipeline order; two or more.")
    add_measures(parser)
    add_where(parser)
    add("--by", metavar="TAG", help="Tell what joining adds also for the queries of each value of this tag.")
    add_unit(parser)
    add_json(parser)


def _add_thresholds(parser: Parser) -> None:
    add_collection(parser)
    parser.add_argument("run", metavar="RUN", help="The run, with scores: a TREC file, *.run.jsonl[.gz], JSON.")
    add_where(parser)
    add_json(parser)


COMMANDS = (
    Command(
        "evaluate",
        help="Measure a run on relevance judgments.",
        description=(
            "Measures a run on relevance judgments and prints, tab-separated, the query (all for the "
            "mean), the measure and the value. What is not counted is said on stderr."
        ),
        epilog="Example: pytest-retrieval-eval evaluate qrels.txt bm25.trec -m ndcg@10 -m recall@100",
        options=_add_evaluate,
        does="evaluating:evaluate_run",
    ),
    Command(
        "compare",
        help="Compare a run with a baseline, and decide gates.",
        description=(
            "Compares a run with a baseline on the same judgments: means, evidence, and the queries that "
            "got worse with the documents that moved. Without --gate it only reports, and the exit "
            "status is 0 whatever the difference."
        ),
        epilog=(
            "Example: pytest-retrieval-eval compare eval/handbook main cand.run.jsonl.gz "
            '--gate "recall@5 >= baseline - 0.01"'
        ),
        options=_add_compare,
        does="comparing:compare_runs",
    ),
    Command(
        "compare-all",
        help="Lay several runs beside one another: measures, which differ, and the Pareto front.",
        description=(
            "Measures several runs on the same judgments and prints a table of the measures with their intervals, the "
            "runs that cannot be told apart, every pair with its p-value, and the runs that no other dominates."
        ),
        epilog=(
            "Example: pytest-retrieval-eval compare-all eval/handbook bm25.run.jsonl.gz dense=runs/7.run.jsonl.gz "
            "-m ndcg@10 -m latency.p95"
        ),
        options=_add_compare_all,
        does="configurations:compare_runs",
    ),
    Command(
        "stages",
        help="Measure every stage of a pipeline on the same queries.",
        description=(
            "Prints each measure for every stage of a pipeline and for the best order of what the stage returned, what "
            "a stage that only orders recovers of that gap, and what a stage that joins others adds to the better one."
        ),
        epilog=(
            "Example: pytest-retrieval-eval stages eval/handbook bm25=bm25.trec dense=dense.trec fused=fused.trec "
            "reranked=reranked.run.jsonl.gz -m ndcg@10"
        ),
        options=_add_stages_command,
        does="staging:report_stages",
    ),
    Command(
        "thresholds",
        help="Say what returning nothing below each top score would bring.",
        description=(
            "Prints, tab-separated, for thresholds of the top score: the queries that would get nothing, how many of "
            "them have no answer (right) and have one (lost), and precision, recall and F1 of abstaining."
        ),
        epilog="Example: pytest-retrieval-eval thresholds eval/handbook dense.run.jsonl.gz",
        options=_add_thresholds,
        does="configurations:report_thresholds",
    ),
)
