"""Devices that are reserved for the processes of a group, and actors that are placed on them."""

from typing import Any

import ray
from ray.exceptions import GetTimeoutError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from cooper_rl.engines.cluster.resources import Resources
from cooper_rl.errors import InputError


class Placement:
    """One bundle of devices for each process of a group; `release` frees them all."""

    def __init__(self, name: str, count: int, each: Resources, timeout_s: float) -> None:
        """Raises InputError where no devices get free in time."""
        self._each = each
        bundle = {"CPU": each.cpus} | ({"GPU": each.gpus} if each.gpus else {})
        self._group = placement_group([bundle] * count, strategy="PACK")
        try:
            ray.get(self._group.ready(), timeout=timeout_s)
        except GetTimeoutError as error:
            self.release()
            raise InputError(
                f"engine: the devices of {name} are taken by others; none were free within {timeout_s:g} s "
                "(start_timeout_s)"
            ) from error

    def start(self, actor: type, index: int, *arguments: Any) -> Any:
        """Begin to start an actor on a bundle; Ray does not start it again when it dies."""
        return (
            ray.remote(actor)
            .options(
                num_cpus=self._each.cpus,
                num_gpus=self._each.gpus,
                max_restarts=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, index),
            )
            .remote(*arguments)
        )

    def release(self) -> None:
        """Free the devices, which ends what still runs on them."""
        remove_placement_group(self._group)
