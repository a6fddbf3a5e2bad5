"""What a cache saved and what reading cost, and the line that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass
class Counters:
    """``hits`` readings that were there and ``misses`` that were not.

    Of the misses ``calls`` were made by this process, and ``waited`` by another meanwhile. Tokens and seconds are
    those of the calls; ``failed`` counts the calls that were refused or ended in an error, ``unknown_tokens`` those
    without token counts.
    """

    hits: int = 0
    misses: int = 0
    calls: int = 0
    waited: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unknown_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Counters) -> Counters:
        mine, others = asdict(self), asdict(other)
        return Counters(**{name: mine[name] + others[name] for name in mine})

    def to_dict(self) -> dict[str, float]:
        """As builtin types, to travel between processes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, float]) -> Counters:
        """What :meth:`to_dict` gave."""
        return cls(**found)  # type: ignore[arg-type]


def summary_line(counters: Counters, what: str = "reader") -> str:
    """The line of a session's summary; ``what`` read.

    >>> summary_line(Counters(hits=1200, misses=3, calls=3, input_tokens=1234, output_tokens=20, seconds=2.25))
    'reader: 1,200 hits, 3 misses, 3 calls, 1,234 tokens in, 20 out, 2.2 s'
    >>> summary_line(Counters(hits=2, misses=2, calls=1, waited=1, failed=1, unknown_tokens=1))
    'reader: 2 hits, 2 misses (1 read by another process), 1 call (1 failed), tokens unknown, 0.0 s'
    """
    parts = [
        _counted(counters.hits, "hit", "hits"),
        _counted(counters.misses, "miss", "misses")
        + (f" ({counters.waited:,} read by another process)" if counters.waited > 0 else ""),
        _counted(counters.calls, "call", "calls") + (f" ({counters.failed:,} failed)" if counters.failed else ""),
    ]
    if counters.calls and counters.unknown_tokens == counters.calls:
        parts.append("tokens unknown")
    elif counters.calls:
        least = "at least " if counters.unknown_tokens else ""
        parts.append(f"{least}{counters.input_tokens:,} tokens in, {counters.output_tokens:,} out")
    if counters.calls:
        parts.append(f"{counters.seconds:.1f} s")
    return f"{what}: " + ", ".join(parts)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
