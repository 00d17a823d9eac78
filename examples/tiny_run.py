"""The run that the other examples modify: one step in the embedded arithmetic world, in a few seconds on a CPU."""

import json
from dataclasses import dataclass
from importlib.resources import files
from tempfile import TemporaryDirectory
from typing import Any

from cooper_rl import CooperTrainer, build_config

MODELS = files("cooper_lab") / "arithmetic" / "assets"
SETTINGS: dict[str, Any] = {
    "kind": "rule",
    "steps": 1,
    "problems_per_step": 4,
    "policy": {"model": str(MODELS / "policy"), "learning_rate": 5e-4},
    "reward_model": {"model": str(MODELS / "reward_model"), "max_input_tokens": 160},
    "problems": {"source": "arithmetic", "limit": 64, "prompt": {"template": "{question}\n"}},
    "rollout": {"n": 4, "max_tokens": 32},
    "checkpoint": {"every": 0},
}


@dataclass(frozen=True)
class Run:
    """What a run recorded for its last step: metrics, completions and pairs."""

    metrics: dict[str, float]
    rollouts: list[dict[str, Any]]
    pairs: list[dict[str, Any]]


def train(**settings: Any) -> Run:
    """Train with `settings` on top of `SETTINGS`, in a folder that is deleted afterwards."""
    seen: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        config = build_config({**SETTINGS, "output_dir": folder, **settings})
        with CooperTrainer.from_config(config) as trainer:
            trainer.fit(lambda step, metrics: seen.update(metrics))
            name = f"{config.steps:06d}.jsonl"
            rows = [(trainer.directory / part / name).read_text().splitlines() for part in ("rollouts", "pairs")]
    rollouts, pairs = ([json.loads(row) for row in part] for part in rows)
    return Run(seen, rollouts, pairs)


if __name__ == "__main__":
    print("tiny run: reward/mean", round(train().metrics["reward/mean"], 3))
