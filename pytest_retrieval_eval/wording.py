"""Words for sentences: ids and texts come from users and are shown so that they cannot break a line."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence

# Format (Cf: bidi overrides, zero-width), control (Cc), surrogates (Cs), private use (Co), unassigned (Cn)
# and the two Unicode line separators would change how the line around them is shown.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str, width: int = 60) -> str:
    """``text`` on one line, hidden characters escaped, cut with an ellipsis to at most ``width`` characters.

    >>> shown("two\\nlines")
    'two\\\\nlines'
    >>> shown("a long title", width=8)
    'a long …'
    """
    parts: list[str] = []
    length = 0
    for char in text:
        piece = _escaped(char)
        parts.append(piece)
        length += len(piece)
        if length > width:
            break
    if length <= width:
        return "".join(parts)
    # Whole characters are dropped, so that no escape is cut in two.
    while parts and length > width - 1:
        length -= len(parts.pop())
    return "".join(parts) + "…"


def both_ends(text: str, width: int = 60) -> str:
    """As :func:`shown`, but the ellipsis stands in the middle: what an error says ends with its place.

    >>> both_ends("ValueError: a long story (search.py:30 in search)", width=40)
    'ValueError: a l…(search.py:30 in search)'
    """
    whole = shown(text, 10 * len(text) + 1)
    if len(whole) <= width:
        return whole
    tail = 6 * width // 10
    return f"{whole[: width - 1 - tail]}…{whole[-tail:]}"


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isascii():
        return char if char.isprintable() else f"\\x{ord(char):02x}"
    if unicodedata.category(char) not in _HIDDEN:
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def listed(ids: Collection[str], cap: int = 5) -> str:
    """The first ``cap`` ids and how many more there are.

    >>> listed(["q1", "q2", "q3"], cap=2)
    'q1, q2 and 1 more'
    """
    first = [shown(each, 40) for each, _ in zip(ids, range(cap), strict=False)]
    rest = len(ids) - len(first)
    return ", ".join(first) + (f" and {rest} more" if rest else "")


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "query", "queries"), counted(2, "query", "queries"), counted(2, "pair")
    ('1 query', '2 queries', '2 pairs')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def number(value: float) -> str:
    """A number as a gate's text has it: the shortest digits that read back to the same value.

    >>> number(1.0), number(0.01), number(0.1 + 0.2)
    ('1', '0.01', '0.30000000000000004')
    """
    text = repr(float(value))
    return text.removesuffix(".0")


def means(*values: float, digits: int = 3) -> list[str]:
    """Means with ``digits`` decimals, or as many as it takes to tell different ones apart (at most 12).

    >>> means(0.5, 0.25)
    ['0.500', '0.250']
    >>> means(0.5, 0.5001), means(-0.00004, 0.0)
    (['0.5000', '0.5001'], ['−0.00004', '0.00000'])
    """
    for decimals in range(digits, 12):
        texts = [fixed(value, decimals) for value in values]
        if all(
            abs(a - b) <= 1e-9 or texts[i] != texts[j] for i, a in enumerate(values) for j, b in enumerate(values[:i])
        ):
            return texts
    return [fixed(value, 12) for value in values]


def fixed(value: float, decimals: int = 3, *, signed: bool = False) -> str:
    """A number as people read it: with a real minus, and none before 0; ``signed`` puts a plus before what is above.

    >>> fixed(-0.0321), fixed(-0.00001), fixed(0.5, 1), fixed(0.0321, signed=True), fixed(0.0, signed=True)
    ('−0.032', '0.000', '0.5', '+0.032', '0.000')
    """
    text = f"{value:.{decimals}f}"
    if not text.strip("-0."):  # "-0.000" is 0.000 to a reader, and must not count as another number
        return text.lstrip("-")
    return text.replace("-", "−") if text.startswith("-") else f"+{text}" if signed else text


def short(value: float) -> str:
    """A number in three digits.

    >>> short(-0.25), short(1234.5)
    ('−0.25', '1.23e+03')
    """
    text = f"{value:.3g}"
    return "−" + text[1:] if text.startswith("-") else text


def ends(low: float, high: float, decimals: int = 3, *, signed: bool = False) -> str:
    """The two ends of an interval.

    >>> ends(-0.1, 0.25)
    '[−0.100, 0.250]'
    """
    return f"[{fixed(low, decimals, signed=signed)}, {fixed(high, decimals, signed=signed)}]"


def with_sign(text: str) -> str:
    """A number's text, as ``means`` gives it, with a plus where it is above 0.

    >>> with_sign("−0.032"), with_sign("0.010"), with_sign("0.000 ms")
    ('−0.032', '+0.010', '0.000 ms')
    """
    return text if text.startswith("−") or not text.strip("0. ms") else "+" + text


def p_text(p: float) -> str:
    """A p-value with enough digits, never 0.

    >>> p_text(0.0007), p_text(0.0625), p_text(1.0), p_text(0.00012345), p_text(3.2e-12)
    ('0.0007', '0.0625', '1', '0.00012', '3.2e-12')
    """
    if p >= 0.001:
        return f"{p:.4f}".rstrip("0").rstrip(".")
    if p >= 1e-6:
        return f"{p:.{1 - math.floor(math.log10(p))}f}".rstrip("0")
    return f"{p:.1e}"


def joined(parts: Iterable[str]) -> str:
    """Words with commas and a final "or".

    >>> joined(["a", "b", "c"])
    'a, b or c'
    """
    words = list(parts)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] | None = None, gap: str = "  ") -> list[str]:
    """Rows of cells as lines of columns: those of ``left`` (None: all) begin together, the others end together.

    >>> aligned([("name", "n"), ("a", "10"), ("bcdef", "5")], left=[0])
    ['name    n', 'a      10', 'bcdef   5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            cell.ljust(width) if left is None or place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
