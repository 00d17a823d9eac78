"""A long run of tiny steps with every part at work; tells what the process holds on the way. Linux only.

    python packages/rl/tests/run/endurance.py STEPS

Prints a JSON line every 500 steps, or twenty lines in a shorter run: memory, open files, threads, child processes.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

import psutil

from chat_server import ChatServer, HttpAnswer, completion
from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.base import Metrics


def held() -> dict[str, float]:
    """What this process holds: resident memory, open files, threads, children (also ended ones not yet waited for)."""
    process = psutil.Process()
    return {
        "rss_mib": round(process.memory_info().rss / 2**20, 1),
        "files": process.num_fds(),
        "threads": process.num_threads(),
        "children": len(process.children()),
    }


def settings(folder: Path, steps: int, assistant_url: str) -> dict[str, Any]:
    """The embedded world with every part on and the smallest step: 2 problems, 2 completions of 4 tokens."""
    gold = "cooper_lab.arithmetic.problems:gold"
    problems = {"source": "arithmetic", "limit": 200, "gold": gold, "prompt": {"template": "{question}\n"}}
    assistant = {"kind": "chat", "base_url": assistant_url, "model": "tiny"}
    replay = {"pairs_per_step": 2, "labelled": str(ASSETS / "labelled.jsonl")}
    return {
        "output_dir": str(folder),
        "threads": 1,
        "steps": steps,
        "problems_per_step": 2,
        "policy": {"model": str(ASSETS / "policy"), "learning_rate": 1e-6},
        "reward_model": {"model": str(ASSETS / "reward_model"), "learning_rate": 1e-6, "max_input_tokens": 160},
        "problems": problems,
        "test_problems": {**problems, "split": "test", "limit": 4},
        "evaluation": {"every": 100, "k": 1},
        "rollout": {"n": 2, "max_tokens": 4},
        "algorithm": {"min_spread": 0.0},
        "cooptimization": {"assistant": assistant, "replay": replay},
        "checkpoint": {"every": 100},
    }


def run(steps: int, folder: Path) -> None:
    """Take the steps and print on the way what the process holds."""
    every = min(500, max(1, steps // 20))

    def respond(_: dict[str, Any], number: int) -> HttpAnswer:
        server.requests.clear()  # the server keeps every request for the tests; here that would grow
        return completion(f"The answer is {number}0007.")

    def tell(step: int, metrics: Metrics) -> None:
        if step % every == 0:
            told = {"step": step, **held(), "pairs": metrics.get("pairs/count"), "time": metrics.get("time/step")}
            print(json.dumps(told), flush=True)

    with ChatServer(respond) as server:
        config = build_config(settings(folder, steps, server.url))
        with CooperTrainer.from_config(config) as trainer:
            trainer.fit(on_step=tell)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        run(int(sys.argv[1]), Path(scratch))
