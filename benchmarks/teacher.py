"""A teacher's answers without references in the embedded world: `kind: gad` against fine-tuning on the same answers.

    python benchmarks/teacher.py --out runs/teacher --seeds 0
    python benchmarks/teacher.py --out runs/written --teacher written --seeds 0

The teacher is the demo's policy after a run of Cooper with the rule on all problems. It answers every training problem
once, greedily; nobody says which answers are right. With `--teacher written` it is whoever wrote the data set's
solutions, all of which are right. The student is the demo's policy. The discriminator begins as that
policy with a new head, and has learned from a few hundred of the teacher's and the student's answers, as in GAD's
warm-up. Prints gold on the demo's test problems.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from chat_reward_model import make_chat_model
from cooper_lab.arithmetic.arms import run_all
from cooper_lab.arithmetic.build_models import MAX_TOKENS, draw
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.warmup import prompt_text
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_rl import (
    LabelledCompletion,
    NativeSampler,
    Problem,
    SamplingParams,
    load_policy,
    load_tokenizer,
    merge,
    read_metrics,
)
from solutions_alone import fine_tuned

PROBLEMS = 2000
WARM_UP, LANGUAGE = 300, 100
"""Updates of the discriminator before the run, and those of them that do language modelling alone."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--teacher", choices=["policy", "written"], default="policy")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--discriminator-learning-rates", type=float, nargs="+", default=[3e-4])
    parser.add_argument("--fine-tuning-learning-rates", type=float, nargs="*", default=[5e-4, 1e-3])
    given = parser.parse_args()
    torch.set_num_threads(1)
    answered = teachers_answers(given.out, given.teacher)
    print(f"the teacher's answers: gold {sum(gold(p, p.solution or '') for p in answered) / len(answered):.3f}")
    if not (given.out / "discriminator").is_dir():
        accuracy = make_chat_model(given.out / "discriminator", teacher_and_student(answered), WARM_UP, LANGUAGE)
        print(f"the discriminator before the run tells teacher and student apart: {accuracy:.3f}")
    runs = [
        distillation(given.out, seed, given.steps, learning_rate)
        for learning_rate in given.discriminator_learning_rates
        for seed in given.seeds
    ]
    run_all([run for run in runs if not (given.out / run["name"]).is_dir()])
    for run in runs:
        rows = read_metrics(given.out / run["name"])
        print(run["name"], " ".join(f"{row['test/gold_avg']:.2f}" for row in rows if "test/gold_avg" in row))
    for learning_rate in given.fine_tuning_learning_rates:
        for seed in given.seeds:
            found = " ".join(f"{share:.2f}" for share in fine_tuned(learning_rate, seed, answered))
            print(f"fine-tuning, learning rate {learning_rate:g}, seed {seed}: {found}")


def teachers_answers(out: Path, teacher: str) -> list[Problem]:
    """The first training problems without their references, each with the teacher's answer as its solution.

    Also writes them as rows to `answered.jsonl`.
    """
    problems = arithmetic_problems("train", PROBLEMS)
    texts = answers_of_policy(out, problems) if teacher == "policy" else [problem.solution for problem in problems]
    answered = [replace(problem, answer="", solution=text) for problem, text in zip(problems, texts, strict=True)]
    rows = [{"question": problem.question, "solution": problem.solution, **problem.metadata} for problem in answered]
    out.mkdir(parents=True, exist_ok=True)
    (out / "answered.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return answered


def answers_of_policy(out: Path, problems: Sequence[Problem]) -> Sequence[str]:
    """What the demo's policy answers after a run of Cooper, which is done first if there is none yet."""
    run = run_settings("teacher", out, 100, {"kind": "cooper", "checkpoint": {"every": 40}})
    folder = out / "teacher" / "checkpoints" / "000040" / "policy"
    if not folder.is_dir():
        run_all([run])
    tokenizer = load_tokenizer(str(folder))
    sampler = NativeSampler(tokenizer, load_policy(str(folder)), max_rows=256)
    prompts = [tokenizer(prompt_text(problem))["input_ids"] for problem in problems]
    return sampler.sample(prompts, 1, SamplingParams(max_tokens=MAX_TOKENS, temperature=0.0), 0).texts


def teacher_and_student(answered: Sequence[Problem]) -> list[LabelledCompletion]:
    """The teacher's answers, labelled 1, in turn with the student's, labelled 0."""
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    students = draw(load_policy(str(ASSETS / "policy")), tokenizer, answered, 1, 0)
    return [
        LabelledCompletion(problem.question, "", text, label)
        for problem, (student,) in zip(answered, students, strict=True)
        for text, label in ((problem.solution or "", 1.0), (student, 0.0))
    ]


def distillation(out: Path, seed: int, steps: int, learning_rate: float) -> dict[str, Any]:
    """A run of `kind: gad` on the teacher's answers."""
    chosen = {
        "kind": "gad",
        "steps": steps,
        "problems": {"source": str(out / "answered.jsonl"), "limit": None, "solution": "solution"},
        "reward_model": {"model": str(out / "discriminator"), "learning_rate": learning_rate},
    }
    world = run_settings(f"gad-{learning_rate:g}-{seed}", out, seed, {})
    del world["cooptimization"]  # the assistant of the demo, which no source of pairs here asks
    return merge(world, chosen)


if __name__ == "__main__":
    main()
