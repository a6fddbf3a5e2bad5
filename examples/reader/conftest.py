from pytest_retrieval_eval import normalised_answer


def contained(predicted: str, gold: str) -> float:
    """1 if the sentence holds the gold answer: a reader that cannot make it shorter is not to blame."""
    return float(normalised_answer(gold) in normalised_answer(predicted))


def pytest_retrieval_answer_metrics():
    return {"contained": contained}
