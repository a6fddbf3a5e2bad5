"""Commands that make or mend what is measured: runs, and gold spans."""

from __future__ import annotations

from pytest_retrieval_eval.cli.options.command import Command, Parser
from pytest_retrieval_eval.cli.options.shared import add_json, count, positive


def _add_run(parser: Parser) -> None:
    add = parser.add_argument
    add("--dataset", required=True, metavar="DATASET", help="The dataset: a folder, or one file of JSON lines.")
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
    add("--depth", type=positive, default=100, metavar="N", help="Keep N hits of each query (default: 100).")
    add(
        "--batch-size",
        type=positive,
        metavar="N",
        help="Give the retriever lists of N texts; it returns a list of hits for each.",
    )
    add(
        "--concurrency",
        type=positive,
        default=8,
        metavar="N",
        help="Ask an asynchronous retriever N queries at a time (default: 8).",
    )
    add(
        "--texts",
        action="store_true",
        help="Keep the texts of the returned documents with the run, for labels that are made from texts: those that "
        "hits come with, else of the dataset.",
    )
    add(
        "--warmup",
        type=count,
        default=0,
        metavar="N",
        help="Ask N queries before times are taken, and drop what comes of it (default: 0).",
    )
    add(
        "--repeat",
        type=positive,
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
        type=count,
        default=0,
        metavar="N",
        help="Exit with 0 although the retriever failed on up to N queries (default: 0).",
    )


def _add_spans(parser: Parser) -> None:
    add = parser.add_argument
    add("action", choices=("check", "reanchor"), metavar="check|reanchor", help="Only look, or also write.")
    add("dataset", metavar="DATASET", help="The dataset: a folder with gold spans (spans.jsonl) and corpus.jsonl.")
    add(
        "--old-corpus",
        metavar="FILE",
        help="The corpus that the offsets were made for: what was edited decides between places that read the same.",
    )
    add_json(parser)


COMMANDS = (
    Command(
        "run",
        help="Ask a retriever every query of a dataset and store what it returns.",
        description="Asks a retriever every query of a dataset and stores what it returns as a run.",
        epilog=(
            "Example: pytest-retrieval-eval run --dataset eval/handbook --retriever myapp.search:search "
            "-o cand.run.jsonl.gz"
        ),
        options=_add_run,
        does="retrieving:run_retriever",
    ),
    Command(
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
        options=_add_spans,
        does="anchoring:anchor_spans",
    ),
)
