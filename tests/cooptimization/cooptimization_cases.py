"""Groups of small sums, and corrupters that change their answers."""

from collections.abc import Sequence

from cooper_rl.data.problem import Problem
from cooper_rl.engines.sampling import Completion, Group, StopReason


def make_completion(text: str, stop_reason: StopReason = "stop") -> Completion:
    return Completion(text, [], [], stop_reason)


def make_group(
    texts: Sequence[str | Completion], answer: str = "7", solution: str | None = None, id: str = "p"
) -> Group:
    completions = [text if isinstance(text, Completion) else make_completion(text) for text in texts]
    return Group(Problem(id, f"What is {answer} + 0 ({id})?", answer, solution), [], completions)


def answer_text(number: int, work: str = "Adding up.") -> str:
    return f"{work}\n\\boxed{{{number}}}"


def flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    """A corrupter: the answer plus one, plus the attempt."""
    return completion_text.replace(problem.answer, str(int(problem.answer) + 1 + attempt))


def unchanged_then_flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    return completion_text if attempt == 0 else flip(problem, completion_text, attempt, seed)
