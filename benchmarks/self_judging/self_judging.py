"""One model that solves and judges, in the embedded world: the gates of self_judging.md.

    python -m benchmarks.self_judging.self_judging OUT --world all --arms rule self --seeds 0 1 2 3 4
    python -m benchmarks.self_judging.self_judging OUT            # only the table of the runs in OUT

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
from random import Random
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from benchmarks.arena.one_model import OneModel, verdict_folder

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events, read_groups
from cooper_audit.statistics import mean_interval
from cooper_base.files.durable import write_text
from cooper_base.packages import set_log_level
from cooper_lab.arithmetic.arms import ARMS, REWARD_MODEL, RULE
from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.figures import figures_verdict
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_lab.designs.cross_entropy import CrossEntropy
from cooper_rl import (
    Callback,
    CooperTrainer,
    LearnerConfig,
    Problem,
    build_config,
    load_tokenizer,
    merge,
    read_metrics,
)
from cooper_rl.engines.base import PairBatch
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.reward_input import RewardModelInput

HERE, LOSS = "benchmarks.arena", "cooper_lab.designs.cross_entropy:CrossEntropy"
WORLDS: dict[str, dict[str, Any]] = {
    "all": {"rule": {"kind": "figures"}},
    "silent": {"rule": RULE},
    "nowhere": {"rule": {"kind": f"{HERE}.majority:MajorityRule"}},
}
"""What judges: the rule everywhere, the demo's rule on 35 % of the problems, the majority of a group."""
JUDGES: dict[str, Any] = {
    "kind": "cooper_model",
    "engine": {"kind": f"{HERE}.one_model:OneModel", "words": ["y", "n"]},
    "reward_model": {"input": "chat", "learning_rate": 1.5e-4, "warmup_steps": 3},
    "cooptimization": {
        "pairs": [{"kind": "on_policy", "order": "random"}],
        "positives": ["rollout"],
        "pairs_per_problem": 1,
        "loss": {"kind": LOSS},
        "before_policy": None,
        "epochs": 4,
        "replay": {"pairs_per_step": 8},
    },
}
"""The policy learns to judge: four updates a step, each on a right and a wrong completion of every problem that has
both, and on eight pairs of earlier steps."""
SELF: dict[str, dict[str, Any]] = {
    "self": {"rewards": [{"kind": "rule"}]},
    "self_fast": {"rewards": [{"kind": "rule"}], "reward_model": {"learning_rate": 5e-4}},
    "self_pays": {"rewards": [{"kind": "earned"}], "algorithm": {"advantages": {"kind": "grpo", "std_floor": 0.2}}},
    "self_confirms": {"rewards": [{"kind": f"{HERE}.majority:ConfirmedRule"}]},
}
"""The policy's verdict pays nothing, as much as `earned` trusts it, or decides which groups the majority pays."""
TRIALS = range(90, 100)
"""Seeds of the trials by which the second task's learning rate was chosen; they are in no comparison."""


def settings_of(world: str, arm: str, seed: int, out: Path, steps: int) -> dict[str, Any]:
    chosen = merge(JUDGES, SELF[arm]) if arm in SELF else merge(ARMS[arm].settings, {"reward_model": REWARD_MODEL})
    if arm == "rule":
        chosen.pop("reward_model")
    settings = run_settings(f"{world}-{arm}-{seed}", out, seed, merge(chosen, WORLDS[world] | {"steps": steps}))
    if arm in SELF:
        settings["reward_model"]["model"] = str(verdict_folder(ASSETS / "policy", out / "verdict", "?"))
    return settings


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
    silent = {step: youdens_j(rows, _is_gold) for step, rows in quiet.items() if rows}
    tests = {str(row["step"]): row["test/gold_avg"] for row in metrics if "test/gold_avg" in row}
    cpu = json.loads((folder / "cpu.json").read_text(encoding="utf-8"))
    right_labels = [mean((row["verdict"] == "correct") == row["gold"] for row in rows) for rows in said.values()]
    return {
        "gold": {step: round(value, 4) for step, value in tests.items()},
        "cpu_s_a_step": round(median(s for step, s in enumerate(cpu, 1) if str(step) not in tests), 3),
        "cpu_s": round(sum(cpu), 1),
        "j": [youdens_j(rows, _is_gold) for rows in judged.values()],
        "j_silent": list(silent.values()),
        "training_gold": [round(mean(row["gold"] for row in rows), 3) for rows in steps.values()],
        "verdicts_right": [round(share, 3) for share in right_labels],
        "weight": [round(row["earned/weight"], 3) for row in metrics if "earned/weight" in row],
        "confirmed": [round(row["confirmed/groups"], 3) for row in metrics if "confirmed/groups" in row],
        "alarm": next((event["step"] for event in read_events(folder) if event["metric"] == HACKING), None),
    }


class Alone:
    """The second task without the first: the start policy learns to judge its samples by the rule's verdicts."""

    def __init__(self, out: Path, seed: int, learning_rate: float, updates: int) -> None:
        engine, learns = OneModel(words=("y", "n")), {"learning_rate": learning_rate, "device": "cpu"}
        self.policy = engine.policy(LearnerConfig(model=str(ASSETS / "policy"), **learns), updates)
        folder = str(verdict_folder(ASSETS / "policy", out / "verdict", "?"))
        config = ScorerConfig(model=folder, input="chat", **learns)
        self.judge = engine.reward_model(config, updates)
        self.encoder, self.seed = RewardModelInput.of(config, load_tokenizer(folder)), seed
        self.test = arithmetic_problems("test", 256, seed)
        self.mixed: list[list[list[list[int]]]] = []
        """Of each problem that has both, the inputs of right and of wrong completions."""
        for problem, texts in self.samples(arithmetic_problems("train", 600, seed), 8):
            verdicts = [figures_verdict(problem.answer, text, problem.question) for text in texts]
            inputs = list(zip(self.encoded(problem, texts), verdicts, strict=True))
            sides = [[row for row, verdict in inputs if verdict == side] for side in ("correct", "wrong")]
            self.mixed += [sides] if all(sides) else []

    def samples(self, problems: Sequence[Problem], n: int) -> list[tuple[Problem, list[str]]]:
        drawn = draw(self.policy.model, self.judge.tokenizer, problems, n, self.seed)  # pyright: ignore[reportArgumentType]
        return list(zip(problems, drawn, strict=True))

    def encoded(self, problem: Problem, texts: Sequence[str]) -> list[list[int]]:
        return self.encoder.encode_all([(problem.question, problem.answer, text) for text in texts])

    def update(self, random: Random) -> None:
        """32 problems, of each a right completion and a wrong one."""
        chosen = [[random.choice(side) for side in sides] for sides in random.sample(self.mixed, 32)]
        batch = PairBatch([right for right, _ in chosen], [wrong for _, wrong in chosen], [1 / 32] * 32)
        self.judge.forward_backward(batch, CrossEntropy())
        self.judge.optim_step()

    def measured(self) -> dict[str, float | None]:
        """Gold and J of what the policy writes now to test problems, two completions each."""
        rows = [(problem, text) for problem, texts in self.samples(self.test, 2) for text in texts]
        scores = self.judge.score([self.encoded(problem, [text])[0] for problem, text in rows]).sigmoid().tolist()
        judged = [{"gold": gold(*row), "reward_model": score} for row, score in zip(rows, scores, strict=True)]
        return {"gold": round(mean(map(_is_gold, judged)), 4), "j": youdens_j(judged, _is_gold)}


def judge_alone(out: Path, seed: int, learning_rate: float, updates: int) -> None:
    """Write the curve of a policy that learns to judge alone, unless it is there."""
    path = out / f"alone-{learning_rate:g}-{seed}.json"
    if path.exists():
        return
    alone, random, cpu_s, curve = Alone(out, seed, learning_rate, updates), Random(f"alone {seed}"), 0.0, []
    for update in range(updates + 1):
        if update % 40 == 0:
            curve.append({"updates": update, "cpu_s": round(cpu_s, 1), **alone.measured()})
        before = time.process_time()
        alone.update(random)
        cpu_s += time.process_time() - before
    write_text(path, json.dumps(curve))


def _is_gold(row: Row) -> bool:
    return row["gold"]


def _end(run: Row) -> float:
    return list(run["gold"].values())[-1]


def _at_equal_cpu(run: Row, cpu_s: float) -> float:
    """Gold when the run's steps have taken that much, between two evaluations on a straight line."""
    steps, values = [int(step) for step in run["gold"]], list(run["gold"].values())
    return float(np.interp(cpu_s / run["cpu_s_a_step"], steps, values))


def compared(runs: Mapping[str, Row]) -> list[dict[str, Any]]:
    """Of each world and arm: gold at the end, CPU seconds a step, the mean J of the last five steps, and gold less the
    rule's of the same seeds with its 95 % interval (of two seeds and more), at equal steps and at equal CPU time."""
    rows = []
    for name in dict.fromkeys(name.rpartition("-")[0] for name in runs):
        of_arm = {seed: runs[f"{name}-{seed}"] for seed in range(TRIALS.start) if f"{name}-{seed}" in runs}
        if not of_arm:
            continue
        rules = {seed: runs.get(f"{name.partition('-')[0]}-rule-{seed}") for seed in of_arm}
        pairs = [(of_arm[seed], rule) for seed, rule in rules.items() if rule is not None and rule is not of_arm[seed]]
        js = [j for run in of_arm.values() for j in run["j"][-5:] if j is not None]
        row = {
            "arm": name,
            "seeds": list(of_arm),
            "gold": [_end(run) for run in of_arm.values()],
            "mean": round(mean(map(_end, of_arm.values())), 3),
            "cpu_s_a_step": round(mean(run["cpu_s_a_step"] for run in of_arm.values()), 2),
            "j": round(mean(js), 3) if js else None,
        }
        if pairs:
            last = [[step for step in run["gold"] if step in rule["gold"]][-1] for run, rule in pairs]
            equal_steps = [run["gold"][s] - rule["gold"][s] for (run, rule), s in zip(pairs, last, strict=True)]
            taken = [len(rule["training_gold"]) * rule["cpu_s_a_step"] for _, rule in pairs]
            equal_cpu = [_at_equal_cpu(run, s) - _end(rule) for (run, rule), s in zip(pairs, taken, strict=True)]
            for key, values in (("less_rule", equal_steps), ("less_rule_at_equal_cpu", equal_cpu)):
                row[key] = [round(value, 3) for value in (mean_interval(values) if len(values) > 1 else values)]
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--world", choices=WORLDS, default="all")
    parser.add_argument("--arms", nargs="+", default=[], choices=["rule", "cooper", *SELF])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--alone", type=float, nargs="+", default=[], help="learning rates of the second task alone")
    parser.add_argument("--updates", type=int, default=240, help="of the second task alone")
    parser.add_argument("--write", type=Path, help="file for the results as JSON")
    given = parser.parse_args()
    set_log_level(logging.ERROR)
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        for arm in given.arms:
            train(settings_of(given.world, arm, seed, given.out, given.steps))
        for learning_rate in given.alone:
            judge_alone(given.out, seed, learning_rate, given.updates)
    runs = {path.parent.name: of_run(path.parent) for path in sorted(given.out.glob("*/cpu.json"))}
    curves = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(given.out.glob("alone-*.json"))
    }
    results = {"compared": compared(runs), "alone": curves, "runs": runs}
    for row in [*results["compared"], *curves.items()]:
        print(json.dumps(row))
    if given.write is not None:
        write_text(given.write, json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
