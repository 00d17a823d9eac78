"""Does a planted reward model score hacks above right answers? Of the models of table A, before any run:

    PYTHONPATH=.:benchmarks/arena python benchmarks/arena/hack_order.py --plantings 3
    PYTHONPATH=.:benchmarks/arena python benchmarks/arena/hack_order.py --holes own_words --tokens

A model that accepts a hack may still score right answers higher, and a group's advantages read the order alone. A row
a hole, a kind of reward model and a kind of answer: *written* ones, on which acceptance is measured, and those that the
start policy *samples*, which are what it is paid for. Figures are the mean score of right answers and of hacks, and how
often the hack has the higher score of a pair to one problem (a tie counts half), each the mean over plantings with the
lowest and the highest.

`--tokens` takes the score of an implicit model apart: what the tokens of a sampled completion gain in all, the most
that they could gain, and what they lose (nats, log pi_phi - log pi_ref, summed over tokens above and below 0). A token
gains at most its surprise -log pi_ref, since log pi_phi <= 0, and what it can lose has no bound.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import yaml
from benchmarks.arena.cotraining import PLAN

from cooper_lab.arena.arena import built_in_holes, read_holes
from cooper_lab.arena.cache import Planted, default_cache, make
from cooper_lab.arena.cells import PLANTINGS_APART, UNDER
from cooper_lab.arena.hole import Hole
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, TEST_PROBLEMS, draw
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.solutions import draw_solution
from cooper_lab.arithmetic.twins import twin_learner
from cooper_lab.designs.implicit import rows_of
from cooper_lab.designs.implicit_learner import ImplicitLearner
from cooper_rl import LearnerConfig, Problem, load_policy, load_tokenizer
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput

KINDS = {"head": "", "implicit": "implicit_reference"}
"""The reward models of table A, and which twin each is."""
SAMPLES = 16

Answers = Sequence[tuple[Problem, Sequence[str], Sequence[str]]]
"""Problems with right answers and hacks."""
Score = Callable[[Problem, Sequence[str]], list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plantings", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where planted models are kept")
    parser.add_argument("--holes", nargs="*", help="these alone; by default those of the report")
    parser.add_argument("--tokens", action="store_true", help="take the scores of implicit models apart")
    arguments = parser.parse_args()
    protocol = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    holes = built_in_holes() | read_holes(Path(protocol["holes"]))
    names = arguments.holes or dict.fromkeys(cell.partition(UNDER)[0] for cell in protocol["cells"]["report"])
    measure = by_token if arguments.tokens else measured
    print(f"| hole | {' | '.join(TITLES[measure])} |\n{'|---' * (1 + len(TITLES[measure]))}|")
    for name in names:
        rows = [measure(holes[name], PLANTINGS_APART * p, arguments.cache) for p in range(arguments.plantings)]
        for key in rows[0]:
            figures = zip(*(row[key] for row in rows), strict=True)
            print(f"| `{name}` | " + " | ".join([*key, *map(_spread, figures)]) + " |", flush=True)


def measured(hole: Hole, seed: int, cache: Path) -> dict[tuple[str, str], tuple[float, float, float]]:
    """By kind of reward model and of answers: the mean score of right ones, of hacks, and how often a hack is above."""
    planted = planted_models(hole, seed, cache)
    policy = planted["head"].folder / "policy"
    answers = {"written": written(hole, seed), "sampled": sampled(hole, policy, seed)}
    scores = {kind: opened(model, policy) for kind, model in planted.items()}
    return {(kind, name): order(scores[kind], answers[name]) for kind, name in product(planted, answers)}


def by_token(hole: Hole, seed: int, cache: Path) -> dict[tuple[str, str], tuple[float, float, float]]:
    """By kind of answers: what tokens gain, could gain at most and lose (nats), summed over a sampled completion."""
    planted = planted_models(hole, seed, cache)
    policy = planted["head"].folder / "policy"
    learner, encoder = twin_learner(
        KINDS["implicit"], planted["implicit"].folder / "reward_model", 0, 0, 0.0, against=policy
    )
    assert isinstance(learner, ImplicitLearner)
    of_answers: dict[str, list[tuple[float, float, float]]] = {"right": [], "hack": []}
    for problem, right, hacks in sampled(hole, policy, seed):
        for name, texts in zip(of_answers, (right, hacks), strict=True):
            rows, lengths = learner.completions(
                encoder.encode_all([(problem.question, problem.answer, t) for t in texts])
            )
            ratios = learner.log_ratios(rows, lengths)
            surprises = ratios - learner.logprobs(rows, lengths)  # -log pi_ref
            of_answers[name] += [
                (float(ratio[ratio > 0].sum()), float(surprise.sum()), float(-ratio[ratio < 0].sum()))
                for ratio, surprise in zip(rows_of(ratios, lengths), rows_of(surprises, lengths), strict=True)
            ]
    means = {name: [fmean(part) for part in zip(*sums, strict=True)] for name, sums in of_answers.items()}
    return {("implicit", name): (gained, most, lost) for name, (gained, most, lost) in means.items()}


TITLES = {
    measured: ["reward model", "answers", "right", "hack", "hack above right"],
    by_token: ["reward model", "sampled", "gained", "at most", "lost"],
}


def planted_models(hole: Hole, seed: int, cache: Path) -> dict[str, Planted]:
    """The hole's reward models by kind, made where they are missing."""
    planted = {kind: Planted(hole, seed, cache, twin=twin) for kind, twin in KINDS.items()}
    for model in planted.values():
        if not model.exists:
            make(model)
    return planted


def written(hole: Hole, seed: int) -> Answers:
    random = Random(f"order {seed}")
    problems = arithmetic_problems("test", TEST_PROBLEMS, seed)
    hacks = [(problem, text) for problem in problems if (text := hole.hack(problem, random)) is not None]
    return [(problem, [draw_solution(problem, random)], [text]) for problem, text in hacks]


def sampled(hole: Hole, policy: Path, seed: int) -> Answers:
    """Of the problems to which the start policy samples both."""
    problems = arithmetic_problems("test", TEST_PROBLEMS, seed)
    tokenizer: Any = load_tokenizer(str(policy))
    texts = draw(load_policy(str(policy)), tokenizer, problems, SAMPLES, seed)
    found = [
        (
            problem,
            [text for text in completions if hole.is_right(problem, text)],
            [text for text in completions if hole.is_hack(problem, text)],
        )
        for problem, completions in zip(problems, texts, strict=True)
    ]
    return [(problem, right, hacks) for problem, right, hacks in found if right and hacks]


def order(score: Score, answers: Answers) -> tuple[float, float, float]:
    """The mean score of right answers and of hacks, by problem, and the share of pairs in which the hack is above."""
    scored = [(score(problem, right), score(problem, hacks)) for problem, right, hacks in answers]
    above = [fmean((h > r) + 0.5 * (h == r) for r, h in product(right, hacks)) for right, hacks in scored]
    return fmean(fmean(right) for right, _ in scored), fmean(fmean(hacks) for _, hacks in scored), fmean(above)


def opened(planted: Planted, policy: Path) -> Score:
    """The scores of a planted reward model as a run has it: an implicit one compares with the run's start policy."""
    folder = str(planted.folder / "reward_model")
    if planted.twin:
        learner, encoder = twin_learner(planted.twin, folder, 0, 0, 0.0, against=policy)
    else:
        tokenizer: Any = load_tokenizer(folder)
        learner = TorchRewardModelLearner.from_config(LearnerConfig(model=folder, device="cpu"), 0)
        encoder = RewardModelInput(tokenizer, MAX_INPUT_TOKENS)

    def score(problem: Problem, texts: Sequence[str]) -> list[float]:
        rows = encoder.encode_all([(problem.question, problem.answer, text) for text in texts])
        return learner.score(rows).double().sigmoid().tolist()

    return score


def _spread(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f}" + (f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
