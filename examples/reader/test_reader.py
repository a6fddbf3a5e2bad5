"""What a reader can answer from the handbook's search results."""


def test_the_reader_finds_the_answer_in_one_of_five_documents(erag):
    assert erag.assert_metric("hit@5") >= 0.3


def test_the_first_document_is_mostly_enough(metric):
    assert metric("hit@1", labels="erag") >= 0.25


def test_documents_are_needed(erag):
    assert erag.lift(depth=5).mean > 0.3
