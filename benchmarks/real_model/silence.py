r"""Runs the experiment of silence.md: a language model, a rule that is silent on most of its tasks, and four arms.

    python -m benchmarks.real_model.silence OUT --model models/smollm2-135m-instruct --arms rule cooper --seeds 0 1 2
    python -m benchmarks.real_model.silence OUT          # only the table of the runs in OUT, finished or not
    python -m benchmarks.real_model.silence OUT --picture docs/silence.png

What is finished in OUT is kept, and a run goes on after its newest checkpoint: the same command continues after an
interruption. Stages: `warm_up.jsonl`, `models/policy` (the start), `samples.jsonl` (its completions), `labelled.jsonl`
(gold), `models/reward_model`, `runs/ARM-SEED`. Needs the extras `data`, `trl` and `reasoning-gym`.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

from cooper_lab.arithmetic.picture import COLOURS as ARM_COLOURS
from cooper_rl import curves_figure
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.data.loading import read_problems
from cooper_rl.data.problem import Problem
from cooper_rl.evaluation.accuracy import wilson_interval
from cooper_rl.evaluation.reasoning_gym import gold as scored
from cooper_rl.observe.hacking_alarm import HACKING
from cooper_rl.observe.run_record import RunRecord, read_record

CONFIG = Path(__file__).with_name("silence.yaml")
COOPER = ("-c", "from cooper_rl.cli.main import app; app()")
WARM_UP = 1200
LABELLED = 400
"""Problems of which the start policy's completions are labelled; those of `UNLABELLED` are left out afterwards."""
UNLABELLED = ("family_relationships", "syllogism")
"""Tasks of which the reward model's training has no label."""
COMPLETIONS = 4
"""Completions of a labelled problem. Equal ones count once."""
ARMS = {
    "rule": ["kind=rule"],
    "static": ["kind=static"],
    "cooper": ["kind=cooper"],
    "cooper_model": ["kind=cooper", "rewards=[{kind: reward_model}]"],
}
REWARD_MODEL = {
    "robustness": 0,
    "learning_rate": 1e-4,
    "epochs": 1,
    "batch_size": 16,
    "evaluate_every": 20,
    "frozen_layers": 12,
    "max_input_tokens": 256,
    "autocast": "bfloat16",
    "tokens_per_microbatch": 2048,
    "threads": 1,
}
COLOURS = ARM_COLOURS | {"cooper_model": ARM_COLOURS["paper"]}
PANELS = {
    "test/gold_avg_heard": "Gold on tasks that the rule judges",
    "test/gold_avg_silent": "Gold on tasks on which it is silent",
    "reward/mean": "Training reward",
}
LAST = 5
"""Steps at the end of a run whose completions give its accuracy by task."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, help="a small instruct model, the base of the policy and of its judge")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=[])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--picture", type=Path, help="draw the runs' curves into this file")
    given = parser.parse_args()
    if given.arms:
        if given.model is None:
            parser.error("--model: name the folder of the model")
        prepare(given.out, given.model.resolve())
        for seed in given.seeds:
            for arm in given.arms:
                train(given.out, arm, seed)
    runs = [read_record(path) for path in sorted((given.out / "runs").glob("*-*"))]
    table(runs)
    if given.picture is not None:
        draw(runs, given.picture)


def gold(problem: Problem, completion_text: str) -> bool:
    """The task's scorer, of a completion that ends with its answer. What follows the box cannot be right here."""
    return completion_text.strip(" .\n").endswith("}") and scored(problem, completion_text)


def prepare(out: Path, model: Path) -> None:
    """The start policy, and a reward model from its labelled completions."""
    out.mkdir(parents=True, exist_ok=True)
    rows, policy, samples = out / "warm_up.jsonl", out / "models/policy", out / "samples.jsonl"
    labelled, reward_model = out / "labelled.jsonl", out / "models/reward_model"
    if not rows.exists():
        problems = drawn(0, WARM_UP)
        write(rows, [{"question": one.question, "completion": f" {one.solution}"} for one in problems])
    if not policy.exists():
        half = policy.with_name("policy.partial")
        run("-m", "benchmarks.real_model.warm_up", str(model), str(rows), str(half))
        half.rename(policy)
    if not samples.exists():
        run(*COOPER, "verifyrm", "collect", str(collection(out, policy, samples)))
    if not labelled.exists():
        write(labelled, labels(samples))
    if not reward_model.exists():
        settings = [word for name, value in REWARD_MODEL.items() for word in ("--setting", f"{name}={value}")]
        base = ["--model", str(model), "--out", str(reward_model)]
        run(*COOPER, "verifyrm", "train", str(labelled), *base, *settings)


def drawn(skip: int, limit: int) -> list[Problem]:
    """Training problems `skip` to `skip + limit`, of which the runs have later ones."""
    settings = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["problems"] | {"skip": skip, "limit": limit}
    return read_problems(ProblemsConfig.model_validate(settings)).problems


def collection(out: Path, policy: Path, samples: Path) -> Path:
    """The settings of `cooper verifyrm collect`: the start policy's completions, drawn as in a run."""
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": config["rollout"]["max_tokens"]}
    model = {"name": "start", "kind": "local", "model": str(policy), "sampling": sampling, "autocast": "bfloat16"}
    problems = config["problems"] | {"name": "tasks", "skip": WARM_UP, "limit": LABELLED}
    path = out / "collect.yaml"
    settings = {"output": str(samples), "n": COMPLETIONS, "threads": 1, "rule": config["rule"]}
    settings |= {"models": [model], "datasets": [problems]}
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")  # which problems depends on the order
    return path


def labels(samples: Path) -> list[dict[str, Any]]:
    """The completions of all tasks but `UNLABELLED`, with gold as the label. Prints how many of which task."""
    problems = {one.question: one for one in drawn(WARM_UP, LABELLED)}
    rows, right = [], defaultdict(list)
    for line in samples.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        problem = problems[row["question"]]
        right[problem.metadata["task"]].append(label := gold(problem, row["completion"]))
        if problem.metadata["task"] not in UNLABELLED:
            rows.append(row | {"label": int(label)})
    for task, found in right.items():
        note = ", not in the reward model's training" if task in UNLABELLED else ""
        print(f"{task}: {sum(found)} of {len(found)} different completions of the start are right{note}")
    return rows


def train(out: Path, arm: str, seed: int) -> None:
    """Start or continue one run."""
    name = f"{arm}-{seed}"
    if (out / "runs" / name / "finished").exists():
        return
    models = [f"{role}.model={out / 'models' / role}" for role in ("policy", "reward_model")]
    places = [f"name={name}", f"output_dir={out / 'runs'}", f"seed={seed}", "threads=1"]
    resume = ["--resume"] if (out / "runs" / name / "metrics.jsonl").exists() else []
    run(*COOPER, "train", str(CONFIG), *ARMS[arm], *models, *places, *resume)
    (out / "runs" / name / "finished").touch()


def run(*arguments: str) -> None:
    """Run this Python with these arguments. Raises CalledProcessError if it fails."""
    print("$ python", *arguments, flush=True)
    subprocess.run([sys.executable, *arguments], check=True)


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    half = path.with_suffix(".partial")
    half.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    half.rename(path)


def table(runs: Sequence[RunRecord]) -> None:
    """Gold on heard and silent test problems, and gold by task over the completions of the last steps."""
    print(
        "\n| run | steps | gold, heard | gold, silent | gold, all | reward | agreement where heard | alarm | s a step |"
    )
    print("|---" * 9 + "|")
    for one in runs:
        ends = [accuracy(one, part) for part in ("_heard", "_silent", "")]
        means = [first_and_last(one, name) for name in ("reward/mean", "reward_model/rule_agreement")]
        alarm = next((str(event["step"]) for event in one.events if event["metric"] == HACKING), "none")
        seconds = mean(value for _, value in one.series("time/step")) if one.step else 0.0
        print(f"| {one.directory.name} | {one.step} | {' | '.join([*ends, *means, alarm])} | {seconds:.0f} |")
    by_task = {one.directory.name: tasks_at_the_ends(one) for one in runs}
    names = sorted({task for found in by_task.values() for task in found})
    print(f"\n| run | {' | '.join(names)} |")
    print("|---" * (1 + len(names)) + "|")
    for name, found in by_task.items():
        print(f"| {name} | {' | '.join(found.get(task, '–') for task in names)} |")


def draw(runs: Sequence[RunRecord], path: Path) -> None:
    """Gold on heard and on silent test problems and the training reward: a line a run, a colour an arm."""
    labelled = [replace(one, label=one.directory.name) for one in runs]
    colours = [COLOURS[one.label.rsplit("-", 1)[0]] for one in labelled]
    figure = curves_figure(labelled, list(PANELS), colours)
    for axes, title in zip(figure.axes, PANELS.values(), strict=True):
        axes.set_title(title, fontsize=11, loc="left")
    figure.savefig(path, dpi=150)


def accuracy(one: RunRecord, part: str) -> str:
    """First, best and last gold on a part of the test problems, and the 95 % interval of the last."""
    values = [value for _, value in one.series(f"test/gold_avg{part}")]
    if not values:
        return "–"
    low, high = wilson_interval(values[-1], test_problems()[part])
    return f"{values[0]:.2f}, {max(values):.2f}, **{values[-1]:.2f}** ({low:.2f} to {high:.2f})"


@cache
def test_problems() -> dict[str, int]:
    """How many test problems there are, by the end of a metric's name."""
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    found = read_problems(ProblemsConfig.model_validate(config["test_problems"])).problems
    heard = sum(problem.metadata["task"] in config["rule"]["only"]["task"] for problem in found)
    return {"": len(found), "_heard": heard, "_silent": len(found) - heard}


def first_and_last(one: RunRecord, name: str) -> str:
    values = [value for _, value in one.series(name)]
    return f"{mean(values[:LAST]):.2f} → {mean(values[-LAST:]):.2f}" if values else "–"


def tasks_at_the_ends(one: RunRecord) -> dict[str, str]:
    """Gold of the training completions of the first and the last steps, by task."""
    right: dict[str, tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))
    steps = (range(1, LAST + 1), range(max(1, one.step - LAST + 1), one.step + 1))
    for place, part in enumerate(steps):
        for row in one.rollouts(part):
            right[row["problem"].split("-")[0]][place].append(row["gold"])
    return {task: " → ".join(f"{mean(part):.2f}" if part else "–" for part in both) for task, both in right.items()}


if __name__ == "__main__":
    main()
