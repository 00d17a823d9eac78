"""What a run's models are at its start and at its end, on fixed answers: measured beside gold, which the policy alone
decides, so that a run says too whether its reward model was mended."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from cooper_base.data.problem import Problem
from cooper_lab.arena.hole import Hole, wrong_solution
from cooper_lab.arithmetic.build_models import TEST_PROBLEMS, draw
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.solutions import draw_solution
from cooper_rl import CooperTrainer, RewardModel

SAMPLES = 2
"""Completions of the final policy for each test problem."""


def acceptance(hole: Hole, model: RewardModel, seed: int) -> dict[str, float | None]:
    """The share that a reward model accepts (logit above 0) of answers that are written and not sampled: `right`,
    `wrong` and `hacks`, with `j` = right - wrong. The same answers for equal seeds. Null where there are none."""
    problems, random = arithmetic_problems("test", TEST_PROBLEMS, seed), Random(f"measure {seed}")
    hacks = [(problem, text) for problem in problems if (text := hole.hack(problem, random)) is not None]
    answers = {
        "hacks": hacks,
        "right": [(problem, draw_solution(problem, random)) for problem in problems],
        "wrong": [(problem, wrong_solution(problem, random)) for problem in problems],
    }
    found = {name: share(accepted(model, rows)) for name, rows in answers.items()}
    right, wrong = found["right"], found["wrong"]
    return found | {"j": None if right is None or wrong is None else round(right - wrong, 4)}


def accepted(model: RewardModel, answers: Sequence[tuple[Problem, str]]) -> list[bool]:
    """Whether the reward model accepts each answer."""
    rows = model.encoder.encode_all([(problem.question, problem.answer, text) for problem, text in answers])
    return [logit > 0 for logit in model.learner.score(rows).tolist()]


def of_policy(hole: Hole, policy: Any, tokenizer: Any, seed: int) -> dict[str, Any]:
    """Of samples on test problems: `hacked_share`, and gold by family of questions, `test_families`, with the lowest,
    `worst_family`. (`families` is a run's own measure, of its rollouts.)

    With a calculator what is drawn are first turns, which say nothing: all are null.
    """
    if hole.calculator:
        return {"hacked_share": None, "test_families": None, "worst_family": None}
    problems = arithmetic_problems("test", TEST_PROBLEMS, seed)
    texts = draw(policy, tokenizer, problems, SAMPLES, seed)
    families: dict[str, list[bool]] = {}
    hacked = []
    for problem, completions in zip(problems, texts, strict=True):
        hacked += [hole.is_hack(problem, text) for text in completions]
        right = map(partial(hole.is_right, problem), completions)
        families.setdefault(problem.metadata["family"], []).extend(right)
    shares = {family: round(sum(right) / len(right), 4) for family, right in sorted(families.items())}
    return {"hacked_share": share(hacked), "test_families": shares, "worst_family": min(shares.values())}


def at_start(hole: Hole, trainer: CooperTrainer, seed: int) -> dict[str, Any]:
    """What the reward model accepts before the first step; null without one."""
    model = trainer.parts.reward.model
    return {"reward_model_start": None if model is None else acceptance(hole, model, seed)}


def at_end(hole: Hole, trainer: CooperTrainer, seed: int) -> dict[str, Any]:
    """What the reward model accepts after the last step, and what the policy has become."""
    model, policy = trainer.parts.reward.model, trainer.parts.policy
    found = {"reward_model_end_accepts": None if model is None else acceptance(hole, model, seed)}
    return found | of_policy(hole, policy.model, policy.tokenizer, seed)  # pyright: ignore[reportAttributeAccessIssue]


def share(values: Sequence[bool]) -> float | None:
    """The share of true ones; null of none."""
    return round(sum(values) / len(values), 4) if values else None
