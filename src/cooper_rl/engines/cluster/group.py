"""The processes that share a model: alive together or not at all."""

import logging
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import ray
from ray.exceptions import (
    GetTimeoutError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    RayActorError,
    RayTaskError,
)
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from cooper_rl.engines.base import EngineLost
from cooper_rl.engines.cluster.rank import Rank
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

GRACE_S = 90.0
"""After an error in one process the others get this long: they may wait for it in a collective, or one may be dead.
Ray tells at once of a process that is dead, but only after a minute of a machine that is gone."""
_FULL = (ObjectStoreFullError, OutOfDiskError)


@dataclass(frozen=True)
class Resources:
    """What one process reserves."""

    cpus: float
    gpus: float


class RankGroup:
    """Processes that call the same verbs in the same order; each is a `Rank`."""

    def __init__(
        self, name: str, ranks: int, each: Resources, logs: Path, start_timeout_s: float, call_timeout_s: float
    ) -> None:
        """Reserve devices, and begin to start the processes. Raises InputError where no devices get free in time."""
        self.name = name
        self._start_timeout_s, self._call_timeout_s = start_timeout_s, call_timeout_s
        self._lock = Lock()
        self._keys = 0
        self._forgotten: deque[str] = deque()
        bundle = {"CPU": each.cpus} | ({"GPU": each.gpus} if each.gpus else {})
        self._bundles = placement_group([bundle] * ranks, strategy="PACK")
        try:
            ray.get(self._bundles.ready(), timeout=start_timeout_s)
        except GetTimeoutError as error:
            remove_placement_group(self._bundles)
            raise InputError(
                f"engine: the devices of {name} are taken by others; none were free within {start_timeout_s:g} s "
                "(start_timeout_s)"
            ) from error
        self.actors: list[Any] = [
            ray.remote(Rank)
            .options(
                num_cpus=each.cpus,
                num_gpus=each.gpus,
                max_restarts=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._bundles, i),
            )
            .remote(str(logs / f"{name}-{i}.log"), max(1, int(each.cpus)), sys.path)
            for i in range(ranks)
        ]

    def join(self) -> None:
        """Wait until the processes are there and know each other."""
        (address,) = _results(self.name, [self.actors[0].address.remote()], self._start_timeout_s)
        joining = [
            actor.join.remote(address, rank, len(self.actors), 2 * self._call_timeout_s)  # this side gives up first
            for rank, actor in enumerate(self.actors)
        ]
        _results(self.name, joining, self._start_timeout_s)

    def new_key(self) -> str:
        """A name for another learner or sampler of these processes."""
        with self._lock:
            self._keys += 1
            return f"{self.name}-{self._keys}"

    def call(self, verb: str, *arguments: Any) -> Any:
        """Call a verb of every process, and return what the first one returns; see `call_all`."""
        return self.call_all(verb, *arguments)[0]

    def call_all(self, verb: str, *arguments: Any) -> list[Any]:
        """Call a verb of every process, and return what each returns.

        Arguments go to each machine once. Raises what the verb raises, and EngineLost for a dead or silent process.
        """
        try:
            given = ray.put(arguments)
        except _FULL as error:
            raise EngineLost(_no_room(self.name)) from error
        with self._lock:  # two threads must not reach two processes in different orders
            while self._forgotten:
                self._submit("drop", (self._forgotten.popleft(),))
            references = self._submit(verb, given)
        return _results(self.name, references, self._call_timeout_s)

    def forget(self, key: str) -> None:
        """Free what stands under a key, when the processes are called next; garbage collection may call this."""
        self._forgotten.append(key)

    def _submit(self, verb: str, given: Any) -> list[Any]:
        return [getattr(actor, verb).remote(given) for actor in self.actors]

    def close(self) -> None:
        """End the processes and free their devices."""
        for actor in self.actors:
            ray.kill(actor)
        remove_placement_group(self._bundles)


def _results(group: str, references: list[Any], timeout_s: float) -> list[Any]:
    """What the processes return, once all have."""
    waiting, failure, deadline = list(references), None, time.monotonic() + timeout_s
    while waiting:
        done, waiting = ray.wait(waiting, timeout=max(0.0, deadline - time.monotonic()))
        if not done:
            break
        try:
            ray.get(done[0])
        except (RayActorError, ObjectLostError) as error:
            reason = str(error).strip().splitlines()
            raise EngineLost(f"a process of {group} is dead ({reason[0]} {reason[-1]})") from error
        except RayTaskError as error:
            failure, deadline = failure or error, min(deadline, time.monotonic() + GRACE_S)
    if failure is not None and isinstance(failure.cause, _FULL):
        raise EngineLost(_no_room(group)) from failure
    if failure is not None:
        raise failure.cause from failure
    if waiting:
        raise EngineLost(f"a process of {group} has not answered for {timeout_s:g} s (call_timeout_s)")
    return ray.get(references)


def _no_room(group: str) -> str:
    return (
        f"Ray's object store is full, and so is the disk that it spills to; a call to {group} does not fit. Make room "
        "below Ray's temporary folder, or start Ray with more --object-store-memory"
    )
