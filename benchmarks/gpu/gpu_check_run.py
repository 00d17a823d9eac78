"""The part `run` of gpu_check.py: whole runs of the embedded world on the GPU, from sampling to a checkpoint."""

import argparse
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.gpu.gpu_check import SHAPES, random_models

from cooper_audit.run.run_record import read_metrics, read_run
from cooper_lab.arithmetic.arms import arm_settings, summarise
from cooper_rl import CooperTrainer, build_config, merge

STEPS = 40
"""As in the demo."""
FLOAT32 = {part: {"autocast": "off"} for part in ("policy", "reward_model")}
COMPARED = ("reward/mean", "policy/loss", "policy/grad_norm", "reward_model/loss", "test/gold_avg")


def check_run(options: argparse.Namespace) -> dict[str, Any]:
    """Three steps beside a CPU's, the demo's `rule` and `cooper` to their end, a run that goes on, and QLoRA."""
    steps = 2 if options.shape == "tiny" else STEPS
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return {
            "beside a CPU": beside_a_cpu(folder / "beside", options.device),
            "whole": whole_runs(folder / "whole", options.device, steps),
            "resumed": resumed(folder / "resumed", options.device),
            "qlora": qlora(folder / "qlora", options),
        }


def train(out: Path, arm: str, device: str, changes: dict[str, Any], resume: bool = False) -> Path:
    """One run of the demo, on this device. Returns its folder."""
    placed = {part: {"device": device} for part in ("policy", "reward_model")}
    config = build_config(arm_settings(arm, out, 0, merge(placed, changes)))
    with CooperTrainer.from_config(config, resume) as trainer:
        trainer.fit()
    return out / arm


def texts(run: Path, step: int) -> list[str]:
    """The completions of a step, in the order in which they were drawn."""
    return [row["text"] for row in read_run(run).rollouts([step])]


def equal_share(run: Path, other: Path, step: int) -> float:
    return float(np.mean([one == two for one, two in zip(texts(run, step), texts(other, step), strict=True)]))


def beside_a_cpu(out: Path, device: str) -> dict[str, Any]:
    """Cooper in float32 on both: how many completions of a step are equal, and the metrics of the first."""
    exact = FLOAT32 | {"steps": 3}
    one, two = (train(out / name, "cooper", place, exact) for name, place in (("one", "cpu"), ("two", device)))
    first, other = (
        {key: row[key] for row in read_metrics(run)[:2] for key in COMPARED if key in row} for run in (one, two)
    )
    return {
        "equal completions by step": [equal_share(one, two, step) for step in (1, 2, 3)],
        "cpu, device": {key: [first[key], other.get(key)] for key in first},
    }


def whole_runs(out: Path, device: str, steps: int) -> dict[str, Any]:
    """The demo's figures, in the precision that a run takes by itself. With one update a step, `policy/kl_to_old` is
    KL(sampler ‖ learner).
    """
    found: dict[str, Any] = {}
    for arm in ("rule", "cooper"):
        start = time.perf_counter()
        rows = read_metrics(train(out, arm, device, {"steps": steps}))
        gaps = [row["policy/kl_to_old"] for row in rows if "policy/kl_to_old" in row]
        found[arm] = {
            "gold": [row["test/gold_avg"] for row in rows if "test/gold_avg" in row],
            "step_s": float(np.median([row["time/step"] for row in rows if "time/step" in row])),
            "sampler_against_learner_kl": {"mean": float(np.mean(gaps)), "max": float(np.max(gaps))} if gaps else None,
            "took_s": time.perf_counter() - start,
        }
    alarms = summarise(out, 0, 0)["arms"]
    return {arm: one | {"alarm": alarms[arm]["alarm"]} for arm, one in found.items()}


def resumed(out: Path, device: str) -> dict[str, Any]:
    """Six steps, the same six again, and three with three more after a checkpoint: equal completions."""
    saved = FLOAT32 | {"checkpoint": {"every": 3}}
    whole, again = (train(out / name, "cooper", device, saved | {"steps": 6}) for name in ("whole", "again"))
    train(out / "parts", "cooper", device, saved | {"steps": 3})
    parts = train(out / "parts", "cooper", device, saved | {"steps": 6}, resume=True)
    return {
        "again, steps 1 to 6": [equal_share(whole, again, step) for step in range(1, 7)],
        "resumed, steps 4 to 6": [equal_share(whole, parts, step) for step in range(4, 7)],
    }


def qlora(out: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Steps with a 4-bit policy under an adapter."""
    if find_spec("bitsandbytes") is None:
        return {"not run": "bitsandbytes is not installed here"}
    policy, _ = random_models(SHAPES[options.shape], out)
    lora = {"rank": 16, "load_in_4bit": True}
    rollout = {"n": 4, "max_tokens": 64}
    changes = {"steps": 3, "problems_per_step": 8, "policy": {"model": str(policy), "lora": lora}, "rollout": rollout}
    # No rule accepts what random weights write; a reward model scores it, so that there is something to learn.
    changes |= {"evaluation": {"every": 0}, "algorithm": {"min_spread": 0}}
    rows = read_metrics(train(out, "static", options.device, changes))
    return {key: [row[key] for row in rows if key in row] for key in ("time/step", "policy/kl_to_old", "policy/loss")}
