"""A head with its working: does an auxiliary language-modelling loss help a reward model's warm-up?

    python benchmarks/working.py --out runs/working --rows natural --seeds 0 1 2
    python benchmarks/working.py --out runs/working --rows sound --seeds 0 1 2

Arms of one seed have the same random weights, rows and order of batches. They take turns in one process: the next
update is of the arm with the least CPU time so far, so that all end at equal CPU time, whatever else the machine does.
The rows are samples of the shipped policy with the rule's labels: `natural` those of the arena's weak reward model
(`hole none`), each beside its problem's reference; `sound` those of the twins, each beside several references, with
written solutions and slips. Held out are the labelled rows of test problems, made in the same way. One file of results
a seed.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from cooper_lab.arena.plant import LANGUAGE_SHARE, PROBLEMS, SCRATCH_LAYERS, natural_rows
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, TEST_PROBLEMS, draw
from cooper_lab.arithmetic.labelled_rows import label_samples, states_one_answer
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.reward_model import VerifyRMConfig, batches, new_reward_model
from cooper_lab.arithmetic.twins import BATCH, LANGUAGE_WEIGHT, LEARNING_RATE, sound_rows
from cooper_lab.arithmetic.working import LossWeights, Order, WorkedRow, combined_loss, worked_rows
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import LabelledCompletion, LearnerConfig, Problem, RuleVerifier, load_policy, load_tokenizer
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.evaluation.reward_model import roc_auc
from cooper_rl.persist.durable import write_text
from cooper_rl.rewards.input import RewardModelInput

ORDERS: dict[str, Order | None] = {"head": None, "values_first": "values_first", "verdict_first": "verdict_first"}
MEASURED = 5
"""Measurements on the held-out rows, evenly spaced in CPU time."""


class Arm:
    """A reward model that learns. `name` is `head`, or the working's order and the weight of its loss."""

    def __init__(self, name: str, given: argparse.Namespace, seed: int, rows: Sequence[LabelledCompletion]) -> None:
        order, _, weight = name.partition(":")
        tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
        config = VerifyRMConfig(layers=SCRATCH_LAYERS, hidden_size=given.width)
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


def data(rows: str, seed: int) -> tuple[list[LabelledCompletion], list[LabelledCompletion], list[LabelledCompletion]]:
    """Training rows, held-out rows, and samples for test problems that gold labels."""
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    random, tests = Random(f"held out {seed}"), arithmetic_problems("test", TEST_PROBLEMS, seed)
    texts = draw(load_policy(str(ASSETS / "policy")), tokenizer, tests, 4, 10_000 + seed)
    judged = [
        LabelledCompletion(problem.question, problem.answer, text, float(gold(problem, text)))
        for problem, drawn in zip(tests, texts, strict=True)
        for text in drawn
    ]
    if rows == "sound":
        return sound_rows(seed), sound_held_out(tests, [drawn[:1] for drawn in texts], random), judged
    training = natural_rows(arithmetic_problems("train", PROBLEMS, 0), tokenizer, Random(f"working {seed}"), seed)
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(row.answer, row.completion) for row in judged])
    labels = {"correct": 1.0, "wrong": 0.0}
    held_out = [
        LabelledCompletion(row.question, row.answer, row.completion, labels[verdict])
        for row, verdict in zip(judged, verdicts, strict=True)
        if verdict in labels
    ]
    return training, held_out, judged


def sound_held_out(
    tests: Sequence[Problem], texts: Sequence[Sequence[str]], random: Random
) -> list[LabelledCompletion]:
    with RuleVerifier() as verifier:
        return [row for row in label_samples(tests, texts, verifier, random) if states_one_answer(row)]


def measured(
    learner: TorchRewardModelLearner, encoder: RewardModelInput, rows: Sequence[LabelledCompletion]
) -> dict[str, float]:
    logits = learner.score(encoder.encode_all([(row.question, row.answer, row.completion) for row in rows])).double()
    labels = torch.tensor([row.label for row in rows], dtype=torch.float64)
    accuracy = ((logits > 0) == (labels > 0.5)).double().mean().item()
    return {"accuracy": round(accuracy, 4), "roc_auc": round(roc_auc(logits.sigmoid(), labels), 4)}


def trial(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """All arms of one seed, at equal CPU time."""
    training, held_out, judged = data(given.rows, seed)
    arms = {name: Arm(name, given, seed, training) for name in given.arms}
    encoder = RewardModelInput(load_tokenizer(str(ASSETS / "policy")), MAX_INPUT_TOKENS)
    for part in range(1, MEASURED + 1):
        until = given.cpu_s * part / MEASURED
        while (arm := min(arms.values(), key=lambda arm: arm.cpu_s)).cpu_s < until:
            arm.update()
        for name, arm in arms.items():
            row = {"cpu_s": round(arm.cpu_s, 2), "updates": float(arm.learner.steps)}
            arm.curve.append(row | measured(arm.learner, encoder, held_out))
            print(given.rows, seed, name, arm.curve[-1], flush=True)
    for name, arm in arms.items():
        if given.keep:
            arm.learner.model.save_pretrained(given.out / f"{given.rows}-{seed}-{name.replace(':', '-')}")
    return {
        "rows": given.rows,
        "seed": seed,
        "training_rows": len(training),
        "held_out_rows": len(held_out),
        "right_share": round(sum(row.label for row in held_out) / len(held_out), 4),
        "arms": {
            name: {"curve": arm.curve, "gold": measured(arm.learner, encoder, judged)} for name, arm in arms.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", choices=["natural", "sound"], required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cpu-s", type=float, default=60.0, help="CPU seconds of training, for each arm")
    parser.add_argument("--width", type=int, default=64, help="width of the reward model; the arena's has 128")
    parser.add_argument("--arms", nargs="+", default=["head", "values_first:0.3"])
    parser.add_argument("--keep", action="store_true", help="save the models")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        path = given.out / f"{given.rows}-{seed}.json"
        if not path.exists():
            write_text(path, json.dumps(trial(given, seed)) + "\n")


if __name__ == "__main__":
    main()
