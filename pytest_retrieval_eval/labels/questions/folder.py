"""The files of written questions: new ones, or those of the same making that nobody has touched since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pytest_retrieval_eval.collection.formats.files import digest, utf8, write_atomically
from pytest_retrieval_eval.errors import DataError
from pytest_retrieval_eval.labels.questions.written import Questions

QUERIES, SPANS, RECORD = "queries.jsonl", "spans.jsonl", "questions.json"


def check_folder(folder: Path) -> None:
    """Raise DataError where writing would overwrite, or stand beside, what somebody else wrote."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; expected a folder for {QUERIES} and {SPANS}")
    own = _recorded(folder / RECORD)
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name.split(".")[0] not in ("queries", "spans", "qrels") or not (path.is_file() or path.name == "qrels"):
            continue
        if own.get(path.name) is None or path.is_dir():
            raise DataError(
                f"{path} was not written by this command, and people's labels are not overwritten: name another folder"
            )
        if digest(path) != own[path.name]:
            raise DataError(
                f"{path} was changed since it was written, and people's work is not overwritten: name another folder, "
                "or move the file away"
            )


def save(questions: Questions, folder: Path, made_of: Mapping[str, object]) -> None:
    """Write the queries, their spans, and what both were made of; equal questions give equal bytes."""
    check_folder(folder)
    lines = utf8("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in questions.queries()))
    questions.spans().save(folder / SPANS)
    with write_atomically(folder / QUERIES) as file:
        file.write(lines)
    record = {
        "files": {QUERIES: f"sha256:{hashlib.sha256(lines).hexdigest()}", SPANS: digest(folder / SPANS)},
        "made_of": dict(made_of),
        "max_overlap": questions.max_overlap,
        "passages": questions.passages,
        "questions": len(questions.written),
        "rewritten": questions.rewritten,
        "dropped": questions.dropped,
        "without": sum(one.outcome != "overlap" for one in questions.left),
    }
    with write_atomically(folder / RECORD) as file:
        file.write(utf8(json.dumps(record, ensure_ascii=False, indent=2) + "\n"))


def _recorded(path: Path) -> dict[str, str]:
    """The digests of the files that this command wrote here; empty where it wrote none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
