"""The page of dependencies: each package of each extra is there with its reason, and no other."""

from __future__ import annotations

import re
import sys

from support import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # which pytest brings where Python has none

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8")
EXTRAS = PROJECT["project"]["optional-dependencies"]
OURS = PROJECT["project"]["name"]


def required(extra):
    """The packages of an extra ("" for the package itself), without the extras that it takes."""
    found = PROJECT["project"]["dependencies"] if not extra else EXTRAS[extra]
    return sorted(name for each in found if (name := re.match(r"[\w.-]+", each)[0]) != OURS)


def taken(extra):
    """The extras that an extra takes."""
    return {
        name for each in EXTRAS[extra] if each.startswith(OURS) for name in re.search(r"\[(.*)\]", each)[1].split(",")
    }


def rows():
    found = {}
    for extra, packages, why in re.findall(r"^\|(?: `(\w+)`)? \| ([^|`]+) \| ([^|]+) \|$", PAGE, re.MULTILINE):
        if packages == "package":
            continue
        assert why.strip()
        found.setdefault(extra, []).extend(packages.split(", "))
    return found


def test_each_package_of_each_extra_has_a_reason_and_no_other_is_named():
    named = {extra: sorted(name.partition(" ≥ ")[0] for name in packages) for extra, packages in rows().items()}
    assert named == {extra: required(extra) for extra in ("", *EXTRAS)}


def test_the_least_versions_that_the_page_says_are_those_of_the_project():
    said = [name.replace(" ≥ ", ">=") for packages in rows().values() for name in packages if "≥" in name]
    assert said
    assert set(said) <= set(PROJECT["project"]["dependencies"])


def test_the_extras_that_others_take_are_as_the_page_says():
    others = {extra for extra in EXTRAS if not taken(extra)} - {"lint"}
    assert {extra: taken(extra) for extra in EXTRAS if taken(extra)} == {
        "test": others,  # "every extra above it"
        "bench": {"erag", "ir_measures", "judge"},
    }
    assert "`bench` takes `erag`,\n`ir_measures` and `judge`" in PAGE
    assert PROJECT["build-system"]["requires"][0].startswith("hatchling")
    assert "built with hatchling" in PAGE
