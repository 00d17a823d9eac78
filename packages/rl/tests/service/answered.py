"""Groups of answers as a policy might have written them, the same at every call."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from cooper_rl import Answer, AnswerGroup, Problem, RewardConfig, Scores
from cooper_rl.reward.context import StepContext

CORRUPTER = {"kind": "corrupter", "function": "service.answered:flip"}


def flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    """A wrong answer in place of the right one."""
    return completion_text.replace(problem.answer, str(int(problem.answer) + 1 + attempt))


def fragile(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    """`flip`, unless a test has put a file into the server's folder."""
    if (Path(os.environ["COOPER_TEST_FOLDER"]) / "broken").exists():
        raise RuntimeError("the file is there")
    return flip(problem, completion_text, attempt, seed)


def group(number: int, size: int = 4) -> AnswerGroup:
    """The sum that makes `number`; every second answer is right."""
    answers = [Answer(f"{i + 1} + {number - i - 1} makes {number + 7 * (i % 2)}", id=f"a{i}") for i in range(size)]
    return AnswerGroup(f"g{number}", Problem(f"p{number}", f"{number - 1} + 1 = ?", str(number)), answers)


def groups(first: int, sizes: Sequence[int] = (4, 3, 4, 2)) -> list[AnswerGroup]:
    """Some groups, the first of which makes `first`."""
    return [group(first + i, size) for i, size in enumerate(sizes)]


def slow(problem: Problem, completion: Answer) -> float:
    """A reward that takes its time, and fails on one answer."""
    time.sleep(0.1)
    if completion.text == "boom":
        raise ZeroDivisionError("this answer")
    return 1.0


class Exiting(RewardConfig):
    """A reward that ends its process, as code of a script may."""

    compares_answers: ClassVar[bool] = False

    def score(self, context: StepContext) -> Scores:
        sys.exit(0)
