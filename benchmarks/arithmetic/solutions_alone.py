"""What the data set's solutions are worth without rule and reward model: the demo's policy, fine-tuned on them.

    python benchmarks/arithmetic/solutions_alone.py --seeds 0 1 2 3 4

Start, steps and problems a step are as many as the demo's; which problems a step has, the seed draws. Prints gold on
the demo's test problems.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.problems import gold
from cooper_lab.arithmetic.warmup import padded, tokens_and_labels
from cooper_lab.arithmetic.world import run_settings
from cooper_rl import Problem, build_config, load_policy, load_tokenizer
from cooper_verify.problems.loading import read_problems

EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--learning-rates", type=float, nargs="+", default=[5e-4, 1e-3])
    given = parser.parse_args()
    torch.set_num_threads(1)
    for learning_rate in given.learning_rates:
        for seed in given.seeds:
            found = " ".join(f"{share:.2f}" for share in fine_tuned(learning_rate, seed))
            print(f"learning rate {learning_rate:g}, seed {seed}: {found}")


def fine_tuned(
    learning_rate: float,
    seed: int,
    answered: Sequence[Problem] | None = None,
    steps: int = 40,
    folder: Path | None = None,
) -> Iterator[float]:
    """Gold before the first step and after every `EVERY`. It learns from the solutions of the demo's problems, or of
    those that somebody else has `answered`. The model is saved in `folder` after the last step."""
    config = build_config(run_settings("solutions", Path("runs"), seed, {"kind": "rule", "steps": steps}))
    train, test = (read_problems(part).problems for part in (config.problems, config.test_problems) if part is not None)
    tokenizer: Any = load_tokenizer(config.policy.model)
    model = load_policy(config.policy.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01, betas=(0.9, 0.95))
    size = config.problems_per_step
    order = Random(seed).sample(train if answered is None else answered, config.steps * size)
    for step in range(config.steps + 1):
        if step % EVERY == 0:
            texts = draw(model, tokenizer, test, 2, seed)
            right = [gold(problem, text) for problem, both in zip(test, texts, strict=True) for text in both]
            yield sum(right) / len(right)
        problems = order[step * size : (step + 1) * size]
        if problems:
            rows = [tokens_and_labels(problem, problem.solution or "", tokenizer) for problem in problems]
            tokens_BT, labels_BT = padded(rows, tokenizer)
            model(input_ids=tokens_BT, labels=labels_BT).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    if folder is not None:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
