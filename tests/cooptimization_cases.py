"""Groups of small sums, and corrupters that change their answers."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_rl.reward.context import RewardModel, StepContext
from cooper_verify.rules.rule import Rule


def cut_off(text: str) -> Answer:
    """An answer that was cut at the length limit."""
    return Answer(text, stopped=False)


def make_group(
    texts: Sequence[str | Answer], answer: str = "7", solution: str | None = None, id: str = "p"
) -> AnswerGroup:
    answers = [text if isinstance(text, Answer) else Answer(text) for text in texts]
    return AnswerGroup(id, Problem(id, f"What is {answer} + 0 ({id})?", answer, solution), answers)


def answer_text(number: int, work: str = "Adding up.") -> str:
    return f"{work}\n\\boxed{{{number}}}"


def context_of(
    groups: Sequence[AnswerGroup], verifier: Rule, logits: Sequence[Sequence[float]] | None = None
) -> StepContext:
    """What is known of judged groups: the rule's verdicts, and these logits of a reward model, or zeros."""
    model = SimpleNamespace(encoder=SimpleNamespace(reads_reference=True))
    context = StepContext(groups, verifier, cast(RewardModel, model))
    context.recall(verifier.verify_groups(groups), logits or [[0.0] * len(group.answers) for group in groups])
    return context


def flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    """A corrupter: the answer plus one, plus the attempt."""
    return completion_text.replace(problem.answer, str(int(problem.answer) + 1 + attempt))


def unchanged_then_flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    return completion_text if attempt == 0 else flip(problem, completion_text, attempt, seed)
