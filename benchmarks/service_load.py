"""Requests a second of `cooper serve`, and how long they take: 1, 8 and 64 clients at once.

    python benchmarks/service_load.py --seconds 10

Every request has one answer of the embedded world and asks for its reward under the embedded reward model, as trainers
that reward answer by answer do. Server and clients share the machine: one process each.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from cooper_lab.arithmetic.arms import ASSETS  # noqa: E402
from cooper_rl import Answer, AnswerGroup, AsyncRewardClient, Problem  # noqa: E402
from cooper_rl.data.strict_json import parse_json  # noqa: E402
from service.served import Served  # noqa: E402

CLIENTS = (1, 8, 64)


def settings(batch_rows: int) -> dict[str, Any]:
    model = {"model": str(ASSETS / "reward_model"), "max_input_tokens": 160}
    return {
        "kind": "static",
        "threads": 1,
        "reward_model": model,
        "serve": {"batch_rows": batch_rows, "max_pending": 1024},
    }


def asked(count: int) -> list[AnswerGroup]:
    """Completions of the embedded world, one a group."""
    lines = (ASSETS / "labelled.jsonl").read_text().splitlines()[:count]
    rows = [parse_json(line) for line in lines]
    problems = [Problem(f"p{i}", row["question"], row["reference_answer"]) for i, row in enumerate(rows)]
    answers = [Answer(row["completion"]) for row in rows]
    return [
        AnswerGroup(f"g{i}", *pair) for i, pair in enumerate(zip(problems, [[one] for one in answers], strict=True))
    ]


async def load(url: str, clients: int, seconds: float, groups: list[AnswerGroup], size: int) -> dict[str, float]:
    """Every client sends its next request when the last is answered; milliseconds."""
    times: list[float] = []
    opened = [AsyncRewardClient(url) for _ in range(clients)]
    await asyncio.gather(*(client.score(groups[:1], train=False) for client in opened))  # connections are made
    begin = time.perf_counter()

    async def one(number: int) -> None:
        rng = Random(number)
        while (start := time.perf_counter()) < begin + seconds:
            await opened[number].score(rng.sample(groups, size), train=False)
            times.append(time.perf_counter() - start)

    await asyncio.gather(*(one(number) for number in range(clients)))
    wall = time.perf_counter() - begin
    await asyncio.gather(*(client.close() for client in opened))
    times.sort()
    return {
        "requests/s": len(times) / wall,
        "answers/s": size * len(times) / wall,
        "p50 ms": 1000 * times[len(times) // 2],
        "p99 ms": 1000 * times[min(len(times) - 1, int(0.99 * len(times)))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--size", type=int, default=1, help="Answers in a request.")
    options = parser.parse_args()
    groups = asked(512)
    results = []
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("| batching | clients | requests/s | answers/s | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
    for batch_rows in (512, 0):
        with tempfile.TemporaryDirectory() as folder, Served(Path(folder), settings(batch_rows)) as server:
            for clients in CLIENTS:
                found = asyncio.run(load(server.url, clients, options.seconds, groups, options.size))
                results.append({"batch_rows": batch_rows, "clients": clients, **found})
                numbers = " | ".join(f"{value:.1f}" for value in found.values())
                print(f"| {'on' if batch_rows else 'off'} | {clients} | {numbers} |", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
