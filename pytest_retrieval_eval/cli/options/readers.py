"""Commands around language models that read, and the cache of what they have read."""

from __future__ import annotations

from pytest_retrieval_eval.cli.options.command import Command, Parser
from pytest_retrieval_eval.cli.options.shared import (
    add_cache,
    add_json,
    add_place_of_cache,
    add_plugin,
    add_study,
    count,
    positive,
    share,
)

_PLUGGED = "kinds of readers"


def _add_stats(parser: Parser) -> None:
    add_place_of_cache(parser)
    add_json(parser)


def _add_gc(parser: Parser) -> None:
    add_place_of_cache(parser)
    add = parser.add_argument
    add("--unused-for", type=count, metavar="DAYS", help="Those that were not looked up for so many days.")
    add("--digest", metavar="DIGEST", help="Those of the reader whose digest begins so; with --unused-for, of both.")


def _add_verify(parser: Parser) -> None:
    add_place_of_cache(parser)
    parser.add_argument(
        "--delete", action="store_true", help="Delete those that are damaged; they are read again when needed."
    )


def _add_selfcheck(parser: Parser) -> None:
    add_place_of_cache(parser)
    add = parser.add_argument
    add(
        "--reader",
        required=True,
        metavar="FILE|MODULE:NAME",
        help="The reader: a YAML or JSON file with its settings, or an import string of it or of what makes it.",
    )
    add(
        "--digest",
        metavar="DIGEST",
        help="Check the readings of the reader whose digest begins so (default: the same).",
    )
    add("--sample", type=positive, default=100, metavar="N", help="Read N readings again (default: 100).")
    add_plugin(parser, _PLUGGED)


def _add_shared_place(parser: Parser) -> None:
    add_place_of_cache(parser)
    parser.add_argument("place", metavar="URL", help="A folder, or a URL that fsspec knows.")


def _add_correlate(parser: Parser) -> None:
    add = parser.add_argument
    add_study(parser)
    add("run", nargs="+", metavar="[NAME=]RUN", help="The runs; of several the ranking is correlated too.")
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
    add("--resamples", type=positive, default=1000, metavar="N", help="Bootstrap resamples (default: 1000).")
    add(
        "--allow-failures",
        type=count,
        default=0,
        metavar="N",
        help="Leave out up to N queries of which a reader or retriever failed (default: 0, an error).",
    )
    add_cache(parser)
    add("--plot", metavar="FILE.svg", help="Also draw the correlations, their intervals and ceilings.")
    add_plugin(parser, f"{_PLUGGED}, metrics of answers and measures")


def _add_efficiency(parser: Parser) -> None:
    add = parser.add_argument
    add_study(parser)
    add("run", metavar="RUN", help="The run whose documents are read.")
    add("-k", type=positive, default=5, metavar="K", help="Documents of each query (default: 5).")
    add(
        "--max-queries",
        type=positive,
        default=20,
        metavar="N",
        help="Read those of the first N queries that have so many (default: 20).",
    )
    add(
        "--batch-size",
        type=positive,
        action="append",
        default=[],
        metavar="N",
        help="Also time N prompts a batch, of several queries. May be repeated.",
    )
    add("--repeat", type=positive, default=1, metavar="N", help="Time each row N times; the median (default: 1).")
    add_plugin(parser, _PLUGGED)


def _add_questions(parser: Parser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="A folder with corpus.jsonl, and perhaps a chunk table and queries.")
    add(
        "--reader",
        required=True,
        metavar="FILE|MODULE:NAME",
        help="Who writes: a YAML or JSON file with a reader's settings, or an import string of it or of what makes it.",
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
    add("--sample", type=positive, metavar="N", help="Ask about N passages only (default: all).")
    add("--seed", type=count, default=0, metavar="N", help="Which passages --sample draws (default: 0).")
    add("--number", type=positive, default=1, metavar="N", help="Ask for N questions of each passage (default: 1).")
    add(
        "--max-overlap",
        type=share,
        default=0.5,
        metavar="SHARE",
        help="The largest share of a question's words that its passage may have too (default: 0.5).",
    )
    add(
        "--rewrites",
        type=count,
        default=2,
        metavar="N",
        help="Ask N times for other words before a question above --max-overlap is dropped; 0 drops it (default: 2).",
    )
    add_plugin(parser, _PLUGGED)
    add("--prompt", metavar="FILE", help="A template of your own: {passage}, {fence}, and perhaps {questions}.")
    add_cache(parser, "replies")
    add_json(parser)


COMMANDS = (
    Command(
        "cache",
        help="Look after a cache of readings: stats, gc, verify, selfcheck, push, pull.",
        description="Looks after a cache of what language models have read.",
        epilog="Example: pytest-retrieval-eval cache pull s3://bucket/readings",
        inner=(
            Command(
                "stats",
                "Print, tab-separated, each reader's digest, number of readings and identity.",
                options=_add_stats,
                does="caching:stats",
            ),
            Command("gc", "Delete readings, and give their room back.", options=_add_gc, does="caching:gc"),
            Command(
                "verify",
                "Check that each reading is what was stored; status 1 where one is not.",
                options=_add_verify,
                does="caching:verify",
            ),
            Command(
                "selfcheck",
                "Read a sample again, one item at a time, and print the texts that are other than those kept.",
                options=_add_selfcheck,
                does="caching:selfcheck",
            ),
            Command(
                "push",
                "Write the readings that a shared place does not have yet.",
                options=_add_shared_place,
                does="caching:push",
            ),
            Command(
                "pull",
                "Take in the readings of a shared place; what is here already stays.",
                options=_add_shared_place,
                does="caching:pull",
            ),
        ),
    ),
    Command(
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
        options=_add_correlate,
        does="correlating:correlate_labels",
    ),
    Command(
        "efficiency",
        help="Time what labels from a reader cost, beside its answer from all documents.",
        description=(
            "Times a reader at each level: one document at a time, the documents of a query in one batch, the "
            "answer end to end, and closed book: seconds, tokens and peak memory. No cache is used."
        ),
        epilog="Example: pytest-retrieval-eval efficiency eval/handbook bm25.run.jsonl --reader reader.yaml -k 5",
        options=_add_efficiency,
        does="correlating:report_efficiency",
    ),
    Command(
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
        options=_add_questions,
        does="questioning:ask_questions",
    ),
)
