"""What has to hold whichever chunker is used: the evidence is at the top of the list."""


def test_the_evidence_is_found(assert_span_recall_at, baseline):
    assert assert_span_recall_at(5, min_coverage=0.9) >= baseline - 0.02


def test_its_characters_are_there(assert_span_coverage_at, baseline):
    assert assert_span_coverage_at(5) >= baseline - 0.02
