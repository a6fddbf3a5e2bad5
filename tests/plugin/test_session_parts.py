"""Settings and once, without pytest around them."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest
from support import make_once

from pytest_retrieval_eval.collection.runs.run import Run
from pytest_retrieval_eval.errors import GateError, SettingsError, did_you_mean
from pytest_retrieval_eval.once import Once
from pytest_retrieval_eval.settings import Settings


def parse(tmp_path, ini=None, options=None, *, ci=False):
    return Settings.parse(ini or {}, options or {}, root=tmp_path, here=tmp_path, ci=ci)


def test_the_first_dataset_is_the_default(tmp_path):
    settings = parse(tmp_path, {"retrieval_datasets": ["b = x/b", "a=y"]})
    assert settings.default_dataset == "b"
    assert settings.dataset_path("b") == tmp_path / "x/b"
    assert settings.dataset_path("a") == tmp_path / "y"


def test_a_path_is_taken_where_no_name_fits(tmp_path):
    (tmp_path / "data").mkdir()
    assert parse(tmp_path).dataset_path("data") == tmp_path / "data"
    with pytest.raises(SettingsError, match="no dataset 'dat'"):
        parse(tmp_path).dataset_path("dat")


def test_a_file_name_may_contain_an_equals_sign(tmp_path):
    (tmp_path / "k=10.trec").write_text("")
    (tmp_path / "plain.trec").write_text("")
    runs = parse(tmp_path, options={"retrieval_run": ["k=10.trec", "a=plain.trec"]}).command_runs
    assert runs == {None: tmp_path / "k=10.trec", "a": tmp_path / "plain.trec"}


@pytest.mark.parametrize("value", ["", "=", "a =", "= b", "a"])
def test_a_line_that_is_no_name_and_path(tmp_path, value):
    with pytest.raises(SettingsError, match="not of the form"):
        parse(tmp_path, {"retrieval_datasets": [value]})


def test_suggestions():
    assert did_you_mean("nwe", ["new", "all"]) == "did you mean new?"
    assert did_you_mean("zzz", []) == "known: none"


def test_many_processes_make_a_value_once(tmp_path):
    with ProcessPoolExecutor(4) as pool:
        values = list(pool.map(make_once, [tmp_path] * 12))
    assert values == [7] * 12
    assert (tmp_path / "made").read_text() == "x"


def test_a_run_travels_whole(tmp_path):
    run = Run.of({"q": ["a", "b"], "r": []}, name="mine", depth=7)
    Once(tmp_path).get("run", lambda: run)
    other = Once(tmp_path).get("run", lambda: pytest.fail("made again"))
    assert other.digest == run.digest
    assert (other.name, other.depth, other.query_ids) == ("mine", 7, ("q", "r"))


def test_an_error_travels_as_well(tmp_path):
    def fail():
        raise GateError("no index at x")

    with pytest.raises(GateError, match="no index at x"):
        Once(tmp_path).get("run", fail)
    with pytest.raises(GateError, match="no index at x"):
        Once(tmp_path).get("run", lambda: pytest.fail("made again"))


def test_other_exceptions_are_not_kept(tmp_path):
    def fail():
        raise RuntimeError("flaky")

    with pytest.raises(RuntimeError):
        Once(tmp_path).get("run", fail)
    assert Once(tmp_path).get("run", lambda: 3) == 3
