"""The page of what pytest knows of this plugin, made from its own words: ``python tests/options_page.py`` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from pytest_retrieval_eval import fixtures, hookspecs
from pytest_retrieval_eval.context.definitions import OVERRIDABLE
from pytest_retrieval_eval.settings import FLAGS, INI, Flag

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "options.md"
INTRODUCTION = """# Fixtures, options, ini values, hooks

What each is for, in one line. The rules behind them (what decides a gate, which run goes before which, what overrides
what) are in [fixtures, marker, keywords](pytest.md); `pytest --fixtures` and `pytest --help` say the same as
this page.
"""
# Where there is more to say than a line.
MORE = {
    "assert_metric": "measures.md",
    "assert_span_recall_at": "../how-to/new-chunker.md",
    "assert_judge_valid": "../how-to/judge-validation.md",
    "gate_family": "../how-to/slices.md",
    "erag": "../how-to/erag.md",
    "retrieval_stages": "../how-to/pipeline.md",
    "retrieval_traces": "../how-to/agents.md",
    "retrieval_cache": "../how-to/cache.md",
    "retrieval_judgments": "../how-to/judged-pool.md",
    "retrieval_reader": "../how-to/erag.md",
    "retrieval_spans": "../how-to/stale-gold.md",
    "--retrieval-json": "report-json.md",
    "--retrieval-reanchor": "../how-to/stale-gold.md",
    "--retrieval-to-judge": "../how-to/unjudged.md",
    "--retrieval-stop-early": "../how-to/erag.md#stopping-early",
    "--retrieval-cache-mode": "../how-to/cache.md",
    "retrieval_warmup": "../how-to/latency.md",
    "retrieval_repeat": "../how-to/latency.md",
    "retrieval_gate_files": "gate-files.md",
    "retrieval_defaults": "pytest.md#defaults-of-a-project",
    "pytest_retrieval_measures": "../how-to/measures.md",
    "pytest_retrieval_answer_metrics": "../how-to/answers.md",
    "pytest_retrieval_readers": "../how-to/readers.md",
    "pytest_retrieval_judges": "../how-to/judges.md",
}


def page() -> str:
    """The page as the code of today makes it."""
    ours = our_fixtures()
    overridden = {name: ours.get(name, RETRIEVER) for name in OVERRIDABLE}
    # Those of every test first.
    asked = {name: ours[name] for name in sorted(ours, key=lambda name: name.startswith("retrieval_"))}
    asked = {name: text for name, text in asked.items() if name not in overridden}
    return "\n".join(
        [
            INTRODUCTION,
            *table("Fixtures that tests ask for", "fixture", with_aliases(asked)),
            *table("Fixtures that projects override", "fixture", overridden),
            *table("Options of the command line", "option", {option(flag): flag.help for flag in FLAGS}),
            *table("Ini values", "ini value", {ini.name: ini.help + default(ini.default) for ini in INI}),
            *table("Hooks", "hook", hooks()),
        ]
    )


RETRIEVER = "Yours: session-scoped, and returns the search function, any callable from a query to its ranked hits."
ALIAS = "The same as "


def our_fixtures() -> dict[str, str]:
    """What each fixture of the plugin says of itself; that which is hidden in every test is left out."""
    found = {
        fixture.name: said(fixture._get_wrapped_function())
        for fixture in vars(fixtures).values()
        if type(fixture).__name__ == "FixtureFunctionDefinition"
    }
    return {name: text for name, text in found.items() if name != "retrieval_context"}


def with_aliases(rows: dict[str, str]) -> dict[str, str]:
    """Fixtures of which some are another one under a short name, in one row with it."""
    same = {text.removeprefix(ALIAS).rstrip("."): name for name, text in rows.items() if text.startswith(ALIAS)}
    return {
        f"{name}`, `{same[name]}" if name in same else name: text
        for name, text in rows.items()
        if not text.startswith(ALIAS)
    }


def hooks() -> dict[str, str]:
    """What each hook says of itself."""
    return {name: said(hook) for name, hook in vars(hookspecs).items() if name.startswith("pytest_retrieval")}


def said(function: object) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split()).replace("``", "`")


def option(flag: Flag) -> str:
    """An option with what it takes, as it is typed."""
    metavar = flag.keywords.get("metavar", "")
    return f"{flag.flag} {metavar}".strip()


def default(value: object) -> str:
    """The default of an ini value, where it has one that its help does not tell."""
    if not value:
        return ""
    values = value if isinstance(value, list) else [value]
    return "; default: " + ", ".join(f"`{each}`" for each in values)


def table(title: str, head: str, rows: dict[str, str]) -> Iterable[str]:
    """A section with one table."""
    yield from (f"## {title}", "", f"| {head} | what it is for |", "|---|---|")
    for name, text in rows.items():
        link = MORE.get(name.split()[0].strip("`,"))
        more = f" ([more]({link}))" if link else ""
        escaped = name.replace("|", "\\|")
        yield f"| `{escaped}` | {text.rstrip('.').replace('|', '&#124;')}{more} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
