"""What a command line may say. Each command imports what it needs once it is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pytest_retrieval_eval.cli.console import PROGRAM, Console
from pytest_retrieval_eval.errors import did_you_mean
from pytest_retrieval_eval.settings import CACHE, CACHE_MODES, JUDGMENTS

# Commands of two words, beside those of the first word alone.
_PAIRS = ("pool report", "judge again", "judge validate")
_RULES = ("mean", "noninferior", "significant", "each")


def parse(argv: Sequence[str], console: Console) -> argparse.Namespace:
    """The parsed arguments; ``execute(arguments, console)`` of them does the command.

    Raises SystemExit with status 2 after one sentence on stderr where they cannot be understood, and with 0
    after ``--help`` and ``--version``.
    """
    parser, commands = _program()
    for each in (parser, *commands.values(), *(inner for command in commands.values() for inner in command.inner)):
        each.console = console
    if " ".join(argv[:2]) in _PAIRS:
        argv = [" ".join(argv[:2]), *argv[2:]]
    first = next((word for word in argv if not word.startswith("-")), None)
    if first is None and not any(word in ("-h", "--help", "--version") for word in argv):
        parser.error(f"a command is missing: {', '.join(commands)}")
    if first is not None and first not in commands:
        parser.error(f"there is no command {first!r}; {did_you_mean(first, commands)}")
    return parser.parse_args(argv)


class _Parser(argparse.ArgumentParser):
    console: Console

    def __init__(self, **keywords: Any) -> None:
        self.inner: list[_Parser] = []  # those of the commands of a command
        # An abbreviation that works today is another option's tomorrow.
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        self.console.program = self.prog
        self.console.error(f"{message}; see {self.prog} --help")
        raise SystemExit(2)


class _Version(argparse.Action):
    """Prints the version when asked, and looks it up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="Print the version and leave.")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib import metadata

        try:
            version = metadata.version(PROGRAM)
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"{PROGRAM} {version}", file=sys.stdout)
        raise SystemExit(0)


def _program() -> tuple[_Parser, dict[str, _Parser]]:
    parser = _Parser(
        prog=PROGRAM,
        description="Runs, measures and compares retrieval outside a test run.",
        epilog=(
            "Exit status: 0 all is well; 1 a gate failed or was inconclusive, or the retriever failed on "
            "more queries than allowed; 2 nothing could be measured. Results go to stdout, notes and errors "
            "to stderr."
        ),
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    made = {
        "run": commands.add_parser(
            "run",
            help="Ask a retriever every query of a dataset and store what it returns.",
            description="Asks a retriever every query of a dataset and stores what it returns as a run.",
            epilog=(
                "Example: pytest-retrieval-eval run --dataset eval/handbook --retriever myapp.search:search "
                "-o cand.run.jsonl.gz"
            ),
        ),
        "evaluate": commands.add_parser(
            "evaluate",
            help="Measure a run on relevance judgments.",
            description=(
                "Measures a run on relevance judgments and prints, tab-separated, the query (all for the "
                "mean), the measure and the value. What is not counted is said on stderr."
            ),
            epilog="Example: pytest-retrieval-eval evaluate qrels.txt bm25.trec -m ndcg@10 -m recall@100",
        ),
        "compare": commands.add_parser(
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
        ),
        "cache": commands.add_parser(
            "cache",
            help="Look after a cache of readings: stats, gc, verify, selfcheck, push, pull.",
            description="Looks after a cache of what language models have read.",
            epilog="Example: pytest-retrieval-eval cache pull s3://bucket/readings",
        ),
        "spans": commands.add_parser(
            "spans",
            help="Check gold spans against the corpus, and move those whose source was edited.",
            description=(
                "Holds each gold span of a dataset against its corpus: kept, moved (its passage stands elsewhere now), "
                "ambiguous (in several places), lost, or unchecked (neither text nor hash). `check` only says so; "
                "`reanchor` also puts the moved ones into the file of spans."
            ),
            epilog=(
                "Exit status: 0 where every passage was found (check: where every span was kept), 1 where not, 2 where "
                "nothing could be looked at. Example: pytest-retrieval-eval spans reanchor eval/handbook --old-corpus "
                "corpus.before.jsonl"
            ),
        ),
        "correlate": commands.add_parser(
            "correlate",
            help="Hold what labels say of a list against what the reader answers from it.",
            description=(
                "For every query: a measure of the retrieved list on labels, against the score of the reader's answer "
                "from the first k documents of that list. Prints rank correlations with their intervals and ceilings, "
                "for each source of labels, and with several runs how the runs rank."
            ),
            epilog=(
                "Example: pytest-retrieval-eval correlate eval/handbook bm25.run.jsonl dense.run.jsonl "
                "--reader reader.yaml -k 1,5 --plot correlation.svg"
            ),
        ),
        "efficiency": commands.add_parser(
            "efficiency",
            help="Time what labels from a reader cost, beside its answer from all documents.",
            description=(
                "Times a reader at each level: one document at a time, the documents of a query in one batch, the "
                "answer end to end, and closed book: seconds, tokens and peak memory. No cache is used."
            ),
            epilog="Example: pytest-retrieval-eval efficiency eval/handbook bm25.run.jsonl --reader reader.yaml -k 5",
        ),
    }
    made["stages"] = commands.add_parser(
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
    )
    _add_stages_command(made["stages"])
    made["questions"] = commands.add_parser(
        "questions",
        help="Have a reader write questions for passages that nobody asks about yet.",
        description=(
            "Asks a reader for questions about each passage of a collection, with that passage as their gold, and says "
            "how much of its passage each one repeats. Those that repeat too much are asked for in other words, or "
            "dropped. What made no question is printed, tab-separated: chunk, outcome, detail."
        ),
        epilog=(
            "Exit status: 0 where every passage led to a question or to one that was dropped, 1 where not, 2 where "
            "nothing was written. Example: pytest-retrieval-eval questions eval/handbook --reader writer.yaml -o "
            "eval/synthetic --sample 100"
        ),
    )
    _add_questions(made["questions"])
    made["pool"] = commands.add_parser(
        "pool",
        help="Say what judging the documents of some runs takes.",
        description=(
            "Prints, tab-separated, for each run: its pairs in the first ranks, those without a judgment, those of "
            "them that no run before it brings, those that no other run brings, and judged@k."
        ),
        epilog="Example: pytest-retrieval-eval pool eval/handbook bm25.run.jsonl.gz dense.run.jsonl.gz",
    )
    made["judge"] = commands.add_parser(
        "judge",
        help="Have a judge grade the pairs that have no judgment yet.",
        description=(
            "Asks a judge for the pairs of query and document that have no judgment yet, and keeps each grade when it "
            "comes. Stopped at any time, the same command goes on where it was. Pairs that got no grade are printed, "
            "tab-separated, with what stood in the way."
        ),
        epilog=(
            "Exit status: 0 where every pair has a grade, 1 where not, 2 where nothing could be asked. Example: "
            "pytest-retrieval-eval judge pairs.jsonl --judge judge.yaml --max-calls 500"
        ),
    )
    made["judgments"] = commands.add_parser(
        "judgments",
        help="Look after a folder of judgments: check, compact, show, worksheet, import, export.",
        description="Looks after a folder of judgments.",
        epilog="Example: pytest-retrieval-eval judgments import sheet.csv --source ann --as heldout",
    )
    _add_kept(made["judgments"])
    made["compare-all"] = commands.add_parser(
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
    )
    made["thresholds"] = commands.add_parser(
        "thresholds",
        help="Say what returning nothing below each top score would bring.",
        description=(
            "Prints, tab-separated, for thresholds of the top score: the queries that would get nothing, how many of "
            "them have no answer (right) and have one (lost), and precision, recall and F1 of abstaining."
        ),
        epilog="Example: pytest-retrieval-eval thresholds eval/handbook dense.run.jsonl.gz",
    )
    _add_compare_all(made["compare-all"])
    _add_thresholds(made["thresholds"])
    _add_pool(made["pool"])
    _add_judge(made["judge"])
    made["pool report"] = commands.add_parser(
        "pool report",
        help="Report on a judged pool: what it saves, how the systems stand, and how far that may be believed.",
        description=(
            "Reports on a judged pool: what it saves, how the systems stand on it, what becomes of them without a "
            "family's own documents, by another judge and by people, and what it costs."
        ),
        epilog=(
            "Exit status: 0; 1 where --before is given and the ranking did not stay; 2 where nothing could be "
            "measured. Example: pytest-retrieval-eval pool report qrels.txt runs/*.trec --tags systems.json --html "
            "report.html"
        ),
    )
    made["judge again"] = commands.add_parser(
        "judge again",
        help="Have a judge grade a sample of its pairs a second time, and say how far it agrees with itself.",
        description=(
            "Draws a sample of the pairs that a judge has graded, asks it for them once more, keeps the second grades "
            "beside the first ones, which alone count, and says how far the two agree."
        ),
        epilog=(
            "Exit status: 0 where each pair of the sample has a second grade, 1 where not, 2 where nothing could be "
            "asked. Example: pytest-retrieval-eval judge again eval/handbook bm25.run.jsonl.gz --sample 200"
        ),
    )
    made["judge validate"] = commands.add_parser(
        "judge validate",
        help="Hold a judge's grades against held-out labels of people.",
        description=(
            "Holds a judge's grades against held-out labels of people: TPR, TNR and Cohen's kappa with their intervals."
        ),
        epilog=(
            "Exit status: 0 where the judge may be believed, 1 where not or where the labels are too few to say, 2 "
            "where nothing could be measured. Example: pytest-retrieval-eval judge validate --mode lower"
        ),
    )
    _add_pool_report(made["pool report"])
    _add_judge_again(made["judge again"])
    _add_judge_validate(made["judge validate"])
    _add_correlate(made["correlate"])
    _add_efficiency(made["efficiency"])
    _add_run(made["run"])
    _add_spans(made["spans"])
    _add_evaluate(made["evaluate"])
    _add_compare(made["compare"])
    _add_cache(made["cache"])
    return parser, made


def _add_run(parser: _Parser) -> None:
    add = parser.add_argument
    add("--dataset", required=True, metavar="PATH", help="The dataset: a folder, or one file of JSON lines.")
    add(
        "--retriever",
        required=True,
        metavar="MODULE:NAME",
        help="What to ask, as an import string such as myapp.search:search: a callable from query text to "
        "hits, or an object of a known framework. The current folder is searched first.",
    )
    add(
        "--factory",
        action="store_true",
        help="Call MODULE:NAME without arguments first; what it returns is the retriever.",
    )
    add("--depth", type=_positive, default=100, metavar="N", help="Keep N hits of each query (default: 100).")
    add(
        "--batch-size",
        type=_positive,
        metavar="N",
        help="Give the retriever lists of N texts; it returns a list of hits for each.",
    )
    add(
        "--concurrency",
        type=_positive,
        default=8,
        metavar="N",
        help="Ask an asynchronous retriever N queries at a time (default: 8).",
    )
    add(
        "--warmup",
        type=_count,
        default=0,
        metavar="N",
        help="Ask N queries before times are taken, and drop what comes of it (default: 0).",
    )
    add(
        "--repeat",
        type=_positive,
        default=1,
        metavar="N",
        help="Ask every query N times and keep the median of its times (default: 1).",
    )
    add(
        "--split",
        metavar="NAME",
        help="Ask only the queries that qrels/NAME.tsv judges, and those marked unanswerable (default: every query).",
    )
    add(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="Where to write the run: *.run.jsonl or *.run.jsonl.gz with scores, times, errors and "
        "provenance, or *.trec.",
    )
    add(
        "--allow-failures",
        type=_count,
        default=0,
        metavar="N",
        help="Exit with 0 although the retriever failed on up to N queries (default: 0).",
    )
    parser.set_defaults(execute=_run)


def _add_spans(parser: _Parser) -> None:
    add = parser.add_argument
    add("action", choices=("check", "reanchor"), metavar="check|reanchor", help="Only look, or also write.")
    add("dataset", metavar="DATASET", help="The dataset: a folder with gold spans (spans.jsonl) and corpus.jsonl.")
    add(
        "--old-corpus",
        metavar="FILE",
        help="The corpus that the offsets were made for: what was edited decides between places that read the same.",
    )
    _add_json(parser)
    parser.set_defaults(execute=_spans)


def _add_evaluate(parser: _Parser) -> None:
    add = parser.add_argument
    _add_collection(parser)
    add("run", metavar="RUN", help="The run: a TREC file, *.run.jsonl[.gz], JSON or JSON lines.")
    _add_measures(parser)
    _add_where(parser)
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
    _add_unit(parser)
    _add_stages(parser)
    _add_labels(parser)
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
    _add_failures(parser)
    _add_json(parser)
    parser.set_defaults(execute=_evaluate)


def _add_compare(parser: _Parser) -> None:
    add = parser.add_argument
    _add_collection(parser)
    add(
        "baseline",
        metavar="BASELINE",
        help="The run to compare with: a file, or the name of the dataset's baseline.",
    )
    add("candidate", metavar="CANDIDATE", help="The run under test.")
    _add_measures(parser)
    add(
        "--gate",
        action="append",
        default=[],
        metavar="GATE",
        help='Decide a gate, such as "recall@5 >= baseline - 0.01" or "ndcg@10 >= 0.8". May be repeated.',
    )
    _add_where(parser)
    add("--rule", choices=_RULES, help="How gates against a run decide (default: mean).")
    add("--alpha", type=float, metavar="X", help="The chance of a false alarm (default: 0.05).")
    add("--sided", choices=("one", "two"), help="Which p is printed and decides (default: as the rule asks).")
    add("--allow", type=_count, metavar="N", help="With --rule each, how many queries may lose (default: 0).")
    add("--by", metavar="TAG", help="Decide each gate for the queries of each value of this tag.")
    add("--min-n", type=_count, metavar="N", help="With --by, the least queries of a slice that decides (default: 10).")
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
    _add_unit(parser)
    _add_stages(parser)
    add(
        "--stage",
        metavar="NAME",
        help="The candidate is the run of this stage, and a BASELINE that is a name the baseline of the same stage.",
    )
    _add_labels(parser)
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
    _add_failures(parser)
    add("-v", "--verbose", action="count", default=0, help="Show more queries; -vv shows all of them.")
    _add_json(parser)
    parser.set_defaults(execute=_compare)


def _add_stages_command(parser: _Parser) -> None:
    add = parser.add_argument
    _add_collection(parser)
    add("stages", nargs="+", metavar="NAME=RUN", help="A stage and its run, in pipeline order; two or more.")
    _add_measures(parser)
    _add_where(parser)
    add("--by", metavar="TAG", help="Tell what joining adds also for the queries of each value of this tag.")
    _add_unit(parser)
    _add_json(parser)
    parser.set_defaults(execute=_stages)


def _add_stages(parser: _Parser) -> None:
    parser.add_argument(
        "--stages",
        action="append",
        default=[],
        metavar="NAME=RUN",
        help="A stage of the pipeline and its run, for measures such as lift(ndcg@10, from=fused); repeated, in "
        "pipeline order.",
    )


def _add_correlate(parser: _Parser) -> None:
    add = parser.add_argument
    _add_study(parser)
    add("run", nargs="+", metavar="RUN", help="The runs; with several, their ranking is correlated too.")
    add(
        "-k",
        default="5",
        metavar="K,…",
        help="The reader answers from so many documents, and measures are cut there; several with commas (default: 5).",
    )
    add(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="NAME",
        help="A measure without its cut-off, such as ndcg(gain=exp); repeated, or several with blanks or commas.",
    )
    add(
        "--labels",
        action="append",
        metavar="SOURCE",
        help="A source of labels, such as erag, qrels or contains(kilt); repeated, each has its own rows.",
    )
    add(
        "--grades",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="Grades in a file of judgments, such as a judge's, as one more source. May be repeated.",
    )
    add("--answer-metric", default="em", metavar="NAME", help="em (default), f1, rouge_l or accuracy.")
    add(
        "--normalise",
        choices=("pool", "list"),
        default="pool",
        help="Whether what is relevant at all is that of all runs (default: pool) or of each list alone.",
    )
    add("--resamples", type=_positive, default=1000, metavar="N", help="Bootstrap resamples (default: 1000).")
    add(
        "--allow-failures",
        type=_count,
        default=0,
        metavar="N",
        help="Leave out up to N queries of which a reader or retriever failed (default: 0, an error).",
    )
    add("--cache", default=CACHE, metavar="DIR", help=f"The folder in which readings are kept (default: {CACHE}).")
    add(
        "--cache-mode",
        choices=CACHE_MODES,
        default="rw",
        help="Look readings up and keep them (rw), only look up (ro), read all anew (refresh), or neither (off).",
    )
    add("--plot", metavar="FILE.svg", help="Also draw the correlations, their intervals and ceilings.")
    parser.set_defaults(execute=_correlate)


def _add_questions(parser: _Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="A folder with corpus.jsonl, and perhaps a chunk table and queries.")
    add(
        "--reader",
        required=True,
        metavar="WHAT",
        help="Who writes: a YAML or JSON file of settings such as kind: server, or MODULE:NAME.",
    )
    add(
        "-o",
        "--output",
        required=True,
        metavar="DIR",
        help="The folder for queries.jsonl, spans.jsonl and questions.json. What others wrote there is an error.",
    )
    add(
        "--chunks",
        metavar="FILE",
        help="The passages as a chunk table (default: that of the dataset, else every document is one passage).",
    )
    add("--sample", type=_positive, metavar="N", help="Ask about N passages only (default: all).")
    add("--seed", type=_count, default=0, metavar="N", help="Which passages --sample draws (default: 0).")
    add("--number", type=_positive, default=1, metavar="N", help="Ask for N questions of each passage (default: 1).")
    add(
        "--max-overlap",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="The largest share of a question's words that its passage may have too (default: 0.5).",
    )
    add(
        "--rewrites",
        type=_count,
        default=2,
        metavar="N",
        help="Ask N times for other words before a question above --max-overlap is dropped; 0 drops it (default: 2).",
    )
    add("--prompt", metavar="FILE", help="A template of your own: {passage}, {fence}, and perhaps {questions}.")
    add("--cache", default=CACHE, metavar="DIR", help=f"The folder in which replies are kept (default: {CACHE}).")
    add(
        "--cache-mode",
        choices=CACHE_MODES,
        default="rw",
        help="Look replies up and keep them (rw), only look up (ro), ask all anew (refresh), or neither (off).",
    )
    _add_json(parser)
    parser.set_defaults(execute=_questions)


def _add_efficiency(parser: _Parser) -> None:
    add = parser.add_argument
    _add_study(parser)
    add("run", metavar="RUN", help="The run whose documents are read.")
    add("-k", type=_positive, default=5, metavar="K", help="Documents of each query (default: 5).")
    add("--queries", type=_positive, default=20, metavar="N", help="Read those of N queries (default: 20).")
    add(
        "--batch",
        type=_positive,
        action="append",
        default=[],
        metavar="N",
        help="Also time N prompts a batch, of several queries. May be repeated.",
    )
    add("--repeat", type=_positive, default=1, metavar="N", help="Time each row N times; the median (default: 1).")
    parser.set_defaults(execute=_efficiency)


def _add_study(parser: _Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="The dataset: a folder with answers.jsonl and the texts of documents.")
    add(
        "--reader",
        action="append",
        required=True,
        metavar="[NAME=]FILE|MODULE:NAME",
        help="Who reads: a YAML or JSON file with a reader's settings, or an import string of it or of what makes it. "
        "May be repeated.",
    )
    add("--split", metavar="NAME", help="Which qrels/NAME.tsv of a dataset folder (default: test).")
    _add_where(parser)
    _add_json(parser)


def _add_compare_all(parser: _Parser) -> None:
    add = parser.add_argument
    _add_collection(parser)
    add("runs", nargs="+", metavar="[NAME=]RUN", help="The runs, two or more; their names are those of the files.")
    _add_measures(parser)
    _add_where(parser)
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
    add(
        "--format",
        choices=("markdown", "latex", "json"),
        default="markdown",
        help="What to print (default: markdown).",
    )
    _add_failures(parser)
    parser.set_defaults(execute=_compare_all)


def _add_thresholds(parser: _Parser) -> None:
    _add_collection(parser)
    parser.add_argument("run", metavar="RUN", help="The run, with scores: a TREC file, *.run.jsonl[.gz], JSON.")
    _add_where(parser)
    _add_json(parser)
    parser.set_defaults(execute=_thresholds)


def _add_cache(parser: _Parser) -> None:
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT", parser_class=_Parser)

    def command(name: str, help: str) -> _Parser:
        made: _Parser = commands.add_parser(name, help=help, description=help)
        made.add_argument(
            "--cache",
            default=CACHE,
            metavar="DIR",
            help=f"The folder of the cache, as in the ini value retrieval_cache (default: {CACHE}).",
        )
        made.set_defaults(execute=_cache)
        parser.inner.append(made)
        return made

    _add_json(command("stats", "Print, tab-separated, each reader's digest, number of readings and identity."))
    add = command("gc", "Delete readings, and give their room back.").add_argument
    add("--unused-for", type=_count, metavar="DAYS", help="Those that were not looked up for so many days.")
    add("--reader", metavar="DIGEST", help="Those of the reader whose digest begins so; with --unused-for, of both.")
    add = command("verify", "Check that each reading is what was stored; status 1 where one is not.").add_argument
    add("--delete", action="store_true", help="Delete those that are damaged; they are read again when needed.")
    add = command(
        "selfcheck", "Read a sample again, one item at a time, and print the texts that are other than those kept."
    ).add_argument
    add(
        "--reader",
        required=True,
        metavar="FILE|MODULE:NAME",
        help="The reader: a YAML or JSON file with its settings, or an import string of it or of what makes it.",
    )
    add("--of", metavar="DIGEST", help="Check the readings of the reader whose digest begins so (default: the same).")
    add("--sample", type=_positive, default=100, metavar="N", help="Read N readings again (default: 100).")
    for name, help in (
        ("push", "Write the readings that a shared place does not have yet."),
        ("pull", "Take in the readings of a shared place; what is here already stays."),
    ):
        command(name, help).add_argument("place", metavar="URL", help="A folder, or a URL that fsspec knows.")


def _add_kept(parser: _Parser) -> None:
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT", parser_class=_Parser)

    def command(name: str, help: str, *, use: bool = True) -> _Parser:
        made: _Parser = commands.add_parser(name, help=help, description=help)
        _add_judgments(made, judge=False, contradictions=use)
        if use:
            _add_use(made)
        made.set_defaults(execute=_kept)
        parser.inner.append(made)
        return made

    def texts(made: _Parser, needed: bool = False) -> None:
        made.add_argument("--dataset", required=needed, metavar="DATASET", help="The dataset that has the texts.")
        made.add_argument("--split", metavar="NAME", help="Which qrels/NAME.tsv of a dataset folder (default: test).")

    command("check", "Say what is wrong with a folder of judgments; status 1 where anything is.", use=False)
    command("compact", "Put journals into the files, and tidy files that were merged.", use=False)
    made = command("show", "Print, tab-separated, each judge and source of labels, with counts and grades.")
    made.add_argument("--query", metavar="ID", help="Print every grade of this query instead.")
    made = command("worksheet", "Write a sample of graded pairs as CSV, without the grades, for people to fill.")
    made.add_argument("--dataset", required=True, metavar="DATASET", help="The dataset that has the texts.")
    made.add_argument("--run", action="append", required=True, metavar="RUN", help="A run of the pool; repeatable.")
    _add_depth(made)
    add = made.add_argument
    add("-o", "--output", required=True, metavar="FILE", help="Where to write the worksheet.")
    add("--sample", type=_positive, default=100, metavar="N", help="How many pairs (default: 100).")
    add(
        "--min-not-relevant",
        type=_count,
        default=50,
        metavar="N",
        help="At least so many of them are not relevant to the judge (default: 50).",
    )
    add("--rel", type=float, default=1.0, metavar="G", help="The grade from which on it is relevant (default: 1).")
    add("--seed", type=_count, default=0, metavar="N", help="Another number draws another sample (default: 0).")
    made = command("import", "Take in labels of people: a worksheet, a table with grades, or qrels.", use=False)
    add = made.add_argument
    add("file", metavar="FILE", help="CSV or TSV with query_id, doc_id and grade, or qrels.")
    add("--source", required=True, metavar="NAME", help="The name of the file that keeps them, human/NAME.jsonl.")
    add("--by", metavar="NAME", help="Who gave them (default: the source).")
    add(
        "--as",
        dest="as_split",
        choices=("dev", "heldout"),
        help="dev: to write a judge's prompt with; heldout: to validate a judge with.",
    )
    texts(made)
    made = command("export", "Write the grades that count: *.csv, or TREC qrels for the texts of a dataset.")
    made.add_argument("file", metavar="FILE", help="Where to write them.")
    texts(made)


def _add_pool(parser: _Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="The dataset that has the texts of queries and documents.")
    add("run", nargs="+", metavar="RUN", help="A run whose documents belong to the pool.")
    _add_depth(parser)
    _add_judgments(parser)
    _add_use(parser)
    add(
        "--to-judge",
        metavar="PATH",
        help="Write the pairs without a judgment: *.jsonl or *.tsv.",
    )
    _add_json(parser)
    parser.set_defaults(execute=_pool)


def _add_judge(parser: _Parser) -> None:
    add = parser.add_argument
    add("pairs", nargs="?", metavar="PAIRS", help="A file of pairs to judge, as --retrieval-to-judge writes it.")
    add(
        "--dataset",
        metavar="DATASET",
        help="The dataset of the runs, or the texts of the pairs, where the file has none.",
    )
    add(
        "--run",
        action="append",
        default=[],
        metavar="RUN",
        help="Instead of PAIRS, a run whose first documents are judged. May be repeated.",
    )
    _add_depth(parser)
    _add_judgments(parser)
    for name, what, kind in (("calls", "calls", _count), ("tokens", "tokens", _count), ("cost", "this price", _amount)):
        add(f"--max-{name}", type=kind, metavar="N", help=f"Stop before more than {what} are spent.")
    add(
        "--allow-floating",
        action="store_true",
        help="Take a judge whose model may change behind its name; every gate on its grades says so.",
    )
    parser.set_defaults(execute=_judge)


def _add_depth(parser: _Parser) -> None:
    parser.add_argument(
        "--depth", type=_positive, metavar="N", help="Pool the first N ranks of each run (default: 20)."
    )
    parser.add_argument("--split", metavar="NAME", help="Which qrels/NAME.tsv of a dataset folder (default: test).")


def _add_judgments(parser: _Parser, *, judge: bool = True, contradictions: bool = True) -> None:
    parser.add_argument(
        "--judgments",
        default=JUDGMENTS,
        metavar="DIR",
        help=f"The folder of judgments (default: {JUDGMENTS}).",
    )
    if judge:
        parser.add_argument(
            "--judge",
            metavar="FILE|MODULE:NAME",
            help="The judge: a YAML or JSON file with its settings, or an import string of it or of what makes it "
            "(default: judge.yaml in the folder of judgments).",
        )
    if not contradictions:
        return
    parser.add_argument(
        "--contradictions",
        choices=("refuse", "first", "max", "median"),
        default="refuse",
        help="What becomes of different grades of one pair (default: refuse).",
    )


def _add_use(parser: _Parser) -> None:
    parser.add_argument(
        "--use",
        action="append",
        metavar="JUDGE",
        help="Whose grades count, a folder of judgments/ or the beginning of a digest; repeated, the first that has "
        "one (default: the only judge).",
    )


def _add_pool_report(parser: _Parser) -> None:
    add = parser.add_argument
    add("qrels", metavar="QRELS", help="The judgments of the pool: a file of them, or a dataset.")
    add("run", nargs="+", metavar="RUN", help="A run of a system.")
    parser.add_argument("--split", metavar="NAME", help="Which qrels/NAME.tsv of a dataset folder (default: test).")
    add("-m", "--measure", default="ndcg@10", metavar="NAME", help="What systems are ranked by (default: ndcg@10).")
    add("--depth", type=_positive, default=20, metavar="N", help="How deep the pool goes (default: 20).")
    add("--rel", type=float, default=1.0, metavar="G", help="From which grade on a document is relevant (default: 1).")
    add(
        "--tags",
        metavar="FILE",
        help="A JSON file with the tags of each run by its name; the tag family is left out family by family, each "
        "other one is a factor. Without it, what the runs' own headers have as tags.",
    )
    add(
        "--judgments",
        metavar="DIR",
        help="Take grades of this folder for the texts of the runs; QRELS is then the dataset that has the texts.",
    )
    add("--use", action="append", metavar="JUDGE", help="With --judgments, whose grades count (default: the only one).")
    add("--second", metavar="FILE|JUDGE", help="The grades of another judge, a file or with --judgments its folder.")
    add("--people", metavar="FILE", help="The labels of people.")
    add("--again", metavar="FILE", help="The grades of the same judge for a sample, given a second time.")
    add("--before", metavar="FILE", help="Earlier judgments: whether the ranking stayed as it was.")
    add("--min-tau", type=float, metavar="X", help="With --before, the least Kendall's tau that holds (default: 0.9).")
    add("--price", type=float, metavar="X", help="What one judgment costs.")
    add("--html", metavar="PATH", help="Also write the report as one HTML page.")
    _add_json(parser)
    parser.set_defaults(execute=_pool_report)


def _add_judge_again(parser: _Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="The dataset that has the texts of queries and documents.")
    add("run", nargs="+", metavar="RUN", help="A run whose documents belong to the pool.")
    add("--sample", type=_positive, default=100, metavar="N", help="How many pairs to ask for again (default: 100).")
    add("--seed", type=_count, default=0, metavar="N", help="Which sample: the same for the same number (default: 0).")
    _add_depth(parser)
    _add_judgments(parser)
    _add_json(parser)
    parser.set_defaults(execute=_judge_again)


def _add_judge_validate(parser: _Parser) -> None:
    add = parser.add_argument
    add("--judgments", metavar="DIR", help=f"The folder of judgments (default: {JUDGMENTS}).")
    add("--use", metavar="JUDGE", help="The judge: a folder of the judgments, or the beginning of its digest.")
    add("--human", metavar="FILE", help="Instead, a file of the labels of people; with --grades.")
    add("--grades", metavar="FILE", help="The judge's grades, with --human.")
    add("--rel", type=float, metavar="G", help="From which grade on a document is relevant (default: 1).")
    for name, least in (("tpr", "0.85"), ("tnr", "0.85"), ("kappa", "0.6")):
        add(f"--{name}", type=float, metavar="X", help=f"The least {name} (default: {least}).")
    add(
        "--mode",
        choices=("point", "lower"),
        help="Hold the values against the thresholds, or the lower ends of their intervals (default: point).",
    )
    add("--min-pairs", type=_positive, metavar="N", help="The least pairs that people labelled (default: 100).")
    add("--min-not-relevant", type=_positive, metavar="N", help="The least that are not relevant (default: 30).")
    add("--allow-missing", type=_count, metavar="N", help="Leave out up to N pairs without a grade (default: 0).")
    add("--correct", metavar="RUN", help="Also print P@k of a run, and corrected by the labels of people; with -k.")
    add("-k", type=_positive, metavar="N", help="The k of --correct (default: 10).")
    _add_json(parser)
    parser.set_defaults(execute=_judge_validate)


def _add_collection(parser: _Parser) -> None:
    parser.add_argument("qrels", metavar="QRELS", help="Relevance judgments: a file of them, or a dataset.")
    parser.add_argument("--split", metavar="NAME", help="Which qrels/NAME.tsv of a dataset folder (default: test).")
    parser.add_argument(
        "--queries",
        metavar="FILE",
        help="Texts and tags of the queries, where QRELS is a file of judgments alone.",
    )


def _add_measures(parser: _Parser) -> None:
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="NAME",
        help="A measure, such as ndcg@10 or recall(rel=2)@100; trec_eval's names are read too. Repeat it, or "
        "separate several with blanks or commas.",
    )
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="Import this module for the measures that it defines; the current folder is searched first. May be "
        "repeated.",
    )


def _add_where(parser: _Parser) -> None:
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="TAG=VALUE",
        help="Count only queries with this tag value, read as JSON where it is JSON. Different tags must all "
        "hold, of one tag's values any.",
    )


def _add_unit(parser: _Parser) -> None:
    parser.add_argument(
        "--unit",
        choices=("document",),
        help="The run ranks chunks and the judgments are on documents: each document counts where its best chunk "
        "stands.",
    )


def _add_labels(parser: _Parser) -> None:
    _add_judgments(parser, judge=False)
    _add_use(parser)
    parser.add_argument(
        "--labels",
        action="append",
        metavar="SOURCE",
        help="Where relevance labels come from (default: qrels), such as contains(kilt): a retrieved document is "
        "relevant that contains a gold answer; or erag: as far as --reader answers right from it. Repeated, the first "
        "that has a grade wins.",
    )
    parser.add_argument(
        "--reader",
        metavar="FILE|MODULE:NAME",
        help="Who reads for --labels erag: a YAML or JSON file with a reader's settings, or an import string of it or "
        "of what makes it.",
    )
    parser.add_argument(
        "--answer-metric",
        metavar="NAME",
        help="How the reader's answers are held against the gold answers: em (default), f1, rouge_l or accuracy.",
    )
    parser.add_argument(
        "--cache",
        default=CACHE,
        metavar="DIR",
        help=f"The folder in which readings are kept (default: {CACHE}).",
    )
    parser.add_argument(
        "--cache-mode",
        choices=CACHE_MODES,
        default="rw",
        help="Look readings up and keep them (rw), only look up (ro), read all anew (refresh), or neither (off).",
    )


def _add_failures(parser: _Parser) -> None:
    parser.add_argument(
        "--allow-failures",
        type=_count,
        default=0,
        metavar="N",
        help="Count a query 0 where the retriever failed, for up to N queries of a run (default: 0, an error).",
    )
    parser.add_argument(
        "--allow-stale",
        type=_count,
        default=0,
        metavar="N",
        help="Leave up to N gold spans out whose passage is lost in the edited source, or stands in several places "
        "there (default: 0, an error).",
    )


def _add_json(parser: _Parser) -> None:
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of text.")


def _positive(text: str) -> int:
    number = _count(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return number


def _amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount such as 2.50")
    return number


def _share(text: str) -> float:
    number = _amount(text)
    if number > 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share from 0 to 1")
    return number


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number such as 10")
    return int(text)


def _run(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.retrieving import run_retriever

    return run_retriever(arguments, console)


def _spans(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.anchoring import anchor_spans

    return anchor_spans(arguments, console)


def _evaluate(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.evaluating import evaluate_run
    from pytest_retrieval_eval.measures.extending import plugged

    with plugged(arguments.plugin):
        return evaluate_run(arguments, console)


def _stages(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.staging import report_stages
    from pytest_retrieval_eval.measures.extending import plugged

    with plugged(arguments.plugin):
        return report_stages(arguments, console)


def _compare(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.comparing import compare_runs
    from pytest_retrieval_eval.measures.extending import plugged

    with plugged(arguments.plugin):
        return compare_runs(arguments, console)


def _kept(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli import judgments

    console.program = f"{PROGRAM} judgments {arguments.what}"
    name = "import_" if arguments.what == "import" else arguments.what
    done: int = getattr(judgments, name)(arguments, console)
    return done


def _compare_all(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.configurations import compare_runs
    from pytest_retrieval_eval.measures.extending import plugged

    with plugged(arguments.plugin):
        return compare_runs(arguments, console)


def _thresholds(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.configurations import report_thresholds

    return report_thresholds(arguments, console)


def _pool(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.judging import plan

    return plan(arguments, console)


def _judge(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.judging import judge

    return judge(arguments, console)


def _pool_report(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.studying import report

    return report(arguments, console)


def _judge_again(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.studying import again

    return again(arguments, console)


def _judge_validate(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.studying import validate

    return validate(arguments, console)


def _cache(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli import caching

    console.program = f"{PROGRAM} cache {arguments.what}"
    done: int = getattr(caching, arguments.what)(arguments, console)
    return done


def _correlate(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.correlating import correlate_labels

    return correlate_labels(arguments, console)


def _questions(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.questioning import ask_questions

    return ask_questions(arguments, console)


def _efficiency(arguments: argparse.Namespace, console: Console) -> int:
    from pytest_retrieval_eval.cli.correlating import report_efficiency

    return report_efficiency(arguments, console)
