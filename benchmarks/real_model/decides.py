"""One setting, all arms: a language model on word problems, a rule that judges one operation of four (decides.md).

    python -m benchmarks.real_model.decides OUT --models BASE --problems DATA --labelled real_completions.parquet
    python -m benchmarks.real_model.decides OUT --search             # the rule and the fixed reward model alone
    python -m benchmarks.real_model.decides OUT --arms rule static paper cooper cooper_refs rule_then_static static_kl
    python -m benchmarks.real_model.decides OUT --picture docs/decides.png --save benchmarks/results/decides.json

Every command continues after an interruption and leaves out what is finished. `--units` takes some of the runs, so that
two processes can share them.
"""

import argparse
import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from benchmarks.real_model.arms import first_alarm
from benchmarks.real_model.experiment import COOPER, draw, run, train_once
from benchmarks.real_model.gold import right_in_every_box
from benchmarks.real_model.operations import CONFIG, JUDGED, PANELS, interval, judging, table

from cooper_audit.run.run_record import RunRecord, read_record
from cooper_base.files.durable import write_text
from cooper_rl import Problem

Result = dict[str, Any]
NO_KL = "algorithm.kl=null"
CORRUPTER = "{kind: corrupter, function: 'benchmarks.real_model.decides:wrong_number'}"
ARMS: Mapping[str, Sequence[str]] = {
    "rule": ["kind=rule", NO_KL],
    "static": ["kind=static", NO_KL],
    "paper": ["kind=paper", NO_KL, f"cooptimization={{assistant: {CORRUPTER}}}"],
    "cooper": ["kind=cooper", NO_KL, "cooptimization.positives=[rollout]"],
    "cooper_refs": ["kind=cooper", NO_KL, "cooptimization.positives=[rollout, reference_solution]"],
    "rule_then_static": ["kind=static", NO_KL, "rewards=[{kind: rule_then_model}]"],
    "static_kl": ["kind=static", "algorithm.kl={coefficient: 0.01}"],
}
"""What pays, and what it learns from. Everything else is the same, but for the KL penalty of the last."""
LEARNING_RATES = ("3e-5", "1.5e-5")
STEPS = 40


@dataclass(frozen=True)
class Unit:
    """What is drawn independently of the others: models, their data, the judged operation, and the seed of all else."""

    seed: int
    policy: str
    reward_model: str
    judged: str


SEARCHED = (Unit(0, "a", "a", "additions"), Unit(3, "b", "b", "quotients"))
UNITS = (
    Unit(10, "a", "a", "subtractions"),
    Unit(11, "b", "b", "products"),
    Unit(12, "a", "b", "products"),
    Unit(13, "b", "a", "subtractions"),
    Unit(14, "b", "b", "subtractions"),
)
GOLD = {"all": "test/gold_avg", "judged": "test/gold_avg_heard", "silent": "test/gold_avg_silent"}
COMPARED = ("cooper", "cooper_refs")
DRAWN = ("rule", "static", "paper", "cooper")
LAST_STEPS = 10
"""Training steps whose completions are counted beside the test problems."""
REWARD_MODEL = (
    *("robustness=0", "learning_rate=1e-4", "epochs=1", "batch_size=16", "evaluate_every=100", "frozen_layers=12"),
    *("max_input_tokens=384", "tokens_per_microbatch=2048", "autocast=bfloat16", "threads=1"),
)
LABELLED = 700
"""Completions that a reward model learns from: so few that it is right about seven in ten held-out ones."""
WARM_UP_EPOCHS = 0.6
"""Of half of the warm-up rows. After two, the policy writes the same completion eight times and finds no hack."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="holds data/, models/ and runs/")
    parser.add_argument("--models", type=Path, help="make both start policies and both reward models from this one")
    parser.add_argument("--problems", type=Path, help="the folder of MAWPS, SVAMP and ASDiv")
    parser.add_argument("--labelled", type=Path, help="labelled completions, for the reward models")
    parser.add_argument("--search", action="store_true", help="the rule and the fixed reward model at each rate")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=[])
    parser.add_argument("--learning-rate", default=LEARNING_RATES[-1])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--units", nargs="*", type=int, default=[unit.seed for unit in UNITS])
    parser.add_argument("--picture", type=Path, help="draw the runs' curves into this file")
    parser.add_argument("--save", type=Path, help="write gold and alarm of the finished runs into this file")
    given = parser.parse_args()
    if given.models is not None:
        make_models(given.out, given.models, given.problems, given.labelled)
    if given.search:
        for rate in LEARNING_RATES:
            for unit in SEARCHED:
                for arm in ("static", "rule"):
                    train(given.out, f"search_{arm}_{rate}", arm, unit, rate, STEPS)
    for unit in (unit for unit in UNITS if unit.seed in given.units):
        for arm in given.arms:
            train(given.out, arm, arm, unit, given.learning_rate, given.steps)
    runs = [read_record(path) for path in sorted((given.out / "runs").glob("*-*"))]
    table(runs, GOLD)
    found = results(runs)
    differences(found)
    if given.save is not None:
        write_text(given.save, "[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
    if given.picture is not None:
        draw([run for run in runs if run.directory.name.rpartition("-")[0] in DRAWN], PANELS, given.picture)


def make_models(out: Path, base: Path, problems: Path, labelled: Path) -> None:
    """Each start policy learns from its half of the warm-up rows; each reward model from completions of other problems,
    drawn and trained with another seed."""
    if not (out / "data/train.jsonl").exists():
        run("-m", "benchmarks.real_model.data", str(problems), str(out / "data"))
    rows = (out / "data/warm_up.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for number, name in enumerate("ab"):
        half, policy = out / f"data/warm_{name}.jsonl", out / f"models/policy_{name}"
        half.write_text("".join(rows[number::2]), encoding="utf-8")
        make_policy(base, half, policy, WARM_UP_EPOCHS)
        drawn, model = out / f"labelled_{name}", out / f"models/reward_model_{name}"
        if not (drawn / "train.jsonl").exists():
            counts = ["--train", "2000", "--test", "600", "--seed", str(number)]
            run("benchmarks/verdicts/split_labelled.py", str(labelled), str(base), str(drawn), *counts)
        if not model.exists():
            few = drawn / "few.jsonl"
            lines = (drawn / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
            few.write_text("".join(lines[:LABELLED]), encoding="utf-8")
            make_reward_model(base, few, model, number)


def make_policy(base: Path, rows: Path, policy: Path, epochs: float) -> None:
    """A start policy, unless it is there, from so many passes over the warm-up rows."""
    if not policy.exists():
        half = fresh(policy)
        run("-m", "benchmarks.real_model.warm_up", str(base), str(rows), str(half), "--epochs", str(epochs))
        half.rename(policy)


def make_reward_model(base: Path, labelled: Path, model: Path, seed: int) -> None:
    """A reward model, unless it is there, from one pass over labelled completions."""
    if not model.exists():
        half = fresh(model)
        made = ["--model", str(base), "--out", str(half), *REWARD_MODEL, f"seed={seed}"]
        run(*COOPER, "verifyrm", "train", str(labelled), *made)
        half.rename(model)


def fresh(folder: Path) -> Path:
    """The place where the folder is made, without what an interrupted try has left there."""
    half = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(half, ignore_errors=True)
    return half


def train(out: Path, name: str, arm: str, unit: Unit, rate: str, steps: int) -> None:
    """Start or continue one run."""
    settings = [*ARMS[arm], *judging(out / "data", [JUDGED[unit.judged]])]
    settings += [f"policy.model={out}/models/policy_{unit.policy}"]
    settings += [f"reward_model.model={out}/models/reward_model_{unit.reward_model}"]
    settings += [f"{role}.autocast=bfloat16" for role in ("policy", "reward_model")]
    settings += [f"policy.learning_rate={rate}", f"steps={steps}", f"seed={unit.seed}"]
    train_once(out, f"{name}-{unit.seed}", CONFIG, settings)


def wrong_number(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    """The assistant of `paper`: the completion with its boxed number, wherever it stands, replaced by a near one."""
    boxed = re.findall(r"\\boxed\{\s*(-?\d+)\s*\}", completion_text)
    if not boxed:
        return ""
    draws = Random(seed * 100 + attempt)
    wrong = int(boxed[-1]) + draws.choice([-1, 1]) * draws.choice([1, 2, 3, 5, 10])
    return re.sub(rf"(?<!\d){re.escape(boxed[-1])}(?!\d)", str(wrong), completion_text)


def results(runs: Sequence[RunRecord], arms: Collection[str] = ARMS) -> list[Result]:
    """Of each finished run of the arms: gold at every evaluation, gold and the milder count over the last
    training steps, and the step of the first alarm."""
    found = []
    for one in runs:
        arm, _, seed = one.directory.name.rpartition("-")
        if arm in arms and (one.directory / "finished").exists():
            gold = {part: [round(value, 4) for value in one.values(name)] for part, name in GOLD.items()}
            rows = list(one.rollouts(range(one.step - LAST_STEPS + 1, one.step + 1)))
            milder = [right_in_every_box(row["answer"], row["text"]) for row in rows]
            last = {"gold": round(mean(row["gold"] for row in rows), 4), "right_in_every_box": round(mean(milder), 4)}
            row = {"arm": arm, "unit": int(seed), "steps": one.step, "gold": gold, "last_steps": last}
            row |= {
                "by_operation": {"start": of_operations(one, 1), "end": of_operations(one, one.step - LAST_STEPS + 1)}
            }
            found.append(row | {"alarm": first_alarm(one)})
    return found


def of_operations(run: RunRecord, first: int) -> dict[str, list[float]]:
    """Gold of the rollouts of `LAST_STEPS` steps from the `first` on, by operation of the problem, with the number of
    completions. Empty for a run whose rollouts do not say the operation."""
    by_operation: dict[str, list[bool]] = {}
    for row in run.rollouts(range(first, first + LAST_STEPS)):
        if operation := (row.get("metadata") or {}).get("operation"):
            by_operation.setdefault(operation, []).append(row["gold"])
    return {name: [round(mean(gold), 4), len(gold)] for name, gold in sorted(by_operation.items())}


def differences(found: Sequence[Result]) -> None:
    """Last gold by unit, its mean with a 95 % interval over units, and Cooper's minus that of each other arm."""
    ended = golds_by_unit(found, ARMS)
    for (arm, part), golds in ended.items():
        if len(golds) > 1:
            print(f"{arm}, {part}: {interval(list(golds.values()))}")
    for arm in COMPARED:
        for other in (other for other in ARMS if other != arm):
            for part in GOLD:
                ours, theirs = ended[arm, part], ended[other, part]
                gains = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
                if len(gains) > 1:
                    print(f"{arm} - {other}, {part}: {interval(gains)}")


def golds_by_unit(
    found: Sequence[Result], arms: Collection[str], place: int = -1
) -> dict[tuple[str, str], dict[int, float]]:
    """Gold at one evaluation, the last by default, by arm and part of the problems, and then by the unit's seed."""
    return {
        (arm, part): {one["unit"]: one["gold"][part][place] for one in found if one["arm"] == arm}
        for arm in arms
        for part in GOLD
    }


if __name__ == "__main__":
    main()
