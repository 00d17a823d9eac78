"""The four runs of the demo, with the same start and the same problems but different rewards."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events
from cooper_base.files.owned_file import write_owned
from cooper_base.packages import set_log_level
from cooper_lab.arithmetic.families import gold_by_family, least_family
from cooper_lab.arithmetic.pool import run_in_processes
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_rl import build_config, merge, read_metrics
from cooper_rl.engines.local.device import available_cores

COMMAND, SUMMARY = "cooper demo", "summary.json"


class Arm(NamedTuple):
    """One run of the demo: what pages call it, its colour there, and its settings."""

    label: str
    colour: str
    settings: dict[str, Any]


ARMS = {
    "rule": Arm("rule", "#7a828e", {"kind": "rule"}),
    "static": Arm("static reward model", "#d9480f", {"kind": "static"}),
    "paper": Arm("Cooper as published", "#2f7ed8", {"kind": "paper"}),
    "cooper": Arm("Cooper", "#2b8a3e", {"kind": "cooper", "cooptimization": {"positives": ["rollout"]}}),
}
"""No arm reads the data set's solutions: what Cooper's reward model learns from is what the published recipe's has."""
RULE = {
    "kind": "partial",
    "rule": {"kind": "figures"},
    "only": {"family": ["sum", "difference", "product", "two_steps"]},
}
"""The rule of every arm judges these families of questions, 35 % of the problems, and is silent on all others."""
REWARD_MODEL = {"learning_rate": 6e-4}
"""The reward model's learning rate, in the arms in which it learns with one update a step."""
Progress = Callable[[int], None]


def arm_settings(arm: str, output_dir: Path, seed: int, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """The settings of one arm: those of `run_settings`, with the demo's rule and the arm's kind of reward."""
    shared = {"rule": RULE, "reward_model": REWARD_MODEL}
    return merge(run_settings(arm, output_dir, seed, merge(ARMS[arm].settings, shared)), overrides or {})


def run_all(runs: Sequence[dict[str, Any]], progress: Progress | None = None) -> float:
    """Run every configuration in a process of its own, one process per core. Returns the wall time in seconds.

    `progress` is called with the number of steps done so far in all runs together. If a run fails, no further run is
    started, and its error is raised once the others under way have finished. Finished runs stay on disk.
    """
    start = time.monotonic()
    for settings in runs:
        build_config(settings)
    directories = [Path(settings["output_dir"]) / settings["name"] for settings in runs]
    done = 0

    def report() -> None:
        nonlocal done
        before, done = done, sum(map(steps_done, directories))
        if progress is not None and done > before:
            progress(done)

    run_in_processes(_run, runs, available_cores(), report)
    return time.monotonic() - start


def _run(settings: dict[str, Any]) -> None:
    set_log_level(logging.ERROR)  # the demo is about faults; the summary reports them
    from cooper_rl import CooperTrainer  # noqa: PLC0415 - in the run's own process

    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit()


def steps_done(directory: Path) -> int:
    """Steps that a run has recorded."""
    return next((row["step"] for row in read_metrics(directory, last=1)), 0)


def summarise(output_dir: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Write `summary.json`: the gold test accuracy and training reward of every arm at its start and end.

    `least_family` is the family of questions with the lowest gold at the end, with its interval, or null. `alarm` is
    the step at which the reward-hacking alarm first went off, or null.
    """
    arms = {}
    for arm in ARMS:
        metrics = read_metrics(output_dir / arm)
        gold = [row["test/gold_avg"] for row in metrics if "test/gold_avg" in row]
        reward = [row["reward/mean"] for row in metrics if "reward/mean" in row]
        if gold and reward:
            arms[arm] = {
                "gold_start": gold[0],
                "gold_end": gold[-1],
                "gold_best": max(gold),
                "reward_start": reward[0],
                "reward_end": reward[-1],
                "steps": metrics[-1]["step"],
                "least_family": least_family([gold_by_family(output_dir / arm)]),
                "alarm": next((e["step"] for e in read_events(output_dir / arm) if e["metric"] == HACKING), None),
            }
    manifest = json.loads((ASSETS / "manifest.json").read_text(encoding="utf-8"))
    summary = {
        "seconds": round(seconds, 1),
        "arms": arms,
        "reward_model_accuracy": manifest["reward_model"]["heldout_accuracy"],
        "seed": seed,
    }
    write_owned(output_dir / SUMMARY, json.dumps(summary, indent=2) + "\n", COMMAND)
    return summary
