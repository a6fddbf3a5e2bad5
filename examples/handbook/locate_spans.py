"""Find every quote of ``quotes.jsonl`` in its document and write the places to ``spans.jsonl``.

A quote is the sentence, the table row or the list item that answers a query. It has to occur in the
``text`` of its document exactly once, character for character. The offsets count code points of ``text``;
``end`` is exclusive.

    python locate_spans.py           # write spans.jsonl
    python locate_spans.py --check   # only compare; exit status 1 when the stored file is not up to date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "eval" / "handbook"


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def locate(quotes: list[dict[str, Any]], texts: dict[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the spans of the quotes, sorted, and one sentence for each quote without exactly one place.

    >>> locate([{"query_id": "q1", "doc_id": "d", "quote": "é b"}], {"d": "a é b c"})
    ([{'query_id': 'q1', 'doc_id': 'd', 'start': 2, 'end': 5, 'text': 'é b'}], [])
    >>> locate([{"query_id": "q1", "doc_id": "d", "quote": "x"}], {"d": "a é b c"})[1]
    ["Query q1: the quote 'x' occurs 0 times in document d, not once."]
    """
    spans: list[dict[str, Any]] = []
    problems: list[str] = []
    for item in quotes:
        query_id, doc_id, quote = item["query_id"], item["doc_id"], item["quote"]
        text = texts.get(doc_id)
        if text is None:
            problems.append(f"Query {query_id}: document {doc_id} of the quote {quote!r} is not in the corpus.")
            continue
        start = text.find(quote)
        if not quote or start < 0 or text.find(quote, start + 1) >= 0:
            times = sum(text.startswith(quote, place) for place in range(len(text)))
            problems.append(
                f"Query {query_id}: the quote {quote!r} occurs {times} times in document {doc_id}, not once."
            )
            continue
        span = {
            "query_id": query_id,
            "doc_id": doc_id,
            "start": start,
            "end": start + len(quote),
            "text": quote,
        }
        span.update({key: item[key] for key in ("grade", "group") if key in item})
        spans.append(span)
    spans.sort(key=lambda span: (span["query_id"], span["doc_id"], span["start"]))
    return spans, problems


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Locate the quotes in the documents of the handbook.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when spans.jsonl differs")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the folder with the data (default: eval/handbook)")
    arguments = parser.parse_args()
    texts = {document["_id"]: document["text"] for document in read_jsonl(arguments.folder / "corpus.jsonl")}
    spans, problems = locate(read_jsonl(arguments.folder / "quotes.jsonl"), texts)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    wanted = "".join(json.dumps(span, ensure_ascii=False) + "\n" for span in spans).encode()
    target = arguments.folder / "spans.jsonl"
    if not arguments.check:
        target.write_bytes(wanted)
        print(f"{len(spans)} spans written to {target}")
    elif not target.is_file() or target.read_bytes() != wanted:
        print(f"{target} is not what the quotes give; run this script without --check.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
