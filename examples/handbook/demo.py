"""`make demo`: the same gates before and after a change of the tokenizer that looks harmless, and one failure whole.

Exits with 0 when the first part is green and the others are red, as they should be.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run_gates(tokenizer: str, *more: str) -> int:
    """Run the suite beside this file; its exit status."""
    options = ["-p", "no:cacheprovider", "--tb=short", "--show-capture=no", "--color=auto"]
    command = [sys.executable, "-m", "pytest", *options, *more]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return subprocess.call(command, cwd=HERE, env=environment | {"HANDBOOK_TOKENIZER": tokenizer})


def main() -> int:
    """The parts, each with a sentence that says what it shows."""
    print("1. The handbook search as it is, against its stored baseline:\n", flush=True)
    green = run_gates("stemmed")
    print("\n2. The same suite after somebody simplified the tokenizer (text.split(), no stemming):\n", flush=True)
    red = run_gates("refactored", "--tb=no")
    print("\n3. What one of these failures says:\n", flush=True)
    red_too = run_gates("refactored", "-k", "recall and not gates", "-q")
    if (green, red, red_too) == (0, 1, 1):
        print(
            "\nThe failure above is the point of this demo: the change looked harmless, and the gates say what it "
            "broke.\nThe suite, its labels and the search are in examples/handbook."
        )
        return 0
    print(f"\nThis is not what the demo should show: statuses {green}, {red} and {red_too} for 0, 1 and 1.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
