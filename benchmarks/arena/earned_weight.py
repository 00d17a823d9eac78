"""The weight of `earned`, step by step, from the verdicts and scores that runs have recorded, counted in two ways.

    python benchmarks/arena/earned_weight.py runs/demo/cooper
    python benchmarks/arena/earned_weight.py                     # a drawn model with J = .85

`by class` is how the weight is counted. `by step` has no prior and halves the counts of both classes each step; a class
with a count below one gives weight 0.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import mean

from cooper_audit.run.run_record import read_groups
from cooper_rl.reward.kinds.earned import earned_weight, newer

Counts = Sequence[float]
"""Right answers, accepted ones of these, wrong answers, accepted ones of these."""
SEEDS, STEPS, ANSWERS = 10, 400, 16
ACCEPTED = (0.925, 0.075)
"""Shares of right and of wrong answers that the drawn model accepts."""


def main() -> None:
    for folder in sys.argv[1:]:
        print(folder)
        report([list(recorded(Path(folder)))])
    if not sys.argv[1:]:
        for right in (0.5, 0.95, 0.99):
            print(f"{ANSWERS} judged answers a step, {right:.0%} right; accepted {ACCEPTED}; true w 0.72")
            report([list(drawn(seed, right)) for seed in range(SEEDS)], shown=0)


def report(runs: Sequence[Sequence[Counts]], shown: int = 100) -> None:
    for name, weigh in (("by step", by_step), ("by class", by_class)):
        weights = [weight for run in runs for weight in weigh(run)]
        without = mean(weight == 0 for weight in weights)
        print(f"{name}: weight 0 in {without:.3f} of the steps, mean {mean(weights):.2f}")
        if shown:
            print(*(f"{weight:.2f}" for weight in weights[:shown]))


def by_class(steps: Sequence[Counts]) -> Iterator[float]:
    counts = [0.0] * 4
    for now in steps:
        counts = [*newer(counts[:2], now[:2]), *newer(counts[2:], now[2:])]
        yield earned_weight(counts)


def by_step(steps: Sequence[Counts]) -> Iterator[float]:
    counts = [0.0] * 4
    for now in steps:
        counts = [0.5 * old + new for old, new in zip(counts, now, strict=True)]
        right, accepted, wrong, accepted_wrong = counts
        yield max(0.0, accepted / right - accepted_wrong / wrong) ** 2 if min(right, wrong) >= 1 else 0.0


def recorded(run: Path) -> Iterator[Counts]:
    """The counts of each step of a run, by the scores that paid."""
    for path in sorted((run / "rollouts").glob("*.jsonl")):
        answers = [answer for group in read_groups(path) for answer in group["completions"]]
        yield count(
            (answer["verdict"], answer.get("reward_model_after", answer["reward_model"]) > 0.5)
            for answer in answers
            if answer["verdict"] in ("correct", "wrong")
        )


def drawn(seed: int, right: float) -> Iterator[Counts]:
    random = Random(seed)
    for _ in range(STEPS):
        verdicts = ["correct" if random.random() < right else "wrong" for _ in range(ANSWERS)]
        yield count((verdict, random.random() < ACCEPTED[verdict == "wrong"]) for verdict in verdicts)


def count(judged: Iterator[tuple[str, bool]]) -> list[float]:
    counts = [0.0] * 4
    for verdict, accepted in judged:
        place = 0 if verdict == "correct" else 2
        counts[place] += 1
        counts[place + 1] += accepted
    return counts


if __name__ == "__main__":
    main()
