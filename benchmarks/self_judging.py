"""One model that solves and judges, in the embedded world: the gates of self_judging.md.

    python -m benchmarks.self_judging OUT --world all --arms rule self --seeds 0 1 2 3 4
    python -m benchmarks.self_judging OUT            # only the table of the runs in OUT

Each run is one process's work on one thread, about a minute. Finished runs are kept, so the same command continues
after an interruption. The table goes to the screen and to benchmarks/results/self_judging.json with --write.
"""

import argparse
import json
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events, read_groups
from cooper_base.files.durable import write_text
from cooper_base.packages import set_log_level
from cooper_lab.arithmetic.arms import ARMS, REWARD_MODEL, RULE
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_lab.self_judging.one_model import verdict_folder
from cooper_rl import Callback, CooperTrainer, build_config, merge, read_metrics

RESULTS = Path(__file__).parent / "results" / "self_judging.json"
HERE = "cooper_lab.self_judging"
WORLDS: dict[str, dict[str, Any]] = {
    "all": {"rule": {"kind": "figures"}},
    "silent": {"rule": RULE},
    "nowhere": {"rule": {"kind": f"{HERE}.majority:MajorityRule"}},
}
"""What judges: the rule everywhere, the demo's rule on 35 % of the problems, the majority of a group."""
JUDGES: dict[str, Any] = {
    "kind": "cooper_model",
    "engine": {"kind": f"{HERE}.one_model:OneModel", "words": ["y", "n"]},
    "reward_model": {"input": "chat", "learning_rate": 5e-4, "warmup_steps": 3},
    "cooptimization": {
        "pairs": [{"kind": "on_policy", "order": "random"}],
        "positives": ["rollout"],
        "pairs_per_problem": 1,
        "loss": {"kind": f"{HERE}.one_model:CrossEntropy"},
        "before_policy": None,
        "epochs": 4,
        "replay": {"pairs_per_step": 8},
    },
}
"""The policy learns to judge: four updates a step, each on a right and a wrong completion of every problem that has
both, and on eight pairs of earlier steps."""
SELF: dict[str, dict[str, Any]] = {
    "self": {"rewards": [{"kind": "rule"}]},
    "self_pays": {"rewards": [{"kind": "earned"}], "algorithm": {"advantages": {"kind": "grpo", "std_floor": 0.2}}},
    "self_confirms": {"rewards": [{"kind": f"{HERE}.majority:ConfirmedRule"}]},
}
"""The policy's verdict pays nothing, as much as `earned` trusts it, or decides which groups the majority pays."""


def settings_of(world: str, arm: str, seed: int, out: Path, steps: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    chosen = merge(JUDGES, SELF[arm]) if arm in SELF else merge(ARMS[arm], {"reward_model": REWARD_MODEL})
    if arm == "rule":
        chosen.pop("reward_model")
    settings = run_settings(f"{world}-{arm}-{seed}", out, seed, merge(chosen, WORLDS[world] | {"steps": steps}))
    if arm in SELF:
        settings["reward_model"]["model"] = str(verdict_folder(ASSETS / "policy", out / "verdict", "?"))
    return merge(settings, dict(changes))


class CpuTime(Callback):
    """CPU seconds of this process in each step; a step that is evaluated includes its evaluation."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def before_step(self, trainer: CooperTrainer, step: int) -> None:
        self._start = time.process_time()

    def after_step(self, trainer: CooperTrainer, step: int, metrics: Any) -> None:
        self.seconds.append(round(time.process_time() - self._start, 3))


def train(settings: dict[str, Any]) -> None:
    """A finished run leaves `cpu.json`; what an interrupted one has left is removed."""
    folder = Path(settings["output_dir"]) / settings["name"]
    if (folder / "cpu.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    clock = CpuTime()
    with CooperTrainer.from_config(build_config(settings), callbacks=[clock]) as trainer:
        trainer.fit()
    write_text(folder / "cpu.json", json.dumps(clock.seconds))


Row = Mapping[str, Any]


def youdens_j(rows: Sequence[Row], right: Callable[[Row], bool]) -> float | None:
    """Of completions with a `reward_model` score: the share of right ones above 1/2 minus that of wrong ones; None
    without one of the two."""
    accepted: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        accepted[right(row)].append(row["reward_model"] > 0.5)
    return round(mean(accepted[True]) - mean(accepted[False]), 3) if all(accepted.values()) else None


def of_run(folder: Path) -> dict[str, Any]:
    """The curves of a finished run. What a verdict is measured on, the step's completions, it has not yet learned."""
    metrics = read_metrics(folder)
    files = {int(path.stem): read_groups(path) for path in sorted((folder / "rollouts").iterdir())}
    steps = {step: [row for group in groups for row in group["completions"]] for step, groups in files.items()}
    judged = {step: rows for step, rows in steps.items() if "reward_model" in rows[0]}
    said = {step: [row for row in rows if row["verdict"] in ("correct", "wrong")] for step, rows in steps.items()}
    quiet = {step: [row for row in rows if row["verdict"] == "silent"] for step, rows in judged.items()}
    silent = {step: youdens_j(rows, lambda row: row["gold"]) for step, rows in quiet.items() if rows}
    gold = {str(row["step"]): row["test/gold_avg"] for row in metrics if "test/gold_avg" in row}
    cpu = json.loads((folder / "cpu.json").read_text(encoding="utf-8"))
    right_labels = [mean((row["verdict"] == "correct") == row["gold"] for row in rows) for rows in said.values()]
    return {
        "gold": {step: round(value, 4) for step, value in gold.items()},
        "cpu_s_a_step": round(median(s for step, s in enumerate(cpu, 1) if str(step) not in gold), 3),
        "cpu_s": round(sum(cpu), 1),
        "j": [youdens_j(rows, lambda row: row["gold"]) for rows in judged.values()],
        "j_silent": list(silent.values()),
        "training_gold": [round(mean(row["gold"] for row in rows), 3) for rows in steps.values()],
        "verdicts_right": [round(share, 3) for share in right_labels],
        "weight": [round(row["earned/weight"], 3) for row in metrics if "earned/weight" in row],
        "confirmed": [round(row["confirmed/groups"], 3) for row in metrics if "confirmed/groups" in row],
        "alarm": next((event["step"] for event in read_events(folder) if event["metric"] == HACKING), None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--world", choices=WORLDS, default="all")
    parser.add_argument("--arms", nargs="+", default=[], choices=["rule", "cooper", *SELF])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--change", default="{}", help="further settings as JSON, for a trial in an OUT of its own")
    given = parser.parse_args()
    set_log_level(logging.ERROR)
    for seed in given.seeds:
        for arm in given.arms:
            train(settings_of(given.world, arm, seed, given.out, given.steps, json.loads(given.change)))
    runs = {path.parent.name: of_run(path.parent) for path in sorted(given.out.glob("*/cpu.json"))}
    for name, run in runs.items():
        print(name, json.dumps(run))


if __name__ == "__main__":
    main()
