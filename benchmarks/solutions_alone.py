"""What the data set's solutions are worth without rule and reward model: the demo's policy, fine-tuned on them.

    python benchmarks/solutions_alone.py --seeds 0 1 2 3 4

The start, the problems of a step and their number are those of the demo. Prints gold on its test problems.
"""

import argparse
from random import Random

import torch

from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.problems import gold
from cooper_lab.arithmetic.warmup import padded, tokens_and_labels
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import load_policy, load_tokenizer
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.data.loading import read_problems

STEPS, PROBLEMS, EVERY = 40, 32, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--learning-rates", type=float, nargs="+", default=[5e-4, 1e-3])
    given = parser.parse_args()
    torch.set_num_threads(1)
    train = read_problems(ProblemsConfig(source="arithmetic", limit=4000)).problems
    test = read_problems(ProblemsConfig(source="arithmetic", split="test", limit=128)).problems
    tokenizer = load_tokenizer(str(ASSETS / "policy"))
    for learning_rate in given.learning_rates:
        for seed in given.seeds:
            model = load_policy(str(ASSETS / "policy"))
            optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01, betas=(0.9, 0.95))
            order, found = Random(seed).sample(train, STEPS * PROBLEMS), []
            for step in range(STEPS + 1):
                if step % EVERY == 0:
                    texts = draw(model.eval(), tokenizer, test, 2, seed)
                    right = [gold(problem, text) for problem, both in zip(test, texts, strict=True) for text in both]
                    found.append(sum(right) / len(right))
                problems = order[step * PROBLEMS : (step + 1) * PROBLEMS]
                if not problems:
                    break
                rows = [tokens_and_labels(problem, problem.solution or "", tokenizer) for problem in problems]
                tokens_BT, labels_BT = padded(rows, tokenizer)
                model(input_ids=tokens_BT, labels=labels_BT).loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            print(f"learning rate {learning_rate:g}, seed {seed}: {' '.join(f'{share:.2f}' for share in found)}")


if __name__ == "__main__":
    main()
