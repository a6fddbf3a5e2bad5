"""A gate: a measure, a comparison, a target. The text and the Python form make the same object."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal, NoReturn, cast

from pytest_retrieval_eval.errors import SettingsError, did_you_mean
from pytest_retrieval_eval.gates.options import Options
from pytest_retrieval_eval.gates.target import BASELINE, OperandError, Reference, Target, real_number
from pytest_retrieval_eval.gates.wording import number, shown
from pytest_retrieval_eval.measures.names import Measure

Operator = Literal[">=", ">", "<=", "<"]
OPERATORS: tuple[Operator, ...] = (">=", ">", "<=", "<")

_EXAMPLE = "write a measure, a comparison and a target: recall@5 >= baseline - 0.01"
_COMPARISON = re.compile(r">=|<=|==|!=|≥|≤|>|<")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.%])
    | (?P<sign>[-+*])
    | (?P<baseline>baseline)\b(?:\s*\[\s*(?P<name>"(?:[^"\\]|\\.)*"|[^\]"]*?)\s*\])?
    | against\s*\(\s*(?P<run>"(?:[^"\\]|\\.)*"|[^)"]*?)\s*\)
    )""",
    re.VERBOSE,
)


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
        target = str(self.target) if isinstance(self.target, Target) else number(self.target)
        return f"{self.measure} {self.operator} {target}"

    @classmethod
    def parse(cls, text: str, options: Options | None = None, /, **keywords: object) -> Gate:
        """The gate that ``text`` spells; keywords are those of :class:`Options`, where none are given ready made.

        The target is a number, ``baseline``, ``baseline[NAME]`` or ``against(NAME)``, with ``+``, ``-`` and
        ``*``. Raises a ``GateError`` that quotes the text and says what was expected.

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
        return cls(Measure.parse(left), operator, _target(right, text), options or Options.of(**keywords))


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


def _target(right: str, text: str) -> Target | float:
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
        product, at = _product(tokens, at, right, text)
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


def _product(tokens: list[str | float | Target], at: int, right: str, text: str) -> tuple[Target | float, int]:
    value: Target | float | None = None
    while True:
        if at >= len(tokens) or isinstance(tokens[at], str):
            _refuse(text, f"a number or a run is missing in the target {shown(right)!r}")
        token = tokens[at]
        value = token if value is None else value * token  # type: ignore[assignment,operator]
        at += 1
        if at >= len(tokens) or tokens[at] != "*":
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
            tokens.append(real_number(float(match["number"]), f"the target of gate {shown(text)!r}"))
        elif match["sign"] is not None:
            tokens.append(match["sign"])
        elif match["baseline"] is not None:
            tokens.append(BASELINE if match["name"] is None else BASELINE[_name(match["name"], text)])
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
