"""A teacher's answers without references in the embedded world: `kind: gad` against fine-tuning on the same answers.

    python benchmarks/arithmetic/teacher.py --out runs/teacher --seeds 0 1
    python benchmarks/arithmetic/teacher.py --out runs/teacher --seeds 0 1 --warm-start 10 policy.learning_rate=1e-4
    python benchmarks/arithmetic/teacher.py --out runs/written --teacher written --seeds 0

The teacher is the demo's policy after 40 steps in which the rule paid on all problems. It answers every training
problem once, at temperature 1; nobody says which answers are right. With `--teacher written` it is whoever wrote the
data set's solutions, all of which are right. The student is the demo's policy, with `--warm-start N` after N steps of
fine-tuning on the teacher's answers. The discriminator begins as the demo's policy with a new head, and has learned
from a few hundred of the teacher's and the student's answers, as in GAD's warm-up. Settings of the runs may follow.
Prints gold on the demo's test problems, and what the discriminator's score says of right and wrong: how often a right
completion is above a wrong one of the same group, and how far the scores of a group lie apart.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from chat_reward_model import cpu_seconds, make_chat_model
from cooper_audit.run.run_record import read_record
from cooper_base.config.checking import with_overrides
from cooper_lab.arithmetic.arms import run_all
from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_rl import (
    LabelledCompletion,
    Problem,
    load_policy,
    load_tokenizer,
    merge,
    read_metrics,
)
from solutions_alone import fine_tuned

PROBLEMS = 2000
WARM_UP, LANGUAGE = 300, 100
"""Updates of the discriminator before the run, and those of them that do language modelling alone."""
EARLY = 8
"""Steps in which the discriminator still knows something that the student does not, if it ever does."""
FINE_TUNING = 5e-4
"""Learning rate of the fine-tuning on the teacher's answers."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--teacher", choices=["policy", "written"], default="policy")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warm-start", type=int, default=0, help="Steps of fine-tuning before the run.")
    parser.add_argument("--name", default="gad", help="Of the runs, before their seed.")
    parser.add_argument("settings", nargs="*", help="Of the runs: key=value.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    answered = teachers_answers(given.out, given.teacher)
    print(f"the teacher's answers: gold {sum(gold(p, p.solution or '') for p in answered) / len(answered):.3f}")
    student, discriminator = starts(given.out, answered, given.warm_start)
    overrides = with_overrides({}, given.settings)
    runs = [
        merge(distillation(f"{given.name}-{seed}", given.out, seed, given.steps, student, discriminator), overrides)
        for seed in given.seeds
    ]
    run_all([run for run in runs if not (given.out / run["name"]).is_dir()])
    for run in runs:
        print(result(given.out / run["name"]))
    for seed in given.seeds:
        tuned = " ".join(f"{share:.2f}" for share in fine_tuned(FINE_TUNING, seed, answered, given.steps))
        print(f"fine-tuning, seed {seed}: {tuned}")
    print(f"{cpu_seconds():.0f} CPU seconds")


def starts(out: Path, answered: Sequence[Problem], steps: int) -> tuple[Path, Path]:
    """The folders of the student and of the discriminator before the runs, which are made first if there are none."""
    student = out / f"student-{steps}" if steps else ASSETS / "policy"
    if not student.is_dir():
        tuned = " ".join(f"{share:.2f}" for share in fine_tuned(FINE_TUNING, 0, answered, steps, student))
        print(f"the student's warm start: gold {tuned}")
    discriminator = out / f"discriminator-{steps}"
    if not discriminator.is_dir():
        accuracy = make_chat_model(discriminator, teacher_and_student(answered, student), WARM_UP, LANGUAGE)
        print(f"the discriminator before the run tells teacher and student apart: {accuracy:.3f}")
    return student, discriminator


def teachers_answers(out: Path, teacher: str) -> list[Problem]:
    """The first training problems without their references, each with the teacher's answer as its solution.

    Also writes them as rows to `answered.jsonl`.
    """
    problems = arithmetic_problems("train", PROBLEMS)
    if teacher == "policy":
        folder = trained_policy(out)
        texts = [text for (text,) in draw(load_policy(str(folder)), tokenizer_of(folder), problems, 1, 0)]
    else:
        texts = [problem.solution for problem in problems]
    answered = [replace(problem, answer="", solution=text) for problem, text in zip(problems, texts, strict=True)]
    rows = [{"question": problem.question, "solution": problem.solution, **problem.metadata} for problem in answered]
    out.mkdir(parents=True, exist_ok=True)
    (out / "answered.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return answered


def trained_policy(out: Path) -> Path:
    """The demo's policy after 40 steps paid by the rule. The run is done first if there is none yet."""
    folder = out / "teacher" / "checkpoints" / "000040" / "policy"
    if not folder.is_dir():
        run_all([run_settings("teacher", out, 100, {"kind": "rule", "checkpoint": {"every": 40}})])
    return folder


def teacher_and_student(answered: Sequence[Problem], student: Path) -> list[LabelledCompletion]:
    """The teacher's answers, labelled 1, in turn with the student's, labelled 0."""
    students = draw(load_policy(str(student)), tokenizer_of(student), answered, 1, 0)
    return [
        LabelledCompletion(problem.question, "", text, label)
        for problem, (drawn,) in zip(answered, students, strict=True)
        for text, label in ((problem.solution or "", 1.0), (drawn, 0.0))
    ]


def distillation(name: str, out: Path, seed: int, steps: int, student: Path, discriminator: Path) -> dict[str, Any]:
    """A run of `kind: gad` on the teacher's answers."""
    chosen = {
        "kind": "gad",
        "steps": steps,
        "policy": {"model": str(student)},
        "problems": {"source": str(out / "answered.jsonl"), "limit": None, "solution": "solution"},
        "reward_model": {"model": str(discriminator)},
    }
    world = run_settings(name, out, seed, {})
    del world["cooptimization"]  # the assistant of the demo, which no source of pairs here asks
    return merge(world, chosen)


def result(run: Path) -> str:
    """Gold on test problems at every evaluation, and what the score says of right and wrong at first and later."""
    rows = [row for row in read_metrics(run) if row["step"]]
    gold_shares = " ".join(f"{row['test/gold_avg']:.2f}" for row in read_metrics(run) if "test/gold_avg" in row)
    parts = []
    for steps in (range(1, EARLY + 1), range(EARLY + 1, len(rows) + 1)):
        spread = mean(rows[step - 1]["reward/group_spread"] for step in steps)
        parts.append(f"{right_above_wrong(run, steps):.2f} (spread {spread:.2f})")
    return f"{run.name}: gold {gold_shares}; right above wrong {parts[0]} in {EARLY} steps, then {parts[1]}"


def right_above_wrong(run: Path, steps: Sequence[int]) -> float:
    """How often the reward of a right completion is above that of a wrong one of its group; a tie counts one half."""
    groups: dict[tuple[int, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in read_record(run).rollouts(steps):
        groups[row["step"], row["question"]][row["gold"]].append(row["reward"])
    pairs = [(good, bad) for wrong, right in groups.values() for good in right for bad in wrong]
    return mean((good > bad) + (good == bad) / 2 for good, bad in pairs)


def tokenizer_of(folder: Path) -> Any:
    return load_tokenizer(str(folder))


if __name__ == "__main__":
    main()
