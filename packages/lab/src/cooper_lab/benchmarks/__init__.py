"""Public reward-model benchmarks, each with its reader, its metrics and its rule for ties."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cooper_lab.benchmarks import measures, rows
from cooper_lab.benchmarks.candidates import Candidates, Measured
from cooper_rl import InputError

COMMAND = "cooper verifyrm bench"


@dataclass(frozen=True)
class Benchmark:
    """How a benchmark's files are read, and what is computed from one score per completion."""

    read: Callable[[Path], list[Candidates]]
    measure: Callable[[Sequence[Candidates], Sequence[Sequence[float]]], Measured]


BENCHMARKS = {
    "judgebench": Benchmark(rows.JUDGEBENCH.read, measures.of_judgebench),
    "rewardbench": Benchmark(rows.REWARDBENCH.read, measures.of_rewardbench),
    "rewardbench2": Benchmark(rows.REWARDBENCH2.read, measures.of_rewardbench2),
    "rewardmath": Benchmark(rows.read_rewardmath, measures.of_rewardmath),
    "rmbench": Benchmark(rows.RMBENCH.read, measures.of_rmbench),
}
"""Benchmarks by name."""


def benchmark_named(name: str) -> Benchmark:
    """Raises InputError if there is no benchmark of that name."""
    if name not in BENCHMARKS:
        raise InputError(f"--benchmark {name!r}: no such benchmark; there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
