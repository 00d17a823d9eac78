"""Calls to the processes of vLLM engines, from the driver and from the policy's processes."""

import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from cooper_rl.engines.base import EngineLost


class EngineActors:
    """The engines as a sender of weights sees them (`Receiver`). Every call may raise EngineLost.

    An engine that is silent for `timeout_s` is killed: what it would still say is of no use, and its devices are.
    """

    def __init__(self, actors: Sequence[Any], tensor_parallel: int, timeout_s: float) -> None:
        self.actors = list(actors)
        self.workers = len(actors) * tensor_parallel
        self._tensor_parallel, self._timeout_s = tensor_parallel, timeout_s

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """See `Receiver`. The processes of each engine follow those of the one before."""
        first = init_info["rank_offset"]
        offsets = range(first, first + self.workers, self._tensor_parallel)
        self.call("init_weight_transfer_engine", [({**init_info, "rank_offset": offset},) for offset in offsets])

    def start_weight_update(self) -> None:
        """See `Receiver`."""
        self._all("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """See `Receiver`."""
        self._all("update_weights", update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """See `Receiver`."""
        self._all("finish_weight_update", weight_version)

    def update_weight_version(self, new_version: str) -> None:
        """See `Receiver`."""
        self._all("update_weight_version", new_version)

    def weight_versions(self) -> list[str]:
        """See `Receiver`."""
        return [version for versions in self._all("weight_versions") for version in versions]

    def reset_prefix_cache(self) -> None:
        """See `Receiver`."""
        self._all("reset_prefix_cache")

    def lost(self) -> list[int]:
        """The numbers of the engines that are dead, or do not answer."""
        asked = [actor.call.remote("weight_versions") for actor in self.actors]
        answered, _ = ray.wait(asked, num_returns=len(asked), timeout=self._timeout_s)
        return [i for i, reference in enumerate(asked) if reference not in answered or _is_dead(reference)]

    def call(self, verb: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every engine with arguments of its own; what each returns.

        Raises the first error as it comes: in a transfer the other engines may wait for the one that failed.
        """
        return results(self._submit(verb, arguments), self.actors, self._timeout_s)

    def call_and_settle(self, verb: str, arguments: Sequence[tuple[Any, ...]], timeout_s: float) -> list[Any]:
        """`call`, but raises only when the other engines are done too, and answer again."""
        return results(self._submit(verb, arguments), self.actors, timeout_s, settle=True)

    def _submit(self, verb: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [actor.call.remote(verb, *given) for actor, given in zip(self.actors, arguments, strict=True)]

    def _all(self, verb: str, *arguments: Any) -> list[Any]:
        return self.call(verb, [arguments] * len(self.actors))


def results(calls: Sequence[Any], actors: Sequence[Any], timeout_s: float, settle: bool = False) -> list[Any]:
    """What the actors return.

    Raises the first error as it comes or, with `settle`, when the others are done. EngineLost for one that is dead, or
    silent for `timeout_s` and killed for it.
    """
    waiting, end = list(calls), time.monotonic() + timeout_s
    if settle:
        ray.wait(waiting, num_returns=len(waiting), timeout=timeout_s)
    while waiting:
        done, waiting = ray.wait(waiting, timeout=max(0.0, end - time.monotonic()))
        if not done:
            silent = [i for i, call in enumerate(calls) if call in waiting]
            for i in silent:
                ray.kill(actors[i])
            raise EngineLost(f"vLLM engine {_numbers(silent)} has not answered for {timeout_s:g} s")
        try:
            ray.get(done[0])
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:  # it died, or Ray has ended it where memory was short
            reason = str(error).strip().splitlines()
            dead = [calls.index(done[0])]
            raise EngineLost(f"vLLM engine {_numbers(dead)} is dead ({reason[0]} {reason[-1]})") from error
    return ray.get(list(calls))


def _numbers(engines: Sequence[int]) -> str:
    return ", ".join(map(str, engines))


def _is_dead(reference: Any) -> bool:
    try:
        ray.get(reference)
    except RayTaskError:
        raise
    except RayError:
        return True
    return False
