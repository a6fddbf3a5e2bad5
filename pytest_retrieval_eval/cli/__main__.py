"""``python -m pytest_retrieval_eval.cli``: the same as the program ``pytest-retrieval-eval``."""

from __future__ import annotations

import sys

from pytest_retrieval_eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
