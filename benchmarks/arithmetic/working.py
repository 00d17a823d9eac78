"""A head with its working: does an auxiliary language-modelling loss help a reward model's warm-up?

    python -m benchmarks.arithmetic.working --out runs/tried --seeds 100 --cpu-s 30 \\
        --arms head values_first:0.3 verdict_first:0.3
    python -m benchmarks.arithmetic.working --out runs/working --seeds 0 1 2 3 4 5

Arms of one seed have the same random weights, rows and order of batches. They take turns in one process: the next
update is of the arm with the least CPU time so far, so that all end at equal CPU time, whatever else the machine does.
Rows are right and wrong solutions, each under a right and a wrong reference, so that only comparing them tells the
label. Held out are rows of test problems. One file of results a seed.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from benchmarks.arena.working_loss import LossWeights, Order, WorkedRow, combined_loss, worked_rows

from cooper_base.files.durable import write_text
from cooper_lab.arena.plant import LANGUAGE_SHARE, PROBLEMS, SCRATCH_LAYERS
from cooper_lab.arithmetic.answers import render_answer
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS
from cooper_lab.arithmetic.corruption import wrong_value
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.reward_model import VerifyRMConfig, batches, new_reward_model
from cooper_lab.arithmetic.solutions import exact_value, write_solution
from cooper_lab.arithmetic.twins import BATCH, LANGUAGE_WEIGHT, LEARNING_RATE
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import LabelledCompletion, LearnerConfig, Problem, load_tokenizer
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.monitor import roc_auc

ORDERS: dict[str, Order | None] = {"head": None, "values_first": "values_first", "verdict_first": "verdict_first"}
WIDTH = 64
"""Half the width of the arena's reward models, so that one that is barely able to compare costs half a minute."""
TEST_PROBLEMS = 600
SHORTEST = ("sum", "difference", "product")
MEASURED = 5
"""Measurements on the held-out rows, evenly spaced in CPU time."""


class Arm:
    """A reward model that learns. `name` is `head`, or the working's order and the weight of its loss."""

    def __init__(self, name: str, given: argparse.Namespace, seed: int, rows: Sequence[LabelledCompletion]) -> None:
        order, _, weight = name.partition(":")
        tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
        config = VerifyRMConfig(layers=SCRATCH_LAYERS, hidden_size=WIDTH)
        settings = LearnerConfig(
            model="", learning_rate=LEARNING_RATE, betas=(0.9, 0.98), warmup_steps=20, device="cpu"
        )
        self.learner = TorchRewardModelLearner(new_reward_model(config, tokenizer, seed), settings, 1, tokenizer)
        self.working = float(weight or 0)
        encoder = RewardModelInput(tokenizer, MAX_INPUT_TOKENS)
        encoded = worked_rows(rows, encoder, tokenizer, ORDERS[order])
        self.drawn: Iterator[list[WorkedRow]] = batches(encoded, BATCH, Random(f"order {seed}"))
        self.language_s = LANGUAGE_SHARE * given.cpu_s
        self.cpu_s = 0.0
        self.curve: list[dict[str, float]] = []

    def update(self) -> None:
        before = time.process_time()
        rows = next(self.drawn)
        if self.cpu_s < self.language_s:
            weights = LossWeights(0.0, 1.0, self.working / LANGUAGE_WEIGHT)
            rows = rows if self.working else [row for row in rows if row.label == 1]  # the others have no loss yet
        else:
            weights = LossWeights(1.0, LANGUAGE_WEIGHT, self.working)
        if rows:
            combined_loss(self.learner.model, rows, weights).backward()
        self.learner.optim_step()
        self.cpu_s += time.process_time() - before


def data(seed: int) -> tuple[list[LabelledCompletion], list[LabelledCompletion]]:
    """Training rows and held-out rows, which are of test problems."""
    random = Random(f"rows {seed}")
    training = arithmetic_problems("train", PROBLEMS, 0)
    return written_rows(training, random), written_rows(arithmetic_problems("test", TEST_PROBLEMS, seed), random)


def written_rows(problems: Sequence[Problem], random: Random) -> list[LabelledCompletion]:
    """A right solution and a wrong one of each problem of the shortest families, each under both answers' references.

    The label is that of the comparison with the reference: neither the completion nor the reference alone tells it.
    """
    rows = []
    for problem in problems:
        if problem.metadata["family"] in SHORTEST:
            solution = write_solution(problem, "plain")
            other = render_answer(wrong_value(exact_value(problem), "plain", random), "plain")
            slip = solution.replace(f"={problem.answer}", f"={other}").replace(f": {problem.answer}", f": {other}")
            pairs = ((problem.answer, solution), (problem.answer, slip), (other, solution), (other, slip))
            rows += [
                LabelledCompletion(problem.question, reference, text, label)
                for (reference, text), label in zip(pairs, (1.0, 0.0, 0.0, 1.0), strict=True)
            ]
    return rows


def measured(
    learner: TorchRewardModelLearner, encoder: RewardModelInput, rows: Sequence[LabelledCompletion]
) -> dict[str, float]:
    logits = learner.score(encoder.encode_all([(row.question, row.answer, row.completion) for row in rows])).double()
    labels = torch.tensor([row.label for row in rows], dtype=torch.float64)
    accuracy = ((logits > 0) == (labels > 0.5)).double().mean().item()
    return {"accuracy": round(accuracy, 4), "roc_auc": round(roc_auc(logits.sigmoid(), labels), 4)}


def trial(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """All arms of one seed, at equal CPU time."""
    training, held_out = data(seed)
    arms = {name: Arm(name, given, seed, training) for name in given.arms}
    encoder = RewardModelInput(load_tokenizer(str(ASSETS / "policy")), MAX_INPUT_TOKENS)
    for part in range(1, MEASURED + 1):
        until = given.cpu_s * part / MEASURED
        while (arm := min(arms.values(), key=lambda arm: arm.cpu_s)).cpu_s < until:
            arm.update()
        for name, arm in arms.items():
            row = {"cpu_s": round(arm.cpu_s, 2), "updates": float(arm.learner.steps)}
            arm.curve.append(row | measured(arm.learner, encoder, held_out))
            print(seed, name, arm.curve[-1], flush=True)
    return {
        "seed": seed,
        "training_rows": len(training),
        "held_out_rows": len(held_out),
        "right_share": round(sum(row.label for row in held_out) / len(held_out), 4),
        "arms": {name: arm.curve for name, arm in arms.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cpu-s", type=float, default=24.0, help="CPU seconds of training, for each arm")
    parser.add_argument("--arms", nargs="+", default=["head", "values_first:0.3"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        path = given.out / f"{seed}.json"
        if not path.exists():
            write_text(path, json.dumps(trial(given, seed)) + "\n")


if __name__ == "__main__":
    main()
