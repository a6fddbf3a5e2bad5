"""``python -m pytest_retrieval_eval.measures`` prints the reference page of the measures."""

from __future__ import annotations

import sys

from pytest_retrieval_eval.measures.reference import page

if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(page())
