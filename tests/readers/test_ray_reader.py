"""The reader over Ray actors, on one cluster of two; ``test_ray_driver.py`` has the corners without processes.

Skipped where ray is not installed: it has no release for every Python.
"""

from __future__ import annotations

import os
from functools import partial

import pytest
from reader_echo import Echo
from support import ROOT

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.readers.config import reader_from
from pytest_retrieval_eval.readers.reading import Item, Passage

pytestmark = pytest.mark.ray

ITEMS = [Item(f"q{number}", (Passage("x" * number),)) for number in range(40)]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        # Actors import reader_echo, which pytest alone has put on the path of this process.
        path = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def over(folder="", **settings):
    from pytest_retrieval_eval.readers.ray_reader import RayReader

    return RayReader(partial(Echo, str(folder)), actors=2, unit=4, **settings)


def texts(found):
    assert sorted(found) == list(range(len(ITEMS)))
    return [found[index].text for index in range(len(ITEMS))]


SERIAL = texts(dict(Echo().read(ITEMS)))


def test_two_actors_read_as_one_does_and_one_that_dies_over_its_work_is_replaced(tmp_path):
    reader = over(tmp_path)
    found = dict(reader.read(ITEMS))
    assert texts(found) == SERIAL
    assert (tmp_path / "died").exists()
    assert reader.died == 1
    pids = {int(reading.model) for reading in found.values()}
    assert len(pids) >= 2
    assert os.getpid() not in pids
    assert texts(dict(reader.read(ITEMS))) == SERIAL
    reader.close()
    reader.close()


def test_a_unit_that_kills_every_actor_is_an_error_and_the_rest_is_read(tmp_path):
    folder = tmp_path / "always"
    folder.mkdir()
    (folder / "died").touch()
    reader = over(folder)
    found = dict(reader.read(ITEMS))
    failed = {index for index, reading in found.items() if reading.status == "error"}
    assert 13 in failed
    assert len(failed) == 4
    assert found[13].detail.startswith("3 actors died over this unit of work")
    assert all(found[index].text == SERIAL[index] for index in set(found) - failed)
    reader.close()


def test_what_a_reader_raises_is_raised_here_and_the_next_work_is_done(tmp_path):
    folder = tmp_path / "raises"
    folder.mkdir()
    (folder / "died").touch()
    reader = over(folder)
    with pytest.raises(GateError, match="q11 is not for me"):
        list(reader.read(ITEMS))
    readings = reader.read(ITEMS)
    next(readings)
    readings.close()  # who stops listening lets the work go
    again = dict(reader.read(ITEMS[:4]))
    assert [again[index].text for index in range(4)] == SERIAL[:4]
    reader.close()


def test_actors_whose_readers_are_others_are_refused():
    from pytest_retrieval_eval.readers.ray_reader import RayReader

    reader = RayReader(partial(Echo, dtype="bfloat16", driver=os.getpid()), actors=1)
    with pytest.raises(GateError, match="dtype: 'float32' here, 'bfloat16' there"):
        list(reader.read(ITEMS))


def test_more_than_the_cluster_has_is_no_endless_wait():
    reader = over(gpus=1)
    with pytest.raises(SettingsError, match=r"2 actors of 1 GPU each are asked for, and the cluster has 0 GPU"):
        list(reader.read(ITEMS))


def test_a_reader_of_settings_is_made_in_each_actor(tmp_path):
    inner = {"kind": "callable", "function": "reader_echo:answer", "identity": "echo, v1"}
    serial = reader_from(inner, root=tmp_path)
    reader = reader_from({"kind": "ray", "reader": inner, "actors": 2, "unit": 8}, root=tmp_path)
    assert reader.identity == serial.identity
    assert texts(dict(reader.read(ITEMS))) == texts(dict(serial.read(ITEMS)))
    reader.close()
