"""rewardspy's detectors (AvAdiii/rewardspy, 0.1.0) and the alarm on recorded runs of an arena.

`python benchmarks/rewardspy_on_runs.py runs/arena/*/*/*/`, with rewardspy installed or its folder in PYTHONPATH. Every
completion is given to rewardspy in its order, with its reward and its group; a run's strength is the least sensitive of
rewardspy's three settings at which a detector speaks up.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewardspy.integrations.grpo import GRPOSpy  # pyright: ignore[reportMissingImports] - not a dependency

from cooper_lab.arena.alarm_roc import TODAY, auc, counts
from cooper_lab.arena.measures import is_hacked

STRENGTH = {"low": 3.0, "medium": 2.0, "high": 1.0}
SIGNS = ("variance", "slope", "ceiling", "length", "grpo_group")
"""`component` needs rewards of several parts, which these runs do not have."""


def spoke_up(run: Path, sensitivity: str) -> set[str]:
    """The detectors that raised an alert during the run."""
    spy = GRPOSpy(lambda text, reward: reward, sensitivity=sensitivity, max_reward=1.0)
    for step in sorted(run.glob("rollouts/*.jsonl")):
        for line in step.read_text(encoding="utf-8").splitlines():
            with spy.step():
                for completion in json.loads(line)["completions"]:
                    spy.reward(completion["text"], completion["reward"])
    return {alert.detector for alert in spy.store.alerts}


def main() -> None:
    runs = [Path(name) for name in sys.argv[1:] if (Path(name) / "cell.json").is_file()]
    cells = [json.loads((run / "cell.json").read_text(encoding="utf-8")) for run in runs]
    hacked = [is_hacked(cell) for cell in cells]
    spoken = [{level: spoke_up(run, level) for level in STRENGTH} for run in runs]
    alarm = [max(cell["alarm_strength"].values(), default=0.0) for cell in cells]
    print(f"{len(runs)} runs, {sum(hacked)} hacked")

    def told(name: str, strengths: list[float], threshold: float) -> None:
        scored = list(zip(strengths, hacked, strict=True))
        print(name, f"area {auc(scored)}", counts(scored, threshold))

    def strengths(has: Callable[[set[str]], Any]) -> list[float]:
        return [max((STRENGTH[level] for level in STRENGTH if has(one[level])), default=0.0) for one in spoken]

    told("the alarm", alarm, TODAY)
    told("rewardspy, any detector", strengths(bool), STRENGTH["medium"] - 0.5)
    for sign in SIGNS:
        told(f"rewardspy, {sign}", strengths(lambda found, sign=sign: sign in found), STRENGTH["medium"] - 0.5)


if __name__ == "__main__":
    main()
