"""Requests a second of `cooper serve`, and how long they take: 1, 16 and 256 clients at once.

    python benchmarks/service/service_load.py --seconds 10
    python benchmarks/service/service_load.py --against ../other    # two checkouts in turn

Every request has one answer of the embedded world and asks for its reward under the embedded reward model, as trainers
that reward answer by answer do. `a reply` asks for the server's state, without any model, over a connection that stays
open. `a step` is a step as TRL takes it: one request with 64 answers, a commit and the wait for the update, in
milliseconds a step. Server and clients share the machine: one process each.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import yaml

from cooper_base.data.strict_json import parse_json
from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import Answer, AnswerGroup, AsyncRewardClient, Problem, RewardClient

CHECKOUT = Path(__file__).parents[2]
CLIENTS = (1, 16, 256)
REPLY, STEP, STEP_ANSWERS = "a reply", "a step", 64
START = "from cooper_base.cli.main import app; app()"


def settings(batch_rows: int, folder: Path) -> dict[str, Any]:
    model = {"model": str(ASSETS / "reward_model"), "max_input_tokens": 160}
    serve = {"port": 0, "folder": str(folder / "served"), "batch_rows": batch_rows, "max_pending": 1024}
    return {"kind": "static", "threads": 1, "reward_model": model, "serve": serve}


@contextmanager
def served(checkout: Path, batch_rows: int) -> Iterator[str]:
    """The address of a server that runs from the packages of this checkout."""
    paths = os.pathsep.join(str(path.resolve()) for path in checkout.glob("packages/*/src"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "serve.yaml").write_text(yaml.safe_dump(settings(batch_rows, folder)))
        command = [sys.executable, "-c", START, "serve", str(folder / "serve.yaml")]
        with (folder / "log").open("w") as log:
            environment = {**os.environ, "PYTHONPATH": paths}
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            while not (line := re.search(r"serving on (http\S+)", (folder / "log").read_text())):
                if process.poll() is not None:
                    raise RuntimeError((folder / "log").read_text())
                time.sleep(0.1)
            yield line[1]
        finally:
            process.terminate()
            process.wait()


def answers(count: int) -> list[AnswerGroup]:
    """Completions of the embedded world, one a group."""
    rows = [parse_json(line) for line in (ASSETS / "labelled.jsonl").read_text().splitlines()[:count]]
    problems = [Problem(f"p{i}", row["question"], row["reference_answer"]) for i, row in enumerate(rows)]
    return [
        AnswerGroup(f"g{i}", problem, [Answer(row["completion"])])
        for i, (problem, row) in enumerate(zip(problems, rows, strict=True))
    ]


async def load(url: str, clients: int, seconds: float, groups: list[AnswerGroup], size: int) -> dict[str, float]:
    """Every client sends its next request when the last is answered; milliseconds."""
    times: list[float] = []
    opened = [AsyncRewardClient(url) for _ in range(clients)]
    await asyncio.gather(*(client.score(groups[:1], train=False) for client in opened))  # connections are made
    begin = time.perf_counter()

    async def ask(number: int) -> None:
        rng = Random(number)
        while (start := time.perf_counter()) < begin + seconds:
            await opened[number].score(rng.sample(groups, size), train=False)
            times.append(time.perf_counter() - start)

    await asyncio.gather(*(ask(number) for number in range(clients)))
    wall = time.perf_counter() - begin
    await asyncio.gather(*(client.close() for client in opened))
    return {"requests/s": len(times) / wall, **percentiles(times)}


def steps(url: str, seconds: float, groups: list[AnswerGroup]) -> dict[str, float]:
    """Steps of a trainer that shares the machine with nobody else."""
    times: list[float] = []
    with RewardClient(url) as client:
        begin, step = time.perf_counter(), client.last_step
        while (start := time.perf_counter()) < begin + seconds:
            step += 1
            client.score(groups[:STEP_ANSWERS], step=step)
            client.update(step)
            times.append(time.perf_counter() - start)
    return {"requests/s": 3 * len(times) / sum(times), **percentiles(times)}


def replies(url: str, seconds: float) -> dict[str, float]:
    times: list[float] = []
    with RewardClient(url) as client:
        begin = time.perf_counter()
        while (start := time.perf_counter()) < begin + seconds:
            client.info()
            times.append(time.perf_counter() - start)
    return {"requests/s": len(times) / sum(times), **percentiles(times)}


def percentiles(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    last = len(times) - 1
    return {"p50 ms": 1000 * times[len(times) // 2], "p99 ms": 1000 * times[min(last, int(0.99 * len(times)))]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--size", type=int, default=1, help="Answers in a request.")
    parser.add_argument("--against", type=Path, help="Another checkout, measured in turn with this.")
    options = parser.parse_args()
    groups, results = answers(512), []
    versions = {"before": options.against} if options.against else {}
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("| version | batching | clients | requests/s | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
    for batch_rows in (512, 0):
        with ExitStack() as servers:
            checkouts = {**versions, "now": CHECKOUT}
            urls = {version: servers.enter_context(served(path, batch_rows)) for version, path in checkouts.items()}
            for clients, version in product((REPLY, *CLIENTS, STEP), urls):
                if clients == REPLY:
                    row = replies(urls[version], options.seconds)
                elif clients == STEP:
                    row = steps(urls[version], options.seconds, groups)
                else:
                    row = asyncio.run(load(urls[version], int(clients), options.seconds, groups, options.size))
                results.append({"version": version, "batch_rows": batch_rows, "clients": clients, **row})
                numbers = " | ".join(f"{value:.1f}" for value in row.values())
                print(f"| {version} | {'on' if batch_rows else 'off'} | {clients} | {numbers} |", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
