"""Ray for the length of a run: started or joined, and the processes that the run has on it."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import ray
import torch

from cooper_rl.engines.cluster.group import RankGroup, Resources
from cooper_rl.engines.local.device import available_cores
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.engines.cluster import ClusterEngine

logger = logging.getLogger(__name__)


class Session:
    """The groups of processes of one run; `close` ends them, and Ray where this run has started it."""

    def __init__(self, engine: ClusterEngine, directory: Path) -> None:
        """Logs of all processes go to `directory/logs`. Raises InputError as `ClusterEngine.open` says."""
        self.groups: list[RankGroup] = []
        """The policy's, then that of the reward models where it is another."""
        self._started_ray = not ray.is_initialized()
        if self._started_ray:
            _start(engine.address)
        try:
            each = _resources(engine)
            sizes = {"policy": engine.policy_ranks, "reward_model": engine.reward_model_ranks}
            _check_room(each, sum(sizes.values()))
            logs = directory.absolute() / "logs"
            logs.mkdir(parents=True, exist_ok=True)
            for name, ranks in sizes.items():
                if ranks:
                    self.groups.append(
                        RankGroup(name, ranks, each, logs, engine.start_timeout_s, engine.call_timeout_s)
                    )
            for group in self.groups:
                group.join()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes."""
        for group in self.groups:
            group.close()
        if self._started_ray:
            ray.shutdown()


def _start(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Fractions of a device are reserved for actors that use it; the others must not lose sight of it.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None:
        # It says each time that calls need a token, which is what we want of it.
        logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
        ray.init(
            address="local",
            num_cpus=available_cores(),
            num_gpus=torch.cuda.device_count(),
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"engine.address: no Ray cluster at {address!r} ({error}); start one (`ray start --head`), or leave "
            "it out to start Ray on this machine"
        ) from error


def _resources(engine: ClusterEngine) -> Resources:
    gpus = engine.gpus_per_rank
    if gpus is None:
        gpus = 1.0 if ray.cluster_resources().get("GPU", 0) else 0.0
    return Resources(cpus=engine.cpus_per_rank, gpus=gpus)


def _check_room(each: Resources, ranks: int) -> None:
    found = ray.cluster_resources()
    for kind, setting, needed in (("GPU", "gpus_per_rank", each.gpus), ("CPU", "cpus_per_rank", each.cpus)):
        total = found.get(kind, 0.0)
        if needed * ranks > total + 1e-9:
            raise InputError(
                f"engine: {ranks} processes with {needed:g} {kind}s each need {needed * ranks:g}, and the cluster has "
                f"{total:g}; lower policy_ranks, reward_model_ranks or {setting}"
            )
