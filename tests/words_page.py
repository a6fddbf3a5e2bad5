"""The page of words, made from the names that the code has: ``python tests/words_page.py`` writes it."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path

import options_page

import pytest_retrieval_eval
from pytest_retrieval_eval.cli.options.command import Parser
from pytest_retrieval_eval.cli.parser import COMMANDS
from pytest_retrieval_eval.gates.entries import ENTRY, HEADER
from pytest_retrieval_eval.gates.options import KEYWORDS
from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck
from pytest_retrieval_eval.reports.document import Report
from pytest_retrieval_eval.settings import FLAGS, INI

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "words.md"
INTRODUCTION = """# Words

A word means the same thing wherever it stands: as a keyword or attribute in Python, as a fixture, as a keyword of a
gate (in functions, markers and `retrieval_defaults`) or a key of a gate file, as an ini value or an option of pytest,
as an option of `pytest-retrieval-eval`, as a key of the JSON report. What pytest knows has the prefix `retrieval_`
or `--retrieval-`; an underscore in Python is a hyphen on a command line.
"""
END = """
Two words for one thing, on purpose: the cut-off is `k` where it is typed as a number of documents, and `cutoff` as a
part of a measure; `assert_metric` and `metric` take any *measure*, and an *answer metric* says how right an answer is.
"""

# What each word means, in the order of the page.
MEANINGS = {
    "dataset": "the test collection: labelled queries, perhaps with documents; a name or a folder",
    "split": "which `qrels/SPLIT.tsv` of a dataset folder",
    "queries": "the queries, their texts and tags",
    "qrels": "relevance judgments: query → document → grade",
    "spans": "gold passages: document, start and end in characters (end exclusive)",
    "run": "ranked lists, one for each query; the run under test where nothing else is said",
    "retriever": "what is asked for a run: query → hits",
    "depth": "how many ranks of a list are kept, pooled or labelled",
    "repeat": "how many times something is timed; the median counts",
    "warmup": "queries that are asked before times are taken",
    "stage": "a step of the pipeline, and its run",
    "traces": "the calls that an agent made for each query",
    "baseline": "a stored run that a gate holds the run under test against",
    "measure": "what is computed of a run and labels, such as `ndcg@10`",
    "k": "the cut-off: how many documents of a list a measure looks at",
    "rel": "the grade from which on a document is relevant",
    "gate": "a measure, a comparison and a target",
    "rule": "how a gate against a run decides",
    "alpha": "the chance of a false alarm",
    "sided": "whether the p-value is one-sided or two-sided",
    "allow": "under the rule `each`, how many queries may lose",
    "correction": "how the p-values of several comparisons are adjusted",
    "where": "tags that select queries",
    "by": "the tag whose values are the slices",
    "min_n": "how many queries a slice needs",
    "unit": "`document` where chunks are ranked and documents labelled",
    "labels": "where relevance comes from: `qrels`, `spans`, `contains(…)`, `erag`, `judged`",
    "pool": "runs whose documents are labelled together",
    "normalise": "whether recall and its kin divide by the pool or by each list",
    "judged": "the share of judged documents in the top k",
    "to_judge": "pairs of query and document without a judgment",
    "judgments": "the folder of grades that judges and people gave",
    "judge": "what grades a pair of query and document",
    "judged_by": "the judges whose grades count, in their order",
    "contradictions": "what becomes of different grades of one pair",
    "human": "labels of people",
    "grades": "how relevant documents are; as an option a file with those of a judge",
    "name": "what something is called by: a run, a judge by its folder, a file of labels",
    "tpr": "the share of relevant pairs that the judge calls so",
    "tnr": "the share of the other pairs that the judge calls so",
    "kappa": "agreement beyond chance",
    "mode": "whether a judge's values or the lower ends of their intervals reach the thresholds",
    "min_pairs": "how many pairs people must have labelled",
    "min_not_relevant": "how many of the pairs must not be relevant",
    "reader": "a language model that answers from documents",
    "answer_metric": "how an answer is held against the gold answers",
    "cache": "the folder of what language models have read",
    "cache_mode": "whether the cache is looked up and filled: `rw`, `ro`, `refresh`, `off`",
    "allow_failures": "how many queries a retriever or reader may fail on",
    "allow_stale": "how many gold spans may have lost their passage",
    "allow_missing": "how many labelled pairs may lack the judge's grade",
    "defaults": "keywords of gates that do not say otherwise",
    "json": "everything as JSON: a file of a session, or what a command prints",
}
# Where a name is not its word: plurals, and the two words of the last paragraph.
SAME = {
    "datasets": "dataset",
    "runs": "run",
    "stages": "stage",
    "measures": "measure",
    "cutoff": "k",
    "metric": "measure",
}
PLACES = ("Python", "fixtures", "gates", "ini value, option of pytest", "command line", "JSON report")
_SHOWN = 3

Names = dict[str, dict[str, list[str]]]  # place → word → names


def word_of(name: str) -> str:
    """The word that a name is made of."""
    bare = name.lstrip("-").replace("-", "_").removeprefix("retrieval_").removeprefix("assert_")
    return SAME.get(bare, bare)


def names() -> Names:
    """Every name of every place, by its word."""
    found: Names = {place: {} for place in PLACES}

    def add(place: str, name: str, shown: str) -> None:
        shown_so_far = found[place].setdefault(word_of(name), [])
        if shown not in shown_so_far:
            shown_so_far.append(shown)

    for name, owner in parameters():
        add("Python", name, owner)
    for name in options_page.our_fixtures():
        add("fixtures", name, name)
    for name in (*KEYWORDS, *HEADER, *ENTRY, *(each.name for each in dataclasses.fields(JudgeCheck))):
        add("gates", name, name)
    for ini in INI:
        add("ini value, option of pytest", ini.name, ini.name)
    for flag in FLAGS:
        add("ini value, option of pytest", flag.flag, flag.flag)
    for action in options():
        add("command line", action.option_strings[-1], action.option_strings[-1])
    for kind in (Report, pytest_retrieval_eval.Verdict):
        for each in dataclasses.fields(kind):
            add("JSON report", each.name, each.name)
    return found


def parameters() -> Iterator[tuple[str, str]]:
    """The parameters of public functions, classes and their constructors, with whose they are."""
    for owner in pytest_retrieval_eval.__all__:
        value = getattr(pytest_retrieval_eval, owner)
        is_class = inspect.isclass(value)
        if (is_class and issubclass(value, (Exception, pytest_retrieval_eval.Verdict))) or not callable(value):
            continue
        made = [(owner, value)]
        if is_class:
            of_class = [name for name, each in vars(value).items() if isinstance(each, classmethod) and name[0] != "_"]
            made += [(f"{owner}.{name}", getattr(value, name)) for name in of_class]
        for name, function in made:
            for parameter in inspect.signature(function).parameters.values():
                if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                    yield parameter.name, name


def options() -> Iterator[argparse.Action]:
    """The options of all commands."""
    commands = Parser(prog="").add_subparsers(parser_class=Parser)
    for command in COMMANDS.values():
        command.add_to(commands)
    todo = list(commands.choices.values())
    while todo:
        for action in todo.pop()._actions:
            if isinstance(action, argparse._SubParsersAction):
                todo += action.choices.values()
            elif action.option_strings and action.dest != "help":
                yield action


def places_of(word: str, found: Names) -> list[str]:
    """Where a word is used."""
    return [place for place in PLACES if word in found[place]]


def page() -> str:
    """The page as the code of today makes it."""
    found = names()
    lines = [f"| word | what it is | {' | '.join(PLACES)} |", "|---|---|" + "---|" * len(PLACES)]
    for word, meaning in MEANINGS.items():
        lines.append(f"| `{word}` | {meaning} | {' | '.join(cell(found[place].get(word, [])) for place in PLACES)} |")
    return "\n".join([INTRODUCTION, *lines, END])


def cell(shown: list[str]) -> str:
    """The first names of a place."""
    more = ", …" if len(shown) > _SHOWN else ""
    return ", ".join(f"`{name}`" for name in shown[:_SHOWN]) + more


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
