"""A gate: a measure, a comparison, a target. The text and the Python form make the same object."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal, NoReturn, cast

from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.target import OperandError, Reference, Target, baseline, real_number
from pytest_retrieval_eval.measures.names import Measure
from pytest_retrieval_eval.measures.registry import measured_in
from pytest_retrieval_eval.wording import number, shown

Operator = Literal[">=", ">", "<=", "<"]
OPERATORS: tuple[Operator, ...] = (">=", ">", "<=", "<")

_EXAMPLE = "write a measure, a comparison and a target: recall@5 >= baseline - 0.01"
_COMPARISON = re.compile(r">=|<=|==|!=|≥|≤|>|<")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:\s*(?P<unit>ms|s))?(?![\w.%])
    | (?P<sign>[-+*])
    | (?P<baseline>baseline)\b(?:\s*\[\s*(?P<name>"(?:[^"\\]|\\.)*"|[^\]"]*?)\s*\])?
    | against\s*\(\s*(?P<run>"(?:[^"\\]|\\.)*"|[^)"]*?)\s*\)
    )""",
    re.VERBOSE,
)


# How many milliseconds, in which times are counted, a unit has.
_UNITS = {"ms": 1.0, "s": 1000.0}


class _Quantity(float):
    """A number that was written with a unit."""


@dataclass(frozen=True, slots=True)
class Gate:
    """``measure operator target``, with its options.

    >>> str(Gate.parse("recall@5>=baseline-0.01"))
    'recall@5 >= baseline - 0.01'
    >>> Gate.parse("ndcg@10 >= 0.8").target
    0.8
    """

    measure: Measure
    operator: Operator
    target: Target | float
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise SettingsError(f"a gate compares with >=, >, <= or <, not with {shown(str(self.operator))!r}")
        if not isinstance(self.target, Target):
            object.__setattr__(self, "target", real_number(self.target, f"what {self.measure} is compared with"))

    def __str__(self) -> str:
        counted_in = measured_in(self.measure)
        target = self.target.text(counted_in) if isinstance(self.target, Target) else number(self.target) + counted_in
        return f"{self.measure} {self.operator} {target}"

    @classmethod
    def parse(cls, text: str, options: Options | None = None, /, **keywords: object) -> Gate:
        """The gate that ``text`` spells; keywords are those of :class:`Options`, where none are given ready made.

        The target is a number, ``baseline``, ``baseline[NAME]`` or ``against(NAME)``, with ``+``, ``-`` and
        ``*``. Of a measure of times every number but a factor has a unit, ``ms`` or ``s``: nobody has to know which one
        is meant. Raises a ``GateError`` that quotes the text and says what was expected.

        >>> str(Gate.parse("latency.p95 <= baseline * 1.2 + 0.01 s"))
        'latency.p95 <= 1.2 * baseline + 10ms'

        >>> Gate.parse("recall@5 == 0.8")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        pytest_retrieval_eval.errors.SettingsError: gate 'recall@5 == 0.8': means are compared with >=, ...
        """
        if not isinstance(text, str):
            raise OperandError(f"a gate is a text such as 'recall@5 >= baseline', not {shown(repr(text))}")
        if not text.strip():
            raise SettingsError(f"an empty gate measures nothing; {_EXAMPLE}")
        found = _comparisons(text)
        if any(sign in ("==", "!=") for sign, _, _ in found):
            _refuse(text, "means are compared with >=, >, <= or <; equality of two floats is chance")
        if not found:
            _refuse(text, f"there is no comparison; {_EXAMPLE}")
        if len(found) > 1:
            _refuse(text, "there are two comparisons; write one gate for each")
        (sign, start, end), *_ = found
        operator = cast("Operator", {"≥": ">=", "≤": "<="}.get(sign, sign))
        left, right = text[:start].strip(), text[end:].strip()
        if not left or not right:
            _refuse(text, f"{'the measure' if not left else 'the target'} is missing; {_EXAMPLE}")
        if re.match(r"[-+.\d]|baseline\b|against\b", left):
            _refuse(text, f"the measure stands on the left; {_EXAMPLE}")
        measure = Measure.parse(left)
        return cls(measure, operator, _target(right, text, measured_in(measure)), options or Options.of(**keywords))


def _comparisons(text: str) -> list[tuple[str, int, int]]:
    """Each comparison outside brackets and quotes: recall(rel=2)@5 holds a sign of its own."""
    found: list[tuple[str, int, int]] = []
    depth, quote, at = 0, False, 0
    while at < len(text):
        char = text[at]
        if quote and char == "\\":
            at += 2
            continue
        if char == '"':
            quote = not quote
        elif not quote and char in "([":
            depth += 1
        elif not quote and char in ")]":
            depth -= 1
        elif not quote and depth == 0 and (match := _COMPARISON.match(text, at)):
            found.append((match.group(), at, match.end()))
            at = match.end()
            continue
        at += 1
    return found


def _target(right: str, text: str, counted_in: str) -> Target | float:
    """sum := ['+'|'-'] product (('+'|'-') product)* ; product := operand ('*' operand)*."""
    tokens = _tokens(right, text)
    total: Target | float | None = None
    at = 0
    while at < len(tokens):
        sign = "+"
        if tokens[at] in ("+", "-"):
            sign = str(tokens[at])
            at += 1
        elif total is not None:
            _refuse(text, f"there is no +, - or * between two parts of the target {shown(right)!r}")
        product, at = _product(tokens, at, right, text, counted_in)
        if total is None and sign == "+":
            total = product
        elif isinstance(product, Target) and sign == "-":
            _refuse(text, "a target is a · run + b with a > 0; a run cannot be subtracted")
        else:
            left: Target | float = 0.0 if total is None else total
            total = left + product if sign == "+" else left - product
    if total is None:
        _refuse(text, f"the target is missing; {_EXAMPLE}")
    return total


def _product(
    tokens: list[str | float | Target], at: int, right: str, text: str, counted_in: str
) -> tuple[Target | float, int]:
    value: Target | float | None = None
    quantities = 0  # how often a run or a number with a unit stands in the product
    while True:
        if at >= len(tokens) or isinstance(tokens[at], str):
            _refuse(text, f"a number or a run is missing in the target {shown(right)!r}")
        token = tokens[at]
        if isinstance(token, _Quantity) and not counted_in:
            _refuse(text, "the measure has no unit: write the number alone")
        quantities += isinstance(token, (_Quantity, Target))
        value = token if value is None else value * token  # type: ignore[assignment,operator]
        at += 1
        if at >= len(tokens) or tokens[at] != "*":
            if counted_in and quantities != 1:
                _refuse(
                    text,
                    f"a time needs its unit, as in {number(float(value))}ms or {number(float(value))}s"  # type: ignore[arg-type]
                    if not quantities
                    else "a time times a time is none: write one of the two as a plain number",
                )
            return value, at  # type: ignore[return-value]
        at += 1


def _tokens(right: str, text: str) -> list[str | float | Target]:
    tokens: list[str | float | Target] = []
    at = 0
    while right[at:].strip():
        match = _TOKEN.match(right, at)
        if match is None:
            rest = right[at:].strip()
            if re.match(r"[\d.]+\s*%", rest):
                _refuse(text, f"a target is a number such as 0.8, not {shown(rest, 20)!r}")
            word = re.match(r"[^\W\d]\w*", rest)
            hint = f"; {did_you_mean(word.group(), ['baseline', 'against'])}" if word else ""
            _refuse(
                text,
                f"{shown(rest, 30)!r} is no target: it is a number, baseline, baseline[NAME] or "
                f"against(NAME), with +, - and *{hint}",
            )
        if match["number"] is not None:
            value = real_number(float(match["number"]), f"the target of gate {shown(text)!r}")
            tokens.append(value if match["unit"] is None else _Quantity(value * _UNITS[match["unit"]]))
        elif match["sign"] is not None:
            tokens.append(match["sign"])
        elif match["baseline"] is not None:
            tokens.append(baseline if match["name"] is None else baseline[_name(match["name"], text)])
        else:
            tokens.append(Target(Reference("run", _name(match["run"], text))))
        at = match.end()
    return tokens


def _name(raw: str, text: str) -> str:
    if raw.startswith('"'):
        try:
            name = json.loads(raw)
        except ValueError:
            _refuse(text, f"{shown(raw, 40)} is not a name in JSON's quotes")
    else:
        name = raw.strip("'") if len(raw) > 1 and raw[0] == raw[-1] == "'" else raw
    if not name:
        _refuse(text, "a baseline or run needs a name inside its brackets")
    return str(name)


def _refuse(text: str, why: str) -> NoReturn:
    raise SettingsError(f"gate {shown(text, 80)!r}: {why}")
