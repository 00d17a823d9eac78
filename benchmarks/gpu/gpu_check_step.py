"""The part `step` of gpu_check.py: the paper's configuration with random weights, its memory beside the plan's."""

import argparse
import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from benchmarks.gpu.gpu_check import SHAPES, random_models

from cooper_audit.run.run_record import read_metrics
from cooper_lab.plan.devices import GB, device_called
from cooper_lab.plan.memory import shares
from cooper_lab.plan.setup import layout_of, setup_of
from cooper_rl import CooperTrainer, RunConfig, load_config

CONFIG = Path(__file__).parents[2] / "configs" / "qwen2.5-1.5b-paper.yaml"
SHAPE, PROMPT = "qwen2.5-1.5b", 150
STEPS = 3
"""The first warms up and is not counted."""
SMALL = {
    "problems_per_step": 2,
    "rollout": {"n": 2, "max_tokens": 16},
    "engine": {"kind": "local"},
    "policy": {"autocast": "off"},
    "reward_model": {"autocast": "off"},
}
PART_OF = {
    "generation": "sample",
    "scores": "reward",
    "policy_update": "update_policy",
    "reward_model_update": "update_reward_model",
    "push": "push_weights",
}
"""The parts of a step, as the run's metrics name them. Old log-probabilities count with the policy's update."""


def check_step(options: argparse.Namespace) -> dict[str, Any]:
    """Median seconds of each part, and peak memory beside the plan's."""
    small, on_gpu = options.shape == "tiny", options.device == "cuda"
    with tempfile.TemporaryDirectory() as scratch:
        shape = SHAPES["tiny" if small else SHAPE]
        models, folder = random_models(shape, Path(scratch)), Path(scratch)
        config = _config(folder, *models, small=small, device=options.device)
        with CooperTrainer.from_config(config) as trainer:
            trainer.fit()
        rows = [row for row in read_metrics(Path(config.output_dir) / config.name) if row["step"] > 1]
        length = round(float(np.mean([row["rollout/mean_length"] for row in rows])))
        layout, device = layout_of(config.engine), device_called(None if on_gpu else "here")
        setup = setup_of(config, layout, PROMPT, length, cpu=not on_gpu)
    found: dict[str, Any] = {"completion_tokens": length, "planned_on": device.name, "parts": {}}
    for part, name in {**PART_OF, "step": "step"}.items():
        seconds = [row[f"time/{name}"] for row in rows if f"time/{name}" in row]
        found["parts"][part] = {"measured_s": float(np.median(seconds)) if seconds else None}
    peaks = [value for row in rows for key, value in row.items() if key.startswith("gpu_memory/")]
    held = shares(setup, device)[0].total / GB
    found["memory_gb"] = {"pytorch_peak": max(peaks) * 2**20 / GB if peaks else None, "plan": held}
    return found


def _config(folder: Path, policy: Path, reward_model: Path, small: bool, device: str) -> RunConfig:
    random = np.random.default_rng(0)

    def words(number: int) -> str:
        return "".join(random.choice(list("abcdefgh"), number))  # a token a letter

    rows = [
        {"question": words(PROMPT - 1), "answer": str(i), "solution": words(200) + f" The answer is {i}."}
        for i in range(256)
    ]
    problems = folder / "problems.jsonl"
    problems.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    given = {
        "output_dir": str(folder),
        "name": "step",
        "steps": STEPS,
        "policy": {"model": str(policy), "device": device},
        "reward_model": {"model": str(reward_model), "device": device},
        "problems": {
            "source": str(problems),
            "solution": "solution",
            "prompt": {"chat": False, "template": "{question}"},
        },
        # Random weights answer nothing right, so a pair is a reference solution and a changed one.
        "cooptimization": {
            "positives": ["reference_solution"],
            "assistant": {"kind": "corrupter", "function": "benchmarks.paper.study:wrong_number"},
        },
        "evaluation": {"every": 0},
        "checkpoint": {"every": 0},
        "watch": [],
    }
    values = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    for name in ("test_problems", "more_test_problems", "problems"):
        values.pop(name)
    values["cooptimization"].pop("assistant")
    if find_spec("vllm") is None or device == "cpu":
        values["engine"] = {"kind": "local"}
    path = folder / "step.yaml"
    path.write_text(yaml.safe_dump(_over(_over(values, given), SMALL if small else {})), encoding="utf-8")
    return load_config(path)


def _over(values: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    both = {
        k: _over(values[k], v) if isinstance(v, dict) and isinstance(values.get(k), dict) else v
        for k, v in given.items()
    }
    return values | both
