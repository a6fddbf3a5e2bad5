"""The JSON Schema of gate files, for editors: made from the same declarations that the reader checks against.

``python -m pytest_retrieval_eval.gates.schema > pytest_retrieval_eval/gates.schema.json`` writes the shipped copy anew.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pytest_retrieval_eval.gates.entries import DEFAULTS, ENTRY, HEADER, JUDGE_ENTRY
from pytest_retrieval_eval.gates.options import KEYWORDS, RULES, Options
from pytest_retrieval_eval.labels.judging.requirements import JudgeCheck

_TEXT = {"type": "string", "minLength": 1}
# A name such as 2024 or no is read as a text, whatever an editor takes it for.
_NAME = {"type": ["string", "number", "boolean"]}
_NAMES = {"anyOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1, "uniqueItems": True}]}
_GATE = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True}]}
_READER = {"type": "object", "required": ["kind"], "properties": {"kind": _TEXT}}
_VALUE = {"type": ["string", "number", "boolean", "null"]}

_DESCRIPTIONS = {
    "dataset": "A name of the ini value retrieval_datasets, or a folder relative to this file; a list makes one item "
    "of each.",
    "split": "Which qrels/SPLIT.tsv of the dataset.",
    "run": "The run under test: a name of runs: or of the ini value retrieval_runs, or a file relative to this one.",
    "runs": "Names for run files, relative to this file, that gates use in run: and against(NAME).",
    "stages": "The stages of the pipeline in their order, each with its run: a name of runs: or of the ini value "
    "retrieval_runs, or a file relative to this one. Gates name them in stage: and against(NAME).",
    "baseline": "The baseline that `baseline` means in a gate.",
    "reader": "Who reads for labels: erag: its settings, such as {kind: transformers, model: models/reader}.",
    "retriever": "The system under test, MODULE:NAME, such as myapp.search:search; without it the fixture retriever.",
    "defaults": "Options of every gate that does not set them itself.",
    "gates": "NAME: a gate. Each is one test item, FILE::NAME.",
    "gate": "A measure, a comparison and a target: recall@5 >= baseline - 0.01; a list is decided as one family.",
    "judge": "A judge to hold against the held-out labels of people: its name, or a mapping of what it is held to.",
    "marks": "Marks of pytest, for -m.",
    "xfail": "Why the gate is expected to fail. A gate that holds all the same, or measures nothing, fails.",
}


def schema() -> dict[str, Any]:
    """The schema, in builtin types."""
    options = _options()
    entry = {
        **options,
        "gate": _GATE,
        "dataset": _NAMES,
        "run": _NAME,
        "baseline": _NAME,
        "marks": {"type": "array", "items": _TEXT, "minItems": 1},
        "xfail": _TEXT,
    }
    told = _told(JudgeCheck)
    hints = typing.get_type_hints(JudgeCheck)
    held = {name: {**_of_type(hints[name]), "description": told[name]} for name in hints}
    judge = {**entry, "judge": {"anyOf": [_NAME, {**_object({}), "properties": held}]}}
    header = {
        "dataset": _NAMES,
        "split": _NAME,
        "run": _NAME,
        "runs": {"type": "object", "additionalProperties": _NAME, "minProperties": 1},
        "stages": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_-]*$"},
            "additionalProperties": _NAME,
            "minProperties": 1,
        },
        "baseline": _NAME,
        "reader": _READER,
        "retriever": {**_TEXT, "pattern": "^[^:/]+:[^:/]+$"},
        "defaults": _object({name: options[name] for name in DEFAULTS}),
        "gates": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": "^(?!__|pytest)[A-Za-z0-9._-]+$"},
            "additionalProperties": {
                "anyOf": [
                    *_GATE["anyOf"],
                    _object({name: entry[name] for name in ENTRY}, ["gate"]),
                    _object({name: judge[name] for name in JUDGE_ENTRY}, ["judge"]),
                ]
            },
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Gates of pytest-retrieval-eval",
        **_object({name: header[name] for name in HEADER}, ["gates"]),
    }


def _object(properties: Mapping[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    described = {
        name: {**found, "description": _DESCRIPTIONS[name]} if name in _DESCRIPTIONS else found
        for name, found in properties.items()
    }
    made: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": described}
    return {**made, "required": required} if required else made


def _options() -> dict[str, dict[str, Any]]:
    """Each keyword of a gate, from the types and the docstring of :class:`Options`."""
    # Run is imported for types only, and a file holds none.
    hints = typing.get_type_hints(Options, localns={"Run": type(None), "Reader": type(None)})
    told = _told(Options)
    found = {}
    for name in KEYWORDS:
        made = dict(_READER) if name == "reader" else _of_type(hints[name])
        if name == "rule":
            made = {"enum": list(RULES)}
        if name in told:
            made["description"] = told[name]
        found[name] = made
    return found


def _told(kind: type) -> dict[str, str]:
    """What the docstring of a class says of each of its fields."""
    text = re.sub(r"\n {8,}(?=\S)(?!\w+: )", " ", kind.__doc__ or "")
    return {name: told.replace("``", "").strip() for name, told in re.findall(r"^ *(\w+): (.+)$", text, re.MULTILINE)}


def _of_type(hint: Any) -> dict[str, Any]:
    """The schema of a type of Python; None and paths are other ways to say what a text or a left-out key says."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds: list[dict[str, Any]] = []
        for each in inner:
            told = each not in (type(None), Path) and typing.get_origin(each) is not Callable
            made = _of_type(each) if told else None
            if made is not None and made not in kinds:
                kinds.append(made)
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _of_type(inner[0]), "minItems": 1}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]},
        }
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if hint not in names:
        raise TypeError(f"the schema of gate files does not know the type {hint!r}: teach _of_type")
    return {"type": names[hint], **({"minLength": 1} if hint is str else {})}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
