"""``pool`` and ``judge``: what judging some runs takes, and the judging itself."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pytest_retrieval_eval.cli.console import INTERRUPTED, PROGRAM, Console, json_text
from pytest_retrieval_eval.cli.reading import opened_cache, say_readings, settings_in
from pytest_retrieval_eval.collection.dataset import Dataset
from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import SettingsError
from pytest_retrieval_eval.gates.imported import import_made
from pytest_retrieval_eval.gates.tojudge import check_path, write
from pytest_retrieval_eval.labels.grading import Filled, fill_judgments
from pytest_retrieval_eval.labels.judging.config import judge_from
from pytest_retrieval_eval.labels.judging.judge import Judge, Pair
from pytest_retrieval_eval.labels.judgments import Judgments
from pytest_retrieval_eval.labels.pairs import read_pairs
from pytest_retrieval_eval.labels.pool import DEPTH, Plan, Pool, estimated, key_of, plan_of, pool_of
from pytest_retrieval_eval.progress import progress
from pytest_retrieval_eval.readers.readings.cache import told
from pytest_retrieval_eval.readers.readings.store import ReadingCache
from pytest_retrieval_eval.readers.services.budget import Price
from pytest_retrieval_eval.settings import JUDGE, is_settings_file
from pytest_retrieval_eval.wording import counted, shown

"""In the folder of judgments, the settings of the judge that fills it unless --judge names another."""

_LISTED = 20


def plan(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``pool``."""
    if arguments.to_judge is not None:
        check_path(Path(arguments.to_judge), "--to-judge")
    judgments = _judgments(arguments, arguments.judged_by)
    judge, price = (None, None) if _named_judge(arguments) is None else _judge(arguments, None)
    pool = _pool(arguments, console)
    found = plan_of(pool, judgments, judge=judge, price=price)
    if arguments.to_judge is not None:
        write(Path(arguments.to_judge), [_row(pair) for pair in found.new])
    judged = pool.judged(judgments)
    if arguments.json:
        console.write(json_text(_document(found, judged)) + "\n")
        return 0
    console.write(f"run\tpairs\tunjudged\tfirst\talone\tjudged@{found.depth}\n")
    for run in found.runs:
        cells = (run.name, run.pairs, run.unjudged, run.first, run.alone, f"{judged[run.name]:.4f}")
        console.write("\t".join(map(str, cells)) + "\n")
    console.write(f"pool\t{found.pairs}\t{len(found.new)}\t\t\t\n")
    console.say(
        f"{counted(found.pairs, 'pair')} in the first {found.depth} ranks of {counted(len(found.runs), 'run')}: "
        f"{found.reused} judged, {len(found.new)} to judge; each run by itself would take {found.independent} "
        f"({found.factor:.2f} times as many)"
    )
    _say_estimate(found.tokens, found.cost, console)
    if found.new:
        console.say(f"{PROGRAM} judge fills them")
    return 0


def judge(arguments: argparse.Namespace, console: Console) -> int:
    """The command ``judge``: status 0 where every pair has a grade, 1 where not."""
    if (arguments.pairs is None) == (not arguments.run):
        raise SettingsError("say what to judge: a file of pairs, or --dataset and --run once for each run")
    with opened_cache(arguments) as cache:
        return _judge_with(arguments, console, cache)


def _judge_with(arguments: argparse.Namespace, console: Console, cache: ReadingCache) -> int:
    made, price = _judge(arguments, cache)
    judgments = _judgments(arguments, ())
    pool: Pool | None = None
    if arguments.pairs is None:
        pool = _pool(arguments, console)
        pairs = list(pool.pairs.values())
    else:
        dataset = None if arguments.dataset is None else Dataset.read(arguments.dataset, split=arguments.split)
        pairs = read_pairs(arguments.pairs, dataset)
    return _judge_pairs(arguments, console, made, price, cache, judgments, pool, pairs)


def _judge_pairs(
    arguments: argparse.Namespace,
    console: Console,
    made: Judge,
    price: Price | None,
    cache: ReadingCache,
    judgments: Judgments,
    pool: Pool | None,
    pairs: list[Pair],
) -> int:
    before = set(judgments.judges)
    kept = judgments.keep(made, allow_floating=arguments.allow_floating)
    own = Judgments(judgments.folder, judged_by=[kept.name])
    if kept.name not in before and before:
        console.note(
            f"{kept.name} is another judge than {', '.join(sorted(before))}, and takes over none of their grades; "
            "gates count those that retrieval_judged_by names"
        )
    planned = plan_of(pool, own, judge=made, price=price) if pool is not None else None
    if planned is not None:
        new, tokens, cost = len(planned.new), planned.tokens, planned.cost
    else:
        open_ = set(own.unjudged([*map(key_of, pairs)]))
        missing = [pair for pair in pairs if key_of(pair) in open_]
        new = len(missing)
        tokens, cost = estimated(missing, made, price)
    console.say(f"{counted(len(pairs), 'pair')}: {len(pairs) - new} judged, {new} to judge by {kept.name}")
    _say_estimate(tokens, cost, console)
    try:
        with progress(None, new, doing="judging", unit="pair") as advance:
            filled = fill_judgments(
                judgments, made, pairs, allow_floating=arguments.allow_floating, told=lambda graded: advance(1)
            )
    except KeyboardInterrupt:
        console.error(f"interrupted; every grade that came is in {judgments.folder}, and the same command goes on")
        return INTERRUPTED
    finally:
        with suppress(Exception):  # what it holds; the grades are kept
            made.close()
        say_replies(cache, console)
    _say_filled(filled, cache, console)
    own = Judgments(judgments.folder, judged_by=[kept.name])
    if filled.complete:
        return 0
    if pool is None:
        console.say(f"incomplete: {filled.share:.2f} of the pairs are judged")
    else:
        parts = [f"{name}: judged@{pool.depth} = {share:.2f}" for name, share in pool.judged(own).items()]
        console.say(f"incomplete: {', '.join(parts)}")
    return 1


def say_replies(cache: ReadingCache, console: Console) -> None:
    """How many replies were there, and how many were asked for, where a judge keeps them."""
    if cache.clients:
        say_readings(cache, console, "replies")


def _say_filled(filled: Filled, cache: ReadingCache, console: Console) -> None:
    for failure in filled.failures[:_LISTED]:
        console.write(
            f"{failure.q}\t{failure.d}\t{failure.outcome}\t{failure.attempts}\t{shown(failure.reason, 200)}\n"
        )
    failed = counted(len(filled.failures), "pair")
    read, written = filled.tokens
    if cache.clients:  # of what was kept the tokens were spent before
        counters, _ = told(cache)
        read, written = counters.input_tokens, counters.output_tokens
    used = f", {read:,} tokens read and {written:,} written" if read or written else ""
    console.say(f"graded {filled.graded}, reused {filled.reused}{used}")
    if len(filled.failures) > _LISTED:
        console.say(f"and {len(filled.failures) - _LISTED} more without a grade")
    if filled.failures:
        console.say(f"{failed} got no grade, and {'is' if len(filled.failures) == 1 else 'are'} asked for next time")
    if cache.clients and cache.cache_mode == "rw" and any(failure.outcome != "error" for failure in filled.failures):
        console.note(
            "a reply that states no grade is kept, and read again next time; --cache-mode refresh asks for another one"
        )
    if filled.left:
        console.say(f"{counted(len(filled.left), 'pair')} not asked for: {filled.stopped}")


def _say_estimate(tokens: tuple[int, int] | None, cost: float | None, console: Console) -> None:
    if tokens is not None:
        price = "" if cost is None else f", at most {cost:.2f} in cost"
        console.say(f"that takes at most about {tokens[0]:,} tokens read and {tokens[1]:,} written{price}")
        if cost is None:
            console.note("the price of the tokens is not known: name it in the judge's budget (price: input, output)")


def _judgments(arguments: argparse.Namespace, judged_by: Any) -> Judgments:
    return Judgments(arguments.judgments, judged_by=tuple(judged_by or ()), contradictions=arguments.contradictions)


def _pool(arguments: argparse.Namespace, console: Console) -> Pool:
    if arguments.dataset is None:
        raise SettingsError("--dataset names the queries and the texts that runs are judged on")
    dataset = Dataset.read(arguments.dataset, split=arguments.split)
    runs = [Run.read(path) for path in arguments.run]
    pool = pool_of(dataset, runs, arguments.depth or DEPTH)
    for run in runs:
        for warning in run.warnings:
            console.note(f"{run.name}: {warning}")
    return pool


def judge_and_pool(
    arguments: argparse.Namespace, console: Console, cache: ReadingCache
) -> tuple[Judge, Judgments, Pool]:
    """The judge, the folder of judgments and the pool of the runs of a command line that needs all three."""
    made, _ = _judge(arguments, cache)
    return made, _judgments(arguments, ()), _pool(arguments, console)


def _row(pair: Pair) -> dict[str, object]:
    row = {
        "query_id": pair.query_id,
        "query": pair.query,
        "doc_id": pair.doc_id,
        "title": pair.title,
        "text": pair.text,
    }
    return {name: value for name, value in row.items() if value}


def _document(found: Plan, judged: Mapping[str, float]) -> dict[str, Any]:
    return {
        "depth": found.depth,
        "pairs": found.pairs,
        "reused": found.reused,
        "new": len(found.new),
        "independent": found.independent,
        "factor": found.factor,
        "tokens": None if found.tokens is None else {"read": found.tokens[0], "written": found.tokens[1]},
        "cost": found.cost,
        "runs": [
            {
                "name": run.name,
                "pairs": run.pairs,
                "unjudged": run.unjudged,
                "first": run.first,
                "alone": run.alone,
                "judged": judged[run.name],
            }
            for run in found.runs
        ],
    }


# --- the judge ----------------------------------------------------------------------------------------


def _named_judge(arguments: argparse.Namespace) -> str | None:
    """What --judge says, else the judge.yaml of the folder of judgments, where there is one."""
    if arguments.judge is not None:
        return str(arguments.judge)
    default = Path(arguments.judgments) / JUDGE
    return str(default) if default.exists() else None


def _judge(arguments: argparse.Namespace, cache: ReadingCache | None) -> tuple[Judge, Price | None]:
    """The judge, and its price where that is known; one of a file of settings keeps its replies in ``cache``."""
    given = _named_judge(arguments)
    if given is None:
        raise SettingsError(
            f"there is no judge: write its settings into {Path(arguments.judgments) / JUDGE} (such as url, model, "
            "prompt), or name a file of them, or MODULE:NAME, with --judge"
        )
    given_caps = {name: getattr(arguments, f"budget_{name}", None) for name in ("calls", "tokens", "cost")}
    caps = {name: value for name, value in given_caps.items() if value is not None}
    if not is_settings_file(given):
        if caps:
            raise SettingsError(f"--budget-{next(iter(caps))} goes with a file of settings, and --judge is {given}")
        for name in ("cache", "cache_mode"):
            if getattr(arguments, name, None) is not None:
                option = "--" + name.replace("_", "-")
                raise SettingsError(
                    f"{option} goes with a file of settings, and --judge is {given}: a judge in Python gets its cache "
                    "where it is made"
                )
        return _imported(given), None
    settings, root = settings_in(given, "--judge", "a judge, such as url: …")
    budget = settings.get("budget")
    if caps:
        if budget is not None and not isinstance(budget, Mapping):
            raise SettingsError(f"--judge {given}: the budget is {shown(repr(budget))}; expected a mapping")
        budget = settings["budget"] = {**(budget or {}), **caps}
    price = budget.get("price") if isinstance(budget, Mapping) else None
    return (
        judge_from(settings, root=root, cache=cache),
        Price(**price) if isinstance(price, Mapping) else None,
    )


def _imported(text: str) -> Judge:
    """The judge that ``MODULE:NAME`` names, or that it makes when it is called; the current folder is first."""
    made = import_made(
        text,
        "--judge",
        "judge",
        ("identity", "scale", "grade", "close"),
        example="myapp.judging:judge",
        hint="; a function of query and text becomes a judge by CallableJudge(function, Scale(0, 2), identity=…)",
    )
    return cast(Judge, made)
