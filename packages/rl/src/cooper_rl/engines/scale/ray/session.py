"""Starts or joins Ray for one run, checks that the cluster has room, and starts the run's processes."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import ray
import torch
from ray.exceptions import RayError

from cooper_base.errors import EngineLost, InputError
from cooper_rl.engines.local.device import available_cores, warn_untried
from cooper_rl.engines.scale.ray.config import Resources
from cooper_rl.engines.scale.ray.ranks import RankGroup
from cooper_rl.engines.scale.ray.vllm_engines import RayEngines

if TYPE_CHECKING:
    from cooper_rl.engines.scale.ray import ClusterEngine


class Session:
    """The groups of processes of one run; `close` ends them, and Ray where this run has started it."""

    def __init__(self, engine: ClusterEngine, directory: Path) -> None:
        """Logs of all processes go to `directory/logs`. Raises InputError as `ClusterEngine.open` says."""
        self.groups: list[RankGroup] = []  # the policy's processes, then those of the reward model if it has its own
        self.engines: RayEngines | None = None
        """The vLLM engines. They hold their devices from the beginning, and load a model when `start` is called."""
        self._started_ray = not ray.is_initialized()
        self._agents: Agents | None = None
        try:
            if self._started_ray and engine.address is None:
                self._agents = Agents()
            with self._agents.marking() if self._agents is not None else nullcontext():
                if self._started_ray:
                    _start(engine.address)
            if self._agents is not None:
                self._agents.learn_numbers()
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            self.on_gpus = any(node.get("GPU") for node in nodes)
            if self.on_gpus:
                warn_untried("engine: cluster")
            each = Resources(engine.cpus_per_rank, gpus=float(self.on_gpus))
            sizes = {"policy": engine.policy_ranks, "reward_model": engine.reward_model_ranks}
            engines, of_engine = engine.samplers.processes(self.on_gpus, engine.cpus_per_rank)
            of_ranks = Demand("processes", sum(sizes.values()), each, RANK_SETTINGS)
            check_room([of_ranks, Demand("vLLM engines", engines, of_engine, ENGINE_SETTINGS)], nodes)
            logs = directory.absolute() / "logs"
            logs.mkdir(parents=True, exist_ok=True)
            self.groups += [RankGroup(name, ranks, each, logs) for name, ranks in sizes.items() if ranks]
            if engines:
                self.engines = RayEngines(engines, of_engine, logs)
            for group in self.groups:
                group.join()
        except RayError as error:  # one of Ray's own processes has died during the start
            self.close()
            raise EngineLost(f"Ray died while it was starting: {_first_line(error)}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for actors in (self.engines, *self.groups):
            if actors is not None:
                actors.close()
        if self._started_ray:
            ray.shutdown()
        if self._agents is not None:
            self._agents.close()


_END_OF_RAY = """
agents=
while read -r agent; do agents="$agents $agent"; done
for agent in $agents; do
  grep -qsa ray "/proc/$agent/cmdline" && kill -9 "$agent" 2>/dev/null
done
for turn in 1 2 3 4 5 6 7 8 9 10; do
  found=
  for process in /proc/[0-9]*; do
    if grep -qsa "$1" "$process/environ"; then
      found=1
      kill -9 "${process#/proc/}" 2>/dev/null
    fi
  done
  [ "$found" ] || [ "$turn" -lt 3 ] || exit 0
  sleep 0.2
done
"""


class Agents:
    """The processes that Ray starts on this machine, and a shell that ends what is left of them.

    Where the raylet is killed, as the system does with it when the driver is killed, its agents wait a minute for an
    answer of Ray before they end. The system tells the shell of the driver's end. It is there before Ray starts, so
    that a driver may be killed at any time, and knows the processes by a mark in their environment.
    """

    def __init__(self) -> None:
        self._mark = f"COOPER_RAY_OF={uuid4().hex}"
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _END_OF_RAY, "sh", self._mark],
            stdin=subprocess.PIPE,  # the system closes it with this process
            start_new_session=True,
        )

    @contextmanager
    def marking(self) -> Iterator[None]:
        """What is started meanwhile has the mark, and so has what it starts."""
        name, _, value = self._mark.partition("=")
        os.environ[name] = value
        try:
            yield
        finally:
            del os.environ[name]

    def learn_numbers(self) -> None:
        """Tell the shell the numbers of the raylet's agents: one that runs for a while writes its title over its
        environment, and with it over the mark."""
        import psutil  # noqa: PLC0415 - Ray brings it, in a place that only `import ray` makes known

        raylets = [child for child in psutil.Process().children() if child.name() == "raylet"]
        numbers = [f"{agent.pid}\n" for raylet in raylets for agent in raylet.children()]
        assert self._watcher.stdin is not None
        self._watcher.stdin.write("".join(numbers).encode())
        self._watcher.stdin.flush()

    def close(self) -> None:
        """End what `ray.shutdown` has left."""
        self._watcher.communicate()


@dataclass(frozen=True)
class Demand:
    """The processes of one kind. `settings` names, for `CPU` and for `GPU`, the settings that change how much they
    need."""

    noun: str
    count: int
    each: Resources
    settings: Mapping[str, Sequence[str]]


_RANKS, _ENGINES = ("policy_ranks", "reward_model_ranks"), ("samplers.engines",)
RANK_SETTINGS = {"GPU": _RANKS, "CPU": (*_RANKS, "cpus_per_rank")}
ENGINE_SETTINGS = {"GPU": (*_ENGINES, "samplers.tensor_parallel"), "CPU": (*_ENGINES, "cpus_per_rank")}


def check_room(demands: Sequence[Demand], nodes: Sequence[Mapping[str, float]]) -> None:
    """Raises InputError if the machines, each with its `CPU` and `GPU`, have too little room. A process cannot span two
    machines."""
    for kind in ("GPU", "CPU"):
        asking = [(d, each) for d in demands if d.count and (each := d.each.gpus if kind == "GPU" else d.each.cpus)]
        rooms = [node.get(kind, 0.0) for node in nodes]
        needed = sum(d.count * each for d, each in asking)
        if needed > sum(rooms) + 1e-9:
            what = " and ".join(f"{d.count} {d.noun} with {each:g} {kind}s each" for d, each in asking)
            *first, last = [name for d, _ in asking for name in d.settings[kind]]
            raise InputError(
                f"engine: {what} need {needed:g}, and the cluster has {sum(rooms):g}; lower {', '.join(first)} or "
                f"{last}"
            )
        largest = max(rooms, default=0.0)
        for demand, each in asking:
            if each > largest + 1e-9:
                raise InputError(
                    f"engine: one of the {demand.noun} needs {each:g} {kind}s of one machine, and the largest has "
                    f"{largest:g}; lower {demand.settings[kind][-1]}"
                )


def _start(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray hides all devices from actors that reserve none of them; ours must still see them.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    where: dict[str, Any] = {"address": address}
    if address is None:
        # Ray logs on every start that calls need a token. We want the token and not the log line.
        logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
        devices = {"num_cpus": available_cores(), "num_gpus": torch.cuda.device_count()}
        where = {"address": "local", "include_dashboard": False, **devices}
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.WARNING)
    # No narrower type will do: Ray raises plain Exception where one of its processes dies while it starts.
    except Exception as error:
        ray.shutdown()
        if address is None:
            raise EngineLost(f"Ray does not start on this machine: {_first_line(error)}") from error
        raise InputError(
            f"engine.address: no Ray cluster at {address!r} ({error}); start one (`ray start --head`), or leave "
            "it out to start Ray on this machine"
        ) from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
