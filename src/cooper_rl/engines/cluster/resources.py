"""What the processes of a run reserve, and whether a cluster has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cooper_rl.errors import InputError


@dataclass(frozen=True)
class Resources:
    """What one process reserves."""

    cpus: float
    gpus: float


@dataclass(frozen=True)
class Demand:
    """Processes of one kind, and the settings that change how much they need."""

    noun: str
    count: int
    each: Resources
    settings: Mapping[str, Sequence[str]]
    """By `CPU` and `GPU`."""


def check_room(demands: Sequence[Demand], nodes: Sequence[Mapping[str, float]]) -> None:
    """Raises InputError where the machines of a cluster, each with its `CPU` and `GPU`, have too little.

    A process cannot be divided between machines.
    """
    for kind in ("GPU", "CPU"):
        asking = [(d, d.each.gpus if kind == "GPU" else d.each.cpus) for d in demands if d.count]
        asking = [(demand, each) for demand, each in asking if each]
        needed, total = sum(d.count * each for d, each in asking), sum(node.get(kind, 0.0) for node in nodes)
        if needed > total + 1e-9:
            what = " and ".join(f"{d.count} {d.noun} with {each:g} {kind}s each" for d, each in asking)
            *first, last = [name for d, _ in asking for name in d.settings[kind]]
            raise InputError(
                f"engine: {what} need {needed:g}, and the cluster has {total:g}; lower {', '.join(first)} or {last}"
            )
        largest = max((node.get(kind, 0.0) for node in nodes), default=0.0)
        for demand, each in asking:
            if each > largest + 1e-9:
                raise InputError(
                    f"engine: one of the {demand.noun} needs {each:g} {kind}s of one machine, and the largest has "
                    f"{largest:g}; lower {demand.settings[kind][-1]}"
                )
