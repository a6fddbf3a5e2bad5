from pytest_retrieval_eval.labels.answers import normalised


def contained(predicted: str, gold: str) -> float:
    """1 if the sentence holds the gold answer: a reader that cannot make it shorter is not to blame."""
    return float(normalised(gold) in normalised(predicted))


def pytest_retrieval_answer_metrics():
    return {"contained": contained}
