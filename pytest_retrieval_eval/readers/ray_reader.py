"""Readers on several GPUs or machines: one Ray actor each, and one process that hands out work and takes readings.

The driver alone gives readings on, so that it alone writes a cache. A unit of work is a batch of items; the unit of an
actor that died is queued again, for another actor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_retrieval_eval.collection.formats.files import excerpt
from pytest_retrieval_eval.errors import GateError, SettingsError
from pytest_retrieval_eval.readers.absent import require
from pytest_retrieval_eval.readers.reading import Item, Reader, Reading

# A unit whose actors have died so often is what kills them.
_DEATHS = 3


@dataclass
class _Unit:
    """Some items, by their index, and how many actors have died over them."""

    indices: tuple[int, ...]
    deaths: int = 0


class _Worker:
    """What runs in an actor: one reader, made there."""

    def __init__(self, factory: Callable[[], Reader]) -> None:
        self._reader = factory()

    def identity(self) -> Mapping[str, object] | None:
        return self._reader.identity

    def read(self, items: Sequence[Item]) -> list[tuple[int, Reading, Mapping[str, object] | None]]:
        return [(at, reading, self._reader.identity) for at, reading in self._reader.read(items)]


class RayReader:
    """Hands items to actors that each have a reader of ``factory()``.

    ``factory`` is a callable without arguments that Ray can pickle; it is also called here once, for the identity, so
    it should load no model (readers from ``reader_from`` do not). Each actor takes ``gpus`` and ``cpus``; ``actors`` is
    their number: by default one for each GPU of the cluster, or one for each ``cpus`` where there is no GPU. ``unit``
    items are handed out at a time: a multiple of the rows of a batch. ``address`` is that of a running cluster; by
    default one is started on this machine.

    An exception that a reader raises is raised here. A unit over which three actors have died is a reading ``error``
    for each of its items.
    """

    def __init__(
        self,
        factory: Callable[[], Reader],
        *,
        actors: int | None = None,
        gpus: float | None = None,
        cpus: float = 1,
        unit: int = 32,
        address: str | None = None,
    ) -> None:
        for name, value in (("actors", 1 if actors is None else actors), ("unit", unit)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingsError(f"{name} is {excerpt(value)}; expected an integer of at least 1")
        for name, amount in (("gpus", 0 if gpus is None else gpus), ("cpus", cpus)):
            if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 <= amount < 1e6:
                raise SettingsError(f"{name} is {excerpt(amount)}; expected a number that is not negative")
        self._factory, self._unit, self._address = factory, unit, address
        self._count, self._gpus, self._cpus = actors, gpus, cpus
        self._identity: Mapping[str, object] | None = None
        self._named = False
        self._ray: Any = None
        self._started = False
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Any, _Unit]] = {}
        self.died = 0  # actors

    @property
    def identity(self) -> Mapping[str, object] | None:
        """That of the readers: of the one that made the reading that was given last, where they differ by now."""
        if not self._named:
            reader = self._factory()
            try:
                self._identity, self._named = reader.identity, True
            finally:
                reader.close()
        return self._identity

    def read(self, items: Sequence[Item]) -> Iterator[tuple[int, Reading]]:
        """(index, reading) of each item, unit by unit as the actors finish them; the longest are handed out first."""
        if not items:
            return
        promised = self.identity
        self._start(promised)
        units = deque(self._units(items))
        try:
            while units or self._busy:
                while units and self._idle:
                    self._hand_out(units.popleft(), items)
                done, _ = self._ray.wait(list(self._busy), num_returns=1)
                actor, unit = self._busy.pop(done[0])
                try:
                    readings = self._ray.get(done[0])
                except self._ray.exceptions.RayActorError as error:
                    unit.deaths += 1
                    self.died += 1
                    self._idle.append(self._actor())
                    if unit.deaths < _DEATHS:
                        units.appendleft(unit)
                        continue
                    detail = f"{unit.deaths} actors died over this unit of work: {excerpt(str(error), 300)}"
                    lost = Reading("", "error", None, None, detail=detail)
                    readings = [(at, lost, self._identity) for at in range(len(unit.indices))]
                except self._ray.exceptions.RayTaskError as error:
                    self._idle.append(actor)
                    raise error.cause if isinstance(error.cause, Exception) else error from error
                else:
                    self._idle.append(actor)
                for at, reading, self._identity in readings:
                    yield unit.indices[at], reading
        finally:
            # Nobody waits for what is under way: the actors that do it are let go.
            for actor, _ in self._busy.values():
                self._ray.kill(actor)
            for _ in range(len(self._busy)):
                self._idle.append(self._actor())
            self._busy.clear()

    def close(self) -> None:
        """Let the actors go, and end the cluster where it was started here."""
        if self._ray is None:
            return
        for actor in self._idle:
            self._ray.kill(actor)
        self._idle.clear()
        if self._started:
            self._ray.shutdown()
        self._ray = None

    # --- how it is done -------------------------------------------------------------------------------

    def _units(self, items: Sequence[Item]) -> list[_Unit]:
        """Items of like length together, longest first; those of one query side by side where they are alike."""

        def length(index: int) -> int:
            return sum(len(passage.text) for passage in items[index].documents)

        order = sorted(range(len(items)), key=lambda index: -length(index))
        return [_Unit(tuple(order[begin : begin + self._unit])) for begin in range(0, len(order), self._unit)]

    def _hand_out(self, unit: _Unit, items: Sequence[Item]) -> None:
        actor = self._idle.pop()
        self._busy[actor.read.remote([items[index] for index in unit.indices])] = (actor, unit)

    def _start(self, promised: Mapping[str, object] | None) -> None:
        if self._ray is not None:
            return
        ray = require("ray", "ray", "a reader of kind 'ray'")
        if not ray.is_initialized():
            ray.init(address=self._address, include_dashboard=False, log_to_driver=False, logging_level="error")
            self._started = True
        self._ray = ray
        have = ray.cluster_resources()
        if self._gpus is None:
            self._gpus = 1 if have.get("GPU", 0) >= 1 else 0
        if self._count is None:
            of, each = ("GPU", self._gpus) if self._gpus else ("CPU", self._cpus)
            self._count = max(1, int(have.get(of, 1) // each)) if each else 1
        for kind, each in (("GPU", self._gpus), ("CPU", self._cpus)):
            if self._count * each > have.get(kind, 0):
                # Ray would wait for ever for what the cluster does not have.
                self.close()
                raise SettingsError(
                    f"{self._count} actors of {each} {kind} each are asked for, and the cluster has "
                    f"{have.get(kind, 0):g} {kind}"
                )
        self._idle = [self._actor() for _ in range(self._count)]
        try:
            for identity in ray.get([actor.identity.remote() for actor in self._idle]):
                if identity != promised:
                    raise GateError(
                        "the readers of the actors have another identity than the one that is made here (a dtype that "
                        "follows the device?): state it in their settings. "
                        f"{_differing(promised, identity)}"
                    )
        except ray.exceptions.RayError as error:
            self.close()
            cause = getattr(error, "cause", None)
            raise cause if isinstance(cause, GateError) else GateError(f"no actor could be made: {error}") from error
        except GateError:
            self.close()
            raise

    def _actor(self) -> Any:
        actor = self._ray.remote(num_gpus=self._gpus, num_cpus=self._cpus, max_restarts=0)(_Worker)
        return actor.remote(self._factory)


def _differing(here: Mapping[str, object] | None, there: Mapping[str, object] | None) -> str:
    one, other = dict(here or {}), dict(there or {})
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    return "; ".join(f"{name}: {excerpt(one.get(name))} here, {excerpt(other.get(name))} there" for name in names)
