"""Three ways to cut a document into chunks. Each gives places: start and end in code points, end exclusive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Chunker = Callable[[str], Iterator[tuple[int, int]]]


def sections(text: str, size: int = 400) -> Iterator[tuple[int, int]]:
    """Before each heading, and within long sections between paragraphs.

    >>> list(sections("Intro.\\n\\n## One\\n\\nFirst.\\n\\nSecond.", size=20))
    [(0, 6), (8, 22), (24, 31)]
    """
    start = end = 0
    for block in re.finditer(r"\S.*?(?=\n\n|\Z)", text, re.DOTALL):
        heading = text.startswith("## ", block.start())
        if end and (heading or block.end() - start > size):
            yield start, end
            start = block.start()
        elif not end:
            start = block.start()
        end = block.end()
    if end:
        yield start, end


def windows(text: str, size: int = 450, overlap: int = 150) -> Iterator[tuple[int, int]]:
    """Of equal size, each with the end of the one before it.

    >>> list(windows("x" * 10, size=6, overlap=2))
    [(0, 6), (4, 10)]
    """
    for start in range(0, max(len(text) - overlap, 1), size - overlap):
        yield start, min(start + size, len(text))


def scraps(text: str, size: int = 120) -> Iterator[tuple[int, int]]:
    """Of equal size and small, so that they cost little: sentences and rows of tables are cut apart.

    >>> list(scraps("x" * 10, size=6))
    [(0, 6), (6, 10)]
    """
    return windows(text, size, overlap=0)


CHUNKERS: dict[str, Chunker] = {"sections": sections, "windows": windows, "scraps": scraps}
