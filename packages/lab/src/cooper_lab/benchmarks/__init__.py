"""Public reward-model benchmarks, each with its reader, its metrics and its rule for ties."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cooper_lab.benchmarks import judgebench, rewardbench, rewardbench2, rewardmath, rmbench
from cooper_lab.benchmarks.candidates import Candidates, Measured
from cooper_rl import InputError

COMMAND = "cooper verifyrm bench"


@dataclass(frozen=True)
class Benchmark:
    """How a benchmark's files are read, and what is computed from one score per completion."""

    read: Callable[[Path], list[Candidates]]
    measure: Callable[[Sequence[Candidates], Sequence[Sequence[float]]], Measured]


BENCHMARKS = {
    "judgebench": Benchmark(judgebench.read, judgebench.measure),
    "rewardbench": Benchmark(rewardbench.read, rewardbench.measure),
    "rewardbench2": Benchmark(rewardbench2.read, rewardbench2.measure),
    "rewardmath": Benchmark(rewardmath.read, rewardmath.measure),
    "rmbench": Benchmark(rmbench.read, rmbench.measure),
}
"""Benchmarks by name."""


def benchmark_named(name: str) -> Benchmark:
    """Raises InputError if there is no benchmark of that name."""
    if name not in BENCHMARKS:
        raise InputError(f"--benchmark {name!r}: no such benchmark; there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
