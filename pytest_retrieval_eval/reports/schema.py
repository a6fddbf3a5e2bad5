"""The JSON Schema of the JSON report, made from the classes whose fields it holds.

``python -m pytest_retrieval_eval.reports.schema`` writes the shipped copy anew, beside this module.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_retrieval_eval.gates.verdict import Verdict
from pytest_retrieval_eval.reports.document import Report

SHIPPED = Path(__file__).with_name("retrieval-report.schema.json")
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
# "name, other: what they are", indented as in an Args section; following lines are indented deeper.
_ENTRY = re.compile(r"^ {4,8}(\w+(?:, \w+)*): (.+(?:\n {9,}\S.*)*)", re.MULTILINE)


def schema() -> dict[str, Any]:
    """The schema, in builtin types."""
    definitions: dict[str, Any] = {}
    _of(Report, definitions)
    report = definitions.pop("Report")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "retrieval-report",
        **report,
        "$defs": dict(sorted(definitions.items())),
    }


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; classes go to ``definitions``, under their names."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind is Any:
        return {}
    if origin is typing.Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        found = [_of(each, definitions) for each in arguments]
        if all(set(each) == {"type"} for each in found):
            return {"type": [each["type"] for each in found]}
        return {"anyOf": found}
    if origin is tuple and arguments[-1] is not Ellipsis:
        size = len(arguments)
        return {
            "type": "array",
            "prefixItems": [_of(each, definitions) for each in arguments],
            "minItems": size,
            "maxItems": size,
        }
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is Mapping or kind is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return _of_class(typing.cast("type[Any]", kind), definitions)
    raise TypeError(f"{kind} has no JSON Schema here; add it to {__name__}")


def _of_class(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a class may hold others of its own kind
        hints = typing.get_type_hints(kind, localns={"Verdict": Verdict})
        names = [each.name for each in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else kind._fields
        said = _descriptions(kind)
        definitions[name] = {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").partition("\n\n")[0].split()),
            "properties": {
                each: {**_of(hints[each], definitions), **({"description": said[each]} if each in said else {})}
                for each in names
            },
            "required": list(names),
        }
    return {"$ref": f"#/$defs/{name}"}


def _descriptions(kind: type[Any]) -> dict[str, str]:
    """What the Args section of a class says about each field."""
    found: dict[str, str] = {}
    for names, text in _ENTRY.findall((kind.__doc__ or "").partition("Args:\n")[2]):
        for name in names.split(", "):
            found[name] = " ".join(text.split())
    return found


def text() -> str:
    """The shipped copy, as it should be."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SHIPPED.write_text(text(), encoding="utf-8")
