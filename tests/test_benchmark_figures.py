"""What benchmarks write with ``--json``."""

from __future__ import annotations

import json

import pytest
from support import script

figures = script("benchmarks/figures.py")


def test_a_file_holds_every_figure_in_order_and_its_target(tmp_path):
    found = figures.Figures(tmp_path / "figures.json")
    assert found.ratio("a peer", ours=2.0, peer=5.0, target=2.5).verdict == "(at least 2.5: met)"
    assert found.bound("MB", ours=81.0, most=80.0).verdict == "(at most 80: MISSED)"
    assert found.ratio("for comparison", ours=2.0, peer=1.0).verdict == ""
    assert json.loads((tmp_path / "figures.json").read_text()) == [
        {"what": "a peer", "ours": 2.0, "peer": 5.0, "ratio": 2.5, "target": 2.5, "met": True},
        {"what": "MB", "ours": 81.0, "peer": None, "ratio": None, "target": 80.0, "met": False},
        {"what": "for comparison", "ours": 2.0, "peer": 1.0, "ratio": 0.5, "target": None, "met": None},
    ]


def test_what_failed_is_a_row_and_what_came_before_it_stays(tmp_path):
    found = figures.Figures(tmp_path / "figures.json")
    found.bound("MB", ours=49.0, most=80.0)
    found.failed("a peer", "it ended with status 1")
    assert [one["what"] for one in json.loads((tmp_path / "figures.json").read_text())] == [
        "MB",
        "a peer: it ended with status 1",
    ]
    assert found.status == 1


def test_the_status_is_1_where_a_target_is_missed_and_where_nothing_was_measured():
    found = figures.Figures()
    assert found.status == 1
    found.ratio("a peer", ours=1.0, peer=2.0, target=2.0)
    assert found.status == 0
    found.ratio("a peer", ours=1.0, peer=1.9, target=2.0)
    assert found.status == 1


def test_what_was_not_measured_is_no_figure():
    with pytest.raises(ValueError, match="a peer"):
        figures.Figures().ratio("a peer", ours=1.0, peer=float("nan"))
    with pytest.raises(ZeroDivisionError):
        figures.Figures().ratio("a peer", ours=0.0, peer=1.0)
