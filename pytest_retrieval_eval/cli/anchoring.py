"""``spans``: gold spans held against the corpus as it is now, and moved with it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pytest_retrieval_eval.cli.console import Console
from pytest_retrieval_eval.collection.dataset import Corpus, Dataset
from pytest_retrieval_eval.collection.spans.anchors import Anchor, Anchors, check_spans
from pytest_retrieval_eval.collection.spans.respan import rewrite
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.wording import counted


def anchor_spans(arguments: argparse.Namespace, console: Console) -> int:
    """The command. What became of each span that is not kept goes to stdout, a line each."""
    dataset = Dataset.read(arguments.dataset)
    spans, corpus = dataset.spans, dataset.corpus
    if spans is None or corpus is None:
        what = "gold spans (spans.jsonl)" if spans is None else "corpus (corpus.jsonl) to hold the spans against"
        raise DataError(f"{arguments.dataset}: the dataset has no {what}")
    for warning in spans.warnings:
        console.note(warning)
    old = None if arguments.old_corpus is None else Corpus.read(arguments.old_corpus)
    anchors = check_spans(spans, corpus, old)
    written = rewrite(anchors, spans.source) if arguments.action == "reanchor" else 0
    if arguments.json:
        console.write(json.dumps(_document(anchors, written), ensure_ascii=False, indent=2) + "\n")
    else:
        for line in anchors.lines():
            console.write(line + "\n")
    console.say(str(anchors))
    counts = anchors.counts
    if counts["unchecked"]:
        console.note(f"{counted(counts['unchecked'], 'span has', 'spans have')} neither text nor hash to be checked by")
    if arguments.action == "reanchor":
        console.say(f"{counted(written, 'row')} of {spans.source} changed" if written else "nothing was written")
        return 1 if anchors.stale else 0
    return 1 if anchors.stale or counts["moved"] else 0


def _document(anchors: Anchors, written: int) -> dict[str, Any]:
    return {
        "source": anchors.spans.source,
        "counts": dict(anchors.counts),
        "written": written,
        "spans": [_row(anchor, anchors.spans.where(anchor.row)) for anchor in anchors.rows],
    }


def _row(anchor: Anchor, where: str) -> dict[str, Any]:
    span, now = anchor.span, anchor.now
    return {
        "status": anchor.status,
        "where": where,
        "query_id": span.query_id,
        "doc_id": span.doc_id,
        "start": span.start,
        "end": span.end,
        "text": span.text,
        "found": anchor.found,
        "now": None if now is None else {"start": now.start, "end": now.end, "text": now.text},
        "note": anchor.note,
    }
