"""A reader that says which process answered, and that can die; workers import it from here."""

from __future__ import annotations

import os
import time

from pytest_retrieval_eval.errors import GateError
from pytest_retrieval_eval.readers.reading import Reading


def answer(query, texts):
    return f"{query} {len(texts[0])}"


class Echo:
    """Answers with the query; dies once over q7 where ``folder`` says so, always over q13, refuses q11."""

    def __init__(self, folder="", dtype="float32", driver=0):
        self.folder, self.pid = folder, os.getpid()
        self.identity = {"kind": "echo", "dtype": dtype if self.pid != driver else "float32"}

    def read(self, items):
        for index, item in enumerate(items):
            if item.query == "q7" and self.folder and not os.path.exists(f"{self.folder}/died"):
                with open(f"{self.folder}/died", "w"):
                    os._exit(1)
            if item.query == "q13" and self.folder.endswith("always"):
                os._exit(1)
            if item.query == "q11" and self.folder.endswith("raises"):
                raise GateError("q11 is not for me")
            time.sleep(0.01)
            yield index, Reading(f"{item.query} {len(item.documents[0].text)}", "ok", 1, 1, model=str(self.pid))

    def close(self):
        pass
