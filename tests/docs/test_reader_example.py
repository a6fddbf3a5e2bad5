"""The example of gates on what a reader can answer."""

from __future__ import annotations

import subprocess
import sys

from support import ROOT


def test_the_second_session_reads_nothing(tmp_path):
    def session(*arguments):
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
        cache = f"retrieval_cache={tmp_path}"
        done = subprocess.run(
            [*command, "-o", cache], cwd=ROOT / "examples/reader", capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stdout
        assert "3 passed" in done.stdout
        return done.stdout

    assert "1,123 misses, 1,123 calls" in session()
    assert "0 misses, 0 calls" in session("--retrieval-cache-mode=ro")
