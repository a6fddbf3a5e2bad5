"""What the driver of the Ray reader does, with a stand-in for ray that runs every actor in this process.

``test_ray_reader.py`` has the same with real actors, where ray is installed.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.readers.ray_reader import RayReader
from pytest_retrieval_eval.readers.reading import Item, Passage, Reading

ITEMS = [Item(f"q{number}", (Passage("x" * number),)) for number in range(20)]


class Death(BaseException):
    """The process of an actor is gone."""


class RayError(Exception):
    pass


class RayActorError(RayError):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class Reference:
    def __init__(self, function, arguments):
        self.function, self.arguments = function, arguments


class StandIn:
    """As much of ray as the driver uses; work is done when it is waited for."""

    exceptions = SimpleNamespace(RayError=RayError, RayActorError=RayActorError, RayTaskError=RayTaskError)

    def __init__(self, **resources):
        self.resources = {"CPU": 2, **resources}
        self.made, self.killed, self.asked, self.up = [], [], [], False

    def is_initialized(self):
        return self.up

    def init(self, **options):
        self.up = True

    def shutdown(self):
        self.up = False

    def cluster_resources(self):
        return self.resources

    def remote(self, **options):
        self.asked.append(options)
        return lambda cls: SimpleNamespace(remote=lambda *arguments: self._actor(cls(*arguments)))

    def _actor(self, worker):
        def method(name):
            return SimpleNamespace(remote=lambda *arguments: Reference(getattr(worker, name), arguments))

        actor = SimpleNamespace(identity=method("identity"), read=method("read"))
        self.made.append(actor)
        return actor

    def wait(self, references, num_returns):
        return references[-1:], references[:-1]  # the last first: in another order than they were asked for

    def get(self, reference):
        if isinstance(reference, list):
            return [self.get(one) for one in reference]
        try:
            return reference.function(*reference.arguments)
        except Death:
            raise RayActorError("the actor died") from None
        except Exception as error:
            raise RayTaskError(error) from error

    def kill(self, actor):
        self.killed.append(actor)


class Echo:
    """Answers with the query, unless ``fate`` has something else for it."""

    def __init__(self, fate, identity):
        self.fate, self.identity = fate, identity

    def read(self, items):
        for index, item in enumerate(items):
            error = self.fate.get(item.query, [])
            if error:
                raise error.pop() if isinstance(error, list) else error
            if item.query == "q3":
                self.identity = {**self.identity, "rows": 4}
            yield index, Reading(item.query, "ok", 1, 1)

    def close(self):
        pass


@pytest.fixture
def ray(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def over(fate=None, *, driver=None, **settings):
    identities = iter([driver] if driver else [])
    return RayReader(
        lambda: Echo(fate or {}, next(identities, {"kind": "echo", "rows": 8})), **{"actors": 2, "unit": 3, **settings}
    )


def test_every_item_is_read_once_longest_first(ray):
    found = list(over().read(ITEMS))
    assert sorted(index for index, _ in found) == list(range(20))
    assert all(reading.text == f"q{index}" for index, reading in found)
    # two are handed out at first, and the stand-in ends the later one first
    assert {index for index, _ in found[:3]} == {14, 15, 16}
    assert len(ray.made) == 2


def test_the_unit_of_an_actor_that_died_is_queued_again(ray):
    reader = over({"q7": [Death(), Death()]})
    found = dict(reader.read(ITEMS))
    assert {index: reading.text for index, reading in found.items()} == {index: f"q{index}" for index in range(20)}
    assert reader.died == 2
    assert len(ray.made) == 4


def test_a_unit_that_kills_every_actor_is_an_error(ray):
    reader = over({"q7": [Death()] * 9})
    found = dict(reader.read(ITEMS))
    failed = {index for index, reading in found.items() if reading.status == "error"}
    assert failed == {5, 6, 7}
    assert found[7].detail.startswith("3 actors died over this unit of work")
    assert len(found) == 20


def test_what_a_reader_raises_is_raised_and_the_work_under_way_is_let_go(ray):
    reader = over({"q15": GateError("not for me")})
    with pytest.raises(GateError, match="not for me"):
        list(reader.read(ITEMS))
    assert len(ray.killed) == 1
    reader.close()
    assert len(ray.killed) == len(ray.made) == 3
    assert not ray.up


def test_who_stops_listening_lets_the_work_go_and_can_read_again(ray):
    reader = over()
    readings = reader.read(ITEMS)
    next(readings)
    readings.close()
    assert len(ray.killed) == 1
    assert len(dict(reader.read(ITEMS))) == 20


def test_the_identity_is_that_of_the_reading_that_was_given_last(ray):
    reader = over(actors=1, unit=20)
    rows = {index: reader.identity["rows"] for index, _ in reader.read(ITEMS)}
    assert rows == {index: 4 if index <= 3 else 8 for index in range(20)}


def test_readers_of_another_identity_are_refused(ray):
    reader = over(driver={"kind": "echo", "rows": 2})
    with pytest.raises(GateError, match="rows: 2 here, 8 there"):
        list(reader.read(ITEMS))
    assert not ray.up


@pytest.mark.parametrize(
    ("resources", "settings", "actors", "options"),
    [
        ({"CPU": 4}, {}, 4, {"num_gpus": 0, "num_cpus": 1}),
        ({"CPU": 4}, {"cpus": 2}, 2, {"num_gpus": 0, "num_cpus": 2}),
        ({"CPU": 4, "GPU": 3}, {}, 3, {"num_gpus": 1, "num_cpus": 1}),
        ({"CPU": 4, "GPU": 2}, {"gpus": 0.5}, 4, {"num_gpus": 0.5, "num_cpus": 1}),
    ],
)
def test_an_actor_for_each_gpu_or_else_for_each_cpu(ray, resources, settings, actors, options):
    ray.resources = resources
    list(over(actors=None, **settings).read(ITEMS))
    assert len(ray.made) == actors
    assert ray.asked[0] == {**options, "max_restarts": 0}


def test_more_than_the_cluster_has_is_no_endless_wait(ray):
    with pytest.raises(SettingsError, match=r"3 actors of 1 CPU each are asked for, and the cluster has 2 CPU"):
        list(over(actors=3).read(ITEMS))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"actors": 0}, "actors is 0"), ({"unit": True}, "unit is True"), ({"gpus": -1}, "gpus is -1")],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        over(**settings)
