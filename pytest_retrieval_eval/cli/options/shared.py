"""Options that several commands have, and the kinds of numbers that options take."""

from __future__ import annotations

import argparse

from pytest_retrieval_eval.cli.options.command import Parser
from pytest_retrieval_eval.settings import CACHE, CACHE_MODES, JUDGMENTS


def add_stages(parser: Parser) -> None:
    """--stages NAME=RUN."""
    parser.add_argument(
        "--stages",
        action="append",
        default=[],
        metavar="NAME=RUN",
        help="A stage of the pipeline and its run, for measures such as lift(ndcg@10, from=fused); repeated, in "
        "pipeline order.",
    )


def add_study(parser: Parser) -> None:
    """What a study of a reader needs: dataset, --reader, --split, --where, --json."""
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
    add_split(parser)
    add_where(parser)
    add_json(parser)


def add_depth(parser: Parser) -> None:
    """--depth, --split: how far a pool goes, over which queries."""
    parser.add_argument("--depth", type=positive, metavar="N", help="Pool the first N ranks of each run (default: 20).")
    add_split(parser)


def add_judgments(parser: Parser, *, judge: bool = True, contradictions: bool = True) -> None:
    """--judgments DIR, and who judges, and what becomes of contradictions."""
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


def add_judged_by(parser: Parser) -> None:
    """--judged-by: whose grades count."""
    parser.add_argument(
        "--judged-by",
        action="append",
        metavar="JUDGE",
        help="Whose grades count, a folder of judgments/ or the beginning of a digest; repeated, the first that has "
        "one (default: the only judge).",
    )


def add_split(parser: Parser) -> None:
    """--split NAME."""
    parser.add_argument("--split", metavar="NAME", help="Which qrels/NAME.tsv of a dataset folder (default: test).")


def add_collection(parser: Parser) -> None:
    """QRELS, --split, --queries."""
    parser.add_argument("qrels", metavar="QRELS", help="Relevance judgments: a file of them, or a dataset.")
    add_split(parser)
    parser.add_argument(
        "--queries",
        metavar="FILE",
        help="Texts and tags of the queries, where QRELS is a file of judgments alone.",
    )


def add_plugin(parser: Parser, what: str) -> None:
    """--plugin MODULE."""
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help=f"Import this module for the {what} that it offers; the current folder is searched first. May be "
        "repeated.",
    )


def add_measures(parser: Parser) -> None:
    """--measure, --plugin."""
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="NAME",
        help="A measure, such as ndcg@10 or recall(rel=2)@100; trec_eval's names are read too. Repeat it, or "
        "separate several with blanks or commas.",
    )
    add_plugin(parser, "measures (and readers, metrics of answers)")


def add_where(parser: Parser) -> None:
    """--where TAG=VALUE."""
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="TAG=VALUE",
        help="Count only queries with this tag value, read as JSON where it is JSON. Different tags must all "
        "hold, of one tag's values any.",
    )


def add_unit(parser: Parser) -> None:
    """--unit."""
    parser.add_argument(
        "--unit",
        choices=("document",),
        help="The run ranks chunks and the judgments are on documents: each document counts where its best chunk "
        "stands.",
    )


def add_labels(parser: Parser) -> None:
    """--labels, and what its sources need."""
    add_judgments(parser, judge=False)
    add_judged_by(parser)
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
    add_cache(parser)


def add_allow_failures(parser: Parser) -> None:
    """--allow-failures."""
    parser.add_argument(
        "--allow-failures",
        type=count,
        default=0,
        metavar="N",
        help="Count a query 0 where the retriever failed, for up to N queries of a run (default: 0, an error).",
    )


def add_allow_stale(parser: Parser) -> None:
    """--allow-stale."""
    parser.add_argument(
        "--allow-stale",
        type=count,
        default=0,
        metavar="N",
        help="Leave up to N gold spans out whose passage is lost in the edited source, or stands in several places "
        "there (default: 0, an error).",
    )


def add_json(parser: Parser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of text.")


def add_place_of_cache(parser: Parser, kept: str = "readings") -> None:
    """--cache: where readings (or replies) are kept."""
    parser.add_argument(
        "--cache", default=CACHE, metavar="DIR", help=f"The folder in which {kept} are kept (default: {CACHE})."
    )


def add_cache(parser: Parser, kept: str = "readings") -> None:
    """--cache and --cache-mode."""
    add_place_of_cache(parser, kept)
    parser.add_argument(
        "--cache-mode",
        choices=CACHE_MODES,
        default="rw",
        help=f"Look {kept} up and keep them (rw), only look up (ro), ask for all anew (refresh), or neither (off).",
    )


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = count(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return number


def amount(text: str) -> float:
    """A number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount such as 2.50")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = amount(text)
    if number > 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share from 0 to 1")
    return number


def count(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number such as 10")
    return int(text)
