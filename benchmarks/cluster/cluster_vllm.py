"""Runs on two policy processes, two reward-model processes and one vLLM engine under Ray, beside one process.

    python -m benchmarks.cluster.cluster_vllm arms cooper static          # the embedded world, 40 steps
    python -m benchmarks.cluster.cluster_vllm model --model FOLDER        # a real model, 5 steps, on the cluster alone

Both need vLLM and Ray in one environment (docs/vllm.md). Finished runs in `--output` are shown and not run again. In
`model` the reward model starts as the same model with a head of random weights, so its scores mean nothing.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cluster.random_head import write_reward_model

from cooper_audit.run.run_record import read_metrics
from cooper_lab.arithmetic.arms import ARMS, arm_settings
from cooper_rl import CooperTrainer, build_config

SAMPLERS = {"kind": "vllm", "engines": 1, "kv_cache_gib": 0.25}
RANKS = {"policy_ranks": 2, "reward_model_ranks": 2, "cpus_per_rank": 0.2}
CLUSTER = {"kind": "cluster", **RANKS, "samplers": SAMPLERS}
SHOWN = (0, 10, 20, 30, 40)


def rows_of(settings: dict[str, Any]) -> list[dict[str, float]]:
    """The metrics of a run, which is done first unless it is there already."""
    directory = Path(settings["output_dir"]) / settings["name"]
    if not (directory / "metrics.jsonl").exists():
        with CooperTrainer.from_config(build_config(settings)) as trainer:
            trainer.fit()
    return read_metrics(directory)


def show(name: str, rows: list[dict[str, float]]) -> None:
    """Gold accuracy and reward on the way, and mean seconds of a step's parts."""
    for metric in ("test/gold_avg", "reward/mean"):
        found = {int(row["step"]): row[metric] for row in rows if metric in row}
        shown = [f"{found[step]:.3f}" if step in found else "-" for step in SHOWN]
        print(f"{name:<16} {metric:<14} {' '.join(shown)}")
    steps = [row for row in rows if row["step"] > 0]
    parts = sorted({part for row in steps for part in row if part.startswith("time/")})
    means = {part: np.mean([row[part] for row in steps if part in row]) for part in parts}
    print(f"{name:<16} seconds        " + ", ".join(f"{p.removeprefix('time/')} {s:.2f}" for p, s in means.items()))
    if "time/push_weights" in means:
        pushes = [row["time/push_weights"] for row in steps if "time/evaluate" not in row]
        print(f"{name:<16} a push, s      median {np.median(pushes):.2f}, {min(pushes):.2f} to {max(pushes):.2f}")


def of_model(model: str, output: Path) -> dict[str, Any]:
    """Five steps of two problems with four completions each."""
    scorer = output / "reward_model"
    if not scorer.exists():
        write_reward_model(model, scorer)
    return {
        "name": "model",
        "output_dir": str(output),
        "kind": "cooper_light",
        "steps": 5,
        "problems_per_step": 2,
        "policy": {"model": model, "learning_rate": 1e-6, "tokens_per_microbatch": 512},
        "reward_model": {"model": str(scorer), "learning_rate": 1e-5, "max_input_tokens": 256},
        "problems": {"source": "arithmetic", "limit": 64},
        "rollout": {"n": 4, "max_tokens": 48, "max_rows": 16},
        "algorithm": {"min_spread": 0.0},
        "cooptimization": {"positives": ["rollout", "reference_solution"], "pairs": [{"kind": "on_policy"}]},
        "evaluation": {"every": 0},
        "checkpoint": {"every": 0},
        "engine": {**CLUSTER, "samplers": {**SAMPLERS, "max_model_len": 512}},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("cluster-vllm"))
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("arms").add_argument("arms", nargs="+", choices=sorted(ARMS))
    parts.add_parser("model").add_argument("--model", required=True)
    options = parser.parse_args()
    if options.part == "arms":
        for arm in options.arms:
            light = {"kind": "cooper_light"} if arm == "cooper" else {}
            cluster = arm_settings(arm, options.output / "cluster", 0, {"engine": CLUSTER, **light})
            show(f"{arm} cluster", rows_of(cluster))
            show(f"{arm} one", rows_of(arm_settings(arm, options.output / "one", 0, light)))
        return
    rows = rows_of(of_model(options.model, options.output))
    for row in rows:
        gap, ratio = row["policy/mismatch_kl"], row["policy/ratio"]
        print(f"step {row['step']}: reward {row['reward/mean']:.3f}, ratio {ratio:.6f}, mismatch KL {gap:.1e}")
    show("model", rows)


if __name__ == "__main__":
    main()
