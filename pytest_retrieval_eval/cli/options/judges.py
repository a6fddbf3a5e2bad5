"""Commands of a judged pool: the pool, its judges, their judgments."""

from __future__ import annotations

from pytest_retrieval_eval.cli.options.command import Command, Parser
from pytest_retrieval_eval.cli.options.shared import (
    add_cache,
    add_depth,
    add_json,
    add_judged_by,
    add_judgments,
    add_plugin,
    add_split,
    add_where,
    amount,
    count,
    positive,
)
from pytest_retrieval_eval.settings import JUDGMENTS

_PLUGGED = "kinds of judges"


def _add_pool(parser: Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="The dataset that has the texts of queries and documents.")
    add("run", nargs="+", metavar="RUN", help="A run whose documents belong to the pool.")
    add_depth(parser)
    add_judgments(parser)
    add_judged_by(parser)
    add(
        "--to-judge",
        metavar="PATH",
        help="Write the pairs without a judgment: *.jsonl or *.tsv.",
    )
    add_plugin(parser, _PLUGGED)
    add_json(parser)


def _add_judge(parser: Parser) -> None:
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
    add_depth(parser)
    add_judgments(parser)
    for name, what, kind in (("calls", "calls", count), ("tokens", "tokens", count), ("cost", "this price", amount)):
        add(f"--budget-{name}", type=kind, metavar="N", help=f"Stop before more than {what} are spent.")
    _add_replies(parser)
    add(
        "--allow-floating",
        action="store_true",
        help="Take a judge whose model may change behind its name; every gate on its grades says so.",
    )


def _add_replies(parser: Parser) -> None:
    add_cache(parser, "replies of a judge in a file of settings")
    parser.set_defaults(cache=None, cache_mode=None)  # what is given for a judge in Python is refused
    add_plugin(parser, _PLUGGED)


def _add_judge_again(parser: Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="The dataset that has the texts of queries and documents.")
    add("run", nargs="+", metavar="RUN", help="A run whose documents belong to the pool.")
    add("--sample", type=positive, default=100, metavar="N", help="How many pairs to ask for again (default: 100).")
    add("--seed", type=count, default=0, metavar="N", help="Which sample: the same for the same number (default: 0).")
    add_depth(parser)
    add_judgments(parser)
    _add_replies(parser)
    add_json(parser)


def _add_judge_validate(parser: Parser) -> None:
    add = parser.add_argument
    add("--judgments", metavar="DIR", help=f"The folder of judgments (default: {JUDGMENTS}).")
    add("--name", metavar="JUDGE", help="The judge: a folder of the judgments, or the beginning of its digest.")
    add("--human", metavar="FILE", help="Instead, a file of the labels of people; with --grades.")
    add("--grades", metavar="FILE", help="The judge's grades, with --human.")
    add("--dataset", metavar="DATASET", help="The dataset whose queries have the tags of --where.")
    add_where(parser)
    add("--rel", type=float, metavar="G", help="From which grade on a document is relevant (default: 1).")
    for name, least in (("tpr", "0.85"), ("tnr", "0.85"), ("kappa", "0.6")):
        add(f"--{name}", type=float, metavar="X", help=f"The least {name} (default: {least}).")
    add(
        "--mode",
        choices=("point", "lower"),
        help="Hold the values against the thresholds, or the lower ends of their intervals (default: point).",
    )
    add("--min-pairs", type=positive, metavar="N", help="The least pairs that people labelled (default: 100).")
    add("--min-not-relevant", type=positive, metavar="N", help="The least that are not relevant (default: 30).")
    add("--allow-missing", type=count, metavar="N", help="Leave out up to N pairs without a grade (default: 0).")
    add("--correct", metavar="RUN", help="Also print P@k of a run, and corrected by the labels of people; with -k.")
    add("-k", type=positive, metavar="K", help="The k of --correct (default: 10).")
    add_json(parser)


def _add_pool_report(parser: Parser) -> None:
    add = parser.add_argument
    add("qrels", metavar="QRELS", help="The judgments of the pool: a file of them, or a dataset.")
    add("run", nargs="+", metavar="[NAME=]RUN", help="The run of a system; its name is that of the file.")
    add_split(parser)
    add("-m", "--measure", default="ndcg@10", metavar="NAME", help="What systems are ranked by (default: ndcg@10).")
    add("--depth", type=positive, default=20, metavar="N", help="How deep the pool goes (default: 20).")
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
    add(
        "--judged-by",
        action="append",
        metavar="JUDGE",
        help="With --judgments, whose grades count (default: the only one).",
    )
    add("--second", metavar="FILE|JUDGE", help="The grades of another judge, a file or with --judgments its folder.")
    add("--human", metavar="FILE", help="The labels of people.")
    add("--repeated", metavar="FILE", help="The grades of the same judge for a sample, given a second time.")
    add("--before", metavar="FILE", help="Earlier judgments: whether the ranking stayed as it was.")
    add("--min-tau", type=float, metavar="X", help="With --before, the least Kendall's tau that holds (default: 0.9).")
    add("--price", type=float, metavar="X", help="What one judgment costs.")
    add("--html", metavar="PATH", help="Also write the report as one HTML page.")
    add_json(parser)


def _add_tidy(parser: Parser) -> None:
    add_judgments(parser, judge=False, contradictions=False)


def _add_grades(parser: Parser) -> None:
    add_judgments(parser, judge=False)
    add_judged_by(parser)


def _add_texts(parser: Parser) -> None:
    parser.add_argument("--dataset", metavar="DATASET", help="The dataset that has the texts.")
    add_split(parser)


def _add_show(parser: Parser) -> None:
    _add_grades(parser)
    parser.add_argument("--query-id", metavar="ID", help="Print every grade of this query instead.")


def _add_worksheet(parser: Parser) -> None:
    _add_grades(parser)
    add = parser.add_argument
    add("--dataset", required=True, metavar="DATASET", help="The dataset that has the texts.")
    add("--run", action="append", required=True, metavar="RUN", help="A run of the pool; repeatable.")
    add_depth(parser)
    add("-o", "--output", required=True, metavar="FILE", help="Where to write the worksheet.")
    add("--sample", type=positive, default=100, metavar="N", help="How many pairs (default: 100).")
    add(
        "--min-not-relevant",
        type=count,
        default=50,
        metavar="N",
        help="At least so many of them are not relevant to the judge (default: 50).",
    )
    add("--rel", type=float, default=1.0, metavar="G", help="The grade from which on it is relevant (default: 1).")
    add("--seed", type=count, default=0, metavar="N", help="Another number draws another sample (default: 0).")


def _add_import(parser: Parser) -> None:
    _add_tidy(parser)
    add = parser.add_argument
    add("file", metavar="FILE", help="CSV or TSV with query_id, doc_id and grade, or qrels.")
    add("--name", required=True, metavar="NAME", help="The name of the file that keeps them, human/NAME.jsonl.")
    add("--who", metavar="NAME", help="Who gave them (default: the name).")
    add(
        "--part",
        choices=("dev", "heldout"),
        help="dev: to write a judge's prompt with; heldout: to validate a judge with.",
    )
    _add_texts(parser)


def _add_export(parser: Parser) -> None:
    _add_grades(parser)
    parser.add_argument("file", metavar="FILE", help="Where to write them.")
    _add_texts(parser)


COMMANDS = (
    Command(
        "pool",
        help="Say what judging the documents of some runs takes.",
        description=(
            "Prints, tab-separated, for each run: its pairs in the first ranks, those without a judgment, those of "
            "them that no run before it brings, those that no other run brings, and judged@k."
        ),
        epilog="Example: pytest-retrieval-eval pool eval/handbook bm25.run.jsonl.gz dense.run.jsonl.gz",
        options=_add_pool,
        does="judging:plan",
    ),
    Command(
        "judge",
        help="Have a judge grade the pairs that have no judgment yet.",
        description=(
            "Asks a judge for the pairs of query and document that have no judgment yet, and keeps each grade when it "
            "comes. Stopped at any time, the same command goes on where it was. Pairs that got no grade are printed, "
            "tab-separated, with what stood in the way."
        ),
        epilog=(
            "Exit status: 0 where every pair has a grade, 1 where not, 2 where nothing could be asked. Example: "
            "pytest-retrieval-eval judge pairs.jsonl --judge judge.yaml --budget-calls 500"
        ),
        options=_add_judge,
        does="judging:judge",
    ),
    Command(
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
        options=_add_judge_again,
        does="studying:again",
    ),
    Command(
        "judge validate",
        help="Hold a judge's grades against held-out labels of people.",
        description=(
            "Holds a judge's grades against held-out labels of people: TPR, TNR and Cohen's kappa with their intervals."
        ),
        epilog=(
            "Exit status: 0 where the judge may be believed, 1 where not or where the labels are too few to say, 2 "
            "where nothing could be measured. Example: pytest-retrieval-eval judge validate --mode lower"
        ),
        options=_add_judge_validate,
        does="studying:validate",
    ),
    Command(
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
        options=_add_pool_report,
        does="studying:report",
    ),
    Command(
        "judgments",
        help="Look after a folder of judgments: check, compact, show, worksheet, import, export.",
        description="Looks after a folder of judgments.",
        epilog="Example: pytest-retrieval-eval judgments import sheet.csv --name ann --part heldout",
        inner=(
            Command(
                "check",
                "Say what is wrong with a folder of judgments; status 1 where anything is.",
                options=_add_tidy,
                does="judgments:check",
            ),
            Command(
                "compact",
                "Put journals into the files, and tidy files that were merged.",
                options=_add_tidy,
                does="judgments:compact",
            ),
            Command(
                "show",
                "Print, tab-separated, each judge and source of labels, with counts and grades.",
                options=_add_show,
                does="judgments:show",
            ),
            Command(
                "worksheet",
                "Write a sample of graded pairs as CSV, without the grades, for people to fill.",
                options=_add_worksheet,
                does="judgments:worksheet",
            ),
            Command(
                "import",
                "Take in labels of people: a worksheet, a table with grades, or qrels.",
                options=_add_import,
                does="judgments:import_",
            ),
            Command(
                "export",
                "Write the grades that count: *.csv, or TREC qrels for the texts of a dataset.",
                options=_add_export,
                does="judgments:export",
            ),
        ),
    ),
)
