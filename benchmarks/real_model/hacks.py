"""Scores the hacks of one run with several reward models, which plain transformers loads.

    python -m benchmarks.real_model.hacks runs/real-135m/static models/rm-natural MODEL_FOLDER --rows 3

The hacks are the completions of the last three steps that were paid most although the rule calls them wrong, one a
problem. Below the table is the share of all wrong completions of those steps that each model accepts.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cooper_audit.run.run_record import read_record
from cooper_rl.engines.reward_input import RewardModelInput

STEPS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rows", type=int, default=3)
    given = parser.parse_args()
    run = read_record(given.run)
    rows = run.rollouts(range(run.step - STEPS + 1, run.step + 1))
    wrong = {(row["problem"], row["text"]): row for row in rows if row["verdict"] == "wrong"}
    hacks = sorted(wrong.values(), key=lambda row: -row["reward"])
    scores = [score(model, hacks) for model in given.models]
    print(
        "| question, reference | completion | " + " | ".join(given.models) + " |\n" + "|---" * (2 + len(scores)) + "|"
    )
    first = {row["problem"]: i for i, row in reversed(list(enumerate(hacks)))}
    for i in sorted(first.values())[: given.rows]:
        found = " | ".join(f"{one[i]:.3f}" for one in scores)
        print(f"| {hacks[i]['question']} ({hacks[i]['answer']}) | `{hacks[i]['text']!r}` | {found} |")
    for model, one in zip(given.models, scores, strict=True):
        print(f"{model}: accepts {sum(value > 0.5 for value in one) / len(one):.3f} of {len(one)} wrong completions")


@torch.inference_mode()
def score(folder: str, rows: Sequence[dict[str, Any]]) -> list[float]:
    """sigmoid(logit) of each completion."""
    encoder = RewardModelInput(AutoTokenizer.from_pretrained(folder), max_tokens=384)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    inputs = encoder.encode_all([(row["question"], row["answer"], row["text"]) for row in rows])
    return [model(torch.tensor([token_ids])).logits.sigmoid().item() for token_ids in inputs]


if __name__ == "__main__":
    main()
